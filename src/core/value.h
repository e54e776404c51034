/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Wire forms of kept values: what each form does to a value, said once, in plain C that every instruction-set variant
 * of the kernels compiles for itself.
 *
 * native     the element type; a 16-bit type rounds to nearest even
 * bfloat16   rounded to nearest even, once (from double too)
 * float16    likewise
 * int8 int4 ternary
 *            blocks of TAGCI_VALUE_BLOCK consecutive values (the last one may be shorter); a value is code * scale in
 *            the work type, exactly or rounded once; the block's scale is a bfloat16, not negative, finite
 *   int8     scale: max |v| / 127 rounded up, so that no code exceeds 127; code: v / scale to nearest even; a byte each
 *   int4     likewise with 7; two's complement, two to a byte: value 2i in the low half of byte i, 2i+1 in the high one
 *   ternary  codes -1, 0, 1. With m = mean of |v| over the nonzero values, values above 0.7 m in magnitude are +-1, and
 *            the scale is the mean of |v| over those, to nearest even: close to the least squared error (Li, Zhang, Liu,
 *            Ternary weight networks). Sums in double over 8 lanes (value i in lane i % 8), then (((0+4)+(2+6)) +
 *            ((1+5)+(3+7))). A digit is code mod 3; five to a byte, the first one least; each block starts a new byte
 *
 * Values that a form cannot hold: a finite one that overflows becomes the largest finite one; what underflows becomes
 * zero; the rest stays in the residual. NaN and Inf stay what they are in the first three forms (every NaN becomes the
 * quiet one with no payload), and in integer forms travel as escapes: zeros to the scale and the codes. Where escapes
 * are more than one in TAGCI_ESCAPE_SHARE kept values, the frame is in native form. A scale is never so large that code
 * * scale overflows: there it is rounded down, and codes stop at the largest. All-zero blocks have scale zero. */
#ifndef TAGCI_CORE_VALUE_H
#define TAGCI_CORE_VALUE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/half.h"
#include "core/type.h"

#define TAGCI_ESCAPE_SHARE 64
#define TAGCI_TERNARY_BYTES ((TAGCI_VALUE_BLOCK + 4) / 5) /* of a whole block */

TAGCI_INLINE int tagci_value_blocked(enum tagci_value value)
{
    return value >= TAGCI_VALUE_INT8;
}

TAGCI_INLINE size_t tagci_value_blocks(size_t kept)
{
    return kept / TAGCI_VALUE_BLOCK + (kept % TAGCI_VALUE_BLOCK != 0);
}

/* Form that elements really travel in: a form that is the element type itself is native. */
TAGCI_INLINE enum tagci_value tagci_value_plain(enum tagci_type type, enum tagci_value value)
{
    if (value == TAGCI_VALUE_NATIVE && type == TAGCI_F16)
        return TAGCI_VALUE_FLOAT16;
    if (value == TAGCI_VALUE_NATIVE && type == TAGCI_BF16)
        return TAGCI_VALUE_BFLOAT16;
    return value;
}

/* Bytes of the codes of n values in one block. */
TAGCI_INLINE size_t tagci_block_bytes(enum tagci_value value, size_t n)
{
    return value == TAGCI_VALUE_INT8 ? n : value == TAGCI_VALUE_INT4 ? (n + 1) / 2 : (n + 4) / 5;
}

/* Bytes of all codes, no padding. */
TAGCI_INLINE size_t tagci_value_bytes(enum tagci_type type, enum tagci_value value, size_t kept)
{
    if (value == TAGCI_VALUE_NATIVE)
        return kept * tagci_type_size(type);
    if (!tagci_value_blocked(value))
        return kept * 2;
    return kept / TAGCI_VALUE_BLOCK * tagci_block_bytes(value, TAGCI_VALUE_BLOCK) +
           tagci_block_bytes(value, kept % TAGCI_VALUE_BLOCK);
}

const char *tagci_value_name(enum tagci_value value); /* as in the setting */

/* Codes of the 256 ternary bytes, five of eight bytes used. */
extern const int8_t tagci_ternary_digits[256][8];
/* Weights of a block's digits in their bytes: 1, 3, 9, 27, 81, and again. */
extern const unsigned char tagci_ternary_powers[TAGCI_VALUE_BLOCK];

