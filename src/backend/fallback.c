/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Kernels for a device backend that has none of its own: what the kernel reads is copied to the host, openmp's kernel runs
 * there, what it wrote is copied back. Slow, and right: a new backend works from its first day on. */
#include <pthread.h>
#include <string.h>

#include "backend/backend.h"
#include "core/bitmap.h"
#include "util/mem.h"

enum { mark = TAGCI_MARKS - 1 };

static int settle(struct tagci_order *order)
{
    return order->backend->record(order, mark) || order->backend->wait(order, mark) ? -1 : 0;
}

/* Host copies of one call. A call that cannot get one goes on with the next and fails at the end. */
struct copies {
    struct tagci_order *order;
    int failed;
    size_t n, room;
    struct copy {
        void *host, *device; /* device: to be written back, or NULL */
        size_t bytes;
    } * list;
};

static void begin(struct copies *c, struct tagci_order *order, size_t room)
{
    *c = (struct copies){.order = order, .room = room};
    c->list = tagci_alloc(room, sizeof *c->list);
    c->failed = !c->list;
}

/* Host memory for `bytes` bytes. from: what is in it at first, or NULL. to: where it goes at the end, or NULL. */
static void *host_copy(struct copies *c, const void *from, void *to, size_t bytes)
{
    if (c->failed || (!from && !to) || c->n == c->room)
        return NULL;
    void *host = tagci_alloc(bytes, 1);
    if (!host) {
        c->failed = 1;
        return NULL;
    }
    c->list[c->n++] = (struct copy){host, to, bytes};
    if (from && bytes)
        c->failed = c->order->backend->copy(c->order, host, from, bytes) != 0;
    return host;
}

static const void *in(struct copies *c, const void *at, size_t bytes)
{
    return host_copy(c, at, NULL, bytes);
}

static void *out(struct copies *c, void *at, size_t bytes)
{
    return host_copy(c, NULL, at, bytes);
}

/* Everything has been copied in: 0, or -1, and then the kernel is not to be run. */
static int ready(struct copies *c)
{
    return c->failed = c->failed || settle(c->order);
}

/* Copies back what was written and lets go of the memory. */
static int end(struct copies *c)
{
    for (size_t i = 0; i < c->n && !c->failed; i++)
        if (c->list[i].device && c->list[i].bytes)
            c->failed = c->order->backend->copy(c->order, c->list[i].device, c->list[i].host, c->list[i].bytes) != 0;
    /* Copies that are still to be made would work in memory that is let go of. A wait that failed has not seen to them, so
     * there is another; an order that fails for good makes none. */
    if (c->list && settle(c->order)) {
        c->failed = 1;
        settle(c->order);
    }
    for (size_t i = 0; i < c->n; i++)
        tagci_free(c->list[i].host);
    tagci_free(c->list);
    return c->failed ? -1 : 0;
}

static int select_all(struct tagci_order *order, enum tagci_type type, struct tagci_choice *choices, size_t n)
{
    int failed = settle(order);
    for (size_t i = 0; i < n && !failed; i++) {
        struct copies c;
        struct tagci_choice host = choices[i];
        begin(&c, order, 2);
        host.in = in(&c, host.in, host.n * tagci_type_size(type));
        host.residual = in(&c, host.residual, host.n * tagci_work_size(type));
        if (!ready(&c))
            c.failed = tagcb_openmp.select(NULL, type, &host, 1);
        failed = end(&c);
        choices[i].cut = host.cut;
        choices[i].above = host.above;
        choices[i].tied = host.tied;
    }
    return failed;
}

static int count_key(struct tagci_order *order, enum tagci_type type, struct tagci_tally *tallies, size_t n)
{
    int failed = settle(order);
    for (size_t i = 0; i < n && !failed; i++) {
        struct copies c;
        struct tagci_tally host = tallies[i];
        begin(&c, order, 2);
        host.in = in(&c, host.in, host.n * tagci_type_size(type));
        host.residual = in(&c, host.residual, host.n * tagci_work_size(type));
        if (!ready(&c))
            c.failed = tagcb_openmp.count_key(NULL, type, &host, 1);
        failed = end(&c);
        tallies[i].count = host.count;
    }
    return failed;
}

