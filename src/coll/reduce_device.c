/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * direct where the tensor lives on a device: the same frames to the same owners in the same order (reduce_direct.c), so
 * that ranks with and without a device work together. Input, residual and sums stay in the device's memory; only frames
 * travel through the host: in pinned memory, as MPI need not know of devices, and because a frame that came from elsewhere
 * is checked before a kernel reads it.
 *
 * Three things go on at once, in batches as the backend likes them, and the host waits for none of them: kernels on the
 * tensor's order, copies on another one, messages. What goes out is encoded, copied, sent; what comes in is received, copied,
 * decoded. A batch goes on when the mark behind its last step is passed.
 *
 *   sending    a slot holds one frame, in the device's memory and in pinned memory, from its encoding until MPI has it.
 *              A frame for this rank itself stays in its slot until it is decoded.
 *   receiving  places for the frames of the next `window` chunks of every rank. Frames are decoded in one sequence: chunk
 *              by chunk, in each rank by rank.
 *
 * Sends are in the order of chunks, so the oldest chunk in flight anywhere can always be delivered: all ranks have room for
 * it, or have sent it.
 *
 * A device that fails must not keep other ranks waiting: this rank goes on with empty messages, which tell them. */
#include <string.h>

#include "coll/cuts.h"
#include "coll/messages.h"
#include "coll/op.h"
#include "coll/reduce_result.h"
#include "core/bitmap.h"
#include "util/error.h"

enum { hands = 2 /* batches of a kind in flight */ };
/* Marks: 0 is for the edges of the call. On the order of kernels 1 and 2 are behind encodings, 3 and 4 behind decodings; on
 * that of copies likewise behind copies out and in. */
enum { mark_out = 1, mark_in = 3 };

enum stage { IDLE, ON_DEVICE, COPYING }; /* out: encoded, copied; in: copied, decoded */

/* A batch: n consecutive ones of a ring, from number `first` on. */
struct hand {
    enum stage stage;
    size_t first, n;
};

struct slot {
    int owner;
    int busy;
    size_t bytes;
};

struct device {
    size_t bound, slots, window, batch, chunk;
    size_t levels;              /* chunks of the longest part */
    char *sum;                  /* the own part in the work type: in the device's memory */
    uint64_t *seen, *seen_here; /* union of the own part; from a whole word on for each chunk */

    /* sending: next is chunk `level` of the part of rank + turn; the last turn of a level is this rank itself */
    size_t level;
    int turn;
    size_t taken; /* frames put into slots so far: slot = number % slots */
    size_t free;  /* number of the oldest one whose slot is not free yet */
    struct hand out[hands];
    struct slot *slot;
    struct tagci_chunk *describe; /* of each slot */
    struct tagci_run *runs;
    unsigned char *frame, *frame_here; /* slots, in the device's memory and pinned */
    char *values;                      /* scratch of the encoding, of one batch of each hand */
    uint64_t *bitmap;

    /* receiving: frames by number in the sequence, chunk * ranks + rank */
    size_t frames, put, decoded; /* of the own part; put to work; done */
    size_t finished;             /* chunks whose results are on their way */
    struct hand in[hands];
    size_t *posted; /* for each rank */
    unsigned char *in_here, *in_data;
    int64_t *in_bytes; /* of each place; -1: not here yet */
    size_t own;        /* own frames that are ready: of the first chunks */
    size_t *own_slot;  /* of own frame c, at c % slots */
    struct tagci_decode *decode;

    struct tagci_messages messages; /* [rank * window + place] of receives, then [slot] of sends */
    int n_receives;
    double kept;
    int broken;

