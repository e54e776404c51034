/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * From a block of elements to its body. */
#ifndef TAGCB_GPU_LOSSLESS_ENCODE_H
#define TAGCB_GPU_LOSSLESS_ENCODE_H

#include "backends/gpu/lossless.h"

struct code_shared {
    uint8_t symbols[TAGCI_LOSSLESS_BLOCK + 8];
    uint32_t count[256], code[256]; /* right-aligned; its length above bit 16 */
    uint8_t length[256];
    struct tagci_huff_pairs pairs;
    union {
        struct {
            struct tagci_lossless_sample sample;
            uint32_t classes[32]; /* of a double's exponents */
        };
        struct tagci_huff_tree tree;
        unsigned char description[TAGCI_HUFF_LENGTHS_MAX];
    };
    struct tagci_lossless_choice choice;
    struct totals totals;
    uint32_t differs, varies, escapes, escaped_pairs, flags;
    uint32_t described;                     /* bytes of the description */
    uint32_t begin[TAGCI_HUFF_STREAMS + 1]; /* first bit of each stream among those of all */
};

template <class W> DEVICE void copy_words(W *to, const W *from, uint32_t n)
{
    for (uint32_t i = threadIdx.x; i < n && to != from; i += BLOCK)
        to[i] = from[i];
}

/* Takes the sample and chooses. Ends with a barrier. */
template <int TYPE>
DEVICE void choose_method(const typename gathered<TYPE>::word *now, const typename gathered<TYPE>::word *before,
                          uint32_t n, struct code_shared *s)
{
    typedef typename gathered<TYPE>::word W;
    const unsigned m = tagci_lossless_mantissa(TYPE);
    const uint32_t samples = TAGCI_LOSSLESS_SAMPLES;
    const uint32_t length =
        n < samples * TAGCI_LOSSLESS_SAMPLE_LENGTH ? n / samples : (uint32_t)TAGCI_LOSSLESS_SAMPLE_LENGTH;
    for (unsigned i = threadIdx.x; i < 256; i += BLOCK)
        s->sample.exponents[i] = 0;
    for (unsigned i = threadIdx.x; i < 65; i += BLOCK)
        s->sample.lengths[i] = 0;
    for (unsigned i = threadIdx.x; i < 32; i += BLOCK)
        s->classes[i] = 0;
    __syncthreads();
    if (TYPE == TAGCI_F64) {
        const uint32_t step = n / (samples * 4) | 1;
        for (uint32_t i = threadIdx.x * step; i < n; i += BLOCK * step) {
            unsigned e = (unsigned)((uint64_t)now[i] >> 52) & 0x7ff;
            if (e)
                atomicAdd(&s->classes[e >> 6], 1u);
        }
        __syncthreads();
    }
    const unsigned base = TYPE == TAGCI_F64 ? tagci_lossless_base(s->classes) : 0;
    for (uint32_t i = threadIdx.x; i < samples * length; i += BLOCK) {
        uint32_t at = i / length * (n - length) / (samples - 1) + i % length;
        unsigned e = (unsigned)((W)(now[at] << 1) >> (m + 1));
        atomicAdd(&s->sample.exponents[TYPE == TAGCI_F64 ? tagci_lossless_symbol(e, base) : e], 1u);
        if (before)
            atomicAdd(&s->sample.lengths[tagci_bit_length(zigzag(now[at], before[at]))], 1u);
    }
    if (threadIdx.x == 0)
        s->sample.n = samples * length;
    __syncthreads();
    if (threadIdx.x == 0)
        s->choice = tagci_lossless_choose(TYPE, before != NULL, base, &s->sample);
    __syncthreads();
}

