/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Inside the OpenMP backend: which kernels, how many threads, and what a kernel finds in the floating-point unit. */
#ifndef TAGCB_OPENMP_H
#define TAGCB_OPENMP_H

#include "backends/openmp/kernels.h"

/* The best kernels for this processor, or those that a test asked for. */
const struct tagcb_kernels *tagcb_kernels_now(void);
/* For tests: "portable", "avx2", "avx512", or NULL for the best. 0, or -1: not built in, or not on this processor. */
int tagcb_openmp_use(const char *variant);
void tagcb_openmp_use_kernels(const struct tagcb_kernels *kernels); /* for tests: any others */
/* For tests: this many threads, more than there are processors if need be; 0: as OpenMP and the affinity say. */
void tagcb_openmp_use_threads(int threads);
/* Variants of this build, best first; NULL after the last. Not all need be usable here. */
const struct tagcb_kernels *tagcb_openmp_variant(int i);

/* Threads worth having for this many pieces of work. */
int tagcb_threads(size_t pieces);
#define TAGCB_PIECE 32768 /* elements that are worth a thread */

/* Programs may run with subnormals flushed (-ffast-math at link time), another rounding, or traps; kernels may not.
 * Every thread does this around its kernels; the program's exception flags stay as they were. */
#if defined __SSE2__
#include <xmmintrin.h>
typedef unsigned tagcb_float_state;
static inline tagcb_float_state tagcb_float_enter(void)
{
    unsigned state = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return state;
}
static inline void tagcb_float_leave(tagcb_float_state state)
{
    _mm_setcsr(state);
}
#else
#include <fenv.h>
typedef fenv_t tagcb_float_state;
static inline tagcb_float_state tagcb_float_enter(void)
{
    fenv_t state;
    fegetenv(&state);
    fesetenv(FE_DFL_ENV);
    return state;
}
static inline void tagcb_float_leave(tagcb_float_state state)
{
    fesetenv(&state);
}
#endif

/* select.c */
void tagcb_openmp_select(enum tagci_type type, const void *in, const void *residual, size_t n, size_t k,
                         struct tagci_cut *cut, size_t *above, size_t *tied);
size_t tagcb_openmp_count_key(enum tagci_type type, const void *in, const void *residual, size_t n, uint64_t key);
void tagcb_openmp_choose(enum tagci_type type, struct tagci_choice *choice); /* whole or by a sample, as it says */
int tagcb_select_open(void);
void tagcb_select_close(void);

#endif
