/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Huffman coding of planes: code lengths, their description, encoding, decoding. */
#include "core/lossless_huffman.h"

#include <string.h>

#include "core/lossless_code.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define BITS TAGCI_HUFF_BITS
#define STREAMS TAGCI_HUFF_STREAMS

unsigned tagci_huff_lengths(const uint32_t count[256], uint8_t length[256], size_t *bits)
{
    struct tagci_huff_tree tree;
    return tagci_huff_lengths_by(&tree, count, length, bits);
}

/* ---- Near symbols ------------------------------------------------------------------------------ */

int tagci_huff_near(const uint8_t *symbols, size_t n, unsigned *smallest, unsigned *largest)
{
    uint8_t low[64], high[64];
    size_t i = 0;
    memset(low, symbols[0], sizeof low);
    memset(high, symbols[0], sizeof high);
    for (; i + 64 <= n; i += 64)
        for (size_t j = 0; j < 64; j++) {
            low[j] = symbols[i + j] < low[j] ? symbols[i + j] : low[j];
            high[j] = symbols[i + j] > high[j] ? symbols[i + j] : high[j];
        }
    for (; i < n; i++) {
        low[0] = symbols[i] < low[0] ? symbols[i] : low[0];
        high[0] = symbols[i] > high[0] ? symbols[i] : high[0];
    }
    for (size_t j = 1; j < 64; j++) {
        low[0] = low[j] < low[0] ? low[j] : low[0];
        high[0] = high[j] > high[0] ? high[j] : high[0];
    }
    *smallest = low[0];
    *largest = high[0];
    return *largest - *smallest < TAGCI_HUFF_NEAR;
}

void tagci_huff_count_two(const uint8_t *symbols, size_t n, unsigned smallest, unsigned largest, uint16_t *two,
                          uint32_t scratch[2][TAGCI_HUFF_NEAR * TAGCI_HUFF_NEAR], uint32_t count[256])
{
    const unsigned range = largest - smallest + 1;
    const uint16_t both = (uint16_t)(smallest | smallest << 8);
    for (unsigned b = 0; b < range; b++)
        for (unsigned a = 0; a < range; a++)
            scratch[0][a + TAGCI_HUFF_NEAR * b] = scratch[1][a + TAGCI_HUFF_NEAR * b] = 0;
    for (size_t i = 0; i < n / 2; i++) {
        uint16_t x;
        memcpy(&x, symbols + 2 * i, 2);
        x = (uint16_t)(x - both);
        two[i] = (uint16_t)((x & 63) | (x >> 2 & 63 * TAGCI_HUFF_NEAR));
    }
    for (size_t i = 0; i + 1 < n / 2; i += 2) {
        scratch[0][two[i]]++;
        scratch[1][two[i + 1]]++;
    }
    if (n / 2 % 2)
        scratch[0][two[n / 2 - 1]]++;
    memset(count, 0, 256 * sizeof *count);
    for (unsigned b = 0; b < range; b++)
        for (unsigned a = 0; a < range; a++) {
            uint32_t c = (uint32_t)scratch[0][a + TAGCI_HUFF_NEAR * b] + scratch[1][a + TAGCI_HUFF_NEAR * b];
            count[smallest + a] += c;
            count[smallest + b] += c;
        }
    if (n % 2)
        count[symbols[n - 1]]++;
}

/* ---- Encoding ---------------------------------------------------------------------------------- */

void tagci_huff_encoder_init(struct tagci_huff_encoder *e, const uint8_t length[256])
{
    uint32_t next[BITS + 2];
    tagci_huff_first_codes(length, next);
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

/* Codes come with their length in the low bits, where a shift looks for it, and are joined four at a time before they
 * meet those that wait for a whole byte: at most 7 + 44 bits from the top. The lengths make bits 5..0 dirty at
 * most, and what is dirty is cut off when whole bytes leave. */
static inline unsigned char *put_four(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t *word, uint64_t *used,
                                      unsigned char *out)
{
    uint64_t ab = a | b >> (a & 63), cd = c | d >> (c & 63), nab = a + b, ncd = c + d;
    uint64_t w = *word | (ab | cd >> (nab & 63)) >> *used, u = *used + ((nab + ncd) & 63);
    put_big(out, w);
    *word = w << (u & 56) & UINT64_C(0xff) << 56;
    *used = u & 7;
    return out + (u >> 3);
}

static unsigned char *encode_end(const uint64_t *code, const uint8_t *symbols, size_t n, uint64_t word, uint64_t used,
                                 unsigned char *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t c = code[symbols[i]];
        word |= c >> used;
        used += c & 63;
    }
    put_big(out, word & ~(uint64_t)63);
    return out + (used + 7) / 8;
}

