/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * State of tensors to and from memory and files; the layout is in coll/image.h. Codes are made, not raised. */
#ifndef TAGCI_COLL_CHECKPOINT_H
#define TAGCI_COLL_CHECKPOINT_H

#include "coll/tensor.h"

/* buf holds at least tagci_image_bytes(t). */
void tagci_checkpoint_pack(const struct tagci_tensor *t, void *buf);
int tagci_checkpoint_unpack(const char *call, struct tagci_tensor *t, const void *buf, uint64_t bytes);
/* Collective over the tensor's communicator, same path everywhere. Success or failure is that of all ranks; after a
 * failure of load the tensor is as it was. */
int tagci_checkpoint_save(const char *call, struct tagci_tensor *t, const char *path);
int tagci_checkpoint_load(const char *call, struct tagci_tensor *t, const char *path);

/* Bytes that go to MPI-IO at a time: far below 2^31, and a multiple of 64. Tests make it small. */
extern size_t tagci_checkpoint_piece;

#endif
