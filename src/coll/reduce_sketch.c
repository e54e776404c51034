/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * sketch: merged bitmap, then an additive sketch of the values on the union, reduced by MPI and peeled by the owner
 * (TAGC, arXiv 2504.05638; LHC, arXiv 2402.07529). Every addition is MPI's own, on integers: trees and switches that
 * reduce in the network keep working, and the sums do not depend on their order. Bytes per element:
 * f * (1.23..1.35 u b + 1/4).
 *
 * What will not decode is known to all ranks before a value is sent, from the union and the merged exponents: those
 * entries are reduced exactly, as `pack` would. */
#include <string.h>

#include "coll/reduce_union.h"
#include "core/sketch.h"

struct sketch {
    struct tagci_union u;
    size_t *group;       /* ranks + 1: first group of a part */
    uint16_t *exponents; /* high of all groups, then low */
    unsigned char *exceptional;
    void *ints; /* of one part */
    void *cells, *own_cells;
    size_t *cell, *exact_at; /* ranks + 1: first cell and first exact entry of a part */
    void *exact, *own_exact;
    struct tagci_counts counts;
};

static int wide(const struct tagci_op *op)
{
    return tagci_work_is_double(op->type);
}

/* Cells that a part of n elements can take. */
static size_t most_cells(size_t n)
{
    size_t blocks = (n + TAGCI_SKETCH_LANES - 1) / TAGCI_SKETCH_LANES;
    return tagci_sketch_most_rows(blocks) * TAGCI_SKETCH_LANES;
}

static size_t most_cells_of_all(const struct tagci_op *op)
{
    size_t cells = 0;
    for (int o = 0; o < op->geometry.ranks; o++)
        cells += most_cells(tagci_part(&op->geometry, o));
    return cells;
}

static size_t most_groups(const struct tagci_op *op)
{
    size_t groups = 0;
    for (int o = 0; o < op->geometry.ranks; o++)
        groups += tagci_sketch_groups(tagci_part(&op->geometry, o));
    return groups;
}

static size_t sketch_room(const struct tagci_op *op)
{
    size_t ranks = op->geometry.ranks, width = tagci_work_size(op->type),
           own = tagci_part(&op->geometry, op->comm->rank);
    size_t groups = most_groups(op), bytes = tagci_op_piece(1, sizeof(struct sketch));
    bytes = tagci_add(bytes, tagci_union_room(op));
    bytes += 3 * tagci_op_piece(ranks + 1, sizeof(size_t)) + tagci_op_piece(2 * groups, 2) + tagci_op_piece(groups, 1);
    bytes = tagci_add(bytes, tagci_op_piece(tagci_longest_part(&op->geometry) + TAGCI_SKETCH_LANES, width));
    bytes = tagci_add(bytes, tagci_op_piece(most_cells_of_all(op), width));
    bytes = tagci_add(bytes, tagci_op_piece(most_cells(own), width));
    bytes = tagci_add(bytes, tagci_op_piece(op->geometry.n, width));
    bytes = tagci_add(bytes, tagci_op_piece(own, width));
    return tagci_add(bytes, tagci_counts_room((int)ranks));
}

static int sketch_reserve(struct tagci_op *op)
{
    return tagci_sketch_reserve(&op->plan[0], tagci_longest_part(&op->geometry)) ||
                   tagci_sketch_reserve(&op->plan[1], tagci_part(&op->geometry, op->comm->rank))
               ? -1
               : 0;
}

