/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "config.h"

#include <sched.h>
#include <stdint.h>

#include "api/form.h"
#include "api/request.h"
#include "api/tensor.h"
#include "coll/board.h"
#include "coll/engine.h"
#include "coll/meet.h"
#include "fortran/strided.h"
#include "util/error.h"
#include "util/mem.h"

const char *tagci_form_name(const struct tagci_args *a)
{
    const struct tagci_tensor *t = a->tensor == TAGC_TENSOR_NULL ? NULL : tagci_tensor_of(a->tensor);
    return t ? t->name : "";
}

int tagci_form_buffers(const struct tagci_args *a)
{
    if (a->sendbuf != TAGCI_STRIDED && a->recvbuf != TAGCI_STRIDED)
        return MPI_SUCCESS;
    return tagci_error(MPI_ERR_BUFFER, "%s: tensor \"%s\": %s " TAGCI_STRIDED_TEXT, a->call, tagci_form_name(a),
                       a->sendbuf == TAGCI_STRIDED ? "sendbuf" : "recvbuf");
}

int tagci_form_length(const struct tagci_args *a, size_t n)
{
    if (n <= PTRDIFF_MAX)
        return MPI_SUCCESS;
    return tagci_error(MPI_ERR_COUNT, "%s: tensor \"%s\": the counts of all ranks add up to more than 2^63", a->call,
                       tagci_form_name(a));
}

int tagci_form_check_tensor(const struct tagci_args *a, const struct tagci_comm *c, const struct tagci_tensor *t,
                            size_t n)
{
    if (t->comm != c)
        return tagci_error(TAGC_ERR_TENSOR, "%s: tensor \"%s\" was made on another communicator", a->call, t->name);
    if (t->datatype != a->datatype) {
        enum tagci_type given;
        if (!t->compressible || !tagci_type_of(a->datatype, &given) || given != t->type)
            return tagci_error(TAGC_ERR_TENSOR, "%s: tensor \"%s\" was made for another datatype%s%s", a->call, t->name,
                               t->compressible ? ": " : "", t->compressible ? tagci_type_name(t->type) : "");
    }
    if (t->count != n)
        return tagci_error(TAGC_ERR_TENSOR, "%s: tensor \"%s\" has %zu elements, the call %zu", a->call, t->name,
                           t->count, n);
    if (t->in_flight)
        return tagci_error(TAGC_ERR_BUSY, "%s: tensor \"%s\" has an operation in flight", a->call, t->name);
    return MPI_SUCCESS;
}

/* The arguments of these forms alone. With a tensor an error like any other: the ranks meet all the same. */
static int check_rest(const struct tagci_args *a, enum tagci_form form, TAGC_Request *request)
{
    if (form == TAGCI_BLOCKING)
        return MPI_SUCCESS;
    if (!request)
        return tagci_error(MPI_ERR_ARG, "%s: tensor \"%s\": request is NULL", a->call, tagci_form_name(a));
    *request = TAGC_REQUEST_NULL;
    return form == TAGCI_PERSISTENT ? tagci_api_info(a->call, tagci_form_name(a), a->info) : MPI_SUCCESS;
}

static int run_to_end(const struct tagci_args *a, struct tagci_comm *c, struct tagci_tensor *t, int own_error)
{
    struct tagci_op op;
    int code = tagci_op_init(&op, a, c, t, 0, own_error);
    if (code)
        return code;
    int busy = tagci_engine_busy();
    op.calm = !c->nonblocking;
    if (busy && !op.calm) {
        tagci_engine_start(&op);
        tagci_engine_wait(&op);
    } else { /* outside the engine, where a call of MPI's may block: other threads get on */
        op.blocking = !busy;
        tagci_op_start(&op);
        while (!tagci_op_progress(&op))
            if (busy) {
                tagci_engine_sweep();
                sched_yield();
            }
    }
    code = op.code;
    tagci_op_release(&op);
    return code;
}

/* A persistent operation has a communicator of its own, so that requests may be started in any order. Collective, as the
 * initialization of MPI's persistent collectives is; with a tensor the ranks learn here of each other's errors: those of
 * the arguments, and then those of making it. With own_error r may be NULL. */
static int make_persistent(struct tagci_request *r, const struct tagci_args *a, struct tagci_comm *c,
                           struct tagci_tensor *t, int own_error)
{
    int meets = a->tensor != TAGC_TENSOR_NULL;
    const char *name = t ? t->name : "";
    int code = meets ? tagci_meet(c, a->call, name, own_error, TAGC_ERR_MISMATCH, NULL) : own_error;
    if (code)
        return code;
    code = tagci_comm_copy(c, &r->line);
    if (code)
        code = tagci_error_of_mpi(code, a->call, name,
                                  "no communicator of the operation's own (each persistent one takes one)");
    else
        code = tagci_op_init(&r->op, a, r->line, t, 1, MPI_SUCCESS);
    if (!code)
        code = r->op.code; /* no memory: nothing can ever start */
    return meets ? tagci_meet(c, a->call, name, code, TAGC_ERR_MISMATCH, NULL) : code;
}

