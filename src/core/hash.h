/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Integer hashing. */
#ifndef TAGCI_CORE_HASH_H
#define TAGCI_CORE_HASH_H

#include <stdint.h>

#include "core/type.h"

/* Finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection in which every input bit changes every output bit with
 * probability close to one half. */
TAGCI_INLINE uint64_t tagci_hash_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Hash of the i-th item under a seed. The odd constant is the fractional part of the golden ratio; it keeps small seeds
 * and small items from meeting. */
TAGCI_INLINE uint64_t tagci_hash(uint64_t seed, uint64_t i)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    return tagci_hash_mix(tagci_hash_mix(seed + golden) + (i + 1) * golden);
}

/* 21 random bits -> 0 .. n-1 without a division. Some results are likelier than others by less than n / 2^21 parts, which
 * is nothing while n is some thousands. */
TAGCI_INLINE uint32_t tagci_hash_below(uint64_t bits, uint32_t n)
{
    return (uint32_t)(((bits & 0x1fffff) * n) >> 21);
}

#endif
