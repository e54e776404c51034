/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "util/handles.h"

#include <string.h>

#include "util/mem.h"

struct tagci_handle_slot {
    void *object;        /* NULL: free */
    uint32_t generation; /* of the present object, or of the next one */
    uint32_t next_free;  /* + 1; 0: none */
};

enum { index_bits = sizeof(uintptr_t) > 4 ? 32 : 18 };
static const uintptr_t index_mask = ((uintptr_t)1 << index_bits) - 1;
static const uintptr_t generation_mask = UINTPTR_MAX >> index_bits;

/* More places; with the lock held. */
static int grow(struct tagci_handles *h)
{
    uint32_t n = h->n ? h->n * 2 : 64;
    if ((uint64_t)n > index_mask / 2)
        return -1;
    struct tagci_handle_slot *more = tagci_alloc_zero(n, sizeof *more);
    if (!more)
        return -1;
    if (h->n)
        memcpy(more, h->slots, h->n * sizeof *more);
    for (uint32_t i = n; i-- > h->n;) {
        more[i].generation = 1;
        more[i].next_free = h->first_free;
        h->first_free = i + 1;
    }
    tagci_free(h->slots);
    h->slots = more;
    h->n = n;
    return 0;
}

uintptr_t tagci_handle_make(struct tagci_handles *h, void *object)
{
    uintptr_t handle = 0;
    pthread_mutex_lock(&h->lock);
    if (h->first_free || !grow(h)) {
        uint32_t i = h->first_free - 1;
        struct tagci_handle_slot *s = &h->slots[i];
        h->first_free = s->next_free;
        s->object = object;
        handle = (uintptr_t)s->generation << index_bits | (uintptr_t)(i + 1);
    }
    pthread_mutex_unlock(&h->lock);
    return handle;
}

/* Place of a live object; with the lock held. */
static struct tagci_handle_slot *place_of(struct tagci_handles *h, uintptr_t handle)
{
    uintptr_t i = handle & index_mask;
    if (i == 0 || i > h->n)
        return NULL;
    struct tagci_handle_slot *s = &h->slots[i - 1];
    return s->object && s->generation == handle >> index_bits ? s : NULL;
}

void *tagci_handle_look(struct tagci_handles *h, uintptr_t handle)
{
    pthread_mutex_lock(&h->lock);
    struct tagci_handle_slot *s = place_of(h, handle);
    void *object = s ? s->object : NULL;
    pthread_mutex_unlock(&h->lock);
    return object;
}

void tagci_handle_drop(struct tagci_handles *h, uintptr_t handle)
{
    pthread_mutex_lock(&h->lock);
    struct tagci_handle_slot *s = place_of(h, handle);
    if (s) {
        s->object = NULL;
        s->generation = (uint32_t)((s->generation + 1) & generation_mask);
        s->generation += s->generation == 0;
        s->next_free = h->first_free;
        h->first_free = (uint32_t)(s - h->slots) + 1;
    }
    pthread_mutex_unlock(&h->lock);
}

void *tagci_handle_any(struct tagci_handles *h)
{
    void *object = NULL;
    pthread_mutex_lock(&h->lock);
    for (uint32_t i = 0; i < h->n && !object; i++)
        object = h->slots[i].object;
    pthread_mutex_unlock(&h->lock);
    return object;
}

void tagci_handles_release(struct tagci_handles *h)
{
    pthread_mutex_lock(&h->lock);
    tagci_free(h->slots);
    h->slots = NULL;
    h->n = h->first_free = 0;
    pthread_mutex_unlock(&h->lock);
}
