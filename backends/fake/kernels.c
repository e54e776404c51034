/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Kernels of the fake device: openmp's, on the memory that only the device sees, when their turn comes. */
#include <string.h>

#include "backends/fake/work.h"

static int do_select(struct tagcb_fake_work *w)
{
    struct tagci_choice *c = tagcb_fake_reach(w->a);
    int failed = 0;
    for (size_t i = 0; i < w->n && !failed; i++) {
        struct tagci_choice here = c[i];
        here.in = tagcb_fake_reach(here.in);
        here.residual = tagcb_fake_reach(here.residual);
        failed = tagcb_openmp.select(NULL, w->type, &here, 1);
        c[i].cut = here.cut;
        c[i].above = here.above;
        c[i].tied = here.tied;
    }
    return failed;
}

static int select_all(struct tagci_order *order, enum tagci_type type, struct tagci_choice *choices, size_t n)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_select, "select", .a = choices, .n = n, .type = type});
}

static int do_count_key(struct tagcb_fake_work *w)
{
    struct tagci_tally *t = tagcb_fake_reach(w->a);
    int failed = 0;
    for (size_t i = 0; i < w->n && !failed; i++) {
        struct tagci_tally here = t[i];
        here.in = tagcb_fake_reach(here.in);
        here.residual = tagcb_fake_reach(here.residual);
        failed = tagcb_openmp.count_key(NULL, w->type, &here, 1);
        t[i].count = here.count;
    }
    return failed;
}

static int count_key(struct tagci_order *order, enum tagci_type type, struct tagci_tally *tallies, size_t n)
{
    return tagcb_fake_put(order,
                          (struct tagcb_fake_work){do_count_key, "count_key", .a = tallies, .n = n, .type = type});
}

static int do_chunks(struct tagcb_fake_work *w)
{
    struct tagci_chunk *c = tagcb_fake_reach(w->a);
    int failed = 0;
    for (size_t i = 0; i < w->n && !failed; i++) {
        struct tagci_chunk here = c[i];
        here.runs = tagcb_fake_reach(here.runs);
        here.in = tagcb_fake_reach(here.in);
        here.residual = tagcb_fake_reach(here.residual);
        here.residual_out = tagcb_fake_reach(here.residual_out);
        here.bitmap = tagcb_fake_reach(here.bitmap);
        here.values = tagcb_fake_reach(here.values);
        here.frame = tagcb_fake_reach(here.frame);
        failed = (w->flag ? tagcb_openmp.encode : tagcb_openmp.sparsify)(NULL, &here, 1);
        c[i].kept = here.kept;
        c[i].frame_bytes = here.frame_bytes;
    }
    return failed;
}

static int sparsify(struct tagci_order *order, struct tagci_chunk *chunks, size_t n)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_chunks, "sparsify", .a = chunks, .n = n, .flag = 0});
}

static int encode(struct tagci_order *order, struct tagci_chunk *chunks, size_t n)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_chunks, "encode", .a = chunks, .n = n, .flag = 1});
}

static int do_decode(struct tagcb_fake_work *w)
{
    struct tagci_decode *d = tagcb_fake_reach(w->a);
    int failed = 0;
    for (size_t i = 0; i < w->n && !failed; i++) {
        struct tagci_decode here = d[i];
        tagci_frame_move(&here.frame, tagcb_fake_reach(here.frame.at));
        here.sum = tagcb_fake_reach(here.sum);
        here.seen = tagcb_fake_reach(here.seen);
        failed = tagcb_openmp.decode(NULL, &here, 1);
    }
    return failed;
}

static int decode(struct tagci_order *order, struct tagci_decode *frames, size_t n)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_decode, "decode", .a = frames, .n = n});
}

static int do_gather_input(struct tagcb_fake_work *w)
{
    return tagcb_openmp.gather_input(NULL, w->type, tagcb_fake_reach(w->b), tagcb_fake_reach(w->c), w->n,
                                     tagcb_fake_reach(w->a));
}

