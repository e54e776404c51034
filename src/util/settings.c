/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The table of settings, and how the values in force are found. What a text may say is in settings_parse.c. */
#include "util/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/type.h"
#include "util/layers.h"
#include "util/settings_table.h"

extern char **environ;

#define OFFSET(field) offsetof(struct tagci_settings, field)

static const char *const algorithms[] = {"auto", "dense", "sketch", "pack", "direct", "hierarchical", NULL};
static const char *const selections[] = {"sampled", "exact", NULL};
static const char *const values[] = {"native", "bfloat16", "float16", "int8", "int4", "ternary", NULL};
static const char *const indices[] = {"auto", "bitmap", "coded", NULL};
static const char *const gathers[] = {"lossless", "native", "bfloat16", "int8", NULL};
static const char *const progresses[] = {"poll", "thread", NULL};
static const char *const verifies[] = {"off", "report", "error", NULL};

/* clang-format off */
static const struct tagci_setting_entry table[TAGCI_SETTINGS] = {
    [TAGCI_SET_ALGORITHM] = {"algorithm", "auto, dense, sketch, pack, direct or hierarchical",
        "How a reduction travels. dense: MPI's own collective. sketch: a merged bitmap, then an additive sketch of the "
        "values that MPI reduces. pack: a merged bitmap, then the values of the union that MPI reduces. direct: every "
        "rank sends every owner its own positions and values. hierarchical: the ranks of a node add up their "
        "inputs, then direct between nodes; where not all nodes have the same number of ranks, two or more, it is "
        "direct. auto: the cheapest by a cost model.",
        TAGCI_KIND_WORD, OFFSET(algorithm), 1, algorithms},
    [TAGCI_SET_SPARSITY] = {"sparsity", "0 .. 0.9999, or a schedule like 0:0,50:0.8",
        "Share of a tensor's values that is held back in each call: those smallest by magnitude of value + residual. "
        "A schedule gives the share from each call number on. Zeros are never sent.",
        TAGCI_KIND_SCHEDULE, OFFSET(sparsity), 1, NULL},
    [TAGCI_SET_GRANULARITY] = {"granularity", "owner, tensor or a number of elements (1 or more)",
        "The stretch over which the share is taken: each owner's part, the whole tensor, or runs of so many elements, "
        "such as the rows of a matrix.",
        TAGCI_KIND_GRANULARITY, OFFSET(granularity), 1, NULL},
    [TAGCI_SET_THRESHOLD] = {"threshold", "unset or a number > 0",
        "Holds back every value whose magnitude (value + residual) is smaller than this, instead of a share.",
        TAGCI_KIND_THRESHOLD, OFFSET(threshold), 1, NULL},
    [TAGCI_SET_SELECTION] = {"selection", "sampled or exact",
        "How the share is found. exact: to one element, by a pass over value + residual. sampled: in long stretches "
        "(of 2 Mi elements or more, where 65536 or more are kept) from a sample, so that values are read once only; "
        "the share kept is then off by one or two hundredths of itself, rarely by five.",
        TAGCI_KIND_WORD, OFFSET(selection), 1, selections},
    [TAGCI_SET_VALUE] = {"value", "native, bfloat16, float16, int8, int4 or ternary",
        "Form in which kept values travel. native: as they are. The integers come in blocks with a scale. What "
        "rounding takes away goes into the residual. With algorithm auto or direct, not with sketch or pack.",
        TAGCI_KIND_WORD, OFFSET(value), 1, values},
    [TAGCI_SET_INDEX] = {"index", "auto, bitmap or coded",
        "How positions travel with algorithm direct: a bit for each element, or coded in about 2 + log2(1/share kept) "
        "bits for each kept value, where that is shorter. auto: coded where at most about one element in six is kept.",
        TAGCI_KIND_WORD, OFFSET(index), 1, indices},
    [TAGCI_SET_COMPRESS_RATIO] = {"compress_ratio", "auto or a number > 1",
        "Size of a sketch: elements / cells. auto: from the union of positions, so that it decodes.",
        TAGCI_KIND_RATIO, OFFSET(compress_ratio), 1, NULL},
    [TAGCI_SET_ERROR_FEEDBACK] = {"error_feedback", "true or false",
        "Whether what was held back or rounded off is added to the next call's input. false: it is dropped.",
        TAGCI_KIND_SWITCH, OFFSET(error_feedback), 1, NULL},
    [TAGCI_SET_GATHER] = {"gather", "lossless, native, bfloat16 or int8",
        "How an allgather travels. lossless never changes a bit: with a tensor it codes the change since the tensor's "
        "last gather. native: as MPI sends it. bfloat16 and int8 round, the same on every rank, and then code.",
        TAGCI_KIND_WORD, OFFSET(gather), 1, gathers},
    [TAGCI_SET_MIN_COUNT] = {"min_count", "a number of elements (0 or more)",
        "Vectors with fewer elements go dense, unless an algorithm is named.",
        TAGCI_KIND_COUNT, OFFSET(min_count), 1, NULL},
    [TAGCI_SET_WARMUP] = {"warmup", "a number of calls (0 or more)",
        "So many first calls on a tensor go dense.",
        TAGCI_KIND_COUNT, OFFSET(warmup), 1, NULL},
    [TAGCI_SET_LAYERS] = {"layers", "transformer, none, or rules like *mlp*:value=int4,sparsity=0.9;*norm*:algorithm=dense",
        "Settings by the tensor's name. The first rule whose pattern (fnmatch(3)) matches decides. transformer: the "
        "built-in rules, which send norms, biases, position tables and attention projections dense and leave the rest "
        "alone; as the last of other rules, it stands for them there, and with values behind it "
        "(transformer:sparsity=0.95) these are for the tensors that the set leaves alone. none: no rules.",
        TAGCI_KIND_LAYERS, OFFSET(layers), 1, NULL},
    [TAGCI_SET_BACKEND] = {"backend", "auto, openmp, cuda, hip, an ordered list of them, or ^name to exclude one",
        "What runs the kernels. auto: what owns the memory, else openmp.",
        TAGCI_KIND_BACKEND, OFFSET(backend), 0, NULL},
    [TAGCI_SET_PROGRESS] = {"progress", "poll or thread",
        "What makes operations in flight advance: the library's calls alone, or a thread too (with MPI_THREAD_MULTIPLE "
        "only).",
        TAGCI_KIND_WORD, OFFSET(progress), 1, progresses},
    [TAGCI_SET_CHECKSUM] = {"checksum", "false or true",
        "CRC32C on every message of the direct algorithm. Without it a damaged message may give a wrong value, never "
        "a crash or a hang.",
        TAGCI_KIND_SWITCH, OFFSET(checksum), 1, NULL},
    [TAGCI_SET_VERIFY] = {"verify", "off, report or error",
        "Runs MPI's own collective beside every call and reports the first difference on stderr, or makes it an error.",
        TAGCI_KIND_WORD, OFFSET(verify), 1, verifies},
    [TAGCI_SET_TRACE] = {"trace", "unset, a file's name (%r in it becomes the rank), or - for stderr",
        "One line for every call: which algorithm and why, bytes, times.",
        TAGCI_KIND_TEXT, OFFSET(trace), 0, NULL},
    [TAGCI_SET_TUNING] = {"tuning", "unset or a file's name",
        "File with measured costs for algorithm=auto and for gathers, which tagc_bench tune writes. Where its names "
        "differ between ranks, what the files say must not.",
        TAGCI_KIND_COSTS, OFFSET(tuning), 1, NULL},
};
/* clang-format on */

