/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Reductions against MPI: every form x type x operation x algorithm x in place or not x communicator, with lengths and
 * kinds of data in turn. Integer-valued data gives MPI's bits, other data the sum within roundings that are counted.
 *
 * With TAGC_ALGORITHM in the environment the calls without a tensor travel that way too. */
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const algorithms[] = {"", "dense", "sketch", "pack", "direct", "auto"}; /* "": no tensor */
static const int algorithm_ids[] = {
    0, TAGC_ALGORITHM_DENSE, TAGC_ALGORITHM_SKETCH, TAGC_ALGORITHM_PACK, TAGC_ALGORITHM_DIRECT, 0};
/* case 26: no multiples of 8, 16, 32, 64, 1024 (and some that are, and none at all). */
static const size_t lengths[] = {0, 1, 5, 31, 64, 65, 127, 1000, 1023, 1025, 4099};

/* ---- What a call should give ---- */

struct expected {
    double value, tolerance; /* tolerance 0: these bits */
};

/* k roundings of the sum of magnitudes: one for each addition, four for each summand that a sketch turns into an
 * integer; one for a division, one into a 16-bit type. */
static struct expected expect(const struct t_job *job, int kind, int step, int sketched, size_t i)
{
    double sum = 0, magnitude = 0, tolerance = 0;
    for (int r = 0; r < job->size; r++) {
        double v = t_value(kind, job->type, r, step, i);
        sum += v;
        magnitude += fabs(v);
        tolerance += v != 0 && sketched && isfinite(v) ? 4 * t_half_unit(job->type, 0, v) : 0;
    }
    struct expected e = {t_finish(job->type, job->average, job->size, sum), 0};
    if (kind == T_INTEGERS || kind == T_ZEROS || !isfinite(e.value))
        return e;
    tolerance += job->size * t_half_unit(job->type, 0, magnitude);
    if (job->average)
        tolerance = tolerance / job->size + t_half_unit(job->type, 0, magnitude / job->size);
    e.tolerance = tolerance + t_half_unit(job->type, 1, fabs(e.value) + tolerance);
    return e;
}

static int as_expected(struct expected e, double got)
{
    if (isnan(e.value))
        return isnan(got);
    if (e.tolerance == 0 || isinf(e.value))
        return got == e.value && signbit(got) == signbit(e.value);
    return fabs(got - e.value) <= e.tolerance;
}

/* ---- One call ---- */

struct variant {
    int algorithm, in_place, kind, step;
};

/* Calls, and checks everything that a call may and may not write. */
static void check_call(const struct t_job *job, const struct variant *v, TAGC_Tensor tensor)
{
    const size_t width = t_size_of(job->type);
    struct t_buffer send, recv, copy;
    t_buffer_make(&send, v->in_place ? 0 : job->n * width);
    t_buffer_make(&recv, (v->in_place ? job->n : job->own) * width);
    t_buffer_make(&copy, job->n * width);
    t_fill(v->kind, job->type, job->rank, v->step, copy.at, job->n);
    if (job->n)
        memcpy(v->in_place ? recv.at : send.at, copy.at, job->n * width);

    OK(t_call(job, v->in_place ? MPI_IN_PLACE : send.at, recv.at, tensor));

    const char *named = getenv("TAGC_ALGORITHM"); /* comes before the tensor's own setting */
    if (!named && tensor != TAGC_TENSOR_NULL)
        named = algorithms[v->algorithm];
    int sketched = named && (!strcmp(named, "sketch") || !strcmp(named, "auto"));
    size_t wrong = 0;
    for (size_t i = 0; i < job->own; i++) {
        struct expected e = expect(job, v->kind, v->step, sketched, job->at + i);
        double got = t_get(job->type, recv.at, i);
        if (!as_expected(e, got) && !wrong++)
            CHECK(0, "element %zu of %zu at %zu: %.17g, not %.17g +- %g", i, job->own, job->at, got, e.value,
                  e.tolerance);
    }
    CHECK(wrong <= 1, "%zu of %zu elements are wrong", wrong, job->own);
    if (v->kind == T_INTEGERS && width > 2 && !job->average && !v->in_place && job->own) { /* MPI's own bits */
        struct t_buffer mpi;
        t_buffer_make(&mpi, job->own * width);
        OK(t_call_mpi(job, copy.at, mpi.at));
        CHECK(memcmp(mpi.at, recv.at, job->own * width) == 0, "not MPI's bits");
        t_buffer_free(&mpi);
    } else if (v->kind == T_INTEGERS && width > 2 && !job->average && !v->in_place) {
        OK(t_call_mpi(job, copy.at, NULL));
    }
    /* case 1: nothing else is written */
    if (v->in_place && job->n)
        CHECK(memcmp(recv.at + job->own * width, copy.at + job->own * width, (job->n - job->own) * width) == 0,
              "the input behind an in-place result was changed");
    else if (job->n)
        CHECK(memcmp(send.at, copy.at, job->n * width) == 0, "sendbuf was changed");
    CHECK(t_buffer_guarded(&send) && t_buffer_guarded(&recv), "written outside a buffer");
    t_buffer_free(&send);
    t_buffer_free(&recv);
    t_buffer_free(&copy);
}

