/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * hierarchical: the ranks of a node add up their inputs in shared memory, whole, and each of them gets a stripe of the sum:
 * the parts of the owners that stand where it stands on their nodes. The stripe then travels by `direct` among those. With
 * L ranks on each of M nodes, a rank puts (M - 1) / M * (p b + index) / L bytes per element on the network.
 *
 * The sum goes piece by piece, while caches hold it: a rank gives every other one what it has of that one's stripe
 * (coll/lanes.h), and adds to its own input that of the next rank of the node, the one after that, and so round.
 *
 * Between nodes it is `direct` on a smaller vector with fewer ranks: an operation inside this one, which shares its tensor's
 * settings. What is held back is held back from the node's sum, so the residual of a stripe is with the rank that has the
 * stripe, and elsewhere it is zero: over the ranks of a node, residual and what was sent are the residuals before and the
 * inputs. 16-bit types travel as float, and are rounded once, at the owner. */
#include <sched.h>
#include <string.h>

#include "coll/cuts.h"
#include "coll/nodes.h"
#include "coll/op.h"
#include "coll/reduce_result.h"

/* How far a rank is through a stripe. */
struct place {
    size_t at;   /* in the stripe */
    int node;    /* of the owner whose part that is, */
    size_t part; /* and where in it */
};

struct hierarchical {
    struct tagci_op between;
    void *stripe;        /* sum over the node */
    size_t *held_at;     /* where its parts stand in the whole vector, and what is held back of them */
    void *sum;           /* the own part */
    int at;              /* stage of the operation between nodes */
    size_t *length;      /* of each stripe */
    struct place *place; /* in the stripes of others, what was given of them; in the own, what was put in */
    size_t summed;       /* elements of the own stripe that are complete */
    int turn;            /* ranks that are in the sum of the piece behind them */
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
        bytes = tagci_op_piece(1, sizeof(struct hierarchical)) + 2 * places;
        bytes += tagci_op_piece(n->per_node, sizeof(size_t)) + tagci_op_piece(n->per_node, sizeof(struct place));
        bytes = tagci_add(bytes, tagci_op_piece(n->nodes, sizeof(size_t)));
        bytes = tagci_add(bytes, tagci_op_piece(stripe, width));
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
    h->held_at = tagci_op_take(op, n->nodes, sizeof *h->held_at);
    for (int k = 0; k < n->nodes; k++)
        h->held_at[k] = op->geometry.offset[owner_of(n, k, n->local)];
    h->length = tagci_op_take(op, n->per_node, sizeof *h->length);
    h->place = tagci_op_take(op, n->per_node, sizeof *h->place);
    h->stripe = tagci_op_take(op, stripe, width);
    h->sum = tagci_op_take(op, tagci_part(&op->geometry, op->comm->rank), width);
    for (int l = 0; l < n->per_node; l++) {
        h->length[l] = stripe_length(op, l);
        h->place[l] = (struct place){0, 0, 0};
    }
    h->summed = 0;
    h->turn = h->at = 0;

    struct tagci_op *between = &h->between;
    narrow(between, op, offset, first);
    between->in = h->stripe;
    between->args.recvbuf = h->sum;
    between->held_at = h->held_at;
    tagci_cuts_lay_out(between);
    tagci_algorithm_direct.lay_out(between);
    op->room_at = between->room_at;
    tagci_result_lay_out(op);
}

/* The next count elements of a stripe, as this rank has them, input and residual, in the work type. */
static int next_of(struct tagci_op *op, int local, size_t count, char *to)
{
    struct hierarchical *h = op->state;
    struct place *p = &h->place[local];
    int failed = 0;
    p->at += count;
    while (count) {
        int owner = owner_of(op->comm->nodes, p->node, local);
        size_t begin = op->geometry.offset[owner] + p->part, left = op->geometry.offset[owner + 1] - begin;
        size_t m = left < count ? left : count;
        if (m)
            failed |= op->backend->gather_input(op->order, op->type, tagci_op_in(op, begin),
                                                tagci_op_residual(op, begin), m, to);
        to += m * tagci_work_size(op->type);
        count -= m;
        p->part += m;
        if (m == left) {
            p->node++;
            p->part = 0;
        }
    }
    return failed;
}