/* A text and where it came from, for messages: TAGC_X=text (environment). */
struct given {
    enum tagci_setting_source source;
    const char *rule; /* pattern, if the source is a rule */
};

const struct tagci_setting_entry *tagci_setting_entry(int i)
{
    return i >= 0 && i < TAGCI_SETTINGS ? &table[i] : NULL;
}

int tagci_setting_find(const char *name)
{
    for (int i = 0; i < TAGCI_SETTINGS; i++)
        if (strcmp(table[i].name, name) == 0)
            return i;
    return -1;
}

static void defaults(struct tagci_settings *s)
{
    memset(s, 0, sizeof *s);
    s->sparsity.n = 1;
    s->error_feedback = 1;
    s->min_count = TAGCI_MIN_COUNT_DEFAULT;
    s->costs = tagci_costs_builtin;
    strcpy(s->layers, "transformer");
    strcpy(s->backend, "auto");
}

static void upper(char *to, const char *name)
{
    for (; *name; name++)
        *to++ = *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
    *to = 0;
}

/* "TAGC_SPARSITY=1.5 (environment)" */
static void quote(const struct given *g, int i, const char *text, char *out, size_t size)
{
    char big[64];
    upper(big, table[i].name);
    int n = (int)strnlen(text, 160);
    const char *dots = text[n] ? "..." : "";
    if (g->source == TAGCI_FROM_ENVIRONMENT)
        snprintf(out, size, "TAGC_%s=%.*s%s (environment)", big, n, text, dots);
    else if (g->source == TAGCI_FROM_INFO)
        snprintf(out, size, "tagc_%s=%.*s%s (info)", table[i].name, n, text, dots);
    else
        snprintf(out, size, "%s=%.*s%s (rule \"%.80s\" of layers)", table[i].name, n, text, dots,
                 g->rule ? g->rule : "");
}