static void run_case(const struct t_job *job, const struct variant *v)
{
    TAGC_Tensor tensor = TAGC_TENSOR_NULL;
    if (algorithms[v->algorithm][0]) {
        char settings[64];
        snprintf(settings, sizeof settings, "algorithm=%s", algorithms[v->algorithm]);
        tensor = t_tensor(job->comm, "v", job->n, job->type, settings);
    }
    check_call(job, v, tensor);
    if (tensor == TAGC_TENSOR_NULL)
        return;
    double id = t_stat(tensor, TAGC_STAT_ALGORITHM), norm = -1;
    if (algorithm_ids[v->algorithm] && job->size > 1 && !getenv("TAGC_ALGORITHM"))
        CHECK(id == algorithm_ids[v->algorithm], "went by algorithm %g", id);
    struct variant again = *v; /* nothing of the first call may be left over */
    again.step++;
    check_call(job, &again, tensor);
    OK(TAGC_Tensor_get_norm(tensor, &norm));
    CHECK(norm == 0, "a residual of norm %g, and nothing was to be held back", norm);
    CHECK(t_stat(tensor, TAGC_STAT_CALLS) == 2);
    CHECK(t_stat(tensor, TAGC_STAT_ELEMENTS) == 2.0 * (double)job->n);
    OK(TAGC_Tensor_free(&tensor));
    CHECK(tensor == TAGC_TENSOR_NULL);
}

/* All of the cross product; `every`: one in so many of its cases, spread over it. */
static void cross_product(unsigned every)
{
    static const int sizes[] = {T_FORMS, T_TYPES, 2, COUNT(algorithms), 2, T_COMMS, 2};
    unsigned total = 1;
    for (size_t d = 0; d < COUNT(sizes); d++)
        total *= (unsigned)sizes[d];
    for (unsigned c = 0; c < total; c += every) {
        int at[COUNT(sizes)];
        unsigned rest = (unsigned)((uint64_t)c * 7919 % total); /* coprime: each case once, in mixed order */
        for (size_t d = 0; d < COUNT(sizes); d++) {
            at[d] = (int)(rest % (unsigned)sizes[d]);
            rest /= (unsigned)sizes[d];
        }
        size_t n = lengths[(c * 31 / 7) % COUNT(lengths)];
        struct variant v = {at[3], at[4], at[6] ? T_INTEGERS : (int)(c / 3 % T_KINDS), (int)c};
        struct t_job job;
        t_job_make(&job, at[0], at[1], at[2], t_comm(at[5]), n);
        t_step("case %u: %s of %zu %s, %s, %s, %s, %s, %s data", c, t_form_names[at[0]], job.n, t_type_names[at[1]],
               at[2] ? "average" : "sum", algorithms[at[3]][0] ? algorithms[at[3]] : "no tensor",
               at[4] ? "in place" : "not in place", t_comm_names[at[5]], t_kind_names[v.kind]);
        run_case(&job, &v);
        t_job_free(&job);
    }
    t_agree();
}

/* ---- Single cases ---- */

/* Longer than a chunk of any algorithm. */
static void long_vectors(void)
{
    for (int form = 0; form < T_FORMS; form++)
        for (int a = 1; a < (int)COUNT(algorithms); a++) {
            struct t_job job;
            t_job_make(&job, form, (form + a) % T_TYPES, a % 2, t_comm(T_REVERSED), 150001);
            t_step("%s of %zu %s, %s", t_form_names[form], job.n, t_type_names[job.type], algorithms[a]);
            struct variant v = {a, form == 1, T_INTEGERS, a};
            run_case(&job, &v);
            t_job_free(&job);
        }
}

