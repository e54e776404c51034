/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Checkpoints of tensors. What the images and files look like stands in coll/image.h. */
#include "coll/checkpoint.h"

#include "api/tensor.h"
#include "coll/image.h"
#include "coll/meet.h"
#include "fortran/strided.h"

#define NAME_SHOWN "\"%.100s\""

static int null_argument(const char *call, const struct tagci_tensor *t, int class, const char *argument)
{
    return tagci_error(class, "%s: tensor " NAME_SHOWN ": %s is NULL", call, t->name, argument);
}

static int check_buffer(const char *call, const struct tagci_tensor *t, const void *buf)
{
    if (buf == TAGCI_STRIDED)
        return tagci_error(MPI_ERR_BUFFER, "%s: tensor " NAME_SHOWN ": buf " TAGCI_STRIDED_TEXT, call, t->name);
    return buf ? MPI_SUCCESS : null_argument(call, t, MPI_ERR_BUFFER, "buf");
}

/* The residual comes to the host, wherever it lives. */
static int at_hand(const char *call, struct tagci_tensor *t)
{
    if (!tagci_tensor_to_host(t))
        return MPI_SUCCESS;
    return tagci_error(MPI_ERR_NO_MEM, "%s: tensor " NAME_SHOWN ": no memory for the residual on the host", call,
                       t->name);
}

int TAGC_Tensor_pack_size(TAGC_Tensor tensor, MPI_Count *bytes)
{
    static const char call[] = "TAGC_Tensor_pack_size";
    struct tagci_tensor *t;
    int code = tagci_api_tensor(call, tensor, &t);
    if (!code && !bytes)
        code = null_argument(call, t, MPI_ERR_ARG, "bytes");
    if (code)
        return tagci_api_raise(t, code);
    *bytes = (MPI_Count)tagci_image_bytes(t);
    return MPI_SUCCESS;
}

int TAGC_Tensor_pack(TAGC_Tensor tensor, void *buf, MPI_Count bytes)
{
    static const char call[] = "TAGC_Tensor_pack";
    struct tagci_tensor *t;
    int code = tagci_api_idle_tensor(call, tensor, &t);
    if (!code)
        code = check_buffer(call, t, buf);
    if (!code && (bytes < 0 || (uint64_t)bytes < tagci_image_bytes(t)))
        code = tagci_error(MPI_ERR_ARG, "%s: tensor " NAME_SHOWN ": bytes is %lld, the image takes %llu", call, t->name,
                           (long long)bytes, (unsigned long long)tagci_image_bytes(t));
    if (code)
        return tagci_api_raise(t, code);
    if ((code = at_hand(call, t)))
        return tagci_api_raise(t, code);
    tagci_checkpoint_pack(t, buf);
    tagci_tensor_to_device(t); /* or it goes with its next operation */
    return MPI_SUCCESS;
}

int TAGC_Tensor_unpack(TAGC_Tensor tensor, const void *buf, MPI_Count bytes)
{
    static const char call[] = "TAGC_Tensor_unpack";
    struct tagci_tensor *t;
    int code = tagci_api_idle_tensor(call, tensor, &t);
    if (!code)
        code = check_buffer(call, t, buf);
    if (!code && bytes < 0)
        code = tagci_error(MPI_ERR_ARG, "%s: tensor " NAME_SHOWN ": bytes is %lld", call, t->name, (long long)bytes);
    if (!code)
        code = at_hand(call, t);
    if (!code)
        code = tagci_checkpoint_unpack(call, t, buf, (uint64_t)bytes);
    if (t)
        tagci_tensor_to_device(t);
    return code ? tagci_api_raise(t, code) : MPI_SUCCESS;
}

/* A rank without a tensor has no communicator to tell the others on; every other mistake of one is one of all. */
static int with_file(const char *call, TAGC_Tensor tensor, const char *path,
                     int (*work)(const char *, struct tagci_tensor *, const char *))
{
    struct tagci_tensor *t;
    int code = tagci_api_idle_tensor(call, tensor, &t);
    if (!t)
        return tagci_api_raise(NULL, code);
    if (!code && (!path || !path[0]))
        code =
            tagci_error(MPI_ERR_ARG, "%s: tensor " NAME_SHOWN ": path is %s", call, t->name, path ? "empty" : "NULL");
    if (!code)
        code = at_hand(call, t);
    struct tagci_fact_of_call facts[2] = {{"path", code ? 0 : tagci_hash_text(path)}, {NULL, 0}};
    code = tagci_meet(t->comm, call, t->name, code, TAGC_ERR_MISMATCH, facts);
    if (!code)
        code = work(call, t, path);
    tagci_tensor_to_device(t);
    return code ? tagci_api_raise(t, code) : MPI_SUCCESS;
}

int TAGC_Tensor_save(TAGC_Tensor tensor, const char *path)
{
    return with_file("TAGC_Tensor_save", tensor, path, tagci_checkpoint_save);
}

int TAGC_Tensor_load(TAGC_Tensor tensor, const char *path)
{
    return with_file("TAGC_Tensor_load", tensor, path, tagci_checkpoint_load);
}
