/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * From a chunk to its frame. */

#define PIECE_WORDS 32 /* what a pass hands to the quantizer at once: 2048 elements */
#define PIECE (PIECE_WORDS * 64)

/* Form of the index, or 0: a frame without one wins where nearly everything is kept. */
static int NAME(index_for)(const struct tagci_chunk *c, enum tagci_value value, size_t kept)
{
    if (c->all || kept == c->n)
        return 0;
    int indexed = (int)tagci_index_form(c->index, c->n, kept);
    size_t with = tagci_frame_bytes(c->type, value, c->n, indexed, kept, 0);
    return with <= tagci_frame_bytes(c->type, value, c->n, 0, c->n, 0) ? indexed : 0;
}

/* Writes the index of a frame that has been laid out. */
static void NAME(put_index)(const struct tagci_chunk *c, const uint64_t *bits, const struct tagci_frame *f)
{
    unsigned char *at = c->frame + TAGCI_FRAME_HEADER;
    if (f->indexed == TAGCI_INDEX_BITMAP) {
        memcpy(at, bits, tagci_bitmap_words(c->n) * 8);
    } else if (f->indexed) {
        struct tagci_coded shape = tagci_coded_shape(c->n, f->kept);
        tagci_coded_write(bits, c->n, &shape, at, at + shape.high_words * 8);
    }
}

/* Codes that stand behind the bitmap move to where they stand without it, zeros between them. Forward: at no time is the
 * place to write ahead of what is still to be read, for fewer are missing than the bitmap is long. */
static void NAME(drop_index)(const struct tagci_chunk *c, const uint64_t *bits, size_t width)
{
    size_t words = tagci_bitmap_words(c->n);
    unsigned char *to = c->frame + TAGCI_FRAME_HEADER, *from = to + words * 8;
    if (c->kept == c->n) {
        memmove(to, from, c->n * width);
        return;
    }
    for (size_t w = 0; w < words; w++) {
        size_t m = smaller(64, c->n - w * 64), used = (size_t)__builtin_popcountll(bits[w]);
        unsigned char packed[64 * 8], spread_out[64 * 8] = {0};
        memcpy(packed, from, used * width);
        const unsigned char *next = packed;
        for (uint64_t b = bits[w]; b; b &= b - 1, next += width)
            memcpy(spread_out + (size_t)__builtin_ctzll(b) * width, next, width);
        memcpy(to, spread_out, m * width);
        from += used * width;
        to += m * width;
    }
}

/* Forms of one value to one code: one pass, straight into the frame. */
static void NAME(encode_plain)(struct tagci_chunk *c, enum tagci_value value, uint64_t *bits)
{
    enum tagci_value form = tagci_value_plain(c->type, value);
    struct pass p = pass_over(c, form);
    struct tagci_frame f;
    size_t words = tagci_bitmap_words(c->n), width = form == TAGCI_VALUE_NATIVE ? sizeof(WORK) : 2;
    unsigned char *out = c->frame + TAGCI_FRAME_HEADER + (c->all ? 0 : words * 8); /* no index is longer */

    c->kept = NAME(pass)(&p, 0, words, c->all ? NULL : (unsigned char *)bits, out);
    int indexed = NAME(index_for)(c, value, c->kept);
    if (indexed == TAGCI_INDEX_CODED)
        memmove(c->frame + TAGCI_FRAME_HEADER + tagci_index_bytes(indexed, c->n, c->kept), out, c->kept * width);
    else if (!c->all && !indexed)
        NAME(drop_index)(c, bits, width);
    tagci_frame_lay(c->frame, c->type, value, c->n, indexed, indexed ? c->kept : c->n, 0, &f);
    NAME(put_index)(c, bits, &f);
    c->frame_bytes = f.bytes;
}

/* What a chunk in integer form goes through. */
struct NAME(blocks) {
    struct tagci_chunk *chunk;
    int indexed;
    WORK values[PIECE + 64 + 2 * TAGCI_VALUE_BLOCK + TAGCB_SLACK]; /* not yet quantized, or what stays of them */
    size_t base, filled, quantized; /* rank of values[0], how many there are, and how many of them are residuals now */
    size_t settled;                 /* elements (words, with an index) whose residuals are written */
    unsigned char *codes;           /* next block's */
    size_t scales, escapes;
    uint16_t scale[TAGCI_CHUNK_MAX / TAGCI_VALUE_BLOCK];
    uint32_t escape_rank[TAGCI_CHUNK_MAX / TAGCI_ESCAPE_SHARE];
    WORK escape_value[TAGCI_CHUNK_MAX / TAGCI_ESCAPE_SHARE];
};

