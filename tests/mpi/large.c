/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * More than 2^31 bytes and more than 2^31 elements, really sent. The vectors are zero but for single elements around the
 * places where a number of 31 or 32 bits ends, so that what is only read takes no memory; every element of a result is
 * looked at. Without TAGC_ALGORITHM the gathers run, with it the reductions by that algorithm. A case that wants more memory than there is, is left out. */
#include "config.h"

#include "common.h"

#include <stdlib.h>
#include <string.h>

#define GIB ((size_t)1 << 30)
#ifdef HAVE_MPI_LARGE_COUNT
enum { LARGE_COUNTS = 1 };
#else
enum { LARGE_COUNTS = 0 };
#endif

static int ran, left_out;

/* Whether all ranks together, on this node, may take so many GiB. */
static int there_is(double gib)
{
    double have = 0;
    if (t_rank == 0) {
        char line[200];
        unsigned long long kib;
        FILE *f = fopen("/proc/meminfo", "r");
        while (f && fgets(line, sizeof line, f))
            if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
                have = (double)kib / (1 << 20);
        if (f)
            fclose(f);
    }
    MPI_Bcast(&have, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    int enough = have > gib + 1;
    *(enough ? &ran : &left_out) += 1;
    if (!enough && t_rank == 0)
        printf("left out: it takes %.0f GiB, and %.0f are there\n", gib, have);
    return enough;
}

static void *zeros(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p) {
        fprintf(stderr, "no memory for %zu elements\n", n);
        MPI_Abort(MPI_COMM_WORLD, 5);
    }
    return p;
}

/* Whether element i of a vector of n is one that is not zero: at both ends, and beside the powers of two. */
static int is_marked(size_t i, size_t n)
{
    for (int bit = 28; bit < 33; bit++)
        if (i + 2 >= (size_t)1 << bit && i < ((size_t)1 << bit) + 2)
            return 1;
    return i < 2 || i + 2 >= n;
}

/* The marked elements of [from, to), as many as there are; *at has room for 32. */
static int marked(size_t from, size_t to, size_t n, size_t *at)
{
    int k = 0;
    for (int bit = 0; bit < 64; bit++) {
        size_t power = bit < 33 ? (size_t)1 << bit : n;
        for (size_t i = power < 4 ? 0 : power - 4; i < power + 4; i++)
            if (i >= from && i < to && is_marked(i, n) && (!k || i > at[k - 1]) && k < 32)
                at[k++] = i;
        if (bit >= 33)
            break;
    }
    return k;
}

/* Elements of got, which are [from, from + n) of a vector of total, that are not want(i) where i is marked and else zero.
 * width 1: bytes */
static size_t wrong_ones(int type, size_t width, const void *got, size_t from, size_t n, size_t total,
                         double (*want)(size_t i))
{
    enum { BLOCK = 4096 };
    static const unsigned char zero[BLOCK * 4];
    size_t at[32], wrong = 0, found = 0;
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        size_t length = n - begin < BLOCK ? n - begin : BLOCK;
        const unsigned char *block = (const unsigned char *)got + begin * width;
        if (!memcmp(block, zero, length * width))
            continue;
        for (size_t i = 0; i < length; i++) {
            size_t whole = from + begin + i;
            int mark = is_marked(whole, total);
            wrong += (width > 1 ? t_get(type, block + i * width, 0) : block[i]) != (mark ? want(whole) : 0);
            found += (size_t)mark;
        }
    }
    size_t marks = (size_t)marked(from, from + n, total, at);
    return found > marks ? found : wrong + (marks - found);
}

/* ---- gathers ---- */

static double want_byte(size_t i)
{
    return (double)(i % 251 + 1);
}

/* No element of the whole is small enough in number or in bytes for an int, through the engine as well. */
static void bytes(void)
{
    size_t part = GIB + 7, n = part * (size_t)t_size, at[32];
    t_step("Allgather_c, %zu bytes from each rank", part);
    if (!there_is(2.0 * (double)n * t_size / GIB))
        return;
    unsigned char *send = zeros(part, 1), *recv = zeros(n, 1);
    size_t mine = part * (size_t)t_rank;
    int k = marked(mine, mine + part, n, at);
    for (int i = 0; i < k; i++)
        send[at[i] - mine] = (unsigned char)want_byte(at[i]);
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        TAGC_Request q;
        memset(recv, 0x55, n);
        if (nonblocking) {
            OK(TAGC_Iallgather_c(send, (MPI_Count)part, MPI_BYTE, recv, (MPI_Count)part, MPI_BYTE, MPI_COMM_WORLD,
                                 TAGC_TENSOR_NULL, &q));
            OK(TAGC_Wait(&q));
        } else {
            OK(TAGC_Allgather_c(send, (MPI_Count)part, MPI_BYTE, recv, (MPI_Count)part, MPI_BYTE, MPI_COMM_WORLD,
                                TAGC_TENSOR_NULL));
        }
        size_t wrong = wrong_ones(0, 1, recv, 0, n, n, want_byte);
        CHECK(!wrong, "%zu bytes are wrong", wrong);
    }
    free(send);
    free(recv);
    t_agree();
}

