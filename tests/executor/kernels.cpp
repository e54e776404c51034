/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The kernels for the executor. EXECUTOR_WAVE and TAGCB_GPU_NAME come from the command line. */
#include "backends/gpu/kernels.h"
