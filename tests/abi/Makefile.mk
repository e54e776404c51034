# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors

abi_checks = \
    tests/abi/check-core \
    tests/abi/check-header \
    tests/abi/check-man \
    tests/abi/check-symbols \
    tests/abi/check-version
dist_check_SCRIPTS += $(abi_checks)
TESTS += $(abi_checks)
EXTRA_DIST += tests/abi/symbols
