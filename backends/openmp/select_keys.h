/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The r-th largest of an array of keys. A part of select.c. */
#ifndef TAGCB_OPENMP_SELECT_KEYS_H
#define TAGCB_OPENMP_SELECT_KEYS_H

#include <string.h>

#include "backends/openmp/openmp.h"

#define INLINE static inline __attribute__((always_inline))

#define BINS 2048

static inline uint64_t key_at(const void *keys, size_t i, size_t width)
{
    return width == 8 ? ((const uint64_t *)keys)[i] : ((const uint32_t *)keys)[i];
}

static inline void put_key(void *keys, size_t i, size_t width, uint64_t key)
{
    if (width == 8)
        ((uint64_t *)keys)[i] = key;
    else
        ((uint32_t *)keys)[i] = (uint32_t)key;
}

static int shift_for(uint64_t lo, uint64_t hi, uint64_t bins)
{
    int shift = 0;
    while ((hi - lo) >> shift >= bins)
        shift++;
    return shift;
}

/* The bin that holds the r-th largest, r counted from 1 and at most what is in the bins; *higher: keys in bins above. */
static int find_bin(const uint64_t *bins, int count, size_t r, size_t *higher)
{
    int i = count;
    *higher = 0;
    while (*higher + bins[--i] < r)
        *higher += bins[i];
    return i;
}

/* The r-th largest of n keys in [lo, hi], by bins of keys: however they are spread. Adds to *greater how many are
 * greater; *equal: how many are equal. The array is used up. */
INLINE uint64_t select_by_bins(void *keys, size_t n, size_t width, uint64_t lo, uint64_t hi, size_t r, size_t *greater,
                               size_t *equal)
{
    uint64_t bins[BINS];
    size_t before = *greater;
    for (;;) {
        int count = n < 8192 ? 256 : BINS, shift = shift_for(lo, hi, (uint64_t)count);
        size_t higher, same = 0;
        memset(bins, 0, (size_t)count * sizeof *bins);
        for (size_t i = 0; i < n; i++)
            bins[(key_at(keys, i, width) - lo) >> shift]++;
        uint64_t bin = (uint64_t)find_bin(bins, count, r - (*greater - before), &higher);
        *greater += higher;
        if (shift == 0) {
            *equal = bins[bin];
            return lo + bin;
        }
        for (size_t i = 0; i < n; i++) {
            uint64_t key = key_at(keys, i, width);
            put_key(keys, same, width, key);
            same += (key - lo) >> shift == bin;
        }
        n = same;
        uint64_t first = lo + (bin << shift), last = first + (((uint64_t)1 << shift) - 1);
        lo = first;
        hi = last < hi ? last : hi;
    }
}

#define FEW 33 /* keys that are sorted as they are; also how many are sampled */

INLINE void sort_down(uint64_t *keys, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        size_t j = i;
        for (; j > 0 && keys[j - 1] < key; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* Numbers of keys above hi, and from lo on. */
INLINE void count_sides(const void *keys, size_t n, size_t width, uint64_t lo, uint64_t hi, size_t *above, size_t *from)
{
    size_t over = 0, more = 0;
    if (width == 8) {
        for (size_t i = 0; i < n; i++) {
            over += ((const int64_t *)keys)[i] > (int64_t)hi;
            more += ((const int64_t *)keys)[i] >= (int64_t)lo;
        }
    } else {
        for (size_t i = 0; i < n;) { /* 32-bit counts, as wide as the keys */
            size_t stop = n - i < (size_t)1 << 30 ? n : i + ((size_t)1 << 30);
            int32_t part_over = 0, part_more = 0;
            for (; i < stop; i++) {
                part_over += ((const int32_t *)keys)[i] > (int32_t)hi;
                part_more += ((const int32_t *)keys)[i] >= (int32_t)lo;
            }
            over += (size_t)part_over;
            more += (size_t)part_more;
        }
    }
    *above = over;
    *from = more;
}

/* Keys in [lo, hi] move to the front, by the kernel that collects them from data: a key is a value. */
static size_t compact(void *keys, size_t n, size_t width, uint64_t lo, uint64_t hi)
{
    size_t kept = 0, unused = 0;
    for (size_t i = 0; i < n; i += TAGCB_COLLECT_MAX) {
        size_t m = n - i < TAGCB_COLLECT_MAX ? n - i : TAGCB_COLLECT_MAX;
        kept += tagcb_kernels_now()->collect(width == 8 ? TAGCI_F64 : TAGCI_F32, (char *)keys + i * width, NULL, m, lo,
                                             hi, (char *)keys + kept * width, &unused, &unused);
    }
    return kept;
}

/* The same by narrowing: a small sorted sample gives a bracket around the place; what the bracket, or the side of it
 * where the key is, does not hold goes. Where that does not help (equal keys), bins. */
INLINE uint64_t select_key_of(void *keys, size_t n, size_t width, uint64_t lo, uint64_t hi, size_t r, size_t *greater,
                              size_t *equal)
{
    uint64_t some[FEW];
    *greater = 0;
    while (n > FEW) {
        for (size_t i = 0; i < FEW; i++)
            some[i] = key_at(keys, n / FEW * i + n % FEW * i / FEW, width);
        sort_down(some, FEW);
        size_t place = (size_t)((double)r / (double)n * FEW), above, from, before = n;
        uint64_t low = place + 4 < FEW ? some[place + 4] : lo, high = place > 4 ? some[place - 5] : hi;
        count_sides(keys, n, width, low, high, &above, &from);
        if (r <= above) {
            lo = high + 1;
            n = above;
        } else if (r > from) {
            hi = low - 1;
            r -= from;
            *greater += from;
            n -= from;
        } else {
            lo = low;
            hi = high;
            r -= above;
            *greater += above;
            n = from - above;
        }
        if (lo == hi) {
            *equal = n;
            return lo;
        }
        compact(keys, before, width, lo, hi);
        if (n > before - before / 4)
            return select_by_bins(keys, n, width, lo, hi, r, greater, equal);
    }
    for (size_t i = 0; i < n; i++)
        some[i] = key_at(keys, i, width);
    sort_down(some, n);
    size_t first = r - 1, last = r;
    while (first > 0 && some[first - 1] == some[r - 1])
        first--;
    while (last < n && some[last] == some[r - 1])
        last++;
    *greater += first;
    *equal = last - first;
    return some[r - 1];
}

static uint64_t select_key(void *keys, size_t n, size_t width, uint64_t lo, uint64_t hi, size_t r, size_t *greater,
                           size_t *equal)
{
    return width == 8 ? select_key_of(keys, n, 8, lo, hi, r, greater, equal)
                      : select_key_of(keys, n, 4, lo, hi, r, greater, equal);
}

#endif
