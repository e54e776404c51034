# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# The Fortran module, a library of its own: whoever links C programs needs no Fortran library.

fortran_made = src/fortran/tagc_f08.F90 src/fortran/shims.c
fortran_sources = \
    src/fortran/ask_f08.f90 \
    src/fortran/ask_mpi.f90 \
    src/fortran/ask_mpif_h.f90 \
    src/fortran/buffer.c \
    src/fortran/fortran.h \
    src/fortran/strided.h

src/fortran/tagc_f08.F90: $(interfaces_from) src/fortran/module.in
	$(AM_V_GEN)$(interfaces_awk) -v want=module -v skeleton=$(top_srcdir)/src/fortran/module.in \
	$(top_srcdir)/include/tagc.h >$@.new && mv -f $@.new $@
src/fortran/shims.c: $(interfaces_from)
	$(AM_V_GEN)$(interfaces_awk) -v want=shims $(top_srcdir)/include/tagc.h >$@.new && mv -f $@.new $@

# The sources are installed in any case: a module file serves one compiler only
fortransrcdir = $(pkgdatadir)/fortran
dist_fortransrc_DATA = $(fortran_made) $(fortran_sources)
EXTRA_DIST += src/fortran/module.in
CLEANFILES += src/fortran/tagc_f08.F90.new src/fortran/shims.c.new
DISTCLEANFILES += $(fortran_made)

if BUILD_FORTRAN
lib_LTLIBRARIES += libtagc_f08.la
pkgconfig_DATA += tagc_f08.pc
libtagc_f08_la_SOURCES = $(fortran_made) src/fortran/buffer.c src/fortran/fortran.h src/fortran/strided.h
if FORTRAN_MPI_F08
libtagc_f08_la_SOURCES += src/fortran/ask_f08.f90
endif
if FORTRAN_MPI_MOD
libtagc_f08_la_SOURCES += src/fortran/ask_mpi.f90
endif
if FORTRAN_MPIF_H
libtagc_f08_la_SOURCES += src/fortran/ask_mpif_h.f90
endif
libtagc_f08_la_CPPFLAGS = $(AM_CPPFLAGS) $(FORTRAN_CPPFLAGS)
libtagc_f08_la_CFLAGS = $(TAGC_CFLAGS) $(FORTRAN_CFLAGS)
libtagc_f08_la_FCFLAGS = $(FC_MODOUT)src/fortran
libtagc_f08_la_LDFLAGS = $(FORTRAN_LDFLAGS) $(TAGC_LDFLAGS) -no-undefined -version-info $(TAGC_LT_VERSION)
libtagc_f08_la_LIBADD = libtagc.la

nodist_mod_DATA = src/fortran/tagc_f08.mod
# The module file comes with the object file
src/fortran/tagc_f08.mod: src/fortran/libtagc_f08_la-tagc_f08.lo
	$(AM_V_at)test -f $@ || { rm -f $< && $(MAKE) $(AM_MAKEFLAGS) $<; }
CLEANFILES += src/fortran/tagc_f08.mod
endif