/* One chunk through sparsify or encode. */
static int one_chunk(struct tagci_order *order, struct tagci_chunk *chunk, int encode)
{
    struct copies c;
    struct tagci_chunk host = *chunk;
    size_t n = host.n, work = n * tagci_work_size(host.type), words = tagci_bitmap_words(n);
    begin(&c, order, 6);
    host.in = in(&c, chunk->in, n * tagci_type_size(host.type));
    host.residual = in(&c, chunk->residual, work);
    host.residual_out = out(&c, chunk->residual_out, work);
    host.bitmap = out(&c, chunk->bitmap, words * 8);
    if (encode) {
        host.frame = out(&c, chunk->frame, tagci_frame_bound(host.type, host.value, n));
        host.values = NULL;
    } else {
        host.values = out(&c, chunk->values, work);
    }
    if (!ready(&c))
        c.failed = (encode ? tagcb_openmp.encode : tagcb_openmp.sparsify)(NULL, &host, 1);
    chunk->kept = host.kept;
    chunk->frame_bytes = host.frame_bytes;
    for (size_t i = 0; i < c.n; i++) { /* no more than was written */
        if (c.list[i].host == host.frame && encode)
            c.list[i].bytes = host.frame_bytes;
        else if (c.list[i].host == host.values && !encode)
            c.list[i].bytes = host.kept * tagci_work_size(host.type);
    }
    return end(&c);
}

static int sparsify(struct tagci_order *order, struct tagci_chunk *chunks, size_t n)
{
    int failed = settle(order);
    for (size_t i = 0; i < n && !failed; i++)
        failed = one_chunk(order, &chunks[i], 0);
    return failed;
}

static int encode(struct tagci_order *order, struct tagci_chunk *chunks, size_t n)
{
    int failed = settle(order);
    for (size_t i = 0; i < n && !failed; i++)
        failed = one_chunk(order, &chunks[i], 1);
    return failed;
}

static int decode(struct tagci_order *order, struct tagci_decode *frames, size_t n)
{
    int failed = settle(order);
    for (size_t i = 0; i < n && !failed; i++) {
        struct copies c;
        struct tagci_decode host = frames[i];
        begin(&c, order, 3);
        const void *frame = in(&c, host.frame.at, host.frame.bytes);
        host.sum = host_copy(&c, host.first ? NULL : host.sum, host.sum, host.n * tagci_work_size(host.frame.type));
        host.seen = host_copy(&c, host.first ? NULL : host.seen, host.seen, tagci_bitmap_words(host.n) * 8);
        if (!ready(&c)) {
            tagci_frame_move(&host.frame, frame);
            c.failed = tagcb_openmp.decode(NULL, &host, 1);
        }
        failed = end(&c);
    }
    return failed;
}

static int gather_input(struct tagci_order *order, enum tagci_type type, const void *input, const void *residual,
                        size_t n, void *sum)
{
    struct copies c;
    begin(&c, order, 3);
    input = in(&c, input, n * tagci_type_size(type));
    residual = in(&c, residual, n * tagci_work_size(type));
    sum = out(&c, sum, n * tagci_work_size(type));
    if (!ready(&c))
        c.failed = tagcb_openmp.gather_input(NULL, type, input, residual, n, sum);
    return end(&c);
}

static int finish(struct tagci_order *order, enum tagci_type type, const void *sum, size_t n, double divide,
                  int plus_zero, void *result)
{
    struct copies c;
    begin(&c, order, 2);
    sum = in(&c, sum, n * tagci_work_size(type));
    result = out(&c, result, n * tagci_type_size(type));
    if (!ready(&c))
        c.failed = tagcb_openmp.finish(NULL, type, sum, n, divide, plus_zero, result);
    return end(&c);
}

