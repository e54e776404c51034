/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#ifndef TAGCI_COLL_GATHER_H
#define TAGCI_COLL_GATHER_H

#include "coll/mpi.h"
#include "coll/op.h"

/* Posts MPI's own collective with the user's arguments. */
enum tagci_progress tagci_gather_post_native(struct tagci_op *op, struct tagci_counts *counts);

#endif
