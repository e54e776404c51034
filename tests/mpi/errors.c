/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Bad input, and input that is none of the library's business. With a tensor, one rank's mistake is an error on every
 * rank, nothing has changed, and the next good call works. */
#include "common.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 1200 }; /* a multiple of up to 6 ranks, of 8 */

/* ---- Mistakes ---- */

struct arguments {
    const void *send;
    void *recv;
    int counts[64];
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
    TAGC_Tensor tensor;
};

static MPI_Datatype one_float;
static TAGC_Tensor freed;

static void wrong_type(struct arguments *a)
{
    a->type = MPI_DOUBLE;
}
static void integer_type(struct arguments *a)
{
    a->type = MPI_INT;
}
static void derived_type(struct arguments *a)
{
    a->type = one_float;
}
static void null_type(struct arguments *a)
{
    a->type = MPI_DATATYPE_NULL;
}
static void wrong_length(struct arguments *a)
{
    for (int r = 0; r < 64; r++)
        a->counts[r]--;
}
static void negative_count(struct arguments *a)
{
    a->counts[0] = -3;
}
static void null_send(struct arguments *a)
{
    a->send = NULL;
}
static void null_recv(struct arguments *a)
{
    a->recv = NULL;
}
static void same_buffer(struct arguments *a)
{
    a->send = a->recv;
}
static void null_op(struct arguments *a)
{
    a->op = MPI_OP_NULL;
}
static void other_comm(struct arguments *a)
{
    a->comm = t_comm(T_DUP);
}
static void freed_tensor(struct arguments *a)
{
    a->tensor = freed;
}

/* case 11, first half, is derived_type on one rank. */
static const struct mistake {
    const char *name, *argument; /* what the message has to name */
    void (*make)(struct arguments *a);
    int class;
    int also_plain; /* a mistake without a tensor too; there all ranks make it, as MPI's rules want */
} mistakes[] = {
    {"wrong type", "", wrong_type, TAGC_ERR_TENSOR, 0},
    {"integer type", "", integer_type, TAGC_ERR_TENSOR, 0},
    {"derived type", "", derived_type, TAGC_ERR_TENSOR, 0},
    {"null type", "datatype", null_type, MPI_ERR_TYPE, 1},
    {"wrong length", "", wrong_length, TAGC_ERR_TENSOR, 0},
    {"negative count", "count", negative_count, MPI_ERR_COUNT, 1},
    {"null send buffer", "sendbuf", null_send, MPI_ERR_BUFFER, 1},
    {"null receive buffer", "recvbuf", null_recv, MPI_ERR_BUFFER, 1},
    {"send buffer is receive buffer", "sendbuf", same_buffer, MPI_ERR_BUFFER, 1},
    {"null operation", "op", null_op, MPI_ERR_OP, 1},
    {"other communicator", "", other_comm, TAGC_ERR_TENSOR, 0},
    {"freed tensor", "", freed_tensor, TAGC_ERR_TENSOR, 0},
};

static int call_with(int form, const struct arguments *a)
{
    switch (form) {
    case T_REDUCE_SCATTER:
        return TAGC_Reduce_scatter(a->send, a->recv, a->counts, a->type, a->op, a->comm, a->tensor);
    case T_REDUCE_SCATTER_BLOCK:
        return TAGC_Reduce_scatter_block(a->send, a->recv, a->counts[0], a->type, a->op, a->comm, a->tensor);
    default:
        return TAGC_Allreduce(a->send, a->recv, a->counts[0], a->type, a->op, a->comm, a->tensor);
    }
}

static struct arguments good_arguments(int form, const float *x, float *y, TAGC_Tensor tensor)
{
    struct arguments a = {x, y, {0}, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, tensor};
    for (int r = 0; r < 64; r++)
        a.counts[r] = form == T_ALLREDUCE ? N : N / t_size;
    return a;
}

