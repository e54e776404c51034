/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The CUDA backend. */
#include <cuda_runtime_api.h>

#include "backend/backend.h"

#ifndef TAGCB_GPU_NAME
#define TAGCB_GPU_NAME cuda
#endif
#define GPU(x) cuda##x
#define GPU_WRONG_HANDLE cudaErrorInvalidResourceHandle

static cudaError_t gpu_host_alloc(void **at, size_t bytes)
{
    return cudaHostAlloc(at, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
}

static cudaError_t gpu_host_free(void *at)
{
    return cudaFreeHost(at);
}

static enum tagci_memory gpu_memory_of(const struct cudaPointerAttributes *a)
{
    return a->type == cudaMemoryTypeDevice    ? TAGCI_DEVICE
           : a->type == cudaMemoryTypeManaged ? TAGCI_SHARED
                                              : TAGCI_HOST;
}

#include "backends/gpu/vtable.h"

#ifdef TAGCB_MODULE
__attribute__((visibility("default"))) const struct tagci_module tagcb_module = {TAGCI_BACKEND_ABI, &tagcb_cuda};
#endif
