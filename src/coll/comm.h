/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What the library keeps with a communicator: a private duplicate and facts that all its ranks share. Made at the first
 * collective call on the communicator (which is collective), kept as an attribute, freed with it or at MPI_Finalize. */
#ifndef TAGCI_COLL_COMM_H
#define TAGCI_COLL_COMM_H

#include <mpi.h>
#include <stdint.h>

#include "util/settings.h"

struct tagci_op;
struct tagci_nodes;
struct tagci_board;

struct tagci_comm {
    MPI_Comm private; /* same group as the user's; errors return */
    int user_gone;    /* the user's communicator was freed: no error handler to call */
    int rank, size;
    int nonblocking;           /* a nonblocking or persistent operation was started or made on it: on all ranks alike */
    int one_node;              /* all ranks share memory */
    int board_asked;           /* for one, with the first tensor */
    struct tagci_board *board; /* coll/board.h, or NULL */
    struct tagci_nodes *nodes; /* or NULL: not several nodes with several ranks each, as many on all */
    int setup_error; /* class; environment settings differ between ranks, or are wrong: an error of every call */
    char *setup_why; /* what of it follows the name of the call in its text */
    struct tagci_settings exact; /* of calls without a tensor: environment and defaults */
    uint64_t started;            /* operations started so far: the same on all ranks */
    struct tagci_op *line;       /* operations that still have a collective to post on `private`, in start order */
    int holders;                 /* the attribute, tensors and operations */
    struct tagci_comm *next;     /* all of the process */
};

/* State of a communicator. Collective at the first call on it. Errors (made, not raised): MPI_ERR_COMM for
 * MPI_COMM_NULL and inter-communicators, that of the setup. *state is NULL only where there is no usable communicator. */
int tagci_comm_get(const char *call, MPI_Comm comm, struct tagci_comm **state);
/* The same without the setup, and local: *state is NULL, and that is no error, where no call was collective on it yet. */
int tagci_comm_look(const char *call, MPI_Comm comm, struct tagci_comm **state);
/* A state of its own for the same ranks, with a duplicate of its own; one holder. Collective. */
int tagci_comm_copy(struct tagci_comm *c, struct tagci_comm **copy);
/* A state for a communicator of the library's own, which is the state's from here on, also after an error. */
int tagci_comm_adopt(MPI_Comm private, struct tagci_comm **state);
void tagci_comm_hold(struct tagci_comm *c);
void tagci_comm_drop(struct tagci_comm *c); /* frees with the last holder; the duplicate only before MPI_Finalize */

/* Library-wide: arranges that all is released at MPI_Finalize (an attribute of MPI_COMM_SELF). Thread-safe. 0 or an MPI
 * error code: MPI_ERR_OTHER before MPI_Init or after MPI_Finalize. */
int tagci_start_library(void);
int tagci_mpi_usable(void); /* initialized and not finalized */
/* Has f called at MPI_Finalize, before the communicators go. At most a few. */
void tagci_at_finalize(void (*f)(void));

#endif
