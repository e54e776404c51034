/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Vector primitives of the template in AVX-512: 16 floats or 8 doubles. Masks are mask registers. What is said about
 * them stands in lanes_avx2.h. A test program that must run anywhere gives another header of the same intrinsics. */
#ifdef LANES_INTRINSICS
#include LANES_INTRINSICS
#else
#include <immintrin.h>
#endif

#define LANES_f32 16
#define LANES_f64 8

typedef __m512 vec_f32;
typedef __m512d vec_f64;
typedef __m512i keys_f32, keys_f64;
typedef uint16_t mask_f32; /* what __mmask16 is, and __mmask8 */
typedef uint8_t mask_f64;
typedef size_t count_f32, count_f64;

/* ---- float ---- */
INLINE vec_f32 v_load_f32(enum tagci_type type, const void *in, size_t i)
{
    if (type == TAGCI_F32)
        return _mm512_loadu_ps((const float *)in + i);
    __m256i h = _mm256_loadu_si256((const __m256i *)((const uint16_t *)in + i));
    if (type == TAGCI_F16)
        return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
INLINE vec_f32 v_add_f32(vec_f32 a, vec_f32 b)
{
    return _mm512_add_ps(a, b);
}
INLINE vec_f32 v_sub_f32(vec_f32 a, vec_f32 b)
{
    return _mm512_sub_ps(a, b);
}
INLINE vec_f32 v_divide_f32(vec_f32 a, float by)
{
    return _mm512_div_ps(a, _mm512_set1_ps(by));
}
INLINE vec_f32 v_times_f32(vec_f32 a, float by)
{
    return _mm512_mul_ps(a, _mm512_set1_ps(by));
}
INLINE vec_f32 v_set_f32(float x)
{
    return _mm512_set1_ps(x);
}
INLINE vec_f32 v_clamp_f32(vec_f32 v, float top)
{
    return _mm512_max_ps(_mm512_min_ps(v, _mm512_set1_ps(top)), _mm512_set1_ps(-top));
}
INLINE void v_codes_f32(int8_t *at, vec_f32 v) /* of whole numbers */
{
    __m256 other = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
    __m256i low = _mm256_cvtps_epi32(_mm512_castps512_ps256(v)), high = _mm256_cvtps_epi32(other);
    __m256i h = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
    _mm_storeu_si128((__m128i *)at, _mm_packs_epi16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)));
}
INLINE vec_f32 v_zero_f32(void)
{
    return _mm512_setzero_ps();
}
INLINE void v_store_f32(float *at, vec_f32 v)
{
    _mm512_storeu_ps(at, v);
}
INLINE void v_stream_f32(float *at, vec_f32 v) /* past the caches; aligned */
{
    _mm512_stream_ps(at, v);
}
INLINE vec_f32 v_keep_f32(vec_f32 v, mask_f32 m)
{
    return _mm512_maskz_mov_ps(m, v);
}
INLINE vec_f32 v_drop_f32(vec_f32 v, mask_f32 m)
{
    return _mm512_maskz_mov_ps((mask_f32)~m, v);
}
INLINE keys_f32 k_of_f32(vec_f32 v)
{
    return _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(INT32_MAX));
}
INLINE keys_f32 k_set_f32(uint32_t key)
{
    return _mm512_set1_epi32((int)key);
}
INLINE keys_f32 k_max_f32(keys_f32 a, keys_f32 b)
{
    return _mm512_max_epi32(a, b);
}
INLINE uint32_t k_largest_f32(keys_f32 k)
{
    __m256i half = _mm256_max_epi32(_mm512_castsi512_si256(k), _mm512_extracti64x4_epi64(k, 1));
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}
INLINE mask_f32 k_greater_f32(keys_f32 a, keys_f32 b)
{
    return _mm512_cmpgt_epi32_mask(a, b);
}
INLINE mask_f32 k_equal_f32(keys_f32 a, keys_f32 b)
{
    return _mm512_cmpeq_epi32_mask(a, b);
}
INLINE mask_f32 m_none_f32(void)
{
    return 0;
}
INLINE mask_f32 m_or_f32(mask_f32 a, mask_f32 b)
{
    return a | b;
}
INLINE mask_f32 m_less_f32(mask_f32 a, mask_f32 b)
{
    return (mask_f32)(a & ~b);
}
INLINE unsigned m_bits_f32(mask_f32 m)
{
    return m;
}
INLINE count_f32 c_none_f32(void)
{
    return 0;
}
INLINE count_f32 c_add_f32(count_f32 c, mask_f32 m)
{
    return c + (size_t)__builtin_popcount(m);
}
INLINE size_t c_sum_f32(count_f32 c)
{
    return c;
}
INLINE vec_f32 v_compress_f32(vec_f32 v, unsigned bits)
{
    return _mm512_maskz_compress_ps((mask_f32)bits, v);
}
INLINE void k_pack_f32(uint32_t *at, keys_f32 k, unsigned bits)
{
    _mm512_storeu_si512(at, _mm512_maskz_compress_epi32((mask_f32)bits, k));
}
INLINE void v_place_set_f32(float *dst, unsigned bits, const loose_f32 *src)
{
    _mm512_storeu_ps(dst, _mm512_maskz_expand_ps((mask_f32)bits, _mm512_loadu_ps((const float *)src)));
}
INLINE void v_place_add_f32(float *dst, unsigned bits, const loose_f32 *src)
{
    __m512 v = _mm512_maskz_expand_ps((mask_f32)bits, _mm512_loadu_ps((const float *)src)), old = _mm512_loadu_ps(dst);
    _mm512_storeu_ps(dst, _mm512_mask_add_ps(old, (mask_f32)bits, old, v));
}
INLINE __m512i v_bf16_f32(vec_f32 v, vec_f32 *sent)
{
    __m512i u = _mm512_castps_si512(v), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i h = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd), 16);
    *sent = _mm512_castsi512_ps(_mm512_slli_epi32(h, 16));
    return h;
}
INLINE __m512i v_f16_f32(vec_f32 v, vec_f32 *sent)
{
    __m256i h = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    *sent = _mm512_cvtph_ps(h);
    return _mm512_cvtepu16_epi32(h);
}
INLINE void h_pack_f32(uint16_t *at, __m512i h, unsigned bits)
{
    __m512i packed = _mm512_maskz_compress_epi32((mask_f32)bits, h);
    _mm256_storeu_si256((__m256i *)at, _mm512_cvtepi32_epi16(packed));
}
INLINE void h_finish_f32(uint16_t *at, vec_f32 v, int plus_zero)
{
    mask_f32 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    v = _mm512_mask_mov_ps(v, nan, _mm512_castsi512_ps(_mm512_set1_epi32((int)TAGCI_F32_NAN)));
    __m256i h = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (plus_zero)
        h = _mm256_andnot_si256(_mm256_cmpeq_epi16(h, _mm256_set1_epi16(INT16_MIN)), h);
    _mm256_storeu_si256((__m256i *)at, h);
}

