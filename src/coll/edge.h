/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The edges of a call: the user's buffers, and the tensor's residual, on the one side, what the kernels and MPI work on
 * on the other. Kernels run on the host or on a device; what they cannot reach where it is stands in a copy during the
 * call: copied in from the beginning on, copied back until the end, and only what the call may write.
 *
 * Copies, kernels and messages go on at once where that changes no bit. Input that an algorithm takes chunk by chunk is
 * put on the order of copies whole, in a few stretches with a mark behind each, and the algorithm begins with the chunks
 * that are here (tagci_op_has_come). Results that are final go back while others are still worked on
 * (tagci_op_hand_back). What goes to MPI's own collective is not cut into several: the order of MPI's additions, so the
 * bits, may depend on the length, and all ranks have to make the same calls, those without a device too.
 *
 * Where the buffers are is found out for every call. A rank's memory is its own affair: ranks may differ. */
#ifndef TAGCI_COLL_EDGE_H
#define TAGCI_COLL_EDGE_H

#include "backend/device.h"

struct tagci_args;
struct tagci_comm;
struct tagci_op;

struct tagci_edge {
    struct tagci_home home;
    unsigned char *user; /* its first byte, which for derived types may come before or after the buffer's address */
    ptrdiff_t shift;     /* from the buffer's address to that byte */
    size_t bytes;
    int in;           /* the call reads it */
    size_t back_from; /* what the call writes: these bytes of it */
    size_t back_bytes;
    size_t gone;         /* so many of these bytes are on their way back */
    unsigned char *here; /* the copy; NULL: none is needed */
};

/* WHOLE: the vector of an allreduce whose second half is done on the host, by an algorithm that owns the copy. */
enum { TAGCI_EDGE_SEND, TAGCI_EDGE_RECV, TAGCI_EDGE_RESIDUAL, TAGCI_EDGE_SPARE, TAGCI_EDGE_WHOLE, TAGCI_EDGES };

struct tagci_edges {
    struct tagci_edge at[TAGCI_EDGES];
    int begun;                 /* copying */
    int streamed;              /* the input comes in stretches */
    int come;                  /* so many of them are here */
    size_t until[TAGCI_MARKS]; /* where each ends, if they are the vector from the first element on */
    int failed;                /* a copy back could not be put on its order */
};

/* Describes the buffers of a call's arguments. *home: where one of them is that is not ordinary host memory, and of two a
 * device's own before one that is shared. 0 or an error code: they are on two devices. */
int tagci_edges_find(struct tagci_edges *e, const struct tagci_args *a, const struct tagci_comm *c,
                     struct tagci_home *home);

/* ---- A call that goes to MPI as it is, on the spot ---- */

/* Copies in what MPI cannot reach and puts the copies into *a; *d is then taken. 0 or an error code. */
int tagci_edges_lift(struct tagci_edges *e, struct tagci_args *a, const struct tagci_home *home,
                     struct tagci_device **d);
/* Copies back and hands *d back. failed: the call did, so nothing is copied. */
int tagci_edges_drop(struct tagci_edges *e, const struct tagci_args *a, struct tagci_device *d, int failed);

/* ---- An operation ---- */

/* Finds its buffers, and gives it a device if one takes part; a tensor that may move to a device does so now. 0 or an
 * error code. */
int tagci_op_find_edges(struct tagci_op *op);
/* Its tensor may have changed sides: so does it. */
void tagci_op_follow_tensor(struct tagci_op *op);
/* The algorithm is chosen: decides where kernels run, and so what has to be copied. */
void tagci_op_choose_side(struct tagci_op *op);
size_t tagci_op_edge_room(const struct tagci_op *op, enum tagci_memory kind); /* for the copies */
void tagci_op_lay_out_edges(struct tagci_op *op);
enum tagci_progress tagci_op_copy_in(struct tagci_op *op);   /* a stage; a failure is told by the stage after it */
enum tagci_progress tagci_op_copy_back(struct tagci_op *op); /* a stage */
/* How many elements of the input, and of its residual, may be read, from the first on: if the operation blocks, not less
 * than these. A copy that failed counts as one that has come: op->broken is then set. */
size_t tagci_op_come(struct tagci_op *op, size_t least);
/* The same for chunk c of an owner's part where nothing is selected, for `direct` which takes them in another order; and
 * for all. Neither waits. */
int tagci_op_has_come(struct tagci_op *op, int owner, size_t c);
int tagci_op_all_has_come(struct tagci_op *op);
/* If these bytes are results in a copy: they are final, and go back now. Each byte once. */
void tagci_op_hand_back(struct tagci_op *op, const void *at, size_t bytes);
int tagci_op_hand_back_rest(struct tagci_op *op, int edge); /* all, if some have not. 0 or -1 */
void tagci_op_leave_edges(struct tagci_op *op);             /* the arguments are the user's again */

/* Whether MPI reaches the memory of this backend's devices itself: asked at run time. No while MPI does
 * not run. */
int tagci_mpi_reaches(const char *backend);

#endif
