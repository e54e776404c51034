/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Gathers against MPI: every collective x form x type x setting x tensor or not x in place or not x communicator. Lossless
 * gathers give MPI's bits; rounding ones stay within what they promise, the same bits on every rank. */
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const settings[] = {"", "gather=lossless", "gather=native", "gather=bfloat16", "gather=int8"};
enum { DEFAULT, LOSSLESS, NATIVE, BFLOAT16, INT8 }; /* DEFAULT: no tensor */

struct shape {
    int block, type, in_place, drive, setting;
    MPI_Comm comm;
    int rank, size;
    int counts[64], displs[64];
    MPI_Count large[64];
    MPI_Aint places[64];
    size_t n, extent; /* elements gathered; elements of recvbuf, gaps included */
};

/* Uneven, with zeros, in reverse order and with gaps; or the block form. */
static void make(struct shape *s, size_t n)
{
    MPI_Comm_rank(s->comm, &s->rank);
    MPI_Comm_size(s->comm, &s->size);
    s->n = s->extent = 0;
    for (int r = s->size - 1; r >= 0; r--) {
        s->counts[r] = s->block ? (int)n : r % 3 == 1 ? 0 : (int)n + r;
        s->displs[r] = s->block ? r * (int)n : (int)s->extent + 1;
        s->large[r] = s->counts[r];
        s->places[r] = s->displs[r];
        s->extent += (size_t)s->counts[r] + 2;
        s->n += (size_t)s->counts[r];
    }
    if (s->block)
        s->extent = s->n;
}

static int call(const struct shape *s, const void *send, void *recv, TAGC_Tensor t)
{
    MPI_Datatype type = t_datatype(s->type);
    int own = s->counts[s->rank], code;
    TAGC_Request q = TAGC_REQUEST_NULL;
    switch (s->drive * 2 + s->block) {
    case 0:
        return TAGC_Allgatherv(send, own, type, recv, s->counts, s->displs, type, s->comm, t);
    case 1:
        return TAGC_Allgather(send, own, type, recv, own, type, s->comm, t);
    case 2:
        code = TAGC_Iallgatherv(send, own, type, recv, s->counts, s->displs, type, s->comm, t, &q);
        break;
    case 3:
        code = TAGC_Iallgather(send, own, type, recv, own, type, s->comm, t, &q);
        break;
    case 4:
        code = TAGC_Allgatherv_init(send, own, type, recv, s->counts, s->displs, type, s->comm, t, MPI_INFO_NULL, &q);
        break;
    case 5:
        code = TAGC_Allgather_init(send, own, type, recv, own, type, s->comm, t, MPI_INFO_NULL, &q);
        break;
    case 6:
        return TAGC_Allgatherv_c(send, own, type, recv, s->large, s->places, type, s->comm, t);
    case 7:
        return TAGC_Allgather_c(send, own, type, recv, own, type, s->comm, t);
    case 8:
        code = TAGC_Iallgatherv_c(send, own, type, recv, s->large, s->places, type, s->comm, t, &q);
        break;
    case 9:
        code = TAGC_Iallgather_c(send, own, type, recv, own, type, s->comm, t, &q);
        break;
    case 10:
        code = TAGC_Allgatherv_init_c(send, own, type, recv, s->large, s->places, type, s->comm, t, MPI_INFO_NULL, &q);
        break;
    default:
        code = TAGC_Allgather_init_c(send, own, type, recv, own, type, s->comm, t, MPI_INFO_NULL, &q);
    }
    int persistent = s->drive % 3 == 2;
    if (!code && persistent)
        code = TAGC_Start(&q);
    if (!code)
        code = TAGC_Wait(&q);
    if (persistent)
        OK(TAGC_Request_free(&q));
    CHECK(q == TAGC_REQUEST_NULL);
    return code;
}

