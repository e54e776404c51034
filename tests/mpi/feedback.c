/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Error feedback: what a tensor holds back, and that nothing is lost. After every step each rank's residual shows what
 * that rank sent, and the sum of it over ranks has to be the result. */
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Settings of a run, read back from their text ---- */

static const char *setting(const char *settings, const char *name)
{
    static char value[80];
    size_t length = strlen(name);
    for (const char *at = settings; (at = strstr(at, name)); at += length)
        if ((at == settings || at[-1] == ' ') && at[length] == '=') {
            snprintf(value, sizeof value, "%.*s", (int)strcspn(at + length + 1, " "), at + length + 1);
            return value;
        }
    return NULL;
}

static double number(const char *settings, const char *name, double otherwise)
{
    const char *value = setting(settings, name);
    return value ? atof(value) : otherwise;
}

/* ---- A run ---- */

struct run {
    const struct t_job *job;
    const char *settings;
    int kind, in_place, dense, native;
    double share, threshold;
    size_t stretch; /* 0: owners' parts */
    TAGC_Tensor tensor;
    struct t_buffer send, recv;
    double *in, *before, *after, *v; /* of this rank */
    double *sums;                    /* over ranks: sent, tolerance */
    double *acc_tolerance, *acc_own; /* over steps */
    long double *acc_in, *acc_out;   /* wider than what they add, so that the check's own rounding does not count */
};

static double to_work(int type, double x)
{
    return type == T_F64 ? x : (double)(float)x;
}

/* How far a kept value may lie from the form that it travels in. */
static double rounding(const struct run *r, double v, double largest)
{
    const char *form = setting(r->settings, "value");
    if (!form || !strcmp(form, "native"))
        return r->job->type == T_F16 || r->job->type == T_BF16 ? t_half_unit(r->job->type, 1, v) : 0;
    if (!strcmp(form, "bfloat16"))
        return t_half_unit(T_BF16, 1, v);
    if (!strcmp(form, "float16"))
        return fabs(v) > 65504 ? fabs(v) : t_half_unit(T_F16, 1, v);
    return largest;
}

struct stretch_facts {
    size_t n, nonzero, nonfinite, kept;
    double least_kept, most_held;
    size_t last_tie_kept, first_tie_held;
};

static int is_kept(const struct run *r, size_t i)
{
    return r->v[i] != 0 && r->after[i] != r->v[i];
}

/* The share is reached, by the largest magnitudes, ties in the order of their positions. Only where a residual that is not
 * the value shows that a value was kept. */
static void check_stretch(const struct run *r, size_t begin, size_t end)
{
    struct stretch_facts f = {end - begin, 0, 0, 0, INFINITY, 0, 0, SIZE_MAX};
    for (size_t i = begin; i < end; i++) {
        f.nonzero += r->v[i] != 0;
        f.nonfinite += !isfinite(r->v[i]);
        if (is_kept(r, i)) {
            f.kept++;
            if (fabs(r->v[i]) < f.least_kept)
                f.least_kept = fabs(r->v[i]);
        } else if (fabs(r->v[i]) > f.most_held) {
            f.most_held = fabs(r->v[i]);
        }
    }
    CHECK(!(f.most_held > f.least_kept), "%.17g was held back, %.17g kept", f.most_held, f.least_kept);
    if (r->threshold > 0) {
        CHECK(f.most_held < r->threshold && f.least_kept >= r->threshold, "threshold %g: held %.17g, kept %.17g",
              r->threshold, f.most_held, f.least_kept);
        return;
    }
    double wanted = (double)f.n * (1 - r->share);
    if (wanted < (double)f.nonfinite)
        wanted = (double)f.nonfinite;
    if (wanted > (double)f.nonzero)
        wanted = (double)f.nonzero;
    CHECK(fabs((double)f.kept - wanted) <= fmax(1, 0.005 * wanted), "%zu of %zu kept (%zu not zero), wanted %g", f.kept,
          f.n, f.nonzero, wanted);
    if (f.most_held == f.least_kept) {
        for (size_t i = begin; i < end; i++)
            if (fabs(r->v[i]) == f.most_held) {
                if (is_kept(r, i))
                    f.last_tie_kept = i;
                else if (f.first_tie_held == SIZE_MAX)
                    f.first_tie_held = i;
            }
        CHECK(f.last_tie_kept < f.first_tie_held, "tie at %zu kept, at %zu held back", f.last_tie_kept,
              f.first_tie_held);
    }
}

