/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What kernels of one order leave for each other in the memory of the device. Also read by the C compiler, for its size. */
#ifndef TAGCB_GPU_SCRATCH_H
#define TAGCB_GPU_SCRATCH_H

#include "backend/backend.h"

#define TAGCB_SELECT_BINS 2048
#define TAGCB_FRAMES_MOST 1024       /* frames in one launch of decode */
#define TAGCB_COUNTS 4096            /* tallies, or pieces of a bitmap, in one launch */
#define TAGCB_KEYS ((size_t)8 << 20) /* bytes of keys that select collects */

/* The search for a cut: keys in [lo, hi] are counted in bins of 2^shift keys each. */
struct tagcb_search {
    uint64_t lo, hi;
    uint64_t above; /* keys above hi */
    uint64_t keys;  /* how many have been collected */
    uint64_t runs;  /* of the choice, until its sample turns out to have too many equal keys */
    int shift, round, done;
    int source; /* of the next pass: the data, the data of which it collects keys, the collected keys */
    /* what the blocks of a pass have found; zero between passes */
    unsigned long long bins[TAGCB_SELECT_BINS], over, zeros;
    uint32_t blocks;
};
enum { TAGCB_FROM_DATA, TAGCB_COLLECT, TAGCB_FROM_KEYS };

struct tagcb_scratch {
    struct tagcb_search search;
    struct tagci_decode frames[TAGCB_FRAMES_MOST];
    int next[TAGCB_FRAMES_MOST];       /* the next frame for the same sum, or -1 */
    int first_of[TAGCB_FRAMES_MOST];   /* whether there is none before it */
    uint64_t tallies[2][TAGCB_COUNTS]; /* sums, and how many blocks have added to them; zero between launches */
    uint64_t counts[2][TAGCB_COUNTS], carry[2];
    uint64_t keys[TAGCB_KEYS / 8];
};

#endif
