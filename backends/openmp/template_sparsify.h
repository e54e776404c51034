/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The pass that decides what is kept: v = in + residual, compare with the cut, bitmap, values in their form, what stays.
 * Also, with the same first half, the collecting and counting of keys. */

/* Element i in the work type. type is a constant wherever this is inlined. */
INLINE WORK NAME(element)(enum tagci_type type, const void *in, size_t i)
{
#if WIDE
    (void)type;
    return ((const double *)in)[i];
#else
    switch (type) {
    case TAGCI_F16:
        return tagci_f16_to_f32(((const uint16_t *)in)[i]);
    case TAGCI_BF16:
        return tagci_bf16_to_f32(((const uint16_t *)in)[i]);
    default:
        return ((const float *)in)[i];
    }
#endif
}

INLINE void NAME(add_input_of)(enum tagci_type type, const void *in, const WORK *residual, size_t i, size_t m, WORK *v)
{
    if (residual)
        for (size_t j = 0; j < m; j++)
            v[j] = NAME(element)(type, in, i + j) + residual[i + j];
    else
        for (size_t j = 0; j < m; j++)
            v[j] = NAME(element)(type, in, i + j);
}

/* v[0..m) = elements i.. with what the residual holds for them. */
static void NAME(add_input)(enum tagci_type type, const void *in, const WORK *residual, size_t i, size_t m, WORK *v)
{
    if (type == TAGCI_F16)
        NAME(add_input_of)(TAGCI_F16, in, residual, i, m, v);
    else if (type == TAGCI_BF16)
        NAME(add_input_of)(TAGCI_BF16, in, residual, i, m, v);
    else
        NAME(add_input_of)(WIDE ? TAGCI_F64 : TAGCI_F32, in, residual, i, m, v);
}

/* Which of v[0..m), m <= 64, the cuts keep. */
static uint64_t NAME(chosen)(struct pass *p, const WORK *v, size_t m)
{
    uint64_t kept = 0;
    if (p->all)
        return tagci_low_bits(m);
    for (size_t j = 0; j < m;) {
        struct cursor *at = &p->at;
        cursor_step(at, KEY_INF);
        size_t stop = at->left < m - j ? j + at->left : m, begin = j;
        if (at->left == 0) /* runs that do not cover the chunk */
            return kept;
        if (at->ties == 0)
            for (; j < stop; j++)
                kept |= (uint64_t)((BITS(v[j]) & KEY_MASK) > (KEY)at->key) << j;
        for (; j < stop; j++) {
            KEY key = BITS(v[j]) & KEY_MASK;
            uint64_t tie = key == at->key && at->ties > 0;
            at->ties -= tie && at->ties != UINT64_MAX;
            kept |= (uint64_t)(key > at->key || tie) << j;
        }
        at->left -= stop - begin;
    }
    return kept;
}

/* A kept value in its form, to out[at]; returns what stays of it. */
INLINE WORK NAME(emit)(enum tagci_value form, WORK v, void *out, size_t at)
{
    KEY key = BITS(v) & KEY_MASK;
    int finite = key < KEY_INF;
    if (form == TAGCI_VALUE_NATIVE) {
        ((WORK *)out)[at] = key > KEY_INF ? OF(NAN_BITS) : v;
        return 0;
    }
    WORK sent;
    uint16_t code;
    if (form == TAGCI_VALUE_BFLOAT16) {
        code = tagci_bf16_saturate(TO_BF16(v), finite);
        sent = tagci_bf16_to_f32(code);
    } else {
        code = tagci_f16_saturate(TO_F16(v), finite);
        sent = tagci_f16_to_f32(code);
    }
    ((uint16_t *)out)[at] = code;
    return finite ? v - sent : 0;
}

