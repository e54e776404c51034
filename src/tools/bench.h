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

#endif
