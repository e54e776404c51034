/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * coded: every rank codes its part (core/lossless.h), sizes are exchanged, the coded parts are gathered by MPI and decoded
 * by all. With a tensor the change since its last gather is coded.
 *
 * The exchange of sizes carries what all must share: whether this rank can code its arguments at all (a datatype may
 * differ between ranks as long as the signature does not), and the name of what it remembers. If one cannot, all call MPI's
 * own collective; if the names differ (a call failed or was skipped somewhere), all code anew without memory; if nothing is
 * gained, the elements travel as they are. */
#include <string.h>

#include "coll/gather.h"
#include "coll/verify.h"
#include "core/lossless.h"
#include "util/error.h"

/* Of one rank. */
struct record {
    uint64_t bytes;  /* of its coded part */
    uint64_t kind;   /* element type + 1; 0: cannot code */
    uint64_t memory; /* name of what it remembers */
    uint64_t coded;  /* checksum of the coded part */
};

enum { compare_every = 16 /* gathers: then the name takes in a checksum of what is remembered */ };

struct coded {
    struct record *record; /* of each rank */
    size_t *offset;        /* ranks + 1: coded parts in `in` */
    size_t *state;         /* ranks + 1: parts in the tensor's memory */
    unsigned char *own, *in;
    struct tagci_lossless_work *work;
    struct tagci_counts counts;
    int with_memory; /* the parts are coded against the memory */
    int again;       /* that did not fit: another round without */
    int native, raw; /* how it goes on */
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

static size_t bound(const struct tagci_op *op, size_t n)
{
    return !op->compressible         ? 0
           : tagci_gather_rounds(op) ? tagci_round_bound(tagci_gather_form(op), n)
                                     : tagci_lossless_bound(op->type, n);
}

static size_t state_bytes(const struct tagci_op *op, size_t n)
{
    return tagci_gather_rounds(op) ? tagci_round_state(tagci_gather_form(op), n)
                                   : tagci_mul(n, tagci_type_size(op->type));
}

/* Coded parts are taken in only if they are less than the elements; rounded ones always, in their bound. */
static size_t in_bytes(const struct tagci_op *op)
{
    if (!tagci_gather_rounds(op))
        return op->compressible ? tagci_mul(op->geometry.n, tagci_type_size(op->type)) : 0;
    size_t bytes = 0;
    for (int r = 0; r < op->geometry.ranks; r++)
        bytes = tagci_add(bytes, bound(op, tagci_part(&op->geometry, r)));
    return bytes;
}

static size_t coded_room(const struct tagci_op *op)
{
    size_t ranks = op->geometry.ranks;
    size_t bytes = tagci_op_piece(1, sizeof(struct coded)) + tagci_op_piece(ranks, sizeof(struct record));
    bytes += 2 * tagci_op_piece(ranks + 1, sizeof(size_t)) + tagci_op_piece(1, sizeof(struct tagci_lossless_work));
    bytes += tagci_counts_room((int)ranks);
    bytes = tagci_add(bytes, tagci_op_piece(1, bound(op, tagci_part(&op->geometry, op->comm->rank))));
    return tagci_add(bytes, tagci_op_piece(1, in_bytes(op)));
}

static int coded_reserve(struct tagci_op *op)
{
    struct tagci_tensor *t = op->tensor;
    if (!t || !op->compressible)
        return 0;
    size_t bytes = 0;
    for (int r = 0; r < op->geometry.ranks; r++)
        bytes = tagci_add(bytes, state_bytes(op, tagci_part(&op->geometry, r)));
    if (t->memory && t->memory_bytes == bytes)
        return 0;
    void *memory = tagci_alloc(bytes, 1);
    if (!memory)
        return -1;
    tagci_free(t->memory);
    t->memory = memory;
    t->memory_bytes = bytes;
    t->memory_name = 0;
    return 0;
}

static void coded_lay_out(struct tagci_op *op)
{
    size_t ranks = op->geometry.ranks;
    struct coded *s = op->state = tagci_op_take(op, 1, sizeof *s);
    memset(s, 0, sizeof *s);
    s->record = tagci_op_take(op, ranks, sizeof *s->record);
    s->offset = tagci_op_take(op, ranks + 1, sizeof(size_t));
    s->state = tagci_op_take(op, ranks + 1, sizeof(size_t));
    s->work = tagci_op_take(op, 1, sizeof *s->work);
    tagci_counts_lay_out(op, &s->counts, (int)ranks);
    s->own = tagci_op_take(op, 1, bound(op, tagci_part(&op->geometry, op->comm->rank)));
    s->in = tagci_op_take(op, 1, in_bytes(op));
    s->state[0] = 0;
    for (size_t r = 0; r < ranks && op->compressible; r++)
        s->state[r + 1] = s->state[r] + state_bytes(op, tagci_part(&op->geometry, (int)r));
}

/* Part of rank r in recvbuf. */
static char *place(const struct tagci_op *op, int r)
{
    return (char *)op->args.recvbuf + op->displ[r] * (MPI_Aint)tagci_type_size(op->type);
}

static void *memory(const struct tagci_op *op, int r)
{
    struct coded *s = op->state;
    return op->tensor ? (char *)op->tensor->memory + s->state[r] : NULL;
}

static enum tagci_progress encode(struct tagci_op *op)
{
    struct coded *s = op->state;
    int me = op->comm->rank;
    struct record *own = &s->record[me];
    struct tagci_tensor *t = op->tensor;
    memset(own, 0, sizeof *own);
    if (!op->compressible)
        return TAGCI_THROUGH;
    s->with_memory = !s->again && t && t->memory_name;
    if (s->again)
        tagci_op_count(op, TAGC_STAT_REGATHERED, 1);
    const void *now = op->in_place ? place(op, me) : op->args.sendbuf;
    const void *before = s->with_memory ? memory(op, me) : NULL;
    size_t n = tagci_part(&op->geometry, me);
    own->bytes = tagci_gather_rounds(op)
                     ? tagci_round_encode(tagci_gather_form(op), op->type, now, before, NULL, n, s->own, s->work)
                     : tagci_lossless_encode(op->type, now, before, n, s->own, s->work);
    own->kind = (uint64_t)op->type + 1;
    own->coded = tagci_crc32c(0, s->own, own->bytes);
    own->memory = s->with_memory ? t->memory_name : 0;
    if (s->with_memory && t->gathers % compare_every == compare_every - 1)
        own->memory = tagci_fact(own->memory, tagci_crc32c(0, t->memory, t->memory_bytes));
    return TAGCI_THROUGH;
}

static enum tagci_progress exchange(struct tagci_op *op)
{
    struct coded *s = op->state;
    enum { words = sizeof(struct record) / 8 };
    double bytes = (op->geometry.ranks - 1.0) * sizeof(struct record);
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, bytes);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, bytes);
    return tagci_op_posted(op, MPI_Iallgather(MPI_IN_PLACE, 0, MPI_UINT64_T, s->record, words, MPI_UINT64_T,
                                              op->comm->private, &op->request[op->n_requests]));
}

