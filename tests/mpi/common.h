/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What the MPI tests share. A test is a plain program: t_start, then steps with checks in them, then t_end. A check that
 * fails is noted and the rank goes on, so that no other rank waits for it; t_agree and t_end make one verdict of all
 * ranks' notes, and t_end's is the exit status of every rank. */
#ifndef TAGC_TESTS_MPI_COMMON_H
#define TAGC_TESTS_MPI_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tagc.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- Run and verdict ---- */

extern int t_rank, t_size; /* in MPI_COMM_WORLD */

/* Initializes MPI. A step that lasts longer than `seconds` ends the program with the step's name. */
void t_start(int *argc, char ***argv, int seconds);
/* What the checks from here on are about; shown with failures. */
void t_step(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Noted on this rank; the first few are printed. */
void t_fail(const char *file, int line, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            t_fail(__FILE__, __LINE__, #condition, " " __VA_ARGS__);                                                   \
    } while (0)
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        int ok_code_ = (call);                                                                                         \
        if (ok_code_)                                                                                                  \
            t_fail(__FILE__, __LINE__, #call, " %s", t_error_text(ok_code_));                                          \
    } while (0)
const char *t_error_text(int code); /* in a static buffer */
int t_class(int code);              /* by TAGC_Error_class */
/* Collective over the world: 1 if no rank has failed since the last call. */
int t_agree(void);
/* Agrees, prints the verdict on rank 0, finalizes. The exit status. */
int t_end(void);
int t_failed_here(void); /* checks that have failed on this rank so far */

/* ---- Communicators ---- */

enum { T_WORLD, T_DUP, T_REVERSED, T_PARITY, T_SELF, T_COMMS };
extern const char *const t_comm_names[T_COMMS];
MPI_Comm t_comm(int which); /* made at first use by all ranks; freed by t_end */

/* ---- Element types ---- */

enum { T_F32, T_F64, T_F16, T_BF16, T_TYPES };
extern const char *const t_type_names[T_TYPES];
MPI_Datatype t_datatype(int type);
size_t t_size_of(int type);
/* Values as doubles; setting rounds to nearest even, once. */
double t_get(int type, const void *values, size_t i);
void t_set(int type, void *values, size_t i, double x);
double t_round(int type, double x); /* to the type and back */
/* Half a unit in the last place of x, in the type (result: 1) or its work type (0). */
double t_half_unit(int type, int result, double x);
/* What the sum over ranks should give: rounded to the work type, divided for an average, rounded to the type. */
double t_finish(int type, int average, int ranks, double sum);

/* ---- Data: the same number for the same (kind, type, rank, step, i), and different on each rank ---- */

enum {
    T_INTEGERS, /* small, three in ten are not zero: all sums are exact in every type */
    T_GAUSSIAN,
    T_LAPLACE,   /* with a few far outliers */
    T_TIES,      /* a handful of magnitudes */
    T_SUBNORMAL, /* below the type's smallest normal number */
    T_NONFINITE, /* gaussian with some NaN and Inf */
    T_SCALED,    /* times 65536 (float16: 16) */
    T_NARROW,    /* between 1e-3 and 2e-3 */
    T_BESIDE,    /* 1 beside 1e8 (float16: 3e4) */
    T_ZEROS,     /* nothing else */
    T_KINDS
};
extern const char *const t_kind_names[T_KINDS];
double t_value(int kind, int type, int rank, int step, size_t i);
double t_uniform(uint64_t stream, uint64_t i); /* in (0, 1) */
void t_fill(int kind, int type, int rank, int step, void *values, size_t n);

/* ---- Buffers between guard words ---- */

struct t_buffer {
    unsigned char *at; /* bytes of them, poisoned at first; NULL where 0 bytes were asked for */
    size_t bytes;
    unsigned char *block;
};
void t_buffer_make(struct t_buffer *b, size_t bytes);
void t_buffer_poison(struct t_buffer *b, size_t from);          /* from here to the end */
size_t t_buffer_spoiled(const struct t_buffer *b, size_t from); /* bytes from here on that are no poison any more */
int t_buffer_guarded(const struct t_buffer *b);                 /* the guard words are untouched */
void t_buffer_free(struct t_buffer *b);

/* ---- Forms of the reductions ---- */

enum { T_REDUCE_SCATTER, T_REDUCE_SCATTER_BLOCK, T_ALLREDUCE, T_FORMS };
extern const char *const t_form_names[T_FORMS];

/* One shape of call. n is what was asked for, or a little less where the form wants a multiple. */
struct t_job {
    int form, type, average;
    int drive; /* blocking, nonblocking, persistent; the same with _c: in turn from job to job */
    MPI_Comm comm;
    int rank, size;
    int *counts;    /* of every rank's part; uneven and with zeros for T_REDUCE_SCATTER */
    size_t n;       /* whole vector */
    size_t at, own; /* of the result: where it starts in the vector, its length */
};
void t_job_make(struct t_job *job, int form, int type, int average, MPI_Comm comm, size_t n);
void t_job_free(struct t_job *job);
/* The call, on TAGC or, for sums of float and double, on MPI. send may be MPI_IN_PLACE. */
int t_call(const struct t_job *job, const void *send, void *recv, TAGC_Tensor tensor);
int t_call_mpi(const struct t_job *job, const void *send, void *recv);

/* ---- Tensors ---- */

/* settings: "name=value name=value", without tagc_. Aborts the program if it cannot be made. */
TAGC_Tensor t_tensor(MPI_Comm comm, const char *name, size_t n, int type, const char *settings);
MPI_Info t_info(const char *settings);
double t_stat(TAGC_Tensor tensor, int stat);
/* This rank's residual, n values. */
void t_residual(TAGC_Tensor tensor, int type, size_t n, double *out);

#endif
