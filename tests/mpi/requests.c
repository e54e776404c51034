/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Requests: completion, order of starts, wrong use, progress, and that a start allocates nothing. */
#include "common.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/comm.h"
#include "coll/tensor.h"
#include "util/mem.h"

enum { N = 20000 };

static float *vector(int step, int which)
{
    float *v = malloc(N * sizeof *v);
    for (size_t i = 0; i < N; i++)
        v[i] = (float)t_value(T_INTEGERS, T_F32, t_rank, step * 10 + which, i);
    return v;
}

/* The sum over ranks of vector(step, which). */
static int is_sum(const float *got, int step, int which)
{
    for (size_t i = 0; i < N; i++) {
        double sum = 0;
        for (int r = 0; r < t_size; r++)
            sum += t_value(T_INTEGERS, T_F32, r, step * 10 + which, i);
        if (got[i] != (float)sum)
            return 0;
    }
    return 1;
}

static const char *const ways[] = {"", "algorithm=dense", "algorithm=direct", "algorithm=pack", "algorithm=sketch"};

/* case 13: ten starts of two requests, each reading what the buffers then hold, started in another order on every other
 * rank; after the first round no start and no completion allocates. */
static void persistent(void)
{
    for (size_t w = 0; w < COUNT(ways); w++) {
        t_step("persistent, %s", ways[w]);
        float *in[2], *out[2];
        TAGC_Tensor t[2];
        TAGC_Request q[2];
        for (int k = 0; k < 2; k++) {
            in[k] = vector(0, k);
            out[k] = calloc(N, sizeof **out);
            t[k] = w ? t_tensor(MPI_COMM_WORLD, k ? "b" : "a", N, T_F32, ways[w]) : TAGC_TENSOR_NULL;
            OK(TAGC_Allreduce_init(in[k], out[k], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t[k], MPI_INFO_NULL, &q[k]));
        }
        OK(TAGC_Waitall(2, q)); /* never started: complete at once */
        uint64_t allocated = 0;
        for (int step = 0; step < 10; step++) {
            for (int k = 0; k < 2; k++) {
                float *next = vector(step, k);
                memcpy(in[k], next, N * sizeof *next);
                free(next);
            }
            int first = (t_rank + step) % 2;
            allocated -= step ? tagci_mem_count() : 0;
            OK(TAGC_Start(&q[first]));
            OK(TAGC_Start(&q[!first]));
            if (step % 2) {
                OK(TAGC_Waitall(2, q));
            } else {
                OK(TAGC_Wait(&q[0]));
                int done = 0;
                while (!done)
                    OK(TAGC_Test(&q[1], &done));
            }
            allocated += step ? tagci_mem_count() : 0;
            for (int k = 0; k < 2; k++)
                CHECK(is_sum(out[k], step, k), "step %d of request %d", step, k);
            CHECK(q[0] != TAGC_REQUEST_NULL && q[1] != TAGC_REQUEST_NULL);
        }
        CHECK(allocated == 0, "%llu allocations", (unsigned long long)allocated);
        for (int k = 0; k < 2; k++) {
            OK(TAGC_Request_free(&q[k]));
            if (t[k] != TAGC_TENSOR_NULL) {
                CHECK(t_stat(t[k], TAGC_STAT_CALLS) == 10);
                OK(TAGC_Tensor_free(&t[k]));
            }
            free(in[k]);
            free(out[k]);
        }
        t_agree();
    }
}

/* Operations on different tensors overlap, are waited for in any order, and one blocking call comes between. */
static void overlapping(void)
{
    enum { MANY = 6 };
    t_step("overlapping");
    float *in[MANY], *out[MANY], *between = vector(9, 9), *sum = calloc(N, sizeof *sum);
    TAGC_Tensor t[MANY];
    TAGC_Request q[MANY];
    for (int k = 0; k < MANY; k++) {
        in[k] = vector(1, k);
        out[k] = calloc(N, sizeof **out);
        t[k] = k % 5 ? t_tensor(MPI_COMM_WORLD, "o", N, T_F32, ways[k % 5]) : TAGC_TENSOR_NULL;
        OK(TAGC_Iallreduce(in[k], out[k], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t[k], &q[k]));
    }
    OK(TAGC_Allreduce(between, sum, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL));
    CHECK(is_sum(sum, 9, 9));
    for (int k = 0; k < MANY; k++) {
        int which = t_rank % 2 ? k : MANY - 1 - k; /* in another order on every other rank */
        OK(TAGC_Wait(&q[which]));
        CHECK(q[which] == TAGC_REQUEST_NULL);
        CHECK(is_sum(out[which], 1, which), "operation %d", which);
    }
    int flag = 0;
    OK(TAGC_Testall(MANY, q, &flag));
    CHECK(flag == 1);
    for (int k = 0; k < MANY; k++) {
        if (t[k] != TAGC_TENSOR_NULL)
            OK(TAGC_Tensor_free(&t[k]));
        free(in[k]);
        free(out[k]);
    }
    free(between);
    free(sum);
    t_agree();
}

