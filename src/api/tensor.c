/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Tensors: made, freed, asked. */
#include "api/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coll/board.h"
#include "coll/meet.h"

/* Names may be of any length; in messages this much of them is enough. */
#define NAME_SHOWN "\"%.100s\""

int tagci_api_tensor(const char *call, TAGC_Tensor handle, struct tagci_tensor **t)
{
    *t = tagci_tensor_of(handle);
    if (*t)
        return MPI_SUCCESS;
    if (handle == TAGC_TENSOR_NULL)
        return tagci_error(TAGC_ERR_TENSOR, "%s: tensor is TAGC_TENSOR_NULL", call);
    return tagci_error(TAGC_ERR_TENSOR, "%s: tensor is not a tensor: freed, or never made", call);
}

int tagci_api_idle_tensor(const char *call, TAGC_Tensor handle, struct tagci_tensor **t)
{
    int code = tagci_api_tensor(call, handle, t);
    if (!code && (*t)->in_flight)
        code = tagci_error(TAGC_ERR_BUSY, "%s: tensor " NAME_SHOWN " has an operation in flight", call, (*t)->name);
    return code;
}

int tagci_api_raise(const struct tagci_tensor *t, int code)
{
    return tagci_error_raise(t && !t->comm->user_gone ? t->user_comm : MPI_COMM_NULL, code);
}

int tagci_api_info(const char *call, const char *name, MPI_Info info)
{
    int n, code = info == MPI_INFO_NULL ? MPI_SUCCESS : MPI_Info_get_nkeys(info, &n);
    return code ? tagci_error_of_mpi(code, call, name, "info") : MPI_SUCCESS;
}

/* ---- Making ---- */

static int info_get(void *context, const char *name, char *value, size_t size)
{
    char key[64];
    int length, flag;
    snprintf(key, sizeof key, "tagc_%s", name);
    MPI_Info info = *(MPI_Info *)context;
    if (MPI_Info_get_valuelen(info, key, &length, &flag) || !flag)
        return 0;
    return !MPI_Info_get(info, key, (int)size - 1, value, &flag) && flag;
}

static int info_key(void *context, int i, char *key, size_t size)
{
    char text[MPI_MAX_INFO_KEY + 1];
    int n;
    MPI_Info info = *(MPI_Info *)context;
    if (MPI_Info_get_nkeys(info, &n) || i >= n || MPI_Info_get_nthkey(info, i, text))
        return 0;
    snprintf(key, size, "%s", text);
    return 1;
}

/* A number for the type that all ranks can compare: handles are no such thing. */
static uint64_t hash_type(MPI_Datatype datatype)
{
    enum tagci_type type;
    if (tagci_type_of(datatype, &type))
        return type;
    int n_int, n_addr, n_type, combiner, size = 0, length = 0;
    MPI_Aint lb = 0, extent = 0;
    char name[MPI_MAX_OBJECT_NAME] = "";
    MPI_Type_get_envelope(datatype, &n_int, &n_addr, &n_type, &combiner);
    MPI_Type_size(datatype, &size);
    MPI_Type_get_extent(datatype, &lb, &extent);
    if (combiner == MPI_COMBINER_NAMED)
        MPI_Type_get_name(datatype, name, &length);
    uint64_t hash = tagci_hash_text(name);
    const int64_t facts[] = {combiner, size, lb, extent};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        hash = (hash ^ (uint64_t)facts[i]) * 0x100000001b3u;
    return hash;
}

static int check_arguments(const char *call, const char *name, MPI_Count count, MPI_Datatype datatype,
                           const TAGC_Tensor *tensor)
{
    if (!tensor)
        return tagci_error(MPI_ERR_ARG, "%s: tensor " NAME_SHOWN ": tensor is NULL", call, name);
    if (count < 0 || (uint64_t)count > SIZE_MAX)
        return tagci_error(MPI_ERR_COUNT, "%s: tensor " NAME_SHOWN ": count is %lld", call, name, (long long)count);
    if (datatype == MPI_DATATYPE_NULL)
        return tagci_error(MPI_ERR_TYPE, "%s: tensor " NAME_SHOWN ": datatype is MPI_DATATYPE_NULL", call, name);
    return MPI_SUCCESS;
}

