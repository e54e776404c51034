/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The compressor of the all-gather: what goes in comes out, in no more than the bound, and as small as promised. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/frame.h"
#include "core/half.h"
#include "core/hash.h"
#include "core/lossless.h"
#include "core/lossless_round.h"
#include "core/value.h"
#include "util/mem.h"

#define BLOCK TAGCI_LOSSLESS_BLOCK
#define TYPES (TAGCI_TYPES + 1) /* and bytes */
#define MOST (3 * BLOCK + 77)

static struct tagci_lossless_work *work;
static unsigned char *now, *before, *coded, *back;

static int setup(void **state)
{
    (void)state;
    work = malloc(sizeof *work);
    now = malloc(MOST * 8 + 8);
    before = malloc(MOST * 8 + 8);
    coded = malloc(tagci_lossless_bound(TAGCI_F64, MOST) + 64);
    back = malloc(MOST * 8 + 8);
    memset(work, 0x5a, sizeof *work);
    return work && now && before && coded && back ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(work);
    free(now);
    free(before);
    free(coded);
    free(back);
    return 0;
}

/* ---- Data -------------------------------------------------------------------------------------- */

static double uniform(uint64_t stream, uint64_t i)
{
    return ((double)(tagci_hash(stream, i) >> 11) + 0.5) * 0x1p-53;
}

/* Close to a Gaussian, the same on every machine: no mathematical library. */
static double bell(uint64_t stream, uint64_t i)
{
    return uniform(stream, 4 * i) + uniform(stream, 4 * i + 1) + uniform(stream, 4 * i + 2) +
           uniform(stream, 4 * i + 3) - 2;
}

static void put(int type, unsigned char *at, size_t i, double x)
{
    if (type == TAGCI_F64) {
        memcpy(at + 8 * i, &x, 8);
    } else if (type == TAGCI_F32) {
        float f = (float)x;
        memcpy(at + 4 * i, &f, 4);
    } else if (type == TAGCI_LOSSLESS_BYTES) {
        at[i] = (unsigned char)(int)floor(fabs(x) < 3 ? 40 * x : 1);
    } else {
        uint16_t h = type == TAGCI_F16 ? tagci_f64_to_f16(x) : tagci_f64_to_bf16(x);
        memcpy(at + 2 * i, &h, 2);
    }
}

enum data { ZERO, WEIGHTS, STEP, SMALL_STEP, TINY_STEP, RANDOM, RANDOM_EXPONENTS, SPARSE, MIXED, SPECIAL, FAR, LAST };

static void fill(int type, enum data data, size_t n, uint64_t seed, unsigned char *at)
{
    const size_t size = tagci_lossless_size(type);
    for (size_t i = 0; i < n; i++) {
        double w = 0.05 * bell(1, i);
        uint64_t bits = tagci_hash(seed, i);
        switch (data) {
        case ZERO:
            w = 0;
            break;
        case WEIGHTS:
            break;
        case STEP:
            w += 0.001 * bell(seed, i);
            break;
        case SMALL_STEP:
            w += 0.00003 * bell(seed, i);
            break;
        case TINY_STEP:
            w += i % 97 == seed % 97 ? 0.001 : 0;
            break;
        case SPARSE:
            w = bits % 4 ? 0 : w;
            break;
        case MIXED: /* one block of noise among others */
            if (i / BLOCK != 1)
                break;
            /* fall through */
        case RANDOM:
            memcpy(at + i * size, &bits, size);
            continue;
        case RANDOM_EXPONENTS: /* what would be coded if the sample were all */
            if (i % 2048 > 64) {
                memcpy(at + i * size, &bits, size);
                continue;
            }
            break;
        case SPECIAL: {
            static const uint64_t f64[] = {0x7ff0000000000001, 0xfff8000000000123, 0x7ff0000000000000,
                                           0xfff0000000000000, 0x8000000000000000, 1,
                                           0x800fffffffffffff, 0x7fefffffffffffff};
            static const uint32_t f32[] = {0x7f800001, 0xffc01234, 0x7f800000, 0xff800000,
                                           0x80000000, 1,          0x807fffff, 0x7f7fffff};
            static const uint16_t f16[] = {0x7c01, 0xfe12, 0x7c00, 0xfc00, 0x8000, 1, 0x83ff, 0x7bff};
            static const uint16_t bf16[] = {0x7f81, 0xffc1, 0x7f80, 0xff80, 0x8000, 1, 0x807f, 0x7f7f};
            unsigned k = bits >> 8 & 7;
            if (bits % 16)
                break;
            if (type == TAGCI_F64)
                memcpy(at + i * size, &f64[k], 8);
            else if (type == TAGCI_F32)
                memcpy(at + i * size, &f32[k], 4);
            else if (size == 2)
                memcpy(at + i * size, type == TAGCI_F16 ? &f16[k] : &bf16[k], 2);
            else
                at[i] = (unsigned char)bits;
            continue;
        }
        case FAR: /* the change does not fit: everything would be an escape */
            w = i % 2 == seed % 2 ? 1e30 * w : -1e-30 * w;
            break;
        default:
            break;
        }
        put(type, at, i, w);
    }
}

