/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * An operation: one call of a collective on its way through its stages. Blocking, nonblocking and persistent forms drive
 * the same object: init (checks done, shapes known, memory taken), start, progress until done.
 *
 *   init      plan an algorithm, take memory                         coll/op.c, coll/select.c
 *   stages    agree (with a tensor), the algorithm's own, verify     coll/agree.c, coll/reduce_*.c, coll/verify.c
 *   complete  the residual changes, statistics are added             coll/op.c */
#ifndef TAGCI_COLL_OP_H
#define TAGCI_COLL_OP_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "coll/agree.h"
#include "coll/comm.h"
#include "coll/edge.h"
#include "coll/geometry.h"
#include "coll/tensor.h"
#include "core/sketch.h"

enum tagci_collective {
    TAGCI_REDUCE_SCATTER,
    TAGCI_REDUCE_SCATTER_BLOCK,
    TAGCI_ALLREDUCE,
    TAGCI_ALLGATHER,
    TAGCI_ALLGATHERV
};
static inline int tagci_is_gather(enum tagci_collective c)
{
    return c >= TAGCI_ALLGATHER;
}

/* An MPI call's arguments, widened. What is not used by a collective is zero. */
struct tagci_args {
    const char *call; /* its public name, for messages */
    enum tagci_collective collective;
    int large; /* counts are MPI_Counts and displacements MPI_Aints, from a _c form */
    const void *sendbuf;
    void *recvbuf;
    const void *counts;    /* recvcounts: ints or MPI_Counts; not looked at once the operation is made */
    const void *displs;    /* of an allgatherv: ints or MPI_Aints, likewise */
    MPI_Count count;       /* of a block form (per rank) or an allreduce (whole) */
    MPI_Datatype datatype; /* of a gather: recvtype */
    MPI_Op op;
    MPI_Count sendcount; /* of a gather */
    MPI_Datatype sendtype;
    MPI_Comm comm;
    TAGC_Tensor tensor;
    MPI_Info info; /* of a persistent form */
};
static inline MPI_Count tagci_args_count(const struct tagci_args *a, int rank)
{
    return a->large ? ((const MPI_Count *)a->counts)[rank] : ((const int *)a->counts)[rank];
}

static inline MPI_Aint tagci_args_displ(const struct tagci_args *a, int rank)
{
    return a->large ? ((const MPI_Aint *)a->displs)[rank] : ((const int *)a->displs)[rank];
}

/* The counts of a call as one number. */
static inline uint64_t tagci_args_shape(const struct tagci_args *a, int ranks)
{
    uint64_t h = (uint64_t)a->count;
    for (int r = 0; r < ranks && a->collective == TAGCI_REDUCE_SCATTER; r++)
        h = tagci_fact(h, (uint64_t)tagci_args_count(a, r));
    return h;
}

/* What ranks compare of a call on a tensor, in words. */
#define TAGCI_CALL_FACTS "collective, counts, operation or number of earlier calls"

struct tagci_op;

/* A stage is called until it says that it is through. It never blocks unless the operation is a blocking one. */
enum tagci_progress {
    TAGCI_THROUGH, /* on to the next stage */
    TAGCI_PENDING, /* call again */
    TAGCI_FAILED   /* op->code says why */
};
enum tagci_phase {
    TAGCI_PHASE_NONE,
    TAGCI_PHASE_SELECT,
    TAGCI_PHASE_ENCODE,
    TAGCI_PHASE_COMM,
    TAGCI_PHASE_DECODE,
    TAGCI_PHASES
};
struct tagci_stage {
    enum tagci_progress (*run)(struct tagci_op *op);
    enum tagci_phase phase; /* where its time is booked */
    int in_line;            /* posts a collective: waits for its turn, so that all ranks post in the same order */
};
#define TAGCI_STAGES_END                                                                                               \
    {                                                                                                                  \
        NULL, TAGCI_PHASE_NONE, 0                                                                                      \
    }

struct tagci_algorithm {
    const char *name;
    int id;   /* TAGC_ALGORITHM_... */
    int cuts; /* sparsifies: coll/cuts.h goes with it */
    /* Bytes of workspace that it takes for this operation, which has its geometry. */
    size_t (*room)(const struct tagci_op *op);
    /* Takes what memory it wants beside the workspace, once; NULL: none. 0, or -1. */
    int (*reserve)(struct tagci_op *op);
    /* Lays out the workspace (tagci_op_take). Allocates nothing; called at every start. */
    void (*lay_out)(struct tagci_op *op);
    const struct tagci_stage *stages;
    /* What it takes beside room() for data of kernels (tagci_op_take_data); NULL: none. */
    size_t (*data_room)(const struct tagci_op *op);
    /* Runs instead of it where the tensor lives on a device, with the device's kernels; NULL: it runs on the host. */
    const struct tagci_algorithm *on_device;
    /* How it takes input that is copied to the host (coll/edge.h): whole; or as it comes, part by part, or the first chunk of
     * every part, then the second. It then tells the others of a copy that failed. */
    enum { TAGCI_WHOLE, TAGCI_BY_PART, TAGCI_BY_CHUNK } takes;
};
extern const struct tagci_algorithm tagci_algorithm_dense, tagci_algorithm_pack, tagci_algorithm_sketch,
    tagci_algorithm_direct, tagci_algorithm_hierarchical;
extern const struct tagci_algorithm tagci_gather_native, tagci_gather_coded;

extern const struct tagci_algorithm tagci_algorithm_device; /* direct with its kernels on a device */

#define TAGCI_MAX_STAGES 32

