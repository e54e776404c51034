/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * All kernels, and what puts them on a stream: the one source of backends/cuda/kernels.cu, backends/hip/kernels.hip and
 * of the tests' executor. */
#include "backends/gpu/device.h"

#include "backends/gpu/launch.h"
#include "core/bitmap.h"
#include "core/frame_layout.h"
#include "core/half.h"
#include "core/index_coded.h"
#include "core/lossless_choice.h"
#include "core/lossless_code.h"
#include "core/sketch.h"
#include "core/sketch_integer.h"
#include "core/value.h"

namespace
{
#include "backends/gpu/convert.h"
#include "backends/gpu/decode.h"
#include "backends/gpu/lossless_decode.h"
#include "backends/gpu/lossless_encode.h"
#include "backends/gpu/place.h"
#include "backends/gpu/quantize.h"
#include "backends/gpu/select.h"
#include "backends/gpu/sketch.h"

#define GRID_MOST 32768u /* blocks in the second dimension of a grid */

/* Blocks for so many elements, each thread with `items`. */
unsigned blocks_for(const struct tagcb_place *at, size_t n, unsigned items)
{
    size_t blocks = (n + (size_t)BLOCK * items - 1) / ((size_t)BLOCK * items);
    return blocks < at->blocks ? (unsigned)(blocks ? blocks : 1) : at->blocks;
}

template <int TYPE> void select_of(const struct tagcb_place *at, struct tagci_choice *choices, size_t n)
{
    for (size_t from = 0; from < n; from += GRID_MOST) {
        unsigned count = (unsigned)(n - from < GRID_MOST ? n - from : GRID_MOST);
        bool some_short = false;
        for (unsigned i = 0; i < count; i++)
            some_short |= choices[from + i].n <= SELECT_SHORT;
        if (some_short)
            LAUNCH(select_short_kernel<TYPE>, 1, count, at->stream, choices + from);
    }
    for (size_t i = 0; i < n; i++) {
        struct tagci_choice *choice = choices + i;
        if (choice->n <= SELECT_SHORT)
            continue;
        LAUNCH(select_begin_kernel<TYPE>, 1, 1, at->stream, choice, at->scratch);
        /* a sample may have to be given up, and then it is all over again */
        for (int passes = (TYPE == TAGCI_F64 ? 6 : 3) * (choice->runs ? 2 : 1); passes > 0; passes--)
            LAUNCH(select_pass_kernel<TYPE>, blocks_for(at, choice->n, 8), 1, at->stream, choice, at->scratch);
    }
}

template <int TYPE> void count_key_of(const struct tagcb_place *at, struct tagci_tally *tallies, size_t n)
{
    for (size_t from = 0; from < n; from += TAGCB_COUNTS) {
        unsigned count = (unsigned)(n - from < TAGCB_COUNTS ? n - from : TAGCB_COUNTS);
        size_t most = 0;
        for (unsigned i = 0; i < count; i++)
            most = tallies[from + i].n > most ? tallies[from + i].n : most;
        LAUNCH(count_key_kernel<TYPE>, blocks_for(at, most, 8), count, at->stream, tallies + from, at->scratch);
    }
}

template <int TYPE> void sparsify_of(const struct tagcb_place *at, struct tagci_chunk *chunks, unsigned n)
{
    LAUNCH(sparsify_kernel<TYPE>, n, 1, at->stream, chunks);
}

template <int TYPE> void encode_of(const struct tagcb_place *at, struct tagci_chunk *chunks, unsigned n)
{
    if (tagci_value_blocked(chunks->value))
        LAUNCH(encode_blocks_kernel<TYPE>, n, 1, at->stream, chunks);
    else
        LAUNCH(encode_plain_kernel<TYPE>, n, 1, at->stream, chunks);
}

template <int TYPE> void decode_of(const struct tagcb_place *at, unsigned n, size_t most)
{
    unsigned tiles = (unsigned)((most + TILE(element<TYPE>) - 1) / TILE(element<TYPE>));
    LAUNCH(decode_kernel<TYPE>, tiles, n, at->stream, at->scratch);
}

template <int TYPE>
void gather_input_of(const struct tagcb_place *at, const void *in, const void *residual, size_t n, void *out)
{
    LAUNCH(gather_input_kernel<TYPE>, blocks_for(at, n, 8), 1, at->stream, in, residual, n, out);
}

template <int TYPE>
void finish_of(const struct tagcb_place *at, const void *sum, size_t n, double divide, int plus_zero, void *out)
{
    LAUNCH(finish_kernel<TYPE>, blocks_for(at, n, 8), 1, at->stream, sum, n, divide, plus_zero, out);
}

/* Calls f(first word, last, blocks) for as many words at a time as there are counts for, having counted their bits. */
template <class F>
void with_counts(const struct tagcb_place *at, const uint64_t *own, const uint64_t *whole, size_t nbits,
                 size_t *entries, F f)
{
    const size_t words = tagci_bitmap_words(nbits), most = (size_t)TAGCB_COUNTS * BLOCK;
    struct tagcb_scratch *scratch = at->scratch;
    for (size_t from = 0; from == 0 || from < words; from += most) {
        size_t here = words - from < most ? words - from : most;
        int first = from == 0, last = from + here == words;
        unsigned blocks = (unsigned)((here + BLOCK - 1) / BLOCK);
        const uint64_t *some_own = own ? own + from : NULL, *some = whole + from;
        if (blocks)
            LAUNCH(count_words_kernel, blocks, 1, at->stream, some_own, some, here, scratch);
        LAUNCH(sum_counts_kernel, 1, 1, at->stream, blocks, first, last, scratch, entries);
        if (blocks)
            f(some_own, some, from, here, blocks);
    }
}

template <class T>
void spread_of(const struct tagcb_place *at, const uint64_t *own, const uint64_t *whole, size_t nbits, const T *values,
               T *out, size_t *entries)
{
    with_counts(at, own, whole, nbits, entries,
                [=](const uint64_t *some_own, const uint64_t *some, size_t, size_t words, unsigned blocks) {
                    const struct tagcb_scratch *scratch = at->scratch;
                    LAUNCH(spread_kernel<T>, blocks, 1, at->stream, some_own, some, words, values, out, scratch);
                });
}

template <class T>
void unpack_of(const struct tagcb_place *at, const uint64_t *whole, size_t nbits, const T *packed, T *out,
               size_t *entries)
{
    with_counts(at, NULL, whole, nbits, entries,
                [=](const uint64_t *, const uint64_t *some, size_t from, size_t, unsigned blocks) {
                    const struct tagcb_scratch *scratch = at->scratch;
                    size_t bits = nbits - from * 64, most = (size_t)blocks * BLOCK * 64;
                    T *to = out + from * 64;
                    bits = bits < most ? bits : most;
                    LAUNCH(unpack_kernel<T>, blocks, 1, at->stream, some, bits, packed, to, scratch);
                });
}

struct sketch_map map_of(const struct tagci_sketch *s, int wide, int ranks, const uint16_t *high,
                         const unsigned char *exceptional)
{
    return {s->entries, s->rows,        s->row_start, s->row_blocks, s->order,
            s->pivot,   s->round_start, high,         exceptional,   tagci_sketch_headroom(wide, ranks)};
}

template <int TYPE>
void sketch_exponents_of(const struct tagcb_place *at, const void *values, size_t entries, uint16_t *high,
                         uint16_t *low)
{
    const typename element<TYPE>::work *v = (const typename element<TYPE>::work *)values;
    LAUNCH(exponents_kernel<TYPE>, blocks_for(at, entries, TAGCI_SKETCH_GROUP / 32), 1, at->stream, v, entries, high,
           low);
}

template <int TYPE>
void sketch_encode_of(const struct tagcb_place *at, struct sketch_map map, const void *values, void *cells)
{
    const typename element<TYPE>::work *v = (const typename element<TYPE>::work *)values;
    typename element<TYPE>::key *c = (typename element<TYPE>::key *)cells;
    LAUNCH(cells_kernel<TYPE>, blocks_for(at, map.rows * LANES, 1), 1, at->stream, map, v, c);
}

template <int TYPE>
void sketch_decode_of(const struct tagcb_place *at, const struct tagci_sketch *s, struct sketch_map map,
                      const void *cells, void *ints, void *values)
{
    typedef element<TYPE> E;
    const uint32_t most = 8 * BLOCK / LANES, rounds = (uint32_t)s->rounds; /* blocks of a short round */
    const typename E::key *c = (const typename E::key *)cells;
    typename E::key *in = (typename E::key *)ints;
    typename E::work *v = (typename E::work *)values;
    if (s->decoded < s->blocks)
        LAUNCH(zero_kernel, blocks_for(at, s->entries, 8), 1, at->stream, v, map.entries);
    for (uint32_t round = 0, end; round < rounds; round = end) {
        unsigned blocks = 1;
        uint32_t length = s->round_start[round + 1] - s->round_start[round];
        end = round + 1;
        if (length > most)
            blocks = blocks_for(at, (size_t)length * LANES, 1);
        else
            while (end < rounds && s->round_start[end + 1] - s->round_start[end] <= most)
                end++;
        LAUNCH(peel_kernel<TYPE>, blocks, 1, at->stream, map, round, end, c, in, v);
    }
}

template <class T>
void move_blocks_of(const struct tagcb_place *at, const uint32_t *blocks, size_t n, size_t entries, void *values,
                    void *packed, int back)
{
    T *v = (T *)values, *p = (T *)packed;
    if (n)
        LAUNCH(move_blocks_kernel, blocks_for(at, n * LANES, 1), 1, at->stream, blocks, n, entries, v, p, back);
}

template <int TYPE> void lossless_encode_of(const struct tagcb_place *at, struct tagci_block *blocks, unsigned n)
{
    LAUNCH(lossless_encode_kernel<TYPE>, n, 1, at->stream, blocks);
}

template <int TYPE> void lossless_decode_of(const struct tagcb_place *at, struct tagci_block *blocks, unsigned n)
{
    LAUNCH(lossless_decode_kernel<TYPE>, n, 1, at->stream, blocks);
}

/* Stretches of chunks that one kernel serves. */
template <class F> void alike(struct tagci_chunk *chunks, size_t n, bool by_value, F f)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1;
             end < n && end - i < GRID_MOST && chunks[end].type == chunks[i].type &&
             (!by_value || tagci_value_blocked(chunks[end].value) == tagci_value_blocked(chunks[i].value));)
            end++;
        f(chunks + i, (unsigned)(end - i));
    }
}
} // namespace

