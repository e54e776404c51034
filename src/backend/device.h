/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * A device in use: an order on it, and workspace in its memory and in pinned memory, which only grows. A tensor on a
 * device has one for its life, an operation without a tensor as long as it needs; what is handed back is kept for the next
 * user, so that streams and pinned memory are not made anew for every call. */
#ifndef TAGCI_BACKEND_DEVICE_H
#define TAGCI_BACKEND_DEVICE_H

#include "backend/backend.h"
#include "util/mem.h"

/* Whose a stretch of memory is. */
struct tagci_home {
    const struct tagci_backend *backend; /* NULL: it is ordinary host memory, and the rest means nothing */
    int device;                          /* the backend's number of it */
    enum tagci_memory kind;
};

struct tagci_device {
    const struct tagci_backend *backend; /* whole: with kernels of the host where it has none */
    const struct tagci_backend *of;      /* as registered */
    int number;                          /* among the backend's devices */
    struct tagci_order *order;
    struct tagci_order *copies; /* for copies that go on beside kernels; the host keeps the two in step */
    struct tagci_room room[2];  /* TAGCI_HOST (pinned), TAGCI_DEVICE */
    struct tagci_device *next;  /* among those that nobody uses */
};

struct tagci_home tagci_device_owner(const void *at); /* at may be NULL */
int tagci_device_possible(void);                      /* whether there is a usable device backend at all; quick */
struct tagci_device *tagci_device_get(const struct tagci_backend *b, int number); /* NULL: no memory, or it failed */
void tagci_device_put(struct tagci_device *d);                                    /* NULL: nothing */
void tagci_device_release_all(void); /* those that nobody uses; at MPI_Finalize */

/* What is not the backend's own work but depends on the calling thread's device, as MPI's may where it is given pointers to
 * a device's memory, stands between these two. The thread gets back the device that enter found; one of the library's own
 * stays where it is: a device that nobody uses is not to be woken for it. d NULL: nothing. */
int tagci_device_enter(const struct tagci_device *d);
void tagci_device_leave(const struct tagci_device *d, int before);
void tagci_device_own_thread(void);

int tagci_device_need(struct tagci_device *d, enum tagci_memory kind, size_t bytes); /* room. 0 or -1 */
int tagci_device_copy(struct tagci_device *d, void *to, const void *from, size_t bytes);
int tagci_device_settle(struct tagci_device *d); /* waits for all that is on the orders */
static inline size_t tagci_device_bytes(const struct tagci_device *d)
{
    return d ? d->room[TAGCI_HOST].bytes + d->room[TAGCI_DEVICE].bytes : 0;
}

#endif
