/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * For tests/netlab/simulate. SMPI makes a nonblocking collective of plain messages from every rank to every other, whatever
 * algorithms it was told to take: N^2 messages for an agreement on three words. The calls that the library makes become
 * the blocking ones here. That is sound where all ranks make the same calls, one at a time, as they do in tagc_bench. */
#include <mpi.h>

#define MPI_Iallreduce(send, recv, count, type, op, comm, request)                                                     \
    (*(request) = MPI_REQUEST_NULL, MPI_Allreduce(send, recv, count, type, op, comm))
#define MPI_Ireduce_scatter(send, recv, counts, type, op, comm, request)                                               \
    (*(request) = MPI_REQUEST_NULL, MPI_Reduce_scatter(send, recv, counts, type, op, comm))
#define MPI_Ireduce_scatter_block(send, recv, count, type, op, comm, request)                                          \
    (*(request) = MPI_REQUEST_NULL, MPI_Reduce_scatter_block(send, recv, count, type, op, comm))
#define MPI_Iallgather(send, count, type, recv, recvcount, recvtype, comm, request)                                    \
    (*(request) = MPI_REQUEST_NULL, MPI_Allgather(send, count, type, recv, recvcount, recvtype, comm))
#define MPI_Iallgatherv(send, count, type, recv, counts, displs, recvtype, comm, request)                              \
    (*(request) = MPI_REQUEST_NULL, MPI_Allgatherv(send, count, type, recv, counts, displs, recvtype, comm))
