/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Arithmetic of sizes and offsets where 31, 32 and 63 bits end: shapes of vectors that are never there. */
#include "config.h"

#include <limits.h>
#include <stdint.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#include <stdlib.h>

#include "backends/openmp/openmp.h"
#include "coll/geometry.h"
#include "coll/mpi.h"
#include "core/lossless.h"
#include "core/lossless_round.h"
#include "unit.h"
#include "util/mem.h"

static const size_t edges[] = {(size_t)1 << 31, (size_t)1 << 32, (size_t)1 << 40, (size_t)1 << 62};

static void test_saturation(void **state)
{
    (void)state;
    for (size_t e = 0; e < sizeof edges / sizeof *edges; e++)
        for (size_t a = edges[e] - 2; a != edges[e] + 3; a++) {
            for (size_t b = 1; b <= 8; b++) { /* against arithmetic of 128 bits */
                unsigned __int128 product = (unsigned __int128)a * b, sum = (unsigned __int128)a + (SIZE_MAX / b);
                assert_true(tagci_mul(a, b) == (product > SIZE_MAX ? SIZE_MAX : (size_t)product));
                assert_true(tagci_mul(b, a) == tagci_mul(a, b));
                assert_true(tagci_add(a, SIZE_MAX / b) == (sum > SIZE_MAX ? SIZE_MAX : (size_t)sum));
            }
            size_t piece = tagci_op_piece(a, 4);
            assert_true(piece == SIZE_MAX ||
                        (piece % TAGCI_ALIGN == 0 && piece / 4 >= a && piece - tagci_mul(a, 4) < TAGCI_ALIGN));
            assert_true((piece == SIZE_MAX) == ((unsigned __int128)a * 4 > SIZE_MAX - TAGCI_ALIGN));
        }
    assert_true(tagci_op_piece(SIZE_MAX, 1) == SIZE_MAX);
    assert_true(tagci_op_piece(SIZE_MAX / 2, 8) == SIZE_MAX);
}

/* The chunks of all parts are the vector, in order and without a gap: looked at where they begin and end. */
static void test_chunks(void **state)
{
    (void)state;
    for (size_t e = 0; e < sizeof edges / sizeof *edges; e++) {
        size_t offset[5] = {0, 5, edges[e] - 1, edges[e] + 70000, 2 * edges[e] - 1}, first[5] = {0};
        struct tagci_geometry g = {offset[4], 4, offset, 65536, first};
        for (int o = 0; o < 4; o++)
            first[o + 1] = first[o] + (offset[o + 1] - offset[o] + g.chunk - 1) / g.chunk;
        size_t words = 0;
        for (int o = 0; o < 4; o++) {
            size_t begin, n = tagci_part(&g, o), chunks = tagci_part_chunks(&g, o), length;
            assert_true(tagci_part_words(&g, o) == words);
            words += (n + 63) / 64;
            length = tagci_part_chunk(&g, o, 0, &begin);
            assert_true(begin == offset[o] && length == (n < g.chunk ? n : g.chunk));
            length = tagci_part_chunk(&g, o, chunks - 1, &begin);
            assert_true(begin + length == offset[o + 1] && length > 0 && length <= g.chunk);
            if (chunks > 1) {
                tagci_part_chunk(&g, o, chunks - 2, &begin);
                assert_true(begin + g.chunk + length == offset[o + 1]);
            }
        }
    }
}

/* Counts are ints as long as all of their offsets are, and what comes out is what went in. */
static void test_counts(void **state)
{
    (void)state;
    static const struct {
        size_t offset[3];
        MPI_Aint displ[2];
        int large;
    } cases[] = {{{0, 5, INT_MAX}, {0, 5}, 0},
                 {{0, 5, (size_t)INT_MAX + 1}, {0, 5}, 1},
                 {{0, 5, 9}, {INT_MAX, 0}, 0},
                 {{0, 5, 9}, {(MPI_Aint)INT_MAX + 1, 0}, 1},
                 {{0, 5, 9}, {0, (MPI_Aint)INT_MIN - 1}, 1},
                 {{0, (size_t)1 << 33, (size_t)1 << 34}, {(MPI_Aint)1 << 40, 0}, 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int places = 0; places < 2; places++) {
            MPI_Count counts[2];
            MPI_Aint displs[2];
            struct tagci_counts c = {0, 2, counts, displs};
            int large = cases[k].offset[2] > INT_MAX || (places && cases[k].large);
            tagci_counts_set_places(&c, cases[k].offset, places ? cases[k].displ : NULL);
            assert_int_equal(c.large, large);
            for (int i = 0; i < 2; i++) {
                size_t count = large ? (size_t)counts[i] : (size_t)((int *)counts)[i];
                MPI_Aint displ = large ? displs[i] : ((int *)displs)[i];
                assert_true(count == cases[k].offset[i + 1] - cases[k].offset[i]);
                assert_true(displ == (places ? cases[k].displ[i] : (MPI_Aint)cases[k].offset[i]));
            }
        }
}

/* Coded bytes have a bound that is no less than the elements take, by at most one in a hundred and a block's words, and
 * that never wraps. */
static void test_bounds(void **state)
{
    (void)state;
    for (int type = 0; type < TAGCI_TYPES; type++) {
        size_t width = tagci_type_size((enum tagci_type)type), before = 0;
        for (size_t e = 0; e < sizeof edges / sizeof *edges; e++)
            for (size_t n = edges[e] - 2; n < edges[e] + 3; n++) {
                size_t bytes = tagci_mul(n, width), bound = tagci_lossless_bound((enum tagci_type)type, n);
                assert_true(bound >= bytes && bound >= before);
                assert_true(bound == SIZE_MAX || bound - bytes <= bytes / 100 + 4096);
                before = bound;
            }
    }
    for (int form = TAGCI_ROUND_BFLOAT16; form <= TAGCI_ROUND_INT8; form++) {
        size_t bound_before = 0, state_before = 0;
        for (size_t e = 0; e < sizeof edges / sizeof *edges; e++)
            for (size_t n = edges[e] - 2; n < edges[e] + 3; n++) {
                size_t bound = tagci_round_bound((enum tagci_round)form, n);
                size_t codes = tagci_round_state((enum tagci_round)form, n);
                assert_true(bound >= bound_before && codes >= state_before && bound >= codes && codes >= n);
                bound_before = bound;
                state_before = codes;
            }
    }
}

/* Ranks that may use the same processors share them, unless somebody has said how many threads there are to be. */
static void test_threads(void **state)
{
    (void)state;
#ifdef _OPENMP
    const int there = omp_get_num_procs(), said = getenv("OMP_NUM_THREADS") != NULL;
    omp_set_num_threads(there);
    assert_int_equal(tagcb_threads(1 << 20), there);
    tagcb_openmp_shared_by(2);
    assert_int_equal(tagcb_threads(1 << 20), said ? there : there > 2 ? there / 2 : 1);
    tagcb_openmp_shared_by(1); /* another communicator, of fewer: the same processors are still shared */
    assert_int_equal(tagcb_threads(1 << 20), said ? there : there > 2 ? there / 2 : 1);
    tagcb_openmp_shared_by(1000000);
    assert_int_equal(tagcb_threads(1 << 20), said ? there : 1);
    if (there > 1) {
        omp_set_num_threads(there - 1); /* the program says it */
        assert_int_equal(tagcb_threads(1 << 20), there - 1);
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saturation), cmocka_unit_test(test_chunks),  cmocka_unit_test(test_counts),
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
