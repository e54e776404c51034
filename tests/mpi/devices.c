/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Two devices in one process: communicators and tensors on either, at once and in several threads; what belongs to one does
 * not touch the other's memory (the fake device fails then), the calling thread is on the device that it was on after every
 * call, and what cannot be done is an error that names the argument. */
#include "common.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/fake/fake.h"
#include "coll/tensor.h"

enum { N = 40000, DEVICES = TAGCB_FAKE_DEVICES };

static const struct tagci_backend *fake;

/* A call of the library's, by a thread that is on some device before and after it. */
#define STAYS(call)                                                                                                    \
    do {                                                                                                               \
        int stays_before_ = fake->current();                                                                           \
        OK(call);                                                                                                      \
        CHECK(fake->current() == stays_before_, #call " left the thread on device %d", fake->current());               \
    } while (0)

static float *make_on(int device, const float *from)
{
    int before = fake->current();
    tagcb_fake_use(device);
    float *at = tagcb_fake_alloc(TAGCI_DEVICE, N * sizeof *at);
    tagcb_fake_use(before);
    if (from)
        tagcb_fake_copy(at, from, N * sizeof *at);
    return at;
}

/* ---- Interleaved ---- */

static const char *const ways[] = {
    "algorithm=direct sparsity=0.9",
    "algorithm=direct value=int4",
    "algorithm=pack sparsity=0.9",
    "algorithm=sketch sparsity=0.9",
    "algorithm=direct sparsity=0.9 backend=fake",
    "algorithm=dense",
    "algorithm=direct sparsity=0.9 backend=openmp",
};

/* A tensor on each device and its twin on the host, whose bits are wanted. */
struct pair {
    TAGC_Tensor on[DEVICES], host[DEVICES];
    float *in[DEVICES], *x[DEVICES], *y[DEVICES];
};

static void make_pair(struct pair *p, const MPI_Comm comm[], const char *settings)
{
    char host[100];
    snprintf(host, sizeof host, "%.*s backend=openmp", (int)strcspn(settings, "b") - 1, settings);
    for (int d = 0; d < DEVICES; d++) {
        p->on[d] = t_tensor(comm[d], "on", N, T_F32, settings);
        p->host[d] = t_tensor(comm[d], "host", N, T_F32, strstr(settings, "backend") ? host : settings);
        p->in[d] = malloc(N * sizeof(float));
        p->x[d] = make_on(d, NULL);
        p->y[d] = make_on(d, NULL);
    }
}

static void free_pair(struct pair *p)
{
    for (int d = 0; d < DEVICES; d++) {
        STAYS(TAGC_Tensor_free(&p->on[d]));
        STAYS(TAGC_Tensor_free(&p->host[d]));
        tagcb_fake_free(p->x[d]);
        tagcb_fake_free(p->y[d]);
        free(p->in[d]);
    }
}

static void check_pair(const struct pair *p, const MPI_Comm comm[], int step)
{
    static float want[N], got[N];
    for (int d = 0; d < DEVICES; d++) {
        double norm[2];
        STAYS(TAGC_Allreduce(p->in[d], want, N, MPI_FLOAT, MPI_SUM, comm[d], p->host[d]));
        tagcb_fake_copy(got, p->y[d], sizeof got);
        CHECK(!memcmp(got, want, sizeof got), "device %d, step %d: other bits", d, step);
        STAYS(TAGC_Tensor_get_norm(p->on[d], &norm[0]));
        STAYS(TAGC_Tensor_get_norm(p->host[d], &norm[1]));
        CHECK(norm[0] == norm[1], "device %d, step %d: norms %g and %g", d, step, norm[0], norm[1]);
        CHECK(tagci_tensor_of(p->on[d])->device->number == d);
    }
}

static void interleaved(const MPI_Comm comm[])
{
    for (size_t w = 0; w < COUNT(ways); w++)
        for (int persistent = 0; persistent < 2; persistent++) {
            struct pair p;
            TAGC_Request q[DEVICES];
            t_step("%s at once on two devices, %s", persistent ? "persistent" : "nonblocking", ways[w]);
            make_pair(&p, comm, ways[w]);
            for (int d = 0; d < DEVICES && persistent; d++)
                STAYS(
                    TAGC_Allreduce_init(p.x[d], p.y[d], N, MPI_FLOAT, MPI_SUM, comm[d], p.on[d], MPI_INFO_NULL, &q[d]));
            for (int step = 0; step < 4; step++) {
                for (int d = 0; d < DEVICES; d++) {
                    t_fill(T_GAUSSIAN, T_F32, t_rank, 10 * step + d, p.in[d], N);
                    tagcb_fake_copy(p.x[d], p.in[d], N * sizeof(float));
                    if (persistent)
                        STAYS(TAGC_Start(&q[d]));
                    else
                        STAYS(TAGC_Iallreduce(p.x[d], p.y[d], N, MPI_FLOAT, MPI_SUM, comm[d], p.on[d], &q[d]));
                    tagcb_fake_use(step % 2); /* and so the work of one goes on where the other's was started */
                }
                STAYS(TAGC_Waitall(DEVICES, q));
                check_pair(&p, comm, step);
            }
            for (int d = 0; d < DEVICES && persistent; d++)
                STAYS(TAGC_Request_free(&q[d]));
            free_pair(&p);
            tagcb_fake_use(0);
        }
}

/* Calls without a tensor, straight to MPI and as operations, and gathers of a tensor. */
static void without_tensor(const MPI_Comm comm[])
{
    enum { PART = 500 };
    static float in[N], out[N];
    t_step("no tensor; gathers");
    t_fill(T_INTEGERS, T_F32, t_rank, 1, in, N);
    for (int i = 0; i < 4; i++) {
        int d = i % DEVICES;
        float *x = make_on(d, in), *y = make_on(d, NULL);
        TAGC_Request q = TAGC_REQUEST_NULL;
        TAGC_Tensor t = t_tensor(comm[d], "gathers", PART * (size_t)t_size, T_F32, "gather=lossless");
        if (i < DEVICES)
            STAYS(TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, comm[d], TAGC_TENSOR_NULL));
        else
            STAYS(TAGC_Iallreduce(x, y, N, MPI_FLOAT, MPI_SUM, comm[d], TAGC_TENSOR_NULL, &q));
        STAYS(TAGC_Wait(&q));
        tagcb_fake_copy(out, y, sizeof out);
        for (size_t k = 0; k < N; k++) {
            float sum = 0;
            for (int r = 0; r < t_size; r++)
                sum += (float)t_value(T_INTEGERS, T_F32, r, 1, k);
            CHECK(out[k] == sum, "element %zu", k);
        }
        for (int step = 0; step < 3; step++)
            STAYS(TAGC_Allgather(x, PART, MPI_FLOAT, y, PART, MPI_FLOAT, comm[d], t));
        tagcb_fake_copy(out, y, sizeof out);
        CHECK(!memcmp(out + (size_t)t_rank * PART, in, PART * sizeof *in));
        STAYS(TAGC_Tensor_free(&t));
        tagcb_fake_free(x);
        tagcb_fake_free(y);
    }
}

