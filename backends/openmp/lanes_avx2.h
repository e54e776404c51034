/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Vector primitives of the template in AVX2: 8 floats or 4 doubles. Masks are vectors whose lanes are all ones or zero. */
#include <immintrin.h>

#include "backends/openmp/tables.h"

#define LANES_f32 8
#define LANES_f64 4

typedef __m256 vec_f32;
typedef __m256d vec_f64;
typedef __m256i keys_f32, keys_f64, mask_f32, mask_f64, count_f32, count_f64;

INLINE __m256i table_row(const int8_t row[8])
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)row));
}

/* ---- float ---- */
INLINE vec_f32 v_load_f32(enum tagci_type type, const void *in, size_t i)
{
    if (type == TAGCI_F32)
        return _mm256_loadu_ps((const float *)in + i);
    __m128i h = _mm_loadu_si128((const __m128i *)((const uint16_t *)in + i));
    if (type == TAGCI_F16)
        return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
INLINE vec_f32 v_add_f32(vec_f32 a, vec_f32 b)
{
    return _mm256_add_ps(a, b);
}
INLINE vec_f32 v_sub_f32(vec_f32 a, vec_f32 b)
{
    return _mm256_sub_ps(a, b);
}
INLINE vec_f32 v_divide_f32(vec_f32 a, float by)
{
    return _mm256_div_ps(a, _mm256_set1_ps(by));
}
INLINE vec_f32 v_times_f32(vec_f32 a, float by)
{
    return _mm256_mul_ps(a, _mm256_set1_ps(by));
}
INLINE vec_f32 v_set_f32(float x)
{
    return _mm256_set1_ps(x);
}
INLINE vec_f32 v_clamp_f32(vec_f32 v, float top)
{
    return _mm256_max_ps(_mm256_min_ps(v, _mm256_set1_ps(top)), _mm256_set1_ps(-top));
}
INLINE void v_codes_f32(int8_t *at, vec_f32 v) /* of whole numbers */
{
    __m256i k = _mm256_cvtps_epi32(v);
    __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(k), _mm256_extracti128_si256(k, 1));
    _mm_storel_epi64((__m128i *)at, _mm_packs_epi16(h, h));
}
INLINE vec_f32 v_zero_f32(void)
{
    return _mm256_setzero_ps();
}
INLINE void v_store_f32(float *at, vec_f32 v)
{
    _mm256_storeu_ps(at, v);
}
INLINE void v_stream_f32(float *at, vec_f32 v) /* past the caches; aligned */
{
    _mm256_stream_ps(at, v);
}
INLINE vec_f32 v_keep_f32(vec_f32 v, mask_f32 m)
{
    return _mm256_and_ps(v, _mm256_castsi256_ps(m));
}
INLINE vec_f32 v_drop_f32(vec_f32 v, mask_f32 m)
{
    return _mm256_andnot_ps(_mm256_castsi256_ps(m), v);
}
INLINE keys_f32 k_of_f32(vec_f32 v)
{
    return _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(INT32_MAX));
}
INLINE keys_f32 k_set_f32(uint32_t key)
{
    return _mm256_set1_epi32((int)key);
}
INLINE keys_f32 k_max_f32(keys_f32 a, keys_f32 b)
{
    return _mm256_max_epi32(a, b);
}
INLINE uint32_t k_largest_f32(keys_f32 k)
{
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(k), _mm256_extracti128_si256(k, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}
INLINE mask_f32 k_greater_f32(keys_f32 a, keys_f32 b)
{
    return _mm256_cmpgt_epi32(a, b);
}
INLINE mask_f32 k_equal_f32(keys_f32 a, keys_f32 b)
{
    return _mm256_cmpeq_epi32(a, b);
}
INLINE mask_f32 m_none_f32(void)
{
    return _mm256_setzero_si256();
}
INLINE mask_f32 m_or_f32(mask_f32 a, mask_f32 b)
{
    return _mm256_or_si256(a, b);
}
INLINE mask_f32 m_less_f32(mask_f32 a, mask_f32 b) /* a without b */
{
    return _mm256_andnot_si256(b, a);
}
INLINE unsigned m_bits_f32(mask_f32 m)
{
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(m));
}
INLINE count_f32 c_none_f32(void)
{
    return _mm256_setzero_si256();
}
INLINE count_f32 c_add_f32(count_f32 c, mask_f32 m)
{
    return _mm256_sub_epi32(c, m);
}
INLINE size_t c_sum_f32(count_f32 c)
{
    uint32_t part[8];
    size_t sum = 0;
    _mm256_storeu_si256((__m256i *)part, c);
    for (int i = 0; i < 8; i++)
        sum += part[i];
    return sum;
}
/* Packed values; the rest of the vector is written too. */
INLINE vec_f32 v_compress_f32(vec_f32 v, unsigned bits)
{
    return _mm256_permutevar8x32_ps(v, table_row(compress8[bits]));
}
INLINE void k_pack_f32(uint32_t *at, keys_f32 k, unsigned bits)
{
    v_store_f32((float *)at, v_compress_f32(_mm256_castsi256_ps(k), bits));
}
INLINE void v_place_set_f32(float *dst, unsigned bits, const loose_f32 *src)
{
    __m256i row = table_row(expand8[bits]);
    __m256 v = _mm256_permutevar8x32_ps(_mm256_loadu_ps((const float *)src), row);
    _mm256_storeu_ps(dst, _mm256_blendv_ps(v, _mm256_setzero_ps(), _mm256_castsi256_ps(row)));
}
INLINE void v_place_add_f32(float *dst, unsigned bits, const loose_f32 *src)
{
    __m256i row = table_row(expand8[bits]);
    __m256 v = _mm256_permutevar8x32_ps(_mm256_loadu_ps((const float *)src), row), old = _mm256_loadu_ps(dst);
    _mm256_storeu_ps(dst, _mm256_blendv_ps(_mm256_add_ps(old, v), old, _mm256_castsi256_ps(row)));
}
/* 16-bit codes of finite values that do not overflow, in the low halves of lanes, and what they stand for. */
INLINE __m256i v_bf16_f32(vec_f32 v, vec_f32 *sent)
{
    __m256i u = _mm256_castps_si256(v), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i h = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
    *sent = _mm256_castsi256_ps(_mm256_slli_epi32(h, 16));
    return h;
}
INLINE __m256i v_f16_f32(vec_f32 v, vec_f32 *sent)
{
    __m128i h = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    *sent = _mm256_cvtph_ps(h);
    return _mm256_cvtepu16_epi32(h);
}
INLINE void h_pack_f32(uint16_t *at, __m256i h, unsigned bits)
{
    __m256i packed = _mm256_permutevar8x32_epi32(h, table_row(compress8[bits]));
    __m128i low = _mm256_castsi256_si128(packed), high = _mm256_extracti128_si256(packed, 1);
    _mm_storeu_si128((__m128i *)at, _mm_packus_epi32(low, high));
}
INLINE void h_finish_f32(uint16_t *at, vec_f32 v, int plus_zero) /* to float16, as MPI would have it */
{
    __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    v = _mm256_blendv_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32((int)TAGCI_F32_NAN)), nan);
    __m128i h = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (plus_zero)
        h = _mm_andnot_si128(_mm_cmpeq_epi16(h, _mm_set1_epi16(INT16_MIN)), h);
    _mm_storeu_si128((__m128i *)at, h);
}

