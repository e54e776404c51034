/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/verify.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coll/gather.h"
#include "coll/mpi.h"
#include "util/error.h"
#include "util/log.h"

struct tagci_verify {
    void *in;                 /* copy of the input, where the call is in place */
    double *sent, *sums;      /* what this rank sent; the sums of all ranks', */
    double *size, *size_sums; /* and the same for magnitudes */
    char *parts;              /* of a gather: the elements, part behind part */
    void *codes;              /* and, where it rounds, room for the codes of a part */
    int skip;
    struct tagci_counts counts;
    int64_t verdict;
};

static int wanted(const struct tagci_op *op)
{
    return op->settings->verify != TAGCI_VERIFY_OFF && (op->algorithm->cuts || op->algorithm == &tagci_gather_coded);
}

void tagci_verify_skip(struct tagci_op *op)
{
    if (op->verify)
        op->verify->skip = 1;
}

/* ---- gathers ---- */

static size_t codes_bytes(const struct tagci_op *op)
{
    size_t most = 0;
    for (int r = 0; r < op->geometry.ranks && tagci_gather_rounds(op); r++) {
        size_t bytes = tagci_round_state(tagci_gather_form(op), tagci_part(&op->geometry, r));
        most = bytes > most ? bytes : most;
    }
    return most;
}

static size_t parts_bytes(const struct tagci_op *op)
{
    return op->compressible ? tagci_mul(op->geometry.n, tagci_type_size(op->type)) : 0;
}

static enum tagci_progress gather_again(struct tagci_op *op)
{
    struct tagci_verify *v = op->verify;
    if (v->skip)
        return TAGCI_THROUGH;
    int me = op->comm->rank;
    size_t width = tagci_type_size(op->type), own = tagci_part(&op->geometry, me);
    char *mine = v->parts + op->geometry.offset[me] * width;
    if (own)
        memcpy(mine, op->in_place ? (char *)op->args.recvbuf + op->displ[me] * (MPI_Aint)width : op->in, own * width);
    tagci_counts_set(&v->counts, op->geometry.offset);
    return tagci_op_posted(op,
                           tagci_mpi_allgatherv(MPI_IN_PLACE, 0, op->args.datatype, v->parts, &v->counts,
                                                op->args.datatype, op->comm->private, &op->request[op->n_requests]));
}

/* The first element of a part that has other bits; its length if none has. */
static size_t first_difference(const char *a, const char *b, size_t n, size_t width)
{
    size_t i = 0;
    if (!n || !memcmp(a, b, n * width))
        return n;
    while (!memcmp(a + i * width, b + i * width, width))
        i++;
    return i;
}

static enum tagci_progress compare_parts(struct tagci_op *op)
{
    struct tagci_verify *v = op->verify;
    size_t width = tagci_type_size(op->type);
    v->verdict = 0;
    for (int r = 0; r < op->geometry.ranks && !v->verdict && !v->skip; r++) {
        size_t n = tagci_part(&op->geometry, r);
        char *want = v->parts + op->geometry.offset[r] * width;
        const char *got = (const char *)op->args.recvbuf + op->displ[r] * (MPI_Aint)width;
        if (tagci_gather_rounds(op) && !(op->in_place && r == op->comm->rank)) {
            tagci_round_codes(tagci_gather_form(op), op->type, want, n, v->codes);
            tagci_round_values(tagci_gather_form(op), op->type, v->codes, n, want);
        }
        size_t i = first_difference(want, got, n, width);
        if (i == n)
            continue;
        v->verdict = 1;
        tagci_log_warn_once(
            "verify: %s: tensor \"%s\": rank %d: element %zu of the part of rank %d has other bits than "
            "by MPI",
            op->args.call, tagci_op_tensor_name(op), op->comm->rank, i, r);
    }
    return TAGCI_THROUGH;
}

/* ---- reductions ---- */

