/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Gathered blocks from outside: whatever the bytes are, decoding them ends, and touches nothing out of bounds.
 *
 * With libFuzzer:  clang -fsanitize=fuzzer,address,undefined -DFUZZER ... tests/fuzz/fuzz_lossless.c
 * Without, main() runs a fixed set of damaged blocks: that is the regression test. The first bytes of an input say what
 * the receiver expects: element type and form, number of elements (two bytes), flags; the blocks begin at byte 8. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "core/lossless.h"
#include "core/lossless_round.h"

#define PREFIX 8
#define TYPES (TAGCI_TYPES + 1) /* and bytes */
#define FORMS 3                 /* lossless, and the two that round */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A memory that both sides hold. */
static unsigned char remembered(size_t i)
{
    return (unsigned char)(i * 2654435761u >> 13);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tagci_lossless_work work;
    if (size < PREFIX)
        return 0;
    const int type = data[0] % TYPES, form = data[0] / TYPES % FORMS;
    const size_t n = data[1] | (size_t)data[2] << 8, bytes = size - PREFIX, skew = data[3] >> 1 & 7;
    const char *reason;
    /* exact copies on the heap, so that an address sanitizer sees a step too far on either side */
    unsigned char *in = malloc(bytes + skew + 1);
    memcpy(in + skew + 1, data + PREFIX, bytes);
    if (form == 0 || type == TAGCI_LOSSLESS_BYTES) {
        const size_t held = n * tagci_lossless_size(type);
        unsigned char *out = malloc(held + 1), *before = data[3] & 1 ? out + 1 : NULL;
        for (size_t i = 0; i < held; i++)
            out[1 + i] = remembered(i);
        tagci_lossless_decode(type, in + skew + 1, bytes, before, n, out + 1, &work, &reason);
        free(out);
    } else {
        const enum tagci_round round = form == 1 ? TAGCI_ROUND_BFLOAT16 : TAGCI_ROUND_INT8;
        const size_t held = tagci_round_state(round, n);
        unsigned char *state = malloc(held + 1), *out = malloc(n * tagci_type_size((enum tagci_type)type) + 1);
        for (size_t i = 0; i < held; i++)
            state[1 + i] = remembered(i);
        tagci_round_decode(round, (enum tagci_type)type, in + skew + 1, bytes, data[3] & 1 ? state + 1 : NULL,
                           data[3] & 16 ? state + 1 : NULL, n, out + 1, &work, &reason);
        free(state);
        free(out);
    }
    free(in);
    return 0;
}

#ifndef FUZZER
#define MOST 40000

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Good blocks with their prefix; returns the size of both. */
static size_t make(uint64_t *seed, uint8_t *out)
{
    static struct tagci_lossless_work work;
    static unsigned char in[MOST * 8], before[MOST * 8];
    const int type = (int)(draw(seed) % TYPES), form = (int)(draw(seed) % FORMS);
    const size_t most = draw(seed) % 32 == 0 ? MOST : 1500;
    const size_t n = draw(seed) % most, size = tagci_lossless_size(type);
    const int remembers = draw(seed) % 2, near = (int)(draw(seed) % 3), spread = (int)(draw(seed) % 12);
    for (size_t i = 0; i < sizeof before; i++)
        before[i] = remembered(i);
    for (size_t i = 0; i < n; i++) {
        double x = (double)(int64_t)draw(seed) * 0x1p-66;
        if (remembers && near) { /* a small change of the memory, now and then a large one */
            uint64_t z = 0;
            memcpy(&z, before + i * size, size);
            z += draw(seed) % 50 == 0 ? draw(seed) : near == 1 && draw(seed) % 8 ? 0 : draw(seed) % (1u << spread);
            memcpy(in + i * size, &z, size);
        } else if (type == TAGCI_F64) {
            memcpy(in + 8 * i, &x, 8);
        } else if (type == TAGCI_F32) {
            float f = (float)x;
            memcpy(in + 4 * i, &f, 4);
        } else if (type == TAGCI_LOSSLESS_BYTES) {
            in[i] = (unsigned char)(draw(seed) & 7);
        } else {
            uint16_t h = type == TAGCI_F16 ? tagci_f64_to_f16(x) : tagci_f64_to_bf16(x);
            memcpy(in + 2 * i, &h, 2);
        }
    }
    out[0] = (uint8_t)(type + TYPES * form);
    out[1] = (uint8_t)n;
    out[2] = (uint8_t)(n >> 8);
    out[3] = (uint8_t)((draw(seed) & 0xfe) | (unsigned)remembers);
    if (form == 0 || type == TAGCI_LOSSLESS_BYTES)
        return PREFIX + tagci_lossless_encode(type, in, remembers ? before : NULL, n, out + PREFIX, &work);
    return PREFIX + tagci_round_encode(form == 1 ? TAGCI_ROUND_BFLOAT16 : TAGCI_ROUND_INT8, (enum tagci_type)type, in,
                                       remembers ? before : NULL, NULL, n, out + PREFIX, &work);
}

/* Damage: bits, headers, the description of the code, the end, lengths. */
static size_t damage(uint64_t *seed, uint8_t *data, size_t size)
{
    size_t where = draw(seed) % size, head = size < PREFIX + 28 ? size : PREFIX + 28;
    switch (draw(seed) % 8) {
    case 0:
        return size; /* none: good ones must survive too */
    case 1:
        data[where] ^= (uint8_t)(1 << draw(seed) % 8);
        return size;
    case 2:
        data[draw(seed) % head] = (uint8_t)draw(seed);
        return size;
    case 3:
        return where;
    case 4: /* noise, in a block of the right length */
        for (size_t i = PREFIX + 20; i < size; i++)
            data[i] = (uint8_t)draw(seed);
        return size;
    case 5: /* a byte more for one stream, one less for another */
        if (size > PREFIX + 20) {
            data[PREFIX + 12 + 2 * (draw(seed) % 4)]++;
            data[PREFIX + 12 + 2 * (draw(seed) % 4)]--;
        }
        return size;
    case 6: /* the end, where escapes are */
        for (size_t i = size > 40 ? size - 40 : PREFIX; i < size; i++)
            if (draw(seed) % 4 == 0)
                data[i] = (uint8_t)(draw(seed) % 3 ? 255 : draw(seed));
        return size;
    default: /* another number of elements than they were made for */
        data[1] = (uint8_t)draw(seed);
        return size;
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 20000;
    uint64_t seed = 1;
    uint8_t *data = malloc(PREFIX + MOST * 8 + 1024);
    for (long r = 0; r < rounds; r++) {
        size_t size = make(&seed, data);
        LLVMFuzzerTestOneInput(data, damage(&seed, data, size));
    }
    printf("fuzz_lossless: %ld inputs\n", rounds);
    free(data);
    return 0;
}
#endif