/* Quantizes what there is, whole blocks only unless this is the end. -1: too many escapes. */
static int NAME(quantize_blocks)(struct NAME(blocks) * b, int last)
{
    while (b->filled - b->quantized >= TAGCI_VALUE_BLOCK || (last && b->filled > b->quantized)) {
        size_t m = smaller(TAGCI_VALUE_BLOCK, b->filled - b->quantized);
        WORK *v = b->values + b->quantized, sent[TAGCI_VALUE_BLOCK];
        int8_t codes[TAGCI_VALUE_BLOCK + 8];
        uint16_t scale;
        size_t escapes = NAME(tagci_quantize)(b->chunk->value, v, m, &scale, codes);
        tagci_pack_codes(b->chunk->value, codes, m, b->codes);
        NAME(tagci_dequantize)(codes, TAGCI_VALUE_BLOCK, scale, sent);
        for (size_t i = 0; escapes && i < m; i++) {
            KEY key = BITS(v[i]) & KEY_MASK;
            if (key < KEY_INF)
                continue;
            if (b->escapes == TAGCI_CHUNK_MAX / TAGCI_ESCAPE_SHARE)
                return -1;
            b->escape_rank[b->escapes] = (uint32_t)(b->base + b->quantized + i);
            b->escape_value[b->escapes++] = key > KEY_INF ? OF(NAN_BITS) : v[i];
            v[i] = 0;
        }
        for (size_t i = 0; i < TAGCI_VALUE_BLOCK; i++)
            v[i] -= sent[i];
        b->scale[b->scales++] = scale;
        b->codes += tagci_block_bytes(b->chunk->value, m);
        b->quantized += m;
    }
    return 0;
}

/* Adds what stays of quantized values to the residuals, which hold zero at kept elements now. `bits`: the chunk's words,
 * of which those before `end` are there. */
static void NAME(settle)(struct NAME(blocks) * b, const uint64_t *bits, size_t end)
{
    WORK *rest = b->chunk->residual_out;
    size_t used = 0, n = b->chunk->n;
    if (b->indexed) {
        for (; b->settled < end; b->settled++) {
            uint64_t word = bits[b->settled];
            size_t count = (size_t)__builtin_popcountll(word), i = b->settled * 64;
            if (count > b->quantized - used)
                break;
            if (rest)
                NAME(place_safely)(0, rest + i, smaller(64, n - i), word, b->values + used, TAGCI_CHUNK_MAX);
            used += count;
        }
    } else {
        used = b->quantized;
        for (size_t j = 0; rest && j < used; j++)
            rest[b->settled + j] += b->values[j];
        b->settled += used;
    }
    memmove(b->values, b->values + used, (b->filled - used) * sizeof(WORK));
    b->base += used;
    b->filled -= used;
    b->quantized -= used;
}

