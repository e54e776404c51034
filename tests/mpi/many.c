/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Many ranks: a wait of `direct` looks through so many requests, whatever the number of ranks, and there is room for a frame
 * of each of them and a few more. Counted by functions of this program that stand before MPI's. */
#include <stdlib.h>

#include "common.h"

enum { RECEIVES = 64, LATER = RECEIVES / 2, SENDS = 8, MOST_PLACES = 4096 };

static int most_requests, n_places;
static const void *place[MOST_PLACES]; /* where frames arrive */

int MPI_Irecv(void *at, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    int i = 0;
    while (i < n_places && place[i] != at)
        i++;
    if (i == n_places && n_places < MOST_PLACES)
        place[n_places++] = at;
    return PMPI_Irecv(at, n, type, from, tag, comm, request);
}

#define SOME (int n, MPI_Request *request, int *done, int *index, MPI_Status *status)
int MPI_Waitsome SOME
{
    most_requests = n > most_requests ? n : most_requests;
    return PMPI_Waitsome(n, request, done, index, status);
}
int MPI_Testsome SOME
{
    most_requests = n > most_requests ? n : most_requests;
    return PMPI_Testsome(n, request, done, index, status);
}

/* One rank's part is of several chunks, so that the frames of two of them are on their way at a time; the others' are short. */
static void exchange(const char *settings)
{
    int *counts = calloc((size_t)t_size, sizeof *counts), busy = t_size / 3, total = 0;
    for (int r = 0; r < t_size; r++)
        total += counts[r] = r == busy ? 200000 : 100 + r;
    float *x = calloc((size_t)total, sizeof *x), *y = calloc((size_t)counts[t_rank], sizeof *y),
          *sum = calloc((size_t)counts[t_rank], sizeof *sum);
    t_fill(T_INTEGERS, T_F32, t_rank, 0, x, (size_t)total);
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "many", (size_t)total, T_F32, settings);
    most_requests = n_places = 0;
    OK(TAGC_Reduce_scatter(x, y, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
    CHECK(t_stat(t, TAGC_STAT_ALGORITHM) == (t_size > 1 ? TAGC_ALGORITHM_DIRECT : TAGC_ALGORITHM_LOCAL));
    CHECK(most_requests <= RECEIVES + SENDS, "%d requests", most_requests);
    CHECK(n_places <= t_size - 1 + LATER, "%d places", n_places);
    CHECK(t_size == 1 || t_rank != busy || n_places >= t_size - 1, "%d places", n_places);
    OK(MPI_Reduce_scatter(x, sum, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < counts[t_rank]; i++)
        CHECK(y[i] == sum[i], "%s, element %d: %g, not %g", settings, i, y[i], sum[i]);
    OK(TAGC_Tensor_free(&t));
    free(counts);
    free(x);
    free(y);
    free(sum);
}

int main(int argc, char **argv)
{
    t_start(&argc, &argv, 100);
    t_step("nothing is held back");
    exchange("algorithm=direct");
    t_step("half is, all of it zeros");
    exchange("algorithm=direct sparsity=0.5");
    return t_end();
}