static size_t round_trip(int type, const void *x, const void *y, size_t n)
{
    const size_t size = tagci_lossless_size(type), bound = tagci_lossless_bound(type, n);
    const char *reason;
    assert_true(bound == n * size + 4 * tagci_lossless_blocks(n));
    memset(coded, 0xee, bound + 16);
    size_t bytes = tagci_lossless_encode(type, x, y, n, coded, work);
    assert_true(bytes <= bound);
    for (size_t i = bound; i < bound + 16; i++)
        assert_int_equal(coded[i], 0xee);
    assert_int_equal(tagci_lossless_length(coded, bytes, n), n ? bytes : 0);
    /* from memory of exactly that size, so that sanitizers see every read */
    unsigned char *in = malloc(bytes + !bytes), *out = malloc(n * size + 1);
    memcpy(in, coded, bytes);
    out[n * size] = 0x77;
    if (tagci_lossless_decode(type, in, bytes, y, n, out, work, &reason))
        fail_msg("type %d, n %zu: %s", type, n, reason);
    assert_memory_equal(out, x, n * size);
    assert_int_equal(out[n * size], 0x77);
    if (y) { /* the memory moves on in place */
        memcpy(out, y, n * size);
        assert_int_equal(tagci_lossless_decode(type, in, bytes, out, n, out, work, &reason), 0);
        assert_memory_equal(out, x, n * size);
    }
    /* twice the same bytes, with other scratch */
    memset(work, 0xa5, sizeof *work);
    unsigned char *again = malloc(bound + 1);
    assert_int_equal(tagci_lossless_encode(type, x, y, n, again, work), bytes);
    assert_memory_equal(again, in, bytes);
    free(again);
    free(in);
    free(out);
    return bytes;
}

/* ---- Entropy coding ---------------------------------------------------------------------------- */

static void codes_are_complete_and_good(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 60; kind++) {
        uint32_t count[256] = {0};
        uint8_t length[256], read[256];
        unsigned char text[TAGCI_HUFF_LENGTHS_MAX];
        size_t bits, total = 0;
        unsigned symbols = kind < 20 ? kind : kind * 4 + 16;
        for (unsigned s = 0; s < symbols; s++) {
            /* flat, geometric (so that lengths are cut), Fibonacci, random */
            uint32_t f[2] = {1, 1};
            for (unsigned i = 0; i < s && i < 20; i++) {
                uint32_t g = f[0] + f[1];
                f[0] = f[1];
                f[1] = g;
            }
            count[(s * 7 + kind) % 256] = kind % 4 == 0   ? 3
                                          : kind % 4 == 1 ? 1u << (s < 14 ? s : 0)
                                          : kind % 4 == 2 ? f[0] % 9999
                                                          : 1 + tagci_hash(kind, s) % 100;
        }
        for (unsigned s = 0; s < 256; s++)
            total += count[s];
        assert_int_equal(tagci_huff_lengths(count, length, &bits), symbols);
        if (symbols < 2)
            continue;
        double entropy = 0, space = 0;
        size_t sum = 0;
        for (unsigned s = 0; s < 256; s++) {
            assert_int_equal(length[s] > 0, count[s] > 0);
            assert_true(length[s] <= TAGCI_HUFF_BITS);
            if (!count[s])
                continue;
            entropy -= count[s] * log2((double)count[s] / (double)total);
            space += pow(2, -(double)length[s]);
            sum += (size_t)count[s] * length[s];
            for (unsigned t = 0; t < 256; t++)
                assert_true(count[t] <= count[s] || length[t] <= length[s]);
        }
        assert_true(space == 1 && sum == bits);
        assert_true((double)bits <= entropy + (double)total);
        size_t bytes = tagci_huff_put_lengths(length, text);
        assert_true(bytes <= sizeof text);
        assert_int_equal(tagci_huff_get_lengths(text, bytes, read), bytes);
        assert_memory_equal(read, length, 256);
        for (size_t cut = 0; cut < bytes; cut++) /* what is cut off is seen */
            assert_int_equal(tagci_huff_get_lengths(text, cut, read), 0);
    }
}