/* Named a backend with devices, it cannot wait for its first buffer: what it needs is taken now. */
static int use_current_device(struct tagci_tensor *t)
{
    int device = t->backend->current();
    return device < 0 ? -1 : tagci_tensor_use(t, &(struct tagci_home){t->backend, device, TAGCI_SHARED});
}

/* Fills in what does not need the other ranks. */
static int set_up(const char *call, struct tagci_tensor *t, MPI_Info info)
{
    char why[400];
    struct tagci_info_reader reader = {info_get, info_key, &info};
    int code = tagci_api_info(call, t->name, info);
    if (code)
        return code;
    enum tagci_setting_error e =
        tagci_settings_resolve(t->name, info == MPI_INFO_NULL ? NULL : &reader, &t->settings, why, sizeof why);
    if (e != TAGCI_SETTING_OK)
        return tagci_error(TAGC_ERR_SETTING, "%s: tensor " NAME_SHOWN ": %s", call, t->name, why);
    char reason[200];
    t->backend = tagci_backend_pick(t->settings.backend, reason);
    if (!t->backend)
        return tagci_error(TAGC_ERR_BACKEND, "%s: tensor " NAME_SHOWN ": backend=%.80s: %s", call, t->name,
                           t->settings.backend, reason);
    if (tagci_tensor_lossy(t)) {
        tagcb_openmp.open(); /* cannot fail */
        t->opened = 1;
    }
    if (tagci_backend_is_device(t->backend) && use_current_device(t))
        return tagci_error(TAGC_ERR_BACKEND, "%s: tensor " NAME_SHOWN ": backend %s has no device or no memory for it",
                           call, t->name, t->settings.backend);
    if (tagci_tensor_lossy(t) && t->settings.error_feedback && tagci_tensor_need_residual(t))
        return tagci_error(MPI_ERR_NO_MEM, "%s: tensor " NAME_SHOWN ": no memory for a residual of %zu elements", call,
                           t->name, t->count);
    return MPI_SUCCESS;
}

/* A tensor of this rank alone; *t is NULL only if there is no memory for it. */
static int make(const char *call, struct tagci_comm *c, MPI_Comm comm, const char *name, MPI_Count count,
                MPI_Datatype datatype, MPI_Info info, struct tagci_tensor **t)
{
    *t = tagci_alloc_zero(1, sizeof **t);
    if (*t && !((*t)->name = tagci_alloc(strlen(name) + 1, 1))) {
        tagci_free(*t);
        *t = NULL;
    }
    if (!*t)
        return tagci_error(MPI_ERR_NO_MEM, "%s: tensor " NAME_SHOWN ": no memory", call, name);
    strcpy((*t)->name, name);
    tagci_comm_hold(c);
    (*t)->comm = c;
    (*t)->user_comm = comm;
    (*t)->count = (size_t)count;
    (*t)->datatype = datatype;
    (*t)->residual_is_zero = 1;
    (*t)->compressible = tagci_type_of(datatype, &(*t)->type);
    return set_up(call, *t, info);
}

/* What the ranks compare, with this rank's values for the message. */
struct facts {
    struct tagci_fact_of_call list[TAGCI_MEET_FACTS];
    char text[TAGCI_SETTINGS + 1][120];
};

static void list_facts(struct facts *f, const struct tagci_tensor *t, const char *name, MPI_Count count,
                       MPI_Datatype datatype)
{
    memset(f, 0, sizeof *f);
    snprintf(f->text[TAGCI_SETTINGS], sizeof f->text[0], "count (%lld here)", (long long)count);
    f->list[0] = (struct tagci_fact_of_call){f->text[TAGCI_SETTINGS], (uint64_t)count};
    f->list[1] = (struct tagci_fact_of_call){"name", tagci_hash_text(name)};
    f->list[2] = (struct tagci_fact_of_call){"datatype", datatype == MPI_DATATYPE_NULL ? 0 : hash_type(datatype)};
    for (int i = 0; i < TAGCI_SETTINGS; i++) {
        char value[TAGCI_PRINT_MAX] = "";
        if (t)
            tagci_setting_print(&t->settings, i, value, sizeof value);
        snprintf(f->text[i], sizeof f->text[i], "setting %s (%.60s here)", tagci_setting_name(i), value);
        f->list[3 + i] = (struct tagci_fact_of_call){f->text[i], t ? tagci_setting_hash(&t->settings, i) : 0};
    }
}

