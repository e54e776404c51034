/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "backend/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef TAGC_PKGLIBDIR
const struct tagci_backend *tagci_module_load(const char *name, char reason[200])
{
    snprintf(reason, 200, "%s is not linked into this static library", name);
    return NULL;
}
#else
/* A test looks elsewhere. */
static void path_of(const char *name, char *path, size_t room)
{
    const char *folder = getenv("TAGC_TEST_MODULES");
    snprintf(path, room, "%s/tagc_%s.so", folder && folder[0] ? folder : TAGC_PKGLIBDIR, name);
}

const struct tagci_backend *tagci_module_load(const char *name, char reason[200])
{
    char path[1024];
    path_of(name, path, sizeof path);
    if (access(path, F_OK)) {
        snprintf(reason, 200, "not built, or not installed: there is no %.140s", path);
        return NULL;
    }
    /* RTLD_LOCAL: two modules may hold the same names, as parts of src/core that each has for itself. */
    void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!file) {
        const char *why = dlerror();
        snprintf(reason, 200, "cannot be loaded: %.170s", why ? why : path);
        return NULL;
    }
    const struct tagci_module *module = dlsym(file, "tagcb_module");
    if (!module)
        snprintf(reason, 200, "%.150s is no module of this library", path);
    else if (module->abi != TAGCI_BACKEND_ABI)
        snprintf(reason, 200, "%.120s is of ABI %d, this library wants %d", path, module->abi, TAGCI_BACKEND_ABI);
    else if (!module->backend || strcmp(module->backend->name, name) != 0)
        snprintf(reason, 200, "%.130s holds another backend", path);
    else
        return module->backend;
    dlclose(file);
    return NULL;
}
#endif
