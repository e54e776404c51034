/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The kernels for processors with AVX-512 (F, BW, VL, DQ). */
#define VARIANT(x) x##_avx512
#define VARIANT_NAME "avx512"
#define LANES_HEADER "backends/openmp/lanes_avx512.h"
#include "backends/openmp/template.h"