/* One try, with or without an index; -1: too many escapes; 1: an index does not pay. */
static int NAME(encode_blocks)(struct tagci_chunk *c, int indexed, uint64_t *bits)
{
    struct NAME(blocks) b;
    struct pass p = pass_over(c, TAGCI_VALUE_NATIVE);
    struct tagci_frame f;
    p.stream = 0; /* settling comes back to the residuals */
    size_t words = tagci_bitmap_words(c->n), most = tagci_value_blocks(c->n) * 2;
    unsigned char *codes = c->frame + TAGCI_FRAME_HEADER + (indexed ? words * 8 : 0) + ((most + 7) & ~(size_t)7);

    b.chunk = c;
    b.indexed = indexed;
    b.base = b.filled = b.quantized = b.settled = b.scales = b.escapes = 0;
    b.codes = codes;
    c->kept = 0;
    for (size_t w = 0; w < words; w += PIECE_WORDS) {
        size_t end = smaller(words, w + PIECE_WORDS), got;
        if (indexed || c->all) {
            got = NAME(pass)(&p, w, end, indexed ? (unsigned char *)(bits + w) : NULL, b.values + b.filled);
            b.filled += got;
        } else {
            WORK packed[PIECE + TAGCB_SLACK];
            got = NAME(pass)(&p, w, end, (unsigned char *)(bits + w), packed);
            size_t m = smaller(c->n, end * 64) - w * 64;
            NAME(unpack)(bits + w, m, got, packed, b.values + b.filled);
            b.filled += m;
        }
        c->kept += got;
        if (NAME(quantize_blocks)(&b, end == words))
            return -1;
        NAME(settle)(&b, bits, end);
    }
    if (b.escapes * TAGCI_ESCAPE_SHARE > c->kept)
        return -1;
    if (indexed && !(indexed = NAME(index_for)(c, c->value, c->kept)))
        return 1;
    /* The codes were put where they begin if all is kept; now it is known where they do begin. */
    size_t values = indexed ? c->kept : c->n;
    unsigned char *scales = c->frame + TAGCI_FRAME_HEADER + tagci_index_bytes(indexed, c->n, values);
    memmove(scales + ((b.scales * 2 + 7) & ~(size_t)7), codes, (size_t)(b.codes - codes));
    memcpy(scales, b.scale, b.scales * 2);
    tagci_frame_lay(c->frame, c->type, c->value, c->n, indexed, values, b.escapes, &f);
    NAME(put_index)(c, bits, &f);
    if (b.escapes) {
        memcpy(c->frame + (f.escape_ranks - c->frame), b.escape_rank, b.escapes * 4);
        memcpy(c->frame + (f.escape_values - c->frame), b.escape_value, b.escapes * sizeof(WORK));
    }
    c->frame_bytes = f.bytes;
    return 0;
}

#if defined LANES_HEADER && !WIDE
/* Input and residual of a whole block, and which are not zero; returns the largest key. */
INLINE uint32_t block_input(const enum tagci_type type, const struct tagci_chunk *c, size_t i, float *v, uint64_t *word)
{
    const keys_f32 zero = k_set_f32(0);
    keys_f32 largest = zero;
    word[0] = word[1] = 0;
    for (size_t q = 0; q < TAGCI_VALUE_BLOCK; q += LANES_f32) {
        fetch_ahead(c->in, tagci_type_size(type), i + q);
        if (c->residual)
            fetch_ahead(c->residual, sizeof(float), i + q);
        vec_f32 x = v_input_f32(type, c->in, c->residual, i + q);
        largest = k_max_f32(largest, k_of_f32(x));
        word[q / 64] |= (uint64_t)m_bits_f32(k_greater_f32(k_of_f32(x), zero)) << q % 64;
        v_store_f32(v + q, x);
    }
    return k_largest_f32(largest);
}

/* What tagci_quantize and tagci_dequantize do to a block of finite values with this scale, which is not zero. */
INLINE void block_codes(float *v, uint16_t scale, int levels, int8_t *code)
{
    const float step = tagci_bf16_to_f32(scale);
    const vec_f32 rounder = v_set_f32(12582912.0f); /* as in value.h */
    for (size_t q = 0; q < TAGCI_VALUE_BLOCK; q += LANES_f32) {
        vec_f32 x = v_load_f32(TAGCI_F32, v, q), y = v_clamp_f32(v_divide_f32(x, step), (float)levels);
        y = v_sub_f32(v_add_f32(y, rounder), rounder);
        v_codes_f32(code + q, y);
        v_store_f32(v + q, v_sub_f32(x, v_times_f32(y, step)));
    }
}

INLINE void block_rest(int stream, const float *v, float *rest)
{
    for (size_t q = 0; q < TAGCI_VALUE_BLOCK; q += LANES_f32) {
        vec_f32 x = v_add_f32(v_load_f32(TAGCI_F32, v, q), v_zero_f32());
        if (stream)
            v_stream_f32(rest + q, x);
        else
            v_store_f32(rest + q, x);
    }
}

/* Nothing but zeros is held back: block by block from input to code and residual, each in the first cache. -1: some are
 * not finite, or so many are zero that an index pays; they want the long way. */
