/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Every MPI test runs with buffers on a device too, unchanged: with TAGC_TEST_MEMORY in the environment each operation gets
 * buffers in the memory of the fake device (backends/fake) instead of the test's, whose contents are copied there when the
 * operation starts and back when it completes. The linker puts these functions before the library's (--wrap).
 *
 *   TAGC_TEST_MEMORY  device, shared (managed memory), or mixed: one buffer of two in turn; or devices: tensors and calls
 *                     without one on either in turn, and the program is then on the other
 *   TAGC_TEST_FAKE    words: polls=N, marks are passed when asked for so often; without=a+b, kernels that it lacks, or all
 * Either makes backend=fake known. */
#include "config.h"

#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/fake/fake.h"
#include "coll/op.h"

static const char *memory;
static int present;

struct moved {
    struct tagci_op *op;
    struct tagci_edge edge[2]; /* sendbuf, recvbuf; here: in the device's memory */
    struct moved *next;
};
static struct moved *all;

void t_memory_start(void)
{
    const char *fake = getenv("TAGC_TEST_FAKE");
    memory = getenv("TAGC_TEST_MEMORY");
    if (!memory && !fake)
        return;
#ifndef HAVE_LD_WRAP
    puts("this linker does not put one function before another");
    exit(77);
#endif
    const char *polls = fake ? strstr(fake, "polls=") : NULL, *without = fake ? strstr(fake, "without=") : NULL;
    if (polls)
        tagcb_fake_polls(atoi(polls + 6));
    tagci_backend_add(tagcb_fake(without));
    present = 1;
}

int t_memory_leaks(void)
{
    return present ? (int)tagcb_fake_held() : 0;
}

static struct moved **find(const struct tagci_op *op)
{
    struct moved **at = &all;
    while (*at && (*at)->op != op)
        at = &(*at)->next;
    return at;
}

static void forget(const struct tagci_op *op)
{
    struct moved **at = find(op), *m = *at;
    if (!m)
        return;
    *at = m->next;
    for (int i = 0; i < 2; i++)
        tagcb_fake_free(m->edge[i].here);
    free(m);
}

/* Buffers for the operation that is to be made, and its arguments with them. */
static void move(struct tagci_op *op, struct tagci_args *a, const struct tagci_comm *c,
                 const struct tagci_tensor *tensor)
{
    static unsigned turn;
    struct tagci_edges e;
    struct moved *m = calloc(1, sizeof *m);
    struct tagci_home home;
    tagci_edges_find(&e, a, c, &home);
    m->op = op;
    int devices = !strcmp(memory, "devices"), which = devices ? (int)(turn++ % TAGCB_FAKE_DEVICES) : 0;
    if (devices && tensor && tensor->settled)
        which = tensor->device->number;
    tagcb_fake_use(which);
    for (int i = 0; i < 2; i++) {
        struct tagci_edge *edge = &m->edge[i];
        *edge = e.at[i];
        int host = !strcmp(memory, "mixed") && turn++ % 3 != 1;
        if (!edge->user || edge->home.kind != TAGCI_HOST || host)
            continue;
        edge->here = tagcb_fake_alloc(strcmp(memory, "shared") ? TAGCI_DEVICE : TAGCI_SHARED, edge->bytes);
        if (i)
            a->recvbuf = edge->here - edge->shift;
        else
            a->sendbuf = edge->here - edge->shift;
    }
    tagcb_fake_use(devices ? 1 - which : which);
    m->next = all;
    all = m;
}

int __real_tagci_op_init(struct tagci_op *op, const struct tagci_args *args, struct tagci_comm *comm,
                         struct tagci_tensor *tensor, int every_call, int own_error);
int __wrap_tagci_op_init(struct tagci_op *op, const struct tagci_args *args, struct tagci_comm *comm,
                         struct tagci_tensor *tensor, int every_call, int own_error);
void __real_tagci_op_start(struct tagci_op *op);
void __wrap_tagci_op_start(struct tagci_op *op);
int __real_tagci_op_progress(struct tagci_op *op);
int __wrap_tagci_op_progress(struct tagci_op *op);
void __real_tagci_op_release(struct tagci_op *op);
void __wrap_tagci_op_release(struct tagci_op *op);

int __wrap_tagci_op_init(struct tagci_op *op, const struct tagci_args *args, struct tagci_comm *comm,
                         struct tagci_tensor *tensor, int every_call, int own_error)
{
    struct tagci_args a = *args;
    if (memory && !own_error)
        move(op, &a, comm, tensor);
    int code = __real_tagci_op_init(op, &a, comm, tensor, every_call, own_error);
    if (code)
        forget(op);
    return code;
}

void __wrap_tagci_op_start(struct tagci_op *op)
{
    struct moved *m = *find(op);
    for (int i = 0; m && i < 2; i++)
        if (m->edge[i].here)
            tagcb_fake_copy(m->edge[i].here, m->edge[i].user, m->edge[i].bytes);
    __real_tagci_op_start(op);
}

static void copy_back(const struct tagci_op *op)
{
    struct moved *m = *find(op);
    if (m && m->edge[1].here)
        tagcb_fake_copy(m->edge[1].user, m->edge[1].here, m->edge[1].bytes);
}

int __wrap_tagci_op_progress(struct tagci_op *op)
{
    int complete = __real_tagci_op_progress(op);
    if (complete)
        copy_back(op);
    return complete;
}

void __wrap_tagci_op_release(struct tagci_op *op)
{
    __real_tagci_op_release(op);
    forget(op);
}
