/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 *   direct [ELEMENTS [TIMES [ALGORITHM]]]
 * Reduce-scatters of vectors on a device, by the direct or another algorithm and the backend TAGC_TEST_DEVICE, with one in
 * five values kept: results must be those of host buffers and the OpenMP backend, bit for bit, step after step. Then how
 * long a call takes, and the gradient's bytes through it. All ranks share the first device. TAGC_TEST_ADD: the library does
 * not know that backend by itself. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "tagc.h"

#ifdef TAGC_TEST_DEVICE
extern const struct tagci_backend TAGC_TEST_DEVICE;

static const struct tagci_backend *const b = &TAGC_TEST_DEVICE;
static struct tagci_order *order;
static int rank, size;
static const char *algorithm = "direct";

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "direct: rank %d: %s failed%s%s\n", rank, what, b->failure && b->failure() ? ": " : "",
            b->failure && b->failure() ? b->failure() : "");
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void copy(void *to, const void *from, size_t bytes)
{
    must(b->copy(order, to, from, bytes) == 0 && b->record(order, 0) == 0 && b->wait(order, 0) == 0, "copy");
}

static TAGC_Tensor tensor(const char *name, int n, const char *backend)
{
    TAGC_Tensor t;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "tagc_algorithm", algorithm);
    MPI_Info_set(info, "tagc_sparsity", "0.8");
    MPI_Info_set(info, "tagc_backend", backend);
    must(TAGC_Tensor_create(MPI_COMM_WORLD, name, n, MPI_FLOAT, info, &t) == MPI_SUCCESS, "TAGC_Tensor_create");
    MPI_Info_free(&info);
    return t;
}

static void fill(float *x, int n, int step)
{
    uint64_t state = (uint64_t)(rank * 1000 + step);
    for (int i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        float u = (float)(state >> 40) * 0x1p-24f - 0.5f;
        x[i] = u * u * u;
    }
}

int main(int argc, char **argv)
{
    int n, part, same = 1, times = argc > 2 ? atoi(argv[2]) : 10;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    algorithm = argc > 3 ? argv[3] : algorithm;
    const char *why = b->probe();
    if (why) {
        if (rank == 0)
            printf("direct: backend %s: %s\n", b->name, why);
        MPI_Finalize();
        return 77;
    }
#ifdef TAGC_TEST_ADD
    tagci_backend_add(b);
#endif
    part = (argc > 1 ? atoi(argv[1]) : 64 << 20) / size;
    n = part * size;
    must((order = b->order_make(0)) != NULL, "order_make");
    float *in = malloc((size_t)n * sizeof *in), *out = malloc((size_t)part * sizeof *out);
    float *again = malloc((size_t)part * sizeof *again);
    float *device_in = b->alloc(order, TAGCI_DEVICE, (size_t)n * sizeof *in);
    float *device_out = b->alloc(order, TAGCI_DEVICE, (size_t)part * sizeof *out);
    must(in && out && again && device_in && device_out, "memory");
    TAGC_Tensor on_host = tensor("host", n, "openmp"), on_device = tensor("device", n, b->name);

    for (int step = 0; step < 4 && same; step++) {
        fill(in, n, step);
        copy(device_in, in, (size_t)n * sizeof *in);
        must(TAGC_Reduce_scatter_block(in, out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, on_host) == MPI_SUCCESS,
             "the call with host buffers");
        must(TAGC_Reduce_scatter_block(device_in, device_out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, on_device) ==
                 MPI_SUCCESS,
             "the call with device buffers");
        copy(again, device_out, (size_t)part * sizeof *again);
        same = memcmp(again, out, (size_t)part * sizeof *out) == 0;
        MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%s: step %d: %s\n", algorithm, step, same ? "the host's bits" : "other bits than the host's");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < times; i++)
        must(TAGC_Reduce_scatter_block(device_in, device_out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, on_device) ==
                 MPI_SUCCESS,
             "the call with device buffers");
    MPI_Barrier(MPI_COMM_WORLD);
    double each = (MPI_Wtime() - begin) / (times ? times : 1);
    if (rank == 0 && times)
        printf("%s: %d ranks, %d floats: %.3f ms a call, %.2f GB/s of gradient for each rank\n", algorithm, size, n,
               each * 1e3, (double)n * 4 / each * 1e-9);
    TAGC_Tensor_free(&on_host);
    TAGC_Tensor_free(&on_device);
    b->release(order, TAGCI_DEVICE, device_in);
    b->release(order, TAGCI_DEVICE, device_out);
    b->order_free(order);
    free(in);
    free(out);
    free(again);
    MPI_Finalize();
    return !same;
}
#else
int main(void)
{
    return 77; /* there is no such backend here */
}
#endif
