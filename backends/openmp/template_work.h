/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The kernels for one work type: included by template.h once for float (elements: float and the 16-bit types) and once
 * for double. */
#include "backends/openmp/template_sparsify.h"
#include "backends/openmp/template_place.h"
#include "backends/openmp/template_encode.h"
#include "backends/openmp/template_decode.h"
#include "backends/openmp/template_convert.h"

#undef WORK
#undef LOOSE
#undef KEY
#undef BITS
#undef OF
#undef KEY_MASK
#undef KEY_INF
#undef NAN_BITS
#undef TO_BF16
#undef TO_F16
#undef WIDE
#undef NAME
