/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Where the buffers of MPI tests are; see memory.c. */
#ifndef TAGC_TESTS_MPI_MEMORY_H
#define TAGC_TESTS_MPI_MEMORY_H

void t_memory_start(void);
int t_memory_leaks(void); /* blocks and orders that the fake device still has, after MPI_Finalize */

#endif
