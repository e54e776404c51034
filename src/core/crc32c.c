/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * CRC32C (Castagnoli, reflected polynomial 0x82f63b78): by the processor's instruction where it has one, else by a
 * table of a byte's remainders. */
#include "core/frame.h"

#include <string.h>

/* A remainder is linear in the byte, so eight constants give all 256. */
#define R(b)                                                                                                           \
    (((b)&1 ? 0xf26b8303u : 0) ^ ((b)&2 ? 0xe13b70f7u : 0) ^ ((b)&4 ? 0xc79a971fu : 0) ^ ((b)&8 ? 0x8ad958cfu : 0) ^   \
     ((b)&16 ? 0x105ec76fu : 0) ^ ((b)&32 ? 0x20bd8edeu : 0) ^ ((b)&64 ? 0x417b1dbcu : 0) ^                            \
     ((b)&128 ? 0x82f63b78u : 0))
#define R4(b) R(b), R((b) + 1), R((b) + 2), R((b) + 3)
#define R16(b) R4(b), R4((b) + 4), R4((b) + 8), R4((b) + 12)
#define R64(b) R16(b), R16((b) + 16), R16((b) + 32), R16((b) + 48)
static const uint32_t remainders[256] = {R64(0), R64(64), R64(128), R64(192)};

static uint32_t by_table(uint32_t crc, const unsigned char *at, size_t bytes)
{
    while (bytes--)
        crc = crc >> 8 ^ remainders[(crc ^ *at++) & 255];
    return crc;
}

#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *at, size_t bytes)
{
    uint64_t wide = crc;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    while (bytes--)
        crc = _mm_crc32_u8(crc, *at++);
    return crc;
}

static int has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#else
#define by_instruction by_table
#define has_instruction() 0
#endif

uint32_t tagci_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    crc = ~crc;
    return ~(has_instruction() ? by_instruction(crc, data, bytes) : by_table(crc, data, bytes));
}

uint32_t tagci_crc32c_plain(uint32_t crc, const void *data, size_t bytes)
{
    return ~by_table(~crc, data, bytes);
}