static int gather_input(struct tagci_order *order, enum tagci_type type, const void *in, const void *residual, size_t n,
                        void *out)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_gather_input, "gather_input", .a = out, .b = in,
                                                          .c = residual, .n = n, .type = type});
}

static int do_finish(struct tagcb_fake_work *w)
{
    return tagcb_openmp.finish(NULL, w->type, tagcb_fake_reach(w->b), w->n, w->divide, w->flag, tagcb_fake_reach(w->a));
}

static int finish(struct tagci_order *order, enum tagci_type type, const void *sum, size_t n, double divide,
                  int plus_zero, void *out)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_finish, "finish", .a = out, .b = sum, .n = n, .type = type,
                                                          .divide = divide, .flag = plus_zero});
}

static int do_spread(struct tagcb_fake_work *w)
{
    return tagcb_openmp.spread(NULL, tagcb_fake_reach(w->b), tagcb_fake_reach(w->c), w->n, tagcb_fake_reach(w->d),
                               w->width, tagcb_fake_reach(w->a), tagcb_fake_reach(w->entries));
}

static int spread(struct tagci_order *order, const uint64_t *own, const uint64_t *whole, size_t nbits,
                  const void *values, size_t width, void *out, size_t *entries)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_spread, "spread", .a = out, .b = own, .c = whole,
                                                          .d = values, .n = nbits, .width = width, .entries = entries});
}

static int do_unpack(struct tagcb_fake_work *w)
{
    return tagcb_openmp.unpack(NULL, tagcb_fake_reach(w->b), w->n, tagcb_fake_reach(w->c), w->width,
                               tagcb_fake_reach(w->a), tagcb_fake_reach(w->entries));
}

static int unpack(struct tagci_order *order, const uint64_t *whole, size_t nbits, const void *packed, size_t width,
                  void *out, size_t *entries)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_unpack, "unpack", .a = out, .b = whole, .c = packed,
                                                          .n = nbits, .width = width, .entries = entries});
}

static int do_sketch_exponents(struct tagcb_fake_work *w)
{
    return tagcb_openmp.sketch_exponents(NULL, w->flag, tagcb_fake_reach(w->b), w->n, tagcb_fake_reach(w->a),
                                         tagcb_fake_reach(w->c));
}

static int sketch_exponents(struct tagci_order *order, int wide, const void *values, size_t entries, uint16_t *high,
                            uint16_t *low)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_sketch_exponents, "sketch_exponents", .a = high,
                                                          .b = values, .c = low, .n = entries, .flag = wide});
}

/* width: of a value; n: ranks */
static int do_sketch(struct tagcb_fake_work *w)
{
    struct tagci_sketch s = *(const struct tagci_sketch *)tagcb_fake_reach(w->d);
    int wide = w->width == 8, ranks = (int)w->n;
    (void)tagcb_fake_reach(s.round_start);
    s.row_start = tagcb_fake_reach(s.row_start);
    s.row_blocks = tagcb_fake_reach(s.row_blocks);
    s.order = tagcb_fake_reach(s.order);
    s.pivot = tagcb_fake_reach(s.pivot);
    s.row_of = NULL;
    const uint16_t *high = tagcb_fake_reach(w->sketch.high);
    const unsigned char *exceptional = tagcb_fake_reach(w->sketch.exceptional);
    void *ints = tagcb_fake_reach(w->sketch.ints);
    return w->flag ? tagcb_openmp.sketch_decode(NULL, &s, wide, ranks, tagcb_fake_reach(w->b), high, exceptional, ints,
                                                tagcb_fake_reach(w->a))
                   : tagcb_openmp.sketch_encode(NULL, &s, wide, ranks, tagcb_fake_reach(w->b), high, exceptional, ints,
                                                tagcb_fake_reach(w->a));
}