struct tagci_op {
    struct tagci_args args;
    struct tagci_comm *comm;
    struct tagci_tensor *tensor; /* or NULL */
    const struct tagci_settings *settings;
    const struct tagci_backend *backend; /* whose kernels run */
    struct tagci_order *order;           /* on which; NULL on the host */
    int blocking;                        /* stages may block in MPI's waiting calls: nothing else is in flight here */
    int calm; /* a blocking call, as all on this communicator were so far: the same on all ranks */

    /* the vector */
    int compressible;
    enum tagci_type type;
    struct tagci_geometry geometry;
    const MPI_Aint *displ; /* of a gather: where the parts stand in recvbuf, in elements */
    const void *in; /* input: sendbuf, or recvbuf in place; where the kernels find it, as the arguments then say */
    int in_place;
    int average;
    int lossy;        /* this call holds back or rounds */
    double share;     /* held back */
    int residual_in;  /* the tensor's residual is to be added */
    int residual_out; /* the tensor's spare residual is filled by this call; otherwise the residual becomes zero */
    void *residual, *spare; /* the tensor's, where the kernels find them */
    const size_t *held_at;  /* of each part: where in the spare one; NULL: where the part stands */

    /* where things are (coll/edge.h) */
    struct tagci_device *device; /* that takes part: the tensor's, or with own_device the operation's; NULL: none */
    int own_device;
    int resident; /* the tensor's, when room was made */
    struct tagci_edges edges;
    int copied[TAGCI_EDGES]; /* these are copied for this call */
    const void *user_send;
    void *user_recv;

    /* progress */
    const struct tagci_algorithm *algorithm;
    int reason; /* why this algorithm: TAGC_REASON_... */
    struct tagci_stage stages[TAGCI_MAX_STAGES];
    int stage, n_stages;
    int active;
    int code;
    int broken;      /* code of a failure that waits until the other ranks can be told */
    int alarm;       /* whether a rank has such a failure: coll/twin.h */
    uint64_t number; /* among the operations of the communicator */
    MPI_Request request[4];
    int n_requests;
    struct tagci_agreement agreement;
    struct tagci_op *line_next;
    int in_line;

    /* memory: one block, handed out piece by piece */
    struct tagci_room own_room; /* of an operation without a tensor */
    unsigned char *room_at, *device_at;
    void *state; /* of the algorithm */
    struct tagci_result *result;
    struct tagci_sketch plan[2]; /* of sketch: for other owners' parts, for the own; they keep their memory */
    struct tagci_verify *verify;
    struct tagci_cuts *cuts;

    struct tagci_stats stats;
    double started;

    /* of coll/engine.c */
    struct tagci_op *engine_next;
    int in_engine;
    void (*at_completion)(struct tagci_op *op);
};

/* Makes an operation of checked arguments, with memory for the next call or, with every_call, for whatever any later call
 * may choose, so that no start allocates. own_error: what the checks found (MPI_SUCCESS, or a code that the other ranks
 * will learn of when it starts; only with a tensor). 0 or an error code, and then there is nothing to release. */
int tagci_op_init(struct tagci_op *op, const struct tagci_args *args, struct tagci_comm *comm,
                  struct tagci_tensor *tensor, int every_call, int own_error);
/* The tensor of the next start of an operation that has one; NULL: it is not there, and the operation must have an error. */
void tagci_op_take_tensor(struct tagci_op *op, struct tagci_tensor *t);
/* With op->code set, which needs args.tensor, the operation only tells the other ranks. */
void tagci_op_start(struct tagci_op *op);
/* Moves it on as far as it goes. Returns 1 when it is complete (op->code is its result), else 0. */
int tagci_op_progress(struct tagci_op *op);
void tagci_op_release(struct tagci_op *op);

/* For the stages. */
void *tagci_op_take(struct tagci_op *op, size_t count, size_t size); /* next piece of workspace, aligned */
/* The same where the kernels' data is: in the device's memory, if they run there. */
void *tagci_op_take_data(struct tagci_op *op, size_t count, size_t size);
size_t tagci_op_piece(size_t count, size_t size);                 /* what such a piece takes, for room() */
enum tagci_progress tagci_op_fail(struct tagci_op *op, int code); /* an MPI error code */
enum tagci_progress tagci_op_fail_text(struct tagci_op *op, int class, const char *text);
/* What a backend's function returned: MPI_SUCCESS, or an error code that names the backend and what it says. */
int tagci_op_ran(const struct tagci_op *op, int result);
enum tagci_progress tagci_op_run(struct tagci_op *op,
                                 int result); /* the same for a stage that has nothing else to do */
/* Waits for the work on the order, so that the results of kernels can be looked at. 0 or -1. */
int tagci_op_settle(const struct tagci_op *op);
/* Result of an MPI call that filled the next request. */
enum tagci_progress tagci_op_posted(struct tagci_op *op, int code);
enum tagci_progress tagci_op_wait_requests(struct tagci_op *op); /* a stage: until the posted ones are complete */
/* The operation posts no more collectives: others may. */
void tagci_op_leave_line(struct tagci_op *op);

/* Where element i of the input is, of the residual, and of the spare one; NULL where there is none. */
const void *tagci_op_in(const struct tagci_op *op, size_t i);
const void *tagci_op_residual(const struct tagci_op *op, size_t i);
void *tagci_op_residual_out(const struct tagci_op *op, size_t i);
static inline void tagci_op_count(struct tagci_op *op, int stat, double amount)
{
    op->stats.at[stat] += amount;
}
const char *tagci_op_tensor_name(const struct tagci_op *op);

#endif