INLINE size_t NAME(plain_word_of)(enum tagci_value form, const WORK *v, size_t m, uint64_t kept, void *out, WORK *rest)
{
    size_t at = 0;
    for (size_t j = 0; rest && j < m; j++)
        rest[j] = v[j] + 0; /* -0 becomes +0 */
    for (; kept; kept &= kept - 1) {
        int j = __builtin_ctzll(kept);
        WORK stays = NAME(emit)(form, v[j], out, at++);
        if (rest)
            rest[j] = stays + 0;
    }
    return at;
}

/* One word of the bitmap, m <= 64 elements from i on, whatever they are. Returns how many are kept. */
static size_t NAME(plain_word)(struct pass *p, size_t i, size_t m, uint64_t *bits, void *out)
{
    WORK v[64], *rest = p->residual_out ? (WORK *)p->residual_out + i : NULL;
    NAME(add_input)(p->type, p->in, p->residual, i, m, v);
    uint64_t kept = *bits = NAME(chosen)(p, v, m);
    if (p->form == TAGCI_VALUE_NATIVE)
        return NAME(plain_word_of)(TAGCI_VALUE_NATIVE, v, m, kept, out, rest);
    if (p->form == TAGCI_VALUE_BFLOAT16)
        return NAME(plain_word_of)(TAGCI_VALUE_BFLOAT16, v, m, kept, out, rest);
    return NAME(plain_word_of)(TAGCI_VALUE_FLOAT16, v, m, kept, out, rest);
}

#ifdef LANES_HEADER
#define LANES ((int)NAME(LANES))

INLINE NAME(vec) NAME(v_input)(enum tagci_type type, const void *in, const WORK *residual, size_t i)
{
    NAME(vec) v = NAME(v_load)(type, in, i);
    return residual ? NAME(v_add)(v, NAME(v_load)(WIDE ? TAGCI_F64 : TAGCI_F32, residual, i)) : v;
}

/* Whole words from the one at element i on, all under one cut: keys above `over` are kept. Stops before a word in which
 * a key equals `tie`, or is above `limit` and so wants the plain path. Words that keep nothing, most of them where little
 * is kept, do no more than add, compare and store. Returns the number of words done. */
INLINE size_t NAME(fast_of)(const enum tagci_type type, const enum tagci_value form, const struct pass *p, size_t i,
                            size_t words, KEY over, KEY tie, unsigned char *bits, char *out, size_t *kept)
{
    const KEY limit = form == TAGCI_VALUE_NATIVE     ? (KEY)KEY_INF
                      : form == TAGCI_VALUE_BFLOAT16 ? (KEY)0x7f7f7fff
                                                     : (KEY)0x477fefff; /* the last one that does not round to Inf */
    const size_t width = form == TAGCI_VALUE_NATIVE ? sizeof(WORK) : 2;
    const NAME(keys) cut = NAME(k_set)(over), ties = NAME(k_set)(tie), limits = NAME(k_set)(limit);
    const void *in = p->in;
    const WORK *residual = p->residual;
    WORK *rest = p->residual_out;
    const int stream = p->stream;
    char *at = out;
    size_t w = 0;
    for (; w < words; w++, i += 64) {
        NAME(vec) v[64 / NAME(LANES)];
        NAME(mask) odd = NAME(m_none)();
        uint64_t word = 0;
        for (int q = 0; q < 64; q += 64 / (int)sizeof(WORK)) {
            fetch_ahead(in, tagci_type_size(type), i + (size_t)q);
            if (residual)
                fetch_ahead(residual, sizeof(WORK), i + (size_t)q);
        }
        for (int q = 0; q < 64; q += LANES) {
            NAME(keys) key = NAME(k_of)(v[q / LANES] = NAME(v_input)(type, in, residual, i + (size_t)q));
            odd = NAME(m_or)(odd, NAME(m_or)(NAME(k_greater)(key, limits), NAME(k_equal)(key, ties)));
            word |= (uint64_t)NAME(m_bits)(NAME(k_greater)(key, cut)) << q;
        }
        if (NAME(m_bits)(odd))
            break;
        if (bits)
            tagci_bitmap_put(bits, w, word);
        for (int q = 0; q < 64 && word; q += LANES) {
            unsigned b = (unsigned)(word >> q) & ((1u << LANES) - 1);
            NAME(vec) x = v[q / LANES];
            NAME(mask) keep = NAME(k_greater)(NAME(k_of)(x), cut);
            if (form == TAGCI_VALUE_NATIVE) {
                NAME(v_store)((WORK *)at, NAME(v_compress)(x, b));
                v[q / LANES] = NAME(v_drop)(x, keep);
            } else {
#if !WIDE
                vec_f32 sent;
                if (form == TAGCI_VALUE_BFLOAT16)
                    h_pack_f32((uint16_t *)at, v_bf16_f32(x, &sent), b);
                else
                    h_pack_f32((uint16_t *)at, v_f16_f32(x, &sent), b);
                v[q / LANES] = v_sub_f32(x, v_keep_f32(sent, keep));
#endif
            }
            at += (size_t)__builtin_popcount(b) * width;
        }
        for (int q = 0; rest && q < 64; q += LANES) {
            NAME(vec) left = NAME(v_add)(v[q / LANES], NAME(v_zero)());
            if (stream)
                NAME(v_stream)(rest + i + q, left);
            else
                NAME(v_store)(rest + i + q, left);
        }
    }
    *kept = (size_t)(at - out) / width;
    return w;
}

