/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The additive sketch: geometry that always peels, integers that add exactly, stated error. */
#include "unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "core/hash.h"
#include "core/sketch.h"
#include "util/mem.h"

#define LANES TAGCI_SKETCH_LANES
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- Random numbers, the same everywhere ------------------------------------------------------- */

static double uniform(uint64_t stream, uint64_t i)
{
    return ((double)(tagci_hash(stream, i) >> 11) + 0.5) * 0x1p-53;
}

static double gaussian(uint64_t stream, uint64_t i)
{
    return sqrt(-2 * log(uniform(stream, 2 * i))) * cos(2 * M_PI * uniform(stream, 2 * i + 1));
}

/* ---- Geometry ----------------------------------------------------------------------------------- */

static void check_geometry(const struct tagci_sketch *s, size_t entries)
{
    assert_int_equal(s->entries, entries);
    assert_int_equal(s->blocks, (entries + LANES - 1) / LANES);
    for (size_t g = 0; g < s->blocks; g++) {
        const uint32_t *r = s->row_of[g];
        assert_true(r[0] != r[1] && r[0] != r[2] && r[1] != r[2]);
        assert_true(r[0] < s->rows && r[1] < s->rows && r[2] < s->rows);
    }
    /* the inverse map holds each (row, block) pair once, rising */
    assert_int_equal(s->row_start[0], 0);
    assert_int_equal(s->row_start[s->rows], 3 * s->blocks);
    for (size_t r = 0; r < s->rows; r++)
        for (uint32_t i = s->row_start[r]; i < s->row_start[r + 1]; i++) {
            const uint32_t *rows = s->row_of[s->row_blocks[i]];
            assert_true(rows[0] == r || rows[1] == r || rows[2] == r);
            assert_true(i == s->row_start[r] || s->row_blocks[i - 1] < s->row_blocks[i]);
        }
    /* the order peels: when a block comes, its pivot holds nothing else */
    uint32_t *left = calloc(s->rows + 1, sizeof *left);
    for (size_t r = 0; r < s->rows; r++)
        left[r] = s->row_start[r + 1] - s->row_start[r];
    for (size_t i = 0; i < s->decoded; i++) {
        const uint32_t *r = s->row_of[s->order[i]];
        assert_int_equal(s->undecoded[s->order[i]], 0);
        assert_true(s->pivot[i] == r[0] || s->pivot[i] == r[1] || s->pivot[i] == r[2]);
        assert_int_equal(left[s->pivot[i]], 1);
        for (int k = 0; k < 3; k++)
            left[r[k]]--;
    }
    size_t undecoded = 0;
    for (size_t g = 0; g < s->blocks; g++)
        undecoded += s->undecoded[g];
    assert_int_equal(undecoded + s->decoded, s->blocks);
    /* nothing more could be peeled */
    for (size_t r = 0; r < s->rows; r++)
        assert_int_not_equal(left[r], 1);
    free(left);
}

static void every_small_count_decodes(void **state)
{
    (void)state;
    struct tagci_sketch s = {0};
    uint64_t trials = 0;
    for (size_t n = 0; n <= 3000; n++) {
        assert_int_equal(tagci_sketch_plan(&s, n, 0), 0);
        assert_int_equal(s.decoded, s.blocks);
        assert_true(s.rows <= s.blocks + 2 || s.blocks > 32);
        assert_true((double)s.rows <= 1.4 * (double)s.blocks + 3);
        trials += s.trials;
        check_geometry(&s, n);
    }
    assert_true(trials <= 3 * 3001); /* the search costs few peels */
    tagci_sketch_release(&s);
}

static void block_counts_of_the_middle_decode_small(void **state)
{
    (void)state;
    struct tagci_sketch s = {0};
    for (size_t blocks = 700; blocks < 60000; blocks += blocks / 23) {
        assert_int_equal(tagci_sketch_plan(&s, blocks * LANES - 3, 0), 0);
        assert_int_equal(s.decoded, s.blocks);
        assert_true((double)s.rows * LANES <= 1.27 * (double)s.entries);
        assert_true(s.trials <= 64);
        check_geometry(&s, blocks * LANES - 3);
    }
    tagci_sketch_release(&s);
}

