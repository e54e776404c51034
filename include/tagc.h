/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * TAGC: MPI collectives that move fewer bytes than MPI's own.
 *
 * Every call below takes the argument list of the MPI call of the same name, then a tensor. Without a tensor
 * (TAGC_TENSOR_NULL) the result is MPI's, up to the order of the additions. With a tensor, its settings may ask for
 * values to be held back or rounded; then the tensor's residual keeps what was not sent and adds it to the next call.
 *
 * Return values are MPI error codes (MPI_SUCCESS is 0). Before a code is returned the communicator's error handler is
 * called, as MPI does: with MPI's default handler an error ends the program with a readable message.
 *
 * Thread safety, unless a declaration says otherwise: all calls may be made from any thread that the MPI thread level
 * allows to call MPI; concurrent calls must be on different communicators and different tensors.
 */
#ifndef TAGC_H
#define TAGC_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TAGC_VERSION 0
#define TAGC_SUBVERSION 1

#if defined(__GNUC__)
#define TAGC_API __attribute__((visibility("default")))
#else
#define TAGC_API
#endif

/* ---- Handles and constants ------------------------------------------------------------------------------------- */

/* One distributed vector that is reduced again and again: name, length, type, settings, residual, statistics.
 * A handle is a value: copies of a freed handle are recognised as freed. */
typedef struct tagci_tensor_handle *TAGC_Tensor;
#define TAGC_TENSOR_NULL ((TAGC_Tensor)0)

/* An operation in flight, or a persistent one. */
typedef struct tagci_request_handle *TAGC_Request;
#define TAGC_REQUEST_NULL ((TAGC_Request)0)

#define TAGC_MAX_LIBRARY_VERSION_STRING 256 /* bytes, with the final zero */
#define TAGC_MAX_ERROR_STRING 512           /* bytes, with the final zero; MPI's own limit may be smaller */

/* 16-bit floating-point element types: MPI datatypes of two bytes, IEEE 754 binary16 and bfloat16. Reductions of them
 * add in float and round once. MPI must be initialized; the handles are MPI's until MPI_Finalize: do not free them. */
#define TAGC_FLOAT16 (TAGC_Predefined_float16())
#define TAGC_BFLOAT16 (TAGC_Predefined_bfloat16())
/* Operation of a reduction: the sum divided (IEEE division) by the number of ranks. Only for float, double,
 * TAGC_FLOAT16 and TAGC_BFLOAT16, only in TAGC calls; another type is MPI_ERR_OP. */
#define TAGC_AVG (TAGC_Predefined_avg())
TAGC_API MPI_Datatype TAGC_Predefined_float16(void);
TAGC_API MPI_Datatype TAGC_Predefined_bfloat16(void);
TAGC_API MPI_Op TAGC_Predefined_avg(void);

/* Error classes of the library's own, as TAGC_Error_class gives them. Where MPI has a fitting class (MPI_ERR_COUNT,
 * MPI_ERR_TYPE, MPI_ERR_OP, MPI_ERR_BUFFER, MPI_ERR_COMM, MPI_ERR_ARG, MPI_ERR_NO_MEM), that one is used. */
enum {
    TAGC_ERR_MISMATCH = 0x7461001, /* ranks disagree on an argument or a setting, or another rank has an error */
    TAGC_ERR_SETTING,              /* unknown setting, or a value out of its bounds */
    TAGC_ERR_TENSOR,               /* freed handle, or another length, type or communicator than it was made for */
    TAGC_ERR_REQUEST,              /* freed or invalid request */
    TAGC_ERR_BUSY,                 /* an operation on this tensor is in flight */
    TAGC_ERR_BACKEND,              /* the backend asked for is not there */
    TAGC_ERR_WIRE,                 /* a message arrived damaged */
    TAGC_ERR_UNSUPPORTED,          /* this build, MPI or combination of settings cannot do it */
    TAGC_ERR_FILE                  /* a file could not be read or written, or holds something else */
};

/* Which way a reduction travels: values of TAGC_STAT_ALGORITHM. */
enum {
    TAGC_ALGORITHM_DENSE = 1,    /* MPI's own collective */
    TAGC_ALGORITHM_SKETCH,       /* merged bitmap, then additive cells reduced by MPI, peeled by the owner */
    TAGC_ALGORITHM_PACK,         /* merged bitmap, then values packed onto the union, reduced by MPI */
    TAGC_ALGORITHM_DIRECT,       /* every rank sends every owner its own positions and values */
    TAGC_ALGORITHM_HIERARCHICAL, /* dense inside a node, one of the above between nodes */
    TAGC_ALGORITHM_LOCAL,        /* one rank: nothing travels */
    TAGC_ALGORITHM_CODED         /* a gather of coded parts */
};

