/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/lanes.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/hash.h"
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

/* How the ranks find the memory: rank 0 makes a file of that name in it, and writes the mark, in case that another machine
 * takes itself for this one. */
struct meeting {
    char name[64]; /* empty: there is none */
    uint64_t mark;
};

static struct lane *lane(const struct tagci_lanes *l, int from, int to)
{
    size_t index = (size_t)from * (size_t)(l->ranks - 1) + (size_t)(to > from ? to - 1 : to);
    return (struct lane *)(l->at + TAGCI_ALIGN + index * (sizeof(struct lane) + l->depth * l->piece));
}

static void *map(int file, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* The memory is taken now: a page that is missing when it is written to would end the process. */
static void make(struct tagci_lanes *l, struct meeting *m)
{
    static unsigned made;
    double now = MPI_Wtime();
    memcpy(&m->mark, &now, sizeof m->mark);
    m->mark = tagci_hash(m->mark, (uint64_t)getpid());
    snprintf(m->name, sizeof m->name, "/tagc-%ld-%u-%08x", (long)getpid(),
             __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED), (unsigned)m->mark);
    int file = shm_open(m->name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0) {
        m->name[0] = 0;
        return;
    }
    if (!posix_fallocate(file, 0, (off_t)l->bytes) && (l->at = map(file, l->bytes)))
        memcpy(l->at, &m->mark, sizeof m->mark);
    close(file);
}

static void find(struct tagci_lanes *l, const struct meeting *m)
{
    int file = m->name[0] ? shm_open(m->name, O_RDWR, 0) : -1;
    if (file < 0)
        return;
    if (lseek(file, 0, SEEK_END) == (off_t)l->bytes && (l->at = map(file, l->bytes)) &&
        memcmp(l->at, &m->mark, sizeof m->mark) != 0) {
        munmap(l->at, l->bytes);
        l->at = NULL;
    }
    close(file);
}

int tagci_lanes_open(MPI_Comm here, struct tagci_lanes **lanes)
{
    struct tagci_lanes own, *l = tagci_alloc_zero(1, sizeof *l);
    struct meeting m = {.name = ""};
    memset(&own, 0, sizeof own);
    MPI_Comm_rank(here, &own.rank);
    MPI_Comm_size(here, &own.ranks);
    size_t others = own.ranks > 1 ? (size_t)own.ranks - 1 : 1, piece = round / others / TAGCI_ALIGN * TAGCI_ALIGN;
    own.piece = piece > least ? piece : least;
    own.depth = waiting / (others * own.piece) > 2 ? waiting / (others * own.piece) : 2;
    own.bytes = tagci_mul((size_t)own.ranks * others, sizeof(struct lane) + own.depth * own.piece);
    own.bytes = tagci_add(own.bytes, TAGCI_ALIGN);
    if (own.rank == 0)
        make(&own, &m);
    int code = MPI_Bcast(&m, (int)sizeof m, MPI_BYTE, 0, here);
    if (!code && own.rank != 0)
        find(&own, &m);
    int ok = l && own.at;
    if (!code)
        code = MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, here);
    if (own.rank == 0 && m.name[0])
        shm_unlink(m.name); /* all have it */
    *lanes = NULL;
    if (!code && ok) {
        *l = own;
        *lanes = l;
        return MPI_SUCCESS;
    }
    if (own.at)
        munmap(own.at, own.bytes);
    tagci_free(l);
    return code;
}

void tagci_lanes_close(struct tagci_lanes *l)
{
    if (l)
        munmap(l->at, l->bytes);
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
