/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * A block is a piece of a larger raw one; its size and the raw address stand in front of it. */
#include "util/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

struct head {
    void *raw;
    size_t bytes;
};

static atomic_size_t held;
static _Atomic uint64_t count;
static _Atomic uint64_t fail_at; /* counts down; the allocation that brings it from 1 to 0 fails */

/* Whether a test wants this allocation to fail. */
static int must_fail(void)
{
    uint64_t left = atomic_load_explicit(&fail_at, memory_order_relaxed);
    while (left > 0)
        if (atomic_compare_exchange_weak(&fail_at, &left, left - 1))
            return left == 1;
    return 0;
}

/* Asks for large pages under a large block: kernels go through residuals at the speed of memory, and so do looks at
 * samples of them, which find a small page in no buffer. Only whole pages inside the block, so that none grows. */
static void want_large_pages(char *raw, size_t bytes)
{
#if defined __linux__ && defined MADV_HUGEPAGE
    const size_t page = (size_t)2 << 20;
    size_t skip = -(uintptr_t)raw & (page - 1);
    if (bytes >= 4 * page)
        madvise(raw + skip, (bytes - skip) & ~(page - 1), MADV_HUGEPAGE); /* if it cannot be, then not */
#else
    (void)raw;
    (void)bytes;
#endif
}

/* calloc rather than clearing by hand: large zero blocks then cost no pass over memory. */
static void *make(size_t n, size_t size, int zero)
{
    size_t bytes = tagci_mul(n, size);
    size_t all = tagci_add(bytes > 0 ? bytes : 1, sizeof(struct head) + TAGCI_ALIGN);
    if (bytes == SIZE_MAX || all == SIZE_MAX || must_fail())
        return NULL;
    char *raw = zero ? calloc(1, all) : malloc(all);
    if (!raw)
        return NULL;
    want_large_pages(raw, all);
    uintptr_t first = (uintptr_t)raw + sizeof(struct head);
    char *block = raw + sizeof(struct head) + (-first & (TAGCI_ALIGN - 1));
    ((struct head *)block)[-1] = (struct head){raw, bytes};
    atomic_fetch_add_explicit(&held, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    return block;
}

void *tagci_alloc(size_t n, size_t size)
{
    return make(n, size, 0);
}

void *tagci_alloc_zero(size_t n, size_t size)
{
    return make(n, size, 1);
}

void tagci_free(void *block)
{
    if (!block)
        return;
    struct head h = ((struct head *)block)[-1];
    atomic_fetch_sub_explicit(&held, h.bytes, memory_order_relaxed);
    free(h.raw);
}

size_t tagci_mem_held(void)
{
    return atomic_load_explicit(&held, memory_order_relaxed);
}

uint64_t tagci_mem_count(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed);
}

void tagci_mem_fail_at(uint64_t k)
{
    atomic_store(&fail_at, k);
}

int tagci_room_need(struct tagci_room *room, size_t bytes)
{
    if (bytes <= room->bytes && room->at)
        return 0;
    void *at = tagci_alloc(bytes, 1);
    if (!at)
        return -1;
    tagci_free(room->at);
    room->at = at;
    room->bytes = bytes;
    return 0;
}

void tagci_room_release(struct tagci_room *room)
{
    tagci_free(room->at);
    room->at = NULL;
    room->bytes = 0;
}
