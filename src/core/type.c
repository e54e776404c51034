/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Names of element types. */
#include "core/type.h"

const char *tagci_type_name(enum tagci_type t)
{
    static const char *const names[TAGCI_TYPES] = {
        [TAGCI_F32] = "float", [TAGCI_F16] = "float16", [TAGCI_BF16] = "bfloat16", [TAGCI_F64] = "double"};
    return (unsigned)t < TAGCI_TYPES ? names[t] : "unknown";
}
