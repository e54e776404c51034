/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/tensor.h"

#include <pthread.h>
#include <string.h>

#include "util/handles.h"

static struct tagci_handles tensors = TAGCI_HANDLES_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all statistics: a progress thread adds to them */
struct tagci_stats tagci_process_stats;

int tagci_tensor_register(struct tagci_tensor *t)
{
    t->handle = (TAGC_Tensor)tagci_handle_make(&tensors, t);
    return t->handle ? 0 : -1;
}

struct tagci_tensor *tagci_tensor_of(TAGC_Tensor handle)
{
    struct tagci_tensor *t = tagci_handle_look(&tensors, (uintptr_t)handle);
    return t && !t->freed ? t : NULL;
}

static void free_residual(struct tagci_tensor *t, void *residual);

static void free_memory(struct tagci_tensor *t)
{
    if (t->memory && t->memory_there)
        t->device->of->release(t->device->order, TAGCI_DEVICE, t->memory);
    else
        tagci_free(t->memory);
}

void tagci_tensor_destroy(struct tagci_tensor *t)
{
    if (!t)
        return;
    tagci_handle_drop(&tensors, (uintptr_t)t->handle);
    if (t->opened)
        tagcb_openmp.close();
    free_residual(t, t->residual);
    free_residual(t, t->spare);
    free_memory(t);
    tagci_device_put(t->device);
    tagci_room_release(&t->work);
    tagci_free(t->name);
    if (t->comm)
        tagci_comm_drop(t->comm);
    tagci_free(t);
}

void tagci_tensor_destroy_all(void)
{
    for (struct tagci_tensor *t; (t = tagci_handle_any(&tensors));)
        tagci_tensor_destroy(t);
    tagci_handles_release(&tensors);
}

/* Under `dense` everything travels. `auto` may hold back whenever its settings ask for it. */
int tagci_tensor_lossy(const struct tagci_tensor *t)
{
    const struct tagci_settings *s = &t->settings;
    if (!t->compressible || s->algorithm == TAGCI_ALGORITHM_DENSE)
        return 0;
    int lossy = s->value != TAGCI_VALUE_NATIVE || s->threshold > 0;
    for (int i = 0; i < s->sparsity.n; i++)
        lossy |= s->sparsity.share[i] > 0;
    return lossy;
}

static size_t residual_bytes(const struct tagci_tensor *t)
{
    return t->compressible ? tagci_mul(t->count, tagci_work_size(t->type)) : 0;
}

/* A residual where they live now. */
static void *make_residual(struct tagci_tensor *t)
{
    size_t bytes = residual_bytes(t);
    if (!t->resident)
        return tagci_alloc_zero(bytes, 1);
    return bytes == SIZE_MAX ? NULL : t->device->of->alloc(t->device->order, TAGCI_DEVICE, bytes);
}

static void free_residual(struct tagci_tensor *t, void *residual)
{
    if (residual && t->resident)
        t->device->of->release(t->device->order, TAGCI_DEVICE, residual);
    else
        tagci_free(residual);
}

int tagci_tensor_need_memory(struct tagci_tensor *t, size_t bytes, int there)
{
    if (t->memory && t->memory_bytes == bytes && t->memory_there == there)
        return 0;
    void *memory = !there              ? tagci_alloc(bytes, 1)
                   : bytes == SIZE_MAX ? NULL
                                       : t->device->of->alloc(t->device->order, TAGCI_DEVICE, bytes);
    if (!memory)
        return -1;
    free_memory(t);
    t->memory = memory;
    t->memory_bytes = bytes;
    t->memory_there = there;
    t->memory_name = 0;
    return 0;
}

int tagci_tensor_need_residual(struct tagci_tensor *t)
{
    if (t->residual && t->spare)
        return 0;
    void *residual = t->residual ? t->residual : make_residual(t);
    void *spare = t->spare ? t->spare : make_residual(t);
    if (!residual || !spare) {
        if (residual != t->residual)
            free_residual(t, residual);
        if (spare != t->spare)
            free_residual(t, spare);
        return -1;
    }
    if (!t->residual)
        t->residual_is_zero = 1;
    t->residual = residual;
    t->spare = spare;
    return 0;
}

