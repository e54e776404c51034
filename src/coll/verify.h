/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Setting `verify`: what was sent is reduced, or gathered, once more by MPI itself, and the results compared. A gather that
 * rounds is held against the same rounding of what MPI gathers. */
#ifndef TAGCI_COLL_VERIFY_H
#define TAGCI_COLL_VERIFY_H

#include "coll/op.h"

size_t tagci_verify_room(const struct tagci_op *op);
void tagci_verify_lay_out(struct tagci_op *op);
const struct tagci_stage *tagci_verify_before(const struct tagci_op *op);
const struct tagci_stage *tagci_verify_after(const struct tagci_op *op);
/* On all ranks alike: the call went to MPI itself, so there is nothing to compare. */
void tagci_verify_skip(struct tagci_op *op);

#endif