int LAUNCHER(status)(void)
{
#if defined __CUDACC__
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, (const void *)link_frames_kernel);
#elif defined __HIP__
    hipFuncAttributes attributes;
    return hipFuncGetAttributes(&attributes, (const void *)link_frames_kernel);
#else
    return 0;
#endif
}

void LAUNCHER(select)(const struct tagcb_place *at, enum tagci_type type, struct tagci_choice *choices, size_t n)
{
    FOR_TYPE(type, select_of, at, choices, n);
}

void LAUNCHER(count_key)(const struct tagcb_place *at, enum tagci_type type, struct tagci_tally *tallies, size_t n)
{
    FOR_TYPE(type, count_key_of, at, tallies, n);
}

void LAUNCHER(sparsify)(const struct tagcb_place *at, struct tagci_chunk *chunks, size_t n)
{
    alike(chunks, n, false,
          [=](struct tagci_chunk *some, unsigned count) { FOR_TYPE(some->type, sparsify_of, at, some, count); });
}

void LAUNCHER(encode)(const struct tagcb_place *at, struct tagci_chunk *chunks, size_t n)
{
    alike(chunks, n, true,
          [=](struct tagci_chunk *some, unsigned count) { FOR_TYPE(some->type, encode_of, at, some, count); });
}

void LAUNCHER(decode)(const struct tagcb_place *at, const struct tagci_decode *frames, size_t n)
{
    for (size_t i = 0; i < n; i += TAGCB_FRAMES_MOST) {
        unsigned count = (unsigned)(n - i < TAGCB_FRAMES_MOST ? n - i : TAGCB_FRAMES_MOST);
        const struct tagci_decode *some = frames + i;
        struct tagcb_scratch *scratch = at->scratch;
        size_t most = 0;
        for (unsigned f = 0; f < count; f++)
            most = some[f].n > most ? some[f].n : most;
        if (most == 0)
            continue;
        LAUNCH(link_frames_kernel, 1, 1, at->stream, some, count, scratch);
        FOR_TYPE(some->frame.type, decode_of, at, count, most);
    }
}