/* Why it travelled that way: values of TAGC_STAT_REASON. */
enum {
    TAGC_REASON_TYPE = 1, /* its type or operation is not one that is compressed */
    TAGC_REASON_WARMUP,   /* one of the first calls, by the setting warmup */
    TAGC_REASON_NAMED,    /* the settings name it */
    TAGC_REASON_EXACT,    /* nothing is held back or rounded */
    TAGC_REASON_SHORT,    /* shorter than min_count, or too short a gather to be worth coding */
    TAGC_REASON_ONE_RANK,
    TAGC_REASON_COST /* cheapest by the cost model */
};

/* Statistics of TAGC_Get_stat. Bytes and times are sums over calls; times are seconds of this rank,
 * without those of calls below 64 KiB that have no tensor and go to MPI as they stand. */
enum {
    TAGC_STAT_CALLS = 1,
    TAGC_STAT_ELEMENTS,    /* input elements of all calls */
    TAGC_STAT_BYTES_SENT,  /* payload that this rank handed to other ranks; where MPI itself adds or forwards,
                                  what its best known algorithm sends */
    TAGC_STAT_BYTES_DENSE, /* what MPI's own best algorithm would have sent */
    TAGC_STAT_BYTES_RECEIVED,
    TAGC_STAT_DENSITY,       /* kept / all elements, last call */
    TAGC_STAT_UNION_DENSITY, /* kept by at least one rank / all, last call; on what this rank could see of it */
    TAGC_STAT_ALGORITHM,     /* TAGC_ALGORITHM_..., last call */
    TAGC_STAT_TIME_TOTAL,
    TAGC_STAT_TIME_SELECT,
    TAGC_STAT_TIME_ENCODE,
    TAGC_STAT_TIME_COMM,
    TAGC_STAT_TIME_DECODE,
    TAGC_STAT_RESENT,          /* values that a sketch could not decode and that were sent exactly instead */
    TAGC_STAT_WORKSPACE_BYTES, /* memory held now, residuals included */
    TAGC_STAT_REGATHERED,      /* gathers sent whole because the ranks did not remember the same */
    TAGC_STAT_REASON           /* TAGC_REASON_..., last call */
};

/* ---- Version: no MPI needed, callable before MPI_Init and after MPI_Finalize, from any thread -------------------- */

/* Library version, as in "0.1". Neither argument may be NULL (MPI_ERR_ARG). */
TAGC_API int TAGC_Get_version(int *version, int *subversion);
/* One line of text that names version, MPI and compiler. version: buffer of TAGC_MAX_LIBRARY_VERSION_STRING bytes;
 * resultlen: length without the final zero. */
TAGC_API int TAGC_Get_library_version(char *version, int *resultlen);

/* ---- Tensors --------------------------------------------------------------------------------------------------- */

/* Makes a tensor of count elements of datatype on comm: the whole vector, so the sum of recvcounts of a
 * reduce-scatter, the count of an allreduce. Collective over comm. name (may be NULL: "") selects `layers` rules and
 * stands in messages; it is copied. info may be MPI_INFO_NULL; keys tagc_NAME give settings (tagc_env(7)), other keys
 * are ignored. comm must outlive the tensor's last operation. The ranks' count, type, name and settings are compared:
 * a difference is TAGC_ERR_MISMATCH on every rank, and no rank has a tensor then.
 * Errors: MPI_ERR_COMM, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_ARG, MPI_ERR_NO_MEM, MPI_ERR_INFO,
 * TAGC_ERR_SETTING, TAGC_ERR_UNSUPPORTED, TAGC_ERR_BACKEND, TAGC_ERR_MISMATCH; an error of one rank is an error on all. */
TAGC_API int TAGC_Tensor_create(MPI_Comm comm, const char *name, int count, MPI_Datatype datatype, MPI_Info info,
                                TAGC_Tensor *tensor);
TAGC_API int TAGC_Tensor_create_c(MPI_Comm comm, const char *name, MPI_Count count, MPI_Datatype datatype,
                                  MPI_Info info, TAGC_Tensor *tensor);
