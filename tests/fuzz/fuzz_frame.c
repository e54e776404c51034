/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Frames from outside: whatever the bytes are, reading and decoding them touches nothing out of bounds.
 *
 * With libFuzzer:  clang -fsanitize=fuzzer,address,undefined -DFUZZER ... tests/fuzz/fuzz_frame.c
 * Without, main() runs a fixed set of damaged frames: that is the regression test. The first bytes of an input say what
 * the receiver expects: element type, number of elements (two bytes), flags; the frame begins at byte 8. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/openmp/openmp.h"
#include "core/bitmap.h"
#include "core/half.h"
#include "core/value.h"

#define PREFIX 8 /* so that a frame behind it is aligned, as encoding wants it */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < PREFIX)
        return 0;
    enum tagci_type type = (enum tagci_type)(data[0] % TAGCI_TYPES);
    size_t n = data[1] | (size_t)data[2] << 8, bytes = size - PREFIX, work = tagci_work_size(type);
    struct tagci_decode d = {.n = n, .first = data[3] & 1};
    const char *reason;
    /* exact copies on the heap, so that an address sanitizer sees a step too far on either side; the frame at an odd
     * address if the input says so */
    size_t skew = data[3] >> 1 & 7;
    unsigned char *frame = malloc(bytes + skew);
    memcpy(frame + skew, data + PREFIX, bytes);
    if (tagci_frame_read(frame + skew, bytes, type, n, data[3] >> 4 & 1, &d.frame, &reason) == 0) {
        d.sum = calloc(n, work);
        d.seen = calloc(tagci_bitmap_words(n), 8);
        tagcb_openmp.decode(NULL, &d, 1);
        free(d.sum);
        free(d.seen);
    }
    free(frame);
    return 0;
}

#ifndef FUZZER
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A good frame with its prefix; returns the size of both. */
static size_t make(uint64_t *seed, uint8_t *out)
{
    enum { MOST = 3000 };
    static double in[MOST];
    enum tagci_type type = (enum tagci_type)(draw(seed) % TAGCI_TYPES);
    const size_t most = draw(seed) % 2 ? MOST : 200; /* in a statement of its own: the order of draws is stated */
    size_t n = draw(seed) % most;
    uint64_t endless = draw(seed) % 3 ? 0 : 200; /* one in so many is Inf */
    for (size_t i = 0; i < n; i++) {
        double x = (double)(int64_t)draw(seed) * 0x1p-60;
        if (endless && draw(seed) % endless == 0)
            x = (double)INFINITY;
        if (type == TAGCI_F64)
            in[i] = x;
        else if (type == TAGCI_F32)
            ((float *)in)[i] = (float)x;
        else
            ((uint16_t *)in)[i] = type == TAGCI_F16 ? tagci_f64_to_f16(x) : tagci_f64_to_bf16(x);
    }
    double least = draw(seed) % 3 ? (double)(draw(seed) % 9) * 1.1 : 8 - ldexp(1, -(int)(draw(seed) % 6));
    struct tagci_run run = {n, {type == TAGCI_F64 ? tagci_f64_bits(least) : tagci_f32_bits((float)least), 0}};
    struct tagci_chunk c = {.type = type,
                            .n = n,
                            .in = in,
                            .runs = &run,
                            .nruns = 1,
                            .all = draw(seed) % 8 == 0,
                            .value = (enum tagci_value)(draw(seed) % TAGCI_VALUES),
                            .index = (enum tagci_index)(draw(seed) % 3),
                            .seal = draw(seed) % 2,
                            .frame = out + PREFIX};
    tagcb_openmp.encode(NULL, &c, 1);
    out[0] = (uint8_t)type;
    out[1] = (uint8_t)n;
    out[2] = (uint8_t)(n >> 8);
    out[3] = (uint8_t)(draw(seed) & 0xef);
    return PREFIX + c.frame_bytes;
}

/* Damage: bits, header fields, the index (keeping its count), lengths. */
static size_t damage(uint64_t *seed, uint8_t *data, size_t size)
{
    size_t where = draw(seed) % size;
    switch (draw(seed) % 8) {
    case 0:
        return size; /* none: good frames must survive too */
    case 1:
        data[where] ^= (uint8_t)(1 << draw(seed) % 8);
        return size;
    case 2:
        data[PREFIX + draw(seed) % 12] = (uint8_t)draw(seed);
        return size;
    case 3:
        return where;
    case 4:
        for (size_t i = PREFIX + 16; i < size; i++)
            data[i] = (uint8_t)draw(seed);
        return size;
    case 5: /* counts that fit, and an index that does not */
        for (size_t i = PREFIX + 16; i + 1 < size && i < PREFIX + 60; i++) {
            uint8_t other = data[i];
            data[i] = data[i + 1];
            data[i + 1] = other;
        }
        return size;
    case 6: /* the end, where escapes are */
        for (size_t i = size > 40 ? size - 40 : PREFIX; i < size; i++)
            if (draw(seed) % 4 == 0)
                data[i] = (uint8_t)(draw(seed) % 3 ? draw(seed) % 5 : draw(seed));
        return size;
    default: /* another n than the frame was made for */
        data[1] = (uint8_t)draw(seed);
        return size;
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 20000;
    uint64_t seed = 1;
    uint8_t *data = malloc(64 * 1024);
    for (int i = 0; tagcb_openmp_variant(i); i++) {
        if (tagcb_openmp_use(tagcb_openmp_variant(i)->name))
            continue;
        for (long r = 0; r < rounds; r++) {
            size_t size = make(&seed, data);
            LLVMFuzzerTestOneInput(data, damage(&seed, data, size));
        }
        printf("fuzz_frame: %s, %ld frames\n", tagcb_openmp_variant(i)->name, rounds);
    }
    free(data);
    return 0;
}
#endif
