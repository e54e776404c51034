/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Whether MPI can be asked at all, and which one it is. */
#ifndef TAGCI_UTIL_MPI_STATE_H
#define TAGCI_UTIL_MPI_STATE_H

#include <mpi.h>
#include <string.h>

/* Initialized and not finalized. */
static inline int tagci_mpi_is_up(void)
{
    int up = 0, down = 0;
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    return up && !down;
}

/* Name and version of the MPI that runs, of the many lines that it has to say about itself. Any time. */
static inline void tagci_mpi_library(char text[MPI_MAX_LIBRARY_VERSION_STRING])
{
    int length;
    text[0] = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n,")] = 0;
    for (char *p = text; *p; p++)
        if (*p == '\t')
            *p = ' ';
}

#endif
