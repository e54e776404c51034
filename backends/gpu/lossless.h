/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What coding and decoding of gathers (core/lossless.h) share: one block of threads for each block of elements, whose
 * symbols stand in shared memory. What is one after the other by nature, and short, is one thread's: the choice of the
 * method, code lengths, their description. The host is asked nothing.
 *
 * Bytes that move for each element of b bytes, c of them coded: encoding reads it up to four times, of which caches serve
 * all but the first, and the memory likewise: 2 b + c, and 2 b more where the element and the memory are written;
 * decoding c + b of memory in, and b or 2 b out. */
#ifndef TAGCB_GPU_LOSSLESS_H
#define TAGCB_GPU_LOSSLESS_H

#include "backends/gpu/device.h"
#include "backend/backend.h"
#include "core/lossless_choice.h"
#include "core/lossless_code.h"

#define BODY_HEADER TAGCI_LOSSLESS_HEADER

template <int TYPE> struct gathered {
    typedef uint16_t word;
};
template <> struct gathered<TAGCI_F32> {
    typedef uint32_t word;
};
template <> struct gathered<TAGCI_F64> {
    typedef uint64_t word;
};

/* This thread's share of [0, n): consecutive. */
DEVICE void share_of(uint32_t n, uint32_t *from, uint32_t *to)
{
    uint32_t each = (n + BLOCK - 1) / BLOCK, at = threadIdx.x * each;
    *from = at < n ? at : n;
    *to = n - *from < each ? n : *from + each;
}

DEVICE uint32_t get16(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

DEVICE void put16(unsigned char *at, uint32_t x)
{
    at[0] = (unsigned char)x;
    at[1] = (unsigned char)(x >> 8);
}

template <class W> DEVICE W zigzag(W now, W before)
{
    W d = (W)(now - before);
    return (W)((W)(d << 1) ^ (W) - (W)(d >> (8 * sizeof(W) - 1)));
}

/* The symbol of an element, and its raw bits. c: EXPONENTS or CHANGE. */
template <int TYPE>
DEVICE uint8_t split(const struct tagci_lossless_choice *c, typename gathered<TYPE>::word now,
                     typename gathered<TYPE>::word before, typename gathered<TYPE>::word *raw)
{
    typedef typename gathered<TYPE>::word W;
    const unsigned m = tagci_lossless_mantissa(TYPE), w = 8 * sizeof(W);
    if (c->method == TAGCI_LOSSLESS_EXPONENTS) {
        unsigned e = (unsigned)((W)(now << 1) >> (m + 1));
        *raw = (W)((now & (((W)1 << m) - 1)) | (W)((W)(now >> (w - 1)) << m));
        return TYPE == TAGCI_F64 ? tagci_lossless_symbol(e, c->base) : (uint8_t)e;
    }
    W z = zigzag(now, before), high = (W)(z >> c->r);
    *raw = z;
    return (uint8_t)(high < 255 ? high : 255);
}

/* The element of a symbol that is no escape. */
template <int TYPE>
DEVICE typename gathered<TYPE>::word join(const struct tagci_lossless_choice *c, uint8_t symbol,
                                          typename gathered<TYPE>::word raw, typename gathered<TYPE>::word before)
{
    typedef typename gathered<TYPE>::word W;
    const unsigned m = tagci_lossless_mantissa(TYPE), w = 8 * sizeof(W);
    if (c->method == TAGCI_LOSSLESS_EXPONENTS) {
        W e = TYPE == TAGCI_F64 && symbol ? (W)(symbol + c->base) : (W)symbol;
        return (W)((raw & (((W)1 << m) - 1)) | (W)((W)(raw >> m) << (w - 1)) | (W)(e << m));
    }
    W z = (W)((W)((W)symbol << c->r) | raw);
    return (W)(before + (W)((W)(z >> 1) ^ (W) - (W)(z & 1)));
}

#endif
