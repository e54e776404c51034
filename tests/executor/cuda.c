/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The CUDA backend as it is, over the executor with waves of 32. */
#define TAGCB_GPU_NAME executor32
#include "backends/cuda/cuda.c"

#include "tests/executor/runtime.h"

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *at)
{
    int kind = kind_of(at, &attributes->device);
    attributes->type = kind == HELD_DEVICE ? cudaMemoryTypeDevice
                       : kind              ? cudaMemoryTypeHost
                                           : cudaMemoryTypeUnregistered;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    *properties = (struct cudaDeviceProp){"executor, waves of 32", 1};
    return device >= count_devices() ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
    return flags == (cudaHostAllocPortable | cudaHostAllocMapped) ? hold(at, bytes, HELD_HOST) : cudaErrorInvalidValue;
}

cudaError_t cudaFreeHost(void *at)
{
    return let_go(at, HELD_HOST);
}
