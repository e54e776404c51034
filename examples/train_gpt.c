/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * train_gpt: a character-level GPT, trained in plain C on any number of MPI ranks.
 *
 * Every rank holds all parameters, works on its share of the batch, and owns an even part of every parameter. A step is
 *
 *     forward, backward     on the rank's own sequences
 *     reduce-scatter        every gradient, so that each owner gets the mean of its part      <- TAGC_Reduce_scatter
 *     clip, AdamW           by the owner; only it keeps the two moments
 *     all-gather            the new parameters
 *
 * The file is read from top to bottom: options, arithmetic, layers, model, text, trainer, checkpoint, run. Shapes in
 * comments use B sequences of T tokens, C channels in H heads, V symbols in the vocabulary and L blocks. All matrices
 * are row-major; a weight is (outputs, inputs). Without options it trains 4 blocks of width 128 for 2000 steps, e.g.
 *
 *     mpiexec -n 4 ./train_gpt --layers transformer:sparsity=0.95,algorithm=direct input.txt
 *
 * which holds back 95 % of the gradients that bear it. (Without "algorithm" the library decides whether to compress at
 * all, and between ranks that share memory it does not pay.)
 *
 * The same options and number of ranks give the same bits. For that, and because ranks share the cores already, each
 * rank keeps OpenBLAS to one thread, unless --threads or OPENBLAS_NUM_THREADS says more.
 *
 * Compiled with -DTRAIN_DOUBLE it computes in double throughout: that is what the gradient checks use. A test that
 * includes this file defines TRAIN_NO_MAIN first. -fno-math-errno -fno-trapping-math let gcc vectorise the loops over
 * activations; they change no result.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tagc.h>
#ifdef HAVE_CBLAS
#include <cblas.h>
#endif

#ifdef TRAIN_DOUBLE
typedef double real;
#define MPI_REAL_C MPI_DOUBLE
#define CBLAS_GEMM cblas_dgemm
#else
typedef float real;
#define MPI_REAL_C MPI_FLOAT
#define CBLAS_GEMM cblas_sgemm
#endif

/* --------------------------------------------------------------------------------------------------------------------
 * Trouble: say what is wrong and what to do about it
 */

#ifdef __GNUC__
#define LEAVES __attribute__((noreturn, format(printf, 1, 2)))
#else
#define LEAVES
#endif

/* One rank has met trouble of its own: stop them all. */
LEAVES static void die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("train_gpt: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* All ranks see the same mistake of the user: say it once and leave in good order. */
LEAVES static void refuse(const char *format, ...)
{
    int rank;
    va_list args;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        va_start(args, format);
        fputs("train_gpt: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
    }
    MPI_Finalize();
    exit(2);
}

/* Rank 0 has read or written something for all: an empty text, or what went wrong. Then all leave in good order. */
static void agree(const char *why, MPI_Comm comm)
{
    char text[1024];

    snprintf(text, sizeof text, "%s", why);
    MPI_Bcast(text, sizeof text, MPI_CHAR, 0, comm);
    if (text[0] != '\0')
        refuse("%s", text);
}

/* Aligned for vector loads, and zeroed, so that no run depends on what was there before. */
static void *allocate(size_t count, size_t size)
{
    void *p = NULL;

    if (count == 0)
        count = 1;
    if (count > SIZE_MAX / size || posix_memalign(&p, 64, count * size) != 0)
        die("no memory for %zu values of %zu bytes; a smaller --width, --context or --batch needs less", count, size);
    memset(p, 0, count * size);
    return p;
}

/* --------------------------------------------------------------------------------------------------------------------
 * Options
 */

enum { MAX_SETTINGS = 64 };

typedef struct {
    const char *text, *vocab;
    int depth, heads, width, context;
    int batch, steps;
    double lr, min_lr, beta1, beta2, decay, clip;
    int warmup, decay_steps;
    uint64_t seed;
    const char *collective;
    int settings;               /* how many of the next two are filled */
    char key[MAX_SETTINGS][64]; /* an MPI_Info key, "tagc_sparsity" */
    const char *value[MAX_SETTINGS];
    int print_every, eval_every;
    const char *log, *checkpoint, *resume;
    int checkpoint_every;
    int sample;
    double temperature, dropout;
    int threads;
} Options;

/* The setting of nanoGPT's small character model, which learns tiny Shakespeare to about 1.9 nats. */
static Options default_options(void)
{
    Options o;

    memset(&o, 0, sizeof o);
    o.vocab = "char";
    o.depth = 4, o.heads = 4, o.width = 128, o.context = 64;
    o.batch = 12, o.steps = 2000;
    o.lr = 1e-3, o.min_lr = 1e-4, o.beta1 = 0.9, o.beta2 = 0.99, o.decay = 0.1, o.clip = 1.0;
    o.warmup = 100, o.decay_steps = -1;
    o.seed = 1337;
    o.collective = "tagc";
    o.print_every = 10;
    o.temperature = 0.8;
    return o;
}

typedef struct {
    const char *name;
    char kind; /* i: int, u: uint64, d: double, s: string, t: a tagc setting of that name, n: a setting as name=value */
    void *where;
    const char *help;
} Option;

static void add_setting(Options *o, const char *name, size_t length, const char *value)
{
    if (o->settings == MAX_SETTINGS)
        refuse("more than %d settings", MAX_SETTINGS);
    if (length == 0 || length + sizeof "tagc_" > sizeof o->key[0])
        refuse("--set wants name=value, e.g. --set granularity=tensor");
    snprintf(o->key[o->settings], sizeof o->key[0], "tagc_%.*s", (int)length, name);
    o->value[o->settings++] = value;
}

static void set_option(Options *o, const Option *option, const char *value)
{
    char *end = NULL;
    const char *equals;

    errno = 0;
    switch (option->kind) {
    case 'i': {
        long v = strtol(value, &end, 10);

        if (v < INT32_MIN || v > INT32_MAX)
            errno = ERANGE;
        *(int *)option->where = (int)v;
        break;
    }
    case 'u':
        *(uint64_t *)option->where = strtoull(value, &end, 10);
        break;
    case 'd':
        *(double *)option->where = strtod(value, &end);
        break;
    case 's':
        *(const char **)option->where = value;
        break;
    case 't':
        if (strcmp(option->name, "layers") == 0 && value[strspn(value, "0123456789")] == '\0')
            refuse("--layers takes rules for the tensors' settings; the number of blocks is --depth");
        add_setting(o, option->name, strlen(option->name), value);
        break;
    default:
        equals = strchr(value, '=');
        add_setting(o, value, equals ? (size_t)(equals - value) : 0, equals ? equals + 1 : "");
    }
    if (end != NULL && (end == value || *end != '\0' || errno != 0))
        refuse("--%s %s: not a number in range", option->name, value);
}

static void check_options(const Options *o)
{
    const struct {
        const char *name;
        int value, least;
    } bounds[] = {
        {"depth", o->depth, 1},           {"heads", o->heads, 1},
        {"width", o->width, 1},           {"context", o->context, 1},
        {"batch", o->batch, 1},           {"steps", o->steps, 0},
        {"warmup", o->warmup, 0},         {"print-every", o->print_every, 1},
        {"eval-every", o->eval_every, 0}, {"checkpoint-every", o->checkpoint_every, 0},
        {"sample", o->sample, 0},         {"threads", o->threads, 0},
    };

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (bounds[i].value < bounds[i].least)
            refuse("--%s %d: must be at least %d", bounds[i].name, bounds[i].value, bounds[i].least);
    if (o->width % o->heads != 0)
        refuse("--width %d is not a multiple of --heads %d", o->width, o->heads);
    if (strcmp(o->vocab, "char") != 0 && strcmp(o->vocab, "byte") != 0)
        refuse("--vocab %s: must be char or byte", o->vocab);
    if (strcmp(o->collective, "mpi") != 0 && strcmp(o->collective, "tagc") != 0)
        refuse("--collective %s: must be mpi or tagc", o->collective);
    if (strcmp(o->collective, "mpi") == 0 && o->settings > 0)
        refuse("%s has no effect with --collective mpi; use --collective tagc", o->key[0] + strlen("tagc_"));
    if (o->dropout != 0)
        refuse("--dropout: only 0 is supported");
    if (!(o->temperature > 0))
        refuse("--temperature: must be above 0");
    if (o->checkpoint_every > 0 && o->checkpoint == NULL)
        refuse("--checkpoint-every needs --checkpoint DIR");
    if (o->text == NULL)
        refuse("no text to learn from; usage: train_gpt [options] FILE (--help lists the options)");
}

static Options parse_options(int argc, char **argv)
{
    Options o = default_options();
    const Option table[] = {
        {"text", 's', &o.text, "FILE to learn from (or give it without an option)"},
        {"vocab", 's', &o.vocab, "char: the UTF-8 characters of the text; byte: all 256 bytes"},
        {"depth", 'i', &o.depth, "transformer blocks"},
        {"heads", 'i', &o.heads, "attention heads"},
        {"width", 'i', &o.width, "channels, a multiple of the heads"},
        {"context", 'i', &o.context, "tokens that the model sees"},
        {"batch", 'i', &o.batch, "sequences in a step, all ranks together"},
        {"steps", 'i', &o.steps, "length of the run, earlier steps of a resumed run included"},
        {"seed", 'u', &o.seed, "of the first weights, the batches and the sample"},
        {"lr", 'd', &o.lr, "learning rate after the warm-up"},
        {"min-lr", 'd', &o.min_lr, "learning rate at the end of a cosine"},
        {"warmup", 'i', &o.warmup, "steps over which the learning rate rises"},
        {"decay-steps", 'i', &o.decay_steps, "steps after which it is at its least; -1: those of --steps"},
        {"beta1", 'd', &o.beta1, "AdamW"},
        {"beta2", 'd', &o.beta2, "AdamW"},
        {"weight-decay", 'd', &o.decay, "AdamW, matrices only"},
        {"clip", 'd', &o.clip, "largest norm of the whole gradient; 0: no clipping"},
        {"dropout", 'd', &o.dropout, "only 0"},
        {"collective", 's', &o.collective, "mpi or tagc: who reduces the gradients"},
        {"sparsity", 't', NULL, "share of a gradient that is held back, or a schedule"},
        {"value", 't', NULL, "form of the values on the wire: bfloat16, int4 ..."},
        {"algorithm", 't', NULL, "how a reduction travels: direct, sketch ..."},
        {"layers", 't', NULL, "transformer, none, or rules pattern:name=value;..."},
        {"set", 'n', NULL, "name=value: any other setting of the library"},
        {"print-every", 'i', &o.print_every, "steps between two lines"},
        {"eval-every", 'i', &o.eval_every, "steps between two full validations; 0: at the end only"},
        {"log", 's', &o.log, "FILE for the curve: step, train loss, validation loss"},
        {"checkpoint", 's', &o.checkpoint, "DIRECTORY to save to"},
        {"checkpoint-every", 'i', &o.checkpoint_every, "steps between two checkpoints; 0: at the end only"},
        {"resume", 's', &o.resume, "DIRECTORY to go on from"},
        {"sample", 'i', &o.sample, "characters to write after the run"},
        {"temperature", 'd', &o.temperature, "of the sample"},
        {"threads", 'i', &o.threads, "of OpenBLAS, per rank; 0: what OPENBLAS_NUM_THREADS says, or 1"},
    };
    const size_t options = sizeof table / sizeof table[0];

    for (int i = 1; i < argc; i++) {
        const char *name = argv[i] + 2, *value = strchr(argv[i], '=');
        size_t k, length = value ? (size_t)(value - name) : strlen(argv[i]) - 2;

        if (strncmp(argv[i], "--", 2) != 0) {
            o.text = argv[i];
            continue;
        }
        if (strcmp(name, "help") == 0) {
            int rank;

            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            if (rank == 0) {
                puts("usage: mpiexec -n RANKS train_gpt [options] FILE\n");
                for (k = 0; k < options; k++)
                    printf("  --%-18s %s\n", table[k].name, table[k].help);
            }
            MPI_Finalize();
            exit(0);
        }
        for (k = 0; k < options; k++)
            if (strlen(table[k].name) == length && strncmp(table[k].name, name, length) == 0)
                break;
        if (k == options)
            refuse("unknown option %s (--help lists them)", argv[i]);
        if (value == NULL && i + 1 == argc)
            refuse("--%s wants a value", name);
        set_option(&o, &table[k], value ? value + 1 : argv[++i]);
    }
    check_options(&o);
    return o;
}

/* --------------------------------------------------------------------------------------------------------------------
 * Random numbers: a counter through a mixing function, so that 8 bytes are the whole state
 */

static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* in [0, 1) */
static double random_uniform(uint64_t *state)
{
    return (double)(random_bits(state) >> 11) * 0x1p-53;
}

static double random_normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(1 - random_uniform(state)));

    return radius * cos(6.283185307179586 * random_uniform(state));
}

