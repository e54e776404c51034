/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * dense: MPI's own collective. Bytes per element: f * 4 (float). A tensor's residual is sent with the input, whole.
 * 16-bit types travel as float, so that they are rounded once. */
#include <string.h>

#include "coll/mpi.h"
#include "coll/op.h"

enum { at_once = 1 << 20 /* elements */ };

struct dense {
    void *wide; /* input in the work type: 16-bit types, or a residual to add */
    void *sum;  /* where MPI puts the result, if not where the user wants it: sums of 16-bit types; and in place, as
                       MPI may use what is behind the result for its own purposes */
    struct tagci_counts counts;
};

static int is_16_bit(const struct tagci_op *op)
{
    return op->compressible && tagci_type_size(op->type) == 2;
}

/* Elements of this rank's result. */
static size_t result_length(const struct tagci_op *op)
{
    return op->args.collective == TAGCI_ALLREDUCE ? op->geometry.n : tagci_part(&op->geometry, op->comm->rank);
}

/* The spare residual takes the widened input where there is one; a 16-bit tensor without one needs room for it. */
static int own_wide(const struct tagci_op *op)
{
    return is_16_bit(op) && !(op->tensor && op->tensor->spare);
}

static int own_sum(const struct tagci_op *op)
{
    return is_16_bit(op) || (op->compressible && op->in_place && op->args.collective != TAGCI_ALLREDUCE);
}

static size_t dense_room(const struct tagci_op *op)
{
    size_t bytes = tagci_op_piece(1, sizeof(struct dense)) + tagci_counts_room(op->geometry.ranks);
    if (own_wide(op))
        bytes = tagci_add(bytes, tagci_op_piece(op->geometry.n, sizeof(float)));
    if (own_sum(op))
        bytes = tagci_add(bytes, tagci_op_piece(result_length(op), tagci_work_size(op->type)));
    return bytes;
}

static void dense_lay_out(struct tagci_op *op)
{
    struct dense *d = op->state = tagci_op_take(op, 1, sizeof *d);
    memset(d, 0, sizeof *d);
    tagci_counts_lay_out(op, &d->counts, op->geometry.ranks);
    if (own_wide(op))
        d->wide = tagci_op_take(op, op->geometry.n, sizeof(float));
    else if (op->tensor)
        d->wide = op->spare;
    if (own_sum(op))
        d->sum = tagci_op_take(op, result_length(op), tagci_work_size(op->type));
}

static enum tagci_progress dense_input(struct tagci_op *op)
{
    struct dense *d = op->state;
    if (is_16_bit(op) || op->residual_in)
        return tagci_op_run(op, op->backend->gather_input(op->order, op->type, op->in, tagci_op_residual(op, 0),
                                                          op->geometry.n, d->wide));
    return TAGCI_THROUGH;
}

static enum tagci_progress dense_post(struct tagci_op *op)
{
    struct dense *d = op->state;
    const struct tagci_args *a = &op->args;
    int wide = is_16_bit(op) || op->residual_in;
    const void *send = wide ? d->wide : d->sum ? op->in : a->sendbuf;
    void *recv = d->sum ? d->sum : a->recvbuf;
    MPI_Datatype type = is_16_bit(op) ? MPI_FLOAT : a->datatype;
    MPI_Op sum = op->average ? MPI_SUM : a->op;
    MPI_Comm comm = op->comm->private;
    /* After the agreement nobody waits for anything but this, and MPI's blocking calls are faster. */
    int blocks = op->calm && op->tensor;
    MPI_Request *request = blocks ? NULL : &op->request[op->n_requests];
    int code;
    if (a->collective == TAGCI_ALLREDUCE) {
        code = tagci_mpi_allreduce(send, recv, op->geometry.n, type, sum, comm, request);
    } else if (a->collective == TAGCI_REDUCE_SCATTER_BLOCK) {
        code = tagci_mpi_reduce_scatter_block(send, recv, (size_t)a->count, type, sum, comm, request);
    } else {
        tagci_counts_set(&d->counts, op->geometry.offset);
        code = tagci_mpi_reduce_scatter(send, recv, &d->counts, type, sum, comm, request);
    }
    int size;
    MPI_Type_size(type, &size);
    double bytes = (op->geometry.ranks - 1.0) / op->geometry.ranks * op->geometry.n * size *
                   (a->collective == TAGCI_ALLREDUCE ? 2 : 1);
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, bytes);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, bytes);
    op->stats.at[TAGC_STAT_DENSITY] = op->stats.at[TAGC_STAT_UNION_DENSITY] = 1;
    if (blocks)
        return code ? tagci_op_fail(op, code) : TAGCI_THROUGH;
    return tagci_op_posted(op, code);
}

static enum tagci_progress dense_output(struct tagci_op *op)
{
    struct dense *d = op->state;
    tagci_op_leave_line(op);
    if (!op->compressible || (!d->sum && !op->average))
        return TAGCI_THROUGH;
    size_t n = result_length(op), width = tagci_type_size(op->type);
    const char *sum = d->sum ? d->sum : op->args.recvbuf;
    for (size_t from = 0, to; from < n; from = to) { /* so that they go back one behind the other */
        char *out = (char *)op->args.recvbuf + from * width;
        to = n - from > at_once ? from + at_once : n;
        if (op->backend->finish(op->order, op->type, sum + from * (d->sum ? tagci_work_size(op->type) : width),
                                to - from, op->average ? op->geometry.ranks : 1, 0, out))
            return tagci_op_run(op, -1);
        tagci_op_hand_back(op, out, (to - from) * width);
    }
    return TAGCI_THROUGH;
}

static const struct tagci_stage dense_stages[] = {
    {dense_input, TAGCI_PHASE_ENCODE, 0},
    {dense_post, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {dense_output, TAGCI_PHASE_DECODE, 0},
    TAGCI_STAGES_END,
};

const struct tagci_algorithm tagci_algorithm_dense = {
    .name = "dense", .id = TAGC_ALGORITHM_DENSE, .room = dense_room, .lay_out = dense_lay_out, .stages = dense_stages};
