/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * How a collective is driven: the same operation, run to its end, started, or kept. */
#ifndef TAGCI_API_FORM_H
#define TAGCI_API_FORM_H

#include "coll/op.h"
#include "tagc.h"

enum tagci_form { TAGCI_BLOCKING, TAGCI_NONBLOCKING, TAGCI_PERSISTENT };

/* What a family of collectives brings. */
struct tagci_face {
    /* This rank's arguments: MPI_SUCCESS or an error code, not raised. What an MPI does not find may be a crash. */
    int (*check)(const struct tagci_args *a, const struct tagci_comm *c, const struct tagci_tensor *t);
    /* A call without a tensor is MPI's own, from first to last? The same on all ranks. */
    int (*goes_to_mpi)(const struct tagci_args *a, const struct tagci_comm *c);
    int (*call_mpi)(const struct tagci_args *a);
    int (*count_elements)(const struct tagci_args *a, const struct tagci_comm *c, size_t *n); /* of the whole vector */
};

/* Name of the call's tensor, "" for none. */
const char *tagci_form_name(const struct tagci_args *a);
/* Buffers that Fortran found to be no buffers. */
int tagci_form_buffers(const struct tagci_args *a);
/* No vector of all ranks' counts is longer than memory can be. */
int tagci_form_length(const struct tagci_args *a, size_t n);
/* The tensor is of this communicator, type and length, and idle. */
int tagci_form_check_tensor(const struct tagci_args *a, const struct tagci_comm *c, const struct tagci_tensor *t,
                            size_t n);
/* The whole of a call. */
int tagci_form_call(const struct tagci_args *a, enum tagci_form form, const struct tagci_face *face,
                    TAGC_Request *request);

/* The three forms of a collective, for int counts or (suffix _c) MPI_Counts. parameters: the declared ones in parentheses;
 * then the initialiser of the arguments, which may name them. `run` takes (arguments, form, request). */
#define TAGCI_UNPACK(...) __VA_ARGS__
#define TAGCI_FORMS(run, name, iname, suffix, parameters, ...)                                                         \
    int TAGC_##name##suffix(TAGCI_UNPACK parameters)                                                                   \
    {                                                                                                                  \
        struct tagci_args a = {.call = "TAGC_" #name #suffix, __VA_ARGS__};                                            \
        return run(&a, TAGCI_BLOCKING, NULL);                                                                          \
    }                                                                                                                  \
    int TAGC_##iname##suffix(TAGCI_UNPACK parameters, TAGC_Request *request)                                           \
    {                                                                                                                  \
        struct tagci_args a = {.call = "TAGC_" #iname #suffix, __VA_ARGS__};                                           \
        return run(&a, TAGCI_NONBLOCKING, request);                                                                    \
    }                                                                                                                  \
    int TAGC_##name##_init##suffix(TAGCI_UNPACK parameters, MPI_Info info, TAGC_Request *request)                      \
    {                                                                                                                  \
        struct tagci_args a = {.call = "TAGC_" #name "_init" #suffix, .info = info, __VA_ARGS__};                      \
        return run(&a, TAGCI_PERSISTENT, request);                                                                     \
    }

#endif
