/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#define TAGCB_GPU_NAME cuda
#include "backends/gpu/kernels.h"
