/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * tagc_bench tune: measures what algorithm=auto reckons with, and writes the file that the setting `tuning` names. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coll/nodes.h"
#include "tools/bench.h"
#include "tools/bench_mpi.h"
#include "util/costs.h"
#include "util/mem.h"

enum { RUNS = 5 };

static double slowest(double x)
{
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return x;
}

/* Seconds of this rank in a phase of a call, by the library's own statistics: those of encoding and decoding. Calls of the
 * way that `setting` names, after two to warm up. */
static int phases(struct bench_options *o, size_t n, const char *key, const char *value, double seconds[3])
{
    static const int stats[3] = {TAGC_STAT_TIME_SELECT, TAGC_STAT_TIME_ENCODE, TAGC_STAT_TIME_DECODE};
    struct bench_case b;
    MPI_Info_set(o->info, key, value);
    if (bench_case_make(&b, o, n))
        return -1;
    for (int i = 0; i < 2; i++)
        bench_call_tagc(&b, i);
    for (int s = 0; s < 3; s++)
        seconds[s] = -bench_stat(b.tensor, stats[s]);
    for (int i = 0; i < RUNS; i++)
        bench_call_tagc(&b, i);
    for (int s = 0; s < 3; s++)
        seconds[s] = slowest((seconds[s] + bench_stat(b.tensor, stats[s])) / RUNS);
    bench_case_free(&b);
    return 0;
}

static int kernels(struct tagci_costs *c, size_t n)
{
    struct bench_options o = {.what = TAGCI_REDUCE_SCATTER_BLOCK, .type = TAGCI_F32};
    double s[3] = {0};
    MPI_Info_create(&o.info);
    MPI_Info_set(o.info, "tagc_sparsity", "0.875");
    MPI_Info_set(o.info, "tagc_selection", "exact");
    int bad = phases(&o, n, "tagc_algorithm", "direct", s);
    c->select = s[0] / (double)n;
    c->encode = s[1] / (double)n;
    c->decode = s[2] / (double)n;
    MPI_Info_set(o.info, "tagc_value", "int4");
    bad = bad || phases(&o, n, "tagc_sparsity", "0", s);
    c->round = fmax((s[1] + s[2]) / (double)n - c->encode - c->decode, 0.01 * c->encode);
    MPI_Info_set(o.info, "tagc_value", "native");
    o.what = TAGCI_ALLGATHER;
    bad = bad || phases(&o, n, "tagc_gather", "lossless", s);
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    c->compress = s[1] * ranks / (double)(4 * n);
    c->decompress = s[2] / (double)(4 * n);
    MPI_Info_free(&o.info);
    return bad;
}

/* sharers: ranks that share a link. In the ring only one of them uses it. */
static int links(struct tagci_link *l, size_t n, int sharers)
{
    int rank, ranks, word = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    n -= n % (size_t)ranks;
    float *in = tagci_alloc_zero(n, sizeof *in), *out = tagci_alloc_zero(n, sizeof *out);
    int bad = !in || !out;
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    double best[3] = {1, 1e9, 1e9};
    for (int run = 0; run < 2 * RUNS && !bad; run++) {
        enum { ROUNDS = 100 };
        int other = rank == 0 ? ranks - 1 : 0, right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
        MPI_Barrier(MPI_COMM_WORLD);
        double t[4] = {MPI_Wtime()};
        for (int i = 0; i < ROUNDS && (rank == 0 || rank == ranks - 1); i++) {
            if (rank == 0)
                MPI_Send(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
            MPI_Recv(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank != 0)
                MPI_Send(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
        }
        t[1] = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        MPI_Sendrecv(in, (int)n, MPI_FLOAT, right, 0, out, (int)n, MPI_FLOAT, left, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        t[2] = MPI_Wtime() - begin;
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        MPI_Reduce_scatter_block(in, out, (int)(n / (size_t)ranks), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        t[3] = MPI_Wtime() - begin;
        t[1] = (t[1] - t[0]) / (2 * ROUNDS);
        for (int k = 0; k < 3; k++)
            best[k] = fmin(best[k], slowest(t[k + 1]));
    }
    l->message = best[0];
    l->byte = best[1] / (double)(4 * n);
    l->dense = fmax(best[2] - (ranks - 1) * l->message, 0.1 * best[2]) * ranks /
               ((double)(ranks - sharers) * sharers * 4.0 * (double)n);
    tagci_free(in);
    tagci_free(out);
    return bad;
}

static int run(const char *path, size_t n)
{
    struct tagci_costs costs = tagci_costs_builtin;
    struct tagci_comm *c;
    int rank, ranks, length, failed = 0;
    char version[MPI_MAX_LIBRARY_VERSION_STRING], host[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2) {
        fputs("tagc_bench: tune needs two ranks or more\n", stderr);
        return 1;
    }
    bench_ok(tagci_comm_get("tune", MPI_COMM_WORLD, &c), "settings");
    int sharers = c->nodes ? c->nodes->per_node : 1;
    if (kernels(&costs, n) || links(c->one_node ? &costs.node : &costs.network, n, sharers)) {
        fputs("tagc_bench: no memory\n", stderr);
        return 1;
    }
    if (rank == 0) {
        FILE *f = path ? fopen(path, "w") : stdout;
        MPI_Get_library_version(version, &length);
        MPI_Get_processor_name(host, &length);
        if (f) {
            fprintf(f, "# Costs in seconds, for the setting tuning. tagc_bench tune on %s: %d ranks %s,\n# %.*s\n",
                    host, ranks,
                    c->one_node ? "in shared memory; network as built in" : "over a network; node as built in",
                    (int)strcspn(version, "\n"), version);
            tagci_costs_write(f, &costs);
            failed = path ? fclose(f) : fflush(f);
        } else {
            failed = 1;
        }
        if (failed)
            perror(path ? path : "tagc_bench");
    }
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return failed ? 1 : 0;
}

int bench_tune(int argc, char **argv)
{
    int rank, megabytes = 16, bad = argc % 2 == 0;
    const char *path = NULL;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], "-o"))
            path = argv[i + 1];
        else if (strcmp(argv[i], "-m") || sscanf(argv[i + 1], "%d", &megabytes) != 1 || megabytes < 1 ||
                 megabytes > 4096)
            bad = 1;
    if (bad && rank == 0)
        fputs("usage: tagc_bench tune [-o FILE] [-m MEGABYTES]\n"
              "Measures kernels and links on the ranks that it runs on, with vectors of so many megabytes (16), and\n"
              "writes the costs that algorithm=auto reckons with: to be named by TAGC_TUNING.\n",
              stderr);
    int status = bad ? 2 : run(path, (size_t)megabytes << 18);
    MPI_Finalize();
    return status;
}
