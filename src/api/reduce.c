/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The reductions: arguments are checked here, then one call into coll. */
#include "config.h"

#include "api/form.h"
#include "coll/op.h"
#include "tagc.h"
#include "util/error.h"
#include "util/mem.h"

/* Elements that the call takes from every rank: 0, or an error code. */
static int count_elements(const struct tagci_args *a, const struct tagci_comm *c, size_t *n)
{
    *n = 0;
    if (a->collective == TAGCI_REDUCE_SCATTER) {
        if (!a->counts)
            return tagci_error(MPI_ERR_ARG, "%s: tensor \"%s\": recvcounts is NULL", a->call, tagci_form_name(a));
        for (int r = 0; r < c->size; r++) {
            MPI_Count count = tagci_args_count(a, r);
            if (count < 0)
                return tagci_error(MPI_ERR_COUNT, "%s: tensor \"%s\": recvcounts[%d] is %lld", a->call,
                                   tagci_form_name(a), r, (long long)count);
            *n = tagci_add(*n, (size_t)count);
        }
        return tagci_form_length(a, *n);
    }
    const char *name = a->collective == TAGCI_ALLREDUCE ? "count" : "recvcount";
    if (a->count < 0)
        return tagci_error(MPI_ERR_COUNT, "%s: tensor \"%s\": %s is %lld", a->call, tagci_form_name(a), name,
                           (long long)a->count);
    *n = tagci_mul((size_t)a->count, a->collective == TAGCI_ALLREDUCE ? 1 : (size_t)c->size);
    return tagci_form_length(a, *n);
}

/* What MPI's own collective would find, found before anything is sent. */
static int check(const struct tagci_args *a, const struct tagci_comm *c, const struct tagci_tensor *t)
{
    size_t n;
    const char *name = t ? t->name : "";
    int code = tagci_form_buffers(a);
    if (!code)
        code = count_elements(a, c, &n);
    if (code)
        return code;
    if (a->datatype == MPI_DATATYPE_NULL)
        return tagci_error(MPI_ERR_TYPE, "%s: tensor \"%s\": datatype is MPI_DATATYPE_NULL", a->call, name);
    if (a->op == MPI_OP_NULL)
        return tagci_error(MPI_ERR_OP, "%s: tensor \"%s\": op is MPI_OP_NULL", a->call, name);
    enum tagci_type type;
    if (a->op == TAGC_AVG && !tagci_type_of(a->datatype, &type))
        return tagci_error(MPI_ERR_OP,
                           "%s: tensor \"%s\": TAGC_AVG is for float, double, TAGC_FLOAT16 and TAGC_BFLOAT16", a->call,
                           name);
    if (t && (code = tagci_form_check_tensor(a, c, t, n)))
        return code;
    if (!tagci_type_of(a->datatype, &type))
        return MPI_SUCCESS; /* a type of the user's may hold addresses, and MPI_BOTTOM is NULL */
    size_t own = a->collective == TAGCI_REDUCE_SCATTER ? (size_t)tagci_args_count(a, c->rank) : (size_t)a->count;
    if (n && !a->sendbuf)
        return tagci_error(MPI_ERR_BUFFER, "%s: tensor \"%s\": sendbuf is NULL, but %zu elements are to be read",
                           a->call, name, n);
    if (own && !a->recvbuf)
        return tagci_error(MPI_ERR_BUFFER, "%s: tensor \"%s\": recvbuf is NULL, but %zu elements are to be written",
                           a->call, name, own);
    if (n && a->sendbuf == MPI_IN_PLACE && !a->recvbuf)
        return tagci_error(MPI_ERR_BUFFER, "%s: tensor \"%s\": recvbuf is NULL, but in place it holds the input",
                           a->call, name);
    if (n && a->sendbuf == a->recvbuf)
        return tagci_error(MPI_ERR_BUFFER, "%s: tensor \"%s\": sendbuf is recvbuf; use MPI_IN_PLACE", a->call, name);
    return MPI_SUCCESS;
}

