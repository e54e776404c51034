/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * tagc_bench: measures the library. The first argument says what. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"reduce_scatter", bench_collective, "collectives beside MPI's own; under mpiexec"},
    {"reduce_scatter_block", bench_collective, ""},
    {"allreduce", bench_collective, ""},
    {"allgather", bench_collective, ""},
    {"allgatherv", bench_collective, ""},
    {"tune", bench_tune, "writes the costs that algorithm=auto reckons with; under mpiexec"},
    {"kernels", bench_kernels, "rates of the kernels beside memcpy; no MPI"},
    {"lossless", bench_lossless, "the compressor of the all-gather: ratios and rates on one core; no MPI"},
};

int bench_read_number(const char *text, double most, double *x)
{
    char *end;
    *x = text ? strtod(text, &end) : 0;
    return *x > 0 && *x <= most && !*end ? 0 : -1;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    fputs("usage: tagc_bench COMMAND [options]\n", stderr);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(stderr, "  %-21s %s\n", commands[i].name, commands[i].help);
    return 2;
}
