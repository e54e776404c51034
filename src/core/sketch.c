/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "core/sketch.h"

#include <math.h>
#include <string.h>

#include "core/hash.h"
#include "core/sketch_integer.h"
#include "util/mem.h"

/* ---- Geometry ----------------------------------------------------------------------------------
 *
 * Three ways to give a block its rows, by the number of blocks B:
 *
 * band     Rows g, g+1, g+2. B+2 rows, and it always peels: row 0 holds block 0 alone, then row 1
 *          holds block 1 alone, and so on. For so few blocks that hashing cannot spread them, and
 *          the last resort of the search.
 * uniform  One row drawn from each third of all rows. Peels from 1.223 B rows on.
 * coupled  One row drawn from each third of a window that slides from the first row to the last as
 *          g rises (spatial coupling: the rows at both ends are lightly loaded, so peeling starts
 *          there and runs inwards like a zip). Peels from 1.09 B rows on, plus what a window costs:
 *          a wide one costs its width at the ends, in a narrow one two blocks meet in all three
 *          rows by chance. Neighbouring blocks meet in near rows, so encoding and decoding stay in
 *          the cache.
 *
 * One row from each third makes the three distinct. The constants were fitted to the number of rows
 * at which half of the seeds peel. Only integers and IEEE's exactly rounded operations: every rank
 * must come to the same rows, whatever its mathematical library. */
#define BAND_MAX 32
#define UNIFORM_MAX 8000
#define THIRD_MAX ((size_t)1 << 20) /* of what tagci_hash_below can spread */
#define SEEDS 4                     /* tried with each number of rows */
#define LEVELS 16                   /* numbers of rows tried, 0.4 % apart */

struct row {         /* while peeling: what still lies in a row */
    uint32_t left;   /* number of blocks */
    uint32_t blocks; /* their numbers, xored: with one left, its number */
};

static size_t third_of_window(size_t blocks, size_t rows)
{
    size_t third = rows / 3;
    if (blocks > UNIFORM_MAX) {
        size_t narrow = (size_t)(2.5 * sqrt((double)blocks));
        third = narrow < third ? narrow : third;
    }
    return third < THIRD_MAX ? third : THIRD_MAX;
}

static size_t cube_root(size_t n)
{
    size_t c = 0;
    for (int bit = 20; bit >= 0; bit--) { /* n < 2^63 */
        size_t t = c | (size_t)1 << bit;
        if (t * t * t <= n)
            c = t;
    }
    return c;
}

/* Number of rows that one seed in two peels. */
static size_t likely_rows(size_t blocks)
{
    if (blocks <= UNIFORM_MAX)
        return blocks + blocks * 223 / 1000 + 5;
    size_t c = cube_root(blocks);
    return blocks + blocks * 92 / 1000 + c * c * 27 / 10;
}

static size_t next_level(size_t rows)
{
    return rows + rows / 256 + 1;
}

size_t tagci_sketch_most_rows(size_t blocks)
{
    size_t most = blocks <= BAND_MAX ? blocks + 2 : likely_rows(blocks);
    for (int level = 1; blocks > BAND_MAX && level < LEVELS; level++)
        most = next_level(most);
    return most > 3 ? most : 3;
}

/* The most that a plan takes that is asked for so many (0: as few as decode all). */
static size_t most_rows(size_t blocks, size_t asked)
{
    return !asked ? tagci_sketch_most_rows(blocks) : asked < 3 ? 3 : asked;
}

static void place(struct tagci_sketch *s, int band)
{
    uint32_t third = (uint32_t)third_of_window(s->blocks, s->rows);
    uint64_t slide = s->rows - 3 * (size_t)third, last = s->blocks > 1 ? s->blocks - 1 : 1;
    for (size_t g = 0; g < s->blocks; g++) {
        uint32_t *row = s->row_of[g];
        if (band) {
            row[0] = (uint32_t)g;
            row[1] = (uint32_t)g + 1;
            row[2] = (uint32_t)g + 2;
            continue;
        }
        uint64_t h = tagci_hash(s->seed, g);
        uint32_t start = (uint32_t)(g * slide / last);
        row[0] = start + tagci_hash_below(h, third);
        row[1] = start + third + tagci_hash_below(h >> 21, third);
        row[2] = start + 2 * third + tagci_hash_below(h >> 42, third);
    }
}