/* --------------------------------------------------------------------------------------------------------------------
 * Arithmetic of rows. Sums run in eight lanes: that is what a compiler may vectorise without reordering anything.
 */

enum { LANES = 8 };

static real sum_lanes(const real lane[LANES])
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static real row_sum(const real *restrict a, int n)
{
    real lane[LANES] = {0};
    int i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += a[i + k];
    for (; i < n; i++)
        lane[i % LANES] += a[i];
    return sum_lanes(lane);
}

static real row_dot(const real *restrict a, const real *restrict b, int n)
{
    real lane[LANES] = {0};
    int i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        lane[i % LANES] += a[i] * b[i];
    return sum_lanes(lane);
}

static real row_max(const real *a, int n)
{
    real most = a[0];

    for (int i = 1; i < n; i++)
        most = a[i] > most ? a[i] : most;
    return most;
}

/* exp of what is not above 88, without a call, so that loops around it vectorise: exp(x) = 2^n exp(r), |r| <= log(2)/2,
 * where adding and taking away 1.5*2^23 rounds to the integer n. The Taylor polynomial is good to 5e-9 there. From -87 on
 * down it stays at 1e-38. */
static inline real fast_exp(real x)
{
#ifdef TRAIN_DOUBLE
    return exp(x);
#else
    const float big = 12582912.0f;
    float n, r, p, scale;
    int32_t bits;

    x = x < -87.0f ? -87.0f : x;
    n = (x * 1.44269504f + big) - big;
    r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    bits = ((int32_t)n + 127) * (1 << 23);
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
#endif
}

