/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 *   rates [ELEMENTS [TIMES]]
 * How fast the kernels of the backend TAGC_TEST_DEVICE are, beside a copy on the device. A line for each: GB/s of the bytes that it must
 * read and write at least, and that as a share of the copy's. Gradients of floats, one in five kept; chunks of 65536. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/backend.h"
#include "core/bitmap.h"
#include "core/half.h"
#include "core/sample.h"

#define SHARE 5

static const struct tagci_backend *b;
static struct tagci_order *order;

static void must(int result)
{
    if (result == 0)
        return;
    fprintf(stderr, "rates: %s\n", b->failure && b->failure() ? b->failure() : "failed");
    exit(1);
}

static void *get(enum tagci_memory kind, size_t bytes)
{
    void *at = b->alloc(order, kind, bytes);
    must(at ? 0 : -1);
    return at;
}

static void settle(void)
{
    must(b->record(order, 0));
    must(b->wait(order, 0));
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What the kernels work on. */
static size_t n, count;
static float *in, *residual, *rest, *sum;
static unsigned char *frames;
static uint64_t *bitmap;
static struct tagci_chunk *chunks;
static struct tagci_run *run;
static struct tagci_decode *decodes;
static struct tagci_choice *choice;
static size_t *entries;

static int copy(void)
{
    return b->copy(order, rest, in, n * sizeof *in);
}
static int choose(void)
{
    return b->select(order, TAGCI_F32, choice, 1);
}
static int encode(void)
{
    return b->encode(order, chunks, count);
}
static int decode(void)
{
    return b->decode(order, decodes, count);
}
static int gather_input(void)
{
    return b->gather_input(order, TAGCI_F32, in, residual, n, rest);
}
static int finish(void)
{
    return b->finish(order, TAGCI_F32, sum, n, 8, 0, rest);
}
static int unpack(void)
{
    return b->unpack(order, bitmap, n, in, sizeof *in, rest, entries);
}

/* ---- Sketches and gathers, in the memory of the others when these are through ---- */
static struct tagci_sketch plan, *lent;
static uint16_t *high;
static unsigned char *exceptional;
static void *cells;
static struct tagci_block *blocks;
static size_t block_count;

static int exponents(void)
{
    return b->sketch_exponents(order, 0, in, plan.entries, high, high + tagci_sketch_groups(plan.entries));
}
static int sketch_encode(void)
{
    return b->sketch_encode(order, lent, 0, 8, in, high, exceptional, sum, cells);
}
static int sketch_decode(void)
{
    return b->sketch_decode(order, lent, 0, 8, cells, high, exceptional, sum, rest);
}
static int lossless_encode(void)
{
    return b->lossless_encode(order, TAGCI_F32, blocks, block_count, NULL);
}
static int lossless_decode(void)
{
    return b->lossless_decode(order, TAGCI_F32, blocks, block_count, NULL);
}

static void *send(const void *from, size_t bytes)
{
    void *at = get(TAGCI_DEVICE, bytes);
    must(b->copy(order, at, from, bytes));
    settle();
    return at;
}

/* Prints a line and returns the rate; bytes: for each element. */
static double line(const char *name, int (*kernel)(void), double bytes, int times, double copy_rate)
{
    double best = 0;
    must(kernel());
    settle();
    for (int i = 0; i < times; i++) {
        double begin = now();
        must(kernel());
        settle();
        double rate = bytes * (double)n / (now() - begin) * 1e-9;
        best = rate > best ? rate : best;
    }
    printf("%-22s %8.2f bytes an element  %9.1f GB/s  %5.1f %% of a copy\n", name, bytes, best,
           copy_rate > 0 ? 100 * best / copy_rate : 100);
    return best;
}

static void fill(void)
{
    float *x = get(TAGCI_HOST, n * sizeof *x);
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) { /* a sum of uniform numbers */
        float s = -2;
        for (int k = 0; k < 4; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            s += (float)(state >> 40) * 0x1p-24f;
        }
        x[i] = s * 0.01f;
    }
    must(b->copy(order, in, x, n * sizeof *x));
    must(b->fill(order, residual, 0, n * sizeof *x));
    must(b->fill(order, sum, 0, n * sizeof *x));
    settle();
    b->release(order, TAGCI_HOST, x);
}

