/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Frames in integer forms. The kept values of a tile gather in shared memory, together with what the last tile left of a
 * block; a wave quantizes a block. */
#ifndef TAGCB_GPU_QUANTIZE_H
#define TAGCB_GPU_QUANTIZE_H

#include "backends/gpu/encode.h"

template <int TYPE> struct block_shared {
    typename element<TYPE>::work value[TAGCB_BLOCK * element<TYPE>::items + TAGCI_VALUE_BLOCK];
    uint16_t place[TAGCB_BLOCK * element<TYPE>::items + TAGCI_VALUE_BLOCK]; /* in the chunk */
    uint16_t scale[TAGCI_CHUNK_MAX / TAGCI_VALUE_BLOCK];
    int8_t codes[WAVES_MOST][TAGCI_VALUE_BLOCK];
    uint32_t escapes;
};

/* Magnitude of value i of m as it counts for a ternary block: finite, cut at the largest bfloat16; 0 unless its key is
 * above `limit`. */
template <class E> DEVICE double magnitude(const typename E::work *v, uint32_t m, uint32_t i, typename E::key limit)
{
    typename E::key key = i < m ? key_of<E>(v[i]) : 0;
    key = key < E::inf ? key : 0;
    key = key < E::cap ? key : (typename E::key)E::cap;
    return key > limit ? (double)E::of(key) : 0;
}

/* Their sum in the order that value.h lays down. Only for lanes that take part alike: all of a wave. */
template <class E> DEVICE double magnitudes(const typename E::work *v, uint32_t m, typename E::key limit)
{
    unsigned l = lane_of() % 8;
    double sum = 0;
    for (uint32_t i = 0; i < TAGCI_VALUE_BLOCK; i += 8)
        sum += magnitude<E>(v, m, i + l, limit);
    sum += wave_from(sum, lane_of() ^ 4);
    sum += wave_from(sum, lane_of() ^ 2);
    return sum + wave_from(sum, lane_of() ^ 1);
}

/* Ternary codes of a block, and its scale. */
template <class E> DEVICE uint16_t ternary(const typename E::work *v, uint32_t m, int8_t *codes)
{
    typedef typename E::work W;
    typedef typename E::key K;
    uint32_t nonzero = 0, chosen = 0;
    for (uint32_t i = lane_of(); i < TAGCI_VALUE_BLOCK; i += WAVE)
        nonzero += count_bits(wave_ballot(magnitude<E>(v, m, i, 0) > 0));
    if (nonzero == 0) {
        for (uint32_t i = lane_of(); i < TAGCI_VALUE_BLOCK; i += WAVE)
            codes[i] = 0;
        return 0;
    }
    double threshold = 0.7 * (magnitudes<E>(v, m, 0) / (double)nonzero);
    W below = (W)threshold; /* the largest one that is not above: a value is above both or neither */
    K limit = E::bits(below) - ((double)below > threshold);
    for (uint32_t i = lane_of(); i < TAGCI_VALUE_BLOCK; i += WAVE)
        chosen += count_bits(wave_ballot(magnitude<E>(v, m, i, limit) > 0));
    uint16_t scale =
        tagci_bf16_saturate(tagci_f64_to_bf16(magnitudes<E>(v, m, limit) / (double)(chosen ? chosen : 1)), 1);
    for (uint32_t i = lane_of(); i < TAGCI_VALUE_BLOCK; i += WAVE) {
        bool big = scale && magnitude<E>(v, m, i, limit) > 0;
        codes[i] = (int8_t)(big ? (v[i] < 0 ? -1 : 1) : 0);
    }
    return scale;
}

/* Codes from -levels to levels of a block, and its scale. */
template <class E> DEVICE uint16_t levels_of(const typename E::work *v, uint32_t m, int levels, int8_t *codes)
{
    typedef typename E::work W;
    typename E::key largest = 0;
    for (uint32_t i = lane_of(); i < m; i += WAVE) {
        typename E::key key = key_of<E>(v[i]);
        largest = key < E::inf && key > largest ? key : largest;
    }
    largest = wave_largest(largest);
    uint16_t scale = tagci_scale_for((double)E::of(largest), levels, E::limit());
    W step = tagci_bf16_to_f32(scale), top = (W)levels;
    for (uint32_t i = lane_of(); i < TAGCI_VALUE_BLOCK; i += WAVE) {
        int8_t code = 0;
        if (i < m && scale && key_of<E>(v[i]) < E::inf) {
            W y = v[i] / step;
            y = y > top ? top : y;
            y = y < -top ? -top : y;
            code = (int8_t)(int)((y + E::rounder()) - E::rounder());
        }
        codes[i] = code;
    }
    return scale;
}

