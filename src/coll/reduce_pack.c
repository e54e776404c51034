/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * pack: merged bitmap, then the values on the union, reduced by MPI. Bytes per element: f * (u b + 1/4). Once the union
 * is known, packing takes one value per entry and is exact, so it needs less than a sketch of them. */
#include <string.h>

#include "coll/op.h"
#include "coll/reduce_union.h"
#include "coll/twin.h"

static size_t pack_room(const struct tagci_op *op)
{
    return tagci_add(tagci_op_piece(1, sizeof(struct tagci_union)), tagci_union_room(op));
}

static void pack_lay_out(struct tagci_op *op)
{
    op->state = tagci_op_take(op, 1, sizeof(struct tagci_union));
    tagci_union_lay_out(op, op->state);
}

static enum tagci_progress sparsify(struct tagci_op *op)
{
    return tagci_union_sparsify(op, op->state);
}
static enum tagci_progress merge(struct tagci_op *op)
{
    return tagci_union_merge(op, op->state);
}
static enum tagci_progress pack(struct tagci_op *op)
{
    struct tagci_union *u = op->state;
    enum tagci_progress p = tagci_union_pack(op, u);
    if (!op->broken)
        tagci_op_try(op, tagci_op_bring(op, u->packed_here, u->packed,
                                        u->entry[op->geometry.ranks] * tagci_work_size(op->type)) ||
                             tagci_op_settle(op));
    return p;
}
static enum tagci_progress unpack(struct tagci_op *op)
{
    return tagci_union_unpack(op, op->state);
}

static enum tagci_progress reduce(struct tagci_op *op)
{
    struct tagci_union *u = op->state;
    int ranks = op->geometry.ranks;
    tagci_counts_set(&u->counts, u->entry);
    double bytes = (ranks - 1.0) / ranks * (double)(u->entry[ranks] * tagci_work_size(op->type));
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, bytes);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, bytes);
    if (tagci_op_posted(op, tagci_mpi_reduce_scatter(u->packed_here, u->sum_here, &u->counts, tagci_union_type(op),
                                                     MPI_SUM, op->comm->private, &op->request[op->n_requests])) ==
        TAGCI_FAILED)
        return TAGCI_FAILED;
    return tagci_op_tell(op);
}

static enum tagci_progress gather(struct tagci_op *op)
{
    struct tagci_union *u = op->state;
    int me = op->comm->rank;
    tagci_op_try(
        op, tagci_op_bring(op, u->sum, u->sum_here, (u->entry[me + 1] - u->entry[me]) * tagci_work_size(op->type)));
    return tagci_union_gather(op, u);
}

static const struct tagci_stage pack_stages[] = {
    {sparsify, TAGCI_PHASE_ENCODE, 0},
    {merge, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {tagci_op_hear, TAGCI_PHASE_NONE, 0},
    {pack, TAGCI_PHASE_ENCODE, 0},
    {reduce, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {tagci_op_hear, TAGCI_PHASE_NONE, 0},
    {gather, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {tagci_op_hear, TAGCI_PHASE_NONE, 0},
    {unpack, TAGCI_PHASE_DECODE, 0},
    TAGCI_STAGES_END,
};

const struct tagci_algorithm tagci_algorithm_pack = {.name = "pack",
                                                     .id = TAGC_ALGORITHM_PACK,
                                                     .cuts = 1,
                                                     .room = pack_room,
                                                     .data_room = tagci_union_data_room,
                                                     .lay_out = pack_lay_out,
                                                     .stages = pack_stages,
                                                     .on_device = &tagci_algorithm_pack,
                                                     .takes = TAGCI_BY_PART};
