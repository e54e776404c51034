/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What the sub-commands that measure collectives share: the options, one collective on one vector, its data. */
#ifndef TAGC_TOOLS_BENCH_MPI_H
#define TAGC_TOOLS_BENCH_MPI_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/op.h"
#include "tagc.h"

enum bench_kind { BENCH_GAUSS, BENCH_LAPLACE, BENCH_REAL };
enum { BENCH_FILES = 16 };

struct bench_options {
    enum tagci_collective what;
    const char *name; /* of the sub-command */
    enum tagci_type type;
    size_t from, to; /* bytes of the whole vector; 0: the default */
    int pairs, warmup;
    int calls; /* in a row, in a run; 0: as many as take two milliseconds */
    int persistent, in_place, no_tensor, alone, verify, unchecked, csv;
    enum bench_kind kind;
    const char *file[BENCH_FILES]; /* of real data: "rank0" in a name becomes the rank */
    int files;
    const char *plot, *interface;
    MPI_Info info; /* settings */
};

/* One collective on one vector. */
struct bench_case {
    const struct bench_options *o;
    int rank, ranks;
    size_t n, own;        /* elements of the whole vector, and of this rank's part */
    size_t n_in, n_out;   /* elements that a call reads and writes here */
    int *counts, *displs; /* of the parts */
    MPI_Datatype datatype;
    MPI_Op sum; /* MPI's side: of 16-bit types an operation of ours, as MPI has none */
    size_t width;
    /* The input takes turns: `states` vectors one after the other in `data`, or windows that slide over n_in + slack. */
    char *data;
    int states;
    size_t slack;
    char *out, *fixed; /* fixed: where a persistent operation reads */
    TAGC_Tensor tensor;
    TAGC_Request request;
};

/* Memory and data for n elements (a block form takes the next multiple of ranks). Returns 0, or -1 after it has said why;
 * the same on all ranks. */
int bench_case_make(struct bench_case *b, const struct bench_options *o, size_t n);
void bench_case_free(struct bench_case *b);
/* Elements in a file of real data; 0: there is none. */
size_t bench_file_elements(const struct bench_options *o, int rank);

/* Input of call i; in place it is copied to where the call expects it. */
const void *bench_input(const struct bench_case *b, int i);
void bench_prepare(struct bench_case *b, int i);
/* The call itself: MPI's, or TAGC's in the form that the options say. An error ends the program. */
void bench_call_mpi(struct bench_case *b, int i);
void bench_call_tagc(struct bench_case *b, int i);

/* One call on data i, judged: *error is the distance of the result from the sum in double precision (of a gather: from
 * what was sent), relative to its length. The verdict, the same on all ranks: NULL, or what is wrong. It asks that result
 * and change of residuals add up to the inputs, to a few roundings; of a gather without loss, that every bit is MPI's. */
const char *bench_check(struct bench_case *b, int i, double *error);

/* Ends the program on all ranks with TAGC's message, unless code is MPI_SUCCESS. */
void bench_ok(int code, const char *what);

static inline double bench_stat(TAGC_Tensor t, int stat)
{
    double value = 0;
    TAGC_Get_stat(t, stat, &value);
    return value;
}

#endif
