/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Blocks of elements: choice of the method, coding, decoding. */
#include "core/lossless.h"

#include <string.h>

#include "core/lossless_choice.h"
#include "util/mem.h"

#if defined __BYTE_ORDER__ && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire is little-endian, and so must the machine be"
#endif

#define BLOCK TAGCI_LOSSLESS_BLOCK
#define HEADER TAGCI_LOSSLESS_HEADER
#define TILE 512 /* a multiple of 8 */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* memcpy of a part of a tile. Compilers that know it to be small make string instructions of it, which are slow to start;
 * this hides what they know. */
static ALWAYS_INLINE void copy(void *to, const void *from, size_t bytes)
{
    __asm__("" : "+r"(bytes));
    memcpy(to, from, bytes);
}

/* The k lowest bits of each byte, side by side, k < 8; and back. 8 k bits for 8 bytes, by halving. */
static inline void pack_bits(const uint8_t *byte, size_t n, unsigned k, unsigned char *out)
{
    const uint64_t m = (UINT64_C(1) << k) - 1;
    for (size_t i = 0; i < n; i += 8, out += k) {
        uint64_t x;
        memcpy(&x, byte + i, 8);
        x &= m * UINT64_C(0x0101010101010101);
        x = (x & UINT64_C(0x00ff00ff00ff00ff)) | (x & UINT64_C(0xff00ff00ff00ff00)) >> (8 - k);
        x = (x & UINT64_C(0x0000ffff0000ffff)) | (x & UINT64_C(0xffff0000ffff0000)) >> (16 - 2 * k);
        x = (x & UINT64_C(0xffffffff)) | x >> 32 << 4 * k;
        memcpy(out, &x, 8); /* the streams, not there yet, leave room for it */
    }
}

static inline void unpack_bits(const unsigned char *in, size_t n, unsigned k, uint8_t *byte)
{
    const uint64_t m1 = ((UINT64_C(1) << k) - 1) * UINT64_C(0x0001000100010001);
    const uint64_t m2 = ((UINT64_C(1) << 2 * k) - 1) * UINT64_C(0x0000000100000001);
    const uint64_t m4 = (UINT64_C(1) << 4 * k) - 1;
    unsigned char near[TILE + 8];
    copy(near, in, (n + 7) / 8 * k);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t x;
        memcpy(&x, near + i / 8 * k, 8);
        x = (x & m4) | (x >> 4 * k & m4) << 32;
        x = (x & m2) | (x & m2 << 2 * k) << (16 - 2 * k);
        x = (x & m1) | (x & m1 << k) << (8 - k);
        memcpy(byte + i, &x, 8);
    }
}

#define WORD uint8_t
#define NAME(x) x##_8
#include "core/lossless_word.h"
#define WORD uint16_t
#define NAME(x) x##_16
#include "core/lossless_word.h"
#define WORD uint32_t
#define NAME(x) x##_32
#include "core/lossless_word.h"
#define WORD uint64_t
#define NAME(x) x##_64
#include "core/lossless_word.h"

/* Functions of the right width. Numbers of bits are constants where that is worth code: shifts of 16-bit lanes by a
 * variable are slow. */
static void split_exponents(int type, const unsigned char *now, size_t n, unsigned base, uint8_t *symbols,
                            unsigned char *raw)
{
    switch (type) {
    case TAGCI_F32:
        split_exponents_32(now, n, 23, 0, symbols, raw);
        break;
    case TAGCI_F16:
        split_exponents_16(now, n, 10, 0, symbols, raw);
        break;
    case TAGCI_BF16:
        split_exponents_16(now, n, 7, 0, symbols, raw);
        break;
    case TAGCI_F64:
        split_exponents_64(now, n, 52, base, symbols, raw);
        break;
    default:
        memcpy(symbols, now, n);
    }
}

