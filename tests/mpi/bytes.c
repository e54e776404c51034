/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Bytes: what the library says that it sent, and what it really handed to MPI, counted by functions of this program that
 * stand before MPI's, against the bounds of each algorithm. */
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/frame.h"

/* ---- What really goes to MPI ----
 *
 * A message counts with its bytes, unless it is to the sender itself. Where MPI adds or forwards, what its best known
 * algorithm sends counts: an allreduce of n bytes 2 f n, a reduce-scatter and an allgather of n bytes in all f n, with
 * f = (ranks - 1) / ranks. */
static double handed;
static long messages;
static int counting;

static void count(double bytes, MPI_Comm comm, double times)
{
    int size;
    if (!counting)
        return;
    PMPI_Comm_size(comm, &size);
    handed += times * bytes * (size - 1.0) / size;
    messages++;
}

static double width(MPI_Datatype type)
{
    int bytes;
    PMPI_Type_size(type, &bytes);
    return bytes;
}

static void count_message(double n, MPI_Datatype type, int to, MPI_Comm comm)
{
    int me;
    if (!counting)
        return;
    PMPI_Comm_rank(comm, &me);
    handed += to == me ? 0 : n * width(type);
    messages++;
}

static double all(const int *counts, MPI_Comm comm)
{
    int size;
    double sum = 0;
    PMPI_Comm_size(comm, &size);
    for (int r = 0; r < size; r++)
        sum += counts[r];
    return sum;
}

static double ranks(MPI_Comm comm)
{
    int size;
    PMPI_Comm_size(comm, &size);
    return size;
}

/* name, parameters, arguments, what it counts */
#define BEFORE(name, parameters, arguments, ...)                                                                       \
    int name parameters                                                                                                \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        return P##name arguments;                                                                                      \
    }

#define MESSAGE (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c)
BEFORE(MPI_Send, MESSAGE, (b, n, t, to, tag, c), count_message(n, t, to, c))
BEFORE(MPI_Ssend, MESSAGE, (b, n, t, to, tag, c), count_message(n, t, to, c))
#define MESSAGE_R (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r)
BEFORE(MPI_Isend, MESSAGE_R, (b, n, t, to, tag, c, r), count_message(n, t, to, c))
BEFORE(MPI_Issend, MESSAGE_R, (b, n, t, to, tag, c, r), count_message(n, t, to, c))
BEFORE(MPI_Sendrecv,
       (const void *b, int n, MPI_Datatype t, int to, int tag, void *b2, int n2, MPI_Datatype t2, int from, int tag2,
        MPI_Comm c, MPI_Status *s),
       (b, n, t, to, tag, b2, n2, t2, from, tag2, c, s), count_message(n, t, to, c))

#define SAME (const void *b, void *b2, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
#define SAME_R (const void *b, void *b2, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request *r)
BEFORE(MPI_Allreduce, SAME, (b, b2, n, t, o, c), count(n *width(t), c, 2))
BEFORE(MPI_Iallreduce, SAME_R, (b, b2, n, t, o, c, r), count(n *width(t), c, 2))
BEFORE(MPI_Reduce_scatter_block, SAME, (b, b2, n, t, o, c), count(n *width(t) * ranks(c), c, 1))
BEFORE(MPI_Ireduce_scatter_block, SAME_R, (b, b2, n, t, o, c, r), count(n *width(t) * ranks(c), c, 1))
#define PARTS (const void *b, void *b2, const int *n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
#define PARTS_R (const void *b, void *b2, const int *n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request *r)
BEFORE(MPI_Reduce_scatter, PARTS, (b, b2, n, t, o, c), count(all(n, c) * width(t), c, 1))
BEFORE(MPI_Ireduce_scatter, PARTS_R, (b, b2, n, t, o, c, r), count(all(n, c) * width(t), c, 1))