static void check_text(int code, int form, const struct mistake *m, const char *tensor)
{
    const char *text = t_error_text(code);
    char call[60];
    snprintf(call, sizeof call, "TAGC_%s", t_form_names[form]);
    CHECK(strstr(text, call), "\"%s\" does not name the call", text);
    CHECK(strstr(text, m->argument), "\"%s\" does not name %s", text, m->argument);
    CHECK(strstr(text, tensor), "\"%s\" does not name the tensor", text);
}

/* Some ranks make a mistake in a call on `bad`; `good` makes the same calls without. */
static void mistake_with_tensor(int form, const struct mistake *m, const char *settings, int all)
{
    static float x[N], y[N], y2[N];
    char *before = NULL, *after;
    MPI_Count bytes = 0;
    TAGC_Tensor bad = t_tensor(MPI_COMM_WORLD, "hidden layer", N, T_F32, settings);
    TAGC_Tensor good = t_tensor(MPI_COMM_WORLD, "twin", N, T_F32, settings);
    struct arguments a;
    int wrong = all || t_rank == t_size - 1;
    for (int step = 0; step < 4; step++) {
        t_fill(T_GAUSSIAN, T_F32, t_rank, step, x, N);
        if (step == 2) {
            OK(TAGC_Tensor_pack_size(bad, &bytes));
            before = malloc((size_t)bytes);
            after = malloc((size_t)bytes);
            OK(TAGC_Tensor_pack(bad, before, bytes));
            a = good_arguments(form, x, y, bad);
            if (wrong)
                m->make(&a);
            int code = call_with(form, &a), class = t_class(code);
            CHECK(code != MPI_SUCCESS, "no error");
            if (code)
                CHECK(class == (wrong ? m->class : TAGC_ERR_MISMATCH), "class %#x: %s", (unsigned)class,
                      t_error_text(code));
            if (code && wrong)
                check_text(code, form, m, m->make == freed_tensor ? "" : "hidden layer");
            OK(TAGC_Tensor_pack(bad, after, bytes));
            CHECK(memcmp(before, after, (size_t)bytes) == 0, "the tensor has changed");
            free(after);
        }
        memset(y, 0, sizeof y);
        memset(y2, 0, sizeof y2);
        a = good_arguments(form, x, y, bad);
        OK(call_with(form, &a));
        a = good_arguments(form, x, y2, good);
        OK(call_with(form, &a));
        CHECK(memcmp(y, y2, sizeof y) == 0, "step %d differs from the run without an error", step);
    }
    free(before);
    OK(TAGC_Tensor_free(&bad));
    OK(TAGC_Tensor_free(&good));
}

static void mistakes_with_tensors(void)
{
    static const char *const settings[] = {"algorithm=direct sparsity=0.8", "algorithm=pack sparsity=0.5",
                                           "algorithm=dense", "algorithm=sketch sparsity=0.8"};
    freed = t_tensor(MPI_COMM_WORLD, "freed", N, T_F32, "");
    TAGC_Tensor copy = freed;
    OK(TAGC_Tensor_free(&copy));
    for (int form = 0; form < T_FORMS; form++)
        for (size_t m = 0; m < COUNT(mistakes); m++)
            for (int everybody = 0; everybody < 2; everybody++) {
                const char *s = settings[(m + (size_t)form) % COUNT(settings)];
                if (mistakes[m].make == wrong_length && form == T_REDUCE_SCATTER_BLOCK && !everybody && t_size == 1)
                    continue;
                t_step("%s in %s, %s, on %s", mistakes[m].name, t_form_names[form], s, everybody ? "all" : "one rank");
                mistake_with_tensor(form, &mistakes[m], s, everybody);
            }
}

