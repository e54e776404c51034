/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The settings: one table (settings.c) is the source of the info keys (tagc_NAME), the environment variables
 * (TAGC_NAME), the listing of tagc_info and the manual page tagc_env(7). */
#ifndef TAGCI_UTIL_SETTINGS_H
#define TAGCI_UTIL_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "util/costs.h"

enum tagci_algorithm_id { /* values of the setting `algorithm`; those of TAGC_ALGORITHM_... beside AUTO */
                          TAGCI_ALGORITHM_AUTO,
                          TAGCI_ALGORITHM_DENSE,
                          TAGCI_ALGORITHM_SKETCH,
                          TAGCI_ALGORITHM_PACK,
                          TAGCI_ALGORITHM_DIRECT,
                          TAGCI_ALGORITHM_HIERARCHICAL
};
enum { TAGCI_GRANULARITY_OWNER = 0, TAGCI_GRANULARITY_TENSOR = -1 }; /* or > 0: elements */
enum { TAGCI_SELECTION_SAMPLED, TAGCI_SELECTION_EXACT };
enum { TAGCI_GATHER_LOSSLESS, TAGCI_GATHER_NATIVE, TAGCI_GATHER_BFLOAT16, TAGCI_GATHER_INT8 };
enum { TAGCI_PROGRESS_POLL, TAGCI_PROGRESS_THREAD };
enum { TAGCI_VERIFY_OFF, TAGCI_VERIFY_REPORT, TAGCI_VERIFY_ERROR };

#define TAGCI_SCHEDULE_MAX 32
#define TAGCI_TEXT_MAX 1024
struct tagci_schedule { /* share held back, from a call number on */
    int n;              /* at least 1; from[0] = 0 */
    int64_t from[TAGCI_SCHEDULE_MAX];
    double share[TAGCI_SCHEDULE_MAX];
};

enum tagci_setting_source {
    TAGCI_FROM_DEFAULT,
    TAGCI_FROM_TRANSFORMER, /* a built-in layer rule */
    TAGCI_FROM_INFO,
    TAGCI_FROM_LAYERS, /* a layer rule that the user wrote */
    TAGCI_FROM_ENVIRONMENT
};

enum tagci_setting { /* order of the table */
                     TAGCI_SET_ALGORITHM,
                     TAGCI_SET_SPARSITY,
                     TAGCI_SET_GRANULARITY,
                     TAGCI_SET_THRESHOLD,
                     TAGCI_SET_SELECTION,
                     TAGCI_SET_VALUE,
                     TAGCI_SET_INDEX,
                     TAGCI_SET_COMPRESS_RATIO,
                     TAGCI_SET_ERROR_FEEDBACK,
                     TAGCI_SET_GATHER,
                     TAGCI_SET_MIN_COUNT,
                     TAGCI_SET_WARMUP,
                     TAGCI_SET_LAYERS,
                     TAGCI_SET_BACKEND,
                     TAGCI_SET_PROGRESS,
                     TAGCI_SET_CHECKSUM,
                     TAGCI_SET_VERIFY,
                     TAGCI_SET_TRACE,
                     TAGCI_SET_TUNING,
                     TAGCI_SETTINGS
};

struct tagci_settings {
    int algorithm; /* enum tagci_algorithm_id */
    struct tagci_schedule sparsity;
    int64_t granularity;
    double threshold; /* 0: unset */
    int selection;
    int value;             /* enum tagci_value of core/type.h */
    int index;             /* enum tagci_index, likewise */
    double compress_ratio; /* 0: auto */
    int error_feedback;
    int gather;
    int64_t min_count; /* default: TAGCI_MIN_COUNT_DEFAULT */
    int64_t warmup;
    int progress, checksum, verify;
    char layers[TAGCI_TEXT_MAX], backend[TAGCI_TEXT_MAX], trace[TAGCI_TEXT_MAX], tuning[TAGCI_TEXT_MAX];
    struct tagci_costs costs; /* what the file of `tuning` says, or as built in */
    enum tagci_setting_source source[TAGCI_SETTINGS];
};

#define TAGCI_MIN_COUNT_DEFAULT 16384

/* How settings reach the resolver: looks up an info key (without "tagc_"); returns 1 and the value, or 0. A value that is
 * too long for `size` may be cut there: it is then refused as too long. */
struct tagci_info_reader {
    int (*get)(void *context, const char *name, char *value, size_t size);
    int (*key)(void *context, int i, char *key, size_t size); /* i-th key as it stands in the info, 0 after the last */
    void *context;
};

enum tagci_setting_error {
    TAGCI_SETTING_OK,
    TAGCI_SETTING_BAD /* unknown name, malformed or out of bounds, or a combination that is refused */
};

/* Settings for a tensor of this name (NULL: "") by the precedence environment > user's layer rule > info > built-in
 * transformer rule > default. info may be NULL. On an error `why` (of `size` bytes) names the setting, where it came from,
 * and what is allowed; *out is then not to be used. Reads the environment at every call. Thread-safe as getenv is. */
enum tagci_setting_error tagci_settings_resolve(const char *tensor_name, const struct tagci_info_reader *info,
                                                struct tagci_settings *out, char *why, size_t size);
/* Settings of a call without a tensor: environment and defaults, and nothing that drops or rounds (sparsity 0, no
 * threshold, value native, whatever the environment says). */
enum tagci_setting_error tagci_settings_exact(struct tagci_settings *out, char *why, size_t size);

/* The layer rule that a tensor of this name falls under, in words: "" if none. layers: a text that has been resolved. */
void tagci_settings_rule(const char *layers, const char *tensor_name, char *text, size_t size);

/* Share held back at this call (counted from 0). */
double tagci_settings_share(const struct tagci_settings *s, int64_t call);

/* The table, for listings. */
const char *tagci_setting_name(int i);
const char *tagci_setting_values(int i); /* what is allowed, default first */
const char *tagci_setting_help(int i);
const char *tagci_setting_source_name(enum tagci_setting_source source);
/* As it could be given. TAGCI_PRINT_MAX bytes are enough for any. */
#define TAGCI_PRINT_MAX 2048
void tagci_setting_print(const struct tagci_settings *s, int i, char *text, size_t size);
int tagci_setting_find(const char *name); /* -1: there is none of this name */
/* Hash of all settings that the ranks must share (not trace, tuning's file name, backend). */
uint64_t tagci_settings_hash(const struct tagci_settings *s);
uint64_t tagci_setting_hash(const struct tagci_settings *s, int i); /* of one; 0 if the ranks need not share it */

#endif