static void large_counts_decode_near_the_limit(void **state)
{
    (void)state;
    static const struct {
        size_t entries;
        double cells; /* per entry, at most */
    } cases[] = {{50000, 1.25}, {160000, 1.23}, {1000000, 1.17}, {5000000, 1.145}, {12800000, 1.13}};
    struct tagci_sketch s = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(tagci_sketch_plan(&s, cases[i].entries, 0), 0);
        assert_int_equal(s.decoded, s.blocks);
        check_geometry(&s, cases[i].entries);
        double cells = (double)s.rows * LANES / (double)s.entries;
        print_message("%zu entries: %.4f cells each, %u peels\n", s.entries, cells, s.trials);
        assert_true(cells <= cases[i].cells);
    }
    tagci_sketch_release(&s);
}

static void given_rows_are_taken(void **state)
{
    (void)state;
    struct tagci_sketch s = {0};
    static const size_t counts[] = {0, 1, 16, 17, 100, 500, 513, 3000, 20000, 200000};
    for (size_t i = 0; i < COUNT(counts); i++)
        for (int percent = 0; percent <= 400; percent += 20) {
            size_t n = counts[i], blocks = (n + LANES - 1) / LANES, rows = 1 + blocks * (size_t)percent / 100;
            assert_int_equal(tagci_sketch_plan(&s, n, rows), 0);
            assert_int_equal(s.rows, !n ? 0 : rows < 3 ? 3 : rows);
            check_geometry(&s, n);
            if (s.rows < s.blocks)
                assert_true(s.decoded < s.blocks);
            if (percent >= 200)
                assert_int_equal(s.decoded, s.blocks);
        }
    tagci_sketch_release(&s);
}

/* Blocks of a round stand alone in their pivots when the earlier rounds are out. */
static void check_rounds(struct tagci_sketch *s, size_t entries)
{
    size_t decoded = s->decoded;
    uint32_t *left = calloc(s->rows + 1, sizeof *left);
    tagci_sketch_in_rounds(s);
    check_geometry(s, entries);
    assert_int_equal(s->decoded, decoded);
    assert_int_equal(s->rounds > 0, decoded > 0);
    assert_int_equal(s->round_start[0], 0);
    assert_int_equal(s->round_start[s->rounds], decoded);
    for (size_t r = 0; r < s->rows; r++)
        left[r] = s->row_start[r + 1] - s->row_start[r];
    for (size_t round = 0; round < s->rounds; round++) {
        assert_true(s->round_start[round] < s->round_start[round + 1]);
        for (uint32_t i = s->round_start[round]; i < s->round_start[round + 1]; i++)
            assert_int_equal(left[s->pivot[i]], 1);
        for (uint32_t i = s->round_start[round]; i < s->round_start[round + 1]; i++)
            for (int k = 0; k < 3; k++)
                left[s->row_of[s->order[i]][k]]--;
    }
    free(left);
}

static void blocks_come_out_in_rounds(void **state)
{
    (void)state;
    struct tagci_sketch s = {0};
    for (size_t n = 0, rows = 0; n < 3000000; n = n < 2000 ? n + 7 : n + n / 3) {
        assert_int_equal(tagci_sketch_plan(&s, n, rows), 0);
        check_rounds(&s, n);
        if (n > 1000000)
            print_message("%zu entries: %zu rounds\n", n, s.rounds);
        rows = rows ? 0 : n / 20 % 3 * (n / 40);
    }
    tagci_sketch_release(&s);
}

