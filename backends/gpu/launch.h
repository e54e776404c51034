/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Between a backend's vtable, in C, and its kernels: functions that put kernels on a stream and return. Descriptors
 * (choices, tallies, chunks, frames, entries) are read here by the host too. TAGCB_GPU_NAME is the backend's name. */
#ifndef TAGCB_GPU_LAUNCH_H
#define TAGCB_GPU_LAUNCH_H

#include "backends/gpu/scratch.h"

#define TAGCB_GPU_PASTE(a, b, c, d) a##b##c##d
#define TAGCB_GPU_PASTE_OF(a, b, c, d) TAGCB_GPU_PASTE(a, b, c, d)
#define LAUNCHER(x) TAGCB_GPU_PASTE_OF(tagcb_, TAGCB_GPU_NAME, _launch_, x)

/* Where kernels run. */
struct tagcb_place {
    void *stream;
    unsigned blocks; /* that fill the device */
    struct tagcb_scratch *scratch;
};

#ifdef __cplusplus
extern "C" {
#endif
/* The runtime library's error, as a number, if the present device cannot run these kernels (built for others); else 0. */
int LAUNCHER(status)(void);
void LAUNCHER(select)(const struct tagcb_place *at, enum tagci_type type, struct tagci_choice *choices, size_t n);
void LAUNCHER(count_key)(const struct tagcb_place *at, enum tagci_type type, struct tagci_tally *tallies, size_t n);
void LAUNCHER(sparsify)(const struct tagcb_place *at, struct tagci_chunk *chunks, size_t n);
void LAUNCHER(encode)(const struct tagcb_place *at, struct tagci_chunk *chunks, size_t n);
void LAUNCHER(decode)(const struct tagcb_place *at, const struct tagci_decode *frames, size_t n);
void LAUNCHER(gather_input)(const struct tagcb_place *at, enum tagci_type type, const void *in, const void *residual,
                            size_t n, void *out);
void LAUNCHER(finish)(const struct tagcb_place *at, enum tagci_type type, const void *sum, size_t n, double divide,
                      int plus_zero, void *out);
void LAUNCHER(spread)(const struct tagcb_place *at, const uint64_t *own, const uint64_t *whole, size_t nbits,
                      const void *values, size_t width, void *out, size_t *entries);
void LAUNCHER(unpack)(const struct tagcb_place *at, const uint64_t *whole, size_t nbits, const void *packed,
                      size_t width, void *out, size_t *entries);
void LAUNCHER(sketch_exponents)(const struct tagcb_place *at, int wide, const void *values, size_t entries,
                                uint16_t *high, uint16_t *low);
void LAUNCHER(sketch_encode)(const struct tagcb_place *at, const struct tagci_sketch *plan, int wide, int ranks,
                             const void *values, const uint16_t *high, const unsigned char *exceptional, void *cells);
void LAUNCHER(sketch_decode)(const struct tagcb_place *at, const struct tagci_sketch *plan, int wide, int ranks,
                             const void *cells, const uint16_t *high, const unsigned char *exceptional, void *ints,
                             void *values);
void LAUNCHER(move_blocks)(const struct tagcb_place *at, const uint32_t *blocks, size_t n, size_t entries, size_t width,
                           void *values, void *packed, int back);
void LAUNCHER(lossless_encode)(const struct tagcb_place *at, enum tagci_type type, struct tagci_block *blocks,
                               size_t n);
void LAUNCHER(lossless_decode)(const struct tagcb_place *at, enum tagci_type type, struct tagci_block *blocks,
                               size_t n);
#ifdef __cplusplus
}
#endif

#endif
