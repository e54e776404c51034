/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The pass that decides what is kept. One block goes through one chunk, tile by tile, so that the number of elements kept
 * so far is at hand and all comes out in index order; gradient and residual are read once. A wave has consecutive
 * elements of a tile, and its ballots are words of the bitmap. */
#ifndef TAGCB_GPU_SPARSIFY_H
#define TAGCB_GPU_SPARSIFY_H

#include "backends/gpu/element.h"

#define TILE(E) ((unsigned)(TAGCB_BLOCK * E::items))
#define RUNS_NEAR 64 /* runs that are looked at in shared memory */

struct pass_shared {
    uint32_t bits[TAGCI_CHUNK_MAX / 32]; /* of what is kept */
    struct totals totals;
    struct tagci_run runs[RUNS_NEAR];
    /* of each wave, where there are ties: the run that it ends in begins at `begin`, and `tail` ties of it are here */
    uint32_t begin[WAVES_MOST], tail[WAVES_MOST];
};

/* The run that a thread is at, and the one that comes next. */
template <int TYPE> struct cursor {
    size_t next;
    uint32_t begin, end;
    typename element<TYPE>::key key;
    uint64_t ties;
};

/* A thread's way through a chunk; what does not depend on the thread is the same for all. */
template <int TYPE> struct pass {
    struct pass_shared *shared;
    const struct tagci_chunk *chunk;
    uint32_t n, kept;
    unsigned turn;
    const struct tagci_run *runs;
    size_t nruns;
    struct cursor<TYPE> at;
    /* ties seen in the run that began at carry_begin and went past the end of a tile */
    uint32_t carry, carry_begin;
};

/* What a thread has of a tile. */
template <int TYPE> struct tile {
    typename element<TYPE>::work v[element<TYPE>::items];
    uint64_t kept[element<TYPE>::items]; /* of the wave, a bit for each lane */
    uint32_t before;                     /* kept elements of the chunk before this wave's */
    uint32_t all;                        /* kept elements of the tile */
};

/* First element of this wave in the tile that begins at `start`. */
template <int TYPE> DEVICE uint32_t first_of_wave(uint32_t start)
{
    return start + wave_of() * WAVE * element<TYPE>::items;
}

template <int TYPE>
DEVICE void pass_begin(struct pass<TYPE> *p, struct pass_shared *shared, const struct tagci_chunk *c)
{
    p->shared = shared;
    p->chunk = c;
    p->n = (uint32_t)c->n;
    p->kept = 0;
    p->turn = 0;
    p->runs = c->runs;
    p->nruns = c->all ? 0 : c->nruns;
    p->at.next = p->at.begin = p->at.end = 0;
    p->at.key = 0;
    p->at.ties = 0;
    p->carry = p->carry_begin = 0;
    __syncthreads(); /* nobody looks at the shared memory any more */
    if (p->nruns <= RUNS_NEAR) {
        for (size_t i = threadIdx.x; i < p->nruns; i += BLOCK)
            shared->runs[i] = p->runs[i];
        p->runs = shared->runs;
    }
    __syncthreads();
}

/* Goes on to the run of element i; false: runs that do not cover the chunk. */
template <int TYPE> DEVICE bool run_of(const struct pass<TYPE> *p, struct cursor<TYPE> *at, uint32_t i)
{
    typedef typename element<TYPE>::key K;
    const K inf = element<TYPE>::inf;
    while (i >= at->end && at->next < p->nruns) {
        const struct tagci_run *r = &p->runs[at->next++];
        at->begin = at->end;
        at->end += (uint32_t)r->n;
        bool endless = r->cut.key >= inf; /* keeps Inf and NaN, and nothing else */
        at->key = endless ? inf - 1 : (K)r->cut.key;
        at->ties = endless ? 0 : r->cut.ties;
    }
    return i < at->end;
}

/* Bits [from, to) of a wave's elements, which stand in `of`, a ballot for each item. */
template <int TYPE> DEVICE uint32_t count_between(const uint64_t *of, uint32_t from, uint32_t to)
{
    uint32_t count = 0;
    for (unsigned j = 0; j < element<TYPE>::items; j++) {
        uint32_t low = j * WAVE, a = from > low ? from - low : 0, b = to > low ? to - low : 0;
        count += count_bits(of[j] & tagci_low_bits(b) & ~tagci_low_bits(a));
    }
    return count;
}

