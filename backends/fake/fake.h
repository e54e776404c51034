/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * A device that is none, for tests: see fake.c. Never installed. A backend for a real device starts as a copy of this
 * folder (doc/porting.md). */
#ifndef TAGCB_FAKE_H
#define TAGCB_FAKE_H

#include "backend/backend.h"

/* The backend without the kernels whose names stand in `without` ("encode decode", "all", "" or NULL: none missing).
 * Later calls change what earlier ones returned: for the beginning of a program. */
const struct tagci_backend *tagcb_fake(const char *without);

/* Marks are passed when they have been asked for so many times (1). */
void tagcb_fake_polls(int times);
/* The k-th call from now on of what may fail (alloc, copy, fill, order_make, after, record, open, kernels) fails; 0: none.
 * late: a copy, fill or kernel then fails as devices do, where the mark behind it is asked for. */
void tagcb_fake_fail_at(uint64_t k, int late);
int tagcb_fake_failed(void);  /* whether the k-th was reached */
size_t tagcb_fake_held(void); /* blocks of memory and orders that are there now */
/* Copies from the device's memory (in) and to it (back). */
struct tagcb_fake_copies {
    int in, back; /* on an order, and not yet done */
    int put_back; /* put on one so far */
};
struct tagcb_fake_copies tagcb_fake_copies(void);

/* The program's device, one of these: of the calling thread, as cudaSetDevice has it. At first 0. */
#define TAGCB_FAKE_DEVICES 2
void tagcb_fake_use(int device);
int tagcb_fake_used(int device); /* how often the library has put a thread on it */

/* Memory of the thread's device for a test's own data, without an order: zero bytes are NULL. */
void *tagcb_fake_alloc(enum tagci_memory kind, size_t bytes);
void tagcb_fake_free(void *at);
/* A stream of the user's on the thread's device, and a copy on it, which is done when an order comes after the stream, or the stream is freed. */
void *tagcb_fake_stream(void);
void tagcb_fake_stream_copy(void *stream, void *to, const void *from, size_t bytes);
void tagcb_fake_stream_free(void *stream);
/* A copy that the test makes: anywhere to anywhere, at once. */
void tagcb_fake_copy(void *to, const void *from, size_t bytes);

#endif
