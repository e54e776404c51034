/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What algorithm=auto reckons with: costs of kernels and links, built in or from a file (setting `tuning`). */
#ifndef TAGCI_UTIL_COSTS_H
#define TAGCI_UTIL_COSTS_H

#include <stddef.h>
#include <stdio.h>

struct tagci_link {
    double message; /* seconds that a message takes however short it is */
    double byte;    /* seconds of a byte that a link carries one way while it carries as much the other */
    double dense;   /* the same in MPI's own reduce-scatter, additions included */
};
struct tagci_costs { /* seconds of an element (float), on one rank */
    double select, encode,
        decode; /* choosing what is kept, all being looked at; a message, and taking one in, an eighth of the values in it */
    double round;                /* of a kept value that becomes an integer with a scale, and back, on top of that */
    double compress, decompress; /* of a gather without loss, of a byte */
    struct tagci_link node, network; /* all ranks share memory, or not */
};
extern const struct tagci_costs tagci_costs_builtin;

/* Reads a file of lines "NAME SECONDS", # begins a comment; what it does not name is as built in. 0, or -1 and why. */
int tagci_costs_read(const char *path, struct tagci_costs *costs, char *why, size_t size);
void tagci_costs_write(FILE *f, const struct tagci_costs *costs);

#endif
