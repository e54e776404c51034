/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * algorithm=hierarchical with something held back: over all ranks nothing is lost, the residual of a stripe is with the
 * rank that has the stripe, and NaN and Inf pass. Wants TAGC_TEST_NODES=k: k ranks in a row are taken for a node. */
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coll/comm.h"
#include "coll/nodes.h"
#include "coll/tensor.h"

enum { N = 70001, STEPS = 6 };

/* Place of the rank within its node, in its communicator. */
static int local_of(int rank)
{
    return rank % tagci_nodes_pretend;
}

static void run(int form, int type, int which, const char *settings)
{
    MPI_Comm comm = t_comm(which);
    struct t_job job;
    t_job_make(&job, form, type, 0, comm, N);
    t_step("%s of %s on %s, %s", t_form_names[form], t_type_names[type], t_comm_names[which], settings);
    TAGC_Tensor t = t_tensor(comm, "w", job.n, type, settings);
    struct t_buffer send, recv;
    t_buffer_make(&send, job.n * t_size_of(type));
    t_buffer_make(&recv, job.n * t_size_of(type));
    double *owed = calloc(job.n, sizeof *owed), *held = calloc(job.n, sizeof *held), *got = calloc(job.n, sizeof *got);
    /* Residuals as another algorithm may have left them: everywhere, and what comes next is anything. */
    struct tagci_tensor *inside = tagci_tensor_of(t);
    int work = type == T_F64 ? T_F64 : T_F32;
    for (size_t i = 0; i < job.n; i++) {
        t_set(work, inside->residual, i, 1);
        t_set(work, inside->spare, i, 7);
        owed[i] = job.rank == 0 ? job.size : 0;
    }
    inside->residual_is_zero = 0;
    for (int step = 0; step < STEPS; step++) {
        t_fill(T_INTEGERS, type, job.rank, step, send.at, job.n);
        int in_place = step % 3 == 2;
        if (in_place)
            memcpy(recv.at, send.at, job.n * t_size_of(type));
        OK(t_call(&job, in_place ? MPI_IN_PLACE : send.at, recv.at, t));
        CHECK(t_stat(t, TAGC_STAT_ALGORITHM) == TAGC_ALGORITHM_HIERARCHICAL, "%g", t_stat(t, TAGC_STAT_ALGORITHM));
        t_residual(t, type, job.n, held);
        size_t astray = 0, at = 0;
        for (int o = 0; o < job.size && form != T_ALLREDUCE; at += (size_t)job.counts[o++])
            for (size_t i = at; i < at + (size_t)job.counts[o]; i++)
                astray += held[i] != 0 && local_of(o) != local_of(job.rank);
        CHECK(astray == 0, "%zu", astray);
        memset(got, 0, job.n * sizeof *got);
        if (form != T_ALLREDUCE || job.rank == 0)
            for (size_t i = 0; i < job.own; i++)
                got[job.at + i] = t_get(type, recv.at, i);
        for (size_t i = 0; i < job.n; i++) {
            for (int r = 0; r < job.size; r++)
                owed[i] += job.rank == 0 ? t_value(T_INTEGERS, type, r, step, i) : 0;
            got[i] += held[i]; /* sent and held, over ranks, against what came in */
        }
        MPI_Allreduce(MPI_IN_PLACE, got, (int)job.n, MPI_DOUBLE, MPI_SUM, comm);
        size_t lost = 0;
        double kept = 0;
        for (size_t i = 0; i < job.n; i++) {
            lost += job.rank == 0 && got[i] != owed[i];
            kept += held[i] != 0;
        }
        CHECK(lost == 0, "%zu of %zu", lost, job.n);
        MPI_Allreduce(MPI_IN_PLACE, &kept, 1, MPI_DOUBLE, MPI_SUM, comm);
        CHECK(kept > 0, "nothing is held back");
        /* what was sent is owed no more */
        memset(got, 0, job.n * sizeof *got);
        if (form != T_ALLREDUCE || job.rank == 0)
            for (size_t i = 0; i < job.own; i++)
                got[job.at + i] = t_get(type, recv.at, i);
        MPI_Allreduce(MPI_IN_PLACE, got, (int)job.n, MPI_DOUBLE, MPI_SUM, comm);
        for (size_t i = 0; i < job.n && job.rank == 0; i++)
            owed[i] -= got[i];
    }

    t_fill(T_INTEGERS, type, job.rank, 0, send.at, job.n);
    if (job.rank == job.size - 1) {
        t_set(type, send.at, 5, NAN);
        t_set(type, send.at, job.n - 1, -INFINITY);
    }
    OK(t_call(&job, send.at, recv.at, t));
    t_residual(t, type, job.n, held);
    size_t odd = 0;
    for (size_t i = 0; i < job.n; i++)
        odd += !isfinite(held[i]);
    CHECK(odd == 0, "%zu", odd);
    if (job.rank / tagci_nodes_pretend == (job.size - 1) / tagci_nodes_pretend) /* its node's sum */
        CHECK(held[5] == 0 && held[job.n - 1] == 0, "%g %g", held[5], held[job.n - 1]);
    for (size_t i = 0; i < job.own; i++) {
        double x = t_get(type, recv.at, i);
        odd += job.at + i == 5 ? !isnan(x) : job.at + i == job.n - 1 ? x != -INFINITY : !isfinite(x);
    }
    CHECK(odd == 0, "%zu", odd);
    CHECK(t_buffer_guarded(&send) && t_buffer_guarded(&recv));
    free(owed);
    free(held);
    free(got);
    t_buffer_free(&send);
    t_buffer_free(&recv);
    OK(TAGC_Tensor_free(&t));
    t_job_free(&job);
}

