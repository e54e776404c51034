/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The OpenMP backend: kernels on the host, chunks and stretches spread over threads. No result depends on the number of
 * threads: each writes its own elements, and sums are taken in the order given. */
#include "config.h" /* first: sched.h looks at it */

#include "backends/openmp/openmp.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "core/bitmap.h"
#include "util/log.h"

static int sharers = 1; /* most ranks that were seen to share this process's processors */

uint64_t tagcb_openmp_processors(void)
{
#ifdef CPU_SETSIZE
    cpu_set_t set;
    uint64_t hash = 0xcbf29ce484222325u;
    if (sched_getaffinity(0, sizeof set, &set))
        return 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            hash = (hash ^ (uint64_t)i) * 0x100000001b3u;
    return hash;
#else
    return 0;
#endif
}

void tagcb_openmp_shared_by(int ranks)
{
    if (ranks > __atomic_load_n(&sharers, __ATOMIC_RELAXED) && !getenv("OMP_NUM_THREADS"))
        __atomic_store_n(&sharers, ranks, __ATOMIC_RELAXED);
}

/* Processors that this process may use: threads beyond them would only take turns. */
static int most_threads(void)
{
#ifdef _OPENMP
    int asked = omp_get_max_threads(), there = omp_get_num_procs();
    if (asked > there) {
        tagci_log_warn_once("OMP_NUM_THREADS asks for more threads than this process may use processors; "
                            "as many threads as processors are used");
        return there > 0 ? there : 1;
    }
    int ranks = __atomic_load_n(&sharers, __ATOMIC_RELAXED);
    if (asked == there && ranks > 1) /* nobody has said how many */
        return there > ranks ? there / ranks : 1;
    return asked;
#else
    return 1;
#endif
}

static int wanted_threads; /* by a test, however little the work */

void tagcb_openmp_use_threads(int threads)
{
    wanted_threads = threads;
}

int tagcb_threads(size_t pieces)
{
    if (wanted_threads)
        return wanted_threads;
    if (pieces <= 1)
        return 1;
    int most = most_threads();
    return pieces < (size_t)most ? (int)pieces : most;
}

static int threads_for(size_t elements)
{
    return tagcb_threads(elements / TAGCB_PIECE);
}

/* Share of [0, n) of thread t of threads, in multiples of `step`. */
static size_t share(size_t n, size_t step, int t, int threads)
{
    size_t steps = n / step + (n % step != 0);
    size_t at = (steps / (size_t)threads * (size_t)t + steps % (size_t)threads * (size_t)t / (size_t)threads) * step;
    return at < n ? at : n;
}

static const char *probe(void)
{
    return NULL;
}

static const char *describe(void)
{
    static _Thread_local char text[64];
    snprintf(text, sizeof text, "%s kernels, %d thread%s", tagcb_kernels_now()->name, most_threads(),
             most_threads() == 1 ? "" : "s");
    return text;
}

static void each_chunk(void (*kernel)(struct tagci_chunk *), struct tagci_chunk *chunks, size_t n)
{
    size_t elements = 0;
    for (size_t i = 0; i < n; i++)
        elements += chunks[i].n;
    int threads = threads_for(elements);
    if ((size_t)threads > n)
        threads = (int)n;
    if (threads <= 1) {
        tagcb_float_state state = tagcb_float_enter();
        for (size_t i = 0; i < n; i++)
            kernel(&chunks[i]);
        tagcb_float_leave(state);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        tagcb_float_state state = tagcb_float_enter();
#pragma omp for schedule(static)
        for (size_t i = 0; i < n; i++)
            kernel(&chunks[i]);
        tagcb_float_leave(state);
    }
}

static int sparsify(struct tagci_order *order, struct tagci_chunk *chunks, size_t n)
{
    (void)order;
    each_chunk(tagcb_kernels_now()->sparsify, chunks, n);
    return 0;
}

static int encode(struct tagci_order *order, struct tagci_chunk *chunks, size_t n)
{
    (void)order;
    each_chunk(tagcb_kernels_now()->encode, chunks, n);
    return 0;
}

static int select_all(struct tagci_order *order, enum tagci_type type, struct tagci_choice *c, size_t n)
{
    (void)order;
    for (size_t i = 0; i < n; i++)
        tagcb_openmp_choose(type, &c[i]);
    return 0;
}

