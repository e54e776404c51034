/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/meet.h"

#include <stdio.h>
#include <string.h>

#include "coll/engine.h"
#include "tagc.h"
#include "util/error.h"

uint64_t tagci_hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

int tagci_meet(struct tagci_comm *c, const char *call, const char *tensor, int own, int class,
               const struct tagci_fact_of_call *facts)
{
    /* The lowest erring rank; then each fact and its complement: their maxima are complements only if all are equal. */
    int64_t word[1 + 2 * TAGCI_MEET_FACTS] = {own ? c->size - c->rank : 0};
    int n = 0;
    for (; facts && n < TAGCI_MEET_FACTS && facts[n].what; n++) {
        word[1 + 2 * n] = (int64_t)facts[n].hash;
        word[2 + 2 * n] = ~(int64_t)facts[n].hash;
    }
    tagci_engine_clear_line(c);
    int code = MPI_Allreduce(MPI_IN_PLACE, word, 1 + 2 * n, MPI_INT64_T, MPI_MAX, c->private);
    if (code)
        return own ? own : code;
    if (word[0]) {
        int rank = c->size - (int)word[0];
        char text[TAGC_MAX_ERROR_STRING] = "";
        if (rank == c->rank)
            tagci_error_text(own, text);
        code = MPI_Bcast(text, sizeof text, MPI_CHAR, rank, c->private);
        if (own || code)
            return own ? own : code;
        text[sizeof text - 1] = 0;
        /* The other rank's text begins with the same call and tensor. */
        char same[TAGC_MAX_ERROR_STRING];
        size_t skip = (size_t)snprintf(same, sizeof same, "%s: tensor \"%s\": ", call, tensor);
        int known = skip < sizeof same && strncmp(text, same, skip) == 0;
        return tagci_error(class, "%s: tensor \"%.100s\": on rank %d: %.300s", call, tensor, rank,
                           known ? text + skip : text);
    }
    for (int i = 0; i < n; i++)
        if (word[1 + 2 * i] != ~word[2 + 2 * i])
            return tagci_error(TAGC_ERR_MISMATCH, "%s: tensor \"%.100s\": %s differs between ranks", call, tensor,
                               facts[i].what);
    return MPI_SUCCESS;
}
