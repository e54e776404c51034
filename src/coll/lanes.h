/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Memory that the ranks of a node share: from each rank to each other one a lane, through which it gives pieces of data,
 * in order. A lane holds two pieces or more, so that one is filled while another is read, and little enough for caches: half
 * a megabyte for each rank, at most, with up to 64 of them. Nothing here waits. */
#ifndef TAGCI_COLL_LANES_H
#define TAGCI_COLL_LANES_H

#include <mpi.h>
#include <stddef.h>

struct tagci_lanes;

/* Lanes between the ranks of `here`; *lanes is NULL where they do not get memory together: on all of them alike.
 * Collective. An MPI error code. */
int tagci_lanes_open(MPI_Comm here, struct tagci_lanes **lanes);
void tagci_lanes_close(struct tagci_lanes *lanes); /* local; NULL: nothing */

size_t tagci_lanes_piece(const struct tagci_lanes *lanes); /* bytes of a piece, at most; a multiple of 64 */
/* Where the next piece for `to` goes, or NULL: there is no room yet. Then, filled, it is given. */
void *tagci_lanes_room(const struct tagci_lanes *lanes, int to);
void tagci_lanes_give(const struct tagci_lanes *lanes, int to);
/* The next piece of `from`, or NULL: it is not there yet. Then, read, it is done with. */
const void *tagci_lanes_next(const struct tagci_lanes *lanes, int from);
void tagci_lanes_done(const struct tagci_lanes *lanes, int from);

#endif