static void check_share(const struct run *r)
{
    const struct t_job *job = r->job;
    const char *value = setting(r->settings, "value");
    if (r->dense || (value && strcmp(value, "native")) || job->type == T_F16 || job->type == T_BF16)
        return;
    if (r->stretch) {
        for (size_t at = 0; at < job->n; at += r->stretch)
            check_stretch(r, at, at + r->stretch < job->n ? at + r->stretch : job->n);
    } else if (job->form != T_ALLREDUCE) {
        size_t at = 0;
        for (int o = 0; o < job->size; at += (size_t)job->counts[o++])
            check_stretch(r, at, at + (size_t)job->counts[o]);
    }
}

/* Rule 4 on this rank: the residual is the value, or what its form could not hold; of Inf and NaN nothing stays. */
static void check_residual(const struct run *r)
{
    double largest = 0;
    size_t wrong = 0;
    for (size_t i = 0; i < r->job->n; i++)
        if (isfinite(r->v[i]) && fabs(r->v[i]) > largest)
            largest = fabs(r->v[i]);
    for (size_t i = 0; i < r->job->n; i++) {
        double v = r->v[i], after = r->after[i];
        int right = !isfinite(v) ? after == 0
                    : r->dense   ? after == 0
                                 : after == v || fabs(after) <= rounding(r, v, largest);
        if (!right && !wrong++)
            CHECK(0, "residual %zu: %.17g of %.17g", i, after, v);
        wrong += right && after == 0 && signbit(after);
    }
    CHECK(wrong == 0, "%zu residuals are wrong (or -0)", wrong);
}

/* What the ranks sent, and what came out. */
static void check_result(struct run *r)
{
    const struct t_job *job = r->job;
    const char *algorithm = setting(r->settings, "algorithm");
    int sketched = !algorithm || !strcmp(algorithm, "sketch") || !strcmp(algorithm, "auto");
    int exact = (job->type == T_F32 || job->type == T_F64) && r->native && !job->average &&
                (r->kind == T_INTEGERS || r->kind == T_SUBNORMAL || r->kind == T_ZEROS);
    double *sent = r->sums, *magnitude = r->sums + job->n, *tolerance = r->sums + 2 * job->n;
    for (size_t i = 0; i < job->n; i++) {
        double v = r->v[i];
        sent[i] = isfinite(v) ? v - r->after[i] : v;
        magnitude[i] = isfinite(v) ? fabs(sent[i]) : 0;
        tolerance[i] = !isfinite(v) || sent[i] == 0 ? 0
                                                    : (sketched ? 4 * t_half_unit(job->type, 0, v) : 0) +
                                                          (r->native ? 0 : t_half_unit(job->type, 0, v));
        r->acc_own[i] += isfinite(v) ? t_half_unit(job->type, 0, v) : 0; /* of v = in + residual */
    }
    MPI_Allreduce(MPI_IN_PLACE, r->sums, (int)(3 * job->n), MPI_DOUBLE, MPI_SUM, job->comm);
    size_t wrong = 0;
    for (size_t i = 0; i < job->own; i++) {
        size_t at = job->at + i;
        double got = t_get(job->type, r->recv.at, i), want = sent[at];
        double t = exact ? 0 : tolerance[at] + job->size * t_half_unit(job->type, 0, magnitude[at]);
        if (job->average) {
            want /= job->size;
            t = t / job->size + t_half_unit(job->type, 0, want);
        }
        if (!exact)
            t += t_half_unit(job->type, 1, fabs(want) + t);
        int right = isnan(want) ? isnan(got) : isinf(want) ? got == want : fabs(got - want) <= t;
        if (right && want == 0 && magnitude[at] == 0) /* nobody sent anything: a zero, and a plain one */
            right = got == 0 && !signbit(got);
        if (!right && !wrong++)
            CHECK(0, "element %zu: %.17g, the ranks sent %.17g, tolerance %g", at, got, want, t);
        double factor = job->average ? job->size : 1;
        r->acc_out[at] += got * factor;
        r->acc_tolerance[at] += t * factor;
    }
    CHECK(wrong <= 1, "%zu of %zu elements are wrong", wrong, job->own);
}

