/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include <string.h>

#include "coll/reduce_device.h"
#include "core/bitmap.h"
#include "util/error.h"

static size_t place(const struct tagci_op *op, size_t number)
{
    const struct tagci_pipeline *d = op->state;
    size_t ranks = (size_t)op->geometry.ranks;
    return number % ranks * d->window + number / ranks % d->window;
}

int tagci_pipeline_is_here(const struct tagci_op *op, size_t number)
{
    const struct tagci_pipeline *d = op->state;
    size_t ranks = (size_t)op->geometry.ranks;
    if ((int)(number % ranks) == op->comm->rank)
        return number / ranks < d->own;
    /* a place that is taken still holds the frame of an earlier chunk */
    return number < d->decoded + (size_t)d->n_receives && d->in_bytes[place(op, number)] >= 0;
}

/* Checks the frame with this number, which is here. */
static void check_frame(struct tagci_op *op, size_t number, struct tagci_decode *take)
{
    struct tagci_pipeline *d = op->state;
    const struct tagci_geometry *g = &op->geometry;
    int me = op->comm->rank, source = (int)(number % (size_t)g->ranks);
    size_t at = place(op, number), c = number / (size_t)g->ranks, begin, n = tagci_part_chunk(g, me, c, &begin);
    int own = source == me;
    size_t slot = own ? d->own_slot[c % d->slots] : 0, bytes = own ? d->slot[slot].bytes : (size_t)d->in_bytes[at];
    const unsigned char *here = own ? d->frame_here + slot * d->bound : d->in_here + at * d->bound;
    unsigned char *there = own ? d->frame + slot * d->bound : d->in_data + at * d->bound;
    const char *why;
    memset(take, 0, sizeof *take);
    take->n = n;
    take->sum = d->sum + (begin - g->offset[me]) * tagci_work_size(op->type);
    take->seen = d->seen + c * tagci_bitmap_words(d->chunk);
    take->first = source == 0;
    if (d->broken)
        return;
    if (tagci_frame_read(here, bytes, op->type, n, op->settings->checksum, &take->frame, &why))
        tagci_pipeline_break(op,
                             tagci_error(TAGC_ERR_WIRE, "%s: tensor \"%s\": frame %zu of rank %d: %s", op->args.call,
                                         tagci_op_tensor_name(op), c, source, bytes ? why : "that rank failed"));
    else
        tagci_frame_move(&take->frame, there);
    if (own || d->broken)
        return;
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, (double)bytes);
    tagci_pipeline_check(op, op->device->of->copy(op->device->copies, there, here, bytes));
}

static void take_batch_in(struct tagci_op *op, int which, int *did)
{
    struct tagci_pipeline *d = op->state;
    struct tagci_hand *h = &d->in[which];
    h->first = d->put;
    h->n = 0;
    while (h->n < d->batch && d->put < d->frames && tagci_pipeline_is_here(op, d->put)) {
        check_frame(op, d->put, &d->decode[(size_t)which * d->batch + h->n]);
        d->put++;
        h->n++;
    }
    if (!h->n)
        return;
    *did = 1;
    h->stage = TAGCI_COPYING;
    if (!d->broken)
        tagci_pipeline_check(op, op->device->of->record(op->device->copies, TAGCI_MARK_IN + which));
}

void *tagci_pipeline_result(const struct tagci_op *op, size_t skip)
{
    skip += op->args.collective == TAGCI_ALLREDUCE ? op->geometry.offset[op->comm->rank] : 0;
    return (char *)op->args.recvbuf + skip * tagci_type_size(op->type);
}

void tagci_pipeline_finish(struct tagci_op *op, size_t from, size_t to)
{
    struct tagci_pipeline *d = op->state;
    void *result = tagci_pipeline_result(op, from);
    size_t width = tagci_type_size(op->type);
    if (from >= to || d->broken)
        return;
    int failed = op->backend->finish(op->order, op->type, d->sum + from * tagci_work_size(op->type), to - from,
                                     op->average ? op->geometry.ranks : 1, 0, result);
    if (d->whole && !failed)
        failed = tagci_device_copy(op->device, d->whole + (op->geometry.offset[op->comm->rank] + from) * width, result,
                                   (to - from) * width);
    tagci_pipeline_check(op, failed);
}

static void decode_batch(struct tagci_op *op, int which)
{
    struct tagci_pipeline *d = op->state;
    struct tagci_hand *h = &d->in[which];
    size_t part = tagci_part(&op->geometry, op->comm->rank), complete = (h->first + h->n) / (size_t)op->geometry.ranks;
    h->stage = TAGCI_ON_DEVICE;
    if (d->broken)
        return;
    tagci_pipeline_check(op, op->backend->decode(op->order, d->decode + (size_t)which * d->batch, h->n));
    /* In place, input may still stand where the result goes: that waits for the end. */
    if (!op->in_place && complete > d->finished)
        tagci_pipeline_finish(op, d->finished * op->geometry.chunk, tagci_smaller(complete * op->geometry.chunk, part));
    d->finished = complete;
    if (!d->broken)
        tagci_pipeline_check(op, op->device->of->record(op->order, TAGCI_MARK_IN + which));
}

/* Decoded: its places receive again, its own frames' slots are free. */
static int leave_batch(struct tagci_op *op, int which)
{
    struct tagci_pipeline *d = op->state;
    struct tagci_hand *h = &d->in[which];
    int code = MPI_SUCCESS;
    h->stage = TAGCI_IDLE;
    for (size_t i = 0; i < h->n && !code; i++, d->decoded++) {
        int source = (int)(d->decoded % (size_t)op->geometry.ranks);
        if (source == op->comm->rank)
            tagci_pipeline_free_slot(d, d->own_slot[d->decoded / (size_t)op->geometry.ranks % d->slots]);
        code = tagci_pipeline_receive(op, source);
    }
    return code;
}

/* Batches are decoded in the order of their numbers: the older one first. */
int tagci_pipeline_go_in(struct tagci_op *op, int *did)
{
    struct tagci_pipeline *d = op->state;
    int first = tagci_older(d->in);
    for (int i = 0; i < TAGCI_HANDS; i++) {
        int k = (first + i) % TAGCI_HANDS, code = MPI_SUCCESS;
        struct tagci_hand *h = &d->in[k];
        if (h->stage == TAGCI_IDLE) {
            take_batch_in(op, k, did);
        } else if (h->stage == TAGCI_COPYING && !(tagci_comes_later(d->in, k) && d->in[1 - k].stage == TAGCI_COPYING) &&
                   tagci_pipeline_passed(op, op->device->copies, TAGCI_MARK_IN + k)) {
            decode_batch(op, k);
            *did = 1;
        } else if (h->stage == TAGCI_ON_DEVICE && !tagci_comes_later(d->in, k) &&
                   tagci_pipeline_passed(op, op->order, TAGCI_MARK_IN + k)) {
            code = leave_batch(op, k);
            *did = 1;
        }
        if (code)
            return code;
    }
    return MPI_SUCCESS;
}