static void outcome_depends_on_the_arguments_alone(void **state)
{
    (void)state;
    struct tagci_sketch fresh = {0}, used = {0};
    assert_int_equal(tagci_sketch_plan(&used, 300000, 0), 0);
    for (size_t n = 900; n < 200000; n = n * 3 + 1)
        for (size_t rows = 0; rows < 200; rows += 99) {
            assert_int_equal(tagci_sketch_plan(&used, n, rows), 0);
            memset(&fresh, 0, sizeof fresh);
            assert_int_equal(tagci_sketch_plan(&fresh, n, rows), 0);
            assert_int_equal(fresh.rows, used.rows);
            assert_int_equal(fresh.decoded, used.decoded);
            assert_memory_equal(fresh.row_of, used.row_of, fresh.blocks * sizeof *fresh.row_of);
            assert_memory_equal(fresh.order, used.order, fresh.decoded * sizeof *fresh.order);
            assert_memory_equal(fresh.pivot, used.pivot, fresh.decoded * sizeof *fresh.pivot);
            tagci_sketch_release(&fresh);
        }
    tagci_sketch_release(&used);
}

static void memory_is_reused_and_its_lack_reported(void **state)
{
    (void)state;
    struct tagci_sketch s = {0};
    size_t held = tagci_mem_held();
    tagci_mem_fail_at(1);
    assert_int_equal(tagci_sketch_plan(&s, 1000, 0), -1);
    assert_null(s.memory);
    tagci_mem_fail_at(0);

    assert_int_equal(tagci_sketch_plan(&s, 1000, 0), 0);
    uint64_t allocations = tagci_mem_count();
    size_t rows = s.rows;
    tagci_mem_fail_at(1);
    assert_int_equal(tagci_sketch_plan(&s, 100000, 0), -1); /* the old plan still stands */
    tagci_mem_fail_at(0);
    assert_int_equal(s.rows, rows);
    check_geometry(&s, 1000);

    allocations = tagci_mem_count();
    const void *memory = s.memory;
    for (size_t n = 0; n <= 1000; n += 50) {
        assert_int_equal(tagci_sketch_plan(&s, n, 0), 0);
        assert_int_equal(tagci_sketch_plan(&s, n, 0), 0);
    }
    assert_int_equal(tagci_mem_count(), allocations);
    assert_ptr_equal(s.memory, memory);
    assert_int_equal(tagci_sketch_plan(&s, SIZE_MAX, 0), -1);
    assert_int_equal(tagci_sketch_plan(&s, 1000, SIZE_MAX), -1);
    assert_int_equal(s.entries, 1000);
    tagci_sketch_release(&s);
    assert_int_equal(tagci_mem_held(), held);
    tagci_sketch_release(&s);
}

/* ---- Values ------------------------------------------------------------------------------------- */

enum kind { INTEGERS, GAUSSIAN, HEAVY, SMALL_BESIDE_LARGE, SUBNORMAL, SPARSE, NONFINITE, HUGE_VALUES, KINDS };

static double make(enum kind kind, int wide, int rank, size_t i)
{
    uint64_t stream = (uint64_t)kind * 1000 + (uint64_t)rank;
    double g = gaussian(stream, i), u = uniform(stream ^ 99, i);
    switch (kind) {
    case INTEGERS:
        return nearbyint(g * 3);
    case GAUSSIAN:
        return g;
    case HEAVY:
        return g * g * g * exp(3 * gaussian(stream + 500, i));
    case SMALL_BESIDE_LARGE:
        return i % 640 == (size_t)rank ? (wide ? 1e30 : 1e8) : u < 0.3 ? 0 : 1;
    case SUBNORMAL:
        return g * (wide ? 0x1p-1070 : 1e-40);
    case SPARSE:
        return u < 0.95 ? 0 : g * 1e-3;
    case NONFINITE:
        return i % 1000 == 7 && rank == 1 ? (i % 2000 == 7 ? (double)INFINITY : (double)NAN) : g;
    default:
        return g * (wide ? 0x1p1021 : 0x1p125);
    }
}

