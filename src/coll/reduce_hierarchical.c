/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * hierarchical: the ranks of a node add up their inputs in shared memory, whole, and each of them gets a stripe of the sum:
 * the parts of the owners that stand where it stands on their nodes. The stripe then travels by `direct` among those. With
 * L ranks on each of M nodes, a rank puts (M - 1) / M * (p b + index) / L bytes per element on the network.
 *
 * Between nodes it is `direct` on a smaller vector with fewer ranks: an operation inside this one, which shares its tensor's
 * settings. What is held back is held back from the node's sum, so the residual of a stripe is with the rank that has the
 * stripe, and elsewhere it is zero: over the ranks of a node, residual and what was sent are the residuals before and the
 * inputs. 16-bit types travel as float, and are rounded once, at the owner. */
#include <string.h>

#include "coll/cuts.h"
#include "coll/mpi.h"
#include "coll/nodes.h"
#include "coll/op.h"
#include "coll/reduce_result.h"

struct hierarchical {
    struct tagci_op between;
    size_t *end;  /* of the stripes of this node's ranks, in `whole`: per_node + 1 */
    void *whole;  /* input and residual in the work type, stripe by stripe */
    void *stripe; /* sum over the node */
    void *held;   /* residual of the stripe */
    void *sum;    /* the own part */
    int at;       /* stage of the operation between nodes */
    struct tagci_counts counts;
};

static int owner_of(const struct tagci_nodes *n, int node, int local)
{
    return n->rank[node * n->per_node + local];
}

/* The vector of the operation between nodes. offset and first: room for a number more than there are nodes. */
static void stripe_shape(const struct tagci_op *op, size_t *offset, size_t *first, struct tagci_geometry *g)
{
    const struct tagci_nodes *n = op->comm->nodes;
    *g = (struct tagci_geometry){.ranks = n->nodes, .chunk = op->geometry.chunk, .offset = offset, .first = first};
    offset[0] = first[0] = 0;
    for (int k = 0; k < n->nodes; k++) {
        size_t part = tagci_part(&op->geometry, owner_of(n, k, n->local));
        offset[k + 1] = offset[k] + part;
        first[k + 1] = first[k] + (part + g->chunk - 1) / g->chunk;
    }
    g->n = offset[n->nodes];
}

/* Turns a copy of the operation into the one between nodes. */
static void narrow(struct tagci_op *between, const struct tagci_op *op, size_t *offset, size_t *first)
{
    *between = *op;
    between->comm = op->comm->nodes->across;
    stripe_shape(op, offset, first, &between->geometry);
    between->type = tagci_work_is_double(op->type) ? TAGCI_F64 : TAGCI_F32;
    between->args.collective = TAGCI_REDUCE_SCATTER;
    between->in_place = between->average = between->residual_in = between->in_line = 0;
    between->verify = NULL;
    between->result = NULL;
    between->code = between->broken = MPI_SUCCESS;
    memset(&between->stats, 0, sizeof between->stats);
}

static size_t stripe_length(const struct tagci_op *op, int local)
{
    const struct tagci_nodes *n = op->comm->nodes;
    size_t length = 0;
    for (int k = 0; k < n->nodes; k++)
        length += tagci_part(&op->geometry, owner_of(n, k, local));
    return length;
}

static size_t hierarchical_room(const struct tagci_op *op)
{
    const struct tagci_nodes *n = op->comm->nodes;
    size_t width = tagci_work_size(op->type), stripe = stripe_length(op, n->local);
    size_t places = tagci_op_piece((size_t)n->nodes + 1, sizeof(size_t));
    size_t *place = tagci_alloc(2 * ((size_t)n->nodes + 1), sizeof *place);
    struct tagci_op *between = tagci_alloc(1, sizeof *between);
    size_t bytes = SIZE_MAX; /* that much there is not */
    if (place && between) {
        narrow(between, op, place, place + n->nodes + 1);
        bytes = tagci_op_piece(1, sizeof(struct hierarchical)) + 2 * places + tagci_counts_room(n->per_node);
        bytes = tagci_add(bytes, tagci_op_piece((size_t)n->per_node + 1, sizeof(size_t)));
        bytes = tagci_add(bytes, tagci_op_piece(op->geometry.n, width));
        bytes = tagci_add(bytes, tagci_mul(2, tagci_op_piece(stripe, width)));
        bytes = tagci_add(bytes, tagci_op_piece(tagci_part(&op->geometry, op->comm->rank), width));
        bytes = tagci_add(bytes, tagci_cuts_room(between));
        bytes = tagci_add(bytes, tagci_algorithm_direct.room(between));
        bytes = tagci_add(bytes, tagci_result_room(op));
    }
    tagci_free(between);
    tagci_free(place);
    return bytes;
}

static void hierarchical_lay_out(struct tagci_op *op)
{
    const struct tagci_nodes *n = op->comm->nodes;
    size_t width = tagci_work_size(op->type), stripe = stripe_length(op, n->local);
    struct hierarchical *h = op->state = tagci_op_take(op, 1, sizeof *h);
    size_t *offset = tagci_op_take(op, (size_t)n->nodes + 1, sizeof *offset);
    size_t *first = tagci_op_take(op, (size_t)n->nodes + 1, sizeof *first);
    tagci_counts_lay_out(op, &h->counts, n->per_node);
    h->end = tagci_op_take(op, (size_t)n->per_node + 1, sizeof *h->end);
    h->whole = tagci_op_take(op, op->geometry.n, width);
    h->stripe = tagci_op_take(op, stripe, width);
    h->held = tagci_op_take(op, stripe, width);
    h->sum = tagci_op_take(op, tagci_part(&op->geometry, op->comm->rank), width);
    h->end[0] = 0;
    for (int l = 0; l < n->per_node; l++)
        h->end[l + 1] = h->end[l] + stripe_length(op, l);
    tagci_counts_set(&h->counts, h->end);
    h->at = 0;

    struct tagci_op *between = &h->between;
    narrow(between, op, offset, first);
    between->in = h->stripe;
    between->args.recvbuf = h->sum;
    between->spare = h->held;
    tagci_cuts_lay_out(between);
    tagci_algorithm_direct.lay_out(between);
    op->room_at = between->room_at;
    tagci_result_lay_out(op);
}

