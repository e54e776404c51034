/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * From a chunk to its frame: one block for each chunk. The codes are put behind the longest index there could be; when it
 * is known how many elements are kept, they move to where they belong. */
#ifndef TAGCB_GPU_ENCODE_H
#define TAGCB_GPU_ENCODE_H

#include "backends/gpu/crc.h"
#include "backends/gpu/sparsify.h"
#include "core/frame_layout.h"

struct frame_shared {
    uint32_t coded[TAGCI_CHUNK_MAX / 32]; /* a coded index; it is never longer than the bitmap */
    struct totals totals;
    struct crc_shared crc;
};

/* Form of the index, or 0: a frame without one wins where nearly everything is kept. */
DEVICE int index_for(const struct tagci_chunk *c, enum tagci_value value, uint32_t kept)
{
    struct tagci_frame_parts with, without;
    if (c->all || kept == c->n)
        return 0;
    int indexed = (int)tagci_index_form(c->index, c->n, kept);
    return tagci_frame_measure(c->type, value, c->n, indexed, kept, 0, &with) <=
                   tagci_frame_measure(c->type, value, c->n, 0, c->n, 0, &without)
               ? indexed
               : 0;
}

/* Moves bytes (a multiple of 4) down to a lower address. A barrier comes first. */
DEVICE void move_down(unsigned char *to, const unsigned char *from, size_t bytes)
{
    uint32_t *t = (uint32_t *)to;
    const uint32_t *f = (const uint32_t *)from;
    __syncthreads();
    if (to == from)
        return;
    for (size_t w = 0; w < bytes / 4; w += BLOCK) {
        size_t mine = w + threadIdx.x;
        uint32_t u = mine < bytes / 4 ? f[mine] : 0;
        __syncthreads();
        if (mine < bytes / 4)
            t[mine] = u;
        __syncthreads();
    }
}

/* Codes the shared bits. Has barriers. */
DEVICE void put_coded(const struct tagci_chunk *c, const struct pass_shared *shared, struct frame_shared *s,
                      uint32_t kept, unsigned char *at)
{
    struct tagci_coded shape = tagci_coded_shape(c->n, kept);
    unsigned turn = 0, l = shape.low_bits;
    uint32_t words = (uint32_t)(2 * (shape.high_words + shape.low_words)), low = (uint32_t)(2 * shape.high_words);
    uint32_t have = (uint32_t)(tagci_bitmap_words(c->n) * 2), before = 0, all;
    for (uint32_t w = threadIdx.x; w < words; w += BLOCK)
        s->coded[w] = 0;
    __syncthreads();
    for (uint32_t w = 0; w < have; w += BLOCK, before += all) {
        uint32_t mine = w + threadIdx.x, bits = mine < have ? shared->bits[mine] : 0;
        uint32_t i = before + threads_before(&s->totals, &turn, count_bits(bits), &all);
        for (; bits; bits &= bits - 1, i++) {
            uint32_t p = mine * 32 + count_bits((bits - 1) & ~bits), high = (p >> l) + i, bit = i * l;
            atomicOr(&s->coded[high / 32], (uint32_t)1 << high % 32);
            uint64_t rest = (uint64_t)(p & ((1u << l) - 1)) << bit % 32;
            if ((uint32_t)rest)
                atomicOr(&s->coded[low + bit / 32], (uint32_t)rest);
            if (rest >> 32)
                atomicOr(&s->coded[low + bit / 32 + 1], (uint32_t)(rest >> 32));
        }
    }
    __syncthreads();
    for (uint32_t w = threadIdx.x; w < words; w += BLOCK)
        ((uint32_t *)at)[w] = s->coded[w];
}

DEVICE void zero_pad(unsigned char *part, size_t used, size_t bytes)
{
    for (size_t i = used + threadIdx.x; i < bytes; i += BLOCK)
        part[i] = 0;
}

/* All of a frame but its codes, scales and escapes, which are there. */
DEVICE void finish_frame(struct tagci_chunk *c, const struct pass_shared *shared, struct frame_shared *s,
                         enum tagci_value value, int indexed, uint32_t kept, uint32_t escapes,
                         const struct tagci_frame_parts *p, size_t bytes)
{
    uint32_t values = indexed ? kept : (uint32_t)c->n;
    unsigned char *at = c->frame + TAGCI_FRAME_HEADER;
    if (indexed == TAGCI_INDEX_CODED)
        put_coded(c, shared, s, kept, at);
    else if (indexed)
        put_bitmap(c, shared, at);
    at += p->index + p->low;
    if (p->scales)
        zero_pad(at, tagci_value_blocks(values) * 2, p->scales);
    at += p->scales;
    zero_pad(at, tagci_value_bytes(c->type, value, values), p->codes);
    at += p->codes;
    zero_pad(at, (size_t)escapes * 4, p->escape_ranks);
    zero_pad(at + p->escape_ranks, escapes * tagci_work_size(c->type), p->escape_values);
    if (threadIdx.x == 0) {
        uint32_t *head = (uint32_t *)c->frame;
        head[0] = TAGCI_WIRE_VERSION | (uint32_t)indexed << 8 | (uint32_t)value << 16 | (uint32_t)c->type << 24;
        head[1] = values;
        head[2] = escapes;
        head[3] = 0;
        c->kept = kept;
        c->frame_bytes = bytes;
    }
    if (c->bitmap)
        put_bitmap(c, shared, c->bitmap);
    if (!c->seal)
        return;
    __syncthreads();
    uint32_t crc = crc_of(&s->crc, (const uint64_t *)c->frame, (uint32_t)(bytes / 8));
    if (threadIdx.x == 0)
        ((uint32_t *)c->frame)[3] = crc ? crc : 1;
}

/* Forms of one value to one code. */
template <int TYPE>
DEVICE void encode_plain(struct tagci_chunk *c, struct pass_shared *shared, struct frame_shared *s,
                         enum tagci_value value)
{
    enum tagci_value form = tagci_value_plain((enum tagci_type)TYPE, value);
    size_t longest = tagci_bitmap_words(c->n) * 8;
    unsigned char *out = c->frame + TAGCI_FRAME_HEADER;
    uint32_t kept;
    int indexed;
    bool whole = c->all;
    for (;; whole = true) { /* seldom twice */
        kept = plain_pass<TYPE>(c, shared, form, whole, whole ? out : out + longest);
        indexed = index_for(c, value, kept);
        if (indexed || whole)
            break;
    }
    struct tagci_frame_parts p;
    size_t bytes = tagci_frame_measure(c->type, value, c->n, indexed, indexed ? kept : c->n, 0, &p);
    if (indexed)
        move_down(out + p.index + p.low, out + longest, p.codes);
    finish_frame(c, shared, s, value, indexed, kept, 0, &p, bytes);
}

template <int TYPE> KERNEL void encode_plain_kernel(struct tagci_chunk *chunks)
{
    __shared__ struct pass_shared shared;
    __shared__ struct frame_shared frame;
    struct tagci_chunk *c = &chunks[blockIdx.x];
    encode_plain<TYPE>(c, &shared, &frame, c->value);
}

#endif
