/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Copies, kernels and messages go on at once: where buffers are on a device and the work is done on the host, messages are
 * sent while input still comes, and results go back while others are still to be received. The fake device does nothing
 * until it is asked, so what is under way when MPI is called is known, and no clock is looked at. All bits are those of
 * buffers on the host, also where only one of the ranks has a device. */
#include "common.h"

#include <stdlib.h>
#include <string.h>

#include "backends/fake/fake.h"

/* ---- What is under way when MPI is called ---- */

static struct {
    int in_at_send, in_at_collective, back_at_message; /* copies, at most */
} seen;

static void most(int *of, int n)
{
    *of = n > *of ? n : *of;
}

int MPI_Isend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    most(&seen.in_at_send, tagcb_fake_copies().in);
    most(&seen.back_at_message, tagcb_fake_copies().back);
    return PMPI_Isend(buf, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    most(&seen.back_at_message, tagcb_fake_copies().back);
    return PMPI_Irecv(buf, count, type, from, tag, comm, request);
}

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op sum, MPI_Comm comm,
                   MPI_Request *request)
{
    most(&seen.in_at_collective, tagcb_fake_copies().in);
    return PMPI_Iallreduce(in, out, count, type, sum, comm, request);
}

/* ---- Calls ---- */

enum { N = 9 * 65536 + 77 };
static float *in, *want, *got, *x, *y; /* the last two on the device */
static int counts[64];

enum { SENDS = 1 /* while input comes */, RETURNS = 2 /* results while messages are posted */, AGREES = 4, PIECES = 8 };
static const struct way {
    const char *settings;
    int shows; /* a blocking call */
} ways[] = {
    {"algorithm=direct backend=openmp", SENDS | RETURNS | AGREES},
    {"algorithm=direct backend=openmp sparsity=0.9", RETURNS | AGREES | PIECES},
    {"algorithm=direct sparsity=0.9", PIECES}, /* on the device */
    {"algorithm=pack backend=openmp sparsity=0.9", AGREES | PIECES},
    {"algorithm=sketch backend=openmp sparsity=0.99 granularity=70000", AGREES | PIECES},
    {"algorithm=pack sparsity=0.9 warmup=1", 0},
    {"algorithm=dense", 0},
};

static int call(TAGC_Tensor t, int all, int blocking, const float *send, float *recv)
{
    TAGC_Request q;
    if (blocking)
        return all ? TAGC_Allreduce(send, recv, N, MPI_FLOAT, TAGC_AVG, MPI_COMM_WORLD, t)
                   : TAGC_Reduce_scatter(send, recv, counts, MPI_FLOAT, TAGC_AVG, MPI_COMM_WORLD, t);
    int done = 0, code = all ? TAGC_Iallreduce(send, recv, N, MPI_FLOAT, TAGC_AVG, MPI_COMM_WORLD, t, &q)
                             : TAGC_Ireduce_scatter(send, recv, counts, MPI_FLOAT, TAGC_AVG, MPI_COMM_WORLD, t, &q);
    while (!code && !done)
        code = TAGC_Test(&q, &done);
    return code;
}

