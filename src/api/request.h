/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What is behind a request. */
#ifndef TAGCI_API_REQUEST_H
#define TAGCI_API_REQUEST_H

#include "coll/op.h"
#include "tagc.h"

struct tagci_request {
    struct tagci_op op; /* first: the engine hands operations back */
    TAGC_Request handle;
    int persistent, started; /* started: since the last completion that the user saw */
    int freed;               /* by the user, while in flight */
    MPI_Comm user;           /* to raise errors on, */
    struct tagci_comm *comm; /* and the state of it, held */
    struct tagci_comm *line; /* of a persistent request: its own */
    MPI_Request mpi;         /* once it has been handed over */
    int handed_back;         /* then: by MPI, by the completion */
};

/* Gives it a handle. 0, or -1: no memory. */
int tagci_request_register(struct tagci_request *r);
void tagci_request_destroy(struct tagci_request *r); /* may be NULL */
/* The user has no handle of it any more: it is destroyed, once its operation is complete. */
void tagci_request_let_go(struct tagci_request *r);

#endif