/* One instance for each type and form. */
static size_t NAME(fast)(const struct pass *p, size_t i, size_t words, KEY over, KEY tie, unsigned char *bits,
                         char *out, size_t *kept)
{
#if WIDE
    if (p->form == TAGCI_VALUE_NATIVE)
        return NAME(fast_of)(TAGCI_F64, TAGCI_VALUE_NATIVE, p, i, words, over, tie, bits, out, kept);
    *kept = 0;
    return 0; /* two roundings at once: the plain path */
#else
#define CASE(t, f)                                                                                                     \
    if (p->type == (t) && p->form == (f))                                                                              \
        return fast_of_f32(t, f, p, i, words, over, tie, bits, out, kept);
    CASE(TAGCI_F32, TAGCI_VALUE_NATIVE)
    CASE(TAGCI_F32, TAGCI_VALUE_BFLOAT16)
    CASE(TAGCI_F32, TAGCI_VALUE_FLOAT16)
    CASE(TAGCI_F16, TAGCI_VALUE_NATIVE)
    CASE(TAGCI_F16, TAGCI_VALUE_BFLOAT16)
    CASE(TAGCI_F16, TAGCI_VALUE_FLOAT16)
    CASE(TAGCI_BF16, TAGCI_VALUE_NATIVE)
    CASE(TAGCI_BF16, TAGCI_VALUE_BFLOAT16)
    CASE(TAGCI_BF16, TAGCI_VALUE_FLOAT16)
#undef CASE
    *kept = 0;
    return 0;
#endif
}

/* As many whole words as there are before a run ends, as far as they want nothing special. */
static size_t NAME(fast_words)(struct pass *p, size_t i, size_t words, unsigned char *bits, char *out, size_t *kept)
{
    struct cursor *at = &p->at;
    KEY over = (KEY)-1, tie = (KEY)-1; /* comparisons are signed: everything is above, nothing is equal */
    if (!p->all) {
        cursor_step(at, KEY_INF);
        words = smaller(words, at->left / 64);
        over = (KEY)(at->ties == UINT64_MAX ? at->key - 1 : at->key);
        if (at->ties > 0 && at->ties < UINT64_MAX)
            tie = (KEY)at->key;
    }
    words = words ? NAME(fast)(p, i, words, over, tie, bits, out, kept) : 0;
    if (!p->all)
        at->left -= words * 64;
    return words;
}
#endif

/* Words [from, to) of the chunk. bits: where word `from` goes, or NULL; out: where the first kept value goes. Returns how
 * many are kept. Passes over one chunk go through it from its beginning to its end. */
