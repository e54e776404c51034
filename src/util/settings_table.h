/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What the table of settings says about each: shared by the two files that work on it. */
#ifndef TAGCI_UTIL_SETTINGS_TABLE_H
#define TAGCI_UTIL_SETTINGS_TABLE_H

#include <stddef.h>

#include "util/settings.h"

enum tagci_setting_kind {
    TAGCI_KIND_WORD, /* one of `words`: int */
    TAGCI_KIND_SWITCH,
    TAGCI_KIND_COUNT, /* int64_t, 0 or more */
    TAGCI_KIND_SCHEDULE,
    TAGCI_KIND_GRANULARITY,
    TAGCI_KIND_THRESHOLD,
    TAGCI_KIND_RATIO,
    TAGCI_KIND_LAYERS,
    TAGCI_KIND_BACKEND,
    TAGCI_KIND_TEXT,
    TAGCI_KIND_COSTS /* a file's name; what it says is in `costs` */
};

struct tagci_setting_entry {
    const char *name, *values, *help;
    enum tagci_setting_kind kind;
    size_t offset; /* of its field in struct tagci_settings */
    int shared;    /* all ranks must have the same */
    const char *const *words;
};

const struct tagci_setting_entry *tagci_setting_entry(int i);
/* Reads a text into the field. 0, or -1; `more` may then say more than that it is none of the values allowed. */
int tagci_setting_parse(struct tagci_settings *s, int i, const char *text, char *more, size_t size);

/* A finite number that takes up the whole of n characters, as in the C locale. 0 or -1. */
int tagci_read_number(const char *text, size_t n, double *out);

#endif
