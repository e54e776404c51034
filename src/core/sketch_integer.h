/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Values of a sketch to integers and back, one by one: what the host and the kernels of a device share. */
#ifndef TAGCI_CORE_SKETCH_INTEGER_H
#define TAGCI_CORE_SKETCH_INTEGER_H

#include "core/bitmap.h"
#include "core/half.h"
#include "core/type.h"

/* ---- Exponents of groups ------------------------------------------------------------------------
 *
 * The exponent of v is floor(log2 |v|), subnormals included: -149 .. 127 for float, -1074 .. 1023 for
 * double. Both use the same code, 1 .. 2098. */
#define TAGCI_SKETCH_EXPONENT_ZERO 1075 /* the code of exponent 0 */
#define TAGCI_SKETCH_TOP 2099           /* low codes run from here downwards */
#define TAGCI_SKETCH_NONFINITE 0x7fff   /* not 0xffff: MPICH 4.0's MPI_MAX takes MPI_UINT16_T for signed */

/* Code of the exponent of a nonzero key of finite value. */
TAGCI_INLINE uint16_t tagci_sketch_code(int wide, uint64_t key)
{
    int mantissa = wide ? 52 : 23, biased = (int)(key >> mantissa);
    int e = biased ? biased - (wide ? 1023 : 127) : (int)tagci_bit_length(key) - (wide ? 1075 : 150);
    return (uint16_t)(e + TAGCI_SKETCH_EXPONENT_ZERO);
}

/* high of a group whose largest key is `most`. */
TAGCI_INLINE uint16_t tagci_sketch_high(int wide, uint64_t most)
{
    return most >= (wide ? TAGCI_KEY_INF_F64 : TAGCI_KEY_INF_F32) ? (uint16_t)TAGCI_SKETCH_NONFINITE
           : most                                                 ? tagci_sketch_code(wide, most)
                                                                  : (uint16_t)0;
}

/* low of a group whose smallest key that is not zero is `least`; 0: there is none. */
TAGCI_INLINE uint16_t tagci_sketch_low(int wide, uint64_t least)
{
    return least ? (uint16_t)(TAGCI_SKETCH_TOP - tagci_sketch_code(wide, least)) : (uint16_t)0;
}

/* ---- Integers -----------------------------------------------------------------------------------
 *
 * In a group with largest exponent e over N ranks, a value v becomes the integer nearest to v * 2^(T - L - e), ties to
 * even, with T = 30 for float and 62 for double. |v| < 2^(e+1), so the integer is at most 2^(T+1-L), and smaller where
 * the value has no more bits than that (24 or 53 <= T+1-L), because then it is exact. The sum of N of them must fit into
 * T+1 bits and a sign: L = ceil(log2 N) does in the second case, since N * (2^(T+1-L) - 1) < 2^(T+1); in the first
 * N = 2^L must not be, so L is one more there.
 *
 * Error: half a unit of the integer, 2^(e+L-T-1). Half a unit in the last place of a value of exponent x is 2^(x-24) for
 * float (x = -126 at least: below, the places stand still), 2^(x-53) for double. With x the smallest exponent of nonzero
 * values in the group, the error is at most four of those if
 *     float:  e + L - 31 <= x - 22, that is e + L - x <= 9
 *     double: e + L - 63 <= x - 51, that is e + L - x <= 12
 * and of all larger values too. Otherwise the group is exceptional. */
TAGCI_INLINE int tagci_sketch_headroom(int wide, int ranks)
{
    int L = 0;
    while (L < 30 && (1 << L) < ranks)
        L++;
    return L > (wide ? 10 : 7) && 1 << L == ranks ? L + 1 : L;
}

/* The power of two that values of a group are multiplied by. */
TAGCI_INLINE int tagci_sketch_scale(int wide, int headroom, uint16_t high)
{
    return (wide ? 62 : 30) - headroom - (high ? high - TAGCI_SKETCH_EXPONENT_ZERO : 0);
}

/* 2^e, -1022 <= e <= 1023 */
TAGCI_INLINE double tagci_power_of_two(int e)
{
    return tagci_f64_of((uint64_t)(e + 1023) << 52);
}

/* Float: the product is exact in double, and adding 1.5 * 2^52 rounds it to the nearest integer, ties to even, which then
 * stands in the low bits. */
TAGCI_INLINE uint32_t tagci_sketch_int_f32(float v, int scale)
{
    return (uint32_t)tagci_f64_bits((double)v * tagci_power_of_two(scale) + 0x1.8p52);
}

/* Double: the power may be too large or too small to be a double, so it is applied in halves; the products are exact, for
 * the result lies between 2^49 and 2^63 in magnitude unless v is zero or exact anyway. Adding and taking away 2^52 rounds
 * what has a fraction. */
TAGCI_INLINE uint64_t tagci_sketch_int_f64(double v, int scale)
{
    double x = v * tagci_power_of_two(scale / 2) * tagci_power_of_two(scale - scale / 2);
    double magnitude = x < 0 ? -x : x, rounded = magnitude + 0x1p52 - 0x1p52;
    magnitude = magnitude < 0x1p52 ? rounded : magnitude;
    return (uint64_t)(int64_t)(x < 0 ? -magnitude : magnitude);
}

/* One rounding: int32 to double and the product are exact, the conversion to float rounds. */
TAGCI_INLINE float tagci_sketch_value_f32(uint32_t i, int scale)
{
    return (float)((double)(int32_t)i * tagci_power_of_two(-scale));
}

/* One rounding: int64 to double rounds, the products do not. For where they would (a subnormal result), the result is a
 * multiple of 2^-1074, as all summands are, below 2^-1022: so its integer has at most 52 bits. */
TAGCI_INLINE double tagci_sketch_value_f64(uint64_t i, int scale)
{
    return (double)(int64_t)i * tagci_power_of_two(-scale / 2) * tagci_power_of_two(-scale - -scale / 2);
}

#endif
