/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * coded: parts travel in coded blocks (core/lossless.h) from each rank to the next one around a ring, a message a block.
 * A rank sends its own blocks as soon as each is coded, then passes on, as they are, those that come from the rank
 * before it, all but those of the rank behind it; meanwhile it decodes them. So coding, sending, receiving and decoding
 * overlap, and every coded byte crosses each link once. With a tensor the change since its last gather is coded.
 *
 * No sizes are exchanged: a receive is posted with room for the longest message. What all must share rides on the
 * agreement that begins the call: whether all can code their arguments (a datatype may differ between ranks as long as the
 * signature does not), and the name of what they remember. If one cannot, all call MPI's own collective; if the names
 * differ (a call failed or was skipped somewhere), all code anew without memory.
 *
 * Receives are posted in the order in which the rank before sends, and a message that was taken in is decoded at once,
 * whether it could be passed on or not: nobody waits for more than the one behind him to decode, and there is no cycle. */
#include <string.h>

#include "coll/gather_blocks.h"
#include "coll/messages.h"
#include "coll/twin.h"
#include "coll/verify.h"
#include "core/lossless.h"
#include "util/error.h"

enum {
    window = 8,        /* receives posted */
    most_slots = 32,   /* messages being sent: on a device; */
    host_slots = 8,    /* on the host */
    compare_every = 16 /* gathers: then the name takes in a checksum of what is remembered */
};

/* Goes through the blocks of parts in the order in which they travel. */
struct walk {
    int rank;           /* whose part */
    int parts;          /* to go, this one included */
    size_t block;       /* of the part */
    size_t nth;         /* among all messages */
    size_t n;           /* elements of the block */
    unsigned char *at;  /* where its message stands */
    unsigned char *all; /* where the first stands */
    size_t ring;        /* so many messages have room, then the first again; 0: all have */
};

struct coded {
    size_t *state; /* ranks + 1: parts in the tensor's memory */
    struct tagci_coder coder;
    struct tagci_counts counts;
    int native;      /* MPI's own collective instead */
    int with_memory; /* the blocks are coded against the memory */
    uint64_t name;   /* of what will be remembered, so far */

    struct walk own, pass, take, post; /* next block to send, to pass on, to decode, to receive */
    int slots;                         /* that there are */
    unsigned char *frame;              /* slots * the longest message */
    unsigned char *in;                 /* messages of others */
    int *bytes;                        /* of each that has room, -1: not here yet */
    int free_slot[most_slots], n_free;
    struct tagci_messages messages; /* the window's receives, then the slots' sends */
    int broken;                     /* a block was damaged: go on, so that nobody waits for this rank, then fail */
};

int tagci_gather_rounds(const struct tagci_op *op)
{
    return op->compressible && op->settings->gather != TAGCI_GATHER_LOSSLESS &&
           !(op->settings->gather == TAGCI_GATHER_BFLOAT16 && op->type == TAGCI_BF16);
}

enum tagci_round tagci_gather_form(const struct tagci_op *op)
{
    return op->settings->gather == TAGCI_GATHER_INT8 ? TAGCI_ROUND_INT8 : TAGCI_ROUND_BFLOAT16;
}

/* ---- memory ---- */

static size_t longest_bound(const struct tagci_op *op)
{
    size_t longest = tagci_longest_part(&op->geometry);
    return op->compressible ? tagci_message_bound(op, longest < TAGCI_LOSSLESS_BLOCK ? longest : TAGCI_LOSSLESS_BLOCK)
                            : 0;
}

static uint32_t memory_crc(const struct tagci_op *op)
{
    const struct coded *s = op->state;
    return tagci_memory_crc(op, s->frame, longest_bound(op));
}

/* Element type + 1, 0: cannot code; and what is remembered. */
uint64_t tagci_gather_alike(const struct tagci_op *op)
{
    const struct tagci_tensor *t = op->tensor;
    uint64_t fact = tagci_fact(0, op->compressible ? (uint64_t)op->type + 1 : 0);
    fact = tagci_fact(fact, t ? t->memory_name : 0);
    if (t && t->memory_name && t->gathers % compare_every == compare_every - 1)
        fact = tagci_fact(fact, memory_crc(op));
    return fact;
}

