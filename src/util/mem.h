/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Memory: aligned blocks with overflow-checked sizes, counted. */
#ifndef TAGCI_UTIL_MEM_H
#define TAGCI_UTIL_MEM_H

#include <stddef.h>
#include <stdint.h>

#define TAGCI_ALIGN 64

/* Block of count * size bytes, aligned to TAGCI_ALIGN, at least one byte; NULL on overflow or when there is none.
 * A test can make the k-th allocation from now fail (tagci_mem_fail_at; 0: never). */
void *tagci_alloc(size_t count, size_t size);
void *tagci_alloc_zero(size_t count, size_t size);
void tagci_free(void *block);   /* NULL: nothing */
size_t tagci_mem_held(void);    /* bytes in blocks now */
uint64_t tagci_mem_count(void); /* allocations so far */
void tagci_mem_fail_at(uint64_t k);

/* A block that only grows. Zero it first. */
struct tagci_room {
    void *at;
    size_t bytes;
};
int tagci_room_need(struct tagci_room *room, size_t bytes); /* 0, or -1: none, and the room stays as it was */
void tagci_room_release(struct tagci_room *room);

/* a * b and a + b, or SIZE_MAX on overflow (which no allocation grants). */
static inline size_t tagci_mul(size_t a, size_t b)
{
    size_t r;
    return __builtin_mul_overflow(a, b, &r) ? SIZE_MAX : r;
}
static inline size_t tagci_add(size_t a, size_t b)
{
    size_t r;
    return __builtin_add_overflow(a, b, &r) ? SIZE_MAX : r;
}

#endif
