/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "backend/device.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tagci_device *idle;
static _Thread_local int own_thread;

int tagci_device_possible(void)
{
    return tagci_backend_device_at(0) != NULL;
}

static int owns(const struct tagci_backend *b, const void *at, struct tagci_home *h)
{
    int device = 0;
    enum tagci_memory kind = b->classify(at, &device);
    *h = (struct tagci_home){kind == TAGCI_HOST ? NULL : b, device, kind};
    return kind != TAGCI_HOST;
}

struct tagci_home tagci_device_owner(const void *at)
{
    static _Atomic(const struct tagci_backend *) last; /* asked first: it mostly is the one again */
    const struct tagci_backend *first = at ? last : NULL, *b;
    struct tagci_home h = {NULL, 0, TAGCI_HOST};
    if (first && owns(first, at, &h))
        return h;
    for (int i = 0; at && (b = tagci_backend_device_at(i)); i++)
        if (b != first && owns(b, at, &h)) {
            last = b;
            break;
        }
    return h;
}

static void unmake(struct tagci_device *d)
{
    for (int kind = TAGCI_HOST; kind <= TAGCI_DEVICE; kind++)
        if (d->room[kind].at)
            d->of->release(d->order, (enum tagci_memory)kind, d->room[kind].at);
    if (d->order)
        d->of->order_free(d->order);
    if (d->copies)
        d->of->order_free(d->copies);
    if (d->of->close)
        d->of->close();
    tagci_free(d);
}

static struct tagci_device *make(const struct tagci_backend *b, int number)
{
    struct tagci_device *d = tagci_alloc_zero(1, sizeof *d);
    if (!d)
        return NULL;
    d->of = b;
    d->number = number;
    d->backend = tagci_backend_whole(b);
    if (b->open && b->open()) {
        tagci_free(d);
        return NULL;
    }
    d->order = b->order_make(number);
    d->copies = b->order_make(number);
    if (!d->order || !d->copies) {
        unmake(d);
        return NULL;
    }
    d->order->backend = d->backend;
    d->copies->backend = d->backend;
    return d;
}

struct tagci_device *tagci_device_get(const struct tagci_backend *b, int number)
{
    pthread_mutex_lock(&lock);
    struct tagci_device **at = &idle, *d;
    while (*at && ((*at)->of != b || (*at)->number != number))
        at = &(*at)->next;
    d = *at;
    if (d)
        *at = d->next;
    pthread_mutex_unlock(&lock);
    return d ? d : make(b, number);
}

void tagci_device_put(struct tagci_device *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&lock);
    d->next = idle;
    idle = d;
    pthread_mutex_unlock(&lock);
}

void tagci_device_release_all(void)
{
    pthread_mutex_lock(&lock);
    while (idle) {
        struct tagci_device *d = idle;
        idle = d->next;
        unmake(d);
    }
    pthread_mutex_unlock(&lock);
}

int tagci_device_enter(const struct tagci_device *d)
{
    int before = d ? d->of->current() : -1;
    if (before >= 0 && before != d->number && d->of->use(d->number))
        return -1; /* what is put on its orders will tell */
    return before;
}

void tagci_device_leave(const struct tagci_device *d, int before)
{
    if (d && before >= 0 && before != d->number && !own_thread)
        d->of->use(before);
}

void tagci_device_own_thread(void)
{
    own_thread = 1;
}

int tagci_device_need(struct tagci_device *d, enum tagci_memory kind, size_t bytes)
{
    struct tagci_room *room = &d->room[kind];
    if (bytes <= room->bytes && room->at)
        return 0;
    void *at = bytes == SIZE_MAX ? NULL : d->of->alloc(d->order, kind, bytes);
    if (!at)
        return -1;
    if (room->at)
        d->of->release(d->order, kind, room->at);
    *room = (struct tagci_room){at, bytes};
    return 0;
}

int tagci_device_copy(struct tagci_device *d, void *to, const void *from, size_t bytes)
{
    return bytes ? d->of->copy(d->order, to, from, bytes) : 0;
}

/* The last mark is the fallback's; the one before it is for this. */
int tagci_device_settle(struct tagci_device *d)
{
    enum { mark = TAGCI_MARKS - 2 };
    struct tagci_order *order[] = {d->order, d->copies};
    int failed = 0;
    for (int i = 0; i < 2; i++)
        failed |= d->of->record(order[i], mark) || d->of->wait(order[i], mark);
    return failed ? -1 : 0;
}
