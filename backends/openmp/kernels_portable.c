/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The kernels in plain C. */
#define VARIANT(x) x##_portable
#define VARIANT_NAME "portable"
#include "backends/openmp/template.h"
