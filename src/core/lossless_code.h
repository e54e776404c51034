/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Huffman codes of a plane of bytes: what the host and the kernels of a device share. */
#ifndef TAGCI_CORE_LOSSLESS_CODE_H
#define TAGCI_CORE_LOSSLESS_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "core/type.h"

#define TAGCI_HUFF_BITS 11
#define TAGCI_HUFF_STREAMS 4
#define TAGCI_HUFF_LENGTHS_MAX 128 /* bytes of the description of 256 code lengths, at most */

/* Codes of pairs of bytes (u, v): all with (u + 1)(v + 1) <= TAGCI_HUFF_PAIR_MAX, row by row, then one code for the
 * rest. */
#define TAGCI_HUFF_PAIR_MAX 59
#define TAGCI_HUFF_PAIR_REST 249
struct tagci_huff_pairs {
    uint8_t row[256], width[256]; /* code of (u, 0); how many v row u has */
};
TAGCI_INLINE unsigned tagci_huff_pair_code(const struct tagci_huff_pairs *p, unsigned u, unsigned v)
{
    return v < p->width[u] ? p->row[u] + v : TAGCI_HUFF_PAIR_REST;
}

/* Memory of a search for lengths. */
struct tagci_huff_tree {
    uint32_t weight[512];
    uint16_t parent[512], depth[512], low[257], high[257], with[TAGCI_HUFF_BITS + 2];
    uint8_t order[256], first[256];
};

TAGCI_INLINE void tagci_huff_pairs_init(struct tagci_huff_pairs *p)
{
    unsigned at = 0;
    for (unsigned u = TAGCI_HUFF_PAIR_MAX; u < 256; u++)
        p->row[u] = p->width[u] = 0;
    for (unsigned u = 0; u < TAGCI_HUFF_PAIR_MAX; u++) {
        p->row[u] = (uint8_t)at;
        p->width[u] = (uint8_t)(TAGCI_HUFF_PAIR_MAX / (u + 1));
        at += p->width[u];
    }
}

/* Symbols of each stream but the last. */
TAGCI_INLINE size_t tagci_huff_quarter(size_t n)
{
    return (n + 2 * TAGCI_HUFF_STREAMS - 1) / (2 * TAGCI_HUFF_STREAMS) * 2;
}

/* ---- Code lengths ------------------------------------------------------------------------------ */

/* Symbols that occur, by rising count, equal counts by rising symbol (two radix passes). */
TAGCI_INLINE unsigned tagci_huff_sort(const uint32_t count[256], struct tagci_huff_tree *t)
{
    uint8_t *first = t->first, *order = t->order;
    uint16_t *low = t->low, *high = t->high;
    unsigned n = 0;
    for (unsigned i = 0; i < 257; i++)
        low[i] = high[i] = 0;
    for (unsigned s = 0; s < 256; s++)
        if (count[s]) {
            low[(count[s] & 255) + 1]++;
            high[(count[s] >> 8 & 255) + 1]++;
            n++;
        }
    for (unsigned i = 0; i < 256; i++) {
        low[i + 1] = (uint16_t)(low[i + 1] + low[i]);
        high[i + 1] = (uint16_t)(high[i + 1] + high[i]);
    }
    for (unsigned s = 0; s < 256; s++)
        if (count[s])
            first[low[count[s] & 255]++] = (uint8_t)s;
    for (unsigned i = 0; i < n; i++)
        order[high[count[first[i]] >> 8 & 255]++] = first[i];
    return n;
}

/* Huffman's tree over n >= 2 rising weights, from two queues that both rise: symbols [0, n) and inner nodes [n, 2n-1).
 * with[l]: codes of l bits, TAGCI_HUFF_BITS standing for more as well. Returns how much too large the codes are then, in codes of
 * TAGCI_HUFF_BITS bits. */
TAGCI_INLINE uint32_t tagci_huff_grow(struct tagci_huff_tree *t, unsigned n)
{
    uint32_t *weight = t->weight;
    uint16_t *parent = t->parent, *depth = t->depth, *with = t->with;
    unsigned leaf = 0, inner = n;
    for (unsigned node = n; node < 2 * n - 1; node++) {
        unsigned child[2];
        for (int k = 0; k < 2; k++)
            child[k] = leaf < n && (inner >= node || weight[leaf] <= weight[inner]) ? leaf++ : inner++;
        weight[node] = weight[child[0]] + weight[child[1]];
        parent[child[0]] = parent[child[1]] = (uint16_t)node;
    }
    depth[2 * n - 2] = 0;
    for (unsigned i = 2 * n - 2; i-- > 0;)
        depth[i] = (uint16_t)(depth[parent[i]] + 1);
    for (unsigned l = 0; l < TAGCI_HUFF_BITS + 2; l++)
        with[l] = 0;
    for (unsigned i = 0; i < n; i++)
        with[depth[i] < TAGCI_HUFF_BITS ? depth[i] : TAGCI_HUFF_BITS]++;
    uint32_t space = 0;
    for (unsigned l = 1; l <= TAGCI_HUFF_BITS; l++)
        space += (uint32_t)with[l] << (TAGCI_HUFF_BITS - l);
    return space - (1u << TAGCI_HUFF_BITS);
}