static void reductions(int one_device)
{
    int here = !one_device || t_rank == 0;
    for (size_t w = 0; w < COUNT(ways); w++)
        for (int form = one_device ? 2 : 0; form < 4; form++) {
            int all = form % 2, blocking = form / 2;
            size_t own = all ? N : (size_t)counts[t_rank];
            t_step("%s, %s, %s, %s", one_device ? "one device" : "devices", ways[w].settings,
                   all ? "allreduce" : "reduce-scatter", blocking ? "blocking" : "nonblocking");
            TAGC_Tensor host = t_tensor(MPI_COMM_WORLD, "overlap", N, T_F32, ways[w].settings);
            TAGC_Tensor device = t_tensor(MPI_COMM_WORLD, "overlap", N, T_F32, ways[w].settings);
            for (int step = 0; step < 2; step++) {
                for (size_t i = 0; i < N; i++)
                    in[i] = (float)(t_uniform((uint64_t)(100 * step + t_rank), i) - 0.5);
                tagcb_fake_copy(x, in, N * sizeof *in);
                OK(call(host, all, blocking, in, want));
                struct tagcb_fake_copies before = tagcb_fake_copies();
                memset(&seen, 0, sizeof seen);
                OK(call(device, all, blocking, here ? x : in, here ? y : got));
                struct tagcb_fake_copies after = tagcb_fake_copies();
                if (here)
                    tagcb_fake_copy(got, y, own * sizeof *got);
                CHECK(!memcmp(got, want, own * sizeof *got), "step %d: other bits", step);
                if (!here || !blocking || t_size == 1 || own < 4 * 65536)
                    continue;
                int shows = ways[w].shows;
                CHECK(!(shows & SENDS) || seen.in_at_send, "step %d: no message while input comes", step);
                CHECK(!(shows & AGREES) || seen.in_at_collective, "step %d: no agreement while input comes", step);
                CHECK(!(shows & RETURNS) || all || seen.back_at_message, "step %d: no message while results go back",
                      step);
                CHECK(!(shows & PIECES) || !all || after.put_back - before.put_back > 8,
                      "step %d: results go back in %d copies", step, after.put_back - before.put_back);
            }
            OK(TAGC_Tensor_free(&host));
            OK(TAGC_Tensor_free(&device));
        }
}

static void gathers(void)
{
    static const char *const settings[] = {"gather=lossless backend=openmp", "gather=bfloat16", "gather=lossless"};
    size_t part = N / 8, all = part * (size_t)t_size;
    for (int s = 0; s < 3; s++) {
        t_step("%s", settings[s]);
        TAGC_Tensor host = t_tensor(MPI_COMM_WORLD, "gather", all, T_F32, settings[s]);
        TAGC_Tensor device = t_tensor(MPI_COMM_WORLD, "gather", all, T_F32, settings[s]);
        for (size_t i = 0; i < part; i++)
            in[i] = (float)(i % 100 + (size_t)t_rank);
        tagcb_fake_copy(x, in, part * sizeof *in);
        OK(TAGC_Allgather(in, (int)part, MPI_FLOAT, want, (int)part, MPI_FLOAT, MPI_COMM_WORLD, host));
        memset(&seen, 0, sizeof seen);
        OK(TAGC_Allgather(x, (int)part, MPI_FLOAT, y, (int)part, MPI_FLOAT, MPI_COMM_WORLD, device));
        /* the last is decoded where it belongs */
        CHECK(t_size == 1 || s == 2 || seen.back_at_message, "no message while blocks go back");
        tagcb_fake_copy(got, y, all * sizeof *got);
        CHECK(!memcmp(got, want, all * sizeof *got), "other bits");
        OK(TAGC_Tensor_free(&host));
        OK(TAGC_Tensor_free(&device));
    }
}

int main(int argc, char **argv)
{
    setenv("TAGC_TEST_FAKE", "polls=40", 0); /* a slow device */
    t_start(&argc, &argv, 60);
    float *memory = malloc(3 * N * sizeof *memory);
    in = memory;
    want = in + N;
    got = want + N;
    x = tagcb_fake_alloc(TAGCI_DEVICE, N * sizeof *x);
    y = tagcb_fake_alloc(TAGCI_DEVICE, N * sizeof *y);
    for (int r = 0, left = N; r < t_size; r++) {
        counts[r] = r + 1 == t_size ? left : r % 3 == 1 ? left / 2 - 100 : left / 3;
        left -= counts[r];
    }
    reductions(0);
    if (t_size > 1)
        reductions(1);
    gathers();
    tagcb_fake_free(x);
    tagcb_fake_free(y);
    free(memory);
    return t_end();
}
