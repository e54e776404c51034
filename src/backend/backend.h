/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What runs the kernels: one struct of function pointers for each backend. All kernels give the same bits on every
 * backend, with any number of threads: floating-point contraction is off, sums have a fixed order.
 *
 * Memory. A backend without `classify` works on the host's memory, and everything said below about devices, orders and
 * marks is empty for it: its kernels are complete when they return, `order` is NULL. Any other is a device backend. Two
 * kinds of memory then take part in a kernel:
 *   descriptors   the arrays that a kernel is called with (chunks and their runs, frames, choices, tallies, and what a
 *                 `size_t *` points to) stand in memory from alloc(TAGCI_HOST): the host's, and the device can read and
 *                 write it where it stands (pinned)
 *   data          whatever descriptors and other arguments point to stands in memory of the device, or in memory that
 *                 both reach (TAGCI_SHARED)
 * Order. Kernels, copies and fills are put on an order and run one after the other. The call may return before they have
 * run: until the order has passed a mark set behind them, their descriptors and data stay as they are, and their results
 * (`kept`, `frame_bytes`, cuts, counts) are not looked at. coll never waits for single chunks: it puts many on the order
 * at once, sets a mark, and comes back when that is passed.
 * Errors. What returns an int returns 0, or -1: then nothing is known about its outputs. A device that fails later says so
 * where its marks are asked for. */
#ifndef TAGCI_BACKEND_H
#define TAGCI_BACKEND_H

#include "core/frame.h"
#include "core/lossless.h"
#include "core/sketch.h"
#include "core/type.h"

enum tagci_memory {
    TAGCI_HOST,   /* the host's; from a device backend's alloc: pinned, and the device reaches it too */
    TAGCI_DEVICE, /* the device's: the host must not touch it */
    TAGCI_SHARED  /* both may touch it at any time (managed memory) */
};

/* A queue of work on one device. A backend's own struct begins with this. */
struct tagci_order {
    const struct tagci_backend *backend;
};
/* An order has marks 0 .. 7. A mark that is set again forgets where it stood. The last two are the library's own, for waits. */
#define TAGCI_MARKS 8

/* A stretch that is to be cut, and where. */
struct tagci_choice {
    const void *in, *residual; /* n elements of type; n values of the work type, or NULL: all zero */
    size_t n, k;
    size_t runs; /* 0, or the cut comes from a sample of so many runs (core/sample.h) */
    /* filled by select */
    struct tagci_cut cut;
    size_t above; /* elements that the cut keeps (all Inf and NaN included) */
    size_t tied;  /* elements with that key, so that the caller knows whether ties are cut short (0 if key is 0) */
};

/* Elements to be compared with a key, and how many have it. */
struct tagci_tally {
    const void *in, *residual; /* as above */
    size_t n;
    uint64_t key;
    size_t count; /* filled by count_key */
};

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
    int stream; /* residual_out is part of more than caches hold: best written past them */
    int all; /* nothing is held back: every value travels, the runs are not looked at (values may still be rounded) */
    /* filled by sparsify; encode fills the bitmap too unless it is NULL, and does not look at values */
    uint64_t *bitmap; /* (n+63)/64 words; bits past n are zero */
    void *values;     /* room for n values of the work type: the kept ones, in index order; NaN without its payload */
    size_t kept;
    /* filled by encode */
    enum tagci_value value; /* in: form of the values */
    enum tagci_index index; /* in: form of the index */
    int seal;               /* in: compute the CRC */
    unsigned char *frame;   /* in: room for tagci_frame_bound(type, value, n) bytes, aligned to 8 */
    size_t frame_bytes;
};

/* A frame and where its values go. */
struct tagci_decode {
    struct tagci_frame frame;
    size_t n;
    void *sum;      /* n values of the work type */
    uint64_t *seen; /* (n+63)/64 words: positions of the frame join it; or NULL */
    int first;      /* sum and seen are written (zeros where nothing was kept), not added to */
};

/* A block of elements of a gather, and how it travels (core/lossless.h). */
struct tagci_block {
    size_t n;           /* at most TAGCI_LOSSLESS_BLOCK */
    const void *now;    /* to be coded */
    const void *before; /* the memory, or NULL */
    void *out,
        *after; /* where the elements go as well, and the memory that moves on, which may be before. NULL: nowhere;
                           decoding always has out */
    unsigned char *body; /* room for n elements as they are; aligned to 8 on a device */
    uint32_t word;       /* of the index: filled in coding */
    int damaged;         /* filled in decoding: no body of such a block */
};

struct tagci_backend {
    const char *name;
    /* Chunks that it likes to have in one call of encode or sparsify, and frames in one of decode: what coll puts together
     * where there are as many. At least 1. */
    size_t batch;

    /* ---- life ---- */

