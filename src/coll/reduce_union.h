/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What `pack` and `sketch` share: the ranks merge their bitmaps (MPI_BOR), and each packs its kept values onto the union,
 * zeros where it kept none. 16-bit types are packed as float. Afterwards the owner's packed sums become the result. Kernels
 * run on the host or on a device; names that end in _here are twins (coll/twin.h). */
#ifndef TAGCI_COLL_REDUCE_UNION_H
#define TAGCI_COLL_REDUCE_UNION_H

#include "coll/mpi.h"
#include "coll/op.h"

struct tagci_union {
    uint64_t *own, *whole; /* bitmaps, every part from a whole word on */
    uint64_t *own_here, *whole_here;
    size_t *word;  /* ranks + 1: first word of a part */
    size_t *entry; /* ranks + 1: union entries of the parts before; known after the merge */
    void *values;  /* kept values of a chunk stand where the chunk does */
    void *packed;  /* entry[ranks] values of the work type */
    void *packed_here;
    void *sum; /* the own part's entries, summed */
    void *sum_here;
    struct tagci_chunk *chunk; /* one batch, and its runs */
    struct tagci_run *runs;
    size_t *found; /* what kernels say that is known already */
    struct tagci_counts counts;
    size_t next; /* chunk to be sparsified, */
    int owner;   /* in this part */
    double kept;
};

size_t tagci_union_room(const struct tagci_op *op);
size_t tagci_union_data_room(const struct tagci_op *op);
void tagci_union_lay_out(struct tagci_op *op, struct tagci_union *u);
/* Stages' work, in order. What posts also tells of failures: tagci_op_hear comes after the wait. */
enum tagci_progress tagci_union_sparsify(struct tagci_op *op, struct tagci_union *u);
enum tagci_progress tagci_union_merge(struct tagci_op *op, struct tagci_union *u); /* posts */
enum tagci_progress tagci_union_pack(struct tagci_op *op, struct tagci_union *u);
/* u->sum is there: average and rounding, and in an allreduce the gathering of all parts (posts). */
enum tagci_progress tagci_union_gather(struct tagci_op *op, struct tagci_union *u);
enum tagci_progress tagci_union_unpack(struct tagci_op *op, struct tagci_union *u);
MPI_Datatype tagci_union_type(const struct tagci_op *op); /* of packed values: MPI_FLOAT or MPI_DOUBLE */

#endif
