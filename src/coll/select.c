/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Which algorithm a call takes: what the settings force, else the cheapest by a model of bytes, messages and passes over
 * memory. Everything here is a fact that all ranks share: never a clock, never this rank's data. */
#include "coll/select.h"

#include <math.h>

#include "coll/nodes.h"
#include "core/index_coded.h"
#include "core/sample.h"
#include "core/value.h"

static const double worth = 0.9; /* of what MPI's own call takes: what is not cheaper than that may well be slower */
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

/* Bytes of an element's position, in a whole chunk. */
static double index_bytes(const struct tagci_op *op, double share_kept)
{
    size_t n = op->geometry.chunk, kept = (size_t)(share_kept * (double)n);
    enum tagci_index form = tagci_index_form((enum tagci_index)op->settings->index, n, kept);
    return (double)tagci_index_bytes(form, n, kept) / (double)n;
}

/* Computing and sending overlap in `direct` and in coded gathers over a network: the longer of the two counts, and a tenth of
 * the other. In shared memory the processor does both. */
static double together(const struct tagci_comm *c, double computing, double sending)
{
    return c->one_node ? computing + sending : fmax(computing, sending) + 0.1 * fmin(computing, sending);
}

static const struct tagci_link *link_of(const struct tagci_costs *costs, int one_node)
{
    return one_node ? &costs->node : &costs->network;
}

/* Ranks of a node share its link: what one sends waits for what the others send. */
static double sharers(const struct tagci_op *op)
{
    return op->comm->nodes ? op->comm->nodes->per_node : 1;
}

/* Messages one after the other in MPI's own reduce-scatter of so many bytes: a long one goes from rank to rank. */
static double rounds(const struct tagci_op *op, double bytes)
{
    int ranks = op->geometry.ranks;
    return op->args.collective != TAGCI_ALLREDUCE && bytes >= (512 << 10) ? ranks - 1 : ceil(log2(ranks));
}

/* Finding what is kept of n elements that are cut into so many parts. Of a sample few are looked at, but each run of them
 * is fetched from memory on its own: five times as much, measured. */
static double choosing(const struct tagci_op *op, double n, int parts)
{
    int64_t g = op->settings->granularity;
    double length = g == TAGCI_GRANULARITY_OWNER ? n / parts : g == TAGCI_GRANULARITY_TENSOR ? n : fmin((double)g, n);
    double kept = (1 - op->share) * length, looked = length;
    if (op->share <= 0 || length < 1)
        return 0;
    size_t runs =
        op->settings->selection == TAGCI_SELECTION_SAMPLED ? tagci_sample_runs((size_t)length, (size_t)kept) : 0;
    if (runs)
        looked = 5.0 * TAGCI_SAMPLE_RUN * (double)runs;
    return n * op->settings->costs.select * looked / length;
}

/* Encoding and decoding, of an element. The costs are those with an eighth kept; it is less where there is less to move. */
static double coding(const struct tagci_op *op)
{
    const struct tagci_costs *c = &op->settings->costs;
    double kept = 1 - op->share;
    return (c->encode + c->decode) * fmin(1, 0.55 + 3.6 * kept) +
           (tagci_value_blocked(op->settings->value) ? kept * c->round : 0);
}

/* MPI's own reduction, in a call with a tensor, takes a sixth longer than alone while a vector is short (measured).
 * Past 32 MiB its buffers are fresh memory in every call, as malloc gives such blocks back: a third of a nanosecond a byte. */
static double dense_seconds(const struct tagci_op *op, double byte)
{
    double bytes = (double)op->geometry.n * (double)tagci_work_size(op->type), seconds = bytes * byte;
    return bytes < (2 << 20) ? seconds * 7 / 6 : bytes > (32 << 20) ? seconds + 0.33e-9 * bytes : seconds;
}

/* A reduce-scatter of n elements by `direct` among so many ranks, of which `near` are of one node. */
static double direct_seconds(const struct tagci_op *op, double n, int ranks, int near)
{
    const struct tagci_costs *c = &op->settings->costs;
    const struct tagci_link *l = link_of(c, op->comm->one_node);
    double kept = 1 - op->share, index = op->share > 0 ? index_bytes(op, kept) : 0;
    double bytes = sharers(op) * n * (ranks - near) / ranks * (index + value_bytes(op) * kept);
    return (ranks - 1) * l->message + choosing(op, n, ranks) + together(op->comm, n * coding(op), bytes * l->byte);
}

