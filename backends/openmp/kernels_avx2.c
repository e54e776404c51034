/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The kernels for processors with AVX2. */
#define VARIANT(x) x##_avx2
#define VARIANT_NAME "avx2"
#define LANES_HEADER "backends/openmp/lanes_avx2.h"
#include "backends/openmp/template.h"