static size_t result_length(const struct tagci_op *op)
{
    return op->args.collective == TAGCI_ALLREDUCE ? op->geometry.n : tagci_part(&op->geometry, op->comm->rank);
}

size_t tagci_verify_room(const struct tagci_op *op)
{
    if (!wanted(op))
        return 0;
    size_t bytes = tagci_op_piece(1, sizeof(struct tagci_verify)) + tagci_counts_room(op->geometry.ranks);
    if (tagci_is_gather(op->args.collective))
        return tagci_add(tagci_add(bytes, tagci_op_piece(1, parts_bytes(op))), tagci_op_piece(1, codes_bytes(op)));
    bytes = tagci_add(bytes, tagci_op_piece(op->geometry.n, tagci_type_size(op->type)));
    bytes = tagci_add(bytes, tagci_mul(2, tagci_op_piece(op->geometry.n, sizeof(double))));
    return tagci_add(bytes, tagci_mul(2, tagci_op_piece(result_length(op), sizeof(double))));
}

void tagci_verify_lay_out(struct tagci_op *op)
{
    op->verify = NULL;
    if (!wanted(op))
        return;
    struct tagci_verify *v = op->verify = tagci_op_take(op, 1, sizeof *v);
    tagci_counts_lay_out(op, &v->counts, op->geometry.ranks);
    v->skip = 0;
    if (tagci_is_gather(op->args.collective)) {
        v->parts = tagci_op_take(op, 1, parts_bytes(op));
        v->codes = tagci_op_take(op, 1, codes_bytes(op));
        return;
    }
    v->in = tagci_op_take(op, op->geometry.n, tagci_type_size(op->type));
    v->sent = tagci_op_take(op, op->geometry.n, sizeof(double));
    v->size = tagci_op_take(op, op->geometry.n, sizeof(double));
    v->sums = tagci_op_take(op, result_length(op), sizeof(double));
    v->size_sums = tagci_op_take(op, result_length(op), sizeof(double));
}

static enum tagci_progress keep_input(struct tagci_op *op)
{
    if (op->geometry.n)
        memcpy(op->verify->in, op->in, op->geometry.n * tagci_type_size(op->type));
    return TAGCI_THROUGH;
}

static double work_value(const struct tagci_op *op, const void *at, size_t i)
{
    return tagci_work_is_double(op->type) ? ((const double *)at)[i] : ((const float *)at)[i];
}

static double element(const struct tagci_op *op, const void *at, size_t i)
{
    if (tagci_type_size(op->type) > 2)
        return work_value(op, at, i);
    float f;
    tagcb_openmp.gather_input(NULL, op->type, (const char *)at + 2 * i, NULL, 1, &f);
    return f;
}

static int post(struct tagci_op *op, double *send, double *recv)
{
    MPI_Request *request = &op->request[op->n_requests];
    int code;
    if (op->args.collective == TAGCI_ALLREDUCE)
        code = tagci_mpi_allreduce(send, recv, op->geometry.n, MPI_DOUBLE, MPI_SUM, op->comm->private, request);
    else
        code =
            tagci_mpi_reduce_scatter(send, recv, &op->verify->counts, MPI_DOUBLE, MPI_SUM, op->comm->private, request);
    return tagci_op_posted(op, code) == TAGCI_FAILED;
}

/* What this call sent is what it had less what it held back. */
static enum tagci_progress reduce_again(struct tagci_op *op)
{
    struct tagci_verify *v = op->verify;
    for (size_t i = 0; i < op->geometry.n; i++) {
        double had = element(op, v->in, i);
        if (op->residual_in)
            had += work_value(op, op->residual, i);
        v->sent[i] = op->residual_out ? had - work_value(op, op->spare, i) : had;
        v->size[i] = isfinite(v->sent[i]) ? fabs(v->sent[i]) + fabs(had) : 0;
    }
    tagci_counts_set(&v->counts, op->geometry.offset);
    return post(op, v->sent, v->sums) || post(op, v->size, v->size_sums) ? TAGCI_FAILED : TAGCI_THROUGH;
}