/* ---- Threads ---- */

struct thread {
    int device;
    MPI_Comm comm;
};

/* On the other device than its buffers' all along. */
static void *one_thread(void *of)
{
    const struct thread *me = of;
    intptr_t bad = 0;
    float *in = malloc(N * sizeof *in), *got = malloc(N * sizeof *got), *want = malloc(N * sizeof *want);
    float *x = make_on(me->device, NULL), *y = make_on(me->device, NULL);
    TAGC_Tensor t = t_tensor(me->comm, "thread", N, T_F32, "algorithm=direct sparsity=0.8");
    TAGC_Tensor u = t_tensor(me->comm, "host", N, T_F32, "algorithm=direct sparsity=0.8");
    tagcb_fake_use(1 - me->device);
    for (int step = 0; step < 10; step++) {
        TAGC_Request q = TAGC_REQUEST_NULL;
        t_fill(T_GAUSSIAN, T_F32, t_rank, 10 * me->device + step, in, N);
        tagcb_fake_copy(x, in, N * sizeof *in);
        bad |= step % 2 ? TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, me->comm, t)
                        : TAGC_Iallreduce(x, y, N, MPI_FLOAT, MPI_SUM, me->comm, t, &q);
        bad |= TAGC_Wait(&q) | TAGC_Allreduce(in, want, N, MPI_FLOAT, MPI_SUM, me->comm, u);
        tagcb_fake_copy(got, y, N * sizeof *got);
        bad |= memcmp(got, want, N * sizeof *got) != 0;
        bad |= fake->current() != 1 - me->device;
    }
    bad |= TAGC_Tensor_free(&t) | TAGC_Tensor_free(&u);
    tagcb_fake_free(x);
    tagcb_fake_free(y);
    free(in);
    free(got);
    free(want);
    return (void *)bad;
}

