/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What backends/cuda uses of CUDA's runtime library, so that it is compiled where there is no CUDA, and runs on the
 * executor. */
#ifndef TAGC_PORTS_CUDA_H
#define TAGC_PORTS_CUDA_H

#define PORT(x) cuda##x
#define PORT_WRONG_HANDLE cudaErrorInvalidResourceHandle
#include "tests/ports/runtime_api.h"

enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
};
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *at);

struct cudaDeviceProp {
    char name[256];
    int multiProcessorCount;
};
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);

#define cudaHostAllocPortable 1
#define cudaHostAllocMapped 2
cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *at);

#endif
