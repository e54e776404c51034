/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Texts of settings, read and written. Numbers are those of the C locale, whatever the program has set. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/backend.h"
#include "util/settings_table.h"

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

int tagci_read_number(const char *text, size_t n, double *out)
{
    char copy[64], *end;
    if (n == 0 || n >= sizeof copy || strspn(text, "0123456789+-.eE") < n)
        return -1;
    memcpy(copy, text, n);
    copy[n] = 0;
    pthread_once(&c_locale_once, make_c_locale);
    locale_t old = uselocale(c_locale);
    *out = strtod(copy, &end);
    uselocale(old);
    return *end || !isfinite(*out) ? -1 : 0;
}

static int read_count(const char *text, size_t n, int64_t *out)
{
    char copy[32], *end;
    if (n == 0 || n >= sizeof copy || strspn(text, "0123456789") < n)
        return -1;
    memcpy(copy, text, n);
    copy[n] = 0;
    errno = 0;
    *out = strtoll(copy, &end, 10);
    return errno || *end ? -1 : 0;
}

static void print_number(double x, char *text, size_t size)
{
    pthread_once(&c_locale_once, make_c_locale);
    locale_t old = uselocale(c_locale);
    for (int digits = 6; digits <= 17; digits++) { /* the shortest that gives the number back */
        snprintf(text, size, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    uselocale(old);
}

static int read_share(const char *text, size_t n, double *out)
{
    return tagci_read_number(text, n, out) || !(*out >= 0 && *out <= 0.9999) ? -1 : 0;
}

static int read_schedule(struct tagci_schedule *s, const char *text, char *more, size_t size)
{
    struct tagci_schedule new = {.n = 1};
    if (!strchr(text, ':')) {
        int bad = read_share(text, strlen(text), &new.share[0]);
        if (!bad)
            *s = new;
        return bad;
    }
    new.n = 0;
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ","), call = strcspn(at, ":");
        if (new.n == TAGCI_SCHEDULE_MAX) {
            snprintf(more, size, "this schedule has more than %d steps", TAGCI_SCHEDULE_MAX);
            return -1;
        }
        if (call > n || read_count(at, call, &new.from[new.n]) ||
            read_share(at + call + 1, n - call - 1, &new.share[new.n]))
            return -1;
        if (new.n == 0 ? new.from[0] != 0 : new.from[new.n] <= new.from[new.n - 1]) {
            snprintf(more, size, "%s", new.n ? "call numbers must rise" : "a schedule begins with call 0");
            return -1;
        }
        new.n++;
        at += n;
        if (*at && !*++at) /* a comma at the end */
            return -1;
    }
    *s = new;
    return 0;
}

static int read_word(const char *const *words, const char *text, int *out)
{
    for (int i = 0; words[i]; i++)
        if (strcasecmp(words[i], text) == 0) {
            *out = i;
            return 0;
        }
    return -1;
}

static int read_switch(const char *text, int *out)
{
    static const char *const words[] = {"false", "true", "0", "1", "no", "yes", "off", "on", NULL};
    int i;
    if (read_word(words, text, &i))
        return -1;
    *out = i & 1;
    return 0;
}

/* Which of the named backends are here is not asked: that is for whoever wants to use one. */
static int check_backends(const char *text, char *more, size_t size)
{
    for (const char *at = text;;) {
        size_t n = strcspn(at, ",");
        size_t skip = *at == '^';
        if (n == skip ||
            !((n == 4 && !skip && strncmp(at, "auto", 4) == 0) || tagci_backend_known(at + skip, n - skip))) {
            snprintf(more, size, "there is no \"%.*s\"", (int)(n < 60 ? n : 60), at);
            return -1;
        }
        at += n;
        if (!*at++)
            return 0;
    }
}

static int take_text(char *to, const char *text, char *more, size_t size)
{
    if (strlen(text) >= TAGCI_TEXT_MAX) {
        snprintf(more, size, "at most %d characters", TAGCI_TEXT_MAX - 1);
        return -1;
    }
    strcpy(to, text);
    return 0;
}

/* The text without blanks; blanks inside go too, unless it is free text. NULL if it is too long. */
static const char *squeeze(const char *text, int inside, char *out, size_t size)
{
    size_t n = 0;
    while (isspace((unsigned char)*text))
        text++;
    for (; *text; text++)
        if (!inside || !isspace((unsigned char)*text)) {
            if (n + 1 >= size)
                return NULL;
            out[n++] = *text;
        }
    while (n > 0 && isspace((unsigned char)out[n - 1]))
        n--;
    out[n] = 0;
    return out;
}