/* Wrong use is an error of its class; what is in flight stays right. */
static void wrong_use(void)
{
    t_step("wrong use");
    float *in = vector(2, 0), *out = calloc(N, sizeof *out), *other = calloc(N, sizeof *other);
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "busy", N, T_F32, "algorithm=direct");
    TAGC_Request q, stale, second;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(TAGC_Allreduce_init(in, out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, MPI_INFO_NULL, &q));
    OK(TAGC_Start(&q));
    CHECK(t_class(TAGC_Start(&q)) == TAGC_ERR_BUSY);
    OK(TAGC_Wait(&q));
    CHECK(is_sum(out, 2, 0));
    stale = q;
    OK(TAGC_Request_free(&q));
    CHECK(q == TAGC_REQUEST_NULL);
    CHECK(t_class(TAGC_Wait(&stale)) == TAGC_ERR_REQUEST);
    CHECK(t_class(TAGC_Start(&stale)) == TAGC_ERR_REQUEST);
    CHECK(t_class(TAGC_Start(&q)) == TAGC_ERR_REQUEST);
    OK(TAGC_Wait(&q)); /* null: complete */

    t_step("a second operation on a tensor in flight");
    OK(TAGC_Iallreduce(in, out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, &q));
    int code = TAGC_Iallreduce(in, other, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, &second);
    if (!code)
        code = TAGC_Wait(&second);
    /* On a rank where the first was complete already the second is right, and the others' error reaches it. */
    CHECK(t_class(code) == TAGC_ERR_BUSY || t_class(code) == TAGC_ERR_MISMATCH || (t_size == 1 && !code), "%s",
          t_error_text(code));
    OK(TAGC_Wait(&q));
    CHECK(is_sum(out, 2, 0));

    t_step("freed while active");
    OK(TAGC_Iallreduce(in, out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, &q));
    OK(TAGC_Request_free(&q));
    OK(TAGC_Tensor_free(&t));
    CHECK(q == TAGC_REQUEST_NULL && t == TAGC_TENSOR_NULL);
    OK(TAGC_Allreduce(in, other, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL));
    CHECK(is_sum(other, 2, 0));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    /* The freed one completes in somebody's progress, at the latest here. */
    TAGC_Tensor last = t_tensor(MPI_COMM_WORLD, "last", N, T_F32, "algorithm=direct");
    OK(TAGC_Iallreduce(in, other, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, last, &q));
    OK(TAGC_Wait(&q));
    CHECK(is_sum(out, 2, 0));
    OK(TAGC_Tensor_free(&last));
    free(in);
    free(out);
    free(other);
    t_agree();
}