static unsigned char *encode_stream(const uint64_t *code, const uint8_t *symbols, size_t n, unsigned char *out)
{
    uint64_t word = 0, used = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        out = put_four(code[symbols[i]], code[symbols[i + 1]], code[symbols[i + 2]], code[symbols[i + 3]], &word, &used,
                       out);
    return encode_end(code, symbols + i, n - i, word, used, out);
}

/* Two numbers hold four symbols; the dirt is then in bits 4..0. */
static unsigned char *encode_stream_two(const struct tagci_huff_encoder *e, const uint8_t *symbols, const uint16_t *two,
                                        size_t n, unsigned char *out)
{
    uint64_t word = 0, used = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4, two += 2) {
        uint64_t a = e->two[two[0]], b = e->two[two[1]], u = used + ((a + b) & 63);
        word |= (a | b >> (a & 63)) >> used;
        put_big(out, word);
        out += u >> 3;
        word = word << (u & 56) & UINT64_C(0xff) << 56;
        used = u & 7;
    }
    return encode_end(e->code, symbols + i, n - i, word, used, out);
}

unsigned char *tagci_huff_encode(const struct tagci_huff_encoder *e, const uint8_t *symbols, size_t n,
                                 unsigned char *out, uint16_t bytes[STREAMS])
{
    size_t quarter = tagci_huff_quarter(n);
    for (size_t k = 0; k < STREAMS; k++) {
        size_t from = k * quarter < n ? k * quarter : n, to = n - from > quarter ? from + quarter : n;
        unsigned char *end = encode_stream(e->code, symbols + from, to - from, out);
        bytes[k] = (uint16_t)(end - out);
        out = end;
    }
    return out;
}

unsigned char *tagci_huff_encode_two(struct tagci_huff_encoder *e, const uint8_t *symbols, const uint16_t *two,
                                     size_t n, unsigned smallest, unsigned largest, unsigned char *out,
                                     uint16_t bytes[STREAMS])
{
    size_t quarter = tagci_huff_quarter(n);
    for (unsigned b = 0; b <= largest - smallest; b++) {
        uint64_t second = e->code[smallest + b];
        for (unsigned a = 0; a <= largest - smallest; a++) {
            uint64_t first = e->code[smallest + a], l = first & 63;
            e->two[a + TAGCI_HUFF_NEAR * b] = (first - l) + ((second & ~(uint64_t)63) >> l) + l + (second & 63);
        }
    }
    for (size_t k = 0; k < STREAMS; k++) {
        size_t from = k * quarter < n ? k * quarter : n, to = n - from > quarter ? from + quarter : n;
        unsigned char *end = encode_stream_two(e, symbols + from, two + from / 2, to - from, out);
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
    size_t width = d->pairs ? 2 : 1, quarter = tagci_huff_quarter(n), count;
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

size_t tagci_find_byte(const uint8_t *plane, uint8_t byte, size_t i, size_t n)
{
#ifdef __SSE2__
    const __m128i wanted = _mm_set1_epi8((char)byte);
    for (; i + 16 <= n; i += 16) {
        int same = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(plane + i)), wanted));
        if (same)
            return i + (size_t)__builtin_ctz((unsigned)same);
    }
#endif
    const uint64_t ones = UINT64_C(0x0101010101010101);
    for (; i + 8 <= n; i += 8) {
        uint64_t x;
        memcpy(&x, plane + i, 8);
        x ^= byte * ones; /* which byte is zero? exact for the lowest one */
        x = (x - ones) & ~x & ones << 7;
        if (x)
            return i + (size_t)__builtin_ctzll(x) / 8;
    }
    while (i < n && plane[i] != byte)
        i++;
    return i;
}
