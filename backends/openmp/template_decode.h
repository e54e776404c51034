/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Frames to sums. */

#define SUPPLY (8 * TAGCI_VALUE_BLOCK) /* values that are unpacked at once */

/* Values of a frame in the work type, a stretch of ranks at a time. */
struct NAME(supply) {
    const struct tagci_frame *f;
    size_t from, to; /* values[] holds ranks [from, to) */
    uint32_t escape; /* first one not below `to` */
    WORK values[64 + TAGCI_VALUE_BLOCK + SUPPLY + TAGCB_SLACK];
};

/* out[0..m) = values of rank `from`, a multiple of the block, on. */
static void NAME(unpack_values)(const struct tagci_frame *f, size_t from, size_t m, WORK *out)
{
    enum tagci_value form = tagci_value_plain(f->type, f->value);
    if (form == TAGCI_VALUE_NATIVE) {
        memcpy(out, f->codes + from * sizeof(WORK), m * sizeof(WORK));
    } else if (form == TAGCI_VALUE_BFLOAT16) {
        const loose_u16 *h = (const loose_u16 *)f->codes + from;
        for (size_t i = 0; i < m; i++)
            out[i] = tagci_bf16_to_f32(h[i]);
    } else if (form == TAGCI_VALUE_FLOAT16) {
        const loose_u16 *h = (const loose_u16 *)f->codes + from;
        size_t i = 0;
#if defined LANES_HEADER && !WIDE
        for (; i + LANES_f32 <= m; i += LANES_f32)
            v_store_f32(out + i, v_load_f32(TAGCI_F16, h, i));
#endif
        for (; i < m; i++)
            out[i] = tagci_f16_to_f32(h[i]);
    } else {
        size_t bytes = tagci_block_bytes(form, TAGCI_VALUE_BLOCK);
        for (size_t i = 0; i < m; i += TAGCI_VALUE_BLOCK) {
            size_t block = (from + i) / TAGCI_VALUE_BLOCK, k = smaller(TAGCI_VALUE_BLOCK, m - i);
            int8_t codes[TAGCI_VALUE_BLOCK + 8];
            uint16_t scale;
            memcpy(&scale, f->scales + block * 2, 2);
            tagci_unpack_codes(form, f->codes + block * bytes, k, codes);
            NAME(tagci_dequantize)(codes, k, scale, out + i);
        }
    }
}

static void NAME(supply_open)(struct NAME(supply) * s, const struct tagci_frame *f, size_t rank)
{
    s->f = f;
    s->from = s->to = rank / TAGCI_VALUE_BLOCK * TAGCI_VALUE_BLOCK;
    s->escape = 0;
    for (uint32_t r; s->escape < f->escapes; s->escape++) {
        memcpy(&r, f->escape_ranks + (size_t)s->escape * 4, 4);
        if (r >= s->to)
            break;
    }
}

/* Makes ranks [rank, rank + 64), as far as they exist, stand in values; returns where. */
static const WORK *NAME(supply_from)(struct NAME(supply) * s, size_t rank)
{
    const struct tagci_frame *f = s->f;
    size_t end = smaller(f->kept, rank + 64);
    if (s->to < end) {
        if (rank < s->to)
            memmove(s->values, s->values + (rank - s->from), (s->to - rank) * sizeof(WORK));
        s->from = smaller(rank, s->to);
        size_t m = smaller(SUPPLY, f->kept - s->to);
        WORK *out = s->values + (s->to - s->from);
        NAME(unpack_values)(f, s->to, m, out);
        for (uint32_t r; s->escape < f->escapes; s->escape++) {
            memcpy(&r, f->escape_ranks + (size_t)s->escape * 4, 4);
            if (r >= s->to + m)
                break;
            memcpy(out + (r - s->to), f->escape_values + (size_t)s->escape * sizeof(WORK), sizeof(WORK));
        }
        s->to += m;
    }
    return s->values + (rank - s->from);
}

INLINE void NAME(decode_indexed)(int set, const struct tagci_decode *d, WORK *sum, size_t from, size_t to)
{
    const struct tagci_frame *f = &d->frame;
    size_t rank = tagci_bitmap_count(f->index, from);
    int straight = tagci_value_plain(f->type, f->value) == TAGCI_VALUE_NATIVE;
    struct NAME(supply) s;
    NAME(supply_open)(&s, f, rank);
    for (size_t w = from; w < to; w++) {
        uint64_t bits = tagci_bitmap_word(f->index, w);
        size_t m = smaller(64, d->n - w * 64);
        if (bits == 0) {
            if (set)
                NAME(clear)(sum + w * 64, m);
            continue;
        }
        if (straight)
            rank += NAME(place_safely)(set, sum + w * 64, m, bits, (const LOOSE *)f->codes + rank, f->kept - rank);
        else
            rank += NAME(place_safely)(set, sum + w * 64, m, bits, NAME(supply_from)(&s, rank), TAGCI_CHUNK_MAX);
    }
}