/* Reads a text into *s. */
static enum tagci_setting_error take(struct tagci_settings *s, int i, const char *text, const struct given *g,
                                     char *why, size_t size)
{
    char quoted[320], more[160] = "";
    if (tagci_setting_parse(s, i, text, more, sizeof more) == 0) {
        s->source[i] = g->source;
        return TAGCI_SETTING_OK;
    }
    quote(g, i, text, quoted, sizeof quoted);
    snprintf(why, size, "%s: %s must be %s%s%s", quoted, table[i].name, table[i].values, more[0] ? "; " : "", more);
    return TAGCI_SETTING_BAD;
}

static enum tagci_setting_error no_such(const char *what, const char *name, char *why, size_t size)
{
    int n = snprintf(why, size, "%s%.100s: there is no such setting; there are", what, name);
    for (int i = 0; i < TAGCI_SETTINGS && n > 0 && (size_t)n < size; i++)
        n += snprintf(why + n, size - (size_t)n, "%s %s", i ? "," : "", table[i].name);
    return TAGCI_SETTING_BAD;
}

/* ---- Sources ---- */

static enum tagci_setting_error check_environment(char *why, size_t size)
{
    for (char **e = environ; e && *e; e++) {
        /* TAGC_TEST_... steer the library's own tests and are read there. */
        if (strncmp(*e, "TAGC_", 5) != 0 || strncmp(*e, "TAGC_TEST_", 10) == 0)
            continue;
        char name[128], big[64];
        size_t n = strcspn(*e + 5, "=");
        snprintf(name, sizeof name, "%.*s", (int)(n < 100 ? n : 100), *e + 5);
        int known = 0;
        for (int i = 0; i < TAGCI_SETTINGS && !known; i++) {
            upper(big, table[i].name);
            known = strcmp(big, name) == 0;
        }
        if (!known)
            return no_such("environment variable TAGC_", name, why, size);
    }
    return TAGCI_SETTING_OK;
}

/* The variable's text, NULL if it is unset or empty (`TAGC_X= program` is how a shell takes a setting back). */
static const char *environment(int i)
{
    char name[64] = "TAGC_";
    upper(name + 5, table[i].name);
    const char *text = getenv(name);
    return text && text[0] ? text : NULL;
}

static enum tagci_setting_error from_environment(struct tagci_settings *s, char *why, size_t size)
{
    struct given g = {TAGCI_FROM_ENVIRONMENT, NULL};
    enum tagci_setting_error e = check_environment(why, size);
    for (int i = 0; i < TAGCI_SETTINGS && !e; i++) {
        const char *text = environment(i);
        if (text)
            e = take(s, i, text, &g, why, size);
    }
    return e;
}

static enum tagci_setting_error from_info(struct tagci_settings *s, const struct tagci_info_reader *info, char *why,
                                          size_t size)
{
    struct given g = {TAGCI_FROM_INFO, NULL};
    char key[256], text[TAGCI_TEXT_MAX + 1];
    if (!info)
        return TAGCI_SETTING_OK;
    for (int k = 0; info->key(info->context, k, key, sizeof key); k++)
        if (strncmp(key, "tagc_", 5) == 0 && tagci_setting_find(key + 5) < 0)
            return no_such("info key tagc_", key + 5, why, size);
    for (int i = 0; i < TAGCI_SETTINGS; i++)
        if (info->get(info->context, table[i].name, text, sizeof text) && text[0]) {
            enum tagci_setting_error e = take(s, i, text, &g, why, size);
            if (e)
                return e;
        }
    return TAGCI_SETTING_OK;
}

