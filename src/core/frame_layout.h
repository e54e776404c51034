/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * How long the parts of a frame are. */
#ifndef TAGCI_CORE_FRAME_LAYOUT_H
#define TAGCI_CORE_FRAME_LAYOUT_H

#include "core/bitmap.h"
#include "core/frame.h"
#include "core/index_coded.h"
#include "core/value.h"

/* Bytes of a frame's parts in their order, padding included. */
struct tagci_frame_parts {
    size_t index, low, scales, codes, escape_ranks, escape_values;
    unsigned low_bits;
};

TAGCI_INLINE size_t tagci_pad8(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

/* Bytes of the whole frame. */
TAGCI_INLINE size_t tagci_frame_measure(enum tagci_type type, enum tagci_value value, size_t n, int indexed,
                                        size_t kept, size_t escapes, struct tagci_frame_parts *p)
{
    struct tagci_coded c = {0, 0, 0, 0};
    if (indexed == TAGCI_INDEX_CODED)
        c = tagci_coded_shape(n, kept);
    else if (indexed)
        c.high_words = tagci_bitmap_words(n);
    p->index = c.high_words * 8;
    p->low = c.low_words * 8;
    p->low_bits = c.low_bits;
    p->scales = tagci_value_blocked(value) ? tagci_pad8(tagci_value_blocks(kept) * 2) : 0;
    p->codes = tagci_pad8(tagci_value_bytes(type, value, kept));
    p->escape_ranks = tagci_pad8(escapes * 4);
    p->escape_values = tagci_pad8(escapes * tagci_work_size(type));
    return TAGCI_FRAME_HEADER + p->index + p->low + p->scales + p->codes + p->escape_ranks + p->escape_values;
}

#endif