static void join_exponents(int type, const uint8_t *symbols, const unsigned char *raw, size_t n, unsigned base,
                           unsigned char *out)
{
    switch (type) {
    case TAGCI_F32:
        join_exponents_32(symbols, raw, n, 23, 0, out);
        break;
    case TAGCI_F16:
        join_exponents_16(symbols, raw, n, 10, 0, out);
        break;
    case TAGCI_BF16:
        join_exponents_16(symbols, raw, n, 7, 0, out);
        break;
    case TAGCI_F64:
        join_exponents_64(symbols, raw, n, 52, base, out);
        break;
    default:
        memcpy(out, symbols, n);
    }
}

static void split_change(size_t size, const unsigned char *now, const unsigned char *before, size_t n, unsigned r,
                         uint8_t *symbols, unsigned char *raw)
{
    if (size == 1)
        split_change_8(now, before, n, 0, symbols, raw);
    else if (size == 2 && r == 0)
        split_change_16(now, before, n, 0, symbols, raw);
    else if (size == 2 && r == 1)
        split_change_16(now, before, n, 1, symbols, raw);
    else if (size == 2)
        split_change_16(now, before, n, r, symbols, raw);
    else if (size == 4 && r == 16)
        split_change_32(now, before, n, 16, symbols, raw);
    else if (size == 4)
        split_change_32(now, before, n, r, symbols, raw);
    else
        split_change_64(now, before, n, r, symbols, raw);
}

static void join_change(size_t size, const uint8_t *symbols, const unsigned char *raw, const unsigned char *before,
                        size_t n, unsigned r, unsigned char *out)
{
    if (size == 1)
        join_change_8(symbols, raw, before, n, 0, out);
    else if (size == 2 && r == 0)
        join_change_16(symbols, raw, before, n, 0, out);
    else if (size == 2 && r == 1)
        join_change_16(symbols, raw, before, n, 1, out);
    else if (size == 2)
        join_change_16(symbols, raw, before, n, r, out);
    else if (size == 4 && r == 16)
        join_change_32(symbols, raw, before, n, 16, out);
    else if (size == 4)
        join_change_32(symbols, raw, before, n, r, out);
    else
        join_change_64(symbols, raw, before, n, r, out);
}

static void sample(size_t size, const unsigned char *now, const unsigned char *before, size_t n, unsigned m,
                   unsigned base, struct tagci_lossless_sample *s)
{
    if (size == 1)
        sample_8(now, before, n, m, base, s);
    else if (size == 2)
        sample_16(now, before, n, m, base, s);
    else if (size == 4)
        sample_32(now, before, n, m, base, s);
    else
        sample_64(now, before, n, m, base, s);
}

/* ---- Choice of the method ---------------------------------------------------------------------- */

static unsigned exponent_base(const unsigned char *now, size_t n)
{
    uint32_t count[32] = {0};
    for (size_t i = 0; i < n; i += n / (TAGCI_LOSSLESS_SAMPLES * 4) | 1) {
        uint64_t x;
        memcpy(&x, now + 8 * i, 8);
        unsigned e = (unsigned)(x >> 52) & 0x7ff;
        count[e >> 6] += e != 0;
    }
    return tagci_lossless_base(count);
}

static struct tagci_lossless_choice choose(int type, const unsigned char *now, const unsigned char *before, size_t n)
{
    const size_t size = tagci_lossless_size(type);
    unsigned base = type == TAGCI_F64 ? exponent_base(now, n) : 0;
    struct tagci_lossless_sample s;
    memset(&s, 0, sizeof s);
    size_t stretch = n < TAGCI_LOSSLESS_SAMPLES * TAGCI_LOSSLESS_SAMPLE_LENGTH ? n / TAGCI_LOSSLESS_SAMPLES
                                                                               : TAGCI_LOSSLESS_SAMPLE_LENGTH;
    for (size_t k = 0; k < TAGCI_LOSSLESS_SAMPLES; k++) {
        size_t at = k * (n - stretch) / (TAGCI_LOSSLESS_SAMPLES - 1) * size;
        sample(size, now + at, before ? before + at : NULL, stretch, tagci_lossless_mantissa(type), base, &s);
    }
    return tagci_lossless_choose(type, before != NULL, base, &s);
}

