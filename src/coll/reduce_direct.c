/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * direct: every rank sends every owner its own positions and values, chunk by chunk; the owner adds in rank order.
 * Bytes per element: f * (p b + 1/8), or less with a coded index. One message a chunk and pair of ranks, no exchange of
 * sizes: a receive is posted with room for the largest frame.
 *
 * Order of sending: first chunk of every owner, then the second ...; owners in rotation from the next rank on. An owner
 * decodes chunk by chunk, each when the frames of all ranks are here: then the sum stays in the caches while they are
 * added, rank by rank.
 *
 * An owner posts its receives in the order in which the frames are sent: chunk by chunk, of a chunk from the rank before it,
 * the one before that ... All ranks send and post in the order of (chunk, turn), there is room for all frames of the chunk
 * being decoded and some of the next, and a frame that has come frees a receive for another. So the first frame in flight
 * anywhere, in that order, has its receive posted, as those before it have come: no cycle of waits. Receives are limited in
 * number, so that N ranks cost an operation memory for N frames, and each message a look through as many requests as with
 * few ranks. */
#include <string.h>

#include "coll/cuts.h"
#include "coll/messages.h"
#include "coll/op.h"
#include "coll/reduce_result.h"
#include "core/bitmap.h"
#include "util/error.h"

enum {
    window = 2,    /* chunks whose frames may come at a time, the one being decoded among them */
    receives = 64, /* posted at most, and half as many places for frames of later chunks */
    slots = 8,     /* frames being sent */
    batch_most = slots / 2
};

struct direct {
    size_t bound;   /* bytes of the largest frame */
    size_t longest; /* elements of the longest chunk */
    size_t levels;  /* chunks of the longest part */

    /* sending: next is chunk `level` of the part of rank + turn */
    size_t level;
    int turn;
    unsigned char *frame;   /* slots * bound */
    struct tagci_run *runs; /* scratch of the encoding, for each chunk of a batch */
    void *values;
    uint64_t *bitmap;
    int free_slot[slots], n_free;

    /* receiving: chunk `decoding` of the own part */
    size_t decoding;
    size_t posted;             /* receives so far: frame k comes from turn k % (ranks - 1) + 1 before this rank */
    size_t here[window];       /* frames of chunk c that have come, at c % window */
    size_t places;             /* for frames of others: frame k at k % places */
    unsigned char *in;         /* places * bound */
    int *in_bytes;             /* of each place */
    struct tagci_decode *take; /* frames of a chunk */
    unsigned char *own;        /* frame of this rank for itself */
    size_t own_bytes;          /* of the chunk being decoded; 0: not encoded yet */
    void *sum;                 /* the own part in the work type, or NULL: recvbuf takes it */
    uint64_t *seen;            /* union of a chunk */
    double in_union, kept;

    /* requests: of receives, then [slot] of sends */
    struct tagci_messages messages;
    int n_receives, n_idle;
    int *idle;        /* receives that are not posted */
    size_t *frame_of; /* of each receive that is: its frame */
    int broken;       /* a frame was damaged: go on receiving, so that nobody waits for this rank, then fail */
};

/* Results of a float or double reduction can be added up where they belong, unless that is where input still stands. */
static int sum_in_place(const struct tagci_op *op)
{
    return tagci_type_size(op->type) == tagci_work_size(op->type) && !op->in_place;
}

static void *result_at(const struct tagci_op *op)
{
    size_t skip = op->args.collective == TAGCI_ALLREDUCE ? op->geometry.offset[op->comm->rank] : 0;
    return (char *)op->args.recvbuf + skip * tagci_type_size(op->type);
}

/* Room for frames of other ranks, and how many of those may be on their way. */
static size_t places(int ranks, int *n_receives)
{
    size_t others = (size_t)ranks - 1, later = (window - 1) * others, all;
    all = others + (later < receives / 2 ? later : receives / 2);
    *n_receives = all < receives ? (int)all : receives;
    return all;
}

