/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Life cycle: many calls, late ranks, handles that are freed late or never. */
#include "common.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/mem.h"

/* case 24: many calls with changing sizes. The workspace is bounded, is reported, and is given back. */
static void many_calls(MPI_Comm comm, const char *name, int calls)
{
    enum { MOST = 2000 };
    static float x[MOST], y[MOST];
    static const char *const settings[] = {"algorithm=direct sparsity=0.9", "algorithm=pack sparsity=0.8",
                                           "algorithm=sketch sparsity=0.8", "algorithm=direct value=int4"};
    size_t held = 0;
    double reported = 0;
    TAGC_Tensor t = TAGC_TENSOR_NULL;
    int n = 0, size;
    MPI_Comm_size(comm, &size);
    t_fill(T_GAUSSIAN, T_F32, t_rank, 0, x, MOST);
    for (int c = 0; c < calls; c++) {
        if (c % 1000 == 0)
            t_step("case 24: call %d of %d on %s", c, calls, name);
        if (c % 50 == 0) { /* another size, with another tensor */
            if (t != TAGC_TENSOR_NULL)
                OK(TAGC_Tensor_free(&t));
            if (c == 1000) { /* everything has been used once */
                held = tagci_mem_held();
                reported = t_stat(TAGC_TENSOR_NULL, TAGC_STAT_WORKSPACE_BYTES);
            }
            if (c > 1000 && c % 200 == 0) {
                CHECK(tagci_mem_held() == held, "%zu bytes held, %zu before", tagci_mem_held(), held);
                CHECK(t_stat(TAGC_TENSOR_NULL, TAGC_STAT_WORKSPACE_BYTES) == reported, "%g bytes reported, %g before",
                      t_stat(TAGC_TENSOR_NULL, TAGC_STAT_WORKSPACE_BYTES), reported);
            }
            n = 1 + (int)(t_uniform(24, (uint64_t)c) * (MOST - 1));
            t = t_tensor(comm, "many", (size_t)n, T_F32, settings[c / 50 % 4]);
        }
        if (c % 3) {
            OK(TAGC_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, comm, t));
        } else { /* no tensor, any size; averages do not go straight to MPI */
            int any = 1 + (int)(t_uniform(25, (uint64_t)c) * (MOST - 1));
            OK(TAGC_Allreduce(x, y, any, MPI_FLOAT, TAGC_AVG, comm, TAGC_TENSOR_NULL));
        }
        if (c % 50 == 49) {
            double bytes = t_stat(t, TAGC_STAT_WORKSPACE_BYTES);
            CHECK(bytes > 0 && bytes < 4e6 + 1e6 * size, "%g bytes of workspace for %d elements", bytes, n);
        }
    }
    OK(TAGC_Tensor_free(&t));
}

/* case 29: ranks that come late, and calls that only some ranks make. */
static void late_ranks(void)
{
    t_step("case 29: a late start");
    MPI_Comm comm;
    float x[300], y[300];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 300; i++)
        x[i] = (float)(i + t_rank);
    usleep(60000 * (unsigned)t_rank);
    OK(TAGC_Allreduce(x, y, 300, MPI_FLOAT, MPI_SUM, comm, TAGC_TENSOR_NULL));
    CHECK(y[7] == (float)(7 * t_size + t_size * (t_size - 1) / 2));
    usleep(40000 * (unsigned)(t_size - t_rank));
    TAGC_Tensor t = t_tensor(comm, "late", 300, T_F32, "algorithm=direct sparsity=0.5");
    for (int step = 0; step < 3; step++) {
        usleep(20000 * (unsigned)((t_rank + step) % t_size));
        OK(TAGC_Allreduce(x, y, 300, MPI_FLOAT, MPI_SUM, comm, t));
    }
    t_step("case 29: local calls on one rank, while the others wait for it");
    int token = 0;
    if (t_rank == 0) {
        MPI_Info info;
        double value;
        MPI_Count bytes;
        OK(TAGC_Tensor_get_info(t, &info));
        MPI_Info_free(&info);
        OK(TAGC_Tensor_get_norm(t, &value));
        OK(TAGC_Get_stat(t, TAGC_STAT_CALLS, &value));
        OK(TAGC_Tensor_pack_size(t, &bytes));
        char *image = malloc((size_t)bytes);
        OK(TAGC_Tensor_pack(t, image, bytes));
        OK(TAGC_Tensor_unpack(t, image, bytes));
        free(image);
        OK(TAGC_Allreduce(x, y, 300, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, TAGC_TENSOR_NULL));
        OK(TAGC_Tensor_reset(t));
        OK(TAGC_Tensor_free(&t));
        for (int r = 1; r < t_size; r++)
            MPI_Send(&token, 1, MPI_INT, r, 29, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&token, 1, MPI_INT, 0, 29, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        OK(TAGC_Tensor_free(&t));
    }
    MPI_Comm_free(&comm);
}

