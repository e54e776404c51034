/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Rounding gathers: elements to codes, codes to elements. */
#include "core/lossless_round.h"

#include <string.h>

#include "core/value.h"
#include "util/mem.h"

#define BLOCK TAGCI_LOSSLESS_BLOCK
#define GROUP TAGCI_VALUE_BLOCK
#define WITH_INF 0x8000

static size_t blocks_of(size_t n, size_t block)
{
    return n / block + (n % block != 0);
}

static size_t even(size_t n)
{
    return n + (n & 1);
}

/* Where the scales stand in the state of a block. */
static size_t scales_at(size_t n)
{
    return even(n);
}

static size_t block_state(enum tagci_round form, size_t n)
{
    return form == TAGCI_ROUND_BFLOAT16 ? 2 * n : scales_at(n) + 2 * blocks_of(n, GROUP);
}

size_t tagci_round_state(enum tagci_round form, size_t n)
{
    return tagci_add(tagci_mul(n / BLOCK, block_state(form, BLOCK)), block_state(form, n % BLOCK));
}

size_t tagci_round_bound(enum tagci_round form, size_t n)
{
    size_t index = tagci_mul(tagci_lossless_blocks(n), form == TAGCI_ROUND_INT8 ? 12 : 4);
    return tagci_add(tagci_round_state(form, n), index);
}

/* ---- One group, or stretch, of elements and work values ---------------------------------------- */

static void widen(enum tagci_type type, const unsigned char *in, size_t n, float *v)
{
    uint16_t h[GROUP];
    if (type == TAGCI_F32) {
        memcpy(v, in, n * sizeof *v);
        return;
    }
    memcpy(h, in, n * sizeof *h);
    for (size_t i = 0; i < n; i++)
        v[i] = type == TAGCI_F16 ? tagci_f16_to_f32(h[i]) : tagci_bf16_to_f32(h[i]);
}

static void narrow(enum tagci_type type, const float *v, size_t n, unsigned char *out)
{
    uint16_t h[GROUP];
    if (type == TAGCI_F32) {
        memcpy(out, v, n * sizeof *v);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        int finite = (tagci_f32_bits(v[i]) & 0x7fffffffu) < TAGCI_KEY_INF_F32;
        h[i] = type == TAGCI_F16 ? tagci_f16_saturate(tagci_f32_to_f16(v[i]), finite)
                                 : tagci_bf16_saturate(tagci_f32_to_bf16(v[i]), finite);
    }
    memcpy(out, h, n * sizeof *h);
}

static void to_bfloat16(enum tagci_type type, const unsigned char *in, size_t n, uint16_t *h)
{
    if (type == TAGCI_F64) {
        double d[GROUP];
        memcpy(d, in, n * sizeof *d);
        for (size_t i = 0; i < n; i++)
            h[i] = tagci_bf16_saturate(tagci_f64_to_bf16(d[i]), (tagci_f64_bits(d[i]) & INT64_MAX) < TAGCI_KEY_INF_F64);
    } else if (type == TAGCI_BF16) {
        memcpy(h, in, n * sizeof *h);
    } else {
        float v[GROUP];
        widen(type, in, n, v);
        for (size_t i = 0; i < n; i++)
            h[i] =
                tagci_bf16_saturate(tagci_f32_to_bf16(v[i]), (tagci_f32_bits(v[i]) & 0x7fffffffu) < TAGCI_KEY_INF_F32);
    }
}

static void from_bfloat16(enum tagci_type type, const uint16_t *h, size_t n, unsigned char *out)
{
    float v[GROUP];
    if (type == TAGCI_BF16) {
        memcpy(out, h, n * sizeof *h);
        return;
    }
    for (size_t i = 0; i < n; i++)
        v[i] = tagci_bf16_to_f32(h[i]);
    if (type == TAGCI_F64) {
        double d[GROUP];
        for (size_t i = 0; i < n; i++)
            d[i] = v[i];
        memcpy(out, d, n * sizeof *d);
    } else {
        narrow(type, v, n, out);
    }
}

/* Codes of a group that holds Inf or NaN. */
static uint16_t special_codes(const double *x, size_t n, double limit, int8_t *codes)
{
    double largest = 0;
    int inf = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = tagci_f64_bits(x[i]) & INT64_MAX;
        inf |= key == TAGCI_KEY_INF_F64;
        if (key < TAGCI_KEY_INF_F64 && tagci_f64_of(key) > largest)
            largest = tagci_f64_of(key);
    }
    int levels = inf ? 126 : 127;
    uint16_t scale = tagci_scale_for(largest, levels, limit);
    double step = tagci_bf16_to_f32(scale);
    for (size_t i = 0; i < n; i++) {
        if (x[i] != x[i])
            codes[i] = -128;
        else if ((tagci_f64_bits(x[i]) & INT64_MAX) == TAGCI_KEY_INF_F64)
            codes[i] = x[i] > 0 ? 127 : -127;
        else if (scale == 0)
            codes[i] = 0;
        else {
            double y = x[i] / step;
            y = y > levels ? levels : y < -levels ? -levels : y;
            codes[i] = (int8_t)(int)((y + 6755399441055744.0) - 6755399441055744.0);
        }
    }
    return (uint16_t)(scale | (inf ? WITH_INF : 0));
}

