/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Whether MPI takes pointers to a device's memory. An MPI that was built so may have it switched off, and one library may
 * stand in for another at run time, so it is asked, and asked here and now. */
#include "config.h"

#include <mpi.h>
#ifdef HAVE_MPI_EXT_H
#include <mpi-ext.h>
#endif
#include <string.h>

#include "coll/edge.h"
#include "util/mpi_state.h"

#if HAVE_DECL_MPIX_GPU_QUERY_SUPPORT
static int gpu_query(int type)
{
    int yes = 0;
    return MPIX_GPU_query_support(type, &yes) == MPI_SUCCESS && yes;
}
#endif

int tagci_mpi_reaches(const char *backend)
{
    if (!tagci_mpi_is_up()) /* MPICH would end the program */
        return 0;
    if (!strcmp(backend, "cuda")) {
#if HAVE_DECL_MPIX_QUERY_CUDA_SUPPORT
        return MPIX_Query_cuda_support() == 1;
#elif HAVE_DECL_MPIX_GPU_QUERY_SUPPORT
        return gpu_query(MPIX_GPU_SUPPORT_CUDA);
#endif
    } else if (!strcmp(backend, "hip")) {
#if HAVE_DECL_MPIX_GPU_QUERY_SUPPORT
        return gpu_query(MPIX_GPU_SUPPORT_HIP);
#elif HAVE_DECL_MPIX_QUERY_ROCM_SUPPORT
        return MPIX_Query_rocm_support() == 1;
#elif HAVE_DECL_MPIX_QUERY_HIP_SUPPORT
        return MPIX_Query_hip_support() == 1;
#endif
    }
    return 0;
}