static double get(int wide, const void *values, size_t i)
{
    return wide ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static void set(int wide, void *values, size_t i, double v)
{
    if (wide)
        ((double *)values)[i] = v;
    else
        ((float *)values)[i] = (float)v;
}

/* Half a unit in the last place. */
static long double half_unit(int wide, double v)
{
    int e = v == 0 ? -5000 : ilogb(v), least = wide ? -1022 : -126;
    return ldexpl(1, (e > least ? e : least) - (wide ? 53 : 24));
}

struct job {
    int wide, ranks;
    size_t n;
    struct tagci_sketch s;
    void *values[600], *ints, *cells, *sum, *out;
    uint16_t *high, *low, *high1, *low1;
    unsigned char *exceptional;
    size_t exceptions;
};

static void job_start(struct job *j, enum kind kind, int wide, int ranks, size_t n, size_t rows)
{
    memset(j, 0, sizeof *j);
    j->wide = wide;
    j->ranks = ranks;
    j->n = n;
    assert_int_equal(tagci_sketch_plan(&j->s, n, rows), 0);
    size_t groups = tagci_sketch_groups(n), width = wide ? 8 : 4;
    j->ints = malloc(j->s.blocks * LANES * width);
    j->cells = malloc(j->s.rows * LANES * width);
    j->sum = calloc(j->s.rows * LANES, width);
    j->out = malloc(n * width);
    j->high = calloc(groups, 2);
    j->low = calloc(groups, 2);
    j->high1 = calloc(groups, 2);
    j->low1 = calloc(groups, 2);
    j->exceptional = malloc(groups);
    for (int r = 0; r < ranks; r++) {
        j->values[r] = malloc(n * width);
        for (size_t i = 0; i < n; i++)
            set(wide, j->values[r], i, make(kind, wide, r, i));
        tagci_sketch_exponents(wide, j->values[r], n, j->high1, j->low1);
        for (size_t i = 0; i < groups; i++) { /* as MPI_MAX does */
            j->high[i] = j->high[i] > j->high1[i] ? j->high[i] : j->high1[i];
            j->low[i] = j->low[i] > j->low1[i] ? j->low[i] : j->low1[i];
        }
    }
    j->exceptions = tagci_sketch_exceptional(wide, ranks, j->high, j->low, n, j->exceptional);
    size_t cells = j->s.rows * LANES;
    for (int r = 0; r < ranks; r++) {
        tagci_sketch_encode(&j->s, wide, ranks, j->values[r], j->high, j->exceptional, j->ints, j->cells);
        for (size_t i = 0; i < cells; i++)
            if (wide)
                ((uint64_t *)j->sum)[i] += ((uint64_t *)j->cells)[i];
            else
                ((uint32_t *)j->sum)[i] += ((uint32_t *)j->cells)[i];
    }
    tagci_sketch_decode(&j->s, wide, ranks, j->sum, j->high, j->exceptional, j->ints, j->out);
}

static void job_end(struct job *j)
{
    for (int r = 0; r < j->ranks; r++)
        free(j->values[r]);
    free(j->ints);
    free(j->cells);
    free(j->sum);
    free(j->out);
    free(j->high);
    free(j->low);
    free(j->high1);
    free(j->low1);
    free(j->exceptional);
    tagci_sketch_release(&j->s);
}

/* Four half-units of each summand, and one rounding of the sum. */
static void check_sums(const struct job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        double out = get(j->wide, j->out, i);
        if (j->exceptional[i / TAGCI_SKETCH_GROUP] || j->s.undecoded[i / LANES]) {
            assert_true(out == 0);
            continue;
        }
        long double sum = 0, bound = 0;
        for (int r = 0; r < j->ranks; r++) {
            double v = get(j->wide, j->values[r], i);
            sum += v;
            bound += v == 0 ? 0 : 4 * half_unit(j->wide, v);
        }
        if (!j->wide && isinf(out)) { /* beyond float's range is Inf, as in any float sum */
            assert_true(fabsl(sum) >= FLT_MAX);
            continue;
        }
        if (j->wide && isinf(out)) {
            assert_true(fabsl(sum) >= DBL_MAX);
            continue;
        }
        bound += half_unit(j->wide, (double)(fabsl(sum) + bound));
        if (!(fabsl(out - sum) <= bound))
            fail_msg("entry %zu of %zu, %d ranks: %.20g, sum %.20Lg, bound %Lg", i, j->n, j->ranks, out, sum, bound);
    }
}