static void pairs_are_all_different(void **state)
{
    (void)state;
    struct tagci_huff_pairs p;
    unsigned char seen[256] = {0};
    unsigned rest = 0;
    tagci_huff_pairs_init(&p);
    for (unsigned u = 0; u < 256; u++)
        for (unsigned v = 0; v < 256; v++) {
            unsigned code = tagci_huff_pair_code(&p, u, v);
            assert_int_equal(code == TAGCI_HUFF_PAIR_REST, (u + 1) * (v + 1) > TAGCI_HUFF_PAIR_MAX);
            rest += code == TAGCI_HUFF_PAIR_REST;
            assert_true(code <= TAGCI_HUFF_PAIR_REST);
            if (code < TAGCI_HUFF_PAIR_REST)
                assert_int_equal(seen[code]++, 0);
        }
    assert_int_equal(rest, 65536 - TAGCI_HUFF_PAIR_REST);
}

/* Planes of all sorts through encoder and decoder alone; each wrong length of a stream is noticed or harmless. */
static void streams_come_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {4, 5, 7, 8, 63, 64, 65, 255, 1000, 4095, BLOCK - 1, BLOCK};
    struct tagci_huff_pairs pairs;
    uint8_t *plane = malloc(BLOCK), *out = malloc(2 * BLOCK);
    tagci_huff_pairs_init(&pairs);
    for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++)
        for (unsigned kind = 0; kind < 12; kind++) {
            const size_t n = sizes[z];
            const int paired = kind % 2;
            uint32_t count[256] = {0};
            uint8_t length[256];
            uint16_t bytes[TAGCI_HUFF_STREAMS];
            size_t bits;
            for (size_t i = 0; i < n; i++) {
                uint64_t x = tagci_hash(kind, i);
                /* from one bit a symbol to eleven; the last ones uneven over the plane */
                unsigned s = kind < 2    ? (unsigned)(x % 16 == 0)
                             : kind < 4  ? (unsigned)__builtin_ctzll(x | 1ull << 40)
                             : kind < 6  ? (unsigned)(x % 250)
                             : kind < 8  ? (unsigned)(x % 3)
                             : i * 2 < n ? (unsigned)(x % 250)
                                         : (unsigned)(x % 8 == 0);
                plane[i] = (uint8_t)s;
                count[s]++;
            }
            if (tagci_huff_lengths(count, length, &bits) < 2)
                continue;
            struct tagci_huff_encoder e;
            static struct tagci_huff_decoder d;
            tagci_huff_encoder_init(&e, length);
            size_t room = bits / 8 + TAGCI_HUFF_STREAMS + 8;
            unsigned char *stream = malloc(room);
            size_t coded_bytes = (size_t)(tagci_huff_encode(&e, plane, n, stream, bytes) - stream);
            assert_true(coded_bytes <= bits / 8 + TAGCI_HUFF_STREAMS);
            unsigned char *in = malloc(coded_bytes);
            memcpy(in, stream, coded_bytes);
            assert_int_equal(tagci_huff_decoder_init(&d, length, paired ? &pairs : NULL), 0);
            size_t made = paired ? 2 * n : n;
            uint8_t *exact = malloc(made);
            assert_int_equal(tagci_huff_decode(&d, in, bytes, n, exact), 0);
            for (size_t i = 0; i < n; i++) {
                if (!paired)
                    assert_int_equal(exact[i], plane[i]);
                else if (plane[i] == TAGCI_HUFF_PAIR_REST)
                    assert_true(exact[2 * i] == 255 && exact[2 * i + 1] == 255);
                else
                    assert_int_equal(tagci_huff_pair_code(&pairs, exact[2 * i], exact[2 * i + 1]), plane[i]);
            }
            if (bytes[0] > 1) { /* a byte moves from one stream to the next */
                bytes[0]--;
                bytes[1]++;
                assert_int_equal(tagci_huff_decode(&d, in, bytes, n, exact), -1);
            }
            free(exact);
            free(in);
            free(stream);
        }
    free(plane);
    free(out);
}