    /* NULL if it can run here, else the reason why not (static text). Called before anything else, more than once, from
     * any thread. */
    const char *(*probe)(void);
    const char *(*describe)(void); /* what it uses here: instruction set, threads, device */
    /* Memory that kernels would be slower without, or that a device needs before its first order, taken before operations
     * so that none allocates. Each user calls open once, and close once when it has no operation left; from any thread.
     * NULL: nothing to do. A failed open is not closed. */
    int (*open)(void);
    void (*close)(void);
    /* What failed last on this thread, for a message; static text. NULL, or NULL returned: nothing is known. */
    const char *(*failure)(void);

    /* ---- memory; all NULL for a backend that works on the host's ---- */

    /* Whose memory this is, and of which device, unless it is the host's: that of shared memory is the one it was made on.
     * Host where the backend does not know the address; NULL is never asked for. From any thread, without an order, and
     * quick. */
    enum tagci_memory (*classify)(const void *at, int *device);
    /* At least `bytes`, aligned to 256, of kind TAGCI_HOST or TAGCI_DEVICE, for work on this order; NULL: there is none.
     * Contents are undefined. Both may wait for the device. */
    void *(*alloc)(struct tagci_order *order, enum tagci_memory kind, size_t bytes);
    void (*release)(struct tagci_order *order, enum tagci_memory kind, void *at);
    /* Puts a copy on the order, between memory of any kinds, ordinary host memory included (which may make it wait). Areas
     * do not overlap. bytes may be 0. */
    int (*copy)(struct tagci_order *order, void *to, const void *from, size_t bytes);
    int (*fill)(struct tagci_order *order, void *at, int byte, size_t bytes); /* data memory only */

    /* ---- devices; likewise. They are counted from 0 ---- */

    /* Which one the calling thread works on, as the vendor's library sees it; -1: failed. And: from now on this one, 0 or -1.
     * No other call of a backend leaves the thread on another one than it found. */
    int (*current)(void);
    int (*use)(int device);

    /* ---- order; likewise. An order belongs to one device, whatever the calling thread's is, and is used by one thread at a
     * time, not always the same ---- */

    struct tagci_order *(*order_make)(int device); /* NULL: failed */
    void (*order_free)(struct tagci_order *order);
    /* Work put on the order from now on comes after all that is on the user's stream now (cudaStream_t, hipStream_t as a
     * pointer), which has to be one of the order's device; with NULL after all that the device has been given so far, by
     * whatever stream. May wait. */
    int (*after)(struct tagci_order *order, void *stream);
    int (*record)(struct tagci_order *order, int mark); /* sets a mark behind all that is on the order */
    int (*query)(struct tagci_order *order, int mark);  /* 1: passed; 0: not yet; -1: something before it failed */
    int (*wait)(struct tagci_order *order, int mark);   /* until it is passed. 0, or -1: something before it failed */

    /* ---- kernels; NULL: tagci_backend_whole has one that copies to the host and back ---- */

    /* For each of n stretches the exact cut that keeps the k elements of largest |in + residual| (work type): key is the
     * k-th largest key, ties what is left for it. Zeros never count: with at most k nonzeros the result is { 0, 0 }. k = 0
     * gives a cut that keeps only Inf and NaN. Stretches may be millions of elements long, or a few.
     * With runs, the cut of tagci_sample_keep(n, k, runs) elements of the sample: its key, all ties (none if the key is 0),
     * above and tied 0. Unless tagci_sample_tied: then the exact cut of the whole stretch as without runs. */
    int (*select)(struct tagci_order *order, enum tagci_type type, struct tagci_choice *choices, size_t n);
    /* Number of elements with exactly this key, for each of n. */
    int (*count_key)(struct tagci_order *order, enum tagci_type type, struct tagci_tally *tallies, size_t n);

    /* v = in + residual; bitmap, values and kept from the cuts; residual_out = kept ? 0 : v (where v is -0, +0). One
     * pass. n chunks at once. */
    int (*sparsify)(struct tagci_order *order, struct tagci_chunk *chunks, size_t n);
    /* sparsify, then the frame. Rounding forms: residual_out at a kept element = v - what the frame gives back. With an
     * index (tagci_index_form says which) unless `all`, or every element is kept, or leaving the index out makes the
     * frame smaller. */
    int (*encode)(struct tagci_order *order, struct tagci_chunk *chunks, size_t n);
    /* Adds frames to sums, in the order given. Different entries may share a sum (the same elements of it), or have sums
     * that do not overlap. Frames have been read and checked (on the host; the pointers of `frame` then lead to the copy
     * that is data); they may stand at any address. Where a frame with an index has no value, the sum stays as it is. */
    int (*decode)(struct tagci_order *order, struct tagci_decode *frames, size_t n);