/* Reads one rule's values into *s. */
static enum tagci_setting_error from_rule(struct tagci_settings *s, const struct tagci_rule *rule,
                                          enum tagci_setting_source source, char *why, size_t size)
{
    struct given g = {source, rule->pattern};
    char name[64], text[TAGCI_TEXT_MAX];
    size_t done = 0;
    int got;
    while ((got = tagci_rule_value(rule, &done, name, sizeof name, text, sizeof text, why, size)) == 1) {
        int i = tagci_setting_find(name);
        if (i == TAGCI_SET_LAYERS) {
            snprintf(why, size, "layers=%.80s (rule \"%.80s\" of layers): rules cannot hold rules", text,
                     rule->pattern);
            return TAGCI_SETTING_BAD;
        }
        if (i < 0) {
            char what[320];
            snprintf(what, sizeof what, "in the rule \"%.200s\" of layers: ", rule->pattern);
            return no_such(what, name, why, size);
        }
        enum tagci_setting_error e = take(s, i, text, &g, why, size);
        if (e)
            return e;
    }
    return got < 0 ? TAGCI_SETTING_BAD : TAGCI_SETTING_OK;
}

/* The rule that a tensor of this name falls under; *which: user's (1), built-in (2), or none (0). Every rule is read, so
 * that a mistake shows with the first tensor and not with the first that it would matter to. */
static enum tagci_setting_error find_rule(const char *layers, const char *name, struct tagci_rule *found, int *which,
                                          char *why, size_t size)
{
    struct tagci_rule rule;
    struct tagci_settings scratch;
    const char *at = layers;
    int got;
    *which = 0;
    if (strcmp(layers, "none") == 0)
        return TAGCI_SETTING_OK;
    while ((got = tagci_rule_next(&at, &rule, why, size)) == 1) {
        defaults(&scratch);
        enum tagci_setting_error e = from_rule(&scratch, &rule, TAGCI_FROM_LAYERS, why, size);
        if (e)
            return e;
        if (*which == 0 && (rule.transformer || tagci_rule_matches(&rule, name))) {
            *found = rule;
            *which = rule.transformer ? 2 : 1;
        }
    }
    const char *given, *kind;
    if (*which == 2) {
        const char *pattern = tagci_transformer_rule(name, &given, &kind);
        if (!pattern) {
            *which = found->values_len ? 1 : 0; /* it bears what the user asks */
        } else {
            *found = (struct tagci_rule){.values = given, .values_len = strlen(given)};
            snprintf(found->pattern, sizeof found->pattern, "%s", pattern);
        }
    }
    return got < 0 ? TAGCI_SETTING_BAD : TAGCI_SETTING_OK;
}

void tagci_settings_rule(const char *layers, const char *tensor_name, char *text, size_t size)
{
    struct tagci_rule rule;
    char why[400];
    const char *values_given, *kind;
    int which;
    text[0] = 0;
    if (find_rule(layers, tensor_name, &rule, &which, why, sizeof why))
        snprintf(text, size, "%s", why);
    else if (which == 1)
        snprintf(text, size, "\"%s\" of layers", rule.pattern);
    else if (which == 2 && tagci_transformer_rule(tensor_name, &values_given, &kind))
        snprintf(text, size, "\"%s\" of the built-in set: %s", rule.pattern, kind);
}

/* ---- The whole ---- */

/* Combinations that make no sense. */
static enum tagci_setting_error check(const struct tagci_settings *s, char *why, size_t size)
{
    if (s->value != TAGCI_VALUE_NATIVE &&
        (s->algorithm == TAGCI_ALGORITHM_SKETCH || s->algorithm == TAGCI_ALGORITHM_PACK)) {
        snprintf(why, size,
                 "value=%s (from %s) does not go with algorithm=%s (from %s), whose sums would round at every hop: use "
                 "algorithm=direct, or value=native",
                 values[s->value], tagci_setting_source_name(s->source[TAGCI_SET_VALUE]), algorithms[s->algorithm],
                 tagci_setting_source_name(s->source[TAGCI_SET_ALGORITHM]));
        return TAGCI_SETTING_BAD;
    }
    return TAGCI_SETTING_OK;
}

