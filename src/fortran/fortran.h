/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The C side of the module tagc_f08. It calls the TAGC_ names, as a C program does: what a tool has put in their place
 * sees Fortran's calls too, once. */
#ifndef TAGCF_FORTRAN_H
#define TAGCF_FORTRAN_H

#include <ISO_Fortran_binding.h>

#include "tagc.h"

/* C's address for a buffer of Fortran: MPI_IN_PLACE and MPI_BOTTOM of mpi_f08, mpi and mpif.h become C's, a section with
 * a stride becomes TAGCI_STRIDED, which the call refuses. */
void *tagcf_buffer(const CFI_cdesc_t *buffer);

/* Called by Fortran with its MPI_IN_PLACE and MPI_BOTTOM */
void tagcf_know(void *in_place, void *bottom);
#ifdef TAGCF_MPI_F08
void tagcf_ask_f08(void);
#endif
#ifdef TAGCF_MPI
void tagcf_ask_mpi(void);
#endif
#ifdef TAGCF_MPIF_H
void tagcf_ask_mpif_h(void);
#endif

#endif