    unsigned char *whole; /* of an allreduce: the vector on the host, for its second half */
    void *result_user;
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What there is room for: facts of the shape and the backend. */
static void plan(const struct tagci_op *op, struct device *d)
{
    const struct tagci_geometry *g = &op->geometry;
    size_t ranks = (size_t)g->ranks, chunks = g->first[ranks], own = tagci_part_chunks(g, op->comm->rank);
    memset(d, 0, sizeof *d);
    d->chunk = tagci_longest_chunk(g);
    d->bound = tagci_op_piece(1, tagci_frame_bound(op->type, op->settings->value, d->chunk));
    d->levels = tagci_longest_part_chunks(g);
    d->batch = smaller(op->device->of->batch, chunks ? chunks : 1);
    d->slots = smaller(2 * d->batch + ranks, chunks ? chunks : 1);
    d->window = smaller(2 + 2 * d->batch / ranks, own ? own : 1);
    d->frames = own * ranks;
    d->n_receives = (int)(ranks * d->window);
}

static int wants_whole(const struct tagci_op *op)
{
    return op->args.collective == TAGCI_ALLREDUCE && op->geometry.ranks > 1;
}

static size_t seen_words(const struct tagci_op *op, const struct device *d)
{
    return tagci_part_chunks(&op->geometry, op->comm->rank) * tagci_bitmap_words(d->chunk);
}

static size_t device_room(const struct tagci_op *op)
{
    struct device p, *d = &p;
    plan(op, d);
    size_t places = (size_t)d->n_receives;
    size_t bytes = tagci_op_piece(1, sizeof *d) + tagci_op_piece(seen_words(op, d), 8);
    bytes = tagci_add(bytes, tagci_op_piece(d->slots, sizeof(struct slot)));
    bytes = tagci_add(bytes, tagci_op_piece(d->slots, sizeof(struct tagci_chunk)));
    bytes = tagci_add(bytes, tagci_op_piece(d->slots * tagci_cuts_runs(op), sizeof(struct tagci_run)));
    bytes = tagci_add(bytes, tagci_op_piece(d->slots, d->bound));
    bytes = tagci_add(bytes, tagci_op_piece((size_t)op->geometry.ranks, sizeof(size_t)));
    bytes = tagci_add(bytes, tagci_op_piece(places, d->bound));
    bytes = tagci_add(bytes, tagci_op_piece(places, sizeof(int64_t)) + tagci_op_piece(d->slots, sizeof(size_t)));
    bytes = tagci_add(bytes, tagci_op_piece(hands * d->batch, sizeof(struct tagci_decode)));
    bytes = tagci_add(bytes, tagci_messages_room(places + d->slots));
    if (wants_whole(op))
        bytes = tagci_add(bytes, tagci_op_piece(op->geometry.n, tagci_type_size(op->type)));
    return tagci_add(bytes, tagci_result_room(op));
}

size_t tagci_device_data_room(const struct tagci_op *op)
{
    struct device p, *d = &p;
    plan(op, d);
    size_t width = tagci_work_size(op->type);
    size_t bytes = tagci_op_piece(tagci_part(&op->geometry, op->comm->rank), width);
    bytes = tagci_add(bytes, tagci_op_piece(seen_words(op, d), 8));
    bytes = tagci_add(bytes, tagci_op_piece(d->slots, d->bound));
    bytes = tagci_add(bytes, tagci_op_piece(hands * d->batch * d->chunk, width));
    bytes = tagci_add(bytes, tagci_op_piece(hands * d->batch * tagci_bitmap_words(d->chunk), 8));
    return tagci_add(bytes, tagci_op_piece((size_t)d->n_receives, d->bound));
}

static void device_lay_out(struct tagci_op *op)
{
    struct device *d = op->state = tagci_op_take(op, 1, sizeof *d);
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
    d->decode = tagci_op_take(op, hands * d->batch, sizeof *d->decode);
    tagci_messages_lay_out(op, &d->messages, places + d->slots);
    if (wants_whole(op))
        d->whole = tagci_op_take(op, op->geometry.n, tagci_type_size(op->type));
    d->sum = tagci_op_take_data(op, tagci_part(&op->geometry, op->comm->rank), width);
    d->seen = tagci_op_take_data(op, seen_words(op, d), 8);
    d->frame = tagci_op_take_data(op, d->slots, d->bound);
    d->values = tagci_op_take_data(op, hands * d->batch * d->chunk, width);
    d->bitmap = tagci_op_take_data(op, hands * d->batch * tagci_bitmap_words(d->chunk), 8);
    d->in_data = tagci_op_take_data(op, places, d->bound);
    tagci_result_lay_out(op);
}

/* ---- Helpers ---- */

static size_t place(const struct tagci_op *op, size_t number)
{
    const struct device *d = op->state;
    size_t ranks = (size_t)op->geometry.ranks;
    return number % ranks * d->window + number / ranks % d->window;
}

/* From here on nothing is put on the device any more. What is there ends first: its descriptors are used again. */
static void break_with(struct tagci_op *op, int code)
{
    struct device *d = op->state;
    if (d->broken)
        return;
    d->broken = code;
    tagci_device_settle(op->device);
}

static void break_down(struct tagci_op *op, int failed)
{
    if (failed)
        break_with(op, tagci_op_ran(op, -1));
}

/* 1: the mark is passed, 0: not yet. A failure counts as passed. */
static int passed(struct tagci_op *op, struct tagci_order *order, int mark)
{
    struct device *d = op->state;
    int now = d->broken ? 1 : op->device->of->query(order, mark);
    break_down(op, now < 0);
    return now != 0;
}

static int post_receive(struct tagci_op *op, int source)
{
    struct device *d = op->state;
    if (d->posted[source] >= tagci_part_chunks(&op->geometry, op->comm->rank))
        return MPI_SUCCESS;
    size_t at = (size_t)source * d->window + d->posted[source]++ % d->window;
    d->in_bytes[at] = -1;
    if (source == op->comm->rank)
        return MPI_SUCCESS;
    return MPI_Irecv(d->in_here + at * d->bound, (int)d->bound, MPI_BYTE, source, tagci_messages_tag(op),
                     op->comm->private, &d->messages.request[at]);
}

static enum tagci_progress device_begin(struct tagci_op *op)
{
    struct device *d = op->state;
    if (op->args.collective != TAGCI_ALLREDUCE)
        tagci_op_leave_line(op); /* messages between pairs only, from here on */
    d->turn = 1;
    d->broken = op->broken;
    tagci_messages_begin(&d->messages);
    for (int r = 0; r < op->geometry.ranks; r++) {
        d->posted[r] = 0;
        for (size_t w = 0; w < d->window; w++) {
            int code = post_receive(op, r);
            if (code)
                return tagci_op_fail(op, code);
        }
    }
    return TAGCI_THROUGH;
}

/* ---- Out ---- */

/* Next chunk to encode, skipping parts that have fewer; 0 when there is none. */
static int next_chunk(struct tagci_op *op, int *owner, size_t *c)
{
    struct device *d = op->state;
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
    struct device *d = op->state;
    struct hand *h = &d->out[which];
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
        d->slot[at] = (struct slot){.owner = owner, .busy = 1};
        h->n++;
    }
    if (!h->n)
        return;
    *did = 1;
    h->stage = ON_DEVICE;
    if (!d->broken)
        break_down(op, op->backend->encode(op->order, &d->describe[h->first % d->slots], h->n) ||
                           op->device->of->record(op->order, mark_out + which));
}