static void mistakes_without_tensors(void)
{
    static float x[N], y[N];
    for (int form = 0; form < T_FORMS; form++)
        for (size_t m = 0; m < COUNT(mistakes); m++) {
            if (!mistakes[m].also_plain)
                continue;
            t_step("%s in %s without a tensor", mistakes[m].name, t_form_names[form]);
            struct arguments a = good_arguments(form, x, y, TAGC_TENSOR_NULL);
            mistakes[m].make(&a);
            int code = call_with(form, &a);
            CHECK(t_class(code) == mistakes[m].class, "class %#x: %s", (unsigned)t_class(code), t_error_text(code));
            check_text(code, form, &mistakes[m], "");
            a = good_arguments(form, x, y, TAGC_TENSOR_NULL);
            OK(call_with(form, &a));
        }
    t_step("counts whose sum has more than 64 bits");
    MPI_Count huge[64];
    MPI_Aint displs[64] = {0};
    for (int r = 0; r < 64; r++)
        huge[r] = INT64_MAX;
    for (int k = 0; k < 4 && t_size > 1; k++) {
        int code = k == 0   ? TAGC_Reduce_scatter_block_c(x, y, INT64_MAX / 2 + 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                                          TAGC_TENSOR_NULL)
                   : k == 1 ? TAGC_Reduce_scatter_c(x, y, huge, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL)
                   : k == 2 ? TAGC_Allgather_c(x, INT64_MAX, MPI_FLOAT, y, INT64_MAX, MPI_FLOAT, MPI_COMM_WORLD,
                                               TAGC_TENSOR_NULL)
                            : TAGC_Allgatherv_c(x, INT64_MAX, MPI_FLOAT, y, huge, displs, MPI_FLOAT, MPI_COMM_WORLD,
                                                TAGC_TENSOR_NULL);
        CHECK(t_class(code) == MPI_ERR_COUNT, "call %d: %s", k, code ? t_error_text(code) : "no error");
    }
    t_step("TAGC_AVG of integers");
    int i[4] = {0}, j[4];
    CHECK(t_class(TAGC_Allreduce(i, j, 4, MPI_INT, TAGC_AVG, MPI_COMM_WORLD, TAGC_TENSOR_NULL)) == MPI_ERR_OP);
    t_step("no communicator");
    CHECK(t_class(TAGC_Allreduce(i, j, 4, MPI_INT, MPI_SUM, MPI_COMM_NULL, TAGC_TENSOR_NULL)) == MPI_ERR_COMM);
}

/* Ranks that mean different calls: an error on all, and the next call works. */
static void different_calls(void)
{
    if (t_size == 1)
        return;
    static float x[N], y[N];
    for (int what = 0; what < 6; what++) {
        const char *settings = what < 3 ? "algorithm=direct sparsity=0.8" : "";
        t_step("different calls on rank 0: %d, \"%s\"", what % 3, settings);
        TAGC_Tensor t = t_tensor(MPI_COMM_WORLD, "different", N, T_F32, settings);
        int code, odd = t_rank == 0;
        struct arguments a = good_arguments(T_REDUCE_SCATTER, x, y, t);
        for (int i = 0; i < what; i++) /* as before, and as so often */
            OK(call_with(T_REDUCE_SCATTER, &a));
        if (odd && what % 3 == 0)
            a.op = TAGC_AVG;
        if (odd && what % 3 == 1) {
            a.counts[0]++;
            a.counts[1]--;
        }
        if (odd && what % 3 == 2)
            code = TAGC_Allreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t);
        else
            code = call_with(T_REDUCE_SCATTER, &a);
        CHECK(code && t_class(code) == TAGC_ERR_MISMATCH, "%s", code ? t_error_text(code) : "no error");
        a = good_arguments(T_REDUCE_SCATTER, x, y, t);
        OK(call_with(T_REDUCE_SCATTER, &a));
        OK(TAGC_Tensor_free(&t));
    }
}

/* ---- Error handlers ---- */

static int handler_calls, handler_code;
static MPI_Comm handler_comm;

static void handler(MPI_Comm *comm, int *code, ...)
{
    handler_calls++;
    handler_code = *code;
    handler_comm = *comm;
}

