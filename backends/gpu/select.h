/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Exact cut of the k largest magnitudes: keys are counted in bins, and the bin that holds the k-th largest is the next
 * bracket, until a bin is one key. The second pass collects the keys of its bracket if there is room, and later passes
 * look at these alone. Counts do not depend on an order, so atomics may add them up. With a sample (core/sample.h) the
 * passes go over the sample alone, which is a sixteenth of the data at most. */
#ifndef TAGCB_GPU_SELECT_H
#define TAGCB_GPU_SELECT_H

#include "backends/gpu/element.h"
#include "backends/gpu/scratch.h"
#include "core/sample.h"

/* Elements that one block looks at by itself. */
#ifndef SELECT_SHORT
#define SELECT_SHORT 32768
#endif

struct select_shared {
    uint32_t bins[TAGCB_SELECT_BINS], over, zeros, last;
    uint64_t part[TAGCB_BLOCK];
};

DEVICE int shift_for(uint64_t lo, uint64_t hi)
{
    int shift = 0;
    while ((hi - lo) >> shift >= TAGCB_SELECT_BINS)
        shift++;
    return shift;
}

template <int TYPE> DEVICE void search_begin(struct tagcb_search *s, uint64_t runs)
{
    s->runs = runs;
    s->lo = 1;
    s->hi = element<TYPE>::inf - 1;
    s->shift = shift_for(s->lo, s->hi);
    s->above = s->keys = 0;
    s->round = s->done = 0;
    s->source = TAGCB_FROM_DATA;
}

/* Elements that are looked at, the i-th of them, and how many of them are to be kept. */
DEVICE size_t looked_at(const struct tagcb_search *s, const struct tagci_choice *c)
{
    return s->runs ? (size_t)s->runs * TAGCI_SAMPLE_RUN : c->n;
}
DEVICE size_t place_of(const struct tagcb_search *s, const struct tagci_choice *c, size_t i)
{
    return s->runs ? tagci_sample_at(c->n, s->runs, i / TAGCI_SAMPLE_RUN) + i % TAGCI_SAMPLE_RUN : i;
}
DEVICE uint64_t wanted(const struct tagcb_search *s, const struct tagci_choice *c)
{
    return s->runs ? tagci_sample_keep(c->n, c->k, s->runs) : c->k;
}

/* Counts the keys of this block's share into the shared bins. keys: room for those that are collected. */
template <int TYPE>
DEVICE void search_count(struct tagcb_search *s, const struct tagci_choice *c, typename element<TYPE>::key *keys,
                         struct select_shared *shared)
{
    typedef element<TYPE> E;
    typedef typename E::key K;
    const K lo = (K)s->lo, hi = (K)s->hi;
    const int shift = s->shift, source = s->source;
    const size_t n = source == TAGCB_FROM_KEYS ? s->keys : looked_at(s, c);
    uint32_t over = 0, zeros = 0;
    for (unsigned b = threadIdx.x; b < TAGCB_SELECT_BINS; b += BLOCK)
        shared->bins[b] = 0;
    if (threadIdx.x == 0)
        shared->over = shared->zeros = 0;
    __syncthreads();
    for (size_t from = (size_t)blockIdx.x * BLOCK; from < n; from += (size_t)gridDim.x * BLOCK) {
        size_t i = from + threadIdx.x;
        K key = i >= n                      ? 0
                : source == TAGCB_FROM_KEYS ? keys[i]
                                            : key_of<E>(input<TYPE>(c->in, c->residual, place_of(s, c, i)));
        bool inside = key >= lo && key <= hi;
        over += key > hi;
        zeros += i < n && key == 0;
        if (inside)
            atomicAdd(&shared->bins[(key - lo) >> shift], 1u);
        if (source == TAGCB_COLLECT) {
            uint64_t all = wave_ballot(inside), at = 0;
            if (lane_of() == 0 && all)
                at = add_up(&s->keys, count_bits(all));
            at = wave_from(at, 0);
            if (inside)
                keys[at + count_bits(all & lanes_before())] = key;
        }
    }
    atomicAdd(&shared->over, over);
    atomicAdd(&shared->zeros, zeros);
    __syncthreads();
}