/* ---- Encoding ---------------------------------------------------------------------------------- */

static void put16(unsigned char *at, size_t x)
{
    at[0] = (unsigned char)x;
    at[1] = (unsigned char)(x >> 8);
}

static size_t get16(const unsigned char *at)
{
    return at[0] | (size_t)at[1] << 8;
}

static uint32_t word_of(int method, size_t bytes)
{
    return (uint32_t)method << 24 | (uint32_t)bytes;
}

/* Four tables: neighbours are often alike, and one counter could not be raised as fast. */
static void histogram(const uint8_t *symbols, size_t n, uint32_t count[4][256])
{
    size_t i = 0;
    memset(count, 0, 4 * sizeof *count);
    for (; i + 8 <= n; i += 8) {
        uint64_t x;
        memcpy(&x, symbols + i, 8);
        count[0][x & 255]++;
        count[1][x >> 8 & 255]++;
        count[2][x >> 16 & 255]++;
        count[3][x >> 24 & 255]++;
        count[0][x >> 32 & 255]++;
        count[1][x >> 40 & 255]++;
        count[2][x >> 48 & 255]++;
        count[3][x >> 56]++;
    }
    for (; i < n; i++)
        count[0][symbols[i]]++;
    for (size_t s = 0; s < 256; s++)
        count[0][s] += count[1][s] + count[2][s] + count[3][s];
}

/* Codes of pairs of symbols, n of them, to work->pairs. Which pairs are escaped is hard to foresee: no branches here. */
static void make_pairs(struct tagci_lossless_work *work, size_t n)
{
    tagci_huff_pairs_init(&work->pair_codes);
    for (size_t i = 0; i < n; i++) {
        unsigned u = work->symbols[2 * i], v = work->symbols[2 * i + 1];
        unsigned fits = -(unsigned)(v < work->pair_codes.width[u]);
        work->pairs[i] = (uint8_t)(((work->pair_codes.row[u] + v) & fits) | (TAGCI_HUFF_PAIR_REST & ~fits));
    }
}

