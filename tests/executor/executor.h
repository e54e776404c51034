/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The language of GPU kernels for a host compiler (C++17, without exceptions and the standard library), so that every
 * kernel runs where there is no GPU. Blocks run one after the other; the threads of a block are fibers of one thread of
 * the host, which switch where threads wait for each other: at barriers and at votes and shuffles.
 *
 * More is forbidden than on a GPU: all threads of a block must be at the same barrier, and all of a wave at the same
 * vote, or the program ends with a message that says who is where. Shared memory holds rubbish when a kernel begins.
 * executor_use_order makes waves, and threads of a wave, run in another order. */
#ifndef TAGC_TESTS_EXECUTOR_H
#define TAGC_TESTS_EXECUTOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__
#define __shared__ __attribute__((section("executor_shared"))) static

struct executor_index {
    unsigned x, y, z;
};
extern struct executor_index executor_thread, executor_block, executor_block_size, executor_grid;
#define threadIdx executor_thread
#define blockIdx executor_block
#define blockDim executor_block_size
#define gridDim executor_grid

#define EXECUTOR_WAVE_MAX 64
#define EXECUTOR_BLOCK_MAX 1024

/* Waits until all threads of the wave (the block) are here; the line is where the caller is. executor_wave returns what
 * each of them brought. */
const uint64_t *executor_wave(uint64_t brought, int line);
void executor_barrier(int line);
#define __syncthreads() executor_barrier(__LINE__)

/* Runs body(context) for every thread of every block, in waves of `wave`. */
void executor_run(unsigned grid_x, unsigned grid_y, unsigned block, unsigned wave, void (*body)(void *), void *context);

template <class F> void executor_launch(unsigned grid_x, unsigned grid_y, unsigned block, unsigned wave, F f)
{
    executor_run(
        grid_x, grid_y, block, wave, [](void *context) { (*(F *)context)(); }, &f);
}

template <class T> T executor_exchange(T *at, T value)
{
    T old = *at;
    *at = value;
    return old;
}
static inline uint32_t atomicAdd(uint32_t *at, uint32_t value)
{
    return executor_exchange(at, (uint32_t)(*at + value));
}
static inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long value)
{
    return executor_exchange(at, *at + value);
}
static inline uint32_t atomicOr(uint32_t *at, uint32_t value)
{
    return executor_exchange(at, *at | value);
}
static inline uint32_t atomicXor(uint32_t *at, uint32_t value)
{
    return executor_exchange(at, *at ^ value);
}
static inline uint32_t atomicMax(uint32_t *at, uint32_t value)
{
    return executor_exchange(at, *at > value ? *at : value);
}
static inline void __threadfence(void)
{
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}

#endif
