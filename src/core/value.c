/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Sizes and names of value forms, and the digits of ternary bytes. */
#include "core/value.h"

#define D(b) (int8_t)((b) % 3 == 2 ? -1 : (b) % 3)
#define T(b)                                                                                                           \
    {                                                                                                                  \
        D(b), D((b) / 3), D((b) / 9), D((b) / 27), D((b) / 81), 0, 0, 0                                                \
    }
#define T4(b) T(b), T((b) + 1), T((b) + 2), T((b) + 3)
#define T16(b) T4(b), T4((b) + 4), T4((b) + 8), T4((b) + 12)
#define T64(b) T16(b), T16((b) + 16), T16((b) + 32), T16((b) + 48)
const int8_t tagci_ternary_digits[256][8] = {T64(0), T64(64), T64(128), T64(192)};

#define FIVE 1, 3, 9, 27, 81
#define TWENTYFIVE FIVE, FIVE, FIVE, FIVE, FIVE
const unsigned char tagci_ternary_powers[TAGCI_VALUE_BLOCK] = {TWENTYFIVE, TWENTYFIVE, TWENTYFIVE, TWENTYFIVE,
                                                               TWENTYFIVE, 1,          3,          9};

const char *tagci_value_name(enum tagci_value value)
{
    static const char *const names[TAGCI_VALUES] = {"native", "bfloat16", "float16", "int8", "int4", "ternary"};
    return (unsigned)value < TAGCI_VALUES ? names[value] : "unknown";
}
