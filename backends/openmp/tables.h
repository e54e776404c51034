/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Permutations by a byte of mask, for instruction sets that cannot compress and expand by themselves. Two tables of
 * 2 KiB, so that they leave the first-level cache to the data. */
#ifndef TAGCB_OPENMP_TABLES_H
#define TAGCB_OPENMP_TABLES_H

#include <stdint.h>

#define BIT(m, i) ((m) >> (i)&1)
#define BELOW(m, i)                                                                                                    \
    (BIT(m, 0) * ((i) > 0) + BIT(m, 1) * ((i) > 1) + BIT(m, 2) * ((i) > 2) + BIT(m, 3) * ((i) > 3) +                   \
     BIT(m, 4) * ((i) > 4) + BIT(m, 5) * ((i) > 5) + BIT(m, 6) * ((i) > 6))
/* The lane of the j-th bit */
#define HIT(m, i, j) (BIT(m, i) && BELOW(m, i) == (j) ? (i) : 0)
#define LANE(m, j)                                                                                                     \
    (HIT(m, 1, j) + HIT(m, 2, j) + HIT(m, 3, j) + HIT(m, 4, j) + HIT(m, 5, j) + HIT(m, 6, j) + HIT(m, 7, j))
#define COMPRESS(m)                                                                                                    \
    {                                                                                                                  \
        LANE(m, 0), LANE(m, 1), LANE(m, 2), LANE(m, 3), LANE(m, 4), LANE(m, 5), LANE(m, 6), LANE(m, 7)                 \
    }
/* Which packed value a lane takes; the sign says that it takes none */
#define TAKE(m, i) (int8_t)(BIT(m, i) ? BELOW(m, i) : -128)
#define EXPAND(m)                                                                                                      \
    {                                                                                                                  \
        TAKE(m, 0), TAKE(m, 1), TAKE(m, 2), TAKE(m, 3), TAKE(m, 4), TAKE(m, 5), TAKE(m, 6), TAKE(m, 7)                 \
    }
#define FOUR(t, m) t(m), t((m) + 1), t((m) + 2), t((m) + 3)
#define SIXTEEN(t, m) FOUR(t, m), FOUR(t, (m) + 4), FOUR(t, (m) + 8), FOUR(t, (m) + 12)
#define SIXTYFOUR(t, m) SIXTEEN(t, m), SIXTEEN(t, (m) + 16), SIXTEEN(t, (m) + 32), SIXTEEN(t, (m) + 48)
#define ALL(t)                                                                                                         \
    {                                                                                                                  \
        SIXTYFOUR(t, 0), SIXTYFOUR(t, 64), SIXTYFOUR(t, 128), SIXTYFOUR(t, 192)                                        \
    }

static const int8_t compress8[256][8] = ALL(COMPRESS);
static const int8_t expand8[256][8] = ALL(EXPAND);

/* Four lanes of two halves each */
#define PAIR(l) 2 * (l), 2 * (l) + 1
#define COMPRESS4(m)                                                                                                   \
    {                                                                                                                  \
        PAIR(LANE(m, 0)), PAIR(LANE(m, 1)), PAIR(LANE(m, 2)), PAIR(LANE(m, 3))                                         \
    }
#define TAKE2(m, i) (int8_t)(BIT(m, i) ? 2 * BELOW(m, i) : -128), (int8_t)(BIT(m, i) ? 2 * BELOW(m, i) + 1 : -128)
#define EXPAND4(m)                                                                                                     \
    {                                                                                                                  \
        TAKE2(m, 0), TAKE2(m, 1), TAKE2(m, 2), TAKE2(m, 3)                                                             \
    }

static const int8_t compress4[16][8] = {SIXTEEN(COMPRESS4, 0)};
static const int8_t expand4[16][8] = {SIXTEEN(EXPAND4, 0)};

#endif