static void one_step(struct run *r, int step)
{
    const struct t_job *job = r->job;
    const size_t width = t_size_of(job->type);
    void *input = r->in_place ? r->recv.at : r->send.at;
    if (job->n)
        t_fill(r->kind, job->type, job->rank, step, input, job->n);
    for (size_t i = 0; i < job->n; i++) {
        r->in[i] = t_get(job->type, input, i);
        r->v[i] = to_work(job->type, r->in[i] + r->before[i]);
        r->acc_in[i] += r->in[i];
    }
    OK(t_call(job, r->in_place ? MPI_IN_PLACE : r->send.at, r->recv.at, r->tensor));
    CHECK(t_buffer_guarded(&r->send) && t_buffer_guarded(&r->recv), "written outside a buffer");
    for (size_t i = r->in_place ? job->own : 0; i < job->n; i++) { /* input that stays */
        double now = t_get(job->type, input, i);
        if (!(now == r->in[i] || (isnan(now) && isnan(r->in[i])))) {
            CHECK(0, "the input was changed at %zu", i);
            break;
        }
    }
    (void)width;
    r->dense = t_stat(r->tensor, TAGC_STAT_ALGORITHM) == TAGC_ALGORITHM_DENSE;
    t_residual(r->tensor, job->type, job->n, r->after);
    check_residual(r);
    check_share(r);
    check_result(r);
    double *swap = r->before;
    r->before = r->after;
    r->after = swap;
}

/* Runs so many steps, checks each, and then their sum: inputs - outputs - residuals = rounding. */
static void run_steps(const struct t_job *job, const char *settings, int kind, int in_place, int steps)
{
    struct run run = {job,  settings, kind, in_place, 0,    0,    0,    0,    0,   TAGC_TENSOR_NULL, {0}, {0},
                      NULL, NULL,     NULL, NULL,     NULL, NULL, NULL, NULL, NULL};
    struct run *r = &run;
    const size_t n = job->n, width = t_size_of(job->type);
    const char *granularity = setting(settings, "granularity");
    r->stretch = !granularity || !strcmp(granularity, "owner") ? 0
                 : !strcmp(granularity, "tensor")              ? n
                                                               : (size_t)atoi(granularity);
    r->share = number(settings, "sparsity", 0);
    r->threshold = number(settings, "threshold", 0);
    r->native = !setting(settings, "value");
    double **arrays[] = {&r->in, &r->before, &r->after, &r->v, &r->acc_tolerance, &r->acc_own};
    for (size_t k = 0; k < COUNT(arrays); k++)
        *arrays[k] = calloc(n + 1, sizeof(double));
    r->acc_in = calloc(n + 1, sizeof(long double));
    r->acc_out = calloc(n + 1, sizeof(long double));
    r->sums = calloc(3 * n + 1, sizeof(double));
    t_buffer_make(&r->send, in_place ? 0 : n * width);
    t_buffer_make(&r->recv, (in_place ? n : job->own) * width);
    r->tensor = t_tensor(job->comm, "feedback", n, job->type, settings);
    int failed = t_failed_here();
    for (int step = 0; step < steps; step++)
        one_step(r, step);
    double norm = 0, expected = 0;
    for (size_t i = 0; i < n; i++)
        expected = hypot(expected, r->before[i]);
    OK(TAGC_Tensor_get_norm(r->tensor, &norm));
    CHECK(fabs(norm - expected) <= 1e-9 * expected, "norm %.17g, not %.17g", norm, expected);
    if (kind != T_NONFINITE) {
        for (size_t i = 0; i < n; i++)
            r->acc_in[i] -= r->before[i];
        MPI_Allreduce(MPI_IN_PLACE, r->acc_in, (int)n, MPI_LONG_DOUBLE, MPI_SUM, job->comm);
        MPI_Allreduce(MPI_IN_PLACE, r->acc_own, (int)n, MPI_DOUBLE, MPI_SUM, job->comm);
        for (size_t i = 0; i < job->own; i++) {
            size_t at = job->at + i;
            double in = (double)r->acc_in[at], out = (double)r->acc_out[at];
            double t = r->acc_tolerance[at] + r->acc_own[at] + 1e-14 * fabs(out);
            if (!(fabs((double)(r->acc_in[at] - r->acc_out[at])) <= t)) {
                CHECK(0, "case 18: element %zu: %.17g went in, %.17g came out, tolerance %g", at, in, out, t);
                break;
            }
        }
    }
    if (t_failed_here() > failed)
        CHECK(0, "that was with %s, %zu x %s, %s data", settings, n, t_type_names[job->type], t_kind_names[kind]);
    OK(TAGC_Tensor_free(&r->tensor));
    for (size_t k = 0; k < COUNT(arrays); k++)
        free(*arrays[k]);
    free(r->acc_in);
    free(r->acc_out);
    free(r->sums);
    t_buffer_free(&r->send);
    t_buffer_free(&r->recv);
}