/* The residual and the spare one change sides. On failure all stays as it was. */
static int change_sides(struct tagci_tensor *t, int resident)
{
    struct tagci_tensor from = *t;
    t->residual = t->spare = NULL;
    t->resident = resident;
    int failed = from.residual && tagci_tensor_need_residual(t);
    if (from.residual && !failed && !from.residual_is_zero)
        failed = tagci_device_copy(t->device, t->residual, from.residual, residual_bytes(t)) ||
                 tagci_device_settle(t->device);
    struct tagci_tensor *loser = failed ? t : &from;
    free_residual(loser, loser->residual);
    free_residual(loser, loser->spare);
    if (failed) {
        t->residual = from.residual;
        t->spare = from.spare;
        t->resident = from.resident;
    }
    t->residual_is_zero = from.residual_is_zero;
    return failed ? -1 : 0;
}

int tagci_tensor_to_host(struct tagci_tensor *t)
{
    return t->resident ? change_sides(t, 0) : 0;
}

int tagci_tensor_to_device(struct tagci_tensor *t)
{
    return t->device && t->device->of == t->backend && !t->resident ? change_sides(t, 1) : 0;
}

static int is_on(const struct tagci_tensor *t, const struct tagci_home *home)
{
    return t->device && t->device->of == home->backend && t->device->number == home->device;
}

int tagci_tensor_may_use(const struct tagci_tensor *t, const struct tagci_home *home)
{
    if (!t->device || is_on(t, home))
        return 1;
    return t->device->of == home->backend && (home->kind == TAGCI_SHARED || !t->settled);
}

/* What a guess has put on the wrong device goes back to the host, and what it remembers of gathers is lost. */
static int leave_device(struct tagci_tensor *t)
{
    if (tagci_tensor_to_host(t))
        return -1;
    if (t->memory_there) {
        free_memory(t);
        t->memory = NULL;
        t->memory_bytes = t->memory_there = 0;
        t->memory_name = 0;
    }
    tagci_device_put(t->device);
    t->device = NULL;
    return 0;
}

int tagci_tensor_use(struct tagci_tensor *t, const struct tagci_home *home)
{
    int own = home->kind == TAGCI_DEVICE;
    if (is_on(t, home) || (t->device && !own)) {
        t->settled |= own;
        return 0;
    }
    struct tagci_device *d = tagci_device_get(home->backend, home->device);
    if (!d || (t->device && leave_device(t))) {
        tagci_device_put(d);
        return -1;
    }
    const struct tagci_backend *before = t->backend;
    t->device = d;
    if (tagci_backend_may_take(t->settings.backend, home->backend->name))
        t->backend = home->backend;
    if (!tagci_tensor_to_device(t)) {
        t->settled = own;
        return 0;
    }
    tagci_device_put(t->device);
    t->device = NULL;
    t->backend = before;
    return -1;
}

size_t tagci_tensor_bytes(const struct tagci_tensor *t)
{
    size_t width = t->compressible ? tagci_work_size(t->type) : 0;
    return sizeof *t + strlen(t->name) + 1 + t->work.bytes + tagci_device_bytes(t->device) + t->memory_bytes +
           t->count * width * ((t->residual != NULL) + (t->spare != NULL));
}

static void add(struct tagci_stats *to, const struct tagci_stats *call)
{
    static const int last[] = {TAGC_STAT_DENSITY, TAGC_STAT_UNION_DENSITY, TAGC_STAT_ALGORITHM, TAGC_STAT_REASON};
    for (int i = 0; i < 4; i++)
        to->at[last[i]] = 0; /* of the last call alone */
    for (int i = 1; i <= TAGC_STAT_REASON; i++)
        to->at[i] += call->at[i];
}

void tagci_stats_add(struct tagci_tensor *t, const struct tagci_stats *call)
{
    pthread_mutex_lock(&lock);
    if (t)
        add(&t->stats, call);
    add(&tagci_process_stats, call);
    pthread_mutex_unlock(&lock);
}

double tagci_stats_get(const struct tagci_tensor *t, int stat)
{
    if (stat == TAGC_STAT_WORKSPACE_BYTES)
        return (double)(t ? tagci_tensor_bytes(t) : tagci_mem_held());
    pthread_mutex_lock(&lock);
    double value = (t ? &t->stats : &tagci_process_stats)->at[stat];
    pthread_mutex_unlock(&lock);
    return value;
}
