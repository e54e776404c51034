/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * One source of all kernels. A file per instruction set includes it, having defined
 *   VARIANT(x)       name of the exported table
 *   VARIANT_NAME     text
 *   LANES_HEADER     vector primitives, or nothing: then every word takes the plain path, which says what a kernel does
 * Compiled with contraction off. */
#include <stdint.h>
#include <string.h>

#include "backends/openmp/kernels.h"
#include "core/bitmap.h"
#include "core/half.h"
#include "core/index_coded.h"
#include "core/sample.h"
#include "core/value.h"

#define INLINE static inline __attribute__((always_inline))

/* Values inside frames may stand at any address. */
typedef float loose_f32 __attribute__((aligned(1), may_alias));
typedef double loose_f64 __attribute__((aligned(1), may_alias));
typedef uint16_t loose_u16 __attribute__((aligned(1), may_alias));

#ifdef LANES_HEADER
#include LANES_HEADER
#endif

/* What comes half a page behind element i. The processor does not look past the end of a page by itself. */
INLINE void fetch_ahead(const void *base, size_t size, size_t i)
{
    __builtin_prefetch((const void *)((uintptr_t)base + i * size + 2048));
}

/* Streaming stores come before what is written from here on. */
INLINE void fence(void)
{
#ifdef LANES_HEADER
    _mm_sfence();
#endif
}

/* Where a pass stands among the runs of its chunk. */
struct cursor {
    const struct tagci_run *next;
    size_t runs, left; /* runs not begun, elements left of this one */
    uint64_t key, ties;
};

static void cursor_step(struct cursor *c, uint64_t inf)
{
    while (c->left == 0 && c->runs > 0) {
        c->left = c->next->n;
        c->key = c->next->cut.key;
        c->ties = c->next->cut.ties;
        if (c->key >= inf) { /* keeps Inf and NaN, and nothing else */
            c->key = inf - 1;
            c->ties = 0;
        }
        c->next++;
        c->runs--;
    }
}

/* One way through a chunk. */
struct pass {
    enum tagci_type type;
    enum tagci_value form; /* of what comes out: native (the work type), bfloat16 or float16 */
    int all, stream;
    size_t n;
    const void *in, *residual;
    void *residual_out;
    struct cursor at;
};

