/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/gather_blocks.h"

#include <string.h>

#include "core/lossless.h"

enum {
    most = 32,     /* pieces of a batch on a device */
    sum_bytes = 4, /* of the checksum */
    head_bytes = 8 /* and the word of the index */
};

size_t tagci_message_bound(const struct tagci_op *op, size_t n)
{
    return sum_bytes +
           (tagci_gather_rounds(op) ? tagci_round_bound(tagci_gather_form(op), n) : tagci_lossless_bound(op->type, n));
}

static size_t body_room(const struct tagci_op *op)
{
    return TAGCI_LOSSLESS_BLOCK * tagci_type_size(op->type);
}

size_t tagci_coder_room(const struct tagci_op *op)
{
    return op->order ? tagci_op_piece(most, sizeof(struct tagci_block))
                     : tagci_op_piece(1, sizeof(struct tagci_lossless_work));
}

size_t tagci_coder_data_room(const struct tagci_op *op)
{
    return op->order ? tagci_op_piece(most, body_room(op)) : 0;
}

void tagci_coder_lay_out(struct tagci_op *op, struct tagci_coder *c)
{
    c->batch = op->order ? most : 1;
    c->work = op->order ? NULL : tagci_op_take(op, 1, sizeof *c->work);
    c->block = op->order ? tagci_op_take(op, most, sizeof *c->block) : NULL;
    c->body = op->order ? tagci_op_take_data(op, most, body_room(op)) : NULL;
}

static void seal(struct tagci_piece *p)
{
    p->sum = tagci_crc32c(0, p->message + sum_bytes, p->bytes - sum_bytes);
    memcpy(p->message, &p->sum, sum_bytes);
}

/* Reads the checksum, and compares it if asked to. */
static void check(const struct tagci_op *op, struct tagci_piece *p)
{
    p->sum = 0;
    p->why = NULL;
    if (p->bytes < sum_bytes) {
        p->why = "too short";
        return;
    }
    memcpy(&p->sum, p->message, sum_bytes);
    if (op->settings->checksum && p->sum != tagci_crc32c(0, p->message + sum_bytes, p->bytes - sum_bytes))
        p->why = "wrong checksum";
}

/* ---- On the host ---- */

static void decode_here(const struct tagci_op *op, struct tagci_coder *c, struct tagci_piece *p)
{
    const unsigned char *in = p->message + sum_bytes;
    size_t bytes = p->bytes - sum_bytes;
    check(op, p);
    if (p->why)
        return;
    if (tagci_gather_rounds(op))
        tagci_round_decode(tagci_gather_form(op), op->type, in, bytes, p->last, p->state, p->n, p->out, c->work,
                           &p->why);
    else if (!tagci_lossless_decode(op->type, in, bytes, p->last, p->n, p->out, c->work, &p->why) && p->state)
        memcpy(p->state, p->out, p->n * tagci_type_size(op->type));
}

static void encode_here(const struct tagci_op *op, struct tagci_coder *c, struct tagci_piece *p)
{
    unsigned char *to = p->message + sum_bytes;
    size_t size = p->n * tagci_type_size(op->type);
    if (tagci_gather_rounds(op)) {
        p->bytes =
            sum_bytes + tagci_round_encode(tagci_gather_form(op), op->type, p->now, p->last, NULL, p->n, to, c->work);
        seal(p);
        decode_here(op, c, p);
        return;
    }
    p->bytes = sum_bytes + tagci_lossless_encode(op->type, p->now, p->last, p->n, to, c->work);
    seal(p);
    if (p->state)
        memcpy(p->state, p->now, size);
    if (p->out)
        memcpy(p->out, p->now, size);
}

/* ---- On a device ---- */

static int encode_there(struct tagci_op *op, struct tagci_coder *c, struct tagci_piece *pieces, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct tagci_piece *p = &pieces[i];
        c->block[i] = (struct tagci_block){.n = p->n,
                                           .now = p->now,
                                           .before = p->last,
                                           .out = p->out,
                                           .after = p->state,
                                           .body = c->body + i * body_room(op)};
    }
    if (op->backend->lossless_encode(op->order, op->type, c->block, n, NULL) || tagci_op_settle(op))
        return -1;
    for (size_t i = 0; i < n; i++) { /* sizes are known now */
        struct tagci_piece *p = &pieces[i];
        size_t body = tagci_lossless_body(c->block[i].word);
        p->bytes = head_bytes + body;
        tagci_lossless_put_word(p->message + sum_bytes, 0, c->block[i].word);
        if (tagci_device_copy(op->device, p->message + head_bytes, c->block[i].body, body))
            return -1;
    }
    if (tagci_op_settle(op))
        return -1;
    for (size_t i = 0; i < n; i++)
        seal(&pieces[i]);
    return 0;
}

static int decode_there(struct tagci_op *op, struct tagci_coder *c, struct tagci_piece *pieces, size_t n)
{
    struct tagci_piece *of[most];
    size_t blocks = 0;
    for (size_t i = 0; i < n; i++) {
        struct tagci_piece *p = &pieces[i];
        check(op, p);
        if (p->why || tagci_lossless_check(p->message + sum_bytes, p->bytes - sum_bytes, p->n, &p->why))
            continue;
        struct tagci_block *b = &c->block[blocks];
        *b = (struct tagci_block){.n = p->n,
                                  .before = p->last,
                                  .out = p->out,
                                  .after = p->state,
                                  .body = c->body + blocks * body_room(op),
                                  .word = tagci_lossless_word(p->message + sum_bytes, 0)};
        of[blocks++] = p;
        if (tagci_device_copy(op->device, b->body, p->message + head_bytes, p->bytes - head_bytes))
            return -1;
    }
    if ((blocks && op->backend->lossless_decode(op->order, op->type, c->block, blocks, NULL)) || tagci_op_settle(op))
        return -1;
    for (size_t i = 0; i < blocks; i++)
        if (c->block[i].damaged)
            of[i]->why = "block: damaged";
    return 0;
}

/* ---- Either ---- */

int tagci_pieces_encode(struct tagci_op *op, struct tagci_coder *c, struct tagci_piece *pieces, size_t n)
{
    if (op->order)
        return encode_there(op, c, pieces, n);
    for (size_t i = 0; i < n; i++)
        encode_here(op, c, &pieces[i]);
    return 0;
}

int tagci_pieces_decode(struct tagci_op *op, struct tagci_coder *c, struct tagci_piece *pieces, size_t n)
{
    if (op->order)
        return decode_there(op, c, pieces, n);
    for (size_t i = 0; i < n; i++)
        decode_here(op, c, &pieces[i]);
    return 0;
}

uint32_t tagci_memory_crc(const struct tagci_op *op, unsigned char *bounce, size_t room)
{
    const struct tagci_tensor *t = op->tensor;
    const unsigned char *at = t->memory;
    uint32_t crc = 0;
    if (!op->order)
        return tagci_crc32c(0, at, t->memory_bytes);
    for (size_t done = 0, some; done < t->memory_bytes; done += some) {
        some = t->memory_bytes - done < room ? t->memory_bytes - done : room;
        if (tagci_device_copy(op->device, bounce, at + done, some) || tagci_op_settle(op))
            return 0;
        crc = tagci_crc32c(crc, bounce, some);
    }
    return crc;
}
