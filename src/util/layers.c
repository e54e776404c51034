/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "util/layers.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "util/settings.h"

/* ---- The built-in set ----
 * What it says is which tensors of a transformer do not bear a top share; the others (matrices of the feed-forward part,
 * embedding, output head, and whatever is no transformer's) it leaves alone. Norms, biases and position tables are
 * small and their every value counts. In attention the gradients of queries and keys are hundreds of times smaller than
 * those of the values, so that a share taken over a fused matrix never picks any of them.
 *
 * A word ends where the name does or at one of . _ / or a digit, so that "normal" is no norm. */
static const struct {
    const char *pattern, *kind;
} builtin[] = {
    {"bias", "bias"},
    {"*[._/]bias", "bias"},
    {"*[._/]bias[._/0-9]*", "bias"},
    {"*[Nn]orm", "norm"},
    {"*[Nn]orm[._/0-9]*", "norm"},
    {"ln[._0-9]*", "norm"},
    {"*[._/]ln[._0-9]*", "norm"},
    {"ln_f", "norm"},
    {"*[._/]ln_f", "norm"},
    {"lnf*", "norm"},
    {"*[._/]lnf", "norm"},
    {"*[._/]lnf[._]*", "norm"},
    {"*[._/]gamma", "norm"},
    {"*[._/]beta", "norm"},
    {"wpe", "position table"},
    {"wpe[._/]*", "position table"},
    {"*[._/]wpe", "position table"},
    {"*[._/]wpe[._/]*", "position table"},
    {"*position*embed*", "position table"},
    {"*embed*position*", "position table"},
    {"*pos_emb*", "position table"},
    {"*relative_attention_bias*", "position table"},
    {"*[Aa]ttention*", "attention"},
    {"*[Aa]ttn*", "attention"},
    {"*qkv*", "attention"},
    {"*query_key_value*", "attention"},
    {"[qkvo]_proj*", "attention"},
    {"*[._/][qkvo]_proj*", "attention"},
    {"*[._/]w[qkvo]", "attention"},
    {"*[._/]w[qkvo].*", "attention"},
};

const char *tagci_transformer_rule(const char *name, const char **values, const char **kind)
{
    for (size_t i = 0; i < sizeof builtin / sizeof builtin[0]; i++)
        if (fnmatch(builtin[i].pattern, name ? name : "", 0) == 0) {
            *values = "algorithm=dense";
            *kind = builtin[i].kind;
            return builtin[i].pattern;
        }
    return NULL;
}

/* ---- Rules that the user writes ---- */

static void trim(const char **from, const char **to)
{
    while (*from < *to && isspace((unsigned char)**from))
        ++*from;
    while (*from < *to && isspace((unsigned char)(*to)[-1]))
        --*to;
}

static int copy(char *to, size_t size, const char *from, const char *end)
{
    size_t n = (size_t)(end - from);
    if (n >= size)
        return -1;
    memcpy(to, from, n);
    to[n] = 0;
    return 0;
}

/* End of a pattern: its colon, outside of [...] (where [:alpha:] may stand) and not behind a backslash. */
static const char *end_of_pattern(const char *at, const char *end)
{
    for (const char *p = at; p < end; p++) {
        if (*p == '\\') {
            p++;
        } else if (*p == ':') {
            return p;
        } else if (*p == '[') {
            const char *q = p + 1;
            q += q < end && (*q == '!' || *q == '^');
            q += q < end && *q == ']';
            while (q < end && *q != ']') {
                const char *class = q[0] == '[' && q + 1 < end && q[1] == ':' ? strstr(q + 2, ":]") : NULL;
                q = class && class < end ? class + 2 : q + 1;
            }
            if (q < end)
                p = q;
        }
    }
    return NULL;
}

int tagci_rule_next(const char **at, struct tagci_rule *rule, char *why, size_t size)
{
    const char *from, *to;
    do { /* empty rules are skipped, so that a semicolon may end the text */
        if (!**at)
            return 0;
        from = *at;
        to = from + strcspn(from, ";");
        *at = to + (*to == ';');
        trim(&from, &to);
    } while (from == to);
    size_t n = (size_t)(to - from);
    int more = (*at)[strspn(*at, "; \t\n")] != 0;

    const char *colon = end_of_pattern(from, to), *word_end = colon ? colon : to, *word = from;
    trim(&word, &word_end);
    *rule = (struct tagci_rule){.transformer = word_end - word == 11 && strncmp(word, "transformer", 11) == 0};
    if (rule->transformer && more) {
        snprintf(why, size, "the rule \"transformer\" must be the last");
        return -1;
    }
    if (rule->transformer && !colon) {
        snprintf(rule->pattern, sizeof rule->pattern, "transformer");
        rule->values = to;
        return 1;
    }
    if (!colon) {
        snprintf(why, size, "\"%.*s\" is no rule: a rule is pattern:name=value,name=value", (int)(n < 200 ? n : 200),
                 from);
        return -1;
    }
    rule->values = colon + 1;
    rule->values_len = (size_t)(to - colon - 1);
    const char *end = colon;
    trim(&from, &end);
    if (copy(rule->pattern, sizeof rule->pattern, from, end)) {
        snprintf(why, size, "a pattern is longer than %zu characters", sizeof rule->pattern - 1);
        return -1;
    }
    return 1;
}

int tagci_rule_value(const struct tagci_rule *rule, size_t *done, char *name, size_t name_size, char *value,
                     size_t value_size, char *why, size_t size)
{
    const char *from = rule->values + *done, *last = rule->values + rule->values_len;
    while (from < last && (isspace((unsigned char)*from) || *from == ','))
        from++;
    if (from == last)
        return 0;
    /* The value ends before the last comma that stands in front of the next '='. */
    const char *equals = memchr(from, '=', (size_t)(last - from));
    const char *comma = memchr(from, ',', (size_t)(last - from));
    if (!equals || (comma && comma < equals)) {
        const char *end = comma ? comma : last;
        snprintf(why, size, "\"%.*s\" in the rule \"%s\" is not name=value", (int)(end - from < 200 ? end - from : 200),
                 from, rule->pattern);
        return -1;
    }
    const char *next = memchr(equals + 1, '=', (size_t)(last - equals - 1));
    const char *end = last;
    if (next) {
        for (end = next; end > equals && *end != ',';)
            end--;
        if (end == equals) /* an equals sign within the value */
            end = last;
    }
    *done = (size_t)(end - rule->values);
    const char *name_end = equals, *at = equals + 1;
    trim(&from, &name_end);
    trim(&at, &end);
    if (copy(name, name_size, from, name_end) || copy(value, value_size, at, end)) {
        snprintf(why, size, "a name or value in the rule \"%s\" is too long", rule->pattern);
        return -1;
    }
    if (!value[0]) {
        snprintf(why, size, "%s has no value in the rule \"%s\"", name, rule->pattern);
        return -1;
    }
    return 1;
}

int tagci_rule_matches(const struct tagci_rule *rule, const char *name)
{
    return fnmatch(rule->pattern, name ? name : "", 0) == 0;
}
