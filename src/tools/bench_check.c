/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * One call judged: a reduction by a sum in double precision, a gather by MPI's. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/half.h"
#include "core/lossless.h"
#include "tools/bench_mpi.h"
#include "util/mem.h"

static double element(enum tagci_type type, const void *at, size_t i)
{
    switch (type) {
    case TAGCI_F64:
        return ((const double *)at)[i];
    case TAGCI_F32:
        return ((const float *)at)[i];
    case TAGCI_F16:
        return tagci_f16_to_f32(((const uint16_t *)at)[i]);
    default:
        return tagci_bf16_to_f32(((const uint16_t *)at)[i]);
    }
}

/* Residuals are of the work type. */
static double held(enum tagci_type type, const void *at, size_t i)
{
    return !at ? 0 : tagci_work_is_double(type) ? ((const double *)at)[i] : ((const float *)at)[i];
}

/* Roundings of a sum of so many terms and of its result, in units of the sum of magnitudes. */
static double tolerance(enum tagci_type type, int ranks)
{
    static const double result[TAGCI_TYPES] = {FLT_EPSILON, 0x1p-10, 0x1p-7, DBL_EPSILON};
    return (ranks + 8) * (tagci_work_is_double(type) ? DBL_EPSILON : FLT_EPSILON) + result[type];
}

/* The same for all ranks: whether any of them says so, and sums over them. */
static int any(int yes)
{
    MPI_Allreduce(MPI_IN_PLACE, &yes, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    return yes;
}

static double distance(double off, double length)
{
    double both[2] = {off, length};
    MPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return both[1] > 0 ? sqrt(both[0] / both[1]) : sqrt(both[0]);
}

enum { PIECE = 1 << 15 };

struct sums { /* of an element, over all ranks */
    double given, sent, size;
};

static int alike(double got, double sum, double most)
{
    return got == sum || (isnan(sum) ? isnan(got) : isfinite(sum) && fabs(got - sum) <= most);
}

static const char *check_reduction(struct bench_case *b, int i, double *error)
{
    const struct bench_options *o = b->o;
    enum tagci_type type = o->type;
    struct tagci_tensor *t = b->tensor != TAGC_TENSOR_NULL ? tagci_tensor_of(b->tensor) : NULL;
    size_t held_bytes = b->n * tagci_work_size(type);
    int remembers = t && t->residual && !t->residual_is_zero;
    int dropped = t && tagci_tensor_lossy(t) && !t->settings.error_feedback;
    void *before = remembers ? tagci_alloc(1, held_bytes) : NULL;
    struct sums *own = tagci_alloc(2 * PIECE, sizeof *own), *all = own + PIECE;
    if (any(!own || (remembers && !before)))
        return "no memory to check";
    if (before)
        memcpy(before, t->residual, held_bytes);
    bench_prepare(b, i);
    bench_call_tagc(b, i);
    const void *in = bench_input(b, i), *after = t && t->residual && !t->residual_is_zero ? t->residual : NULL;
    double off = 0, length = 0;
    int wrong = 0;
    for (int r = 0; r < b->ranks; r++)
        for (size_t at = 0; at < (size_t)b->counts[r]; at += PIECE) {
            size_t first = (size_t)b->displs[r] + at, n = (size_t)b->counts[r] - at;
            n = n < PIECE ? n : PIECE;
            for (size_t k = 0; k < n; k++) {
                double x = element(type, in, first + k), was = held(type, before, first + k),
                       is = held(type, after, first + k);
                own[k] = (struct sums){x, x + was - is, fabs(x) + fabs(was) + fabs(is)};
            }
            MPI_Reduce(own, all, 3 * (int)n, MPI_DOUBLE, MPI_SUM, r, MPI_COMM_WORLD);
            for (size_t k = 0; k < n && r == b->rank; k++) {
                double got = element(type, b->out, (o->what == TAGCI_ALLREDUCE ? first : at) + k);
                off += (got - all[k].given) * (got - all[k].given);
                length += all[k].given * all[k].given;
                wrong |= !alike(got, all[k].sent, tolerance(type, b->ranks) * all[k].size);
            }
        }
    tagci_free(own);
    tagci_free(before);
    *error = distance(off, length);
    if (any(wrong && !dropped))
        return "result and residuals do not add up to the inputs";
    if (o->what != TAGCI_ALLREDUCE)
        return NULL;
    uint32_t sum[2] = {tagci_crc32c(0, b->out, b->n * b->width)};
    sum[1] = ~sum[0];
    MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_UINT32_T, MPI_MAX, MPI_COMM_WORLD);
    return sum[0] != ~sum[1] ? "the ranks hold different results" : NULL;
}

static const char *check_gather(struct bench_case *b, int i, double *error)
{
    enum tagci_type type = b->o->type;
    struct tagci_tensor *t = b->tensor != TAGC_TENSOR_NULL ? tagci_tensor_of(b->tensor) : NULL;
    int rounds = t && t->settings.gather != TAGCI_GATHER_LOSSLESS && t->settings.gather != TAGCI_GATHER_NATIVE;
    void *expected = tagci_alloc(b->n, b->width);
    if (any(!expected))
        return "no memory to check";
    MPI_Allgatherv(bench_input(b, i), (int)b->own, b->datatype, expected, b->counts, b->displs, b->datatype,
                   MPI_COMM_WORLD);
    bench_prepare(b, i);
    bench_call_tagc(b, i);
    double off = 0, length = 0, largest = 0, worst = 0;
    for (size_t k = 0; k < b->n; k++) {
        double x = element(type, expected, k), d = fabs(element(type, b->out, k) - x);
        off += d * d;
        length += x * x;
        largest = fabs(x) > largest ? fabs(x) : largest;
        worst = d > worst ? d : worst;
    }
    int same = !b->n || !memcmp(expected, b->out, b->n * b->width);
    tagci_free(expected);
    *error = distance(off, length);
    return any(rounds ? worst > largest / 127 : !same) ? "the result is not what was sent" : NULL;
}

const char *bench_check(struct bench_case *b, int i, double *error)
{
    return tagci_is_gather(b->o->what) ? check_gather(b, i, error) : check_reduction(b, i, error);
}
