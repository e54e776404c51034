/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/board.h"

#include <sched.h>

#include "coll/comm.h"
#include "coll/shared.h"
#include "util/mem.h"

enum { LINE = 64 };

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

/* Ranks that share an MPI's node may still have other names for memory; then some find nothing, and none has a board. */
void tagci_board_make(struct tagci_comm *c)
{
    if (c->board_asked || !c->one_node || c->size == 1)
        return;
    c->board_asked = 1;
    struct tagci_board *b = tagci_alloc_zero(1, sizeof *b);
    size_t bytes = 2 * (size_t)c->size * sizeof(union slot);
    void *at;
    tagci_shared_open(c->private, bytes, b != NULL, &at);
    if (!at) {
        tagci_free(b);
        return;
    }
    *b = (struct tagci_board){.ranks = c->size, .rank = c->rank, .bytes = bytes, .slot = at};
    c->board = b;
}

void tagci_board_release(struct tagci_board *b)
{
    if (b)
        tagci_shared_close(b->slot, b->bytes);
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