static void as_mpi_requests(void)
{
    t_step("as a request of MPI's");
    float *in = vector(3, 0), *out = calloc(N, sizeof *out);
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "m", N, T_F32, "algorithm=direct");
    TAGC_Request q;
    MPI_Request r[2];
    int sent = t_rank, got = -1;
    OK(TAGC_Iallreduce(in, out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, &q));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = TAGC_Request_get_mpi(&q, &r[0]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (code) { /* this MPI has no such requests */
        CHECK(t_class(code) == TAGC_ERR_UNSUPPORTED);
        OK(TAGC_Wait(&q));
    } else {
        CHECK(q == TAGC_REQUEST_NULL);
        MPI_Iallreduce(&sent, &got, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &r[1]);
        OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        CHECK(got == t_size - 1);
    }
    CHECK(is_sum(out, 3, 0));

    t_step("a request of MPI's that is freed while the operation is in flight");
    float *between = calloc(N, sizeof *between);
    memset(out, 0, N * sizeof *out);
    OK(TAGC_Iallreduce(in, out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, &q));
    if (!code) {
        OK(TAGC_Request_get_mpi(&q, &r[0]));
        OK(MPI_Request_free(&r[0]));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    OK(TAGC_Allreduce(in, between, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL));
    CHECK(is_sum(between, 3, 0));
    while (t_stat(t, TAGC_STAT_CALLS) < 2) { /* it completes in somebody's progress: here in that of one that is done */
        int flag;
        TAGC_Request none = TAGC_REQUEST_NULL;
        OK(TAGC_Testall(1, code ? &q : &none, &flag));
    }
    CHECK(is_sum(out, 3, 0));
    OK(TAGC_Tensor_free(&t));
    free(between);
    free(in);
    free(out);
    t_agree();
}

/* One rank says nowhere to put the request: an error on all, and nothing is left over that meets the next call. */
static void null_request(void)
{
    float *in = vector(7, 0), *out = calloc(N, sizeof *out);
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "nowhere", N, T_F32, "algorithm=direct");
    int odd = t_rank == t_size - 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int init = 0; init < 2; init++) {
        t_step("request is NULL on one rank of %s", init ? "TAGC_Allreduce_init" : "TAGC_Iallreduce");
        TAGC_Request q = TAGC_REQUEST_NULL, *at = odd ? NULL : &q;
        int code = init ? TAGC_Allreduce_init(in, out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, MPI_INFO_NULL, at)
                        : TAGC_Iallreduce(in, out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, at);
        if (!odd && !init && !code)
            code = TAGC_Wait(&q);
        CHECK(t_class(code) == (odd ? MPI_ERR_ARG : TAGC_ERR_MISMATCH), "%s", code ? t_error_text(code) : "no error");
        CHECK(q == TAGC_REQUEST_NULL);
        CHECK(strstr(t_error_text(code), "\"nowhere\""), "%s", t_error_text(code));
        OK(TAGC_Allreduce(in, out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
        CHECK(is_sum(out, 7, 0));
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    OK(TAGC_Tensor_free(&t));
    free(in);
    free(out);
    t_agree();
}

/* What is wrong with a request's tensor when it starts is an error on all, where it completes; then it starts anew. */
static void start_without_the_tensor(void)
{
    float *in = vector(8, 0), *out = calloc(N, sizeof *out), *other = calloc(N, sizeof *other);
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "start", N, T_F32, "algorithm=direct"), copy;
    TAGC_Request p, q;
    int odd = t_rank == t_size - 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(TAGC_Allreduce_init(in, out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, MPI_INFO_NULL, &p));

    t_step("a start while the tensor is in flight");
    OK(TAGC_Iallreduce(in, other, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, &q));
    OK(TAGC_Start(&p));
    int code = TAGC_Wait(&p);
    CHECK(t_class(code) == TAGC_ERR_BUSY || t_class(code) == TAGC_ERR_MISMATCH || (t_size == 1 && !code), "%s",
          code ? t_error_text(code) : "no error");
    OK(TAGC_Wait(&q));
    CHECK(is_sum(other, 8, 0));
    OK(TAGC_Startall(1, &p));
    OK(TAGC_Wait(&p));
    CHECK(is_sum(out, 8, 0));

    t_step("a start on one rank without the tensor");
    copy = t;
    if (odd)
        OK(TAGC_Tensor_free(&copy));
    for (int again = 0; again < 2; again++) {
        OK(TAGC_Start(&p));
        code = TAGC_Wait(&p);
        CHECK(t_class(code) == (odd ? TAGC_ERR_TENSOR : TAGC_ERR_MISMATCH), "%s",
              code ? t_error_text(code) : "no error");
    }
    OK(TAGC_Request_free(&p));
    if (!odd)
        OK(TAGC_Tensor_free(&t));

    t_step("a tensor is freed while an operation with an error is in flight");
    t = t_tensor(MPI_COMM_WORLD, "soon freed", N, T_F32, "algorithm=direct");
    OK(TAGC_Iallreduce(in, out, odd ? N - 1 : N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, &q));
    OK(TAGC_Tensor_free(&t));
    code = TAGC_Wait(&q);
    CHECK(t_class(code) == (odd ? TAGC_ERR_TENSOR : TAGC_ERR_MISMATCH), "%s", code ? t_error_text(code) : "no error");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    free(in);
    free(out);
    free(other);
    t_agree();
}

/* Persistent requests hold communicators, of which MPICH has about two thousand: the error says so, on every rank, and what is
 * freed can be used again. */
static void too_many_requests(void)
{
#ifdef MPICH_VERSION
    enum { MOST = 3000 };
    static TAGC_Request q[MOST];
    float x = 1, y = 0;
    int n = 0, code = MPI_SUCCESS;
    if (t_size > 2)
        return; /* they take their time */
    t_step("too many persistent requests");
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "one of many", 1, T_F32, "");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (; n < MOST && !code; n += !code)
        code = TAGC_Allreduce_init(&x, &y, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, MPI_INFO_NULL, &q[n]);
    if (code) {
        static const char *const says[] = {"TAGC_Allreduce_init", "\"one of many\"",
                                           "communicator of the operation's own"};
        for (size_t i = 0; i < COUNT(says); i++)
            CHECK(strstr(t_error_text(code), says[i]), "%s", t_error_text(code));
    }
    while (n)
        OK(TAGC_Request_free(&q[--n]));
    OK(TAGC_Allreduce_init(&x, &y, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, MPI_INFO_NULL, &q[0]));
    OK(TAGC_Start(&q[0]));
    OK(TAGC_Wait(&q[0]));
    CHECK(y == (float)t_size);
    OK(TAGC_Request_free(&q[0]));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    OK(TAGC_Tensor_free(&t));
    t_agree();
#endif
}