static uint16_t to_int8(enum tagci_type type, const unsigned char *in, size_t n, unsigned char *codes)
{
    int8_t c[GROUP];
    uint16_t scale;
    double d[GROUP];
    if (type == TAGCI_F64) {
        memcpy(d, in, n * sizeof *d);
        if (tagci_quantize_f64(TAGCI_VALUE_INT8, d, n, &scale, c))
            scale = special_codes(d, n, 1.7976931348623157e308, c);
    } else {
        float v[GROUP];
        widen(type, in, n, v);
        if (tagci_quantize_f32(TAGCI_VALUE_INT8, v, n, &scale, c)) {
            for (size_t i = 0; i < n; i++)
                d[i] = v[i];
            scale = special_codes(d, n, 3.4028234663852886e38, c);
        }
    }
    memcpy(codes, c, n);
    return scale;
}

static void from_int8(enum tagci_type type, const unsigned char *codes, uint16_t scale, size_t n, unsigned char *out)
{
    int8_t c[GROUP], lowest = 0;
    double d[GROUP];
    float v[GROUP];
    const uint16_t plain = scale & (WITH_INF - 1);
    memcpy(c, codes, n);
    for (size_t i = 0; i < n; i++)
        lowest = c[i] < lowest ? c[i] : lowest;
    if (type == TAGCI_F64)
        tagci_dequantize_f64(c, n, plain, d);
    else
        tagci_dequantize_f32(c, n, plain, v);
    if (lowest == -128 || scale != plain)
        for (size_t i = 0; i < n; i++) {
            uint32_t special = c[i] == -128     ? TAGCI_F32_NAN
                               : scale == plain ? 0
                               : c[i] == 127    ? TAGCI_KEY_INF_F32
                               : c[i] == -127   ? 0x80000000u | TAGCI_KEY_INF_F32
                                                : 0;
            if (!special)
                continue;
            if (type == TAGCI_F64)
                d[i] = tagci_f64_of((uint64_t)(special & 0x80000000u) << 32 |
                                    (c[i] == -128 ? TAGCI_F64_NAN : TAGCI_KEY_INF_F64));
            else
                v[i] = tagci_f32_of(special);
        }
    if (type == TAGCI_F64)
        memcpy(out, d, n * sizeof *d);
    else
        narrow(type, v, n, out);
}

/* ---- States ------------------------------------------------------------------------------------ */

/* Both walk a block in groups; states stand at even addresses or not. */
static void block_codes(enum tagci_round form, enum tagci_type type, const unsigned char *now, size_t n,
                        unsigned char *state)
{
    const size_t size = tagci_type_size(type);
    if (form == TAGCI_ROUND_INT8 && n % 2)
        state[n] = 0;
    for (size_t i = 0; i < n; i += GROUP) {
        size_t some = n - i < GROUP ? n - i : GROUP;
        if (form == TAGCI_ROUND_BFLOAT16) {
            uint16_t h[GROUP];
            to_bfloat16(type, now + i * size, some, h);
            memcpy(state + 2 * i, h, 2 * some);
        } else {
            uint16_t scale = to_int8(type, now + i * size, some, state + i);
            memcpy(state + scales_at(n) + 2 * (i / GROUP), &scale, 2);
        }
    }
}

static void block_values(enum tagci_round form, enum tagci_type type, const unsigned char *state, size_t n,
                         unsigned char *out)
{
    const size_t size = tagci_type_size(type);
    for (size_t i = 0; i < n; i += GROUP) {
        size_t some = n - i < GROUP ? n - i : GROUP;
        if (form == TAGCI_ROUND_BFLOAT16) {
            uint16_t h[GROUP];
            memcpy(h, state + 2 * i, 2 * some);
            from_bfloat16(type, h, some, out + i * size);
        } else {
            uint16_t scale;
            memcpy(&scale, state + scales_at(n) + 2 * (i / GROUP), 2);
            from_int8(type, state + i, scale, some, out + i * size);
        }
    }
}

void tagci_round_codes(enum tagci_round form, enum tagci_type type, const void *now, size_t n, void *state)
{
    for (size_t i = 0; i < n; i += BLOCK)
        block_codes(form, type, (const unsigned char *)now + i * tagci_type_size(type), n - i < BLOCK ? n - i : BLOCK,
                    (unsigned char *)state + i / BLOCK * block_state(form, BLOCK));
}

void tagci_round_values(enum tagci_round form, enum tagci_type type, const void *state, size_t n, void *out)
{
    for (size_t i = 0; i < n; i += BLOCK)
        block_values(form, type, (const unsigned char *)state + i / BLOCK * block_state(form, BLOCK),
                     n - i < BLOCK ? n - i : BLOCK, (unsigned char *)out + i * tagci_type_size(type));
}

