/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/geometry.h"

size_t tagci_part_words(const struct tagci_geometry *g, int owner)
{
    size_t words = 0;
    for (int o = 0; o < owner; o++)
        words += (tagci_part(g, o) + 63) / 64;
    return words;
}