/* c (m, n) = alpha op(a) op(b) + beta c, where op transposes when its flag is set; a stride is the distance of two rows. */
static void matmul(int trans_a, int trans_b, int m, int n, int k, real alpha, const real *a, int stride_a,
                   const real *b, int stride_b, real beta, real *c, int stride_c)
{
#ifdef HAVE_CBLAS
    CBLAS_GEMM(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans, m, n, k, alpha,
               a, stride_a, b, stride_b, beta, c, stride_c);
#else
    /* Some columns of op(b), laid out row by row and small enough to stay in cache, serve all rows of op(a). */
    enum { COLS = 32, DEPTH = 128 };
    size_t next_row = trans_a ? 1 : (size_t)stride_a, next_term = trans_a ? (size_t)stride_a : 1;
    real panel[DEPTH][COLS];

    for (int j0 = 0; j0 < n; j0 += COLS) {
        for (int k0 = 0; k0 < k; k0 += DEPTH) {
            int cols = n - j0 < COLS ? n - j0 : COLS, terms = k - k0 < DEPTH ? k - k0 : DEPTH;
            const real *from = trans_b ? b + (size_t)j0 * stride_b + k0 : b + (size_t)k0 * stride_b + j0;
            real keep = k0 == 0 ? beta : 1;

            memset(panel, 0, sizeof panel);
            for (int l = 0; l < terms; l++)
                for (int j = 0; j < cols; j++)
                    panel[l][j] = from[trans_b ? (size_t)j * stride_b + l : (size_t)l * stride_b + j];
            for (int i = 0; i < m; i++) {
                const real *row = a + (size_t)i * next_row + (size_t)k0 * next_term;
                real *to = c + (size_t)i * stride_c + j0, sum[COLS] = {0}, f[4];

                for (int l = 0; l < terms; l += 4) {
                    for (int s = 0; s < 4; s++)
                        f[s] = l + s < terms ? row[(size_t)(l + s) * next_term] : 0;
                    for (int j = 0; j < cols; j++)
                        sum[j] += (f[0] * panel[l][j] + f[1] * panel[l + 1][j]) +
                                  (f[2] * panel[l + 2][j] + f[3] * panel[l + 3][j]);
                }
                for (int j = 0; j < cols; j++) /* where beta is 0, c may hold anything, even a NaN */
                    to[j] = alpha * sum[j] + (keep != 0 ? keep * to[j] : 0);
            }
        }
    }
#endif
}

/* OpenBLAS would use all cores in every rank. Other libraries behind cblas.h do not have this call. */
#if defined(HAVE_CBLAS) && defined(__GNUC__)
extern void openblas_set_num_threads(int threads) __attribute__((weak));
#endif

static void set_threads(int threads)
{
#if defined(HAVE_CBLAS) && defined(__GNUC__)
    if (openblas_set_num_threads != NULL && (threads > 0 || getenv("OPENBLAS_NUM_THREADS") == NULL))
        openblas_set_num_threads(threads > 0 ? threads : 1);
#else
    (void)threads;
#endif
}

/* --------------------------------------------------------------------------------------------------------------------
 * Layers: each forward beside its backward. n is the number of tokens, B*T.
 */

/* y (n, out) = x (n, in) w^T, or added to what y holds */
static void linear_forward(real *y, const real *x, const real *w, int n, int in, int out, int add)
{
    matmul(0, 1, n, out, in, 1, x, in, w, in, (real)add, y, out);
}

/* dw (out, in) = dy^T x;  dx (n, in) = dy w */
static void linear_backward(real *dx, real *dw, const real *dy, const real *x, const real *w, int n, int in, int out)
{
    matmul(1, 0, out, in, n, 1, dy, out, x, in, 0, dw, in);
    matmul(0, 0, n, in, out, 1, dy, out, w, in, 0, dx, in);
}

/* y = w (x - mean) / sqrt(variance + 1e-5), row by row; mean and 1/sqrt are kept for the way back */
static void layernorm_forward(real *y, real *mean, real *rstd, const real *x, const real *w, int n, int C)
{
    for (int i = 0; i < n; i++, x += C, y += C) {
        real m = row_sum(x, C) / (real)C, s;

        for (int c = 0; c < C; c++)
            y[c] = x[c] - m;
        s = 1 / (real)sqrt(row_dot(y, y, C) / (real)C + (real)1e-5);
        for (int c = 0; c < C; c++)
            y[c] = y[c] * s * w[c];
        mean[i] = m;
        rstd[i] = s;
    }
}

/* dx += the gradient through the norm: it arrives where the residual stream's gradient already stands. dy is used up. */
static void layernorm_backward(real *restrict dx, real *restrict dw, real *restrict dy, const real *restrict x,
                               const real *mean, const real *rstd, const real *restrict w, int n, int C,
                               real *restrict hat)
{
    memset(dw, 0, (size_t)C * sizeof *dw);
    for (int i = 0; i < n; i++, x += C, dx += C, dy += C) {
        real m = mean[i], s = rstd[i], a, b;

        for (int c = 0; c < C; c++) {
            hat[c] = (x[c] - m) * s;
            dw[c] += dy[c] * hat[c];
            dy[c] *= w[c];
        }
        a = row_sum(dy, C) / (real)C;
        b = row_dot(dy, hat, C) / (real)C;
        for (int c = 0; c < C; c++)
            dx[c] += (dy[c] - a - hat[c] * b) * s;
    }
}

/* y = x P(x), P the normal distribution function. x is replaced by the derivative P(x) + x p(x), which is all that the way
 * back needs: the costly part, exp(-x^2/2), is common to both. In float, the tail of P is formula 7.1.26 of Abramowitz and
 * Stegun (error 1.5e-7), because libm's erff and expf do not vectorise and would take five times as long. */
static void gelu_forward(real *restrict y, real *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        real v = x[i], e = fast_exp((real)-0.5 * v * v), below;
#ifdef TRAIN_DOUBLE
        below = 0.5 * erfc(-v * 0.70710678118654752);
#else
        float t = 1 / (1 + 0.3275911f * 0.70710678f * fabsf(v)), tail;

        tail = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
        below = 0.5f + copysignf(0.5f - 0.5f * tail * e, v);
#endif
        y[i] = v * below;
        x[i] = below + v * e * (real)0.39894228040143268;
    }
}

static void gelu_backward(real *restrict dy, const real *restrict derivative, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dy[i] *= derivative[i];
}

/* Each head of each sequence: p (T, T) = softmax(scale q k^T) over the past, y = p v.
 * qkv is (B, T, 3, H, hs) and y (B, T, H, hs), so a head is a matrix whose rows are 3C or C apart. */
static void attention_forward(real *y, real *p, const real *qkv, int B, int T, int C, int H)
{
    int hs = C / H;
    real scale = 1 / (real)sqrt((double)hs);

    for (int b = 0; b < B; b++) {
        for (int h = 0; h < H; h++, p += (size_t)T * T) {
            const real *q = qkv + (size_t)b * T * 3 * C + h * hs, *k = q + C, *v = k + C;

            matmul(0, 1, T, T, hs, scale, q, 3 * C, k, 3 * C, 0, p, T);
            for (int t = 0; t < T; t++) {
                real *row = p + (size_t)t * T, most = row_max(row, t + 1), norm;

                for (int s = 0; s <= t; s++)
                    row[s] = fast_exp(row[s] - most);
                norm = 1 / row_sum(row, t + 1);
                for (int s = 0; s <= t; s++)
                    row[s] *= norm;
                for (int s = t + 1; s < T; s++)
                    row[s] = 0;
            }
            matmul(0, 0, T, hs, T, 1, p, T, v, 3 * C, 0, y + (size_t)b * T * C + h * hs, C);
        }
    }
}

/* dp is room for (T, T) */
static void attention_backward(real *dqkv, const real *dy, const real *p, const real *qkv, int B, int T, int C, int H,
                               real *dp)
{
    int hs = C / H;
    real scale = 1 / (real)sqrt((double)hs);

    for (int b = 0; b < B; b++) {
        for (int h = 0; h < H; h++, p += (size_t)T * T) {
            size_t at = (size_t)b * T * 3 * C + (size_t)h * hs;
            const real *q = qkv + at, *k = q + C, *v = k + C, *d = dy + (size_t)b * T * C + (size_t)h * hs;
            real *dq = dqkv + at, *dk = dq + C, *dv = dk + C;

            matmul(1, 0, T, hs, T, 1, p, T, d, C, 0, dv, 3 * C);
            matmul(0, 1, T, T, hs, 1, d, C, v, 3 * C, 0, dp, T);
            for (int t = 0; t < T; t++) {
                const real *pr = p + (size_t)t * T;
                real *dr = dp + (size_t)t * T, mean = row_dot(pr, dr, t + 1);

                for (int s = 0; s <= t; s++)
                    dr[s] = (dr[s] - mean) * pr[s] * scale;
                for (int s = t + 1; s < T; s++)
                    dr[s] = 0;
            }
            matmul(0, 0, T, hs, T, 1, dp, T, k, 3 * C, 0, dq, 3 * C);
            matmul(1, 0, T, hs, T, 1, dp, T, q, 3 * C, 0, dk, 3 * C);
        }
    }
}

