/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * tagc_bench lossless: what the compressor of the all-gather makes of weights, and how fast, on one core. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/half.h"
#include "core/lossless.h"
#include "core/lossless_round.h"
#include "tools/bench.h"
#include "util/mem.h"

struct bench {
    size_t n;
    float *now, *before; /* weights, and what they were a step ago */
    void *x, *y, *out, *state;
    unsigned char *coded;
    struct tagci_lossless_work *work;
    double seconds; /* that each figure may take */
};

static double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* others may use the core */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What one row of the table does. */
struct row {
    const char *name;
    int type, round; /* round: -1, or enum tagci_round */
    int remembers;
    const void *x, *y;
};

static size_t encode(struct bench *b, const struct row *r)
{
    const void *y = r->remembers ? r->y : NULL;
    if (r->round >= 0)
        return tagci_round_encode((enum tagci_round)r->round, (enum tagci_type)r->type, r->x, y, NULL, b->n, b->coded,
                                  b->work);
    return tagci_lossless_encode(r->type, r->x, y, b->n, b->coded, b->work);
}

static int decode(struct bench *b, const struct row *r, size_t bytes)
{
    const void *y = r->remembers ? r->y : NULL;
    const char *reason;
    if (r->round >= 0)
        return tagci_round_decode((enum tagci_round)r->round, (enum tagci_type)r->type, b->coded, bytes, y, b->state,
                                  b->n, b->out, b->work, &reason);
    return tagci_lossless_decode(r->type, b->coded, bytes, y, b->n, b->out, b->work, &reason);
}

static void show(struct bench *b, const struct row *r)
{
    enum { MOST = 1000 };
    static double times[3][MOST];
    const size_t size = tagci_lossless_size(r->type);
    const double data = (double)(b->n * size) * 1e-9;
    size_t bytes = encode(b, r);
    int count = 0, bad = decode(b, r, bytes);
    for (double begin = clock_now(); count < 5 || (count < MOST && clock_now() - begin < b->seconds); count++) {
        double t[4] = {clock_now()};
        encode(b, r);
        t[1] = clock_now();
        bad |= decode(b, r, bytes);
        t[2] = clock_now();
        memcpy(b->out, r->x, b->n * size);
        t[3] = clock_now();
        for (int k = 0; k < 3; k++)
            times[k][count] = t[k + 1] - t[k];
    }
    for (int k = 0; k < 3; k++)
        qsort(times[k], (size_t)count, sizeof *times[k], rising);
    printf("  %-28s %8.3f %8.4f %8.2f %8.2f %8.2f%s\n", r->name, 8.0 * (double)bytes / (double)b->n,
           (double)bytes / (double)(b->n * size), data / times[0][count / 2], data / times[1][count / 2],
           data / times[2][count / 2], bad ? "  DECODING FAILED" : "");
}

static int read_floats(const char *path, float **x, size_t *n)
{
    FILE *f = fopen(path, "rb");
    long bytes;
    if (!f || fseek(f, 0, SEEK_END) || (bytes = ftell(f)) < 0)
        return -1;
    rewind(f);
    *n = (size_t)bytes / sizeof **x;
    *x = tagci_alloc(*n, sizeof **x);
    int failed = !*x || fread(*x, sizeof **x, *n, f) != *n;
    fclose(f);
    return failed ? -1 : 0;
}

/* Bell-shaped weights of different scales, and steps of a thousandth of a scale. */
static int make_floats(struct bench *b)
{
    uint64_t state = 1;
    b->now = tagci_alloc(b->n, sizeof *b->now);
    b->before = tagci_alloc(b->n, sizeof *b->before);
    if (!b->now || !b->before)
        return -1;
    for (size_t i = 0; i < b->n; i++) {
        double x[2] = {0};
        for (int j = 0; j < 8; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            x[j / 4] += (double)(int32_t)(state >> 32) * 0x1p-36;
        }
        b->before[i] = (float)(x[0] * (1 + (double)(i >> 18 & 3)));
        b->now[i] = (float)((double)b->before[i] + x[1] * 0.004);
    }
    return 0;
}

