/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/engine.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "backend/device.h"
#include "coll/comm.h"
#include "util/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tagci_op *first;
static int in_flight;

static struct {
    pthread_t thread;
    pthread_cond_t work;
    int running, stop;
} helper = {.work = PTHREAD_COND_INITIALIZER};

int tagci_engine_busy(void)
{
    return __atomic_load_n(&in_flight, __ATOMIC_ACQUIRE) > 0;
}

/* With the lock held. Returns whether an operation completed. */
static int sweep(void)
{
    int completed = 0;
    for (struct tagci_op **at = &first; *at;) {
        struct tagci_op *op = *at;
        if (!tagci_op_progress(op)) {
            at = &op->engine_next;
            continue;
        }
        *at = op->engine_next;
        __atomic_sub_fetch(&in_flight, 1, __ATOMIC_RELEASE);
        completed = 1;
        void (*done)(struct tagci_op *) = op->at_completion;
        op->at_completion = NULL;
        /* The last look at the operation from here: whoever sees it complete may release it. */
        __atomic_store_n(&op->in_engine, 0, __ATOMIC_RELEASE);
        if (done)
            done(op);
    }
    return completed;
}

void tagci_engine_sweep(void)
{
    pthread_mutex_lock(&lock);
    sweep();
    pthread_mutex_unlock(&lock);
}

/* ---- progress thread ---- */

static void *help(void *unused)
{
    (void)unused;
    tagci_device_own_thread();
    const struct timespec nap = {0, 20000};
    pthread_mutex_lock(&lock);
    while (!helper.stop) {
        if (!first) {
            pthread_cond_wait(&helper.work, &lock);
            continue;
        }
        int completed = sweep();
        pthread_mutex_unlock(&lock);
        if (!completed)
            nanosleep(&nap, NULL);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void stop_helper(void)
{
    pthread_mutex_lock(&lock);
    int running = helper.running;
    helper.stop = 1;
    helper.running = 0;
    pthread_cond_signal(&helper.work);
    pthread_mutex_unlock(&lock);
    if (running)
        pthread_join(helper.thread, NULL);
}

/* With the lock held. */
static void want_helper(void)
{
    int level;
    if (helper.running || helper.stop)
        return;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) {
        tagci_log_warn_once("progress=thread needs MPI_THREAD_MULTIPLE; operations progress in Start, Test and Wait");
        return;
    }
    helper.running = !pthread_create(&helper.thread, NULL, help, NULL);
    if (helper.running)
        tagci_at_finalize(stop_helper);
}

/* ---- starting and waiting ---- */

void tagci_engine_start(struct tagci_op *op)
{
    pthread_mutex_lock(&lock);
    op->engine_next = NULL;
    op->in_engine = 1;
    op->at_completion = NULL;
    tagci_op_start(op);
    struct tagci_op **at = &first;
    while (*at)
        at = &(*at)->engine_next;
    *at = op;
    __atomic_add_fetch(&in_flight, 1, __ATOMIC_RELEASE);
    if (op->settings->progress == TAGCI_PROGRESS_THREAD) {
        want_helper();
        pthread_cond_signal(&helper.work);
    }
    sweep();
    pthread_mutex_unlock(&lock);
}

int tagci_engine_done(const struct tagci_op *op)
{
    return !__atomic_load_n(&op->in_engine, __ATOMIC_ACQUIRE);
}

void tagci_engine_wait(const struct tagci_op *op)
{
    while (!tagci_engine_done(op)) {
        tagci_engine_sweep();
        if (!tagci_engine_done(op))
            sched_yield(); /* as many ranks as cores or more: let them send what is waited for */
    }
}

void tagci_engine_clear_line(struct tagci_comm *c)
{
    for (int waiting = 1; waiting;) {
        pthread_mutex_lock(&lock);
        if (c->line)
            sweep();
        waiting = c->line != NULL;
        pthread_mutex_unlock(&lock);
        if (waiting)
            sched_yield();
    }
}

int tagci_engine_at_completion(struct tagci_op *op, void (*done)(struct tagci_op *op))
{
    pthread_mutex_lock(&lock);
    int pending = op->in_engine;
    if (pending)
        op->at_completion = done;
    pthread_mutex_unlock(&lock);
    return pending;
}
