# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# The trainer of examples/: the same sources, compiled for float and for double. Like any user's program it knows only what the
# library exports. Comes after examples/Makefile.mk.

train_tests = tests/train/test_train tests/train/test_train_double
check_PROGRAMS += $(train_tests)

tests_train_test_train_SOURCES = tests/train/test_train.c tests/train/reference.h
tests_train_test_train_CPPFLAGS = $(AM_CPPFLAGS) $(CBLAS_CFLAGS)
tests_train_test_train_CFLAGS = $(train_CFLAGS)
tests_train_test_train_LDADD = libtagc.la $(CBLAS_LIBS) -lm

tests_train_test_train_double_SOURCES = $(tests_train_test_train_SOURCES)
tests_train_test_train_double_CPPFLAGS = $(tests_train_test_train_CPPFLAGS) -DTRAIN_DOUBLE
tests_train_test_train_double_CFLAGS = $(train_CFLAGS)
tests_train_test_train_double_LDADD = $(tests_train_test_train_LDADD)

TESTS += tests/train/run-train-tests.tap
tests/train/run-train-tests.log: $(train_tests) examples/train_gpt$(EXEEXT)
EXTRA_DIST += tests/train/run-train-tests.tap tests/train/long.sh tests/train/reference.py

# make check-train: these tests alone, as plain text
.PHONY: check-train
check-train: $(train_tests) $(check_LTLIBRARIES)
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(top_srcdir)/tests/train/run-train-tests.tap
