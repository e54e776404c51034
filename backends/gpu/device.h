/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What kernels are written in: the common part of CUDA and HIP, and the little that they call differently. The tests'
 * executor (tests/executor) is a third one, for host compilers. */
#ifndef TAGCB_GPU_DEVICE_H
#define TAGCB_GPU_DEVICE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined __CUDACC__
#include <cuda_runtime.h>
#define WAVE 32u
#define LAUNCH(kernel, grid_x, grid_y, stream, ...)                                                                    \
    kernel<<<dim3(grid_x, grid_y), TAGCB_BLOCK, 0, (cudaStream_t)(stream)>>>(__VA_ARGS__)
#elif defined __HIP__
#include <hip/hip_runtime.h>
#define WAVE ((unsigned)warpSize)
#define LAUNCH(kernel, grid_x, grid_y, stream, ...)                                                                    \
    kernel<<<dim3(grid_x, grid_y), TAGCB_BLOCK, 0, (hipStream_t)(stream)>>>(__VA_ARGS__)
#else
#include "tests/executor/executor.h"
#define WAVE ((unsigned)EXECUTOR_WAVE)
#define LAUNCH(kernel, grid_x, grid_y, stream, ...)                                                                    \
    ((void)(stream), executor_launch(grid_x, grid_y, TAGCB_BLOCK, WAVE, [=] { kernel(__VA_ARGS__); }))
#endif

/* Threads of every block; a multiple of every wave. The executor takes fewer, to be quicker. */
#ifndef TAGCB_BLOCK
#define TAGCB_BLOCK 512
#endif
#define BLOCK ((unsigned)TAGCB_BLOCK)
#define WAVES_MOST (TAGCB_BLOCK / 32)

/* Two blocks at a time on a processor: so one loads while the other counts. */
#if defined __CUDACC__
#define KERNEL __global__ __launch_bounds__(TAGCB_BLOCK, 2)
#else
#define KERNEL __global__ __launch_bounds__(TAGCB_BLOCK)
#endif
#define DEVICE static __device__ __forceinline__

/* What kernels share with the host code of src/core */
#define TAGCI_INLINE static __host__ __device__ __forceinline__

/* ---- Votes and shuffles. All lanes of a wave take part. ---- */
#if defined __CUDACC__
DEVICE uint64_t wave_ballot(bool yes)
{
    return __ballot_sync(0xffffffffu, yes);
}
template <class T> DEVICE T wave_from(T value, unsigned lane)
{
    return __shfl_sync(0xffffffffu, value, (int)lane);
}
/* What lanes have written to shared memory, the others of the wave see from here on. */
DEVICE void wave_sync(void)
{
    __syncwarp();
}
#elif defined __HIP__
DEVICE uint64_t wave_ballot(bool yes)
{
    return __ballot(yes);
}
template <class T> DEVICE T wave_from(T value, unsigned lane)
{
    return __shfl(value, (int)lane);
}
DEVICE void wave_sync(void)
{
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
}
#else
DEVICE uint64_t wave_ballot(bool yes, int line = __builtin_LINE())
{
    const uint64_t *all = executor_wave(yes, line);
    uint64_t bits = 0;
    for (unsigned i = 0; i < WAVE; i++)
        bits |= all[i] << i;
    return bits;
}
template <class T> DEVICE T wave_from(T value, unsigned lane, int line = __builtin_LINE())
{
    uint64_t brought = 0;
    memcpy(&brought, &value, sizeof value);
    brought = executor_wave(brought, line)[lane % WAVE];
    memcpy(&value, &brought, sizeof value);
    return value;
}
DEVICE void wave_sync(int line = __builtin_LINE())
{
    executor_wave(0, line);
}
#endif

DEVICE unsigned lane_of(void)
{
    return threadIdx.x % WAVE;
}

DEVICE unsigned wave_of(void)
{
    return threadIdx.x / WAVE;
}

DEVICE unsigned count_bits(uint64_t bits)
{
    return (unsigned)__popcll(bits);
}

/* Bits of a ballot that are of lanes before this one. */
DEVICE uint64_t lanes_before(void)
{
    return ((uint64_t)1 << lane_of()) - 1;
}

DEVICE uint64_t add_up(uint64_t *to, uint64_t value)
{
    return atomicAdd((unsigned long long *)to, (unsigned long long)value);
}

/* ---- Sums over a wave and a block ---- */

template <class T> DEVICE T wave_sum(T value)
{
    for (unsigned step = WAVE / 2; step; step /= 2)
        value += wave_from(value, lane_of() ^ step);
    return value;
}

template <class T> DEVICE T wave_largest(T value)
{
    for (unsigned step = WAVE / 2; step; step /= 2) {
        T other = wave_from(value, lane_of() ^ step);
        value = value > other ? value : other;
    }
    return value;
}

/* Sum over the lanes before this one; *all: over all lanes. */
DEVICE uint32_t wave_before(uint32_t value, uint32_t *all)
{
    uint32_t sum = value;
    for (unsigned step = 1; step < WAVE; step *= 2) {
        uint32_t other = wave_from(sum, (lane_of() - step) & (WAVE - 1));
        sum += lane_of() >= step ? other : 0;
    }
    *all = wave_from(sum, WAVE - 1);
    return sum - value;
}

/* Room in shared memory for one sum after another. Two rows in turn: so one barrier is enough for each. */
struct totals {
    uint32_t of[2][WAVES_MOST];
};

/* Sum of what the waves before this one brought (a number that all lanes of a wave agree on); *all: of all waves. A
 * barrier. turn: 0, 1, 0, 1, ... */
DEVICE uint32_t waves_before(struct totals *totals, unsigned *turn, uint32_t value, uint32_t *all)
{
    uint32_t before = 0, sum = 0, *of = totals->of[*turn];
    *turn ^= 1;
    if (lane_of() == 0)
        of[wave_of()] = value;
    __syncthreads();
    for (unsigned w = 0; w < BLOCK / WAVE; w++) {
        before += w < wave_of() ? of[w] : 0;
        sum += of[w];
    }
    *all = sum;
    return before;
}

/* The same over threads. */
DEVICE uint32_t threads_before(struct totals *totals, unsigned *turn, uint32_t value, uint32_t *all)
{
    uint32_t of_wave, before = wave_before(value, &of_wave);
    return waves_before(totals, turn, of_wave, all) + before;
}

#endif
