/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Requests: operations in flight and persistent ones, and how they complete. */
#include "config.h"

#include <string.h>

#include "api/form.h"
#include "api/request.h"
#include "coll/engine.h"
#include "coll/op.h"
#include "fortran/strided.h"
#include "tagc.h"
#include "util/error.h"
#include "util/handles.h"
#include "util/mem.h"

static struct tagci_handles requests = TAGCI_HANDLES_INIT;

void tagci_request_destroy(struct tagci_request *r)
{
    if (!r)
        return;
    tagci_handle_drop(&requests, (uintptr_t)r->handle);
    tagci_op_release(&r->op);
    if (r->line)
        tagci_comm_drop(r->line);
    tagci_comm_drop(r->comm);
    tagci_free(r);
}

static void destroy_op(struct tagci_op *op)
{
    tagci_request_destroy((struct tagci_request *)op);
}

void tagci_request_let_go(struct tagci_request *r)
{
    r->freed = 1;
    if (!tagci_engine_at_completion(&r->op, destroy_op))
        tagci_request_destroy(r);
}

static void destroy_all(void)
{
    for (struct tagci_request *r; (r = tagci_handle_any(&requests));)
        tagci_request_destroy(r);
    tagci_handles_release(&requests);
}

int tagci_request_register(struct tagci_request *r)
{
    tagci_at_finalize(destroy_all);
    r->handle = (TAGC_Request)tagci_handle_make(&requests, r);
    return r->handle ? 0 : -1;
}

/* ---- completion ---- */

static int find(const char *call, TAGC_Request *request, struct tagci_request **r)
{
    *r = NULL;
    if (!request)
        return tagci_error(MPI_ERR_ARG, "%s: request is NULL", call);
    if (*request == TAGC_REQUEST_NULL)
        return MPI_SUCCESS;
    struct tagci_request *found = tagci_handle_look(&requests, (uintptr_t)*request);
    if (!found || found->freed)
        return tagci_error(TAGC_ERR_REQUEST, "%s: request is not a request: freed, completed, or never made", call);
    *r = found;
    return MPI_SUCCESS;
}

/* Raises a code on the communicator of the request, if there is one and the user still has its communicator. */
static int raise_on(const struct tagci_request *r, int code)
{
    return tagci_error_raise(r && !r->comm->user_gone ? r->user : MPI_COMM_NULL, code);
}

/* The user learns of a completion: a nonblocking request goes, a persistent one becomes inactive. */
static int finish(struct tagci_request *r, TAGC_Request *request)
{
    int code = r->started ? r->op.code : MPI_SUCCESS;
    MPI_Comm user = r->comm->user_gone ? MPI_COMM_NULL : r->user;
    r->started = 0;
    if (!r->persistent) {
        tagci_request_destroy(r);
        *request = TAGC_REQUEST_NULL;
    }
    return tagci_error_raise(user, code);
}

/* What is wrong with the request's tensor is an error of the operation: it starts, and all ranks have an error when it
 * completes. */
static int find_tensor(const char *call, struct tagci_op *op)
{
    struct tagci_tensor *t = tagci_tensor_of(op->args.tensor);
    tagci_op_take_tensor(op, t);
    if (!t)
        return tagci_error(TAGC_ERR_TENSOR, "%s: the request's tensor was freed", call);
    return t->in_flight ? tagci_error(TAGC_ERR_BUSY, "%s: tensor \"%s\" has an operation in flight", call, t->name)
                        : MPI_SUCCESS;
}

static int start(const char *call, TAGC_Request *request)
{
    struct tagci_request *r;
    int code = find(call, request, &r);
    if (!code && !r)
        code = tagci_error(TAGC_ERR_REQUEST, "%s: request is TAGC_REQUEST_NULL", call);
    if (!code && !r->persistent)
        code = tagci_error(TAGC_ERR_REQUEST, "%s: request is not a persistent one", call);
    if (!code && r->started)
        code = tagci_error(TAGC_ERR_BUSY, "%s: tensor \"%s\": request is active", call, tagci_form_name(&r->op.args));
    if (code)
        return raise_on(r, code);
    r->op.code = r->op.args.tensor == TAGC_TENSOR_NULL ? MPI_SUCCESS : find_tensor(call, &r->op);
    r->started = 1;
    tagci_engine_start(&r->op);
    return MPI_SUCCESS;
}

int TAGC_Start(TAGC_Request *request)
{
    return start("TAGC_Start", request);
}

static int array(const char *call, int n, TAGC_Request requests_[])
{
    if (n < 0)
        return tagci_error_raise(MPI_COMM_NULL, tagci_error(MPI_ERR_COUNT, "%s: n is %d", call, n));
    if (n && !requests_)
        return tagci_error_raise(MPI_COMM_NULL, tagci_error(MPI_ERR_ARG, "%s: requests is NULL", call));
    return MPI_SUCCESS;
}

/* The first error is returned; the others start: other ranks may wait for them. */
int TAGC_Startall(int n, TAGC_Request requests_[])
{
    int code = array("TAGC_Startall", n, requests_);
    if (code)
        return code;
    for (int i = 0; i < n; i++) {
        int one = start("TAGC_Startall", &requests_[i]);
        code = code ? code : one;
    }
    return code;
}

static int wait_for(const char *call, TAGC_Request *request)
{
    struct tagci_request *r;
    int code = find(call, request, &r);
    if (code)
        return tagci_error_raise(MPI_COMM_NULL, code);
    if (!r)
        return MPI_SUCCESS;
    tagci_engine_wait(&r->op);
    return finish(r, request);
}