static size_t state_bytes(const struct tagci_op *op, size_t n)
{
    return tagci_gather_rounds(op) ? tagci_round_state(tagci_gather_form(op), n)
                                   : tagci_mul(n, tagci_type_size(op->type));
}

/* Messages of others that have room, and its bytes. With two ranks nothing is passed on, and a window is enough. */
static size_t in_room(const struct tagci_op *op, size_t *bytes)
{
    size_t messages = 0;
    *bytes = 0;
    if (op->geometry.ranks == 2) {
        *bytes = tagci_mul(window, longest_bound(op));
        return window;
    }
    for (int r = 0; r < op->geometry.ranks && op->compressible; r++) {
        size_t n = tagci_part(&op->geometry, r), whole = n / TAGCI_LOSSLESS_BLOCK, rest = n % TAGCI_LOSSLESS_BLOCK;
        if (r == op->comm->rank)
            continue;
        *bytes = tagci_add(*bytes, tagci_add(tagci_mul(whole, tagci_message_bound(op, TAGCI_LOSSLESS_BLOCK)),
                                             tagci_message_bound(op, rest)));
        messages += tagci_lossless_blocks(n);
    }
    return messages;
}

static size_t slots_of(const struct tagci_op *op)
{
    return op->order ? most_slots : host_slots;
}

static size_t coded_room(const struct tagci_op *op)
{
    size_t ranks = op->geometry.ranks, in, messages = in_room(op, &in);
    size_t bytes = tagci_op_piece(1, sizeof(struct coded)) + tagci_op_piece(ranks + 1, sizeof(size_t));
    bytes += tagci_coder_room(op) + tagci_counts_room((int)ranks);
    bytes += tagci_op_piece(messages, sizeof(int)) + tagci_messages_room(window + slots_of(op));
    bytes = tagci_add(bytes, tagci_op_piece(slots_of(op), longest_bound(op)));
    return tagci_add(bytes, tagci_op_piece(1, in));
}

static int coded_reserve(struct tagci_op *op)
{
    struct tagci_tensor *t = op->tensor;
    if (!t || !op->compressible)
        return 0;
    size_t bytes = 0;
    for (int r = 0; r < op->geometry.ranks; r++)
        bytes = tagci_add(bytes, state_bytes(op, tagci_part(&op->geometry, r)));
    return tagci_tensor_need_memory(t, bytes, op->order != NULL);
}

static void coded_lay_out(struct tagci_op *op)
{
    size_t ranks = op->geometry.ranks, in, messages = in_room(op, &in);
    struct coded *s = op->state = tagci_op_take(op, 1, sizeof *s);
    memset(s, 0, sizeof *s);
    s->state = tagci_op_take(op, ranks + 1, sizeof(size_t));
    s->slots = (int)slots_of(op);
    tagci_coder_lay_out(op, &s->coder);
    tagci_counts_lay_out(op, &s->counts, (int)ranks);
    s->bytes = tagci_op_take(op, messages, sizeof(int));
    tagci_messages_lay_out(op, &s->messages, window + slots_of(op));
    s->frame = tagci_op_take(op, slots_of(op), longest_bound(op));
    s->in = tagci_op_take(op, 1, in);
    s->state[0] = 0;
    for (size_t r = 0; r < ranks && op->compressible; r++)
        s->state[r + 1] = s->state[r] + state_bytes(op, tagci_part(&op->geometry, (int)r));
}

/* ---- blocks ---- */

static int before(const struct tagci_op *op, int rank)
{
    return (rank ? rank : op->geometry.ranks) - 1;
}

static void look_at_block(const struct tagci_op *op, struct walk *w)
{
    while (w->parts && !(w->n = tagci_part(&op->geometry, w->rank) - w->block * TAGCI_LOSSLESS_BLOCK)) {
        w->rank = before(op, w->rank);
        w->parts--;
        w->block = 0;
    }
    w->n = w->n < TAGCI_LOSSLESS_BLOCK ? w->n : TAGCI_LOSSLESS_BLOCK;
}

