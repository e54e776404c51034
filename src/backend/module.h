/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Backends in files of their own: $(pkglibdir)/tagc_NAME.so, so that the library needs no library of a GPU vendor. */
#ifndef TAGCI_BACKEND_MODULE_H
#define TAGCI_BACKEND_MODULE_H

#include "backend/backend.h"

/* Loads the module of this name, once and for all. NULL and a reason in place (not there; cannot be loaded; of another
 * ABI) if it cannot be used. A module stays loaded. */
const struct tagci_backend *tagci_module_load(const char *name, char reason[200]);

#endif