/* Error that a rounding gather may make of x; `largest`: of the magnitudes that share its scale. */
static double allowed(const struct shape *s, double x, double largest)
{
    double own = t_half_unit(s->type, 1, x); /* back in the element type */
    if (s->setting == BFLOAT16)
        return s->type == T_BF16 ? 0 : t_half_unit(T_BF16, 1, x) + (s->type == T_F16 ? 2 * own : 0);
    if (s->setting == INT8)
        /* A scale is a bfloat16, so none is below 2^-133. */
        return fmax(largest / 127 * 0.51, 0x1p-133) + 2 * own + t_half_unit(s->type, 1, largest);
    return 0;
}

static void check_result(const struct shape *s, int kind, int step, const unsigned char *recv)
{
    size_t width = t_size_of(s->type), wrong = 0;
    unsigned char *want = malloc(width * s->extent + 1);
    for (int r = 0; r < s->size; r++) {
        size_t n = (size_t)s->counts[r];
        const unsigned char *got = recv + (size_t)s->displs[r] * width;
        t_fill(kind, s->type, r, step, want, n);
        int exact = s->setting <= NATIVE || (s->in_place && r == s->rank);
        if (exact && n) {
            CHECK(memcmp(want, got, n * width) == 0, "the part of rank %d has other bits", r);
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            double x = t_get(s->type, want, i), y = t_get(s->type, got, i), largest = 0;
            for (size_t k = i / 128 * 128; k < n && k < i / 128 * 128 + 128; k++) {
                double z = fabs(t_get(s->type, want, k));
                largest = isfinite(z) && z > largest ? z : largest;
            }
            int good = isnan(x) ? isnan(y) : isinf(x) ? y == x : fabs(x - y) <= allowed(s, x, largest);
            if (!good && !wrong++)
                CHECK(0, "element %zu of rank %d: %.9g became %.9g", i, r, x, y);
        }
    }
    free(want);
}

static void run_case(const struct shape *s, int kind, const char *verify)
{
    char text[80];
    snprintf(text, sizeof text, "%s %s", settings[s->setting], verify);
    size_t width = t_size_of(s->type), own = (size_t)s->counts[s->rank];
    TAGC_Tensor t = s->setting ? t_tensor(s->comm, "g", s->n, s->type, text) : TAGC_TENSOR_NULL;
    for (int step = 0; step < 3; step++) {
        struct t_buffer send, recv;
        t_buffer_make(&send, s->in_place ? 0 : own * width);
        t_buffer_make(&recv, s->extent * width);
        if (own)
            t_fill(kind, s->type, s->rank, step / 2, /* the second is as the first: nothing changed */
                   s->in_place ? recv.at + (size_t)s->displs[s->rank] * width : send.at, own);
        unsigned char *before = malloc(s->extent * width + 1);
        if (s->extent)
            memcpy(before, recv.at, s->extent * width);
        OK(call(s, s->in_place ? MPI_IN_PLACE : send.at, recv.at, t));
        if (s->extent)
            check_result(s, kind, step / 2, recv.at);
        for (int r = 0; r < s->size && !s->block; r++) /* one element before each part, one behind */
            for (int side = 0; side < 2; side++) {
                size_t at = (size_t)(s->displs[r] + (side ? s->counts[r] : -1)) * width;
                CHECK(memcmp(before + at, recv.at + at, width) == 0, "written beside the part of rank %d", r);
            }
        free(before);
        CHECK(t_buffer_guarded(&send) && t_buffer_guarded(&recv), "written outside a buffer");
        /* All ranks hold the same bits. */
        if (!s->in_place && s->extent) {
            unsigned char *first = malloc(s->extent * width);
            memcpy(first, recv.at, s->extent * width);
            MPI_Bcast(first, (int)(s->extent * width), MPI_BYTE, 0, s->comm);
            CHECK(memcmp(first, recv.at, s->extent * width) == 0, "not the bits of rank 0");
            free(first);
        }
        t_buffer_free(&send);
        t_buffer_free(&recv);
    }
    if (t != TAGC_TENSOR_NULL)
        OK(TAGC_Tensor_free(&t));
}

