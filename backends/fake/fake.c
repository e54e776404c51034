/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Two devices that are none. Their memory is seen twice: at the addresses that everybody gets, where any touch is a fault,
 * and at others that only this file knows, where their kernels work; one in the other's memory fails. Work put on an order is done when a mark behind it is asked
 * for often enough, not before: so a host that looks at results too early finds none, and one that changes arguments too
 * early spoils them. Its kernels are in kernels.c. */
#define _GNU_SOURCE
#include "backends/fake/fake.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/fake/work.h"

/* ---- Failing when a test wants it ---- */

static _Atomic uint64_t fail_at;
static atomic_int fail_late, failed_once, polls_wanted = 1, held;
static _Thread_local const char *what_failed;

void tagcb_fake_polls(int times)
{
    polls_wanted = times;
}

void tagcb_fake_fail_at(uint64_t k, int late)
{
    fail_late = late;
    failed_once = 0;
    fail_at = k;
}

int tagcb_fake_failed(void)
{
    return failed_once;
}

size_t tagcb_fake_held(void)
{
    return (size_t)held;
}

static int must_fail(const char *what)
{
    uint64_t left = fail_at;
    while (left > 0)
        if (atomic_compare_exchange_weak(&fail_at, &left, left - 1)) {
            if (left > 1)
                return 0;
            failed_once = 1;
            what_failed = what;
            return 1;
        }
    return 0;
}

static const char *failure(void)
{
    return what_failed;
}

/* ---- Memory ---- */

enum { granule = 256, max_blocks = 1 << 14, devices = TAGCB_FAKE_DEVICES };
static const size_t arena_bytes = (size_t)1 << 32; /* addresses; memory is taken where it is written */
static struct arena {
    char *shown, *real; /* the same memory; what is shown of the device's must not be touched */
    struct block {
        size_t at, bytes;
    } block[max_blocks]; /* in use, in order of address */
    size_t n;
} arenas[devices + 2], *const shared = arenas + devices, *const pinned = arenas + devices + 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_arenas(void)
{
    for (struct arena *a = arenas; a < arenas + devices + 2; a++) {
        int fd = memfd_create("fake device", 0);
        if (fd < 0 || ftruncate(fd, (off_t)arena_bytes))
            abort();
        a->real = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        a->shown = a >= shared ? a->real
                               : mmap(NULL, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (a->real == MAP_FAILED || a->shown == MAP_FAILED)
            abort();
        close(fd);
    }
}

/* NULL: memory that is the host's alone. */
static struct arena *arena_of(const void *at)
{
    for (struct arena *a = arenas; a < arenas + devices + 2; a++)
        if (a->shown && (const char *)at >= a->shown && (const char *)at < a->shown + arena_bytes)
            return a;
    return NULL;
}

static int is_device(const struct arena *a)
{
    return a && a < shared;
}

/* What the calling thread works on, and the device whose work it does just now; -1: it is the host that touches memory. */
static _Thread_local int present, working_on = -1, trespassed;

static int current(void)
{
    return present;
}

static atomic_int used[devices];

static int use(int which)
{
    if (which < 0 || which >= devices)
        return -1;
    used[which]++;
    present = which;
    return 0;
}

int tagcb_fake_used(int which)
{
    return used[which];
}

void tagcb_fake_use(int which)
{
    present = which;
}

/* First hole that is large enough, with a granule between blocks. */
static void *take(struct arena *a, size_t bytes)
{
    size_t need = (bytes + 2 * granule) & ~(size_t)(granule - 1), at = 0, i;
    pthread_once(&once, make_arenas);
    pthread_mutex_lock(&lock);
    for (i = 0; i < a->n && a->block[i].at - at < need; i++)
        at = a->block[i].at + a->block[i].bytes;
    void *got = NULL;
    if (a->n < max_blocks && at + need <= arena_bytes) {
        memmove(&a->block[i + 1], &a->block[i], (a->n - i) * sizeof *a->block);
        a->block[i] = (struct block){at, need};
        a->n++;
        got = a->shown + at;
        held++;
    }
    pthread_mutex_unlock(&lock);
    return got;
}

static void give_back(struct arena *a, void *at)
{
    size_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < a->n && a->shown + a->block[i].at != (char *)at)
        i++;
    if (i == a->n)
        abort(); /* freed twice, or never taken */
    memset(a->real + a->block[i].at, 0xee, a->block[i].bytes < 4096 ? a->block[i].bytes : 4096);
    a->n--;
    memmove(&a->block[i], &a->block[i + 1], (a->n - i) * sizeof *a->block);
    held--;
    pthread_mutex_unlock(&lock);
}