_Static_assert(3 + TAGCI_SETTINGS < TAGCI_MEET_FACTS, "the facts of a tensor");

static int create(const char *call, MPI_Comm comm, const char *name, MPI_Count count, MPI_Datatype datatype,
                  MPI_Info info, TAGC_Tensor *tensor)
{
    struct tagci_comm *c;
    struct tagci_tensor *t = NULL;
    if (tensor)
        *tensor = TAGC_TENSOR_NULL;
    if (!name)
        name = "";
    int code = tagci_comm_get(call, comm, &c);
    if (code) /* the same on all ranks */
        return tagci_error_raise(comm, code);
    tagci_at_finalize(tagci_tensor_destroy_all);

    /* From here on an error of this rank is one of all: nobody leaves before they have met. */
    int own = check_arguments(call, name, count, datatype, tensor);
    if (!own)
        own = make(call, c, comm, name, count, datatype, info, &t);
    if (!own && tagci_tensor_register(t))
        own = tagci_error(MPI_ERR_NO_MEM, "%s: tensor " NAME_SHOWN ": no memory for a handle", call, name);
    struct facts f;
    list_facts(&f, t, own ? "" : name, count, datatype);
    code = tagci_meet(c, call, name, own, TAGC_ERR_MISMATCH, f.list);
    if (code) {
        tagci_tensor_destroy(t);
        return tagci_error_raise(comm, code);
    }
    tagci_board_make(c);
    *tensor = t->handle;
    return MPI_SUCCESS;
}

int TAGC_Tensor_create(MPI_Comm comm, const char *name, int count, MPI_Datatype datatype, MPI_Info info,
                       TAGC_Tensor *tensor)
{
    return create("TAGC_Tensor_create", comm, name, count, datatype, info, tensor);
}

int TAGC_Tensor_create_c(MPI_Comm comm, const char *name, MPI_Count count, MPI_Datatype datatype, MPI_Info info,
                         TAGC_Tensor *tensor)
{
    return create("TAGC_Tensor_create_c", comm, name, count, datatype, info, tensor);
}

/* ---- The rest of its life ---- */

int TAGC_Tensor_free(TAGC_Tensor *tensor)
{
    static const char call[] = "TAGC_Tensor_free";
    struct tagci_tensor *t = NULL;
    if (!tensor)
        return tagci_error_raise(MPI_COMM_NULL, tagci_error(MPI_ERR_ARG, "%s: tensor is NULL", call));
    if (!tagci_mpi_usable()) { /* all is gone already */
        *tensor = TAGC_TENSOR_NULL;
        return MPI_SUCCESS;
    }
    int code = tagci_api_tensor(call, *tensor, &t);
    if (code)
        return tagci_api_raise(NULL, code);
    *tensor = TAGC_TENSOR_NULL;
    if (t->in_flight)
        t->freed = 1; /* its operation destroys it */
    else
        tagci_tensor_destroy(t);
    return MPI_SUCCESS;
}

int TAGC_Tensor_reset(TAGC_Tensor tensor)
{
    struct tagci_tensor *t;
    int code = tagci_api_idle_tensor("TAGC_Tensor_reset", tensor, &t);
    if (code)
        return tagci_api_raise(t, code);
    t->residual_is_zero = 1;
    t->memory_name = 0;
    t->calls = 0;
    return MPI_SUCCESS;
}

int TAGC_Tensor_set_stream(TAGC_Tensor tensor, void *stream)
{
    struct tagci_tensor *t;
    int code = tagci_api_idle_tensor("TAGC_Tensor_set_stream", tensor, &t);
    if (code)
        return tagci_api_raise(t, code);
    t->stream = stream;
    return MPI_SUCCESS;
}

