/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The gathers: arguments are checked here, then one call into coll. */
#include "config.h"

#include "api/form.h"
#include "coll/op.h"
#include "coll/select.h"
#include "tagc.h"
#include "util/error.h"
#include "util/mem.h"

static MPI_Count received_from(const struct tagci_args *a, int rank)
{
    return a->collective == TAGCI_ALLGATHERV ? tagci_args_count(a, rank) : a->count;
}

static int count_elements(const struct tagci_args *a, const struct tagci_comm *c, size_t *n)
{
    *n = 0;
    if (a->collective == TAGCI_ALLGATHERV && !a->counts)
        return tagci_error(MPI_ERR_ARG, "%s: tensor \"%s\": recvcounts is NULL", a->call, tagci_form_name(a));
    if (a->collective == TAGCI_ALLGATHERV && !a->displs)
        return tagci_error(MPI_ERR_ARG, "%s: tensor \"%s\": displs is NULL", a->call, tagci_form_name(a));
    for (int r = 0; r < c->size; r++) {
        MPI_Count count = received_from(a, r);
        if (count < 0)
            return tagci_error(MPI_ERR_COUNT, "%s: tensor \"%s\": recvcount of rank %d is %lld", a->call,
                               tagci_form_name(a), r, (long long)count);
        *n = tagci_add(*n, (size_t)count);
    }
    return tagci_form_length(a, *n);
}

/* What a rank sends is the part that stands in its own recvbuf: then MPI wants it said in place. */
static int sends_from_recvbuf(const struct tagci_args *a, const struct tagci_comm *c)
{
    MPI_Aint lower, extent;
    MPI_Type_get_extent(a->datatype, &lower, &extent);
    MPI_Aint at = a->collective == TAGCI_ALLGATHERV ? tagci_args_displ(a, c->rank) : (MPI_Aint)a->count * c->rank;
    return a->sendbuf == (const char *)a->recvbuf + at * extent;
}

static int check(const struct tagci_args *a, const struct tagci_comm *c, const struct tagci_tensor *t)
{
    size_t n;
    enum tagci_type type;
    const char *name = t ? t->name : "";
    int code = tagci_form_buffers(a), in_place = a->sendbuf == MPI_IN_PLACE;
    if (code || (code = count_elements(a, c, &n)))
        return code;
    if (a->datatype == MPI_DATATYPE_NULL || (!in_place && a->sendtype == MPI_DATATYPE_NULL))
        return tagci_error(MPI_ERR_TYPE, "%s: tensor \"%s\": %s is MPI_DATATYPE_NULL", a->call, name,
                           a->datatype == MPI_DATATYPE_NULL ? "recvtype" : "sendtype");
    if (t && (code = tagci_form_check_tensor(a, c, t, n)))
        return code;
    MPI_Count own = received_from(a, c->rank);
    if (!in_place) {
        MPI_Count sent, received;
        if (a->sendcount < 0)
            return tagci_error(MPI_ERR_COUNT, "%s: tensor \"%s\": sendcount is %lld", a->call, name,
                               (long long)a->sendcount);
        MPI_Type_size_x(a->sendtype, &sent);
        MPI_Type_size_x(a->datatype, &received);
        if (sent * a->sendcount != received * own)
            return tagci_error(MPI_ERR_COUNT,
                               "%s: tensor \"%s\": rank %d sends %lld bytes, but %lld are to be received", a->call,
                               name, c->rank, (long long)(sent * a->sendcount), (long long)(received * own));
        if (a->sendcount && !a->sendbuf && tagci_type_of(a->sendtype, &type))
            return tagci_error(MPI_ERR_BUFFER, "%s: tensor \"%s\": sendbuf is NULL, but sendcount is %lld", a->call,
                               name, (long long)a->sendcount);
        if (own && a->recvbuf && sends_from_recvbuf(a, c))
            return tagci_error(MPI_ERR_BUFFER,
                               "%s: tensor \"%s\": sendbuf is this rank's part of recvbuf; use MPI_IN_PLACE", a->call,
                               name);
    }
    if (n && !a->recvbuf && tagci_type_of(a->datatype, &type)) /* one of the user's may hold addresses: MPI_BOTTOM */
        return tagci_error(MPI_ERR_BUFFER, "%s: tensor \"%s\": recvbuf is NULL, but %zu elements are to be received",
                           a->call, name, n);
    return MPI_SUCCESS;
}