/* Frees the tensor and sets *tensor to TAGC_TENSOR_NULL. Local. With an operation in flight it goes when that operation
 * completes. After MPI_Finalize it does nothing but set the handle. */
TAGC_API int TAGC_Tensor_free(TAGC_Tensor *tensor);
/* Residual := 0, and whatever else earlier calls left behind is forgotten, the call number of warm-up and schedules too;
 * settings and statistics stay. Local, but if one rank resets, all must before the next operation. TAGC_ERR_BUSY with an
 * operation in flight. */
TAGC_API int TAGC_Tensor_reset(TAGC_Tensor tensor);
/* A new info object, which the caller frees, with every setting in force as tagc_NAME = value (a value that is longer
 * than this MPI takes ends in "..."). Local. */
TAGC_API int TAGC_Tensor_get_info(TAGC_Tensor tensor, MPI_Info *info_used);
/* For buffers in a device's memory: stream is a cudaStream_t or hipStream_t of the caller's, as a pointer. What an operation
 * on the tensor does comes after all that is on the stream when the operation starts; its results are there when it
 * completes, for every stream. NULL, which is the default: after all that the device has been given by then. The stream
 * stays the caller's, has to be of the buffers' device, and to live until another is named or the tensor is freed. Has no
 * effect on buffers in host memory. Local. TAGC_ERR_BUSY with an operation in flight. */
TAGC_API int TAGC_Tensor_set_stream(TAGC_Tensor tensor, void *stream);
/* Euclidean norm of this rank's residual, summed in double. Local. */
TAGC_API int TAGC_Tensor_get_norm(TAGC_Tensor tensor, double *l2);
/* Checkpoint of this rank's state of the tensor (residual, remembered threshold, call number): size in bytes of the
 * image, image into buf, image from buf. Local. bytes is the size of buf, at least (pack) or at least that of the image
 * inside (unpack). The image is little-endian and starts with a magic number, a version, and the tensor's count and
 * type; another tensor's image is TAGC_ERR_TENSOR, anything else TAGC_ERR_FILE, and the tensor stays as it was. */
TAGC_API int TAGC_Tensor_pack_size(TAGC_Tensor tensor, MPI_Count *bytes);
TAGC_API int TAGC_Tensor_pack(TAGC_Tensor tensor, void *buf, MPI_Count bytes);
TAGC_API int TAGC_Tensor_unpack(TAGC_Tensor tensor, const void *buf, MPI_Count bytes);
/* All ranks' images in one file, written and read through MPI-IO. Collective over the tensor's communicator. A file of
 * R ranks loads on any number of ranks: rank r receives the sum of the residuals of ranks r, r+N, r+2N, ..., so that
 * the sum over ranks is conserved; on R ranks the run continues with the same bits. TAGC_ERR_FILE on every rank if any
 * rank fails. */
TAGC_API int TAGC_Tensor_save(TAGC_Tensor tensor, const char *path);
TAGC_API int TAGC_Tensor_load(TAGC_Tensor tensor, const char *path);
/* One statistic (TAGC_STAT_...) of a tensor, or with TAGC_TENSOR_NULL of the whole process (TAGC_STAT_DENSITY,
 * _UNION_DENSITY, _ALGORITHM and _REASON: of the last call in the process). Local. MPI_ERR_ARG for an unknown stat. */
TAGC_API int TAGC_Get_stat(TAGC_Tensor tensor, int stat, double *value);

/* ---- Collectives ------------------------------------------------------------------------------------------------ */

/* As the MPI calls of the same names; MPI's rules hold for every argument (MPI_IN_PLACE, zero counts with null buffers,
 * uneven counts). sendbuf is never written. In place, the result stands at the start of recvbuf and the rest of it is
 * untouched.
 * Compressed: float, double, TAGC_FLOAT16, TAGC_BFLOAT16 with MPI_SUM and TAGC_AVG; all else is MPI's own collective.
 * tensor: TAGC_TENSOR_NULL, or one made on this communicator with the length and type of this call.
 * Errors, beside MPI's own: TAGC_ERR_TENSOR, TAGC_ERR_BUSY, TAGC_ERR_MISMATCH, TAGC_ERR_WIRE; with a tensor an error of
 * one rank's arguments is an error on every rank, and no residual has changed. One mistake cannot be seen: if a rank passes
 * TAGC_TENSOR_NULL where others pass a tensor, it makes another collective call than they do, and the ranks may wait for
 * each other without end, as with calls of MPI's that do not match.
 * Source: TAGC (Polyakov, Dukhanov, Spirin, arXiv 2504.05638); LHC (Li et al., arXiv 2402.07529) for the sketch. */

