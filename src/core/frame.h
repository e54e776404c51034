/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Wire frame: how one chunk of one rank's vector travels to its owner (the `direct` algorithm, and the second half of an
 * allreduce). A frame is a function of (input, settings) alone, never of backend, threads or run.
 *
 *   offset 0   u8  wire version (TAGCI_WIRE_VERSION)
 *          1   u8  index: 1 a bitmap, 2 coded; 0: none, all n values stand in the frame
 *          2   u8  enum tagci_value
 *          3   u8  enum tagci_type
 *          4   u32 kept: number of values that follow
 *          8   u32 escapes
 *          12  u32 CRC32C of the whole frame with this field zero, or 0: not computed
 *          16  index: bitmap of n bits in 64-bit little-endian words, or coded: its high words, then its low words. Which
 *              of them, or none: a function of (setting, n, kept), of tagci_index_form and of what is shorter
 *              values: `kept` values in their form, padded with zeros to a multiple of 8 bytes;
 *                      integer forms: all block scales (bfloat16) first, padded to 8 bytes, then the codes
 *              escapes: values that the integer forms cannot hold (NaN and Inf): u32 rank among the kept values each,
 *                       padded to 8, then the values in the work type, padded to 8; the code at their place is zero
 * All numbers little-endian. The receiver knows n. value.h says what the forms are, index_coded.h what a coded index is. A
 * frame's form may be native where an integer form was asked for (many escapes). */
#ifndef TAGCI_CORE_FRAME_H
#define TAGCI_CORE_FRAME_H

#include "core/type.h"

#define TAGCI_WIRE_VERSION 2
#define TAGCI_FRAME_HEADER 16

struct tagci_frame {
    int indexed; /* 0, TAGCI_INDEX_BITMAP or TAGCI_INDEX_CODED */
    enum tagci_value value;
    enum tagci_type type;
    uint32_t kept;
    uint32_t escapes;
    const unsigned char *at; /* the frame itself */
    /* its parts; NULL where absent. index: the bitmap, or the high part of a coded one, of which low is the other part */
    const unsigned char *index, *low, *scales, *codes, *escape_ranks, *escape_values;
    unsigned low_bits; /* of a coded index */
    size_t bytes;      /* whole frame */
};

/* Upper bound on the bytes of a frame of n elements, whatever they are. */
size_t tagci_frame_bound(enum tagci_type type, enum tagci_value value, size_t n);
/* Bytes of a frame with these parts. */
size_t tagci_frame_bytes(enum tagci_type type, enum tagci_value value, size_t n, int indexed, size_t kept,
                         size_t escapes);
/* Lays out a frame with these parts at `at`: fills in the header (CRC field zero), zeroes all padding, and sets *f to
 * the places of the parts, which the caller fills. */
void tagci_frame_lay(unsigned char *at, enum tagci_type type, enum tagci_value value, size_t n, int indexed,
                     size_t kept, size_t escapes, struct tagci_frame *f);
/* Reads and checks a frame of `bytes` bytes that should hold n elements of type. Every later access through *f is in
 * bounds: version, forms and counts are known, the length is exact, the index has `kept` ones and none too far, its
 * positions are below n, escape ranks rise and are below kept. Not looked at: whether the positions of a coded index rise
 * inside a bucket. Where they do not, a value is added at a wrong element, as a damaged value is a wrong one.
 * check_crc: the CRC must be there and right; otherwise it is not looked at.
 * Returns 0, or -1 and a reason (static text). */
int tagci_frame_read(const unsigned char *at, size_t bytes, enum tagci_type type, size_t n, int check_crc,
                     struct tagci_frame *f, const char **reason);
/* Length that the header of a frame says, of n elements of type; 0 if it is none, or longer than `room`. For frames that
 * stand one behind the other. */
size_t tagci_frame_length(const unsigned char *at, size_t room, enum tagci_type type, size_t n);
/* The frame is now a copy of the same bytes elsewhere: *f leads there. */
void tagci_frame_move(struct tagci_frame *f, const unsigned char *to);
void tagci_frame_seal(unsigned char *at, size_t bytes);              /* computes and stores the CRC; 0 is stored as 1 */
uint32_t tagci_crc32c(uint32_t crc, const void *data, size_t bytes); /* crc: of what came before, 0 at the start */
uint32_t tagci_crc32c_plain(uint32_t crc, const void *data, size_t bytes); /* the same without special instructions */

#endif