static void handlers(void)
{
    t_step("error handlers");
    MPI_Errhandler h;
    MPI_Comm comm;
    MPI_Comm_create_errhandler(handler, &h);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, h);
    TAGC_Tensor t = t_tensor(comm, "handled", 10, T_F32, "");
    float x[11] = {0}, y[11];
    int code = TAGC_Allreduce(x, y, 11, MPI_FLOAT, MPI_SUM, comm, t);
    CHECK(code && handler_calls == 1 && handler_code == code && handler_comm == comm, "%d calls of the handler",
          handler_calls);
    char text[MPI_MAX_ERROR_STRING];
    int length = 0, class = 0;
    CHECK(!MPI_Error_string(code, text, &length) && length > 0);
    CHECK(!MPI_Error_class(code, &class));
    OK(TAGC_Allreduce(x, y, 10, MPI_FLOAT, MPI_SUM, comm, t));
    CHECK(handler_calls == 1);
    OK(TAGC_Tensor_free(&t));
    MPI_Errhandler_free(&h);
    MPI_Comm_free(&comm);
}

/* ---- Facts that ranks must share ---- */

/* case 11: another environment on rank 1 only. An error on all ranks, from the first call on; elsewhere nothing changes. */
static void environment_of_one_rank(void)
{
    if (t_size == 1)
        return;
    float x[10] = {1}, y[10];
    static const struct {
        const char *name, *value;
        int class; /* on rank 1 */
    } odd[] = {{"TAGC_ALGORITHM", "pack", TAGC_ERR_MISMATCH},
               {"TAGC_SPARSITY", "1.5", TAGC_ERR_SETTING},
               {"TAGC_NO_SUCH_THING", "1", TAGC_ERR_SETTING}};
    for (size_t k = 0; k < COUNT(odd); k++) {
        t_step("case 11: %s=%s on rank 1", odd[k].name, odd[k].value);
        if (t_rank == 1)
            setenv(odd[k].name, odd[k].value, 1);
        MPI_Comm comm, comm2;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm2);
        for (int again = 0; again < 3; again++) { /* every call names itself */
            int code = again == 1 ? TAGC_Reduce_scatter_block(x, y, 1, MPI_FLOAT, MPI_SUM, comm, TAGC_TENSOR_NULL)
                                  : TAGC_Allreduce(x, y, 10, MPI_FLOAT, MPI_SUM, comm, TAGC_TENSOR_NULL);
            const char *call = again == 1 ? "TAGC_Reduce_scatter_block: " : "TAGC_Allreduce: ";
            int class = t_class(code), want = t_rank == 1 ? odd[k].class : TAGC_ERR_MISMATCH;
            CHECK(code && class == want, "class %#x: %s", (unsigned)class, code ? t_error_text(code) : "no error");
            CHECK(strncmp(t_error_text(code), call, strlen(call)) == 0, "%s", t_error_text(code));
        }
        TAGC_Tensor t = TAGC_TENSOR_NULL;
        int code = TAGC_Tensor_create(comm2, "odd", 10, MPI_FLOAT, MPI_INFO_NULL, &t);
        CHECK(code && t == TAGC_TENSOR_NULL, "a tensor was made");
        unsetenv(odd[k].name);
        MPI_Comm_free(&comm);
        MPI_Comm_free(&comm2);
        OK(TAGC_Allreduce(x, y, 10, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL));
        CHECK(y[0] == (float)t_size);
    }
}

