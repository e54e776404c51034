/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Fortran's MPI_IN_PLACE and MPI_BOTTOM are variables, and their addresses are what MPI knows them by: one for mpi_f08 and
 * one for mpi and mpif.h (MPICH), or one for all (Open MPI). No MPI says which. So Fortran routines pass them once,
 * compiled with each of the three, and the addresses are kept. */
#include "fortran/fortran.h"

#include <pthread.h>

#include "fortran/strided.h"

static struct known {
    void *in_place, *bottom;
} known[3];
static int nknown;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void tagcf_know(void *in_place, void *bottom)
{
    known[nknown++] = (struct known){in_place, bottom};
}

static void ask(void)
{
#ifdef TAGCF_MPI_F08
    tagcf_ask_f08();
#endif
#ifdef TAGCF_MPI
    tagcf_ask_mpi();
#endif
#ifdef TAGCF_MPIF_H
    tagcf_ask_mpif_h();
#endif
}

/* In the order of array elements, without a gap. The last dimension of an assumed-size array has extent -1. */
static int contiguous(const CFI_cdesc_t *b)
{
    CFI_index_t bytes = (CFI_index_t)b->elem_len;
    for (int i = 0; i < b->rank; i++)
        if (b->dim[i].extent == 0)
            return 1;
    for (int i = 0; i < b->rank; i++) {
        if (b->dim[i].extent != 1 && b->dim[i].sm != bytes)
            return 0;
        bytes *= b->dim[i].extent;
    }
    return 1;
}

void *tagcf_buffer(const CFI_cdesc_t *b)
{
    pthread_once(&once, ask);
    for (int i = 0; i < nknown; i++) {
        if (b->base_addr == known[i].in_place)
            return MPI_IN_PLACE;
        if (b->base_addr == known[i].bottom)
            return MPI_BOTTOM;
    }
    return contiguous(b) ? b->base_addr : TAGCI_STRIDED;
}
