/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Frames to sums. A block has a tile of one sum, and adds to it in registers all frames of it in the order given: the sum
 * is read and written once. */
#ifndef TAGCB_GPU_DECODE_H
#define TAGCB_GPU_DECODE_H

#include "backends/gpu/scratch.h"
#include "backends/gpu/sparsify.h"
#include "core/index_coded.h"

struct decode_shared {
    uint32_t bits[TAGCB_BLOCK * work_f32::items / 32]; /* of the tile */
    struct totals totals;
};

/* Item i of an array at any address. */
template <class T> DEVICE T loose(const unsigned char *at, size_t i)
{
    T value;
    if ((uintptr_t)at % sizeof(T) == 0)
        return ((const T *)at)[i];
    memcpy(&value, at + i * sizeof(T), sizeof value);
    return value;
}

/* Which frames go to the same sum. One block. */
KERNEL void link_frames_kernel(const struct tagci_decode *frames, unsigned n, struct tagcb_scratch *scratch)
{
    __shared__ const void *sum[TAGCB_FRAMES_MOST];
    for (unsigned i = threadIdx.x; i < n; i += BLOCK) {
        scratch->frames[i] = frames[i];
        sum[i] = frames[i].sum;
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += BLOCK) {
        unsigned before = 0, next = i + 1;
        while (sum[before] != sum[i])
            before++;
        while (next < n && sum[next] != sum[i])
            next++;
        scratch->first_of[i] = before == i;
        scratch->next[i] = next < n ? (int)next : -1;
    }
}

/* The shared bits of the tile of a frame with a bitmap; returns how many there are before it. Has a barrier. */
DEVICE uint32_t bits_of_bitmap(const struct tagci_decode *d, uint32_t start, unsigned tile, struct decode_shared *s,
                               unsigned *turn)
{
    uint32_t words = (uint32_t)tagci_bitmap_words(d->n), first = start / 64, before = 0;
    for (uint32_t w = threadIdx.x; w < first; w += BLOCK)
        before += count_bits(loose<uint64_t>(d->frame.index, w));
    for (uint32_t w = threadIdx.x; w < tile / 64; w += BLOCK) {
        uint64_t word = first + w < words ? loose<uint64_t>(d->frame.index, first + w) : 0;
        s->bits[2 * w] = (uint32_t)word;
        s->bits[2 * w + 1] = (uint32_t)(word >> 32);
    }
    threads_before(&s->totals, turn, before, &before);
    return before;
}

/* The same of a coded index. A bucket does not go past the end of a tile. */
DEVICE uint32_t bits_of_coded(const struct tagci_decode *d, uint32_t start, unsigned tile, struct decode_shared *s,
                              unsigned *turn)
{
    const struct tagci_frame *f = &d->frame;
    const unsigned l = f->low_bits;
    uint32_t words = (uint32_t)tagci_coded_shape(d->n, f->kept).high_words, ones = 0, before = 0, all;
    for (uint32_t w = threadIdx.x; w < tile / 32; w += BLOCK)
        s->bits[w] = 0;
    __syncthreads();
    for (uint32_t w = 0; w < words; w += BLOCK, ones += all) {
        uint32_t mine = w + threadIdx.x;
        uint64_t bits = mine < words ? loose<uint64_t>(f->index, mine) : 0;
        uint32_t count = count_bits(bits), i = ones + threads_before(&s->totals, turn, count, &all);
        uint32_t bucket = mine * 64 - i; /* the first one of this word */
        if (bucket << l >= start + tile)
            continue;
        if ((bucket + 64 - count + 1) << l <= start) {
            before += count;
            continue;
        }
        for (; bits; bits &= bits - 1, i++) {
            uint32_t at = mine * 64 + count_bits((bits - 1) & ~bits);
            uint32_t place = (at - i) << l | (l ? tagci_coded_low(f->low, i, l) : 0);
            if (place < start)
                before++;
            else if (place < start + tile)
                atomicOr(&s->bits[(place - start) / 32], (uint32_t)1 << place % 32);
        }
    }
    threads_before(&s->totals, turn, before, &before);
    return before;
}

/* Positions of a frame join the union. */
DEVICE void see(const struct tagci_decode *d, uint32_t start, unsigned tile, const struct decode_shared *s)
{
    for (uint32_t w = threadIdx.x; w < tile / 64; w += BLOCK) {
        uint32_t at = start / 64 + w;
        if (at >= tagci_bitmap_words(d->n))
            return;
        uint64_t bits = d->frame.indexed ? s->bits[2 * w] | (uint64_t)s->bits[2 * w + 1] << 32
                                         : tagci_low_bits(d->n - (size_t)at * 64);
        d->seen[at] = d->first ? bits : d->seen[at] | bits;
    }
}

