/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * direct where the tensor lives on a device: the same frames to the same owners in the same order (reduce_direct.c), so
 * that ranks with and without a device work together. Input, residual and sums stay in the device's memory; only frames
 * travel through the host: in pinned memory, as MPI need not know of devices, and because a frame that came from elsewhere
 * is checked before a kernel reads it.
 *
 * Three things go on at once, in batches as the backend likes them, and the host waits for none of them: kernels on the
 * tensor's order, copies on another one, messages. What goes out is encoded, copied, sent; what comes in is received, copied,
 * decoded. A batch goes on when the mark behind its last step is passed.
 *
 *   sending    a slot holds one frame, in the device's memory and in pinned memory, from its encoding until MPI has it.
 *              A frame for this rank itself stays in its slot until it is decoded.
 *   receiving  places for the frames of the next `window` chunks of every rank. Frames are decoded in one sequence: chunk
 *              by chunk, in each rank by rank.
 *
 * Sends are in the order of chunks, so the oldest chunk in flight anywhere can always be delivered: all ranks have room for
 * it, or have sent it.
 *
 * A device that fails must not keep other ranks waiting: this rank goes on with empty messages, which tell them. */
#ifndef TAGCI_COLL_REDUCE_DEVICE_H
#define TAGCI_COLL_REDUCE_DEVICE_H

#include "coll/messages.h"
#include "coll/op.h"

enum { TAGCI_HANDS = 2 /* batches of a kind in flight */ };
/* Marks: 0 is for the edges of the call. On the order of kernels 1 and 2 are behind encodings, 3 and 4 behind decodings; on
 * that of copies likewise behind copies out and in. */
enum { TAGCI_MARK_OUT = 1, TAGCI_MARK_IN = 3 };

enum tagci_hand_stage { TAGCI_IDLE, TAGCI_ON_DEVICE, TAGCI_COPYING }; /* out: encoded, copied; in: copied, decoded */

/* A batch: n consecutive ones of a ring, from number `first` on. */
struct tagci_hand {
    enum tagci_hand_stage stage;
    size_t first, n;
};

struct tagci_slot {
    int owner;
    int busy;
    size_t bytes;
};

struct tagci_pipeline {
    size_t bound, slots, window, batch, chunk;
    size_t levels;              /* chunks of the longest part */
    char *sum;                  /* the own part in the work type: in the device's memory */
    uint64_t *seen, *seen_here; /* union of the own part; from a whole word on for each chunk */

    /* sending: next is chunk `level` of the part of rank + turn; the last turn of a level is this rank itself */
    size_t level;
    int turn;
    size_t taken; /* frames put into slots so far: slot = number % slots */
    size_t free;  /* number of the oldest one whose slot is not free yet */
    struct tagci_hand out[TAGCI_HANDS];
    struct tagci_slot *slot;
    struct tagci_chunk *describe; /* of each slot */
    struct tagci_run *runs;
    unsigned char *frame, *frame_here; /* slots, in the device's memory and pinned */
    char *values;                      /* scratch of the encoding, of one batch of each hand */
    uint64_t *bitmap;

    /* receiving: frames by number in the sequence, chunk * ranks + rank */
    size_t frames, put, decoded; /* of the own part; put to work; done */
    size_t finished;             /* chunks whose results are on their way */
    struct tagci_hand in[TAGCI_HANDS];
    size_t *posted; /* for each rank */
    unsigned char *in_here, *in_data;
    int64_t *in_bytes; /* of each place; -1: not here yet */
    size_t own;        /* own frames that are ready: of the first chunks */
    size_t *own_slot;  /* of own frame c, at c % slots */
    struct tagci_decode *decode;

    struct tagci_messages messages; /* [rank * window + place] of receives, then [slot] of sends */
    int n_receives;
    double kept;
    int broken;

    unsigned char *whole; /* of an allreduce: the vector on the host, for its second half */
    void *result_user;
};

static inline size_t tagci_smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The hand with the older batch, and whether another one has one before this one's. */
static inline int tagci_older(const struct tagci_hand h[TAGCI_HANDS])
{
    return h[1].stage != TAGCI_IDLE && (h[0].stage == TAGCI_IDLE || h[1].first < h[0].first);
}

static inline int tagci_comes_later(const struct tagci_hand h[TAGCI_HANDS], int k)
{
    return h[1 - k].stage != TAGCI_IDLE && h[1 - k].first < h[k].first;
}

/* From here on nothing is put on the device any more: failed with this code. What is there ends first: its descriptors are
 * used again. */
void tagci_pipeline_break(struct tagci_op *op, int code);
void tagci_pipeline_check(struct tagci_op *op, int failed); /* the same for what a backend's function returned */
/* 1: the mark is passed, 0: not yet. A failure counts as passed. */
int tagci_pipeline_passed(struct tagci_op *op, struct tagci_order *order, int mark);
int tagci_pipeline_receive(struct tagci_op *op, int source); /* posts the next one from there, if there is one */
void tagci_pipeline_free_slot(struct tagci_pipeline *d, size_t at);

/* Each moves its batches on as far as they go; *did: something has moved. An MPI error code. */
int tagci_pipeline_go_out(struct tagci_op *op, int *did);             /* coll/reduce_device_out.c */
int tagci_pipeline_go_in(struct tagci_op *op, int *did);              /* coll/reduce_device_in.c */
int tagci_pipeline_is_here(const struct tagci_op *op, size_t number); /* the frame with this number, to be decoded */
void *tagci_pipeline_result(const struct tagci_op *op, size_t skip);  /* of the own part, from an element on */
void tagci_pipeline_finish(struct tagci_op *op, size_t from,
                           size_t to); /* results of the own part's [from, to), also to `whole` */

#endif