/* Bytes of a block's codes; there are zeros from m on. */
DEVICE void pack(enum tagci_value value, const int8_t *codes, uint32_t m, unsigned char *out)
{
    for (uint32_t b = lane_of(); b < tagci_block_bytes(value, m); b += WAVE) {
        unsigned byte;
        if (value == TAGCI_VALUE_INT8) {
            byte = (unsigned char)codes[b];
        } else if (value == TAGCI_VALUE_INT4) {
            byte = (codes[2 * b] & 15u) | (codes[2 * b + 1] & 15u) << 4;
        } else {
            byte = 0;
            for (uint32_t i = 5, from = 5 * b; i-- > 0;)
                byte = byte * 3 + (from + i < TAGCI_VALUE_BLOCK ? (unsigned)(codes[from + i] + 3) % 3 : 0);
        }
        out[b] = (unsigned char)byte;
    }
}

/* One block of m values, by one wave: codes to out; to the residual what stays of those that are kept. */
template <int TYPE>
DEVICE void quantize(const struct tagci_chunk *c, const struct pass_shared *shared, struct block_shared<TYPE> *s,
                     uint32_t from, uint32_t m, uint32_t block, unsigned char *out)
{
    typedef element<TYPE> E;
    typedef typename E::work W;
    const W *v = s->value + from;
    W *rest = (W *)c->residual_out;
    int8_t *codes = s->codes[wave_of()];
    uint32_t escapes = 0;
    uint16_t scale = c->value == TAGCI_VALUE_TERNARY
                         ? ternary<E>(v, m, codes)
                         : levels_of<E>(v, m, c->value == TAGCI_VALUE_INT8 ? 127 : 7, codes);
    wave_sync();
    pack(c->value, codes, m, out);
    W step = tagci_bf16_to_f32(scale);
    for (uint32_t i = lane_of(); i < TAGCI_VALUE_BLOCK; i += WAVE) {
        bool endless = i < m && key_of<E>(v[i]) >= E::inf;
        escapes += count_bits(wave_ballot(endless));
        if (i < m && rest) {
            uint32_t place = s->place[from + i];
            if (shared->bits[place / 32] >> place % 32 & 1)
                rest[place] = ((endless ? 0 : v[i]) - (W)codes[i] * step) + 0;
        }
    }
    if (lane_of() == 0) {
        s->scale[block] = scale;
        if (escapes)
            atomicAdd(&s->escapes, escapes);
    }
    wave_sync();
}

/* One try, with only the kept values or (whole) with zeros between them; codes to out. Returns how many are kept. */
template <int TYPE>
DEVICE uint32_t block_pass(const struct tagci_chunk *c, struct pass_shared *shared, struct block_shared<TYPE> *s,
                           bool whole, unsigned char *out)
{
    typedef element<TYPE> E;
    typedef typename E::work W;
    struct pass<TYPE> p;
    W *rest = (W *)c->residual_out;
    uint32_t filled = 0, blocks = 0; /* values at hand, blocks done */
    const size_t bytes = tagci_block_bytes(c->value, TAGCI_VALUE_BLOCK);
    pass_begin<TYPE>(&p, shared, c);
    if (threadIdx.x == 0)
        s->escapes = 0;
    for (uint32_t start = 0; start < p.n; start += TILE(E)) {
        struct tile<TYPE> t;
        uint32_t before = p.kept, here = p.n - start < TILE(E) ? p.n - start : TILE(E);
        choose<TYPE>(&p, start, &t);
        uint32_t rank = t.before - before;
        for (unsigned j = 0; j < E::items; j++) {
            uint32_t i = first_of_wave<TYPE>(start) + j * WAVE + lane_of();
            bool kept = t.kept[j] >> lane_of() & 1;
            if (i < p.n && (kept || whole)) {
                uint32_t at = filled + (whole ? i - start : rank + count_bits(t.kept[j] & lanes_before()));
                s->value[at] = kept ? t.v[j] : 0;
                s->place[at] = (uint16_t)i;
            }
            if (rest && i < p.n && !kept)
                rest[i] = t.v[j] + 0;
            rank += count_bits(t.kept[j]);
        }
        filled += whole ? here : t.all;
        bool last = start + TILE(E) >= p.n;
        uint32_t ready = last ? (uint32_t)tagci_value_blocks(filled) : filled / TAGCI_VALUE_BLOCK;
        __syncthreads();
        for (uint32_t b = wave_of(); b < ready; b += BLOCK / WAVE) {
            uint32_t from = b * TAGCI_VALUE_BLOCK, m = filled - from;
            quantize<TYPE>(c, shared, s, from, m < TAGCI_VALUE_BLOCK ? m : TAGCI_VALUE_BLOCK, blocks + b,
                           out + (blocks + b) * bytes);
        }
        __syncthreads();
        if (!last) {
            filled -= ready * TAGCI_VALUE_BLOCK;
            for (uint32_t i = threadIdx.x; ready && i < filled; i += BLOCK) {
                s->value[i] = s->value[ready * TAGCI_VALUE_BLOCK + i];
                s->place[i] = s->place[ready * TAGCI_VALUE_BLOCK + i];
            }
        }
        blocks += ready;
    }
    __syncthreads();
    return p.kept;
}

