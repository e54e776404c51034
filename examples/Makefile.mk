# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors

noinst_PROGRAMS += examples/average examples/train_gpt
examples_average_SOURCES = examples/average.c
examples_average_LDADD = libtagc.la

# Without these two gcc does not vectorise loops with square roots and choices in them. No result depends on them.
train_CFLAGS = $(AM_CFLAGS) -fno-math-errno -fno-trapping-math
examples_train_gpt_SOURCES = examples/train_gpt.c
examples_train_gpt_CPPFLAGS = $(AM_CPPFLAGS) $(CBLAS_CFLAGS)
examples_train_gpt_CFLAGS = $(train_CFLAGS)
examples_train_gpt_LDADD = libtagc.la $(CBLAS_LIBS) -lm