/* ---- Blocks ------------------------------------------------------------------------------------ */

uint32_t tagci_round_encode_block(enum tagci_round form, enum tagci_type type, const void *now, const void *before,
                                  void *after, size_t n, unsigned char *out, struct tagci_lossless_work *work)
{
    const size_t bytes = block_state(form, n), at = scales_at(n);
    const unsigned char *y = before;
    unsigned char *state = after && after != before ? after : work->state;
    uint32_t word;
    block_codes(form, type, now, n, state);
    if (form == TAGCI_ROUND_BFLOAT16) {
        word = tagci_lossless_encode_block(TAGCI_BF16, state, before, n, out, work);
    } else {
        uint32_t codes = tagci_lossless_encode_block(TAGCI_LOSSLESS_BYTES, state, y, n, out + 8, work);
        size_t body = 8 + tagci_lossless_body(codes);
        uint32_t scales = tagci_lossless_encode_block(TAGCI_BF16, state + at, y ? y + at : NULL, blocks_of(n, GROUP),
                                                      out + body, work);
        tagci_lossless_put_word(out, 0, codes);
        tagci_lossless_put_word(out, 1, scales);
        word = (uint32_t)TAGCI_LOSSLESS_RAW << 24 | (uint32_t)(body + tagci_lossless_body(scales));
    }
    if (after && after != state)
        memcpy(after, state, bytes);
    return word;
}

int tagci_round_decode_block(enum tagci_round form, enum tagci_type type, uint32_t word, const unsigned char *body,
                             const void *before, void *after, size_t n, void *out, struct tagci_lossless_work *work,
                             const char **reason)
{
    const size_t at = scales_at(n), bytes = tagci_lossless_body(word);
    const unsigned char *y = before;
    unsigned char *state = after ? after : work->state;
    *reason = NULL;
    if (n > BLOCK) {
        *reason = "block: too many elements";
        return -1;
    }
    if (form == TAGCI_ROUND_BFLOAT16) {
        if (tagci_lossless_decode_block(TAGCI_BF16, word, body, before, n, state, work, reason))
            return -1;
    } else {
        if (word >> 24 != TAGCI_LOSSLESS_RAW || bytes < 8) {
            *reason = "block: method";
            return -1;
        }
        uint32_t codes = tagci_lossless_word(body, 0), scales = tagci_lossless_word(body, 1);
        size_t first = tagci_lossless_body(codes);
        if (8 + first + tagci_lossless_body(scales) != bytes) {
            *reason = "block: length";
            return -1;
        }
        if (tagci_lossless_decode_block(TAGCI_LOSSLESS_BYTES, codes, body + 8, before, n, state, work, reason) ||
            tagci_lossless_decode_block(TAGCI_BF16, scales, body + 8 + first, y ? y + at : NULL, blocks_of(n, GROUP),
                                        state + at, work, reason))
            return -1;
        if (n % 2)
            state[n] = 0;
    }
    if (out)
        block_values(form, type, state, n, out);
    return 0;
}

/* ---- All blocks -------------------------------------------------------------------------------- */

size_t tagci_round_encode(enum tagci_round form, enum tagci_type type, const void *now, const void *before, void *after,
                          size_t n, unsigned char *out, struct tagci_lossless_work *work)
{
    const size_t size = tagci_type_size(type), blocks = tagci_lossless_blocks(n), step = block_state(form, BLOCK);
    unsigned char *at = out + 4 * blocks;
    for (size_t b = 0; b < blocks; b++) {
        size_t from = b * BLOCK, some = n - from < BLOCK ? n - from : BLOCK;
        uint32_t word = tagci_round_encode_block(form, type, (const unsigned char *)now + from * size,
                                                 before ? (const unsigned char *)before + b * step : NULL,
                                                 after ? (unsigned char *)after + b * step : NULL, some, at, work);
        tagci_lossless_put_word(out, b, word);
        at += tagci_lossless_body(word);
    }
    return (size_t)(at - out);
}

int tagci_round_decode(enum tagci_round form, enum tagci_type type, const unsigned char *in, size_t bytes,
                       const void *before, void *after, size_t n, void *out, struct tagci_lossless_work *work,
                       const char **reason)
{
    const size_t size = tagci_type_size(type), blocks = tagci_lossless_blocks(n), step = block_state(form, BLOCK);
    const unsigned char *at = in + 4 * blocks;
    if (tagci_lossless_check(in, bytes, n, reason))
        return -1;
    for (size_t b = 0; b < blocks; b++) {
        size_t from = b * BLOCK, some = n - from < BLOCK ? n - from : BLOCK;
        uint32_t word = tagci_lossless_word(in, b);
        if (tagci_round_decode_block(form, type, word, at, before ? (const unsigned char *)before + b * step : NULL,
                                     after ? (unsigned char *)after + b * step : NULL, some,
                                     out ? (unsigned char *)out + from * size : NULL, work, reason))
            return -1;
        at += tagci_lossless_body(word);
    }
    return 0;
}