void LAUNCHER(gather_input)(const struct tagcb_place *at, enum tagci_type type, const void *in, const void *residual,
                            size_t n, void *out)
{
    FOR_TYPE(type, gather_input_of, at, in, residual, n, out);
}

void LAUNCHER(finish)(const struct tagcb_place *at, enum tagci_type type, const void *sum, size_t n, double divide,
                      int plus_zero, void *out)
{
    FOR_TYPE(type, finish_of, at, sum, n, divide, plus_zero, out);
}

void LAUNCHER(spread)(const struct tagcb_place *at, const uint64_t *own, const uint64_t *whole, size_t nbits,
                      const void *values, size_t width, void *out, size_t *entries)
{
    if (width == 8)
        spread_of(at, own, whole, nbits, (const uint64_t *)values, (uint64_t *)out, entries);
    else
        spread_of(at, own, whole, nbits, (const uint32_t *)values, (uint32_t *)out, entries);
}

void LAUNCHER(unpack)(const struct tagcb_place *at, const uint64_t *whole, size_t nbits, const void *packed,
                      size_t width, void *out, size_t *entries)
{
    if (width == 8)
        unpack_of(at, whole, nbits, (const uint64_t *)packed, (uint64_t *)out, entries);
    else if (width == 4)
        unpack_of(at, whole, nbits, (const uint32_t *)packed, (uint32_t *)out, entries);
    else
        unpack_of(at, whole, nbits, (const uint16_t *)packed, (uint16_t *)out, entries);
}