/* Peeling: a row with one block left gives that block, which is then taken out of its other rows. Which blocks come out
 * does not depend on the order. rows, queue: room for s->rows each; a row comes to one block left once, so there are never
 * more than those in the queue. Returns how many are in it. */
static size_t begin_peeling(struct tagci_sketch *s, struct row *rows, uint32_t *queue)
{
    size_t n = 0;
    memset(rows, 0, s->rows * sizeof *rows);
    for (size_t g = 0; g < s->blocks; g++)
        for (int k = 0; k < 3; k++) {
            struct row *r = &rows[s->row_of[g][k]];
            r->left++;
            r->blocks ^= (uint32_t)g;
        }
    for (size_t r = 0; r < s->rows; r++)
        if (rows[r].left == 1)
            queue[n++] = (uint32_t)r;
    s->decoded = 0;
    return n;
}

/* Takes out the block of a row from the queue; rows that it leaves with one block go to queue[n] and on. Returns the new n. */
static size_t take_out(struct tagci_sketch *s, struct row *rows, uint32_t pivot, uint32_t *queue, size_t n)
{
    if (rows[pivot].left != 1) /* its block came out through another row meanwhile */
        return n;
    uint32_t g = rows[pivot].blocks;
    s->order[s->decoded] = g;
    s->pivot[s->decoded++] = pivot;
    for (int k = 0; k < 3; k++) {
        uint32_t at = s->row_of[g][k];
        rows[at].blocks ^= g;
        if (--rows[at].left == 1)
            queue[n++] = at;
    }
    return n;
}

/* The newest row first: that stays in one neighbourhood. */
static void peel(struct tagci_sketch *s, struct row *rows, uint32_t *queue)
{
    size_t n = begin_peeling(s, rows, queue);
    s->trials++;
    while (n) {
        uint32_t pivot = queue[--n];
        n = take_out(s, rows, pivot, queue, n);
    }
}

static void invert(struct tagci_sketch *s)
{
    uint32_t *start = s->row_start;
    memset(start, 0, (s->rows + 1) * sizeof *start);
    for (size_t g = 0; g < s->blocks; g++)
        for (int k = 0; k < 3; k++)
            start[s->row_of[g][k]]++;
    uint32_t sum = 0;
    for (size_t r = 0; r <= s->rows; r++) { /* ends of rows now, starts when filled from behind */
        sum += start[r];
        start[r] = sum;
    }
    for (size_t g = s->blocks; g-- > 0;)
        for (int k = 0; k < 3; k++)
            s->row_blocks[--start[s->row_of[g][k]]] = (uint32_t)g;
}

/* Sizes of all arrays in one block of memory, and their places if there is one. */
static size_t lay_out(struct tagci_sketch *s, char *memory, size_t blocks, size_t max_rows, struct row **rows,
                      uint32_t **queue)
{
    const size_t bytes[] = {tagci_mul(blocks, sizeof *s->row_of),
                            tagci_mul(blocks, 4),
                            tagci_mul(blocks, 4),
                            tagci_mul(max_rows + 1, 4),
                            tagci_mul(blocks, 12),
                            blocks,
                            tagci_mul(blocks + 1, 4),
                            tagci_mul(max_rows, sizeof(struct row)),
                            tagci_mul(max_rows, 4)};
    void *at[sizeof bytes / sizeof *bytes];
    size_t sum = 0;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        at[i] = memory ? memory + sum : NULL;
        sum = tagci_add(sum, tagci_add(bytes[i], TAGCI_ALIGN - 1) & ~(size_t)(TAGCI_ALIGN - 1));
    }
    if (memory) {
        s->row_of = at[0];
        s->order = at[1];
        s->pivot = at[2];
        s->row_start = at[3];
        s->row_blocks = at[4];
        s->undecoded = at[5];
        s->round_start = at[6];
        *rows = at[7];
        *queue = at[8];
    }
    return sum;
}