static enum tagci_progress input(struct tagci_op *op)
{
    struct hierarchical *h = op->state;
    const struct tagci_nodes *n = op->comm->nodes;
    size_t width = tagci_work_size(op->type), at = 0;
    for (int l = 0; l < n->per_node; l++)
        for (int k = 0; k < n->nodes; k++) {
            int owner = owner_of(n, k, l);
            size_t begin = op->geometry.offset[owner], part = tagci_part(&op->geometry, owner);
            if (part && op->backend->gather_input(op->order, op->type, tagci_op_in(op, begin),
                                                  tagci_op_residual(op, begin), part, (char *)h->whole + at * width))
                return tagci_op_run(op, -1);
            at += part;
        }
    return TAGCI_THROUGH;
}

static enum tagci_progress post_node(struct tagci_op *op)
{
    struct hierarchical *h = op->state;
    const struct tagci_nodes *n = op->comm->nodes;
    size_t width = tagci_work_size(op->type);
    double bytes = (double)(op->geometry.n * width) * (n->per_node - 1) / n->per_node;
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, bytes);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, bytes);
    return tagci_op_posted(op, tagci_mpi_reduce_scatter(h->whole, h->stripe, &h->counts,
                                                        width == 8 ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM, n->here->private,
                                                        &op->request[op->n_requests]));
}

static enum tagci_progress node_has_sum(struct tagci_op *op)
{
    struct hierarchical *h = op->state;
    h->between.number = op->number;
    h->between.blocking = op->blocking;
    if (op->args.collective != TAGCI_ALLREDUCE)
        tagci_op_leave_line(op);
    return tagci_cuts_find(&h->between) == TAGCI_FAILED ? tagci_op_fail(op, h->between.code) : TAGCI_THROUGH;
}

static enum tagci_progress exchange(struct tagci_op *op)
{
    struct hierarchical *h = op->state;
    struct tagci_op *between = &h->between;
    for (const struct tagci_stage *s; (s = &tagci_algorithm_direct.stages[h->at])->run; h->at++) {
        enum tagci_progress p = s->run(between);
        if (p == TAGCI_PENDING)
            return p;
        if (p == TAGCI_FAILED) {
            op->broken = between->code; /* in an allreduce the others hear of it with the sizes of the results */
            return op->result ? TAGCI_THROUGH : tagci_op_fail(op, op->broken);
        }
    }
    static const int added[] = {TAGC_STAT_BYTES_SENT, TAGC_STAT_BYTES_RECEIVED, TAGC_STAT_TIME_ENCODE,
                                TAGC_STAT_TIME_COMM, TAGC_STAT_TIME_DECODE};
    for (size_t i = 0; i < sizeof added / sizeof added[0]; i++)
        tagci_op_count(op, added[i], between->stats.at[added[i]]);
    op->stats.at[TAGC_STAT_DENSITY] = between->stats.at[TAGC_STAT_DENSITY];
    op->stats.at[TAGC_STAT_UNION_DENSITY] = between->stats.at[TAGC_STAT_UNION_DENSITY];
    return TAGCI_THROUGH;
}

static enum tagci_progress output(struct tagci_op *op)
{
    struct hierarchical *h = op->state;
    const struct tagci_geometry *g = &op->geometry;
    const struct tagci_nodes *n = op->comm->nodes;
    size_t width = tagci_work_size(op->type), part = tagci_part(g, op->comm->rank), at = 0;
    if (op->broken)
        return TAGCI_THROUGH;
    if (op->residual_out)
        for (int l = 0; l < n->per_node; l++)
            for (int k = 0; k < n->nodes; k++) {
                int owner = owner_of(n, k, l);
                size_t bytes = tagci_part(g, owner) * width;
                void *to = tagci_op_residual_out(op, g->offset[owner]);
                if (l != n->local) {
                    memset(to, 0, bytes);
                } else if (bytes) {
                    memcpy(to, (char *)h->held + at, bytes);
                    at += bytes;
                }
            }
    size_t skip = op->args.collective == TAGCI_ALLREDUCE ? g->offset[op->comm->rank] : 0;
    char *to = (char *)op->args.recvbuf + skip * tagci_type_size(op->type);
    return part ? tagci_op_run(
                      op, op->backend->finish(op->order, op->type, h->sum, part, op->average ? g->ranks : 1, 0, to))
                : TAGCI_THROUGH;
}

static const struct tagci_stage stages[] = {
    {input, TAGCI_PHASE_ENCODE, 0},
    {post_node, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {node_has_sum, TAGCI_PHASE_SELECT, 0},
    {exchange, TAGCI_PHASE_NONE, 0},
    {output, TAGCI_PHASE_DECODE, 0},
    TAGCI_RESULT_STAGES,
    TAGCI_STAGES_END,
};

const struct tagci_algorithm tagci_algorithm_hierarchical = {.name = "hierarchical",
                                                             .id = TAGC_ALGORITHM_HIERARCHICAL,
                                                             .room = hierarchical_room,
                                                             .lay_out = hierarchical_lay_out,
                                                             .stages = stages};