static void sketch_lay_out(struct tagci_op *op)
{
    size_t ranks = op->geometry.ranks, width = tagci_work_size(op->type),
           own = tagci_part(&op->geometry, op->comm->rank);
    size_t groups = most_groups(op);
    struct sketch *k = op->state = tagci_op_take(op, 1, sizeof *k);
    tagci_union_lay_out(op, &k->u);
    k->group = tagci_op_take(op, ranks + 1, sizeof(size_t));
    k->cell = tagci_op_take(op, ranks + 1, sizeof(size_t));
    k->exact_at = tagci_op_take(op, ranks + 1, sizeof(size_t));
    k->exponents = tagci_op_take(op, 2 * groups, 2);
    k->exceptional = tagci_op_take(op, groups, 1);
    k->ints = tagci_op_take(op, tagci_longest_part(&op->geometry) + TAGCI_SKETCH_LANES, width);
    k->cells = tagci_op_take(op, most_cells_of_all(op), width);
    k->own_cells = tagci_op_take(op, most_cells(own), width);
    k->exact = tagci_op_take(op, op->geometry.n, width);
    k->own_exact = tagci_op_take(op, own, width);
    tagci_counts_lay_out(op, &k->counts, (int)ranks);
}

static enum tagci_progress sparsify(struct tagci_op *op)
{
    return tagci_union_sparsify(op, op->state);
}
static enum tagci_progress merge(struct tagci_op *op)
{
    return tagci_union_merge(op, op->state);
}
static enum tagci_progress gather(struct tagci_op *op)
{
    return tagci_union_gather(op, op->state);
}
static enum tagci_progress unpack(struct tagci_op *op)
{
    return tagci_union_unpack(op, op->state);
}

static void book(struct tagci_op *op, double bytes)
{
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, bytes);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, bytes);
}

/* Packs, and merges the exponents of all groups. */
static enum tagci_progress pack_and_post_exponents(struct tagci_op *op)
{
    struct sketch *k = op->state;
    size_t width = tagci_work_size(op->type), groups = 0;
    int ranks = op->geometry.ranks;
    if (tagci_union_pack(op, &k->u) == TAGCI_FAILED)
        return TAGCI_FAILED;
    for (int o = 0; o <= ranks; o++) {
        k->group[o] = groups;
        if (o < ranks)
            groups += tagci_sketch_groups(k->u.entry[o + 1] - k->u.entry[o]);
    }
    for (int o = 0; o < ranks; o++)
        tagci_sketch_exponents(wide(op), (char *)k->u.packed + k->u.entry[o] * width, k->u.entry[o + 1] - k->u.entry[o],
                               k->exponents + k->group[o], k->exponents + groups + k->group[o]);
    book(op, 2 * (ranks - 1.0) / ranks * 4 * (double)groups);
    return tagci_op_posted(op, tagci_mpi_allreduce(MPI_IN_PLACE, k->exponents, 2 * groups, MPI_UINT16_T, MPI_MAX,
                                                   op->comm->private, &op->request[op->n_requests]));
}

/* Is entry i of a part sent exactly? */
static int is_exact(const struct tagci_sketch *plan, const unsigned char *exceptional, size_t i)
{
    return exceptional[i / TAGCI_SKETCH_GROUP] || plan->undecoded[i / TAGCI_SKETCH_LANES];
}

static enum tagci_progress encode(struct tagci_op *op)
{
    struct sketch *k = op->state;
    size_t width = tagci_work_size(op->type), cells = 0, exact = 0;
    int ranks = op->geometry.ranks;
    const uint16_t *high = k->exponents, *low = high + k->group[ranks];
    for (int o = 0; o < ranks; o++) {
        size_t entries = k->u.entry[o + 1] - k->u.entry[o], rows = 0, group = k->group[o];
        const char *values = (char *)k->u.packed + k->u.entry[o] * width;
        struct tagci_sketch *plan = &op->plan[o == op->comm->rank];
        if (op->settings->compress_ratio > 0) {
            rows = (size_t)((double)tagci_part(&op->geometry, o) / op->settings->compress_ratio / TAGCI_SKETCH_LANES);
            size_t most = tagci_sketch_most_rows((entries + TAGCI_SKETCH_LANES - 1) / TAGCI_SKETCH_LANES);
            rows = rows < 3 ? 3 : rows > most ? most : rows;
        }
        if (tagci_sketch_plan(plan, entries, rows))
            return tagci_op_fail_text(op, MPI_ERR_NO_MEM, "no memory for the plan of a sketch");
        k->cell[o] = cells;
        k->exact_at[o] = exact;
        size_t few =
            tagci_sketch_exceptional(wide(op), ranks, high + group, low + group, entries, k->exceptional + group);
        tagci_sketch_encode(plan, wide(op), ranks, values, high + group, k->exceptional + group, k->ints,
                            (char *)k->cells + cells * width);
        cells += plan->rows * TAGCI_SKETCH_LANES;
        if (few || plan->decoded < plan->blocks)
            for (size_t i = 0; i < entries; i++)
                if (is_exact(plan, k->exceptional + group, i))
                    memcpy((char *)k->exact + width * exact++, values + width * i, width);
    }
    k->cell[ranks] = cells;
    k->exact_at[ranks] = exact;
    tagci_op_count(op, TAGC_STAT_RESENT, (double)exact);
    return TAGCI_THROUGH;
}

