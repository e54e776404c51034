/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Sub-commands of tagc_bench. Each takes its own arguments, argv[0] being its name, and returns an exit status. */
#ifndef TAGC_TOOLS_BENCH_H
#define TAGC_TOOLS_BENCH_H

int bench_collective(int argc, char **argv);
int bench_kernels(int argc, char **argv);
int bench_lossless(int argc, char **argv);
int bench_tune(int argc, char **argv);

/* A number of a command line, more than 0 and at most `most`. Returns 0, or -1: text is NULL or says no such number. */
int bench_read_number(const char *text, double most, double *x);

#endif
