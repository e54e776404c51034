/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/predefined.h"

#include <pthread.h>
#include <stdio.h>

#include "coll/comm.h"
#include "coll/tensor.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int made; /* read without the lock: set last */
static MPI_Datatype float16 = MPI_DATATYPE_NULL, bfloat16 = MPI_DATATYPE_NULL;
static MPI_Op avg = MPI_OP_NULL;

/* MPI cannot tell an operation how many ranks there are, so it cannot average. */
static void cannot_average(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)n, (void)type;
    fprintf(stderr, "tagc: TAGC_AVG is for TAGC calls only, not for MPI's own reductions\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* 16-bit integers to MPI, so that it moves them right between unlike machines. */
static int make_type(const char *name, MPI_Datatype *type)
{
    if (MPI_Type_contiguous(1, MPI_UINT16_T, type) || MPI_Type_commit(type))
        return -1;
    MPI_Type_set_name(*type, (char *)name);
    return 0;
}

static void unmake(void)
{
    pthread_mutex_lock(&lock);
    __atomic_store_n(&made, 0, __ATOMIC_RELEASE);
    if (float16 != MPI_DATATYPE_NULL)
        MPI_Type_free(&float16);
    if (bfloat16 != MPI_DATATYPE_NULL)
        MPI_Type_free(&bfloat16);
    if (avg != MPI_OP_NULL)
        MPI_Op_free(&avg);
    pthread_mutex_unlock(&lock);
}

static int there(void)
{
    if (__atomic_load_n(&made, __ATOMIC_ACQUIRE))
        return 1;
    if (tagci_start_library() != MPI_SUCCESS)
        return 0;
    pthread_mutex_lock(&lock);
    int ok = made;
    if (!ok) {
        ok = make_type("TAGC_FLOAT16", &float16) == 0 && make_type("TAGC_BFLOAT16", &bfloat16) == 0 &&
             MPI_Op_create(cannot_average, 1, &avg) == MPI_SUCCESS;
        __atomic_store_n(&made, ok, __ATOMIC_RELEASE);
        tagci_at_finalize(unmake);
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

MPI_Datatype tagci_float16(void)
{
    return there() ? float16 : MPI_DATATYPE_NULL;
}

MPI_Datatype tagci_bfloat16(void)
{
    return there() ? bfloat16 : MPI_DATATYPE_NULL;
}

MPI_Op tagci_avg(void)
{
    return there() ? avg : MPI_OP_NULL;
}

/* A Fortran type may be absent, and compiler flags may have changed the size of those without a number. */
static int is_fortran(MPI_Datatype datatype, MPI_Datatype fortran, int size)
{
    int has;
    return fortran != MPI_DATATYPE_NULL && datatype == fortran && MPI_Type_size(datatype, &has) == MPI_SUCCESS &&
           has == size;
}

int tagci_type_of(MPI_Datatype datatype, enum tagci_type *type)
{
    if (datatype == MPI_DATATYPE_NULL)
        return 0;
    if (datatype == MPI_FLOAT)
        *type = TAGCI_F32;
    else if (datatype == MPI_DOUBLE)
        *type = TAGCI_F64;
    else if (__atomic_load_n(&made, __ATOMIC_ACQUIRE) &&
             datatype == float16) /* one that was not made cannot be the caller's */
        *type = TAGCI_F16;
    else if (__atomic_load_n(&made, __ATOMIC_ACQUIRE) && datatype == bfloat16)
        *type = TAGCI_BF16;
    else if (is_fortran(datatype, MPI_REAL4, 4) || is_fortran(datatype, MPI_REAL, 4) ||
             is_fortran(datatype, MPI_DOUBLE_PRECISION, 4))
        *type = TAGCI_F32;
    else if (is_fortran(datatype, MPI_REAL8, 8) || is_fortran(datatype, MPI_DOUBLE_PRECISION, 8) ||
             is_fortran(datatype, MPI_REAL, 8))
        *type = TAGCI_F64;
    else
        return 0;
    return 1;
}
