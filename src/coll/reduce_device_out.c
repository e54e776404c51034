/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/cuts.h"
#include "coll/reduce_device.h"
#include "core/bitmap.h"

/* Next chunk to encode, skipping parts that have fewer; 0 when there is none. */
static int next_chunk(struct tagci_op *op, int *owner, size_t *c)
{
    struct tagci_pipeline *d = op->state;
    int ranks = op->geometry.ranks;
    for (; d->level < d->levels; d->level++, d->turn = 1)
        while (d->turn <= ranks) {
            *owner = (op->comm->rank + d->turn++) % ranks;
            *c = d->level;
            if (*c < tagci_part_chunks(&op->geometry, *owner))
                return 1;
        }
    return 0;
}

static void encode_batch(struct tagci_op *op, int which, int *did)
{
    struct tagci_pipeline *d = op->state;
    struct tagci_hand *h = &d->out[which];
    size_t c, scratch = (size_t)which * d->batch;
    int owner;
    h->first = d->taken;
    h->n = 0;
    /* In the ring, so that descriptors of a batch stand one behind the other. */
    while (h->n < d->batch && d->taken - d->free < d->slots && (!h->n || d->taken % d->slots) &&
           next_chunk(op, &owner, &c)) {
        size_t at = d->taken++ % d->slots;
        struct tagci_chunk *chunk = &d->describe[at];
        tagci_cuts_chunk(op, owner, c, d->runs + at * tagci_cuts_runs(op), chunk);
        chunk->values = d->values + (scratch + h->n) * d->chunk * tagci_work_size(op->type);
        chunk->bitmap = d->bitmap + (scratch + h->n) * tagci_bitmap_words(d->chunk);
        chunk->value = op->settings->value;
        chunk->index = (enum tagci_index)op->settings->index;
        chunk->seal = op->settings->checksum;
        chunk->frame = d->frame + at * d->bound;
        d->slot[at] = (struct tagci_slot){.owner = owner, .busy = 1};
        h->n++;
    }
    if (!h->n)
        return;
    *did = 1;
    h->stage = TAGCI_ON_DEVICE;
    if (!d->broken)
        tagci_pipeline_check(op, op->backend->encode(op->order, &d->describe[h->first % d->slots], h->n) ||
                                     op->device->of->record(op->order, TAGCI_MARK_OUT + which));
}

/* Sizes are known now. */
static void copy_batch_out(struct tagci_op *op, int which)
{
    struct tagci_pipeline *d = op->state;
    struct tagci_hand *h = &d->out[which];
    struct tagci_order *copies = op->device->copies;
    h->stage = TAGCI_COPYING;
    for (size_t i = 0; i < h->n && !d->broken; i++) {
        size_t at = (h->first + i) % d->slots;
        d->slot[at].bytes = d->describe[at].frame_bytes;
        d->kept += (double)d->describe[at].kept;
        tagci_pipeline_check(op, op->device->of->copy(copies, d->frame_here + at * d->bound, d->frame + at * d->bound,
                                                      d->slot[at].bytes));
    }
    if (!d->broken)
        tagci_pipeline_check(op, op->device->of->record(copies, TAGCI_MARK_OUT + which));
}

static int send_batch(struct tagci_op *op, int which)
{
    struct tagci_pipeline *d = op->state;
    struct tagci_hand *h = &d->out[which];
    int code = MPI_SUCCESS;
    h->stage = TAGCI_IDLE;
    for (size_t i = 0; i < h->n && !code; i++) {
        size_t at = (h->first + i) % d->slots;
        struct tagci_slot *s = &d->slot[at];
        if (d->broken)
            s->bytes = 0;
        if (s->owner == op->comm->rank) {
            d->own_slot[d->own++ % d->slots] = at;
            continue;
        }
        tagci_op_count(op, TAGC_STAT_BYTES_SENT, (double)s->bytes);
        code = MPI_Isend(d->frame_here + at * d->bound, (int)s->bytes, MPI_BYTE, s->owner, tagci_messages_tag(op),
                         op->comm->private, &d->messages.request[(size_t)d->n_receives + at]);
    }
    return code;
}

/* Batches are sent in the order of their numbers, as messages to one rank do not overtake each other. */
int tagci_pipeline_go_out(struct tagci_op *op, int *did)
{
    struct tagci_pipeline *d = op->state;
    int first = tagci_older(d->out);
    for (int i = 0; i < TAGCI_HANDS; i++) {
        int k = (first + i) % TAGCI_HANDS, code = MPI_SUCCESS;
        struct tagci_hand *h = &d->out[k];
        if (h->stage == TAGCI_IDLE) {
            encode_batch(op, k, did);
        } else if (h->stage == TAGCI_ON_DEVICE && tagci_pipeline_passed(op, op->order, TAGCI_MARK_OUT + k)) {
            copy_batch_out(op, k);
            *did = 1;
        } else if (h->stage == TAGCI_COPYING && !tagci_comes_later(d->out, k) &&
                   tagci_pipeline_passed(op, op->device->copies, TAGCI_MARK_OUT + k)) {
            code = send_batch(op, k);
            *did = 1;
        }
        if (code)
            return code;
    }
    return MPI_SUCCESS;
}
