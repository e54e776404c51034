/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * A board in memory that all ranks of a communicator share: each writes a few integers, and reads the largest of all
 * ranks'. What an MPI_MAX of MPI's would do, in a fraction of the time; and it waits for nobody, so that other operations
 * can be moved on meanwhile. For blocking calls: one round at a time. */
#ifndef TAGCI_COLL_BOARD_H
#define TAGCI_COLL_BOARD_H

#include <stdint.h>

#include "coll/agree.h"

struct tagci_comm;
struct tagci_board;

/* Collective. Sets c->board where the ranks are on one node and can share memory, all of them; that it cannot be had is no
 * error. Does nothing a second time. */
void tagci_board_make(struct tagci_comm *c);
void tagci_board_release(struct tagci_board *b); /* local; NULL: nothing */
/* Begins a round: the same on all ranks. */
void tagci_board_write(struct tagci_board *b, const struct tagci_agreement *own);
/* 1: all have written, *all is the largest of each word; 0: not yet. */
int tagci_board_read(struct tagci_board *b, struct tagci_agreement *all);
/* Between the n-th look in vain and the next one. After a while MPI gets on with the program's own messages, on which
 * others may wait before they come here, and others get the processor. */
void tagci_board_pause(const struct tagci_comm *c, unsigned n);

#endif