/* Mean of -log softmax(logits)[target]; logits (n, V) become its gradient. */
static double cross_entropy(real *logits, const int *targets, int n, int V)
{
    double loss = 0;

    for (int i = 0; i < n; i++, logits += V) {
        real most = row_max(logits, V), right = logits[targets[i]] - most, sum;

        for (int v = 0; v < V; v++)
            logits[v] = fast_exp(logits[v] - most);
        sum = row_sum(logits, V);
        loss += log((double)sum) - (double)right;
        sum = 1 / (sum * (real)n);
        for (int v = 0; v < V; v++)
            logits[v] *= sum;
        logits[targets[i]] -= 1 / (real)n;
    }
    return loss / n;
}

/* --------------------------------------------------------------------------------------------------------------------
 * Model
 */

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
} Model;

static void add_param(Model *m, int rows, int cols, double spread, const char *format, ...)
{
    Param *p = &m->param[m->params++];
    va_list args;

    va_start(args, format);
    vsnprintf(p->name, sizeof p->name, format, args);
    va_end(args);
    if ((int64_t)rows * cols > INT32_MAX)
        refuse("%s has more than 2^31 elements", p->name);
    p->offset = m->size;
    p->size = rows * cols;
    p->decays = rows > 1;
    p->spread = spread;
    m->size += (size_t)p->size;
}

/* The order of names and that of pointers are one and the same. */
static void describe(Model *m)
{
    double into_stream = 0.02 / sqrt(2.0 * m->L); /* 2L additions to the residual stream must not make it grow */

    m->param = allocate((size_t)(3 + 6 * m->L), sizeof *m->param);
    add_param(m, m->V, m->C, 0.02, "wte.weight");
    add_param(m, m->T, m->C, 0.02, "wpe.weight");
    for (int l = 0; l < m->L; l++) {
        add_param(m, 1, m->C, 0, "h.%d.ln_1.weight", l);
        add_param(m, 3 * m->C, m->C, 0.02, "h.%d.attn.c_attn.weight", l);
        add_param(m, m->C, m->C, into_stream, "h.%d.attn.c_proj.weight", l);
        add_param(m, 1, m->C, 0, "h.%d.ln_2.weight", l);
        add_param(m, 4 * m->C, m->C, 0.02, "h.%d.mlp.c_fc.weight", l);
        add_param(m, m->C, 4 * m->C, into_stream, "h.%d.mlp.c_proj.weight", l);
    }
    add_param(m, 1, m->C, 0, "ln_f.weight");
}

static Weights weights_alloc(const Model *m)
{
    Weights w;
    const Param *p = m->param;

    w.flat = allocate(m->size, sizeof *w.flat);
    w.h = allocate((size_t)m->L, sizeof *w.h);
    w.wte = w.flat + p++->offset;
    w.wpe = w.flat + p++->offset;
    for (int l = 0; l < m->L; l++) {
        Block *h = &w.h[l];
        real **part[] = {&h->ln_1, &h->attn_c_attn, &h->attn_c_proj, &h->ln_2, &h->mlp_c_fc, &h->mlp_c_proj};

        for (int i = 0; i < 6; i++)
            *part[i] = w.flat + p++->offset;
    }
    w.ln_f = w.flat + p->offset;
    return w;
}

/* Hands out count reals; with no room yet it only counts. */
static real *take(real *room, size_t *used, size_t count)
{
    real *p = room ? room + *used : NULL;

    *used += (count + 15) / 16 * 16; /* keep 64-byte alignment */
    return p;
}

static size_t place_activations(Model *m, real *room)
{
    size_t used = 0, n = (size_t)m->B * m->T, C = (size_t)m->C;

    for (int l = 0; l < m->L; l++) {
        Trace *t = &m->trace[l];

        t->x = take(room, &used, n * C);
        t->ln_1 = take(room, &used, n * C);
        t->mean_1 = take(room, &used, n);
        t->rstd_1 = take(room, &used, n);
        t->qkv = take(room, &used, n * 3 * C);
        t->p = take(room, &used, n * m->H * m->T);
        t->y = take(room, &used, n * C);
        t->mid = take(room, &used, n * C);
        t->ln_2 = take(room, &used, n * C);
        t->mean_2 = take(room, &used, n);
        t->rstd_2 = take(room, &used, n);
        t->fc = take(room, &used, n * 4 * C);
        t->act = take(room, &used, n * 4 * C);
    }
    m->x = take(room, &used, n * C);
    m->ln_f = take(room, &used, n * C);
    m->mean_f = take(room, &used, n);
    m->rstd_f = take(room, &used, n);
    m->logits = take(room, &used, n * m->V);
    m->dx = take(room, &used, n * C);
    m->dn = take(room, &used, n * C);
    m->dwide = take(room, &used, n * 4 * C);
    m->dqkv = take(room, &used, n * 3 * C);
    m->dp = take(room, &used, (size_t)m->T * m->T);
    m->hat = take(room, &used, C);
    return used;
}

/* B is the number of sequences of one rank */
static void model_init(Model *m, int L, int H, int C, int V, int T, int B)
{
    memset(m, 0, sizeof *m);
    m->L = L, m->H = H, m->C = C, m->V = V, m->T = T, m->B = B;
    describe(m);
    m->w = weights_alloc(m);
    m->grad = weights_alloc(m);
    m->trace = allocate((size_t)L, sizeof *m->trace);
    m->room = allocate(place_activations(m, NULL), sizeof(real));
    place_activations(m, m->room);
}

static void model_free(Model *m)
{
    free(m->param);
    free(m->w.flat);
    free(m->w.h);
    free(m->grad.flat);
    free(m->grad.h);
    free(m->trace);
    free(m->room);
}

static void first_weights(Model *m, uint64_t seed)
{
    for (int i = 0; i < m->params; i++) {
        real *w = m->w.flat + m->param[i].offset;

        for (int j = 0; j < m->param[i].size; j++)
            w[j] = m->param[i].spread > 0 ? (real)(m->param[i].spread * random_normal(&seed)) : 1;
    }
}

/* logits (B, T, V) for the tokens (B, T) */
static void model_forward(Model *m, const int *tokens, int B, int T)
{
    int n = B * T, C = m->C;
    size_t stream = (size_t)n * C * sizeof(real);
    real *x = m->trace[0].x;

    for (int i = 0; i < n; i++) {
        const real *te = m->w.wte + (size_t)tokens[i] * C, *pe = m->w.wpe + (size_t)(i % T) * C;

        for (int c = 0; c < C; c++)
            x[(size_t)i * C + c] = te[c] + pe[c];
    }
    for (int l = 0; l < m->L; l++) {
        const Block *w = &m->w.h[l];
        Trace *t = &m->trace[l];

        layernorm_forward(t->ln_1, t->mean_1, t->rstd_1, t->x, w->ln_1, n, C);
        linear_forward(t->qkv, t->ln_1, w->attn_c_attn, n, C, 3 * C, 0);
        attention_forward(t->y, t->p, t->qkv, B, T, C, m->H);
        memcpy(t->mid, t->x, stream);
        linear_forward(t->mid, t->y, w->attn_c_proj, n, C, C, 1);

        layernorm_forward(t->ln_2, t->mean_2, t->rstd_2, t->mid, w->ln_2, n, C);
        linear_forward(t->fc, t->ln_2, w->mlp_c_fc, n, C, 4 * C, 0);
        gelu_forward(t->act, t->fc, (size_t)n * 4 * C);
        x = l + 1 < m->L ? m->trace[l + 1].x : m->x;
        memcpy(x, t->mid, stream);
        linear_forward(x, t->act, w->mlp_c_proj, n, 4 * C, C, 1);
    }
    layernorm_forward(m->ln_f, m->mean_f, m->rstd_f, m->x, m->w.ln_f, n, C);
    linear_forward(m->logits, m->ln_f, m->w.wte, n, C, m->V, 0);
}

