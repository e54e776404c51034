/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * In and out of the work type. */
#ifndef TAGCB_GPU_CONVERT_H
#define TAGCB_GPU_CONVERT_H

#include "backends/gpu/element.h"

#define EACH(i, n)                                                                                                     \
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;                                                               \
    i < (n);                                                                                                           \
    i += (size_t)gridDim.x * BLOCK

template <int TYPE> KERNEL void gather_input_kernel(const void *in, const void *residual, size_t n, void *out)
{
    for (EACH(i, n))
        ((typename element<TYPE>::work *)out)[i] = input<TYPE>(in, residual, i);
}

template <int TYPE> KERNEL void finish_kernel(const void *sum, size_t n, double divide, int plus_zero, void *out)
{
    typedef element<TYPE> E;
    typedef typename E::work W;
    for (EACH(i, n)) {
        W x = ((const W *)sum)[i];
        if (divide != 1)
            x = x / (W)divide;
        if (TYPE == TAGCI_F16 || TYPE == TAGCI_BF16) {
            uint16_t h = TYPE == TAGCI_F16 ? E::to_f16(x) : E::to_bf16(x);
            ((uint16_t *)out)[i] = plus_zero && h == 0x8000 ? 0 : h;
        } else {
            x = plus_zero ? x + 0 : x;
            ((W *)out)[i] = key_of<E>(x) > E::inf ? nan_of<E>() : x;
        }
    }
}

#endif