enum tagci_setting_error tagci_settings_resolve(const char *tensor_name, const struct tagci_info_reader *info,
                                                struct tagci_settings *out, char *why, size_t size)
{
    struct tagci_settings env, given;
    struct tagci_rule rule;
    int which;
    enum tagci_setting_error e;
    if (size)
        why[0] = 0;
    /* Both sources are read whole at first: mistakes show even where a higher source hides them. */
    defaults(&env);
    defaults(&given);
    if ((e = from_environment(&env, why, size)) || (e = from_info(&given, info, why, size)))
        return e;

    const struct tagci_settings *layers = env.source[TAGCI_SET_LAYERS] ? &env : &given;
    if ((e = find_rule(layers->layers, tensor_name, &rule, &which, why, size))) {
        char reason[512];
        snprintf(reason, sizeof reason, "%s", why);
        snprintf(why, size, "%s%s%s", reason, strstr(reason, "of layers") ? "" : ": in layers, from ",
                 strstr(reason, "of layers") ? "" : tagci_setting_source_name(layers->source[TAGCI_SET_LAYERS]));
        return e;
    }

    /* From the lowest source to the highest. */
    defaults(out);
    if (which == 2 && (e = from_rule(out, &rule, TAGCI_FROM_TRANSFORMER, why, size)))
        return e;
    if ((e = from_info(out, info, why, size)))
        return e;
    if (which == 1 && (e = from_rule(out, &rule, TAGCI_FROM_LAYERS, why, size)))
        return e;
    if ((e = from_environment(out, why, size)))
        return e;
    return check(out, why, size);
}

enum tagci_setting_error tagci_settings_exact(struct tagci_settings *out, char *why, size_t size)
{
    enum tagci_setting_error e = tagci_settings_resolve(NULL, NULL, out, why, size);
    if (e)
        return e;
    struct tagci_settings plain;
    defaults(&plain);
    out->sparsity = plain.sparsity;
    out->threshold = 0;
    out->value = TAGCI_VALUE_NATIVE;
    out->source[TAGCI_SET_SPARSITY] = out->source[TAGCI_SET_THRESHOLD] = TAGCI_FROM_DEFAULT;
    out->source[TAGCI_SET_VALUE] = TAGCI_FROM_DEFAULT;
    if (out->gather != TAGCI_GATHER_LOSSLESS && out->gather != TAGCI_GATHER_NATIVE) {
        out->gather = plain.gather;
        out->source[TAGCI_SET_GATHER] = TAGCI_FROM_DEFAULT;
    }
    return TAGCI_SETTING_OK;
}

double tagci_settings_share(const struct tagci_settings *s, int64_t call)
{
    int i = s->sparsity.n - 1;
    while (i > 0 && s->sparsity.from[i] > call)
        i--;
    return s->sparsity.share[i];
}

const char *tagci_setting_name(int i)
{
    return table[i].name;
}

const char *tagci_setting_values(int i)
{
    return table[i].values;
}

const char *tagci_setting_help(int i)
{
    return table[i].help;
}

const char *tagci_setting_source_name(enum tagci_setting_source source)
{
    static const char *const names[] = {"default", "transformer rules", "info", "layers", "environment"};
    return names[source];
}

uint64_t tagci_setting_hash(const struct tagci_settings *s, int i)
{
    char text[TAGCI_PRINT_MAX];
    if (!table[i].shared)
        return 0;
    tagci_setting_print(s, i, text, sizeof text);
    const char *facts = text;
    size_t n = strlen(text);
    if (table[i].kind == TAGCI_KIND_COSTS) { /* the same file may have different names */
        facts = (const char *)&s->costs;
        n = sizeof s->costs;
    }
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *p = facts; p < facts + n; p++)
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
    return hash;
}

uint64_t tagci_settings_hash(const struct tagci_settings *s)
{
    uint64_t hash = 0;
    for (int i = 0; i < TAGCI_SETTINGS; i++)
        hash = (hash ^ tagci_setting_hash(s, i)) * 0x9e3779b97f4a7c15u;
    return hash;
}
