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

static inline size_t tagci_bitmap_count(const void *bitmap, size_t words)
{
    size_t count = 0;
    for (size_t i = 0; i < words; i++)
        count += (size_t)__builtin_popcountll(tagci_bitmap_word(bitmap, i));
    return count;
}

#endif