/* Body of n elements by c, or 0 if it is not shorter than they are. */
static size_t encode_body(int type, const struct tagci_lossless_choice *c, const unsigned char *now,
                          const unsigned char *before, size_t n, unsigned char *out, struct tagci_lossless_work *work)
{
    const size_t size = tagci_lossless_size(type), raw = tagci_lossless_raw_bytes(n, c->r);
    uint8_t *symbols = work->symbols;
    if (c->method == TAGCI_LOSSLESS_EXPONENTS)
        split_exponents(type, now, n, c->base, symbols, out + HEADER);
    else
        split_change(size, now, before, n, c->r, symbols, out + HEADER);
    size_t bits, coded = n, escapes = 0, escaped_pairs = 0;
    int flags = 0, near = 0;
    unsigned used, smallest = 0, largest = 0;
    if (c->paired) {
        flags = TAGCI_LOSSLESS_PAIRED;
        coded = (n + 1) / 2;
        symbols[n] = 0;
        make_pairs(work, coded);
        histogram(work->pairs, coded, work->count);
        escaped_pairs = work->count[0][TAGCI_HUFF_PAIR_REST];
        used = tagci_huff_lengths(work->count[0], work->length, &bits);
        if (used == 1)
            return 0; /* all the same, and not caught before: not worth a case */
        for (size_t i = 0; i < n; i++)
            escapes += symbols[i] == 255;
    } else {
        near = tagci_huff_near(symbols, n, &smallest, &largest);
        if (near)
            tagci_huff_count_two(symbols, n, smallest, largest, work->two, work->counted, work->count[0]);
        else
            histogram(symbols, n, work->count);
        used = tagci_huff_lengths(work->count[0], work->length, &bits);
        escapes = work->count[0][255];
    }
    if (type != TAGCI_F64 && c->method == TAGCI_LOSSLESS_EXPONENTS)
        escapes = 0; /* all exponents are symbols */
    if (used == 1)
        flags |= TAGCI_LOSSLESS_UNIFORM;
    size_t most = HEADER + raw + TAGCI_HUFF_LENGTHS_MAX + bits / 8 + TAGCI_HUFF_STREAMS + 2 * escaped_pairs +
                  size * escapes + 8; /* the encoder writes a little past its end */
    if (most > n * size)
        return 0;
    memset(out, 0, HEADER);
    out[0] = (unsigned char)c->r;
    out[1] = (unsigned char)flags;
    put16(out + 2, c->method == TAGCI_LOSSLESS_EXPONENTS ? c->base : 0);
    put16(out + 4, escapes);
    put16(out + 6, escaped_pairs);
    unsigned char *at = out + HEADER + raw;
    if (flags & TAGCI_LOSSLESS_UNIFORM) {
        *at++ = symbols[0];
    } else {
        uint16_t bytes[TAGCI_HUFF_STREAMS];
        at += tagci_huff_put_lengths(work->length, at);
        tagci_huff_encoder_init(&work->encoder, work->length);
        if (near)
            at = tagci_huff_encode_two(&work->encoder, symbols, work->two, n, smallest, largest, at, bytes);
        else
            at = tagci_huff_encode(&work->encoder, flags & TAGCI_LOSSLESS_PAIRED ? work->pairs : symbols, coded, at,
                                   bytes);
        for (size_t k = 0; k < TAGCI_HUFF_STREAMS; k++)
            put16(out + 8 + 2 * k, bytes[k]);
    }
    for (size_t i = 0; escaped_pairs; i++, escaped_pairs--) {
        i = tagci_find_byte(work->pairs, TAGCI_HUFF_PAIR_REST, i, coded);
        memcpy(at, symbols + 2 * i, 2);
        at += 2;
    }
    for (size_t i = 0; escapes; i++, escapes--) {
        i = tagci_find_byte(symbols, 255, i, n);
        memcpy(at, now + i * size, size);
        at += size;
    }
    return (size_t)(at - out);
}

uint32_t tagci_lossless_encode_block(int type, const void *now, const void *before, size_t n, unsigned char *out,
                                     struct tagci_lossless_work *work)
{
    const size_t size = tagci_lossless_size(type), bytes = n * size;
    const unsigned char *x = now;
    if (before && memcmp(now, before, bytes) == 0)
        return word_of(TAGCI_LOSSLESS_SAME, 0);
    if (n > 1 && memcmp(x, x + size, bytes - size) == 0) {
        memcpy(out, x, size);
        return word_of(TAGCI_LOSSLESS_CONSTANT, size);
    }
    if (n >= TAGCI_LOSSLESS_SMALL) {
        struct tagci_lossless_choice c = choose(type, now, before, n);
        size_t body = c.method == TAGCI_LOSSLESS_RAW ? 0 : encode_body(type, &c, now, before, n, out, work);
        if (body)
            return word_of(c.method, body);
    }
    memcpy(out, now, bytes);
    return word_of(TAGCI_LOSSLESS_RAW, bytes);
}

/* ---- Decoding ---------------------------------------------------------------------------------- */