static struct walk walk_from(const struct tagci_op *op, int rank, int parts, unsigned char *all)
{
    struct walk w = {.rank = rank, .parts = parts, .at = all, .all = all, .ring = op->geometry.ranks == 2 ? window : 0};
    look_at_block(op, &w);
    return w;
}

static void next_block(const struct tagci_op *op, struct walk *w)
{
    w->nth++;
    w->at = w->ring && w->nth % w->ring == 0 ? w->all : w->at + tagci_message_bound(op, w->n);
    w->block += w->n == TAGCI_LOSSLESS_BLOCK;
    if (w->n < TAGCI_LOSSLESS_BLOCK) {
        w->rank = before(op, w->rank);
        w->parts--;
        w->block = 0;
    }
    look_at_block(op, w);
}

/* A block in recvbuf. */
static char *place(const struct tagci_op *op, const struct walk *w)
{
    size_t at = w->block * TAGCI_LOSSLESS_BLOCK;
    return (char *)op->args.recvbuf + (op->displ[w->rank] + (MPI_Aint)at) * (MPI_Aint)tagci_type_size(op->type);
}

static void *memory(const struct tagci_op *op, const struct walk *w)
{
    struct coded *s = op->state;
    return op->tensor
               ? (char *)op->tensor->memory + s->state[w->rank] + state_bytes(op, w->block * TAGCI_LOSSLESS_BLOCK)
               : NULL;
}

/* All ranks add up the same for all blocks, in whatever order. */
static void add_to_name(struct coded *s, const struct walk *w, uint32_t sum)
{
    s->name += tagci_fact(tagci_fact(tagci_fact(0xcbf29ce484222325u, (uint64_t)w->rank), w->block), sum);
}

/* Bytes of a message of others. */
static int *bytes_of(const struct tagci_op *op, const struct walk *w)
{
    struct coded *s = op->state;
    return &s->bytes[w->ring ? w->nth % w->ring : w->nth];
}

static struct tagci_piece piece_of(const struct tagci_op *op, const struct walk *w, unsigned char *message,
                                   size_t bytes)
{
    struct coded *s = op->state;
    void *state = memory(op, w);
    return (struct tagci_piece){.n = w->n,
                                .last = s->with_memory ? state : NULL,
                                .out = place(op, w),
                                .state = state,
                                .message = message,
                                .bytes = bytes};
}

/* The next n own blocks to messages in free slots; a device that fails leaves empty ones. */
static void encode(struct tagci_op *op, struct tagci_piece *pieces, size_t n)
{
    struct coded *s = op->state;
    struct walk w = s->own;
    for (size_t i = 0; i < n; i++, next_block(op, &w)) {
        int slot = s->free_slot[s->n_free - 1 - (int)i];
        size_t at = w.block * TAGCI_LOSSLESS_BLOCK * tagci_type_size(op->type);
        pieces[i] = piece_of(op, &w, s->frame + (size_t)slot * longest_bound(op), 0);
        pieces[i].now = op->in_place ? pieces[i].out : (const char *)op->args.sendbuf + at;
        pieces[i].out = op->in_place ? NULL : pieces[i].out;
    }
    if (!op->broken && tagci_pieces_encode(op, &s->coder, pieces, n))
        tagci_op_try(op, -1);
    w = s->own;
    for (size_t i = 0; i < n; i++, next_block(op, &w)) {
        if (op->broken)
            pieces[i].bytes = 0;
        add_to_name(s, &w, pieces[i].sum);
    }
}

/* The next n messages to their blocks in recvbuf, and in the memory; or, damaged, to op's error. */
static void decode(struct tagci_op *op, size_t n)
{
    struct coded *s = op->state;
    struct tagci_piece pieces[most_slots];
    struct walk w = s->take;
    for (size_t i = 0; i < n; i++, next_block(op, &w))
        pieces[i] = piece_of(op, &w, w.at, (size_t)*bytes_of(op, &w));
    if (!op->broken && tagci_pieces_decode(op, &s->coder, pieces, n))
        tagci_op_try(op, -1);
    if (op->broken)
        return;
    w = s->take;
    for (size_t i = 0; i < n; i++, next_block(op, &w)) {
        add_to_name(s, &w, pieces[i].sum);
        if (pieces[i].why && !s->broken)
            s->broken = tagci_error(TAGC_ERR_WIRE, "%s: tensor \"%s\": block %zu of rank %d: %s", op->args.call,
                                    tagci_op_tensor_name(op), w.block, w.rank, pieces[i].why);
    }
}