/* ---- Round trips ------------------------------------------------------------------------------- */

static void everything_comes_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,   1,   2,    63,   64,   65,        127,   255,       256,
                                   257, 511, 1000, 1023, 1025, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 255,
                                   MOST};
    for (int type = 0; type < TYPES; type++)
        for (int data = 0; data < LAST; data++)
            for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
                size_t n = sizes[z], size = tagci_lossless_size(type);
                if (n > BLOCK + 1 && data % 3 != type % 3 && data != MIXED)
                    continue;
                fill(type, data, n, 7, now);
                round_trip(type, now, NULL, n);
                fill(type, data == STEP || data == SMALL_STEP || data == TINY_STEP ? WEIGHTS : data, n, 8, before);
                round_trip(type, now, before, n);
                size_t same = round_trip(type, now, now, n);
                assert_int_equal(same, 4 * tagci_lossless_blocks(n));
                memset(before, 0, n * size); /* a memory that has seen nothing */
                round_trip(type, now, before, n);
            }
}

static void any_alignment(void **state)
{
    (void)state;
    for (int type = 0; type < TYPES; type++) {
        size_t n = 3000, size = tagci_lossless_size(type);
        fill(type, STEP, n, 1, now);
        fill(type, WEIGHTS, n, 1, before);
        memmove(now + 1, now, n * size);
        memmove(before + 3, before, n * size);
        round_trip(type, now + 1, before + 3, n);
    }
}

/* All small differences, and those that just do and do not fit. */
static void differences_at_the_edges(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 16; shift++) {
        uint16_t x[4096], y[4096];
        for (unsigned i = 0; i < 4096; i++) {
            y[i] = (uint16_t)tagci_hash(3, i);
            x[i] = (uint16_t)(y[i] + ((i % 600) - 300u) * (1u << shift));
        }
        round_trip(TAGCI_BF16, x, y, 4096);
        round_trip(TAGCI_F16, x, y, 4096);
        uint32_t u[4096], v[4096];
        for (unsigned i = 0; i < 4096; i++) {
            v[i] = (uint32_t)tagci_hash(4, i);
            u[i] = v[i] + ((i % 600) - 300u) * (1u << 2 * shift);
        }
        round_trip(TAGCI_F32, u, v, 4096);
    }
    /* doubles with exponents all over: escapes of the exponent symbols */
    for (unsigned k = 0; k < 4096; k++) {
        uint64_t x = (uint64_t)(k % 16 ? 1000 + k % 5 : tagci_hash(5, k) % 2048) << 52 | tagci_hash(6, k) >> 12;
        memcpy(now + 8 * k, &x, 8);
    }
    assert_true(round_trip(TAGCI_F64, now, NULL, 4096) < 4096 * 8);
}

static void noise_does_not_grow(void **state)
{
    (void)state;
    for (int type = 0; type < TYPES; type++) {
        size_t n = 3 * BLOCK, raw = n * tagci_lossless_size(type);
        fill(type, RANDOM, n, 1, now);
        fill(type, RANDOM, n, 2, before);
        assert_int_equal(round_trip(type, now, NULL, n), raw + 12);
        assert_int_equal(round_trip(type, now, before, n), raw + 12);
        for (size_t b = 0; b < 3; b++)
            assert_int_equal(tagci_lossless_word(coded, b) >> 24, TAGCI_LOSSLESS_RAW);
        fill(type, ZERO, n, 1, now);
        assert_int_equal(round_trip(type, now, NULL, n), 12 + 3 * tagci_lossless_size(type));
    }
}

/* ---- Ratios ------------------------------------------------------------------------------------ */

static double bits_each(int type, const void *x, const void *y, size_t n)
{
    return 8.0 * (double)round_trip(type, x, y, n) / (double)n;
}

