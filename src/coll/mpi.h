/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The few MPI calls that the algorithms make, with 64-bit counts. In general MPI's nonblocking collectives: whether a rank
 * may block depends on what else it has in flight, and nonblocking collectives do not match blocking ones. With NULL for a
 * request, the blocking one: where all ranks are known to be in the call, and to call it alike. Counts past int go through
 * the MPI-4 large-count calls; an MPI without them gives MPI_ERR_COUNT. */
#ifndef TAGCI_COLL_MPI_H
#define TAGCI_COLL_MPI_H

#include "coll/op.h"

/* Arrays of counts in the form that the MPI call takes: ints or MPI_Counts, and displacements. */
struct tagci_counts {
    int large;
    int n;
    void *counts, *displs;
};
size_t tagci_counts_room(int n);
void tagci_counts_lay_out(struct tagci_op *op, struct tagci_counts *c, int n);
/* From offsets, n + 1 of them: counts are their differences, displacements they themselves. */
void tagci_counts_set(struct tagci_counts *c, const size_t *offsets);
/* The same counts, other displacements. */
void tagci_counts_set_places(struct tagci_counts *c, const size_t *offsets, const MPI_Aint *displs);

int tagci_mpi_reduce_scatter(const void *send, void *recv, const struct tagci_counts *counts, MPI_Datatype type,
                             MPI_Op sum, MPI_Comm comm, MPI_Request *request);
int tagci_mpi_reduce_scatter_block(const void *send, void *recv, size_t count, MPI_Datatype type, MPI_Op sum,
                                   MPI_Comm comm, MPI_Request *request);
int tagci_mpi_allreduce(const void *send, void *recv, size_t count, MPI_Datatype type, MPI_Op sum, MPI_Comm comm,
                        MPI_Request *request);
int tagci_mpi_allgatherv(const void *send, size_t count, MPI_Datatype send_type, void *recv,
                         const struct tagci_counts *counts, MPI_Datatype type, MPI_Comm comm, MPI_Request *request);

#endif
