/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Which kernels run here. Apart from the kernels themselves, so that no special instruction is needed to ask. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <stdatomic.h>
#include <string.h>

#include "backends/openmp/openmp.h"

#if defined HAVE_AVX2 || defined HAVE_AVX512
#include <cpuid.h>

/* By hand: compilers before gcc 11 and clang 15 do not know these two in __builtin_cpu_supports. */
static int has_f16c_and_lzcnt(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && __get_cpuid(0x80000001, &a, &b, &c, &d) &&
           (c & bit_LZCNT);
}

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt") && has_f16c_and_lzcnt();
}
#endif

#ifdef HAVE_AVX512
static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif

static int always(void)
{
    return 1;
}

static const struct variant {
    const struct tagcb_kernels *kernels;
    int (*usable)(void);
} variants[] = {
#ifdef HAVE_AVX512
    {&tagcb_kernels_avx512, has_avx512},
#endif
#ifdef HAVE_AVX2
    {&tagcb_kernels_avx2, has_avx2},
#endif
    {&tagcb_kernels_portable, always},
};

#define VARIANTS ((int)(sizeof variants / sizeof *variants))

static _Atomic(const struct tagcb_kernels *) chosen;

const struct tagcb_kernels *tagcb_openmp_variant(int i)
{
    return i < VARIANTS ? variants[i].kernels : NULL;
}

int tagcb_openmp_use(const char *name)
{
    for (const struct variant *v = variants; v < variants + VARIANTS; v++)
        if ((!name || !strcmp(name, v->kernels->name)) && v->usable()) {
            atomic_store(&chosen, v->kernels);
            return 0;
        }
    return -1;
}

void tagcb_openmp_use_kernels(const struct tagcb_kernels *kernels)
{
    atomic_store(&chosen, kernels);
}

const struct tagcb_kernels *tagcb_kernels_now(void)
{
    const struct tagcb_kernels *k = atomic_load_explicit(&chosen, memory_order_acquire);
    if (!k) {
        tagcb_openmp_use(NULL);
        k = atomic_load(&chosen);
    }
    return k;
}
