/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Where a buffer of Fortran is a section with a stride, its C side passes this instead of an address, and the call
 * refuses it with the other wrong arguments: in the library, so that the ranks agree. */
#ifndef TAGCI_FORTRAN_STRIDED_H
#define TAGCI_FORTRAN_STRIDED_H

#include <stdint.h>

#define TAGCI_STRIDED ((void *)(intptr_t)-64) /* no buffer is there, and no MPI has a constant of this value */
#define TAGCI_STRIDED_TEXT "is a section with a stride; pass contiguous elements"

#endif
