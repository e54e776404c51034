/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The AVX-512 kernels, out of the same source, for any machine. */
#define VARIANT(x) x##_simde
#define VARIANT_NAME "avx512 by simde"
#define LANES_HEADER "backends/openmp/lanes_avx512.h"
#define LANES_INTRINSICS "tests/unit/simde_avx512.h"
#include "backends/openmp/template.h"
