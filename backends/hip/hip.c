/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The HIP backend. */
#include <hip/hip_runtime_api.h>

#include "backend/backend.h"

#ifndef TAGCB_GPU_NAME
#define TAGCB_GPU_NAME hip
#endif
#define GPU(x) hip##x
#define GPU_WRONG_HANDLE hipErrorInvalidHandle
/* Names without a struct of the same name */
#define hipDeviceProp hipDeviceProp_t
#define hipPointerAttributes hipPointerAttribute_t

static hipError_t gpu_host_alloc(void **at, size_t bytes)
{
    return hipHostMalloc(at, bytes, hipHostMallocPortable | hipHostMallocMapped);
}

static hipError_t gpu_host_free(void *at)
{
    return hipHostFree(at);
}

static enum tagci_memory gpu_memory_of(const struct hipPointerAttribute_t *a)
{
#if HIP_VERSION_MAJOR >= 6
    hipMemoryType type = a->type;
#else
    hipMemoryType type = a->memoryType;
#endif
    return a->isManaged ? TAGCI_SHARED : type == hipMemoryTypeDevice ? TAGCI_DEVICE : TAGCI_HOST;
}

#include "backends/gpu/vtable.h"

#ifdef TAGCB_MODULE
__attribute__((visibility("default"))) const struct tagci_module tagcb_module = {TAGCI_BACKEND_ABI, &tagcb_hip};
#endif
