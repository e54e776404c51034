/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Bytes on the wire, residuals and results are a function of the input: one table of checksums for every backend, every
 * instruction set and every number of threads. A change of the table is a change of the wire format.
 *
 *   test_golden --print > tests/unit/golden.h     makes the table anew, by the plain kernels */
#include "reference.h"
#ifndef GOLDEN_NONE
#include "golden.h"
#endif

static const size_t lengths[] = {9000, 4000, 777, 400, 65, 64, 1, 0};
#define CHUNKS (sizeof lengths / sizeof *lengths)

/* Checksum of everything that comes of some chunks of data of one pattern. */
static uint32_t checksum(enum tagci_type type, enum tagci_value value, enum pattern pattern)
{
    size_t all = 0, size = tagci_type_size(type), work = tagci_work_size(type);
    for (size_t i = 0; i < CHUNKS; i++)
        all += lengths[i];
    struct tagci_chunk chunks[CHUNKS];
    struct tagci_decode frames[2 * CHUNKS];
    struct tagci_run runs[CHUNKS][3];
    char *in = guarded(all * size), *residual = guarded(all * work), *rest = guarded(all * work),
         *sum = guarded(all * work);
    char *out = guarded(all * size);
    fill_input(type, pattern, 11, all, in);
    fill_residual(type, 12, all, residual);
    for (size_t i = 0, at = 0; i < CHUNKS; at += lengths[i++]) {
        struct tagci_cut cut;
        size_t n = lengths[i], above, tied;
        run_select(type, in + at * size, residual + at * work, n, i ? n / 5 : n / 20, &cut, &above, &tied);
        if (i == 1) /* nearly everything */
            cut = TAGCI_CUT_NONZERO;
        runs[i][0] = (struct tagci_run){n / 3, cut};
        cut.ties /= 2;
        runs[i][1] = (struct tagci_run){n - n / 3, cut};
        chunks[i] = (struct tagci_chunk){.type = type,
                                         .n = n,
                                         .in = in + at * size,
                                         .residual = residual + at * work,
                                         .residual_out = rest + at * work,
                                         .runs = runs[i],
                                         .nruns = 2,
                                         .all = i == 3,
                                         .value = value,
                                         .index = i == 2 ? TAGCI_INDEX_CODED : TAGCI_INDEX_AUTO,
                                         .seal = i % 2,
                                         .frame = guarded(tagci_frame_bound(type, value, n))};
    }
    run_encode(chunks, CHUNKS);
    uint32_t crc = 0;
    for (size_t i = 0, at = 0; i < CHUNKS; at += lengths[i++]) {
        const char *reason;
        frames[2 * i] = (struct tagci_decode){.n = lengths[i], .sum = sum + at * work, .first = 1};
        assert_int_equal(tagci_frame_read(chunks[i].frame, chunks[i].frame_bytes, type, lengths[i], i % 2,
                                          &frames[2 * i].frame, &reason),
                         0);
        frames[2 * i + 1] = frames[2 * i];
        frames[2 * i + 1].first = 0;
        crc = tagci_crc32c_plain(crc, chunks[i].frame, chunks[i].frame_bytes);
    }
    run_decode(frames, 2 * CHUNKS);
    run_finish(type, sum, all, 3, 1, out);
    crc = tagci_crc32c_plain(crc, rest, all * work);
    crc = tagci_crc32c_plain(crc, out, all * size);
    for (size_t i = 0; i < CHUNKS; i++)
        unguard(chunks[i].frame, tagci_frame_bound(type, value, lengths[i]));
    unguard(in, all * size);
    unguard(residual, all * work);
    unguard(rest, all * work);
    unguard(sum, all * work);
    unguard(out, all * size);
    return crc;
}

/* Sketches: geometries that are a band, hashed, and too small for all blocks to come out. */
static const struct {
    size_t entries, rows;
} sketches[] = {{300, 0}, {17000, 0}, {9001, 700}, {5, 0}, {0, 0}};
enum { RANKS = 3 };

static void add_cells(int wide, void *sum, const void *cells, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (wide)
            ((uint64_t *)sum)[i] += ((const uint64_t *)cells)[i];
        else
            ((uint32_t *)sum)[i] += ((const uint32_t *)cells)[i];
}

