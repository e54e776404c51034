/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * A sample of a long stretch, from which its cut is taken (setting `selection`): runs of consecutive elements, one at
 * random in each of as many even pieces. A function of the stretch's length and the number to keep, the same everywhere. */
#ifndef TAGCI_CORE_SAMPLE_H
#define TAGCI_CORE_SAMPLE_H

#include <stddef.h>

#include "core/hash.h"
#include "core/type.h"

#define TAGCI_SAMPLE_RUN 16 /* floats of a line of the cache */
/* So many of the sample's elements are to be kept, or more: the share then is off by 1/sqrt of it, 1.6 % of itself
 * (standard deviation), more where neighbours resemble each other. */
#define TAGCI_SAMPLE_KEPT 4096
#define TAGCI_SAMPLE_MIN ((size_t)1 << 17) /* and it has at least so many */

/* Runs of the sample of a stretch of n elements of which k are to be kept; 0: it would be more than a sixteenth, and the
 * cut is exact. */
TAGCI_INLINE size_t tagci_sample_runs(size_t n, size_t k)
{
    double wanted = k ? (double)TAGCI_SAMPLE_KEPT * (double)n / (double)k : (double)n;
    if (wanted < (double)TAGCI_SAMPLE_MIN)
        wanted = (double)TAGCI_SAMPLE_MIN;
    return wanted * 16 > (double)n ? 0 : (size_t)wanted / TAGCI_SAMPLE_RUN;
}

/* How many elements of the sample are to be kept. */
TAGCI_INLINE size_t tagci_sample_keep(size_t n, size_t k, size_t runs)
{
    return (size_t)((double)k / (double)n * (double)(runs * TAGCI_SAMPLE_RUN) + 0.5);
}

/* Where the i-th of `runs` even pieces begins, in runs. */
TAGCI_INLINE size_t tagci_sample_piece(size_t n, size_t runs, size_t i)
{
    size_t all = n / TAGCI_SAMPLE_RUN;
    return i * (all / runs) + i * (all % runs) / runs;
}

/* First element of run i, whose piece is [piece, next). */
TAGCI_INLINE size_t tagci_sample_in(size_t piece, size_t next, size_t i)
{
    return (piece + (size_t)((tagci_hash(1, i) >> 32) * (next - piece) >> 32)) * TAGCI_SAMPLE_RUN;
}
TAGCI_INLINE size_t tagci_sample_at(size_t n, size_t runs, size_t i)
{
    return tagci_sample_in(tagci_sample_piece(n, runs, i), tagci_sample_piece(n, runs, i + 1), i);
}

/* Equal keys at the cut, of a sample of which `keep` are kept, are so many that the exact cut is wanted. */
TAGCI_INLINE int tagci_sample_tied(size_t tied, size_t keep)
{
    return tied * 256 > keep;
}

#endif
