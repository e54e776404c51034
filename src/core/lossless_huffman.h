/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Entropy coding of a plane of bytes: canonical Huffman codes of at most 11 bits in four streams. A plane is coded byte
 * by byte, or two bytes at a time where most of them are zero (a code per byte could not go below one bit each).
 *
 * Decoding looks up 11 bits and gets all whole symbols in them, up to seven bytes, so that low entropy is fast as well;
 * four streams hide the latency of the lookups. */
#ifndef TAGCI_CORE_LOSSLESS_HUFFMAN_H
#define TAGCI_CORE_LOSSLESS_HUFFMAN_H

#include <stddef.h>
#include <stdint.h>

#include "core/lossless_code.h"

/* Where all symbols of a plane are within TAGCI_HUFF_NEAR of each other, as exponents of weights are, two of them at a time
 * are counted and encoded, as near + TAGCI_HUFF_NEAR * next above the smallest: half the work, the same bytes. */
#define TAGCI_HUFF_NEAR 64
/* Range of n > 0 symbols; whether they are near. */
int tagci_huff_near(const uint8_t *symbols, size_t n, unsigned *smallest, unsigned *largest);
/* Numbers of floor(n / 2) pairs to two, and counts of all symbols. */
void tagci_huff_count_two(const uint8_t *symbols, size_t n, unsigned smallest, unsigned largest, uint16_t *two,
                          uint32_t scratch[2][TAGCI_HUFF_NEAR * TAGCI_HUFF_NEAR], uint32_t count[256]);

/* Code lengths for these counts (their sum below 2^16): 0 for symbols that do not occur. With less than two symbols
 * there is no code, and all lengths are 0. Returns the number of symbols; *bits: length of all codes together. */
unsigned tagci_huff_lengths(const uint32_t count[256], uint8_t length[256], size_t *bits);

/* Streams: symbols 0 .. q-1, q .. 2q-1, ... with q = 2 ceil(n / 8), each from the highest bit of its first byte down,
 * padded with zeros to a byte. Codes are canonical: they rise with (length, symbol). */
struct tagci_huff_encoder {
    uint64_t code[256]; /* from the highest bit down; the length in the lowest byte */
    uint64_t two[TAGCI_HUFF_NEAR * TAGCI_HUFF_NEAR];
};
void tagci_huff_encoder_init(struct tagci_huff_encoder *e, const uint8_t length[256]);
/* Codes n symbols; bytes[] says how long each stream is. Returns the end; up to 7 bytes behind it are overwritten. */
unsigned char *tagci_huff_encode(const struct tagci_huff_encoder *e, const uint8_t *symbols, size_t n,
                                 unsigned char *out, uint16_t bytes[TAGCI_HUFF_STREAMS]);
/* The same bytes from count_two's numbers. */
unsigned char *tagci_huff_encode_two(struct tagci_huff_encoder *e, const uint8_t *symbols, const uint16_t *two,
                                     size_t n, unsigned smallest, unsigned largest, unsigned char *out,
                                     uint16_t bytes[TAGCI_HUFF_STREAMS]);

struct tagci_huff_decoder {
    /* bits 0..55: symbols, first one lowest; 56..58: their bytes; 60..63: bits of their codes */
    uint64_t entry[(size_t)1 << TAGCI_HUFF_BITS];
    uint64_t narrow[(size_t)1 << TAGCI_HUFF_BITS]; /* the same for r < 11 bits, from 2^r on */
    uint8_t length[256];
    const struct tagci_huff_pairs *pairs; /* NULL: single bytes */
};
/* length: a complete code, as get_lengths gives it. pairs must outlive the decoder. -1: the code has symbols that are
 * no pairs. */
int tagci_huff_decoder_init(struct tagci_huff_decoder *d, const uint8_t length[256],
                            const struct tagci_huff_pairs *pairs);
/* Decodes n symbols (n pairs give 2n bytes; the pair code of the rest gives 255, 255) to out.
 * Streams stand at `in`, one behind the other. 0, or -1 if they do not end where they
 * should; nothing outside in and out is touched in either case. */
int tagci_huff_decode(const struct tagci_huff_decoder *d, const unsigned char *in,
                      const uint16_t bytes[TAGCI_HUFF_STREAMS], size_t n, uint8_t *out);

/* Place of the first such byte at or after i, n if there is none. */
size_t tagci_find_byte(const uint8_t *plane, uint8_t byte, size_t i, size_t n);

#endif
