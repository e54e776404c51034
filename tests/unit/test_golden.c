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

#ifndef GOLDEN_NONE
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
    puts("};");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--print"))
        return print_table();
#ifndef GOLDEN_NONE
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden)};
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