    /* out = in + residual in the work type, n elements (a dense call on a tensor). residual may be NULL. */
    int (*gather_input)(struct tagci_order *order, enum tagci_type type, const void *in, const void *residual, size_t n,
                        void *out);
    /* out = sum rounded to type, divided first by `divide` (IEEE, work type) unless that is 1. sum and out may be the
     * same where the sizes are. -0 becomes +0 if `plus_zero`. Every NaN becomes the one without payload. */
    int (*finish)(struct tagci_order *order, enum tagci_type type, const void *sum, size_t n, double divide,
                  int plus_zero, void *out);

    /* Kept values of a chunk, spread onto the union of all ranks' positions: out[j] = value at the j-th set bit of
     * `whole`, 0 where `own` (a subset) has no bit. width: bytes of a value. *entries: the number of set bits. */
    int (*spread)(struct tagci_order *order, const uint64_t *own, const uint64_t *whole, size_t nbits,
                  const void *values, size_t width, void *out, size_t *entries);
    /* The reverse for results (width 2, 4 or 8): out[i] = next of packed where whole has a bit, else 0, for nbits
     * elements. *entries: the number of set bits. */
    int (*unpack)(struct tagci_order *order, const uint64_t *whole, size_t nbits, const void *packed, size_t width,
                  void *out, size_t *entries);

    /* Sketches: what core/sketch.h says of the functions of these names, and the same bits. wide: values are doubles. A
     * device's plan is in rounds and a descriptor, and so is its round_start; row_start, row_blocks, order and pivot are
     * data, nothing else in it is looked at. */
    int (*sketch_exponents)(struct tagci_order *order, int wide, const void *values, size_t entries, uint16_t *high,
                            uint16_t *low);
    int (*sketch_encode)(struct tagci_order *order, const struct tagci_sketch *plan, int wide, int ranks,
                         const void *values, const uint16_t *high, const unsigned char *exceptional, void *ints,
                         void *cells);
    int (*sketch_decode)(struct tagci_order *order, const struct tagci_sketch *plan, int wide, int ranks,
                         const void *cells, const uint16_t *high, const unsigned char *exceptional, void *ints,
                         void *values);
    /* The n blocks of TAGCI_SKETCH_LANES values (width 4 or 8) whose numbers are in `blocks`, rising, go from `values`
     * (entries of them: the last block may be shorter) to packed, one behind the other; with `back` the other way. blocks
     * is a descriptor. */
    int (*move_blocks)(struct tagci_order *order, const uint32_t *blocks, size_t n, size_t entries, size_t width,
                       void *values, void *packed, int back);

    /* Blocks of gathers to bodies, and back. work is of the host's kernels; a device has its own and gets NULL. What is
     * damaged is no failure of the call; out and after then hold anything. */
    int (*lossless_encode)(struct tagci_order *order, enum tagci_type type, struct tagci_block *blocks, size_t n,
                           struct tagci_lossless_work *work);
    int (*lossless_decode)(struct tagci_order *order, enum tagci_type type, struct tagci_block *blocks, size_t n,
                           struct tagci_lossless_work *work);
};

/* What a loadable module exports, under the name `tagcb_module`. A module holds what it needs of src/core itself and calls
 * nothing in the library. The number counts up with every change of the structs and enums of this file. */
#define TAGCI_BACKEND_ABI 6
struct tagci_module {
    int abi; /* first, whatever changes */
    const struct tagci_backend *backend;
};

/* Backend for a tensor by the setting `backend` (an ordered list, "auto", "^name"); NULL and a reason (static or
 * in-place text of at most 200 bytes) if none fits. */
const struct tagci_backend *tagci_backend_pick(const char *setting, char reason[200]);
const struct tagci_backend *tagci_backend_at(int i);        /* i-th that is there, NULL after the last */
const struct tagci_backend *tagci_backend_device_at(int i); /* the same of those that have a device here */
/* Name of the i-th that this library knows and that is not there, and why; NULL after the last. */
const char *tagci_backend_missing(int i, const char **reason);
/* Whether a setting that names none lets this one take a tensor whose buffers are its own. */
int tagci_backend_may_take(const char *setting, const char *name);
void tagci_backend_add(const struct tagci_backend *b); /* for tests, at the beginning of a program */
/* Name known to this version of the library, present or not (cuda, hip too). */
int tagci_backend_known(const char *name, size_t len);

/* backend/fallback.c: the same backend with every NULL kernel replaced by one that waits for the order, copies to the host,
 * runs openmp's kernel and copies back (each call allocates). The backend itself if none is NULL. */
const struct tagci_backend *tagci_backend_whole(const struct tagci_backend *b);
static inline int tagci_backend_is_device(const struct tagci_backend *b)
{
    return b->classify != NULL;
}

/* The processors that this process may use, as one number; 0: not known. And how many ranks may use the same: threads are
 * then this rank's share of them, unless OMP_NUM_THREADS or the program says how many. */
uint64_t tagcb_openmp_processors(void);
void tagcb_openmp_shared_by(int ranks);
extern const struct tagci_backend tagcb_openmp, tagcb_cuda, tagcb_hip; /* the last two only where they are linked in */

#endif