static void run_in(int form, int type, int average, int comm, size_t n, const char *settings, int kind, int in_place,
                   int steps)
{
    struct t_job job;
    t_job_make(&job, form, type, average, t_comm(comm), n);
    t_step("%d steps of %s, %zu x %s%s, %s, %s, %s data%s", steps, t_form_names[form], job.n, t_type_names[type],
           average ? ", average" : "", settings, t_comm_names[comm], t_kind_names[kind], in_place ? ", in place" : "");
    run_steps(&job, settings, kind, in_place, steps);
    t_job_free(&job);
}

/* ---- The table ---- */

static const char *const ways[] = {
    "algorithm=dense sparsity=0.8",
    "algorithm=direct sparsity=0.8",
    "algorithm=pack sparsity=0.8",
    "algorithm=sketch sparsity=0.8",
    "algorithm=direct sparsity=0.9 value=bfloat16",
    "algorithm=direct sparsity=0.9 value=float16",
    "algorithm=direct sparsity=0.5 value=int8",
    "algorithm=direct sparsity=0.8 value=int4",
    "algorithm=direct sparsity=0.5 value=ternary",
    "algorithm=direct value=bfloat16",
    "algorithm=direct value=int8",
    "algorithm=direct value=int4",
    "algorithm=direct value=ternary",
    "algorithm=direct sparsity=0.95 granularity=tensor",
    "algorithm=pack sparsity=0.75 granularity=100",
    "algorithm=sketch sparsity=0.5 granularity=33",
    "algorithm=direct sparsity=0.9 granularity=7",
    "algorithm=direct threshold=0.7",
    "algorithm=pack threshold=0.002",
    "algorithm=sketch threshold=1.5",
    "algorithm=direct sparsity=0.9999",
    "sparsity=0.9",
};

/* case 18: 200 steps each way. The form and type change from one way to the next. */
static void many_steps_each_way(int steps)
{
    for (int w = 0; w < (int)COUNT(ways); w++)
        run_in(w % T_FORMS, w % 5 < 3 ? w % 2 : 2 + w % 2, w % 7 == 3, w % 4, w % 5 == 0 ? 1501 : 700, ways[w],
               w % 3 ? T_GAUSSIAN : T_LAPLACE, w % 2, steps);
}

/* Every way with every kind of data, a few steps. case 23: subnormals; case 25: NaN beyond the share; case 27: scale. */
static void every_kind_each_way(void)
{
    for (int w = 0; w < (int)COUNT(ways); w++)
        for (int kind = 0; kind < T_KINDS; kind++) {
            int c = w * T_KINDS + kind;
            run_in(c / 2 % T_FORMS, (c / 3) % T_TYPES, c % 11 == 5, c % T_COMMS, 611, ways[w], kind, c / 2 % 2, 3);
        }
    /* what a share or value is checked by needs the native form: both wide types with all algorithms and kinds */
    static const char *const algorithms[] = {"direct", "pack", "sketch"};
    for (int a = 0; a < 3; a++)
        for (int kind = 0; kind < T_KINDS; kind++)
            for (int type = T_F32; type <= T_F64; type++) {
                char settings[100];
                snprintf(settings, sizeof settings, "algorithm=%s sparsity=%s granularity=%s", algorithms[a],
                         kind == T_NONFINITE ? "0.999" : "0.7", (a + kind) % 2 ? "owner" : "tensor");
                run_in((a + kind + type) % T_FORMS, type, 0, T_WORLD, 1500, settings, kind, type, 4);
            }
}