/* Forms, as MPI-4 has them:
 *   TAGC_Xxx        blocking
 *   TAGC_Ixxx       nonblocking: completes in TAGC_Wait or TAGC_Test; buffers and counts are untouched until then
 *   TAGC_Xxx_init   persistent: collective; each TAGC_Start reads the contents that the buffers then have. Requests may be
 *                   started in different orders on different ranks. info: no keys are defined yet, MPI_INFO_NULL is right
 *                   (a handle that is none is MPI_ERR_INFO). Each request holds a communicator of the library's own until
 *                   it is freed, and MPIs have a limited number of them: MPICH 4 about 2000 in a process
 *   ..._c           the same with MPI_Count counts */
TAGC_API int TAGC_Reduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype,
                                 MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor);
TAGC_API int TAGC_Ireduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype,
                                  MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor, TAGC_Request *request);
TAGC_API int TAGC_Reduce_scatter_init(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype,
                                      MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor, MPI_Info info,
                                      TAGC_Request *request);
TAGC_API int TAGC_Reduce_scatter_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
                                   MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor);
TAGC_API int TAGC_Ireduce_scatter_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
                                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor,
                                    TAGC_Request *request);
TAGC_API int TAGC_Reduce_scatter_init_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
                                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor,
                                        MPI_Info info, TAGC_Request *request);

TAGC_API int TAGC_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype,
                                       MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor);
TAGC_API int TAGC_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype,
                                        MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor, TAGC_Request *request);
TAGC_API int TAGC_Reduce_scatter_block_init(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype,
                                            MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor, MPI_Info info,
                                            TAGC_Request *request);
TAGC_API int TAGC_Reduce_scatter_block_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                         MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor);
TAGC_API int TAGC_Ireduce_scatter_block_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor,
                                          TAGC_Request *request);
TAGC_API int TAGC_Reduce_scatter_block_init_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                              MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor,
                                              MPI_Info info, TAGC_Request *request);

TAGC_API int TAGC_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                            MPI_Comm comm, TAGC_Tensor tensor);
TAGC_API int TAGC_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                             MPI_Comm comm, TAGC_Tensor tensor, TAGC_Request *request);
TAGC_API int TAGC_Allreduce_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                                 MPI_Comm comm, TAGC_Tensor tensor, MPI_Info info, TAGC_Request *request);
TAGC_API int TAGC_Allreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                              MPI_Comm comm, TAGC_Tensor tensor);
TAGC_API int TAGC_Iallreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                               MPI_Comm comm, TAGC_Tensor tensor, TAGC_Request *request);
TAGC_API int TAGC_Allreduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                                   MPI_Op op, MPI_Comm comm, TAGC_Tensor tensor, MPI_Info info, TAGC_Request *request);

/* Gathers, by the setting `gather`. lossless (default): the same bits as MPI's, NaN payloads included; floating-point data
 * travel in fewer bytes: without a tensor their exponents are coded, with one the change since the tensor's last gather
 * (where it is worth it: over a network, or wherever the setting is named). native: MPI's own. bfloat16, int8: rounded
 * first; every rank then holds the same rounded bits, the owner's own part in recvbuf included, but in place the own part
 * stays as it was. Error: half a unit of bfloat16; half a step of int8, 1/127 of the largest of 128 values.
 * The step is a bfloat16 number, a multiple of 9.2e-41 at least: blocks whose values are all below 1e-38 lose more.
 * tensor: of the total length and of recvtype; sendtype is then the same. Other types are MPI's own.
 * Coded: float, double, TAGC_FLOAT16, TAGC_BFLOAT16, sent and received as the same type. In place, sendcount and sendtype
 * are ignored; a sendbuf that is the rank's own part of recvbuf is MPI_ERR_BUFFER. */
TAGC_API int TAGC_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                            MPI_Datatype recvtype, MPI_Comm comm, TAGC_Tensor tensor);
TAGC_API int TAGC_Iallgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                             MPI_Datatype recvtype, MPI_Comm comm, TAGC_Tensor tensor, TAGC_Request *request);
TAGC_API int TAGC_Allgather_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm, TAGC_Tensor tensor, MPI_Info info,
                                 TAGC_Request *request);
