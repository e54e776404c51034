/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The backend of a device whose runtime library speaks CUDA, whatever the prefix: a plain C file includes this once, having
 * defined
 *   TAGCB_GPU_NAME   cuda or hip
 *   GPU(x)           a name of the runtime library
 *   and, where the libraries differ, gpu_host_alloc, gpu_host_free, gpu_memory_of, GPU_WRONG_HANDLE
 * One order is one stream. Descriptors stand in pinned memory, which the device reads where it is. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/gpu/launch.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

struct gpu_order {
    struct tagci_order head;
    int device;
    GPU(Stream_t) stream;
    GPU(Event_t) mark[TAGCI_MARKS], user; /* user: what the order has waited for */
    struct tagcb_place place;
};

static _Thread_local GPU(Error_t) last_error;
static _Thread_local const char *last_text; /* where more is known than the error says */

static int bad(GPU(Error_t) error)
{
    if (error == GPU(Success))
        return 0;
    last_error = error;
    last_text = NULL;
    (void)GPU(GetLastError)(); /* so that the program's next call does not see it */
    return -1;
}

static const char *failure(void)
{
    return last_error == GPU(Success) ? NULL : last_text ? last_text : GPU(GetErrorString)(last_error);
}

static struct gpu_order *of(struct tagci_order *order)
{
    return (struct gpu_order *)order;
}

/* Calls come from any thread: each works on the order's device, and leaves the thread on the one that it found. */
static int enter(const struct gpu_order *o)
{
    int before = 0;
    if (bad(GPU(GetDevice)(&before)))
        return -1;
    if (before == o->device || !bad(GPU(SetDevice)(o->device)))
        return before;
    (void)GPU(SetDevice)(before); /* some libraries have changed it all the same */
    return -1;
}

static int leave(const struct gpu_order *o, int before, int result)
{
    if (before != o->device && bad(GPU(SetDevice)(before)))
        return -1;
    return result;
}

/* ---- Life ---- */

static const char *probe(void)
{
    static _Thread_local char text[160];
    int count = 0;
    GPU(Error_t) error = GPU(GetDeviceCount)(&count);
    (void)GPU(GetLastError)();
    if (error == GPU(Success))
        return count ? NULL : "no device";
    snprintf(text, sizeof text, "no device: %.120s", GPU(GetErrorString)(error)); /* as without a driver */
    return text;
}

static const char *describe(void)
{
    static _Thread_local char text[128];
    int device = 0, count = 0;
    struct GPU(DeviceProp) properties;
    if (probe() || bad(GPU(GetDeviceCount)(&count)) || bad(GPU(GetDevice)(&device)) ||
        bad(GPU(GetDeviceProperties)(&properties, device)))
        return "no device";
    snprintf(text, sizeof text, "device %d of %d: %.80s", device, count, properties.name);
    return text;
}

/* ---- Devices ---- */

static int current(void)
{
    int device = 0;
    return bad(GPU(GetDevice)(&device)) ? -1 : device;
}

static int use(int device)
{
    return bad(GPU(SetDevice)(device));
}

/* ---- Memory ---- */

static enum tagci_memory classify(const void *at, int *device)
{
    struct GPU(PointerAttributes) attributes;
    if (GPU(PointerGetAttributes)(&attributes, at) == GPU(Success)) {
        *device = attributes.device;
        return gpu_memory_of(&attributes);
    }
    (void)GPU(GetLastError)();
    return TAGCI_HOST;
}

static void *alloc(struct tagci_order *order, enum tagci_memory kind, size_t bytes)
{
    struct gpu_order *o = of(order);
    void *at = NULL;
    int before = enter(o);
    if (before < 0)
        return NULL;
    bytes = bytes ? bytes : 1;
    if (bad(kind == TAGCI_HOST ? gpu_host_alloc(&at, bytes) : GPU(Malloc)(&at, bytes)))
        at = NULL;
    return leave(o, before, 0) ? NULL : at;
}

static void release(struct tagci_order *order, enum tagci_memory kind, void *at)
{
    struct gpu_order *o = of(order);
    int before = enter(o); /* or it works from another device */
    (void)bad(GPU(StreamSynchronize)(o->stream));
    (void)bad(kind == TAGCI_HOST ? gpu_host_free(at) : GPU(Free)(at));
    if (before >= 0)
        leave(o, before, 0);
}

