/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "config.h"

#include "coll/mpi.h"

#include <limits.h>

size_t tagci_counts_room(int n)
{
    return tagci_op_piece(n, sizeof(MPI_Count)) + tagci_op_piece(n, sizeof(MPI_Aint));
}

void tagci_counts_lay_out(struct tagci_op *op, struct tagci_counts *c, int n)
{
    c->n = n;
    c->counts = tagci_op_take(op, n, sizeof(MPI_Count));
    c->displs = tagci_op_take(op, n, sizeof(MPI_Aint));
}

void tagci_counts_set_places(struct tagci_counts *c, const size_t *offsets, const MPI_Aint *displs)
{
    c->large = offsets[c->n] > INT_MAX;
    for (int i = 0; i < c->n && displs; i++)
        c->large |= displs[i] > INT_MAX || displs[i] < INT_MIN;
    for (int i = 0; i < c->n; i++) {
        MPI_Aint displ = displs ? displs[i] : (MPI_Aint)offsets[i];
        if (c->large) {
            ((MPI_Count *)c->counts)[i] = (MPI_Count)(offsets[i + 1] - offsets[i]);
            ((MPI_Aint *)c->displs)[i] = displ;
        } else {
            ((int *)c->counts)[i] = (int)(offsets[i + 1] - offsets[i]);
            ((int *)c->displs)[i] = (int)displ;
        }
    }
}

void tagci_counts_set(struct tagci_counts *c, const size_t *offsets)
{
    tagci_counts_set_places(c, offsets, NULL);
}

int tagci_mpi_reduce_scatter(const void *send, void *recv, const struct tagci_counts *c, MPI_Datatype type, MPI_Op sum,
                             MPI_Comm comm, MPI_Request *request)
{
    if (request)
        *request = MPI_REQUEST_NULL;
    if (!c->large)
        return request ? MPI_Ireduce_scatter(send, recv, c->counts, type, sum, comm, request)
                       : MPI_Reduce_scatter(send, recv, c->counts, type, sum, comm);
#ifdef HAVE_MPI_LARGE_COUNT
    return request ? MPI_Ireduce_scatter_c(send, recv, c->counts, type, sum, comm, request)
                   : MPI_Reduce_scatter_c(send, recv, c->counts, type, sum, comm);
#else
    return MPI_ERR_COUNT;
#endif
}

int tagci_mpi_reduce_scatter_block(const void *send, void *recv, size_t count, MPI_Datatype type, MPI_Op sum,
                                   MPI_Comm comm, MPI_Request *request)
{
    if (request)
        *request = MPI_REQUEST_NULL;
    if (count <= INT_MAX)
        return request ? MPI_Ireduce_scatter_block(send, recv, (int)count, type, sum, comm, request)
                       : MPI_Reduce_scatter_block(send, recv, (int)count, type, sum, comm);
#ifdef HAVE_MPI_LARGE_COUNT
    return request ? MPI_Ireduce_scatter_block_c(send, recv, (MPI_Count)count, type, sum, comm, request)
                   : MPI_Reduce_scatter_block_c(send, recv, (MPI_Count)count, type, sum, comm);
#else
    return MPI_ERR_COUNT;
#endif
}

int tagci_mpi_allreduce(const void *send, void *recv, size_t count, MPI_Datatype type, MPI_Op sum, MPI_Comm comm,
                        MPI_Request *request)
{
    if (request)
        *request = MPI_REQUEST_NULL;
    if (count <= INT_MAX)
        return request ? MPI_Iallreduce(send, recv, (int)count, type, sum, comm, request)
                       : MPI_Allreduce(send, recv, (int)count, type, sum, comm);
#ifdef HAVE_MPI_LARGE_COUNT
    return request ? MPI_Iallreduce_c(send, recv, (MPI_Count)count, type, sum, comm, request)
                   : MPI_Allreduce_c(send, recv, (MPI_Count)count, type, sum, comm);
#else
    return MPI_ERR_COUNT;
#endif
}

int tagci_mpi_allgatherv(const void *send, size_t count, MPI_Datatype send_type, void *recv,
                         const struct tagci_counts *c, MPI_Datatype type, MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    if (!c->large && count <= INT_MAX)
        return MPI_Iallgatherv(send, (int)count, send_type, recv, c->counts, c->displs, type, comm, request);
#ifdef HAVE_MPI_LARGE_COUNT
    MPI_Count large = (MPI_Count)count;
    return MPI_Iallgatherv_c(send, large, send_type, recv, c->counts, c->displs, type, comm, request);
#else
    return MPI_ERR_COUNT;
#endif
}