/* Symbols to work->symbols; *at moves behind the streams. */
static const char *decode_symbols(const unsigned char *body, const unsigned char **at, const unsigned char *end,
                                  size_t n, struct tagci_lossless_work *work)
{
    uint16_t bytes[TAGCI_HUFF_STREAMS];
    size_t sum = 0, got, paired = body[1] & TAGCI_LOSSLESS_PAIRED, pairs = get16(body + 6);
    for (size_t k = 0; k < TAGCI_HUFF_STREAMS; k++)
        sum += bytes[k] = (uint16_t)get16(body + 8 + 2 * k);
    if (!paired && pairs)
        return "block: escaped pairs where there are none";
    if (body[1] & TAGCI_LOSSLESS_UNIFORM) {
        if (paired || sum || *at == end)
            return "block: symbol of a uniform block";
        memset(work->symbols, *(*at)++, n);
        return NULL;
    }
    got = tagci_huff_get_lengths(*at, (size_t)(end - *at), work->length);
    if (!got)
        return "block: not a complete code";
    *at += got;
    if (sum > (size_t)(end - *at))
        return "block: streams longer than it";
    if (paired)
        tagci_huff_pairs_init(&work->pair_codes);
    if (tagci_huff_decoder_init(&work->decoder, work->length, paired ? &work->pair_codes : NULL))
        return "block: code of no pair";
    if (tagci_huff_decode(&work->decoder, *at, bytes, paired ? (n + 1) / 2 : n, work->symbols))
        return "block: streams do not end where they should";
    *at += sum;
    if (!paired)
        return NULL;
    if (pairs > (size_t)(end - *at) / 2)
        return "block: escaped pairs longer than it";
    for (size_t i = 0; (i = tagci_find_byte(work->symbols, 255, i, n + (n & 1))) < n; i += 2) {
        i &= ~(size_t)1; /* 255 comes from the decoder in pairs only */
        if (pairs-- == 0)
            return "block: number of escaped pairs";
        memcpy(work->symbols + i, *at, 2);
        *at += 2;
    }
    return pairs ? "block: number of escaped pairs" : NULL;
}

static const char *decode_body(int type, int method, const unsigned char *body, size_t bytes,
                               const unsigned char *before, size_t n, unsigned char *out,
                               struct tagci_lossless_work *work)
{
    const size_t size = tagci_lossless_size(type), w = 8 * size;
    if (n < TAGCI_LOSSLESS_SMALL || bytes < HEADER)
        return "block: too short for its method";
    const unsigned r = body[0], m = tagci_lossless_mantissa(type), base = (unsigned)get16(body + 2);
    size_t escapes = get16(body + 4);
    const int exponents = method == TAGCI_LOSSLESS_EXPONENTS;
    if (exponents ? r != (type == TAGCI_LOSSLESS_BYTES ? 0 : m + 1) : r > w - 8)
        return "block: number of raw bits";
    if (body[1] & ~(TAGCI_LOSSLESS_PAIRED | TAGCI_LOSSLESS_UNIFORM) ||
        (exponents && type == TAGCI_F64 ? base > 2046 : base != 0))
        return "block: header";
    const unsigned char *raw = body + HEADER, *end = body + bytes, *at = raw;
    if (tagci_lossless_raw_bytes(n, r) > bytes - HEADER)
        return "block: raw bits longer than it";
    at += tagci_lossless_raw_bytes(n, r);
    const char *reason = decode_symbols(body, &at, end, n, work);
    if (reason)
        return reason;
    if ((size_t)(end - at) != escapes * size)
        return "block: length";
    if (exponents)
        join_exponents(type, work->symbols, raw, n, base, out);
    else
        join_change(size, work->symbols, raw, before, n, r, out);
    if (exponents && type != TAGCI_F64)
        return escapes ? "block: escapes where there are none" : NULL;
    for (size_t i = 0; (i = tagci_find_byte(work->symbols, 255, i, n)) < n; i++) {
        if (escapes-- == 0)
            return "block: number of escapes";
        memcpy(out + i * size, at, size);
        at += size;
    }
    return escapes ? "block: number of escapes" : NULL;
}