static size_t direct_room(const struct tagci_op *op)
{
    int n_receives;
    size_t ranks = op->geometry.ranks, chunk = tagci_longest_chunk(&op->geometry);
    size_t in = places(op->geometry.ranks, &n_receives);
    size_t bound = tagci_op_piece(1, tagci_frame_bound(op->type, op->settings->value, chunk));
    size_t bytes = tagci_op_piece(1, sizeof(struct direct));
    bytes += tagci_op_piece(slots, bound) + tagci_op_piece(batch_most * tagci_cuts_runs(op), sizeof(struct tagci_run));
    bytes += tagci_op_piece(in, bound) + tagci_op_piece(in, sizeof(int));
    bytes += tagci_op_piece(n_receives, sizeof(int)) + tagci_op_piece(n_receives, sizeof(size_t));
    bytes += tagci_op_piece(ranks, sizeof(struct tagci_decode));
    bytes += tagci_op_piece(1, bound);
    bytes += tagci_op_piece(batch_most * chunk, tagci_work_size(op->type)) +
             tagci_op_piece(batch_most, (chunk + 63) / 64 * 8);
    if (!sum_in_place(op))
        bytes += tagci_op_piece(tagci_part(&op->geometry, op->comm->rank), tagci_work_size(op->type));
    bytes += tagci_op_piece((chunk + 63) / 64, 8);
    bytes += tagci_messages_room((size_t)n_receives + slots);
    return tagci_add(bytes, tagci_result_room(op));
}

static void direct_lay_out(struct tagci_op *op)
{
    size_t ranks = op->geometry.ranks, chunk = tagci_longest_chunk(&op->geometry);
    struct direct *d = op->state = tagci_op_take(op, 1, sizeof *d);
    memset(d, 0, sizeof *d);
    d->bound = tagci_op_piece(1, tagci_frame_bound(op->type, op->settings->value, chunk));
    d->longest = chunk;
    d->levels = tagci_longest_part_chunks(&op->geometry);
    d->frame = tagci_op_take(op, slots, d->bound);
    d->runs = tagci_op_take(op, batch_most * tagci_cuts_runs(op), sizeof(struct tagci_run));
    d->places = places(op->geometry.ranks, &d->n_receives);
    d->in = tagci_op_take(op, d->places, d->bound);
    d->in_bytes = tagci_op_take(op, d->places, sizeof(int));
    d->idle = tagci_op_take(op, d->n_receives, sizeof(int));
    d->frame_of = tagci_op_take(op, d->n_receives, sizeof(size_t));
    d->take = tagci_op_take(op, ranks, sizeof *d->take);
    d->own = tagci_op_take(op, 1, d->bound);
    d->values = tagci_op_take(op, batch_most * chunk, tagci_work_size(op->type));
    d->bitmap = tagci_op_take(op, batch_most, (chunk + 63) / 64 * 8);
    if (!sum_in_place(op))
        d->sum = tagci_op_take(op, tagci_part(&op->geometry, op->comm->rank), tagci_work_size(op->type));
    d->seen = tagci_op_take(op, (chunk + 63) / 64, 8);
    tagci_messages_lay_out(op, &d->messages, (size_t)d->n_receives + slots);
    tagci_result_lay_out(op);
}

/* As many receives as there are idle ones and places. */
static int post_receives(struct tagci_op *op)
{
    struct direct *d = op->state;
    size_t ranks = (size_t)op->geometry.ranks, others = ranks - 1, me = (size_t)op->comm->rank;
    size_t most = d->decoding * others + d->places, all = tagci_part_chunks(&op->geometry, op->comm->rank) * others;
    for (most = most < all ? most : all; d->n_idle && d->posted < most; d->posted++) {
        int receive = d->idle[--d->n_idle];
        d->frame_of[receive] = d->posted;
        int source = (int)((me + ranks - 1 - d->posted % others) % ranks);
        int code = MPI_Irecv(d->in + d->posted % d->places * d->bound, (int)d->bound, MPI_BYTE, source,
                             tagci_messages_tag(op), op->comm->private, &d->messages.request[receive]);
        if (code)
            return code;
    }
    return MPI_SUCCESS;
}