/* ---- double ---- */
INLINE vec_f64 v_load_f64(enum tagci_type type, const void *in, size_t i)
{
    (void)type;
    return _mm512_loadu_pd((const double *)in + i);
}
INLINE vec_f64 v_add_f64(vec_f64 a, vec_f64 b)
{
    return _mm512_add_pd(a, b);
}
INLINE vec_f64 v_zero_f64(void)
{
    return _mm512_setzero_pd();
}
INLINE void v_store_f64(double *at, vec_f64 v)
{
    _mm512_storeu_pd(at, v);
}
INLINE void v_stream_f64(double *at, vec_f64 v) /* past the caches; aligned */
{
    _mm512_stream_pd(at, v);
}
INLINE vec_f64 v_drop_f64(vec_f64 v, mask_f64 m)
{
    return _mm512_maskz_mov_pd((mask_f64)~m, v);
}
INLINE keys_f64 k_of_f64(vec_f64 v)
{
    return _mm512_and_si512(_mm512_castpd_si512(v), _mm512_set1_epi64(INT64_MAX));
}
INLINE keys_f64 k_set_f64(uint64_t key)
{
    return _mm512_set1_epi64((long long)key);
}
INLINE mask_f64 k_greater_f64(keys_f64 a, keys_f64 b)
{
    return _mm512_cmpgt_epi64_mask(a, b);
}
INLINE mask_f64 k_equal_f64(keys_f64 a, keys_f64 b)
{
    return _mm512_cmpeq_epi64_mask(a, b);
}
INLINE mask_f64 m_none_f64(void)
{
    return 0;
}
INLINE mask_f64 m_or_f64(mask_f64 a, mask_f64 b)
{
    return a | b;
}
INLINE mask_f64 m_less_f64(mask_f64 a, mask_f64 b)
{
    return (mask_f64)(a & ~b);
}
INLINE unsigned m_bits_f64(mask_f64 m)
{
    return m;
}
INLINE count_f64 c_none_f64(void)
{
    return 0;
}
INLINE count_f64 c_add_f64(count_f64 c, mask_f64 m)
{
    return c + (size_t)__builtin_popcount(m);
}
INLINE size_t c_sum_f64(count_f64 c)
{
    return c;
}
INLINE vec_f64 v_compress_f64(vec_f64 v, unsigned bits)
{
    return _mm512_maskz_compress_pd((mask_f64)bits, v);
}
INLINE void k_pack_f64(uint64_t *at, keys_f64 k, unsigned bits)
{
    _mm512_storeu_si512(at, _mm512_maskz_compress_epi64((mask_f64)bits, k));
}
INLINE void v_place_set_f64(double *dst, unsigned bits, const loose_f64 *src)
{
    _mm512_storeu_pd(dst, _mm512_maskz_expand_pd((mask_f64)bits, _mm512_loadu_pd((const double *)src)));
}
INLINE void v_place_add_f64(double *dst, unsigned bits, const loose_f64 *src)
{
    __m512d v = _mm512_maskz_expand_pd((mask_f64)bits, _mm512_loadu_pd((const double *)src)),
            old = _mm512_loadu_pd(dst);
    _mm512_storeu_pd(dst, _mm512_mask_add_pd(old, (mask_f64)bits, old, v));
}
