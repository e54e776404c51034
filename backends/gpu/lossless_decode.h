/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * From a body to its block of elements. Bodies come from elsewhere: what no encoder makes is damaged, and nothing outside of
 * the body and the elements is touched for it. */
#ifndef TAGCB_GPU_LOSSLESS_DECODE_H
#define TAGCB_GPU_LOSSLESS_DECODE_H

#include "backends/gpu/lossless.h"

struct decode_block_shared {
    uint8_t symbols[TAGCI_LOSSLESS_BLOCK + 8];
    uint16_t
        entry[1 << TAGCI_HUFF_BITS]; /* what these bits begin with: a symbol, and the length of its code above bit 8 */
    uint16_t value[256];             /* of a code of pairs: the first symbol in the low byte */
    uint32_t exits[TAGCB_BLOCK];     /* where each thread's stretch of a stream ends */
    uint8_t length[256], sorted[256];
    uint32_t first[TAGCI_HUFF_BITS + 2], place[TAGCI_HUFF_BITS + 2]; /* code of each length, and where its symbol is */
    struct totals totals;
    struct tagci_huff_pairs pairs;
    uint32_t begin[TAGCI_HUFF_STREAMS]; /* symbols of all before each stream, in the threads' counts */
    uint32_t described, damaged, changed;
};

/* The 11 bits from bit `at` of a stream on; behind its end there are zeros. */
DEVICE unsigned peek(const unsigned char *stream, uint32_t bytes, uint32_t at)
{
    uint32_t b = at / 8, x = 0;
    for (unsigned k = 0; k < 3; k++)
        x = x << 8 | (b + k < bytes ? stream[b + k] : 0);
    return x >> (24 - TAGCI_HUFF_BITS - at % 8) & ((1u << TAGCI_HUFF_BITS) - 1);
}

/* From the description of the lengths to the table. Returns the bytes of the description; 0: damaged. */
DEVICE uint32_t make_table(const unsigned char *at, uint32_t room, bool paired, struct decode_block_shared *s)
{
    if (threadIdx.x == 0) {
        s->described = (uint32_t)tagci_huff_get_lengths(at, room, s->length);
        tagci_huff_pairs_init(&s->pairs);
        for (unsigned i = TAGCI_HUFF_PAIR_REST + 1; paired && i < 256; i++)
            if (s->length[i])
                s->described = 0; /* no pair */
        if (s->described) {
            uint32_t next[TAGCI_HUFF_BITS + 2], sum = 0;
            tagci_huff_first_codes(s->length, next);
            for (unsigned l = 1; l <= TAGCI_HUFF_BITS; l++) {
                s->first[l] = next[l];
                s->place[l] = sum;
                for (unsigned i = 0; i < 256; i++)
                    if (s->length[i] == l)
                        s->sorted[sum++] = (uint8_t)i;
            }
            s->place[TAGCI_HUFF_BITS + 1] = sum;
        }
        s->value[TAGCI_HUFF_PAIR_REST] = 0xffff;
    }
    __syncthreads();
    if (!s->described)
        return 0;
    for (unsigned u = threadIdx.x; paired && u < TAGCI_HUFF_PAIR_MAX; u += BLOCK)
        for (unsigned v = 0; v < s->pairs.width[u]; v++)
            s->value[s->pairs.row[u] + v] = (uint16_t)(u | v << 8);
    for (unsigned i = threadIdx.x; i < 1u << TAGCI_HUFF_BITS; i += BLOCK) {
        unsigned l = 1; /* a complete code: one of them fits */
        while ((i >> (TAGCI_HUFF_BITS - l)) - s->first[l] >= s->place[l + 1] - s->place[l])
            l++;
        s->entry[i] = (uint16_t)(s->sorted[s->place[l] + (i >> (TAGCI_HUFF_BITS - l)) - s->first[l]] | l << 8);
    }
    __syncthreads();
    return s->described;
}

/* Every stream is cut into even stretches, a thread for each. Where the codes of a stretch begin is known when those before
 * it have been decoded; but codes fall into step soon, whatever bit one begins with. So all begin at once, and those
 * whose beginning turns out to be another begin again, until none does: in the end all have begun where they should. */