static enum tagci_progress direct_begin(struct tagci_op *op)
{
    struct direct *d = op->state;
    if (op->args.collective != TAGCI_ALLREDUCE)
        tagci_op_leave_line(op); /* messages between pairs only, from here on */
    d->level = d->decoding = 0;
    d->turn = 1;
    d->own_bytes = 0;
    d->in_union = d->kept = 0;
    d->broken = MPI_SUCCESS;
    tagci_messages_begin(&d->messages);
    for (d->n_free = 0; d->n_free < slots; d->n_free++)
        d->free_slot[d->n_free] = d->n_free;
    for (d->n_idle = 0; d->n_idle < d->n_receives; d->n_idle++)
        d->idle[d->n_idle] = d->n_receives - 1 - d->n_idle;
    d->posted = 0;
    memset(d->here, 0, sizeof d->here);
    int code = post_receives(op);
    return code ? tagci_op_fail(op, code) : TAGCI_THROUGH;
}

/* Chunk c of an owner's part, to be encoded with the scratch of a place in a batch, free again after it. */
static void describe(struct tagci_op *op, int nth, int owner, size_t c, unsigned char *frame, struct tagci_chunk *at)
{
    struct direct *d = op->state;
    size_t chunk = d->longest;
    tagci_cuts_chunk(op, owner, c, d->runs + (size_t)nth * tagci_cuts_runs(op), at);
    at->values = (char *)d->values + (size_t)nth * chunk * tagci_work_size(op->type);
    at->bitmap = d->bitmap + (size_t)nth * ((chunk + 63) / 64);
    at->value = op->settings->value;
    at->index = (enum tagci_index)op->settings->index;
    at->seal = op->settings->checksum;
    at->frame = frame;
}

/* Next chunk to send, skipping parts that have fewer; 0 when all are sent. */
static int next_to_send(struct tagci_op *op, int *owner, size_t *c)
{
    struct direct *d = op->state;
    int ranks = op->geometry.ranks;
    while (d->level < d->levels) {
        while (d->turn < ranks) {
            *owner = (op->comm->rank + d->turn++) % ranks;
            *c = d->level;
            if (*c < tagci_part_chunks(&op->geometry, *owner))
                return 1;
        }
        d->level++;
        d->turn = 1;
    }
    return 0;
}

/* Encodes as many chunks as there are free slots, and sends them. */
static int send_some(struct tagci_op *op, int *did)
{
    struct direct *d = op->state;
    int owner[batch_most], slot[batch_most], n = 0, most = d->n_free < batch_most ? d->n_free : batch_most;
    struct tagci_chunk batch[batch_most];
    size_t c;
    while (n < most) {
        size_t level = d->level;
        int turn = d->turn;
        if (!next_to_send(op, &owner[n], &c))
            break;
        if (!tagci_op_has_come(op, owner[n], c)) { /* is still the next */
            d->level = level;
            d->turn = turn;
            break;
        }
        slot[n] = d->free_slot[--d->n_free];
        describe(op, n, owner[n], c, d->frame + (size_t)slot[n] * d->bound, &batch[n]);
        n++;
    }
    if (!n)
        return MPI_SUCCESS;
    *did = 1;
    double then = MPI_Wtime();
    /* Where the input did not come, empty messages tell the others. */
    int failed = op->broken ? MPI_SUCCESS : tagci_op_ran(op, op->backend->encode(op->order, batch, n));
    tagci_op_count(op, TAGC_STAT_TIME_ENCODE, MPI_Wtime() - then);
    if (failed)
        return failed;
    for (int i = 0; i < n; i++) {
        d->kept += (double)batch[i].kept;
        tagci_op_count(op, TAGC_STAT_BYTES_SENT, (double)batch[i].frame_bytes);
        int code = MPI_Isend(batch[i].frame, (int)batch[i].frame_bytes, MPI_BYTE, owner[i], tagci_messages_tag(op),
                             op->comm->private, &d->messages.request[d->n_receives + slot[i]]);
        if (code)
            return code;
    }
    return MPI_SUCCESS;
}