static enum tagci_progress reduce_cells(struct tagci_op *op)
{
    struct sketch *k = op->state;
    int ranks = op->geometry.ranks;
    tagci_counts_set(&k->counts, k->cell);
    book(op, (ranks - 1.0) / ranks * (double)(k->cell[ranks] * tagci_work_size(op->type)));
    return tagci_op_posted(op, tagci_mpi_reduce_scatter(k->cells, k->own_cells, &k->counts,
                                                        wide(op) ? MPI_UINT64_T : MPI_UINT32_T, MPI_SUM,
                                                        op->comm->private, &op->request[op->n_requests]));
}

static enum tagci_progress reduce_exact(struct tagci_op *op)
{
    struct sketch *k = op->state;
    int ranks = op->geometry.ranks;
    if (!k->exact_at[ranks])
        return TAGCI_THROUGH; /* on all ranks alike */
    tagci_counts_set(&k->counts, k->exact_at);
    book(op, (ranks - 1.0) / ranks * (double)(k->exact_at[ranks] * tagci_work_size(op->type)));
    return tagci_op_posted(op, tagci_mpi_reduce_scatter(k->exact, k->own_exact, &k->counts, tagci_union_type(op),
                                                        MPI_SUM, op->comm->private, &op->request[op->n_requests]));
}

static enum tagci_progress decode(struct tagci_op *op)
{
    struct sketch *k = op->state;
    int me = op->comm->rank, ranks = op->geometry.ranks;
    size_t width = tagci_work_size(op->type), entries = k->u.entry[me + 1] - k->u.entry[me], exact = 0;
    const unsigned char *exceptional = k->exceptional + k->group[me];
    tagci_sketch_decode(&op->plan[1], wide(op), ranks, k->own_cells, k->exponents + k->group[me], exceptional, k->ints,
                        k->u.sum);
    if (k->exact_at[me + 1] > k->exact_at[me])
        for (size_t i = 0; i < entries; i++)
            if (is_exact(&op->plan[1], exceptional, i))
                memcpy((char *)k->u.sum + width * i, (char *)k->own_exact + width * exact++, width);
    return TAGCI_THROUGH;
}

static const struct tagci_stage sketch_stages[] = {
    {sparsify, TAGCI_PHASE_ENCODE, 0},
    {merge, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {pack_and_post_exponents, TAGCI_PHASE_ENCODE, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {encode, TAGCI_PHASE_ENCODE, 0},
    {reduce_cells, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {reduce_exact, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {decode, TAGCI_PHASE_DECODE, 0},
    {gather, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {unpack, TAGCI_PHASE_DECODE, 0},
    TAGCI_STAGES_END,
};

const struct tagci_algorithm tagci_algorithm_sketch = {
    "sketch", TAGC_ALGORITHM_SKETCH, 1, sketch_room, sketch_reserve, sketch_lay_out, sketch_stages};
