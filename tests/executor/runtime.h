/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The part of a vendor's runtime library that tests/ports declares, for the executor: two devices, whose memory is the
 * host's, and whose work is done when it is put on a stream. What is made and what is put on streams wants their device to
 * be the thread's; a vendor's is more lenient. Included after the vendor's header of tests/ports. */
#include <stdlib.h>
#include <string.h>

#define NAMED(x) TAGCB_GPU_PASTE_OF(tagcb_, TAGCB_GPU_NAME, _, x)

/* The k-th call from now on that may fail does so. */
static int fail_in;
static size_t held; /* allocations, streams and events */

void NAMED(fail_at)(int k)
{
    fail_in = k;
}

size_t NAMED(held)(void)
{
    return held;
}

/* What a function returns that has nothing else to complain about. */
static PORT(Error_t) luck(void)
{
    return fail_in > 0 && --fail_in == 0 ? PORT(ErrorInvalidValue) : PORT(Success);
}

static _Thread_local int current_device;

static int count_devices(void)
{
    const char *devices = getenv("EXECUTOR_DEVICES");
    return devices ? atoi(devices) : 2;
}

/* Streams and events begin with the number of their device. */
static PORT(Error_t) is_current(const void *of)
{
    return *(const int *)of == current_device ? PORT(Success) : PORT_WRONG_HANDLE;
}

enum { HELD_HOST = 1, HELD_DEVICE = 2 };

struct block {
    struct block *next;
    char *at;
    size_t bytes;
    int kind, device;
};
static struct block *all_held;

static PORT(Error_t) hold(void **at, size_t bytes, int kind)
{
    if (luck())
        return PORT(ErrorInvalidValue);
    struct block *h = malloc(sizeof *h);
    *h = (struct block){all_held, malloc(bytes), bytes, kind, current_device};
    memset(h->at, 0xc3, bytes);
    all_held = h;
    held++;
    *at = h->at;
    return PORT(Success);
}

static PORT(Error_t) let_go(void *at, int kind)
{
    for (struct block **h = &all_held; at && *h; h = &(*h)->next)
        if ((*h)->at == at && (*h)->kind == kind) {
            struct block *gone = *h;
            *h = gone->next;
            held--;
            free(gone->at);
            free(gone);
            return PORT(Success);
        }
    return at ? PORT(ErrorInvalidValue) : PORT(Success);
}

/* HELD_HOST, HELD_DEVICE, or 0: nothing of a device's. */
static int kind_of(const void *at, int *device)
{
    *device = -2; /* as vendors have it */
    for (const struct block *h = all_held; h; h = h->next)
        if ((const char *)at >= h->at && (const char *)at < h->at + h->bytes) {
            *device = h->device;
            return h->kind;
        }
    return 0;
}

PORT(Error_t) PORT(GetDeviceCount)(int *count)
{
    *count = count_devices();
    return *count ? luck() : PORT(ErrorNoDevice);
}

PORT(Error_t) PORT(GetDevice)(int *device)
{
    *device = current_device;
    return luck();
}

PORT(Error_t) PORT(SetDevice)(int device)
{
    if (device < 0 || device >= count_devices())
        return PORT(ErrorInvalidValue);
    current_device = device;
    return PORT(Success);
}

PORT(Error_t) PORT(DeviceSynchronize)(void)
{
    return luck();
}

/* Launches that failed say so here. */
PORT(Error_t) PORT(GetLastError)(void)
{
    return luck();
}

const char *PORT(GetErrorString)(PORT(Error_t) error)
{
    return error == PORT(ErrorNoDevice)   ? "no device"
           : error == PORT(ErrorNotReady) ? "not ready"
           : error                        ? "invalid value"
                                          : "no error";
}

PORT(Error_t) PORT(Malloc)(void **at, size_t bytes)
{
    return hold(at, bytes, HELD_DEVICE);
}

PORT(Error_t) PORT(Free)(void *at)
{
    return let_go(at, HELD_DEVICE);
}

PORT(Error_t)
PORT(MemcpyAsync)(void *to, const void *from, size_t bytes, PORT(MemcpyKind) kind, PORT(Stream_t) stream)
{
    (void)kind;
    if (is_current(stream) || luck())
        return PORT(ErrorInvalidValue);
    memcpy(to, from, bytes);
    return PORT(Success);
}

PORT(Error_t) PORT(MemsetAsync)(void *at, int byte, size_t bytes, PORT(Stream_t) stream)
{
    if (is_current(stream) || luck())
        return PORT(ErrorInvalidValue);
    memset(at, byte, bytes);
    return PORT(Success);
}

PORT(Error_t) PORT(StreamCreateWithFlags)(PORT(Stream_t) * stream, unsigned flags)
{
    if (luck() || flags != PORT(StreamNonBlocking))
        return PORT(ErrorInvalidValue);
    int *made = malloc(sizeof *made);
    *made = current_device;
    *stream = (PORT(Stream_t))made;
    held++;
    return PORT(Success);
}

PORT(Error_t) PORT(StreamDestroy)(PORT(Stream_t) stream)
{
    free(stream);
    held--;
    return PORT(Success);
}

PORT(Error_t) PORT(StreamSynchronize)(PORT(Stream_t) stream)
{
    (void)stream;
    return PORT(Success);
}

PORT(Error_t) PORT(StreamWaitEvent)(PORT(Stream_t) stream, PORT(Event_t) event, unsigned flags)
{
    (void)event;
    return flags ? PORT(ErrorInvalidValue) : is_current(stream) ? PORT_WRONG_HANDLE : luck();
}

/* Whether it has been asked for since it was recorded. At first it says that it is not ready. */
struct event {
    int device, asked;
};
PORT(Error_t) PORT(EventCreateWithFlags)(PORT(Event_t) * event, unsigned flags)
{
    if (luck() || flags != PORT(EventDisableTiming))
        return PORT(ErrorInvalidValue);
    struct event *made = malloc(sizeof *made);
    *made = (struct event){.device = current_device};
    *event = (PORT(Event_t))made;
    held++;
    return PORT(Success);
}

PORT(Error_t) PORT(EventDestroy)(PORT(Event_t) event)
{
    free(event);
    held--;
    return PORT(Success);
}

PORT(Error_t) PORT(EventRecord)(PORT(Event_t) event, PORT(Stream_t) stream)
{
    ((struct event *)event)->asked = 0;
    return is_current(event) || is_current(stream) ? PORT_WRONG_HANDLE : luck();
}

PORT(Error_t) PORT(EventQuery)(PORT(Event_t) event)
{
    int asked = ((struct event *)event)->asked;
    ((struct event *)event)->asked = 1;
    return luck() ? PORT(ErrorInvalidValue) : asked ? PORT(Success) : PORT(ErrorNotReady);
}

PORT(Error_t) PORT(EventSynchronize)(PORT(Event_t) event)
{
    ((struct event *)event)->asked = 1;
    return luck();
}
