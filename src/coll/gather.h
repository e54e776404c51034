/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#ifndef TAGCI_COLL_GATHER_H
#define TAGCI_COLL_GATHER_H

#include "coll/mpi.h"
#include "coll/op.h"
#include "core/lossless_round.h"

/* Posts MPI's own collective with the user's arguments. */
enum tagci_progress tagci_gather_post_native(struct tagci_op *op, struct tagci_counts *counts);

/* Whether a gather rounds, and to what. */
int tagci_gather_rounds(const struct tagci_op *op);
enum tagci_round tagci_gather_form(const struct tagci_op *op);
/* What a coded gather wants all ranks to know: whether they have it alike (coll/agree.h). */
uint64_t tagci_gather_alike(const struct tagci_op *op);

#endif
