# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# Each is a libFuzzer target with a main() of its own that runs a fixed set of damaged inputs: that is the test here.

fuzz_tests = \
    tests/fuzz/fuzz_frame \
    tests/fuzz/fuzz_lossless

check_PROGRAMS += $(fuzz_tests)
TESTS += $(fuzz_tests)
