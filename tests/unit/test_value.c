/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Block forms: closed forms, the ends of the range, and the reference on random blocks. */
#include <float.h>

#include "reference.h"

#define B TAGCI_VALUE_BLOCK

/* Quantizes and dequantizes; checks what holds for every block. Returns the scale. */
static double check_f32(enum tagci_value form, const float *values, size_t n, float *sent)
{
    float v[B];
    double wide[B];
    int8_t codes[B + 8];
    int want[B];
    uint16_t scale, expected;
    size_t escapes = 0;
    memcpy(v, values, n * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        wide[i] = values[i];
        escapes += !isfinite(values[i]);
    }
    assert_int_equal(tagci_quantize_f32(form, v, n, &scale, codes), escapes);
    expected = reference_block(TAGCI_F32, form, wide, n, want);
    assert_int_equal(scale, expected);
    assert_true(scale < 0x7f80);
    tagci_dequantize_f32(codes, n, scale, sent);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(codes[i], want[i]);
        assert_true(isfinite(sent[i]));
        assert_memory_equal(&v[i], &values[i], sizeof *v);
    }
    for (size_t i = n; i < B; i++)
        assert_int_equal(codes[i], 0);
    return tagci_bf16_to_f32(scale);
}

static double check_f64(enum tagci_value form, const double *values, size_t n, double *sent)
{
    double v[B];
    int8_t codes[B + 8];
    int want[B];
    uint16_t scale, expected;
    memcpy(v, values, n * sizeof *v);
    tagci_quantize_f64(form, v, n, &scale, codes);
    expected = reference_block(TAGCI_F64, form, values, n, want);
    assert_int_equal(scale, expected);
    assert_true(scale < 0x7f80);
    tagci_dequantize_f64(codes, n, scale, sent);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(codes[i], want[i]);
        assert_true(isfinite(sent[i]));
    }
    return tagci_bf16_to_f32(scale);
}

static void test_closed_forms(void **state)
{
    (void)state;
    float v[B], sent[B];
    for (int i = 0; i < B; i++) /* integers times a power of two: held exactly */
        v[i] = (float)(i - 127) * 0x1p-5f;
    assert_true(check_f32(TAGCI_VALUE_INT8, v, B, sent) == 0x1p-5);
    assert_memory_equal(sent, v, sizeof v);
    for (int i = 0; i < B; i++)
        v[i] = (float)(i % 15 - 7) * 0x1p60f;
    assert_true(check_f32(TAGCI_VALUE_INT4, v, B, sent) == 0x1p60);
    assert_memory_equal(sent, v, sizeof v);
    for (int i = 0; i < B; i++)
        v[i] = (float)(i % 3 - 1) * 0.375f;
    assert_true(check_f32(TAGCI_VALUE_TERNARY, v, B, sent) == 0.375);
    assert_memory_equal(sent, v, sizeof v);

    /* halves go to even: with a scale of one, 0.5 to 0, 1.5 to 2, 2.5 to 2 */
    const float halves[] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f}, even[] = {127, 0, 2, 2, 0, -2, -2};
    assert_true(check_f32(TAGCI_VALUE_INT8, halves, 7, sent) == 1);
    for (int i = 0; i < 7; i++)
        assert_true(sent[i] == even[i]);

    /* the mean is 2.5 over those that are not zero: 1 and 1.5 stay below 0.7 of it; 3 and 4.5 have a mean of 3.75 */
    const float small[] = {0, 1, -1.5f, 0, 3, -4.5f}, ternary[] = {0, 0, 0, 0, 3.75f, -3.75f};
    assert_true(check_f32(TAGCI_VALUE_TERNARY, small, 6, sent) == 3.75);
    for (int i = 0; i < 6; i++)
        assert_true(sent[i] == ternary[i]);
}

static void test_ends_of_the_range(void **state)
{
    (void)state;
    for (int form = TAGCI_VALUE_INT8; form <= TAGCI_VALUE_TERNARY; form++) {
        float v[B] = {0}, sent[B];
        double w[B] = {0}, wide[B];
        assert_true(check_f32(form, v, B, sent) == 0); /* all zero */
        assert_true(check_f32(form, v, 1, sent) == 0);
        for (int i = 0; i < B; i++)
            v[i] = i % 2 ? -0.0f : NAN;
        assert_true(check_f32(form, v, B, sent) == 0);
        for (int i = 0; i < B; i++)
            v[i] = i % 3 ? FLT_MAX : -FLT_MAX;
        check_f32(form, v, B, sent);
        for (int i = 0; i < B; i++) /* nearly all of it is sent */
            assert_true(fabs((double)v[i] - sent[i]) < 0.01 * FLT_MAX);
        v[7] = INFINITY;
        check_f32(form, v, B, sent);
        assert_true(sent[7] == 0);
        for (int i = 0; i < B; i++) /* subnormal, one step of bfloat16 and a bit */
            v[i] = i % 2 ? 1e-40f : -1e-40f;
        check_f32(form, v, B, sent);
        for (int i = 0; i < B; i++)
            assert_true(fabsf(v[i] - sent[i]) < 0.1f * 1e-40f);
        for (int i = 0; i < B; i++) /* below all scales: nothing is sent, or a step that the residual takes back */
            v[i] = 1e-45f;
        check_f32(form, v, B, sent);

        for (int i = 0; i < B; i++)
            w[i] = i % 2 ? DBL_MAX : -1;
        check_f64(form, w, B, wide);
        for (int i = 0; i < B; i++) /* as large as the form can say */
            assert_true(i % 2 ? wide[i] > 3e38 : wide[i] == 0);
        for (int i = 0; i < B; i++)
            w[i] = 1e-320;
        check_f64(form, w, B, wide);
        for (int i = 0; i < B; i++)
            assert_true(wide[i] == 0 || form != TAGCI_VALUE_INT8);
    }
}