/* Ties that count for a run and stand in earlier waves, back to where it begins. */
template <int TYPE>
DEVICE uint32_t ties_carried(const struct pass<TYPE> *p, uint32_t start, unsigned wave, uint32_t run_begin)
{
    const struct pass_shared *s = p->shared;
    uint32_t sum = 0, first = start + wave * WAVE * element<TYPE>::items;
    while (first > start && run_begin < first) {
        sum += s->tail[--wave];
        first -= WAVE * element<TYPE>::items;
    }
    return run_begin < start && p->carry_begin == run_begin ? sum + p->carry : sum;
}

/* Where the keys of a tile equal their cuts, and not all such elements are kept: the first ones are, in index order.
 * tied: of this thread's items; at: where it was before the tile. Adds to what is kept. */
template <int TYPE>
DEVICE uint32_t break_ties(struct pass<TYPE> *p, uint32_t start, uint32_t tied, struct cursor<TYPE> at)
{
    typedef element<TYPE> E;
    struct pass_shared *s = p->shared;
    uint32_t first = first_of_wave<TYPE>(start), keep = 0;
    uint32_t here = first < p->n ? p->n - first : 0; /* elements of this wave */
    uint64_t of[E::items];
    here = here < WAVE * E::items ? here : WAVE * E::items;
    for (unsigned j = 0; j < E::items; j++)
        of[j] = wave_ballot(tied >> j & 1);
    /* a lane's run is now that of its last element */
    uint32_t last_begin = wave_from(p->at.begin, here ? (here - 1) % WAVE : 0);
    if (lane_of() == 0) {
        s->begin[wave_of()] = last_begin;
        s->tail[wave_of()] = here ? count_between<TYPE>(of, last_begin > first ? last_begin - first : 0, here) : 0;
    }
    __syncthreads();
    for (unsigned j = 0; j < E::items; j++) {
        if (!(tied >> j & 1))
            continue;
        run_of<TYPE>(p, &at, first + j * WAVE + lane_of());
        uint32_t rank = count_between<TYPE>(of, at.begin > first ? at.begin - first : 0, j * WAVE + lane_of());
        if (at.begin < first)
            rank += ties_carried<TYPE>(p, start, wave_of(), at.begin);
        keep |= (uint32_t)(rank < at.ties) << j;
    }
    uint32_t end = p->n < start + TILE(E) ? p->n : start + TILE(E);
    unsigned waves = (end - start + WAVE * E::items - 1) / (WAVE * E::items);
    uint32_t run_begin = s->begin[waves - 1];
    p->carry = ties_carried<TYPE>(p, start, waves, run_begin);
    p->carry_begin = run_begin;
    return keep;
}

/* Values of the tile that begins at `start`, and which of them are kept. Has barriers. */
template <int TYPE> DEVICE void choose(struct pass<TYPE> *p, uint32_t start, struct tile<TYPE> *t)
{
    typedef element<TYPE> E;
    const struct tagci_chunk *c = p->chunk;
    uint32_t first = first_of_wave<TYPE>(start), keep = 0, tied = 0, count = 0;
    struct cursor<TYPE> at = p->at;
    for (unsigned j = 0; j < E::items; j++) {
        uint32_t i = first + j * WAVE + lane_of();
        t->v[j] = i < p->n ? input<TYPE>(c->in, c->residual, i) : 0;
    }
    for (unsigned j = 0; j < E::items; j++) {
        uint32_t i = first + j * WAVE + lane_of();
        bool yes = i < p->n && c->all, tie = false;
        if (i < p->n && !c->all && run_of<TYPE>(p, &p->at, i)) {
            typename E::key key = key_of<E>(t->v[j]);
            yes = key > p->at.key || (key == p->at.key && p->at.ties == UINT64_MAX);
            tie = key == p->at.key && p->at.ties > 0 && !yes;
        }
        keep |= (uint32_t)yes << j;
        tied |= (uint32_t)tie << j;
        t->kept[j] = wave_ballot(yes);
        count += count_bits(t->kept[j]);
    }
    const uint32_t some_tied = (uint32_t)1 << 24; /* no count reaches it */
    count += wave_ballot(tied != 0) ? some_tied : 0;
    uint32_t all, before = waves_before(&p->shared->totals, &p->turn, count, &all);
    if (all >= some_tied) {
        keep |= break_ties<TYPE>(p, start, tied, at);
        count = 0;
        for (unsigned j = 0; j < E::items; j++) {
            t->kept[j] = wave_ballot(keep >> j & 1);
            count += count_bits(t->kept[j]);
        }
        before = waves_before(&p->shared->totals, &p->turn, count, &all);
    }
    t->before = p->kept + before % some_tied;
    t->all = all;
    p->kept += all;
    for (unsigned j = 0; j < E::items && lane_of() == 0; j++) {
        uint32_t w = (first + j * WAVE) / 32;
        if (w < TAGCI_CHUNK_MAX / 32) {
            p->shared->bits[w] = (uint32_t)t->kept[j];
            if (WAVE == 64)
                p->shared->bits[w + 1] = (uint32_t)(t->kept[j] >> 32);
        }
    }
}