static void *take_on(int which, enum tagci_memory kind, size_t bytes)
{
    struct arena *a = kind == TAGCI_DEVICE ? arenas + which : kind == TAGCI_SHARED ? shared : pinned;
    return bytes ? take(a, bytes) : NULL;
}

void *tagcb_fake_alloc(enum tagci_memory kind, size_t bytes)
{
    return take_on(present, kind, bytes);
}

void tagcb_fake_free(void *at)
{
    if (at)
        give_back(arena_of(at), at);
}

/* Shared memory passes for the first device's. */
static enum tagci_memory classify(const void *at, int *device)
{
    const struct arena *a = arena_of(at);
    *device = is_device(a) ? (int)(a - arenas) : 0;
    return is_device(a) ? TAGCI_DEVICE : a == shared ? TAGCI_SHARED : TAGCI_HOST;
}

/* Where memory really is. */
static void *real(const void *at)
{
    const struct arena *a = arena_of(at);
    if (!is_device(a))
        return (void *)(uintptr_t)at;
    trespassed |= working_on >= 0 && a != arenas + working_on;
    return a->real + ((const char *)at - a->shown);
}

void *tagcb_fake_reach(const void *at)
{
    if (at && !arena_of(at)) {
        fprintf(stderr, "fake device: a kernel was given %p, which is the host's alone\n", at);
        abort();
    }
    return real(at);
}

void tagcb_fake_copy(void *to, const void *from, size_t bytes)
{
    if (bytes)
        memcpy(real(to), real(from), bytes);
}

/* ---- Orders: a ring of work not yet done ---- */

struct fake_order {
    struct tagci_order head;
    int device;
    struct tagcb_fake_work *ring;
    uint64_t put, done, room; /* numbers of work; ring[number % room] */
    int failed;
    struct {
        uint64_t behind;
        int asked;
    } mark[TAGCI_MARKS];
};

static struct fake_order *of(struct tagci_order *order)
{
    return (struct fake_order *)order;
}

static struct tagci_order *order_make(int device)
{
    struct fake_order *o = device >= devices || must_fail("order_make") ? NULL : calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->device = device;
    o->room = 256;
    o->ring = calloc(o->room, sizeof *o->ring);
    if (!o->ring)
        abort();
    held++;
    return &o->head;
}

static int do_copy(struct tagcb_fake_work *w)
{
    tagcb_fake_copy(w->a, w->b, w->n);
    return 0;
}

static struct tagcb_fake_copies copies;

/* Put on an order (1), or its turn has come (-1). */
static void note_copy(const struct tagcb_fake_work *w, int change)
{
    int in = is_device(arena_of(w->b)), back = is_device(arena_of(w->a));
    if (w->run != do_copy || in == back)
        return;
    pthread_mutex_lock(&lock);
    *(in ? &copies.in : &copies.back) += change;
    copies.put_back += back && change > 0;
    pthread_mutex_unlock(&lock);
}

struct tagcb_fake_copies tagcb_fake_copies(void)
{
    pthread_mutex_lock(&lock);
    struct tagcb_fake_copies now = copies;
    pthread_mutex_unlock(&lock);
    return now;
}

static int do_work(const struct fake_order *o, struct tagcb_fake_work *w)
{
    working_on = o->device;
    trespassed = 0;
    int failed = w->run(w);
    working_on = -1;
    if (failed || trespassed)
        what_failed = trespassed ? "memory of another device" : w->name;
    return failed || trespassed;
}

static void drain(struct fake_order *o, uint64_t upto)
{
    for (; o->done < upto; o->done++) {
        struct tagcb_fake_work *w = &o->ring[o->done % o->room];
        note_copy(w, -1);
        if (w->fails)
            what_failed = w->name;
        if (w->fails || (!o->failed && do_work(o, w)))
            o->failed = 1;
    }
}

static void order_free(struct tagci_order *order)
{
    struct fake_order *o = of(order);
    drain(o, o->put);
    free(o->ring);
    free(o);
    held--;
}

