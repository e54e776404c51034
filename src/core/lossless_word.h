/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Elements to symbols and raw bits, and back, for one width of elements; included by lossless.c with WORD and NAME.
 * Elements go through tiles on the stack: the user's memory need not be aligned, memory and output may be the same, and
 * compilers see loops that they can turn into vector code. */

#define WIDTH (8 * sizeof(WORD))

/* Raw bits r of a tile that starts at element i of n. */
static ALWAYS_INLINE void NAME(put_raw)(const WORD *v, size_t tile, unsigned r, unsigned char *raw, size_t n, size_t i)
{
    uint16_t half[TILE];
    uint8_t byte[TILE];
    unsigned at = 0;
    for (; at + 16 <= r; at += 16, raw += 2 * n) {
        for (size_t j = 0; j < TILE; j++)
            half[j] = (uint16_t)(v[j] >> at % WIDTH);
        copy(raw + 2 * i, half, 2 * tile);
    }
    if (at + 8 <= r) {
        for (size_t j = 0; j < TILE; j++)
            byte[j] = (uint8_t)(v[j] >> at % WIDTH);
        copy(raw + i, byte, tile);
        at += 8;
        raw += n;
    }
    if (at < r) {
        for (size_t j = 0; j < TILE; j++)
            byte[j] = j < tile ? (uint8_t)(v[j] >> at % WIDTH) : 0;
        pack_bits(byte, tile, r - at, raw + i / 8 * (r - at));
    }
}

static ALWAYS_INLINE void NAME(get_raw)(WORD *v, size_t tile, unsigned r, const unsigned char *raw, size_t n, size_t i)
{
    uint16_t half[TILE];
    uint8_t byte[TILE];
    unsigned at = 0;
    for (; at + 16 <= r; at += 16, raw += 2 * n) {
        copy(half, raw + 2 * i, 2 * tile);
        if (at == 0)
            for (size_t j = 0; j < TILE; j++)
                v[j] = (WORD)half[j];
        else
            for (size_t j = 0; j < TILE; j++)
                v[j] |= (WORD)((WORD)half[j] << at % WIDTH);
    }
    if (at + 8 <= r) {
        copy(byte, raw + i, tile);
        if (at == 0)
            for (size_t j = 0; j < TILE; j++)
                v[j] = byte[j];
        else
            for (size_t j = 0; j < TILE; j++)
                v[j] |= (WORD)((WORD)byte[j] << at % WIDTH);
        at += 8;
        raw += n;
    }
    if (at < r) {
        unpack_bits(raw + i / 8 * (r - at), tile, r - at, byte);
        if (at == 0)
            for (size_t j = 0; j < TILE; j++)
                v[j] = byte[j];
        else
            for (size_t j = 0; j < TILE; j++)
                v[j] |= (WORD)((WORD)byte[j] << at % WIDTH);
    }
}

/* m: bits of the mantissa; the sign is the highest bit, but for bytes, which are all exponent. */
static ALWAYS_INLINE void NAME(split_exponents)(const unsigned char *now, size_t n, unsigned m, unsigned base,
                                                uint8_t *symbols, unsigned char *raw)
{
    WORD x[TILE], v[TILE];
    uint8_t s[TILE];
    for (size_t i = 0; i < n; i += TILE) {
        size_t tile = n - i < TILE ? n - i : TILE;
        if (tile < TILE)
            memset(x, 0, sizeof x);
        copy(x, now + i * sizeof(WORD), tile * sizeof(WORD));
        if (WIDTH == 64) {
            for (size_t j = 0; j < tile; j++) {
                unsigned e = (unsigned)(x[j] >> m % WIDTH) & 0x7ff;
                symbols[i + j] = (uint8_t)(e == 0 ? 0 : e - base - 1 < 254 ? e - base : 255);
            }
        } else {
            const WORD mask = (WORD)(WIDTH == 8 ? 0xff : ((WORD)1 << (WIDTH - 1 - m) % WIDTH) - 1);
            for (size_t j = 0; j < TILE; j++)
                s[j] = (uint8_t)(x[j] >> m & mask);
            copy(symbols + i, s, tile);
        }
        if (WIDTH == 8)
            continue;
        for (size_t j = 0; j < TILE; j++)
            v[j] = (WORD)((x[j] & (((WORD)1 << m) - 1)) | (WORD)(x[j] >> (WIDTH - 1)) << m);
        NAME(put_raw)(v, tile, m + 1, raw, n, i);
    }
}

static ALWAYS_INLINE void NAME(join_exponents)(const uint8_t *symbols, const unsigned char *raw, size_t n, unsigned m,
                                               unsigned base, unsigned char *out)
{
    WORD x[TILE], v[TILE];
    for (size_t i = 0; i < n; i += TILE) {
        size_t tile = n - i < TILE ? n - i : TILE;
        if (WIDTH == 8) {
            copy(out + i, symbols + i, tile);
            continue;
        }
        NAME(get_raw)(v, tile, m + 1, raw, n, i);
        for (size_t j = 0; j < TILE; j++) {
            WORD e = symbols[i + j];
            if (WIDTH == 64)
                e = (WORD)(e ? e + base : 0);
            x[j] = (WORD)((v[j] & (((WORD)1 << m) - 1)) | (WORD)(v[j] >> m) << (WIDTH - 1) | (WORD)(e << m));
        }
        copy(out + i * sizeof(WORD), x, tile * sizeof(WORD));
    }
}

