# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors

# Preloaded under MPI tests that run more ranks than there are cores; -rpath makes libtool build a loadable module.
if ENABLE_SHARED
check_LTLIBRARIES += tests/yield.la
endif
tests_yield_la_SOURCES = tests/yield.c
tests_yield_la_CFLAGS = -std=gnu11 -Wall -Wextra
tests_yield_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_yield_la_LIBADD =

EXTRA_DIST += tests/check-format tests/setup.sh tests/run-one tests/to-file tests/lsan.supp tests/valgrind.supp

# Tools
dist_check_SCRIPTS += tests/tools/check-info tests/tools/check-modules tests/tools/check-bench
TESTS += tests/tools/check-info tests/tools/check-modules tests/tools/check-bench

# A network inside the machine
dist_check_SCRIPTS += tests/netlab/check-netlab
TESTS += tests/netlab/check-netlab
EXTRA_DIST += tests/netlab/netlab tests/netlab/shim.c tests/netlab/targets tests/netlab/simulate tests/netlab/scale tests/netlab/blocking.h tests/netlab/compare
