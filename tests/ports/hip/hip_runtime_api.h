/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The same for backends/hip. */
#ifndef TAGC_PORTS_HIP_H
#define TAGC_PORTS_HIP_H

#define PORT(x) hip##x
#define PORT_WRONG_HANDLE hipErrorInvalidHandle
#include "tests/ports/runtime_api.h"

#define HIP_VERSION_MAJOR 6
typedef enum { hipMemoryTypeHost, hipMemoryTypeDevice, hipMemoryTypeManaged } hipMemoryType;
typedef struct hipPointerAttribute_t {
    hipMemoryType type;
    int device, isManaged;
} hipPointerAttribute_t;
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *at);

typedef struct hipDeviceProp_t {
    char name[256];
    int multiProcessorCount;
} hipDeviceProp_t;
hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int device);

#define hipHostMallocPortable 1
#define hipHostMallocMapped 2
hipError_t hipHostMalloc(void **at, size_t bytes, unsigned flags);
hipError_t hipHostFree(void *at);

#endif
