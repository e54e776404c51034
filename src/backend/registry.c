/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/module.h"

/* Backends in modules; those of a static build are linked in instead. A setting may name them wherever they are. */
static struct {
    const char *name;
    char reason[200]; /* why it is not there; "": it is */
} modules[] = {{"cuda", ""}, {"hip", ""}};
#define MODULES (sizeof modules / sizeof *modules)

static const struct tagci_backend *linked(const char *name)
{
    (void)name;
#ifdef TAGC_LINK_CUDA
    if (!strcmp(name, "cuda"))
        return &tagcb_cuda;
#endif
#ifdef TAGC_LINK_HIP
    if (!strcmp(name, "hip"))
        return &tagcb_hip;
#endif
    return NULL;
}

static const struct tagci_backend *registered[16] = {&tagcb_openmp}, *devices[16];
static int count = 1, device_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Whether there is a device is asked once: every call looks for its buffers' owners. */
static void add(const struct tagci_backend *b)
{
    registered[count++] = b;
    if (tagci_backend_is_device(b) && !b->probe())
        devices[device_count++] = b;
}

static void find_modules(void)
{
    for (size_t i = 0; i < MODULES; i++) {
        const struct tagci_backend *b = linked(modules[i].name);
        if (!b)
            b = tagci_module_load(modules[i].name, modules[i].reason);
        if (b)
            add(b);
    }
}

const struct tagci_backend *tagci_backend_at(int i)
{
    pthread_once(&once, find_modules);
    return i >= 0 && i < count ? registered[i] : NULL;
}

const struct tagci_backend *tagci_backend_device_at(int i)
{
    pthread_once(&once, find_modules);
    return i >= 0 && i < device_count ? devices[i] : NULL;
}

void tagci_backend_add(const struct tagci_backend *b)
{
    pthread_once(&once, find_modules);
    add(b);
}

const char *tagci_backend_missing(int i, const char **reason)
{
    pthread_once(&once, find_modules);
    for (size_t m = 0; m < MODULES; m++)
        if (modules[m].reason[0] && i-- == 0) {
            *reason = modules[m].reason;
            return modules[m].name;
        }
    return NULL;
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
    for (size_t i = 0; i < MODULES; i++)
        if (strlen(modules[i].name) == len && !memcmp(modules[i].name, name, len))
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

static void say_missing(const char *name, size_t len, char reason[200])
{
    const char *why, *missing;
    for (int i = 0; (missing = tagci_backend_missing(i, &why)); i++)
        if (strlen(missing) == len && !memcmp(missing, name, len))
            snprintf(reason, 200, "backend %s: %.180s", missing, why);
}

int tagci_backend_may_take(const char *setting, const char *name)
{
    for (const char *at = setting; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        if (*at != '^' && len)
            return len == 4 && !memcmp(at, "auto", 4) && !excluded(setting, name); /* or others are named */
        at += len;
    }
    return !excluded(setting, name);
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
                say_missing(at, len, reason);
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