INLINE int encode_all_of(const enum tagci_type type, const enum tagci_value value, struct tagci_chunk *c,
                         uint64_t *bits)
{
    const int levels = value == TAGCI_VALUE_INT8 ? 127 : 7, stream = c->stream && (uintptr_t)c->residual_out % 64 == 0;
    struct tagci_frame f;
    float *rest = c->residual_out;
    tagci_frame_lay(c->frame, c->type, value, c->n, 0, c->n, 0, &f);
    unsigned char *codes = c->frame + (f.codes - c->frame), *scales = c->frame + (f.scales - c->frame);
    size_t zeros = 0;
    for (size_t i = 0; i < c->n; i += TAGCI_VALUE_BLOCK, scales += 2) {
        size_t m = smaller(TAGCI_VALUE_BLOCK, c->n - i);
        uint64_t word[TAGCI_VALUE_BLOCK / 64] = {0};
        float v[TAGCI_VALUE_BLOCK], sent[TAGCI_VALUE_BLOCK];
        int8_t code[TAGCI_VALUE_BLOCK + 8];
        uint16_t scale;
        if (m == TAGCI_VALUE_BLOCK) {
            uint32_t largest = block_input(type, c, i, v, word);
            if (largest >= KEY_INF)
                return -1;
            scale = tagci_scale_for(tagci_f32_of(largest), levels, 3.4028234663852886e38);
            if (scale)
                block_codes(v, scale, levels, code);
            else
                memset(code, 0, sizeof code);
            if (rest)
                block_rest(stream, v, rest + i);
        } else {
            add_input_f32(type, c->in, c->residual, i, m, v);
            if (tagci_quantize_f32(value, v, m, &scale, code))
                return -1;
            tagci_dequantize_f32(code, m, scale, sent);
            for (size_t j = 0; j < m; j++)
                word[j / 64] |= (uint64_t)(v[j] != 0) << j % 64;
            for (size_t j = 0; rest && j < m; j++)
                rest[i + j] = v[j] - sent[j] + 0;
        }
        memcpy(scales, &scale, 2);
        tagci_pack_codes(value, code, m, codes);
        codes += tagci_block_bytes(value, m);
        zeros += m - tagci_bitmap_count(word, 2);
        if (!c->all && zeros > c->n / 64 && index_for_f32(c, value, c->n - zeros))
            return -1;
        memcpy(bits + i / 64, word, tagci_bitmap_words(m) * 8);
    }
    c->kept = c->all ? c->n : c->n - zeros;
    c->frame_bytes = f.bytes;
    return !c->all && index_for_f32(c, value, c->kept) ? -1 : 0;
}

static int encode_all(struct tagci_chunk *c, uint64_t *bits)
{
#define CASE(t, form)                                                                                                  \
    if (c->type == (t) && c->value == (form))                                                                          \
        return encode_all_of(t, form, c, bits);
    for (size_t i = 0; i < c->nruns && !c->all; i++)
        if (c->runs[i].cut.key || c->runs[i].cut.ties)
            return -1;
    CASE(TAGCI_F32, TAGCI_VALUE_INT4)
    CASE(TAGCI_F32, TAGCI_VALUE_INT8)
    CASE(TAGCI_F16, TAGCI_VALUE_INT4)
    CASE(TAGCI_F16, TAGCI_VALUE_INT8)
    CASE(TAGCI_BF16, TAGCI_VALUE_INT4)
    CASE(TAGCI_BF16, TAGCI_VALUE_INT8)
#undef CASE
    return -1;
}
#endif

/* bits: room for a bitmap, which is what is kept then, unless all is. */
static void NAME(encode)(struct tagci_chunk *c, uint64_t *bits)
{
    if (!tagci_value_blocked(c->value)) {
        NAME(encode_plain)(c, c->value, bits);
        return;
    }
#if defined LANES_HEADER && !WIDE
    if (!encode_all(c, bits))
        return;
#endif
    int left = c->all ? 1 : NAME(encode_blocks)(c, 1, bits);
    if (left == 1)
        left = NAME(encode_blocks)(c, 0, bits);
    if (left < 0)
        NAME(encode_plain)(c, TAGCI_VALUE_NATIVE, bits);
}
