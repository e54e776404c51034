/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Memory that all ranks of a communicator map, where they can. */
#ifndef TAGCI_COLL_SHARED_H
#define TAGCI_COLL_SHARED_H

#include <mpi.h>
#include <stddef.h>

/* bytes of zeros, aligned to TAGCI_ALIGN: *at, or NULL on all ranks where some do not get it, which is no error. bytes: the
 * same on all. usable: 0 where this rank has no use for it, and then nobody gets it. Collective. An MPI error code. */
int tagci_shared_open(MPI_Comm comm, size_t bytes, int usable, void **at);
void tagci_shared_close(void *at, size_t bytes); /* local; NULL: nothing */

#endif
