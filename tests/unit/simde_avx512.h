/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * AVX-512 intrinsics for machines without it: SIMDe's, and the few that it lacks. For tests only. */
#ifndef TAGC_TESTS_SIMDE_AVX512_H
#define TAGC_TESTS_SIMDE_AVX512_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include "core/half.h"

#ifndef _MM_FROUND_NO_EXC
#define _MM_FROUND_NO_EXC SIMDE_MM_FROUND_NO_EXC
#endif
#ifndef _MM_FROUND_TO_NEAREST_INT
#define _MM_FROUND_TO_NEAREST_INT SIMDE_MM_FROUND_TO_NEAREST_INT
#endif
#ifndef _CMP_UNORD_Q
#define _CMP_UNORD_Q SIMDE_CMP_UNORD_Q
#endif

static inline simde__m512i lacking_cvtepu16_epi32(simde__m256i a)
{
    uint16_t from[16];
    uint32_t to[16];
    memcpy(from, &a, sizeof from);
    for (int i = 0; i < 16; i++)
        to[i] = from[i];
    return simde_mm512_loadu_si512(to);
}

static inline simde__m256i lacking_cvtepi32_epi16(simde__m512i a)
{
    uint32_t from[16];
    uint16_t to[16];
    memcpy(from, &a, sizeof from);
    for (int i = 0; i < 16; i++)
        to[i] = (uint16_t)from[i];
    return simde_mm256_loadu_si256((const simde__m256i *)to);
}

static inline simde__m512 lacking_cvtph_ps(simde__m256i a)
{
    uint16_t from[16];
    float to[16];
    memcpy(from, &a, sizeof from);
    for (int i = 0; i < 16; i++)
        to[i] = tagci_f16_to_f32(from[i]);
    return simde_mm512_loadu_ps(to);
}

static inline simde__m256i lacking_cvtps_ph(simde__m512 a)
{
    float from[16];
    uint16_t to[16];
    memcpy(from, &a, sizeof from);
    for (int i = 0; i < 16; i++)
        to[i] = tagci_f32_to_f16(from[i]);
    return simde_mm256_loadu_si256((const simde__m256i *)to);
}

static inline simde__m512 lacking_maskz_expand_ps(simde__mmask16 k, simde__m512 a)
{
    float from[16], to[16];
    memcpy(from, &a, sizeof from);
    for (int i = 0, j = 0; i < 16; i++)
        to[i] = k >> i & 1 ? from[j++] : 0;
    return simde_mm512_loadu_ps(to);
}

static inline simde__m512d lacking_maskz_expand_pd(simde__mmask8 k, simde__m512d a)
{
    double from[8], to[8];
    memcpy(from, &a, sizeof from);
    for (int i = 0, j = 0; i < 8; i++)
        to[i] = k >> i & 1 ? from[j++] : 0;
    return simde_mm512_loadu_pd(to);
}

/* Newer releases may have them. */
#ifndef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32 lacking_cvtepu16_epi32
#endif
#ifndef _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16 lacking_cvtepi32_epi16
#endif
#ifndef _mm512_cvtph_ps
#define _mm512_cvtph_ps lacking_cvtph_ps
#endif
#ifndef _mm512_cvtps_ph
#define _mm512_cvtps_ph(a, rounding) lacking_cvtps_ph(a)
#endif
#ifndef _mm512_stream_ps
#define _mm512_stream_ps(at, v) simde_mm512_store_ps(at, v)
#endif
#ifndef _mm512_stream_pd
#define _mm512_stream_pd(at, v) simde_mm512_store_pd(at, v)
#endif
#ifndef _mm512_maskz_expand_ps
#define _mm512_maskz_expand_ps lacking_maskz_expand_ps
#endif
#ifndef _mm512_maskz_expand_pd
#define _mm512_maskz_expand_pd lacking_maskz_expand_pd
#endif

#endif