static void sums_are_within_the_bound(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 15, 16, 17, 63, 64, 65, 1000, 5003, 140001};
    static const int ranks[] = {1, 2, 3, 4, 7, 8};
    for (int kind = 0; kind < KINDS; kind++)
        for (int wide = 0; wide < 2; wide++)
            for (size_t c = 0; c < COUNT(counts); c++)
                for (size_t r = 0; r < COUNT(ranks); r++) {
                    if (counts[c] > 100000 && ranks[r] != 3)
                        continue;
                    struct job j;
                    job_start(&j, (enum kind)kind, wide, ranks[r], counts[c], 0);
                    check_sums(&j);
                    job_end(&j);
                }
}

/* As many as MPI runs have: the sum must not overflow, at the largest magnitude of every rank at once. */
static void many_ranks_do_not_overflow(void **state)
{
    (void)state;
    static const int ranks[] = {31, 32, 33, 127, 128, 129, 255, 256, 257, 511, 512, 513};
    for (size_t r = 0; r < COUNT(ranks); r++)
        for (int wide = 0; wide < 2; wide++) {
            enum { N = 64 };
            uint16_t high, low;
            unsigned char exceptional;
            double values[N], out[N];
            struct tagci_sketch s = {0};
            const double most = wide ? nextafter(2, 0) : (double)nextafterf(2, 0);
            for (int i = 0; i < N; i++) /* the ends of one binade */
                set(wide, values, (size_t)i, (i % 2 ? -1 : 1) * (i < 32 ? most : 1));
            assert_int_equal(tagci_sketch_plan(&s, N, 0), 0);
            tagci_sketch_exponents(wide, values, N, &high, &low);
            tagci_sketch_exceptional(wide, ranks[r], &high, &low, N, &exceptional);
            if (!exceptional) {
                uint64_t ints[N], cells[6 * LANES];
                tagci_sketch_encode(&s, wide, ranks[r], values, &high, &exceptional, ints, cells);
                for (size_t i = 0; i < s.rows * LANES; i++)
                    if (wide)
                        cells[i] *= (uint64_t)ranks[r];
                    else
                        ((uint32_t *)cells)[i] *= (uint32_t)ranks[r];
                tagci_sketch_decode(&s, wide, ranks[r], cells, &high, &exceptional, ints, out);
                for (size_t i = 0; i < N; i++) {
                    long double sum = (long double)get(wide, values, i) * ranks[r];
                    assert_true(fabsl((long double)get(wide, out, i) - sum) <=
                                ranks[r] * 4 * half_unit(wide, get(wide, values, i)) + half_unit(wide, (double)sum));
                }
            } else {
                assert_true(!wide && ranks[r] >= 512);
            }
            tagci_sketch_release(&s);
        }
}

static void integers_come_back_exactly(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int ranks = 1; ranks <= 8; ranks++) {
            struct job j;
            job_start(&j, INTEGERS, wide, ranks, 10007, 0);
            assert_int_equal(j.exceptions, 0);
            for (size_t i = 0; i < j.n; i++) {
                double sum = 0;
                for (int r = 0; r < ranks; r++)
                    sum += get(wide, j.values[r], i);
                assert_true(get(wide, j.out, i) == sum);
            }
            job_end(&j);
        }
}

static void groups_that_do_not_fit_are_exceptional(void **state)
{
    (void)state;
    struct job j;
    for (int wide = 0; wide < 2; wide++) {
        job_start(&j, SMALL_BESIDE_LARGE, wide, 2, 64000, 0);
        for (size_t i = 0; i < tagci_sketch_groups(j.n); i++)
            assert_int_equal(j.exceptional[i], i % 10 == 0);
        assert_int_equal(j.exceptions, 100);
        job_end(&j);
        job_start(&j, NONFINITE, wide, 2, 64000, 0);
        assert_true(j.exceptions >= 64);
        for (size_t i = 7; i < j.n; i += 1000)
            assert_int_equal(j.exceptional[i / TAGCI_SKETCH_GROUP], 1);
        job_end(&j);
        job_start(&j, SUBNORMAL, wide, 4, 6400, 0); /* subnormals are exact, however far apart */
        assert_int_equal(j.exceptions, 0);
        job_end(&j);
    }
    /* the limit itself: 2^0 and 2^-d in one group of 2 ranks */
    for (int wide = 0; wide < 2; wide++)
        for (int d = 0; d < 20; d++) {
            double values[2];
            uint16_t high, low;
            unsigned char exceptional;
            set(wide, values, 0, 1);
            set(wide, values, 1, ldexp(-1, -d));
            tagci_sketch_exponents(wide, values, 2, &high, &low);
            size_t n = tagci_sketch_exceptional(wide, 2, &high, &low, 2, &exceptional);
            assert_int_equal(n, exceptional);
            assert_int_equal(exceptional, d > (wide ? 11 : 8));
        }
}

