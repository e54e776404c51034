/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Additive sketch of packed values, without MPI: geometry, encoding, peeling.
 *
 * The values of one owner's part, packed onto the union of all ranks' positions, are cut into blocks of
 * TAGCI_SKETCH_LANES consecutive entries. Block g goes to three distinct rows of cells; cell (row, lane) is the sum of
 * its lane over the row's blocks. Rows, seed and peeling order are a function of the number of blocks alone, so every
 * rank knows before it sends a value which blocks will decode (all of them, by choice of rows and seed, unless the user
 * fixes the size).
 *
 * Cells are integers and add modulo 2^32 (float, 16-bit types) or 2^64 (double), so the sum does not depend on its
 * order and peeling loses nothing. Values become integers group by group: a group of TAGCI_SKETCH_GROUP entries has one
 * exponent, the largest over all ranks; because a block's integers come back exactly, blocks of different exponents may
 * share cells. A group whose smallest nonzero magnitude on any rank is too far below that exponent to be held to
 * accuracy, or that holds Inf or NaN, is exceptional: its entries are sent exactly. */
#ifndef TAGCI_CORE_SKETCH_H
#define TAGCI_CORE_SKETCH_H

#include <stddef.h>
#include <stdint.h>

#include "core/type.h"

#define TAGCI_SKETCH_LANES 16
#define TAGCI_SKETCH_GROUP 64

struct tagci_sketch {
    int planned;    /* the rest describes a plan */
    size_t entries; /* union entries */
    size_t blocks;  /* ceil(entries / lanes) */
    size_t rows;    /* 0 if there are no entries */
    size_t asked;   /* rows that plan was called with */
    uint64_t seed;
    uint32_t trials;       /* peels that the search for rows and seed took */
    uint32_t (*row_of)[3]; /* rows of each block */
    uint32_t *order;       /* `decoded` blocks in peeling order */
    uint32_t *pivot;       /* for order[i], the row that it is read from */
    size_t decoded;
    uint32_t *round_start;            /* round r: order[round_start[r] .. round_start[r+1]), if there are rounds */
    size_t rounds;                    /* 0: the order is not in rounds */
    uint32_t *row_start, *row_blocks; /* inverse map: blocks of row r are row_blocks[row_start[r] .. row_start[r+1]),
                                         rising */
    unsigned char *undecoded;         /* per block */
    void *memory;                     /* of all arrays */
    size_t memory_bytes;
};

/* Geometry for this many entries; rows = 0: as few as decode all (searching rows and seeds), else as given (at least 3;
 * what does not peel is in undecoded). The outcome is a function of entries and rows alone. Reuses *s's memory if it is
 * large enough, and the whole of it if entries and rows are those of the last call; zero *s first. 0, or -1: no memory
 * (or 2^32 rows and more), *s as it was. */
int tagci_sketch_plan(struct tagci_sketch *s, size_t entries, size_t rows);
/* Takes the memory of a plan of up to this many entries, so that plan need not. 0 or -1. */
int tagci_sketch_reserve(struct tagci_sketch *s, size_t entries);
/* Puts the order into rounds, as few as can be: blocks of one need only blocks of earlier ones. For devices: which blocks
 * come out, and their values, stay the same. Allocates nothing. */
void tagci_sketch_in_rounds(struct tagci_sketch *s);
/* The most rows that plan takes by itself for this many blocks. */
size_t tagci_sketch_most_rows(size_t blocks);
void tagci_sketch_release(struct tagci_sketch *s);

/* Exponents of groups, for MPI_MAX over ranks on MPI_UINT16_T: high[i] codes the largest exponent of a group's nonzero
 * values, low[i] the smallest, in reverse, so that both merge by maximum. 0: no nonzero value. 0x7fff in high: Inf or NaN.
 * wide: double, else float. */
size_t tagci_sketch_groups(size_t entries);
void tagci_sketch_exponents(int wide, const void *values, size_t entries, uint16_t *high, uint16_t *low);
/* From the merged exponents: exceptional[i] = 1 for groups that must be sent exactly, else 0. Returns their number. In the
 * groups that are left, a value becomes an integer with an error of at most 4 half-units in its last place. */
size_t tagci_sketch_exceptional(int wide, int ranks, const uint16_t *high, const uint16_t *low, size_t entries,
                                unsigned char *exceptional);
/* cells = sum over blocks. Gathers: every cell adds its blocks in rising order. Exceptional groups count as zeros.
 * cells: rows * lanes integers of 4 or 8 bytes. ints: room for blocks * lanes integers. high and exceptional: merged. */
void tagci_sketch_encode(const struct tagci_sketch *s, int wide, int ranks, const void *values, const uint16_t *high,
                         const unsigned char *exceptional, void *ints, void *cells);
/* Peels: values = decoded entries (zeros in exceptional groups and undecoded blocks), each the exact sum of the ranks'
 * integers, rounded once. ints: room as above. */
void tagci_sketch_decode(const struct tagci_sketch *s, int wide, int ranks, const void *cells, const uint16_t *high,
                         const unsigned char *exceptional, void *ints, void *values);

#endif
