/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * CRC32C by a block: every thread takes a stretch, and its remainder is moved to where it belongs by a multiplication.
 * Polynomials modulo 0x82f63b78 (reflected) have the coefficient of x^0 in bit 31. */
#ifndef TAGCB_GPU_CRC_H
#define TAGCB_GPU_CRC_H

#include "backends/gpu/device.h"

struct crc_shared {
    uint32_t remainders[256]; /* of a byte */
    uint32_t sum;
};

DEVICE uint32_t crc_step(uint32_t r)
{
    return r >> 1 ^ (r & 1 ? 0x82f63b78u : 0);
}

DEVICE uint32_t crc_multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (int i = 31; i >= 0; i--) {
        product ^= a >> i & 1 ? b : 0;
        b = crc_step(b);
    }
    return product;
}

/* CRC32C of `words` 64-bit words in the memory of the device, the same for all threads. Has barriers. */
DEVICE uint32_t crc_of(struct crc_shared *s, const uint64_t *at, uint32_t words)
{
    for (unsigned b = threadIdx.x; b < 256; b += BLOCK) {
        uint32_t r = b;
        for (int i = 0; i < 8; i++)
            r = crc_step(r);
        s->remainders[b] = r;
    }
    if (threadIdx.x == 0)
        s->sum = 0;
    __syncthreads();
    uint32_t each = (words + BLOCK - 1) / BLOCK, from = threadIdx.x * each, to = from + each;
    uint32_t r = threadIdx.x == 0 ? 0xffffffffu : 0;
    to = to < words ? to : words;
    for (uint32_t w = from; w < to; w++) {
        uint64_t word = at[w];
        for (int i = 0; i < 8; i++, word >>= 8)
            r = r >> 8 ^ s->remainders[(r ^ (uint32_t)word) & 255];
    }
    uint32_t power = (uint32_t)1 << 23; /* x^8 */
    for (int i = 0; i < 3; i++)
        power = crc_multiply(power, power);
    for (uint32_t after = from < to ? words - to : 0; after; after >>= 1) { /* times x^64 for each word behind */
        if (after & 1)
            r = crc_multiply(r, power);
        power = crc_multiply(power, power);
    }
    for (unsigned step = WAVE / 2; step; step /= 2)
        r ^= wave_from(r, lane_of() ^ step);
    if (lane_of() == 0)
        atomicXor(&s->sum, r);
    __syncthreads();
    return ~s->sum;
}

#endif
