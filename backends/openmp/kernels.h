/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The kernels of one instruction set: serial, over one chunk or one stretch. openmp.c spreads them over threads. */
#ifndef TAGCB_OPENMP_KERNELS_H
#define TAGCB_OPENMP_KERNELS_H

#include "backend/backend.h"

#define TAGCB_COLLECT_MAX 2048 /* elements that one call of collect takes at most */
#define TAGCB_SLACK 16         /* entries behind a collected array that may be written as well */

struct tagcb_kernels {
    const char *name;
    void (*sparsify)(struct tagci_chunk *chunk);
    void (*encode)(struct tagci_chunk *chunk);
    /* Words [from, to) of the chunk only; both are multiples of 16, or the end. */
    void (*decode)(const struct tagci_decode *frame, size_t from, size_t to);
    /* Keys of n <= TAGCB_COLLECT_MAX elements: those in [lo, hi] go to keys (uint32_t, for double uint64_t) in index
     * order; returns their number. Adds the numbers of keys above hi and of zeros. */
    size_t (*collect)(enum tagci_type type, const void *in, const void *residual, size_t n, uint64_t lo, uint64_t hi,
                      void *keys, size_t *above, size_t *zeros);
    size_t (*count_key)(enum tagci_type type, const void *in, const void *residual, size_t n, uint64_t key);
    void (*gather_input)(enum tagci_type type, const void *in, const void *residual, size_t n, void *out);
    /* The same for runs of TAGCI_SAMPLE_RUN elements, side by side in out; at: the first of each. */
    void (*gather_runs)(enum tagci_type type, const void *in, const void *residual, const size_t *at, size_t runs,
                        void *out);
    void (*finish)(enum tagci_type type, const void *sum, size_t n, double divide, int plus_zero, void *out);
    /* Words of two bitmaps; entries: number of set bits of whole there, which is what out has room for. */
    void (*spread)(const uint64_t *own, const uint64_t *whole, size_t words, size_t entries, const void *values,
                   size_t width, void *out);
    void (*unpack)(const uint64_t *whole, size_t nbits, size_t entries, const void *packed, size_t width, void *out);
};

extern const struct tagcb_kernels tagcb_kernels_portable, tagcb_kernels_avx2, tagcb_kernels_avx512;

#endif
