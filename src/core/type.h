/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Element types, and the forms in which kept values travel. */
#ifndef TAGCI_CORE_TYPE_H
#define TAGCI_CORE_TYPE_H

#include <stddef.h>
#include <stdint.h>

/* Small functions that kernels on a device use too; their compilers want to be told. */
#ifndef TAGCI_INLINE
#define TAGCI_INLINE static inline
#endif

/* Type of the elements in the user's buffers. Arithmetic, residuals and thresholds use its work type: float for the
 * first three, double for the last. */
enum tagci_type { TAGCI_F32, TAGCI_F16, TAGCI_BF16, TAGCI_F64, TAGCI_TYPES };

TAGCI_INLINE size_t tagci_type_size(enum tagci_type t)
{
    return t == TAGCI_F64 ? 8 : t == TAGCI_F32 ? 4 : 2;
}
TAGCI_INLINE size_t tagci_work_size(enum tagci_type t)
{
    return t == TAGCI_F64 ? 8 : 4;
}
static inline int tagci_work_is_double(enum tagci_type t)
{
    return t == TAGCI_F64;
}
const char *tagci_type_name(enum tagci_type t); /* "float", "double", "float16", "bfloat16" */

/* Key of a work value: its bit pattern without the sign, so that keys order as magnitudes do and NaN and Inf are the
 * largest. Thresholds are keys: found and applied in integers, they are the same on every backend. */
#define TAGCI_KEY_INF_F32 0x7f800000u
#define TAGCI_KEY_INF_F64 0x7ff0000000000000u

/* Where values are cut: keys above `key` are kept, and of the keys equal to it the first `ties` in index order.
 * { 0, 0 } keeps everything but zeros. Keys of Inf and NaN are always kept. */
struct tagci_cut {
    uint64_t key;
    uint64_t ties; /* UINT64_MAX: all of them */
};
#define TAGCI_CUT_NONZERO ((struct tagci_cut){0, 0})

/* Wire form of kept values (setting `value`). The integer forms come in blocks of TAGCI_VALUE_BLOCK consecutive kept
 * values with one bfloat16 scale. */
enum tagci_value {
    TAGCI_VALUE_NATIVE, /* the element type itself */
    TAGCI_VALUE_BFLOAT16,
    TAGCI_VALUE_FLOAT16,
    TAGCI_VALUE_INT8,
    TAGCI_VALUE_INT4,
    TAGCI_VALUE_TERNARY, /* five to a byte */
    TAGCI_VALUES
};
#define TAGCI_VALUE_BLOCK 128

/* How the positions of kept values travel (setting `index`). A frame says 0, for no index, or one of the other two. */
enum tagci_index { TAGCI_INDEX_AUTO, TAGCI_INDEX_BITMAP, TAGCI_INDEX_CODED };

#endif
