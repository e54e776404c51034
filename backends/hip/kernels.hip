/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#define TAGCB_GPU_NAME hip
#include "backends/gpu/kernels.h"
