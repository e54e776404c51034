# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# An MPI test is one file, tests/mpi/NAME.c, one line here, and one or more lines in tests/mpi/testlist that say how it
# runs. MPI tests link against the inside of the library like unit tests; what is exported is tested in tests/abi and
# tests/install.

mpi_tests = \
    tests/mpi/aware \
    tests/mpi/bytes \
    tests/mpi/choice \
    tests/mpi/device \
    tests/mpi/devices \
    tests/mpi/errors \
    tests/mpi/executor \
    tests/mpi/feedback \
    tests/mpi/gather \
    tests/mpi/hierarchical \
    tests/mpi/large \
    tests/mpi/life \
    tests/mpi/many \
    tests/mpi/profile \
    tests/mpi/overlap \
    tests/mpi/reduce \
    tests/mpi/requests \
    tests/mpi/tensor

# What they share
check_LTLIBRARIES += tests/mpi/libcommon.la
tests_mpi_libcommon_la_SOURCES = \
    tests/mpi/common.h \
    tests/mpi/common.c \
    tests/mpi/memory.c \
    tests/mpi/memory.h \
    backends/fake/fake.c \
    backends/fake/fake.h \
    backends/fake/kernels.c \
    backends/fake/work.h

check_PROGRAMS += $(mpi_tests)
TESTS += tests/mpi/run-mpi-tests.tap
tests/mpi/run-mpi-tests.log: $(mpi_tests)
EXTRA_DIST += tests/mpi/run-mpi-tests.tap tests/mpi/testlist tests/mpi/other-mpis

# make check-mpi [ONLY=PATTERN]: the MPI tests alone, as plain text
.PHONY: check-mpi
check-mpi: $(check_PROGRAMS) $(check_LTLIBRARIES)
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(top_srcdir)/tests/mpi/run-mpi-tests.tap $(ONLY)

# A tool's view: it links as users do
tests_mpi_profile_SOURCES = tests/mpi/profile.c
tests_mpi_profile_LDADD = libtagc.la