#define GATHER (const void *b, int n, MPI_Datatype t, void *b2, int n2, MPI_Datatype t2, MPI_Comm c)
#define GATHER_R (const void *b, int n, MPI_Datatype t, void *b2, int n2, MPI_Datatype t2, MPI_Comm c, MPI_Request *r)
BEFORE(MPI_Allgather, GATHER, (b, n, t, b2, n2, t2, c), count(n2 *width(t2) * ranks(c), c, 1))
BEFORE(MPI_Iallgather, GATHER_R, (b, n, t, b2, n2, t2, c, r), count(n2 *width(t2) * ranks(c), c, 1))
BEFORE(MPI_Alltoall, GATHER, (b, n, t, b2, n2, t2, c), count(n2 *width(t2) * ranks(c), c, 1))
BEFORE(MPI_Allgatherv,
       (const void *b, int n, MPI_Datatype t, void *b2, const int *n2, const int *d, MPI_Datatype t2, MPI_Comm c),
       (b, n, t, b2, n2, d, t2, c), count(all(n2, c) * width(t2), c, 1))
BEFORE(MPI_Iallgatherv,
       (const void *b, int n, MPI_Datatype t, void *b2, const int *n2, const int *d, MPI_Datatype t2, MPI_Comm c,
        MPI_Request *r),
       (b, n, t, b2, n2, d, t2, c, r), count(all(n2, c) * width(t2), c, 1))
BEFORE(MPI_Bcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c), count(n *width(t), c, 1))

/* ---- Bounds ---- */