/* Sizes are known now. */
static void copy_batch_out(struct tagci_op *op, int which)
{
    struct device *d = op->state;
    struct hand *h = &d->out[which];
    struct tagci_order *copies = op->device->copies;
    h->stage = COPYING;
    for (size_t i = 0; i < h->n && !d->broken; i++) {
        size_t at = (h->first + i) % d->slots;
        d->slot[at].bytes = d->describe[at].frame_bytes;
        d->kept += (double)d->describe[at].kept;
        break_down(op, op->device->of->copy(copies, d->frame_here + at * d->bound, d->frame + at * d->bound,
                                            d->slot[at].bytes));
    }
    if (!d->broken)
        break_down(op, op->device->of->record(copies, mark_out + which));
}

static int send_batch(struct tagci_op *op, int which)
{
    struct device *d = op->state;
    struct hand *h = &d->out[which];
    int code = MPI_SUCCESS;
    h->stage = IDLE;
    for (size_t i = 0; i < h->n && !code; i++) {
        size_t at = (h->first + i) % d->slots;
        struct slot *s = &d->slot[at];
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

static void release_slot(struct device *d, size_t at)
{
    d->slot[at].busy = 0;
    while (d->free < d->taken && !d->slot[d->free % d->slots].busy)
        d->free++;
}

/* The hand with the older batch, and whether another one has one before this one's. */
static int older(const struct hand h[hands])
{
    return h[1].stage != IDLE && (h[0].stage == IDLE || h[1].first < h[0].first);
}

static int comes_later(const struct hand h[hands], int k)
{
    return h[1 - k].stage != IDLE && h[1 - k].first < h[k].first;
}

/* Batches are sent in the order of their numbers, as messages to one rank do not overtake each other. */
static int go_out(struct tagci_op *op, int *did)
{
    struct device *d = op->state;
    int first = older(d->out);
    for (int i = 0; i < hands; i++) {
        int k = (first + i) % hands, code = MPI_SUCCESS;
        struct hand *h = &d->out[k];
        if (h->stage == IDLE) {
            encode_batch(op, k, did);
        } else if (h->stage == ON_DEVICE && passed(op, op->order, mark_out + k)) {
            copy_batch_out(op, k);
            *did = 1;
        } else if (h->stage == COPYING && !comes_later(d->out, k) && passed(op, op->device->copies, mark_out + k)) {
            code = send_batch(op, k);
            *did = 1;
        }
        if (code)
            return code;
    }
    return MPI_SUCCESS;
}

/* ---- In ---- */

static int is_here(const struct tagci_op *op, size_t number)
{
    const struct device *d = op->state;
    size_t ranks = (size_t)op->geometry.ranks;
    if ((int)(number % ranks) == op->comm->rank)
        return number / ranks < d->own;
    /* a place that is taken still holds the frame of an earlier chunk */
    return number < d->decoded + (size_t)d->n_receives && d->in_bytes[place(op, number)] >= 0;
}

/* Checks the frame with this number, which is here. */
static void check_frame(struct tagci_op *op, size_t number, struct tagci_decode *take)
{
    struct device *d = op->state;
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
        break_with(op, tagci_error(TAGC_ERR_WIRE, "%s: tensor \"%s\": frame %zu of rank %d: %s", op->args.call,
                                   tagci_op_tensor_name(op), c, source, bytes ? why : "that rank failed"));
    else
        tagci_frame_move(&take->frame, there);
    if (own || d->broken)
        return;
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, (double)bytes);
    break_down(op, op->device->of->copy(op->device->copies, there, here, bytes));
}

static void take_batch_in(struct tagci_op *op, int which, int *did)
{
    struct device *d = op->state;
    struct hand *h = &d->in[which];
    h->first = d->put;
    h->n = 0;
    while (h->n < d->batch && d->put < d->frames && is_here(op, d->put)) {
        check_frame(op, d->put, &d->decode[(size_t)which * d->batch + h->n]);
        d->put++;
        h->n++;
    }
    if (!h->n)
        return;
    *did = 1;
    h->stage = COPYING;
    if (!d->broken)
        break_down(op, op->device->of->record(op->device->copies, mark_in + which));
}

static void *result_at(const struct tagci_op *op, size_t skip)
{
    skip += op->args.collective == TAGCI_ALLREDUCE ? op->geometry.offset[op->comm->rank] : 0;
    return (char *)op->args.recvbuf + skip * tagci_type_size(op->type);
}

/* Results of the own part's elements [from, to). */
static void finish(struct tagci_op *op, size_t from, size_t to)
{
    struct device *d = op->state;
    if (from < to && !d->broken)
        break_down(op, op->backend->finish(op->order, op->type, d->sum + from * tagci_work_size(op->type), to - from,
                                           op->average ? op->geometry.ranks : 1, 0, result_at(op, from)));
}

static void decode_batch(struct tagci_op *op, int which)
{
    struct device *d = op->state;
    struct hand *h = &d->in[which];
    size_t part = tagci_part(&op->geometry, op->comm->rank), complete = (h->first + h->n) / (size_t)op->geometry.ranks;
    h->stage = ON_DEVICE;
    if (d->broken)
        return;
    break_down(op, op->backend->decode(op->order, d->decode + (size_t)which * d->batch, h->n));
    /* In place, input may still stand where the result goes: that waits for the end. */
    if (!op->in_place && complete > d->finished)
        finish(op, d->finished * op->geometry.chunk, smaller(complete * op->geometry.chunk, part));
    d->finished = complete;
    if (!d->broken)
        break_down(op, op->device->of->record(op->order, mark_in + which));
}

/* Decoded: its places receive again, its own frames' slots are free. */
static int leave_batch(struct tagci_op *op, int which)
{
    struct device *d = op->state;
    struct hand *h = &d->in[which];
    int code = MPI_SUCCESS;
    h->stage = IDLE;
    for (size_t i = 0; i < h->n && !code; i++, d->decoded++) {
        int source = (int)(d->decoded % (size_t)op->geometry.ranks);
        if (source == op->comm->rank)
            release_slot(d, d->own_slot[d->decoded / (size_t)op->geometry.ranks % d->slots]);
        code = post_receive(op, source);
    }
    return code;
}

/* Batches are decoded in the order of their numbers: the older one first. */
static int go_in(struct tagci_op *op, int *did)
{
    struct device *d = op->state;
    int first = older(d->in);
    for (int i = 0; i < hands; i++) {
        int k = (first + i) % hands, code = MPI_SUCCESS;
        struct hand *h = &d->in[k];
        if (h->stage == IDLE) {
            take_batch_in(op, k, did);
        } else if (h->stage == COPYING && !(comes_later(d->in, k) && d->in[1 - k].stage == COPYING) &&
                   passed(op, op->device->copies, mark_in + k)) {
            decode_batch(op, k);
            *did = 1;
        } else if (h->stage == ON_DEVICE && !comes_later(d->in, k) && passed(op, op->order, mark_in + k)) {
            code = leave_batch(op, k);
            *did = 1;
        }
        if (code)
            return code;
    }
    return MPI_SUCCESS;
}

/* ---- Together ---- */

/* Learns of messages sent and received; blocks for one if there is nothing else to do. */
static int look(struct tagci_op *op, int block)
{
    struct device *d = op->state;
    const struct tagci_messages *m = &d->messages;
    int done, code = tagci_messages_look(op, &d->messages, block, &done);
    if (code)
        return code;
    for (int i = 0; i < done; i++) {
        int bytes;
        if (m->index[i] >= d->n_receives) {
            release_slot(d, (size_t)(m->index[i] - d->n_receives));
        } else {
            MPI_Get_count(&m->status[i], MPI_BYTE, &bytes);
            d->in_bytes[m->index[i]] = bytes;
        }
    }
    return MPI_SUCCESS;
}

static int on_the_device(const struct device *d)
{
    int busy = 0;
    for (int k = 0; k < hands; k++)
        busy |= d->out[k].stage != IDLE || d->in[k].stage != IDLE;
    return busy;
}

static enum tagci_progress device_exchange(struct tagci_op *op)
{
    struct device *d = op->state;
    for (;;) {
        int did = 0, code = go_out(op, &did);
        if (!code)
            code = go_in(op, &did);
        if (!code && d->decoded == d->frames && d->level >= d->levels && d->free == d->taken && !on_the_device(d))
            break;
        size_t free = d->free;
        int waits = !did && !on_the_device(d);
        if (!code)
            code = look(op, waits && op->blocking);
        if (code)
            return tagci_op_fail(op, code);
        if (!did && !op->blocking) {
            int ready = d->free != free || (d->put < d->frames && is_here(op, d->put));
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
    struct device *d = op->state;
    size_t mine = tagci_part(&op->geometry, op->comm->rank), width = tagci_type_size(op->type), in_union = 0;
    if (op->in_place)
        finish(op, 0, mine);
    if (!d->broken) {
        break_down(
            op, tagci_device_copy(op->device, d->seen_here, d->seen, seen_words(op, d) * 8) ||
                    (d->whole && tagci_device_copy(op->device, d->whole + op->geometry.offset[op->comm->rank] * width,
                                                   result_at(op, 0), mine * width)) ||
                    tagci_device_settle(op->device));
    }
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
    struct device *d = op->state;
    if (!d->whole)
        return TAGCI_THROUGH;
    op->args.recvbuf = d->result_user;
    op->backend = op->device->backend;
    op->order = op->device->order;
    return tagci_op_run(
        op, tagci_device_copy(op->device, op->args.recvbuf, d->whole, op->geometry.n * tagci_type_size(op->type)));
}

static const struct tagci_stage device_stages[] = {
    {device_begin, TAGCI_PHASE_COMM, 0},    {device_exchange, TAGCI_PHASE_NONE, 0},
    {device_end, TAGCI_PHASE_DECODE, 0},    TAGCI_RESULT_STAGES,
    {device_result, TAGCI_PHASE_DECODE, 0}, TAGCI_STAGES_END,
};

const struct tagci_algorithm tagci_algorithm_device = {"direct",       TAGC_ALGORITHM_DIRECT, 1, device_room, NULL,
                                                       device_lay_out, device_stages};
