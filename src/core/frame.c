/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Wire frames: sizes, layout, and the check of what comes in. */
#include "core/frame.h"

#include <string.h>

#include "core/bitmap.h"
#include "core/frame_layout.h"
#include "core/index_coded.h"
#include "core/value.h"

#if defined __BYTE_ORDER__ && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "frames are little-endian, and so must the machine be"
#endif

/* Sets the places of the parts; the frame's header fields are there. */
static void place(unsigned char *at, const struct tagci_frame_parts *p, struct tagci_frame *f)
{
    f->at = at;
    at += TAGCI_FRAME_HEADER;
    f->index = p->index ? at : NULL;
    at += p->index;
    f->low = p->low ? at : NULL;
    f->low_bits = p->low_bits;
    at += p->low;
    f->scales = p->scales ? at : NULL;
    at += p->scales;
    f->codes = p->codes ? at : NULL;
    at += p->codes;
    f->escape_ranks = p->escape_ranks ? at : NULL;
    at += p->escape_ranks;
    f->escape_values = p->escape_values ? at : NULL;
}

static uint32_t get32(const unsigned char *at)
{
    uint32_t u;
    memcpy(&u, at, 4);
    return u;
}

static void put32(unsigned char *at, uint32_t u)
{
    memcpy(at, &u, 4);
}

size_t tagci_frame_bytes(enum tagci_type type, enum tagci_value value, size_t n, int indexed, size_t kept,
                         size_t escapes)
{
    struct tagci_frame_parts p;
    return tagci_frame_measure(type, value, n, indexed, kept, escapes, &p);
}

size_t tagci_frame_bound(enum tagci_type type, enum tagci_value value, size_t n)
{
    size_t escapes = tagci_value_blocked(value) ? n / TAGCI_ESCAPE_SHARE : 0;
    size_t bound = tagci_frame_bytes(type, value, n, 1, n, escapes);
    size_t native = tagci_frame_bytes(type, TAGCI_VALUE_NATIVE, n, 1, n, 0);
    return tagci_value_blocked(value) && native > bound ? native : bound;
}

void tagci_frame_lay(unsigned char *at, enum tagci_type type, enum tagci_value value, size_t n, int indexed,
                     size_t kept, size_t escapes, struct tagci_frame *f)
{
    struct tagci_frame_parts p;
    f->bytes = tagci_frame_measure(type, value, n, indexed, kept, escapes, &p);
    f->indexed = indexed;
    f->value = value;
    f->type = type;
    f->kept = (uint32_t)kept;
    f->escapes = (uint32_t)escapes;
    at[0] = TAGCI_WIRE_VERSION;
    at[1] = (unsigned char)indexed;
    at[2] = (unsigned char)value;
    at[3] = (unsigned char)type;
    put32(at + 4, f->kept);
    put32(at + 8, f->escapes);
    put32(at + 12, 0);

    place(at, &p, f);
    unsigned char *scales = at + TAGCI_FRAME_HEADER + p.index + p.low, *codes = scales + p.scales;
    unsigned char *ranks = codes + p.codes, *values = ranks + p.escape_ranks;
    if (p.scales) {
        size_t used = tagci_value_blocks(kept) * 2;
        memset(scales + used, 0, p.scales - used);
    }
    size_t used = tagci_value_bytes(type, value, kept);
    memset(codes + used, 0, p.codes - used);
    memset(ranks + escapes * 4, 0, p.escape_ranks - escapes * 4);
    used = escapes * tagci_work_size(type);
    memset(values + used, 0, p.escape_values - used);
}

size_t tagci_frame_length(const unsigned char *at, size_t room, enum tagci_type type, size_t n)
{
    if (room < TAGCI_FRAME_HEADER || at[1] > TAGCI_INDEX_CODED || at[2] >= TAGCI_VALUES || get32(at + 4) > n ||
        get32(at + 8) > n)
        return 0;
    size_t bytes = tagci_frame_bytes(type, at[2], n, at[1], get32(at + 4), get32(at + 8));
    return bytes <= room ? bytes : 0;
}

static int check_escapes(const struct tagci_frame *f)
{
    uint32_t least = 0;
    for (uint32_t i = 0; i < f->escapes; i++) {
        uint32_t rank = get32(f->escape_ranks + (size_t)i * 4);
        if (rank < least || rank >= f->kept)
            return -1;
        least = rank + 1;
    }
    return 0;
}

