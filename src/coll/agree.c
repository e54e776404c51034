/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/agree.h"

#include "coll/comm.h"
#include "tagc.h"
#include "util/error.h"

uint64_t tagci_fact(uint64_t hash, uint64_t number)
{
    /* A mistake shared by all ranks is no mismatch, so nothing stronger is needed. */
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

void tagci_agreement_init(struct tagci_agreement *a, int own, uint64_t facts, const struct tagci_comm *c)
{
    a->word[TAGCI_AGREE_ERROR] = own ? ((int64_t)(c->size - c->rank) << 32 | (uint32_t)tagci_error_class(own)) : 0;
    a->word[TAGCI_AGREE_FACTS] = (int64_t)facts;
    a->word[TAGCI_AGREE_FACTS_] = ~(int64_t)facts;
    a->word[TAGCI_AGREE_LARGEST] = INT64_MIN;
    tagci_agreement_compare(a, 0);
}

void tagci_agreement_compare(struct tagci_agreement *a, uint64_t fact)
{
    a->word[TAGCI_AGREE_ALIKE] = (int64_t)fact;
    a->word[TAGCI_AGREE_ALIKE_] = ~(int64_t)fact;
}

int tagci_agreement_alike(const struct tagci_agreement *a)
{
    return a->word[TAGCI_AGREE_ALIKE] == ~a->word[TAGCI_AGREE_ALIKE_];
}

int tagci_agreement_result(const struct tagci_agreement *a, int own, const struct tagci_comm *c, const char *call,
                           const char *tensor, const char *what)
{
    if (own)
        return own;
    int64_t error = a->word[TAGCI_AGREE_ERROR];
    if (error) {
        int class = (int)(error & 0x7fffffff), length;
        char text[TAGC_MAX_ERROR_STRING];
        TAGC_Error_string(class, text, &length);
        return tagci_error(TAGC_ERR_MISMATCH, "%s: tensor \"%s\": rank %d has an error (%.200s)", call, tensor,
                           c->size - (int)(error >> 32), text);
    }
    if (a->word[TAGCI_AGREE_FACTS] != ~a->word[TAGCI_AGREE_FACTS_])
        return tagci_error(TAGC_ERR_MISMATCH, "%s: tensor \"%s\": %s differ between ranks", call, tensor, what);
    return MPI_SUCCESS;
}
