/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What the calls on tensors share. */
#ifndef TAGCI_API_TENSOR_H
#define TAGCI_API_TENSOR_H

#include "coll/tensor.h"
#include "tagc.h"
#include "util/error.h"

/* The tensor behind a handle, or TAGC_ERR_TENSOR (made, not raised) and NULL. */
int tagci_api_tensor(const char *call, TAGC_Tensor handle, struct tagci_tensor **t);
/* As above, and TAGC_ERR_BUSY with an operation in flight. */
int tagci_api_idle_tensor(const char *call, TAGC_Tensor handle, struct tagci_tensor **t);
/* MPI_SUCCESS for MPI_INFO_NULL and for an info; else what MPI says. */
int tagci_api_info(const char *call, const char *name, MPI_Info info);
/* Raises a code on the tensor's communicator; t may be NULL. */
int tagci_api_raise(const struct tagci_tensor *t, int code);

#endif