static int raised_on_world;

static void count_errors(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    raised_on_world += *comm == MPI_COMM_WORLD;
}

/* Errors are raised on the communicator of the request; on MPI_COMM_WORLD once the user has freed it, and an operation that
 * has none then completes all the same. */
static void errors_of_requests(void)
{
    float *in = vector(9, 0), *out = calloc(N, sizeof *out);
    MPI_Errhandler counting;
    MPI_Comm comm;
    MPI_Request theirs;
    TAGC_Request p, q, plain;
    MPI_Comm_create_errhandler(count_errors, &counting);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    raised_on_world = 0;

    t_step("errors of a request go to its communicator");
    OK(TAGC_Allreduce_init(in, out, N, MPI_FLOAT, MPI_SUM, comm, TAGC_TENSOR_NULL, MPI_INFO_NULL, &p));
    CHECK(t_class(TAGC_Request_get_mpi(&p, &theirs)) == TAGC_ERR_UNSUPPORTED);
    CHECK(t_class(TAGC_Request_get_mpi(&p, NULL)) == MPI_ERR_ARG);
    CHECK(t_class(TAGC_Test(&p, NULL)) == MPI_ERR_ARG);
    OK(TAGC_Start(&p));
    CHECK(t_class(TAGC_Start(&p)) == TAGC_ERR_BUSY);
    OK(TAGC_Wait(&p));
    OK(TAGC_Request_free(&p));
    CHECK(raised_on_world == 0, "%d on MPI_COMM_WORLD", raised_on_world);

    t_step("operations outlive the communicator");
    TAGC_Tensor t = t_tensor(comm, "outlives", N, T_F32, "algorithm=direct");
    OK(TAGC_Iallreduce(in, out, t_rank ? N : -1, MPI_FLOAT, MPI_SUM, comm, t, &q));
    OK(TAGC_Iallreduce(in, out, N, MPI_FLOAT, TAGC_AVG, comm, TAGC_TENSOR_NULL, &plain));
    OK(TAGC_Tensor_free(&t));
    MPI_Comm_free(&comm);
    int code = TAGC_Wait(&q);
    CHECK(t_class(code) == (t_rank ? TAGC_ERR_MISMATCH : MPI_ERR_COUNT), "%s", code ? t_error_text(code) : "no error");
    CHECK(raised_on_world == 1, "%d on MPI_COMM_WORLD", raised_on_world);
    OK(TAGC_Wait(&plain));
    for (size_t i = 0; i < N; i++)
        out[i] = roundf(out[i] * (float)t_size);
    CHECK(is_sum(out, 9, 0));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&counting);
    free(in);
    free(out);
    t_agree();
}

/* Calls that are collective beside the reductions, with operations in flight: what those have to post goes first, so that all
 * ranks post in the same order (whether or not this MPI minds). */
