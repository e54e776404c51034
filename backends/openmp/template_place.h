/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Packed values back to their positions. */

/* Zeros. By stores that stay in the caches and start at once, as a call of memset or what compilers make of one do not. */
INLINE void NAME(clear)(WORK *at, size_t n)
{
    size_t i = 0;
#ifdef LANES_HEADER
    for (; i + NAME(LANES) <= n; i += NAME(LANES)) {
        NAME(v_store)(at + i, NAME(v_zero)());
        __asm__ volatile("" ::: "memory"); /* so that it stays these stores */
    }
#endif
    for (; i < n; i++)
        at[i] = 0;
}

/* dst[j] for the m <= 64 elements of one word: the next value of src where there is a bit; elsewhere zero (set) or what
 * it was (add). Returns the number of values used. */
INLINE size_t NAME(plain_place)(int set, WORK *dst, size_t m, uint64_t bits, const LOOSE *src)
{
    size_t used = 0;
    if (set)
        NAME(clear)(dst, m);
    for (; bits; bits &= bits - 1) {
        int j = __builtin_ctzll(bits);
        dst[j] = set ? src[used] : dst[j] + src[used];
        used++;
    }
    return used;
}

/* The same for a whole word; src may be read up to TAGCB_SLACK values past what is used. */
INLINE size_t NAME(place)(int set, WORK *dst, uint64_t bits, const LOOSE *src)
{
#ifdef LANES_HEADER
    const unsigned lanes = (unsigned)NAME(LANES), full = (1u << lanes) - 1;
    const LOOSE *next = src;
    for (unsigned q = 0; q < 64; q += lanes) {
        unsigned b = (unsigned)(bits >> q) & full;
        if (set)
            NAME(v_place_set)(dst + q, b, next);
        else
            NAME(v_place_add)(dst + q, b, next);
        next += __builtin_popcount(b);
    }
    return (size_t)(next - src);
#else
    return NAME(plain_place)(set, dst, 64, bits, src);
#endif
}

/* A few values are quicker one by one; and reading past those that are used must stay inside what there is: `left` values
 * from src on. */
INLINE size_t NAME(place_safely)(int set, WORK *dst, size_t m, uint64_t bits, const LOOSE *src, size_t left)
{
    size_t used = (size_t)__builtin_popcountll(bits);
    if (m == 64 && used > 6 && left >= used + TAGCB_SLACK)
        return NAME(place)(set, dst, bits, src);
    return NAME(plain_place)(set, dst, m, bits, src);
}

static void NAME(spread)(const uint64_t *own, const uint64_t *whole, size_t words, size_t entries, const void *values,
                         void *out)
{
    const LOOSE *src = values;
    WORK *dst = out, *end = dst + entries;
    size_t left = tagci_bitmap_count(own, words);
    for (size_t w = 0; w < words; w++) {
        size_t m = (size_t)__builtin_popcountll(whole[w]), room = (size_t)(end - dst);
        uint64_t bits = extract_bits(own[w], whole[w]);
        /* A whole word is written where there is room: what is past m comes again with the next word. */
        size_t used = NAME(place_safely)(1, dst, room >= 64 ? 64 : m, bits, src, left);
        src += used;
        left -= used;
        dst += m;
    }
}

static void NAME(unpack)(const uint64_t *whole, size_t nbits, size_t entries, const void *packed, void *out)
{
    const LOOSE *src = packed;
    WORK *dst = out;
    for (size_t i = 0; i < nbits; i += 64) {
        size_t used = NAME(place_safely)(1, dst + i, smaller(64, nbits - i), whole[i / 64], src, entries);
        src += used;
        entries -= used;
    }
}