int tagci_lossless_decode_block(int type, uint32_t word, const unsigned char *body, const void *before, size_t n,
                                void *out, struct tagci_lossless_work *work, const char **reason)
{
    const size_t size = tagci_lossless_size(type), bytes = tagci_lossless_body(word);
    const int method = (int)(word >> 24);
    unsigned char *o = out;
    *reason = NULL;
    if (n > BLOCK)
        *reason = "block: too many elements";
    else if ((method == TAGCI_LOSSLESS_SAME || method == TAGCI_LOSSLESS_CHANGE) && !before)
        *reason = "block: change of a memory that is not there";
    else
        switch (method) {
        case TAGCI_LOSSLESS_RAW:
            if (bytes != n * size)
                *reason = "block: length";
            else
                memcpy(out, body, bytes);
            break;
        case TAGCI_LOSSLESS_SAME:
            if (bytes)
                *reason = "block: length";
            else if (out != before)
                memcpy(out, before, n * size);
            break;
        case TAGCI_LOSSLESS_CONSTANT:
            if (bytes != size || n == 0) {
                *reason = "block: length";
                break;
            }
            memcpy(o, body, size);
            for (size_t done = size, all = n * size; done < all;) {
                size_t more = done < all - done ? done : all - done;
                memcpy(o + done, o, more);
                done += more;
            }
            break;
        case TAGCI_LOSSLESS_EXPONENTS:
        case TAGCI_LOSSLESS_CHANGE:
            *reason = decode_body(type, method, body, bytes, before, n, out, work);
            break;
        default:
            *reason = "block: method";
        }
    return *reason ? -1 : 0;
}

/* ---- All blocks -------------------------------------------------------------------------------- */

size_t tagci_lossless_bound(int type, size_t n)
{
    return tagci_add(tagci_mul(n, tagci_lossless_size(type)), tagci_mul(tagci_lossless_blocks(n), 4));
}

void tagci_lossless_put_word(unsigned char *index, size_t block, uint32_t word)
{
    memcpy(index + 4 * block, &word, 4);
}

uint32_t tagci_lossless_word(const unsigned char *index, size_t block)
{
    uint32_t word;
    memcpy(&word, index + 4 * block, 4);
    return word;
}

size_t tagci_lossless_encode(int type, const void *now, const void *before, size_t n, unsigned char *out,
                             struct tagci_lossless_work *work)
{
    const size_t size = tagci_lossless_size(type), blocks = tagci_lossless_blocks(n);
    const unsigned char *x = now, *y = before;
    unsigned char *at = out + 4 * blocks;
    for (size_t b = 0; b < blocks; b++) {
        size_t from = b * BLOCK, some = n - from < BLOCK ? n - from : BLOCK;
        uint32_t word = tagci_lossless_encode_block(type, x + from * size, y ? y + from * size : NULL, some, at, work);
        tagci_lossless_put_word(out, b, word);
        at += tagci_lossless_body(word);
    }
    return (size_t)(at - out);
}

size_t tagci_lossless_length(const unsigned char *in, size_t room, size_t n)
{
    const size_t blocks = tagci_lossless_blocks(n);
    size_t sum = 4 * blocks;
    if (blocks > room / 4)
        return 0;
    for (size_t b = 0; b < blocks; b++)
        sum = tagci_add(sum, tagci_lossless_body(tagci_lossless_word(in, b)));
    return sum <= room ? sum : 0;
}

int tagci_lossless_check(const unsigned char *in, size_t bytes, size_t n, const char **reason)
{
    *reason = NULL;
    if (n ? tagci_lossless_length(in, bytes, n) != bytes || bytes == 0 : bytes != 0)
        *reason = "blocks: length";
    return *reason ? -1 : 0;
}

int tagci_lossless_decode(int type, const unsigned char *in, size_t bytes, const void *before, size_t n, void *out,
                          struct tagci_lossless_work *work, const char **reason)
{
    const size_t size = tagci_lossless_size(type), blocks = tagci_lossless_blocks(n);
    const unsigned char *at = in + 4 * blocks, *y = before;
    if (tagci_lossless_check(in, bytes, n, reason))
        return -1;
    for (size_t b = 0; b < blocks; b++) {
        size_t from = b * BLOCK, some = n - from < BLOCK ? n - from : BLOCK;
        uint32_t word = tagci_lossless_word(in, b);
        if (tagci_lossless_decode_block(type, word, at, y ? y + from * size : NULL, some,
                                        (unsigned char *)out + from * size, work, reason))
            return -1;
        at += tagci_lossless_body(word);
    }
    return 0;
}
