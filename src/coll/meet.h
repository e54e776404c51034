/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * How the ranks of a collective call that is not a reduction agree: one has an error, so all have; and their arguments are
 * the same. */
#ifndef TAGCI_COLL_MEET_H
#define TAGCI_COLL_MEET_H

#include <stdint.h>

#include "coll/comm.h"

#define TAGCI_MEET_FACTS 24

struct tagci_fact_of_call { /* what all ranks must have the same */
    const char *what;       /* in words, for the message; NULL ends the list */
    uint64_t hash;
};

/* Collective. own: this rank's error code or MPI_SUCCESS. Returns own where it is an error; else, if another rank has
 * one, a code of `class` that names the rank and gives its text; else, if a fact differs, TAGC_ERR_MISMATCH; else
 * MPI_SUCCESS. facts may be NULL. */
int tagci_meet(struct tagci_comm *c, const char *call, const char *tensor, int own, int class,
               const struct tagci_fact_of_call *facts);
uint64_t tagci_hash_text(const char *text);

#endif
