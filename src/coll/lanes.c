/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/lanes.h"

#include <stdint.h>
#include <string.h>

#include "coll/shared.h"
#include "util/mem.h"

/* Bytes of a piece for each other rank, together; of the pieces that may wait for all others; least of a piece. */
enum { round = 32 << 10, waiting = 256 << 10, least = 4096 };

/* Counts of pieces: the giver's and the reader's, in cache lines of their own. Behind them the pieces. */
struct lane {
    uint64_t given;
    char apart[TAGCI_ALIGN - sizeof(uint64_t)];
    uint64_t done;
    char apart_too[TAGCI_ALIGN - sizeof(uint64_t)];
    unsigned char piece[];
};

struct tagci_lanes {
    int rank, ranks;
    size_t depth; /* pieces that a lane holds */
    size_t piece, bytes;
    unsigned char *at;
};

static struct lane *lane(const struct tagci_lanes *l, int from, int to)
{
    size_t index = (size_t)from * (size_t)(l->ranks - 1) + (size_t)(to > from ? to - 1 : to);
    return (struct lane *)(l->at + index * (sizeof(struct lane) + l->depth * l->piece));
}

int tagci_lanes_open(MPI_Comm here, struct tagci_lanes **lanes)
{
    struct tagci_lanes own, *l = tagci_alloc_zero(1, sizeof *l);
    void *at;
    memset(&own, 0, sizeof own);
    MPI_Comm_rank(here, &own.rank);
    MPI_Comm_size(here, &own.ranks);
    size_t others = own.ranks > 1 ? (size_t)own.ranks - 1 : 1, piece = round / others / TAGCI_ALIGN * TAGCI_ALIGN;
    own.piece = piece > least ? piece : least;
    own.depth = waiting / (others * own.piece) > 2 ? waiting / (others * own.piece) : 2;
    own.bytes = tagci_mul((size_t)own.ranks * others, sizeof(struct lane) + own.depth * own.piece);
    int code = tagci_shared_open(here, own.bytes, l != NULL, &at);
    *lanes = NULL;
    if (at) {
        own.at = at;
        *l = own;
        *lanes = l;
    } else {
        tagci_free(l);
    }
    return code;
}

void tagci_lanes_close(struct tagci_lanes *l)
{
    if (l)
        tagci_shared_close(l->at, l->bytes);
    tagci_free(l);
}

size_t tagci_lanes_piece(const struct tagci_lanes *l)
{
    return l->piece;
}

void *tagci_lanes_room(const struct tagci_lanes *l, int to)
{
    struct lane *way = lane(l, l->rank, to);
    if (way->given - __atomic_load_n(&way->done, __ATOMIC_ACQUIRE) == l->depth)
        return NULL;
    return way->piece + way->given % l->depth * l->piece;
}

void tagci_lanes_give(const struct tagci_lanes *l, int to)
{
    struct lane *way = lane(l, l->rank, to);
    __atomic_store_n(&way->given, way->given + 1, __ATOMIC_RELEASE);
}

const void *tagci_lanes_next(const struct tagci_lanes *l, int from)
{
    struct lane *way = lane(l, from, l->rank);
    if (__atomic_load_n(&way->given, __ATOMIC_ACQUIRE) == way->done)
        return NULL;
    return way->piece + way->done % l->depth * l->piece;
}

void tagci_lanes_done(const struct tagci_lanes *l, int from)
{
    struct lane *way = lane(l, from, l->rank);
    __atomic_store_n(&way->done, way->done + 1, __ATOMIC_RELEASE);
}
