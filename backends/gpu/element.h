/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Element types and their work types. */
#ifndef TAGCB_GPU_ELEMENT_H
#define TAGCB_GPU_ELEMENT_H

#include "backends/gpu/device.h"

#include "backend/backend.h"
#include "core/bitmap.h"
#include "core/half.h"
#include "core/value.h"

struct work_f32 {
    typedef float work;
    typedef uint32_t key;
    enum { wide = 0, items = 8 };                                        /* items: elements that a thread has at once */
    static constexpr uint32_t inf = TAGCI_KEY_INF_F32, cap = 0x7f7f0000; /* the largest bfloat16 */
    DEVICE uint32_t bits(float x)
    {
        return tagci_f32_bits(x);
    }
    DEVICE float of(uint32_t u)
    {
        return tagci_f32_of(u);
    }
    DEVICE uint16_t to_bf16(float x)
    {
        return tagci_f32_to_bf16(x);
    }
    DEVICE uint16_t to_f16(float x)
    {
        return tagci_f32_to_f16(x);
    }
    DEVICE float rounder(void)
    {
        return 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    }
    DEVICE double limit(void)
    {
        return 3.4028234663852886e38;
    }
};

struct work_f64 {
    typedef double work;
    typedef uint64_t key;
    enum { wide = 1, items = 4 };
    static constexpr uint64_t inf = TAGCI_KEY_INF_F64, cap = 0x47efe00000000000u;
    DEVICE uint64_t bits(double x)
    {
        return tagci_f64_bits(x);
    }
    DEVICE double of(uint64_t u)
    {
        return tagci_f64_of(u);
    }
    DEVICE uint16_t to_bf16(double x)
    {
        return tagci_f64_to_bf16(x);
    }
    DEVICE uint16_t to_f16(double x)
    {
        return tagci_f64_to_f16(x);
    }
    DEVICE double rounder(void)
    {
        return 6755399441055744.0; /* 1.5 * 2^52 */
    }
    DEVICE double limit(void)
    {
        return 1.7976931348623157e308;
    }
};

template <int TYPE> struct element : work_f32 {
};
template <> struct element<TAGCI_F64> : work_f64 {
};

template <class E> DEVICE typename E::key key_of(typename E::work v)
{
    return E::bits(v) & ~((typename E::key)1 << (8 * sizeof(typename E::key) - 1));
}

template <class E> DEVICE typename E::work nan_of(void)
{
    return E::of(E::inf | E::inf >> 1);
}

/* v = in + residual of element i. */
template <int TYPE> DEVICE typename element<TYPE>::work input(const void *in, const void *residual, size_t i)
{
    typedef typename element<TYPE>::work W;
    W v;
    if (TYPE == TAGCI_F16)
        v = tagci_f16_to_f32(((const uint16_t *)in)[i]);
    else if (TYPE == TAGCI_BF16)
        v = tagci_bf16_to_f32(((const uint16_t *)in)[i]);
    else
        v = ((const W *)in)[i];
    return residual ? v + ((const W *)residual)[i] : v;
}

/* A call of f<TYPE> for the type at hand. */
#define FOR_TYPE(type, f, ...)                                                                                         \
    ((type) == TAGCI_F64   ? f<TAGCI_F64>(__VA_ARGS__)                                                                 \
     : (type) == TAGCI_F32 ? f<TAGCI_F32>(__VA_ARGS__)                                                                 \
     : (type) == TAGCI_F16 ? f<TAGCI_F16>(__VA_ARGS__)                                                                 \
                           : f<TAGCI_BF16>(__VA_ARGS__))

#endif
