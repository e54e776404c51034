/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Coded index: kept positions in about 2 + log2(n / kept) bits each (Elias-Fano), said once, in plain C that every
 * instruction-set variant of the kernels compiles for itself. Its size is a closed function of (n, kept).
 *
 * The i-th kept position p of n elements is cut at bit l:
 *   high  bit (p >> l) + i is set, for every i: kept + ((n - 1) >> l) bits, least bit of a 64-bit word first. A zero ends
 *         each bucket of 2^l elements but the last, so that the ones between two zeros are the kept positions of a bucket
 *   low   the lower l bits of every position, one behind the other, least bit first
 * Both in whole 64-bit little-endian words, zero where nothing stands. l, 0 to TAGCI_CODED_LOW_MOST, is the least one of
 * those that take the fewest words. Nothing kept: no words at all. */
#ifndef TAGCI_CORE_INDEX_CODED_H
#define TAGCI_CORE_INDEX_CODED_H

#include "core/bitmap.h"
#include "core/type.h"

/* A bucket is at most 16 words of a bitmap: work on a chunk is shared in such pieces. */
#define TAGCI_CODED_LOW_MOST 10

struct tagci_coded {
    unsigned low_bits;
    size_t high_bits, high_words, low_words;
};

TAGCI_INLINE struct tagci_coded tagci_coded_shape(size_t n, size_t kept)
{
    struct tagci_coded best = {0, 0, 0, 0};
    for (unsigned l = 0; kept > 0 && l <= TAGCI_CODED_LOW_MOST; l++) {
        size_t high = kept + ((n - 1) >> l);
        struct tagci_coded c = {l, high, tagci_bitmap_words(high), tagci_bitmap_words(kept * l)};
        if (l == 0 || c.high_words + c.low_words < best.high_words + best.low_words)
            best = c;
    }
    return best;
}

/* Form of the index of a frame in which `kept` of n elements stand. coded: where it is shorter than the bitmap. auto:
 * where it is at most three quarters of it (up to one element in six); beyond, it saves little of a frame and costs
 * time. */
TAGCI_INLINE enum tagci_index tagci_index_form(enum tagci_index wanted, size_t n, size_t kept)
{
    struct tagci_coded c = tagci_coded_shape(n, kept);
    size_t coded = c.high_words + c.low_words, bitmap = tagci_bitmap_words(n);
    int codes = wanted == TAGCI_INDEX_CODED ? coded < bitmap : wanted == TAGCI_INDEX_AUTO ? coded * 4 <= bitmap * 3 : 0;
    return codes ? TAGCI_INDEX_CODED : TAGCI_INDEX_BITMAP;
}

/* Bytes of an index; indexed: 0 (none), TAGCI_INDEX_BITMAP or TAGCI_INDEX_CODED. */
TAGCI_INLINE size_t tagci_index_bytes(int indexed, size_t n, size_t kept)
{
    struct tagci_coded c = tagci_coded_shape(n, kept);
    return 8 * (indexed == TAGCI_INDEX_CODED ? c.high_words + c.low_words : indexed ? tagci_bitmap_words(n) : 0);
}

/* Lower bits of the i-th position. What is read ends at most 3 bytes past the bits. */
TAGCI_INLINE uint32_t tagci_coded_low(const unsigned char *low, size_t i, unsigned low_bits)
{
    uint32_t u;
    size_t bit = i * low_bits;
    memcpy(&u, low + bit / 8, 4);
    return u >> bit % 8 & ((1u << low_bits) - 1);
}

/* Bit of the high part at which a bucket begins. Those before it are `bucket` zeros, and ones. */
static inline size_t tagci_coded_seek(const unsigned char *high, size_t bucket)
{
    if (bucket == 0)
        return 0;
    for (size_t w = 0;; w++) {
        uint64_t zeros = ~tagci_bitmap_word(high, w);
        size_t count = (size_t)__builtin_popcountll(zeros);
        if (count < bucket) {
            bucket -= count;
            continue;
        }
        while (--bucket)
            zeros &= zeros - 1;
        return w * 64 + (size_t)__builtin_ctzll(zeros) + 1;
    }
}

#define TAGCI_CODED_PIECE 64 /* words of a bitmap that are taken apart at once */

/* Positions of the set bits of words [from, to) of a bitmap, `step` of a word at a time whether it has as many or not:
 * at has room for step more. Returns their number. */
static inline __attribute__((always_inline)) size_t tagci_coded_positions(const uint64_t *bitmap, size_t from,
                                                                          size_t to, int step, uint32_t *at)
{
    uint32_t *next = at;
    for (size_t w = from; w < to; w++) {
        uint64_t bits = bitmap[w];
        uint32_t *put = next;
        next += __builtin_popcountll(bits);
        do {
            for (int j = 0; j < step; j++, bits &= bits - 1)
                *put++ = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits | (uint64_t)1 << 63);
        } while (bits);
    }
    return (size_t)(next - at);
}

/* A stream of numbers of a few bits in 64-bit words. */
struct tagci_coded_stream {
    unsigned char *to;
    uint64_t word;
    unsigned filled;
};

static inline void tagci_coded_put(struct tagci_coded_stream *s, uint64_t bits, unsigned width) /* 0 to 63 of them */
{
    s->word |= bits << s->filled;
    s->filled += width;
    if (s->filled >= 64) {
        memcpy(s->to, &s->word, 8);
        s->to += 8;
        s->filled -= 64;
        s->word = bits >> (width - s->filled);
    }
}

/* Codes the `kept` set bits of a bitmap of n bits; high and low: room for the words of their shape. */
static inline void tagci_coded_write(const uint64_t *bitmap, size_t n, const struct tagci_coded *c, unsigned char *high,
                                     unsigned char *low)
{
    const unsigned l = c->low_bits;
    const uint32_t mask = ((uint32_t)1 << l) - 1;
    struct tagci_coded_stream lows = {low, 0, 0};
    uint32_t p[TAGCI_CODED_PIECE * 64 + 4];
    uint64_t word = 0;
    size_t words = tagci_bitmap_words(n), at = 0, before = 0; /* at: word of the high part that `word` is */
    for (size_t from = 0; from < words; from += TAGCI_CODED_PIECE) {
        size_t to = from + TAGCI_CODED_PIECE < words ? from + TAGCI_CODED_PIECE : words, i = 0;
        size_t count =
            l > 4 ? tagci_coded_positions(bitmap, from, to, 2, p) : tagci_coded_positions(bitmap, from, to, 4, p);
        for (; i + 4 <= count; i += 4)
            tagci_coded_put(&lows,
                            (p[i] & mask) | (uint64_t)(p[i + 1] & mask) << l | (uint64_t)(p[i + 2] & mask) << 2 * l |
                                (uint64_t)(p[i + 3] & mask) << 3 * l,
                            4 * l);
        for (; i < count; i++)
            tagci_coded_put(&lows, p[i] & mask, l);
        for (i = 0; i < count; i++) {
            size_t bit = (p[i] >> l) + before + i;
            for (; at < bit / 64; at++, word = 0)
                tagci_bitmap_put(high, at, word);
            word |= (uint64_t)1 << bit % 64;
        }
        before += count;
    }
    for (; at < c->high_words; at++, word = 0)
        tagci_bitmap_put(high, at, word);
    if (lows.filled)
        memcpy(lows.to, &lows.word, 8);
}

#endif