/* The code of a value in an integer form. */
DEVICE int code_of(const struct tagci_frame *f, uint32_t rank)
{
    const unsigned char *block = f->codes + rank / TAGCI_VALUE_BLOCK * tagci_block_bytes(f->value, TAGCI_VALUE_BLOCK);
    unsigned i = rank % TAGCI_VALUE_BLOCK;
    if (f->value == TAGCI_VALUE_INT8)
        return (int8_t)block[i];
    if (f->value == TAGCI_VALUE_INT4)
        return (int8_t)(block[i / 2] << (i % 2 ? 0 : 4)) >> 4;
    unsigned byte = block[i / 5];
    for (unsigned digit = i % 5; digit; digit--)
        byte /= 3;
    return byte % 3 == 2 ? -1 : (int)(byte % 3);
}

/* The value of this rank in a frame. */
template <int TYPE>
DEVICE typename element<TYPE>::work value_of(const struct tagci_frame *f, enum tagci_value form, uint32_t rank)
{
    typedef typename element<TYPE>::work W;
    if (form == TAGCI_VALUE_NATIVE)
        return loose<W>(f->codes, rank);
    if (form == TAGCI_VALUE_BFLOAT16)
        return tagci_bf16_to_f32(loose<uint16_t>(f->codes, rank));
    if (form == TAGCI_VALUE_FLOAT16)
        return tagci_f16_to_f32(loose<uint16_t>(f->codes, rank));
    uint32_t low = 0, high = f->escapes; /* the first escape that is not before it */
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (loose<uint32_t>(f->escape_ranks, middle) < rank)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < f->escapes && loose<uint32_t>(f->escape_ranks, low) == rank)
        return loose<W>(f->escape_values, low);
    return (W)code_of(f, rank) * (W)tagci_bf16_to_f32(loose<uint16_t>(f->scales, rank / TAGCI_VALUE_BLOCK));
}

/* One frame more; v: this thread's items of the sum. Has barriers. */
template <int TYPE>
DEVICE void add_frame(const struct tagci_decode *d, uint32_t start, struct decode_shared *s, unsigned *turn,
                      typename element<TYPE>::work *v)
{
    typedef element<TYPE> E;
    const struct tagci_frame *f = &d->frame;
    enum tagci_value form = tagci_value_plain((enum tagci_type)TYPE, f->value);
    uint32_t first = first_of_wave<TYPE>(start), word = (first - start) / 32, rank = 0, all;
    if (f->indexed) {
        __syncthreads(); /* nobody looks at the bits of the last frame any more */
        rank = f->indexed == TAGCI_INDEX_CODED ? bits_of_coded(d, start, TILE(E), s, turn)
                                               : bits_of_bitmap(d, start, TILE(E), s, turn);
        uint32_t count = 0;
        for (unsigned w = 0; w < WAVE * E::items / 32; w++)
            count += count_bits(s->bits[word + w]);
        rank += waves_before(&s->totals, turn, count, &all);
    }
    if (d->seen)
        see(d, start, TILE(E), s);
    for (unsigned j = 0; j < E::items; j++) {
        uint32_t i = first + j * WAVE + lane_of(), at = i;
        bool there = i < d->n;
        if (f->indexed) {
            uint64_t bits = s->bits[word + j * WAVE / 32];
            if (WAVE == 64)
                bits |= (uint64_t)s->bits[word + 2 * j + 1] << 32;
            there = bits >> lane_of() & 1;
            at = rank + count_bits(bits & lanes_before());
            rank += count_bits(bits);
        }
        if (there) {
            typename E::work x = value_of<TYPE>(f, form, at);
            v[j] = d->first ? x : v[j] + x;
        } else if (d->first) {
            v[j] = 0;
        }
    }
}

template <int TYPE> KERNEL void decode_kernel(const struct tagcb_scratch *scratch)
{
    typedef element<TYPE> E;
    __shared__ struct decode_shared shared;
    const struct tagci_decode *d = &scratch->frames[blockIdx.y];
    typename E::work v[E::items], *sum = (typename E::work *)d->sum;
    uint32_t start = blockIdx.x * TILE(E), n = (uint32_t)d->n;
    unsigned turn = 0;
    if (!scratch->first_of[blockIdx.y] || start >= n)
        return;
    for (unsigned j = 0; j < E::items; j++) {
        uint32_t i = first_of_wave<TYPE>(start) + j * WAVE + lane_of();
        v[j] = !d->first && i < n ? sum[i] : 0;
    }
    for (int at = (int)blockIdx.y; at >= 0; at = scratch->next[at])
        add_frame<TYPE>(&scratch->frames[at], start, &shared, &turn, v);
    for (unsigned j = 0; j < E::items; j++) {
        uint32_t i = first_of_wave<TYPE>(start) + j * WAVE + lane_of();
        if (i < n)
            sum[i] = v[j];
    }
}

#endif
