/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Particles add their charge to a grid that all ranks share; then each rank gets its rows of the sum. A rank's particles
 * are a cloud: it touches few cells, and the zeros need not travel. Nothing is rounded or held back (TAGC_TENSOR_NULL).
 *
 *   TAGC_ALGORITHM=direct mpiexec -n 4 ./deposit
 *
 * Without TAGC_ALGORITHM a call without a tensor leaves the work to MPI's own collective: then both move the same bytes.
 * examples/deposit.f90 is the same program in Fortran. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tagc.h>

enum { COLUMNS = 1024, ROWS = 1024, PARTICLES = 20000, STEPS = 10, UNIT = 256, SPREAD = 48 };

struct particle {
    long x, y; /* in units of 1/256 of a cell: all weights are exact, and so are all sums */
};

static unsigned long random_state;
static long random_below(long n)
{
    random_state = (random_state * 1103515245 + 12345) % 2147483648u;
    return (long)(random_state / 65536) % n;
}

/* A cloud around a place of the rank's own */
static void scatter(struct particle *p, int rank)
{
    long cx = COLUMNS * (rank * 2 + 1) % COLUMNS / 2 + COLUMNS / 4, cy = ROWS * ((rank * 5 + 2) % 8) / 8 + ROWS / 16;
    random_state = (unsigned long)rank + 1;
    for (int i = 0; i < PARTICLES; i++) {
        p[i].x = p[i].y = 0;
        for (int k = 0; k < 3; k++) {
            p[i].x += random_below(SPREAD * UNIT) - SPREAD * UNIT / 2;
            p[i].y += random_below(SPREAD * UNIT) - SPREAD * UNIT / 2;
        }
        p[i].x += cx * UNIT;
        p[i].y += cy * UNIT;
    }
}

static void move(struct particle *p)
{
    for (int i = 0; i < PARTICLES; i++) {
        p[i].x += random_below(2 * UNIT) - UNIT / 2;
        p[i].y += random_below(2 * UNIT) - UNIT;
    }
}

/* Each particle's unit charge goes to the four cells around it */
static void deposit(const struct particle *p, double *grid)
{
    memset(grid, 0, sizeof *grid * COLUMNS * ROWS);
    for (int i = 0; i < PARTICLES; i++) {
        long x = (p[i].x % (COLUMNS * UNIT) + COLUMNS * UNIT) % (COLUMNS * UNIT);
        long y = (p[i].y % (ROWS * UNIT) + ROWS * UNIT) % (ROWS * UNIT);
        long column = x / UNIT, row = y / UNIT;
        double right = (double)(x % UNIT) / UNIT, down = (double)(y % UNIT) / UNIT;
        long next = (column + 1) % COLUMNS, below = (row + 1) % ROWS;
        grid[row * COLUMNS + column] += (1 - right) * (1 - down);
        grid[row * COLUMNS + next] += right * (1 - down);
        grid[below * COLUMNS + column] += (1 - right) * down;
        grid[below * COLUMNS + next] += right * down;
    }
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    /* Rows in parts that are as even as can be */
    int *counts = malloc(sizeof *counts * ranks);
    for (int r = 0; r < ranks; r++)
        counts[r] = (ROWS / ranks + (r < ROWS % ranks)) * COLUMNS;
    int own = counts[rank];
    struct particle *particles = malloc(sizeof *particles * PARTICLES);
    double *grid = malloc(sizeof *grid * COLUMNS * ROWS);
    double *charge = malloc(sizeof *charge * own), *of_mpi = malloc(sizeof *of_mpi * own);

    double time = 0, time_mpi = 0, total = 0;
    int different = 0;
    scatter(particles, rank);
    for (int step = 0; step <= STEPS; step++) { /* step 0 warms up */
        deposit(particles, grid);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        TAGC_Reduce_scatter(grid, charge, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL);
        double middle = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        double again = MPI_Wtime();
        MPI_Reduce_scatter(grid, of_mpi, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (step) {
            time += middle - start;
            time_mpi += MPI_Wtime() - again;
        }
        total = 0;
        for (int i = 0; i < own; i++) {
            different += charge[i] != of_mpi[i];
            total += charge[i];
        }
        move(particles);
    }

    double mine[5] = {total, different}, all[5], worst[2], times[2] = {time / STEPS, time_mpi / STEPS};
    TAGC_Get_stat(TAGC_TENSOR_NULL, TAGC_STAT_BYTES_SENT, &mine[2]);
    TAGC_Get_stat(TAGC_TENSOR_NULL, TAGC_STAT_BYTES_DENSE, &mine[3]);
    TAGC_Get_stat(TAGC_TENSOR_NULL, TAGC_STAT_DENSITY, &mine[4]);
    MPI_Reduce(mine, all, 5, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(times, worst, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Bcast(&all[1], 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks, %d particles each, grid of %d x %d\n", ranks, PARTICLES, COLUMNS, ROWS);
        printf("charge %.0f, cells that differ from MPI's: %.0f\n", all[0], all[1]);
        printf("TAGC  %12.0f bytes a step  %8.3f ms\n", all[2] / (STEPS + 1), worst[0] * 1e3);
        printf("MPI   %12.0f bytes a step  %8.3f ms\n", all[3] / (STEPS + 1), worst[1] * 1e3);
        if (!getenv("TAGC_ALGORITHM"))
            printf("TAGC_ALGORITHM is not set: MPI's own collective did the work; try TAGC_ALGORITHM=direct\n");
    }
    MPI_Finalize();
    free(counts);
    free(particles);
    free(grid);
    free(charge);
    free(of_mpi);
    return all[1] != 0;
}