TAGC_API int TAGC_Allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                              MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, TAGC_Tensor tensor);
TAGC_API int TAGC_Iallgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                               MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, TAGC_Tensor tensor,
                               TAGC_Request *request);
TAGC_API int TAGC_Allgather_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                   MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, TAGC_Tensor tensor,
                                   MPI_Info info, TAGC_Request *request);

TAGC_API int TAGC_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                             const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
                             TAGC_Tensor tensor);
TAGC_API int TAGC_Iallgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                              const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
                              TAGC_Tensor tensor, TAGC_Request *request);
TAGC_API int TAGC_Allgatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                                  const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
                                  TAGC_Tensor tensor, MPI_Info info, TAGC_Request *request);
TAGC_API int TAGC_Allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                               const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                               MPI_Comm comm, TAGC_Tensor tensor);
TAGC_API int TAGC_Iallgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                                MPI_Comm comm, TAGC_Tensor tensor, TAGC_Request *request);
TAGC_API int TAGC_Allgatherv_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                                    MPI_Comm comm, TAGC_Tensor tensor, MPI_Info info, TAGC_Request *request);

/* ---- Completion -------------------------------------------------------------------------------------------------- */

/* As the MPI calls of the same names; there is no status. A finished nonblocking request becomes TAGC_REQUEST_NULL, a
 * persistent one inactive; null and inactive requests are complete at once. The operation's error, if it has one, is
 * returned (and raised) here. Ranks start the nonblocking operations of a communicator in the same order, as with MPI's;
 * they may complete in any. Operations progress in these calls and in every start, whichever request they name; with the
 * setting progress=thread (and MPI_THREAD_MULTIPLE) in a thread as well. */
/* TAGC_ERR_BUSY: active. TAGC_ERR_REQUEST: not a persistent request. These are errors of this rank alone, and nothing
 * starts: other ranks that start the request wait for this one. A tensor that was freed (TAGC_ERR_TENSOR) or has another
 * operation in flight (TAGC_ERR_BUSY) is an error of the operation: all ranks have one when it completes. TAGC_Startall
 * starts the others also where one cannot start, and returns the first error. */
TAGC_API int TAGC_Start(TAGC_Request *request);
TAGC_API int TAGC_Startall(int n, TAGC_Request requests[]);
TAGC_API int TAGC_Test(TAGC_Request *request, int *flag);
TAGC_API int TAGC_Testall(int n, TAGC_Request requests[], int *flag);
TAGC_API int TAGC_Wait(TAGC_Request *request);
TAGC_API int TAGC_Waitall(int n, TAGC_Request requests[]); /* waits for all; the first error */
/* Sets *request to TAGC_REQUEST_NULL. In flight, the operation goes on and the request goes when it completes. */
TAGC_API int TAGC_Request_free(TAGC_Request *request);
/* A request of MPI's own that completes with a nonblocking operation, for MPI_Waitall and its kin; *request becomes
 * TAGC_REQUEST_NULL. TAGC_ERR_UNSUPPORTED where this MPI has no MPIX_Grequest_start, and for a persistent request. */
TAGC_API int TAGC_Request_get_mpi(TAGC_Request *request, MPI_Request *mpi_request);

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

/* Class of any code that a TAGC call returned: a TAGC_ERR_... constant of above, or MPI's own class. Local, any time. */
TAGC_API int TAGC_Error_class(int errorcode, int *errorclass);
/* Full text of any code or class: which call, which argument, which tensor. string: buffer of TAGC_MAX_ERROR_STRING
 * bytes. The texts of the last few hundred different errors are kept; after that an old code gives the text of a newer
 * error of its class. MPI_Error_string gives the text too (Open MPI: its first 255 characters). So does MPI_Error_class the
 * class where MPI lets a library add texts to its own classes (Open MPI); with MPICH, codes of MPI's classes are of a class
 * that the library adds, and only TAGC_Error_class gives MPI's. */
TAGC_API int TAGC_Error_string(int errorcode, char *string, int *resultlen);

#ifdef __cplusplus
}
#endif

/* ---- For tools: every TAGC_X is a weak symbol, and PTAGC_X is the same call ---------------------------------------- */
#include <tagc_profile.h>

#endif
