/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The variants of the kernels that tests run through: those of the build that this processor has; with
 * TAGC_TEST_SIMDE, the one of kernels_simde.c alone. */
#ifndef TAGC_TESTS_VARIANTS_H
#define TAGC_TESTS_VARIANTS_H

#include "backends/openmp/openmp.h"
#include "unit.h"

#ifdef TAGC_TEST_SIMDE
extern const struct tagcb_kernels tagcb_kernels_simde;

static inline const char *variant_name(int i)
{
    return i == 0 ? tagcb_kernels_simde.name : NULL;
}
#else
static inline const char *variant_name(int i)
{
    for (int j = 0; tagcb_openmp_variant(j); j++)
        if (tagcb_openmp_use(tagcb_openmp_variant(j)->name) == 0 && i-- == 0)
            return tagcb_openmp_variant(j)->name;
    return NULL;
}
#endif

static inline int variant_count(void)
{
    int count = 0;
    while (variant_name(count))
        count++;
    return count;
}

static inline void use_variant(int i, int threads)
{
#ifdef TAGC_TEST_SIMDE
    assert_int_equal(i, 0);
    tagcb_openmp_use_kernels(&tagcb_kernels_simde);
#else
    assert_int_equal(tagcb_openmp_use(variant_name(i)), 0);
#endif
    tagcb_openmp_use_threads(threads);
}

#endif