/* ---- double ---- */
INLINE vec_f64 v_load_f64(enum tagci_type type, const void *in, size_t i)
{
    (void)type;
    return _mm256_loadu_pd((const double *)in + i);
}
INLINE vec_f64 v_add_f64(vec_f64 a, vec_f64 b)
{
    return _mm256_add_pd(a, b);
}
INLINE vec_f64 v_zero_f64(void)
{
    return _mm256_setzero_pd();
}
INLINE void v_store_f64(double *at, vec_f64 v)
{
    _mm256_storeu_pd(at, v);
}
INLINE void v_stream_f64(double *at, vec_f64 v) /* past the caches; aligned */
{
    _mm256_stream_pd(at, v);
}
INLINE vec_f64 v_drop_f64(vec_f64 v, mask_f64 m)
{
    return _mm256_andnot_pd(_mm256_castsi256_pd(m), v);
}
INLINE keys_f64 k_of_f64(vec_f64 v)
{
    return _mm256_and_si256(_mm256_castpd_si256(v), _mm256_set1_epi64x(INT64_MAX));
}
INLINE keys_f64 k_set_f64(uint64_t key)
{
    return _mm256_set1_epi64x((long long)key);
}
INLINE mask_f64 k_greater_f64(keys_f64 a, keys_f64 b)
{
    return _mm256_cmpgt_epi64(a, b);
}
INLINE mask_f64 k_equal_f64(keys_f64 a, keys_f64 b)
{
    return _mm256_cmpeq_epi64(a, b);
}
INLINE mask_f64 m_none_f64(void)
{
    return _mm256_setzero_si256();
}
INLINE mask_f64 m_or_f64(mask_f64 a, mask_f64 b)
{
    return _mm256_or_si256(a, b);
}
INLINE mask_f64 m_less_f64(mask_f64 a, mask_f64 b)
{
    return _mm256_andnot_si256(b, a);
}
INLINE unsigned m_bits_f64(mask_f64 m)
{
    return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(m));
}
INLINE count_f64 c_none_f64(void)
{
    return _mm256_setzero_si256();
}
INLINE count_f64 c_add_f64(count_f64 c, mask_f64 m)
{
    return _mm256_sub_epi64(c, m);
}
INLINE size_t c_sum_f64(count_f64 c)
{
    uint64_t part[4];
    _mm256_storeu_si256((__m256i *)part, c);
    return (size_t)(part[0] + part[1] + part[2] + part[3]);
}
INLINE vec_f64 v_compress_f64(vec_f64 v, unsigned bits)
{
    return _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(v), table_row(compress4[bits])));
}
INLINE void k_pack_f64(uint64_t *at, keys_f64 k, unsigned bits)
{
    v_store_f64((double *)at, v_compress_f64(_mm256_castsi256_pd(k), bits));
}
INLINE void v_place_set_f64(double *dst, unsigned bits, const loose_f64 *src)
{
    __m256i row = table_row(expand4[bits]);
    __m256 v = _mm256_permutevar8x32_ps(_mm256_castpd_ps(_mm256_loadu_pd((const double *)src)), row);
    v = _mm256_blendv_ps(v, _mm256_setzero_ps(), _mm256_castsi256_ps(row));
    _mm256_storeu_pd(dst, _mm256_castps_pd(v));
}
INLINE void v_place_add_f64(double *dst, unsigned bits, const loose_f64 *src)
{
    __m256i row = table_row(expand4[bits]);
    __m256 v = _mm256_permutevar8x32_ps(_mm256_castpd_ps(_mm256_loadu_pd((const double *)src)), row);
    __m256d old = _mm256_loadu_pd(dst), sum = _mm256_add_pd(old, _mm256_castps_pd(v));
    _mm256_storeu_pd(dst, _mm256_blendv_pd(sum, old, _mm256_castsi256_pd(row)));
}