int tagcb_fake_put(struct tagci_order *order, struct tagcb_fake_work w)
{
    struct fake_order *o = of(order);
    if (must_fail(w.name)) {
        if (!fail_late)
            return -1;
        w.fails = 1;
    }
    if (o->put - o->done == o->room)
        drain(o, o->done + 1);
    o->ring[o->put++ % o->room] = w;
    note_copy(&w, 1);
    return 0;
}

/* ---- Streams of the user's: one copy at a time waits on each ---- */

static struct stream {
    int device;
    void *to;
    const void *from;
    size_t bytes;
    struct stream *next;
} * streams;

void *tagcb_fake_stream(void)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->device = present;
    s->next = streams;
    return streams = s;
}

static void do_stream(struct stream *s)
{
    tagcb_fake_copy(s->to, s->from, s->bytes);
    s->bytes = 0;
}

void tagcb_fake_stream_copy(void *stream, void *to, const void *from, size_t bytes)
{
    struct stream *s = stream;
    do_stream(s);
    s->to = to;
    s->from = from;
    s->bytes = bytes;
}

void tagcb_fake_stream_free(void *stream)
{
    struct stream **at = &streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = (*at)->next;
    do_stream(stream);
    free(stream);
}

/* A failed order stays so until it has been waited for, or its next use begins. */
static int after(struct tagci_order *order, void *stream)
{
    struct fake_order *o = of(order);
    if (stream && ((struct stream *)stream)->device != o->device) {
        what_failed = "a stream of another device";
        return -1;
    }
    for (struct stream *s = streams; s; s = s->next)
        if (s->device == o->device && (!stream || s == stream))
            do_stream(s);
    drain(o, o->put);
    o->failed = 0;
    return must_fail("after") ? -1 : 0;
}

static int record(struct tagci_order *order, int mark)
{
    if (must_fail("record"))
        return -1;
    of(order)->mark[mark].behind = of(order)->put;
    of(order)->mark[mark].asked = 0;
    return 0;
}

static int query(struct tagci_order *order, int mark)
{
    struct fake_order *o = of(order);
    if (++o->mark[mark].asked < polls_wanted && o->done < o->mark[mark].behind)
        return 0;
    drain(o, o->mark[mark].behind);
    return o->failed ? -1 : 1;
}

static int wait(struct tagci_order *order, int mark)
{
    struct fake_order *o = of(order);
    drain(o, o->mark[mark].behind);
    int failed = o->failed;
    if (o->done == o->put) /* told, and nothing is left of what went wrong */
        o->failed = 0;
    return failed ? -1 : 0;
}

static void *alloc(struct tagci_order *order, enum tagci_memory kind, size_t bytes)
{
    return must_fail("alloc") ? NULL : take_on(of(order)->device, kind, bytes ? bytes : 1);
}

static void release(struct tagci_order *order, enum tagci_memory kind, void *at)
{
    if (kind == TAGCI_DEVICE && arena_of(at) != arenas + of(order)->device)
        abort();
    drain(of(order), of(order)->put);
    tagcb_fake_free(at);
}

static int copy(struct tagci_order *order, void *to, const void *from, size_t bytes)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_copy, "copy", .a = to, .b = from, .n = bytes});
}

static int do_fill(struct tagcb_fake_work *w)
{
    if (w->n)
        memset(real(w->a), w->flag, w->n);
    return 0;
}

static int fill(struct tagci_order *order, void *at, int byte, size_t bytes)
{
    return tagcb_fake_put(order, (struct tagcb_fake_work){do_fill, "fill", .a = at, .flag = byte, .n = bytes});
}

/* ---- The backend ---- */

static const char *probe(void)
{
    return NULL;
}

static const char *describe(void)
{
    return "no device: for tests";
}

static int open_device(void)
{
    if (must_fail("open"))
        return -1;
    held++;
    return 0;
}

static void close_device(void)
{
    held--;
}

static const struct tagci_backend no_kernels = {
    .name = "fake",
    .batch = 2, /* so that few chunks are many batches */
    .probe = probe,
    .describe = describe,
    .open = open_device,
    .close = close_device,
    .failure = failure,
    .current = current,
    .use = use,
    .classify = classify,
    .alloc = alloc,
    .release = release,
    .copy = copy,
    .fill = fill,
    .order_make = order_make,
    .order_free = order_free,
    .after = after,
    .record = record,
    .query = query,
    .wait = wait,
};

const struct tagci_backend *tagcb_fake(const char *without)
{
    static struct tagci_backend fake;
    fake = no_kernels;
    tagcb_fake_add_kernels(&fake, without);
    return &fake;
}
