/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What ranks must agree on before a call on a tensor sends or changes anything: that nobody has an error, and that all
 * mean the same call. One MPI_MAX over a few integers. */
#ifndef TAGCI_COLL_AGREE_H
#define TAGCI_COLL_AGREE_H

#include <stdint.h>

struct tagci_comm;

enum {
    TAGCI_AGREE_ERROR,   /* 0, or (ranks - rank) << 32 | class: the lowest erring rank wins */
    TAGCI_AGREE_FACTS,   /* hash of the facts, */
    TAGCI_AGREE_FACTS_,  /* and its complement: the largest of both are complements only if all ranks have the same */
    TAGCI_AGREE_LARGEST, /* any number of which all want the largest */
    TAGCI_AGREE_ALIKE,   /* like facts, but what may differ: all only learn whether it does */
    TAGCI_AGREE_ALIKE_,
    TAGCI_AGREE_WORDS
};

struct tagci_agreement {
    int64_t word[TAGCI_AGREE_WORDS];
};

/* own: this rank's error code or MPI_SUCCESS; facts: hash of what must be the same. */
void tagci_agreement_init(struct tagci_agreement *a, int own, uint64_t facts, const struct tagci_comm *c);
/* Before the reduction, what may differ; after it, whether all have it alike. */
void tagci_agreement_compare(struct tagci_agreement *a, uint64_t fact);
int tagci_agreement_alike(const struct tagci_agreement *a);
/* After the reduction: MPI_SUCCESS; own, where this rank has an error; or a TAGC_ERR_MISMATCH that names the erring rank,
 * or says that `what` differs. */
int tagci_agreement_result(const struct tagci_agreement *a, int own, const struct tagci_comm *c, const char *call,
                           const char *tensor, const char *what);
/* Mixes a number into a hash of facts. */
uint64_t tagci_fact(uint64_t hash, uint64_t number);

#endif
