/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What algorithm=auto chooses, and why: by the costs of a file, on all ranks alike, never by a clock. */
#include <stdio.h>
#include <stdlib.h>

#include "coll/nodes.h"
#include "common.h"

enum { N = 100000 };
static char path[2][512], mine[512];

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", name);
}

/* The way that a call with these settings takes, and the reason. */
static void expect(const char *settings, size_t n, int algorithm, int reason)
{
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "choice", n, T_F32, settings);
    float *x = calloc(n + 1, sizeof *x), *y = calloc(n + 1, sizeof *y);
    t_fill(T_GAUSSIAN, T_F32, t_rank, 0, x, n);
    OK(TAGC_Allreduce(x, y, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
    CHECK(t_stat(t, TAGC_STAT_ALGORITHM) == algorithm, "%s: algorithm %g, not %d", settings,
          t_stat(t, TAGC_STAT_ALGORITHM), algorithm);
    CHECK(t_stat(t, TAGC_STAT_REASON) == reason, "%s: reason %g, not %d", settings, t_stat(t, TAGC_STAT_REASON),
          reason);
    OK(TAGC_Tensor_free(&t));
    free(x);
    free(y);
}

static void reasons(void)
{
    t_step("reasons");
    int alone = t_size == 1;
    expect("", N, TAGC_ALGORITHM_DENSE, TAGC_REASON_EXACT);
    expect("sparsity=0.9 min_count=100001", N, TAGC_ALGORITHM_DENSE, TAGC_REASON_SHORT);
    expect("sparsity=0.9 warmup=1", N, TAGC_ALGORITHM_DENSE, TAGC_REASON_WARMUP);
    expect("sparsity=0.9 algorithm=pack", N, alone ? TAGC_ALGORITHM_LOCAL : TAGC_ALGORITHM_PACK, TAGC_REASON_NAMED);
    if (alone)
        expect("sparsity=0.9", N, TAGC_ALGORITHM_LOCAL, TAGC_REASON_ONE_RANK);
    float x = 1, y;
    OK(TAGC_Allreduce(&x, &y, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL));
    CHECK(t_stat(TAGC_TENSOR_NULL, TAGC_STAT_REASON) == TAGC_REASON_EXACT, "without a tensor");
    OK(TAGC_Allreduce(&x, &y, 1, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD, TAGC_TENSOR_NULL));
    CHECK(t_stat(TAGC_TENSOR_NULL, TAGC_STAT_REASON) == TAGC_REASON_TYPE, "the largest, without a tensor");
}

/* Where a byte is dear, fewer travel; where the kernels are slow, MPI's own call is left alone. */
static void files_decide(void)
{
    char settings[700];
    t_step("costs of a file");
    if (t_rank == 0) {
        write_file(path[0], "# a slow wire\nnode.byte 1e-6\nnode.dense 1e-6\n\nnetwork.byte 1e-6 # likewise\n"
                            "network.dense 1e-6\n");
        write_file(path[1], "kernel.select 1e-6\nkernel.encode\t1e-6\nkernel.decode 1e-6\n");
    }
    write_file(mine, "node.byte 1e-6\nnode.dense 1e-6\nnetwork.byte 0.000001\nnetwork.dense 1e-06\n");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) {
        snprintf(settings, sizeof settings, "sparsity=0.95 tuning=%s", path[i]);
        expect(settings, N, i ? TAGC_ALGORITHM_DENSE : TAGC_ALGORITHM_DIRECT, TAGC_REASON_COST);
    }
    /* the same costs in a file of another name, with another text: for each rank its own */
    snprintf(settings, sizeof settings, "sparsity=0.95 tuning=%s", t_rank % 2 ? mine : path[0]);
    expect(settings, N, TAGC_ALGORITHM_DIRECT, TAGC_REASON_COST);

    t_step("costs that differ between ranks");
    TAGC_Tensor t;
    MPI_Info info;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "tagc_tuning", t_rank == t_size - 1 ? path[1] : path[0]));
    int code = TAGC_Tensor_create(MPI_COMM_WORLD, "choice", N, MPI_FLOAT, info, &t);
    CHECK(t_class(code) == TAGC_ERR_MISMATCH, "%s", t_error_text(code));
    t_step("a file that is none");
    OK(MPI_Info_set(info, "tagc_tuning", t_rank == 0 ? "/nonexistent/costs" : path[0]));
    code = TAGC_Tensor_create(MPI_COMM_WORLD, "choice", N, MPI_FLOAT, info, &t);
    CHECK(t_class(code) == (t_rank == 0 ? TAGC_ERR_SETTING : TAGC_ERR_MISMATCH), "%s", t_error_text(code));
    OK(MPI_Info_free(&info));
}

/* Ranks that share a link: adding up first halves what it carries, or less, and costs passes over memory. */
static void nodes_decide(void)
{
    static const struct {
        const char *costs;
        int algorithm;
    } cases[] = {
        {"network.byte 1e-6\nnetwork.dense 1e-6\n", TAGC_ALGORITHM_HIERARCHICAL},
        {"network.byte 8.3e-9\nnetwork.dense 8.6e-9\n", TAGC_ALGORITHM_HIERARCHICAL}, /* 1 Gbit/s */
        {"network.byte 8.3e-9\nnetwork.dense 8.6e-9\nkernel.decode 1e-7\n", TAGC_ALGORITHM_DENSE},
        {"network.byte 8.3e-9\nnetwork.dense 8.6e-9\nnode.byte 1e-7\n", TAGC_ALGORITHM_DIRECT},
        {"network.byte 1e-10\nnetwork.dense 1e-9\n", TAGC_ALGORITHM_DIRECT},
    };
    char settings[700];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_step("nodes: %s", cases[i].costs);
        if (t_rank == 0)
            write_file(path[0], cases[i].costs);
        MPI_Barrier(MPI_COMM_WORLD);
        snprintf(settings, sizeof settings, "sparsity=0.8 tuning=%s", path[0]);
        expect(settings, 10 * N, cases[i].algorithm, TAGC_REASON_COST);
    }
}

int main(int argc, char **argv)
{
    t_start(&argc, &argv, 60);
    const char *dir = getenv("TAGC_TEST_DIR");
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/costs%d", dir ? dir : "/tmp", i);
    snprintf(mine, sizeof mine, "%s/costs-of-%d", dir ? dir : "/tmp", t_rank);
    if (tagci_nodes_pretend) {
        nodes_decide();
        return t_end();
    }
    reasons();
    if (t_size > 1)
        files_decide();
    return t_end();
}
