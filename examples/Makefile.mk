# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors

noinst_PROGRAMS += examples/average examples/deposit examples/train_gpt
examples_average_SOURCES = examples/average.c
examples_average_LDADD = libtagc.la
examples_deposit_SOURCES = examples/deposit.c
examples_deposit_LDADD = libtagc.la

EXTRA_DIST += examples/deposit.f90
if FORTRAN_MPI_F08
noinst_PROGRAMS += examples/deposit_f08
examples_deposit_f08_SOURCES = examples/deposit.f90
examples_deposit_f08_FCFLAGS = $(FC_MODINC)src/fortran
examples_deposit_f08_LDFLAGS = $(FORTRAN_LDFLAGS) $(AM_LDFLAGS)
examples_deposit_f08_LDADD = libtagc_f08.la libtagc.la
examples/deposit_f08-deposit.$(OBJEXT): src/fortran/libtagc_f08_la-tagc_f08.lo
endif

# Without these two gcc does not vectorise loops with square roots and choices in them. No result depends on them.
train_CFLAGS = $(AM_CFLAGS) -fno-math-errno -fno-trapping-math
examples_train_gpt_SOURCES = examples/train_gpt.c examples/gpt_model.c examples/gpt_model.h
examples_train_gpt_CPPFLAGS = $(AM_CPPFLAGS) $(CBLAS_CFLAGS)
examples_train_gpt_CFLAGS = $(train_CFLAGS)
examples_train_gpt_LDADD = libtagc.la $(CBLAS_LIBS) -lm
