/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * How a vector is cut: into owners' parts, and those into chunks. Facts of the shape alone. */
#ifndef TAGCI_COLL_GEOMETRY_H
#define TAGCI_COLL_GEOMETRY_H

#include <stddef.h>

struct tagci_geometry {
    size_t n; /* elements of the whole vector */
    int ranks;
    const size_t *offset; /* ranks + 1: part o is [offset[o], offset[o+1]) */
    size_t chunk;         /* elements of a chunk, the last of a part may be shorter */
    const size_t *first;  /* ranks + 1: number of chunks in the parts before o */
};

static inline size_t tagci_part(const struct tagci_geometry *g, int owner)
{
    return g->offset[owner + 1] - g->offset[owner];
}
static inline size_t tagci_part_chunks(const struct tagci_geometry *g, int owner)
{
    return g->first[owner + 1] - g->first[owner];
}
/* Chunk c of a part: [*begin, *begin + result) of the vector. */
static inline size_t tagci_part_chunk(const struct tagci_geometry *g, int owner, size_t c, size_t *begin)
{
    size_t at = c * g->chunk, left = tagci_part(g, owner) - at;
    *begin = g->offset[owner] + at;
    return left < g->chunk ? left : g->chunk;
}
/* Owner of element at < n. */
int tagci_owner_of(const struct tagci_geometry *g, size_t at);
size_t tagci_longest_part(const struct tagci_geometry *g);
size_t tagci_longest_chunk(const struct tagci_geometry *g);       /* elements */
size_t tagci_longest_part_chunks(const struct tagci_geometry *g); /* of any part */
/* Words of bitmaps of which every part starts at a whole word: of the parts before o. */
size_t tagci_part_words(const struct tagci_geometry *g, int owner);

#endif
