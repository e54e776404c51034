/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include <stdio.h>
#include <stdlib.h>
#include <tagc.h>

enum { PART = 250000 };

int main(int argc, char **argv)
{
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    float *gradient = calloc((size_t)PART * ranks, sizeof(float));
    float *shard = calloc(PART, sizeof(float));

    MPI_Info info;
    TAGC_Tensor tensor;
    MPI_Info_create(&info);
    MPI_Info_set(info, "tagc_sparsity", "0.95");    /* 1 value in 20 travels, the rest waits for the next call */
    MPI_Info_set(info, "tagc_algorithm", "direct"); /* the default, auto, leaves ranks of one node to MPI */
    TAGC_Tensor_create(MPI_COMM_WORLD, "mlp.weight", PART * ranks, MPI_FLOAT, info, &tensor);
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < PART * ranks; i++)
            gradient[i] = rand() / (float)RAND_MAX - 0.5f;
        TAGC_Reduce_scatter_block(gradient, shard, PART, MPI_FLOAT, TAGC_AVG, MPI_COMM_WORLD, tensor);
    }
    double sent, dense;
    TAGC_Get_stat(tensor, TAGC_STAT_BYTES_SENT, &sent);
    TAGC_Get_stat(tensor, TAGC_STAT_BYTES_DENSE, &dense);
    printf("%.0f bytes sent, %.0f by MPI_Reduce_scatter_block\n", sent, dense);
    TAGC_Tensor_free(&tensor);
    MPI_Info_free(&info);
    MPI_Finalize();
    free(gradient);
    free(shard);
    return 0;
}
