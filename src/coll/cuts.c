/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/cuts.h"

#include <math.h>
#include <string.h>

#include "core/sample.h"

/* Bytes of a residual that caches would not keep until the next call. */
static const size_t beyond_caches = (size_t)16 << 20;

struct tagci_cuts {
    /* Stretches: the owners' parts, or pieces of `length` elements of the whole vector; with `same` one cut for all. */
    size_t length; /* 0: owners' parts */
    size_t stretches;
    size_t found; /* of these, so far */
    int same;
    struct tagci_cut *cut;
    /* Where ties are cut short in a stretch that goes on from one chunk to the next: how many of them may still be kept
     * from the beginning of a chunk on. */
    uint64_t *ties_left;
    struct tagci_choice *choice; /* of the stretches, so many at a time */
    struct tagci_tally *tally;   /* of as many chunks as the backend takes at once */
};

enum { most_choices = 4096 };

static size_t stretch_length(const struct tagci_op *op)
{
    int64_t g = op->settings->granularity;
    if (g == TAGCI_GRANULARITY_OWNER)
        return 0;
    if (g == TAGCI_GRANULARITY_TENSOR || (uint64_t)g > op->geometry.n)
        return op->geometry.n ? op->geometry.n : 1;
    return (size_t)g;
}

static size_t stretch_count(const struct tagci_op *op)
{
    size_t length = stretch_length(op);
    return length ? (op->geometry.n + length - 1) / length : (size_t)op->geometry.ranks;
}

static size_t choices(const struct tagci_op *op)
{
    return stretch_count(op) < most_choices ? stretch_count(op) : most_choices;
}

size_t tagci_cuts_room(const struct tagci_op *op)
{
    size_t chunks = op->geometry.first[op->geometry.ranks];
    size_t bytes = tagci_op_piece(1, sizeof(struct tagci_cuts));
    bytes = tagci_add(bytes, tagci_op_piece(stretch_count(op), sizeof(struct tagci_cut)));
    bytes = tagci_add(bytes, tagci_op_piece(chunks, sizeof(uint64_t)));
    bytes = tagci_add(bytes, tagci_op_piece(choices(op), sizeof(struct tagci_choice)));
    return tagci_add(bytes, tagci_op_piece(op->backend->batch, sizeof(struct tagci_tally)));
}

void tagci_cuts_lay_out(struct tagci_op *op)
{
    struct tagci_cuts *c = op->cuts = tagci_op_take(op, 1, sizeof *c);
    c->length = stretch_length(op);
    c->stretches = stretch_count(op);
    c->found = 0;
    c->cut = tagci_op_take(op, c->stretches, sizeof *c->cut);
    c->ties_left = tagci_op_take(op, op->geometry.first[op->geometry.ranks], sizeof *c->ties_left);
    c->choice = tagci_op_take(op, choices(op), sizeof *c->choice);
    c->tally = tagci_op_take(op, op->backend->batch, sizeof *c->tally);
}

static void stretch(const struct tagci_op *op, size_t s, size_t *begin, size_t *end)
{
    const struct tagci_cuts *c = op->cuts;
    if (!c->length) {
        *begin = op->geometry.offset[s];
        *end = op->geometry.offset[s + 1];
    } else {
        *begin = s * c->length;
        *end = *begin + c->length < op->geometry.n ? *begin + c->length : op->geometry.n;
    }
}

/* Cut for "hold back everything smaller than t": the keys below that of the smallest work value that is not. */
static struct tagci_cut cut_at(const struct tagci_op *op, double t)
{
    uint64_t key;
    if (tagci_work_is_double(op->type)) {
        memcpy(&key, &t, sizeof key);
    } else {
        float f = (float)t;
        uint32_t bits;
        if ((double)f < t)
            f = nextafterf(f, INFINITY);
        memcpy(&bits, &f, sizeof bits);
        key = bits;
    }
    return (struct tagci_cut){key ? key - 1 : 0, 0};
}

static size_t to_keep(size_t n, double share)
{
    double k = ceil((double)n * (1 - share) * (1 - 1e-12));
    return k < 1 ? 1 : k > (double)n ? n : (size_t)k;
}

/* The next pieces of [*at, end), each in one chunk, as many as the backend likes to count at once. */
static size_t pieces(const struct tagci_op *op, size_t *at, size_t end, uint64_t key, struct tagci_tally *tally)
{
    const struct tagci_geometry *g = &op->geometry;
    size_t n = 0;
    for (; *at < end && n < op->backend->batch; n++) {
        int o = tagci_owner_of(g, *at);
        size_t first, length = tagci_part_chunk(g, o, (*at - g->offset[o]) / g->chunk, &first);
        size_t stop = first + length < end ? first + length : end;
        tally[n] = (struct tagci_tally){tagci_op_in(op, *at), tagci_op_residual(op, *at), stop - *at, key, .count = 0};
        *at = stop;
    }
    return n;
}

