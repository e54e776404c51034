/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * tagc_bench kernels: how fast each kernel is, beside memcpy on the same machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "backends/openmp/openmp.h"
#include "core/bitmap.h"
#include "core/half.h"
#include "core/value.h"
#include "tools/bench.h"
#include "util/mem.h"

struct bench {
    enum tagci_type type;
    enum tagci_value value;
    size_t n, chunks, bound;
    double share; /* kept */
    void *in, *residual, *rest, *sum, *copy;
    unsigned char *frames;
    uint64_t *bitmap, *whole;
    struct tagci_chunk *chunk;
    struct tagci_decode *decode;
    struct tagci_run run;
    size_t above, tied, entries;
    double seconds; /* least time of a repetition may take in all */
    double copied;  /* memcpy's bytes touched per second */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_select(struct bench *b)
{
    tagcb_openmp_select(b->type, b->in, b->residual, b->n, (size_t)(b->share * (double)b->n), &b->run.cut, &b->above,
                        &b->tied);
}

static void run_sparsify(struct bench *b)
{
    tagcb_openmp.sparsify(NULL, b->chunk, b->chunks);
}

static void run_encode(struct bench *b)
{
    tagcb_openmp.encode(NULL, b->chunk, b->chunks);
}

static void run_decode(struct bench *b)
{
    tagcb_openmp.decode(NULL, b->decode, b->chunks);
}

static void run_gather_input(struct bench *b)
{
    tagcb_openmp.gather_input(NULL, b->type, b->in, b->residual, b->n, b->sum);
}

static void run_finish(struct bench *b)
{
    tagcb_openmp.finish(NULL, b->type, b->sum, b->n, 8, 0, b->copy);
}

static void run_spread(struct bench *b)
{
    tagcb_openmp.spread(NULL, b->bitmap, b->whole, b->n, b->rest, tagci_work_size(b->type), b->copy, &b->entries);
}

static void run_unpack(struct bench *b)
{
    tagcb_openmp.unpack(NULL, b->bitmap, b->n, b->rest, tagci_work_size(b->type), b->copy, &b->entries);
}

static void run_copy(struct bench *b)
{
    size_t bytes = b->n * tagci_work_size(b->type);
#ifdef _OPENMP
    int threads = tagcb_threads(b->n / TAGCB_PIECE);
#else
    int threads = 1;
#endif
#pragma omp parallel for num_threads(threads)
    for (int t = 0; t < threads; t++) {
        size_t from = bytes / (size_t)threads * (size_t)t,
               to = t + 1 < threads ? from + bytes / (size_t)threads : bytes;
        memcpy((char *)b->copy + from, (char *)b->sum + from, to - from);
    }
}

/* Shortest of many repetitions, in seconds. */
static double measure(struct bench *b, void (*kernel)(struct bench *))
{
    double best = 1e9, begin = now();
    kernel(b);
    for (int i = 0; i < 5 || (now() - begin < b->seconds && i < 10000); i++) {
        double t = now();
        kernel(b);
        t = now() - t;
        best = t < best ? t : best;
    }
    return best;
}

static void report(struct bench *b, const char *kernel, double seconds, double touched)
{
    double gradient = (double)(b->n * tagci_type_size(b->type));
    printf("  %-34s %9.2f %9.2f %7.0f %%\n", kernel, gradient / seconds * 1e-9, touched / seconds * 1e-9,
           100 * touched / seconds / b->copied);
}

static void report_form(struct bench *b, enum tagci_value value, const char *name)
{
    char label[64];
    double work = (double)(b->n * tagci_work_size(b->type)), in = (double)(b->n * tagci_type_size(b->type));
    const char *reason;
    double frame = 0;
    for (size_t i = 0; i < b->chunks; i++)
        b->chunk[i].value = value;
    double seconds = measure(b, run_encode);
    for (size_t i = 0; i < b->chunks; i++) {
        struct tagci_chunk *c = &b->chunk[i];
        frame += (double)c->frame_bytes;
        b->decode[i] =
            (struct tagci_decode){.n = c->n, .sum = (char *)b->sum + i * TAGCI_CHUNK_MAX * tagci_work_size(b->type)};
        if (tagci_frame_read(c->frame, c->frame_bytes, b->type, c->n, 0, &b->decode[i].frame, &reason))
            printf("  frame: %s\n", reason);
    }
    snprintf(label, sizeof label, "encode %s", name);
    report(b, label, seconds, in + 2 * work + frame);
    snprintf(label, sizeof label, "decode %s", name);
    report(b, label, measure(b, run_decode), 2 * work + frame);
}

static int allocate(struct bench *b)
{
    size_t work = tagci_work_size(b->type);
    b->chunks = (b->n + TAGCI_CHUNK_MAX - 1) / TAGCI_CHUNK_MAX;
    b->bound = tagci_frame_bound(b->type, TAGCI_VALUE_NATIVE, TAGCI_CHUNK_MAX);
    b->in = tagci_alloc(b->n, tagci_type_size(b->type));
    b->residual = tagci_alloc(b->n, work);
    b->rest = tagci_alloc_zero(b->n, work);
    b->sum = tagci_alloc_zero(b->n, work);
    b->copy = tagci_alloc_zero(b->n, work);
    b->frames = tagci_alloc_zero(b->chunks, b->bound);
    b->bitmap = tagci_alloc_zero(tagci_bitmap_words(b->n), 8);
    b->whole = tagci_alloc_zero(tagci_bitmap_words(b->n), 8);
    b->chunk = tagci_alloc_zero(b->chunks, sizeof *b->chunk);
    b->decode = tagci_alloc_zero(b->chunks, sizeof *b->decode);
    return b->in && b->residual && b->rest && b->sum && b->copy && b->frames && b->bitmap && b->whole && b->chunk &&
           b->decode;
}

static void release(struct bench *b)
{
    void *blocks[] = {b->in,     b->residual, b->rest,  b->sum,   b->copy,
                      b->frames, b->bitmap,   b->whole, b->chunk, b->decode};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        tagci_free(blocks[i]);
}

/* Bell-shaped values, as gradients are. */
static void fill(struct bench *b)
{
    uint64_t state = 1;
    for (size_t i = 0; i < b->n; i++) {
        double x[2];
        for (int j = 0; j < 2; j++) {
            x[j] = 0;
            for (int l = 0; l < 4; l++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                x[j] += (double)(int32_t)(state >> 32) * 0x1p-40;
            }
        }
        if (b->type == TAGCI_F64)
            ((double *)b->in)[i] = x[0], ((double *)b->residual)[i] = x[1];
        else
            ((float *)b->residual)[i] = (float)x[1];
        if (b->type == TAGCI_F32)
            ((float *)b->in)[i] = (float)x[0];
        else if (b->type != TAGCI_F64)
            ((uint16_t *)b->in)[i] = b->type == TAGCI_F16 ? tagci_f64_to_f16(x[0]) : tagci_f64_to_bf16(x[0]);
    }
    for (size_t w = 0; w < tagci_bitmap_words(b->n); w++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        b->whole[w] = state ^ state >> 29;
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (w == b->n / 64) /* nothing past the end */
            b->whole[w] &= tagci_low_bits(b->n % 64);
        b->bitmap[w] = b->whole[w] & (state ^ state >> 29);
    }
}

static void all_kernels(struct bench *b)
{
    double work = (double)(b->n * tagci_work_size(b->type)), in = (double)(b->n * tagci_type_size(b->type));
    double bits = (double)(b->n / 8), half = work / 2, quarter = work / 4;
    b->copied = 2 * work / measure(b, run_copy);
    printf("  %-34s %9.2f %9.2f %7.0f %%\n", "memcpy", b->copied * 0.5e-9, b->copied * 1e-9, 100.0);
    report(b, "select", measure(b, run_select), in + work);
    for (size_t i = 0; i < b->chunks; i++) {
        size_t at = i * TAGCI_CHUNK_MAX, left = b->n - at;
        b->chunk[i] = (struct tagci_chunk){
            .type = b->type,
            .n = left < TAGCI_CHUNK_MAX ? left : TAGCI_CHUNK_MAX,
            .in = (char *)b->in + at * tagci_type_size(b->type),
            .residual = (char *)b->residual + at * tagci_work_size(b->type),
            .residual_out = (char *)b->rest + at * tagci_work_size(b->type),
            .runs = &b->run,
            .nruns = 1,
            .bitmap = b->bitmap + at / 64,
            .values = (char *)b->copy + at * tagci_work_size(b->type),
            .frame = b->frames + i * b->bound,
        };
    }
    b->run.cut.ties = b->run.cut.ties == b->tied ? UINT64_MAX : b->run.cut.ties;
    b->run.n = TAGCI_CHUNK_MAX < b->n ? TAGCI_CHUNK_MAX : b->n;
    report(b, "sparsify", measure(b, run_sparsify), in + 2 * work + bits + b->share * work);
    for (int value = 0; value < TAGCI_VALUES; value++)
        report_form(b, (enum tagci_value)value, tagci_value_name((enum tagci_value)value));
    report(b, "gather_input", measure(b, run_gather_input), in + 2 * work);
    report(b, "finish (divided)", measure(b, run_finish), in + work);
    fill(b);
    report(b, "spread, half of the union own", measure(b, run_spread), half + quarter + 2 * bits);
    report(b, "unpack, a quarter set", measure(b, run_unpack), work + quarter + bits);
}

static int one_size(enum tagci_type type, size_t n, double share, double seconds, int most)
{
    struct bench b = {.type = type, .n = n, .share = share, .seconds = seconds};
    if (!allocate(&b)) {
        fprintf(stderr, "tagc_bench: no memory for %zu elements\n", n);
        release(&b);
        return 1;
    }
    for (int i = 0; tagcb_openmp_variant(i); i++) {
        const char *name = tagcb_openmp_variant(i)->name;
        if (tagcb_openmp_use(name))
            continue;
        for (int threads = 1; threads <= most; threads += most > 1 ? most - 1 : 1) {
#ifdef _OPENMP
            omp_set_num_threads(threads);
#endif
            printf("%s, %zu elements of %s, %g kept, %d thread%s\n", name, n, tagci_type_name(type), share, threads,
                   threads == 1 ? "" : "s");
            printf("  %-34s %9s %9s %9s\n", "GB/s of", "gradient", "touched", "of memcpy");
            fill(&b);
            all_kernels(&b);
        }
    }
    release(&b);
    return 0;
}

static enum tagci_type type_named(const char *name)
{
    for (int t = 0; t < TAGCI_TYPES; t++)
        if (!strcmp(name, tagci_type_name((enum tagci_type)t)))
            return (enum tagci_type)t;
    return TAGCI_TYPES;
}

static int usage(void)
{
    fputs("usage: tagc_bench kernels [-t float|float16|bfloat16|double] [-n elements] [-d share kept] [-s seconds]\n"
          "Rates of the kernels, for each variant that this processor can run, with one thread and with all. Without\n"
          "-n: one size inside the caches and one far outside.\n",
          stderr);
    return 2;
}

int bench_kernels(int argc, char **argv)
{
    enum tagci_type type = TAGCI_F32;
    double share = 0.2, seconds = 0.2, n = 0;
    int most = 1, failed = 0;
    for (int i = 1; i < argc; i += 2) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value || option[0] != '-' || !strchr("tnds", option[1]) || !option[1] || option[2])
            return usage();
        switch (option[1]) {
        case 't':
            type = type_named(value);
            break;
        case 'n':
            failed |= bench_read_number(value, 0x1p40, &n);
            break;
        case 'd':
            failed |= bench_read_number(value, 1, &share);
            break;
        default:
            failed |= bench_read_number(value, 3600, &seconds);
        }
    }
    if (type == TAGCI_TYPES || failed)
        return usage();
#ifdef _OPENMP
    most = omp_get_max_threads();
#endif
    tagcb_openmp.open();
    if (n >= 1)
        failed = one_size(type, (size_t)n, share, seconds, most);
    else
        failed = one_size(type, TAGCI_CHUNK_MAX, share, seconds, most) ||
                 one_size(type, (size_t)16 << 20, share, seconds, most);
    tagcb_openmp.close();
    return failed;
}