DEVICE void decode_streams(const unsigned char *at, const uint32_t bytes[TAGCI_HUFF_STREAMS], uint32_t coded,
                           bool paired, struct decode_block_shared *s, unsigned *turn)
{
    const unsigned threads = BLOCK / TAGCI_HUFF_STREAMS, stream = threadIdx.x / threads, t = threadIdx.x % threads;
    const uint32_t quarter = (uint32_t)tagci_huff_quarter(coded), size = bytes[stream], bits = 8 * size;
    const uint32_t symbol = stream * quarter < coded ? stream * quarter : coded;
    const uint32_t symbols = coded - symbol < quarter ? coded - symbol : quarter;
    const uint32_t each = (bits + threads - 1) / threads, stop = t + 1 == threads ? bits : (t + 1) * each;
    uint32_t enter = t * each, count = 0, all;
    for (unsigned k = 0; k < stream; k++)
        at += bytes[k];
    bool again = true;
    for (;;) {
        if (again) {
            uint32_t bit = enter;
            for (count = 0; bit < stop && bit < bits; count++)
                bit += s->entry[peek(at, size, bit)] >> 8;
            s->exits[threadIdx.x] = bit;
        }
        if (threadIdx.x == 0)
            s->changed = 0;
        __syncthreads();
        uint32_t last = t ? s->exits[threadIdx.x - 1] : 0;
        again = last != enter;
        enter = last;
        if (again)
            atomicOr(&s->changed, 1u);
        __syncthreads();
        if (!s->changed)
            break;
        __syncthreads(); /* all have looked */
    }
    uint32_t place = threads_before(&s->totals, turn, count, &all);
    if (t == 0)
        s->begin[stream] = place;
    __syncthreads();
    place -= s->begin[stream];
    uint32_t bit = enter;
    /* zeros behind the last code are no symbols */
    for (uint32_t i = 0; i < count && place + i < symbols; i++) {
        unsigned e = s->entry[peek(at, size, bit)], code = e & 255;
        bit += e >> 8;
        if (paired) {
            s->symbols[2 * (symbol + place + i)] = (uint8_t)s->value[code];
            s->symbols[2 * (symbol + place + i) + 1] = (uint8_t)(s->value[code] >> 8);
        } else {
            s->symbols[symbol + place + i] = (uint8_t)code;
        }
    }
    /* Whoever has the last one sees whether the stream ends behind it; if nobody has it, the stream is too short. */
    bool has_last = symbols ? place < symbols && place + count >= symbols : t == 0;
    if (has_last && (bit > bits || (bit + 7) / 8 != size || (bit % 8 && (at[size - 1] << bit % 8 & 0xff))))
        atomicOr(&s->damaged, 1u);
    if (t + 1 == threads && place + count < symbols)
        atomicOr(&s->damaged, 1u);
    __syncthreads();
}

/* Symbols of a body, from *at on, which moves behind them. False: damaged. */
DEVICE bool decode_symbols(const unsigned char *body, uint32_t size, uint32_t *at, uint32_t n,
                           struct decode_block_shared *s)
{
    const bool paired = body[1] & TAGCI_LOSSLESS_PAIRED;
    const uint32_t pairs = get16(body + 6), coded = paired ? (n + 1) / 2 : n;
    uint32_t bytes[TAGCI_HUFF_STREAMS], sum = 0, from, to, count = 0, all;
    unsigned turn = 0;
    for (unsigned k = 0; k < TAGCI_HUFF_STREAMS; k++)
        sum += bytes[k] = get16(body + 8 + 2 * k);
    if (!paired && pairs)
        return false;
    if (body[1] & TAGCI_LOSSLESS_UNIFORM) {
        if (paired || sum || *at == size)
            return false;
        for (uint32_t i = threadIdx.x; i < n; i += BLOCK)
            s->symbols[i] = body[*at];
        ++*at;
        __syncthreads();
        return true;
    }
    const uint32_t described = make_table(body + *at, size - *at, paired, s);
    *at += described;
    if (!described || sum > size - *at)
        return false;
    decode_streams(body + *at, bytes, coded, paired, s, &turn);
    *at += sum;
    if (s->damaged)
        return false;
    if (!paired)
        return true;
    if (pairs > (size - *at) / 2)
        return false;
    share_of(coded, &from, &to);
    for (uint32_t i = from; i < to; i++)
        count += s->symbols[2 * i] == 255; /* 255 comes in pairs only */
    uint32_t place = threads_before(&s->totals, &turn, count, &all);
    if (all != pairs)
        return false;
    for (uint32_t i = from; i < to; i++)
        if (s->symbols[2 * i] == 255) {
            s->symbols[2 * i] = body[*at + 2 * place];
            s->symbols[2 * i + 1] = body[*at + 2 * place + 1];
            place++;
        }
    *at += 2 * pairs;
    __syncthreads();
    return true;
}

