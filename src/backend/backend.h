/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What runs the kernels: one struct of function pointers for each backend. All kernels give the same bits on every
 * backend, with any number of threads: floating-point contraction is off, sums have a fixed order. */
#ifndef TAGCI_BACKEND_H
#define TAGCI_BACKEND_H

#include "core/frame.h"
#include "core/type.h"

/* A run of consecutive elements of a chunk that share one cut. */
struct tagci_run {
    size_t n;
    struct tagci_cut cut;
};

/* One piece of one owner's part of the vector, as the encoding kernels see it: at most TAGCI_CHUNK_MAX elements. */
#define TAGCI_CHUNK_MAX 65536
struct tagci_chunk {
    enum tagci_type type;
    size_t n;
    const void *in;               /* n elements of type */
    const void *residual;         /* n values of the work type, or NULL: all zero */
    void *residual_out;           /* n values of the work type, or NULL: not wanted. Not an alias of residual or in */
    const struct tagci_run *runs; /* their n add up to this n */
    size_t nruns;
    int all; /* nothing is held back: every value travels, the runs are not looked at (values may still be rounded) */
    /* filled by sparsify; encode fills the bitmap too unless it is NULL, and does not look at values */
    uint64_t *bitmap; /* (n+63)/64 words; bits past n are zero */
    void *values;     /* room for n values of the work type: the kept ones, in index order; NaN without its payload */
    size_t kept;
    /* filled by encode */
    enum tagci_value value; /* in: form of the values */
    int seal;               /* in: compute the CRC */
    unsigned char *frame;   /* in: room for tagci_frame_bound(type, value, n) bytes, aligned to 8 */
    size_t frame_bytes;
};

/* A frame and where its values go. */
struct tagci_decode {
    struct tagci_frame frame;
    size_t n;
    void *sum; /* n values of the work type */
    int first; /* sum is written (zeros where nothing was kept), not added to */
};

struct tagci_backend {
    const char *name;
    /* NULL if it can run here, else the reason why not (static text). Called before any kernel, more than once, from any
     * thread. */
    const char *(*probe)(void);
    const char *(*describe)(void); /* what it uses here: instruction set, threads */
    /* Scratch memory that kernels would be slower without, taken before operations so that none allocates. Each user
     * calls open once, and close once when it has no operation left; from any thread. NULL: nothing to do. */
    void (*open)(void);
    void (*close)(void);

    /* Exact cut that keeps the k elements of largest |in + residual| (work type): key is the k-th largest key, ties what
     * is left for it. Zeros never count: with at most k nonzeros the result is { 0, 0 }. k = 0 gives a cut that keeps
     * only Inf and NaN. *above: number of elements that the cut keeps (all Inf and NaN included). *tied: number of
     * elements with that key, so that the caller knows whether the ties are cut (0 if key is 0). */
    void (*select)(enum tagci_type type, const void *in, const void *residual, size_t n, size_t k,
                   struct tagci_cut *cut, size_t *above, size_t *tied);
    /* Number of elements with exactly this key. */
    size_t (*count_key)(enum tagci_type type, const void *in, const void *residual, size_t n, uint64_t key);

    /* v = in + residual; bitmap, values and kept from the cuts; residual_out = kept ? 0 : v (where v is -0, +0). One
     * pass. n chunks at once. */
    void (*sparsify)(struct tagci_chunk *chunks, size_t n);
    /* sparsify, then the frame. Rounding forms: residual_out at a kept element = v - what the frame gives back. With an
     * index unless `all`, or every element is kept, or leaving the index out makes the frame smaller. */
    void (*encode)(struct tagci_chunk *chunks, size_t n);
    /* Adds frames to sums, in the order given. Different entries may share a sum (the same elements of it), or have sums
     * that do not overlap. Frames have been read and checked; they may stand at any address. Where a frame with an index
     * has no value, the sum stays as it is. */
    void (*decode)(struct tagci_decode *frames, size_t n);

    /* out = in + residual in the work type, n elements (a dense call on a tensor). residual may be NULL. */
    void (*gather_input)(enum tagci_type type, const void *in, const void *residual, size_t n, void *out);
    /* out = sum rounded to type, divided first by `divide` (IEEE, work type) unless that is 1. sum and out may be the
     * same where the sizes are. -0 becomes +0 if `plus_zero`. Every NaN becomes the one without payload. */
    void (*finish)(enum tagci_type type, const void *sum, size_t n, double divide, int plus_zero, void *out);

    /* Kept values of a chunk, spread onto the union of all ranks' positions: out[j] = value at the j-th set bit of
     * `whole`, 0 where `own` (a subset) has no bit. width: bytes of a value. Returns the number of set bits. */
    size_t (*spread)(const uint64_t *own, const uint64_t *whole, size_t nbits, const void *values, size_t width,
                     void *out);
    /* The reverse for results (width 2, 4 or 8): out[i] = next of packed where whole has a bit, else 0, for nbits
     * elements. */
    size_t (*unpack)(const uint64_t *whole, size_t nbits, const void *packed, size_t width, void *out);
};

/* Backend for a tensor by the setting `backend` (an ordered list, "auto", "^name"); NULL and a reason (static or
 * in-place text of at most 200 bytes) if none fits. */
const struct tagci_backend *tagci_backend_pick(const char *setting, char reason[200]);
const struct tagci_backend *tagci_backend_at(int i); /* i-th registered one, NULL after the last */
/* Name known to this version of the library, present or not (cuda, hip too). */
int tagci_backend_known(const char *name, size_t len);

extern const struct tagci_backend tagcb_openmp;

#endif