static int count_keys(struct tagci_order *order, enum tagci_type type, struct tagci_tally *t, size_t n)
{
    (void)order;
    for (size_t i = 0; i < n; i++)
        t[i].count = tagcb_openmp_count_key(type, t[i].in, t[i].residual, t[i].n, t[i].key);
    return 0;
}

/* Every thread takes its share of the words of every frame, in the order given: so frames that share a sum need no
 * waiting, and one frame alone has many hands. */
static int decode(struct tagci_order *order, struct tagci_decode *frames, size_t n)
{
    (void)order;
    const struct tagcb_kernels *k = tagcb_kernels_now();
    size_t elements = 0;
    for (size_t i = 0; i < n; i++)
        elements += frames[i].n;
    int threads = threads_for(elements);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#ifdef _OPENMP
        int t = omp_get_thread_num(), all = omp_get_num_threads();
#else
        int t = 0, all = 1;
        (void)threads;
#endif
        tagcb_float_state state = tagcb_float_enter();
        for (size_t i = 0; i < n; i++) {
            size_t words = tagci_bitmap_words(frames[i].n);
            k->decode(&frames[i], share(words, 16, t, all), share(words, 16, t + 1, all));
        }
        tagcb_float_leave(state);
    }
    return 0;
}

static const void *advance(const void *at, size_t elements, size_t size)
{
    return at ? (const char *)at + elements * size : NULL;
}

static int gather_input(struct tagci_order *order, enum tagci_type type, const void *in, const void *residual, size_t n,
                        void *out)
{
    (void)order;
    const struct tagcb_kernels *k = tagcb_kernels_now();
    size_t size = tagci_type_size(type), work = tagci_work_size(type);
    int threads = threads_for(n);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        size_t from = share(n, 64, t, threads), m = share(n, 64, t + 1, threads) - from;
        tagcb_float_state state = tagcb_float_enter();
        k->gather_input(type, advance(in, from, size), advance(residual, from, work), m, (char *)out + from * work);
        tagcb_float_leave(state);
    }
    return 0;
}

static int finish(struct tagci_order *order, enum tagci_type type, const void *sum, size_t n, double divide,
                  int plus_zero, void *out)
{
    (void)order;
    const struct tagcb_kernels *k = tagcb_kernels_now();
    size_t size = tagci_type_size(type), work = tagci_work_size(type);
    int threads = threads_for(n);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        size_t from = share(n, 64, t, threads), m = share(n, 64, t + 1, threads) - from;
        tagcb_float_state state = tagcb_float_enter();
        k->finish(type, advance(sum, from, work), m, divide, plus_zero, (char *)out + from * size);
        tagcb_float_leave(state);
    }
    return 0;
}

#define MOST_SHARES 256

/* Shares of words, and before each how many entries the bitmaps have: the first half of a parallel packing. */
struct shares {
    int count;
    size_t from[MOST_SHARES + 1], own[MOST_SHARES + 1], whole[MOST_SHARES + 1];
};

static void divide_words(struct shares *s, const uint64_t *own, const uint64_t *whole, size_t words)
{
    int count = threads_for(words * 64);
    s->count = count > MOST_SHARES ? MOST_SHARES : count;
    s->from[0] = s->own[0] = s->whole[0] = 0;
#pragma omp parallel for schedule(static) num_threads(s->count) if (s->count > 1)
    for (int t = 0; t < s->count; t++) {
        size_t from = share(words, 8, t, s->count), to = share(words, 8, t + 1, s->count);
        s->from[t + 1] = to;
        s->own[t + 1] = own ? tagci_bitmap_count(own + from, to - from) : 0;
        s->whole[t + 1] = tagci_bitmap_count(whole + from, to - from);
    }
    for (int t = 0; t < s->count; t++) {
        s->own[t + 1] += s->own[t];
        s->whole[t + 1] += s->whole[t];
    }
}