/* Mean loss over B*T targets; afterwards the logits' gradient stands in the logits' place. */
static double model_loss(Model *m, const int *tokens, const int *targets, int B, int T)
{
    model_forward(m, tokens, B, T);
    return cross_entropy(m->logits, targets, B * T, m->V);
}

/* All gradients, after model_loss on the same tokens */
static void model_backward(Model *m, const int *tokens, int B, int T)
{
    int n = B * T, C = m->C;
    size_t stream = (size_t)n * C * sizeof(real);

    linear_backward(m->dn, m->grad.wte, m->logits, m->ln_f, m->w.wte, n, C, m->V);
    memset(m->dx, 0, stream);
    layernorm_backward(m->dx, m->grad.ln_f, m->dn, m->x, m->mean_f, m->rstd_f, m->w.ln_f, n, C, m->hat);
    for (int l = m->L - 1; l >= 0; l--) {
        const Block *w = &m->w.h[l], *g = &m->grad.h[l];
        const Trace *t = &m->trace[l];

        linear_backward(m->dwide, g->mlp_c_proj, m->dx, t->act, w->mlp_c_proj, n, 4 * C, C);
        gelu_backward(m->dwide, t->fc, (size_t)n * 4 * C);
        linear_backward(m->dn, g->mlp_c_fc, m->dwide, t->ln_2, w->mlp_c_fc, n, C, 4 * C);
        layernorm_backward(m->dx, g->ln_2, m->dn, t->mid, t->mean_2, t->rstd_2, w->ln_2, n, C, m->hat);

        linear_backward(m->dn, g->attn_c_proj, m->dx, t->y, w->attn_c_proj, n, C, C);
        attention_backward(m->dqkv, m->dn, t->p, t->qkv, B, T, C, m->H, m->dp);
        linear_backward(m->dn, g->attn_c_attn, m->dqkv, t->ln_1, w->attn_c_attn, n, C, 3 * C);
        layernorm_backward(m->dx, g->ln_1, m->dn, t->x, t->mean_1, t->rstd_1, w->ln_1, n, C, m->hat);
    }
    memset(m->grad.wpe, 0, (size_t)m->T * C * sizeof(real));
    for (int i = 0; i < n; i++) {
        const real *d = m->dx + (size_t)i * C;
        real *te = m->grad.wte + (size_t)tokens[i] * C, *pe = m->grad.wpe + (size_t)(i % T) * C;

        for (int c = 0; c < C; c++) {
            te[c] += d[c];
            pe[c] += d[c];
        }
    }
}

/* --------------------------------------------------------------------------------------------------------------------
 * Text: read by rank 0, turned into tokens by everyone. The first 90 % are for training.
 */

typedef struct {
    int *token;
    size_t tokens, train;
    int symbols;
    int *symbol; /* the code point, or byte, of every token value, rising */
    int bytes;   /* symbols are bytes, not code points */
} Text;

/* The code point at s, and how many bytes it takes; 0 where there is no well-formed one */
static int utf8_decode(const unsigned char *s, size_t left, int *code)
{
    int length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;

    if (length == 0 || left < (size_t)length)
        return 0;
    *code = length == 1 ? s[0] : s[0] & (0xFF >> (length + 1));
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3F);
    }
    return length;
}

static void utf8_print(int code)
{
    if (code < 0x80) {
        putchar(code);
        return;
    }
    if (code < 0x800) {
        putchar(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            putchar(0xE0 | code >> 12);
        } else {
            putchar(0xF0 | code >> 18);
            putchar(0x80 | (code >> 12 & 0x3F));
        }
        putchar(0x80 | (code >> 6 & 0x3F));
    }
    putchar(0x80 | (code & 0x3F));
}

static unsigned char *read_file(const char *path, MPI_Comm comm, size_t *length)
{
    unsigned char *data;
    char why[1024] = "";
    int rank;
    long size = 0;
    FILE *f = NULL;

    MPI_Comm_rank(comm, &rank);
    if (rank == 0) {
        f = fopen(path, "rb");
        if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0)
            snprintf(why, sizeof why, "%s: %s", path, strerror(errno));
        else if (size >= INT32_MAX)
            snprintf(why, sizeof why, "%s: not a file of less than 2 GiB", path);
    }
    agree(why, comm);
    MPI_Bcast(&size, 1, MPI_LONG, 0, comm);
    data = allocate((size_t)size, 1);
    if (rank == 0) {
        if (fread(data, 1, (size_t)size, f) != (size_t)size)
            snprintf(why, sizeof why, "%s: could not be read whole", path);
        fclose(f);
    }
    agree(why, comm);
    MPI_Bcast(data, (int)size, MPI_BYTE, 0, comm);
    *length = (size_t)size;
    return data;
}

static void text_load(Text *t, const char *path, const char *vocab, int context, MPI_Comm comm)
{
    enum { CODES = 0x110000 };
    size_t length;
    unsigned char *data = read_file(path, comm, &length);
    int *value = allocate(CODES, sizeof *value); /* code point to token */

    memset(t, 0, sizeof *t);
    t->bytes = strcmp(vocab, "byte") == 0;
    t->token = allocate(length, sizeof *t->token);
    for (size_t at = 0; at < length;) {
        int code = data[at], step = t->bytes ? 1 : utf8_decode(data + at, length - at, &code);

        if (step == 0)
            refuse("%s is not UTF-8 at byte %zu; use --vocab byte", path, at);
        t->token[t->tokens++] = code;
        value[code] = 1;
        at += (size_t)step;
    }
    for (int c = 0; c < CODES; c++)
        t->symbols += t->bytes ? c < 256 : value[c];
    t->symbol = allocate((size_t)t->symbols, sizeof *t->symbol);
    t->symbols = 0;
    for (int c = 0; c < CODES; c++) {
        if (t->bytes ? c < 256 : value[c]) {
            value[c] = t->symbols;
            t->symbol[t->symbols++] = c;
        }
    }
    for (size_t i = 0; i < t->tokens; i++)
        t->token[i] = value[t->token[i]];
    t->train = (size_t)(0.9 * (double)t->tokens);
    if (t->train <= (size_t)context || t->tokens - t->train <= (size_t)context)
        refuse("%s has only %zu characters: too few for --context %d, which must fit in the last tenth", path,
               t->tokens, context);
    free(value);
    free(data);
}

static void text_free(Text *t)
{
    free(t->token);
    free(t->symbol);
}

/* --------------------------------------------------------------------------------------------------------------------
 * Trainer: the model, this rank's part of the optimizer, and the communication
 */

typedef struct {
    const Options *o;
    MPI_Comm comm;
    int rank, ranks;
    Model model;
    int *counts, *displs;  /* (params, ranks): how each parameter is split */
    size_t *mine;          /* (params): where this rank's part stands in the next three */
    real *g, *m, *v;       /* reduced gradient and the two moments of AdamW */
    TAGC_Tensor *tensor;   /* (params), or NULL with --collective mpi */
    int step;              /* steps done */
    uint64_t random;       /* state of the batches' generator */
    int *tokens, *targets; /* (B, T) of this rank */
    double comm_seconds, gather_seconds, kept, dense_bytes;
    int counted; /* steps in these sums */
    double norm; /* of the last gradient, before clipping */
} Trainer;

static MPI_Info make_info(const Options *o)
{
    MPI_Info info = MPI_INFO_NULL;

    if (o->settings > 0)
        MPI_Info_create(&info);
    for (int i = 0; i < o->settings; i++)
        MPI_Info_set(info, o->key[i], o->value[i]);
    return info;
}