int TAGC_Tensor_get_info(TAGC_Tensor tensor, MPI_Info *info_used)
{
    static const char call[] = "TAGC_Tensor_get_info";
    struct tagci_tensor *t;
    int code = tagci_api_tensor(call, tensor, &t);
    if (!code && !info_used)
        code = tagci_error(MPI_ERR_ARG, "%s: tensor " NAME_SHOWN ": info_used is NULL", call, t->name);
    if (code)
        return tagci_api_raise(t, code);
    MPI_Info info;
    if ((code = MPI_Info_create(&info)))
        return tagci_api_raise(t, code);
    for (int i = 0; i < TAGCI_SETTINGS && !code; i++) {
        char key[64], value[TAGCI_PRINT_MAX];
        snprintf(key, sizeof key, "tagc_%s", tagci_setting_name(i));
        tagci_setting_print(&t->settings, i, value, sizeof value);
        /* An MPI takes values of a certain length only (Open MPI 4: 255). Long rules are then cut, and end in dots. */
        size_t most = MPI_MAX_INFO_VAL - 1;
        if (strlen(value) > most)
            strcpy(value + most - 3, "...");
        code = MPI_Info_set(info, key, value);
    }
    if (code) {
        MPI_Info_free(&info);
        return tagci_api_raise(t, code);
    }
    *info_used = info;
    return MPI_SUCCESS;
}

/* sqrt of the sum of (x / scale)^2. */
static double norm_of(const struct tagci_tensor *t, const void *residual, double scale)
{
    const float *f = residual;
    const double *d = residual;
    double sum = 0;
    if (tagci_work_is_double(t->type))
        for (size_t i = 0; i < t->count; i++)
            sum += d[i] / scale * (d[i] / scale);
    else
        for (size_t i = 0; i < t->count; i++)
            sum += (double)f[i] * (double)f[i];
    return sqrt(sum);
}

/* The residual of a tensor on a device, in host memory that the caller frees; NULL: failed. An order of its own: the
 * tensor's may be at work. */
static void *copy_of_residual(const struct tagci_tensor *t)
{
    size_t bytes = t->count * tagci_work_size(t->type);
    struct tagci_device *d = tagci_device_get(t->device->of, t->device->number);
    void *copy = tagci_alloc(bytes, 1);
    if (d && copy && (tagci_device_copy(d, copy, t->residual, bytes) || tagci_device_settle(d))) {
        tagci_free(copy);
        copy = NULL;
    }
    tagci_device_put(d);
    return copy;
}

static double norm(const struct tagci_tensor *t, const void *residual)
{
    double l2 = norm_of(t, residual, 1);
    if (tagci_work_is_double(t->type) && (isinf(l2) || l2 < 0x1p-480)) { /* squares may have left the range */
        double largest = 0;
        for (size_t i = 0; i < t->count; i++)
            largest = fmax(largest, fabs(((const double *)residual)[i]));
        l2 = largest > 0 ? largest * norm_of(t, residual, largest) : 0;
    }
    return l2;
}

int TAGC_Tensor_get_norm(TAGC_Tensor tensor, double *l2)
{
    static const char call[] = "TAGC_Tensor_get_norm";
    struct tagci_tensor *t;
    int code = tagci_api_tensor(call, tensor, &t);
    if (!code && !l2)
        code = tagci_error(MPI_ERR_ARG, "%s: tensor " NAME_SHOWN ": l2 is NULL", call, t->name);
    if (code)
        return tagci_api_raise(t, code);
    *l2 = 0;
    if (!t->residual || t->residual_is_zero)
        return MPI_SUCCESS;
    void *copy = t->resident ? copy_of_residual(t) : NULL;
    if (t->resident && !copy)
        return tagci_api_raise(t, tagci_error(TAGC_ERR_BACKEND,
                                              "%s: tensor " NAME_SHOWN ": the residual cannot be copied "
                                              "from the device",
                                              call, t->name));
    *l2 = norm(t, copy ? copy : t->residual);
    tagci_free(copy);
    return MPI_SUCCESS;
}
