/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The 16-bit types, bit by bit in plain C: binary16 (5 exponent bits, 10 of mantissa) and bfloat16 (8 and 7).
 * Narrowing rounds to nearest, ties to even, and rounds once, from double too. A NaN becomes the one quiet NaN of the
 * form, so that bytes on the wire do not depend on whose NaN it was. */
#ifndef TAGCI_CORE_HALF_H
#define TAGCI_CORE_HALF_H

#include <stdint.h>
#include <string.h>

#include "core/type.h"

#define TAGCI_F16_MAX 0x7bff /* 65504 */
#define TAGCI_F16_INF 0x7c00
#define TAGCI_F16_NAN 0x7e00
#define TAGCI_BF16_MAX 0x7f7f
#define TAGCI_BF16_INF 0x7f80
#define TAGCI_BF16_NAN 0x7fc0
#define TAGCI_F32_NAN 0x7fc00000u
#define TAGCI_F64_NAN 0x7ff8000000000000u

TAGCI_INLINE uint32_t tagci_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

TAGCI_INLINE float tagci_f32_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

TAGCI_INLINE uint64_t tagci_f64_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

TAGCI_INLINE double tagci_f64_of(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

TAGCI_INLINE float tagci_bf16_to_f32(uint16_t h)
{
    return tagci_f32_of((uint32_t)h << 16);
}

TAGCI_INLINE float tagci_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    if (exponent == 31) /* a NaN becomes quiet, as in a processor's own conversion */
        return tagci_f32_of(sign | 0x7f800000u | mantissa << 13 | (mantissa ? 0x400000u : 0));
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f; /* exact */
        return sign ? -magnitude : magnitude;
    }
    return tagci_f32_of(sign | (exponent + 112) << 23 | mantissa << 13);
}

TAGCI_INLINE uint16_t tagci_f32_to_bf16(float x)
{
    uint32_t u = tagci_f32_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return TAGCI_BF16_NAN;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16); /* a carry into the exponent is what it should be */
}

TAGCI_INLINE uint16_t tagci_f32_to_f16(float x)
{
    uint32_t u = tagci_f32_bits(x), sign = u >> 16 & 0x8000;
    u &= 0x7fffffffu;
    if (u >= 0x47800000u) /* 65536 */
        return u > 0x7f800000u ? TAGCI_F16_NAN : (uint16_t)(sign | TAGCI_F16_INF);
    if (u < 0x38800000u) /* below 2^-14: the last place of 0.5 is that of a subnormal, so the addition rounds */
        return (uint16_t)(sign | (tagci_f32_bits(tagci_f32_of(u) + 0.5f) - 0x3f000000u));
    u += 0xfff + (u >> 13 & 1);
    return (uint16_t)(sign | (u - (112u << 23)) >> 13);
}

TAGCI_INLINE uint16_t tagci_f64_to_bf16(double x)
{
    uint64_t u = tagci_f64_bits(x);
    uint32_t sign = (uint32_t)(u >> 48) & 0x8000;
    u &= 0x7fffffffffffffffu;
    if (u >= (uint64_t)(1023 + 128) << 52)
        return u > 0x7ff0000000000000u ? TAGCI_BF16_NAN : (uint16_t)(sign | TAGCI_BF16_INF);
    if (u < (uint64_t)(1023 - 126) << 52) /* as above: 2^-81 has a last place of 2^-133 */
        return (uint16_t)(sign | (uint32_t)(tagci_f64_bits(tagci_f64_of(u) + 0x1p-81) - tagci_f64_bits(0x1p-81)));
    u += ((uint64_t)1 << 44) - 1 + (u >> 45 & 1);
    return (uint16_t)(sign | (uint32_t)((u - ((uint64_t)896 << 52)) >> 45));
}

TAGCI_INLINE uint16_t tagci_f64_to_f16(double x)
{
    uint64_t u = tagci_f64_bits(x);
    uint32_t sign = (uint32_t)(u >> 48) & 0x8000;
    u &= 0x7fffffffffffffffu;
    if (u >= (uint64_t)(1023 + 16) << 52)
        return u > 0x7ff0000000000000u ? TAGCI_F16_NAN : (uint16_t)(sign | TAGCI_F16_INF);
    if (u < (uint64_t)(1023 - 14) << 52)
        return (uint16_t)(sign | (uint32_t)(tagci_f64_bits(tagci_f64_of(u) + 0x1p28) - tagci_f64_bits(0x1p28)));
    u += ((uint64_t)1 << 41) - 1 + (u >> 42 & 1);
    return (uint16_t)(sign | (uint32_t)((u - ((uint64_t)1008 << 52)) >> 42));
}

/* A finite value that rounded to Inf goes back to the largest finite one: what an overflow leaves stays in the residual. */
TAGCI_INLINE uint16_t tagci_f16_saturate(uint16_t h, int finite)
{
    return (uint16_t)(finite && (h & 0x7fff) == TAGCI_F16_INF ? h - 1 : h);
}

TAGCI_INLINE uint16_t tagci_bf16_saturate(uint16_t h, int finite)
{
    return (uint16_t)(finite && (h & 0x7fff) == TAGCI_BF16_INF ? h - 1 : h);
}

#endif