/* Smallest bfloat16 at or above x >= 0, at most the largest finite one. */
TAGCI_INLINE uint16_t tagci_bf16_above(double x)
{
    uint16_t h = tagci_bf16_saturate(tagci_f64_to_bf16(x), 1);
    return (uint16_t)(h < TAGCI_BF16_MAX && (double)tagci_bf16_to_f32(h) < x ? h + 1 : h);
}

TAGCI_INLINE uint16_t tagci_scale_for(double largest, int levels, double limit)
{
    uint16_t h = tagci_bf16_above(largest / levels);
    return (uint16_t)(tagci_bf16_to_f32(h) * (double)levels > limit ? h - 1 : h);
}

/* Packs n codes of one block; codes holds a whole block, zeros from n on. */
static inline void tagci_pack_codes(enum tagci_value value, const int8_t *codes, size_t n, unsigned char *at)
{
    unsigned char packed[TAGCI_VALUE_BLOCK];
    if (value == TAGCI_VALUE_INT8) {
        memcpy(at, codes, n);
        return;
    }
    if (value == TAGCI_VALUE_INT4) {
        for (size_t i = 0; i < TAGCI_VALUE_BLOCK / 8; i++) { /* eight codes, four bytes */
            uint64_t x;
            memcpy(&x, codes + 8 * i, 8);
            x &= 0x0f0f0f0f0f0f0f0fu;
            x = (x | x >> 4) & 0x00ff00ff00ff00ffu;
            x = (x | x >> 8) & 0x0000ffff0000ffffu;
            uint32_t four = (uint32_t)(x | x >> 16);
            memcpy(packed + 4 * i, &four, 4);
        }
    } else {
        unsigned char digits[TAGCI_VALUE_BLOCK + 8] = {0}; /* each times its power of three */
        for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i++)
            digits[i] = (unsigned char)((codes[i] ? tagci_ternary_powers[i] : 0) +
                                        (codes[i] < 0 ? tagci_ternary_powers[i] : 0));
        for (size_t i = 0; i < TAGCI_TERNARY_BYTES; i++) {
            uint64_t five; /* five bytes, added up in the fifth; no sum reaches 256 */
            memcpy(&five, digits + 5 * i, 8);
            packed[i] = (unsigned char)((five & 0xffffffffffu) * 0x0101010101u >> 32);
        }
    }
    memcpy(at, packed, tagci_block_bytes(value, n));
}

/* Unpacks n codes of one block; codes has room for TAGCI_VALUE_BLOCK + 8. */
static inline void tagci_unpack_codes(enum tagci_value value, const unsigned char *at, size_t n, int8_t *codes)
{
    if (value == TAGCI_VALUE_INT8) {
        memcpy(codes, at, n);
    } else if (value == TAGCI_VALUE_INT4) {
        for (size_t i = 0; i < n / 2; i++) {
            codes[2 * i] = (int8_t)((int8_t)(at[i] << 4) >> 4);
            codes[2 * i + 1] = (int8_t)((int8_t)at[i] >> 4);
        }
        if (n % 2)
            codes[n - 1] = (int8_t)((int8_t)(at[n / 2] << 4) >> 4);
    } else {
        for (size_t i = 0; i < n; i += 5)
            memcpy(codes + i, tagci_ternary_digits[*at++], 8);
    }
}

#define WORK float
#define KEY uint32_t
#define SIGNED int32_t
#define KEY_MAX INT32_MAX
#define KEY_INF TAGCI_KEY_INF_F32
#define VALUE_OF_KEY(k) tagci_f32_of(k)
#define ROUNDER 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer */
#define KEY_CAP 0x7f7f0000
#define LIMIT 3.4028234663852886e38
#define NAME(x) x##_f32
#include "core/value_work.h"

#define WORK double
#define KEY uint64_t
#define SIGNED int64_t
#define KEY_MAX INT64_MAX
#define KEY_INF TAGCI_KEY_INF_F64
#define VALUE_OF_KEY(k) tagci_f64_of(k)
#define ROUNDER 6755399441055744.0 /* 1.5 * 2^52 */
#define KEY_CAP 0x47efe00000000000
#define LIMIT 1.7976931348623157e308
#define NAME(x) x##_f64
#include "core/value_work.h"

#endif
