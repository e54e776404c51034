/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "api/tensor.h"

int TAGC_Get_stat(TAGC_Tensor tensor, int stat, double *value)
{
    static const char call[] = "TAGC_Get_stat";
    struct tagci_tensor *t = NULL;
    int code = tensor == TAGC_TENSOR_NULL ? MPI_SUCCESS : tagci_api_tensor(call, tensor, &t);
    if (!code && !value)
        code = tagci_error(MPI_ERR_ARG, "%s: value is NULL", call);
    if (!code && (stat < TAGC_STAT_CALLS || stat > TAGC_STAT_REASON))
        code = tagci_error(MPI_ERR_ARG, "%s: stat: there is no statistic %d", call, stat);
    if (code)
        return tagci_api_raise(t, code);
    *value = tagci_stats_get(t, stat);
    return MPI_SUCCESS;
}
