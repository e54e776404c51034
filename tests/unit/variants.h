/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What tests of kernels run through, one variant after the other, and calls of the kernels that return when they are
 * done. The variants are those of the OpenMP backend that this processor has; with TAGC_TEST_SIMDE, the one of
 * kernels_simde.c alone; with TAGC_TEST_EXECUTOR, the GPU backends over the executor; with TAGC_TEST_DEVICE, a GPU
 * backend of that name over a device. */
#ifndef TAGC_TESTS_VARIANTS_H
#define TAGC_TESTS_VARIANTS_H

#include "backends/openmp/openmp.h"
#include "unit.h"

static const struct tagci_backend *tested = &tagcb_openmp;
static struct tagci_order *order; /* NULL: kernels work on the host's memory */

#if defined TAGC_TEST_EXECUTOR || defined TAGC_TEST_DEVICE

#ifdef TAGC_TEST_EXECUTOR
#include "tests/executor/executor_c.h"
static const struct tagci_backend *const devices[] = {&tagcb_executor32, &tagcb_executor64};
#define reachable 1 /* the executor reaches all memory */
#define slow 1
#else
extern const struct tagci_backend TAGC_TEST_DEVICE;
static const struct tagci_backend *const devices[] = {&TAGC_TEST_DEVICE};
#define executor_use_order(order) (void)(order)
#define reachable 0
#define slow 0
#endif
#define DEVICES ((int)(sizeof devices / sizeof *devices))

static inline const char *variant_name(int i)
{
    return i < DEVICES ? devices[i]->describe() : NULL;
}

/* Other numbers of threads: other orders of them. */
static inline void use_variant(int i, int threads)
{
    static struct tagci_order *orders[DEVICES];
    tested = devices[i];
    if (!orders[i])
        orders[i] = tested->order_make(0);
    order = orders[i];
    assert_non_null(order);
    executor_use_order((unsigned)threads - 1);
}

#else

#define reachable 1
#define slow 0 /* whether tests leave out most of the cases that are alike */

#ifdef TAGC_TEST_SIMDE
extern const struct tagcb_kernels tagcb_kernels_simde;

static inline const char *variant_name(int i)
{
    return i == 0 ? tagcb_kernels_simde.name : NULL;
}
#else
static inline const char *variant_name(int i)
{
    for (int j = 0; tagcb_openmp_variant(j); j++)
        if (tagcb_openmp_use(tagcb_openmp_variant(j)->name) == 0 && i-- == 0)
            return tagcb_openmp_variant(j)->name;
    return NULL;
}
#endif

static inline void use_variant(int i, int threads)
{
#ifdef TAGC_TEST_SIMDE
    assert_int_equal(i, 0);
    tagcb_openmp_use_kernels(&tagcb_kernels_simde);
#else
    assert_int_equal(tagcb_openmp_use(variant_name(i)), 0);
#endif
    tagcb_openmp_use_threads(threads);
}

#endif

static inline int variant_count(void)
{
    int count = 0;
    while (variant_name(count))
        count++;
    return count;
}

/* ---- Kernels ---- */

/* Descriptors where a device reads them: a copy for one call. */
static inline void *lend(const void *from, size_t bytes)
{
    if (!order)
        return (void *)(uintptr_t)from;
    void *at = tested->alloc(order, TAGCI_HOST, bytes);
    assert_non_null(at);
    if (bytes)
        memcpy(at, from, bytes);
    return at;
}

static inline void give_back(void *at)
{
    if (order)
        tested->release(order, TAGCI_HOST, at);
}

/* A kernel has been put on the order: waits until it is done. */
static inline void finished(int result)
{
    int passed = 0;
    assert_int_equal(result, 0);
    if (!order)
        return;
    assert_int_equal(tested->record(order, 0), 0);
    while (!passed)
        passed = tested->query(order, 0);
    assert_int_equal(passed, 1);
}

static inline void run_choice(enum tagci_type type, struct tagci_choice *c)
{
    struct tagci_choice *lent = lend(c, sizeof *c);
    finished(tested->select(order, type, lent, 1));
    *c = *lent;
    give_back(lent);
}

static inline void run_select(enum tagci_type type, const void *in, const void *residual, size_t n, size_t k,
                              struct tagci_cut *cut, size_t *above, size_t *tied)
{
    struct tagci_choice c = {.in = in, .residual = residual, .n = n, .k = k};
    run_choice(type, &c);
    *cut = c.cut;
    *above = c.above;
    *tied = c.tied;
}

static inline size_t run_count_key(enum tagci_type type, const void *in, const void *residual, size_t n, uint64_t key)
{
    struct tagci_tally t = {.in = in, .residual = residual, .n = n, .key = key}, *lent = lend(&t, sizeof t);
    finished(tested->count_key(order, type, lent, 1));
    size_t count = lent->count;
    give_back(lent);
    return count;
}

