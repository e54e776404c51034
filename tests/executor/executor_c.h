/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What tests in C see of the executor. */
#ifndef TAGC_TESTS_EXECUTOR_C_H
#define TAGC_TESTS_EXECUTOR_C_H

#include "backend/backend.h"

/* The CUDA backend over waves of 32, the HIP backend over waves of 64. */
extern const struct tagci_backend tagcb_executor32, tagcb_executor64;

/* The k-th call of the vendor's library from now on that may fail does so; 0: none. How many allocations, streams and
 * events there are. */
void tagcb_executor32_fail_at(int k);
void tagcb_executor64_fail_at(int k);
size_t tagcb_executor32_held(void);
size_t tagcb_executor64_held(void);

/* 0: waves, and threads of a wave, run by number; each other number is another order. */
void executor_use_order(unsigned order);

#endif