/* case 14: a float16 average over the ranks of 60000, and of 6e-8. */
static void averages_at_the_ends_of_float16(void)
{
    for (int a = 0; a < (int)COUNT(algorithms); a++)
        for (int form = 0; form < T_FORMS; form++) {
            t_step("case 14: %s, %s", t_form_names[form], algorithms[a]);
            struct t_job job;
            t_job_make(&job, form, T_F16, 1, MPI_COMM_WORLD, 400);
            struct t_buffer send, recv;
            t_buffer_make(&send, job.n * 2);
            t_buffer_make(&recv, job.own * 2);
            for (size_t i = 0; i < job.n; i++)
                t_set(T_F16, send.at, i, i % 2 ? 60000 : 6e-8);
            char settings[64];
            snprintf(settings, sizeof settings, "algorithm=%s", algorithms[a]);
            TAGC_Tensor t = a ? t_tensor(job.comm, "ends", job.n, T_F16, settings) : TAGC_TENSOR_NULL;
            OK(t_call(&job, send.at, recv.at, t));
            for (size_t i = 0; i < job.own; i++) {
                double got = t_get(T_F16, recv.at, i), want = t_round(T_F16, (job.at + i) % 2 ? 60000 : 6e-8);
                CHECK(got == want, "%g, not %g", got, want);
            }
            if (t != TAGC_TENSOR_NULL)
                OK(TAGC_Tensor_free(&t));
            t_buffer_free(&send);
            t_buffer_free(&recv);
            t_job_free(&job);
        }
}

/* case 15: what adds in rank order gives two vectors the same bits alone and joined. */
static void joined_vectors_have_the_same_bits(void)
{
    enum { A = 777, B = 1300 };
    t_step("case 15");
    static float x[A + B], alone[A + B], joined[A + B];
    t_fill(T_GAUSSIAN, T_F32, t_rank, 15, x, A + B);
    const struct {
        size_t at, n;
        float *out;
    } calls[] = {{0, A, alone}, {A, B, alone}, {0, A + B, joined}};
    for (int i = 0; i < 3; i++) {
        TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "joined", calls[i].n, T_F32, "algorithm=direct");
        OK(TAGC_Allreduce(x + calls[i].at, calls[i].out + calls[i].at, (int)calls[i].n, MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD, t));
        OK(TAGC_Tensor_free(&t));
    }
    CHECK(memcmp(alone, joined, sizeof alone) == 0);
    /* and all ranks the same: rule 3 */
    memcpy(alone, joined, sizeof alone);
    MPI_Bcast(alone, A + B, MPI_FLOAT, 0, MPI_COMM_WORLD);
    CHECK(memcmp(alone, joined, sizeof alone) == 0);
}

