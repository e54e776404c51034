/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The library's own MPI datatypes and operation, made when somebody first asks for them and freed at MPI_Finalize. Null
 * handles while MPI is not up. Thread-safe. */
#ifndef TAGCI_COLL_PREDEFINED_H
#define TAGCI_COLL_PREDEFINED_H

#include <mpi.h>

MPI_Datatype tagci_float16(void);
MPI_Datatype tagci_bfloat16(void);
MPI_Op tagci_avg(void);

#endif