/* case 12 */
static void intercommunicator(void)
{
    if (t_size == 1)
        return;
    t_step("case 12");
    int upper = t_rank >= t_size / 2;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, upper, t_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : t_size / 2, 12, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    float x[64] = {0}, y[64];
    int counts[64], n = 0;
    for (int r = 0; r < 64; r++)
        counts[r] = 1;
    MPI_Comm_remote_size(inter, &n);
    TAGC_Tensor t = TAGC_TENSOR_NULL;
    CHECK(t_class(TAGC_Allreduce(x, y, 8, MPI_FLOAT, MPI_SUM, inter, t)) == MPI_ERR_COMM);
    CHECK(t_class(TAGC_Reduce_scatter_block(x, y, 1, MPI_FLOAT, MPI_SUM, inter, t)) == MPI_ERR_COMM);
    CHECK(t_class(TAGC_Reduce_scatter(x, y, counts, MPI_INT, MPI_MAX, inter, t)) == MPI_ERR_COMM);
    CHECK(t_class(TAGC_Tensor_create(inter, "inter", 8, MPI_FLOAT, MPI_INFO_NULL, &t)) == MPI_ERR_COMM);
    CHECK(t == TAGC_TENSOR_NULL);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* ---- case 9, case 43: every other type and operation is MPI's ---- */

/* 2x2 matrices, row by row: not commutative. */
static void matrix_product(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    double *a = in, *b = inout;
    for (int i = 0; i < *length; i++, a += 4, b += 4) {
        double c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                       a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

/* Every second float of four, extent four floats. */
static void gappy_sum(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    float *a = in, *b = inout;
    for (int i = 0; i < *length; i++, a += 4, b += 4) {
        b[0] += a[0];
        b[2] += a[2];
    }
}

static void others_are_mpi_s(void)
{
    MPI_Datatype matrix, gappy, vector;
    MPI_Op product, sum;
    MPI_Type_contiguous(4, MPI_DOUBLE, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Type_vector(2, 1, 2, MPI_FLOAT, &vector);
    MPI_Type_create_resized(vector, 0, 16, &gappy);
    MPI_Type_commit(&gappy);
    MPI_Op_create(matrix_product, 0, &product);
    MPI_Op_create(gappy_sum, 1, &sum);
    const struct {
        const char *name;
        MPI_Datatype type;
        MPI_Op op;
        size_t extent;
        int kind; /* of the input: 0 doubles, 1 floats, 2 integers, 3 pairs */
    } cases[] = {
        {"2x2 matrix product", matrix, product, 32, 0},
        {"resized vector", gappy, sum, 16, 1},
        {"float maximum", MPI_FLOAT, MPI_MAX, 4, 1},
        {"double product", MPI_DOUBLE, MPI_PROD, 8, 0},
        {"float minimum", MPI_FLOAT, MPI_MIN, 4, 1},
        {"int sum", MPI_INT, MPI_SUM, 4, 2},
        {"unsigned or", MPI_UNSIGNED, MPI_BOR, 4, 2},
        {"long and", MPI_LONG, MPI_LAND, 8, 2},
        {"char maximum", MPI_SIGNED_CHAR, MPI_MAX, 1, 2},
        {"smallest and where", MPI_FLOAT_INT, MPI_MINLOC, 8, 3},
        {"long double sum", MPI_LONG_DOUBLE, MPI_SUM, sizeof(long double), 4},
    };
    enum { PART = 5 };
    for (size_t k = 0; k < COUNT(cases); k++)
        for (int form = 0; form < T_FORMS; form++)
            for (int in_place = 0; in_place < 2; in_place++)
                for (int tensor = 0; tensor < 2; tensor++) {
                    t_step("case 9, case 43: %s, %s%s%s", cases[k].name, t_form_names[form],
                           in_place ? ", in place" : "", tensor ? ", tensor" : "");
                    int counts[64], n = t_size * PART;
                    for (int r = 0; r < t_size; r++)
                        counts[r] = PART;
                    size_t bytes = (size_t)n * cases[k].extent;
                    unsigned char *in = calloc(bytes, 1), *out[2] = {malloc(bytes), malloc(bytes)};
                    for (size_t i = 0; i < bytes; i++)
                        in[i] = (unsigned char)(t_uniform((uint64_t)t_rank, i) * 256);
                    for (size_t i = 0; cases[k].kind == 0 && i < bytes / 8; i++)
                        ((double *)in)[i] = 1 + (int)(t_uniform((uint64_t)t_rank, i) * 3);
                    for (size_t i = 0; cases[k].kind == 1 && i < bytes / 4; i++)
                        ((float *)in)[i] = (float)(int)(t_uniform((uint64_t)t_rank, i) * 100);
                    for (size_t i = 0; cases[k].kind == 3 && i < bytes / 8; i++) {
                        ((float *)in)[2 * i] = (float)(int)(t_uniform((uint64_t)t_rank, i) * 3);
                        ((int *)in)[2 * i + 1] = t_rank;
                    }
                    for (size_t i = 0; cases[k].kind == 4 && i < bytes / sizeof(long double); i++) {
                        memset(in + i * sizeof(long double), 0, sizeof(long double));
                        ((long double *)in)[i] = (long double)t_rank + 1;
                    }
                    TAGC_Tensor t = TAGC_TENSOR_NULL;
                    if (tensor)
                        OK(TAGC_Tensor_create(MPI_COMM_WORLD, "other", n, cases[k].type, MPI_INFO_NULL, &t));
                    for (int o = 0; o < 2; o++) {
                        const void *send = in_place ? MPI_IN_PLACE : in;
                        MPI_Datatype type = cases[k].type;
                        MPI_Op op = cases[k].op;
                        if (in_place)
                            memcpy(out[o], in, bytes);
                        else
                            memset(out[o], 0x77, bytes);
                        if (form == T_REDUCE_SCATTER)
                            OK(o ? TAGC_Reduce_scatter(send, out[o], counts, type, op, MPI_COMM_WORLD, t)
                                 : MPI_Reduce_scatter(send, out[o], counts, type, op, MPI_COMM_WORLD));
                        else if (form == T_REDUCE_SCATTER_BLOCK)
                            OK(o ? TAGC_Reduce_scatter_block(send, out[o], PART, type, op, MPI_COMM_WORLD, t)
                                 : MPI_Reduce_scatter_block(send, out[o], PART, type, op, MPI_COMM_WORLD));
                        else
                            OK(o ? TAGC_Allreduce(send, out[o], n, type, op, MPI_COMM_WORLD, t)
                                 : MPI_Allreduce(send, out[o], n, type, op, MPI_COMM_WORLD));
                    }
                    size_t result = form == T_ALLREDUCE ? bytes : PART * cases[k].extent;
                    for (size_t i = 0; cases[k].kind == 4 && i < result; i += sizeof(long double)) {
                        long double l[2]; /* its padding is nobody's result */
                        for (int o = 0; o < 2; o++) {
                            memcpy(&l[o], out[o] + i, sizeof l[o]);
                            memset(out[o] + i, 0, sizeof l[o]);
                        }
                        out[0][i] = l[0] != l[1];
                    }
                    CHECK(memcmp(out[0], out[1], result) == 0, "not MPI's result");
                    if (t != TAGC_TENSOR_NULL)
                        OK(TAGC_Tensor_free(&t));
                    free(in);
                    free(out[0]);
                    free(out[1]);
                }
    MPI_Op_free(&product);
    MPI_Op_free(&sum);
    MPI_Type_free(&matrix);
    MPI_Type_free(&vector);
    MPI_Type_free(&gappy);
}

int main(int argc, char **argv)
{
    t_start(&argc, &argv, 30);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(t_comm(T_DUP), MPI_ERRORS_RETURN);
    if (N % t_size) {
        if (t_rank == 0)
            printf("the vectors of this test do not divide among %d ranks\n", t_size);
        MPI_Finalize();
        return 77;
    }
    MPI_Type_contiguous(1, MPI_FLOAT, &one_float);
    MPI_Type_commit(&one_float);
    environment_of_one_rank();
    mistakes_with_tensors();
    mistakes_without_tensors();
    different_calls();
    handlers();
    intercommunicator();
    others_are_mpi_s();
    MPI_Type_free(&one_float);
    return t_end();
}