/* All ranks of an allreduce hold the same bits, and the same call gives them again. */
static void allreduce_is_the_same_everywhere(void)
{
    enum { N = 3001 };
    static double x[N], y[N], z[N];
    for (int a = 0; a < (int)COUNT(algorithms); a++)
        for (int type = 0; type < T_TYPES; type++)
            for (int lossy = 0; lossy < 2 && (a || !lossy); lossy++) {
                t_step("same bits: %s of %s%s", algorithms[a], t_type_names[type], lossy ? ", sparse" : "");
                char settings[64];
                snprintf(settings, sizeof settings, "algorithm=%s%s", algorithms[a], lossy ? " sparsity=0.7" : "");
                size_t bytes = N * t_size_of(type);
                t_fill(T_GAUSSIAN, type, t_rank, 3, x, N);
                for (int run = 0; run < 2; run++) {
                    TAGC_Tensor t = a ? t_tensor(MPI_COMM_WORLD, "same", N, type, settings) : TAGC_TENSOR_NULL;
                    OK(TAGC_Allreduce(x, run ? z : y, N, t_datatype(type), MPI_SUM, MPI_COMM_WORLD, t));
                    if (a)
                        OK(TAGC_Tensor_free(&t));
                }
                CHECK(memcmp(y, z, bytes) == 0, "two runs differ");
                memcpy(z, y, bytes);
                MPI_Bcast(z, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
                CHECK(memcmp(y, z, bytes) == 0, "ranks differ");
            }
}

/* Every name of float and double is compressed alike. */
static void names_of_types(void)
{
    static const struct {
        const char *name;
        size_t size;
    } names[] = {{"MPI_REAL", 4}, {"MPI_REAL4", 4}, {"MPI_DOUBLE_PRECISION", 8}, {"MPI_REAL8", 8}};
    const MPI_Datatype types[] = {MPI_REAL, MPI_REAL4, MPI_DOUBLE_PRECISION, MPI_REAL8};
    for (size_t k = 0; k < COUNT(names); k++) {
        t_step("%s", names[k].name);
        int size = 0;
        if (types[k] == MPI_DATATYPE_NULL || MPI_Type_size(types[k], &size) || (size_t)size != names[k].size)
            continue;
        int type = size == 4 ? T_F32 : T_F64;
        double x[40], y[40];
        t_fill(T_INTEGERS, type, t_rank, 1, x, 40);
        MPI_Info info = t_info("algorithm=pack");
        TAGC_Tensor t;
        OK(TAGC_Tensor_create(MPI_COMM_WORLD, names[k].name, 40, types[k], info, &t));
        MPI_Info_free(&info);
        OK(TAGC_Allreduce(x, y, 40, types[k], TAGC_AVG, MPI_COMM_WORLD, t));
        CHECK(t_size == 1 || t_stat(t, TAGC_STAT_ALGORITHM) == TAGC_ALGORITHM_PACK, "not compressed");
        for (size_t i = 0; i < 40; i++) {
            double sum = 0;
            for (int r = 0; r < t_size; r++)
                sum += t_value(T_INTEGERS, type, r, 1, i);
            CHECK(t_get(type, y, i) == t_finish(type, 1, t_size, sum));
        }
        OK(TAGC_Tensor_free(&t));
    }
}

/* case 21: a zero result from an input that is not zero does not happen silently. */
static void nothing_is_lost_silently(void)
{
    for (int a = 1; a < (int)COUNT(algorithms); a++) {
        t_step("case 21: %s", algorithms[a]);
        char settings[64];
        snprintf(settings, sizeof settings, "algorithm=%s verify=error", algorithms[a]);
        enum { N = 700 };
        static float x[N], y[N];
        TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "verified", N, T_F32, settings);
        for (int step = 0; step < 4; step++) {
            for (int i = 0; i < N; i++)
                x[i] = i % 100 == step ? (float)(t_rank + 1) : 0; /* a few only */
            OK(TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
            for (int i = 0; i < N; i++)
                CHECK(y[i] == (i % 100 == step ? (float)(t_size * (t_size + 1) / 2) : 0));
        }
        OK(TAGC_Tensor_free(&t));
    }
    /* a mean of the least bfloat16 numbers is rounded to one: not a difference */
    uint16_t least[64], mean[64];
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "least", 64, T_BF16, "algorithm=direct verify=error");
    for (int i = 0; i < 64; i++)
        least[i] = (uint16_t)(1 + t_rank);
    OK(TAGC_Allreduce(least, mean, 64, TAGC_BFLOAT16, TAGC_AVG, MPI_COMM_WORLD, t));
    for (int i = 0; i < 64; i++)
        CHECK(fabs(mean[i] - (t_size + 1) / 2.) <= 0.5, "%u", mean[i]);
    OK(TAGC_Tensor_free(&t));
}