static void weights_shrink(void **state)
{
    (void)state;
    const size_t n = 2 * BLOCK;
    fill(TAGCI_BF16, WEIGHTS, n, 1, now);
    assert_true(bits_each(TAGCI_BF16, now, NULL, n) < 10.8);
    fill(TAGCI_BF16, SMALL_STEP, n, 1, before);
    assert_true(bits_each(TAGCI_BF16, now, before, n) < 2.2);
    fill(TAGCI_BF16, TINY_STEP, n, 1, before);
    assert_true(bits_each(TAGCI_BF16, now, before, n) < 0.8);
    fill(TAGCI_F32, WEIGHTS, n, 1, now);
    assert_true(bits_each(TAGCI_F32, now, NULL, n) < 26.8);
    fill(TAGCI_F32, STEP, n, 1, before);
    assert_true(bits_each(TAGCI_F32, now, before, n) < 24);
    fill(TAGCI_F16, WEIGHTS, n, 1, now);
    assert_true(bits_each(TAGCI_F16, now, NULL, n) < 13.8);
    fill(TAGCI_F64, WEIGHTS, n, 1, now);
    assert_true(bits_each(TAGCI_F64, now, NULL, n) < 55.8);
    fill(TAGCI_BF16, SPARSE, n, 1, now);
    assert_true(bits_each(TAGCI_BF16, now, NULL, n) < 10);
}

static float *read_state(int step, size_t *n)
{
    char path[4096];
    const char *root = getenv("top_srcdir");
    snprintf(path, sizeof path, "%s/../shared/data/weights/all.step%d.f32", root ? root : ".", step);
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    float *x = malloc(sizeof *x * MOST * 8);
    *n = fread(x, sizeof *x, MOST * 8, f);
    fclose(f);
    return x;
}

/* Bits of an element of trained weights, without a memory and with the state one step before. */
static void trained_weights_shrink(void **state)
{
    (void)state;
    static const struct {
        int step;
        double entropy, bf16, bf16_change, f32, f32_change, int8, int8_change;
    } pairs[] = {
        {20, 3.92, 10.75, 4.05, 26.75, 20.15, 7.8, 1.2},
        {500, 4.37, 10.75, 4.53, 26.75, 20.7, 7.8, 1.4},
        {1900, 1.69, 10.75, 1.80, 26.75, 17.4, 7.8, 0.65},
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        size_t n, m;
        float *y = read_state(pairs[k].step, &n), *x = read_state(pairs[k].step + 1, &m);
        if (!x || !y) {
            free(x);
            free(y);
            skip();
        }
        assert_true(n == m && n > 0);
        uint16_t *p = malloc(2 * n), *q = malloc(2 * n);
        for (size_t i = 0; i < n; i++) {
            q[i] = tagci_f32_to_bf16(y[i]);
            p[i] = tagci_f32_to_bf16(x[i]);
        }
        free(coded);
        coded = malloc(tagci_lossless_bound(TAGCI_F32, n) + 16);
        double got[6] = {bits_each(TAGCI_BF16, p, NULL, n), bits_each(TAGCI_BF16, p, q, n),
                         bits_each(TAGCI_F32, x, NULL, n), bits_each(TAGCI_F32, x, y, n)};
        unsigned char *old = malloc(tagci_round_state(TAGCI_ROUND_INT8, n));
        tagci_round_codes(TAGCI_ROUND_INT8, TAGCI_F32, y, n, old);
        got[4] =
            8.0 / (double)n * (double)tagci_round_encode(TAGCI_ROUND_INT8, TAGCI_F32, x, NULL, NULL, n, coded, work);
        got[5] =
            8.0 / (double)n * (double)tagci_round_encode(TAGCI_ROUND_INT8, TAGCI_F32, x, old, NULL, n, coded, work);
        print_message("step %d: bfloat16 %.3f, %.3f (entropy %.2f); float %.3f, %.3f; int8 %.3f, %.3f\n",
                      pairs[k].step + 1, got[0], got[1], pairs[k].entropy, got[2], got[3], got[4], got[5]);
        assert_true(got[0] <= pairs[k].bf16 && got[0] <= 0.69 * 16);
        assert_true(got[1] <= pairs[k].bf16_change && got[1] <= 1.08 * pairs[k].entropy);
        assert_true(got[2] <= pairs[k].f32 && got[3] <= pairs[k].f32_change);
        assert_true(got[4] <= pairs[k].int8 && got[5] <= pairs[k].int8_change);
        free(old);
        free(p);
        free(q);
        free(x);
        free(y);
    }
}

/* ---- The same bytes everywhere ----------------------------------------------------------------- */

static uint32_t golden(int type, enum data data, int remembers)
{
    size_t n = BLOCK + 5000;
    fill(type, data, n, 7, now);
    fill(type, WEIGHTS, n, 7, before);
    return tagci_crc32c(0, coded, tagci_lossless_encode(type, now, remembers ? before : NULL, n, coded, work));
}