static int chunk_decoded(struct tagci_op *op, size_t n, void *sum, size_t at)
{
    struct direct *d = op->state;
    d->in_union += (double)tagci_bitmap_count(d->seen, tagci_bitmap_words(n));
    /* In place, input may still stand where the result goes: that waits for the end. */
    if (op->in_place)
        return MPI_SUCCESS;
    size_t width = tagci_type_size(op->type);
    char *result = (char *)result_at(op) + at * width;
    if ((op->average || d->sum) &&
        op->backend->finish(op->order, op->type, sum, n, op->average ? op->geometry.ranks : 1, 0, result))
        return tagci_op_ran(op, -1);
    if (!op->result)
        tagci_op_hand_back(op, result, n * width);
    return MPI_SUCCESS;
}

/* Where the frame of another rank for the chunk being decoded arrives. */
static size_t place_of(const struct tagci_op *op, int rank)
{
    const struct direct *d = op->state;
    int ranks = op->geometry.ranks, turn = (op->comm->rank - rank + ranks) % ranks;
    return (d->decoding * (size_t)(ranks - 1) + (size_t)turn - 1) % d->places;
}

static int chunk_is_here(const struct tagci_op *op)
{
    const struct direct *d = op->state;
    return d->here[d->decoding % window] == (size_t)op->geometry.ranks - 1;
}

/* This rank's frame for itself. It does not travel: the shortest index is not worth its time, nor is a checksum. */
static int encode_own(struct tagci_op *op)
{
    struct direct *d = op->state;
    struct tagci_chunk own;
    double then = MPI_Wtime();
    describe(op, 0, op->comm->rank, d->decoding, d->own, &own);
    own.index = TAGCI_INDEX_BITMAP;
    own.seal = 0;
    own.frame_bytes = 1; /* of none, where the input did not come */
    d->broken = d->broken ? d->broken : op->broken;
    int failed = d->broken ? MPI_SUCCESS : tagci_op_ran(op, op->backend->encode(op->order, &own, 1));
    tagci_op_count(op, TAGC_STAT_TIME_ENCODE, MPI_Wtime() - then);
    d->kept += (double)own.kept;
    d->own_bytes = own.frame_bytes;
    return failed;
}

/* Reads and checks the frame of a rank. */
static int take_frame(struct tagci_op *op, int r, size_t n, void *sum)
{
    struct direct *d = op->state;
    int own = r == op->comm->rank;
    size_t place = own ? 0 : place_of(op, r);
    const unsigned char *frame = own ? d->own : d->in + place * d->bound;
    size_t bytes = own ? d->own_bytes : (size_t)d->in_bytes[place];
    const char *why;
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, own ? 0 : (double)bytes);
    d->take[r] = (struct tagci_decode){.n = n, .sum = sum, .seen = d->seen, .first = r == 0};
    if (tagci_frame_read(frame, bytes, op->type, n, !own && op->settings->checksum, &d->take[r].frame, &why))
        return tagci_error(TAGC_ERR_WIRE, "%s: tensor \"%s\": frame %zu of rank %d: %s", op->args.call,
                           tagci_op_tensor_name(op), d->decoding, r, bytes ? why : "that rank failed");
    return MPI_SUCCESS;
}

/* Encodes the own frame of the next chunk, and decodes the chunk if all is here. */
static int decode_next(struct tagci_op *op, int *did)
{
    struct direct *d = op->state;
    const struct tagci_geometry *g = &op->geometry;
    int me = op->comm->rank, failed = MPI_SUCCESS;
    if (!d->own_bytes) {
        if (!tagci_op_has_come(op, me, d->decoding))
            return MPI_SUCCESS;
        *did = 1;
        if ((failed = encode_own(op)))
            return failed;
    }
    if (!chunk_is_here(op))
        return MPI_SUCCESS;
    *did = 1;
    double then = MPI_Wtime();
    size_t begin, n = tagci_part_chunk(g, me, d->decoding, &begin), at = begin - g->offset[me];
    char *sum = (char *)(d->sum ? d->sum : result_at(op)) + at * tagci_work_size(op->type);
    for (int r = 0; r < g->ranks && !d->broken; r++)
        d->broken = take_frame(op, r, n, sum);
    if (!d->broken)
        d->broken = tagci_op_ran(op, op->backend->decode(op->order, d->take, (size_t)g->ranks));
    if (!d->broken)
        d->broken = chunk_decoded(op, n, sum, at);
    d->here[d->decoding++ % window] = 0;
    d->own_bytes = 0;
    failed = post_receives(op);
    tagci_op_count(op, TAGC_STAT_TIME_DECODE, MPI_Wtime() - then);
    return failed;
}