static int usage(void)
{
    fputs(
        "usage: tagc_bench lossless [-n elements] [-s seconds] [NOW BEFORE]\n"
        "Ratio and rates of the compressor of the all-gather on one core, in GB/s of elements (medians of CPU time).\n"
        "NOW, BEFORE: files of raw floats, two states of the same weights.\n",
        stderr);
    return 2;
}

int bench_lossless(int argc, char **argv)
{
    struct bench b = {.seconds = 0.3};
    double n = 1 << 20;
    size_t other = 0;
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
        if (!strcmp(argv[i], "-n") ? bench_read_number(argv[i + 1], 0x1p40, &n)
                                   : strcmp(argv[i], "-s") || bench_read_number(argv[i + 1], 3600, &b.seconds))
            return usage();
    b.n = (size_t)n;
    if (argc - i == 2) {
        if (read_floats(argv[i], &b.now, &b.n) || read_floats(argv[i + 1], &b.before, &other) || b.n != other ||
            b.n == 0) {
            fputs("tagc_bench: cannot read two states of the same length, 1 or more\n", stderr);
            return 1;
        }
    } else if (argc != i || b.n == 0) {
        return usage();
    } else if (make_floats(&b)) {
        return 1;
    }
    b.x = tagci_alloc_zero(b.n, 8);
    b.y = tagci_alloc_zero(b.n, 8);
    b.out = tagci_alloc_zero(b.n, 8);
    b.state = tagci_alloc_zero(b.n + 64, 8);
    b.coded = tagci_alloc_zero(1, tagci_lossless_bound(TAGCI_F64, b.n));
    b.work = tagci_alloc_zero(1, sizeof *b.work);
    if (!b.x || !b.y || !b.out || !b.state || !b.coded || !b.work)
        return 1;
    printf("%zu weights\n  %-28s %8s %8s %8s %8s %8s\n", b.n, "", "bits", "ratio", "encode", "decode", "memcpy");
    for (int type = 0; type < TAGCI_TYPES; type++)
        for (int remembers = 0; remembers < 2; remembers++) {
            char name[64];
            for (size_t j = 0; j < b.n; j++)
                for (int k = 0; k < 2; k++) {
                    void *at = k ? b.y : b.x;
                    float v = k ? b.before[j] : b.now[j];
                    if (type == TAGCI_F64)
                        ((double *)at)[j] = v * 1.001; /* not a float */
                    else if (type == TAGCI_F32)
                        ((float *)at)[j] = v;
                    else
                        ((uint16_t *)at)[j] = type == TAGCI_F16 ? tagci_f32_to_f16(v) : tagci_f32_to_bf16(v);
                }
            struct row row = {name, type, -1, remembers, b.x, b.y};
            snprintf(name, sizeof name, "%s%s", tagci_type_name((enum tagci_type)type),
                     remembers ? ", remembered" : "");
            show(&b, &row);
        }
    for (int round = 0; round < 2; round++)
        for (int remembers = 0; remembers < 2; remembers++) {
            char name[64];
            struct row row = {name, TAGCI_F32, round, remembers, b.now, b.y};
            tagci_round_codes((enum tagci_round)round, TAGCI_F32, b.before, b.n, b.y);
            snprintf(name, sizeof name, "float as %s%s", round == TAGCI_ROUND_INT8 ? "int8" : "bfloat16",
                     remembers ? ", remembered" : "");
            show(&b, &row);
        }
    for (size_t j = 0; j < b.n * 4; j++) { /* noise: what is lost where nothing can be gained */
        uint64_t z = (j + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        ((uint16_t *)b.x)[j] = (uint16_t)(z >> 27);
    }
    for (int remembers = 0; remembers < 2; remembers++) {
        struct row row = {
            remembers ? "noise as bfloat16, remembered" : "noise as bfloat16", TAGCI_BF16, -1, remembers, b.x, b.y};
        show(&b, &row);
    }
    void *blocks[] = {b.now, b.before, b.x, b.y, b.out, b.state, b.coded, b.work};
    for (size_t j = 0; j < sizeof blocks / sizeof *blocks; j++)
        tagci_free(blocks[j]);
    return 0;
}
