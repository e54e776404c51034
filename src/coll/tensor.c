/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Handles are no addresses: a handle is a place in a table and the generation of that place, which changes when a tensor
 * is freed, so that a copy of a freed handle is told from a live one without a look at freed memory. */
#include "coll/tensor.h"

#include <pthread.h>
#include <string.h>

struct slot {
    struct tagci_tensor *tensor; /* NULL: free */
    uint32_t generation;         /* of the present tensor, or of the next one */
    uint32_t next_free;          /* + 1; 0: none */
};

static const int index_bits = sizeof(uintptr_t) > 4 ? 32 : 18;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *slots;
static uint32_t nslots, first_free; /* + 1 */
struct tagci_stats tagci_process_stats;

static uintptr_t generation_mask(void)
{
    return ((uintptr_t)1 << (8 * sizeof(uintptr_t) - (size_t)index_bits)) - 1;
}

/* More places; with the lock held. */
static int grow(void)
{
    uint32_t n = nslots ? nslots * 2 : 64;
    if ((uint64_t)n > ((uint64_t)1 << (index_bits - 1)))
        return -1;
    struct slot *more = tagci_alloc_zero(n, sizeof *more);
    if (!more)
        return -1;
    if (nslots)
        memcpy(more, slots, nslots * sizeof *more);
    for (uint32_t i = n; i-- > nslots;) {
        more[i].generation = 1;
        more[i].next_free = first_free;
        first_free = i + 1;
    }
    tagci_free(slots);
    slots = more;
    nslots = n;
    return 0;
}

int tagci_tensor_register(struct tagci_tensor *t)
{
    int bad = 0;
    pthread_mutex_lock(&lock);
    if (!first_free)
        bad = grow();
    if (!bad) {
        uint32_t i = first_free - 1;
        first_free = slots[i].next_free;
        slots[i].tensor = t;
        t->handle = (TAGC_Tensor)((uintptr_t)slots[i].generation << index_bits | (uintptr_t)(i + 1));
    }
    pthread_mutex_unlock(&lock);
    return bad;
}

/* Place of a live tensor; with the lock held. */
static struct slot *place_of(TAGC_Tensor handle)
{
    uintptr_t h = (uintptr_t)handle;
    uintptr_t i = h & (((uintptr_t)1 << index_bits) - 1);
    if (i == 0 || i > nslots)
        return NULL;
    struct slot *s = &slots[i - 1];
    return s->tensor && s->generation == h >> index_bits ? s : NULL;
}

struct tagci_tensor *tagci_tensor_of(TAGC_Tensor handle)
{
    pthread_mutex_lock(&lock);
    struct slot *s = place_of(handle);
    struct tagci_tensor *t = s && !s->tensor->freed ? s->tensor : NULL;
    pthread_mutex_unlock(&lock);
    return t;
}

static void unregister(TAGC_Tensor handle)
{
    pthread_mutex_lock(&lock);
    struct slot *s = place_of(handle);
    if (s) {
        s->tensor = NULL;
        s->generation = (uint32_t)((s->generation + 1) & generation_mask());
        s->generation += s->generation == 0;
        s->next_free = first_free;
        first_free = (uint32_t)(s - slots) + 1;
    }
    pthread_mutex_unlock(&lock);
}

void tagci_tensor_destroy(struct tagci_tensor *t)
{
    if (!t)
        return;
    if (t->handle)
        unregister(t->handle);
    tagci_free(t->residual);
    tagci_free(t->spare);
    tagci_room_release(&t->work);
    tagci_free(t->name);
    if (t->comm)
        tagci_comm_drop(t->comm);
    tagci_free(t);
}

void tagci_tensor_destroy_all(void)
{
    for (;;) {
        struct tagci_tensor *t = NULL;
        pthread_mutex_lock(&lock);
        for (uint32_t i = 0; i < nslots && !t; i++)
            t = slots[i].tensor;
        pthread_mutex_unlock(&lock);
        if (!t)
            break;
        tagci_tensor_destroy(t);
    }
    pthread_mutex_lock(&lock);
    tagci_free(slots);
    slots = NULL;
    nslots = first_free = 0;
    pthread_mutex_unlock(&lock);
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
    return sizeof *t + strlen(t->name) + 1 + t->work.bytes +
           t->count * width * ((t->residual != NULL) + (t->spare != NULL));
}

static void add(struct tagci_stats *to, const struct tagci_stats *call)
{
    for (int i = 1; i <= TAGC_STAT_WORKSPACE_BYTES; i++)
        if (i == TAGC_STAT_DENSITY || i == TAGC_STAT_UNION_DENSITY || i == TAGC_STAT_ALGORITHM)
            to->at[i] = call->at[i]; /* of the last call */
        else
            to->at[i] += call->at[i];
}

void tagci_stats_add(struct tagci_tensor *t, const struct tagci_stats *call)
{
    if (t)
        add(&t->stats, call);
    pthread_mutex_lock(&lock);
    add(&tagci_process_stats, call);
    pthread_mutex_unlock(&lock);
}

double tagci_stats_get(const struct tagci_tensor *t, int stat)
{
    if (stat == TAGC_STAT_WORKSPACE_BYTES)
        return (double)(t ? tagci_tensor_bytes(t) : tagci_mem_held());
    if (t)
        return t->stats.at[stat];
    pthread_mutex_lock(&lock);
    double value = tagci_process_stats.at[stat];
    pthread_mutex_unlock(&lock);
    return value;
}
