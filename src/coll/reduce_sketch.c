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
#include "coll/twin.h"
#include "core/sketch.h"

/* A plan as kernels see it: on a device, what they read of it is there. */
struct there {
    struct tagci_sketch plan;
    uint32_t *row_start, *row_blocks, *order, *pivot; /* data */
    uint32_t *round_start;
};

struct sketch {
    struct tagci_union u;
    size_t *group;       /* ranks + 1: first group of a part */
    uint16_t *exponents; /* high of all groups, then low */
    uint16_t *exponents_here;
    unsigned char *exceptional, *exceptional_here;
    void *ints; /* of one part */
    void *cells, *own_cells, *cells_here, *own_cells_here;
    size_t *cell, *exact_at; /* ranks + 1: first cell and first exact entry of a part */
    void *exact, *own_exact, *exact_here, *own_exact_here;
    uint32_t *exact_blocks; /* numbers of the blocks of all parts that are sent exactly */
    size_t own_exact_block, own_exact_blocks;
    struct there *there; /* of plan[0] and plan[1]; NULL on the host */
    struct tagci_counts counts;
};

static int wide(const struct tagci_op *op)
{
    return tagci_work_is_double(op->type);
}

static size_t blocks_of(size_t n)
{
    return (n + TAGCI_SKETCH_LANES - 1) / TAGCI_SKETCH_LANES;
}

