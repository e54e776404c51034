/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/twin.h"

#include "coll/mpi.h"
#include "util/error.h"

void *tagci_op_take_twin(struct tagci_op *op, size_t count, size_t size, void **twin)
{
    void *piece = tagci_op_take_data(op, count, size);
    *twin = op->order ? tagci_op_take(op, count, size) : piece;
    return piece;
}

size_t tagci_op_twin(const struct tagci_op *op, size_t count, size_t size)
{
    return op->order ? tagci_op_piece(count, size) : 0;
}

int tagci_op_bring(const struct tagci_op *op, void *to, const void *from, size_t bytes)
{
    return to == from ? 0 : tagci_device_copy(op->device, to, from, bytes);
}

void tagci_op_try(struct tagci_op *op, int failed)
{
    if (!failed || op->broken)
        return;
    op->broken = tagci_op_ran(op, -1);
    tagci_op_settle(op); /* what is still on the order works in memory that is used again */
}

enum tagci_progress tagci_op_tell(struct tagci_op *op)
{
    double bytes = 2 * (op->geometry.ranks - 1.0) / op->geometry.ranks * sizeof op->alarm;
    op->alarm = op->broken != MPI_SUCCESS;
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, bytes);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, bytes);
    return tagci_op_posted(op, tagci_mpi_allreduce(MPI_IN_PLACE, &op->alarm, 1, MPI_INT, MPI_MAX, op->comm->private,
                                                   &op->request[op->n_requests]));
}

enum tagci_progress tagci_op_hear(struct tagci_op *op)
{
    if (!op->alarm)
        return TAGCI_THROUGH;
    return op->broken ? tagci_op_fail(op, op->broken) : tagci_op_fail_text(op, TAGC_ERR_WIRE, "another rank failed");
}
