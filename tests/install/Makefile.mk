# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors

EXTRA_DIST += tests/install/check-install

dist_check_SCRIPTS += tests/install/check-nvcc
TESTS += tests/install/check-nvcc

# make installcheck, after make install
installcheck-local:
	$(AM_V_at)$(AM_TESTS_ENVIRONMENT) prefix='$(DESTDIR)$(prefix)' libdir='$(DESTDIR)$(libdir)' \
	bindir='$(DESTDIR)$(bindir)' mandir='$(DESTDIR)$(mandir)' \
	shared='$(enable_shared)' static='$(enable_static)' sanitizers='$(enable_sanitizers)' tools='$(enable_tools)' \
	$(SHELL) $(top_srcdir)/tests/install/check-install