static void threads(const MPI_Comm comm[])
{
    int level;
    MPI_Query_thread(&level);
    t_step("two threads, each with its device");
    if (level < MPI_THREAD_MULTIPLE)
        return;
    struct thread of[DEVICES] = {{0, comm[0]}, {1, comm[1]}};
    pthread_t other;
    void *bad[2];
    CHECK(!pthread_create(&other, NULL, one_thread, &of[1]));
    bad[0] = one_thread(&of[0]);
    pthread_join(other, &bad[1]);
    CHECK(!bad[0] && !bad[1], "%d, %d", bad[0] != NULL, bad[1] != NULL);
    tagcb_fake_use(0);
}

/* The library's own thread, which nobody has put on a device, works on that of the operations and wakes no other. */
static void progress_thread(void)
{
    static float in[N];
    const struct timespec nap = {0, 200000};
    int level;
    MPI_Query_thread(&level);
    t_step("a progress thread");
    if (level < MPI_THREAD_MULTIPLE)
        return;
    tagcb_fake_use(1);
    t_fill(T_INTEGERS, T_F32, t_rank, 1, in, N);
    float *x = make_on(1, in), *y = make_on(1, NULL);
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "helped", N, T_F32, "algorithm=direct sparsity=0.8 progress=thread");
    int woken = tagcb_fake_used(0);
    for (int step = 0; step < 20; step++) {
        TAGC_Request q;
        STAYS(TAGC_Iallreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, &q));
        for (int i = 0; i < 20; i++)
            nanosleep(&nap, NULL); /* it is the other thread's turn */
        STAYS(TAGC_Wait(&q));
    }
    CHECK(tagcb_fake_used(0) == woken, "device 0 was woken %d times", tagcb_fake_used(0) - woken);
    STAYS(TAGC_Tensor_free(&t));
    tagcb_fake_free(x);
    tagcb_fake_free(y);
    tagcb_fake_use(0);
}

/* ---- What cannot be done ---- */

static void refused(int code, const char *text)
{
    CHECK(t_class(code) == TAGC_ERR_BACKEND && strstr(t_error_text(code), text), "%s, not %s",
          code ? t_error_text(code) : "no error", text);
}