/* case 20, the choice only: what MPI does as well or better inside a node, auto leaves to MPI, and says why. */
static void auto_leaves_to_mpi_what_is_mpi_s(void)
{
    static const size_t bytes[] = {1024, 65536, 16777216};
    const char *dir = getenv("TAGC_TEST_DIR");
    char path[400], settings[500];
    snprintf(path, sizeof path, "%s/choice.%d.trace", dir ? dir : "/tmp", t_rank);
    for (size_t k = 0; k < COUNT(bytes); k++) {
        t_step("case 20: %zu bytes", bytes[k]);
        if (k == 2 && t_size > 4)
            continue;
        size_t n = bytes[k] / 4;
        snprintf(settings, sizeof settings, "trace=%s", path);
        TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "choice", n, T_F32, settings);
        float *x = malloc(n * 4), *y = malloc(n * 4);
        for (size_t i = 0; i < n; i++)
            x[i] = 1;
        OK(TAGC_Allreduce(x, y, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
        CHECK(y[0] == (float)t_size && y[n - 1] == (float)t_size);
        CHECK(t_stat(t, TAGC_STAT_ALGORITHM) == TAGC_ALGORITHM_DENSE);
        OK(TAGC_Tensor_free(&t));
        free(x);
        free(y);
    }
    FILE *trace = fopen(path, "r");
    char line[2000];
    int reasons = 0;
    while (trace && fgets(line, sizeof line, trace))
        reasons += strstr(line, "dense") && strstr(line, "reason=");
    CHECK(reasons >= 2, "the trace does not say why dense was chosen");
    if (trace)
        fclose(trace);
    remove(path);
}

/* ---- Operations that are MPI's, on tensors that hold a residual ---- */

/* The larger one by its bytes, whatever the type. */
static void larger_bytes(void *in, void *inout, int *length, MPI_Datatype *type)
{
    int size;
    MPI_Type_size(*type, &size);
    for (int i = 0; i < *length; i++)
        if (memcmp((char *)in + i * size, (char *)inout + i * size, (size_t)size) > 0)
            memcpy((char *)inout + i * size, (char *)in + i * size, (size_t)size);
}

static int with_op(int form, int mpi, const void *send, void *recv, int part, MPI_Datatype type, MPI_Op op,
                   TAGC_Tensor t)
{
    int counts[64], n = part * t_size;
    for (int r = 0; r < t_size; r++)
        counts[r] = part;
    if (form == T_REDUCE_SCATTER)
        return mpi ? MPI_Reduce_scatter(send, recv, counts, type, op, MPI_COMM_WORLD)
                   : TAGC_Reduce_scatter(send, recv, counts, type, op, MPI_COMM_WORLD, t);
    if (form == T_REDUCE_SCATTER_BLOCK)
        return mpi ? MPI_Reduce_scatter_block(send, recv, part, type, op, MPI_COMM_WORLD)
                   : TAGC_Reduce_scatter_block(send, recv, part, type, op, MPI_COMM_WORLD, t);
    return mpi ? MPI_Allreduce(send, recv, n, type, op, MPI_COMM_WORLD)
               : TAGC_Allreduce(send, recv, n, type, op, MPI_COMM_WORLD, t);
}

/* MPI's result, and what is held back is neither in it nor lost. */
static void other_operations_leave_the_residual(void)
{
    enum { PART = 60 };
    static const char *const settings[] = {"algorithm=direct sparsity=0.9", "algorithm=pack sparsity=0.9",
                                           "algorithm=sketch sparsity=0.5", "algorithm=direct value=int8"};
    MPI_Op mine;
    MPI_Op_create(larger_bytes, 1, &mine);
    const MPI_Op ops[] = {mine, MPI_MAX, MPI_MIN, MPI_PROD};
    size_t n = (size_t)PART * (size_t)t_size;
    double *in = malloc(n * 8), *out = malloc(n * 8), *expected = malloc(n * 8), *held = malloc(n * 8);
    for (int type = 0; type < T_TYPES; type++)
        for (size_t o = 0; o < (type == T_F32 || type == T_F64 ? COUNT(ops) : 1); o++)
            for (int form = 0; form < T_FORMS; form++) {
                const char *s = settings[(o + (size_t)(type + form)) % COUNT(settings)];
                t_step("operation %zu of %s, %s, %s", o, t_type_names[type], t_form_names[form], s);
                MPI_Datatype datatype = t_datatype(type);
                TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "residual", n, type, s);
                t_fill(T_GAUSSIAN, type, t_rank, 0, in, n);
                OK(with_op(form, 0, in, out, PART, datatype, MPI_SUM, t));
                t_residual(t, type, n, held);
                double before = 0, after = 0;
                for (size_t i = 0; i < n; i++)
                    before += fabs(held[i]);
                CHECK(before > 0, "nothing was held back");
                t_fill(T_INTEGERS, type, t_rank, 1, in, n);
                memset(out, 0, n * 8);
                memset(expected, 0, n * 8);
                OK(with_op(form, 0, in, out, PART, datatype, ops[o], t));
                OK(with_op(form, 1, in, expected, PART, datatype, ops[o], t));
                CHECK(memcmp(out, expected, n * 8) == 0, "not MPI's result");
                t_residual(t, type, n, expected);
                for (size_t i = 0; i < n; i++)
                    after += fabs(held[i] - expected[i]);
                CHECK(after == 0, "the residual has changed");
                OK(TAGC_Tensor_free(&t));
            }
    MPI_Op_free(&mine);
    free(in);
    free(out);
    free(expected);
    free(held);
}

int main(int argc, char **argv)
{
    t_start(&argc, &argv, 30);
    unsigned every = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    cross_product(every ? every : 1);
    if (!getenv("TAGC_ALGORITHM")) { /* these name their own */
        long_vectors();
        averages_at_the_ends_of_float16();
        joined_vectors_have_the_same_bits();
        allreduce_is_the_same_everywhere();
        names_of_types();
        nothing_is_lost_silently();
        auto_leaves_to_mpi_what_is_mpi_s();
        other_operations_leave_the_residual();
    }
    return t_end();
}
