/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Errors: MPI error codes with texts of our own. */
#ifndef TAGCI_UTIL_ERROR_H
#define TAGCI_UTIL_ERROR_H

#include <mpi.h>

/* A code of this class (a TAGC_ERR_... constant or an MPI class) with this text. There are a few hundred codes, used again
 * from the oldest of the class on; a text that is there already gets its code again. Never fails: at worst the bare class
 * comes back (an own class as MPI_ERR_OTHER, when MPI cannot be asked). Thread-safe. */
int tagci_error(int class, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A code of the class of MPI's own code, with what MPI says of it behind the call, the tensor and what it is about. */
int tagci_error_of_mpi(int code, const char *call, const char *tensor, const char *what);
/* Calls comm's error handler (MPI_COMM_NULL: MPI_COMM_WORLD's, as MPI does) with the code, and returns the code.
 * MPI_SUCCESS returns at once; while MPI is not up, no handler is called. */
int tagci_error_raise(MPI_Comm comm, int code);
int tagci_error_class(int code);
/* Text of any code or class, into a buffer of TAGC_MAX_ERROR_STRING bytes. */
void tagci_error_text(int code, char *text);

#endif
