/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/reduce_device.h"

#include <string.h>

#include "coll/cuts.h"
#include "coll/reduce_result.h"
#include "core/bitmap.h"

/* What there is room for: facts of the shape and the backend. */
static void plan(const struct tagci_op *op, struct tagci_pipeline *d)
{
    const struct tagci_geometry *g = &op->geometry;
    size_t ranks = (size_t)g->ranks, chunks = g->first[ranks], own = tagci_part_chunks(g, op->comm->rank);
    memset(d, 0, sizeof *d);
    d->chunk = tagci_longest_chunk(g);
    d->bound = tagci_op_piece(1, tagci_frame_bound(op->type, op->settings->value, d->chunk));
    d->levels = tagci_longest_part_chunks(g);
    d->batch = tagci_smaller(op->device->of->batch, chunks ? chunks : 1);
    d->slots = tagci_smaller(2 * d->batch + ranks, chunks ? chunks : 1);
    d->window = tagci_smaller(2 + 2 * d->batch / ranks, own ? own : 1);
    d->frames = own * ranks;
    d->n_receives = (int)(ranks * d->window);
}

static int wants_whole(const struct tagci_op *op)
{
    return op->args.collective == TAGCI_ALLREDUCE && op->geometry.ranks > 1;
}

static size_t seen_words(const struct tagci_op *op, const struct tagci_pipeline *d)
{
    return tagci_part_chunks(&op->geometry, op->comm->rank) * tagci_bitmap_words(d->chunk);
}

static size_t device_room(const struct tagci_op *op)
{
    struct tagci_pipeline p, *d = &p;
    plan(op, d);
    size_t places = (size_t)d->n_receives;
    size_t bytes = tagci_op_piece(1, sizeof *d) + tagci_op_piece(seen_words(op, d), 8);
    bytes = tagci_add(bytes, tagci_op_piece(d->slots, sizeof(struct tagci_slot)));
    bytes = tagci_add(bytes, tagci_op_piece(d->slots, sizeof(struct tagci_chunk)));
    bytes = tagci_add(bytes, tagci_op_piece(d->slots * tagci_cuts_runs(op), sizeof(struct tagci_run)));
    bytes = tagci_add(bytes, tagci_op_piece(d->slots, d->bound));
    bytes = tagci_add(bytes, tagci_op_piece((size_t)op->geometry.ranks, sizeof(size_t)));
    bytes = tagci_add(bytes, tagci_op_piece(places, d->bound));
    bytes = tagci_add(bytes, tagci_op_piece(places, sizeof(int64_t)) + tagci_op_piece(d->slots, sizeof(size_t)));
    bytes = tagci_add(bytes, tagci_op_piece(TAGCI_HANDS * d->batch, sizeof(struct tagci_decode)));
    bytes = tagci_add(bytes, tagci_messages_room(places + d->slots));
    if (wants_whole(op))
        bytes = tagci_add(bytes, tagci_op_piece(op->geometry.n, tagci_type_size(op->type)));
    return tagci_add(bytes, tagci_result_room(op));
}

static size_t device_data_room(const struct tagci_op *op)
{
    struct tagci_pipeline p, *d = &p;
    plan(op, d);
    size_t width = tagci_work_size(op->type);
    size_t bytes = tagci_op_piece(tagci_part(&op->geometry, op->comm->rank), width);
    bytes = tagci_add(bytes, tagci_op_piece(seen_words(op, d), 8));
    bytes = tagci_add(bytes, tagci_op_piece(d->slots, d->bound));
    bytes = tagci_add(bytes, tagci_op_piece(TAGCI_HANDS * d->batch * d->chunk, width));
    bytes = tagci_add(bytes, tagci_op_piece(TAGCI_HANDS * d->batch * tagci_bitmap_words(d->chunk), 8));
    return tagci_add(bytes, tagci_op_piece((size_t)d->n_receives, d->bound));
}

