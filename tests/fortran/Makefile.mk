# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# A Fortran test is one file, one line here and one or more lines in tests/fortran/testlist. Like any user's program it
# knows only what is installed.

EXTRA_DIST += tests/fortran/run-fortran-tests.tap tests/fortran/testlist

if BUILD_FORTRAN
fortran_tests =
if FORTRAN_MPI_F08
fortran_tests += tests/fortran/forms_f08 tests/fortran/rest_f08
endif
if FORTRAN_MPI_MOD
fortran_tests += tests/fortran/handles_mpi
endif
if FORTRAN_MPIF_H
fortran_tests += tests/fortran/in_place_mpif_h
endif
check_PROGRAMS += $(fortran_tests)
fortran_test_flags = $(FC_MODINC)src/fortran $(FC_MODINC)tests/fortran $(FC_MODOUT)tests/fortran
fortran_test_libs = libtagc_f08.la libtagc.la
check_LTLIBRARIES += tests/fortran/libchecks.la
tests_fortran_libchecks_la_SOURCES = tests/fortran/checks.f90
tests_fortran_libchecks_la_FCFLAGS = $(fortran_test_flags)
tests_fortran_libchecks_la_LIBADD =
tests_fortran_forms_f08_SOURCES = tests/fortran/forms_f08.f90
tests_fortran_forms_f08_FCFLAGS = $(fortran_test_flags)
tests_fortran_forms_f08_LDFLAGS = $(FORTRAN_LDFLAGS) $(AM_LDFLAGS)
tests_fortran_forms_f08_LDADD = tests/fortran/libchecks.la $(fortran_test_libs)
tests_fortran_rest_f08_SOURCES = tests/fortran/rest_f08.f90
tests_fortran_rest_f08_FCFLAGS = $(fortran_test_flags)
tests_fortran_rest_f08_LDFLAGS = $(FORTRAN_LDFLAGS) $(AM_LDFLAGS)
tests_fortran_rest_f08_LDADD = tests/fortran/libchecks.la $(fortran_test_libs)
tests_fortran_handles_mpi_SOURCES = tests/fortran/handles_mpi.f90
tests_fortran_handles_mpi_FCFLAGS = $(fortran_test_flags)
tests_fortran_handles_mpi_LDFLAGS = $(FORTRAN_LDFLAGS) $(AM_LDFLAGS)
tests_fortran_handles_mpi_LDADD = tests/fortran/libchecks.la $(fortran_test_libs)
tests_fortran_in_place_mpif_h_SOURCES = tests/fortran/in_place_mpif_h.f90
tests_fortran_in_place_mpif_h_FCFLAGS = $(fortran_test_flags)
tests_fortran_in_place_mpif_h_LDFLAGS = $(FORTRAN_LDFLAGS) $(AM_LDFLAGS)
tests_fortran_in_place_mpif_h_LDADD = tests/fortran/libchecks.la $(fortran_test_libs)

# Module files come first
fortran_modules = src/fortran/libtagc_f08_la-tagc_f08.lo tests/fortran/libchecks_la-checks.lo
tests/fortran/forms_f08-forms_f08.$(OBJEXT): $(fortran_modules)
tests/fortran/rest_f08-rest_f08.$(OBJEXT): $(fortran_modules)
tests/fortran/handles_mpi-handles_mpi.$(OBJEXT): $(fortran_modules)
tests/fortran/in_place_mpif_h-in_place_mpif_h.$(OBJEXT): $(fortran_modules)
CLEANFILES += tests/fortran/checks.mod

TESTS += tests/fortran/run-fortran-tests.tap tests/fortran/check-interfaces
tests/fortran/run-fortran-tests.log: $(fortran_tests)
endif

# make check-fortran: these tests alone, as plain text
.PHONY: check-fortran
check-fortran: $(fortran_tests) $(check_LTLIBRARIES)
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(top_srcdir)/tests/fortran/run-fortran-tests.tap $(ONLY)
dist_check_SCRIPTS += tests/fortran/check-interfaces