static void exponents_merge_by_maximum(void **state)
{
    (void)state;
    static const float one[] = {0, -3, 0.25f}, other[] = {0, 0, 0}, tiny[] = {1e-45f, 0, 3e38f};
    uint16_t high[4], low[4];
    tagci_sketch_exponents(0, one, 3, &high[0], &low[0]);
    tagci_sketch_exponents(0, other, 3, &high[1], &low[1]);
    tagci_sketch_exponents(0, tiny, 3, &high[2], &low[2]);
    assert_int_equal(high[1], 0);
    assert_int_equal(low[1], 0);
    assert_int_equal(high[0] - 1075, 1);
    assert_int_equal(high[2] - 1075, 127);
    assert_true(low[2] - low[0] == 149 - 2);
    for (int e = -1074; e < 1024; e++) { /* one exponent for both widths, every binade */
        double v[2] = {ldexp(1, e), -ldexp(1, e)};
        tagci_sketch_exponents(1, v, 2, &high[3], &low[3]);
        assert_int_equal(high[3] - 1075, e);
        if (e < -149 || e > 127)
            continue;
        float f = (float)v[1];
        tagci_sketch_exponents(0, &f, 1, &high[0], &low[0]);
        assert_int_equal(high[0], high[3]);
        assert_int_equal(low[0], low[3]);
    }
}

static void nonfinite_groups_are_exceptional(void **state)
{
    (void)state;
    static const double specials[] = {INFINITY, -INFINITY, NAN};
    for (int wide = 0; wide < 2; wide++)
        for (size_t k = 0; k < COUNT(specials); k++)
            for (int beside = 0; beside < 2; beside++) { /* alone, and beside the largest finite number */
                double values[2];
                uint16_t high = 0, low = 0;
                unsigned char exceptional = 0;
                set(wide, values, 0, specials[k]);
                set(wide, values, 1, wide ? DBL_MAX : FLT_MAX);
                tagci_sketch_exponents(wide, values, 1 + (size_t)beside, &high, &low);
                assert_int_equal(high, INT16_MAX); /* what no other rank's exponent is above, signed or not */
                assert_int_equal(tagci_sketch_exceptional(wide, 1, &high, &low, 2, &exceptional), 1);
            }
}

/* Exceptional groups and the room behind the last entry are zeros in the cells, whatever was in the buffers. */
static void cells_hold_nothing_but_values(void **state)
{
    (void)state;
    enum { N = 3 * TAGCI_SKETCH_GROUP + 5 };
    float x[N];
    int32_t ints[N + LANES], cells[40 * LANES];
    uint16_t high[4], low[4];
    unsigned char exceptional[4] = {1, 1, 1, 0};
    struct tagci_sketch s = {0};
    assert_int_equal(tagci_sketch_plan(&s, N, 0), 0);
    assert_true(s.rows <= 40);
    for (size_t i = 0; i < N; i++)
        x[i] = i == 70 ? NAN : i == 10 ? INFINITY : 1;
    tagci_sketch_exponents(0, x, N, high, low);
    memset(ints, 0x5a, sizeof ints);
    memset(cells, 0x5a, sizeof cells);
    tagci_sketch_encode(&s, 0, 2, x, high, exceptional, ints, cells);
    int64_t ones = 0;
    for (size_t i = 0; i < s.rows * LANES; i++) {
        assert_true(cells[i] == 0 || (cells[i] == 1 << 29 && i % LANES < 5)); /* 1 of 2 ranks is 2^29 */
        ones += cells[i] >> 29;
    }
    assert_int_equal(ones, 3 * 5);
    tagci_sketch_release(&s);
}