static struct pass pass_over(const struct tagci_chunk *c, enum tagci_value form)
{
    return (struct pass){.type = c->type,
                         .form = form,
                         .all = c->all,
                         .stream = c->stream && (uintptr_t)c->residual_out % 64 == 0,
                         .n = c->n,
                         .in = c->in,
                         .residual = c->residual,
                         .residual_out = c->residual_out,
                         .at = {.next = c->runs, .runs = c->all ? 0 : c->nruns}};
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What is in own, counted along whole. */
static uint64_t extract_bits(uint64_t own, uint64_t whole)
{
#ifdef __BMI2__
    return __builtin_ia32_pext_di(own, whole);
#else
    uint64_t out = 0;
    for (unsigned j = 0; whole; whole &= whole - 1, j++)
        out |= (own >> __builtin_ctzll(whole) & 1) << j;
    return out;
#endif
}

#define WORK float
#define LOOSE loose_f32
#define KEY uint32_t
#define BITS tagci_f32_bits
#define OF tagci_f32_of
#define KEY_MASK 0x7fffffffu
#define KEY_INF TAGCI_KEY_INF_F32
#define NAN_BITS TAGCI_F32_NAN
#define TO_BF16 tagci_f32_to_bf16
#define TO_F16 tagci_f32_to_f16
#define WIDE 0
#define NAME(x) x##_f32
#include "backends/openmp/template_work.h"

#define WORK double
#define LOOSE loose_f64
#define KEY uint64_t
#define BITS tagci_f64_bits
#define OF tagci_f64_of
#define KEY_MASK 0x7fffffffffffffffu
#define KEY_INF TAGCI_KEY_INF_F64
#define NAN_BITS TAGCI_F64_NAN
#define TO_BF16 tagci_f64_to_bf16
#define TO_F16 tagci_f64_to_f16
#define WIDE 1
#define NAME(x) x##_f64
#include "backends/openmp/template_work.h"

static void sparsify(struct tagci_chunk *c)
{
    struct pass p = pass_over(c, TAGCI_VALUE_NATIVE);
    size_t words = tagci_bitmap_words(c->n);
    unsigned char *bits = (unsigned char *)c->bitmap;
    c->kept = c->type == TAGCI_F64 ? pass_f64(&p, 0, words, bits, c->values) : pass_f32(&p, 0, words, bits, c->values);
    if (c->stream)
        fence();
}

static void encode(struct tagci_chunk *c)
{
    uint64_t local[TAGCI_CHUNK_MAX / 64], *bits = c->bitmap ? c->bitmap : local;
    if (c->type == TAGCI_F64)
        encode_f64(c, bits);
    else
        encode_f32(c, bits);
    if (c->stream)
        fence();
    if (c->bitmap && c->all) {
        memset(c->bitmap, 0xff, c->n / 64 * 8);
        if (c->n % 64)
            c->bitmap[c->n / 64] = tagci_low_bits(c->n % 64);
    }
    if (c->seal)
        tagci_frame_seal(c->frame, c->frame_bytes);
}

static void decode(const struct tagci_decode *d, size_t from, size_t to)
{
    if (d->frame.type == TAGCI_F64)
        decode_f64(d, from, to);
    else
        decode_f32(d, from, to);
}

static size_t collect(enum tagci_type type, const void *in, const void *residual, size_t n, uint64_t lo, uint64_t hi,
                      void *keys, size_t *above, size_t *zeros)
{
    return type == TAGCI_F64 ? collect_f64(type, in, residual, n, lo, hi, keys, above, zeros)
                             : collect_f32(type, in, residual, n, lo, hi, keys, above, zeros);
}

static size_t count_key(enum tagci_type type, const void *in, const void *residual, size_t n, uint64_t key)
{
    return type == TAGCI_F64 ? count_key_f64(type, in, residual, n, key) : count_key_f32(type, in, residual, n, key);
}

static void gather_input(enum tagci_type type, const void *in, const void *residual, size_t n, void *out)
{
    if (type == TAGCI_F64)
        gather_input_f64(type, in, residual, n, out);
    else
        gather_input_f32(type, in, residual, n, out);
}

static void gather_runs(enum tagci_type type, const void *in, const void *residual, const size_t *at, size_t runs,
                        void *out)
{
    if (type == TAGCI_F64)
        gather_runs_f64(type, in, residual, at, runs, out);
    else
        gather_runs_f32(type, in, residual, at, runs, out);
}

static void finish(enum tagci_type type, const void *sum, size_t n, double divide, int plus_zero, void *out)
{
    if (type == TAGCI_F64)
        finish_f64(type, sum, n, divide, plus_zero, out);
    else
        finish_f32(type, sum, n, divide, plus_zero, out);
}

static void spread(const uint64_t *own, const uint64_t *whole, size_t words, size_t entries, const void *values,
                   size_t width, void *out)
{
    if (width == 8)
        spread_f64(own, whole, words, entries, values, out);
    else
        spread_f32(own, whole, words, entries, values, out);
}

/* Results of 16-bit types: once a call, so plain. */
static void unpack_16(const uint64_t *whole, size_t nbits, const uint16_t *packed, uint16_t *out)
{
    if (nbits) /* out may be NULL otherwise */
        memset(out, 0, nbits * sizeof *out);
    for (size_t i = 0; i < nbits; i += 64)
        for (uint64_t bits = whole[i / 64]; bits; bits &= bits - 1)
            out[i + (size_t)__builtin_ctzll(bits)] = *packed++;
}

static void unpack(const uint64_t *whole, size_t nbits, size_t entries, const void *packed, size_t width, void *out)
{
    if (width == 8)
        unpack_f64(whole, nbits, entries, packed, out);
    else if (width == 2)
        unpack_16(whole, nbits, packed, out);
    else
        unpack_f32(whole, nbits, entries, packed, out);
}

const struct tagcb_kernels VARIANT(tagcb_kernels) = {
    .name = VARIANT_NAME,
    .sparsify = sparsify,
    .encode = encode,
    .decode = decode,
    .collect = collect,
    .count_key = count_key,
    .gather_input = gather_input,
    .gather_runs = gather_runs,
    .finish = finish,
    .spread = spread,
    .unpack = unpack,
};
