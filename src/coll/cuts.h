/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Where a call cuts its vector: one cut for each stretch over which the share is taken (setting `granularity`). */
#ifndef TAGCI_COLL_CUTS_H
#define TAGCI_COLL_CUTS_H

#include "coll/op.h"

struct tagci_cuts; /* in the operation's workspace */

size_t tagci_cuts_room(const struct tagci_op *op);
void tagci_cuts_lay_out(struct tagci_op *op);
/* Stage: finds the cuts (nothing to do for a call that holds nothing back). */
enum tagci_progress tagci_cuts_find(struct tagci_op *op);
/* Fills in a chunk of the encoding kernels for chunk c of owner's part: input, residuals, runs. runs: room for
 * tagci_cuts_runs(op) of them. Outputs (bitmap, values, frame) are the caller's. */
size_t tagci_cuts_runs(const struct tagci_op *op);
void tagci_cuts_chunk(const struct tagci_op *op, int owner, size_t c, struct tagci_run *runs,
                      struct tagci_chunk *chunk);

#endif
