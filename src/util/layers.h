/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Layer rules: which settings a tensor gets by its name. The text of the setting `layers` is
 *
 *   transformer | none | RULE;RULE;...        RULE = PATTERN:NAME=VALUE,NAME=VALUE,...
 *
 * where the last rule may be `transformer`, which stands for the built-in set, or `transformer:NAME=VALUE,...`: the values
 * for the tensors that the set lets bear a top share, what the set says for the others.
 *
 * The first rule whose pattern matches decides (fnmatch(3), no special treatment of '.' or '/'). A rule without values
 * is fine: it keeps later rules off. In a value, a comma is no border unless NAME= follows it, so schedules and lists
 * can be written as they are. */
#ifndef TAGCI_UTIL_LAYERS_H
#define TAGCI_UTIL_LAYERS_H

#include <stddef.h>

struct tagci_rule {
    char pattern[256];
    int transformer;    /* the pattern is that word: the built-in set stands here */
    const char *values; /* NAME=VALUE,... of this length, in the text */
    size_t values_len;
};

/* Next rule of a text that is neither "transformer" nor "none" alone; *at starts at the text. 1, 0 after the last, or -1
 * with a reason in why. */
int tagci_rule_next(const char **at, struct tagci_rule *rule, char *why, size_t size);
/* Next NAME and VALUE of a rule; *done starts at 0. 1, 0 after the last, or -1 with a reason in why. */
int tagci_rule_value(const struct tagci_rule *rule, size_t *done, char *name, size_t name_size, char *value,
                     size_t value_size, char *why, size_t size);
int tagci_rule_matches(const struct tagci_rule *rule, const char *name);

/* The built-in set: which of its rules matches a tensor's name. NULL if none does. *values: what the rule gives, as
 * NAME=VALUE; *kind: in words, what it took the tensor for. */
const char *tagci_transformer_rule(const char *name, const char **values, const char **kind);

#endif
