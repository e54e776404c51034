# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors

# One convenience library for each instruction set: its file alone is compiled with its flags.
tagcb_libs =

tagcb_libs += libtagcb_openmp.la
libtagcb_openmp_la_SOURCES = \
    backends/openmp/kernels.h \
    backends/openmp/lanes_avx2.h \
    backends/openmp/lanes_avx512.h \
    backends/openmp/openmp.c \
    backends/openmp/openmp.h \
    backends/openmp/select.c \
    backends/openmp/tables.h \
    backends/openmp/template.h \
    backends/openmp/template_convert.h \
    backends/openmp/template_decode.h \
    backends/openmp/template_encode.h \
    backends/openmp/template_place.h \
    backends/openmp/template_sparsify.h \
    backends/openmp/template_work.h \
    backends/openmp/variants.c
libtagcb_openmp_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS) $(OPENMP_CFLAGS)

tagcb_libs += libtagcb_openmp_portable.la
libtagcb_openmp_portable_la_SOURCES = backends/openmp/kernels_portable.c
libtagcb_openmp_portable_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS) $(OPENMP_CFLAGS)

if HAVE_AVX2
tagcb_libs += libtagcb_openmp_avx2.la
endif
libtagcb_openmp_avx2_la_SOURCES = backends/openmp/kernels_avx2.c
libtagcb_openmp_avx2_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS) $(OPENMP_CFLAGS) $(AVX2_CFLAGS)

if HAVE_AVX512
tagcb_libs += libtagcb_openmp_avx512.la
endif
libtagcb_openmp_avx512_la_SOURCES = backends/openmp/kernels_avx512.c
libtagcb_openmp_avx512_la_CFLAGS = $(TAGC_CFLAGS) $(VISIBILITY_CFLAGS) $(OPENMP_CFLAGS) $(AVX512_CFLAGS)

noinst_LTLIBRARIES += $(tagcb_libs)
