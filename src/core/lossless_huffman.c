/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Huffman coding of planes: code lengths, their description, encoding, decoding. */
#include "core/lossless_huffman.h"

#include <string.h>

#define BITS TAGCI_HUFF_BITS
#define STREAMS TAGCI_HUFF_STREAMS

void tagci_huff_pairs_init(struct tagci_huff_pairs *p)
{
    unsigned at = 0;
    memset(p, 0, sizeof *p);
    for (unsigned u = 0; u < TAGCI_HUFF_PAIR_MAX; u++) {
        p->row[u] = (uint8_t)at;
        p->width[u] = (uint8_t)(TAGCI_HUFF_PAIR_MAX / (u + 1));
        at += p->width[u];
    }
}

/* ---- Code lengths ------------------------------------------------------------------------------ */

/* Symbols that occur, by rising count, equal counts by rising symbol (two radix passes). */
static unsigned sort_symbols(const uint32_t count[256], uint8_t order[256])
{
    uint8_t first[256];
    uint16_t low[257] = {0}, high[257] = {0};
    unsigned n = 0;
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

unsigned tagci_huff_lengths(const uint32_t count[256], uint8_t length[256], size_t *bits)
{
    uint8_t order[256];
    uint32_t weight[512];
    uint16_t parent[512], depth[512], with[BITS + 2] = {0};
    unsigned n = sort_symbols(count, order);
    memset(length, 0, 256);
    *bits = 0;
    if (n < 2)
        return n;
    /* Huffman's tree from two queues, both of rising weight: symbols [0, n) and inner nodes [n, 2n-1) */
    for (unsigned i = 0; i < n; i++)
        weight[i] = count[order[i]];
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
    for (unsigned i = 0; i < n; i++)
        with[depth[i] < BITS ? depth[i] : BITS]++;
    /* Codes cut to BITS bits may be too many: lengthen the longest of the shorter ones until they fit. */
    uint32_t space = 0;
    for (unsigned l = 1; l <= BITS; l++)
        space += (uint32_t)with[l] << (BITS - l);
    while (space > 1u << BITS) {
        unsigned l = BITS - 1;
        while (!with[l])
            l--;
        with[l]--; /* one code of l bits and one of BITS become two of l + 1 */
        with[BITS]--;
        with[l + 1] = (uint16_t)(with[l + 1] + 2);
        space--;
    }
    unsigned i = 0;
    for (unsigned l = BITS; l > 0; l--)
        for (unsigned k = with[l]; k > 0; k--) {
            length[order[i]] = (uint8_t)l;
            *bits += (size_t)count[order[i]] * l;
            i++;
        }
    return n;
}

size_t tagci_huff_put_lengths(const uint8_t length[256], unsigned char *out)
{
    size_t halves = 0;
    unsigned last = 16;
    memset(out, 0, TAGCI_HUFF_LENGTHS_MAX);
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

size_t tagci_huff_get_lengths(const unsigned char *in, size_t bytes, uint8_t length[256])
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
        memset(length + s, (int)last, run);
        space += last ? run << (BITS - last) : 0;
        s += run;
    }
    return space == 1u << BITS ? (halves + 1) / 2 : 0;
}

/* ---- Encoding ---------------------------------------------------------------------------------- */

/* First code of each length, right-aligned. */
static void first_codes(const uint8_t length[256], uint32_t next[BITS + 2])
{
    uint32_t with[BITS + 1] = {0};
    for (unsigned s = 0; s < 256; s++)
        with[length[s]]++;
    with[0] = next[0] = next[1] = 0;
    for (unsigned l = 1; l <= BITS; l++)
        next[l + 1] = (next[l] + with[l]) << 1;
}

void tagci_huff_encoder_init(struct tagci_huff_encoder *e, const uint8_t length[256])
{
    uint32_t next[BITS + 2];
    first_codes(length, next);
    for (unsigned s = 0; s < 256; s++)
        e->code[s] = length[s] ? (uint64_t)next[length[s]]++ << (64 - length[s]) | length[s] : 0;
}