static void collective_between(void)
{
    for (size_t w = 0; w < COUNT(ways); w++) {
        t_step("other collective calls between, %s", ways[w]);
        enum { MANY = 3 };
        float *in[MANY], *out[MANY], *p_out = calloc(N, sizeof *p_out);
        TAGC_Tensor t[MANY], made;
        TAGC_Request q[MANY], p;
        for (int k = 0; k < MANY; k++) {
            in[k] = vector(5, k);
            out[k] = calloc(N, sizeof **out);
            t[k] = w ? t_tensor(MPI_COMM_WORLD, "f", N, T_F32, ways[w]) : TAGC_TENSOR_NULL;
            OK(TAGC_Iallreduce(in[k], out[k], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t[k], &q[k]));
        }
        made = t_tensor(MPI_COMM_WORLD, "made meanwhile", N, T_F32, ways[w]);
        struct tagci_comm *c = tagci_tensor_of(made)->comm;
        CHECK(c->line == NULL, "an operation still has something to post");
        OK(TAGC_Iallreduce(in[0], p_out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, made, &p));
        OK(TAGC_Wait(&p));
        CHECK(is_sum(p_out, 5, 0));
        OK(TAGC_Allreduce_init(in[1], p_out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, made, MPI_INFO_NULL, &p));
        CHECK(c->line == NULL, "an operation still has something to post");
        OK(TAGC_Start(&p));
        OK(TAGC_Waitall(MANY, q));
        OK(TAGC_Wait(&p));
        for (int k = 0; k < MANY; k++)
            CHECK(is_sum(out[k], 5, k), "operation %d", k);
        CHECK(is_sum(p_out, 5, 1));
        OK(TAGC_Request_free(&p));
        OK(TAGC_Tensor_free(&made));
        for (int k = 0; k < MANY; k++) {
            if (t[k] != TAGC_TENSOR_NULL)
                OK(TAGC_Tensor_free(&t[k]));
            free(in[k]);
            free(out[k]);
        }
        free(p_out);
        t_agree();
    }
}

/* progress=thread: an operation comes to its end with no call that moves it; where the thread level is too low, in Wait. */
static void progress_thread(void)
{
    int level;
    MPI_Query_thread(&level);
    for (size_t w = 1; w < COUNT(ways); w++) {
        char settings[80];
        snprintf(settings, sizeof settings, "progress=thread %s", ways[w]);
        t_step("%s, thread level %d", settings, level);
        float *in = vector(6, 0), *out = calloc(N, sizeof *out);
        TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "p", N, T_F32, settings);
        TAGC_Request q;
        for (int i = 0; i < 3; i++) {
            memset(out, 0, N * sizeof *out);
            OK(TAGC_Iallreduce(in, out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, &q));
            while (level == MPI_THREAD_MULTIPLE && t_stat(t, TAGC_STAT_CALLS) <= i)
                usleep(100); /* a statistic moves nothing */
            OK(TAGC_Wait(&q));
            CHECK(is_sum(out, 6, 0), "operation %d", i);
        }
        OK(TAGC_Tensor_free(&t));
        free(in);
        free(out);
        t_agree();
    }
}

/* case 28: two threads on two communicators. */
static void *one_thread(void *comm)
{
    float *in = vector(4, 0), *out = calloc(N, sizeof *out);
    TAGC_Tensor t = t_tensor(*(MPI_Comm *)comm, "thread", N, T_F32, "algorithm=direct");
    intptr_t bad = 0;
    for (int i = 0; i < 20; i++) {
        TAGC_Request q;
        memset(out, 0, N * sizeof *out);
        if (i % 2) {
            bad |= TAGC_Allreduce(in, out, N, MPI_FLOAT, MPI_SUM, *(MPI_Comm *)comm, t);
        } else {
            bad |= TAGC_Iallreduce(in, out, N, MPI_FLOAT, MPI_SUM, *(MPI_Comm *)comm, t, &q);
            bad |= TAGC_Wait(&q);
        }
        bad |= !is_sum(out, 4, 0);
    }
    bad |= TAGC_Tensor_free(&t);
    free(in);
    free(out);
    return (void *)bad;
}

static void threads(void)
{
    int level;
    MPI_Query_thread(&level);
    t_step("case 28: threads");
    if (level < MPI_THREAD_MULTIPLE)
        return;
    MPI_Comm comm[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
    pthread_t thread;
    void *bad[2];
    CHECK(!pthread_create(&thread, NULL, one_thread, &comm[1]));
    bad[0] = one_thread(&comm[0]);
    pthread_join(thread, &bad[1]);
    CHECK(!bad[0] && !bad[1]);
    MPI_Comm_free(&comm[0]);
    MPI_Comm_free(&comm[1]);
    t_agree();
}

int main(int argc, char **argv)
{
    int level, least = argc > 1 && !strcmp(argv[1], "serialized");
    MPI_Init_thread(&argc, &argv, least ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE, &level);
    t_start(&argc, &argv, 60);
    persistent();
    overlapping();
    wrong_use();
    as_mpi_requests();
    null_request();
    start_without_the_tensor();
    errors_of_requests();
    too_many_requests();
    collective_between();
    progress_thread();
    threads();
    return t_end();
}
