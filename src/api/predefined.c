/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/predefined.h"

#include "tagc.h"

MPI_Datatype TAGC_Predefined_float16(void)
{
    return tagci_float16();
}

MPI_Datatype TAGC_Predefined_bfloat16(void)
{
    return tagci_bfloat16();
}

MPI_Op TAGC_Predefined_avg(void)
{
    return tagci_avg();
}
