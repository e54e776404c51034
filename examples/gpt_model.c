/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Read from top to bottom: trouble, random numbers, arithmetic of rows, layers, model. -fno-math-errno -fno-trapping-math
 * let gcc vectorise the loops over activations; they change no result. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "gpt_model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CBLAS
#include <cblas.h>
#ifdef TRAIN_DOUBLE
#define CBLAS_GEMM cblas_dgemm
#else
#define CBLAS_GEMM cblas_sgemm
#endif
#endif

/* --------------------------------------------------------------------------------------------------------------------
 * Trouble
 */

void die(const char *format, ...)
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

void refuse(const char *format, ...)
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

void *allocate(size_t count, size_t size)
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
 * Random numbers
 */

uint64_t random_bits(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

double random_uniform(uint64_t *state)
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

/* Other libraries behind cblas.h do not have this call. */
#if defined(HAVE_CBLAS) && defined(__GNUC__)
extern void openblas_set_num_threads(int threads) __attribute__((weak));
#endif

void set_threads(int threads)
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

static void meanwhile(const Model *m)
{
    if (m->hooks.meanwhile)
        m->hooks.meanwhile(m->hooks.who);
}

/* y (n, out) = x (n, in) w^T, or added to what y holds */
static void linear_forward(const Model *m, real *y, const real *x, const real *w, int n, int in, int out, int add)
{
    matmul(0, 1, n, out, in, 1, x, in, w, in, (real)add, y, out);
    meanwhile(m);
}

/* dw (out, in) = dy^T x;  dx (n, in) = dy w */
static void linear_backward(const Model *m, real *dx, real *dw, const real *dy, const real *x, const real *w, int n,
                            int in, int out)
{
    matmul(1, 0, out, in, n, 1, dy, out, x, in, 0, dw, in);
    meanwhile(m);
    matmul(0, 0, n, in, out, 1, dy, out, w, in, 0, dx, in);
    meanwhile(m);
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

void model_init(Model *m, int L, int H, int C, int V, int T, int B)
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

void model_free(Model *m)
{
    free(m->param);
    free(m->w.flat);
    free(m->w.h);
    free(m->grad.flat);
    free(m->grad.h);
    free(m->trace);
    free(m->room);
}

void first_weights(Model *m, uint64_t seed)
{
    for (int i = 0; i < m->params; i++) {
        real *w = m->w.flat + m->param[i].offset;

        for (int j = 0; j < m->param[i].size; j++)
            w[j] = m->param[i].spread > 0 ? (real)(m->param[i].spread * random_normal(&seed)) : 1;
    }
}

int model_group(const Model *m, int group)
{
    return group == 0 ? 0 : group <= m->L + 1 ? 2 + 6 * (group - 1) : m->params;
}

static void weights_wanted(const Model *m, int group)
{
    if (m->hooks.weights_wanted)
        m->hooks.weights_wanted(m->hooks.who, group);
}

static void gradients_ready(const Model *m, int group)
{
    if (m->hooks.gradients_ready)
        m->hooks.gradients_ready(m->hooks.who, group);
}

void model_forward(Model *m, const int *tokens, int B, int T)
{
    int n = B * T, C = m->C;
    size_t stream = (size_t)n * C * sizeof(real);
    real *x = m->trace[0].x;

    weights_wanted(m, 0);
    for (int i = 0; i < n; i++) {
        const real *te = m->w.wte + (size_t)tokens[i] * C, *pe = m->w.wpe + (size_t)(i % T) * C;

        for (int c = 0; c < C; c++)
            x[(size_t)i * C + c] = te[c] + pe[c];
    }
    for (int l = 0; l < m->L; l++) {
        const Block *w = &m->w.h[l];
        Trace *t = &m->trace[l];

        weights_wanted(m, l + 1);
        layernorm_forward(t->ln_1, t->mean_1, t->rstd_1, t->x, w->ln_1, n, C);
        linear_forward(m, t->qkv, t->ln_1, w->attn_c_attn, n, C, 3 * C, 0);
        attention_forward(t->y, t->p, t->qkv, B, T, C, m->H);
        memcpy(t->mid, t->x, stream);
        linear_forward(m, t->mid, t->y, w->attn_c_proj, n, C, C, 1);

        layernorm_forward(t->ln_2, t->mean_2, t->rstd_2, t->mid, w->ln_2, n, C);
        linear_forward(m, t->fc, t->ln_2, w->mlp_c_fc, n, C, 4 * C, 0);
        gelu_forward(t->act, t->fc, (size_t)n * 4 * C);
        x = l + 1 < m->L ? m->trace[l + 1].x : m->x;
        memcpy(x, t->mid, stream);
        linear_forward(m, x, t->act, w->mlp_c_proj, n, 4 * C, C, 1);
    }
    weights_wanted(m, m->L + 1);
    layernorm_forward(m->ln_f, m->mean_f, m->rstd_f, m->x, m->w.ln_f, n, C);
    linear_forward(m, m->logits, m->ln_f, m->w.wte, n, C, m->V, 0);
}

double model_loss(Model *m, const int *tokens, const int *targets, int B, int T)
{
    model_forward(m, tokens, B, T);
    return cross_entropy(m->logits, targets, B * T, m->V);
}

void model_backward(Model *m, const int *tokens, int B, int T)
{
    int n = B * T, C = m->C;
    size_t stream = (size_t)n * C * sizeof(real);

    linear_backward(m, m->dn, m->grad.wte, m->logits, m->ln_f, m->w.wte, n, C, m->V);
    memset(m->dx, 0, stream);
    layernorm_backward(m->dx, m->grad.ln_f, m->dn, m->x, m->mean_f, m->rstd_f, m->w.ln_f, n, C, m->hat);
    gradients_ready(m, m->L + 1);
    for (int l = m->L - 1; l >= 0; l--) {
        const Block *w = &m->w.h[l], *g = &m->grad.h[l];
        const Trace *t = &m->trace[l];

        linear_backward(m, m->dwide, g->mlp_c_proj, m->dx, t->act, w->mlp_c_proj, n, 4 * C, C);
        gelu_backward(m->dwide, t->fc, (size_t)n * 4 * C);
        linear_backward(m, m->dn, g->mlp_c_fc, m->dwide, t->ln_2, w->mlp_c_fc, n, C, 4 * C);
        layernorm_backward(m->dx, g->ln_2, m->dn, t->mid, t->mean_2, t->rstd_2, w->ln_2, n, C, m->hat);

        linear_backward(m, m->dn, g->attn_c_proj, m->dx, t->y, w->attn_c_proj, n, C, C);
        attention_backward(m->dqkv, m->dn, t->p, t->qkv, B, T, C, m->H, m->dp);
        linear_backward(m, m->dn, g->attn_c_attn, m->dqkv, t->ln_1, w->attn_c_attn, n, C, 3 * C);
        layernorm_backward(m->dx, g->ln_1, m->dn, t->x, t->mean_1, t->rstd_1, w->ln_1, n, C, m->hat);
        gradients_ready(m, l + 1);
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
    gradients_ready(m, 0);
}
