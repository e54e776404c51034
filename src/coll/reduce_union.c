/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/reduce_union.h"

#include <string.h>

#include "coll/cuts.h"
#include "coll/twin.h"
#include "core/bitmap.h"

static size_t words_of(const struct tagci_op *op)
{
    return tagci_part_words(&op->geometry, op->geometry.ranks);
}

size_t tagci_union_room(const struct tagci_op *op)
{
    size_t ranks = op->geometry.ranks, n = op->geometry.n, width = tagci_work_size(op->type);
    size_t batch = op->backend->batch, own = tagci_part(&op->geometry, op->comm->rank);
    size_t bytes = 2 * tagci_op_piece(ranks + 1, sizeof(size_t)) + tagci_op_piece(1, sizeof(size_t));
    bytes += tagci_op_piece(batch, sizeof(struct tagci_chunk));
    bytes += tagci_op_piece(batch * tagci_cuts_runs(op), sizeof(struct tagci_run));
    bytes = tagci_add(bytes, tagci_mul(2, tagci_op_twin(op, words_of(op), 8)));
    bytes = tagci_add(bytes, tagci_op_twin(op, n, width));
    bytes = tagci_add(bytes, tagci_op_twin(op, own, width));
    return tagci_add(bytes, tagci_counts_room((int)ranks));
}

size_t tagci_union_data_room(const struct tagci_op *op)
{
    size_t n = op->geometry.n, width = tagci_work_size(op->type);
    size_t bytes = tagci_mul(2, tagci_op_piece(words_of(op), 8));
    bytes = tagci_add(bytes, tagci_mul(2, tagci_op_piece(n, width)));
    return tagci_add(bytes, tagci_op_piece(tagci_part(&op->geometry, op->comm->rank), width));
}

void tagci_union_lay_out(struct tagci_op *op, struct tagci_union *u)
{
    size_t ranks = op->geometry.ranks, n = op->geometry.n, width = tagci_work_size(op->type), words = words_of(op);
    void *twin;
    u->own = tagci_op_take_twin(op, words, 8, &twin);
    u->own_here = twin;
    u->whole = tagci_op_take_twin(op, words, 8, &twin);
    u->whole_here = twin;
    u->word = tagci_op_take(op, ranks + 1, sizeof(size_t));
    u->entry = tagci_op_take(op, ranks + 1, sizeof(size_t));
    u->found = tagci_op_take(op, 1, sizeof(size_t));
    u->values = tagci_op_take_data(op, n, width);
    u->packed = tagci_op_take_twin(op, n, width, &u->packed_here);
    u->sum = tagci_op_take_twin(op, tagci_part(&op->geometry, op->comm->rank), width, &u->sum_here);
    u->chunk = tagci_op_take(op, op->backend->batch, sizeof(struct tagci_chunk));
    u->runs = tagci_op_take(op, op->backend->batch * tagci_cuts_runs(op), sizeof(struct tagci_run));
    tagci_counts_lay_out(op, &u->counts, (int)ranks);
    u->next = 0;
    u->owner = 0;
    u->kept = 0;
    u->word[0] = 0;
    for (size_t o = 0; o < ranks; o++)
        u->word[o + 1] = u->word[o] + (tagci_part(&op->geometry, (int)o) + 63) / 64;
}

MPI_Datatype tagci_union_type(const struct tagci_op *op)
{
    return tagci_work_is_double(op->type) ? MPI_DOUBLE : MPI_FLOAT;
}

enum tagci_progress tagci_union_sparsify(struct tagci_op *op, struct tagci_union *u)
{
    const struct tagci_geometry *g = &op->geometry;
    size_t runs = tagci_cuts_runs(op), words = words_of(op), chunks = g->first[g->ranks];
    while (u->next < chunks && !op->broken) {
        size_t n = 0;
        for (; n < op->backend->batch && u->next + n < chunks; n++) {
            while (u->next + n >= g->first[u->owner + 1])
                u->owner++;
            size_t begin, c = u->next + n - g->first[u->owner], end = tagci_part_chunk(g, u->owner, c, &begin);
            end += begin;
            if (tagci_op_come(op, n ? 0 : end) < end)
                break;
            tagci_cuts_chunk(op, u->owner, c, u->runs + n * runs, &u->chunk[n]);
            u->chunk[n].bitmap = u->own + u->word[u->owner] + c * (g->chunk / 64);
            u->chunk[n].values = (char *)u->values + begin * tagci_work_size(op->type);
        }
        if (!n)
            return TAGCI_PENDING;
        tagci_op_try(op, op->backend->sparsify(op->order, u->chunk, n) || tagci_op_settle(op));
        for (size_t i = 0; i < n && !op->broken; i++)
            u->kept += (double)u->chunk[i].kept;
        u->next += n;
    }
    if (!op->broken)
        tagci_op_try(op, tagci_op_bring(op, u->own_here, u->own, words * 8) || tagci_op_settle(op));
    if (op->broken)
        memset(u->own_here, 0, words * 8);
    op->stats.at[TAGC_STAT_DENSITY] = g->n ? u->kept / (double)g->n : 0;
    return TAGCI_THROUGH;
}