static void device_lay_out(struct tagci_op *op)
{
    struct tagci_pipeline *d = op->state = tagci_op_take(op, 1, sizeof *d);
    plan(op, d);
    size_t places = (size_t)d->n_receives, width = tagci_work_size(op->type);
    d->seen_here = tagci_op_take(op, seen_words(op, d), 8);
    d->slot = tagci_op_take(op, d->slots, sizeof *d->slot);
    d->describe = tagci_op_take(op, d->slots, sizeof *d->describe);
    d->runs = tagci_op_take(op, d->slots * tagci_cuts_runs(op), sizeof *d->runs);
    d->frame_here = tagci_op_take(op, d->slots, d->bound);
    d->posted = tagci_op_take(op, (size_t)op->geometry.ranks, sizeof(size_t));
    d->in_here = tagci_op_take(op, places, d->bound);
    d->in_bytes = tagci_op_take(op, places, sizeof(int64_t));
    d->own_slot = tagci_op_take(op, d->slots, sizeof(size_t));
    d->decode = tagci_op_take(op, TAGCI_HANDS * d->batch, sizeof *d->decode);
    tagci_messages_lay_out(op, &d->messages, places + d->slots);
    if (wants_whole(op)) {
        size_t bytes = op->geometry.n * tagci_type_size(op->type);
        d->whole = tagci_op_take(op, bytes, 1);
        op->edges.at[TAGCI_EDGE_WHOLE] =
            (struct tagci_edge){.user = op->args.recvbuf, .here = d->whole, .back_bytes = bytes};
    }
    d->sum = tagci_op_take_data(op, tagci_part(&op->geometry, op->comm->rank), width);
    d->seen = tagci_op_take_data(op, seen_words(op, d), 8);
    d->frame = tagci_op_take_data(op, d->slots, d->bound);
    d->values = tagci_op_take_data(op, TAGCI_HANDS * d->batch * d->chunk, width);
    d->bitmap = tagci_op_take_data(op, TAGCI_HANDS * d->batch * tagci_bitmap_words(d->chunk), 8);
    d->in_data = tagci_op_take_data(op, places, d->bound);
    tagci_result_lay_out(op);
}

void tagci_pipeline_break(struct tagci_op *op, int code)
{
    struct tagci_pipeline *d = op->state;
    if (d->broken)
        return;
    d->broken = code;
    tagci_device_settle(op->device);
}

void tagci_pipeline_check(struct tagci_op *op, int failed)
{
    if (failed)
        tagci_pipeline_break(op, tagci_op_ran(op, -1));
}

int tagci_pipeline_passed(struct tagci_op *op, struct tagci_order *order, int mark)
{
    struct tagci_pipeline *d = op->state;
    int now = d->broken ? 1 : op->device->of->query(order, mark);
    tagci_pipeline_check(op, now < 0);
    return now != 0;
}

int tagci_pipeline_receive(struct tagci_op *op, int source)
{
    struct tagci_pipeline *d = op->state;
    if (d->posted[source] >= tagci_part_chunks(&op->geometry, op->comm->rank))
        return MPI_SUCCESS;
    size_t at = (size_t)source * d->window + d->posted[source]++ % d->window;
    d->in_bytes[at] = -1;
    if (source == op->comm->rank)
        return MPI_SUCCESS;
    return MPI_Irecv(d->in_here + at * d->bound, (int)d->bound, MPI_BYTE, source, tagci_messages_tag(op),
                     op->comm->private, &d->messages.request[at]);
}

void tagci_pipeline_free_slot(struct tagci_pipeline *d, size_t at)
{
    d->slot[at].busy = 0;
    while (d->free < d->taken && !d->slot[d->free % d->slots].busy)
        d->free++;
}

static enum tagci_progress device_begin(struct tagci_op *op)
{
    struct tagci_pipeline *d = op->state;
    if (op->args.collective != TAGCI_ALLREDUCE)
        tagci_op_leave_line(op); /* messages between pairs only, from here on */
    d->turn = 1;
    d->broken = op->broken;
    tagci_messages_begin(&d->messages);
    for (int r = 0; r < op->geometry.ranks; r++) {
        d->posted[r] = 0;
        for (size_t w = 0; w < d->window; w++) {
            int code = tagci_pipeline_receive(op, r);
            if (code)
                return tagci_op_fail(op, code);
        }
    }
    return TAGCI_THROUGH;
}

/* ---- Together ---- */