/* A kept value in its form, to out[at]; returns what stays of it. */
template <class E> DEVICE typename E::work emit(enum tagci_value form, typename E::work v, void *out, uint32_t at)
{
    typename E::key key = key_of<E>(v);
    bool finite = key < E::inf;
    uint16_t code;
    typename E::work sent;
    if (form == TAGCI_VALUE_NATIVE) {
        ((typename E::work *)out)[at] = key > E::inf ? nan_of<E>() : v;
        return 0;
    }
    if (form == TAGCI_VALUE_BFLOAT16) {
        code = tagci_bf16_saturate(E::to_bf16(v), finite);
        sent = tagci_bf16_to_f32(code);
    } else {
        code = tagci_f16_saturate(E::to_f16(v), finite);
        sent = tagci_f16_to_f32(code);
    }
    ((uint16_t *)out)[at] = code;
    return finite ? v - sent : 0;
}

/* Values in a form of one code each to `out`, side by side, or (whole) each at its place with zeros between; what stays
 * to the residual; what is kept to the shared bits. Returns how many are kept. */
template <int TYPE>
DEVICE uint32_t plain_pass(const struct tagci_chunk *c, struct pass_shared *shared, enum tagci_value form, bool whole,
                           void *out)
{
    typedef element<TYPE> E;
    typedef typename E::work W;
    struct pass<TYPE> p;
    W *rest = (W *)c->residual_out;
    pass_begin<TYPE>(&p, shared, c);
    for (uint32_t start = 0; start < p.n; start += TILE(E)) {
        struct tile<TYPE> t;
        choose<TYPE>(&p, start, &t);
        uint32_t rank = t.before;
        for (unsigned j = 0; j < E::items; j++) {
            uint32_t i = first_of_wave<TYPE>(start) + j * WAVE + lane_of();
            W stays = t.v[j];
            if (t.kept[j] >> lane_of() & 1)
                stays = emit<E>(form, stays, out, whole ? i : rank + count_bits(t.kept[j] & lanes_before()));
            else if (whole && i < p.n)
                emit<E>(form, 0, out, i);
            if (rest && i < p.n)
                rest[i] = stays + 0; /* -0 becomes +0 */
            rank += count_bits(t.kept[j]);
        }
    }
    __syncthreads();
    return p.kept;
}

DEVICE void put_bitmap(const struct tagci_chunk *c, const struct pass_shared *shared, void *to)
{
    for (size_t w = threadIdx.x; w < tagci_bitmap_words(c->n) * 2; w += BLOCK)
        ((uint32_t *)to)[w] = shared->bits[w];
}

template <int TYPE> KERNEL void sparsify_kernel(struct tagci_chunk *chunks)
{
    __shared__ struct pass_shared shared;
    struct tagci_chunk *c = &chunks[blockIdx.x];
    uint32_t kept = plain_pass<TYPE>(c, &shared, TAGCI_VALUE_NATIVE, false, c->values);
    put_bitmap(c, &shared, c->bitmap);
    if (threadIdx.x == 0)
        c->kept = kept;
}

#endif