/* NaN and Inf of a chunk, and their ranks among the values in the frame. Has barriers. */
template <int TYPE>
DEVICE void put_escapes(const struct tagci_chunk *c, const struct pass_shared *shared, struct frame_shared *s,
                        bool whole, uint32_t *ranks, typename element<TYPE>::work *values)
{
    typedef element<TYPE> E;
    unsigned turn = 0;
    uint32_t kept = 0, escapes = 0;
    for (uint32_t start = 0; start < c->n; start += BLOCK) {
        uint32_t i = start + threadIdx.x, all_kept, all_endless;
        bool in = i < c->n && (shared->bits[i / 32] >> i % 32 & 1);
        typename E::work v = in ? input<TYPE>(c->in, c->residual, i) : 0;
        bool endless = key_of<E>(v) >= E::inf;
        uint32_t rank = kept + threads_before(&s->totals, &turn, in, &all_kept);
        uint32_t at = escapes + threads_before(&s->totals, &turn, endless, &all_endless);
        if (endless) {
            ranks[at] = whole ? i : rank;
            values[at] = key_of<E>(v) > E::inf ? nan_of<E>() : v;
        }
        kept += all_kept;
        escapes += all_endless;
    }
}

template <int TYPE>
DEVICE void encode_blocks(struct tagci_chunk *c, struct pass_shared *shared, struct frame_shared *s,
                          struct block_shared<TYPE> *blocks)
{
    typedef typename element<TYPE>::work W;
    size_t longest = tagci_bitmap_words(c->n) * 8, scales = tagci_pad8(tagci_value_blocks(c->n) * 2);
    unsigned char *at = c->frame + TAGCI_FRAME_HEADER, *codes;
    uint32_t kept, escapes;
    int indexed;
    bool whole = c->all;
    for (;; whole = true) { /* seldom twice */
        codes = at + scales + (whole ? 0 : longest);
        kept = block_pass<TYPE>(c, shared, blocks, whole, codes);
        escapes = blocks->escapes;
        if (escapes * TAGCI_ESCAPE_SHARE > kept) {
            encode_plain<TYPE>(c, shared, s, TAGCI_VALUE_NATIVE);
            return;
        }
        indexed = index_for(c, c->value, kept);
        if (indexed || whole)
            break;
    }
    struct tagci_frame_parts p;
    uint32_t values = indexed ? kept : (uint32_t)c->n;
    size_t bytes = tagci_frame_measure(c->type, c->value, c->n, indexed, values, escapes, &p);
    at += p.index + p.low;
    move_down(at + p.scales, codes, p.codes);
    for (uint32_t b = threadIdx.x; b < tagci_value_blocks(values); b += BLOCK)
        ((uint16_t *)at)[b] = blocks->scale[b];
    at += p.scales + p.codes;
    if (escapes)
        put_escapes<TYPE>(c, shared, s, !indexed, (uint32_t *)at, (W *)(at + p.escape_ranks));
    finish_frame(c, shared, s, c->value, indexed, kept, escapes, &p, bytes);
}

template <int TYPE> KERNEL void encode_blocks_kernel(struct tagci_chunk *chunks)
{
    __shared__ struct pass_shared shared;
    __shared__ struct frame_shared frame;
    __shared__ struct block_shared<TYPE> blocks;
    encode_blocks<TYPE>(&chunks[blockIdx.x], &shared, &frame, &blocks);
}

#endif
