/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * In and out of the work type. */

static void NAME(gather_input)(enum tagci_type type, const void *in, const void *residual, size_t n, void *out)
{
    size_t i = 0;
#if defined LANES_HEADER && !WIDE
    if (type == TAGCI_F16) /* compilers do not find the instruction by themselves */
        for (; i + LANES_f32 <= n; i += LANES_f32)
            v_store_f32((float *)out + i, v_input_f32(TAGCI_F16, in, residual, i));
#endif
    NAME(add_input)(type, in, residual, i, n - i, (WORK *)out + i);
}

/* Plain loads, so many of them under way at once that the time to memory is shared. */
INLINE void NAME(gather_runs_of)(const enum tagci_type type, const void *in, const WORK *residual, const size_t *at,
                                 size_t runs, WORK *out)
{
    enum { ahead = 24 }; /* runs lie far apart: as many lines as possible should be on their way at once */
    for (size_t r = 0; r < runs; r++, out += TAGCI_SAMPLE_RUN) {
        if (r + ahead < runs)
            __builtin_prefetch((const char *)in + at[r + ahead] * tagci_type_size(type));
        if (residual && r + ahead < runs)
            __builtin_prefetch(residual + at[r + ahead]);
#ifdef LANES_HEADER
        for (size_t q = 0; q < TAGCI_SAMPLE_RUN; q += NAME(LANES))
            NAME(v_store)(out + q, NAME(v_input)(type, in, residual, at[r] + q));
#else
        NAME(add_input_of)(type, in, residual, at[r], TAGCI_SAMPLE_RUN, out);
#endif
    }
}

static void NAME(gather_runs)(enum tagci_type type, const void *in, const void *residual, const size_t *at, size_t runs,
                              void *out)
{
    if (type == TAGCI_F16)
        NAME(gather_runs_of)(TAGCI_F16, in, residual, at, runs, out);
    else if (type == TAGCI_BF16)
        NAME(gather_runs_of)(TAGCI_BF16, in, residual, at, runs, out);
    else
        NAME(gather_runs_of)(WIDE ? TAGCI_F64 : TAGCI_F32, in, residual, at, runs, out);
}

#if WIDE
static void NAME(finish)(enum tagci_type type, const void *sum, size_t n, double divide, int plus_zero, void *out)
{
    const double *s = sum;
    double *d = out;
    (void)type;
    for (size_t i = 0; i < n; i++) {
        double x = divide != 1 ? s[i] / divide : s[i];
        x = plus_zero ? x + 0.0 : x;
        d[i] = x != x ? tagci_f64_of(TAGCI_F64_NAN) : x;
    }
}
#else
INLINE void finish_of(enum tagci_type type, int division, const float *s, size_t n, float divide, int plus_zero,
                      void *out)
{
    size_t i = 0;
#ifdef LANES_HEADER
    if (type == TAGCI_F16)
        for (; i + LANES_f32 <= n; i += LANES_f32) {
            vec_f32 v = v_load_f32(TAGCI_F32, s, i);
            h_finish_f32((uint16_t *)out + i, division ? v_divide_f32(v, divide) : v, plus_zero);
        }
#endif
    for (; i < n; i++) {
        float x = division ? s[i] / divide : s[i];
        if (type == TAGCI_F32) {
            x = plus_zero ? x + 0.0f : x;
            ((float *)out)[i] = x != x ? tagci_f32_of(TAGCI_F32_NAN) : x;
        } else {
            uint16_t h = type == TAGCI_F16 ? tagci_f32_to_f16(x) : tagci_f32_to_bf16(x);
            ((uint16_t *)out)[i] = plus_zero && h == 0x8000 ? 0 : h;
        }
    }
}

static void NAME(finish)(enum tagci_type type, const void *sum, size_t n, double divide, int plus_zero, void *out)
{
    int division = divide != 1;
    float by = (float)divide;
    if (type == TAGCI_F16)
        finish_of(TAGCI_F16, division, sum, n, by, plus_zero, out);
    else if (type == TAGCI_BF16)
        finish_of(TAGCI_BF16, division, sum, n, by, plus_zero, out);
    else
        finish_of(TAGCI_F32, division, sum, n, by, plus_zero, out);
}
#endif
