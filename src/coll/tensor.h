/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The tensor inside: settings, residual, workspace, statistics. */
#ifndef TAGCI_COLL_TENSOR_H
#define TAGCI_COLL_TENSOR_H

#include <mpi.h>
#include <stdint.h>

#include "backend/device.h"
#include "coll/comm.h"
#include "tagc.h"
#include "util/mem.h"
#include "util/settings.h"

struct tagci_stats { /* one cell per TAGC_STAT_... */
    double at[TAGC_STAT_REASON + 1];
};

/* Calls that MPI's own collective does alone, as the last one: what has to be the same for that. */
struct tagci_plain {
    int known;
    int collective, reason;
    uint64_t shape, facts; /* of the counts; what ranks compare, but for the number of calls */
};

struct tagci_tensor {
    struct tagci_comm *comm;
    MPI_Comm user_comm; /* what the user passed: to raise errors on */
    char *name;
    size_t count;
    MPI_Datatype datatype;
    int compressible; /* one of the four element types */
    enum tagci_type type;
    struct tagci_settings settings;
    const struct tagci_backend *backend;
    int opened; /* openmp's scratch memory, by this tensor */
    /* A tensor that has met a device has an order and workspace on it. It is resident if its residual lives there, and the
     * device's kernels work for it: that is so if its backend is the device's, by name or because the setting leaves it to
     * whoever owns the buffers. Once it has met memory of the device's own it is settled, and stays there. Before that the
     * device is a guess (what the thread used that made it, what shared memory was made on). */
    struct tagci_device *device;
    int resident, settled;
    void *stream; /* the user's; NULL: none was named */
    TAGC_Tensor handle;

    /* Error feedback. residual is what stands now; spare takes the next one, and the two change places when an operation
     * completes, so that an error anywhere leaves the residual as it was. Both are NULL where the settings never hold
     * anything back. is_zero: the residual counts as all zeros and its memory is not looked at. */
    void *residual, *spare;
    int residual_is_zero;

    struct tagci_plain plain;
    int64_t calls; /* reductions that all ranks took part in: schedules and warm-up count these */
    /* Gathers: the state that all ranks gathered last (elements, or codes of a rounding gather), part behind part in rank
     * order, and what it is called: 0 for none. Ranks with the same history have the same name for it. */
    void *memory;
    size_t memory_bytes;
    int memory_there; /* it stands on the device */
    uint64_t memory_name;
    int64_t gathers; /* with the present memory */
    struct tagci_op *in_flight;
    int freed;              /* by the user, while in flight */
    struct tagci_room work; /* workspace of operations, kept between calls */
    struct tagci_stats stats;
};

/* Settings ask that values be held back or rounded (at any call), so that a residual is needed. */
int tagci_tensor_lossy(const struct tagci_tensor *t);
/* Makes sure that residual and spare exist (zero at first). 0 or -1: no memory. */
int tagci_tensor_need_residual(struct tagci_tensor *t);
/* Makes sure that there is a memory of so many bytes, on its device or not; another one is forgotten. 0 or -1: none. */
int tagci_tensor_need_memory(struct tagci_tensor *t, size_t bytes, int there);
/* Whether it is on this device, or may go there, or need not. */
int tagci_tensor_may_use(const struct tagci_tensor *t, const struct tagci_home *home);
/* Gives it a device that it may use, unless it has it; its residual goes there if its settings allow that. 0, or -1: no
 * memory, and nothing is lost. */
int tagci_tensor_use(struct tagci_tensor *t, const struct tagci_home *home);
/* Where the host has to look at the residual of a resident tensor: it comes, and goes back. 0, or -1: it stays where it is,
 * and nothing is lost. */
int tagci_tensor_to_host(struct tagci_tensor *t);
int tagci_tensor_to_device(struct tagci_tensor *t);
/* Gives it a handle. 0 or -1: no memory. */
int tagci_tensor_register(struct tagci_tensor *t);
/* Tensor behind a handle; NULL if the handle was freed or never was one. Thread-safe. */
struct tagci_tensor *tagci_tensor_of(TAGC_Tensor handle);
/* Releases everything; called by free, or at the completion of the last operation of a freed tensor. */
void tagci_tensor_destroy(struct tagci_tensor *t);
void tagci_tensor_destroy_all(void); /* at MPI_Finalize */

/* Element type of a datatype handle (float and double under all their names, the two 16-bit types); 0 if not one. */
int tagci_type_of(MPI_Datatype datatype, enum tagci_type *type);

extern struct tagci_stats tagci_process_stats;           /* through tagci_stats_add and tagci_stats_get only */
size_t tagci_tensor_bytes(const struct tagci_tensor *t); /* memory that it holds now */
/* One figure of a tensor, or with NULL of the process. */
double tagci_stats_get(const struct tagci_tensor *t, int stat);
/* Adds a call's figures to the tensor's (may be NULL) and the process's. Thread-safe for different tensors. */
void tagci_stats_add(struct tagci_tensor *t, const struct tagci_stats *call);

#endif
