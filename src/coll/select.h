/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#ifndef TAGCI_COLL_SELECT_H
#define TAGCI_COLL_SELECT_H

#include "coll/op.h"

/* Chooses the algorithm for the call-th call, with the reason, from facts that all ranks share: settings, shape, that
 * number, where the ranks are. Sets share, lossy, residual_in and residual_out. */
void tagci_select(struct tagci_op *op, int64_t call);
/* Whether `dense` was chosen for reasons that do not depend on the number of the call. */
int tagci_select_lasts(const struct tagci_op *op);
const char *tagci_reason(int reason); /* a TAGC_REASON_... in words */
/* Is a lossless gather of this many bytes in all worth coding by default? remembers: with a tensor. */
int tagci_gather_pays(const struct tagci_settings *set, const struct tagci_comm *c, double bytes, int remembers);

#endif
