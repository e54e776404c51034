/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The model that train_gpt trains: a GPT with pre-norm blocks and no biases, forward and backward, on one rank. Of MPI it
 * knows only how to stop. Shapes in comments use B sequences of T tokens, C channels in H heads, V symbols in the
 * vocabulary and L blocks. All matrices are row-major; a weight is (outputs, inputs).
 *
 * Compiled with -DTRAIN_DOUBLE it computes in double throughout: that is what the gradient checks use. */
#ifndef GPT_MODEL_H
#define GPT_MODEL_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef TRAIN_DOUBLE
typedef double real;
#define MPI_REAL_C MPI_DOUBLE
#else
typedef float real;
#define MPI_REAL_C MPI_FLOAT
#endif

#ifdef __GNUC__
#define LEAVES __attribute__((noreturn, format(printf, 1, 2)))
#else
#define LEAVES
#endif

/* One rank has met trouble of its own: stop them all. */
LEAVES void die(const char *format, ...);
/* All ranks see the same mistake of the user: say it once and leave in good order. */
LEAVES void refuse(const char *format, ...);

/* Aligned for vector loads, and zeroed, so that no run depends on what was there before. */
void *allocate(size_t count, size_t size);

/* Random numbers: a counter through a mixing function, so that 8 bytes are the whole state */
uint64_t random_bits(uint64_t *state);
double random_uniform(uint64_t *state); /* in [0, 1) */

/* Of OpenBLAS, which would use all cores in every rank; 0: what OPENBLAS_NUM_THREADS says, or 1 */
void set_threads(int threads);

typedef struct {
    real *ln_1;        /* (C) */
    real *attn_c_attn; /* (3C, C) */
    real *attn_c_proj; /* (C, C) */
    real *ln_2;        /* (C) */
    real *mlp_c_fc;    /* (4C, C) */
    real *mlp_c_proj;  /* (C, 4C) */
} Block;

/* All parameters lie in one buffer, block after block; the gradients in another of the same form. */
typedef struct {
    real *flat;
    real *wte;  /* (V, C), also the last matrix: logits = x wte^T */
    real *wpe;  /* (T, C) */
    Block *h;   /* L of them */
    real *ln_f; /* (C) */
} Weights;

/* What a reduction, an optimizer or a checkpoint needs to know of a parameter */
typedef struct {
    char name[48]; /* "h.0.attn.c_attn.weight" */
    size_t offset; /* in a flat buffer */
    int size;
    int decays;    /* matrices do, norms do not */
    double spread; /* of the first weights; 0: they are ones */
} Param;

/* What the way back needs from the way there, per block */
typedef struct {
    real *x;                      /* (n, C) residual stream on entry */
    real *ln_1, *mean_1, *rstd_1; /* (n, C) (n) (n) */
    real *qkv;                    /* (n, 3C) */
    real *p;                      /* (B, H, T, T) */
    real *y;                      /* (n, C) */
    real *mid;                    /* (n, C) residual stream between attention and MLP */
    real *ln_2, *mean_2, *rstd_2; /* (n, C) (n) (n) */
    real *fc;                     /* (n, 4C), after the GELU: its derivative */
    real *act;                    /* (n, 4C) */
} Trace;

/* What the owner of a model does while it computes; what is NULL is not called. Parameters come in groups, in the order of
 * their use: 0 is the embeddings, 1 to L are the blocks, L + 1 is the last norm. */
typedef struct {
    void *who;
    void (*weights_wanted)(void *who, int group);  /* the way there is about to use them */
    void (*gradients_ready)(void *who, int group); /* the way back has made them */
    void (*meanwhile)(void *who);                  /* now and then in between */
} Hooks;

typedef struct {
    int L, H, C, V;
    int T, B; /* the most that there is room for */
    int params;
    Param *param;
    size_t size; /* of all parameters */
    Weights w, grad;
    Trace *trace;                            /* L */
    real *x, *ln_f, *mean_f, *rstd_f;        /* after the last block: (n, C) (n, C) (n) (n) */
    real *logits;                            /* (n, V) */
    real *dx, *dn, *dwide, *dqkv, *dp, *hat; /* on the way back: (n, C) (n, C) (n, 4C) (n, 3C) (T, T) (C) */
    void *room;                              /* what all of these point into */
    Hooks hooks;
} Model;

/* B is the number of sequences of one rank */
void model_init(Model *m, int L, int H, int C, int V, int T, int B);
void model_free(Model *m);
void first_weights(Model *m, uint64_t seed);
/* Where a group's parameters begin; that of group L + 2 is their number. */
int model_group(const Model *m, int group);
/* logits (B, T, V) for the tokens (B, T) */
void model_forward(Model *m, const int *tokens, int B, int T);
/* Mean loss over B*T targets; afterwards the logits' gradient stands in the logits' place. */
double model_loss(Model *m, const int *tokens, const int *targets, int B, int T);
/* All gradients, after model_loss on the same tokens */
void model_backward(Model *m, const int *tokens, int B, int T);

#endif