/* What all ranks now know, all see alike. */
static enum tagci_progress consider(struct tagci_op *op)
{
    struct coded *s = op->state;
    int ranks = op->geometry.ranks, alike = 1, same_memory = 1;
    s->offset[0] = 0;
    for (int r = 0; r < ranks; r++) {
        s->offset[r + 1] = s->offset[r] + s->record[r].bytes;
        alike &= s->record[r].kind && s->record[r].kind == s->record[0].kind;
        same_memory &= s->record[r].memory == s->record[0].memory;
    }
    s->native = !alike;
    s->again = alike && !same_memory;
    s->raw = alike && !tagci_gather_rounds(op) && s->offset[ranks] >= op->geometry.n * tagci_type_size(op->type);
    return TAGCI_THROUGH;
}

static enum tagci_progress encode_again(struct tagci_op *op)
{
    struct coded *s = op->state;
    return s->again ? encode(op) : TAGCI_THROUGH;
}

static enum tagci_progress exchange_again(struct tagci_op *op)
{
    struct coded *s = op->state;
    return s->again ? exchange(op) : TAGCI_THROUGH;
}

static enum tagci_progress post(struct tagci_op *op)
{
    struct coded *s = op->state;
    int ranks = op->geometry.ranks, me = op->comm->rank;
    if (s->again)
        consider(op);
    enum tagci_progress p;
    if (s->native || s->raw) {
        p = tagci_gather_post_native(op, &s->counts);
        tagci_verify_skip(op);
    } else {
        memcpy(s->in + s->offset[me], s->own, s->record[me].bytes);
        tagci_counts_set(&s->counts, s->offset);
        double bytes = (ranks - 1.0) / ranks * (double)s->offset[ranks];
        tagci_op_count(op, TAGC_STAT_BYTES_SENT, bytes);
        tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, bytes);
        op->stats.at[TAGC_STAT_DENSITY] = op->stats.at[TAGC_STAT_UNION_DENSITY] = 1;
        p = tagci_op_posted(op, tagci_mpi_allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, s->in, &s->counts, MPI_BYTE,
                                                     op->comm->private, &op->request[op->n_requests]));
    }
    tagci_op_leave_line(op);
    return p;
}

