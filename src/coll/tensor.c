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

void tagci_tensor_destroy(struct tagci_tensor *t)
{
    if (!t)
        return;
    tagci_handle_drop(&tensors, (uintptr_t)t->handle);
    if (t->opened && t->backend->close)
        t->backend->close();
    tagci_free(t->residual);
    tagci_free(t->spare);
    tagci_free(t->memory);
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

int tagci_tensor_need_residual(struct tagci_tensor *t)
{
    if (t->residual && t->spare)
        return 0;
    size_t width = t->compressible ? tagci_work_size(t->type) : 1;
    size_t n = t->compressible ? t->count : 0;
    void *residual = t->residual ? t->residual : tagci_alloc_zero(n, width);
    void *spare = t->spare ? t->spare : tagci_alloc_zero(n, width);
    if (!residual || !spare) {
        if (residual != t->residual)
            tagci_free(residual);
        if (spare != t->spare)
            tagci_free(spare);
        return -1;
    }
    if (!t->residual)
        t->residual_is_zero = 1;
    t->residual = residual;
    t->spare = spare;
    return 0;
}

size_t tagci_tensor_bytes(const struct tagci_tensor *t)
{
    size_t width = t->compressible ? tagci_work_size(t->type) : 0;
    return sizeof *t + strlen(t->name) + 1 + t->work.bytes + t->memory_bytes +
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