/* case 5: one rank alone sparsifies as asked, keeps the law, and sends nothing. */
static void one_rank_alone(void)
{
    static const char *const algorithms[] = {"direct", "pack", "sketch", "auto"};
    for (int a = 0; a < 4; a++)
        for (int in_place = 0; in_place < 2; in_place++)
            for (int form = 0; form < T_FORMS; form++) {
                char settings[100];
                snprintf(settings, sizeof settings, "algorithm=%s sparsity=0.75 granularity=tensor", algorithms[a]);
                run_in(form, T_F32, 0, T_SELF, a == 3 ? 20000 : 1000, settings, T_GAUSSIAN, in_place, 5);
                t_step("case 5: nothing sent, %s", settings);
                float x[100], y[100];
                t_fill(T_GAUSSIAN, T_F32, t_rank, 0, x, 100);
                TAGC_Tensor t = t_tensor(MPI_COMM_SELF, "alone", 100, T_F32, settings);
                OK(TAGC_Allreduce(x, y, 100, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, t));
                CHECK(t_stat(t, TAGC_STAT_BYTES_SENT) == 0, "%g bytes sent", t_stat(t, TAGC_STAT_BYTES_SENT));
                OK(TAGC_Tensor_free(&t));
            }
}

/* Enough elements for several chunks, stretches that cross them, ties that are cut short. */
static void long_vectors(void)
{
    run_in(T_REDUCE_SCATTER, T_F32, 0, T_WORLD, 150001, "algorithm=direct sparsity=0.9 granularity=tensor", T_TIES, 0,
           2);
    run_in(T_ALLREDUCE, T_F32, 0, T_REVERSED, 150001, "algorithm=pack sparsity=0.9 granularity=40000", T_TIES, 0, 2);
    run_in(T_REDUCE_SCATTER_BLOCK, T_F64, 0, T_WORLD, 150000, "algorithm=sketch sparsity=0.95", T_GAUSSIAN, 1, 2);
    run_in(T_ALLREDUCE, T_F32, 0, T_WORLD, 150001, "algorithm=direct sparsity=0.8 value=int4", T_GAUSSIAN, 0, 2);
    run_in(T_REDUCE_SCATTER, T_F32, 0, T_WORLD, 150001, "sparsity=0.99", T_LAPLACE, 0, 3);
}

/* ---- What depends on the number of the call ---- */

struct moment {
    int call;
    double density; /* < 0: went dense */
};