static int decode_part(struct tagci_op *op, int r, const char **why)
{
    struct coded *s = op->state;
    const unsigned char *in = s->in + s->offset[r];
    size_t bytes = s->record[r].bytes, n = tagci_part(&op->geometry, r);
    void *state = memory(op, r), *out = place(op, r);
    const void *before = s->with_memory ? state : NULL;
    int own_in_place = op->in_place && r == op->comm->rank; /* stays as it is */
    if (op->settings->checksum && tagci_crc32c(0, in, bytes) != s->record[r].coded)
        return *why = "wrong checksum", -1;
    if (tagci_gather_rounds(op))
        return tagci_round_decode(tagci_gather_form(op), op->type, in, bytes, before, state, n,
                                  own_in_place ? NULL : out, s->work, why);
    if (!own_in_place && tagci_lossless_decode(op->type, in, bytes, before, n, out, s->work, why))
        return -1;
    if (state && n)
        memcpy(state, out, n * tagci_type_size(op->type));
    return 0;
}

static enum tagci_progress decode(struct tagci_op *op)
{
    struct coded *s = op->state;
    struct tagci_tensor *t = op->tensor;
    uint64_t name = s->with_memory ? t->memory_name : tagci_fact(0, op->geometry.n);
    if (t)
        t->memory_name = 0; /* until all parts are in */
    if (s->native)
        return TAGCI_THROUGH;
    for (int r = 0; r < op->geometry.ranks; r++) {
        const char *why;
        name = tagci_fact(name, s->record[r].coded);
        if (s->raw) {
            if (t && tagci_part(&op->geometry, r))
                memcpy(memory(op, r), place(op, r), tagci_part(&op->geometry, r) * tagci_type_size(op->type));
        } else if (decode_part(op, r, &why)) {
            return tagci_op_fail(op, tagci_error(TAGC_ERR_WIRE, "%s: tensor \"%s\": part of rank %d: %s", op->args.call,
                                                 tagci_op_tensor_name(op), r, why));
        }
    }
    if (t) {
        t->memory_name = name ? name : 1;
        t->gathers = s->with_memory ? t->gathers + 1 : 0;
    }
    return TAGCI_THROUGH;
}

static const struct tagci_stage coded_stages[] = {
    {encode, TAGCI_PHASE_ENCODE, 0},
    {exchange, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {consider, TAGCI_PHASE_NONE, 0},
    {encode_again, TAGCI_PHASE_ENCODE, 0},
    {exchange_again, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {post, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {decode, TAGCI_PHASE_DECODE, 0},
    TAGCI_STAGES_END,
};

const struct tagci_algorithm tagci_gather_coded = {"coded",       TAGC_ALGORITHM_CODED, 0,           coded_room,
                                                   coded_reserve, coded_lay_out,        coded_stages};