static void cross_product(unsigned every)
{
    static const int sizes[] = {2, T_TYPES, 2, 6, COUNT(settings), T_COMMS};
    static const size_t lengths[] = {0, 1, 3, 64, 127, 1000, 1025, 4099};
    unsigned total = 1;
    for (size_t d = 0; d < COUNT(sizes); d++)
        total *= (unsigned)sizes[d];
    for (unsigned c = 0; c < total; c += every) {
        int at[COUNT(sizes)];
        unsigned rest = (unsigned)((uint64_t)c * 7919 % total);
        for (size_t d = 0; d < COUNT(sizes); d++) {
            at[d] = (int)(rest % (unsigned)sizes[d]);
            rest /= (unsigned)sizes[d];
        }
        struct shape s = {.block = at[0], .type = at[1], .in_place = at[2], .drive = at[3], .setting = at[4]};
        s.comm = t_comm(at[5]);
        make(&s, lengths[c / 3 % COUNT(lengths)]);
        int kind = (int)(c % T_KINDS);
        const char *verify = c / every % 3 ? "" : "verify=error";
        t_step("case %u: %s, form %d, %zu %s, \"%s %s\", %s, %s, %s data", c, s.block ? "block" : "v", s.drive, s.n,
               t_type_names[s.type], settings[s.setting], verify, s.in_place ? "in place" : "not in place",
               t_comm_names[at[5]], t_kind_names[kind]);
        run_case(&s, kind, verify);
    }
    t_agree();
}

/* Parts of many blocks, more than there are messages in flight, uneven: they go around the ring in pieces. */
static void long_parts(void)
{
    static const char *const checks[] = {"checksum=true", "verify=error"};
    for (int in_place = 0; in_place < 2; in_place++)
        for (int drive = 0; drive < 3; drive++) {
            struct shape s = {.type = drive == 1 ? T_F32 : T_BF16, .in_place = in_place, .drive = drive};
            s.setting = drive == 2 ? INT8 : LOSSLESS;
            s.comm = MPI_COMM_WORLD;
            make(&s, in_place ? 32768 * 3 : 32768 * 20 + 5);
            t_step("long parts, form %d, \"%s\", %s", drive, settings[s.setting],
                   in_place ? "in place" : "not in place");
            run_case(&s, T_GAUSSIAN, checks[drive % 2]);
        }
    t_agree();
}

/* Trained weights change little: their gathers with memory take a part of the bytes, and the counter says so. Then one
 * rank forgets, and the next gather is whole, once. */
static void memory(void)
{
    enum { N = 50000 };
    t_step("memory");
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "w", (size_t)N * (size_t)t_size, T_BF16, "gather=lossless");
    unsigned char *send = malloc(N * 2), *recv = malloc((size_t)N * 2 * (size_t)t_size);
    double before = 0;
    for (int step = 0; step < 20; step++) {
        for (size_t i = 0; i < N; i++) {
            double w = t_value(T_GAUSSIAN, T_F32, t_rank, 0, i);
            t_set(T_BF16, send, i, w * (1 + 1e-3 * step * t_uniform(7, i)));
        }
        if (step == 10 && t_rank == 0) { /* what a rank does after it was restored from a checkpoint */
            MPI_Count bytes;
            OK(TAGC_Tensor_pack_size(t, &bytes));
            void *image = malloc((size_t)bytes);
            OK(TAGC_Tensor_pack(t, image, bytes));
            OK(TAGC_Tensor_unpack(t, image, bytes));
            free(image);
        }
        OK(TAGC_Allgather(send, N, TAGC_BFLOAT16, recv, N, TAGC_BFLOAT16, MPI_COMM_WORLD, t));
        CHECK(memcmp(send, recv + (size_t)t_rank * N * 2, N * 2) == 0);
        double sent = t_stat(t, TAGC_STAT_BYTES_SENT), dense = 2.0 * N * (t_size - 1);
        double share = t_size > 1 ? (sent - before) / dense : 0;
        CHECK(share < (step == 0 ? 0.8 : step == 10 ? 1.3 : 0.45), "step %d: %.3f of the bytes", step, share);
        before = sent;
    }
    CHECK(t_stat(t, TAGC_STAT_REGATHERED) == (t_size > 1), "%g whole gathers", t_stat(t, TAGC_STAT_REGATHERED));
    OK(TAGC_Tensor_free(&t));
    free(send);
    free(recv);
    t_agree();
}