/* A rank that waits in a blocking call sends what the program has told MPI to send: others wait for it first. */
static void own_messages_go_on(void)
{
    enum { N = 6000000 };
    float x[300] = {1}, y[300], *big = calloc(N, sizeof *big);
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "between", 300, T_F32, "");
    for (int step = 0; step < 4; step++) {
        MPI_Request request = MPI_REQUEST_NULL;
        t_step("a message in flight during call %d", step);
        if (t_rank == 0 && t_size > 1)
            MPI_Isend(big, N, MPI_FLOAT, 1, 30, MPI_COMM_WORLD, &request);
        if (t_rank == 1)
            MPI_Recv(big, N, MPI_FLOAT, 0, 30, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        OK(TAGC_Allreduce(x, y, 300, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
        CHECK(y[0] == (float)t_size);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    OK(TAGC_Tensor_free(&t));
    free(big);
}

/* A communicator that is freed before its tensor, and others that are made at its place meanwhile. */
static void communicators_go_first(void)
{
    float x[500], y[500];
    TAGC_Tensor old[8];
    t_fill(T_INTEGERS, T_F32, t_rank, 0, x, 500);
    for (int i = 0; i < 8; i++) {
        t_step("communicator %d freed before its tensor", i);
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        OK(TAGC_Allreduce(x, y, 500, MPI_FLOAT, MPI_SUM, comm, TAGC_TENSOR_NULL));
        old[i] = t_tensor(comm, "old", 500, T_F32, "algorithm=pack sparsity=0.5");
        OK(TAGC_Allreduce(x, y, 500, MPI_FLOAT, MPI_SUM, comm, old[i]));
        MPI_Comm_free(&comm);
        double norm;
        OK(TAGC_Tensor_get_norm(old[i], &norm));
    }
    for (int i = 0; i < 8; i++)
        OK(TAGC_Tensor_free(&old[7 - i]));
}

/* Handles are values: a copy of a freed one is known as freed, also when another tensor stands at its place. */
static void stale_handles(void)
{
    t_step("stale handles");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    TAGC_Tensor first = t_tensor(MPI_COMM_WORLD, "first", 10, T_F32, ""), copy = first;
    OK(TAGC_Tensor_free(&first));
    CHECK(first == TAGC_TENSOR_NULL);
    TAGC_Tensor second = t_tensor(MPI_COMM_WORLD, "second", 10, T_F32, "");
    double value;
    CHECK(t_class(TAGC_Get_stat(copy, TAGC_STAT_CALLS, &value)) == TAGC_ERR_TENSOR);
    CHECK(t_class(TAGC_Tensor_reset(copy)) == TAGC_ERR_TENSOR);
    CHECK(t_class(TAGC_Tensor_free(&copy)) == TAGC_ERR_TENSOR);
    OK(TAGC_Get_stat(second, TAGC_STAT_CALLS, &value));
    OK(TAGC_Tensor_free(&second));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    int version, subversion, length;
    char text[TAGC_MAX_LIBRARY_VERSION_STRING];
    int early = TAGC_Get_version(&version, &subversion) || TAGC_Get_library_version(text, &length);
    t_start(&argc, &argv, 30);
    CHECK(!early, "the version before MPI_Init");
    many_calls(MPI_COMM_SELF, "self", argc > 1 ? atoi(argv[1]) : 100000);
    many_calls(MPI_COMM_WORLD, "world", 3000);
    late_ranks();
    own_messages_go_on();
    communicators_go_first();
    stale_handles();

    /* case 30: one tensor is never freed, another one after MPI_Finalize */
    TAGC_Tensor never = t_tensor(MPI_COMM_WORLD, "never freed", 1000, T_F32, "algorithm=direct sparsity=0.9");
    TAGC_Tensor after = t_tensor(t_comm(T_DUP), "freed late", 1000, T_F64, "algorithm=sketch sparsity=0.9");
    static double x[1000], y[1000];
    OK(TAGC_Allreduce(x, y, 1000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, never));
    OK(TAGC_Allreduce(x, y, 1000, MPI_DOUBLE, MPI_SUM, t_comm(T_DUP), after));
    int verdict = t_end();
    if (TAGC_Tensor_free(&after) || after != TAGC_TENSOR_NULL) {
        fprintf(stderr, "case 30: free after MPI_Finalize\n");
        verdict = 1;
    }
    if (TAGC_Get_version(&version, &subversion))
        verdict = 1;
    return verdict;
}