static void trainer_init(Trainer *t, const Options *o, int symbols, MPI_Comm comm)
{
    size_t own = 0;
    Model *model = &t->model;

    memset(t, 0, sizeof *t);
    t->o = o;
    t->comm = comm;
    MPI_Comm_rank(comm, &t->rank);
    MPI_Comm_size(comm, &t->ranks);
    if (o->batch % t->ranks != 0)
        refuse("--batch %d does not divide among %d ranks; it counts the sequences of all ranks together", o->batch,
               t->ranks);
    set_threads(o->threads);
    model_init(model, o->depth, o->heads, o->width, symbols, o->context, o->batch / t->ranks);
    first_weights(model, o->seed);
    t->random = o->seed ^ 0x5851F42D4C957F2Du;
    t->tokens = allocate((size_t)model->B * model->T, sizeof *t->tokens);
    t->targets = allocate((size_t)model->B * model->T, sizeof *t->targets);

    t->counts = allocate((size_t)model->params * t->ranks, sizeof *t->counts);
    t->displs = allocate((size_t)model->params * t->ranks, sizeof *t->displs);
    t->mine = allocate((size_t)model->params, sizeof *t->mine);
    for (int i = 0, at; i < model->params; i++) {
        int size = model->param[i].size, *counts = t->counts + i * t->ranks, *displs = t->displs + i * t->ranks;

        at = 0;
        for (int r = 0; r < t->ranks; r++) {
            counts[r] = size / t->ranks + (r < size % t->ranks);
            displs[r] = at;
            at += counts[r];
        }
        t->mine[i] = own;
        own += (size_t)counts[t->rank];
    }
    t->g = allocate(own, sizeof *t->g);
    t->m = allocate(own, sizeof *t->m);
    t->v = allocate(own, sizeof *t->v);

    if (strcmp(o->collective, "tagc") == 0) {
        MPI_Info info = make_info(o);

        t->tensor = allocate((size_t)model->params, sizeof *t->tensor);
        for (int i = 0; i < model->params; i++)
            TAGC_Tensor_create(comm, model->param[i].name, model->param[i].size, MPI_REAL_C, info, &t->tensor[i]);
        if (info != MPI_INFO_NULL)
            MPI_Info_free(&info);
    }
}

static void trainer_free(Trainer *t)
{
    for (int i = 0; t->tensor != NULL && i < t->model.params; i++)
        TAGC_Tensor_free(&t->tensor[i]);
    free(t->tensor);
    free(t->counts);
    free(t->displs);
    free(t->mine);
    free(t->g);
    free(t->m);
    free(t->v);
    free(t->tokens);
    free(t->targets);
    model_free(&t->model);
}

/* Up in a line, down in half a cosine, reaching the least rate at the last step */
static double learning_rate(const Options *o, int step)
{
    int last = (o->decay_steps >= 0 ? o->decay_steps : o->steps) - 1;

    if (step < o->warmup)
        return o->lr * (step + 1) / (o->warmup + 1);
    if (step >= last)
        return o->min_lr;
    return o->min_lr +
           0.5 * (o->lr - o->min_lr) * (1 + cos(3.14159265358979324 * (step - o->warmup) / (last - o->warmup)));
}

/* The mean gradient over all ranks, each owner's part of it */
static void reduce_gradients(Trainer *t)
{
    double start = MPI_Wtime(), sent = 0;

    for (int i = 0; i < t->model.params; i++) {
        const Param *p = &t->model.param[i];
        const real *from = t->model.grad.flat + p->offset;
        const int *counts = t->counts + i * t->ranks;
        real *to = t->g + t->mine[i];

        if (t->tensor != NULL) {
            TAGC_Reduce_scatter(from, to, counts, MPI_REAL_C, TAGC_AVG, t->comm, t->tensor[i]);
        } else {
            MPI_Reduce_scatter(from, to, counts, MPI_REAL_C, MPI_SUM, t->comm);
            for (int j = 0; j < counts[t->rank]; j++)
                to[j] /= (real)t->ranks;
        }
    }
    t->comm_seconds += MPI_Wtime() - start;

    for (int i = 0; i < t->model.params; i++) {
        double density = 1;

        if (t->tensor != NULL)
            TAGC_Get_stat(t->tensor[i], TAGC_STAT_DENSITY, &density);
        sent += density * t->model.param[i].size;
    }
    t->kept += sent / (double)t->model.size;
    /* what the best algorithm sends: each rank all but its own part */
    t->dense_bytes += (double)t->model.size * sizeof(real) * (t->ranks - 1) / t->ranks;
    t->counted++;
}

/* AdamW on one stretch; clipping is a factor on its gradient */
static void adamw(real *restrict w, const real *restrict g, real *restrict m, real *restrict v, int n, real factor,
                  double lr, double decay, double beta1, double beta2, int step)
{
    real shrink = (real)(1 - lr * decay), b1 = (real)beta1, b2 = (real)beta2;
    real rate = (real)(lr / (1 - pow(beta1, step)));
    real root = (real)(1 / sqrt(1 - pow(beta2, step)));

    for (int i = 0; i < n; i++) {
        real d = g[i] * factor;

        m[i] = b1 * m[i] + (1 - b1) * d;
        v[i] = b2 * v[i] + (1 - b2) * d * d;
#ifdef TRAIN_DOUBLE
        w[i] = w[i] * shrink - rate * m[i] / (sqrt(v[i]) * root + 1e-8);
#else
        w[i] = w[i] * shrink - rate * m[i] / (sqrtf(v[i]) * root + 1e-8f);
#endif
    }
}

/* One step on tokens (B, T) of this rank; returns the mean loss of all ranks. */
static double train_step(Trainer *t, const int *tokens, const int *targets, double lr)
{
    Model *model = &t->model;
    const Options *o = t->o;
    double sums[2], start; /* of the losses, and of the squared gradient */
    real factor;
    size_t own = t->mine[model->params - 1] + (size_t)t->counts[(model->params - 1) * t->ranks + t->rank];

    sums[0] = model_loss(model, tokens, targets, model->B, model->T);
    model_backward(model, tokens, model->B, model->T);
    reduce_gradients(t);

    sums[1] = 0;
    for (size_t i = 0; i < own; i++)
        sums[1] += (double)t->g[i] * (double)t->g[i];
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, t->comm);
    t->norm = sqrt(sums[1]);
    factor = (real)(o->clip > 0 ? fmin(1, o->clip / (t->norm + 1e-6)) : 1);

    t->step++;
    for (int i = 0; i < model->params; i++) {
        const Param *p = &model->param[i];
        const int *counts = t->counts + i * t->ranks, *displs = t->displs + i * t->ranks;
        size_t at = t->mine[i];

        adamw(model->w.flat + p->offset + displs[t->rank], t->g + at, t->m + at, t->v + at, counts[t->rank], factor, lr,
              p->decays ? o->decay : 0, o->beta1, o->beta2, t->step);
    }
    start = MPI_Wtime();
    for (int i = 0; i < model->params && t->ranks > 1; i++) {
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, model->w.flat + model->param[i].offset,
                       t->counts + i * t->ranks, t->displs + i * t->ranks, MPI_REAL_C, t->comm);
    }
    t->gather_seconds += MPI_Wtime() - start;
    return sums[0] / t->ranks;
}

/* Every rank draws the whole batch and keeps its own sequences, so that the batch does not depend on the number of ranks. */
static void draw_batch(Trainer *t, const Text *text)
{
    int T = t->model.T, B = t->model.B;

    for (int b = 0; b < t->o->batch; b++) {
        const int *from = text->token + (size_t)(random_uniform(&t->random) * (double)(text->train - (size_t)T));
        int own = b - t->rank * B;

        if (own < 0 || own >= B)
            continue;
        memcpy(t->tokens + own * T, from, (size_t)T * sizeof *from);
        memcpy(t->targets + own * T, from + 1, (size_t)T * sizeof *from);
    }
}