static inline void put_big(unsigned char *at, uint64_t x)
{
    x = __builtin_bswap64(x);
    memcpy(at, &x, 8);
}

static inline uint64_t get_big(const unsigned char *at)
{
    uint64_t x;
    memcpy(&x, at, 8);
    return __builtin_bswap64(x);
}

/* Codes gather from the top of a word. Each brings its length along in the low bits: four of them fill bits 63..13 at
 * most, the lengths make bits 3..0 dirty, and the count of bits takes the whole word, of which a shift sees bits 5..0. */
static unsigned char *encode_stream(const uint64_t *code, const uint8_t *symbols, size_t n, unsigned char *out)
{
    uint64_t word = 0, used = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (size_t k = 0; k < 4; k++) {
            uint64_t c = code[symbols[i + k]];
            word |= c >> (used & 63);
            used += c;
        }
        put_big(out, word);
        used &= 63;
        out += used >> 3;
        word = word << (used & 56) & UINT64_C(0xff) << 56;
        used &= 7;
    }
    for (; i < n; i++) {
        uint64_t c = code[symbols[i]];
        word |= c >> (used & 63);
        used += c;
    }
    used &= 63;
    put_big(out, word & ~(uint64_t)15);
    return out + (used + 7) / 8;
}

unsigned char *tagci_huff_encode(const struct tagci_huff_encoder *e, const uint8_t *symbols, size_t n,
                                 unsigned char *out, uint16_t bytes[STREAMS])
{
    size_t quarter = (n + STREAMS - 1) / STREAMS;
    for (size_t k = 0; k < STREAMS; k++) {
        size_t from = k * quarter < n ? k * quarter : n, to = n - from > quarter ? from + quarter : n;
        unsigned char *end = encode_stream(e->code, symbols + from, to - from, out);
        bytes[k] = (uint16_t)(end - out);
        out = end;
    }
    return out;
}

/* ---- Decoding ---------------------------------------------------------------------------------- */

#define SYMBOL_BYTES(e) ((e) >> 56 & 7)
#define CODE_BITS(e) ((e) >> 60)
#define MADE_BYTES 7 /* most that an entry holds: a store of it writes one more */
#define LOOKUPS 5    /* that a refill of at least 57 bits is good for */

static unsigned value_length(const struct tagci_huff_decoder *d, unsigned value)
{
    return d->length[d->pairs ? tagci_huff_pair_code(d->pairs, value & 255, value >> 8) : value];
}

/* What r bits hold is a symbol s of l bits, and what r - l bits hold: the entries of a width are those of smaller widths
 * with a symbol put in front, in the order of the codes. Entries that are full lose their last symbol. */
