/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The part of a vendor's runtime library that tests/ports declares, for the executor: one device, whose memory is the
 * host's, and whose work is done when it is put on a stream. Included after the vendor's header of tests/ports. */
#include <stdlib.h>
#include <string.h>

enum { HELD_HOST = 1, HELD_DEVICE = 2 };

struct held {
    struct held *next;
    char *at;
    size_t bytes;
    int kind;
};
static struct held *all_held;

static PORT(Error_t) hold(void **at, size_t bytes, int kind)
{
    struct held *h = malloc(sizeof *h);
    *h = (struct held){all_held, malloc(bytes), bytes, kind};
    memset(h->at, 0xc3, bytes);
    all_held = h;
    *at = h->at;
    return PORT(Success);
}

static PORT(Error_t) let_go(void *at, int kind)
{
    for (struct held **h = &all_held; at && *h; h = &(*h)->next)
        if ((*h)->at == at && (*h)->kind == kind) {
            struct held *gone = *h;
            *h = gone->next;
            free(gone->at);
            free(gone);
            return PORT(Success);
        }
    return at ? PORT(ErrorInvalidValue) : PORT(Success);
}

/* HELD_HOST, HELD_DEVICE, or 0: nothing of the device's. */
static int kind_of(const void *at)
{
    for (const struct held *h = all_held; h; h = h->next)
        if ((const char *)at >= h->at && (const char *)at < h->at + h->bytes)
            return h->kind;
    return 0;
}

PORT(Error_t) PORT(GetDeviceCount)(int *count)
{
    const char *devices = getenv("EXECUTOR_DEVICES");
    *count = devices ? atoi(devices) : 1;
    return *count ? PORT(Success) : PORT(ErrorNoDevice);
}

PORT(Error_t) PORT(GetDevice)(int *device)
{
    *device = 0;
    return PORT(Success);
}

PORT(Error_t) PORT(SetDevice)(int device)
{
    return device ? PORT(ErrorInvalidValue) : PORT(Success);
}

PORT(Error_t) PORT(DeviceSynchronize)(void)
{
    return PORT(Success);
}

PORT(Error_t) PORT(GetLastError)(void)
{
    return PORT(Success);
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
    (void)stream;
    memcpy(to, from, bytes);
    return PORT(Success);
}

PORT(Error_t) PORT(MemsetAsync)(void *at, int byte, size_t bytes, PORT(Stream_t) stream)
{
    (void)stream;
    memset(at, byte, bytes);
    return PORT(Success);
}

PORT(Error_t) PORT(StreamCreateWithFlags)(PORT(Stream_t) * stream, unsigned flags)
{
    *stream = malloc(1);
    return flags == PORT(StreamNonBlocking) ? PORT(Success) : PORT(ErrorInvalidValue);
}

PORT(Error_t) PORT(StreamDestroy)(PORT(Stream_t) stream)
{
    free(stream);
    return PORT(Success);
}

PORT(Error_t) PORT(StreamSynchronize)(PORT(Stream_t) stream)
{
    (void)stream;
    return PORT(Success);
}

PORT(Error_t) PORT(StreamWaitEvent)(PORT(Stream_t) stream, PORT(Event_t) event, unsigned flags)
{
    (void)stream;
    (void)event;
    return flags ? PORT(ErrorInvalidValue) : PORT(Success);
}

/* An event is a byte: whether it has been asked for since it was recorded. At first it says that it is not ready. */
PORT(Error_t) PORT(EventCreateWithFlags)(PORT(Event_t) * event, unsigned flags)
{
    *event = calloc(1, 1);
    return flags == PORT(EventDisableTiming) ? PORT(Success) : PORT(ErrorInvalidValue);
}

PORT(Error_t) PORT(EventDestroy)(PORT(Event_t) event)
{
    free(event);
    return PORT(Success);
}

PORT(Error_t) PORT(EventRecord)(PORT(Event_t) event, PORT(Stream_t) stream)
{
    (void)stream;
    *(char *)event = 0;
    return PORT(Success);
}

PORT(Error_t) PORT(EventQuery)(PORT(Event_t) event)
{
    char asked = *(char *)event;
    *(char *)event = 1;
    return asked ? PORT(Success) : PORT(ErrorNotReady);
}

PORT(Error_t) PORT(EventSynchronize)(PORT(Event_t) event)
{
    *(char *)event = 1;
    return PORT(Success);
}
