/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Frames: sizes, layout, and what is refused. That what is not refused does no harm is for tests/fuzz/fuzz_frame.c. */
#include "core/bitmap.h"
#include "core/index_coded.h"
#include "reference.h"

static const size_t sizes[] = {0, 1, 5, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 65535, 65536};
#define SIZES (sizeof sizes / sizeof *sizes)

static void test_sizes(void **state)
{
    (void)state;
    for (int type = 0; type < TAGCI_TYPES; type++)
        for (int value = 0; value < TAGCI_VALUES; value++)
            for (size_t i = 0; i < SIZES; i++)
                for (size_t j = 0; j <= i; j++) {
                    size_t n = sizes[i], kept = sizes[j], work = type == TAGCI_F64 ? 8 : 4;
                    size_t values = reference_value_bytes(type, value, kept);
                    assert_int_equal(tagci_frame_bytes(type, value, n, 1, kept, 0),
                                     16 + reference_index_bytes(n) + values);
                    assert_true(tagci_frame_bytes(type, value, n, 1, kept, 0) <= tagci_frame_bound(type, value, n));
                    if (tagci_index_form(TAGCI_INDEX_CODED, n, kept) == TAGCI_INDEX_CODED) {
                        assert_int_equal(tagci_frame_bytes(type, value, n, 2, kept, 0),
                                         16 + reference_coded_bytes(n, kept, reference_coded_low(n, kept)) + values);
                        assert_true(tagci_frame_bytes(type, value, n, 2, kept, 0) <= tagci_frame_bound(type, value, n));
                    }
                    if (kept == n)
                        assert_int_equal(tagci_frame_bytes(type, value, n, 0, kept, 0), 16 + values);
                    if (value >= TAGCI_VALUE_INT8) {
                        size_t escapes = kept / 64;
                        assert_int_equal(tagci_frame_bytes(type, value, n, 1, kept, escapes),
                                         16 + reference_index_bytes(n) + values + (escapes * 4 + 7) / 8 * 8 +
                                             (escapes * work + 7) / 8 * 8);
                        assert_true(tagci_frame_bytes(type, value, n, 1, kept, escapes) <=
                                    tagci_frame_bound(type, value, n));
                    }
                }
    /* far beyond memory, and no overflow */
    assert_int_equal(tagci_frame_bytes(TAGCI_F64, TAGCI_VALUE_NATIVE, (size_t)1 << 40, 1, (size_t)1 << 40, 0),
                     16 + ((size_t)1 << 37) + ((size_t)1 << 43));
}

/* A frame with n elements of which every third, or with a coded index every seventh, is kept, and escapes at ranks 1 and 3
 * where the form has them. */
static unsigned char *make(enum tagci_type type, enum tagci_value value, size_t n, int indexed, size_t *bytes)
{
    size_t step = indexed == 2 ? 7
                  : indexed    ? 3
                               : 1,
           kept = (n + step - 1) / step, escapes = value >= TAGCI_VALUE_INT8 && kept > 3 ? 2 : 0;
    struct tagci_frame f;
    *bytes = tagci_frame_bytes(type, value, n, indexed, kept, escapes);
    unsigned char *at = guarded(*bytes);
    memset(at, 0xcc, *bytes);
    tagci_frame_lay(at, type, value, n, indexed, kept, escapes, &f);
    assert_int_equal(f.bytes, *bytes);
    assert_int_equal(f.kept, kept);
    assert_int_equal(f.index != NULL, indexed && n > 0);
    assert_int_equal(f.scales != NULL, value >= TAGCI_VALUE_INT8 && kept > 0);
    assert_int_equal(f.codes != NULL, kept > 0);
    assert_int_equal(f.escape_values != NULL, escapes > 0);
    assert_int_equal(f.low != NULL, indexed == 2 && n > 0);
    if (f.index) {
        struct bytes index = {at + TAGCI_FRAME_HEADER, 0};
        unsigned char *here = calloc(n, 1);
        for (size_t i = 0; i < n; i += step)
            here[i] = 1;
        reference_push_index(&index, indexed, here, n, kept);
        free(here);
    }
    const uint32_t ranks[2] = {1, 3};
    if (escapes)
        memcpy(at + (f.escape_ranks - at), ranks, 8);
    return at;
}

