/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Bitmaps of positions: bit i is bit i % 64 of word i / 64. */
#ifndef TAGCI_CORE_BITMAP_H
#define TAGCI_CORE_BITMAP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/type.h"

TAGCI_INLINE size_t tagci_bitmap_words(size_t bits)
{
    return bits / 64 + (bits % 64 != 0);
}

/* The lowest n bits, n from 0 to 64. */
TAGCI_INLINE uint64_t tagci_low_bits(size_t n)
{
    return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

/* Bits up to the highest that is set; 0 for 0. */
TAGCI_INLINE unsigned tagci_bit_length(uint64_t x)
{
#ifdef __CUDA_ARCH__
    return 64 - (unsigned)__clzll((long long)x);
#else
    return x ? 64 - (unsigned)__builtin_clzll(x) : 0;
#endif
}

/* Word i of a bitmap at any address. */
static inline uint64_t tagci_bitmap_word(const void *bitmap, size_t i)
{
    uint64_t w;
    memcpy(&w, (const unsigned char *)bitmap + i * 8, 8);
    return w;
}

static inline void tagci_bitmap_put(void *bitmap, size_t i, uint64_t w)
{
    memcpy((unsigned char *)bitmap + i * 8, &w, 8);
}

/* Bits that are set. Counted in bytes, of at most 31 words before a byte could overflow: compilers make vectors of that, and
 * where no instruction counts bits they would otherwise call a function for each word. */
static inline size_t tagci_bitmap_count(const void *bitmap, size_t words)
{
    const uint64_t pairs = UINT64_C(0x5555555555555555), fours = UINT64_C(0x3333333333333333);
    const uint64_t bytes = UINT64_C(0x0f0f0f0f0f0f0f0f), halves = UINT64_C(0x00ff00ff00ff00ff);
    size_t count = 0;
    for (size_t i = 0; i < words;) {
        size_t end = words - i < 31 ? words : i + 31;
        uint64_t sums = 0;
        for (; i < end; i++) {
            uint64_t x = tagci_bitmap_word(bitmap, i);
            x -= x >> 1 & pairs;
            x = (x & fours) + (x >> 2 & fours);
            sums += (x + (x >> 4)) & bytes;
        }
        sums = (sums & halves) + (sums >> 8 & halves);
        count += (size_t)(sums * UINT64_C(0x0001000100010001) >> 48);
    }
    return count;
}

#endif