/* Mean loss over all of the last tenth, in windows side by side that the ranks take in turn */
static double validate(Trainer *t, const Text *text)
{
    int T = t->model.T, B = t->model.B;
    const int *from = text->token + text->train;
    size_t windows = (text->tokens - text->train - 1) / (size_t)T;
    double sum = 0;

    for (size_t first = (size_t)t->rank * B; first < windows; first += (size_t)t->ranks * B) {
        size_t take = windows - first < (size_t)B ? windows - first : (size_t)B;

        sum += (double)take * model_loss(&t->model, from + first * T, from + first * T + 1, (int)take, T);
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, t->comm);
    return sum / (double)windows;
}

/* Writes count symbols, one at a time, each drawn from the model's distribution at that temperature. */
static void sample(Trainer *t, const Text *text, int count, double temperature)
{
    Model *m = &t->model;
    uint64_t random = t->o->seed ^ 0x14057B7EF767814Fu;
    int *seen = t->tokens, length = 1;

    seen[0] = 0;
    for (int s = 0; s < text->symbols; s++)
        if (text->symbol[s] == '\n')
            seen[0] = s;
    for (int i = 0; i < count; i++) {
        const real *row;
        double sum = 0, at;
        int next = 0;

        model_forward(m, seen, 1, length);
        row = m->logits + (size_t)(length - 1) * m->V;
        for (int v = 0, most = 0; v < m->V; v++) {
            most = row[v] > row[most] ? v : most;
            next = most;
        }
        for (int v = 0; v < m->V; v++)
            sum += exp((double)(row[v] - row[next]) / temperature);
        at = random_uniform(&random) * sum;
        for (int v = 0, most = next; v < m->V; v++) {
            at -= exp((double)(row[v] - row[most]) / temperature);
            if (at < 0) {
                next = v;
                break;
            }
        }
        if (text->bytes)
            putchar(text->symbol[next]);
        else
            utf8_print(text->symbol[next]);
        if (length == m->T)
            memmove(seen, seen + 1, (size_t)--length * sizeof *seen);
        seen[length++] = next;
    }
    putchar('\n');
}

/* --------------------------------------------------------------------------------------------------------------------
 * Checkpoint: DIR/step-N.model, a file of residuals beside it for each tensor, and DIR/latest, which names N and is
 * replaced last, so that a run killed at any time leaves a whole checkpoint. Moments are stored as whole vectors: a run may
 * go on with another number of ranks, and goes on with the same bits with the same number.
 */

enum { HEADER = 16, CHECKPOINT_VERSION = 1, PATH_ROOM = 512 };
static const int64_t checkpoint_magic = 0x54504743414754; /* "TGACGPT" */

static void path_of(char path[PATH_ROOM], const char *directory, int step, const char *what)
{
    if (snprintf(path, PATH_ROOM, "%s/step-%d.%s", directory, step, what) >= PATH_ROOM)
        die("%s: name too long", directory);
}

/* A vector spread over the owners, whole on rank 0 */
static void collect(const Trainer *t, const real *part, real *whole)
{
    for (int i = 0; i < t->model.params; i++)
        MPI_Gatherv(part + t->mine[i], t->counts[i * t->ranks + t->rank], MPI_REAL_C,
                    t->rank == 0 ? whole + t->model.param[i].offset : NULL, t->counts + i * t->ranks,
                    t->displs + i * t->ranks, MPI_REAL_C, 0, t->comm);
}

static void spread(const Trainer *t, const real *whole, real *part)
{
    for (int i = 0; i < t->model.params; i++)
        MPI_Scatterv(t->rank == 0 ? whole + t->model.param[i].offset : NULL, t->counts + i * t->ranks,
                     t->displs + i * t->ranks, MPI_REAL_C, part + t->mine[i], t->counts[i * t->ranks + t->rank],
                     MPI_REAL_C, 0, t->comm);
}

/* The step that DIR/latest names, or -1 */
static int checkpoint_latest(const char *directory)
{
    char path[PATH_ROOM];
    int step = -1;
    FILE *f;

    if (snprintf(path, sizeof path, "%s/latest", directory) >= PATH_ROOM || (f = fopen(path, "r")) == NULL)
        return -1;
    if (fscanf(f, "%d", &step) != 1)
        step = -1;
    fclose(f);
    return step;
}

/* On rank 0: parameters and both moments into one file; 0 or an errno */
static int write_model(const Trainer *t, const Text *text, const char *path, const real *first, const real *second)
{
    const Model *m = &t->model;
    const int64_t header[HEADER] = {
        checkpoint_magic,   CHECKPOINT_VERSION, (int64_t)sizeof(real), m->L, m->H, m->C, m->T, m->V, t->step,
        (int64_t)t->random, t->ranks,           t->tensor != NULL};
    size_t symbols = (size_t)m->V;
    FILE *f = fopen(path, "wb");
    int good = f != NULL && fwrite(header, sizeof header, 1, f) == 1;

    good = good && fwrite(text->symbol, sizeof *text->symbol, symbols, f) == symbols;
    good = good && fwrite(m->w.flat, sizeof(real), m->size, f) == m->size;
    good = good && fwrite(first, sizeof(real), m->size, f) == m->size;
    good = good && fwrite(second, sizeof(real), m->size, f) == m->size;
    good = good && fflush(f) == 0 && fsync(fileno(f)) == 0;
    return (f != NULL && fclose(f) != 0) || !good ? errno : 0;
}

static void checkpoint_save(Trainer *t, const Text *text, const char *directory)
{
    const Model *m = &t->model;
    char path[PATH_ROOM], fresh[PATH_ROOM + 8], why[1024] = "";
    size_t whole = t->rank == 0 ? m->size : 0;
    real *first = allocate(whole, sizeof *first), *second = allocate(whole, sizeof *second);
    int old = checkpoint_latest(directory), error = 0;

    collect(t, t->m, first);
    collect(t, t->v, second);
    path_of(path, directory, t->step, "model");
    if (t->rank == 0) {
        if (mkdir(directory, 0777) != 0 && errno != EEXIST)
            error = errno;
        else
            error = write_model(t, text, path, first, second);
        if (error != 0)
            snprintf(why, sizeof why, "%s: %s", path, strerror(error));
    }
    agree(why, t->comm);
    for (int i = 0; t->tensor != NULL && i < m->params; i++) {
        path_of(path, directory, t->step, m->param[i].name);
        TAGC_Tensor_save(t->tensor[i], path);
    }
    MPI_Barrier(t->comm);
    if (t->rank == 0) {
        FILE *f;

        snprintf(path, sizeof path, "%s/latest", directory);
        snprintf(fresh, sizeof fresh, "%s.new", path);
        f = fopen(fresh, "w");
        if (f == NULL || fprintf(f, "%d\n", t->step) < 0 || fclose(f) != 0 || rename(fresh, path) != 0)
            snprintf(why, sizeof why, "%s: %s", path, strerror(errno));
    }
    agree(why, t->comm);
    if (t->rank == 0 && old >= 0 && old != t->step) {
        path_of(path, directory, old, "model");
        unlink(path);
        for (int i = 0; i < m->params; i++) {
            path_of(path, directory, old, m->param[i].name);
            unlink(path);
        }
    }
    free(first);
    free(second);
}

/* What keeps this program from using a checkpoint, or nothing */
static void check_header(const Trainer *t, const int64_t *h, const char *path, char *why, size_t size)
{
    static const char *const shape[] = {"depth", "heads", "width", "context", "vocabulary"};
    const int have[] = {t->model.L, t->model.H, t->model.C, t->model.T, t->model.V};

    if (h[0] != checkpoint_magic)
        snprintf(why, size, "%s is not a checkpoint of this program, or of a machine of the other byte order", path);
    else if (h[1] != CHECKPOINT_VERSION)
        snprintf(why, size, "%s has checkpoint version %d, this program reads version %d", path, (int)h[1],
                 CHECKPOINT_VERSION);
    else if (h[2] != (int64_t)sizeof(real))
        snprintf(why, size, "%s holds values of %d bytes, this program computes with %d (see TRAIN_DOUBLE)", path,
                 (int)h[2], (int)sizeof(real));
    for (int i = 0; i < 5 && why[0] == '\0'; i++)
        if (h[3 + i] != have[i])
            snprintf(why, size, "%s was made with %s %d, not %d: give the options and the text of the first run again",
                     path, shape[i], (int)h[3 + i], have[i]);
}