/* A block in recvbuf is complete. */
static void hand_back(struct tagci_op *op, const struct walk *w)
{
    tagci_op_hand_back(op, place(op, w), w->n * tagci_type_size(op->type));
}

/* ---- messages ---- */

static int is_here(const struct tagci_op *op, const struct walk *w)
{
    const struct coded *s = op->state;
    return w->parts && w->nth < s->post.nth && *bytes_of(op, w) >= 0;
}

static int post_receives(struct tagci_op *op)
{
    struct coded *s = op->state;
    for (; s->post.parts && s->post.nth < s->take.nth + window; next_block(op, &s->post)) {
        *bytes_of(op, &s->post) = -1;
        int code = MPI_Irecv(s->post.at, (int)tagci_message_bound(op, s->post.n), MPI_BYTE, before(op, op->comm->rank),
                             tagci_messages_tag(op), op->comm->private, &s->messages.request[s->post.nth % window]);
        if (code)
            return code;
    }
    return MPI_SUCCESS;
}

/* Whether there is something to send, and a slot for it: an own block, or after all of them one to be passed on. */
static int can_send(const struct tagci_op *op)
{
    const struct coded *s = op->state;
    return s->n_free && (s->own.parts || is_here(op, &s->pass));
}

static int send(struct tagci_op *op, const unsigned char *message, size_t bytes)
{
    struct coded *s = op->state;
    if (op->geometry.ranks == 1)
        return MPI_SUCCESS;
    int slot = s->free_slot[--s->n_free];
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, (double)bytes);
    return MPI_Isend(message, (int)bytes, MPI_BYTE, (op->comm->rank + 1) % op->geometry.ranks, tagci_messages_tag(op),
                     op->comm->private, &s->messages.request[window + slot]);
}

static int send_next(struct tagci_op *op)
{
    struct coded *s = op->state;
    struct tagci_piece pieces[most_slots];
    int code = MPI_SUCCESS;
    if (!s->own.parts) {
        code = send(op, s->pass.at, (size_t)*bytes_of(op, &s->pass));
        next_block(op, &s->pass);
        return code;
    }
    double then = MPI_Wtime();
    size_t n = 0, most = s->coder.batch < (size_t)s->n_free ? s->coder.batch : (size_t)s->n_free;
    for (struct walk w = s->own; w.parts && n < most; n++)
        next_block(op, &w);
    encode(op, pieces, n);
    tagci_op_count(op, TAGC_STAT_TIME_ENCODE, MPI_Wtime() - then);
    for (size_t i = 0; i < n; i++) {
        hand_back(op, &s->own);
        next_block(op, &s->own);
    }
    for (size_t i = 0; i < n && !code; i++)
        code = send(op, pieces[i].message, pieces[i].bytes);
    return code;
}

static int take_next(struct tagci_op *op)
{
    struct coded *s = op->state;
    size_t n = 0;
    double then = MPI_Wtime();
    for (struct walk w = s->take; n < s->coder.batch && is_here(op, &w); n++)
        next_block(op, &w);
    decode(op, n);
    tagci_op_count(op, TAGC_STAT_TIME_DECODE, MPI_Wtime() - then);
    for (; n; n--) {
        hand_back(op, &s->take);
        tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, (double)*bytes_of(op, &s->take));
        next_block(op, &s->take);
    }
    return post_receives(op);
}

