/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * One collective on one vector: its data, and the calls. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "tools/bench_mpi.h"
#include "util/mem.h"

void bench_ok(int code, const char *what)
{
    char text[TAGC_MAX_ERROR_STRING];
    int length, rank;
    if (!code)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    TAGC_Error_string(code, text, &length);
    fprintf(stderr, "tagc_bench: rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- data ---- */

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void put(enum tagci_type type, void *at, size_t i, double x)
{
    if (type == TAGCI_F64)
        ((double *)at)[i] = x;
    else if (type == TAGCI_F32)
        ((float *)at)[i] = (float)x;
    else
        ((uint16_t *)at)[i] = type == TAGCI_F16 ? tagci_f64_to_f16(x) : tagci_f64_to_bf16(x);
}

static double drawn(enum bench_kind kind, uint64_t *state)
{
    double u = ((double)(next(state) >> 11) + 0.5) * 0x1p-53, v = (double)(next(state) >> 11) * 0x1p-53;
    return 0.01 *
           (kind == BENCH_LAPLACE ? log(u) * (v < 0.5 ? 1 : -1) : sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

static void file_name(const char *pattern, int rank, char *name, size_t size)
{
    const char *at = strstr(pattern, "rank0");
    if (at)
        snprintf(name, size, "%.*srank%d%s", (int)(at - pattern), pattern, rank, at + 5);
    else
        snprintf(name, size, "%s", pattern);
}

static float *read_file(const char *pattern, int rank, size_t *n)
{
    char name[1024];
    file_name(pattern, rank, name, sizeof name);
    FILE *f = fopen(name, "rb");
    long bytes = -1;
    float *x = NULL;
    if (f && !fseek(f, 0, SEEK_END) && (bytes = ftell(f)) >= 4) {
        rewind(f);
        *n = (size_t)bytes / sizeof *x;
        x = tagci_alloc(*n, sizeof *x);
        if (x && fread(x, sizeof *x, *n, f) != *n) {
            tagci_free(x);
            x = NULL;
        }
    }
    if (f)
        fclose(f);
    if (!x)
        fprintf(stderr, "tagc_bench: %s: no floats can be read from it\n", name);
    return x;
}

size_t bench_file_elements(const struct bench_options *o, int rank)
{
    size_t n = 0;
    float *x = read_file(o->file[0], rank, &n);
    tagci_free(x);
    return x ? n : 0;
}

/* A reduction's data are this rank's, longer files cut and shorter ones repeated; a gather's are its part of the whole. */
static int fill_real(struct bench_case *b)
{
    const struct bench_options *o = b->o;
    int gather = tagci_is_gather(o->what);
    for (int s = 0; s < b->states; s++) {
        size_t n, first = gather ? (size_t)b->displs[b->rank] : 0;
        float *x = read_file(o->file[s], b->rank, &n);
        if (!x)
            return -1;
        for (size_t i = 0; i < b->n_in; i++)
            put(o->type, b->data + (size_t)s * b->n_in * b->width, i, x[(first + i) % n]);
        tagci_free(x);
    }
    return 0;
}

static void fill_drawn(struct bench_case *b)
{
    uint64_t state = (uint64_t)(b->rank + 1) * 0x2545f4914f6cdd1du;
    enum tagci_type type = b->o->type;
    if (!tagci_is_gather(b->o->what)) {
        for (size_t i = 0; i < b->n_in + b->slack; i++)
            put(type, b->data, i, drawn(b->o->kind, &state));
        return;
    }
    /* Weights, and a step of a training run later */
    for (size_t i = 0; i < b->n_in; i++) {
        double x = drawn(b->o->kind, &state);
        put(type, b->data, i, x);
        put(type, b->data + b->n_in * b->width, i, x + 0.004 * drawn(b->o->kind, &state));
    }
}

const void *bench_input(const struct bench_case *b, int i)
{
    size_t skip = b->slack ? (size_t)i * 10007 * 16 % b->slack : 0;
    return b->data + ((size_t)(i % b->states) * b->n_in + skip) * b->width;
}

/* ---- MPI's sum of 16-bit types ---- */

static void sum_f16(void *in, void *io, int *n, MPI_Datatype *type)
{
    uint16_t *x = in, *y = io;
    (void)type;
    for (int i = 0; i < *n; i++)
        y[i] = tagci_f32_to_f16(tagci_f16_to_f32(x[i]) + tagci_f16_to_f32(y[i]));
}

static void sum_bf16(void *in, void *io, int *n, MPI_Datatype *type)
{
    uint16_t *x = in, *y = io;
    (void)type;
    for (int i = 0; i < *n; i++)
        y[i] = tagci_f32_to_bf16(tagci_bf16_to_f32(x[i]) + tagci_bf16_to_f32(y[i]));
}

/* ---- life ---- */

static int allocate(struct bench_case *b)
{
    const struct bench_options *o = b->o;
    int gather = tagci_is_gather(o->what);
    b->states = o->kind == BENCH_REAL ? o->files : gather ? 2 : 1;
    /* A persistent operation reads one place. */
    b->slack = gather || o->kind == BENCH_REAL ? 0 : b->n < (1 << 22) ? (b->n + 3) / 4 : 1 << 20;
    b->data = tagci_alloc(b->n_in * (size_t)b->states + b->slack, b->width);
    b->out = tagci_alloc_zero(o->in_place && b->n_in > b->n_out ? b->n_in : b->n_out, b->width);
    b->fixed = o->persistent && !o->in_place ? tagci_alloc_zero(b->n_in, b->width) : NULL;
    return b->data && b->out && (b->fixed || !o->persistent || o->in_place);
}

static void make_request(struct bench_case *b);

int bench_case_make(struct bench_case *b, const struct bench_options *o, size_t n)
{
    memset(b, 0, sizeof *b);
    b->o = o;
    MPI_Comm_rank(MPI_COMM_WORLD, &b->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b->ranks);
    int gather = tagci_is_gather(o->what);
    size_t ranks = (size_t)b->ranks;
    if (o->what == TAGCI_REDUCE_SCATTER_BLOCK || o->what == TAGCI_ALLGATHER)
        n = (n + ranks - 1) / ranks * ranks;
    b->n = n;
    b->width = tagci_type_size(o->type);
    b->counts = tagci_alloc(2 * ranks, sizeof(int));
    b->displs = b->counts + ranks;
    for (size_t r = 0, at = 0; b->counts && r < ranks; r++) {
        b->counts[r] = (int)(n / ranks + (r < n % ranks));
        b->displs[r] = (int)at;
        at += (size_t)b->counts[r];
    }
    b->own = b->counts ? (size_t)b->counts[b->rank] : 0;
    b->n_in = gather ? b->own : n;
    b->n_out = gather || o->what == TAGCI_ALLREDUCE ? n : b->own;
    const MPI_Datatype types[TAGCI_TYPES] = {
        [TAGCI_F32] = MPI_FLOAT, [TAGCI_F16] = TAGC_FLOAT16, [TAGCI_BF16] = TAGC_BFLOAT16, [TAGCI_F64] = MPI_DOUBLE};
    b->datatype = types[o->type];
    b->sum = MPI_SUM;
    if (b->width == 2)
        MPI_Op_create(o->type == TAGCI_F16 ? sum_f16 : sum_bf16, 1, &b->sum);
    int bad = !b->counts || !allocate(b);
    if (bad)
        fprintf(stderr, "tagc_bench: rank %d: no memory for %zu elements\n", b->rank, n);
    else if (o->kind == BENCH_REAL)
        bad = fill_real(b);
    else
        fill_drawn(b);
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    b->tensor = TAGC_TENSOR_NULL;
    b->request = TAGC_REQUEST_NULL;
    if (bad) {
        bench_case_free(b);
        return -1;
    }
    if (!o->no_tensor)
        bench_ok(TAGC_Tensor_create_c(MPI_COMM_WORLD, "bench", (MPI_Count)n, b->datatype, o->info, &b->tensor),
                 "settings");
    if (o->persistent)
        make_request(b);
    return 0;
}

void bench_case_free(struct bench_case *b)
{
    if (b->request != TAGC_REQUEST_NULL)
        TAGC_Request_free(&b->request);
    if (b->tensor != TAGC_TENSOR_NULL)
        TAGC_Tensor_free(&b->tensor);
    if (b->sum != MPI_SUM)
        MPI_Op_free(&b->sum);
    tagci_free(b->data);
    tagci_free(b->out);
    tagci_free(b->fixed);
    tagci_free(b->counts);
}

/* ---- calls ---- */

/* Where call i reads. */
static const void *source(const struct bench_case *b, int i)
{
    return b->o->in_place ? MPI_IN_PLACE : b->fixed ? b->fixed : bench_input(b, i);
}

void bench_prepare(struct bench_case *b, int i)
{
    size_t bytes = b->n_in * b->width;
    char *to = b->fixed;
    if (b->o->in_place)
        to = b->out + (tagci_is_gather(b->o->what) ? (size_t)b->displs[b->rank] * b->width : 0);
    if (to && bytes)
        memcpy(to, bench_input(b, i), bytes);
}

void bench_call_mpi(struct bench_case *b, int i)
{
    const void *in = source(b, i);
    MPI_Comm comm = MPI_COMM_WORLD;
    int part = (int)b->own, code;
    switch (b->o->what) {
    case TAGCI_REDUCE_SCATTER:
        code = MPI_Reduce_scatter(in, b->out, b->counts, b->datatype, b->sum, comm);
        break;
    case TAGCI_REDUCE_SCATTER_BLOCK:
        code = MPI_Reduce_scatter_block(in, b->out, part, b->datatype, b->sum, comm);
        break;
    case TAGCI_ALLREDUCE:
        code = MPI_Allreduce(in, b->out, (int)b->n, b->datatype, b->sum, comm);
        break;
    case TAGCI_ALLGATHER:
        code = MPI_Allgather(in, part, b->datatype, b->out, part, b->datatype, comm);
        break;
    default:
        code = MPI_Allgatherv(in, part, b->datatype, b->out, b->counts, b->displs, b->datatype, comm);
    }
    bench_ok(code, "MPI");
}

static void make_request(struct bench_case *b)
{
    const void *in = source(b, 0);
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Info none = MPI_INFO_NULL;
    int part = (int)b->own, code;
    switch (b->o->what) {
    case TAGCI_REDUCE_SCATTER:
        code =
            TAGC_Reduce_scatter_init(in, b->out, b->counts, b->datatype, MPI_SUM, comm, b->tensor, none, &b->request);
        break;
    case TAGCI_REDUCE_SCATTER_BLOCK:
        code =
            TAGC_Reduce_scatter_block_init(in, b->out, part, b->datatype, MPI_SUM, comm, b->tensor, none, &b->request);
        break;
    case TAGCI_ALLREDUCE:
        code = TAGC_Allreduce_init(in, b->out, (int)b->n, b->datatype, MPI_SUM, comm, b->tensor, none, &b->request);
        break;
    case TAGCI_ALLGATHER:
        code =
            TAGC_Allgather_init(in, part, b->datatype, b->out, part, b->datatype, comm, b->tensor, none, &b->request);
        break;
    default:
        code = TAGC_Allgatherv_init(in, part, b->datatype, b->out, b->counts, b->displs, b->datatype, comm, b->tensor,
                                    none, &b->request);
    }
    bench_ok(code, "initialization");
}

void bench_call_tagc(struct bench_case *b, int i)
{
    const void *in = source(b, i);
    MPI_Comm comm = MPI_COMM_WORLD;
    int part = (int)b->own, code;
    if (b->o->persistent) {
        bench_ok(TAGC_Start(&b->request), "start");
        bench_ok(TAGC_Wait(&b->request), "call");
        return;
    }
    switch (b->o->what) {
    case TAGCI_REDUCE_SCATTER:
        code = TAGC_Reduce_scatter(in, b->out, b->counts, b->datatype, MPI_SUM, comm, b->tensor);
        break;
    case TAGCI_REDUCE_SCATTER_BLOCK:
        code = TAGC_Reduce_scatter_block(in, b->out, part, b->datatype, MPI_SUM, comm, b->tensor);
        break;
    case TAGCI_ALLREDUCE:
        code = TAGC_Allreduce(in, b->out, (int)b->n, b->datatype, MPI_SUM, comm, b->tensor);
        break;
    case TAGCI_ALLGATHER:
        code = TAGC_Allgather(in, part, b->datatype, b->out, part, b->datatype, comm, b->tensor);
        break;
    default:
        code = TAGC_Allgatherv(in, part, b->datatype, b->out, b->counts, b->displs, b->datatype, comm, b->tensor);
    }
    bench_ok(code, "call");
}