INLINE void NAME(decode_whole)(int set, const struct tagci_decode *d, WORK *sum, size_t from, size_t to)
{
    const struct tagci_frame *f = &d->frame;
    size_t end = smaller(d->n, to * 64);
    if (tagci_value_plain(f->type, f->value) == TAGCI_VALUE_NATIVE) {
        const LOOSE *v = (const LOOSE *)f->codes;
        for (size_t i = from * 64; i < end; i++)
            sum[i] = set ? v[i] : sum[i] + v[i];
        return;
    }
    struct NAME(supply) s;
    NAME(supply_open)(&s, f, from * 64);
    for (size_t i = from * 64; i < end;) {
        const WORK *v = NAME(supply_from)(&s, i);
        size_t m = smaller(s.to, end) - i;
        for (size_t j = 0; j < m; j++)
            sum[i + j] = set ? v[j] : sum[i + j] + v[j];
        i += m;
    }
}

/* With a coded index: value by value. A bucket begins at `from`, and ends at `to` unless that is the end. */
INLINE void NAME(decode_coded)(int set, const struct tagci_decode *d, WORK *sum, size_t from, size_t to)
{
    const struct tagci_frame *f = &d->frame;
    const unsigned l = f->low_bits;
    size_t first = from * 64 >> l, clean = from * 64, last = smaller(d->n, to * 64); /* zeros stand up to `clean` */
    if (f->kept == 0) {
        if (set)
            NAME(clear)(sum + clean, last - clean);
        return;
    }
    size_t begin = tagci_coded_seek(f->index, first), rank = begin - first;
    size_t end = to * 64 >= d->n ? f->kept + ((d->n - 1) >> l) : tagci_coded_seek(f->index, to * 64 >> l);
    int straight = tagci_value_plain(f->type, f->value) == TAGCI_VALUE_NATIVE;
    const LOOSE *values = (const LOOSE *)f->codes + rank;
    struct NAME(supply) s;
    NAME(supply_open)(&s, f, rank);
    for (size_t w = begin / 64; w * 64 < end; w++) {
        uint64_t bits = tagci_bitmap_word(f->index, w);
        bits &= w * 64 < begin ? ~tagci_low_bits(begin - w * 64) : UINT64_MAX;
        bits &= tagci_low_bits(end - w * 64);
        size_t buckets = w * 64 - rank;
        if (set) { /* only so far as this word's values go: they find the zeros in the caches */
            size_t stop = smaller(last, (buckets + 64) << l);
            if (stop > clean) {
                NAME(clear)(sum + clean, stop - clean);
                clean = stop;
            }
        }
        if (!straight)
            values = NAME(supply_from)(&s, rank);
        for (; bits; bits &= bits - 1, rank++, buckets--, values++) {
            size_t i = (buckets + (size_t)__builtin_ctzll(bits)) << l;
            if (l)
                i |= tagci_coded_low(f->low, rank, l);
            sum[i] = set ? *values : sum[i] + *values;
            if (d->seen)
                d->seen[i / 64] |= (uint64_t)1 << i % 64;
        }
    }
    if (set)
        NAME(clear)(sum + clean, last - clean);
}

/* Positions of a frame join the union. */
static void NAME(see)(const struct tagci_decode *d, size_t from, size_t to)
{
    const struct tagci_frame *f = &d->frame;
    for (size_t w = from; w < to; w++) {
        uint64_t bits = f->indexed == TAGCI_INDEX_BITMAP ? tagci_bitmap_word(f->index, w)
                        : f->indexed                     ? 0
                                                         : tagci_low_bits(d->n - w * 64);
        d->seen[w] = d->first ? bits : d->seen[w] | bits;
    }
}

static void NAME(decode)(const struct tagci_decode *d, size_t from, size_t to)
{
    WORK *sum = d->sum;
    if (from >= to)
        return;
    if (d->seen)
        NAME(see)(d, from, to);
    if (d->frame.indexed == TAGCI_INDEX_CODED && d->first)
        NAME(decode_coded)(1, d, sum, from, to);
    else if (d->frame.indexed == TAGCI_INDEX_CODED)
        NAME(decode_coded)(0, d, sum, from, to);
    else if (d->frame.indexed && d->first)
        NAME(decode_indexed)(1, d, sum, from, to);
    else if (d->frame.indexed)
        NAME(decode_indexed)(0, d, sum, from, to);
    else if (d->first)
        NAME(decode_whole)(1, d, sum, from, to);
    else
        NAME(decode_whole)(0, d, sum, from, to);
}