int tagci_setting_parse(struct tagci_settings *s, int i, const char *text, char *more, size_t size)
{
    const struct tagci_setting_entry *t = tagci_setting_entry(i);
    void *at = (char *)s + t->offset;
    char plain[TAGCI_TEXT_MAX];
    double x;
    int64_t n;
    text = squeeze(text, t->kind == TAGCI_KIND_SCHEDULE || t->kind == TAGCI_KIND_BACKEND, plain, sizeof plain);
    if (!text) {
        snprintf(more, size, "at most %d characters", TAGCI_TEXT_MAX - 1);
        return -1;
    }
    switch (t->kind) {
    case TAGCI_KIND_WORD:
        return read_word(t->words, text, at);
    case TAGCI_KIND_SWITCH:
        return read_switch(text, at);
    case TAGCI_KIND_COUNT:
        if (read_count(text, strlen(text), &n))
            return -1;
        *(int64_t *)at = n;
        return 0;
    case TAGCI_KIND_SCHEDULE:
        return read_schedule(at, text, more, size);
    case TAGCI_KIND_GRANULARITY:
        if (strcasecmp(text, "owner") == 0)
            n = TAGCI_GRANULARITY_OWNER;
        else if (strcasecmp(text, "tensor") == 0)
            n = TAGCI_GRANULARITY_TENSOR;
        else if (read_count(text, strlen(text), &n) || n < 1)
            return -1;
        *(int64_t *)at = n;
        return 0;
    case TAGCI_KIND_THRESHOLD:
        if (strcasecmp(text, "unset") == 0)
            x = 0;
        else if (tagci_read_number(text, strlen(text), &x) || !(x > 0))
            return -1;
        *(double *)at = x;
        return 0;
    case TAGCI_KIND_RATIO:
        if (strcasecmp(text, "auto") == 0)
            x = 0;
        else if (tagci_read_number(text, strlen(text), &x) || !(x > 1))
            return -1;
        *(double *)at = x;
        return 0;
    case TAGCI_KIND_BACKEND:
        return check_backends(text, more, size) ? -1 : take_text(at, text, more, size);
    case TAGCI_KIND_TEXT:
        return take_text(at, strcasecmp(text, "unset") == 0 ? "" : text, more, size);
    case TAGCI_KIND_COSTS:
        if (take_text(at, strcasecmp(text, "unset") == 0 ? "" : text, more, size))
            return -1;
        s->costs = tagci_costs_builtin;
        return *(char *)at ? tagci_costs_read(at, &s->costs, more, size) : 0;
    case TAGCI_KIND_LAYERS: /* what the rules say is read where they are used */
        return take_text(at, text, more, size);
    }
    return -1;
}

static void print_schedule(const struct tagci_schedule *s, char *text, size_t size)
{
    char share[32];
    if (s->n == 1) {
        print_number(s->share[0], text, size);
        return;
    }
    size_t n = 0;
    for (int i = 0; i < s->n && n < size; i++) {
        print_number(s->share[i], share, sizeof share);
        n += (size_t)snprintf(text + n, size - n, "%s%" PRId64 ":%s", i ? "," : "", s->from[i], share);
    }
}

void tagci_setting_print(const struct tagci_settings *s, int i, char *text, size_t size)
{
    const struct tagci_setting_entry *t = tagci_setting_entry(i);
    const void *at = (const char *)s + t->offset;
    const char *word = NULL;
    int64_t n = 0;
    double x = 0;
    switch (t->kind) {
    case TAGCI_KIND_WORD:
        word = t->words[*(const int *)at];
        break;
    case TAGCI_KIND_SWITCH:
        word = *(const int *)at ? "true" : "false";
        break;
    case TAGCI_KIND_COUNT:
    case TAGCI_KIND_GRANULARITY:
        n = *(const int64_t *)at;
        if (t->kind == TAGCI_KIND_GRANULARITY && n <= 0)
            word = n == TAGCI_GRANULARITY_TENSOR ? "tensor" : "owner";
        else
            snprintf(text, size, "%" PRId64, n);
        break;
    case TAGCI_KIND_SCHEDULE:
        print_schedule(at, text, size);
        break;
    case TAGCI_KIND_THRESHOLD:
    case TAGCI_KIND_RATIO:
        x = *(const double *)at;
        if (x == 0)
            word = t->kind == TAGCI_KIND_RATIO ? "auto" : "unset";
        else
            print_number(x, text, size);
        break;
    case TAGCI_KIND_LAYERS:
    case TAGCI_KIND_BACKEND:
        word = at;
        break;
    case TAGCI_KIND_TEXT:
    case TAGCI_KIND_COSTS:
        word = *(const char *)at ? at : "unset";
        break;
    }
    if (word)
        snprintf(text, size, "%s", word);
}