static int copy(struct tagci_order *order, void *to, const void *from, size_t bytes)
{
    struct gpu_order *o = of(order);
    int before = bytes ? enter(o) : 0;
    if (before < 0 || bytes == 0)
        return before;
    return leave(o, before, bad(GPU(MemcpyAsync)(to, from, bytes, GPU(MemcpyDefault), o->stream)));
}

static int fill(struct tagci_order *order, void *at, int byte, size_t bytes)
{
    struct gpu_order *o = of(order);
    int before = bytes ? enter(o) : 0;
    if (before < 0 || bytes == 0)
        return before;
    return leave(o, before, bad(GPU(MemsetAsync)(at, byte, bytes, o->stream)));
}

/* ---- Order ---- */

static void order_free(struct tagci_order *order)
{
    struct gpu_order *o = of(order);
    int before = enter(o);
    if (before >= 0) {
        if (o->stream)
            (void)bad(GPU(StreamSynchronize)(o->stream));
        for (int i = 0; i < TAGCI_MARKS; i++)
            if (o->mark[i])
                (void)bad(GPU(EventDestroy)(o->mark[i]));
        if (o->user)
            (void)bad(GPU(EventDestroy)(o->user));
        (void)bad(GPU(Free)(o->place.scratch));
        if (o->stream)
            (void)bad(GPU(StreamDestroy)(o->stream));
        leave(o, before, 0);
    }
    free(o);
}

static int order_fill(struct gpu_order *o)
{
    struct GPU(DeviceProp) properties;
    void *scratch = NULL;
    if (bad(GPU(GetDeviceProperties)(&properties, o->device)) || bad((GPU(Error_t))LAUNCHER(status)()) ||
        bad(GPU(StreamCreateWithFlags)(&o->stream, GPU(StreamNonBlocking))))
        return -1;
    for (int i = 0; i < TAGCI_MARKS; i++)
        if (bad(GPU(EventCreateWithFlags)(&o->mark[i], GPU(EventDisableTiming))))
            return -1;
    if (bad(GPU(EventCreateWithFlags)(&o->user, GPU(EventDisableTiming))) ||
        bad(GPU(Malloc)(&scratch, sizeof *o->place.scratch)))
        return -1;
    o->place = (struct tagcb_place){.stream = o->stream, .scratch = scratch};
    o->place.blocks = 4 * (unsigned)properties.multiProcessorCount;
    return bad(GPU(MemsetAsync)(scratch, 0, sizeof *o->place.scratch, o->stream));
}

static struct tagci_order *order_make(int device)
{
    struct gpu_order *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->device = device;
    int before = enter(o);
    if (before >= 0 && leave(o, before, order_fill(o)) == 0)
        return &o->head;
    order_free(&o->head);
    return NULL;
}

/* A mark of one device cannot be set on a stream of another. */
static int wait_for_user(struct gpu_order *o, GPU(Stream_t) stream)
{
    GPU(Error_t) error = GPU(EventRecord)(o->user, stream);
    if (bad(error)) {
        if (error == GPU_WRONG_HANDLE)
            last_text = "the stream named for the tensor is of another device, or is none";
        return -1;
    }
    return bad(GPU(StreamWaitEvent)(o->stream, o->user, 0));
}

static int after(struct tagci_order *order, void *stream)
{
    struct gpu_order *o = of(order);
    int before = enter(o);
    if (before < 0)
        return -1;
    if (!stream)
        return leave(o, before, bad(GPU(DeviceSynchronize)()));
    return leave(o, before, wait_for_user(o, stream));
}

static int record(struct tagci_order *order, int mark)
{
    struct gpu_order *o = of(order);
    int before = enter(o);
    return before < 0 ? -1 : leave(o, before, bad(GPU(EventRecord)(o->mark[mark], o->stream)));
}

static int query(struct tagci_order *order, int mark)
{
    GPU(Error_t) error = GPU(EventQuery)(of(order)->mark[mark]);
    if (error == GPU(ErrorNotReady)) {
        (void)GPU(GetLastError)();
        return 0;
    }
    return bad(error) ? -1 : 1;
}

static int wait(struct tagci_order *order, int mark)
{
    return bad(GPU(EventSynchronize)(of(order)->mark[mark]));
}

/* ---- Kernels ---- */

/* What a function with an `order` does: puts kernels on its stream. */
#define PUT(launcher, ...)                                                                                             \
    do {                                                                                                               \
        struct gpu_order *o = of(order);                                                                               \
        int before = enter(o);                                                                                         \
        if (before < 0)                                                                                                \
            return -1;                                                                                                 \
        LAUNCHER(launcher)(&o->place, __VA_ARGS__);                                                                    \
        return leave(o, before, bad(GPU(GetLastError)()));                                                             \
    } while (0)