/* Cells that a part of n elements can take. */
static size_t most_cells(size_t n)
{
    return tagci_sketch_most_rows(blocks_of(n)) * TAGCI_SKETCH_LANES;
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

static size_t most_blocks(const struct tagci_op *op)
{
    return op->geometry.n / TAGCI_SKETCH_LANES + (size_t)op->geometry.ranks;
}

/* Elements of the longest part that plan[own] is made for. */
static size_t planned_part(const struct tagci_op *op, int own)
{
    return own ? tagci_part(&op->geometry, op->comm->rank) : tagci_longest_part(&op->geometry);
}

static size_t sketch_room(const struct tagci_op *op)
{
    size_t ranks = op->geometry.ranks, width = tagci_work_size(op->type), own = planned_part(op, 1);
    size_t groups = most_groups(op), bytes = tagci_op_piece(1, sizeof(struct sketch));
    bytes = tagci_add(bytes, tagci_union_room(op));
    bytes += 3 * tagci_op_piece(ranks + 1, sizeof(size_t)) + tagci_op_piece(most_blocks(op), 4);
    bytes += tagci_op_twin(op, 2 * groups, 2) + tagci_op_twin(op, groups, 1);
    bytes = tagci_add(bytes, tagci_op_twin(op, most_cells_of_all(op), width));
    bytes = tagci_add(bytes, tagci_op_twin(op, most_cells(own), width));
    bytes = tagci_add(bytes, tagci_op_twin(op, op->geometry.n, width));
    bytes = tagci_add(bytes, tagci_op_twin(op, own, width));
    bytes = tagci_add(bytes, tagci_op_twin(op, 2, sizeof(struct there)));
    for (int i = 0; i < 2; i++)
        bytes = tagci_add(bytes, tagci_op_twin(op, blocks_of(planned_part(op, i)) + 1, 4));
    return tagci_add(bytes, tagci_counts_room((int)ranks));
}

static size_t sketch_data_room(const struct tagci_op *op)
{
    size_t width = tagci_work_size(op->type), own = planned_part(op, 1), groups = most_groups(op);
    size_t bytes = tagci_add(tagci_union_data_room(op), tagci_op_piece(2 * groups, 2) + tagci_op_piece(groups, 1));
    bytes = tagci_add(bytes, tagci_op_piece(planned_part(op, 0) + TAGCI_SKETCH_LANES, width));
    bytes = tagci_add(bytes, tagci_op_piece(most_cells_of_all(op), width));
    bytes = tagci_add(bytes, tagci_op_piece(most_cells(own), width));
    bytes = tagci_add(bytes, tagci_op_piece(op->geometry.n, width));
    bytes = tagci_add(bytes, tagci_op_piece(own, width));
    for (int i = 0; i < 2 && op->order; i++) {
        size_t blocks = blocks_of(planned_part(op, i));
        bytes = tagci_add(bytes, tagci_op_piece(tagci_sketch_most_rows(blocks) + 1, 4) + tagci_op_piece(blocks, 12) +
                                     2 * tagci_op_piece(blocks, 4));
    }
    return bytes;
}

static int sketch_reserve(struct tagci_op *op)
{
    return tagci_sketch_reserve(&op->plan[0], planned_part(op, 0)) ||
                   tagci_sketch_reserve(&op->plan[1], planned_part(op, 1))
               ? -1
               : 0;
}

static void sketch_lay_out(struct tagci_op *op)
{
    size_t ranks = op->geometry.ranks, width = tagci_work_size(op->type), own = planned_part(op, 1);
    size_t groups = most_groups(op);
    struct sketch *k = op->state = tagci_op_take(op, 1, sizeof *k);
    void *twin;
    tagci_union_lay_out(op, &k->u);
    k->group = tagci_op_take(op, ranks + 1, sizeof(size_t));
    k->cell = tagci_op_take(op, ranks + 1, sizeof(size_t));
    k->exact_at = tagci_op_take(op, ranks + 1, sizeof(size_t));
    k->exact_blocks = tagci_op_take(op, most_blocks(op), 4);
    k->exponents = tagci_op_take_twin(op, 2 * groups, 2, &twin);
    k->exponents_here = twin;
    k->exceptional = tagci_op_take_twin(op, groups, 1, &twin);
    k->exceptional_here = twin;
    k->ints = tagci_op_take_data(op, planned_part(op, 0) + TAGCI_SKETCH_LANES, width);
    k->cells = tagci_op_take_twin(op, most_cells_of_all(op), width, &k->cells_here);
    k->own_cells = tagci_op_take_twin(op, most_cells(own), width, &k->own_cells_here);
    k->exact = tagci_op_take_twin(op, op->geometry.n, width, &k->exact_here);
    k->own_exact = tagci_op_take_twin(op, own, width, &k->own_exact_here);
    k->there = op->order ? tagci_op_take(op, 2, sizeof *k->there) : NULL;
    for (int i = 0; i < 2 && k->there; i++) {
        struct there *t = &k->there[i];
        size_t blocks = blocks_of(planned_part(op, i));
        t->row_start = tagci_op_take_data(op, tagci_sketch_most_rows(blocks) + 1, 4);
        t->row_blocks = tagci_op_take_data(op, blocks, 12);
        t->order = tagci_op_take_data(op, blocks, 4);
        t->pivot = tagci_op_take_data(op, blocks, 4);
        t->round_start = tagci_op_take(op, blocks + 1, 4);
    }
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

/* Packed values of a part. */
static void *values_of(const struct tagci_op *op, int o)
{
    struct sketch *k = op->state;
    return (char *)k->u.packed + k->u.entry[o] * tagci_work_size(op->type);
}

static size_t entries_of(const struct tagci_op *op, int o)
{
    struct sketch *k = op->state;
    return k->u.entry[o + 1] - k->u.entry[o];
}

/* Packs, and merges the exponents of all groups. */
static enum tagci_progress pack_and_post_exponents(struct tagci_op *op)
{
    struct sketch *k = op->state;
    size_t groups = 0;
    int ranks = op->geometry.ranks;
    if (tagci_union_pack(op, &k->u) == TAGCI_FAILED)
        return TAGCI_FAILED;
    for (int o = 0; o <= ranks; o++) {
        k->group[o] = groups;
        if (o < ranks)
            groups += tagci_sketch_groups(entries_of(op, o));
    }
    for (int o = 0; o < ranks && !op->broken; o++)
        tagci_op_try(op,
                     op->backend->sketch_exponents(op->order, wide(op), values_of(op, o), entries_of(op, o),
                                                   k->exponents + k->group[o], k->exponents + groups + k->group[o]));
    if (!op->broken)
        tagci_op_try(op, tagci_op_bring(op, k->exponents_here, k->exponents, 4 * groups) || tagci_op_settle(op));
    book(op, 2 * (ranks - 1.0) / ranks * 4 * (double)groups);
    if (tagci_op_posted(op, tagci_mpi_allreduce(MPI_IN_PLACE, k->exponents_here, 2 * groups, MPI_UINT16_T, MPI_MAX,
                                                op->comm->private, &op->request[op->n_requests])) == TAGCI_FAILED)
        return TAGCI_FAILED;
    return tagci_op_tell(op);
}

/* The plan of a part as kernels see it; NULL: there is none. On a device what they read of it is on its way there. */
static const struct tagci_sketch *plan_of(struct tagci_op *op, int o)
{
    struct sketch *k = op->state;
    int own = o == op->comm->rank;
    struct tagci_sketch *plan = &op->plan[own];
    size_t entries = entries_of(op, o), rows = 0;
    if (op->settings->compress_ratio > 0) {
        rows = (size_t)((double)tagci_part(&op->geometry, o) / op->settings->compress_ratio / TAGCI_SKETCH_LANES);
        size_t most = tagci_sketch_most_rows(blocks_of(entries));
        rows = rows < 3 ? 3 : rows > most ? most : rows;
    }
    /* copies of the last one's arrays, and kernels that read its description, may still be to come */
    if (!op->broken)
        tagci_op_try(op, tagci_op_settle(op));
    if (tagci_sketch_plan(plan, entries, rows))
        return NULL;
    if (!k->there)
        return plan;
    struct there *t = &k->there[own];
    tagci_sketch_in_rounds(plan);
    t->plan = *plan;
    t->plan.row_start = t->row_start;
    t->plan.row_blocks = t->row_blocks;
    t->plan.order = t->order;
    t->plan.pivot = t->pivot;
    t->plan.round_start = memcpy(t->round_start, plan->round_start, 4 * (plan->rounds + 1));
    if (!op->broken)
        tagci_op_try(op, tagci_op_bring(op, t->row_start, plan->row_start, 4 * (plan->rows + 1)) ||
                             tagci_op_bring(op, t->row_blocks, plan->row_blocks, 12 * plan->blocks) ||
                             (own && (tagci_op_bring(op, t->order, plan->order, 4 * plan->decoded) ||
                                      tagci_op_bring(op, t->pivot, plan->pivot, 4 * plan->decoded))));
    return &t->plan;
}

/* Lists the blocks of a part that are sent exactly, and counts their entries. */
static size_t list_exact(const struct tagci_sketch *plan, const unsigned char *exceptional, uint32_t *list,
                         size_t *entries)
{
    size_t n = 0;
    *entries = 0;
    for (size_t b = 0; b < plan->blocks; b++)
        if (exceptional[b * TAGCI_SKETCH_LANES / TAGCI_SKETCH_GROUP] || plan->undecoded[b]) {
            size_t left = plan->entries - b * TAGCI_SKETCH_LANES;
            *entries += left < TAGCI_SKETCH_LANES ? left : TAGCI_SKETCH_LANES;
            list[n++] = (uint32_t)b;
        }
    return n;
}

static enum tagci_progress encode(struct tagci_op *op)
{
    struct sketch *k = op->state;
    size_t width = tagci_work_size(op->type), cells = 0, exact = 0, listed = 0;
    int ranks = op->geometry.ranks;
    const uint16_t *high = k->exponents_here, *low = high + k->group[ranks];
    for (int o = 0; o < ranks; o++)
        tagci_sketch_exceptional(wide(op), ranks, high + k->group[o], low + k->group[o], entries_of(op, o),
                                 k->exceptional_here + k->group[o]);
    tagci_op_try(op, tagci_op_bring(op, k->exponents, k->exponents_here, 2 * k->group[ranks]) ||
                         tagci_op_bring(op, k->exceptional, k->exceptional_here, k->group[ranks]));
    for (int o = 0; o < ranks; o++) {
        size_t entries = entries_of(op, o), group = k->group[o], of_part;
        const struct tagci_sketch *plan = plan_of(op, o);
        uint32_t *list = k->exact_blocks + listed;
        if (!plan)
            return tagci_op_fail_text(op, MPI_ERR_NO_MEM, "no memory for the plan of a sketch");
        k->cell[o] = cells;
        k->exact_at[o] = exact;
        size_t blocks = list_exact(plan, k->exceptional_here + group, list, &of_part);
        if (o == op->comm->rank) {
            k->own_exact_block = listed;
            k->own_exact_blocks = blocks;
        }
        if (!op->broken)
            tagci_op_try(
                op, op->backend->sketch_encode(op->order, plan, wide(op), ranks, values_of(op, o), k->exponents + group,
                                               k->exceptional + group, k->ints, (char *)k->cells + cells * width) ||
                        (blocks && op->backend->move_blocks(op->order, list, blocks, entries, width, values_of(op, o),
                                                            (char *)k->exact + exact * width, 0)));
        cells += plan->rows * TAGCI_SKETCH_LANES;
        exact += of_part;
        listed += blocks;
    }
    k->cell[ranks] = cells;
    k->exact_at[ranks] = exact;
    if (!op->broken)
        tagci_op_try(op, tagci_op_bring(op, k->cells_here, k->cells, cells * width) ||
                             tagci_op_bring(op, k->exact_here, k->exact, exact * width) || tagci_op_settle(op));
    tagci_op_count(op, TAGC_STAT_RESENT, (double)exact);
    return TAGCI_THROUGH;
}

static enum tagci_progress reduce_cells(struct tagci_op *op)
{
    struct sketch *k = op->state;
    int ranks = op->geometry.ranks;
    tagci_counts_set(&k->counts, k->cell);
    book(op, (ranks - 1.0) / ranks * (double)(k->cell[ranks] * tagci_work_size(op->type)));
    if (tagci_op_posted(op, tagci_mpi_reduce_scatter(k->cells_here, k->own_cells_here, &k->counts,
                                                     wide(op) ? MPI_UINT64_T : MPI_UINT32_T, MPI_SUM, op->comm->private,
                                                     &op->request[op->n_requests])) == TAGCI_FAILED)
        return TAGCI_FAILED;
    return tagci_op_tell(op);
}

static enum tagci_progress reduce_exact(struct tagci_op *op)
{
    struct sketch *k = op->state;
    int ranks = op->geometry.ranks;
    if (!k->exact_at[ranks])
        return TAGCI_THROUGH; /* on all ranks alike */
    tagci_counts_set(&k->counts, k->exact_at);
    book(op, (ranks - 1.0) / ranks * (double)(k->exact_at[ranks] * tagci_work_size(op->type)));
    return tagci_op_posted(op,
                           tagci_mpi_reduce_scatter(k->exact_here, k->own_exact_here, &k->counts, tagci_union_type(op),
                                                    MPI_SUM, op->comm->private, &op->request[op->n_requests]));
}

static enum tagci_progress decode(struct tagci_op *op)
{
    struct sketch *k = op->state;
    int me = op->comm->rank, ranks = op->geometry.ranks;
    size_t width = tagci_work_size(op->type), exact = k->exact_at[me + 1] - k->exact_at[me];
    tagci_op_try(
        op, tagci_op_bring(op, k->own_cells, k->own_cells_here, (k->cell[me + 1] - k->cell[me]) * width) ||
                tagci_op_bring(op, k->own_exact, k->own_exact_here, exact * width) ||
                op->backend->sketch_decode(op->order, k->there ? &k->there[1].plan : &op->plan[1], wide(op), ranks,
                                           k->own_cells, k->exponents + k->group[me], k->exceptional + k->group[me],
                                           k->ints, k->u.sum) ||
                (exact && op->backend->move_blocks(op->order, k->exact_blocks + k->own_exact_block, k->own_exact_blocks,
                                                   entries_of(op, me), width, k->u.sum, k->own_exact, 1)));
    return TAGCI_THROUGH;
}

static const struct tagci_stage sketch_stages[] = {
    {sparsify, TAGCI_PHASE_ENCODE, 0},
    {merge, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {tagci_op_hear, TAGCI_PHASE_NONE, 0},
    {pack_and_post_exponents, TAGCI_PHASE_ENCODE, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {tagci_op_hear, TAGCI_PHASE_NONE, 0},
    {encode, TAGCI_PHASE_ENCODE, 0},
    {reduce_cells, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {tagci_op_hear, TAGCI_PHASE_NONE, 0},
    {reduce_exact, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {tagci_op_hear, TAGCI_PHASE_NONE, 0},
    {decode, TAGCI_PHASE_DECODE, 0},
    {gather, TAGCI_PHASE_COMM, 1},
    {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},
    {tagci_op_hear, TAGCI_PHASE_NONE, 0},
    {unpack, TAGCI_PHASE_DECODE, 0},
    TAGCI_STAGES_END,
};

const struct tagci_algorithm tagci_algorithm_sketch = {.name = "sketch",
                                                       .id = TAGC_ALGORITHM_SKETCH,
                                                       .cuts = 1,
                                                       .room = sketch_room,
                                                       .data_room = sketch_data_room,
                                                       .reserve = sketch_reserve,
                                                       .lay_out = sketch_lay_out,
                                                       .stages = sketch_stages,
                                                       .on_device = &tagci_algorithm_sketch,
                                                       .takes = TAGCI_BY_PART};
