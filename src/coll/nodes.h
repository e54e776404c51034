/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Which ranks share memory. Found once, with the state of a communicator. */
#ifndef TAGCI_COLL_NODES_H
#define TAGCI_COLL_NODES_H

#include "coll/comm.h"
#include "coll/lanes.h"

/* Nodes with the same number of ranks each. Rank `local` of one node and those of the others form a line across. */
struct tagci_nodes {
    int nodes, per_node; /* both 2 or more */
    int node, local;     /* this rank's */
    struct tagci_comm *here, *across;
    struct tagci_lanes *lanes; /* of `here` */
    int rank[];                /* of node k, local l: rank[k * per_node + l] */
};

/* Ranks of c on this rank's node, as a communicator. Collective. */
int tagci_nodes_split(struct tagci_comm *c, MPI_Comm *here);
/* Sets c->nodes, if the nodes are many, and alike, and share memory as they say. `here` is the node's communicator and belongs to this call from here
 * on. Collective over c. An MPI error code. */
int tagci_nodes_find(struct tagci_comm *c, MPI_Comm here);
void tagci_nodes_free(struct tagci_nodes *n); /* local; not the communicators, which have holders. NULL: nothing */

/* For tests on one machine: 0: the truth; k > 0: k ranks in a row make a node; -k: every k-th rank is of one node. */
extern int tagci_nodes_pretend;

#endif