/* MPI's own collective, in the form that was called. */
static int call_mpi(const struct tagci_args *a)
{
#ifdef HAVE_MPI_LARGE_COUNT
    if (a->large)
        return a->collective == TAGCI_REDUCE_SCATTER
                   ? MPI_Reduce_scatter_c(a->sendbuf, a->recvbuf, a->counts, a->datatype, a->op, a->comm)
               : a->collective == TAGCI_REDUCE_SCATTER_BLOCK
                   ? MPI_Reduce_scatter_block_c(a->sendbuf, a->recvbuf, a->count, a->datatype, a->op, a->comm)
                   : MPI_Allreduce_c(a->sendbuf, a->recvbuf, a->count, a->datatype, a->op, a->comm);
#endif
    return a->collective == TAGCI_REDUCE_SCATTER
               ? MPI_Reduce_scatter(a->sendbuf, a->recvbuf, a->counts, a->datatype, a->op, a->comm)
           : a->collective == TAGCI_REDUCE_SCATTER_BLOCK
               ? MPI_Reduce_scatter_block(a->sendbuf, a->recvbuf, (int)a->count, a->datatype, a->op, a->comm)
               : MPI_Allreduce(a->sendbuf, a->recvbuf, (int)a->count, a->datatype, a->op, a->comm);
}

static int goes_to_mpi(const struct tagci_args *a, const struct tagci_comm *c)
{
    enum tagci_type type;
    if (a->op == TAGC_AVG)
        return 0;
    if (!tagci_type_of(a->datatype, &type) || a->op != MPI_SUM)
        return 1;
#ifndef HAVE_MPI_LARGE_COUNT
    if (a->large)
        return 0;
#endif
    if (a->sendbuf == MPI_IN_PLACE && a->collective != TAGCI_ALLREDUCE)
        return 0; /* MPI may write behind the result */
    int automatic = c->exact.algorithm == TAGCI_ALGORITHM_AUTO || c->exact.algorithm == TAGCI_ALGORITHM_DENSE;
    return automatic && tagci_type_size(type) > 2 && !c->exact.trace[0];
}

static const struct tagci_face face = {check, goes_to_mpi, call_mpi, count_elements};

static int call(const struct tagci_args *a, enum tagci_form form, TAGC_Request *request)
{
    return tagci_form_call(a, form, &face, request);
}

#define REDUCE_SCATTER(suffix, count_type, wide)                                                                       \
    TAGCI_FORMS(call, Reduce_scatter, Ireduce_scatter, suffix,                                                         \
                (const void *sendbuf, void *recvbuf, const count_type recvcounts[], MPI_Datatype datatype, MPI_Op op,  \
                 MPI_Comm comm, TAGC_Tensor tensor),                                                                   \
                .collective = TAGCI_REDUCE_SCATTER, .large = wide, .sendbuf = sendbuf, .recvbuf = recvbuf,             \
                .counts = recvcounts, .datatype = datatype, .op = op, .comm = comm, .tensor = tensor)
REDUCE_SCATTER(, int, 0)
REDUCE_SCATTER(_c, MPI_Count, 1)

#define REDUCE_SCATTER_BLOCK(suffix, count_type, wide)                                                                 \
    TAGCI_FORMS(call, Reduce_scatter_block, Ireduce_scatter_block, suffix,                                             \
                (const void *sendbuf, void *recvbuf, count_type recvcount, MPI_Datatype datatype, MPI_Op op,           \
                 MPI_Comm comm, TAGC_Tensor tensor),                                                                   \
                .collective = TAGCI_REDUCE_SCATTER_BLOCK, .large = wide, .sendbuf = sendbuf, .recvbuf = recvbuf,       \
                .count = recvcount, .datatype = datatype, .op = op, .comm = comm, .tensor = tensor)
REDUCE_SCATTER_BLOCK(, int, 0)
REDUCE_SCATTER_BLOCK(_c, MPI_Count, 1)

#define ALLREDUCE(suffix, count_type, wide)                                                                            \
    TAGCI_FORMS(call, Allreduce, Iallreduce, suffix,                                                                   \
                (const void *sendbuf, void *recvbuf, count_type elements, MPI_Datatype datatype, MPI_Op op,            \
                 MPI_Comm comm, TAGC_Tensor tensor),                                                                   \
                .collective = TAGCI_ALLREDUCE, .large = wide, .sendbuf = sendbuf, .recvbuf = recvbuf,                  \
                .count = elements, .datatype = datatype, .op = op, .comm = comm, .tensor = tensor)
ALLREDUCE(, int, 0)
ALLREDUCE(_c, MPI_Count, 1)
