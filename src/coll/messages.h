/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Messages of an operation between pairs of ranks: its receives and sends, in one array of requests. */
#ifndef TAGCI_COLL_MESSAGES_H
#define TAGCI_COLL_MESSAGES_H

#include "coll/op.h"

struct tagci_messages {
    int n;
    MPI_Request *request;
    int *index;         /* of those that the last look found complete */
    MPI_Status *status; /* theirs */
};

size_t tagci_messages_room(size_t n);
void tagci_messages_lay_out(struct tagci_op *op, struct tagci_messages *m, size_t n);
void tagci_messages_begin(struct tagci_messages *m); /* none is posted */
/* Operations in flight on one communicator have different ones; the same on all ranks. */
static inline int tagci_messages_tag(const struct tagci_op *op)
{
    return (int)(op->number & 0x7fff);
}
/* Learns which are complete, *done of them; blocks for one if told to. An MPI error code. */
int tagci_messages_look(struct tagci_op *op, struct tagci_messages *m, int block, int *done);

#endif
