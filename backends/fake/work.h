/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What the fake device's parts share: work that stands on an order until its turn comes. */
#ifndef TAGCB_FAKE_WORK_H
#define TAGCB_FAKE_WORK_H

#include "backend/backend.h"

struct tagcb_fake_work {
    int (*run)(struct tagcb_fake_work *w);
    const char *name;
    int fails;
    /* what the work is done with; each kind of work uses some */
    void *a;
    const void *b, *c, *d;
    size_t n, width;
    size_t *entries;
    enum tagci_type type;
    double divide;
    int flag;
    size_t all; /* of which n are a part */
    struct {
        const uint16_t *high;
        const unsigned char *exceptional;
        void *ints;
    } sketch;
};

/* Puts it on the order. 0 or -1. */
int tagcb_fake_put(struct tagci_order *order, struct tagcb_fake_work w);
/* Where memory that a kernel is given really is; a device would not reach memory that is the host's alone. */
void *tagcb_fake_reach(const void *at);

void tagcb_fake_add_kernels(struct tagci_backend *b, const char *without);

#endif
