/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Setting `verify`: what was sent is reduced once more by MPI itself, and the results compared. */
#ifndef TAGCI_COLL_VERIFY_H
#define TAGCI_COLL_VERIFY_H

#include "coll/op.h"

size_t tagci_verify_room(const struct tagci_op *op);
void tagci_verify_lay_out(struct tagci_op *op);
const struct tagci_stage *tagci_verify_before(const struct tagci_op *op);
const struct tagci_stage *tagci_verify_after(const struct tagci_op *op);

#endif
