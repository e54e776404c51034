/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Sketches (core/sketch.h). A thread has one lane of one row or block, and gathers: a cell adds the blocks of its row, a
 * block is what the cell of its pivot holds beside the other blocks of that row. So there are no atomics, and nothing
 * waits for anything but the rounds of peeling for each other. How many there are is known before a value has travelled:
 * long rounds are launches of their own, short ones follow each other in one block, and the host is not asked.
 *
 * Bytes that move for each entry of float: exponents 4; encoding 3 * 4 in and 1.13 to 1.35 * 4 out; decoding 4 of cells, at
 * most 2 * 4 of other blocks, and 4 + 4 out. The map adds 1 to each of the last two. */
#ifndef TAGCB_GPU_SKETCH_H
#define TAGCB_GPU_SKETCH_H

#include "backends/gpu/element.h"
#include "core/sketch.h"
#include "core/sketch_integer.h"

#define LANES ((unsigned)TAGCI_SKETCH_LANES)

DEVICE uint32_t sketch_int(float v, int scale)
{
    return tagci_sketch_int_f32(v, scale);
}
DEVICE uint64_t sketch_int(double v, int scale)
{
    return tagci_sketch_int_f64(v, scale);
}
DEVICE float sketch_value(uint32_t i, int scale)
{
    return tagci_sketch_value_f32(i, scale);
}
DEVICE double sketch_value(uint64_t i, int scale)
{
    return tagci_sketch_value_f64(i, scale);
}

/* What kernels see of a plan, and the groups that go with it. */
struct sketch_map {
    size_t entries, rows;
    const uint32_t *row_start, *row_blocks, *order, *pivot, *round_start;
    const uint16_t *high;
    const unsigned char *exceptional;
    int headroom;
};

/* A wave for each group. */
template <int TYPE>
KERNEL void exponents_kernel(const typename element<TYPE>::work *values, size_t entries, uint16_t *high, uint16_t *low)
{
    typedef element<TYPE> E;
    typedef typename E::key K;
    const unsigned waves = BLOCK / WAVE;
    for (size_t g = (size_t)blockIdx.x * waves + wave_of(); g * TAGCI_SKETCH_GROUP < entries;
         g += (size_t)gridDim.x * waves) {
        K most = 0, least = (K)-1; /* a zero key minus one is the largest number */
        for (unsigned i = lane_of(); i < TAGCI_SKETCH_GROUP; i += WAVE) {
            size_t at = g * TAGCI_SKETCH_GROUP + i;
            K key = at < entries ? key_of<E>(values[at]) : 0;
            most = key > most ? key : most;
            least = key - 1 < least ? key - 1 : least;
        }
        most = wave_largest(most);
        least = (K)~wave_largest((K)~least);
        if (lane_of() == 0) {
            high[g] = tagci_sketch_high(E::wide, most);
            low[g] = tagci_sketch_low(E::wide, (K)(least + 1));
        }
    }
}

template <int TYPE>
KERNEL void cells_kernel(struct sketch_map m, const typename element<TYPE>::work *values,
                         typename element<TYPE>::key *cells)
{
    typedef element<TYPE> E;
    for (size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; i < m.rows * LANES; i += (size_t)gridDim.x * BLOCK) {
        size_t row = i / LANES;
        typename E::key sum = 0;
        for (uint32_t j = m.row_start[row]; j < m.row_start[row + 1]; j++) {
            size_t at = (size_t)m.row_blocks[j] * LANES + i % LANES, group = at / TAGCI_SKETCH_GROUP;
            if (at < m.entries && !m.exceptional[group])
                sum += sketch_int(values[at], tagci_sketch_scale(E::wide, m.headroom, m.high[group]));
        }
        cells[i] = sum;
    }
}

/* Rounds [round, end); more than one: a single block. */
template <int TYPE>
KERNEL void peel_kernel(struct sketch_map m, uint32_t round, uint32_t end, const typename element<TYPE>::key *cells,
                        typename element<TYPE>::key *ints, typename element<TYPE>::work *values)
{
    typedef element<TYPE> E;
    for (; round < end; round++) {
        const size_t last = (size_t)m.round_start[round + 1] * LANES;
        for (size_t i = (size_t)m.round_start[round] * LANES + (size_t)blockIdx.x * BLOCK + threadIdx.x; i < last;
             i += (size_t)gridDim.x * BLOCK) {
            const uint32_t block = m.order[i / LANES], row = m.pivot[i / LANES], lane = (uint32_t)(i % LANES);
            typename E::key left = cells[(size_t)row * LANES + lane];
            for (uint32_t j = m.row_start[row]; j < m.row_start[row + 1]; j++)
                if (m.row_blocks[j] != block)
                    left -= ints[(size_t)m.row_blocks[j] * LANES + lane];
            const size_t at = (size_t)block * LANES + lane, group = at / TAGCI_SKETCH_GROUP;
            ints[at] = left;
            if (at < m.entries)
                values[at] = m.exceptional[group]
                                 ? 0
                                 : sketch_value(left, tagci_sketch_scale(E::wide, m.headroom, m.high[group]));
        }
        __syncthreads();
    }
}

template <class T> KERNEL void zero_kernel(T *at, size_t n)
{
    for (size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; i < n; i += (size_t)gridDim.x * BLOCK)
        at[i] = 0;
}

/* Blocks of a list, one behind the other, out of the values, or back. */
template <class T>
KERNEL void move_blocks_kernel(const uint32_t *blocks, size_t n, size_t entries, T *values, T *packed, int back)
{
    for (size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; i < n * LANES; i += (size_t)gridDim.x * BLOCK) {
        size_t at = (size_t)blocks[i / LANES] * LANES + i % LANES;
        if (at < entries && back)
            values[at] = packed[i];
        else if (at < entries)
            packed[i] = values[at];
    }
}

#endif
