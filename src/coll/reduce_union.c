/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/reduce_union.h"

#include <string.h>

#include "coll/cuts.h"

enum { batch = 8 };

size_t tagci_union_room(const struct tagci_op *op)
{
    size_t ranks = op->geometry.ranks, n = op->geometry.n, width = tagci_work_size(op->type);
    size_t words = tagci_part_words(&op->geometry, (int)ranks);
    size_t bytes = 2 * tagci_op_piece(words, 8) + 2 * tagci_op_piece(ranks + 1, sizeof(size_t));
    bytes += tagci_op_piece(op->geometry.first[ranks], sizeof(size_t));
    bytes = tagci_add(bytes, tagci_mul(2, tagci_op_piece(n, width)));
    bytes = tagci_add(bytes, tagci_op_piece(tagci_part(&op->geometry, op->comm->rank), width));
    bytes += tagci_op_piece(batch * tagci_cuts_runs(op), sizeof(struct tagci_run));
    return tagci_add(bytes, tagci_counts_room((int)ranks));
}

void tagci_union_lay_out(struct tagci_op *op, struct tagci_union *u)
{
    size_t ranks = op->geometry.ranks, n = op->geometry.n, width = tagci_work_size(op->type);
    size_t words = tagci_part_words(&op->geometry, (int)ranks);
    u->own = tagci_op_take(op, words, 8);
    u->whole = tagci_op_take(op, words, 8);
    u->word = tagci_op_take(op, ranks + 1, sizeof(size_t));
    u->entry = tagci_op_take(op, ranks + 1, sizeof(size_t));
    u->kept = tagci_op_take(op, op->geometry.first[ranks], sizeof(size_t));
    u->values = tagci_op_take(op, n, width);
    u->packed = tagci_op_take(op, n, width);
    u->sum = tagci_op_take(op, tagci_part(&op->geometry, op->comm->rank), width);
    u->runs = tagci_op_take(op, batch * tagci_cuts_runs(op), sizeof(struct tagci_run));
    tagci_counts_lay_out(op, &u->counts, (int)ranks);
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
    struct tagci_chunk chunk[batch];
    size_t runs = tagci_cuts_runs(op), n = 0, kept = 0, first = 0;
    for (int o = 0; o < g->ranks; o++)
        for (size_t c = 0; c < tagci_part_chunks(g, o); c++) {
            size_t begin;
            tagci_part_chunk(g, o, c, &begin);
            if (!n)
                first = g->first[o] + c;
            tagci_cuts_chunk(op, o, c, u->runs + n * runs, &chunk[n]);
            chunk[n].bitmap = u->own + u->word[o] + c * (g->chunk / 64);
            chunk[n].values = (char *)u->values + begin * tagci_work_size(op->type);
            n++;
            if (n == batch || g->first[o] + c + 1 == g->first[g->ranks]) {
                if (tagci_op_run(op, op->backend->sparsify(op->order, chunk, n)) == TAGCI_FAILED)
                    return TAGCI_FAILED;
                for (size_t i = 0; i < n; i++)
                    kept += u->kept[first + i] = chunk[i].kept;
                n = 0;
            }
        }
    op->stats.at[TAGC_STAT_DENSITY] = g->n ? (double)kept / (double)g->n : 0;
    return TAGCI_THROUGH;
}

enum tagci_progress tagci_union_merge(struct tagci_op *op, struct tagci_union *u)
{
    size_t words = u->word[op->geometry.ranks];
    MPI_Request *request = &op->request[op->n_requests];
    double remote = (op->geometry.ranks - 1.0) / op->geometry.ranks;
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, 2 * remote * 8 * (double)words);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, 2 * remote * 8 * (double)words);
    return tagci_op_posted(
        op, tagci_mpi_allreduce(u->own, u->whole, words, MPI_UINT64_T, MPI_BOR, op->comm->private, request));
}

enum tagci_progress tagci_union_pack(struct tagci_op *op, struct tagci_union *u)
{
    const struct tagci_geometry *g = &op->geometry;
    size_t width = tagci_work_size(op->type), entry = 0;
    for (int o = 0; o < g->ranks; o++) {
        u->entry[o] = entry;
        for (size_t c = 0; c < tagci_part_chunks(g, o); c++) {
            size_t begin, n = tagci_part_chunk(g, o, c, &begin), word = u->word[o] + c * (g->chunk / 64);
            size_t entries = 0;
            int failed =
                op->backend->spread(op->order, u->own + word, u->whole + word, n, (char *)u->values + begin * width,
                                    width, (char *)u->packed + entry * width, &entries);
            if (failed)
                return tagci_op_run(op, failed);
            entry += entries;
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
    char *out = (char *)u->packed + (all ? u->entry[me] * width : 0);
    int failed = op->backend->finish(op->order, op->type, u->sum, own, op->average ? ranks : 1, 0, out);
    if (failed || !all)
        return tagci_op_run(op, failed);
    tagci_counts_set(&u->counts, u->entry);
    double bytes = (ranks - 1.0) / ranks * (double)(u->entry[ranks] * width);
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, bytes);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, bytes);
    return tagci_op_posted(op,
                           tagci_mpi_allgatherv(MPI_IN_PLACE, 0, op->args.datatype, u->packed, &u->counts,
                                                op->args.datatype, op->comm->private, &op->request[op->n_requests]));
}

enum tagci_progress tagci_union_unpack(struct tagci_op *op, struct tagci_union *u)
{
    const struct tagci_geometry *g = &op->geometry;
    size_t width = tagci_type_size(op->type);
    int all = op->args.collective == TAGCI_ALLREDUCE, me = op->comm->rank;
    int failed = 0;
    for (int o = all ? 0 : me; o < (all ? g->ranks : me + 1) && !failed; o++) {
        size_t entries;
        failed = op->backend->unpack(op->order, u->whole + u->word[o], tagci_part(g, o),
                                     (char *)u->packed + (all ? u->entry[o] * width : 0), width,
                                     (char *)op->args.recvbuf + (all ? g->offset[o] : 0) * width, &entries);
    }
    return tagci_op_run(op, failed);
}
