# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# A unit test is one file, tests/unit/test_NAME.c, and one line here. It links against the inside of the library.

unit_tests = \
    tests/unit/test_blocks \
    tests/unit/test_crc \
    tests/unit/test_error \
    tests/unit/test_frame \
    tests/unit/test_golden \
    tests/unit/test_half \
    tests/unit/test_kernels \
    tests/unit/test_layers \
    tests/unit/test_lossless \
    tests/unit/test_mem \
    tests/unit/test_settings \
    tests/unit/test_sizes \
    tests/unit/test_sketch \
    tests/unit/test_value
# What they share
unit_files = \
    tests/unit/golden.h \
    tests/unit/lossless_golden.h \
    tests/unit/reference.h \
    tests/unit/simde_avx512.h \
    tests/unit/unit.h \
    tests/unit/variants.h

# It makes requests, and has no operations that could be put on other memory (tests/mpi/memory.c)
tests_unit_test_error_LDADD = libtagc_all.la $(CMOCKA_LIBS)

tests_unit_test_sizes_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)

# The AVX-512 kernels in plain C, so that they are tested on every machine
if HAVE_SIMDE
unit_tests += tests/unit/test_golden_avx512 tests/unit/test_kernels_avx512
endif
tests_unit_test_golden_avx512_SOURCES = tests/unit/test_golden.c tests/unit/kernels_simde.c
tests_unit_test_golden_avx512_CPPFLAGS = $(AM_CPPFLAGS) -DTAGC_TEST_SIMDE
tests_unit_test_golden_avx512_CFLAGS = $(AM_CFLAGS) -Wno-psabi
tests_unit_test_kernels_avx512_SOURCES = tests/unit/test_kernels.c tests/unit/kernels_simde.c
tests_unit_test_kernels_avx512_CPPFLAGS = $(AM_CPPFLAGS) -DTAGC_TEST_SIMDE
tests_unit_test_kernels_avx512_CFLAGS = $(AM_CFLAGS) -Wno-psabi

if HAVE_CMOCKA
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
EXTRA_DIST += $(unit_files)

# make check-valgrind: the unit tests once more, under valgrind; not those that emulate AVX-512, which take minutes
valgrind_command = valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
	--suppressions=$(abs_top_srcdir)/tests/valgrind.supp
.PHONY: check-valgrind
check-valgrind: $(check_PROGRAMS)
	$(AM_V_at)TAGC_TEST_WRAPPER='$(valgrind_command)' TAGC_TEST_TIMESCALE=4 OMP_NUM_THREADS=2 \
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS="`echo '$(unit_tests)' | sed 's/[^ ]*_avx512//g'`" TEST_SUITE_LOG=valgrind.log