/* Roundings of a sum of `ranks` terms, of the sketch's integers and of the result, in units of the sum of magnitudes. */
static double tolerance(const struct tagci_op *op)
{
    static const double result[TAGCI_TYPES] = {FLT_EPSILON, 0x1p-10, 0x1p-7, DBL_EPSILON};
    double work = tagci_work_is_double(op->type) ? DBL_EPSILON : FLT_EPSILON;
    return (op->geometry.ranks + 8) * work + result[op->type];
}

static enum tagci_progress compare_sums(struct tagci_op *op)
{
    struct tagci_verify *v = op->verify;
    static const double least[TAGCI_TYPES] = {0x1p-149, 0x1p-24, 0x1p-133, 0x1p-1074}; /* step of subnormal numbers */
    double scale = op->average ? 1.0 / op->geometry.ranks : 1, floor = least[op->type];
    double limit = op->type == TAGCI_F16 ? 65504 : op->type == TAGCI_F64 ? DBL_MAX : FLT_MAX;
    int lost = op->lossy && !op->residual_out; /* dropped on request: what was sent is not known any more */
    size_t n = lost ? 0 : result_length(op);
    int me = op->comm->rank;
    v->verdict = 0;
    for (size_t i = 0; i < n; i++) {
        double expected = v->sums[i] * scale, got = element(op, op->args.recvbuf, i);
        int same = isfinite(expected) && fabs(expected) <= limit
                       ? fabs(got - expected) <= tolerance(op) * v->size_sums[i] * scale + 2 * floor
                   : isnan(expected) ? isnan(got)
                                     : got == expected || !isfinite(got);
        if (same)
            continue;
        v->verdict = 1;
        tagci_log_warn_once(
            "verify: %s: tensor \"%s\": rank %d: element %zu of its result by %s is %.9g, MPI's is %.9g", op->args.call,
            tagci_op_tensor_name(op), me, i, op->algorithm->name, got, expected);
        break;
    }
    return TAGCI_THROUGH;
}

/* ---- both ---- */

static enum tagci_progress agree(struct tagci_op *op)
{
    return tagci_op_posted(op, tagci_mpi_allreduce(MPI_IN_PLACE, &op->verify->verdict, 1, MPI_INT64_T, MPI_MAX,
                                                   op->comm->private, &op->request[op->n_requests]));
}

static enum tagci_progress judge(struct tagci_op *op)
{
    if (op->verify->verdict && op->settings->verify == TAGCI_VERIFY_ERROR)
        return tagci_op_fail_text(op, TAGC_ERR_WIRE, "verify: the result differs from MPI's on some rank");
    return TAGCI_THROUGH;
}

static const struct tagci_stage none[] = {TAGCI_STAGES_END};
static const struct tagci_stage before[] = {{keep_input, TAGCI_PHASE_NONE, 0}, TAGCI_STAGES_END};
#define AFTER(again, compare)                                                                                          \
    {again, TAGCI_PHASE_NONE, 1}, {tagci_op_wait_requests, TAGCI_PHASE_NONE, 0}, {compare, TAGCI_PHASE_NONE, 0},       \
        {agree, TAGCI_PHASE_NONE, 1}, {tagci_op_wait_requests, TAGCI_PHASE_NONE, 0}, {judge, TAGCI_PHASE_NONE, 0},     \
        TAGCI_STAGES_END
static const struct tagci_stage after_reduction[] = {AFTER(reduce_again, compare_sums)};
static const struct tagci_stage after_gather[] = {AFTER(gather_again, compare_parts)};

const struct tagci_stage *tagci_verify_before(const struct tagci_op *op)
{
    return op->verify && !tagci_is_gather(op->args.collective) ? before : none;
}
const struct tagci_stage *tagci_verify_after(const struct tagci_op *op)
{
    return !op->verify ? none : tagci_is_gather(op->args.collective) ? after_gather : after_reduction;
}