static void test_lay_and_read(void **state)
{
    (void)state;
    for (int type = 0; type < TAGCI_TYPES; type++)
        for (int value = 0; value < TAGCI_VALUES; value++)
            for (size_t i = 0; i < SIZES; i++)
                for (int indexed = 0; indexed < 3; indexed++) {
                    size_t n = sizes[i], bytes;
                    if (indexed == 2 && tagci_index_form(TAGCI_INDEX_CODED, n, (n + 6) / 7) != TAGCI_INDEX_CODED)
                        continue;
                    unsigned char *at = make(type, value, n, indexed, &bytes);
                    struct tagci_frame f;
                    const char *reason = NULL;
                    assert_int_equal(tagci_frame_read(at, bytes, type, n, 0, &f, &reason), 0);
                    assert_int_equal(f.bytes, bytes);
                    assert_int_equal(f.indexed, indexed);
                    assert_int_equal(f.value, value);
                    assert_int_equal(tagci_frame_read(at, bytes, type, n, 1, &f, &reason), -1); /* not sealed */
                    tagci_frame_seal(at, bytes);
                    assert_int_equal(tagci_frame_read(at, bytes, type, n, 1, &f, &reason), 0);
                    for (size_t cut = bytes > 60 ? bytes - 60 : 0; cut < bytes; cut++)
                        assert_int_equal(tagci_frame_read(at, cut, type, n, 0, &f, &reason), -1);
                    assert_int_equal(tagci_frame_read(at, bytes, (type + 1) % TAGCI_TYPES, n, 0, &f, &reason), -1);
                    unguard(at, bytes);
                }
}

/* Padding is zero whatever stood there, or bytes would not be a function of the input. */
static void test_padding(void **state)
{
    (void)state;
    struct tagci_frame f;
    unsigned char at[256];
    memset(at, 0xff, sizeof at);
    tagci_frame_lay(at, TAGCI_F32, TAGCI_VALUE_INT8, 5, 0, 5, 1, &f);
    assert_int_equal(f.bytes, 16 + 8 + 8 + 8 + 8);
    const unsigned char zero[8] = {0};
    assert_memory_equal(f.scales + 2, zero, 6);
    assert_memory_equal(f.codes + 5, zero, 3);
    assert_memory_equal(f.escape_ranks + 4, zero, 4);
    assert_memory_equal(f.escape_values + 4, zero, 4);
    assert_int_equal(at[f.bytes], 0xff);
}

/* Changes one byte of a good frame of n elements and expects it refused, for this reason. */
static void refuse_of(size_t n, int indexed, size_t where, unsigned char what, const char *why)
{
    size_t bytes;
    unsigned char *at = make(TAGCI_F32, TAGCI_VALUE_INT8, n, indexed, &bytes);
    struct tagci_frame f;
    const char *reason = NULL;
    assert_int_not_equal(at[where], what);
    at[where] = what;
    assert_int_equal(tagci_frame_read(at, bytes, TAGCI_F32, n, 0, &f, &reason), -1);
    assert_non_null(strstr(reason, why));
    unguard(at, bytes);
}

static void refuse(size_t where, unsigned char what, const char *why)
{
    refuse_of(100, 1, where, what, why);
}

/* 1023 elements, of which 147 are kept: 403 bits of high part (56 bytes), 294 of low part (40 bytes); or, with 2 bits cut
 * off, what the closed form says. */
static void test_refused_coded(void **state)
{
    (void)state;
    size_t n = 1023, kept = 147, high = 16;
    struct tagci_coded c = tagci_coded_shape(n, kept);
    assert_int_equal(c.low_bits, reference_coded_low(n, kept));
    assert_int_equal(c.high_bits, kept + (1022 >> c.low_bits));
    assert_true(c.low_bits >= 1 && c.high_bits % 64 != 0);
    size_t low = high + c.high_words * 8;
    refuse_of(n, 2, 1, 3, "form of index");
    refuse_of(n, 2, 1, 1, "length");
    refuse_of(n, 2, 1, 0, "number of values");
    refuse_of(n, 2, 5, 1, "coded index"); /* 403 values: a bitmap would be shorter */
    refuse_of(n, 2, high, 0, "index");    /* fewer ones */
    refuse_of(n, 2, low - 1, 0x80, "index");
    /* the last bucket has 1023 % 2^l elements: a lower part that is all ones is past the end */
    size_t bytes, last = (kept - 1) * c.low_bits;
    unsigned char *at = make(TAGCI_F32, TAGCI_VALUE_NATIVE, n, 2, &bytes);
    struct tagci_frame f;
    const char *reason = NULL;
    assert_int_equal(tagci_frame_read(at, bytes, TAGCI_F32, n, 0, &f, &reason), 0);
    for (size_t b = last; b < last + c.low_bits; b++)
        at[low + b / 8] |= (unsigned char)(1 << b % 8);
    assert_int_equal(tagci_frame_read(at, bytes, TAGCI_F32, n, 0, &f, &reason), -1);
    unguard(at, bytes);
}