static int spread(struct tagci_order *order, const uint64_t *own, const uint64_t *whole, size_t nbits,
                  const void *values, size_t width, void *packed, size_t *entries)
{
    struct copies c;
    size_t bytes = tagci_bitmap_words(nbits) * 8;
    begin(&c, order, 4);
    own = in(&c, own, bytes);
    whole = in(&c, whole, bytes);
    if (ready(&c))
        return end(&c);
    size_t kept = tagci_bitmap_count(own, bytes / 8), all = tagci_bitmap_count(whole, bytes / 8);
    values = in(&c, values, kept * width);
    packed = out(&c, packed, all * width);
    if (!ready(&c))
        c.failed = tagcb_openmp.spread(NULL, own, whole, nbits, values, width, packed, entries);
    return end(&c);
}

static int unpack(struct tagci_order *order, const uint64_t *whole, size_t nbits, const void *packed, size_t width,
                  void *result, size_t *entries)
{
    struct copies c;
    size_t bytes = tagci_bitmap_words(nbits) * 8;
    begin(&c, order, 3);
    whole = in(&c, whole, bytes);
    if (ready(&c))
        return end(&c);
    packed = in(&c, packed, tagci_bitmap_count(whole, bytes / 8) * width);
    result = out(&c, result, nbits * width);
    if (!ready(&c))
        c.failed = tagcb_openmp.unpack(NULL, whole, nbits, packed, width, result, entries);
    return end(&c);
}

static int sketch_exponents(struct tagci_order *order, int wide, const void *values, size_t entries, uint16_t *high,
                            uint16_t *low)
{
    struct copies c;
    size_t groups = tagci_sketch_groups(entries);
    begin(&c, order, 3);
    values = in(&c, values, entries * (wide ? 8 : 4));
    high = out(&c, high, 2 * groups);
    low = out(&c, low, 2 * groups);
    if (!ready(&c))
        c.failed = tagcb_openmp.sketch_exponents(NULL, wide, values, entries, high, low);
    return end(&c);
}

/* A plan and the groups that go with it. */
static void copy_plan(struct copies *c, struct tagci_sketch *s, const uint16_t **high,
                      const unsigned char **exceptional)
{
    size_t groups = tagci_sketch_groups(s->entries);
    s->row_start = (uint32_t *)(uintptr_t)in(c, s->row_start, 4 * (s->rows + 1));
    s->row_blocks = (uint32_t *)(uintptr_t)in(c, s->row_blocks, 12 * s->blocks);
    s->order = (uint32_t *)(uintptr_t)in(c, s->order, 4 * s->decoded);
    s->pivot = (uint32_t *)(uintptr_t)in(c, s->pivot, 4 * s->decoded);
    *high = in(c, *high, 2 * groups);
    *exceptional = in(c, *exceptional, groups);
}

static int sketch_encode(struct tagci_order *order, const struct tagci_sketch *plan, int wide, int ranks,
                         const void *values, const uint16_t *high, const unsigned char *exceptional, void *ints,
                         void *cells)
{
    struct copies c;
    struct tagci_sketch host = *plan;
    size_t width = wide ? 8 : 4, lanes = TAGCI_SKETCH_LANES * width;
    begin(&c, order, 9);
    copy_plan(&c, &host, &high, &exceptional);
    values = in(&c, values, host.entries * width);
    ints = out(&c, ints, host.blocks * lanes);
    cells = out(&c, cells, host.rows * lanes);
    if (!ready(&c))
        c.failed = tagcb_openmp.sketch_encode(NULL, &host, wide, ranks, values, high, exceptional, ints, cells);
    return end(&c);
}

static int sketch_decode(struct tagci_order *order, const struct tagci_sketch *plan, int wide, int ranks,
                         const void *cells, const uint16_t *high, const unsigned char *exceptional, void *ints,
                         void *values)
{
    struct copies c;
    struct tagci_sketch host = *plan;
    size_t width = wide ? 8 : 4, lanes = TAGCI_SKETCH_LANES * width;
    begin(&c, order, 9);
    copy_plan(&c, &host, &high, &exceptional);
    cells = in(&c, cells, host.rows * lanes);
    ints = out(&c, ints, host.blocks * lanes);
    values = out(&c, values, host.entries * width);
    if (!ready(&c))
        c.failed = tagcb_openmp.sketch_decode(NULL, &host, wide, ranks, cells, high, exceptional, ints, values);
    return end(&c);
}