static void check_moments(const char *settings, size_t n, const struct moment *moments, int count)
{
    t_step("%s, %zu elements", settings, n);
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "moments", n, T_F32, settings);
    float *x = malloc(n * 4), *y = malloc(n * 4);
    for (int m = 0, call = 0; m < count; call++) {
        t_fill(T_GAUSSIAN, T_F32, t_rank, call, x, n);
        OK(TAGC_Allreduce(x, y, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
        if (call < moments[m].call)
            continue;
        double density = t_stat(t, TAGC_STAT_DENSITY), norm = -1;
        int dense = t_stat(t, TAGC_STAT_ALGORITHM) == TAGC_ALGORITHM_DENSE;
        OK(TAGC_Tensor_get_norm(t, &norm));
        if (moments[m].density < 0)
            CHECK(dense && norm == 0, "call %d: dense is %d, norm of the residual %g", call, dense, norm);
        else
            CHECK(!dense && fabs(density - moments[m].density) <= 0.005 * moments[m].density + 1.0 * t_size / (double)n,
                  "call %d: density %g, wanted %g", call, density, moments[m].density);
        m++;
    }
    OK(TAGC_Tensor_free(&t));
    free(x);
    free(y);
}

static void schedules(void)
{
    static const struct moment schedule[] = {{0, 1}, {4, 1}, {5, 0.5}, {9, 0.5}, {10, 0.1}, {30, 0.1}};
    check_moments("algorithm=direct sparsity=0:0,5:0.5,10:0.9", 4000, schedule, COUNT(schedule));
    check_moments("algorithm=pack sparsity=0:0,5:0.5,10:0.9", 4000, schedule, COUNT(schedule));
    static const struct moment warm[] = {{0, -1}, {2, -1}, {3, 0.2}, {4, 0.2}};
    check_moments("algorithm=sketch sparsity=0.8 warmup=3", 4000, warm, COUNT(warm));
    check_moments("algorithm=direct sparsity=0.8 warmup=3", 4000, warm, COUNT(warm));
    static const struct moment always[] = {{0, -1}, {5, -1}};
    check_moments("sparsity=0.8 min_count=5000", 4999, always, COUNT(always));
    check_moments("algorithm=dense sparsity=0.8", 5000, always, COUNT(always));
    static const struct moment named[] = {{0, 0.2}};
    check_moments("algorithm=pack sparsity=0.8 min_count=5000", 4999, named, 1);
    static const struct moment back[] = {{0, 0.1}, {3, 0.1}, {4, 1}, {6, 0.1}};
    check_moments("algorithm=direct sparsity=0:0.9,4:0,5:0.9", 4000, back, COUNT(back));
}

/* ---- No error feedback: dropped is dropped ---- */

static const double *sorting;

static int by_magnitude(const void *a, const void *b)
{
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    double x = fabs(sorting[i]), y = fabs(sorting[j]);
    return x > y ? -1 : x < y ? 1 : i < j ? -1 : 1;
}

static void without_feedback(void)
{
    enum { N = 1000, K = 250 };
    static const char *const algorithms[] = {"direct", "pack", "sketch"};
    for (int a = 0; a < 3; a++)
        for (int kind = T_INTEGERS; kind <= T_TIES; kind += T_TIES) {
            char settings[100];
            snprintf(settings, sizeof settings, "algorithm=%s sparsity=0.75 granularity=tensor error_feedback=false",
                     algorithms[a]);
            t_step("%s, %s data", settings, t_kind_names[kind]);
            TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "without", N, T_F32, settings);
            for (int step = 0; step < 3; step++) {
                static float x[N], y[N];
                static double v[N], want[N];
                static size_t order[N];
                memset(want, 0, sizeof want);
                t_fill(kind, T_F32, t_rank, step, x, N);
                for (int r = 0; r < t_size; r++) {
                    for (size_t i = 0; i < N; i++) {
                        v[i] = t_value(kind, T_F32, r, step, i);
                        order[i] = i;
                    }
                    sorting = v;
                    qsort(order, N, sizeof *order, by_magnitude);
                    for (size_t k = 0; k < K; k++)
                        want[order[k]] += v[order[k]];
                }
                OK(TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
                for (size_t i = 0; i < N; i++)
                    if (y[i] != (float)want[i]) {
                        CHECK(0, "step %d, element %zu: %g, not %g", step, i, (double)y[i], want[i]);
                        break;
                    }
                double norm = -1;
                OK(TAGC_Tensor_get_norm(t, &norm));
                CHECK(norm == 0, "a residual of norm %g", norm);
            }
            OK(TAGC_Tensor_free(&t));
        }
}

/* Reset forgets; a packed state goes on with the same bits. */
static void reset_and_restore(void)
{
    enum { N = 900 };
    static float x[N], first[N], second[N];
    t_step("reset and restore");
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "again", N, T_F32, "algorithm=direct sparsity=0.9 value=int8");
    MPI_Count bytes = 0;
    char *image = NULL;
    for (int step = 0; step < 6; step++) {
        if (step == 3) {
            OK(TAGC_Tensor_pack_size(t, &bytes));
            image = malloc((size_t)bytes);
            OK(TAGC_Tensor_pack(t, image, bytes));
        }
        t_fill(T_GAUSSIAN, T_F32, t_rank, step, x, N);
        OK(TAGC_Allreduce(x, first, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
    }
    OK(TAGC_Tensor_reset(t));
    double norm = -1;
    OK(TAGC_Tensor_get_norm(t, &norm));
    CHECK(norm == 0);
    t_fill(T_GAUSSIAN, T_F32, t_rank, 0, x, N); /* as the very first call */
    OK(TAGC_Allreduce(x, second, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
    OK(TAGC_Tensor_get_norm(t, &norm));
    CHECK(norm > 0);
    OK(TAGC_Tensor_unpack(t, image, bytes));
    for (int step = 3; step < 6; step++) {
        t_fill(T_GAUSSIAN, T_F32, t_rank, step, x, N);
        OK(TAGC_Allreduce(x, second, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
    }
    CHECK(memcmp(first, second, sizeof first) == 0, "the continued run differs");
    OK(TAGC_Tensor_free(&t));
    free(image);
}

int main(int argc, char **argv)
{
    t_start(&argc, &argv, 30);
    many_steps_each_way(argc > 1 ? atoi(argv[1]) : 200);
    every_kind_each_way();
    one_rank_alone();
    long_vectors();
    schedules();
    without_feedback();
    reset_and_restore();
    return t_end();
}