/* Ties of a stretch that are cut short, handed on from chunk to chunk. */
static int spread_ties(struct tagci_op *op, size_t begin, size_t end, struct tagci_cut cut)
{
    const struct tagci_geometry *g = &op->geometry;
    struct tagci_tally *tally = op->cuts->tally;
    int o = tagci_owner_of(g, begin);
    size_t chunk = g->first[o] + (begin - g->offset[o]) / g->chunk;
    int begun = (begin - g->offset[o]) % g->chunk > 0; /* the chunk begins in another stretch, whose number this is */
    uint64_t left = cut.ties;
    for (size_t at = begin; at < end;) {
        size_t n = pieces(op, &at, end, cut.key, tally);
        size_t counted = at < end ? n : n - 1; /* nobody asks what is left behind the last one */
        if (left && counted && (op->backend->count_key(op->order, op->type, tally, counted) || tagci_op_settle(op)))
            return -1;
        for (size_t i = 0; i < n; i++, chunk++, begun = 0) {
            if (!begun)
                op->cuts->ties_left[chunk] = left;
            left -= tally[i].count < left ? tally[i].count : left;
        }
    }
    return 0;
}

/* Cuts of the stretches s .. s + n. */
static int find_some(struct tagci_op *op, size_t s, size_t n)
{
    struct tagci_cuts *c = op->cuts;
    for (size_t i = 0; i < n; i++) {
        size_t begin, end;
        stretch(op, s + i, &begin, &end);
        c->choice[i] = (struct tagci_choice){tagci_op_in(op, begin), tagci_op_residual(op, begin), end - begin,
                                             .k = begin == end ? 0 : to_keep(end - begin, op->share)};
        if (op->settings->selection == TAGCI_SELECTION_SAMPLED && begin < end)
            c->choice[i].runs = tagci_sample_runs(end - begin, c->choice[i].k);
    }
    if (op->backend->select(op->order, op->type, c->choice, n) || tagci_op_settle(op))
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct tagci_choice *choice = &c->choice[i];
        size_t begin, end;
        stretch(op, s + i, &begin, &end);
        c->cut[s + i] = begin == end ? TAGCI_CUT_NONZERO : choice->cut;
        if (begin == end || !choice->cut.ties) /* with key 0: zeros are equal to it, and never kept */
            continue;
        if (choice->cut.ties >= choice->tied)
            c->cut[s + i].ties = UINT64_MAX;
        else if (spread_ties(op, begin, end, choice->cut))
            return -1;
    }
    return 0;
}

/* How many stretches from s on have come, and may be looked at together. */
static size_t that_have_come(struct tagci_op *op, size_t s)
{
    size_t n = 0, most = op->cuts->stretches - s, begin, end;
    stretch(op, s, &begin, &end);
    size_t here = tagci_op_come(op, end);
    most = most < most_choices ? most : most_choices;
    if (here == op->geometry.n)
        return most;
    for (; n < most && end <= here; n++)
        stretch(op, s + n + 1 < op->cuts->stretches ? s + n + 1 : s + n, &begin, &end);
    return n;
}

enum tagci_progress tagci_cuts_find(struct tagci_op *op)
{
    struct tagci_cuts *c = op->cuts;
    c->same = 1;
    if (op->settings->threshold > 0 && op->lossy) {
        c->cut[0] = cut_at(op, op->settings->threshold);
        return TAGCI_THROUGH;
    }
    if (op->share <= 0) {
        if (c->stretches)
            c->cut[0] = TAGCI_CUT_NONZERO;
        return TAGCI_THROUGH;
    }
    c->same = 0;
    for (size_t n; c->found < c->stretches; c->found += n) {
        if (!(n = that_have_come(op, c->found)))
            return TAGCI_PENDING;
        if (find_some(op, c->found, n)) {
            for (size_t s = 0; s < c->stretches; s++)
                c->cut[s] = TAGCI_CUT_NONZERO;
            op->broken = tagci_op_ran(op, -1);
            n = c->stretches - c->found;
        }
    }
    return TAGCI_THROUGH;
}

size_t tagci_cuts_runs(const struct tagci_op *op)
{
    size_t length = stretch_length(op);
    return op->share <= 0 || !length ? 1 : op->geometry.chunk / length + 2;
}

void tagci_cuts_chunk(const struct tagci_op *op, int owner, size_t c, struct tagci_run *runs, struct tagci_chunk *chunk)
{
    const struct tagci_cuts *cuts = op->cuts;
    size_t begin, n = tagci_part_chunk(&op->geometry, owner, c, &begin);
    memset(chunk, 0, sizeof *chunk);
    chunk->type = op->type;
    chunk->n = n;
    chunk->in = tagci_op_in(op, begin);
    chunk->residual = tagci_op_residual(op, begin);
    size_t skip = begin - op->geometry.offset[owner];
    chunk->residual_out = tagci_op_residual_out(op, op->held_at ? op->held_at[owner] + skip : begin);
    chunk->stream = tagci_mul(op->geometry.n, tagci_work_size(op->type)) >= beyond_caches;
    chunk->runs = runs;
    if (cuts->same) {
        runs[0] = (struct tagci_run){n, cuts->cut[0]};
        chunk->nruns = 1;
        return;
    }
    size_t s = cuts->length ? begin / cuts->length : (size_t)owner, from, to;
    for (size_t at = begin; at < begin + n; at = to, s++) {
        stretch(op, s, &from, &to);
        if (to > begin + n)
            to = begin + n;
        struct tagci_cut cut = cuts->cut[s];
        if (from < begin && cut.ties != UINT64_MAX && cut.ties)
            cut.ties = cuts->ties_left[op->geometry.first[owner] + c];
        runs[chunk->nruns++] = (struct tagci_run){to - at, cut};
    }
}
