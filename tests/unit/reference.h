/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The kernels once more, as plainly as they can be said and with nothing shared but the number formats: what tests
 * compare with. Also data to feed them, and buffers that end where memory ends. */
#ifndef TAGC_TESTS_REFERENCE_H
#define TAGC_TESTS_REFERENCE_H

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/frame.h"
#include "core/half.h"
#include "core/value.h"
#include "unit.h"
#include "variants.h"

/* ---- Buffers whose last byte is the last of a page, with nothing behind it (a device has others) ---- */
static inline size_t guard_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static inline void *guarded(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), all = guard_pages(bytes);
    if (!reachable)
        return memset(tested->alloc(order, TAGCI_HOST, bytes), 0xa5, bytes);
    char *at = mmap(NULL, all + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at + all, page, PROT_NONE), 0);
    memset(at, 0xa5, all);
    return at + all - bytes;
}

static inline void unguard(void *at, size_t bytes)
{
    if (!reachable && at)
        tested->release(order, TAGCI_HOST, at);
    else if (at)
        munmap((char *)at + bytes - guard_pages(bytes), guard_pages(bytes) + (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- Data ---- */
static inline uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline double draw_unit(uint64_t *state)
{
    return (double)(draw(state) >> 11) * 0x1p-53;
}

enum pattern {
    BELL,     /* sums of uniform numbers: shaped like gradients */
    WIDE,     /* magnitudes over many orders */
    ODDITIES, /* bell, with NaN, Inf, -0, subnormals, huge values thrown in */
    SCALED,   /* bell times 65536 */
    NARROW,   /* all between 1e-3 and 2e-3 */
    EQUAL,    /* one magnitude, both signs */
    SPARSE,   /* one in twenty is not zero */
    TINY,     /* around 1e-40 (double: 1e-310) */
    LEVELS,   /* integers from -3 to 3 */
    LATE,     /* large values, and one NaN at the end */
    ZEROS,    /* zeros of both signs */
    POISON,   /* mostly NaN and Inf */
    PATTERNS
};

static inline double draw_value(enum pattern pattern, uint64_t *state, size_t i, size_t n, int wide)
{
    double bell = (draw_unit(state) + draw_unit(state) + draw_unit(state) - draw_unit(state) - draw_unit(state) -
                   draw_unit(state)) *
                  0.01;
    double sign = draw(state) & 1 ? -1 : 1;
    unsigned odd = draw(state) % 100;
    int power;
    switch (pattern) {
    case WIDE:
        power = (int)(draw(state) % (wide ? 600 : 80)) - (wide ? 300 : 60);
        return sign * ldexp(1 + draw_unit(state), power);
    case ODDITIES:
        switch (odd) {
        case 0:
            return NAN;
        case 1:
            return sign * INFINITY;
        case 2:
            return sign * 0.0;
        case 3:
            return sign * 1e-41;
        case 4:
            return sign * 3.4e38;
        case 5:
            return sign * 65519.0;
        case 6:
            return sign * (wide ? 1.7e308 : 65521.0);
        default:
            return bell;
        }
    case SCALED:
        return bell * 65536;
    case NARROW:
        return sign * (1e-3 + 1e-3 * draw_unit(state));
    case EQUAL:
        return sign * 0.37;
    case SPARSE:
        return odd < 5 ? bell : sign * 0.0;
    case TINY:
        return bell * (wide ? 1e-307 : 1e-38);
    case LEVELS:
        return (double)(draw(state) % 7) - 3;
    case LATE:
        return i + 1 == n ? NAN : bell * 1000;
    case ZEROS:
        return sign * 0.0;
    case POISON:
        return odd < 60 ? NAN : odd < 90 ? sign * INFINITY : bell;
    default:
        return bell;
    }
}

static inline void fill_input(enum tagci_type type, enum pattern pattern, uint64_t seed, size_t n, void *out)
{
    uint64_t state = seed;
    for (size_t i = 0; i < n; i++) {
        double x = draw_value(pattern, &state, i, n, type == TAGCI_F64);
        if (type == TAGCI_F64)
            ((double *)out)[i] = x;
        else if (type == TAGCI_F32)
            ((float *)out)[i] = (float)x;
        else
            ((uint16_t *)out)[i] = type == TAGCI_F16 ? tagci_f64_to_f16(x) : tagci_f64_to_bf16(x);
    }
}

/* Residuals: finite, in the work type. */
static inline void fill_residual(enum tagci_type type, uint64_t seed, size_t n, void *out)
{
    uint64_t state = seed;
    for (size_t i = 0; i < n; i++) {
        double x = draw(&state) % 4 ? draw_value(BELL, &state, i, n, 0) : 0;
        if (type == TAGCI_F64)
            ((double *)out)[i] = x;
        else
            ((float *)out)[i] = (float)x;
    }
}

/* ---- Numbers of the work type, held in a double (every float is one) ---- */
static inline double work_get(enum tagci_type type, const void *at, size_t i)
{
    return type == TAGCI_F64 ? ((const double *)at)[i] : (double)((const float *)at)[i];
}

static inline void work_put(enum tagci_type type, void *at, size_t i, double x)
{
    if (type == TAGCI_F64)
        ((double *)at)[i] = x;
    else
        ((float *)at)[i] = (float)x;
}

static inline double work_round(enum tagci_type type, double x)
{
    return type == TAGCI_F64 ? x : (double)(float)x;
}

static inline uint64_t work_key(enum tagci_type type, double x)
{
    if (type == TAGCI_F64)
        return tagci_f64_bits(x) & INT64_MAX;
    return x != x ? TAGCI_F32_NAN : tagci_f32_bits((float)x) & INT32_MAX;
}

static inline double input_get(enum tagci_type type, const void *in, const void *residual, size_t i)
{
    double x = type == TAGCI_F64   ? ((const double *)in)[i]
               : type == TAGCI_F32 ? (double)((const float *)in)[i]
               : type == TAGCI_F16 ? (double)tagci_f16_to_f32(((const uint16_t *)in)[i])
                                   : (double)tagci_bf16_to_f32(((const uint16_t *)in)[i]);
    /* a sum of two floats in double, rounded to float, is their float sum: double has more than twice the digits */
    return residual ? work_round(type, x + work_get(type, residual, i)) : x;
}

static inline uint64_t reference_inf(enum tagci_type type)
{
    return type == TAGCI_F64 ? TAGCI_KEY_INF_F64 : TAGCI_KEY_INF_F32;
}

/* What sparsify must give: v and kept for n elements. */
static inline size_t reference_cut(const struct tagci_chunk *c, double *v, unsigned char *kept)
{
    size_t count = 0, run = 0, used = 0;
    uint64_t ties = c->nruns ? c->runs[0].cut.ties : 0;
    for (size_t i = 0; i < c->n; i++) {
        v[i] = input_get(c->type, c->in, c->residual, i);
        kept[i] = 1;
        if (!c->all) {
            while (used == c->runs[run].n) {
                used = 0;
                ties = c->runs[++run].cut.ties;
            }
            uint64_t key = work_key(c->type, v[i]), cut = c->runs[run].cut.key;
            kept[i] = key > cut || key >= reference_inf(c->type);
            if (key == cut && key < reference_inf(c->type) && ties > 0) {
                kept[i] = 1;
                ties -= ties != UINT64_MAX;
            }
            used++;
        }
        count += kept[i];
    }
    return count;
}

/* ---- Value forms, value by value ---- */
static inline uint16_t reference_half(enum tagci_value form, double v)
{
    int brain = form == TAGCI_VALUE_BFLOAT16;
    uint16_t h = brain ? tagci_f64_to_bf16(v) : tagci_f64_to_f16(v), inf = brain ? 0x7f80 : 0x7c00;
    return isfinite(v) && (h & 0x7fff) == inf ? h - 1 : h;
}

static inline double reference_half_value(enum tagci_value form, uint16_t h)
{
    return form == TAGCI_VALUE_BFLOAT16 ? tagci_bf16_to_f32(h) : tagci_f16_to_f32(h);
}

/* A block's scale and codes; values that are not finite count as zero. */
static inline uint16_t reference_block(enum tagci_type type, enum tagci_value form, const double *values, size_t m,
                                       int *codes)
{
    double largest = 0, v[TAGCI_VALUE_BLOCK];
    for (size_t i = 0; i < m; i++) {
        v[i] = isfinite(values[i]) ? values[i] : 0;
        largest = fmax(largest, fabs(v[i]));
    }
    uint32_t scale = 0;
    if (form == TAGCI_VALUE_TERNARY) {
        double sum[8] = {0}, above[8] = {0};
        int nonzero = 0, chosen = 0;
        for (size_t i = 0; i < m; i++) {
            sum[i % 8] += fmin(fabs(v[i]), tagci_bf16_to_f32(0x7f7f));
            nonzero += v[i] != 0;
        }
        double mean = (((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]))) / nonzero;
        for (size_t i = 0; i < m; i++) {
            codes[i] = 0;
            if (nonzero && fmin(fabs(v[i]), tagci_bf16_to_f32(0x7f7f)) > 0.7 * mean) {
                above[i % 8] += fmin(fabs(v[i]), tagci_bf16_to_f32(0x7f7f));
                codes[i] = v[i] < 0 ? -1 : 1;
                chosen++;
            }
        }
        double total =
            ((above[0] + above[4]) + (above[2] + above[6])) + ((above[1] + above[5]) + (above[3] + above[7]));
        scale = chosen ? reference_half(TAGCI_VALUE_BFLOAT16, total / chosen) : 0;
        for (size_t i = 0; i < m && scale == 0; i++)
            codes[i] = 0;
        return (uint16_t)scale;
    }
    int levels = form == TAGCI_VALUE_INT8 ? 127 : 7;
    while (scale < 0x7f7f && tagci_bf16_to_f32((uint16_t)scale) < largest / levels)
        scale++; /* the first one that is large enough */
    double most = type == TAGCI_F64 ? 1.7976931348623157e308 : 3.4028234663852886e38;
    if (tagci_bf16_to_f32((uint16_t)scale) * (double)levels > most)
        scale--;
    for (size_t i = 0; i < m; i++) {
        double x = scale ? work_round(type, v[i] / tagci_bf16_to_f32((uint16_t)scale)) : 0;
        codes[i] = x >= levels ? levels : x <= -levels ? -levels : (int)nearbyint(x);
    }
    return (uint16_t)scale;
}

/* ---- Frames ---- */
struct bytes {
    unsigned char *at;
    size_t n;
};

static inline void push(struct bytes *b, const void *data, size_t n)
{
    memcpy(b->at + b->n, data, n);
    b->n += n;
}

static inline void pad(struct bytes *b)
{
    while (b->n % 8)
        b->at[b->n++] = 0;
}

static inline size_t reference_index_bytes(size_t n)
{
    return (n + 63) / 64 * 8;
}

/* Bits of the high and of the low part of a coded index with 2^l elements to a bucket. */
static inline size_t reference_coded_bytes(size_t n, size_t kept, int l)
{
    size_t high = kept ? kept + (n - 1) / ((size_t)1 << l) : 0, low = kept * (size_t)l;
    return (high + 63) / 64 * 8 + (low + 63) / 64 * 8;
}

static inline int reference_coded_low(size_t n, size_t kept)
{
    int best = 0;
    for (int l = 1; l <= 10; l++)
        if (reference_coded_bytes(n, kept, l) < reference_coded_bytes(n, kept, best))
            best = l;
    return best;
}

/* 1: bitmap, 2: coded. */
static inline int reference_index_form(enum tagci_index wanted, size_t n, size_t kept)
{
    size_t coded = reference_coded_bytes(n, kept, reference_coded_low(n, kept)), bitmap = reference_index_bytes(n);
    if (wanted == TAGCI_INDEX_CODED)
        return coded < bitmap ? 2 : 1;
    return wanted == TAGCI_INDEX_AUTO && 4 * coded <= 3 * bitmap ? 2 : 1;
}

/* Bytes of values and their scales. */
static inline size_t reference_value_bytes(enum tagci_type type, enum tagci_value form, size_t kept)
{
    size_t blocks = (kept + 127) / 128, last = kept % 128;
    switch (form) {
    case TAGCI_VALUE_NATIVE:
        return (kept * (type == TAGCI_F64 ? 8 : type == TAGCI_F32 ? 4 : 2) + 7) / 8 * 8;
    case TAGCI_VALUE_INT8:
        return (blocks * 2 + 7) / 8 * 8 + (kept + 7) / 8 * 8;
    case TAGCI_VALUE_INT4:
        return (blocks * 2 + 7) / 8 * 8 + ((kept + 1) / 2 + 7) / 8 * 8;
    case TAGCI_VALUE_TERNARY:
        return (blocks * 2 + 7) / 8 * 8 + (kept / 128 * 26 + (last + 4) / 5 + 7) / 8 * 8;
    default:
        return (kept * 2 + 7) / 8 * 8;
    }
}

/* The index of the elements that are kept. */
static inline void reference_push_index(struct bytes *out, int form, const unsigned char *kept, size_t n, size_t count)
{
    int l = reference_coded_low(n, count);
    size_t low = form == 2 ? (count * (size_t)l + 63) / 64 * 8 : 0;
    size_t high = form == 2 ? reference_coded_bytes(n, count, l) - low : reference_index_bytes(n);
    unsigned char *at = out->at + out->n;
    memset(at, 0, high + low);
    for (size_t p = 0, i = 0; p < n; p++) {
        if (!kept[p])
            continue;
        size_t bit = form == 2 ? p / ((size_t)1 << l) + i : p;
        at[bit / 8] |= (unsigned char)(1 << bit % 8);
        for (size_t b = 0; form == 2 && b < (size_t)l; b++)
            at[high + (i * (size_t)l + b) / 8] |= (unsigned char)((p >> b & 1) << (i * (size_t)l + b) % 8);
        i++;
    }
    out->n += high + low;
}

/* Writes the frame that a chunk must give to `to` (room: 16 bytes an element and 64 more) and what its residuals must be
 * to rest. Returns its bytes. */
static inline size_t reference_encode(const struct tagci_chunk *c, unsigned char *to, void *rest, size_t *kept_count)
{
    double *v = malloc((c->n + 1) * sizeof *v), *sent = calloc(c->n + 1, sizeof *sent);
    unsigned char *kept = malloc(c->n + 1);
    size_t count = *kept_count = reference_cut(c, v, kept), escapes = 0;
    struct bytes out = {to, 0};
    enum tagci_value form = c->value;
    int blocked = form >= TAGCI_VALUE_INT8;

    for (size_t i = 0; i < c->n; i++)
        escapes += kept[i] && !isfinite(v[i]);
    if (blocked && escapes * 64 > count)
        blocked = 0, form = TAGCI_VALUE_NATIVE;
    int index = reference_index_form(c->index, c->n, count);
    size_t index_bytes =
        index == 2 ? reference_coded_bytes(c->n, count, reference_coded_low(c->n, count)) : reference_index_bytes(c->n);
    int indexed =
        !c->all && count < c->n &&
        index_bytes + reference_value_bytes(c->type, form, count) <= reference_value_bytes(c->type, form, c->n);
    size_t m = 0, *from = malloc((c->n + 1) * sizeof *from);
    double *values = calloc(c->n + 1, sizeof *values);
    for (size_t i = 0; i < c->n; i++)
        if (kept[i] || !indexed) {
            from[m] = i;
            values[m++] = kept[i] ? v[i] : 0;
        }

    unsigned char head[4] = {2, (unsigned char)(indexed ? index : 0), (unsigned char)form, (unsigned char)c->type};
    uint32_t numbers[3] = {(uint32_t)m, blocked ? (uint32_t)escapes : 0, 0};
    push(&out, head, 4);
    push(&out, numbers, 12);
    if (indexed)
        reference_push_index(&out, index, kept, c->n, count);
    if (blocked) {
        unsigned char *codes = calloc(m + 8, 1);
        size_t bytes = 0;
        for (size_t b = 0; b * 128 < m; b++) {
            size_t size = m - b * 128 < 128 ? m - b * 128 : 128;
            int code[TAGCI_VALUE_BLOCK];
            uint16_t scale = reference_block(c->type, form, values + b * 128, size, code);
            push(&out, &scale, 2);
            for (size_t i = 0; i < size; i++) {
                sent[from[b * 128 + i]] = code[i] * (double)tagci_bf16_to_f32(scale);
                if (form == TAGCI_VALUE_INT8)
                    codes[bytes + i] = (unsigned char)code[i];
                else if (form == TAGCI_VALUE_INT4)
                    codes[bytes + i / 2] |= (unsigned char)((code[i] & 15) << i % 2 * 4);
                else
                    codes[bytes + i / 5] += (unsigned char)((code[i] + 3) % 3 * (int)pow(3, (double)(i % 5)));
            }
            bytes += form == TAGCI_VALUE_INT8 ? size : form == TAGCI_VALUE_INT4 ? (size + 1) / 2 : (size + 4) / 5;
        }
        pad(&out);
        push(&out, codes, bytes);
        pad(&out);
        free(codes);
        for (uint32_t i = 0; i < m; i++)
            if (!isfinite(values[i]))
                push(&out, &i, 4);
        pad(&out);
    }
    if (form == TAGCI_VALUE_NATIVE && c->type == TAGCI_F16)
        form = TAGCI_VALUE_FLOAT16;
    if (form == TAGCI_VALUE_NATIVE && c->type == TAGCI_BF16)
        form = TAGCI_VALUE_BFLOAT16;
    for (size_t i = 0; i < m; i++) {
        double x = values[i] != values[i] ? NAN : values[i];
        float narrow = (float)x;
        if (blocked && isfinite(x))
            continue;
        if (blocked || form == TAGCI_VALUE_NATIVE) {
            push(&out, c->type == TAGCI_F64 ? (void *)&x : (void *)&narrow, tagci_work_size(c->type));
            sent[from[i]] = x;
        } else {
            uint16_t h = reference_half(form, x);
            push(&out, &h, 2);
            sent[from[i]] = reference_half_value(form, h);
        }
    }
    pad(&out);
    for (size_t i = 0; i < c->n; i++)
        work_put(c->type, rest, i, !kept[i] ? v[i] + 0.0 : isfinite(v[i]) ? v[i] - sent[i] + 0.0 : 0);
    free(v);
    free(sent);
    free(kept);
    free(from);
    free(values);
    return out.n;
}

#endif
