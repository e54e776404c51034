/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/geometry.h"

int tagci_owner_of(const struct tagci_geometry *g, size_t at)
{
    int low = 0, high = g->ranks - 1; /* the first that ends behind it */
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (g->offset[middle + 1] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t tagci_longest_part(const struct tagci_geometry *g)
{
    size_t longest = 0;
    for (int o = 0; o < g->ranks; o++)
        if (tagci_part(g, o) > longest)
            longest = tagci_part(g, o);
    return longest;
}

size_t tagci_longest_chunk(const struct tagci_geometry *g)
{
    size_t longest = tagci_longest_part(g);
    return longest < g->chunk ? longest : g->chunk;
}

size_t tagci_longest_part_chunks(const struct tagci_geometry *g)
{
    return (tagci_longest_part(g) + g->chunk - 1) / g->chunk;
}

size_t tagci_part_words(const struct tagci_geometry *g, int owner)
{
    size_t words = 0;
    for (int o = 0; o < owner; o++)
        words += (tagci_part(g, o) + 63) / 64;
    return words;
}