static int sketch_encode(struct tagci_order *order, const struct tagci_sketch *plan, int wide, int ranks,
                         const void *values, const uint16_t *high, const unsigned char *exceptional, void *ints,
                         void *cells)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_sketch, "sketch_encode", .a = cells, .b = values,
                                                          .d = plan, .n = (size_t)ranks, .width = wide ? 8 : 4,
                                                          .sketch = {high, exceptional, ints}});
}

static int sketch_decode(struct tagci_order *order, const struct tagci_sketch *plan, int wide, int ranks,
                         const void *cells, const uint16_t *high, const unsigned char *exceptional, void *ints,
                         void *values)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_sketch, "sketch_decode", .a = values, .b = cells,
                                                          .d = plan, .n = (size_t)ranks, .width = wide ? 8 : 4,
                                                          .flag = 1, .sketch = {high, exceptional, ints}});
}

static int do_move_blocks(struct tagcb_fake_work *w)
{
    return tagcb_openmp.move_blocks(NULL, tagcb_fake_reach(w->b), w->n, w->all, w->width, tagcb_fake_reach(w->a),
                                    tagcb_fake_reach(w->c), w->flag);
}

static int move_blocks(struct tagci_order *order, const uint32_t *blocks, size_t n, size_t entries, size_t width,
                       void *values, void *packed, int back)
{
    return tagcb_fake_put(order,
                          (struct tagcb_fake_work){do_move_blocks, "move_blocks", .a = values, .b = blocks, .c = packed,
                                                   .n = n, .all = entries, .width = width, .flag = back});
}

static int do_lossless(struct tagcb_fake_work *w)
{
    static struct tagci_lossless_work work;
    struct tagci_block *b = tagcb_fake_reach(w->a);
    int failed = 0;
    for (size_t i = 0; i < w->n && !failed; i++) {
        struct tagci_block here = b[i];
        here.now = tagcb_fake_reach(here.now);
        here.before = tagcb_fake_reach(here.before);
        here.out = tagcb_fake_reach(here.out);
        here.after = tagcb_fake_reach(here.after);
        here.body = tagcb_fake_reach(here.body);
        failed =
            (w->flag ? tagcb_openmp.lossless_encode : tagcb_openmp.lossless_decode)(NULL, w->type, &here, 1, &work);
        b[i].word = here.word;
        b[i].damaged = here.damaged;
    }
    return failed;
}

static int lossless_encode(struct tagci_order *order, enum tagci_type type, struct tagci_block *blocks, size_t n,
                           struct tagci_lossless_work *work)
{
    (void)work;
    return tagcb_fake_put(
        order, (struct tagcb_fake_work){do_lossless, "lossless_encode", .a = blocks, .n = n, .type = type, .flag = 1});
}

static int lossless_decode(struct tagci_order *order, enum tagci_type type, struct tagci_block *blocks, size_t n,
                           struct tagci_lossless_work *work)
{
    (void)work;
    return tagcb_fake_put(order,
                          (struct tagcb_fake_work){do_lossless, "lossless_decode", .a = blocks, .n = n, .type = type});
}

void tagcb_fake_add_kernels(struct tagci_backend *b, const char *without)
{
#define KERNEL(name, function)                                                                                         \
    if (!without || !(strstr(without, "all") || strstr(without, #name)))                                               \
    b->name = function
    KERNEL(select, select_all);
    KERNEL(count_key, count_key);
    KERNEL(sparsify, sparsify);
    KERNEL(encode, encode);
    KERNEL(decode, decode);
    KERNEL(gather_input, gather_input);
    KERNEL(finish, finish);
    KERNEL(spread, spread);
    KERNEL(unpack, unpack);
    KERNEL(sketch_exponents, sketch_exponents);
    KERNEL(sketch_encode, sketch_encode);
    KERNEL(sketch_decode, sketch_decode);
    KERNEL(move_blocks, move_blocks);
    KERNEL(lossless_encode, lossless_encode);
    KERNEL(lossless_decode, lossless_decode);
}