/* Learns of messages sent and received; blocks for one if the operation may. */
static int look(struct tagci_op *op, int block)
{
    struct direct *d = op->state;
    const struct tagci_messages *m = &d->messages;
    int done, code = tagci_messages_look(op, &d->messages, block, &done);
    if (code)
        return code;
    for (int i = 0; i < done; i++) {
        int which = m->index[i];
        if (which >= d->n_receives) {
            d->free_slot[d->n_free++] = which - d->n_receives;
            continue;
        }
        size_t frame = d->frame_of[which];
        MPI_Get_count(&m->status[i], MPI_BYTE, &d->in_bytes[frame % d->places]);
        d->here[frame / (size_t)(op->geometry.ranks - 1) % window]++;
        d->idle[d->n_idle++] = which;
    }
    return post_receives(op);
}

static enum tagci_progress direct_exchange(struct tagci_op *op)
{
    struct direct *d = op->state;
    size_t own = tagci_part_chunks(&op->geometry, op->comm->rank);
    for (;;) {
        int all_here = tagci_op_all_has_come(op); /* before anything is tried: else nothing may be waited for */
        int did = 0, code = send_some(op, &did);
        if (!code && d->decoding < own)
            code = decode_next(op, &did);
        if (code)
            return tagci_op_fail(op, code);
        int all_sent = d->level >= d->levels;
        if (d->decoding == own && all_sent && d->n_free == slots)
            break;
        if ((code = look(op, !did && op->blocking && all_here)))
            return tagci_op_fail(op, code);
        if (!did && !op->blocking) {
            /* one more round if the look brought what the next step waits for */
            int ready = (d->decoding < own && chunk_is_here(op) && (d->own_bytes || all_here)) ||
                        (d->n_free && !all_sent && all_here) || (all_sent && d->n_free == slots && d->decoding == own);
            if (!ready)
                return TAGCI_PENDING;
        }
    }
    op->broken = op->broken ? op->broken : d->broken;
    return op->broken && !op->result ? tagci_op_fail(op, op->broken) : TAGCI_THROUGH; /* or with the results' sizes */
}

static enum tagci_progress direct_end(struct tagci_op *op)
{
    struct direct *d = op->state;
    size_t mine = tagci_part(&op->geometry, op->comm->rank);
    if (op->in_place && !op->broken &&
        tagci_op_run(op, op->backend->finish(op->order, op->type, d->sum, mine, op->average ? op->geometry.ranks : 1, 0,
                                             result_at(op))) == TAGCI_FAILED)
        return TAGCI_FAILED;
    op->stats.at[TAGC_STAT_DENSITY] = op->geometry.n ? d->kept / (double)op->geometry.n : 0;
    op->stats.at[TAGC_STAT_UNION_DENSITY] = mine ? d->in_union / (double)mine : 0;
    return TAGCI_THROUGH;
}

static const struct tagci_stage direct_stages[] = {
    {direct_begin, TAGCI_PHASE_COMM, 0},
    {direct_exchange, TAGCI_PHASE_NONE, 0},
    {direct_end, TAGCI_PHASE_DECODE, 0},
    TAGCI_RESULT_STAGES,
    TAGCI_STAGES_END,
};

const struct tagci_algorithm tagci_algorithm_direct = {.name = "direct",
                                                       .id = TAGC_ALGORITHM_DIRECT,
                                                       .cuts = 1,
                                                       .room = direct_room,
                                                       .lay_out = direct_lay_out,
                                                       .stages = direct_stages,
                                                       .on_device = &tagci_algorithm_device,
                                                       .takes = TAGCI_BY_CHUNK};
