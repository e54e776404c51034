# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors

# The compressor without MPI
noinst_LTLIBRARIES += libtagc_core.la
libtagc_core_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS)
libtagc_core_la_SOURCES = \
    @core@

# The rest of the library
libtagc_files = \
    @rest@

if BUILD_TOOLS
bin_PROGRAMS += tagc_info
endif
tagc_info_SOURCES = src/tools/tagc_info.c
tagc_info_LDADD = libtagc_all.la