/* encode(x) + encode(y) = encode(x + y) where the integers are exact, bit for bit. */
static void encoding_is_additive(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float x[N], y[N], z[N];
    static int32_t ints[N + LANES], cx[2 * N], cy[2 * N], cz[2 * N];
    static uint16_t high[N / TAGCI_SKETCH_GROUP + 1];
    static unsigned char exceptional[N / TAGCI_SKETCH_GROUP + 1];
    struct tagci_sketch s = {0};
    assert_int_equal(tagci_sketch_plan(&s, N, 0), 0);
    for (size_t i = 0; i < COUNT(high); i++)
        high[i] = 1075 + 12;
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)(int)(uniform(1, i) * 4000 - 2000);
        y[i] = (float)(int)(uniform(2, i) * 4000 - 2000);
        z[i] = x[i] + y[i];
    }
    tagci_sketch_encode(&s, 0, 2, x, high, exceptional, ints, cx);
    tagci_sketch_encode(&s, 0, 2, y, high, exceptional, ints, cy);
    tagci_sketch_encode(&s, 0, 2, z, high, exceptional, ints, cz);
    for (size_t i = 0; i < s.rows * LANES; i++)
        assert_int_equal((uint32_t)cx[i] + (uint32_t)cy[i], (uint32_t)cz[i]);
    tagci_sketch_release(&s);
}

static void scaling_by_powers_of_two_is_exact(void **state)
{
    (void)state;
    enum { N = 1000 };
    static float x[N], out[N], scaled[N];
    static uint16_t high[16], low[16];
    static unsigned char exceptional[16];
    static int32_t ints[N + LANES], cells[2 * N];
    struct tagci_sketch s = {0};
    assert_int_equal(tagci_sketch_plan(&s, N, 0), 0);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < N; i++)
            x[i] = ldexpf((float)gaussian(5, i), pass ? 40 : 0);
        tagci_sketch_exponents(0, x, N, high, low);
        memset(exceptional, 0, sizeof exceptional); /* also where they would be */
        tagci_sketch_encode(&s, 0, 4, x, high, exceptional, ints, cells);
        tagci_sketch_decode(&s, 0, 4, cells, high, exceptional, ints, pass ? scaled : out);
    }
    for (size_t i = 0; i < N; i++)
        assert_true(scaled[i] == ldexpf(out[i], 40));
    tagci_sketch_release(&s);
}

static void too_few_rows_lose_blocks_and_nothing_else(void **state)
{
    (void)state;
    static const size_t rows[] = {3, 20, 150, 240, 280, 290, 300, 330};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int wide = 0; wide < 2; wide++) {
            struct job j;
            job_start(&j, GAUSSIAN, wide, 3, 300 * LANES - 5, rows[i]);
            assert_int_equal(j.s.rows, rows[i]);
            assert_true(j.s.decoded < j.s.blocks);
            check_sums(&j);
            job_end(&j);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_count_decodes),
        cmocka_unit_test(block_counts_of_the_middle_decode_small),
        cmocka_unit_test(large_counts_decode_near_the_limit),
        cmocka_unit_test(given_rows_are_taken),
        cmocka_unit_test(blocks_come_out_in_rounds),
        cmocka_unit_test(outcome_depends_on_the_arguments_alone),
        cmocka_unit_test(memory_is_reused_and_its_lack_reported),
        cmocka_unit_test(sums_are_within_the_bound),
        cmocka_unit_test(many_ranks_do_not_overflow),
        cmocka_unit_test(integers_come_back_exactly),
        cmocka_unit_test(groups_that_do_not_fit_are_exceptional),
        cmocka_unit_test(exponents_merge_by_maximum),
        cmocka_unit_test(nonfinite_groups_are_exceptional),
        cmocka_unit_test(cells_hold_nothing_but_values),
        cmocka_unit_test(encoding_is_additive),
        cmocka_unit_test(scaling_by_powers_of_two_is_exact),
        cmocka_unit_test(too_few_rows_lose_blocks_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
