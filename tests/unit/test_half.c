/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The 16-bit types: every code, and every value around the middle between two codes. */
#include <math.h>

#include "core/half.h"
#include "unit.h"

struct form {
    const char *name;
    int exponent, mantissa; /* bits */
    float (*widen)(uint16_t);
    uint16_t (*from_f32)(float), (*from_f64)(double);
};

static const struct form forms[] = {
    {"float16", 5, 10, tagci_f16_to_f32, tagci_f32_to_f16, tagci_f64_to_f16},
    {"bfloat16", 8, 7, tagci_bf16_to_f32, tagci_f32_to_bf16, tagci_f64_to_bf16},
};

/* What a code stands for, by the definition of the format. */
static double meaning(const struct form *f, uint16_t h)
{
    int bias = (1 << (f->exponent - 1)) - 1, exponent = h >> f->mantissa & ((1 << f->exponent) - 1);
    int mantissa = h & ((1 << f->mantissa) - 1);
    double sign = h >> 15 ? -1 : 1;
    if (exponent == (1 << f->exponent) - 1)
        return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - f->mantissa);
    return sign * ldexp((1 << f->mantissa) + mantissa, exponent - bias - f->mantissa);
}

static int is_nan_code(const struct form *f, uint16_t h)
{
    return (h & 0x7fff) > ((1 << f->exponent) - 1) << f->mantissa;
}

static void test_every_code(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        for (unsigned h = 0; h < 65536; h++) {
            const struct form *f = &forms[i];
            float x = f->widen((uint16_t)h);
            if (is_nan_code(f, (uint16_t)h)) {
                assert_true(x != x);
                assert_true(is_nan_code(f, f->from_f32(x)) && is_nan_code(f, f->from_f64(x)));
                continue;
            }
            assert_true((double)x == meaning(f, (uint16_t)h));
            assert_int_equal(signbit(x) != 0, h >> 15);
            assert_int_equal(f->from_f32(x), h);
            assert_int_equal(f->from_f64(x), h);
        }
}

/* Values just below, at and just above the middle of code h and the next one, of either sign. */
static void test_every_boundary(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct form *f = &forms[i];
        uint16_t inf = (uint16_t)(((1 << f->exponent) - 1) << f->mantissa);
        for (unsigned h = 0; h < inf; h++) {
            /* past the largest finite one, the next code would be twice the largest power of two */
            double low = meaning(f, (uint16_t)h);
            double high = h + 1 < inf ? meaning(f, (uint16_t)(h + 1)) : ldexp(1, 1 << (f->exponent - 1));
            double middle = low / 2 + high / 2;
            uint16_t even = (uint16_t)(h % 2 ? h + 1 : h);
            for (unsigned sign = 0; sign < 0x10000; sign += 0x8000) {
                double s = sign ? -1 : 1;
                assert_int_equal(f->from_f64(s * middle), even | sign);
                assert_int_equal(f->from_f64(s * nextafter(middle, 0)), h | sign);
                assert_int_equal(f->from_f64(s * nextafter(middle, INFINITY)), (h + 1) | sign);
                assert_int_equal(f->from_f64(s * nextafter(high, 0)), (h + 1) | sign);
                assert_int_equal(f->from_f64(s * nextafter(low, INFINITY)), h | sign);
                float m = (float)(s * middle);
                if ((double)m != s * middle)
                    continue; /* below the floats */
                assert_int_equal(f->from_f32(m), even | sign);
                assert_int_equal(f->from_f32(nextafterf(m, 0)), h | sign);
                if (isfinite(nextafterf(m, m * INFINITY)))
                    assert_int_equal(f->from_f32(nextafterf(m, m * INFINITY)), (h + 1) | sign);
            }
        }
        assert_int_equal(f->from_f32(INFINITY), inf);
        assert_int_equal(f->from_f64(-INFINITY), inf | 0x8000);
        assert_int_equal(f->from_f64(1e300), inf);
        assert_int_equal(f->from_f64(-1e-300), 0x8000);
        assert_int_equal(f->from_f64(4.9e-324), 0);
        assert_int_equal(f->from_f32(-1e-45f), 0x8000);
    }
}

/* A double just above a middle that a float cannot tell from it: rounding twice would go to even. */
static void test_rounds_once(void **state)
{
    (void)state;
    double x = 1 + 0x1p-8 + 0x1p-40, y = 1 + 0x1p-11 + 0x1p-40;
    assert_int_equal(tagci_f64_to_bf16(x), 0x3f81);
    assert_int_equal(tagci_f32_to_bf16((float)x), 0x3f80);
    assert_int_equal(tagci_f64_to_f16(y), 0x3c01);
    assert_int_equal(tagci_f32_to_f16((float)y), 0x3c00);
}

static void test_saturates(void **state)
{
    (void)state;
    assert_int_equal(tagci_f16_saturate(tagci_f32_to_f16(65520), 1), 0x7bff);
    assert_int_equal(tagci_f16_saturate(tagci_f32_to_f16(-1e30f), 1), 0xfbff);
    assert_int_equal(tagci_f16_saturate(tagci_f32_to_f16(-INFINITY), 0), 0xfc00);
    assert_int_equal(tagci_bf16_saturate(tagci_f64_to_bf16(1e300), 1), 0x7f7f);
    assert_int_equal(tagci_bf16_saturate(tagci_f32_to_bf16(-3.4e38f), 1), 0xff7f);
    assert_int_equal(tagci_bf16_saturate(0x3f80, 1), 0x3f80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code),
        cmocka_unit_test(test_every_boundary),
        cmocka_unit_test(test_rounds_once),
        cmocka_unit_test(test_saturates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