static int run(const struct tagci_args *a, enum tagci_form form, struct tagci_comm *c, struct tagci_tensor *t,
               int own_error, TAGC_Request *request)
{
    if (form == TAGCI_BLOCKING)
        return run_to_end(a, c, t, own_error);
    struct tagci_request *r = tagci_alloc_zero(1, sizeof *r);
    int persistent = form == TAGCI_PERSISTENT, code = MPI_SUCCESS;
    if ((!r || tagci_request_register(r)) && !own_error)
        own_error =
            tagci_error(MPI_ERR_NO_MEM, "%s: tensor \"%s\": no memory for a request", a->call, t ? t->name : "");
    if (r) {
        r->persistent = persistent;
        r->user = a->comm;
        r->comm = c;
        tagci_comm_hold(c);
    }
    if (persistent)
        code = make_persistent(r, a, c, t, own_error);
    else if (own_error && a->tensor == TAGC_TENSOR_NULL)
        code = own_error;
    else if (!r)
        code = run_to_end(a, c, t, own_error); /* the other ranks have to hear of it */
    else
        code = tagci_op_init(&r->op, a, c, t, 0, own_error);
    if (code) {
        tagci_request_destroy(r);
        return code;
    }
    if (!persistent) {
        r->started = 1;
        tagci_engine_start(&r->op);
    }
    if (request && r->handle) {
        *request = r->handle;
        return MPI_SUCCESS;
    }
    tagci_request_let_go(r); /* it meets the other ranks' and is gone */
    return own_error;
}

/* Buffers may be on a device that MPI does not reach. */
static int with_edges(const struct tagci_args *a, const struct tagci_face *face, const struct tagci_comm *c)
{
    struct tagci_edges edges;
    struct tagci_args here = *a;
    struct tagci_device *device = NULL;
    struct tagci_home home;
    int code = tagci_edges_find(&edges, a, c, &home);
    if (code || (home.backend && (code = tagci_edges_lift(&edges, &here, &home, &device))))
        return tagci_error_raise(a->comm, code);
    int before = tagci_device_enter(device);
    code = face->call_mpi(&here);
    tagci_device_leave(device, before);
    if (!device)
        return code;
    int back = tagci_edges_drop(&edges, a, device, code);
    return code ? code : tagci_error_raise(a->comm, back);
}

/* Statistics of n elements of so many bytes that went to MPI as they stood. */
static void count_plain(const struct tagci_args *a, const struct tagci_comm *c, struct tagci_tensor *t, size_t n,
                        int size, int reason, double seconds)
{
    struct tagci_stats s = {{0}};
    s.at[TAGC_STAT_CALLS] = 1;
    s.at[TAGC_STAT_ELEMENTS] = (double)n;
    s.at[TAGC_STAT_BYTES_SENT] = s.at[TAGC_STAT_BYTES_RECEIVED] = s.at[TAGC_STAT_BYTES_DENSE] =
        (double)n * size * (c->size - 1.0) / c->size * (a->collective == TAGCI_ALLREDUCE ? 2 : 1);
    s.at[TAGC_STAT_DENSITY] = s.at[TAGC_STAT_UNION_DENSITY] = 1;
    s.at[TAGC_STAT_ALGORITHM] = TAGC_ALGORITHM_DENSE;
    s.at[TAGC_STAT_REASON] = reason;
    s.at[TAGC_STAT_TIME_TOTAL] = s.at[TAGC_STAT_TIME_COMM] = seconds;
    tagci_stats_add(t, &s);
}

/* Asking for the time would be most of what a short call costs here. */
static int worth_timing(size_t n, int size)
{
    return (double)n * size >= 1 << 16;
}

/* A call without a tensor that goes to MPI as it stands: nothing is between the user and MPI but this. */
static int pass_on(const struct tagci_args *a, const struct tagci_face *face, const struct tagci_comm *c)
{
    int size;
    size_t n;
    enum tagci_type type;
    if (face->count_elements(a, c, &n))
        return face->call_mpi(a); /* which says what is wrong with it */
    MPI_Type_size(a->datatype, &size);
    int timed = worth_timing(n, size);
    double then = timed ? MPI_Wtime() : 0;
    int code = tagci_device_possible() ? with_edges(a, face, c) : face->call_mpi(a);
    if (code)
        return code;
    int reason = tagci_is_gather(a->collective)                          ? TAGC_REASON_COST
                 : tagci_type_of(a->datatype, &type) && a->op == MPI_SUM ? TAGC_REASON_EXACT
                                                                         : TAGC_REASON_TYPE;
    count_plain(a, c, NULL, n, size, reason, timed ? MPI_Wtime() - then : 0);
    return MPI_SUCCESS;
}