static double offset;
static double want_float(size_t i)
{
    return (double)(i % 1000 + 1) + offset;
}

/* Coded, against the memory of the last call, in parts far apart: displacements past 2^31 bytes. */
static void coded(void)
{
    size_t part = GIB / 4 + 3, n = part * (size_t)t_size, at[32];
    t_step("Allgatherv_c, lossless, %zu floats", n);
    if (!there_is((2.0 * 4 * (double)n + 4 * (double)part) * t_size / GIB + 1))
        return;
    float *send = zeros(part, 4), *recv = zeros(n + (size_t)t_size * 5, 4);
    MPI_Count counts[64];
    MPI_Aint displs[64];
    MPI_Info info = t_info("gather=lossless");
    TAGC_Tensor t = TAGC_TENSOR_NULL;
    OK(TAGC_Tensor_create_c(MPI_COMM_WORLD, "large", (MPI_Count)n, MPI_FLOAT, info, &t));
    MPI_Info_free(&info);
    for (int r = 0; r < t_size; r++) {
        counts[r] = (MPI_Count)part;
        displs[r] = (MPI_Aint)((part + 5) * (size_t)(t_size - 1 - r));
    }
    size_t mine = part * (size_t)t_rank;
    int k = marked(mine, mine + part, n, at);
    for (int step = 0; step < 2; step++) {
        offset = 0.5 * step;
        for (int i = 0; i < k; i++)
            send[at[i] - mine] = (float)want_float(at[i]);
        OK(TAGC_Allgatherv_c(send, (MPI_Count)part, MPI_FLOAT, recv, counts, displs, MPI_FLOAT, MPI_COMM_WORLD, t));
        size_t wrong = 0;
        for (int r = 0; r < t_size; r++)
            wrong += wrong_ones(T_F32, 4, recv + displs[r], part * (size_t)r, part, n, want_float);
        CHECK(!wrong, "%zu elements are wrong", wrong);
    }
    CHECK(t_stat(t, TAGC_STAT_BYTES_SENT) < 0.1 * t_stat(t, TAGC_STAT_BYTES_DENSE));
    OK(TAGC_Tensor_free(&t));
    free(send);
    free(recv);
    t_agree();
}

/* ---- reductions ---- */

static double summand(size_t i, int rank)
{
    return (double)(i % 7 + 1 + (size_t)rank);
}
static double want_sum(size_t i)
{
    double sum = 0;
    for (int r = 0; r < t_size; r++)
        sum += summand(i, r);
    return sum;
}

/* By the algorithm that the environment names. */
static void reduction(int type, size_t n_about)
{
    size_t part = n_about / (size_t)t_size + 3, n = part * (size_t)t_size, at[32], mine = part * (size_t)t_rank;
    size_t width = t_size_of(type);
    const char *algorithm = getenv("TAGC_ALGORITHM");
    t_step("Reduce_scatter_block_c, %s, %zu %s", algorithm ? algorithm : "auto", n, t_type_names[type]);
    if (!there_is(((double)part * (double)width + (double)n) * t_size / GIB))
        return;
    unsigned char *send = zeros(n, width), *recv = zeros(part, width);
    int k = marked(0, n, n, at);
    for (int i = 0; i < k; i++)
        t_set(type, send + at[i] * width, 0, summand(at[i], t_rank));
    memset(recv, 0x55, part * width);
    OK(TAGC_Reduce_scatter_block_c(send, recv, (MPI_Count)part, t_datatype(type), MPI_SUM, MPI_COMM_WORLD,
                                   TAGC_TENSOR_NULL));
    size_t wrong = wrong_ones(type, width, recv, mine, part, n, want_sum);
    CHECK(!wrong, "%zu elements are wrong", wrong);
    CHECK(t_stat(TAGC_TENSOR_NULL, TAGC_STAT_ALGORITHM) != TAGC_ALGORITHM_DENSE || !algorithm);
    free(send);
    free(recv);
    t_agree();
}

int main(int argc, char **argv)
{
    t_start(&argc, &argv, 600);
    if (LARGE_COUNTS && !getenv("TAGC_ALGORITHM")) {
        bytes();
        coded();
    } else if (LARGE_COUNTS) {
        reduction(T_BF16, 2 * GIB); /* elements */
        reduction(T_F32, GIB / 2);  /* bytes */
    }
    if (!ran) {
        int verdict = t_end();
        if (t_rank == 0)
            printf("%s\n", left_out ? "too little memory" : "this MPI has no large counts");
        return verdict ? verdict : 77;
    }
    return t_end();
}