/* Symbols, and the planes of raw bits. */
template <int TYPE>
DEVICE void split_block(const typename gathered<TYPE>::word *now, const typename gathered<TYPE>::word *before,
                        uint32_t n, unsigned char *raw, struct code_shared *s)
{
    typedef typename gathered<TYPE>::word W;
    const struct tagci_lossless_choice c = s->choice;
    const unsigned wide = c.r / 16, byte = c.r / 8 % 2, bits = c.r % 8, above = 16 * wide;
    unsigned char *bytes = raw + 2 * (size_t)n * wide, *packed = bytes + byte * (size_t)n;
    W v;
    for (uint32_t i = threadIdx.x; i < n; i += BLOCK) {
        s->symbols[i] = split<TYPE>(&c, now[i], before ? before[i] : (W)0, &v);
        for (unsigned p = 0; p < wide; p++)
            ((uint16_t *)(raw + 2 * (size_t)n * p))[i] = (uint16_t)(v >> 16 * p);
        if (byte)
            bytes[i] = (unsigned char)(v >> above);
    }
    for (uint32_t g = threadIdx.x; bits && g * 8 < n; g += BLOCK) {
        uint64_t x = 0;
        for (unsigned j = 0; j < 8 && g * 8 + j < n; j++) {
            split<TYPE>(&c, now[g * 8 + j], before ? before[g * 8 + j] : (W)0, &v);
            x |= ((uint64_t)(v >> (above + 8 * byte)) & (((uint64_t)1 << bits) - 1)) << bits * j;
        }
        for (unsigned k = 0; k < bits; k++)
            packed[(size_t)g * bits + k] = (unsigned char)(x >> 8 * k);
    }
    if (threadIdx.x == 0)
        s->symbols[n] = 0; /* behind an odd number of them */
}

/* What is coded: a symbol, or the code of a pair. */
DEVICE unsigned coded_at(const struct code_shared *s, bool paired, uint32_t i)
{
    return paired ? tagci_huff_pair_code(&s->pairs, s->symbols[2 * i], s->symbols[2 * i + 1]) : s->symbols[i];
}

/* Bits to memory that is zero: the first one of a byte is its highest. Words that others write to as well are joined. */
struct bit_writer {
    uint32_t *word;
    uint64_t bits; /* those of *word from the top, then those of the next */
    unsigned used;
    bool first;
};

DEVICE void flush_word(struct bit_writer *w, bool whole)
{
    uint32_t x = (uint32_t)(w->bits >> 32);
    x = x >> 24 | (x >> 8 & 0xff00u) | (x << 8 & 0xff0000u) | x << 24;
    if (whole && !w->first)
        *w->word = x;
    else if (x)
        atomicOr(w->word, x);
    w->first = false;
    w->word++;
    w->bits <<= 32;
}

DEVICE void write_streams(struct code_shared *s, uint32_t coded, unsigned char *body, uint32_t at,
                          uint32_t bytes[TAGCI_HUFF_STREAMS], unsigned *turn)
{
    const unsigned threads = BLOCK / TAGCI_HUFF_STREAMS, stream = threadIdx.x / threads;
    const bool paired = s->flags & TAGCI_LOSSLESS_PAIRED;
    const uint32_t quarter = (uint32_t)tagci_huff_quarter(coded), each = (quarter + threads - 1) / threads;
    const uint32_t begin = stream * quarter < coded ? stream * quarter : coded;
    const uint32_t end = coded - begin < quarter ? coded : begin + quarter;
    uint32_t from = begin + threadIdx.x % threads * each, to = from + each, bits = 0, all;
    from = from < end ? from : end;
    to = to < end ? to : end;
    for (uint32_t i = from; i < to; i++)
        bits += s->code[coded_at(s, paired, i)] >> 16;
    uint32_t place = threads_before(&s->totals, turn, bits, &all);
    if (threadIdx.x % threads == 0)
        s->begin[stream] = place;
    if (threadIdx.x == 0)
        s->begin[TAGCI_HUFF_STREAMS] = all;
    __syncthreads();
    uint32_t start = at, stop = at;
    for (unsigned k = 0; k < TAGCI_HUFF_STREAMS; k++) {
        bytes[k] = (s->begin[k + 1] - s->begin[k] + 7) / 8;
        start += k < stream ? bytes[k] : 0;
        stop += bytes[k];
    }
    for (uint32_t b = at + threadIdx.x; b < ((at + 3) & ~3u); b += BLOCK)
        body[b] = 0;
    for (uint32_t w = (at + 3) / 4 + threadIdx.x; w * 4 < stop; w += BLOCK)
        ((uint32_t *)body)[w] = 0;
    __threadfence();
    __syncthreads();
    place = 8 * start + place - s->begin[stream];
    struct bit_writer out = {(uint32_t *)body + place / 32, 0, place % 32, true};
    for (uint32_t i = from; i < to; i++) {
        uint32_t code = s->code[coded_at(s, paired, i)];
        out.used += code >> 16;
        out.bits |= (uint64_t)(code & 0xffffu) << (64 - out.used);
        if (out.used >= 32) {
            flush_word(&out, true);
            out.used -= 32;
        }
    }
    if (from < to && out.used)
        flush_word(&out, false);
    __threadfence();
    __syncthreads();
}

