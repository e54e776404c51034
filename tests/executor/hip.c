/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The HIP backend as it is, over the executor with waves of 64. */
#define TAGCB_GPU_NAME executor64
#include "backends/hip/hip.c"

#include "tests/executor/runtime.h"

/* Unlike CUDA's, it does not take any other address of the host. */
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *at)
{
    int device, kind = kind_of(at, &device);
    *attributes = (hipPointerAttribute_t){kind == HELD_DEVICE ? hipMemoryTypeDevice : hipMemoryTypeHost, device, 0};
    return kind ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int device)
{
    *properties = (hipDeviceProp_t){"executor, waves of 64", 1};
    return device >= count_devices() ? hipErrorInvalidValue : hipSuccess;
}

hipError_t hipHostMalloc(void **at, size_t bytes, unsigned flags)
{
    return flags == (hipHostMallocPortable | hipHostMallocMapped) ? hold(at, bytes, HELD_HOST) : hipErrorInvalidValue;
}

hipError_t hipHostFree(void *at)
{
    return let_go(at, HELD_HOST);
}