static int need(struct tagci_sketch *s, size_t bytes)
{
    if (s->memory && bytes <= s->memory_bytes)
        return 0;
    void *memory = tagci_alloc(bytes, 1);
    if (!memory)
        return -1;
    tagci_free(s->memory);
    s->memory = memory;
    s->memory_bytes = bytes;
    s->planned = 0;
    return 0;
}

static size_t blocks_of(size_t entries)
{
    return entries / TAGCI_SKETCH_LANES + (entries % TAGCI_SKETCH_LANES != 0);
}

int tagci_sketch_reserve(struct tagci_sketch *s, size_t entries)
{
    struct row *left;
    uint32_t *queue;
    size_t blocks = blocks_of(entries);
    return need(s, lay_out(s, NULL, blocks, tagci_sketch_most_rows(blocks), &left, &queue));
}

int tagci_sketch_plan(struct tagci_sketch *s, size_t entries, size_t rows)
{
    if (s->planned && s->entries == entries && s->asked == rows)
        return 0;
    size_t blocks = blocks_of(entries);
    if (blocks > UINT32_MAX / 3)
        return -1;
    size_t first = blocks <= BAND_MAX ? blocks + 2 : likely_rows(blocks), most = most_rows(blocks, rows);
    if (rows)
        first = most;
    if (most >= UINT32_MAX)
        return -1;

    struct row *left;
    uint32_t *queue;
    if (need(s, lay_out(s, NULL, blocks, most, &left, &queue)))
        return -1;
    lay_out(s, s->memory, blocks, most, &left, &queue);
    s->planned = 1;
    s->entries = entries;
    s->blocks = blocks;
    s->asked = rows;
    s->decoded = 0;
    s->trials = 0;
    s->rounds = 0;
    s->seed = 0;

    s->rows = blocks ? first : 0;
    int band = blocks <= BAND_MAX && first >= blocks + 2;
    if (blocks && !band) {
        uint64_t best_seed = 0;
        size_t best = 0, levels = rows ? 1 : LEVELS;
        for (size_t trial = 0; trial < SEEDS * levels && s->decoded < blocks; trial++) {
            if (trial && trial % SEEDS == 0)
                s->rows = next_level(s->rows);
            s->seed = trial % SEEDS;
            place(s, 0);
            peel(s, left, queue);
            if (s->decoded > best) {
                best = s->decoded;
                best_seed = s->seed;
            }
        }
        if (s->decoded < blocks && !rows) { /* never seen; but the promise must not rest on luck */
            band = 1;
            s->rows = blocks + 2;
        } else if (s->decoded < best) {
            s->seed = best_seed;
            place(s, 0);
            peel(s, left, queue);
        }
    }
    if (band) {
        place(s, 1);
        peel(s, left, queue);
    }
    invert(s);
    memset(s->undecoded, 1, blocks);
    for (size_t i = 0; i < s->decoded; i++)
        s->undecoded[s->order[i]] = 0;
    return 0;
}

void tagci_sketch_in_rounds(struct tagci_sketch *s)
{
    struct row *left;
    uint32_t *queue;
    if (s->rounds)
        return;
    lay_out(s, s->memory, s->blocks, most_rows(s->blocks, s->asked), &left, &queue);
    s->round_start[0] = 0;
    for (size_t at = 0, end, n = begin_peeling(s, left, queue); at < n;) {
        for (end = n; at < end; at++)
            n = take_out(s, left, queue[at], queue, n);
        if (s->decoded > s->round_start[s->rounds])
            s->round_start[++s->rounds] = (uint32_t)s->decoded;
    }
}

void tagci_sketch_release(struct tagci_sketch *s)
{
    tagci_free(s->memory);
    memset(s, 0, sizeof *s);
}

/* ---- Exponents of groups ------------------------------------------------------------------------ */

