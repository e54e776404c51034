/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Which algorithm a call takes: what the settings force, else the cheapest by a model of bytes, messages and passes over
 * memory. Everything here is a fact that all ranks share: never a clock, never this rank's data. */
#include "coll/select.h"

#include <math.h>

/* Constants of the model, seconds. They describe an ordinary cluster node (one core a rank) and rank the algorithms; no
 * claim about this machine. */
static const double pass = 0.25e-9; /* a kernel's pass, per byte of gradient */
static const struct link {
    double message, byte;
} links[2] = {
    {10e-6, 1 / 1.25e9}, /* network: 10 Gbit/s a rank */
    {1e-6, 1 / 2.5e9},   /* shared memory: copied in and out */
};

static const double least_gather = 1 << 16; /* bytes of a gather that may be worth coding */

/* Share of elements that at least one rank keeps, supports being independent. */
static double expected_union(double kept, int ranks)
{
    return 1 - pow(1 - kept, ranks);
}

/* Bytes of a kept value on the wire, blocks' scales included. */
static double value_bytes(const struct tagci_op *op)
{
    static const double bytes[TAGCI_VALUES] = {0, 2, 2, 1 + 2.0 / 128, 0.5 + 2.0 / 128, 0.2 + 2.0 / 128};
    return op->settings->value == TAGCI_VALUE_NATIVE ? (double)tagci_type_size(op->type) : bytes[op->settings->value];
}

static double seconds(const struct tagci_op *op, const struct tagci_algorithm *a)
{
    const struct link *l = &links[op->comm->one_node != 0];
    int ranks = op->geometry.ranks;
    double n = (double)op->geometry.n, remote = (ranks - 1.0) / ranks, kept = 1 - op->share;
    double wide = (double)tagci_work_size(op->type), all = n * wide * pass, rounds = ceil(log2(ranks));
    /* The second half of an allreduce brings every rank the union. */
    double whole = op->args.collective == TAGCI_ALLREDUCE ? expected_union(kept, ranks) : 0;
    switch (a->id) {
    case TAGC_ALGORITHM_DENSE:
        return rounds * l->message + n * wide * remote * l->byte * (whole > 0 ? 2 : 1) + all * remote;
    case TAGC_ALGORITHM_PACK:
        return 3 * rounds * l->message + 4 * all +
               n * remote * (0.25 + wide * (expected_union(kept, ranks) + whole)) * l->byte;
    case TAGC_ALGORITHM_SKETCH:
        return 4 * rounds * l->message + 6 * all +
               n * remote * (0.25 + wide * (1.27 * expected_union(kept, ranks) + whole)) * l->byte;
    default: {
        double index = op->share > 0 ? 0.125 : 0;
        return (ranks - 1) * l->message + 3 * all +
               n * remote * (index + value_bytes(op) * kept + (whole > 0 ? 0.125 + wide * whole : 0)) * l->byte;
    }
    }
}

static const struct tagci_algorithm *by_setting(int id)
{
    switch (id) {
    case TAGCI_ALGORITHM_DENSE:
        return &tagci_algorithm_dense;
    case TAGCI_ALGORITHM_SKETCH:
        return &tagci_algorithm_sketch;
    case TAGCI_ALGORITHM_PACK:
        return &tagci_algorithm_pack;
    case TAGCI_ALGORITHM_DIRECT:
        return &tagci_algorithm_direct;
    default:
        return NULL;
    }
}

const char *tagci_reason(int reason)
{
    static const char *const texts[] = {"",
                                        "type or operation is not one that is compressed",
                                        "warm-up",
                                        "named by the settings",
                                        "nothing is held back or rounded",
                                        "short",
                                        "one rank",
                                        "cheapest by the cost model"};
    return texts[reason];
}

static const struct tagci_algorithm *choose(struct tagci_op *op, int64_t call)
{
    const struct tagci_settings *set = op->settings;
    const struct tagci_algorithm *named = by_setting(set->algorithm), *best = &tagci_algorithm_dense;
    op->reason = !op->compressible                         ? TAGC_REASON_TYPE
                 : op->tensor && call < set->warmup        ? TAGC_REASON_WARMUP
                 : named                                   ? TAGC_REASON_NAMED
                 : !op->lossy                              ? TAGC_REASON_EXACT
                 : op->geometry.n < (size_t)set->min_count ? TAGC_REASON_SHORT
                 : op->geometry.ranks == 1                 ? TAGC_REASON_ONE_RANK
                                                           : TAGC_REASON_COST;
    if (op->reason == TAGC_REASON_NAMED)
        return named;
    if (op->reason == TAGC_REASON_ONE_RANK)
        return &tagci_algorithm_direct;
    if (op->reason != TAGC_REASON_COST)
        return best;
    const struct tagci_algorithm *others[] = {&tagci_algorithm_direct, &tagci_algorithm_pack, &tagci_algorithm_sketch};
    double least = seconds(op, best);
    for (int i = 0; i < 3; i++) {
        if (set->value != TAGCI_VALUE_NATIVE && others[i]->id != TAGC_ALGORITHM_DIRECT)
            continue; /* only direct carries rounded values */
        double s = seconds(op, others[i]);
        if (s < least) {
            least = s;
            best = others[i];
        }
    }
    return best;
}

/* A gather is coded where its bytes are many and travel over a network, or where the user names how it travels. */
static void select_gather(struct tagci_op *op)
{
    int size, named = op->settings->source[TAGCI_SET_GATHER] != TAGCI_FROM_DEFAULT;
    MPI_Type_size(op->args.datatype, &size);
    double bytes = (double)op->geometry.n * size;
    op->lossy = op->residual_in = op->residual_out = 0;
    op->share = 0;
    op->algorithm = &tagci_gather_native;
    if (op->settings->gather == TAGCI_GATHER_NATIVE) {
        op->reason = TAGC_REASON_NAMED;
    } else if (op->geometry.ranks == 1 && op->settings->gather == TAGCI_GATHER_LOSSLESS) {
        op->reason = TAGC_REASON_ONE_RANK;
    } else if (named) {
        op->algorithm = &tagci_gather_coded;
        op->reason = TAGC_REASON_NAMED;
    } else if (tagci_gather_pays(op->comm, bytes)) {
        op->algorithm = &tagci_gather_coded;
        op->reason = TAGC_REASON_COST;
    } else {
        op->reason = bytes < least_gather ? TAGC_REASON_SHORT : TAGC_REASON_COST;
    }
}

int tagci_gather_pays(const struct tagci_comm *c, double bytes)
{
    return !c->one_node && bytes >= least_gather;
}

void tagci_select(struct tagci_op *op, int64_t call)
{
    if (tagci_is_gather(op->args.collective)) {
        select_gather(op);
        return;
    }
    struct tagci_tensor *t = op->tensor;
    const struct tagci_settings *set = op->settings;
    op->share = t ? tagci_settings_share(set, call) : 0;
    if (set->threshold > 0)
        op->share = 0; /* the threshold decides instead, and how much it keeps is not known beforehand */
    op->lossy = t && op->compressible && (op->share > 0 || set->threshold > 0 || set->value != TAGCI_VALUE_NATIVE);
    op->algorithm = choose(op, call);
    int dense = op->algorithm->id == TAGC_ALGORITHM_DENSE;
    op->residual_in = t && t->residual && !t->residual_is_zero;
    op->residual_out = t && t->residual && set->error_feedback && !dense;
}