int tagci_huff_decoder_init(struct tagci_huff_decoder *d, const uint8_t length[256],
                            const struct tagci_huff_pairs *pairs)
{
    uint8_t sorted[256];
    uint16_t value[256];
    unsigned start[BITS + 2] = {0}, width = pairs ? 2 : 1, shortest = 1;
    memcpy(d->length, length, 256);
    d->pairs = pairs;
    for (unsigned s = 0; s < 256; s++)
        if (length[s])
            start[length[s]]++;
    for (unsigned l = 0, sum = 0; l <= BITS + 1; l++) {
        unsigned next = sum + start[l];
        start[l] = sum;
        sum = next;
    }
    while (start[shortest + 1] == 0)
        shortest++;
    for (unsigned s = 0, at[BITS + 2], first = 1; s < 256; s++) {
        if (first) {
            memcpy(at, start, sizeof at);
            first = 0;
        }
        if (length[s])
            sorted[at[length[s]]++] = (uint8_t)s;
    }
    if (pairs) {
        for (unsigned s = TAGCI_HUFF_PAIR_REST + 1; s < 256; s++)
            if (length[s])
                return -1;
        for (unsigned u = 0; u < TAGCI_HUFF_PAIR_MAX; u++)
            for (unsigned v = 0; v < pairs->width[u]; v++)
                value[pairs->row[u] + v] = (uint16_t)(u | v << 8);
        value[TAGCI_HUFF_PAIR_REST] = 0xffff;
    } else {
        for (unsigned s = 0; s < 256; s++)
            value[s] = (uint16_t)s;
    }
    const unsigned most = MADE_BYTES / width * width;
    d->narrow[1] = 0;
    for (unsigned r = 1; r <= BITS; r++) {
        if (r < BITS && r + shortest > BITS)
            continue;
        uint64_t *to = r == BITS ? d->entry : d->narrow + ((size_t)1 << r), *end = to + ((size_t)1 << r);
        for (unsigned l = 1; l <= r; l++) {
            const uint64_t *from = d->narrow + ((size_t)1 << (r - l));
            size_t size = (size_t)1 << (r - l);
            int full = (r - l) / shortest * width >= most;
            for (unsigned i = start[l]; i < start[l + 1]; i++) {
                uint64_t front = value[sorted[i]] | (uint64_t)width << 56 | (uint64_t)l << 60;
                if (full) {
                    for (size_t j = 0; j < size; j++) {
                        uint64_t e = from[j];
                        if (SYMBOL_BYTES(e) == most) {
                            unsigned place = 8 * (most - width);
                            unsigned last = (unsigned)(e >> place) & (width == 2 ? 0xffff : 0xff);
                            e -=
                                (uint64_t)last << place | (uint64_t)width << 56 | (uint64_t)value_length(d, last) << 60;
                        }
                        to[j] = (e << 8 * width) + (e & UINT64_C(0xff) << 56) + front;
                    }
                } else {
                    for (size_t j = 0; j < size; j++)
                        to[j] = (from[j] << 8 * width) + (from[j] & UINT64_C(0xff) << 56) + front;
                }
                to += size;
            }
        }
        memset(to, 0, (size_t)(end - to) * sizeof *to);
    }
    return 0;
}

struct stream {
    const unsigned char *in, *in_end;
    uint8_t *out, *out_end;
    unsigned bit; /* of the byte at in */
};

/* Rounds of LOOKUPS lookups that stay inside, whatever the bits are. */
static size_t rounds(const struct stream *s)
{
    size_t in = (size_t)(s->in_end - s->in), out = (size_t)(s->out_end - s->out);
    if (in < 8 || out < LOOKUPS * MADE_BYTES + 1)
        return 0;
    in = (in - 8) / 7 + 1;
    out = (out - 1) / (LOOKUPS * MADE_BYTES);
    return in < out ? in : out;
}