static int select_all(struct tagci_order *order, enum tagci_type type, struct tagci_choice *choices, size_t n)
{
    PUT(select, type, choices, n);
}

static int count_key(struct tagci_order *order, enum tagci_type type, struct tagci_tally *tallies, size_t n)
{
    PUT(count_key, type, tallies, n);
}

static int sparsify(struct tagci_order *order, struct tagci_chunk *chunks, size_t n)
{
    PUT(sparsify, chunks, n);
}

static int encode(struct tagci_order *order, struct tagci_chunk *chunks, size_t n)
{
    PUT(encode, chunks, n);
}

static int decode(struct tagci_order *order, struct tagci_decode *frames, size_t n)
{
    PUT(decode, frames, n);
}

static int gather_input(struct tagci_order *order, enum tagci_type type, const void *in, const void *residual, size_t n,
                        void *out)
{
    PUT(gather_input, type, in, residual, n, out);
}

static int finish(struct tagci_order *order, enum tagci_type type, const void *sum, size_t n, double divide,
                  int plus_zero, void *out)
{
    PUT(finish, type, sum, n, divide, plus_zero, out);
}

static int spread(struct tagci_order *order, const uint64_t *own, const uint64_t *whole, size_t nbits,
                  const void *values, size_t width, void *out, size_t *entries)
{
    PUT(spread, own, whole, nbits, values, width, out, entries);
}

static int unpack(struct tagci_order *order, const uint64_t *whole, size_t nbits, const void *packed, size_t width,
                  void *out, size_t *entries)
{
    PUT(unpack, whole, nbits, packed, width, out, entries);
}

static int sketch_exponents(struct tagci_order *order, int wide, const void *values, size_t entries, uint16_t *high,
                            uint16_t *low)
{
    PUT(sketch_exponents, wide, values, entries, high, low);
}

static int sketch_encode(struct tagci_order *order, const struct tagci_sketch *plan, int wide, int ranks,
                         const void *values, const uint16_t *high, const unsigned char *exceptional, void *ints,
                         void *cells)
{
    (void)ints;
    PUT(sketch_encode, plan, wide, ranks, values, high, exceptional, cells);
}

static int sketch_decode(struct tagci_order *order, const struct tagci_sketch *plan, int wide, int ranks,
                         const void *cells, const uint16_t *high, const unsigned char *exceptional, void *ints,
                         void *values)
{
    PUT(sketch_decode, plan, wide, ranks, cells, high, exceptional, ints, values);
}

static int move_blocks(struct tagci_order *order, const uint32_t *blocks, size_t n, size_t entries, size_t width,
                       void *values, void *packed, int back)
{
    PUT(move_blocks, blocks, n, entries, width, values, packed, back);
}

static int lossless_encode(struct tagci_order *order, enum tagci_type type, struct tagci_block *blocks, size_t n,
                           struct tagci_lossless_work *work)
{
    (void)work;
    PUT(lossless_encode, type, blocks, n);
}

static int lossless_decode(struct tagci_order *order, enum tagci_type type, struct tagci_block *blocks, size_t n,
                           struct tagci_lossless_work *work)
{
    (void)work;
    PUT(lossless_decode, type, blocks, n);
}

const struct tagci_backend TAGCB_GPU_PASTE_OF(tagcb_, TAGCB_GPU_NAME, , ) = {
    .name = TEXT(TAGCB_GPU_NAME),
    .batch = 256,
    .probe = probe,
    .describe = describe,
    .failure = failure,
    .current = current,
    .use = use,
    .classify = classify,
    .alloc = alloc,
    .release = release,
    .copy = copy,
    .fill = fill,
    .order_make = order_make,
    .order_free = order_free,
    .after = after,
    .record = record,
    .query = query,
    .wait = wait,
    .select = select_all,
    .count_key = count_key,
    .sparsify = sparsify,
    .encode = encode,
    .decode = decode,
    .gather_input = gather_input,
    .finish = finish,
    .spread = spread,
    .unpack = unpack,
    .sketch_exponents = sketch_exponents,
    .sketch_encode = sketch_encode,
    .sketch_decode = sketch_decode,
    .move_blocks = move_blocks,
    .lossless_encode = lossless_encode,
    .lossless_decode = lossless_decode,
};