static void add(int wide, void *to, const void *from, size_t n)
{
    double *d = to;
    const double *x = from;
    float *f = to;
    const float *y = from;
    for (size_t i = 0; wide && i < n; i++)
        d[i] += x[i];
    for (size_t i = 0; !wide && i < n; i++)
        f[i] += y[i];
}

static size_t piece_of(size_t at, size_t length, size_t most)
{
    return length - at < most ? length - at : most;
}

/* Gives what the lanes have room for, and takes what is in them. Returns whether there was anything. */
static int sum_some(struct tagci_op *op)
{
    struct hierarchical *h = op->state;
    const struct tagci_nodes *n = op->comm->nodes;
    size_t width = tagci_work_size(op->type), most = tagci_lanes_piece(n->lanes) / width;
    int did = 0, failed = 0, me = n->local;
    for (int i = 1; i < n->per_node; i++) {
        int to = (me + n->per_node - i) % n->per_node;
        size_t count = piece_of(h->place[to].at, h->length[to], most);
        char *room = count ? tagci_lanes_room(n->lanes, to) : NULL;
        if (!room)
            continue;
        failed |= next_of(op, to, count, room);
        tagci_lanes_give(n->lanes, to);
        did = 1;
    }
    while (h->summed < h->length[me]) {
        size_t count = piece_of(h->summed, h->length[me], most);
        char *sum = (char *)h->stripe + h->summed * width;
        if (h->turn == 0) {
            failed |= next_of(op, me, count, sum);
        } else {
            int from = (me + h->turn) % n->per_node;
            const void *piece = tagci_lanes_next(n->lanes, from);
            if (!piece)
                break;
            add(width == sizeof(double), sum, piece, count);
            tagci_lanes_done(n->lanes, from);
        }
        did = 1;
        if (++h->turn == n->per_node) {
            h->turn = 0;
            h->summed += count;
            break; /* others wait for room, or for what goes in it */
        }
    }
    if (failed && !op->broken) /* the others go on: so does this rank, and fails when they have what they wait for */
        op->broken = tagci_op_ran(op, failed);
    return did;
}

static enum tagci_progress sum_node(struct tagci_op *op)
{
    struct hierarchical *h = op->state;
    int flag, done;
    do {
        done = h->summed == h->length[op->comm->nodes->local];
        for (int l = 0; l < op->comm->nodes->per_node; l++)
            done = done && h->place[l].at == h->length[l];
    } while (!done && sum_some(op));
    if (done)
        return op->broken ? tagci_op_fail(op, op->broken) : TAGCI_THROUGH;
    /* What MPI still has to send for this rank may be what a rank that is waited for waits for. */
    int code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, op->comm->private, &flag, MPI_STATUS_IGNORE);
    if (op->blocking)
        sched_yield();
    return code ? tagci_op_fail(op, code) : TAGCI_PENDING;
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
    size_t width = tagci_work_size(op->type), part = tagci_part(g, op->comm->rank);
    if (op->broken)
        return TAGCI_THROUGH;
    for (int l = 0; op->residual_out && l < n->per_node; l++)
        for (int k = 0; l != n->local && k < n->nodes; k++) {
            int owner = owner_of(n, k, l);
            memset(tagci_op_residual_out(op, g->offset[owner]), 0, tagci_part(g, owner) * width);
        }
    size_t skip = op->args.collective == TAGCI_ALLREDUCE ? g->offset[op->comm->rank] : 0;
    char *to = (char *)op->args.recvbuf + skip * tagci_type_size(op->type);
    return part ? tagci_op_run(
                      op, op->backend->finish(op->order, op->type, h->sum, part, op->average ? g->ranks : 1, 0, to))
                : TAGCI_THROUGH;
}

static const struct tagci_stage stages[] = {
    {sum_node, TAGCI_PHASE_COMM, 1},
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
