/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"

static const struct tagci_backend *const registered[] = {&tagcb_openmp};
/* Names that a setting may hold although nothing of them is in this build. */
static const char *const absent[] = {"cuda", "hip"};

const struct tagci_backend *tagci_backend_at(int i)
{
    return i >= 0 && i < (int)(sizeof registered / sizeof *registered) ? registered[i] : NULL;
}

static const struct tagci_backend *named(const char *name, size_t len)
{
    const struct tagci_backend *b;
    for (int i = 0; (b = tagci_backend_at(i)); i++)
        if (strlen(b->name) == len && !memcmp(b->name, name, len))
            return b;
    return NULL;
}

int tagci_backend_known(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (strlen(absent[i]) == len && !memcmp(absent[i], name, len))
            return 1;
    return named(name, len) != NULL;
}

static int excluded(const char *setting, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = setting; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (*at == '^' && !strncmp(at + 1, name, len) && (at[1 + len] == ',' || !at[1 + len]))
            return 1;
    }
    return 0;
}

static const struct tagci_backend *usable(const struct tagci_backend *b, const char *setting, char reason[200])
{
    const char *why = excluded(setting, b->name) ? "excluded" : b->probe();
    if (!why)
        return b;
    snprintf(reason, 200, "backend %s: %s", b->name, why);
    return NULL;
}

const struct tagci_backend *tagci_backend_pick(const char *setting, char reason[200])
{
    const struct tagci_backend *b;
    int listed = 0;
    snprintf(reason, 200, "no backend is left by the setting backend=%.100s", setting);
    for (const char *at = setting; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        if (*at != '^' && len) {
            int any = len == 4 && !memcmp(at, "auto", 4);
            listed = !any;
            if (any)
                break;
            if (!(b = named(at, len)))
                snprintf(reason, 200, "backend %.*s is not in this build", (int)(len < 100 ? len : 100), at);
            else if (usable(b, setting, reason))
                return b;
        }
        at += len;
    }
    for (int i = 0; !listed && (b = tagci_backend_at(i)); i++)
        if (usable(b, setting, reason))
            return b;
    return NULL;
}
