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
    for (size_t j = 0; j < m; j++) {
        WORK stays = v[j];
        if (kept >> j & 1)
            stays = NAME(emit)(form, v[j], out, at++);
        if (rest)
            rest[j] = stays + 0; /* -0 becomes +0 */
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

/* Words [from, to) of the chunk. bits: where word `from` goes, or NULL; out: where the first kept value goes. Returns how
 * many are kept. Passes over one chunk go through it from its beginning to its end. */
static size_t NAME(pass)(struct pass *p, size_t from, size_t to, unsigned char *bits, void *out)
{
    size_t width = p->form == TAGCI_VALUE_NATIVE ? sizeof(WORK) : 2, kept = 0;
    for (size_t w = from; w < to; w++) {
        uint64_t word;
        kept += NAME(plain_word)(p, w * 64, smaller(64, p->n - w * 64), &word, (char *)out + kept * width);
        if (bits)
            tagci_bitmap_put(bits, w - from, word);
    }
    return kept;
}

static size_t NAME(collect)(enum tagci_type type, const void *in, const void *residual, size_t n, uint64_t lo,
                            uint64_t hi, void *keys, size_t *above, size_t *zeros)
{
    KEY *out = keys, low = (KEY)lo, high = (KEY)hi;
    size_t got = 0;
    for (size_t i = 0; i < n; i += 64) {
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