/* A blocking call on a tensor that MPI alone did the last time, and will again: no operation is made for it. What ranks see
 * of each other is what they would see of one, so that a rank that comes another way is understood. */
static int is_plain_again(const struct tagci_args *a, const struct tagci_comm *c, const struct tagci_tensor *t)
{
#ifndef HAVE_MPI_LARGE_COUNT
    if (a->large)
        return 0;
#endif
    const struct tagci_plain *p = &t->plain;
    int in_place = a->sendbuf == MPI_IN_PLACE && a->collective != TAGCI_ALLREDUCE; /* MPI may write behind the result */
    return p->known && !c->nonblocking && (c->board || c->size == 1) && p->collective == (int)a->collective &&
           a->op == MPI_SUM && !in_place && p->shape == tagci_args_shape(a, c->size) &&
           (!t->residual || t->residual_is_zero) && !tagci_device_possible();
}

static int plain_again(const struct tagci_args *a, const struct tagci_face *face, struct tagci_comm *c,
                       struct tagci_tensor *t)
{
    struct tagci_agreement g;
    struct tagci_args here = *a;
    int size = (int)tagci_type_size(t->type), timed = worth_timing(t->count, size);
    double then = timed ? MPI_Wtime() : 0;
    here.comm = c->private; /* where an operation would be, */
    c->started++;           /* and counted */
    tagci_agreement_init(&g, MPI_SUCCESS, tagci_fact(t->plain.facts, (uint64_t)t->calls), c);
    if (c->board) {
        tagci_board_write(c->board, &g);
        for (unsigned looks = 0; !tagci_board_read(c->board, &g); looks++) {
            if (tagci_engine_busy()) /* with what was started on other communicators */
                tagci_engine_sweep();
            tagci_board_pause(c, looks);
        }
    }
    int code = tagci_agreement_result(&g, MPI_SUCCESS, c, a->call, t->name, TAGCI_CALL_FACTS);
    if (code)
        return code;
    t->calls++;
    code = face->call_mpi(&here);
    if (!code)
        count_plain(a, c, t, t->count, size, t->plain.reason, timed ? MPI_Wtime() - then : 0);
    return code;
}

/* Finds the parties of a call and checks its arguments. With a tensor, the ranks meet on the tensor's communicator whatever
 * is wrong with the arguments: *own_error is then this rank's news for the others. Returns an error only where there is
 * nobody to tell. */
static int prepare(const struct tagci_args *a, const struct tagci_face *face, struct tagci_comm **c,
                   struct tagci_tensor **t, int *own_error)
{
    *own_error = MPI_SUCCESS;
    *t = NULL;
    if (a->tensor == TAGC_TENSOR_NULL) {
        int code = tagci_comm_get(a->call, a->comm, c);
        return code ? code : face->check(a, *c, NULL);
    }
    *t = tagci_tensor_of(a->tensor);
    if (!*t) {
        *own_error = tagci_error(TAGC_ERR_TENSOR, "%s: tensor is not a tensor: freed, or never made", a->call);
        return tagci_comm_get(a->call, a->comm, c);
    }
    struct tagci_comm *given;
    *c = (*t)->comm;
    /* Meets nobody: a wrong one may be this rank's mistake alone. */
    int code = tagci_comm_look(a->call, a->comm, &given);
    if (!code)
        code = given == *c ? face->check(a, *c, *t)
                           : tagci_error(TAGC_ERR_TENSOR, "%s: tensor \"%s\" was made on another communicator", a->call,
                                         (*t)->name);
    *own_error = code;
    return MPI_SUCCESS;
}

int tagci_form_call(const struct tagci_args *a, enum tagci_form form, const struct tagci_face *face,
                    TAGC_Request *request)
{
    struct tagci_comm *c;
    struct tagci_tensor *t;
    int own_error, bad = check_rest(a, form, request), code = MPI_SUCCESS;
    if (a->tensor == TAGC_TENSOR_NULL)
        code = bad;
    if (!code)
        code = prepare(a, face, &c, &t, &own_error);
    if (code)
        return tagci_error_raise(a->comm, code);
    own_error = bad ? bad : own_error;
    c->nonblocking |= form != TAGCI_BLOCKING;
    /* Not where operations may be in flight: inside MPI's blocking call they would not progress. */
    if (!c->nonblocking && !t && !own_error && face->goes_to_mpi(a, c))
        return pass_on(a, face, c);
    if (!c->nonblocking && t && !own_error && is_plain_again(a, c, t))
        return tagci_error_raise(a->comm, plain_again(a, face, c, t));
    return tagci_error_raise(a->comm, run(a, form, c, t, own_error, request));
}