/* Everything that comes of the values of a few ranks. What decodes is also moved out and back. */
static uint32_t sketch_checksum(int wide, enum pattern pattern, size_t entries, size_t rows)
{
    enum tagci_type type = wide ? TAGCI_F64 : TAGCI_F32;
    size_t width = wide ? 8 : 4, groups = tagci_sketch_groups(entries), exact = 0;
    struct tagci_sketch s = {0};
    assert_int_equal(tagci_sketch_plan(&s, entries, rows), 0);
    size_t ints_bytes = s.blocks * TAGCI_SKETCH_LANES * width, cells_bytes = s.rows * TAGCI_SKETCH_LANES * width;
    char *values[RANKS], *out = guarded(entries * width), *ints = guarded(ints_bytes), *cells = guarded(cells_bytes);
    char *sum = memset(guarded(cells_bytes), 0, cells_bytes), *packed = guarded(ints_bytes);
    uint16_t *high = memset(guarded(2 * groups), 0, 2 * groups), *low = memset(guarded(2 * groups), 0, 2 * groups);
    uint16_t *high1 = guarded(2 * groups), *low1 = guarded(2 * groups);
    unsigned char *exceptional = guarded(groups);
    uint32_t *blocks = guarded(4 * s.blocks), crc = 0;
    for (int r = 0; r < RANKS; r++) {
        values[r] = guarded(entries * width);
        fill_input(type, pattern, (uint64_t)(21 + r), entries, values[r]);
        run_sketch_exponents(wide, values[r], entries, high1, low1);
        for (size_t i = 0; i < groups; i++) {
            high[i] = high1[i] > high[i] ? high1[i] : high[i];
            low[i] = low1[i] > low[i] ? low1[i] : low[i];
        }
    }
    crc = tagci_crc32c_plain(crc, high, 2 * groups);
    crc = tagci_crc32c_plain(crc, low, 2 * groups);
    tagci_sketch_exceptional(wide, RANKS, high, low, entries, exceptional);
    for (int r = 0; r < RANKS; r++) {
        run_sketch_encode(&s, wide, RANKS, values[r], high, exceptional, ints, cells);
        crc = tagci_crc32c_plain(crc, cells, cells_bytes);
        add_cells(wide, sum, cells, s.rows * TAGCI_SKETCH_LANES);
    }
    run_sketch_decode(&s, wide, RANKS, sum, high, exceptional, ints, out);
    crc = tagci_crc32c_plain(crc, out, entries * width);
    for (uint32_t b = 0; b < s.blocks; b++)
        if (s.undecoded[b] || exceptional[b * TAGCI_SKETCH_LANES / TAGCI_SKETCH_GROUP] || b % 5 == 1)
            blocks[exact++] = b;
    run_move_blocks(blocks, exact, entries, width, values[0], packed, 0);
    run_move_blocks(blocks, exact, entries, width, out, packed, 1);
    crc = tagci_crc32c_plain(crc, out, entries * width);
    for (int r = 0; r < RANKS; r++)
        unguard(values[r], entries * width);
    unguard(out, entries * width);
    unguard(ints, ints_bytes);
    unguard(cells, cells_bytes);
    unguard(sum, cells_bytes);
    unguard(packed, ints_bytes);
    unguard(high, 2 * groups);
    unguard(low, 2 * groups);
    unguard(high1, 2 * groups);
    unguard(low1, 2 * groups);
    unguard(exceptional, groups);
    unguard(blocks, 4 * s.blocks);
    tagci_sketch_release(&s);
    return crc;
}

static uint32_t sketches_checksum(int wide, enum pattern pattern)
{
    uint32_t crc = 0, one;
    for (size_t i = 0; i < sizeof sketches / sizeof *sketches; i++) {
        one = sketch_checksum(wide, pattern, sketches[i].entries, sketches[i].rows);
        crc = tagci_crc32c_plain(crc, &one, sizeof one);
    }
    return crc;
}

#ifndef GOLDEN_NONE
static void test_sketches(void **state)
{
    (void)state;
    for (int variant = 0; variant < variant_count(); variant++)
        for (int threads = 1; threads <= 7; threads += 6) {
            use_variant(variant, threads);
            for (int wide = 0; wide < 2; wide++)
                for (int pattern = 0; pattern < PATTERNS; pattern++) {
                    if ((threads > 1 && pattern != ODDITIES) || (slow && (pattern + wide) % 3))
                        continue;
                    uint32_t got = sketches_checksum(wide, pattern);
                    if (got != golden_sketches[wide][pattern])
                        fail_msg("%s, %d threads, %s, pattern %d: %08x, not %08x", variant_name(variant), threads,
                                 wide ? "double" : "float", pattern, got, golden_sketches[wide][pattern]);
                }
        }
}

static void test_golden(void **state)
{
    (void)state;
    for (int variant = 0; variant < variant_count(); variant++)
        for (int threads = 1; threads <= 7; threads += threads == 1 ? 1 : 5) {
            use_variant(variant, threads);
            for (int type = 0; type < TAGCI_TYPES; type++)
                for (int value = 0; value < TAGCI_VALUES; value++)
                    for (int pattern = 0; pattern < PATTERNS; pattern++) {
                        if (threads > 1 && pattern != ODDITIES) /* waiting costs time where cores are few */
                            continue;
                        uint32_t got = checksum(type, value, pattern);
                        if (got != golden[type][value][pattern])
                            fail_msg("%s, %d threads, %s as %s, pattern %d: %08x, not %08x", variant_name(variant),
                                     threads, tagci_type_name(type), tagci_value_name(value), pattern, got,
                                     golden[type][value][pattern]);
                    }
        }
}
#endif

static int print_table(void)
{
    tagcb_openmp_use("portable");
    puts("/* SPDX-License-Identifier: BSD-3-Clause\n"
         " * Copyright (c) the TAGC authors\n"
         " *\n"
         " * Made by test_golden --print; see there. */\n"
         "static const uint32_t golden[TAGCI_TYPES][TAGCI_VALUES][PATTERNS] = {");
    for (int type = 0; type < TAGCI_TYPES; type++)
        for (int value = 0; value < TAGCI_VALUES; value++) {
            printf("    [%d][%d] =\n        {", type, value);
            for (int pattern = 0; pattern < PATTERNS; pattern++)
                printf("%s0x%08x%s", pattern == 8 ? "\n         " : "", checksum(type, value, pattern),
                       pattern + 1 == PATTERNS ? ""
                       : pattern == 7          ? ","
                                               : ", ");
            puts("},");
        }
    puts("};\n"
         "static const uint32_t golden_sketches[2][PATTERNS] = {");
    for (int wide = 0; wide < 2; wide++) {
        printf("    {");
        for (int pattern = 0; pattern < PATTERNS; pattern++)
            printf("%s0x%08x%s", pattern == 9 ? "\n     " : "", sketches_checksum(wide, pattern),
                   pattern + 1 == PATTERNS ? ""
                   : pattern == 8          ? ","
                                           : ", ");
        puts("},");
    }
    puts("};");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--print"))
        return print_table();
#ifndef GOLDEN_NONE
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden), cmocka_unit_test(test_sketches)};
    if (tested->open)
        tested->open();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (tested->close)
        tested->close();
    return failed;
#else
    return 1;
#endif
}