/* MPI's own collective, in the form that was called. */
static int call_mpi(const struct tagci_args *a)
{
#ifdef HAVE_MPI_LARGE_COUNT
    if (a->large)
        return a->collective == TAGCI_ALLGATHER
                   ? MPI_Allgather_c(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf, a->count, a->datatype, a->comm)
                   : MPI_Allgatherv_c(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf, a->counts, a->displs,
                                      a->datatype, a->comm);
#endif
    return a->collective == TAGCI_ALLGATHER ? MPI_Allgather(a->sendbuf, (int)a->sendcount, a->sendtype, a->recvbuf,
                                                            (int)a->count, a->datatype, a->comm)
                                            : MPI_Allgatherv(a->sendbuf, (int)a->sendcount, a->sendtype, a->recvbuf,
                                                             a->counts, a->displs, a->datatype, a->comm);
}

/* A call without a tensor goes to MPI as it stands where its bytes (the same on all ranks, whatever their datatypes) are not
 * worth coding. */
static int goes_to_mpi(const struct tagci_args *a, const struct tagci_comm *c)
{
    size_t n;
    int size;
#ifndef HAVE_MPI_LARGE_COUNT
    if (a->large)
        return 0;
#endif
    if (c->size == 1 && a->collective == TAGCI_ALLGATHERV)
        return 0; /* see coll/gather_native.c */
    if (c->exact.trace[0] ||
        (c->exact.source[TAGCI_SET_GATHER] != TAGCI_FROM_DEFAULT && c->exact.gather != TAGCI_GATHER_NATIVE))
        return 0;
    if (c->exact.gather == TAGCI_GATHER_NATIVE || a->datatype == MPI_DATATYPE_NULL)
        return 1;
    if (count_elements(a, c, &n))
        return 1;
    MPI_Type_size(a->datatype, &size);
    return !tagci_gather_pays(&c->exact, c, (double)n * size, 0);
}

static const struct tagci_face face = {check, goes_to_mpi, call_mpi, count_elements};

static int call(const struct tagci_args *a, enum tagci_form form, TAGC_Request *request)
{
    return tagci_form_call(a, form, &face, request);
}

#define ALLGATHER(suffix, count_type, wide)                                                                            \
    TAGCI_FORMS(call, Allgather, Iallgather, suffix,                                                                   \
                (const void *sendbuf, count_type sendcount, MPI_Datatype sendtype, void *recvbuf,                      \
                 count_type recvcount, MPI_Datatype recvtype, MPI_Comm comm, TAGC_Tensor tensor),                      \
                .collective = TAGCI_ALLGATHER, .large = wide, .sendbuf = sendbuf, .sendcount = sendcount,              \
                .sendtype = sendtype, .recvbuf = recvbuf, .count = recvcount, .datatype = recvtype, .comm = comm,      \
                .tensor = tensor)
ALLGATHER(, int, 0)
ALLGATHER(_c, MPI_Count, 1)

#define ALLGATHERV(suffix, count_type, displ_type, wide)                                                               \
    TAGCI_FORMS(call, Allgatherv, Iallgatherv, suffix,                                                                 \
                (const void *sendbuf, count_type sendcount, MPI_Datatype sendtype, void *recvbuf,                      \
                 const count_type recvcounts[], const displ_type displs[], MPI_Datatype recvtype, MPI_Comm comm,       \
                 TAGC_Tensor tensor),                                                                                  \
                .collective = TAGCI_ALLGATHERV, .large = wide, .sendbuf = sendbuf, .sendcount = sendcount,             \
                .sendtype = sendtype, .recvbuf = recvbuf, .counts = recvcounts, .displs = displs,                      \
                .datatype = recvtype, .comm = comm, .tensor = tensor)
ALLGATHERV(, int, int, 0)
ALLGATHERV(_c, MPI_Count, MPI_Aint, 1)
