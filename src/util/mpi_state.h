/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Whether MPI can be asked at all: initialized, and not finalized. */
#ifndef TAGCI_UTIL_MPI_STATE_H
#define TAGCI_UTIL_MPI_STATE_H

#include <mpi.h>

static inline int tagci_mpi_is_up(void)
{
    int up = 0, down = 0;
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    return up && !down;
}

#endif