static size_t NAME(pass)(struct pass *p, size_t from, size_t to, unsigned char *bits, void *out)
{
    size_t width = p->form == TAGCI_VALUE_NATIVE ? sizeof(WORK) : 2, kept = 0;
    for (size_t w = from; w < to; w++) {
        uint64_t word;
        char *next = (char *)out + kept * width;
#ifdef LANES_HEADER
        size_t some = 0, whole = smaller(to, p->n / 64);
        if (w < whole) {
            w += NAME(fast_words)(p, w * 64, whole - w, bits ? bits + (w - from) * 8 : NULL, next, &some);
            kept += some;
            next += some * width;
            if (w >= to)
                break;
        }
#endif
        kept += NAME(plain_word)(p, w * 64, smaller(64, p->n - w * 64), &word, next);
        if (bits)
            tagci_bitmap_put(bits, w - from, word);
    }
    return kept;
}

#ifdef LANES_HEADER
/* The whole words of collect. */
INLINE size_t NAME(fast_collect)(const enum tagci_type type, const void *in, const WORK *residual, size_t n, KEY lo,
                                 KEY hi, KEY *out, size_t *above, size_t *zeros)
{
    const NAME(keys) low = NAME(k_set)(lo - 1), high = NAME(k_set)(hi), zero = NAME(k_set)(0);
    NAME(count) over = NAME(c_none)(), none = NAME(c_none)();
    KEY *at = out;
    for (size_t i = 0; i < n / 64 * 64; i += (size_t)LANES) {
        NAME(keys) key = NAME(k_of)(NAME(v_input)(type, in, residual, i));
        NAME(mask) higher = NAME(k_greater)(key, high);
        unsigned b = NAME(m_bits)(NAME(m_less)(NAME(k_greater)(key, low), higher));
        over = NAME(c_add)(over, higher);
        none = NAME(c_add)(none, NAME(k_equal)(key, zero));
        NAME(k_pack)(at, key, b);
        at += __builtin_popcount(b);
    }
    *above += NAME(c_sum)(over);
    *zeros += NAME(c_sum)(none);
    return (size_t)(at - out);
}
#endif

static size_t NAME(collect)(enum tagci_type type, const void *in, const void *residual, size_t n, uint64_t lo,
                            uint64_t hi, void *keys, size_t *above, size_t *zeros)
{
    KEY *out = keys, low = (KEY)lo, high = (KEY)hi;
    size_t got = 0, i = 0;
#ifdef LANES_HEADER
    if (type == TAGCI_F16)
        got = NAME(fast_collect)(TAGCI_F16, in, residual, n, low, high, out, above, zeros);
    else if (type == TAGCI_BF16)
        got = NAME(fast_collect)(TAGCI_BF16, in, residual, n, low, high, out, above, zeros);
    else
        got = NAME(fast_collect)(WIDE ? TAGCI_F64 : TAGCI_F32, in, residual, n, low, high, out, above, zeros);
    i = n / 64 * 64;
#endif
    for (; i < n; i += 64) {
        size_t m = smaller(64, n - i), over = 0, none = 0;
        WORK v[64];
        NAME(add_input)(type, in, residual, i, m, v);
        for (size_t j = 0; j < m; j++) {
            KEY key = BITS(v[j]) & KEY_MASK;
            over += key > high;
            none += key == 0;
            out[got] = key;
            got += key >= low && key <= high;
        }
        *above += over;
        *zeros += none;
    }
    return got;
}

static size_t NAME(count_key)(enum tagci_type type, const void *in, const void *residual, size_t n, uint64_t wanted)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i += 64) {
        size_t m = smaller(64, n - i);
        WORK v[64];
        NAME(add_input)(type, in, residual, i, m, v);
        for (size_t j = 0; j < m; j++)
            count += (BITS(v[j]) & KEY_MASK) == (KEY)wanted;
    }
    return count;
}

#ifdef LANES_HEADER
#undef LANES
#endif