static int move_blocks(struct tagci_order *order, const uint32_t *blocks, size_t n, size_t entries, size_t width,
                       void *values, void *packed, int back)
{
    struct copies c;
    size_t bytes = n * TAGCI_SKETCH_LANES * width;
    begin(&c, order, 2);
    values = host_copy(&c, values, back ? values : NULL, entries * width);
    packed = host_copy(&c, packed, back ? NULL : packed, bytes);
    if (!ready(&c))
        c.failed = tagcb_openmp.move_blocks(NULL, blocks, n, entries, width, values, packed, back);
    return end(&c);
}

/* One block through coding or decoding. */
static int one_block(struct tagci_order *order, enum tagci_type type, struct tagci_block *block, int encode)
{
    struct copies c;
    struct tagci_block host = *block;
    size_t bytes = host.n * tagci_type_size(type);
    struct tagci_lossless_work *work = tagci_alloc(1, sizeof *work);
    begin(&c, order, 5);
    c.failed = c.failed || !work;
    if (encode)
        host.now = in(&c, block->now, bytes);
    host.before = in(&c, block->before, bytes);
    host.out = out(&c, block->out, bytes);
    host.after = out(&c, block->after, bytes);
    size_t coded = tagci_lossless_body(block->word);
    host.body = encode ? out(&c, block->body, bytes)
                       : (unsigned char *)(uintptr_t)in(&c, block->body, coded < bytes ? coded : bytes);
    if (!ready(&c)) {
        c.failed = (encode ? tagcb_openmp.lossless_encode : tagcb_openmp.lossless_decode)(NULL, type, &host, 1, work);
        block->word = host.word;
        block->damaged = host.damaged;
    }
    int failed = end(&c);
    tagci_free(work);
    return failed;
}

static int lossless_encode(struct tagci_order *order, enum tagci_type type, struct tagci_block *blocks, size_t n,
                           struct tagci_lossless_work *work)
{
    int failed = settle(order);
    (void)work;
    for (size_t i = 0; i < n && !failed; i++)
        failed = one_block(order, type, &blocks[i], 1);
    return failed;
}

static int lossless_decode(struct tagci_order *order, enum tagci_type type, struct tagci_block *blocks, size_t n,
                           struct tagci_lossless_work *work)
{
    int failed = settle(order);
    (void)work;
    for (size_t i = 0; i < n && !failed; i++)
        failed = one_block(order, type, &blocks[i], 0);
    return failed;
}

/* Backends made whole, beside what they were made of. */
static struct whole {
    const struct tagci_backend *of;
    struct tagci_backend whole;
} made[8];

const struct tagci_backend *tagci_backend_whole(const struct tagci_backend *b)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (b->select && b->count_key && b->sparsify && b->encode && b->decode && b->gather_input && b->finish &&
        b->spread && b->unpack && b->sketch_exponents && b->sketch_encode && b->sketch_decode && b->move_blocks &&
        b->lossless_encode && b->lossless_decode)
        return b;
    pthread_mutex_lock(&lock);
    struct whole *w = made;
    while (w->of && w->of != b)
        w++;
    if (!w->of) {
        w->whole = *b;
#define FILL(kernel, with)                                                                                             \
    if (!w->whole.kernel)                                                                                              \
    w->whole.kernel = with
        FILL(select, select_all);
        FILL(count_key, count_key);
        FILL(sparsify, sparsify);
        FILL(encode, encode);
        FILL(decode, decode);
        FILL(gather_input, gather_input);
        FILL(finish, finish);
        FILL(spread, spread);
        FILL(unpack, unpack);
        FILL(sketch_exponents, sketch_exponents);
        FILL(sketch_encode, sketch_encode);
        FILL(sketch_decode, sketch_decode);
        FILL(move_blocks, move_blocks);
        FILL(lossless_encode, lossless_encode);
        FILL(lossless_decode, lossless_decode);
        w->of = b;
    }
    pthread_mutex_unlock(&lock);
    return &w->whole;
}