static void test_random_blocks(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        enum tagci_value form = (enum tagci_value)(TAGCI_VALUE_INT8 + round % 3);
        size_t n = round % 4 ? B : 1 + draw(&seed) % B;
        float v[B], sent[B];
        double w[B], wide[B];
        double factor = ldexp(1, (int)(draw(&seed) % 250) - 130);
        for (size_t i = 0; i < n; i++) {
            w[i] = draw_value(round % PATTERNS, &seed, i, n, 1);
            v[i] = (float)(draw_value(BELL, &seed, i, n, 0) * factor);
        }
        double scale = check_f32(form, v, n, sent);
        check_f64(form, w, n, wide);
        for (size_t i = 0; i < n && form != TAGCI_VALUE_TERNARY; i++)
            assert_true(fabs((double)v[i] - sent[i]) <= scale * 0.5000001);
    }
}

/* Ternary comes close to the best scale and threshold that there are for the block. */
static void test_ternary_error(void **state)
{
    (void)state;
    uint64_t seed = 3;
    double ours = 0, best_sum = 0;
    for (int round = 0; round < 200; round++) {
        float v[B], sent[B];
        double best = 1e9, error = 0;
        for (int i = 0; i < B; i++)
            v[i] = (float)draw_value(BELL, &seed, 0, 1, 0);
        check_f32(TAGCI_VALUE_TERNARY, v, B, sent);
        for (int i = 0; i < B; i++)
            error += (v[i] - sent[i]) * (v[i] - sent[i]);
        for (int j = 0; j < B; j++) { /* every threshold worth trying */
            double sum = 0, squares = 0;
            int count = 0;
            for (int i = 0; i < B; i++) {
                squares += v[i] * v[i];
                if (fabsf(v[i]) >= fabsf(v[j])) {
                    sum += fabs(v[i]);
                    count++;
                }
            }
            best = fmin(best, squares - sum * sum / count);
        }
        ours += error;
        best_sum += best;
    }
    assert_true(ours < 1.05 * best_sum);
}

static void test_packing(void **state)
{
    (void)state;
    static const int levels[] = {127, 7, 1};
    uint64_t seed = 7;
    for (int form = TAGCI_VALUE_INT8; form <= TAGCI_VALUE_TERNARY; form++)
        for (size_t n = 1; n <= B; n++) {
            int8_t codes[B] = {0}, back[B + 8];
            int most = levels[form - TAGCI_VALUE_INT8];
            size_t bytes = tagci_block_bytes(form, n);
            unsigned char *at = guarded(bytes);
            for (size_t i = 0; i < n; i++)
                codes[i] = (int8_t)((int)(draw(&seed) % (unsigned)(2 * most + 1)) - most);
            assert_int_equal(bytes, tagci_value_bytes(TAGCI_F32, form, n));
            tagci_pack_codes(form, codes, n, at);
            tagci_unpack_codes(form, at, n, back);
            assert_memory_equal(back, codes, n);
            unguard(at, bytes);
        }
    /* the documented order: first value in the low half, first digit least */
    const int8_t some[B] = {1, -1, 1, 0, -1};
    unsigned char packed[3];
    tagci_pack_codes(TAGCI_VALUE_INT4, some, 5, packed);
    assert_int_equal(packed[0], 0xf1);
    assert_int_equal(packed[1], 0x01);
    assert_int_equal(packed[2], 0x0f);
    tagci_pack_codes(TAGCI_VALUE_TERNARY, some, 5, packed);
    assert_int_equal(packed[0], 1 + 2 * 3 + 1 * 9 + 0 * 27 + 2 * 81);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(tagci_value_name(TAGCI_VALUE_TERNARY), "ternary");
    assert_string_equal(tagci_value_name(TAGCI_VALUES), "unknown");
    assert_string_equal(tagci_type_name(TAGCI_BF16), "bfloat16");
    assert_string_equal(tagci_type_name(TAGCI_TYPES), "unknown");
    assert_int_equal(tagci_value_plain(TAGCI_F16, TAGCI_VALUE_NATIVE), TAGCI_VALUE_FLOAT16);
    assert_int_equal(tagci_value_plain(TAGCI_F64, TAGCI_VALUE_NATIVE), TAGCI_VALUE_NATIVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_forms),  cmocka_unit_test(test_ends_of_the_range),
        cmocka_unit_test(test_random_blocks), cmocka_unit_test(test_ternary_error),
        cmocka_unit_test(test_packing),       cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
