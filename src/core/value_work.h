/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Block quantizers for one work type; included by value.h once for float and once for double. */

/* Sum of a whole block in double, over 8 lanes. */
static inline double NAME(tagci_lanes)(const WORK *x)
{
    double s[8] = {0};
    for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i += 8)
        for (size_t l = 0; l < 8; l++)
            s[l] += x[i + l];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Ternary codes of a whole block of finite values; returns the scale. Magnitudes are cut at the largest bfloat16, so
 * that no sum of doubles overflows. Comparisons are those of keys, in integers. */
static inline uint16_t NAME(tagci_ternary)(const WORK *x, int8_t *codes)
{
    SIGNED bits[TAGCI_VALUE_BLOCK], key[TAGCI_VALUE_BLOCK], nonzero = 0, chosen = 0;
    WORK magnitude[TAGCI_VALUE_BLOCK];
    memcpy(bits, x, sizeof bits);
    for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i++) {
        key[i] = bits[i] & KEY_MAX;
        key[i] = key[i] < (SIGNED)KEY_CAP ? key[i] : (SIGNED)KEY_CAP;
        nonzero += key[i] > 0;
    }
    if (nonzero == 0) {
        memset(codes, 0, TAGCI_VALUE_BLOCK);
        return 0;
    }
    memcpy(magnitude, key, sizeof magnitude);
    double threshold = 0.7 * (NAME(tagci_lanes)(magnitude) / (double)nonzero);
    WORK below = (WORK)threshold; /* the largest one that is not above: a value is above both or neither */
    SIGNED limit;
    memcpy(&limit, &below, sizeof limit);
    limit -= (double)below > threshold;
    for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i++) {
        SIGNED big = -(SIGNED)(key[i] > limit);
        key[i] &= big;
        chosen -= big;
        codes[i] = (int8_t)(big & (bits[i] < 0 ? -1 : 1));
    }
    memcpy(magnitude, key, sizeof magnitude);
    uint16_t scale =
        tagci_bf16_saturate(tagci_f64_to_bf16(NAME(tagci_lanes)(magnitude) / (double)(chosen ? chosen : 1)), 1);
    if (scale == 0)
        memset(codes, 0, TAGCI_VALUE_BLOCK);
    return scale;
}

/* Quantizes n <= TAGCI_VALUE_BLOCK values; returns the number of NaN and Inf among them. v has room for a whole block,
 * which is filled up with zeros, and so are the codes. Loops of a fixed length are what compilers turn into vector code. */
static inline size_t NAME(tagci_quantize)(enum tagci_value value, WORK *v, size_t n, uint16_t *scale, int8_t *codes)
{
    WORK x[TAGCI_VALUE_BLOCK];
    SIGNED largest = 0, escapes = 0;
    for (size_t i = n; i < TAGCI_VALUE_BLOCK; i++)
        v[i] = 0;
    for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i++) {
        SIGNED bits, key, finite; /* finite: all ones, or zero */
        memcpy(&bits, &v[i], sizeof bits);
        key = bits & KEY_MAX;
        finite = -(SIGNED)(key < (SIGNED)KEY_INF);
        escapes += 1 + finite;
        bits &= finite;
        key &= finite;
        memcpy(&x[i], &bits, sizeof bits);
        largest = largest > key ? largest : key;
    }
    if (value == TAGCI_VALUE_TERNARY) {
        *scale = NAME(tagci_ternary)(x, codes);
        return (size_t)escapes;
    }
    int levels = value == TAGCI_VALUE_INT8 ? 127 : 7;
    *scale = tagci_scale_for((double)VALUE_OF_KEY((KEY)largest), levels, LIMIT);
    if (*scale == 0) {
        memset(codes, 0, TAGCI_VALUE_BLOCK);
        return (size_t)escapes;
    }
    WORK step = tagci_bf16_to_f32(*scale), top = (WORK)levels;
    for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i++) {
        WORK y = x[i] / step;
        y = y > top ? top : y;
        y = y < -top ? -top : y;
        codes[i] = (int8_t)(int)((y + ROUNDER) - ROUNDER);
    }
    return (size_t)escapes;
}

/* What n codes stand for. */
static inline void NAME(tagci_dequantize)(const int8_t *codes, size_t n, uint16_t scale, WORK *out)
{
    WORK step = tagci_bf16_to_f32(scale);
    for (size_t i = 0; i < n; i++)
        out[i] = (WORK)codes[i] * step;
}

#undef WORK
#undef KEY
#undef SIGNED
#undef KEY_MAX
#undef KEY_CAP
#undef KEY_INF
#undef VALUE_OF_KEY
#undef ROUNDER
#undef LIMIT
#undef NAME