/* Body by the choice; 0: not shorter than the elements. Has barriers. */
template <int TYPE>
DEVICE uint32_t encode_body(const typename gathered<TYPE>::word *now, const typename gathered<TYPE>::word *before,
                            uint32_t n, unsigned char *body, struct code_shared *s)
{
    typedef typename gathered<TYPE>::word W;
    const struct tagci_lossless_choice c = s->choice;
    const uint32_t coded = c.paired ? (n + 1) / 2 : n, raw = (uint32_t)tagci_lossless_raw_bytes(n, c.r);
    uint32_t from, to, count, all, escapes = 0;
    unsigned turn = 0;
    split_block<TYPE>(now, before, n, body + BODY_HEADER, s);
    for (unsigned i = threadIdx.x; i < 256; i += BLOCK)
        s->count[i] = 0;
    if (threadIdx.x == 0 && c.paired)
        tagci_huff_pairs_init(&s->pairs);
    __syncthreads();
    share_of(n, &from, &to);
    for (uint32_t i = from; i < to; i++)
        escapes += s->symbols[i] == 255;
    escapes = TYPE != TAGCI_F64 && c.method == TAGCI_LOSSLESS_EXPONENTS ? 0 : escapes; /* all exponents are symbols */
    const uint32_t escape = threads_before(&s->totals, &turn, escapes, &all);
    for (uint32_t i = threadIdx.x; i < coded; i += BLOCK)
        atomicAdd(&s->count[coded_at(s, c.paired, i)], 1u);
    __syncthreads();
    if (threadIdx.x == 0) {
        size_t bits, used = tagci_huff_lengths_by(&s->tree, s->count, s->length, &bits);
        s->escapes = all;
        s->escaped_pairs = c.paired ? s->count[TAGCI_HUFF_PAIR_REST] : 0;
        s->flags = (c.paired ? TAGCI_LOSSLESS_PAIRED : 0) | (used == 1 ? TAGCI_LOSSLESS_UNIFORM : 0);
        s->differs = (!c.paired || used > 1) && BODY_HEADER + raw + TAGCI_HUFF_LENGTHS_MAX + bits / 8 +
                                                        TAGCI_HUFF_STREAMS + 2 * s->escaped_pairs + sizeof(W) * all +
                                                        8 <=
                                                    n * sizeof(W);
        s->described = 0;
        if (used > 1) {
            uint32_t next[TAGCI_HUFF_BITS + 2];
            tagci_huff_first_codes(s->length, next);
            for (unsigned i = 0; i < 256; i++)
                s->code[i] = s->length[i] ? next[s->length[i]]++ | (uint32_t)s->length[i] << 16 : 0;
            s->described = (uint32_t)tagci_huff_put_lengths(s->length, s->description);
        }
    }
    __syncthreads();
    if (!s->differs)
        return 0;
    uint32_t bytes[TAGCI_HUFF_STREAMS] = {0}, at = BODY_HEADER + raw;
    if (s->flags & TAGCI_LOSSLESS_UNIFORM) {
        if (threadIdx.x == 0)
            body[at] = s->symbols[0];
        at++;
    } else {
        for (uint32_t i = threadIdx.x; i < s->described; i += BLOCK)
            body[at + i] = s->description[i];
        at += s->described;
        write_streams(s, coded, body, at, bytes, &turn);
        for (unsigned k = 0; k < TAGCI_HUFF_STREAMS; k++)
            at += bytes[k];
    }
    if (s->escaped_pairs) {
        share_of(coded, &from, &to);
        count = 0;
        for (uint32_t i = from; i < to; i++)
            count += coded_at(s, true, i) == TAGCI_HUFF_PAIR_REST;
        uint32_t place = at + 2 * threads_before(&s->totals, &turn, count, &all);
        for (uint32_t i = from; i < to; i++)
            if (coded_at(s, true, i) == TAGCI_HUFF_PAIR_REST) {
                body[place++] = s->symbols[2 * i];
                body[place++] = s->symbols[2 * i + 1];
            }
        at += 2 * s->escaped_pairs;
    }
    if (s->escapes) {
        uint32_t place = at + escape * (uint32_t)sizeof(W);
        share_of(n, &from, &to);
        for (uint32_t i = from; i < to; i++)
            if (s->symbols[i] == 255) {
                memcpy(body + place, &now[i], sizeof(W));
                place += sizeof(W);
            }
        at += s->escapes * (uint32_t)sizeof(W);
    }
    if (threadIdx.x == 0) {
        body[0] = (unsigned char)c.r;
        body[1] = (unsigned char)s->flags;
        put16(body + 2, c.method == TAGCI_LOSSLESS_EXPONENTS ? c.base : 0);
        put16(body + 4, s->escapes);
        put16(body + 6, s->escaped_pairs);
        for (unsigned k = 0; k < TAGCI_HUFF_STREAMS; k++)
            put16(body + 8 + 2 * k, bytes[k]);
    }
    return at;
}

