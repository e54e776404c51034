/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Progress: all operations in flight of the process, moved on together by whoever tests, waits or starts, or by a thread
 * (setting progress=thread). Under one lock, which is free wherever the user's code or an error handler runs. */
#ifndef TAGCI_COLL_ENGINE_H
#define TAGCI_COLL_ENGINE_H

#include "coll/op.h"

/* An operation is in flight in this process. A blocking call may then not block in MPI: others need progress. */
int tagci_engine_busy(void);
/* Starts the operation and moves everything on once. */
void tagci_engine_start(struct tagci_op *op);
/* Moves everything on once. */
void tagci_engine_sweep(void);
/* Until the operation is complete. */
void tagci_engine_wait(const struct tagci_op *op);
/* Complete, that is not in flight? */
int tagci_engine_done(const struct tagci_op *op);
/* Until no operation in flight has a collective to post on the communicator: a call that posts one of its own outside of
 * the line comes after them on every rank. */
void tagci_engine_clear_line(struct tagci_comm *c);
/* Has `done` called, with no lock held by the caller's thread but the engine's, when the operation completes; returns 0 and
 * does nothing if it is complete already. */
int tagci_engine_at_completion(struct tagci_op *op, void (*done)(struct tagci_op *op));

#endif