int TAGC_Wait(TAGC_Request *request)
{
    return wait_for("TAGC_Wait", request);
}

/* The first error is returned; all are waited for and raised. */
int TAGC_Waitall(int n, TAGC_Request requests_[])
{
    int code = array("TAGC_Waitall", n, requests_);
    if (code)
        return code;
    for (int i = 0; i < n; i++) {
        int one = wait_for("TAGC_Waitall", &requests_[i]);
        code = code ? code : one;
    }
    return code;
}

int TAGC_Test(TAGC_Request *request, int *flag)
{
    struct tagci_request *r;
    int code = find("TAGC_Test", request, &r);
    if (!code && !flag)
        code = tagci_error(MPI_ERR_ARG, "TAGC_Test: flag is NULL");
    if (code)
        return raise_on(r, code);
    *flag = 1;
    if (!r)
        return MPI_SUCCESS;
    if (!tagci_engine_done(&r->op))
        tagci_engine_sweep();
    *flag = tagci_engine_done(&r->op);
    return *flag ? finish(r, request) : MPI_SUCCESS;
}

int TAGC_Testall(int n, TAGC_Request requests_[], int *flag)
{
    int code = array("TAGC_Testall", n, requests_);
    if (code)
        return code;
    if (!flag)
        return tagci_error_raise(MPI_COMM_NULL, tagci_error(MPI_ERR_ARG, "TAGC_Testall: flag is NULL"));
    tagci_engine_sweep();
    *flag = 1;
    for (int i = 0; i < n && *flag; i++) {
        struct tagci_request *r;
        if ((code = find("TAGC_Testall", &requests_[i], &r)))
            return tagci_error_raise(MPI_COMM_NULL, code);
        *flag = !r || tagci_engine_done(&r->op);
    }
    return *flag ? TAGC_Waitall(n, requests_) : MPI_SUCCESS;
}

int TAGC_Request_free(TAGC_Request *request)
{
    struct tagci_request *r;
    if (request && !tagci_mpi_usable()) {
        *request = TAGC_REQUEST_NULL;
        return MPI_SUCCESS;
    }
    int code = find("TAGC_Request_free", request, &r);
    if (!code && !r)
        code = tagci_error(TAGC_ERR_REQUEST, "TAGC_Request_free: request is TAGC_REQUEST_NULL");
    if (code)
        return tagci_error_raise(MPI_COMM_NULL, code);
    *request = TAGC_REQUEST_NULL;
    tagci_request_let_go(r);
    return MPI_SUCCESS;
}

/* ---- as a request of MPI's ---- */

#ifdef HAVE_MPIX_GREQUEST_START
static int grequest_query(void *state, MPI_Status *status)
{
    struct tagci_request *r = state;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return r->op.code;
}

/* Called by two: MPI, when the user has waited or has freed the request, which MPICH does at once (MPI wants it done only
 * when the request is complete too); and the completion. The last of them destroys it. */
static void hand_back(struct tagci_request *r)
{
    if (__atomic_add_fetch(&r->handed_back, 1, __ATOMIC_ACQ_REL) == 2)
        tagci_request_destroy(r);
}

static int grequest_free(void *state)
{
    hand_back(state);
    return MPI_SUCCESS;
}

static int grequest_cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS; /* collectives cannot be cancelled */
}

static int grequest_poll(void *state, MPI_Status *status)
{
    (void)state, (void)status;
    tagci_engine_sweep();
    return MPI_SUCCESS;
}

static int grequest_wait(int count, void **states, double timeout, MPI_Status *status)
{
    (void)status;
    double end = MPI_Wtime() + timeout;
    for (int i = 0; i < count; i++)
        while (!tagci_engine_done(&((struct tagci_request *)states[i])->op) && (timeout <= 0 || MPI_Wtime() < end))
            tagci_engine_sweep();
    return MPI_SUCCESS;
}

static void grequest_done(struct tagci_op *op)
{
    struct tagci_request *r = (struct tagci_request *)op;
    MPI_Grequest_complete(r->mpi);
    hand_back(r);
}
#endif

int TAGC_Request_get_mpi(TAGC_Request *request, MPI_Request *mpi_request)
{
    struct tagci_request *r;
    int code = find("TAGC_Request_get_mpi", request, &r);
    if (!code && !mpi_request)
        code = tagci_error(MPI_ERR_ARG, "TAGC_Request_get_mpi: mpi_request is NULL");
    if (!code && !r)
        code = tagci_error(TAGC_ERR_REQUEST, "TAGC_Request_get_mpi: request is TAGC_REQUEST_NULL");
    if (!code && r->persistent)
        code =
            tagci_error(TAGC_ERR_UNSUPPORTED, "TAGC_Request_get_mpi: request is a persistent one, which stays yours");
#ifdef HAVE_MPIX_GREQUEST_START
    if (!code)
        code = MPIX_Grequest_start(grequest_query, grequest_free, grequest_cancel, grequest_poll, grequest_wait, r,
                                   mpi_request);
    if (!code) {
        r->mpi = *mpi_request;
        tagci_handle_drop(&requests, (uintptr_t)r->handle);
        *request = TAGC_REQUEST_NULL;
        if (!tagci_engine_at_completion(&r->op, grequest_done))
            grequest_done(&r->op);
    }
#else
    if (!code)
        code = tagci_error(TAGC_ERR_UNSUPPORTED, "TAGC_Request_get_mpi: this MPI has no MPIX_Grequest_start");
#endif
    return raise_on(r, code);
}