template <int TYPE> KERNEL void lossless_encode_kernel(struct tagci_block *blocks)
{
    typedef typename gathered<TYPE>::word W;
    __shared__ struct code_shared s;
    struct tagci_block *b = &blocks[blockIdx.x];
    const W *now = (const W *)b->now, *before = (const W *)b->before;
    const uint32_t n = (uint32_t)b->n;
    uint32_t method = TAGCI_LOSSLESS_RAW, bytes = 0, differs = 0, varies = 0;
    if (threadIdx.x == 0)
        s.differs = s.varies = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += BLOCK) {
        W x = now[i];
        differs |= before && x != before[i];
        varies |= x != now[0];
    }
    atomicOr(&s.differs, differs);
    atomicOr(&s.varies, varies);
    __syncthreads();
    if (before && !s.differs) {
        method = TAGCI_LOSSLESS_SAME;
    } else if (n > 1 && !s.varies) {
        method = TAGCI_LOSSLESS_CONSTANT;
        bytes = sizeof(W);
        copy_words((W *)b->body, now, 1);
    } else {
        if (n >= TAGCI_LOSSLESS_SMALL) {
            choose_method<TYPE>(now, before, n, &s);
            method = (uint32_t)s.choice.method;
            if (method != TAGCI_LOSSLESS_RAW)
                bytes = encode_body<TYPE>(now, before, n, b->body, &s);
        }
        if (!bytes) {
            method = TAGCI_LOSSLESS_RAW;
            bytes = n * (uint32_t)sizeof(W);
            __syncthreads(); /* nobody writes to the body any more */
            copy_words((W *)b->body, now, n);
        }
    }
    __syncthreads();
    if (b->out)
        copy_words((W *)b->out, now, n);
    if (b->after)
        copy_words((W *)b->after, now, n);
    if (threadIdx.x == 0)
        b->word = method << 24 | bytes;
}

#endif
