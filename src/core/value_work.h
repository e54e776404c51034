/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Block quantizers for one work type; included by value.h once for float and once for double. */

/* Ternary codes of a whole block of finite values; returns the scale. Magnitudes are cut at the largest bfloat16, so
 * that no sum of doubles overflows. */
static inline uint16_t NAME(tagci_ternary)(const WORK *x, int8_t *codes)
{
    const double cap = 3.3895313892515355e38;
    double a[TAGCI_VALUE_BLOCK], sum[8] = {0}, above[8] = {0};
    int64_t count[8] = {0}, kept[8] = {0};
    for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i++) {
        a[i] = (double)VALUE_OF_KEY(KEY_OF(x[i]));
        a[i] = a[i] > cap ? cap : a[i];
    }
    for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i += 8)
        for (size_t l = 0; l < 8; l++) {
            sum[l] += a[i + l];
            count[l] += a[i + l] > 0;
        }
    int64_t nonzero = tagci_lanes_count(count);
    double threshold = nonzero ? 0.7 * (tagci_lanes_sum(sum) / (double)nonzero) : 0;
    for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i += 8)
        for (size_t l = 0; l < 8; l++) {
            int big = a[i + l] > threshold;
            above[l] += big ? a[i + l] : 0;
            kept[l] += big;
        }
    int64_t chosen = tagci_lanes_count(kept);
    uint16_t scale = 0;
    if (chosen)
        scale = tagci_bf16_saturate(tagci_f64_to_bf16(tagci_lanes_sum(above) / (double)chosen), 1);
    for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i++)
        codes[i] = (int8_t)(scale == 0 || !(a[i] > threshold) ? 0 : x[i] < 0 ? -1 : 1);
    return scale;
}

/* Quantizes n <= TAGCI_VALUE_BLOCK values; returns the number of NaN and Inf among them. v has room for a whole block,
 * which is filled up with zeros. Loops of a fixed length are what compilers turn into vector code. */
static inline size_t NAME(tagci_quantize)(enum tagci_value value, WORK *v, size_t n, uint16_t *scale, int8_t *codes)
{
    WORK x[TAGCI_VALUE_BLOCK];
    KEY largest = 0, escapes = 0;
    for (size_t i = n; i < TAGCI_VALUE_BLOCK; i++)
        v[i] = 0;
    for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i++) {
        KEY key = KEY_OF(v[i]), finite = key < KEY_INF;
        escapes += 1 - finite;
        x[i] = finite ? v[i] : 0;
        key = finite ? key : 0;
        largest = largest > key ? largest : key;
    }
    if (value == TAGCI_VALUE_TERNARY) {
        *scale = NAME(tagci_ternary)(x, codes);
        return (size_t)escapes;
    }
    int levels = value == TAGCI_VALUE_INT8 ? 127 : 7;
    *scale = tagci_scale_for((double)VALUE_OF_KEY(largest), levels, LIMIT);
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
#undef KEY_OF
#undef KEY_INF
#undef VALUE_OF_KEY
#undef ROUNDER
#undef LIMIT
#undef NAME
