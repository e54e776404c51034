/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * How a block is coded: by what a sample of it says. What the host and the kernels of a device share. */
#ifndef TAGCI_CORE_LOSSLESS_CHOICE_H
#define TAGCI_CORE_LOSSLESS_CHOICE_H

#include "core/bitmap.h"
#include "core/lossless.h"

#define TAGCI_LOSSLESS_SMALL 256        /* blocks below this gain nothing: the description of the code eats it up */
#define TAGCI_LOSSLESS_SAMPLES 16       /* stretches of the sample, evenly spaced */
#define TAGCI_LOSSLESS_SAMPLE_LENGTH 32 /* elements of each */
/* Flags of a body */
#define TAGCI_LOSSLESS_PAIRED 1
#define TAGCI_LOSSLESS_UNIFORM 2

struct tagci_lossless_sample {
    uint32_t exponents[256], lengths[65]; /* of symbols, and of z */
    size_t n;
};

struct tagci_lossless_choice {
    int method, paired;
    unsigned r, base;
};

TAGCI_INLINE unsigned tagci_lossless_mantissa(int type)
{
    switch (type) {
    case TAGCI_F32:
        return 23;
    case TAGCI_F16:
        return 10;
    case TAGCI_BF16:
        return 7;
    case TAGCI_F64:
        return 52;
    default:
        return 0;
    }
}

TAGCI_INLINE size_t tagci_lossless_raw_bytes(size_t n, unsigned r)
{
    return r / 16 * 2 * n + (r & 8 ? n : 0) + (n + 7) / 8 * (r % 8);
}

/* The symbol of a double's exponent. */
TAGCI_INLINE uint8_t tagci_lossless_symbol(unsigned exponent, unsigned base)
{
    return (uint8_t)(exponent == 0 ? 0 : exponent - base - 1 < 254 ? exponent - base : 255);
}

/* log2(x) * 256, x > 0, in integers: choices must not depend on a mathematical library. Error below 0.01 bits. */
TAGCI_INLINE uint32_t tagci_log2_256(uint32_t x)
{
    uint32_t k = tagci_bit_length(x) - 1;
    uint32_t f = (uint32_t)(((uint64_t)x << 8 >> k) - 256);
    return (k << 8) + f + (f * (256 - f) * 22 >> 14);
}

/* 256 * bits that a good code takes for these counts, n in all; bits beyond the least, for what a sample does not see,
 * included. */
TAGCI_INLINE uint64_t tagci_entropy_256(const uint32_t *count, size_t symbols, size_t n)
{
    uint64_t sum = 0;
    size_t used = 0;
    for (size_t s = 0; s < symbols; s++)
        if (count[s]) {
            sum += (uint64_t)count[s] * (tagci_log2_256((uint32_t)n) - tagci_log2_256(count[s]));
            used++;
        }
    return sum + (used ? used - 1 : 0) * 185; /* (used - 1) / (2 ln 2) bits */
}

/* Base of a double's exponent symbols, from a few elements, counted in 32 classes of 64 neighbouring exponents: the class that
 * most of them have stands in the middle. */
TAGCI_INLINE unsigned tagci_lossless_base(const uint32_t count[32])
{
    unsigned best = 0;
    for (unsigned k = 1; k < 32; k++)
        best = count[k] > count[best] ? k : best;
    return best < 2 ? 0 : 64 * best - 96;
}

/* before: whether there is a memory. */
TAGCI_INLINE struct tagci_lossless_choice tagci_lossless_choose(int type, int before, unsigned base,
                                                                const struct tagci_lossless_sample *s)
{
    const unsigned m = tagci_lossless_mantissa(type), w = 8 * (unsigned)tagci_lossless_size(type);
    struct tagci_lossless_choice c = {TAGCI_LOSSLESS_RAW, 0, 0, base};
    uint64_t raw = (uint64_t)s->n * w << 8, best = raw - (raw >> 6);
    const unsigned r = type == TAGCI_LOSSLESS_BYTES ? 0 : m + 1;
    uint64_t cost = tagci_entropy_256(s->exponents, 256, s->n) + ((uint64_t)s->n * r << 8);
    if (type == TAGCI_F64)
        cost += (uint64_t)s->exponents[255] * w << 8;
    if (cost < best) {
        best = cost;
        c.method = TAGCI_LOSSLESS_EXPONENTS;
        c.r = r;
    }
    if (!before)
        return c;
    /* The lengths of z say how many raw bits are best: with r of them, lengths up to r become one symbol, and those
     * above r + 8 escapes. Within a length all z are held to be alike. */
    unsigned low = 0;
    for (size_t above = s->n; low < w - 8; low++) {
        above = 0;
        for (unsigned l = low + 9; l <= w; l++)
            above += s->lengths[l];
        if (above * 32 < s->n)
            break;
    }
    for (unsigned q = low; q <= w - 8 && q < low + 6; q++) {
        uint32_t merged[10];
        uint64_t bits = 0;
        for (unsigned k = 0; k < 10; k++)
            merged[k] = 0;
        for (unsigned l = 0; l <= w; l++) {
            unsigned k = l <= q ? 0 : l <= q + 8 ? l - q : 9;
            merged[k] += s->lengths[l];
            bits += (uint64_t)s->lengths[l] * (k == 0 ? q : k < 9 ? l - 1 : w + q);
        }
        cost = tagci_entropy_256(merged, 10, s->n) + (bits << 8);
        if (q % 8) /* odd bits take time, and what is alike within a length is not quite alike */
            cost += s->n << 5;
        if (cost < best) {
            best = cost;
            c.method = TAGCI_LOSSLESS_CHANGE;
            c.r = q;
            c.paired = merged[0] * 20 > s->n * 11;
        }
    }
    return c;
}

#endif
