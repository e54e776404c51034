/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Second half of an allreduce by `direct`: the owners' results travel to all ranks, exactly, as frames where that is
 * less. For a reduce-scatter these stages do nothing. All ranks, the owner included, take the same bits from them. */
#ifndef TAGCI_COLL_REDUCE_RESULT_H
#define TAGCI_COLL_REDUCE_RESULT_H

#include "coll/op.h"

size_t tagci_result_room(const struct tagci_op *op);
void tagci_result_lay_out(struct tagci_op *op);
enum tagci_progress tagci_result_encode(struct tagci_op *op);
enum tagci_progress tagci_result_sizes(struct tagci_op *op); /* posts the exchange of sizes */
enum tagci_progress tagci_result_post(struct tagci_op *op);
enum tagci_progress tagci_result_decode(struct tagci_op *op);

/* All of these, at the end of an algorithm's stages. */
#define TAGCI_RESULT_STAGES                                                                                            \
    {tagci_result_encode, TAGCI_PHASE_ENCODE, 0}, {tagci_result_sizes, TAGCI_PHASE_COMM, 1},                           \
        {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0}, {tagci_result_post, TAGCI_PHASE_COMM, 1},                       \
        {tagci_op_wait_requests, TAGCI_PHASE_COMM, 0},                                                                 \
    {                                                                                                                  \
        tagci_result_decode, TAGCI_PHASE_DECODE, 0                                                                     \
    }

#endif