/* Without a tensor nothing is rounded, whatever the environment says. */
static void exact(void)
{
    enum { N = 1000 };
    static const char *const asked[] = {"int8", "bfloat16", "native", "lossless"};
    float own[N], *got = malloc(sizeof own * (size_t)t_size), *want = malloc(sizeof own * (size_t)t_size);
    t_fill(T_GAUSSIAN, T_F32, t_rank, 0, own, N);
    OK(MPI_Allgather(own, N, MPI_FLOAT, want, N, MPI_FLOAT, MPI_COMM_WORLD));
    for (size_t i = 0; i < COUNT(asked); i++) {
        MPI_Comm fresh; /* settings without a tensor are a communicator's, read at its first call */
        t_step("no tensor, TAGC_GATHER=%s", asked[i]);
        setenv("TAGC_GATHER", asked[i], 1);
        MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
        OK(TAGC_Allgather(own, N, MPI_FLOAT, got, N, MPI_FLOAT, fresh, TAGC_TENSOR_NULL));
        CHECK(!memcmp(got, want, sizeof own * (size_t)t_size));
        MPI_Comm_free(&fresh);
    }
    unsetenv("TAGC_GATHER");
    free(got);
    free(want);
}

static void others(void)
{
    t_step("case 4: sendbuf is the own part of recvbuf");
    float *recv = calloc(4 * (size_t)t_size, sizeof *recv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = TAGC_Allgather(recv + 4 * t_rank, 4, MPI_FLOAT, recv, 4, MPI_FLOAT, MPI_COMM_WORLD, TAGC_TENSOR_NULL);
    CHECK(t_class(code) == MPI_ERR_BUFFER && strstr(t_error_text(code), "MPI_IN_PLACE"));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);

    t_step("integers, with a tensor of integers");
    int *numbers = calloc(8 * (size_t)t_size, sizeof *numbers), own[8];
    TAGC_Tensor t = TAGC_TENSOR_NULL;
    OK(TAGC_Tensor_create(MPI_COMM_WORLD, "i", 8 * t_size, MPI_INT, MPI_INFO_NULL, &t));
    for (int i = 0; i < 8; i++)
        own[i] = t_rank * 100 + i;
    OK(TAGC_Allgather(own, 8, MPI_INT, numbers, 8, MPI_INT, MPI_COMM_WORLD, t));
    for (int i = 0; i < 8 * t_size; i++)
        CHECK(numbers[i] == i / 8 * 100 + i % 8);
    OK(TAGC_Tensor_free(&t));

    t_step("case 10: the same signature, other types on one rank");
    double pair[2] = {t_rank, -t_rank}, *pairs = calloc(2 * (size_t)t_size, sizeof *pairs);
    MPI_Datatype two;
    MPI_Type_contiguous(2, MPI_DOUBLE, &two);
    MPI_Type_commit(&two);
    if (t_rank == 1)
        OK(TAGC_Allgather(pair, 1, two, pairs, 1, two, MPI_COMM_WORLD, TAGC_TENSOR_NULL));
    else
        OK(TAGC_Allgather(pair, 2, MPI_DOUBLE, pairs, 2, MPI_DOUBLE, MPI_COMM_WORLD, TAGC_TENSOR_NULL));
    for (int i = 0; i < 2 * t_size; i++)
        CHECK(pairs[i] == (i % 2 ? -(i / 2) : i / 2));
    MPI_Type_free(&two);
    free(recv);
    free(numbers);
    free(pairs);
}

int main(int argc, char **argv)
{
    t_start(&argc, &argv, 60);
    cross_product(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    long_parts();
    memory();
    exact();
    others();
    return t_end();
}
