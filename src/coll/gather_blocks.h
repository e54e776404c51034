/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Blocks of a coded gather to messages and back, by the kernels of the host or of a device.
 *
 * A message: checksum of the rest (4 bytes), one block as tagci_lossless_encode or tagci_round_encode makes it. It stands in
 * memory of the host; on a device, elements and what is remembered of them stand there, and only bodies travel. */
#ifndef TAGCI_COLL_GATHER_BLOCKS_H
#define TAGCI_COLL_GATHER_BLOCKS_H

#include "coll/gather.h"

struct tagci_piece {
    size_t n;               /* elements of the block */
    const void *now, *last; /* to be coded; what they are coded against, or NULL */
    void *out, *state;      /* where they go; what is to be remembered, or NULL */
    unsigned char *message;
    size_t bytes;
    uint32_t sum;    /* the message's checksum */
    const char *why; /* decoding: it is damaged (static text), or NULL */
};

struct tagci_coder {
    size_t batch; /* pieces that are best coded together */
    struct tagci_lossless_work *work;
    struct tagci_block *block; /* of a batch on a device, and its bodies there */
    unsigned char *body;
};

/* Most bytes of a message of n elements. */
size_t tagci_message_bound(const struct tagci_op *op, size_t n);
size_t tagci_coder_room(const struct tagci_op *op);
size_t tagci_coder_data_room(const struct tagci_op *op);
void tagci_coder_lay_out(struct tagci_op *op, struct tagci_coder *c);

/* Up to a batch of pieces. Coding takes them over as decoding does. 0, or -1: the device failed, and there are no messages. */
int tagci_pieces_encode(struct tagci_op *op, struct tagci_coder *c, struct tagci_piece *pieces, size_t n);
int tagci_pieces_decode(struct tagci_op *op, struct tagci_coder *c, struct tagci_piece *pieces, size_t n);

/* CRC of the tensor's memory, wherever it is; bounce: room of the host's for a message. 0 if the device fails: then the ranks
 * differ, and code anew. */
uint32_t tagci_memory_crc(const struct tagci_op *op, unsigned char *bounce, size_t room);

#endif
