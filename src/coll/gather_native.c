/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * native: MPI's own allgather. */
#include <string.h>

#include "coll/gather.h"
#include "coll/mpi.h"

struct native {
    struct tagci_counts counts;
};

static size_t native_room(const struct tagci_op *op)
{
    return tagci_op_piece(1, sizeof(struct native)) + tagci_counts_room(op->geometry.ranks);
}

static void native_lay_out(struct tagci_op *op)
{
    struct native *s = op->state = tagci_op_take(op, 1, sizeof *s);
    tagci_counts_lay_out(op, &s->counts, op->geometry.ranks);
}

enum tagci_progress tagci_gather_post_native(struct tagci_op *op, struct tagci_counts *counts)
{
    const struct tagci_args *a = &op->args;
    int size;
    MPI_Type_size(a->datatype, &size);
    double bytes = (op->geometry.ranks - 1.0) / op->geometry.ranks * (double)op->geometry.n * size;
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, bytes);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, bytes);
    op->stats.at[TAGC_STAT_DENSITY] = op->stats.at[TAGC_STAT_UNION_DENSITY] = 1;
    /* MPICH 4.0 puts the part of a communicator's only rank at displacement 0, whatever is asked. */
    MPI_Aint lower, extent, zero = 0;
    MPI_Type_get_extent(a->datatype, &lower, &extent);
    int alone = op->geometry.ranks == 1;
    char *recv = (char *)a->recvbuf + (alone ? op->displ[0] * extent : 0);
    tagci_counts_set_places(counts, op->geometry.offset, alone ? &zero : op->displ);
    return tagci_op_posted(op, tagci_mpi_allgatherv(a->sendbuf, (size_t)a->sendcount, a->sendtype, recv, counts,
                                                    a->datatype, op->comm->private, &op->request[op->n_requests]));
}

static enum tagci_progress post(struct tagci_op *op)
{
    struct native *s = op->state;
    return tagci_gather_post_native(op, &s->counts);
}

static const struct tagci_stage native_stages[] = {
    {post, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    TAGCI_STAGES_END,
};

const struct tagci_algorithm tagci_gather_native = {.name = "native",
                                                    .id = TAGC_ALGORITHM_DENSE,
                                                    .room = native_room,
                                                    .lay_out = native_lay_out,
                                                    .stages = native_stages};
