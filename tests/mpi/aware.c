/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Case 31: an MPI that takes pointers to a device's memory, one that does not, and one that was built so and has it switched
 * off. It is asked at run time (src/coll/aware.c); here this program answers in MPI's place, for a fake device that goes by
 * the name of cuda, and looks at what MPI is then given, and on which of two devices it is called. */
#include "config.h"

#include "common.h"

#include <string.h>

#include "backends/fake/fake.h"
#include "coll/edge.h"

/* ---- MPI's place ---- */

static int answer, device_pointers, strays; /* the last: calls with pointers to another device than the thread's */
static const struct tagci_backend *cuda;

int MPIX_Query_cuda_support(void);
int MPIX_Query_cuda_support(void)
{
    return answer;
}

int MPIX_GPU_query_support(int type, int *yes);
int MPIX_GPU_query_support(int type, int *yes)
{
    (void)type;
    *yes = answer;
    return MPI_SUCCESS;
}

static int on_device(const void *at)
{
    int device;
    if (at == MPI_IN_PLACE || cuda->classify(at, &device) != TAGCI_DEVICE)
        return 0;
    strays += device != cuda->current();
    return 1;
}

enum { N = 1000 };
static float in[N], out[N], sums[N];

/* An MPI that takes pointers to a device's memory. */
static int allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    device_pointers += on_device(send) && on_device(recv);
    if (on_device(send))
        tagcb_fake_copy(in, send, sizeof in);
    int code = PMPI_Allreduce(on_device(send) ? in : send, on_device(recv) ? sums : recv, count, type, op, comm);
    if (on_device(recv))
        tagcb_fake_copy(recv, sums, sizeof sums);
    return code;
}

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return count == N ? allreduce(send, recv, count, type, op, comm)
                      : PMPI_Allreduce(send, recv, count, type, op, comm);
}

/* Done at once: what counts is when it is called. */
int MPI_Iallreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return count == N ? allreduce(send, recv, count, type, op, comm)
                      : PMPI_Iallreduce(send, recv, count, type, op, comm, request);
}

int main(int argc, char **argv)
{
    static struct tagci_backend named;
    named = *tagcb_fake(NULL);
    named.name = "cuda";
    cuda = &named;
    answer = 1;
    int before = tagci_mpi_reaches("cuda"); /* not while MPI does not run */
    tagci_backend_add(cuda);
    t_start(&argc, &argv, 60);
    t_step("before MPI runs");
    CHECK(!before);
#if HAVE_DECL_MPIX_QUERY_CUDA_SUPPORT || HAVE_DECL_MPIX_GPU_QUERY_SUPPORT
    int asks = 1;
#else
    int asks = 0;
#endif
    tagcb_fake_use(1);
    float *x = tagcb_fake_alloc(TAGCI_DEVICE, sizeof in), *y = tagcb_fake_alloc(TAGCI_DEVICE, sizeof in);
    tagcb_fake_use(0);
    for (int i = 0; i < 4; i++) {
        TAGC_Request q = TAGC_REQUEST_NULL;
        answer = i % 2;
        t_step("case 31: MPI %s, %s", answer ? "takes a device's pointers" : "does not, or has it switched off",
               i < 2 ? "blocking" : "nonblocking");
        CHECK(tagci_mpi_reaches("cuda") == (asks && answer));
        for (size_t i = 0; i < N; i++)
            in[i] = (float)((size_t)t_rank + i % 7);
        tagcb_fake_copy(x, in, sizeof in);
        device_pointers = strays = 0;
        if (i < 2)
            OK(TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL));
        else
            OK(TAGC_Iallreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, &q));
        OK(TAGC_Wait(&q));
        CHECK(!strays && cuda->current() == 0, "%d pointers of another device than the thread's", strays);
        CHECK(device_pointers == (asks && answer), "MPI got %d pairs of pointers to the device", device_pointers);
        tagcb_fake_copy(out, y, sizeof out);
        for (size_t i = 0; i < N; i++)
            CHECK(out[i] == (float)(t_size * (t_size - 1) / 2 + t_size * (int)(i % 7)), "element %zu", i);
    }
    tagcb_fake_free(x);
    tagcb_fake_free(y);
    return t_end();
}
