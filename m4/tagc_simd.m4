dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the TAGC authors

dnl TAGC_SIMD
dnl Which instruction-set variants of the kernels can be compiled. Which one runs is decided at run time. Each variant is
dnl a file of its own with flags of its own; no -mfma anywhere: products and sums are rounded apart.
AC_DEFUN([TAGC_SIMD], [
  tagc_simd=portable
  AVX2_CFLAGS='-mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt -mf16c'
  AVX512_CFLAGS="-mavx512f -mavx512bw -mavx512vl -mavx512dq $AVX2_CFLAGS"
  tagc_avx2=no tagc_avx512=no
  AS_CASE([$host_cpu], [x86_64|amd64], [
    AC_MSG_CHECKING([whether $CC compiles AVX2])
    TAGC_TRY_CFLAGS([$AVX2_CFLAGS], [tagc_avx2=yes], [], [[#include <immintrin.h>
__m256i tagc_a(__m256i x) { return _mm256_add_epi32(x, _mm256_cvtps_epi32(_mm256_cvtph_ps(_mm_setzero_si128()))); }
unsigned long long tagc_b(unsigned long long x) { return _pdep_u64(x, 5); }]], [])
    AC_MSG_RESULT([$tagc_avx2])
    AC_MSG_CHECKING([whether $CC compiles AVX-512 (F, BW, VL, DQ)])
    TAGC_TRY_CFLAGS([$AVX512_CFLAGS], [tagc_avx512=yes], [], [[#include <immintrin.h>
__m512i tagc_a(__mmask16 m, __m512i x) { return _mm512_maskz_compress_epi32(m, _mm512_abs_epi32(x)); }
__m512i tagc_b(__mmask32 m, __m512i x) { return _mm512_mask_add_epi16(x, m, x, x); }]], [])
    AC_MSG_RESULT([$tagc_avx512])])
  AS_IF([test $tagc_avx2 = yes], [
    AC_DEFINE([HAVE_AVX2], [1], [kernels for AVX2 are built in])
    AS_VAR_APPEND([tagc_simd], [" avx2"])])
  AS_IF([test $tagc_avx512 = yes], [
    AC_DEFINE([HAVE_AVX512], [1], [kernels for AVX-512 are built in])
    AS_VAR_APPEND([tagc_simd], [" avx512"])])
  AC_SUBST([AVX2_CFLAGS])
  AC_SUBST([AVX512_CFLAGS])
  AC_CHECK_HEADER([simde/x86/avx512.h], [tagc_simde=yes], [tagc_simde=no]) dnl tests of AVX-512 where there is none
  AM_CONDITIONAL([HAVE_SIMDE], [test $tagc_simde = yes])
  AM_CONDITIONAL([HAVE_AVX2], [test $tagc_avx2 = yes])
  AM_CONDITIONAL([HAVE_AVX512], [test $tagc_avx512 = yes])
])