/* On rank 0: the reverse of write_model */
static void read_model(Trainer *t, const Text *text, const char *path, int64_t header[HEADER], real *first,
                       real *second, char *why, size_t size)
{
    Model *m = &t->model;
    size_t symbols = (size_t)m->V;
    int *symbol = allocate(symbols, sizeof *symbol), good;
    FILE *f = fopen(path, "rb");

    if (f == NULL) {
        snprintf(why, size, "%s: %s", path, strerror(errno));
        free(symbol);
        return;
    }
    good = fread(header, HEADER * sizeof *header, 1, f) == 1;
    if (good)
        check_header(t, header, path, why, size);
    if (why[0] == '\0') {
        good = good && fread(symbol, sizeof *symbol, symbols, f) == symbols;
        if (good && memcmp(symbol, text->symbol, symbols * sizeof *symbol) != 0)
            snprintf(why, size, "%s was made with another vocabulary: give the text of the first run again", path);
        good = good && fread(m->w.flat, sizeof(real), m->size, f) == m->size;
        good = good && fread(first, sizeof(real), m->size, f) == m->size;
        good = good && fread(second, sizeof(real), m->size, f) == m->size;
        if (!good)
            snprintf(why, size, "%s is cut short", path);
    }
    fclose(f);
    free(symbol);
}

static void checkpoint_load(Trainer *t, const Text *text, const char *directory)
{
    Model *m = &t->model;
    char path[PATH_ROOM], why[1024] = "";
    size_t whole = t->rank == 0 ? m->size : 0;
    real *first = allocate(whole, sizeof *first), *second = allocate(whole, sizeof *second);
    int64_t header[HEADER] = {0};

    if (t->rank == 0 && checkpoint_latest(directory) < 0) {
        snprintf(why, sizeof why, "%s/latest: not there; --resume wants the directory of an earlier --checkpoint",
                 directory);
    } else if (t->rank == 0) {
        path_of(path, directory, checkpoint_latest(directory), "model");
        read_model(t, text, path, header, first, second, why, sizeof why);
    }
    agree(why, t->comm);
    MPI_Bcast(header, HEADER, MPI_INT64_T, 0, t->comm);
    t->step = (int)header[8];
    t->random = (uint64_t)header[9];
    for (int i = 0; i < m->params; i++)
        MPI_Bcast(m->w.flat + m->param[i].offset, m->param[i].size, MPI_REAL_C, 0, t->comm);
    spread(t, first, t->m);
    spread(t, second, t->v);
    for (int i = 0; t->tensor != NULL && header[11] && i < m->params; i++) {
        path_of(path, directory, t->step, m->param[i].name);
        TAGC_Tensor_load(t->tensor[i], path);
    }
    free(first);
    free(second);
}

/* --------------------------------------------------------------------------------------------------------------------
 * The run
 */

typedef struct {
    double val_loss;
    double kept;    /* share of the gradient that this rank sent, in the mean */
    double *losses; /* NULL, or room for one per step */
} Result;

static void print_summary(const Trainer *t, double val_loss, double seconds)
{
    double steps = t->counted > 0 ? t->counted : 1, bytes = t->dense_bytes;
    double sums[3];

    if (t->tensor != NULL)
        TAGC_Get_stat(TAGC_TENSOR_NULL, TAGC_STAT_BYTES_SENT, &bytes);
    sums[0] = bytes, sums[1] = t->comm_seconds, sums[2] = t->kept;
    MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, t->comm);
    if (t->rank == 0)
        printf("summary: collective=%s ranks=%d steps=%d val_loss=%.4f bytes_per_step_rank=%.0f "
               "comm_seconds=%.3f kept=%.4f gather_seconds=%.3f total_seconds=%.3f\n",
               t->o->collective, t->ranks, t->step, val_loss, sums[0] / t->ranks / steps, sums[1] / t->ranks,
               sums[2] / t->ranks / steps, t->gather_seconds, seconds);
}

static void train(const Options *o, MPI_Comm comm, Result *result)
{
    Trainer t;
    Text text;
    FILE *log = NULL;
    double begin = MPI_Wtime(), last = begin, sum = 0, val = NAN;
    int summed = 0;

    text_load(&text, o->text, o->vocab, o->context, comm);
    trainer_init(&t, o, text.symbols, comm);
    if (o->resume != NULL)
        checkpoint_load(&t, &text, o->resume);
    if (t.rank == 0) {
        printf("%s: %zu symbols of %d kinds; %zu parameters; %d ranks with %d sequences of %d each; %s reduces\n",
               o->text, text.tokens, text.symbols, t.model.size, t.ranks, t.model.B, t.model.T, o->collective);
        if (o->resume != NULL)
            printf("%s: going on after step %d\n", o->resume, t.step);
        if (o->log != NULL && (log = fopen(o->log, t.step > 0 ? "a" : "w")) == NULL)
            die("%s: %s", o->log, strerror(errno));
        if (log != NULL && t.step == 0)
            fputs("# step train_loss val_loss\n", log);
    }
    while (t.step < o->steps) {
        double lr = learning_rate(o, t.step), loss, now;
        int at_end = t.step + 1 == o->steps, print;

        draw_batch(&t, &text);
        loss = train_step(&t, t.tokens, t.targets, lr);
        if (result != NULL && result->losses != NULL)
            result->losses[t.step - 1] = loss;
        if (!(loss < 1e30))
            refuse("the loss is %g at step %d; a smaller --lr or a longer --warmup may help", loss, t.step);
        sum += loss;
        summed++;
        print = at_end || t.step == 1 || t.step % o->print_every == 0;
        now = MPI_Wtime();
        val = NAN;
        if (at_end || (o->eval_every > 0 && t.step % o->eval_every == 0))
            val = validate(&t, &text);
        if (t.rank == 0 && (print || !isnan(val))) {
            printf("step %5d/%d  loss %.4f  norm %7.3f  lr %.2e  %6.1f ms", t.step, o->steps, sum / summed, t.norm, lr,
                   1e3 * (now - last) / summed);
            if (!isnan(val))
                printf("  validation %.4f", val);
            putchar('\n');
            fflush(stdout);
            if (log != NULL) {
                if (isnan(val))
                    fprintf(log, "%d %.6f NaN\n", t.step, sum / summed);
                else
                    fprintf(log, "%d %.6f %.6f\n", t.step, sum / summed, val);
            }
        }
        if (print || !isnan(val)) {
            last = MPI_Wtime();
            sum = 0;
            summed = 0;
        }
        if (o->checkpoint != NULL && (at_end || (o->checkpoint_every > 0 && t.step % o->checkpoint_every == 0)))
            checkpoint_save(&t, &text, o->checkpoint);
    }
    if (isnan(val)) /* nothing was left to do, but the question stands */
        val = validate(&t, &text);
    print_summary(&t, val, MPI_Wtime() - begin);
    if (t.rank == 0 && o->sample > 0)
        sample(&t, &text, o->sample, o->temperature);
    if (result != NULL) {
        result->val_loss = val;
        result->kept = t.counted > 0 ? t.kept / t.counted : 0;
    }
    if (log != NULL)
        fclose(log);
    trainer_free(&t);
    text_free(&text);
}

#ifndef TRAIN_NO_MAIN
int main(int argc, char **argv)
{
    Options o;

    MPI_Init(&argc, &argv);
    o = parse_options(argc, argv);
    train(&o, MPI_COMM_WORLD, NULL);
    MPI_Finalize();
    return 0;
}
#endif
