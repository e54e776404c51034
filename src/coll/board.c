/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/board.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "coll/comm.h"
#include "util/mem.h"

enum { LINE = 64, NAME = 64 };

/* A rank's integers of one round, in a cache line of their own. `round` is written last. */
union slot {
    struct {
        struct tagci_agreement own;
        uint64_t round;
    };
    char line[LINE];
};
_Static_assert(sizeof(union slot) == LINE, "a cache line");

/* Rounds take turns between two rows of slots: who writes round k + 2 has seen all write k + 1, and so read k. */
struct tagci_board {
    int ranks, rank;
    uint64_t round;
    size_t bytes;
    union slot *slot; /* two rows */
};

static union slot *row(const struct tagci_board *b)
{
    return b->slot + (b->round & 1) * (size_t)b->ranks;
}

/* ---- life ---- */

static void *map(int file, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* A new piece of shared memory, of zeros, and its name. */
static void *create(char name[NAME], size_t bytes)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(name, NAME, "/tagc-%ld-%lld-%ld", (long)getpid(), (long long)t.tv_sec, t.tv_nsec);
    int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
    if (file < 0) {
        name[0] = 0;
        return NULL;
    }
    void *at =
        posix_fallocate(file, 0, (off_t)bytes) ? NULL : map(file, bytes); /* a page that is not there kills later */
    close(file);
    return at;
}

static void *open_existing(const char *name, size_t bytes)
{
    struct stat s;
    void *at = NULL;
    int file = name[0] ? shm_open(name, O_RDWR, 0) : -1;
    if (file < 0)
        return NULL;
    if (!fstat(file, &s) && (size_t)s.st_size == bytes)
        at = map(file, bytes);
    close(file);
    return at;
}

/* Ranks that share an MPI's node may still have other names for memory; then some find nothing, and none has a board. */
void tagci_board_make(struct tagci_comm *c)
{
    if (c->board_asked || !c->one_node || c->size == 1)
        return;
    c->board_asked = 1;
    char name[NAME] = "";
    struct tagci_board *b = tagci_alloc_zero(1, sizeof *b);
    size_t bytes = 2 * (size_t)c->size * sizeof(union slot);
    void *at = b && c->rank == 0 ? create(name, bytes) : NULL;
    int code = MPI_Bcast(name, NAME, MPI_CHAR, 0, c->private), all = 0;
    if (c->rank && b && !code)
        at = open_existing(name, bytes);
    int good = at != NULL;
    if (code || MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, c->private))
        all = 0;
    if (c->rank == 0 && name[0])
        shm_unlink(name);
    if (all) {
        *b = (struct tagci_board){.ranks = c->size, .rank = c->rank, .bytes = bytes, .slot = at};
        c->board = b;
        return;
    }
    if (at)
        munmap(at, bytes);
    tagci_free(b);
}

void tagci_board_release(struct tagci_board *b)
{
    if (b)
        munmap(b->slot, b->bytes);
    tagci_free(b);
}

/* ---- rounds ---- */

void tagci_board_write(struct tagci_board *b, const struct tagci_agreement *own)
{
    b->round++;
    union slot *s = row(b) + b->rank;
    s->own = *own;
    __atomic_store_n(&s->round, b->round, __ATOMIC_RELEASE);
}

int tagci_board_read(struct tagci_board *b, struct tagci_agreement *all)
{
    union slot *s = row(b);
    for (int r = 0; r < b->ranks; r++)
        if (__atomic_load_n(&s[r].round, __ATOMIC_ACQUIRE) != b->round)
            return 0;
    *all = s[0].own;
    for (int r = 1; r < b->ranks; r++)
        for (int w = 0; w < TAGCI_AGREE_WORDS; w++)
            all->word[w] = s[r].own.word[w] > all->word[w] ? s[r].own.word[w] : all->word[w];
    return 1;
}

void tagci_board_pause(const struct tagci_comm *c, unsigned n)
{
    enum { spins = 2000 };
    int is_there;
    if (n > spins) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, c->private, &is_there, MPI_STATUS_IGNORE);
        sched_yield();
    }
#if defined __x86_64__ && defined __GNUC__
    else
        __builtin_ia32_pause();
#endif
}
