# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# A unit test is one file, tests/unit/test_NAME.c, and one line here. It links against the inside of the library.

unit_tests =
# What they share
unit_files =

if HAVE_CMOCKA
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
EXTRA_DIST += $(unit_files)