/* Learns of messages sent and received; blocks for one if told to. */
static int look(struct tagci_op *op, int block)
{
    struct coded *s = op->state;
    const struct tagci_messages *m = &s->messages;
    int done, code = tagci_messages_look(op, &s->messages, block, &done);
    for (int i = 0; i < done && !code; i++) {
        struct walk w = s->take; /* only its place counts */
        int at = m->index[i];
        if (at >= window) {
            s->free_slot[s->n_free++] = at - window;
            continue;
        }
        w.nth += ((size_t)at + window - s->take.nth % window) % window;
        MPI_Get_count(&m->status[i], MPI_BYTE, bytes_of(op, &w));
    }
    return code;
}

/* ---- stages ---- */

static enum tagci_progress begin(struct tagci_op *op)
{
    struct coded *s = op->state;
    struct tagci_tensor *t = op->tensor;
    int ranks = op->geometry.ranks, me = op->comm->rank, alike = tagci_agreement_alike(&op->agreement);
    s->native = !op->compressible || (!t && !alike);
    if (s->native) {
        enum tagci_progress p = tagci_gather_post_native(op, &s->counts);
        tagci_verify_skip(op);
        tagci_op_leave_line(op);
        if (t)
            t->memory_name = 0;
        return p;
    }
    tagci_op_leave_line(op); /* messages between pairs only, from here on */
    s->with_memory = alike && t && t->memory_name;
    s->name = s->with_memory ? t->memory_name : op->geometry.n;
    if (!alike)
        tagci_op_count(op, TAGC_STAT_REGATHERED, 1);
    if (t)
        t->memory_name = 0; /* until all parts are in */
    op->stats.at[TAGC_STAT_DENSITY] = op->stats.at[TAGC_STAT_UNION_DENSITY] = 1;
    s->broken = MPI_SUCCESS;
    s->own = walk_from(op, me, 1, NULL);
    s->take = s->post = walk_from(op, before(op, me), ranks - 1, s->in);
    s->pass = walk_from(op, before(op, me), ranks > 2 ? ranks - 2 : 0, s->in);
    tagci_messages_begin(&s->messages);
    for (s->n_free = 0; s->n_free < s->slots; s->n_free++)
        s->free_slot[s->n_free] = s->n_free;
    int code = post_receives(op);
    return code ? tagci_op_fail(op, code) : TAGCI_THROUGH;
}

static int finished(const struct coded *s)
{
    return !s->own.parts && !s->pass.parts && !s->take.parts && s->n_free == s->slots;
}

static enum tagci_progress exchange(struct tagci_op *op)
{
    struct coded *s = op->state;
    if (s->native)
        return TAGCI_THROUGH;
    for (;;) {
        int sends = can_send(op), code = sends ? send_next(op) : MPI_SUCCESS;
        int takes = is_here(op, &s->take);
        if (!code && takes)
            code = take_next(op);
        if (code)
            return tagci_op_fail(op, code);
        if (finished(s))
            break;
        if (op->geometry.ranks > 1 && (code = look(op, op->blocking && !sends && !takes)))
            return tagci_op_fail(op, code);
        if (!op->blocking && !sends && !takes && !can_send(op) && !is_here(op, &s->take) && !finished(s))
            return TAGCI_PENDING;
    }
    int broken = op->broken ? op->broken : s->broken; /* the device's failure, or a damaged block */
    return broken ? tagci_op_fail(op, broken) : TAGCI_THROUGH;
}

static enum tagci_progress end(struct tagci_op *op)
{
    struct coded *s = op->state;
    struct tagci_tensor *t = op->tensor;
    if (t && !s->native) {
        t->memory_name = s->name ? s->name : 1;
        t->gathers = s->with_memory ? t->gathers + 1 : 0;
    }
    return TAGCI_THROUGH;
}

static const struct tagci_stage coded_stages[] = {
    {begin, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {exchange, TAGCI_PHASE_NONE, 0},
    {end, TAGCI_PHASE_NONE, 0},
    TAGCI_STAGES_END,
};

const struct tagci_algorithm tagci_gather_coded = {.name = "coded",
                                                   .id = TAGC_ALGORITHM_CODED,
                                                   .room = coded_room,
                                                   .data_room = tagci_coder_data_room,
                                                   .reserve = coded_reserve,
                                                   .lay_out = coded_lay_out,
                                                   .stages = coded_stages,
                                                   .on_device = &tagci_gather_coded};
