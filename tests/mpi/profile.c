/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * A tool puts its own TAGC_ calls in the place of the library's and goes on by PTAGC_: it sees each call of the program
 * once, and none that the library makes for itself. Links against the library as it is installed. */
#include <mpi.h>
#include <stdio.h>
#include <tagc.h>

enum { CREATE, FREE, ALLREDUCE, IALLREDUCE, WAIT, WAITALL, TEST, TESTALL, TEXT, CLASS, AVG, CALLS };
static const char *const names[CALLS] = {"Tensor_create", "Tensor_free", "Allreduce",     "Iallreduce",
                                         "Wait",          "Waitall",     "Test",          "Testall",
                                         "Error_string",  "Error_class", "Predefined_avg"};
static int seen[CALLS];

int TAGC_Tensor_create(MPI_Comm comm, const char *name, int count, MPI_Datatype datatype, MPI_Info info,
                       TAGC_Tensor *tensor)
{
    seen[CREATE]++;
    return PTAGC_Tensor_create(comm, name, count, datatype, info, tensor);
}

int TAGC_Tensor_free(TAGC_Tensor *tensor)
{
    seen[FREE]++;
    return PTAGC_Tensor_free(tensor);
}

int TAGC_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                   TAGC_Tensor tensor)
{
    seen[ALLREDUCE]++;
    return PTAGC_Allreduce(sendbuf, recvbuf, count, datatype, op, comm, tensor);
}

int TAGC_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                    TAGC_Tensor tensor, TAGC_Request *request)
{
    seen[IALLREDUCE]++;
    return PTAGC_Iallreduce(sendbuf, recvbuf, count, datatype, op, comm, tensor, request);
}

int TAGC_Wait(TAGC_Request *request)
{
    seen[WAIT]++;
    return PTAGC_Wait(request);
}

int TAGC_Waitall(int n, TAGC_Request requests[])
{
    seen[WAITALL]++;
    return PTAGC_Waitall(n, requests);
}

int TAGC_Test(TAGC_Request *request, int *flag)
{
    seen[TEST]++;
    return PTAGC_Test(request, flag);
}

int TAGC_Testall(int n, TAGC_Request requests[], int *flag)
{
    seen[TESTALL]++;
    return PTAGC_Testall(n, requests, flag);
}

int TAGC_Error_string(int errorcode, char *string, int *resultlen)
{
    seen[TEXT]++;
    return PTAGC_Error_string(errorcode, string, resultlen);
}

int TAGC_Error_class(int errorcode, int *errorclass)
{
    seen[CLASS]++;
    return PTAGC_Error_class(errorcode, errorclass);
}

MPI_Op TAGC_Predefined_avg(void)
{
    seen[AVG]++;
    return PTAGC_Predefined_avg();
}

int main(int argc, char **argv)
{
    int rank, bad = 0, expected[CALLS] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    float in[100], out[100];
    for (int i = 0; i < 100; i++)
        in[i] = (float)(i % 7);
    TAGC_Tensor tensor;
    TAGC_Tensor_create(MPI_COMM_WORLD, "seen", 100, MPI_FLOAT, MPI_INFO_NULL, &tensor);
    expected[CREATE]++;
    TAGC_Allreduce(in, out, 100, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, tensor);
    expected[ALLREDUCE]++;
    TAGC_Allreduce(in, out, 100, MPI_FLOAT, TAGC_AVG, MPI_COMM_WORLD, TAGC_TENSOR_NULL);
    expected[ALLREDUCE]++;
    expected[AVG]++;
    TAGC_Request requests[2];
    for (int i = 0; i < 2; i++)
        TAGC_Iallreduce(in, out + 50 * i, 50, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, &requests[i]);
    expected[IALLREDUCE] += 2;
    for (int done = 0; !done; expected[TESTALL]++)
        TAGC_Testall(2, requests, &done);
    for (int i = 0; i < 2; i++)
        TAGC_Iallreduce(in, out + 50 * i, 50, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, &requests[i]);
    expected[IALLREDUCE] += 2;
    TAGC_Waitall(2, requests);
    expected[WAITALL]++;
    TAGC_Iallreduce(in, out, 100, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, tensor, &requests[0]);
    expected[IALLREDUCE]++;
    TAGC_Wait(&requests[0]);
    expected[WAIT]++;
    /* One rank's error: the others' texts are made inside, of the class's own text */
    int class, length, code = TAGC_Allreduce(in, out, rank ? 100 : -1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, tensor);
    expected[ALLREDUCE]++;
    char text[TAGC_MAX_ERROR_STRING];
    TAGC_Error_class(code, &class);
    expected[CLASS]++;
    TAGC_Error_string(code, text, &length);
    expected[TEXT]++;
    if (class != (rank ? TAGC_ERR_MISMATCH : MPI_ERR_COUNT)) {
        printf("rank %d: class %d: %s\n", rank, class, text);
        bad = 1;
    }
    TAGC_Tensor_free(&tensor);
    expected[FREE]++;

    for (int i = 0; i < CALLS; i++)
        if (seen[i] != expected[i]) {
            printf("rank %d: TAGC_%s: the program called it %d times, the tool saw %d\n", rank, names[i], expected[i],
                   seen[i]);
            bad = 1;
        }
    int any;
    MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return any;
}