template <int TYPE>
DEVICE bool decode_body(const struct tagci_block *b, uint32_t method, uint32_t size, struct decode_block_shared *s)
{
    typedef typename gathered<TYPE>::word W;
    const unsigned m = tagci_lossless_mantissa(TYPE), w = 8 * sizeof(W);
    const unsigned char *body = b->body;
    const W *before = (const W *)b->before;
    W *out = (W *)b->out, *after = (W *)b->after;
    const uint32_t n = (uint32_t)b->n;
    const bool exponents = method == TAGCI_LOSSLESS_EXPONENTS;
    if (n < TAGCI_LOSSLESS_SMALL || size < BODY_HEADER)
        return false;
    const struct tagci_lossless_choice c = {(int)method, 0, body[0], get16(body + 2)};
    const uint32_t escapes = get16(body + 4);
    if (exponents ? c.r != m + 1 : c.r > w - 8)
        return false;
    if (body[1] & ~(TAGCI_LOSSLESS_PAIRED | TAGCI_LOSSLESS_UNIFORM) ||
        (exponents && TYPE == TAGCI_F64 ? c.base > 2046 : c.base != 0))
        return false;
    uint32_t at = BODY_HEADER + (uint32_t)tagci_lossless_raw_bytes(n, c.r);
    if (at > size || !decode_symbols(body, size, &at, n, s) || size - at != escapes * sizeof(W))
        return false;
    const bool escaped = !exponents || TYPE == TAGCI_F64;
    uint32_t from, to, count = 0, all;
    unsigned turn = 0;
    __syncthreads(); /* nobody looks at the totals any more */
    share_of(n, &from, &to);
    for (uint32_t i = from; i < to && escaped; i++)
        count += s->symbols[i] == 255;
    uint32_t place = at + (uint32_t)sizeof(W) * threads_before(&s->totals, &turn, count, &all);
    if (all != escapes)
        return false;
    const unsigned wide = c.r / 16, byte = c.r / 8 % 2, bits = c.r % 8, above = 16 * wide;
    const unsigned char *raw = body + BODY_HEADER, *bytes = raw + 2 * (size_t)n * wide,
                        *packed = bytes + byte * (size_t)n;
    for (uint32_t i = threadIdx.x; i < n; i += BLOCK) {
        W v = 0;
        for (unsigned p = 0; p < wide; p++)
            v |= (W)((W)((const uint16_t *)(raw + 2 * (size_t)n * p))[i] << 16 * p);
        if (byte)
            v |= (W)((W)bytes[i] << above);
        if (bits) {
            unsigned bit = i % 8 * bits;
            const unsigned char *p = packed + (size_t)(i / 8) * bits + bit / 8;
            unsigned x = p[0] >> bit % 8 | (bit % 8 + bits > 8 ? (unsigned)p[1] << (8 - bit % 8) : 0);
            v |= (W)((W)(x & ((1u << bits) - 1)) << (above + 8 * byte));
        }
        if (escaped && s->symbols[i] == 255)
            continue;
        W x = join<TYPE>(&c, s->symbols[i], v, before && !exponents ? before[i] : (W)0);
        out[i] = x;
        if (after)
            after[i] = x;
    }
    for (uint32_t i = from; i < to && escapes; i++)
        if (s->symbols[i] == 255) {
            W x;
            memcpy(&x, body + place, sizeof x);
            place += sizeof x;
            out[i] = x;
            if (after)
                after[i] = x;
        }
    return true;
}

template <int TYPE> KERNEL void lossless_decode_kernel(struct tagci_block *blocks)
{
    typedef typename gathered<TYPE>::word W;
    __shared__ struct decode_block_shared s;
    struct tagci_block *b = &blocks[blockIdx.x];
    const uint32_t method = b->word >> 24, size = (uint32_t)tagci_lossless_body(b->word), n = (uint32_t)b->n;
    const W *body = (const W *)b->body, *before = (const W *)b->before;
    W *out = (W *)b->out, *after = (W *)b->after;
    bool good = true;
    if (threadIdx.x == 0)
        s.damaged = 0;
    __syncthreads();
    if (method == TAGCI_LOSSLESS_EXPONENTS || (method == TAGCI_LOSSLESS_CHANGE && before)) {
        good = decode_body<TYPE>(b, method, size, &s);
    } else {
        good = method == TAGCI_LOSSLESS_RAW        ? size == n * sizeof(W)
               : method == TAGCI_LOSSLESS_SAME     ? size == 0 && before
               : method == TAGCI_LOSSLESS_CONSTANT ? size == sizeof(W) && n
                                                   : false;
        for (uint32_t i = threadIdx.x; i < n && good; i += BLOCK) {
            W x = method == TAGCI_LOSSLESS_RAW ? body[i] : method == TAGCI_LOSSLESS_SAME ? before[i] : body[0];
            out[i] = x;
            if (after)
                after[i] = x;
        }
    }
    if (threadIdx.x == 0)
        b->damaged = !good;
}

#endif
