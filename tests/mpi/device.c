/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Buffers on a device: what other tests do not ask when they run with TAGC_TEST_MEMORY. The user's streams, tensors that
 * move, and failures: every allocation, copy, mark and kernel of a call fails once, at once or late, and each time there is
 * an error, the residual is what it was, nothing is left over, and the next call works. */
#include "common.h"

#include <stdlib.h>
#include <string.h>

#include "backends/fake/fake.h"
#include "coll/tensor.h"

/* ---- Vectors on the device ---- */

static float *make(size_t n, const float *from)
{
    float *at = tagcb_fake_alloc(TAGCI_DEVICE, n * sizeof *at);
    if (from)
        tagcb_fake_copy(at, from, n * sizeof *at);
    return at;
}

static double sum_of(int step, size_t i)
{
    double sum = 0;
    for (int r = 0; r < t_size; r++)
        sum += t_value(T_INTEGERS, T_F32, r, step, i);
    return sum;
}

/* ---- Case 2 ---- */

static void in_place(void)
{
    static const int parts[] = {5, 0, 9, 3, 1, 0, 2, 4};
    for (int algorithm = 0; algorithm < 3; algorithm++) {
        const char *const settings[] = {"", "algorithm=direct", "algorithm=pack"};
        t_step("case 2: in place on a device, %s", settings[algorithm]);
        int counts[64], n = 0, at = 0;
        for (int r = 0; r < t_size; r++) {
            counts[r] = parts[r % 8];
            at += r < t_rank ? counts[r] : 0;
            n += counts[r];
        }
        TAGC_Tensor t =
            algorithm ? t_tensor(MPI_COMM_WORLD, "in place", (size_t)n, T_F32, settings[algorithm]) : TAGC_TENSOR_NULL;
        float before[512], after[512];
        t_fill(T_INTEGERS, T_F32, t_rank, 2, before, (size_t)n);
        float *x = make((size_t)n, before);
        OK(TAGC_Reduce_scatter(MPI_IN_PLACE, x, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
        tagcb_fake_copy(after, x, (size_t)n * sizeof *x);
        for (int i = 0; i < counts[t_rank]; i++)
            CHECK(after[i] == (float)sum_of(2, (size_t)(at + i)), "element %d", i);
        CHECK(!memcmp(after + counts[t_rank], before + counts[t_rank], (size_t)(n - counts[t_rank]) * sizeof *x),
              "more than the own share was written");
        if (algorithm)
            OK(TAGC_Tensor_free(&t));
        tagcb_fake_free(x);
    }
}

/* ---- Case 17 ---- */

/* A kernel of the user's writes the input late on stream A. The call comes with that stream, or with none: it waits for
 * everything. With another stream the user has said that it need not. */
static void streams(void)
{
    enum { N = 400 };
    static float old[N], late[N], got[N];
    for (int way = 0; way < 3; way++) {
        t_step("case 17: %s", way == 0 ? "the stream named" : way == 1 ? "no stream" : "another stream");
        void *a = tagcb_fake_stream(), *b = tagcb_fake_stream();
        TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "stream", N, T_F32, "algorithm=direct");
        t_fill(T_INTEGERS, T_F32, t_rank, 5, old, N);
        t_fill(T_INTEGERS, T_F32, t_rank, 6, late, N);
        float *x = make(N, old), *y = make(N, NULL);
        tagcb_fake_stream_copy(a, x, late, sizeof late);
        OK(TAGC_Tensor_set_stream(t, way == 0 ? a : way == 1 ? NULL : b));
        OK(TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
        tagcb_fake_copy(got, y, sizeof got);
        for (size_t i = 0; i < N; i++)
            CHECK(got[i] == (float)sum_of(way < 2 ? 6 : 5, i), "element %zu", i);
        OK(TAGC_Tensor_free(&t));
        tagcb_fake_stream_free(a);
        tagcb_fake_stream_free(b);
        tagcb_fake_free(x);
        tagcb_fake_free(y);
    }
}

/* ---- A tensor that begins on the host ---- */

static void moving(void)
{
    enum { N = 3000 };
    static float in[N], out[N], again[N];
    t_step("from the host to a device");
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "moves", N, T_F32, "algorithm=direct sparsity=0.9");
    TAGC_Tensor u = t_tensor(MPI_COMM_WORLD, "stays", N, T_F32, "algorithm=direct sparsity=0.9 backend=openmp");
    TAGC_Request q;
    OK(TAGC_Allreduce_init(in, out, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, MPI_INFO_NULL, &q));
    for (int step = 0; step < 6; step++) {
        double norm[2];
        t_fill(T_GAUSSIAN, T_F32, t_rank, step, in, N);
        float *x = make(N, in), *y = make(N, NULL);
        OK(TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, u));
        tagcb_fake_copy(again, y, sizeof again);
        if (step == 0 || step == 4) { /* buffers on the host, before and after the tensor has moved */
            OK(TAGC_Start(&q));
            OK(TAGC_Wait(&q));
        } else {
            OK(TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
            tagcb_fake_copy(out, y, sizeof out);
        }
        CHECK(!memcmp(out, again, sizeof out), "step %d: other bits", step);
        OK(TAGC_Tensor_get_norm(t, &norm[0]));
        OK(TAGC_Tensor_get_norm(u, &norm[1]));
        CHECK(norm[0] > 0 && norm[0] == norm[1], "step %d: norms %g and %g", step, norm[0], norm[1]);
        CHECK(tagci_tensor_of(t)->resident == (step > 0) && !tagci_tensor_of(u)->resident);
        tagcb_fake_free(x);
        tagcb_fake_free(y);
    }
    OK(TAGC_Request_free(&q));
    OK(TAGC_Tensor_free(&t));
    OK(TAGC_Tensor_free(&u));
}

/* ---- Many batches ---- */

/* Parts of very different lengths, many batches and several rounds through all slots: the bits of a tensor on the host. */
static void long_vectors(void)
{
    enum { N = 1500001 };
    static const char *const settings[] = {"algorithm=direct sparsity=0.9", "algorithm=direct value=int4"};
    float *in = malloc(N * sizeof *in), *want = malloc(N * sizeof *want), *got = malloc(N * sizeof *got);
    int counts[64], left = N;
    for (int r = 0; r < t_size; r++) {
        counts[r] = r + 1 == t_size ? left : r % 3 == 1 ? 0 : left / 3;
        left -= counts[r];
    }
    size_t own = (size_t)counts[t_rank];
    float *x = make(N, NULL), *y = make(own + 1, NULL);
    for (int s = 0; s < 2; s++) {
        t_step("many batches: %s", settings[s]);
        TAGC_Tensor host = t_tensor(MPI_COMM_WORLD, "long", N, T_F32, settings[s]);
        TAGC_Tensor device = t_tensor(MPI_COMM_WORLD, "long", N, T_F32, settings[s]);
        for (int step = 0; step < 2; step++) {
            for (size_t i = 0; i < N; i++)
                in[i] = (float)(t_uniform((uint64_t)(100 * step + t_rank), i) - 0.5);
            tagcb_fake_copy(x, in, N * sizeof *in);
            OK(TAGC_Reduce_scatter(in, want, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, host));
            OK(TAGC_Reduce_scatter(x, y, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, device));
            tagcb_fake_copy(got, y, own * sizeof *got);
            CHECK(!memcmp(got, want, own * sizeof *got), "step %d: other bits", step);
        }
        CHECK(t_stat(host, TAGC_STAT_BYTES_SENT) == t_stat(device, TAGC_STAT_BYTES_SENT));
        CHECK(t_stat(host, TAGC_STAT_DENSITY) == t_stat(device, TAGC_STAT_DENSITY));
        CHECK(t_stat(host, TAGC_STAT_UNION_DENSITY) == t_stat(device, TAGC_STAT_UNION_DENSITY));
        OK(TAGC_Tensor_free(&host));
        OK(TAGC_Tensor_free(&device));
    }
    free(in);
    free(want);
    free(got);
    tagcb_fake_free(x);
    tagcb_fake_free(y);
}

/* ---- Failures ---- */

static const char *const ways[] = {
    "algorithm=direct sparsity=0.9 checksum=true",
    "algorithm=direct sparsity=0.5 granularity=tensor value=int8",
    "algorithm=pack sparsity=0.9",
    "algorithm=sketch sparsity=0.9",
    "algorithm=direct sparsity=0.9 warmup=1000", /* dense */
    "algorithm=direct sparsity=0.9 verify=error",
    "algorithm=direct backend=openmp sparsity=0.9",
    "algorithm=direct backend=openmp value=bfloat16",
    "gather=lossless",
    "gather=native",
    "",
};

/* The k-th call of the device on rank `where` fails in the call. Returns whether there was a k-th. */
static int one_failure(TAGC_Tensor t, int form, size_t n, const float *x, float *y, int where, uint64_t k, int late)
{
    double *before = malloc(n * sizeof *before), *after = malloc(n * sizeof *after);
    t_residual(t, T_F32, n, before);
    tagcb_fake_fail_at(t_rank == where ? k : 0, late);
    MPI_Comm world = MPI_COMM_WORLD;
    TAGC_Request q = TAGC_REQUEST_NULL;
    int part = (int)n / t_size, code;
    if (late) /* nonblocking, as those that come late are more likely to meet it */
        code = form == 2   ? TAGC_Iallgather(x, part, MPI_FLOAT, y, part, MPI_FLOAT, world, t, &q)
               : form == 1 ? TAGC_Iallreduce(x, y, (int)n, MPI_FLOAT, MPI_SUM, world, t, &q)
                           : TAGC_Ireduce_scatter_block(x, y, part, MPI_FLOAT, MPI_SUM, world, t, &q);
    else
        code = form == 2   ? TAGC_Allgather(x, part, MPI_FLOAT, y, part, MPI_FLOAT, world, t)
               : form == 1 ? TAGC_Allreduce(x, y, (int)n, MPI_FLOAT, MPI_SUM, world, t)
                           : TAGC_Reduce_scatter_block(x, y, part, MPI_FLOAT, MPI_SUM, world, t);
    code = code ? code : TAGC_Wait(&q);
    int reached = tagcb_fake_failed();
    tagcb_fake_fail_at(0, 0);
    if (reached)
        CHECK(t_class(code) == TAGC_ERR_BACKEND || t_class(code) == MPI_ERR_NO_MEM, "failure %d: %s", (int)k,
              code ? t_error_text(code) : "no error");
    if (code) {
        t_residual(t, T_F32, n, after);
        CHECK(!memcmp(before, after, n * sizeof *before), "failure %d: the residual has changed", (int)k);
    }
    free(before);
    free(after);
    MPI_Bcast(&reached, 1, MPI_INT, where, MPI_COMM_WORLD);
    return reached;
}

static void failures(void)
{
    enum { N = 140000 };
    size_t n = N / (size_t)t_size * (size_t)t_size;
    float *in = malloc(n * sizeof *in);
    t_fill(T_GAUSSIAN, T_F32, t_rank, 1, in, n);
    float *x = make(n, in), *y = make(n, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (size_t w = 0; w < COUNT(ways); w++)
        for (int late = 0; late < 2; late++) {
            static const char *const forms[] = {"Reduce_scatter_block", "Allreduce", "Allgather"};
            int form = strstr(ways[w], "gather=") ? 2 : (int)(w + (size_t)late) % 2;
            t_step("failures %s of %s, %s", late ? "late" : "at once", forms[form], ways[w]);
            TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "fails", n, T_F32, ways[w]);
            uint64_t k = 1;
            OK(TAGC_Allreduce(x, y, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t)); /* there is a residual */
            while (one_failure(t, form, n, x, y, (int)k % t_size, k, late) && !t_failed_here())
                k++;
            CHECK(k > 4, "only %d calls of the device", (int)k);
            OK(TAGC_Allreduce(x, y, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
            OK(TAGC_Tensor_free(&t));
        }
    /* making a tensor, and its first call, which takes memory */
    for (uint64_t k = 1, reached = 1; reached && !t_failed_here(); k++) {
        t_step("failure %d of a first call", (int)k);
        TAGC_Tensor t = TAGC_TENSOR_NULL;
        MPI_Info info = t_info(k % 2 ? "algorithm=direct sparsity=0.9" : "algorithm=direct sparsity=0.9 backend=fake");
        tagcb_fake_fail_at(t_rank == 0 ? k : 0, 0);
        int code = TAGC_Tensor_create(MPI_COMM_WORLD, "first", (int)n, MPI_FLOAT, info, &t);
        if (!code)
            code = TAGC_Allreduce(x, y, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t);
        reached = (uint64_t)tagcb_fake_failed();
        tagcb_fake_fail_at(0, 0);
        CHECK((code != 0) >= (int)reached, "failure %d: no error", (int)k);
        if (t != TAGC_TENSOR_NULL)
            OK(TAGC_Tensor_free(&t));
        MPI_Bcast(&reached, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    free(in);
    tagcb_fake_free(x);
    tagcb_fake_free(y);
}

/* A call without a tensor: nobody could be told, so this rank is alone. */
static void without_tensor(void)
{
    enum { N = 5000 };
    static float in[N], out[N];
    t_fill(T_GAUSSIAN, T_F32, t_rank, 1, in, N);
    float *x = make(N, in), *y = make(N, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int form = 0; form < 4; form++)
        for (uint64_t k = 1, reached = 1; reached && !t_failed_here(); k++) {
            TAGC_Request q = TAGC_REQUEST_NULL;
            t_step("failure %d without a tensor, form %d", (int)k, form);
            tagcb_fake_fail_at(k, form / 2);
            int code = form % 2 ? TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, TAGC_TENSOR_NULL)
                                : TAGC_Iallreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, TAGC_TENSOR_NULL, &q);
            code = code ? code : TAGC_Wait(&q);
            reached = (uint64_t)tagcb_fake_failed();
            tagcb_fake_fail_at(0, 0);
            CHECK(!reached || t_class(code) == TAGC_ERR_BACKEND || t_class(code) == MPI_ERR_NO_MEM, "%s",
                  code ? t_error_text(code) : "no error");
            OK(TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, TAGC_TENSOR_NULL));
            tagcb_fake_copy(out, y, sizeof out);
            CHECK(!memcmp(in, out, sizeof in), "another sum");
        }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    tagcb_fake_free(x);
    tagcb_fake_free(y);
}

/* Memory of the host that a call takes: for a device without kernels each call of one does (backend/fallback.c). */
static void host_allocations(void)
{
    enum { N = 5000 };
    static float in[N];
    t_fill(T_GAUSSIAN, T_F32, t_rank, 1, in, N);
    float *x = make(N, in), *y = make(N, NULL);
    t_step("allocations of the host");
    TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "host", N, T_F32, "algorithm=direct sparsity=0.9");
    static double before[N], after[N];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
    uint64_t count = tagci_mem_count(), most;
    OK(TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t));
    count = tagci_mem_count() - count;
    MPI_Allreduce(&count, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    size_t held = tagci_mem_held();
    for (uint64_t k = 1; k <= most; k++) {
        t_residual(t, T_F32, N, before);
        tagci_mem_fail_at(k <= count && (int)(k % (unsigned)t_size) == t_rank ? k : 0);
        int code = TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t);
        tagci_mem_fail_at(0);
        t_residual(t, T_F32, N, after);
        CHECK(!code || !memcmp(before, after, sizeof before), "allocation %d: the residual has changed", (int)k);
        CHECK(code || k > count || (int)(k % (unsigned)t_size) != t_rank, "allocation %d: no error", (int)k);
    }
    CHECK(tagci_mem_held() == held, "%zu bytes, before %zu", tagci_mem_held(), held);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    OK(TAGC_Tensor_free(&t));
    tagcb_fake_free(x);
    tagcb_fake_free(y);
}

int main(int argc, char **argv)
{
    setenv("TAGC_TEST_FAKE", "polls=2", 0);
    t_start(&argc, &argv, 60);
    in_place();
    streams();
    moving();
    long_vectors();
    failures();
    without_tensor();
    host_allocations();
    return t_end();
}