/* From what a pass has counted: the answer, or the next bracket. By one block; room: for keys. Ends with a barrier. */
template <int TYPE, class BINS>
DEVICE void search_step(struct tagcb_search *s, struct tagci_choice *c, uint64_t room, BINS bins, uint64_t over,
                        uint64_t zeros, struct select_shared *shared)
{
    const uint64_t largest = element<TYPE>::inf - 1, k = wanted(s, c), nonzero = looked_at(s, c) - zeros;
    const uint64_t above = s->round ? s->above : over;
    const unsigned each = TAGCB_SELECT_BINS / TAGCB_BLOCK, top = TAGCB_SELECT_BINS - 1 - threadIdx.x * each;
    const bool first = s->round == 0;
    uint64_t sum = 0;
    for (unsigned b = 0; b < each; b++)
        sum += bins[top - b];
    shared->part[threadIdx.x] = sum;
    for (unsigned step = 1; step < BLOCK; step *= 2) {
        __syncthreads();
        uint64_t other = threadIdx.x >= step ? shared->part[threadIdx.x - step] : 0;
        __syncthreads();
        shared->part[threadIdx.x] += other;
    }
    __syncthreads();
    const uint64_t greater = above + shared->part[threadIdx.x] - sum; /* keys above this thread's bins */
    if (first && nonzero <= k) {
        if (threadIdx.x == 0) {
            c->cut.key = c->cut.ties = 0;
            c->above = nonzero;
            c->tied = 0;
            s->done = 1;
        }
    } else if (above >= k) { /* Inf and NaN alone are enough, and all of them stay; how many equal the largest below? */
        if (threadIdx.x == 0) {
            c->cut.key = largest;
            c->cut.ties = 0;
            c->above = s->above = above;
            c->tied = s->runs ? 0 : bins[0];
            s->done = !first || s->runs;
            s->lo = s->hi = largest;
            s->shift = 0;
            s->round++;
        }
    } else if (greater < k && k <= greater + sum) { /* one thread */
        uint64_t higher = greater;
        unsigned bin = top;
        while (higher + bins[bin] < k)
            higher += bins[bin--];
        uint64_t lo = s->lo + ((uint64_t)bin << s->shift), last = lo + (((uint64_t)1 << s->shift) - 1);
        uint64_t inside = bins[bin];
        if (s->shift == 0) {
            c->cut.key = lo;
            c->cut.ties = k - higher;
            c->above = k;
            c->tied = inside;
            s->done = 1;
        }
        if (s->source == TAGCB_COLLECT)
            s->source = TAGCB_FROM_KEYS;
        else if (s->source == TAGCB_FROM_DATA && inside <= room)
            s->source = TAGCB_COLLECT;
        s->above = higher;
        s->lo = lo;
        s->hi = last < s->hi ? last : s->hi;
        s->shift = shift_for(s->lo, s->hi);
        s->round++;
    }
    __syncthreads();
    if (threadIdx.x == 0 && s->done && s->runs) {
        if (tagci_sample_tied(c->tied, k)) {
            search_begin<TYPE>(s, 0);
        } else {
            c->cut.ties = c->cut.key ? UINT64_MAX : 0;
            c->above = c->tied = 0;
        }
    }
    __syncthreads();
}

/* A block for each stretch that is short. */
template <int TYPE> KERNEL void select_short_kernel(struct tagci_choice *choices)
{
    __shared__ struct select_shared shared;
    __shared__ struct tagcb_search search;
    struct tagci_choice c = choices[blockIdx.y], *answer = &choices[blockIdx.y];
    if (c.n > SELECT_SHORT)
        return;
    if (threadIdx.x == 0)
        search_begin<TYPE>(&search, 0);
    __syncthreads();
    while (!search.done) {
        search_count<TYPE>(&search, &c, NULL, &shared);
        search_step<TYPE>(&search, answer, 0, (const uint32_t *)shared.bins, shared.over, shared.zeros, &shared);
    }
}

template <int TYPE> KERNEL void select_begin_kernel(const struct tagci_choice *choice, struct tagcb_scratch *scratch)
{
    if (threadIdx.x == 0)
        search_begin<TYPE>(&scratch->search, tagci_sample_keep(choice->n, choice->k, choice->runs) ? choice->runs : 0);
}

/* One pass over a long stretch by many blocks; the last one to finish takes the step. */
template <int TYPE> KERNEL void select_pass_kernel(struct tagci_choice *choice, struct tagcb_scratch *scratch)
{
    typedef typename element<TYPE>::key K;
    __shared__ struct select_shared shared;
    struct tagcb_search *s = &scratch->search;
    if (s->done)
        return;
    search_count<TYPE>(s, choice, (K *)scratch->keys, &shared);
    for (unsigned b = threadIdx.x; b < TAGCB_SELECT_BINS; b += BLOCK)
        if (shared.bins[b])
            atomicAdd(&s->bins[b], (unsigned long long)shared.bins[b]);
    if (threadIdx.x == 0) {
        atomicAdd(&s->over, (unsigned long long)shared.over);
        atomicAdd(&s->zeros, (unsigned long long)shared.zeros);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        shared.last = atomicAdd(&s->blocks, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!shared.last)
        return;
    __threadfence();
    const volatile struct tagcb_search *found = s;
    search_step<TYPE>(s, choice, TAGCB_KEYS / sizeof(K), (const volatile unsigned long long *)found->bins, found->over,
                      found->zeros, &shared);
    for (unsigned b = threadIdx.x; b < TAGCB_SELECT_BINS; b += BLOCK)
        s->bins[b] = 0;
    if (threadIdx.x == 0) {
        s->over = s->zeros = 0;
        s->blocks = 0;
    }
}

/* Elements with a key; a row of blocks for each tally, the last one of which writes the sum. */
template <int TYPE> KERNEL void count_key_kernel(struct tagci_tally *tallies, struct tagcb_scratch *scratch)
{
    typedef element<TYPE> E;
    __shared__ uint32_t sum;
    struct tagci_tally *t = &tallies[blockIdx.y];
    const typename E::key key = (typename E::key)t->key;
    uint32_t count = 0;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    for (size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; i < t->n; i += (size_t)gridDim.x * BLOCK)
        count += key_of<E>(input<TYPE>(t->in, t->residual, i)) == key;
    atomicAdd(&sum, count);
    __syncthreads();
    if (threadIdx.x)
        return;
    add_up(&scratch->tallies[0][blockIdx.y], sum);
    __threadfence();
    if (add_up(&scratch->tallies[1][blockIdx.y], 1) == gridDim.x - 1) {
        t->count = add_up(&scratch->tallies[0][blockIdx.y], 0);
        scratch->tallies[0][blockIdx.y] = scratch->tallies[1][blockIdx.y] = 0;
    }
}

#endif