static double seconds(const struct tagci_op *op, const struct tagci_algorithm *a)
{
    const struct tagci_costs *c = &op->settings->costs;
    struct tagci_link l = *link_of(c, op->comm->one_node);
    int ranks = op->geometry.ranks, all = op->args.collective == TAGCI_ALLREDUCE;
    double n = (double)op->geometry.n, near = sharers(op), remote = (ranks - near) / ranks, kept = 1 - op->share;
    double wide = (double)tagci_work_size(op->type);
    double together_kept = expected_union(kept, ranks), choose = choosing(op, n, ranks);
    l.byte *= near;
    l.dense *= near;
    /* The second half of an allreduce brings every rank the union. */
    double result = all ? n * remote * (0.125 + wide * together_kept) * l.byte + n * c->decode : 0;
    double united = n * wide * together_kept;
    switch (a->id) {
    case TAGC_ALGORITHM_DENSE:
        return rounds(op, n * wide) * l.message + dense_seconds(op, remote * (l.dense + (all ? l.byte : 0)));
    case TAGC_ALGORITHM_PACK:
        return (2 * ceil(log2(ranks)) + rounds(op, united)) * l.message + choose + n * (c->encode + 3 * c->decode) +
               result + remote * (0.25 * n * l.byte + united * l.dense);
    case TAGC_ALGORITHM_SKETCH:
        return (3 * ceil(log2(ranks)) + rounds(op, united)) * l.message + choose + n * (c->encode + 9 * c->decode) +
               result + remote * (0.25 * n * l.byte + 1.27 * united * l.dense);
    case TAGC_ALGORITHM_HIERARCHICAL: /* to give, to add, and to put residuals where they belong: a pass each */
        return 2 * c->node.message + n * (3 * c->decode + wide * (near - 1) / near * c->node.byte) +
               direct_seconds(op, n / near, op->comm->nodes->nodes, 1) + result;
    default:
        return direct_seconds(op, n, ranks, (int)near) + result;
    }
}

static const struct tagci_algorithm *by_setting(const struct tagci_op *op)
{
    switch (op->settings->algorithm) {
    case TAGCI_ALGORITHM_DENSE:
        return &tagci_algorithm_dense;
    case TAGCI_ALGORITHM_SKETCH:
        return &tagci_algorithm_sketch;
    case TAGCI_ALGORITHM_PACK:
        return &tagci_algorithm_pack;
    case TAGCI_ALGORITHM_DIRECT:
        return &tagci_algorithm_direct;
    case TAGCI_ALGORITHM_HIERARCHICAL: /* what it is where there is one node, or one rank on each */
        return op->comm->nodes ? &tagci_algorithm_hierarchical : &tagci_algorithm_direct;
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
    const struct tagci_algorithm *named = by_setting(op), *best = &tagci_algorithm_dense;
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
    const struct tagci_algorithm *others[] = {&tagci_algorithm_direct, &tagci_algorithm_hierarchical,
                                              &tagci_algorithm_pack, &tagci_algorithm_sketch};
    double least = worth * seconds(op, best);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        int id = others[i]->id;
        if (id == TAGC_ALGORITHM_HIERARCHICAL && !op->comm->nodes)
            continue;
        if ((id == TAGC_ALGORITHM_PACK || id == TAGC_ALGORITHM_SKETCH) && set->value != TAGCI_VALUE_NATIVE)
            continue; /* their sums cannot be rounded */
        double s = seconds(op, others[i]);
        if (s < least) {
            least = s;
            best = others[i];
        }
    }
    return best;
}

int tagci_select_lasts(const struct tagci_op *op)
{
    const struct tagci_settings *set = op->settings;
    return op->reason == TAGC_REASON_NAMED || op->reason == TAGC_REASON_SHORT ||
           (op->reason == TAGC_REASON_EXACT && !tagci_tensor_lossy(op->tensor)) ||
           (op->reason == TAGC_REASON_COST && set->sparsity.n <= 1);
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
    } else if (tagci_gather_pays(op->settings, op->comm, bytes, op->tensor != NULL)) {
        op->algorithm = &tagci_gather_coded;
        op->reason = TAGC_REASON_COST;
    } else {
        op->reason = bytes < least_gather ? TAGC_REASON_SHORT : TAGC_REASON_COST;
    }
}

/* Trained weights need about three quarters of their bytes, and a third where the last ones are remembered. Blocks go around
 * a ring, with a latency for each rank. */
int tagci_gather_pays(const struct tagci_settings *set, const struct tagci_comm *c, double bytes, int remembers)
{
    const struct tagci_link *l = link_of(&set->costs, c->one_node);
    double remote = (c->size - 1.0) / c->size, native = bytes * remote * l->byte;
    double coding = bytes * (set->costs.compress / c->size + set->costs.decompress * remote);
    double coded = together(c, coding, native * (remembers ? 0.35 : 0.75));
    return bytes >= least_gather && (c->size - 1) * l->message + coded < native;
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
    /* What was held back belongs to sums: another operation neither adds it nor takes it away. */
    op->residual_in = t && t->residual && !t->residual_is_zero && op->compressible;
    op->residual_out = t && t->residual && set->error_feedback && !dense;
}