/* Every set of positions of a few elements, and random ones of more, come back from their code. */
static void test_coded_positions(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (size_t n = 1; n <= 3000; n = n < 12 ? n + 1 : n * 3 + 1)
        for (size_t set = 0; set < (n <= 12 ? (size_t)1 << n : 400); set++) {
            uint64_t bitmap[64] = {0};
            size_t kept = 0;
            for (size_t i = 0; i < n; i++)
                if (n <= 12 ? set >> i & 1 : draw(&seed) % (set + 1) == 0) {
                    bitmap[i / 64] |= (uint64_t)1 << i % 64;
                    kept++;
                }
            struct tagci_coded c = tagci_coded_shape(n, kept);
            size_t high = c.high_words * 8, low = c.low_words * 8;
            unsigned char *code = guarded(high + low + 8), *want = calloc(high + low + 8, 1), *here = calloc(n, 1);
            struct bytes out = {want, 0};
            for (size_t i = 0; i < n; i++)
                here[i] = bitmap[i / 64] >> i % 64 & 1;
            reference_push_index(&out, 2, here, n, kept);
            assert_int_equal(out.n, high + low);
            tagci_coded_write(bitmap, n, &c, code, code + high);
            assert_memory_equal(code, want, high + low);
            size_t bucket = 0, i = 0;
            for (size_t bit = 0; bit < c.high_bits; bit++) {
                if (bit == 0 || !(code[(bit - 1) / 8] >> (bit - 1) % 8 & 1))
                    assert_int_equal(tagci_coded_seek(code, bucket), bit);
                if (!(code[bit / 8] >> bit % 8 & 1)) {
                    bucket++;
                    continue;
                }
                size_t position = (bucket << c.low_bits) + tagci_coded_low(code + high, i++, c.low_bits);
                assert_true(position < n && (bitmap[position / 64] >> position % 64 & 1));
                bitmap[position / 64] &= ~((uint64_t)1 << position % 64);
            }
            assert_int_equal(i, kept);
            unguard(code, high + low + 8);
            free(want);
            free(here);
        }
}

static void test_refused(void **state)
{
    (void)state;
    size_t escapes = 16 + 16 + 8 + 40; /* header, index, scales, codes of 34 */
    refuse(0, 1, "version");
    refuse(1, 0, "number of values");
    refuse(1, 3, "form of index");
    refuse(1, 2, "coded index");
    refuse(2, TAGCI_VALUES, "form");
    refuse(2, TAGCI_VALUE_FLOAT16, "escapes");
    refuse(2, TAGCI_VALUE_INT4, "length");
    refuse(3, TAGCI_F64, "type");
    refuse(4, 33, "number of values");
    refuse(4, 101, "number of values");
    refuse(7, 255, "number of values");
    refuse(8, 35, "escapes");
    refuse(16, 0x48, "index");
    refuse(16 + 12, 0x18, "index"); /* bit 100 instead of bit 96: past n, in the right number */
    refuse(escapes, 3, "escapes");
    refuse(escapes, 5, "escapes");
    refuse(escapes + 4, 34, "escapes");
    refuse(escapes + 7, 1, "escapes");
}

static void test_every_damaged_bit_is_found(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *at = make(TAGCI_F32, TAGCI_VALUE_INT8, 100, 1, &bytes);
    struct tagci_frame f;
    const char *reason;
    tagci_frame_seal(at, bytes);
    for (size_t bit = 0; bit < bytes * 8; bit++) {
        at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(tagci_frame_read(at, bytes, TAGCI_F32, 100, 1, &f, &reason), -1);
        at[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_int_equal(tagci_frame_read(at, bytes, TAGCI_F32, 100, 1, &f, &reason), 0);
    unguard(at, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_lay_and_read),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_coded),
        cmocka_unit_test(test_coded_positions),
        cmocka_unit_test(test_every_damaged_bit_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