/* Learns of messages sent and received; blocks for one if there is nothing else to do. */
static int look(struct tagci_op *op, int block)
{
    struct tagci_pipeline *d = op->state;
    const struct tagci_messages *m = &d->messages;
    int done, code = tagci_messages_look(op, &d->messages, block, &done);
    if (code)
        return code;
    for (int i = 0; i < done; i++) {
        int bytes;
        if (m->index[i] >= d->n_receives) {
            tagci_pipeline_free_slot(d, (size_t)(m->index[i] - d->n_receives));
        } else {
            MPI_Get_count(&m->status[i], MPI_BYTE, &bytes);
            d->in_bytes[m->index[i]] = bytes;
        }
    }
    return MPI_SUCCESS;
}

static int on_the_device(const struct tagci_pipeline *d)
{
    int busy = 0;
    for (int k = 0; k < TAGCI_HANDS; k++)
        busy |= d->out[k].stage != TAGCI_IDLE || d->in[k].stage != TAGCI_IDLE;
    return busy;
}

static enum tagci_progress device_exchange(struct tagci_op *op)
{
    struct tagci_pipeline *d = op->state;
    for (;;) {
        int did = 0, code = tagci_pipeline_go_out(op, &did);
        if (!code)
            code = tagci_pipeline_go_in(op, &did);
        if (!code && d->decoded == d->frames && d->level >= d->levels && d->free == d->taken && !on_the_device(d))
            break;
        size_t free = d->free;
        int waits = !did && !on_the_device(d);
        if (!code)
            code = look(op, waits && op->blocking);
        if (code)
            return tagci_op_fail(op, code);
        if (!did && !op->blocking) {
            int ready = d->free != free || (d->put < d->frames && tagci_pipeline_is_here(op, d->put));
            if (!ready || on_the_device(d))
                return TAGCI_PENDING;
        }
    }
    return TAGCI_THROUGH;
}

/* The last results, and the union. For the second half of an allreduce the own part goes to the host, whose kernels do the
 * rest. */
static enum tagci_progress device_end(struct tagci_op *op)
{
    struct tagci_pipeline *d = op->state;
    size_t mine = tagci_part(&op->geometry, op->comm->rank), in_union = 0;
    if (op->in_place)
        tagci_pipeline_finish(op, 0, mine);
    if (!d->broken)
        tagci_pipeline_check(op, tagci_device_copy(op->device, d->seen_here, d->seen, seen_words(op, d) * 8) ||
                                     tagci_device_settle(op->device));
    if (d->broken && !d->whole)
        return tagci_op_fail(op, d->broken);
    op->broken = d->broken; /* the others hear of it when the sizes of the results are exchanged */
    for (size_t c = 0; c < tagci_part_chunks(&op->geometry, op->comm->rank) && !d->broken; c++) {
        size_t begin, n = tagci_part_chunk(&op->geometry, op->comm->rank, c, &begin);
        in_union += tagci_bitmap_count(d->seen_here + c * tagci_bitmap_words(d->chunk), tagci_bitmap_words(n));
    }
    op->stats.at[TAGC_STAT_DENSITY] = op->geometry.n ? d->kept / (double)op->geometry.n : 0;
    op->stats.at[TAGC_STAT_UNION_DENSITY] = mine ? (double)in_union / (double)mine : 0;
    d->result_user = op->args.recvbuf;
    if (d->whole) {
        op->args.recvbuf = d->whole;
        op->backend = &tagcb_openmp;
        op->order = NULL;
    }
    return TAGCI_THROUGH;
}

static enum tagci_progress device_result(struct tagci_op *op)
{
    struct tagci_pipeline *d = op->state;
    if (!d->whole)
        return TAGCI_THROUGH;
    op->args.recvbuf = d->result_user;
    op->backend = op->device->backend;
    op->order = op->device->order;
    return tagci_op_run(op, tagci_op_hand_back_rest(op, TAGCI_EDGE_WHOLE));
}

static const struct tagci_stage device_stages[] = {
    {device_begin, TAGCI_PHASE_COMM, 0},    {device_exchange, TAGCI_PHASE_NONE, 0},
    {device_end, TAGCI_PHASE_DECODE, 0},    TAGCI_RESULT_STAGES,
    {device_result, TAGCI_PHASE_DECODE, 0}, TAGCI_STAGES_END,
};

const struct tagci_algorithm tagci_algorithm_device = {.name = "direct",
                                                       .id = TAGC_ALGORITHM_DIRECT,
                                                       .cuts = 1,
                                                       .room = device_room,
                                                       .data_room = device_data_room,
                                                       .lay_out = device_lay_out,
                                                       .stages = device_stages};