/* Every arrangement of the right number of ones in the high part gives buckets that exist; of the positions, only those
 * in the last bucket can be past the end. */
static int check_coded(const struct tagci_frame *f, size_t n)
{
    struct tagci_coded c = tagci_coded_shape(n, f->kept);
    size_t last = (n - 1) >> c.low_bits, inside = n - (last << c.low_bits);
    if (c.high_bits % 64 && tagci_bitmap_word(f->index, c.high_words - 1) & ~tagci_low_bits(c.high_bits % 64))
        return -1;
    if (tagci_bitmap_count(f->index, c.high_words) != f->kept)
        return -1;
    for (size_t i = f->kept; i-- > 0 && f->low;) {
        size_t bit = last + i;
        if (!(tagci_bitmap_word(f->index, bit / 64) >> bit % 64 & 1))
            break;
        if (tagci_coded_low(f->low, i, c.low_bits) >= inside)
            return -1;
    }
    return 0;
}

static int check_index(const struct tagci_frame *f, size_t n)
{
    if (f->indexed == TAGCI_INDEX_CODED)
        return check_coded(f, n);
    size_t words = tagci_bitmap_words(n);
    if (n % 64 && tagci_bitmap_word(f->index, words - 1) & ~tagci_low_bits(n % 64))
        return -1;
    return tagci_bitmap_count(f->index, words) == f->kept ? 0 : -1;
}

static uint32_t checksum(const unsigned char *at, size_t bytes)
{
    static const unsigned char zero[4];
    uint32_t crc = tagci_crc32c(0, at, 12);
    crc = tagci_crc32c(crc, zero, 4);
    crc = tagci_crc32c(crc, at + TAGCI_FRAME_HEADER, bytes - TAGCI_FRAME_HEADER);
    return crc ? crc : 1;
}

int tagci_frame_read(const unsigned char *at, size_t bytes, enum tagci_type type, size_t n, int check_crc,
                     struct tagci_frame *f, const char **reason)
{
    struct tagci_frame_parts p;
    if (bytes < TAGCI_FRAME_HEADER)
        return *reason = "shorter than a header", -1;
    if (at[0] != TAGCI_WIRE_VERSION)
        return *reason = "another wire version", -1;
    if (at[1] > TAGCI_INDEX_CODED)
        return *reason = "unknown form of index", -1;
    if (at[2] >= TAGCI_VALUES)
        return *reason = "unknown form of values", -1;
    if (at[3] != (unsigned char)type)
        return *reason = "another element type", -1;
    f->indexed = at[1];
    f->value = (enum tagci_value)at[2];
    f->type = type;
    f->kept = get32(at + 4);
    f->escapes = get32(at + 8);
    if (f->kept > n || (!f->indexed && f->kept != n))
        return *reason = "wrong number of values", -1;
    if (f->indexed == TAGCI_INDEX_CODED && tagci_index_form(TAGCI_INDEX_CODED, n, f->kept) != TAGCI_INDEX_CODED)
        return *reason = "a coded index longer than a bitmap", -1;
    if (f->escapes > (tagci_value_blocked(f->value) ? f->kept : 0))
        return *reason = "wrong number of escapes", -1;
    f->bytes = tagci_frame_measure(type, f->value, n, f->indexed, f->kept, f->escapes, &p);
    if (f->bytes != bytes)
        return *reason = "wrong length", -1;
    place((unsigned char *)(uintptr_t)at, &p, f);
    if (check_crc && get32(at + 12) != checksum(at, bytes))
        return *reason = "wrong checksum", -1;
    if (f->index && check_index(f, n))
        return *reason = "index does not fit the number of values", -1;
    if (f->escapes && check_escapes(f))
        return *reason = "wrong escapes", -1;
    return 0;
}

void tagci_frame_move(struct tagci_frame *f, const unsigned char *to)
{
    const unsigned char **part[] = {&f->index, &f->low, &f->scales, &f->codes, &f->escape_ranks, &f->escape_values};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (*part[i])
            *part[i] = to + (*part[i] - f->at);
    f->at = to;
}

void tagci_frame_seal(unsigned char *at, size_t bytes)
{
    put32(at + 12, checksum(at, bytes));
}