/* Frames as they are, read on the host; a decode of each. */
static void read_frames(size_t room)
{
    unsigned char *host = get(TAGCI_HOST, room);
    for (size_t i = 0; i < count; i++) {
        const char *reason;
        must(b->copy(order, host, chunks[i].frame, chunks[i].frame_bytes));
        settle();
        decodes[i] = (struct tagci_decode){.n = chunks[i].n, .sum = sum + i * TAGCI_CHUNK_MAX};
        if (tagci_frame_read(host, chunks[i].frame_bytes, TAGCI_F32, chunks[i].n, 0, &decodes[i].frame, &reason)) {
            fprintf(stderr, "rates: frame %zu: %s\n", i, reason);
            exit(1);
        }
        tagci_frame_move(&decodes[i].frame, chunks[i].frame);
    }
    b->release(order, TAGCI_HOST, host);
}

static double frame_bytes(void)
{
    double all = 0;
    for (size_t i = 0; i < count; i++)
        all += (double)chunks[i].frame_bytes;
    return all / (double)n;
}

static void sketches(int times, double rate)
{
    size_t entries = n < (size_t)16 << 20 ? n : (size_t)16 << 20, groups = tagci_sketch_groups(entries);
    double share = (double)entries / (double)n, map;
    must(tagci_sketch_plan(&plan, entries, 0));
    tagci_sketch_in_rounds(&plan);
    map = (double)(4 * (plan.rows + plan.blocks * 3)) / (double)entries;
    high = get(TAGCI_DEVICE, 4 * groups);
    exceptional = get(TAGCI_DEVICE, groups);
    cells = get(TAGCI_DEVICE, 4 * plan.rows * TAGCI_SKETCH_LANES);
    lent = get(TAGCI_HOST, sizeof *lent);
    *lent = plan;
    lent->row_start = send(plan.row_start, 4 * (plan.rows + 1));
    lent->row_blocks = send(plan.row_blocks, 12 * plan.blocks);
    lent->order = send(plan.order, 4 * plan.decoded);
    lent->pivot = send(plan.pivot, 4 * plan.decoded);
    lent->round_start = get(TAGCI_HOST, 4 * (plan.rounds + 1));
    memcpy(lent->round_start, plan.round_start, 4 * (plan.rounds + 1));
    must(b->fill(order, exceptional, 0, groups));
    line("sketch_exponents", exponents, 4.0625 * share, times, rate);
    line("sketch_encode", sketch_encode,
         (12 + 4 * TAGCI_SKETCH_LANES * (double)plan.rows / (double)entries + map) * share, times, rate);
    line("sketch_decode", sketch_decode, (20 + map) * share, times, rate);
    printf("%zu entries, %zu rounds\n", entries, plan.rounds);
    void *const device[] = {high, exceptional, cells, lent->row_start, lent->row_blocks, lent->order, lent->pivot};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        b->release(order, TAGCI_DEVICE, device[i]);
    b->release(order, TAGCI_HOST, lent->round_start);
    b->release(order, TAGCI_HOST, lent);
    tagci_sketch_release(&plan);
}

/* Without a memory: exponents are coded. */
static void gathers(int times, double rate)
{
    double coded = 0;
    block_count = n / TAGCI_LOSSLESS_BLOCK;
    blocks = get(TAGCI_HOST, block_count * sizeof *blocks);
    for (size_t i = 0; i < block_count; i++)
        blocks[i] = (struct tagci_block){.n = TAGCI_LOSSLESS_BLOCK,
                                         .now = in + i * TAGCI_LOSSLESS_BLOCK,
                                         .out = sum + i * TAGCI_LOSSLESS_BLOCK,
                                         .body = (unsigned char *)(rest + i * TAGCI_LOSSLESS_BLOCK)};
    must(lossless_encode());
    settle();
    for (size_t i = 0; i < block_count; i++)
        coded += (double)tagci_lossless_body(blocks[i].word) / (double)n;
    line("lossless_encode", lossless_encode, 8 + coded, times, rate);
    line("lossless_decode", lossless_decode, 4 + coded, times, rate);
    b->release(order, TAGCI_HOST, blocks);
}