/* A bit below the unread ones counts how far they have moved. */
#define REFILL(k) bits##k = (get_big(in##k) | 1) << bit##k
#define LOOKUP(k)                                                                                                      \
    do {                                                                                                               \
        uint64_t e = entry[bits##k >> (64 - BITS)];                                                                    \
        memcpy(out##k, &e, 8);                                                                                         \
        out##k += SYMBOL_BYTES(e);                                                                                     \
        bits##k <<= CODE_BITS(e);                                                                                      \
    } while (0)
#define ADVANCE(k)                                                                                                     \
    do {                                                                                                               \
        unsigned moved = (unsigned)__builtin_ctzll(bits##k);                                                           \
        in##k += moved >> 3;                                                                                           \
        bit##k = moved & 7;                                                                                            \
    } while (0)
#define LOAD(k)                                                                                                        \
    const unsigned char *in##k = s[k].in;                                                                              \
    uint8_t *out##k = s[k].out;                                                                                        \
    unsigned bit##k = s[k].bit;                                                                                        \
    uint64_t bits##k
#define SAVE(k) (s[k].in = in##k, s[k].out = out##k, s[k].bit = bit##k)

static void decode_four(const uint64_t *restrict entry, struct stream *s, size_t n)
{
    LOAD(0);
    LOAD(1);
    LOAD(2);
    LOAD(3);
    for (; n; n--) {
        REFILL(0);
        REFILL(1);
        REFILL(2);
        REFILL(3);
        for (int i = 0; i < LOOKUPS; i++) {
            LOOKUP(0);
            LOOKUP(1);
            LOOKUP(2);
            LOOKUP(3);
        }
        ADVANCE(0);
        ADVANCE(1);
        ADVANCE(2);
        ADVANCE(3);
    }
    SAVE(0);
    SAVE(1);
    SAVE(2);
    SAVE(3);
}

static void decode_one(const uint64_t *restrict entry, struct stream *s, size_t n)
{
    LOAD(0);
    for (; n; n--) {
        REFILL(0);
        for (int i = 0; i < LOOKUPS; i++)
            LOOKUP(0);
        ADVANCE(0);
    }
    SAVE(0);
}

/* The last symbols of a stream, one by one; it must end in its last byte, and zeros follow there. */
static int decode_end(const struct tagci_huff_decoder *d, struct stream *s)
{
    unsigned width = d->pairs ? 2 : 1;
    while (s->out < s->out_end) {
        unsigned char near[8] = {0};
        size_t left = (size_t)(s->in_end - s->in);
        memcpy(near, s->in, left < 8 ? left : 8);
        uint64_t bits = get_big(near) << s->bit;
        for (int i = 0; i < LOOKUPS && s->out < s->out_end; i++) {
            uint64_t e = d->entry[bits >> (64 - BITS)];
            unsigned value = (unsigned)e & (width == 2 ? 0xffff : 0xff), l = value_length(d, value);
            s->out[0] = (uint8_t)value;
            if (width == 2)
                s->out[1] = (uint8_t)(value >> 8);
            s->out += width;
            s->bit += l;
            bits <<= l;
        }
        if (s->bit > 8 * left)
            return -1;
        s->in += s->bit >> 3;
        s->bit &= 7;
    }
    if (s->in + (s->bit > 0) != s->in_end)
        return -1;
    return s->bit && (*s->in << s->bit & 0xff) ? -1 : 0;
}

int tagci_huff_decode(const struct tagci_huff_decoder *d, const unsigned char *in, const uint16_t bytes[STREAMS],
                      size_t n, uint8_t *out)
{
    struct stream s[STREAMS];
    size_t width = d->pairs ? 2 : 1, quarter = (n + STREAMS - 1) / STREAMS, count;
    for (size_t k = 0; k < STREAMS; k++) {
        size_t from = k * quarter < n ? k * quarter : n, to = n - from > quarter ? from + quarter : n;
        s[k] = (struct stream){in, in + bytes[k], out + width * from, out + width * to, 0};
        in += bytes[k];
    }
    for (;;) {
        count = rounds(&s[0]);
        for (size_t k = 1; k < STREAMS; k++) {
            size_t c = rounds(&s[k]);
            count = count < c ? count : c;
        }
        if (!count)
            break;
        decode_four(d->entry, s, count);
    }
    for (size_t k = 0; k < STREAMS; k++) {
        while ((count = rounds(&s[k])) > 0)
            decode_one(d->entry, &s[k], count);
        if (decode_end(d, &s[k]))
            return -1;
    }
    return 0;
}

size_t tagci_find_255(const uint8_t *plane, size_t i, size_t n)
{
    for (; i + 8 <= n; i += 8) {
        uint64_t x;
        memcpy(&x, plane + i, 8);
        x = ~x; /* which byte is zero? exact for the lowest one */
        x = (x - UINT64_C(0x0101010101010101)) & ~x & UINT64_C(0x8080808080808080);
        if (x)
            return i + (size_t)__builtin_ctzll(x) / 8;
    }
    while (i < n && plane[i] != 255)
        i++;
    return i;
}