static inline void run_chunks(int (*kernel)(struct tagci_order *, struct tagci_chunk *, size_t),
                              struct tagci_chunk *chunks, size_t n)
{
    struct tagci_chunk *lent = lend(chunks, n * sizeof *chunks);
    for (size_t i = 0; i < n; i++)
        lent[i].runs = lend(chunks[i].runs, chunks[i].nruns * sizeof *chunks[i].runs);
    finished(kernel(order, lent, n));
    for (size_t i = 0; i < n; i++) {
        give_back((void *)(uintptr_t)lent[i].runs);
        chunks[i].kept = lent[i].kept;
        chunks[i].frame_bytes = lent[i].frame_bytes;
    }
    give_back(lent);
}

static inline void run_sparsify(struct tagci_chunk *chunks, size_t n)
{
    run_chunks(tested->sparsify, chunks, n);
}

static inline void run_encode(struct tagci_chunk *chunks, size_t n)
{
    run_chunks(tested->encode, chunks, n);
}

static inline void run_decode(struct tagci_decode *frames, size_t n)
{
    void *lent = lend(frames, n * sizeof *frames);
    finished(tested->decode(order, lent, n));
    give_back(lent);
}

static inline void run_gather_input(enum tagci_type type, const void *in, const void *residual, size_t n, void *out)
{
    finished(tested->gather_input(order, type, in, residual, n, out));
}

static inline void run_finish(enum tagci_type type, const void *sum, size_t n, double divide, int plus_zero, void *out)
{
    finished(tested->finish(order, type, sum, n, divide, plus_zero, out));
}

static inline size_t run_spread(const uint64_t *own, const uint64_t *whole, size_t nbits, const void *values,
                                size_t width, void *out)
{
    size_t none = SIZE_MAX, *lent = lend(&none, sizeof none);
    finished(tested->spread(order, own, whole, nbits, values, width, out, lent));
    size_t entries = *lent;
    give_back(lent);
    return entries;
}

static inline size_t run_unpack(const uint64_t *whole, size_t nbits, const void *packed, size_t width, void *out)
{
    size_t none = SIZE_MAX, *lent = lend(&none, sizeof none);
    finished(tested->unpack(order, whole, nbits, packed, width, out, lent));
    size_t entries = *lent;
    give_back(lent);
    return entries;
}

static inline void run_sketch_exponents(int wide, const void *values, size_t entries, uint16_t *high, uint16_t *low)
{
    finished(tested->sketch_exponents(order, wide, values, entries, high, low));
}

/* A plan as a device wants it: in rounds, what kernels read of it lent. */
static inline struct tagci_sketch *lend_plan(struct tagci_sketch *s)
{
    if (order)
        tagci_sketch_in_rounds(s);
    struct tagci_sketch *lent = lend(s, sizeof *s);
    lent->row_start = lend(s->row_start, 4 * (s->rows + 1));
    lent->row_blocks = lend(s->row_blocks, 12 * s->blocks);
    lent->order = lend(s->order, 4 * s->decoded);
    lent->pivot = lend(s->pivot, 4 * s->decoded);
    lent->round_start = lend(s->round_start, 4 * (s->rounds + 1));
    return lent;
}

static inline void give_back_plan(struct tagci_sketch *lent)
{
    give_back(lent->row_start);
    give_back(lent->row_blocks);
    give_back(lent->order);
    give_back(lent->pivot);
    give_back(lent->round_start);
    give_back(lent);
}

static inline void run_sketch_encode(struct tagci_sketch *s, int wide, int ranks, const void *values,
                                     const uint16_t *high, const unsigned char *exceptional, void *ints, void *cells)
{
    struct tagci_sketch *lent = lend_plan(s);
    finished(tested->sketch_encode(order, lent, wide, ranks, values, high, exceptional, ints, cells));
    give_back_plan(lent);
}

static inline void run_sketch_decode(struct tagci_sketch *s, int wide, int ranks, const void *cells,
                                     const uint16_t *high, const unsigned char *exceptional, void *ints, void *values)
{
    struct tagci_sketch *lent = lend_plan(s);
    finished(tested->sketch_decode(order, lent, wide, ranks, cells, high, exceptional, ints, values));
    give_back_plan(lent);
}

static inline void run_move_blocks(const uint32_t *blocks, size_t n, size_t entries, size_t width, void *values,
                                   void *packed, int back)
{
    uint32_t *lent = lend(blocks, 4 * n);
    finished(tested->move_blocks(order, lent, n, entries, width, values, packed, back));
    give_back(lent);
}

static inline void run_blocks(int (*kernel)(struct tagci_order *, enum tagci_type, struct tagci_block *, size_t,
                                            struct tagci_lossless_work *),
                              enum tagci_type type, struct tagci_block *blocks, size_t n)
{
    static struct tagci_lossless_work work;
    struct tagci_block *lent = lend(blocks, n * sizeof *blocks);
    finished(kernel(order, type, lent, n, order ? NULL : &work));
    for (size_t i = 0; i < n; i++) {
        blocks[i].word = lent[i].word;
        blocks[i].damaged = lent[i].damaged;
    }
    give_back(lent);
}

#endif
