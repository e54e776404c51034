/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * For tests with more ranks than cores, by LD_PRELOAD. A rank that waits calls UCX's progress function in a loop and
 * keeps its core until the scheduler takes it away, while the rank it waits for has none. Here the progress call gives
 * the core to somebody else when it found nothing to do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

__attribute__((visibility("default"))) unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*next)(void *);
    unsigned (*f)(void *) = __atomic_load_n(&next, __ATOMIC_RELAXED);
    if (!f) {
        *(void **)&f = dlsym(RTLD_NEXT, "ucp_worker_progress");
        if (!f)
            return 0;
        __atomic_store_n(&next, f, __ATOMIC_RELAXED);
    }
    unsigned done = f(worker);
    if (!done)
        sched_yield();
    return done;
}
