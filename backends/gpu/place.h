/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Packed values to their positions and onto a union. A block has a word of the bitmaps for each thread; how many bits are
 * before it is counted first. */
#ifndef TAGCB_GPU_PLACE_H
#define TAGCB_GPU_PLACE_H

#include "backends/gpu/element.h"
#include "backends/gpu/scratch.h"

struct place_shared {
    uint64_t own[TAGCB_BLOCK], whole[TAGCB_BLOCK];               /* words */
    uint32_t own_before[TAGCB_BLOCK], whole_before[TAGCB_BLOCK]; /* bits of the block before them */
    struct totals totals;
};

/* Bits of each block's words. own may be NULL. */
KERNEL void count_words_kernel(const uint64_t *own, const uint64_t *whole, size_t words, struct tagcb_scratch *scratch)
{
    __shared__ struct totals totals;
    size_t w = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    unsigned turn = 0;
    uint32_t of_own, of_whole;
    threads_before(&totals, &turn, w < words && own ? count_bits(own[w]) : 0, &of_own);
    threads_before(&totals, &turn, w < words ? count_bits(whole[w]) : 0, &of_whole);
    if (threadIdx.x == 0) {
        scratch->counts[0][blockIdx.x] = of_own;
        scratch->counts[1][blockIdx.x] = of_whole;
    }
}

/* Counts of blocks become where they begin; the sum goes on to the next launch (first: starts from 0). One block. */
KERNEL void sum_counts_kernel(unsigned blocks, int first, int last, struct tagcb_scratch *scratch, size_t *entries)
{
    __shared__ uint64_t part[TAGCB_BLOCK];
    const unsigned each = TAGCB_COUNTS / TAGCB_BLOCK, from = threadIdx.x * each;
    for (int row = 0; row < 2; row++) {
        uint64_t *counts = scratch->counts[row], sum = 0, carry = first ? 0 : scratch->carry[row];
        for (unsigned b = from; b < from + each && b < blocks; b++)
            sum += counts[b];
        part[threadIdx.x] = sum;
        for (unsigned step = 1; step < BLOCK; step *= 2) {
            __syncthreads();
            uint64_t other = threadIdx.x >= step ? part[threadIdx.x - step] : 0;
            __syncthreads();
            part[threadIdx.x] += other;
        }
        __syncthreads();
        uint64_t before = carry + part[threadIdx.x] - sum, all = carry + part[BLOCK - 1];
        for (unsigned b = from; b < from + each && b < blocks; b++) {
            uint64_t count = counts[b];
            counts[b] = before;
            before += count;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            scratch->carry[row] = all;
            if (row == 1 && last)
                *entries = all;
        }
    }
}

/* Loads this block's words. Ends with a barrier. */
DEVICE void load_words(const uint64_t *own, const uint64_t *whole, size_t words, struct place_shared *s)
{
    size_t w = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    unsigned turn = 0, t = threadIdx.x;
    uint32_t all;
    s->own[t] = w < words && own ? own[w] : 0;
    s->whole[t] = w < words ? whole[w] : 0;
    s->own_before[t] = threads_before(&s->totals, &turn, count_bits(s->own[t]), &all);
    s->whole_before[t] = threads_before(&s->totals, &turn, count_bits(s->whole[t]), &all);
    __syncthreads();
}

template <class T>
KERNEL void spread_kernel(const uint64_t *own, const uint64_t *whole, size_t words, const T *values, T *out,
                          const struct tagcb_scratch *scratch)
{
    __shared__ struct place_shared s;
    load_words(own, whole, words, &s);
    values += scratch->counts[0][blockIdx.x];
    out += scratch->counts[1][blockIdx.x];
    for (uint32_t i = threadIdx.x; i < BLOCK * 64; i += BLOCK) {
        uint64_t before = tagci_low_bits(i % 64), bit = (uint64_t)1 << i % 64;
        uint32_t w = i / 64;
        if (s.whole[w] & bit)
            out[s.whole_before[w] + count_bits(s.whole[w] & before)] =
                s.own[w] & bit ? values[s.own_before[w] + count_bits(s.own[w] & before)] : (T)0;
    }
}

template <class T>
KERNEL void unpack_kernel(const uint64_t *whole, size_t nbits, const T *packed, T *out,
                          const struct tagcb_scratch *scratch)
{
    __shared__ struct place_shared s;
    size_t first = (size_t)blockIdx.x * BLOCK * 64;
    load_words(NULL, whole, tagci_bitmap_words(nbits), &s);
    packed += scratch->counts[1][blockIdx.x];
    for (uint32_t i = threadIdx.x; i < BLOCK * 64 && first + i < nbits; i += BLOCK) {
        uint32_t w = i / 64;
        bool there = s.whole[w] >> i % 64 & 1;
        out[first + i] = there ? packed[s.whole_before[w] + count_bits(s.whole[w] & tagci_low_bits(i % 64))] : (T)0;
    }
}

#endif