size_t tagci_sketch_groups(size_t entries)
{
    return entries / TAGCI_SKETCH_GROUP + (entries % TAGCI_SKETCH_GROUP != 0);
}

/* Keys order as magnitudes do, so the extremes of a group are found in integers, and only two exponents are taken. A zero
 * key minus one is the largest number: it never is the smallest magnitude. */
#define DEFINE_EXPONENTS(bits, uint, wide)                                                                             \
    static void exponents_##bits(const void *values, size_t n, uint16_t *high, uint16_t *low)                          \
    {                                                                                                                  \
        uint most = 0, least = (uint)-1;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                                               \
            uint key;                                                                                                  \
            memcpy(&key, (const char *)values + i * sizeof key, sizeof key);                                           \
            key &= (uint)-1 >> 1;                                                                                      \
            most = key > most ? key : most;                                                                            \
            least = key - 1 < least ? key - 1 : least;                                                                 \
        }                                                                                                              \
        *high = tagci_sketch_high(wide, most);                                                                         \
        *low = tagci_sketch_low(wide, (uint)(least + 1));                                                              \
    }
DEFINE_EXPONENTS(32, uint32_t, 0)
DEFINE_EXPONENTS(64, uint64_t, 1)

void tagci_sketch_exponents(int wide, const void *values, size_t entries, uint16_t *high, uint16_t *low)
{
    const size_t width = wide ? 8 : 4;
    for (size_t at = 0, i = 0; at < entries; at += TAGCI_SKETCH_GROUP, i++) {
        size_t n = entries - at < TAGCI_SKETCH_GROUP ? entries - at : TAGCI_SKETCH_GROUP;
        const char *group = (const char *)values + at * width;
        wide ? exponents_64(group, n, &high[i], &low[i]) : exponents_32(group, n, &high[i], &low[i]);
    }
}

size_t tagci_sketch_exceptional(int wide, int ranks, const uint16_t *high, const uint16_t *low, size_t entries,
                                unsigned char *exceptional)
{
    const int spread = (wide ? 12 : 9) - tagci_sketch_headroom(wide, ranks),
              normal = TAGCI_SKETCH_EXPONENT_ZERO - (wide ? 1022 : 126);
    size_t n = 0, groups = tagci_sketch_groups(entries);
    for (size_t i = 0; i < groups; i++) {
        int least = TAGCI_SKETCH_TOP - low[i];
        least = least > normal ? least : normal;
        exceptional[i] = high[i] == TAGCI_SKETCH_NONFINITE || (high[i] && high[i] - least > spread);
        n += exceptional[i];
    }
    return n;
}

/* ---- Encoding and decoding: lanes are summed side by side, modulo 2^32 or 2^64 --------------------
 *
 * Both gather: a cell adds the blocks of its row; a block is what the cell of its pivot holds beside the other blocks of
 * that row, which came before it. So nothing is written twice, and blocks that come out in one round can be worked on at
 * once. */