static void golden_checksums(void **state)
{
    (void)state;
    static const enum data data[4] = {WEIGHTS, STEP, SMALL_STEP, SPECIAL};
    static const uint32_t expect[TYPES][4][2] = {
#include "lossless_golden.h"
    };
    uint32_t got[TYPES][4][2];
    for (int type = 0; type < TYPES; type++)
        for (int d = 0; d < 4; d++)
            for (int m = 0; m < 2; m++)
                got[type][d][m] = golden(type, data[d], m);
    if (memcmp(got, expect, sizeof got) == 0)
        return;
    for (int type = 0; type < TYPES; type++) {
        print_message("{");
        for (int d = 0; d < 4; d++)
            print_message("{0x%08x, 0x%08x}%s", got[type][d][0], got[type][d][1], d < 3 ? ", " : "},\n");
    }
    fail_msg("bytes are not those of tests/unit/lossless_golden.h");
}

/* ---- What does not come from the encoder ------------------------------------------------------- */

static void damage_is_harmless(void **state)
{
    (void)state;
    size_t noticed = 0, trials = 0;
    for (int type = 0; type < TYPES; type++)
        for (int remembers = 0; remembers < 2; remembers++) {
            const size_t n = 1500, size = tagci_lossless_size(type);
            const char *reason;
            fill(type, SMALL_STEP, n, 7, now);
            fill(type, WEIGHTS, n, 7, before);
            size_t bytes = tagci_lossless_encode(type, now, remembers ? before : NULL, n, coded, work);
            unsigned char *in = malloc(bytes), *out = malloc(n * size);
            for (uint64_t k = 0; k < 2500; k++) {
                uint64_t x = tagci_hash(9, k);
                memcpy(in, coded, bytes);
                size_t at = k < 64 * 8 ? k / 8 : x % bytes;
                if (at >= bytes)
                    continue;
                in[at] ^= (unsigned char)(1u << k % 8);
                if (k % 3 == 2)
                    in[(x >> 32) % bytes] = (unsigned char)(x >> 56);
                int bad = tagci_lossless_decode(type, in, bytes, remembers ? before : NULL, n, out, work, &reason);
                noticed += bad != 0;
                trials++;
                if (bad)
                    assert_non_null(reason);
            }
            for (size_t cut = 0; cut < bytes; cut++) {
                unsigned char *shorter = malloc(cut + !cut);
                memcpy(shorter, coded, cut);
                assert_int_equal(
                    tagci_lossless_decode(type, shorter, cut, remembers ? before : NULL, n, out, work, &reason), -1);
                free(shorter);
            }
            /* a memory that is not there, or another number of elements */
            if (remembers && tagci_lossless_word(coded, 0) >> 24 == TAGCI_LOSSLESS_CHANGE)
                assert_int_equal(tagci_lossless_decode(type, coded, bytes, NULL, n, out, work, &reason), -1);
            if (tagci_lossless_word(coded, 0) >> 24 != TAGCI_LOSSLESS_SAME)
                assert_int_equal(tagci_lossless_decode(type, coded, bytes, before, n - 400, out, work, &reason), -1);
            free(in);
            free(out);
        }
    assert_true(noticed > trials / 20);
}

/* ---- Rounding ---------------------------------------------------------------------------------- */

static double get(enum tagci_type type, const unsigned char *at, size_t i)
{
    float f;
    double d;
    uint16_t h;
    if (type == TAGCI_F64)
        return memcpy(&d, at + 8 * i, 8), d;
    if (type == TAGCI_F32)
        return memcpy(&f, at + 4 * i, 4), (double)f;
    memcpy(&h, at + 2 * i, 2);
    return type == TAGCI_F16 ? tagci_f16_to_f32(h) : tagci_bf16_to_f32(h);
}

static double within(enum tagci_round form, enum tagci_type type, size_t n, size_t i)
{
    double x = get(type, now, i), largest = 0;
    double own = type == TAGCI_F16 ? fabs(x) * 0x1p-11 + 0x1p-25 : type == TAGCI_BF16 ? fabs(x) * 0x1p-8 : 0;
    if (form == TAGCI_ROUND_BFLOAT16)
        return type == TAGCI_BF16 ? 0 : fabs(x) * 0x1p-8 + (type == TAGCI_F16 ? 0x1p-25 : 0x1p-134);
    for (size_t j = i / 128 * 128; j < n && j < i / 128 * 128 + 128; j++) {
        double y = fabs(get(type, now, j));
        largest = isfinite(y) && y > largest ? y : largest;
    }
    return largest / 126 * (1 + 0x1p-7) / 2 * (1 + 0x1p-20) + own * (1 + 0x1p-7) + 0x1p-133;
}

