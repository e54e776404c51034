/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Gathers that round, on top of lossless.h: elements become codes, and the codes travel without loss. The codes are
 * what both sides remember, and the elements are a function of the codes, so all ranks hold the same bits.
 *
 *   bfloat16   to nearest even, as in value.h: a finite value that overflows becomes the largest finite one, a NaN the
 *              quiet one. Error: half a unit in the last place of a bfloat16
 *   int8       blocks of TAGCI_VALUE_BLOCK elements (the last one of a stretch may be shorter) with a bfloat16 scale,
 *              max |x| / 127 rounded up (as in value.h), code x / scale to nearest even: error half a scale. Code -128 is
 *              the quiet NaN. Where a block holds Inf, its scale has the sign bit set, is max / 126, and codes +-127 are
 *              +-Inf
 * An element is code * scale in the work type, rounded to the element type (float16: what overflows there becomes the
 * largest finite one).
 *
 * State of n elements, n <= TAGCI_LOSSLESS_BLOCK: the codes; int8: padded to an even number of bytes, then the scales.
 * State of more: block behind block.
 *
 * Wire format: bfloat16 as in lossless.h, for the codes as bfloat16 elements. int8 likewise index and bodies, with method
 * RAW for each block; a body is the index word of the codes (as bytes), that of the scales (as bfloat16), then both
 * bodies. */
#ifndef TAGCI_CORE_LOSSLESS_ROUND_H
#define TAGCI_CORE_LOSSLESS_ROUND_H

#include "core/lossless.h"

enum tagci_round { TAGCI_ROUND_BFLOAT16, TAGCI_ROUND_INT8 };

size_t tagci_round_state(enum tagci_round form, size_t n); /* bytes of the state of n elements */
size_t tagci_round_bound(enum tagci_round form, size_t n); /* most bytes that they travel in */

/* Elements to a state, and a state to elements. */
void tagci_round_codes(enum tagci_round form, enum tagci_type type, const void *now, size_t n, void *state);
void tagci_round_values(enum tagci_round form, enum tagci_type type, const void *state, size_t n, void *out);

/* As tagci_lossless_encode and _decode, for n elements of type. before: state that both sides hold, or NULL. after: where
 * the new state goes, or NULL; it may be before. out of decode may be NULL if only the state is wanted. */
size_t tagci_round_encode(enum tagci_round form, enum tagci_type type, const void *now, const void *before, void *after,
                          size_t n, unsigned char *out, struct tagci_lossless_work *work);
int tagci_round_decode(enum tagci_round form, enum tagci_type type, const unsigned char *in, size_t bytes,
                       const void *before, void *after, size_t n, void *out, struct tagci_lossless_work *work,
                       const char **reason);

/* One block of n <= TAGCI_LOSSLESS_BLOCK elements; index words and checks of lengths as in lossless.h. */
uint32_t tagci_round_encode_block(enum tagci_round form, enum tagci_type type, const void *now, const void *before,
                                  void *after, size_t n, unsigned char *out, struct tagci_lossless_work *work);
int tagci_round_decode_block(enum tagci_round form, enum tagci_type type, uint32_t word, const unsigned char *body,
                             const void *before, void *after, size_t n, void *out, struct tagci_lossless_work *work,
                             const char **reason);

#endif