#define DEFINE_CODING(bits, uint, real)                                                                                \
    static void to_ints_##bits(const real *v, size_t n, int scale, uint *out)                                          \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            out[i] = tagci_sketch_int_f##bits(v[i], scale);                                                            \
    }                                                                                                                  \
    static void from_ints_##bits(const uint *in, size_t n, int scale, real *out)                                       \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            out[i] = tagci_sketch_value_f##bits(in[i], scale);                                                         \
    }                                                                                                                  \
    static void add_rows_##bits(const struct tagci_sketch *s, const uint *ints, uint *cells)                           \
    {                                                                                                                  \
        for (size_t r = 0; r < s->rows; r++) {                                                                         \
            uint sum[TAGCI_SKETCH_LANES] = {0};                                                                        \
            for (uint32_t i = s->row_start[r]; i < s->row_start[r + 1]; i++) {                                         \
                const uint *block = ints + (size_t)s->row_blocks[i] * TAGCI_SKETCH_LANES;                              \
                for (int l = 0; l < TAGCI_SKETCH_LANES; l++)                                                           \
                    sum[l] += block[l];                                                                                \
            }                                                                                                          \
            memcpy(cells + r * TAGCI_SKETCH_LANES, sum, sizeof sum);                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    static void take_##bits(const struct tagci_sketch *s, size_t i, const uint *cells, uint *ints)                     \
    {                                                                                                                  \
        uint left[TAGCI_SKETCH_LANES];                                                                                 \
        uint32_t g = s->order[i], row = s->pivot[i];                                                                   \
        memcpy(left, cells + (size_t)row * TAGCI_SKETCH_LANES, sizeof left);                                           \
        for (uint32_t j = s->row_start[row]; j < s->row_start[row + 1]; j++) {                                         \
            const uint *block = ints + (size_t)s->row_blocks[j] * TAGCI_SKETCH_LANES;                                  \
            for (int l = 0; l < TAGCI_SKETCH_LANES && s->row_blocks[j] != g; l++)                                      \
                left[l] -= block[l];                                                                                   \
        }                                                                                                              \
        memcpy(ints + (size_t)g * TAGCI_SKETCH_LANES, left, sizeof left);                                              \
    }
DEFINE_CODING(32, uint32_t, float)
DEFINE_CODING(64, uint64_t, double)

void tagci_sketch_encode(const struct tagci_sketch *s, int wide, int ranks, const void *values, const uint16_t *high,
                         const unsigned char *exceptional, void *ints, void *cells)
{
    const size_t width = wide ? 8 : 4, room = s->blocks * TAGCI_SKETCH_LANES;
    const int headroom = tagci_sketch_headroom(wide, ranks);
    for (size_t at = 0, i = 0; at < s->entries; at += TAGCI_SKETCH_GROUP, i++) {
        size_t n = s->entries - at < TAGCI_SKETCH_GROUP ? s->entries - at : TAGCI_SKETCH_GROUP;
        int scale = tagci_sketch_scale(wide, headroom, high[i]);
        if (exceptional[i])
            memset((char *)ints + at * width, 0, n * width);
        else if (wide)
            to_ints_64((const double *)values + at, n, scale, (uint64_t *)ints + at);
        else
            to_ints_32((const float *)values + at, n, scale, (uint32_t *)ints + at);
    }
    memset((char *)ints + s->entries * width, 0, (room - s->entries) * width);
    wide ? add_rows_64(s, ints, cells) : add_rows_32(s, ints, cells);
}

void tagci_sketch_decode(const struct tagci_sketch *s, int wide, int ranks, const void *cells, const uint16_t *high,
                         const unsigned char *exceptional, void *ints, void *values)
{
    const size_t width = wide ? 8 : 4;
    const int headroom = tagci_sketch_headroom(wide, ranks);
    const size_t ahead = 6; /* the order is known: fetch what comes */
    memset(values, 0, s->entries * width);
    for (size_t i = 0; i < s->decoded; i++) {
        size_t at = (size_t)s->order[i] * TAGCI_SKETCH_LANES, group = at / TAGCI_SKETCH_GROUP;
        size_t n = s->entries - at < TAGCI_SKETCH_LANES ? s->entries - at : TAGCI_SKETCH_LANES;
        int scale = tagci_sketch_scale(wide, headroom, high[group]);
        if (i + ahead < s->decoded) {
            uint32_t row = s->pivot[i + ahead];
            __builtin_prefetch((const char *)cells + row * width * TAGCI_SKETCH_LANES);
            for (uint32_t j = s->row_start[row]; j < s->row_start[row + 1]; j++)
                __builtin_prefetch((char *)ints + s->row_blocks[j] * width * TAGCI_SKETCH_LANES, 1);
            __builtin_prefetch((char *)values + s->order[i + ahead] * width * TAGCI_SKETCH_LANES, 1);
        }
        wide ? take_64(s, i, cells, ints) : take_32(s, i, cells, ints);
        if (exceptional[group])
            continue;
        if (wide)
            from_ints_64((uint64_t *)ints + at, n, scale, (double *)values + at);
        else
            from_ints_32((uint32_t *)ints + at, n, scale, (float *)values + at);
    }
}
