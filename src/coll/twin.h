/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Algorithms whose kernels run on the host or on a device, from one description. What both kernels and MPI work on stands
 * twice where kernels run on a device: there, and in a twin in pinned memory. On the host the twin is the piece itself, and
 * nothing is copied.
 *
 * A device may fail between two collectives. This rank then goes on with whatever is in its twins, puts nothing more on the
 * device, and tells the others beside the next collective; then all fail. */
#ifndef TAGCI_COLL_TWIN_H
#define TAGCI_COLL_TWIN_H

#include "coll/op.h"

/* A piece of workspace for kernels' data, and its twin. */
void *tagci_op_take_twin(struct tagci_op *op, size_t count, size_t size, void **twin);
/* What the twin takes, for room(); data_room() has the piece itself. */
size_t tagci_op_twin(const struct tagci_op *op, size_t count, size_t size);
/* Copies between a piece and its twin. 0 or -1. */
int tagci_op_bring(const struct tagci_op *op, void *to, const void *from, size_t bytes);

/* Keeps the failure of a kernel or copy (failed: not 0) until the others can be told. */
void tagci_op_try(struct tagci_op *op, int failed);
/* Posts, beside another collective, whether this rank has failed. */
enum tagci_progress tagci_op_tell(struct tagci_op *op);
/* A stage, when the requests are complete: fails if any rank has. */
enum tagci_progress tagci_op_hear(struct tagci_op *op);

#endif
