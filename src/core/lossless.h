/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The compressor of the all-gather: elements travel in fewer bits and come back with the same bits, NaN payloads
 * included. With a memory (the state of the same elements before, the same on both sides) the change is coded.
 *
 * Elements are cut into blocks of TAGCI_LOSSLESS_BLOCK; each is coded for itself, so blocks can be coded and decoded in
 * parallel, in any order. The bytes are a function of (elements, memory) alone.
 *
 * Why a coder of our own: the library may require nothing but MPI and libc, and an optional one would make the bytes
 * depend on the build. What it would be: libzstd 1.5.4's Huffman stage, on the same planes of symbols in blocks of this
 * size, takes the same for exponents, half a percent more for changes and 5 % more for small ones (coded in pairs here).
 * On one core of a Zen 3 (best of many runs, G symbols/s, in and out) it runs at 0.92 and 1.75 on exponents, 0.87 and 1.4
 * on changes, planes neither made nor joined; the coder here with all that it does at 0.95 and 1.7 on bfloat16 weights,
 * 0.56 and 0.93 on changes (its Huffman stage alone: about 1.5 and 2.9 on exponents). zstd -1 on whole bfloat16 weights
 * takes 12.6 bits where this takes 10.7, at 0.4 and 0.48; lz4 gains nothing. All of it is plain C: compiled for AVX2 and
 * BMI2 it is about a tenth faster, so there are no variants. No hint from earlier calls either: the sample costs 4 to 8 %
 * of the time of a block that shrinks, and noise passes at half the rate of memcpy.
 *
 * Wire format. All numbers little-endian; w = bits of an element.
 *   index   u32 per block: its method << 24 | bytes of its body
 *   bodies  one behind the other, in the order of the blocks
 * Methods
 *   RAW         the elements. Also where nothing would be gained: a body is never longer than this
 *   SAME        empty: the elements are those of the memory
 *   CONSTANT    one element, which all are
 *   EXPONENTS   symbols are exponents; sign and mantissa, side by side, are the r raw bits
 *   CHANGE      z = zigzag(now - before), a difference of bit patterns as integers modulo 2^w (0, -1, 1, -2, ... ->
 *               0, 1, 2, 3, ...); the r lowest bits of z are raw, what is above is the symbol
 * Symbols are bytes, 255 is an escape: the element follows as it is. Of a double the exponent symbol is 0 for exponent
 * 0, else exponent - base if that is within 1..254. Raw bits of an escaped element stand there, but are not looked at.
 * Body of EXPONENTS and CHANGE:
 *   0    u8  r
 *   1    u8  bit 0: symbols are coded in pairs, an odd number of them with a zero behind
 *            bit 1: all symbols are the same
 *   2    u16 base (double; else zero)
 *   4    u16 escaped elements
 *   6    u16 escaped pairs
 *   8    u16 bytes of each of four streams
 *   16   raw bits, in planes: for each 16 bits of r a plane of u16, lowest bits first; where 8 more are left a plane of
 *        u8; where k < 8 more are left, k bytes for each 8 elements (the last ones filled up with zeros), element i from
 *        bit i * k on
 *        description of code lengths, and the streams: see lossless_huffman.h; or the one symbol, and no streams
 *        escaped pairs: two symbols each, in order
 *        escaped elements, in order */
#ifndef TAGCI_CORE_LOSSLESS_H
#define TAGCI_CORE_LOSSLESS_H

#include "core/lossless_huffman.h"
#include "core/type.h"

/* What elements are: an enum tagci_type, or bytes of integers of which neighbours in value are alike. */
#define TAGCI_LOSSLESS_BYTES TAGCI_TYPES

#define TAGCI_LOSSLESS_BLOCK 32768
#define TAGCI_LOSSLESS_HEADER 16

enum tagci_lossless_method {
    TAGCI_LOSSLESS_RAW,
    TAGCI_LOSSLESS_SAME,
    TAGCI_LOSSLESS_CONSTANT,
    TAGCI_LOSSLESS_EXPONENTS,
    TAGCI_LOSSLESS_CHANGE,
    TAGCI_LOSSLESS_METHODS
};

/* Scratch of one thread, to be allocated by the caller; nothing in it needs to be set, or survives a call. */
struct tagci_lossless_work {
    uint8_t symbols[TAGCI_LOSSLESS_BLOCK + 512];
    union {
        uint8_t pairs[TAGCI_LOSSLESS_BLOCK / 2];
        uint16_t two[TAGCI_LOSSLESS_BLOCK / 2];
    };
    uint32_t count[4][256];
    uint8_t length[256];
    struct tagci_huff_pairs pair_codes;
    union {
        struct {
            struct tagci_huff_encoder encoder;
            uint32_t counted[2][TAGCI_HUFF_NEAR * TAGCI_HUFF_NEAR];
        };
        struct tagci_huff_decoder decoder;
    };
    unsigned char state[2 * TAGCI_LOSSLESS_BLOCK]; /* of lossless_round.h */
};

TAGCI_INLINE size_t tagci_lossless_size(int type)
{
    return type == TAGCI_LOSSLESS_BYTES ? 1 : tagci_type_size((enum tagci_type)type);
}
static inline size_t tagci_lossless_blocks(size_t n)
{
    return n / TAGCI_LOSSLESS_BLOCK + (n % TAGCI_LOSSLESS_BLOCK != 0);
}
/* Most bytes that n elements take, index included; SIZE_MAX where that overflows. */
size_t tagci_lossless_bound(int type, size_t n);

/* ---- All at once ------------------------------------------------------------------------------- */

/* Codes n elements to out (room for the bound). before: the memory, or NULL. Returns the bytes. */
size_t tagci_lossless_encode(int type, const void *now, const void *before, size_t n, unsigned char *out,
                             struct tagci_lossless_work *work);
/* The reverse; before must be what it was in encoding (the elements are wrong otherwise, which is not noticed). out may
 * be before: then the memory moves on in place. Returns 0, or -1 and a reason (static text) if the bytes are none that
 * encode makes of n elements; out is then partly written. Nothing outside of in, before and out is touched. */
int tagci_lossless_decode(int type, const unsigned char *in, size_t bytes, const void *before, size_t n, void *out,
                          struct tagci_lossless_work *work, const char **reason);

/* ---- Block by block, for threads --------------------------------------------------------------- */

/* Codes one block of n <= TAGCI_LOSSLESS_BLOCK elements to out, which has room for n elements as they are. Returns its
 * word of the index. */
uint32_t tagci_lossless_encode_block(int type, const void *now, const void *before, size_t n, unsigned char *out,
                                     struct tagci_lossless_work *work);
TAGCI_INLINE size_t tagci_lossless_body(uint32_t word)
{
    return word & 0xffffff;
}
void tagci_lossless_put_word(unsigned char *index, size_t block, uint32_t word);
uint32_t tagci_lossless_word(const unsigned char *index, size_t block);
/* Checks that `bytes` bytes are an index of n elements and bodies of its lengths. 0, or -1 and a reason. */
int tagci_lossless_check(const unsigned char *in, size_t bytes, size_t n, const char **reason);
/* Bytes of n elements that start at `in`, from their index; 0 if they are not within `room`. */
size_t tagci_lossless_length(const unsigned char *in, size_t room, size_t n);
/* Decodes one block of n elements from its body. Otherwise as tagci_lossless_decode. */
int tagci_lossless_decode_block(int type, uint32_t word, const unsigned char *body, const void *before, size_t n,
                                void *out, struct tagci_lossless_work *work, const char **reason);

#endif
