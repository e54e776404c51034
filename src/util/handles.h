/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Handles are no addresses: a handle is a place in a table and the generation of that place, which changes when the object
 * is freed, so that a copy of a freed handle is told from a live one without a look at freed memory. Thread-safe. */
#ifndef TAGCI_UTIL_HANDLES_H
#define TAGCI_UTIL_HANDLES_H

#include <pthread.h>
#include <stdint.h>

struct tagci_handles {
    pthread_mutex_t lock;
    struct tagci_handle_slot *slots;
    uint32_t n, first_free; /* first_free + 1; 0: none */
};
#define TAGCI_HANDLES_INIT                                                                                             \
    {                                                                                                                  \
        PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0                                                                          \
    }

/* A handle for an object, never 0; 0 if there is no memory. */
uintptr_t tagci_handle_make(struct tagci_handles *h, void *object);
void *tagci_handle_look(struct tagci_handles *h, uintptr_t handle); /* NULL: freed, or never made */
void tagci_handle_drop(struct tagci_handles *h, uintptr_t handle);
void *tagci_handle_any(struct tagci_handles *h); /* some object that has a handle, or NULL */
void tagci_handles_release(struct tagci_handles *h);

#endif