extern const struct tagci_backend TAGC_TEST_DEVICE;

int main(int argc, char **argv)
{
    size_t elements = argc > 1 ? strtoull(argv[1], NULL, 10) : (size_t)256 << 20;
    int times = argc > 2 ? atoi(argv[2]) : 10;
    b = &TAGC_TEST_DEVICE;
    const char *why = b->probe();
    if (why) {
        fprintf(stderr, "rates: backend %s: %s\n", b->name, why);
        return 77;
    }
    order = b->order_make(0);
    must(order ? 0 : -1);
    count = (elements + TAGCI_CHUNK_MAX - 1) / TAGCI_CHUNK_MAX;
    n = count * TAGCI_CHUNK_MAX;
    size_t room = tagci_frame_bound(TAGCI_F32, TAGCI_VALUE_NATIVE, TAGCI_CHUNK_MAX);
    in = get(TAGCI_DEVICE, n * sizeof *in);
    residual = get(TAGCI_DEVICE, n * sizeof *in);
    rest = get(TAGCI_DEVICE, n * sizeof *in);
    sum = get(TAGCI_DEVICE, n * sizeof *in);
    bitmap = get(TAGCI_DEVICE, n / 8);
    frames = get(TAGCI_DEVICE, count * room);
    chunks = get(TAGCI_HOST, count * sizeof *chunks);
    run = get(TAGCI_HOST, sizeof *run);
    decodes = get(TAGCI_HOST, count * sizeof *decodes);
    choice = get(TAGCI_HOST, sizeof *choice);
    entries = get(TAGCI_HOST, sizeof *entries);
    fill();
    printf("%s: %s; %zu Mi floats\n", b->name, b->describe(), n >> 20);
    double rate = line("copy", copy, 8, times, 0);
    *choice = (struct tagci_choice){.in = in, .residual = residual, .n = n, .k = n / SHARE};
    line("select", choose, 8, times, rate);
    struct tagci_cut exact = choice->cut;
    choice->runs = tagci_sample_runs(n, choice->k);
    if (choice->runs)
        line("select, sampled", choose, 8.0 * TAGCI_SAMPLE_RUN * (double)choice->runs / (double)n, times, rate);
    choice->cut = exact;
    *run = (struct tagci_run){TAGCI_CHUNK_MAX, choice->cut};
    for (int value = 0; value < TAGCI_VALUES; value++) {
        char name[40];
        for (size_t i = 0; i < count; i++)
            chunks[i] = (struct tagci_chunk){.type = TAGCI_F32,
                                             .n = TAGCI_CHUNK_MAX,
                                             .in = in + i * TAGCI_CHUNK_MAX,
                                             .residual = residual + i * TAGCI_CHUNK_MAX,
                                             .residual_out = rest + i * TAGCI_CHUNK_MAX,
                                             .bitmap = bitmap + i * TAGCI_CHUNK_MAX / 64,
                                             .runs = run,
                                             .nruns = 1,
                                             .value = (enum tagci_value)value,
                                             .frame = frames + i * room};
        must(encode());
        settle();
        static const char *const names[] = {"native", "bfloat16", "float16", "int8", "int4", "ternary"};
        snprintf(name, sizeof name, "encode %s", names[value]);
        line(name, encode, 12 + frame_bytes(), times, rate);
        read_frames(room);
        snprintf(name, sizeof name, "decode %s", names[value]);
        line(name, decode, 8 + frame_bytes(), times, rate);
    }
    line("gather_input", gather_input, 12, times, rate);
    line("finish", finish, 8, times, rate);
    line("unpack", unpack, 4 + 4.0 / SHARE + 0.125, times, rate);
    sketches(times, rate);
    gathers(times, rate);
    void *const device[] = {in, residual, rest, sum, bitmap, frames};
    void *const host[] = {chunks, run, decodes, choice, entries};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        b->release(order, TAGCI_DEVICE, device[i]);
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        b->release(order, TAGCI_HOST, host[i]);
    b->order_free(order);
    return 0;
}
