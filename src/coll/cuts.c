/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/cuts.h"

#include <math.h>
#include <string.h>

struct tagci_cuts {
    /* Stretches: the owners' parts, or pieces of `length` elements of the whole vector; with `same` one cut for all. */
    size_t length; /* 0: owners' parts */
    size_t stretches;
    int same;
    struct tagci_cut *cut;
    /* Where ties are cut short in a stretch that goes on from one chunk to the next: how many of them may still be kept
     * from the beginning of a chunk on. */
    uint64_t *ties_left;
};

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

size_t tagci_cuts_room(const struct tagci_op *op)
{
    return tagci_add(tagci_add(tagci_op_piece(1, sizeof(struct tagci_cuts)),
                               tagci_op_piece(stretch_count(op), sizeof(struct tagci_cut))),
                     tagci_op_piece(op->geometry.first[op->geometry.ranks], sizeof(uint64_t)));
}

void tagci_cuts_lay_out(struct tagci_op *op)
{
    struct tagci_cuts *c = op->cuts = tagci_op_take(op, 1, sizeof *c);
    c->length = stretch_length(op);
    c->stretches = stretch_count(op);
    c->cut = tagci_op_take(op, c->stretches, sizeof *c->cut);
    c->ties_left = tagci_op_take(op, op->geometry.first[op->geometry.ranks], sizeof *c->ties_left);
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

/* Ties of a stretch that are cut short, handed on from chunk to chunk. */
static void spread_ties(struct tagci_op *op, size_t begin, size_t end, struct tagci_cut cut)
{
    const struct tagci_geometry *g = &op->geometry;
    int o = 0;
    while (g->offset[o + 1] <= begin)
        o++;
    uint64_t left = cut.ties;
    for (size_t at = begin; at < end;) {
        while (g->offset[o + 1] <= at)
            o++;
        size_t c = (at - g->offset[o]) / g->chunk, first, n = tagci_part_chunk(g, o, c, &first);
        size_t stop = first + n < end ? first + n : end;
        if (first >= begin) /* otherwise the chunk begins in another stretch, whose number this is */
            op->cuts->ties_left[g->first[o] + c] = left;
        if (left && stop < end) {
            size_t tied =
                op->backend->count_key(op->type, tagci_op_in(op, at), tagci_op_residual(op, at), stop - at, cut.key);
            left -= tied < left ? tied : left;
        }
        at = stop;
    }
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
    for (size_t s = 0; s < c->stretches; s++) {
        size_t begin, end, above, tied;
        stretch(op, s, &begin, &end);
        c->cut[s] = TAGCI_CUT_NONZERO;
        if (begin == end)
            continue;
        op->backend->select(op->type, tagci_op_in(op, begin), tagci_op_residual(op, begin), end - begin,
                            to_keep(end - begin, op->share), &c->cut[s], &above, &tied);
        if (c->cut[s].ties >= tied)
            c->cut[s].ties = UINT64_MAX;
        else
            spread_ties(op, begin, end, c->cut[s]);
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
    chunk->residual_out = tagci_op_residual_out(op, begin);
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