/* Zigzag of the changes of one tile: to symbols and, where there are raw bits, to v. Elements are loaded one by one, not
 * copied first: compilers make vectors of it all the same. */
static ALWAYS_INLINE void NAME(change_tile)(const unsigned char *restrict now, const unsigned char *restrict before,
                                            unsigned r, uint8_t *restrict symbols, WORD *restrict v)
{
    for (size_t j = 0; j < TILE; j++) {
        WORD x, y;
        memcpy(&x, now + j * sizeof(WORD), sizeof(WORD));
        memcpy(&y, before + j * sizeof(WORD), sizeof(WORD));
        WORD d = (WORD)(x - y), z = (WORD)((WORD)(d << 1) ^ (WORD) - (d >> (WIDTH - 1))), high = (WORD)(z >> r);
        symbols[j] = (uint8_t)(high < 255 ? high : 255);
        if (r)
            v[j] = z;
    }
}

/* symbols has room for whole tiles. */
static ALWAYS_INLINE void NAME(split_change)(const unsigned char *now, const unsigned char *before, size_t n,
                                             unsigned r, uint8_t *symbols, unsigned char *raw)
{
    WORD v[TILE];
    size_t i = 0;
    for (; i + TILE <= n; i += TILE) {
        NAME(change_tile)(now + i * sizeof(WORD), before + i * sizeof(WORD), r, symbols + i, v);
        if (r)
            NAME(put_raw)(v, TILE, r, raw, n, i);
    }
    if (i < n) {
        WORD x[TILE] = {0}, y[TILE] = {0};
        copy(x, now + i * sizeof(WORD), (n - i) * sizeof(WORD));
        copy(y, before + i * sizeof(WORD), (n - i) * sizeof(WORD));
        NAME(change_tile)((const unsigned char *)x, (const unsigned char *)y, r, symbols + i, v);
        if (r)
            NAME(put_raw)(v, n - i, r, raw, n, i);
    }
}

static ALWAYS_INLINE void NAME(unchange_tile)(const uint8_t *restrict symbols, const WORD *restrict v,
                                              const unsigned char *restrict before, unsigned r, WORD *restrict x)
{
    for (size_t j = 0; j < TILE; j++) {
        WORD y, z = (WORD)((WORD)symbols[j] << r);
        memcpy(&y, before + j * sizeof(WORD), sizeof(WORD));
        if (r)
            z |= v[j];
        x[j] = (WORD)(y + (WORD)((WORD)(z >> 1) ^ (WORD) - (z & 1)));
    }
}

static ALWAYS_INLINE void NAME(join_change)(const uint8_t *symbols, const unsigned char *raw,
                                            const unsigned char *before, size_t n, unsigned r, unsigned char *out)
{
    WORD x[TILE], y[TILE], v[TILE];
    for (size_t i = 0; i < n; i += TILE) {
        size_t tile = n - i < TILE ? n - i : TILE;
        const unsigned char *old = before + i * sizeof(WORD);
        if (tile < TILE) {
            copy(y, old, tile * sizeof(WORD));
            old = (const unsigned char *)y;
        }
        if (r)
            NAME(get_raw)(v, tile, r, raw, n, i);
        NAME(unchange_tile)(symbols + i, v, old, r, x);
        copy(out + i * sizeof(WORD), x, tile * sizeof(WORD));
    }
}

/* Adds a stretch of elements to the histograms of exponents and of the lengths of z. */
static inline void NAME(sample)(const unsigned char *now, const unsigned char *before, size_t n, unsigned m,
                                unsigned base, struct tagci_lossless_sample *s)
{
    for (size_t j = 0; j < n; j++) {
        WORD x, y;
        memcpy(&x, now + j * sizeof(WORD), sizeof(WORD));
        unsigned e = (unsigned)(x >> m);
        if (WIDTH == 64) {
            e &= 0x7ff;
            e = e == 0 ? 0 : e - base - 1 < 254 ? e - base : 255;
        } else if (WIDTH > 8) {
            e &= (1u << (WIDTH - 1 - m) % WIDTH) - 1;
        }
        s->exponents[e & 255]++;
        if (before) {
            memcpy(&y, before + j * sizeof(WORD), sizeof(WORD));
            WORD d = (WORD)(x - y);
            uint64_t z = (WORD)((WORD)(d << 1) ^ (WORD) - (d >> (WIDTH - 1)));
            s->lengths[z ? 64 - __builtin_clzll(z) : 0]++;
        }
    }
    s->n += n;
}

#undef WORD
#undef NAME
#undef WIDTH