static void rounding_is_one_rounding(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 127, 128, 129, 300, 1001, BLOCK, BLOCK + 131};
    for (int form = 0; form < 2; form++)
        for (int type = 0; type < TAGCI_TYPES; type++)
            for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++)
                for (int special = 0; special < 2; special++) {
                    const size_t n = sizes[z], size = tagci_type_size((enum tagci_type)type);
                    const size_t held = tagci_round_state((enum tagci_round)form, n);
                    const char *reason;
                    fill(type, special ? SPECIAL : STEP, n, 1, now);
                    fill(type, WEIGHTS, n, 1, before);
                    unsigned char *old = malloc(held + 1), *mine = malloc(held + 1), *yours = malloc(held + 1);
                    unsigned char *own = malloc(n * size + 1);
                    tagci_round_codes(form, type, before, n, old);
                    memcpy(yours, old, held);
                    memcpy(mine, old, held);
                    for (int remembers = 0; remembers < 2; remembers++) {
                        size_t bytes =
                            tagci_round_encode(form, type, now, remembers ? mine : NULL, mine, n, coded, work);
                        assert_true(bytes <= tagci_round_bound(form, n));
                        assert_int_equal(tagci_round_decode(form, type, coded, bytes, remembers ? yours : NULL, yours,
                                                            n, back, work, &reason),
                                         0);
                        assert_memory_equal(mine, yours, held);
                        tagci_round_values(form, type, mine, n, own); /* the owner has the same bits */
                        assert_memory_equal(own, back, n * size);
                        memcpy(mine, old, held);
                        memcpy(yours, old, held);
                        assert_int_equal(tagci_round_decode(form, type, coded, bytes, remembers ? yours : NULL, NULL, n,
                                                            back, work, &reason),
                                         0);
                        assert_memory_equal(own, back, n * size);
                        for (size_t i = 0; i < n; i++) {
                            double x = get(type, now, i), y = get(type, back, i);
                            if (isnan(x))
                                assert_true(isnan(y));
                            else if (isinf(x))
                                assert_true(x == y);
                            else if (!(fabs(x - y) <= within(form, type, n, i)) && !(fabs(x) > 1e4 && isfinite(y)))
                                fail_msg("form %d type %d n %zu: %.17g became %.17g", form, type, n, x, y);
                        }
                        for (size_t cut = 0; cut < bytes && cut < 100; cut++)
                            assert_int_equal(
                                tagci_round_decode(form, type, coded, cut, NULL, NULL, n, back, work, &reason), -1);
                    }
                    free(old);
                    free(mine);
                    free(yours);
                    free(own);
                }
}

static void bounds_do_not_wrap(void **state)
{
    (void)state;
    assert_int_equal(tagci_lossless_bound(TAGCI_F64, SIZE_MAX / 4), SIZE_MAX);
    assert_int_equal(tagci_lossless_bound(TAGCI_F32, SIZE_MAX / 4), SIZE_MAX);
    assert_int_equal(tagci_round_bound(TAGCI_ROUND_BFLOAT16, SIZE_MAX), SIZE_MAX);
    assert_int_equal(tagci_round_bound(TAGCI_ROUND_INT8, SIZE_MAX), SIZE_MAX);
    assert_int_equal(tagci_lossless_bound(TAGCI_F32, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_complete_and_good),
        cmocka_unit_test(pairs_are_all_different),
        cmocka_unit_test(streams_come_back),
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(any_alignment),
        cmocka_unit_test(differences_at_the_edges),
        cmocka_unit_test(noise_does_not_grow),
        cmocka_unit_test(weights_shrink),
        cmocka_unit_test(golden_checksums),
        cmocka_unit_test(damage_is_harmless),
        cmocka_unit_test(rounding_is_one_rounding),
        cmocka_unit_test(bounds_do_not_wrap),
        cmocka_unit_test(trained_weights_shrink),
    };
    return cmocka_run_group_tests_name("lossless", tests, setup, teardown);
}