/* What goes between nodes is bounded by the stripe. Nothing is sent within them. */
static void test_bytes(void)
{
    t_step("bytes");
    struct t_job job;
    t_job_make(&job, T_REDUCE_SCATTER_BLOCK, T_F32, 0, MPI_COMM_WORLD, 1 << 20);
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "w", job.n, T_F32, "algorithm=hierarchical sparsity=0.8 index=bitmap");
    float *x = malloc(job.n * sizeof *x), *y = malloc(job.own * sizeof *y);
    t_fill(T_GAUSSIAN, T_F32, job.rank, 0, x, job.n);
    OK(t_call(&job, x, y, t));
    double k = tagci_nodes_pretend, nodes = job.size / k, n = (double)job.n;
    double across = n / k * (nodes - 1) / nodes * (0.2 * 4 + 1. / 8);
    double sent = t_stat(t, TAGC_STAT_BYTES_SENT);
    CHECK(sent <= 1.05 * across && sent >= 0.9 * across, "%g, %g between nodes", sent, across);
    free(x);
    free(y);
    OK(TAGC_Tensor_free(&t));
    t_job_free(&job);
}

/* Nodes that are not alike: the ranks send to each other directly, and say so. */
static void test_uneven(void)
{
    t_step("nodes that are not alike");
    MPI_Comm odd;
    int alike = tagci_nodes_pretend;
    tagci_nodes_pretend = t_size - 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &odd);
    TAGC_Tensor t = t_tensor(odd, "w", N, T_F32, "algorithm=hierarchical sparsity=0.5");
    static float x[N], y[N];
    t_fill(T_INTEGERS, T_F32, t_rank, 0, x, N);
    OK(TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, odd, t));
    CHECK(t_stat(t, TAGC_STAT_ALGORITHM) == TAGC_ALGORITHM_DIRECT, "%g", t_stat(t, TAGC_STAT_ALGORITHM));
    OK(TAGC_Tensor_free(&t));
    MPI_Comm_free(&odd);
    tagci_nodes_pretend = alike;
}

int main(int argc, char **argv)
{
    t_start(&argc, &argv, 60);
    if (tagci_nodes_pretend < 2 || t_size % tagci_nodes_pretend || t_size == tagci_nodes_pretend) {
        if (t_rank == 0)
            puts("wants TAGC_TEST_NODES");
        MPI_Finalize();
        return 77;
    }
    static const int comms[] = {T_WORLD, T_REVERSED};
    for (int form = 0; form < T_FORMS; form++) {
        run(form, form == T_ALLREDUCE ? T_F32 : T_F64, T_WORLD, "algorithm=hierarchical sparsity=0.9");
        for (int i = 0; i < 2; i++)
            run(form, T_F32, comms[i], "algorithm=hierarchical sparsity=0.8 granularity=1000");
    }
    run(T_REDUCE_SCATTER, T_F16, T_WORLD, "algorithm=hierarchical sparsity=0.9 checksum=true");
    test_bytes();
    test_uneven();
    return t_end();
}