/* Share of elements that at least one rank keeps, from the residuals after a first call: gaussian data has no zeros. */
static double union_share(TAGC_Tensor tensor, size_t n)
{
    double *residual = malloc(n * sizeof *residual), kept = 0;
    unsigned char *flag = malloc(n);
    t_residual(tensor, T_F32, n, residual);
    for (size_t i = 0; i < n; i++)
        flag[i] = residual[i] == 0;
    MPI_Allreduce(MPI_IN_PLACE, flag, (int)n, MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
    for (size_t i = 0; i < n; i++)
        kept += flag[i];
    free(residual);
    free(flag);
    return kept / (double)n;
}

#define ENTROPY (-1.0)
struct bound {
    const char *settings;
    /* slack * (p * per_kept + u * per_union + fixed) bytes per element; fixed: ENTROPY: H(p) / 8, which no index beats */
    double slack, per_kept, per_union, fixed;
};

static const struct bound bounds[] = {
    {"algorithm=dense", 1, 0, 0, 4},
    {"algorithm=direct sparsity=0.5", 1.05, 4, 0, 0.125},
    {"algorithm=direct sparsity=0.8", 1.05, 4, 0, 0.125},
    {"algorithm=direct sparsity=0.8 index=bitmap", 1.05, 4, 0, 0.125},
    {"algorithm=direct sparsity=0.8 index=coded", 1.05, 4, 0, ENTROPY},
    {"algorithm=direct sparsity=0.95", 1.05, 4, 0, ENTROPY},
    {"algorithm=direct sparsity=0.95 value=bfloat16", 1.05, 2, 0, ENTROPY},
    {"algorithm=direct sparsity=0.99", 1.05, 4, 0, ENTROPY},
    {"algorithm=direct sparsity=0.99 granularity=tensor", 1.05, 4, 0, ENTROPY},
    {"algorithm=direct", 1.05, 0, 0, 4}, /* case 22: nothing to save, so no index either */
    {"algorithm=pack sparsity=0.8", 1.05, 0, 4, 0.25},
    {"algorithm=pack sparsity=0.99", 1.05, 0, 4, 0.25},
    {"algorithm=sketch sparsity=0.8", 1, 0, 4 * 1.35, 0.25},
    {"algorithm=sketch sparsity=0.95", 1, 0, 4 * 1.35, 0.25},
    {"algorithm=direct sparsity=0.8 value=bfloat16", 1.05, 2, 0, 0.125},
    {"algorithm=direct sparsity=0.8 value=int8", 1.05, 1 + 2. / 128, 0, 0.125},
    {"algorithm=direct sparsity=0.8 value=int4", 1.05, 0.5 + 2. / 128, 0, 0.125},
    {"algorithm=direct value=int4", 1.05, 0, 0, 0.5 + 2. / 128},
    {"algorithm=direct value=ternary", 1.05, 0, 0, 0.2 + 2. / 128},
};

static void check_bound(const struct bound *b, size_t n)
{
    t_step("%s, %zu elements", b->settings, n);
    n -= n % (size_t)t_size;
    float *x = malloc(n * 4), *y = malloc(n / (size_t)t_size * 4 + 4);
    t_fill(T_GAUSSIAN, T_F32, t_rank, 5, x, n);
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "bytes", n, T_F32, b->settings);
    handed = 0;
    counting = 1;
    OK(TAGC_Reduce_scatter_block(x, y, (int)(n / (size_t)t_size), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
    counting = 0;
    double said = t_stat(t, TAGC_STAT_BYTES_SENT), p = t_stat(t, TAGC_STAT_DENSITY);
    double f = (t_size - 1.0) / t_size, u = b->per_union > 0 ? union_share(t, n) : 0;
    double fixed = b->fixed == ENTROPY ? -(p * log2(p) + (1 - p) * log2(1 - p)) / 8 : b->fixed;
    double most = b->slack * f * (p * b->per_kept + u * b->per_union + fixed) * (double)n;
    if (t_rank == 0 && getenv("TAGC_TEST_SHOW"))
        printf("%-50s said %.0f, handed %.0f, bound %.0f: %.3f of it\n", b->settings, said, handed, most,
               handed / most);
    CHECK(said <= most + 1e-9, "%.0f bytes by the statistic, bound %.0f (p %g, u %g)", said, most, p, u);
    /* 256 bytes: the ranks agree on the call */
    CHECK(handed <= most + 256, "%.0f bytes handed to MPI, bound %.0f (p %g, u %g)", handed, most, p, u);
    CHECK(fabs(handed - said) <= 0.001 * said + 256, "%.0f bytes said, %.0f handed to MPI", said, handed);
    CHECK(fabs(t_stat(t, TAGC_STAT_BYTES_DENSE) - f * 4 * (double)n) <= 1, "BYTES_DENSE");
    if (b->per_union > 0)
        CHECK(fabs(t_stat(t, TAGC_STAT_UNION_DENSITY) - u) <= 0.01, "union %g, not %g",
              t_stat(t, TAGC_STAT_UNION_DENSITY), u);
    OK(TAGC_Tensor_free(&t));
    free(x);
    free(y);
}

/* A long vector is cut by a sample, near the share, or exactly where that is asked for. */
static void long_vectors_keep_their_share(void)
{
    size_t part = (size_t)4 << 20, n = part * (size_t)t_size;
    float *x = malloc(n * 4), *y = malloc(part * 4);
    t_fill(T_GAUSSIAN, T_F32, t_rank, 9, x, n);
    for (int exact = 0; exact < 2; exact++) {
        t_step("%s choice among %zu elements", exact ? "exact" : "sampled", part);
        TAGC_Tensor t =
            t_tensor(MPI_COMM_WORLD, "share", n, T_F32,
                     exact ? "algorithm=direct sparsity=0.8 selection=exact" : "algorithm=direct sparsity=0.8");
        for (int call = 0; call < 2; call++) {
            OK(TAGC_Reduce_scatter_block(x, y, (int)part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
            double kept = t_stat(t, TAGC_STAT_DENSITY) * (double)n, asked = ceil(0.2 * (double)part) * t_size;
            CHECK(fabs(kept - asked) <= (exact ? 0.01 : 0.03 * asked), "%.1f kept of %.0f", kept, asked);
            CHECK(exact || kept != asked, "no sample was taken");
        }
        OK(TAGC_Tensor_free(&t));
    }
    free(x);
    free(y);
}

/* Fewer values that are not zero than the share would keep: those travel, and no zeros. */
static void zeros_do_not_travel(void)
{
    static const char *const settings[] = {"algorithm=direct", "algorithm=direct granularity=1000",
                                           "algorithm=direct granularity=tensor", "algorithm=pack", "algorithm=sketch"};
    enum { PART = 100000, EACH = 50 };
    size_t n = (size_t)t_size * PART;
    float *x = calloc(n, sizeof *x), *y = malloc(PART * sizeof *y);
    for (size_t i = (size_t)t_rank; i < n; i += EACH)
        x[i] = (float)(1 + i % 1000);
    for (int i = 0; i < (int)COUNT(settings); i++) {
        t_step("data of many zeros, %s", settings[i]);
        char all[100];
        snprintf(all, sizeof all, "%s sparsity=0.8", settings[i]);
        TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "zeros", n, T_F32, all);
        OK(TAGC_Reduce_scatter_block(x, y, PART, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
        double kept = t_stat(t, TAGC_STAT_DENSITY);
        CHECK(fabs(kept - 1.0 / EACH) < 1e-9, "%g of all elements were kept, %g are not zero", kept, 1.0 / EACH);
        for (size_t j = 0; j < PART; j++) {
            size_t at = (size_t)t_rank * PART + j;
            float sum = at % EACH < (size_t)t_size ? (float)(1 + at % 1000) : 0;
            CHECK(y[j] == sum, "element %zu is %g, not %g", at, y[j], sum);
        }
        OK(TAGC_Tensor_free(&t));
    }
    free(x);
    free(y);
}

/* case 22: whatever the data, a frame is no longer than its bound. One frame a peer. */
static void frames_keep_their_bound(void)
{
    static const char *const values[] = {"native", "bfloat16", "float16", "int8", "int4", "ternary"};
    enum { PART = 5000 };
    size_t n = (size_t)t_size * PART;
    for (int type = 0; type < T_TYPES; type++)
        for (int v = 0; v < (int)COUNT(values); v++)
            for (int kind = T_GAUSSIAN; kind <= T_NONFINITE; kind += T_NONFINITE - T_GAUSSIAN)
                for (int sparse = 0; sparse < 2; sparse++) {
                    t_step("case 22: %s of %s, %s data, %s", values[v], t_type_names[type], t_kind_names[kind],
                           sparse ? "sparse" : "all");
                    static const enum tagci_type types[T_TYPES] = {TAGCI_F32, TAGCI_F64, TAGCI_F16, TAGCI_BF16};
                    char settings[100];
                    snprintf(settings, sizeof settings, "algorithm=direct checksum=true value=%s%s", values[v],
                             sparse ? " sparsity=0.01" : "");
                    void *x = malloc(n * 8), *y = malloc(PART * 8);
                    t_fill(kind, type, t_rank, 1, x, n);
                    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "bound", n, type, settings);
                    handed = 0;
                    counting = 1;
                    OK(TAGC_Reduce_scatter_block(x, y, PART, t_datatype(type), MPI_SUM, MPI_COMM_WORLD, t));
                    counting = 0;
                    double most = (t_size - 1.0) * (double)tagci_frame_bound(types[type], (enum tagci_value)v, PART);
                    CHECK(handed <= most + 256, "%.0f bytes, bound %.0f", handed, most);
                    OK(TAGC_Tensor_free(&t));
                    free(x);
                    free(y);
                }
}

/* Without a tensor, auto hands to MPI what MPI's own call would be, once. case 16: and nothing where nothing is called. */
static void plain_calls_stay_plain(void)
{
    t_step("plain calls");
    float x[100] = {1}, y[100];
    OK(TAGC_Allreduce(x, y, 100, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL)); /* the first call of all */
    handed = 0;
    messages = 0;
    counting = 1;
    OK(TAGC_Allreduce(x, y, 100, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL));
    counting = 0;
    CHECK(messages == 1 && fabs(handed - 2 * 400 * (t_size - 1.0) / t_size) < 1, "%ld calls, %g bytes", messages,
          handed);
    double before = t_stat(TAGC_TENSOR_NULL, TAGC_STAT_CALLS);
    MPI_Allreduce(x, y, 100, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(t_stat(TAGC_TENSOR_NULL, TAGC_STAT_CALLS) == before, "an MPI call was counted");
}

int main(int argc, char **argv)
{
    t_start(&argc, &argv, 60);
    size_t n = argc > 1 ? (size_t)atol(argv[1]) : 1000000;
    plain_calls_stay_plain();
    for (size_t i = 0; i < COUNT(bounds); i++)
        check_bound(&bounds[i], n);
    if (t_size <= 2)
        long_vectors_keep_their_share();
    zeros_do_not_travel();
    frames_keep_their_bound();
    return t_end();
}