static void errors(void)
{
    float *x[DEVICES], *y[DEVICES];
    for (int d = 0; d < DEVICES; d++) {
        x[d] = make_on(d, NULL);
        y[d] = make_on(d, NULL);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    tagcb_fake_use(1);
    t_step("buffers of a call on two devices");
    static const char two[] =
        "TAGC_Allreduce: the buffers are on two devices: sendbuf on fake device 1, recvbuf on fake "
        "device 0";
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "two", N, T_F32, "algorithm=direct");
    TAGC_Request q = TAGC_REQUEST_NULL;
    refused(TAGC_Allreduce(x[1], y[0], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t), two);
    refused(TAGC_Allreduce(x[1], y[0], N, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, TAGC_TENSOR_NULL), two);
    refused(TAGC_Iallreduce(x[1], y[0], N, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, TAGC_TENSOR_NULL, &q), "two devices");
    t_step("a tensor's other device");
    STAYS(TAGC_Allreduce(x[0], y[0], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
    refused(TAGC_Allreduce(x[1], y[1], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t),
            "tensor \"two\" lives on fake device 0, sendbuf is on fake device 1");
    refused(TAGC_Allreduce(MPI_IN_PLACE, y[1], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t),
            "tensor \"two\" lives on fake device 0, recvbuf is on fake device 1");
    t_step("another device's stream");
    void *stream = tagcb_fake_stream();
    OK(TAGC_Tensor_set_stream(t, stream));
    refused(TAGC_Allreduce(x[0], y[0], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t), "a stream of another device");
    OK(TAGC_Tensor_set_stream(t, NULL));
    STAYS(TAGC_Allreduce(x[0], y[0], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
    CHECK(fake->current() == 1);
    STAYS(TAGC_Tensor_free(&t));
    tagcb_fake_stream_free(stream);
    tagcb_fake_use(0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    for (int d = 0; d < DEVICES; d++) {
        tagcb_fake_free(x[d]);
        tagcb_fake_free(y[d]);
    }
}

/* Whatever fails on a device, the thread comes back to the one that it was on. */
static void failures(void)
{
    static float in[N];
    t_fill(T_GAUSSIAN, T_F32, t_rank, 1, in, N);
    float *x = make_on(1, in), *y = make_on(1, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int late = 0; late < 2; late++)
        for (uint64_t k = 1, reached = 1; reached && !t_failed_here(); k++) {
            t_step("failure %d, %s", (int)k, late ? "late" : "at once");
            MPI_Info info = t_info("algorithm=direct sparsity=0.9 backend=fake");
            TAGC_Tensor t = TAGC_TENSOR_NULL;
            tagcb_fake_fail_at(k, late);
            int code = TAGC_Tensor_create(MPI_COMM_SELF, "fails", N, MPI_FLOAT, info, &t);
            code = code ? code : TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, t);
            reached = (uint64_t)tagcb_fake_failed();
            tagcb_fake_fail_at(0, 0);
            CHECK(fake->current() == 0 && (!code || reached), "%s", code ? t_error_text(code) : "");
            if (t != TAGC_TENSOR_NULL)
                STAYS(TAGC_Tensor_free(&t));
            MPI_Info_free(&info);
        }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    tagcb_fake_free(x);
    tagcb_fake_free(y);
}

/* ---- A device that was only guessed ---- */

/* Made with the backend named while the thread is on device 0, a tensor has its residual there. It goes with what it holds
 * to the device of the first buffer that has one, and stays. Shared memory goes with any. */
static void guessed(void)
{
    static float in[N], got[N], want[N];
    t_step("a guess");
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "guessed", N, T_F32, "algorithm=direct sparsity=0.9 backend=fake");
    TAGC_Tensor u = t_tensor(MPI_COMM_WORLD, "host", N, T_F32, "algorithm=direct sparsity=0.9 backend=openmp");
    float *x = make_on(1, NULL), *y = make_on(1, NULL), *shared = tagcb_fake_alloc(TAGCI_SHARED, sizeof in);
    CHECK(tagci_tensor_of(t)->device->number == 0 && !tagci_tensor_of(t)->settled);
    for (int step = 0; step < 4; step++) {
        t_fill(T_GAUSSIAN, T_F32, t_rank, step, in, N);
        tagcb_fake_copy(x, in, sizeof in);
        memcpy(shared, in, sizeof in);
        STAYS(TAGC_Allreduce(in, want, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, u));
        if (step == 0) /* host memory, */
            STAYS(TAGC_Allreduce(in, got, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
        else /* shared, one of both, shared */
            STAYS(
                TAGC_Allreduce(step == 2 ? x : shared, step == 2 ? y : got, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
        if (step == 2)
            tagcb_fake_copy(got, y, sizeof got);
        CHECK(!memcmp(got, want, sizeof got), "step %d: other bits", step);
        CHECK(tagci_tensor_of(t)->device->number == (step >= 2) && tagci_tensor_of(t)->resident);
        CHECK(tagci_tensor_of(t)->settled == (step >= 2));
    }
    STAYS(TAGC_Tensor_free(&t));
    STAYS(TAGC_Tensor_free(&u));
    tagcb_fake_free(shared);
    tagcb_fake_free(x);
    tagcb_fake_free(y);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Comm comm[DEVICES];
    setenv("TAGC_TEST_FAKE", "polls=2", 0);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    t_start(&argc, &argv, 60);
    fake = tagci_backend_device_at(0);
    for (int d = 0; d < DEVICES; d++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[d]);
    interleaved(comm);
    without_tensor(comm);
    guessed();
    threads(comm);
    progress_thread();
    errors();
    failures();
    for (int d = 0; d < DEVICES; d++)
        MPI_Comm_free(&comm[d]);
    return t_end();
}