static int spread(struct tagci_order *order, const uint64_t *own, const uint64_t *whole, size_t nbits,
                  const void *values, size_t width, void *out, size_t *entries)
{
    (void)order;
    const struct tagcb_kernels *k = tagcb_kernels_now();
    struct shares s;
    divide_words(&s, own, whole, tagci_bitmap_words(nbits));
#pragma omp parallel for schedule(static) num_threads(s.count) if (s.count > 1)
    for (int t = 0; t < s.count; t++)
        k->spread(own + s.from[t], whole + s.from[t], s.from[t + 1] - s.from[t], s.whole[t + 1] - s.whole[t],
                  (const char *)values + s.own[t] * width, width, (char *)out + s.whole[t] * width);
    *entries = s.whole[s.count];
    return 0;
}

static int unpack(struct tagci_order *order, const uint64_t *whole, size_t nbits, const void *packed, size_t width,
                  void *out, size_t *entries)
{
    (void)order;
    const struct tagcb_kernels *k = tagcb_kernels_now();
    struct shares s;
    divide_words(&s, NULL, whole, tagci_bitmap_words(nbits));
#pragma omp parallel for schedule(static) num_threads(s.count) if (s.count > 1)
    for (int t = 0; t < s.count; t++) {
        size_t first = s.from[t] * 64, last = s.from[t + 1] * 64;
        k->unpack(whole + s.from[t], (last < nbits ? last : nbits) - first, s.whole[t + 1] - s.whole[t],
                  (const char *)packed + s.whole[t] * width, width, (char *)out + first * width);
    }
    *entries = s.whole[s.count];
    return 0;
}

static int sketch_exponents(struct tagci_order *order, int wide, const void *values, size_t entries, uint16_t *high,
                            uint16_t *low)
{
    (void)order;
    tagci_sketch_exponents(wide, values, entries, high, low);
    return 0;
}

static int sketch_encode(struct tagci_order *order, const struct tagci_sketch *plan, int wide, int ranks,
                         const void *values, const uint16_t *high, const unsigned char *exceptional, void *ints,
                         void *cells)
{
    (void)order;
    tagci_sketch_encode(plan, wide, ranks, values, high, exceptional, ints, cells);
    return 0;
}

static int sketch_decode(struct tagci_order *order, const struct tagci_sketch *plan, int wide, int ranks,
                         const void *cells, const uint16_t *high, const unsigned char *exceptional, void *ints,
                         void *values)
{
    (void)order;
    tagci_sketch_decode(plan, wide, ranks, cells, high, exceptional, ints, values);
    return 0;
}

static int move_blocks(struct tagci_order *order, const uint32_t *blocks, size_t n, size_t entries, size_t width,
                       void *values, void *packed, int back)
{
    (void)order;
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)blocks[i] * TAGCI_SKETCH_LANES, left = entries - at;
        char *v = (char *)values + at * width, *p = (char *)packed + i * TAGCI_SKETCH_LANES * width;
        memcpy(back ? v : p, back ? p : v, (left < TAGCI_SKETCH_LANES ? left : TAGCI_SKETCH_LANES) * width);
    }
    return 0;
}

static void take_over(const struct tagci_block *b, enum tagci_type type, const void *elements)
{
    size_t bytes = b->n * tagci_type_size(type);
    if (b->out && b->out != elements)
        memcpy(b->out, elements, bytes);
    if (b->after && bytes)
        memcpy(b->after, elements, bytes);
}

static int lossless_encode(struct tagci_order *order, enum tagci_type type, struct tagci_block *blocks, size_t n,
                           struct tagci_lossless_work *work)
{
    (void)order;
    for (struct tagci_block *b = blocks; b < blocks + n; b++) {
        b->word = tagci_lossless_encode_block(type, b->now, b->before, b->n, b->body, work);
        take_over(b, type, b->now);
    }
    return 0;
}

static int lossless_decode(struct tagci_order *order, enum tagci_type type, struct tagci_block *blocks, size_t n,
                           struct tagci_lossless_work *work)
{
    (void)order;
    const char *reason;
    for (struct tagci_block *b = blocks; b < blocks + n; b++) {
        b->damaged = tagci_lossless_decode_block(type, b->word, b->body, b->before, b->n, b->out, work, &reason) != 0;
        if (!b->damaged)
            take_over(b, type, b->out);
    }
    return 0;
}

const struct tagci_backend tagcb_openmp = {
    .name = "openmp",
    .batch = 8,
    .probe = probe,
    .describe = describe,
    .open = tagcb_select_open,
    .close = tagcb_select_close,
    .select = select_all,
    .count_key = count_keys,
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
