/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * How a collective is driven: the same operation, run to its end, started, or kept. */
#ifndef TAGCI_API_FORM_H
#define TAGCI_API_FORM_H

#include "coll/op.h"
#include "tagc.h"

enum tagci_form { TAGCI_BLOCKING, TAGCI_NONBLOCKING, TAGCI_PERSISTENT };

/* Is there a place for the request? Sets it to TAGC_REQUEST_NULL. */
int tagci_form_request(const struct tagci_args *a, enum tagci_form form, TAGC_Request *request);
/* Makes and drives the operation of checked arguments; own_error as in tagci_op_init. Returns a code, not raised. */
int tagci_form_run(const struct tagci_args *a, enum tagci_form form, struct tagci_comm *c, struct tagci_tensor *t,
                   int own_error, TAGC_Request *request);

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
        struct tagci_args a = {.call = "TAGC_" #name "_init" #suffix, __VA_ARGS__};                                    \
        (void)info;                                                                                                    \
        return run(&a, TAGCI_PERSISTENT, request);                                                                     \
    }

#endif