void LAUNCHER(sketch_exponents)(const struct tagcb_place *at, int wide, const void *values, size_t entries,
                                uint16_t *high, uint16_t *low)
{
    if (entries)
        (wide ? sketch_exponents_of<TAGCI_F64> : sketch_exponents_of<TAGCI_F32>)(at, values, entries, high, low);
}

void LAUNCHER(sketch_encode)(const struct tagcb_place *at, const struct tagci_sketch *plan, int wide, int ranks,
                             const void *values, const uint16_t *high, const unsigned char *exceptional, void *cells)
{
    struct sketch_map map = map_of(plan, wide, ranks, high, exceptional);
    if (plan->rows)
        (wide ? sketch_encode_of<TAGCI_F64> : sketch_encode_of<TAGCI_F32>)(at, map, values, cells);
}

void LAUNCHER(sketch_decode)(const struct tagcb_place *at, const struct tagci_sketch *plan, int wide, int ranks,
                             const void *cells, const uint16_t *high, const unsigned char *exceptional, void *ints,
                             void *values)
{
    struct sketch_map map = map_of(plan, wide, ranks, high, exceptional);
    (wide ? sketch_decode_of<TAGCI_F64> : sketch_decode_of<TAGCI_F32>)(at, plan, map, cells, ints, values);
}

void LAUNCHER(move_blocks)(const struct tagcb_place *at, const uint32_t *blocks, size_t n, size_t entries, size_t width,
                           void *values, void *packed, int back)
{
    (width == 8 ? move_blocks_of<uint64_t> : move_blocks_of<uint32_t>)(at, blocks, n, entries, values, packed, back);
}

void LAUNCHER(lossless_encode)(const struct tagcb_place *at, enum tagci_type type, struct tagci_block *blocks, size_t n)
{
    if (n)
        FOR_TYPE(type, lossless_encode_of, at, blocks, (unsigned)n);
}

void LAUNCHER(lossless_decode)(const struct tagcb_place *at, enum tagci_type type, struct tagci_block *blocks, size_t n)
{
    if (n)
        FOR_TYPE(type, lossless_decode_of, at, blocks, (unsigned)n);
}