enum tagci_progress tagci_union_merge(struct tagci_op *op, struct tagci_union *u)
{
    size_t words = words_of(op);
    MPI_Request *request = &op->request[op->n_requests];
    double remote = (op->geometry.ranks - 1.0) / op->geometry.ranks;
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, 2 * remote * 8 * (double)words);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, 2 * remote * 8 * (double)words);
    if (tagci_op_posted(op, tagci_mpi_allreduce(u->own_here, u->whole_here, words, MPI_UINT64_T, MPI_BOR,
                                                op->comm->private, request)) == TAGCI_FAILED)
        return TAGCI_FAILED;
    return tagci_op_tell(op);
}

enum tagci_progress tagci_union_pack(struct tagci_op *op, struct tagci_union *u)
{
    const struct tagci_geometry *g = &op->geometry;
    size_t width = tagci_work_size(op->type), entry = 0;
    tagci_op_try(op, tagci_op_bring(op, u->whole, u->whole_here, words_of(op) * 8));
    for (int o = 0; o < g->ranks; o++) {
        u->entry[o] = entry;
        for (size_t c = 0; c < tagci_part_chunks(g, o); c++) {
            size_t begin, n = tagci_part_chunk(g, o, c, &begin), word = u->word[o] + c * (g->chunk / 64);
            if (!op->broken)
                tagci_op_try(op, op->backend->spread(op->order, u->own + word, u->whole + word, n,
                                                     (char *)u->values + begin * width, width,
                                                     (char *)u->packed + entry * width, u->found));
            /* on a device the kernel has not counted yet */
            entry += op->order ? tagci_bitmap_count(u->whole_here + word, tagci_bitmap_words(n)) : *u->found;
        }
    }
    u->entry[g->ranks] = entry;
    op->stats.at[TAGC_STAT_UNION_DENSITY] = g->n ? (double)entry / (double)g->n : 0;
    return TAGCI_THROUGH;
}

enum tagci_progress tagci_union_gather(struct tagci_op *op, struct tagci_union *u)
{
    int me = op->comm->rank, ranks = op->geometry.ranks;
    size_t own = u->entry[me + 1] - u->entry[me], width = tagci_type_size(op->type);
    int all = op->args.collective == TAGCI_ALLREDUCE;
    /* What was packed has been sent: its room takes the result. */
    size_t at = all ? u->entry[me] * width : 0;
    char *out = (char *)u->packed + at;
    if (!op->broken)
        tagci_op_try(op, op->backend->finish(op->order, op->type, u->sum, own, op->average ? ranks : 1, 0, out) ||
                             (all && (tagci_op_bring(op, (char *)u->packed_here + at, out, own * width) ||
                                      tagci_op_settle(op))));
    if (!all)
        return op->broken ? tagci_op_fail(op, op->broken) : TAGCI_THROUGH;
    tagci_counts_set(&u->counts, u->entry);
    double bytes = (ranks - 1.0) / ranks * (double)(u->entry[ranks] * width);
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, bytes);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, bytes);
    if (tagci_op_posted(op, tagci_mpi_allgatherv(MPI_IN_PLACE, 0, op->args.datatype, u->packed_here, &u->counts,
                                                 op->args.datatype, op->comm->private, &op->request[op->n_requests])) ==
        TAGCI_FAILED)
        return TAGCI_FAILED;
    return tagci_op_tell(op);
}

enum tagci_progress tagci_union_unpack(struct tagci_op *op, struct tagci_union *u)
{
    const struct tagci_geometry *g = &op->geometry;
    size_t width = tagci_type_size(op->type);
    int all = op->args.collective == TAGCI_ALLREDUCE, me = op->comm->rank;
    int failed = all && tagci_op_bring(op, u->packed, u->packed_here, u->entry[g->ranks] * width);
    for (int o = all ? 0 : me; o < (all ? g->ranks : me + 1); o++) {
        /* A device unpacks a part at once, and has not counted yet; the host chunk by chunk, so that results go back. */
        size_t part = tagci_part(g, o), piece = op->order ? part : g->chunk, entry = all ? u->entry[o] : 0;
        for (size_t at = 0, n; at < part && !failed; at += n) {
            char *out = (char *)op->args.recvbuf + ((all ? g->offset[o] : 0) + at) * width;
            n = part - at < piece ? part - at : piece;
            failed = op->backend->unpack(op->order, u->whole + u->word[o] + at / 64, n,
                                         (char *)u->packed + entry * width, width, out, u->found);
            entry += op->order ? 0 : *u->found;
            tagci_op_hand_back(op, out, n * width);
        }
    }
    return tagci_op_run(op, failed);
}