/* tagci_huff_lengths in memory of the caller's. */
TAGCI_INLINE unsigned tagci_huff_lengths_by(struct tagci_huff_tree *t, const uint32_t count[256], uint8_t length[256],
                                            size_t *bits)
{
    const uint8_t *order = t->order;
    uint32_t *weight = t->weight, total = 0, excess;
    uint16_t *with = t->with;
    unsigned n = tagci_huff_sort(count, t);
    for (unsigned s = 0; s < 256; s++)
        length[s] = 0;
    *bits = 0;
    if (n < 2)
        return n;
    for (unsigned i = 0; i < n; i++)
        total += weight[i] = count[order[i]];
    /* Where codes would be too long, rare symbols must have more room than they deserve. Who makes it is best decided by a
     * tree in which they are as frequent as that room; what is still too much then is little. */
    if (weight[0] < total >> (TAGCI_HUFF_BITS + 1) || (excess = tagci_huff_grow(t, n)) > 0) {
        for (unsigned i = 0; i < n && weight[i] < total >> TAGCI_HUFF_BITS; i++)
            weight[i] = total >> TAGCI_HUFF_BITS;
        excess = tagci_huff_grow(t, n);
    }
    for (; excess; excess--) {
        unsigned l = TAGCI_HUFF_BITS - 1;
        while (!with[l])
            l--;
        with[l]--; /* one code of l bits and one of TAGCI_HUFF_BITS become two of l + 1 */
        with[TAGCI_HUFF_BITS]--;
        with[l + 1] = (uint16_t)(with[l + 1] + 2);
    }
    unsigned i = 0;
    for (unsigned l = TAGCI_HUFF_BITS; l > 0; l--)
        for (unsigned k = with[l]; k > 0; k--) {
            length[order[i]] = (uint8_t)l;
            *bits += (size_t)count[order[i]] * l;
            i++;
        }
    return n;
}

/* Description of lengths: half bytes, the low half first; 0..11: a length; 12, k: the last length again, k + 3 times;
 * 13, lo, hi: lo + 16 hi + 1 symbols that do not occur. Until there are 256; padded to a byte. Both return the bytes; get
 * returns 0 if they are no complete code. */
TAGCI_INLINE size_t tagci_huff_put_lengths(const uint8_t length[256], unsigned char *out)
{
    size_t halves = 0;
    unsigned last = 16;
    for (unsigned i = 0; i < TAGCI_HUFF_LENGTHS_MAX; i++)
        out[i] = 0;
#define PUT(x) (out[halves / 2] |= (unsigned char)((x) << halves % 2 * 4), halves++)
    for (unsigned s = 0; s < 256;) {
        unsigned run = 1;
        while (s + run < 256 && length[s + run] == length[s])
            run++;
        if (length[s] == 0 && run >= 3) {
            PUT(13u);
            PUT((run - 1) & 15);
            PUT((run - 1) >> 4);
        } else if (length[s] != 0 && length[s] == last && run >= 3) {
            run = run > 18 ? 18 : run;
            PUT(12u);
            PUT(run - 3);
        } else {
            run = 1;
            PUT(length[s]);
        }
        last = length[s];
        s += run;
    }
#undef PUT
    return (halves + 1) / 2;
}

TAGCI_INLINE size_t tagci_huff_get_lengths(const unsigned char *in, size_t bytes, uint8_t length[256])
{
    size_t halves = 0;
    uint32_t space = 0;
    unsigned last = 0;
    for (unsigned s = 0; s < 256;) {
        unsigned half[3] = {0}, run = 1;
        for (int k = 0; k < 3; k++)
            half[k] = (halves + (size_t)k) / 2 < bytes
                          ? in[(halves + (size_t)k) / 2] >> (halves + (size_t)k) % 2 * 4 & 15
                          : 14;
        if (half[0] > 13)
            return 0;
        if (half[0] == 13) {
            last = 0;
            run = half[1] + 16 * half[2] + 1;
            halves += 3;
        } else if (half[0] == 12) {
            run = half[1] + 3;
            halves += 2;
        } else {
            last = half[0];
            halves++;
        }
        if (run > 256 - s || (halves + 1) / 2 > bytes)
            return 0;
        for (unsigned k = 0; k < run; k++)
            length[s + k] = (uint8_t)last;
        space += last ? run << (TAGCI_HUFF_BITS - last) : 0;
        s += run;
    }
    return space == 1u << TAGCI_HUFF_BITS ? (halves + 1) / 2 : 0;
}

/* First code of each length, right-aligned. */
TAGCI_INLINE void tagci_huff_first_codes(const uint8_t length[256], uint32_t next[TAGCI_HUFF_BITS + 2])
{
    uint32_t with[TAGCI_HUFF_BITS + 1];
    for (unsigned l = 0; l <= TAGCI_HUFF_BITS; l++)
        with[l] = 0;
    for (unsigned s = 0; s < 256; s++)
        with[length[s]]++;
    with[0] = next[0] = next[1] = 0;
    for (unsigned l = 1; l <= TAGCI_HUFF_BITS; l++)
        next[l + 1] = (next[l] + with[l]) << 1;
}

#endif
