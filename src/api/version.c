/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/frame.h"
#include "tagc.h"
#include "util/error.h"
#include "util/mpi_state.h"

_Static_assert(TAGCI_WIRE_VERSION == TAGC_WIRE_VERSION, "wire version of src/core/frame.h and of m4/version.m4");

#if defined(__clang__)
#define COMPILER __VERSION__ /* its name stands in it */
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown compiler"
#endif

static int null_argument(const char *call, const char *argument)
{
    return tagci_error(MPI_ERR_ARG, "%s: %s is NULL", call, argument);
}

int TAGC_Get_version(int *version, int *subversion)
{
    if (!version || !subversion)
        return null_argument("TAGC_Get_version", version ? "subversion" : "version");
    *version = TAGC_VERSION;
    *subversion = TAGC_SUBVERSION;
    return MPI_SUCCESS;
}

int TAGC_Get_library_version(char *version, int *resultlen)
{
    if (!version || !resultlen)
        return null_argument("TAGC_Get_library_version", version ? "resultlen" : "version");
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    tagci_mpi_library(mpi);
    snprintf(version, TAGC_MAX_LIBRARY_VERSION_STRING, "TAGC %s, wire %d, built with %s, runs with %.100s, %.60s",
             TAGC_VERSION_STRING, TAGC_WIRE_VERSION, TAGC_BUILD_MPI, mpi, COMPILER);
    *resultlen = (int)strlen(version);
    return MPI_SUCCESS;
}
