/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "util/error.h"

#include <string.h>

#include "tagc.h"

/* No communicator, and nobody to tell but the caller: the code is returned, no handler is called. */

int TAGC_Error_class(int errorcode, int *errorclass)
{
    if (!errorclass)
        return tagci_error(MPI_ERR_ARG, "TAGC_Error_class: errorclass is NULL");
    *errorclass = tagci_error_class(errorcode);
    return MPI_SUCCESS;
}

int TAGC_Error_string(int errorcode, char *string, int *resultlen)
{
    if (!string || !resultlen)
        return tagci_error(MPI_ERR_ARG, "TAGC_Error_string: %s is NULL", string ? "resultlen" : "string");
    tagci_error_text(errorcode, string);
    *resultlen = (int)strlen(string);
    return MPI_SUCCESS;
}
