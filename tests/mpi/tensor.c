/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Tensors: made on all ranks or none, told apart from freed ones, their state in memory and in files.
 *   tensor             all that one run can show
 *   tensor save        writes files for a run of another size
 *   tensor load RANKS  reads what RANKS ranks wrote
 *   tensor fatal       with MPI's own error handler: must end with a message */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/checkpoint.h"
#include "coll/image.h"
#include "coll/tensor.h"
#include "util/mem.h"

static int culprit; /* the rank that does something wrong */

static int has(int code, const char *text)
{
    return strstr(t_error_text(code), text) != NULL;
}

/* A code that must be of a class, and say something. */
static void expect(int code, int class, const char *text)
{
    CHECK(t_class(code) == class, "class %x, not %x: %s", t_class(code), class, t_error_text(code));
    CHECK(has(code, text), "\"%s\" is not in: %s", text, t_error_text(code));
}

/* As above of one rank; the others must hear of it. */
static void expect_of_one(int code, int class, const char *text)
{
    char rank[32];
    snprintf(rank, sizeof rank, "on rank %d: ", culprit);
    if (t_rank != culprit)
        expect(code, TAGC_ERR_MISMATCH, rank);
    else
        expect(code, class, text);
    CHECK(has(code, text), "\"%s\" is not in: %s", text, t_error_text(code));
}

static int make(int count, MPI_Datatype type, const char *name, const char *settings, TAGC_Tensor *t)
{
    MPI_Info info = t_info(settings);
    int code = TAGC_Tensor_create(MPI_COMM_WORLD, name, count, type, info, t);
    MPI_Info_free(&info);
    CHECK(!code == (*t != TAGC_TENSOR_NULL), "a handle beside an error");
    return code;
}

/* Puts values into this rank's residual; integers, so that sums are exact. */
static double put(int rank, size_t i)
{
    return (double)((int)(i * 7 + (size_t)rank * 13) % 101 - 50) * (i % 3 != 0);
}

static void fill(TAGC_Tensor tensor, int64_t calls)
{
    struct tagci_tensor *t = tagci_tensor_of(tensor);
    CHECK(t->residual != NULL);
    for (size_t i = 0; i < t->count; i++)
        if (tagci_work_is_double(t->type))
            ((double *)t->residual)[i] = put(t_rank, i);
        else
            ((float *)t->residual)[i] = (float)put(t_rank, i);
    t->residual_is_zero = 0;
    t->calls = calls;
}

static double residual(const struct tagci_tensor *t, size_t i)
{
    if (!t->residual || t->residual_is_zero)
        return 0;
    return tagci_work_is_double(t->type) ? ((double *)t->residual)[i] : ((float *)t->residual)[i];
}

/* The residual is what fill put there. */
static void expect_filled(TAGC_Tensor tensor, int64_t calls)
{
    const struct tagci_tensor *t = tagci_tensor_of(tensor);
    size_t wrong = 0;
    for (size_t i = 0; i < t->count; i++)
        wrong += residual(t, i) != put(t_rank, i);
    CHECK(wrong == 0, "%zu of %zu values", wrong, t->count);
    CHECK(t->calls == calls, "%lld", (long long)t->calls);
}

/* ---- Making ---- */

static void test_types(void)
{
    const struct {
        MPI_Datatype type;
        size_t width; /* of a residual's value; 0: none */
    } types[] = {{MPI_FLOAT, 4}, {MPI_DOUBLE, 8}, {TAGC_FLOAT16, 4},   {TAGC_BFLOAT16, 4},
                 {MPI_REAL, 4},  {MPI_REAL4, 4},  {MPI_REAL8, 8},      {MPI_DOUBLE_PRECISION, 8},
                 {MPI_INT, 0},   {MPI_CHAR, 0},   {MPI_LONG_DOUBLE, 0}};
    for (size_t i = 0; i < COUNT(types); i++) {
        t_step("type %zu", i);
        if (types[i].type == MPI_DATATYPE_NULL) /* this MPI has no Fortran */
            continue;
        TAGC_Tensor t;
        OK(make(1000, types[i].type, "w", "sparsity=0.5", &t));
        MPI_Count bytes = -1;
        OK(TAGC_Tensor_pack_size(t, &bytes));
        CHECK((size_t)bytes == TAGCI_IMAGE_HEAD + 1000 * types[i].width, "%lld", (long long)bytes);
        double norm = -1;
        OK(TAGC_Tensor_get_norm(t, &norm));
        CHECK(norm == 0);
        OK(TAGC_Tensor_free(&t));
    }
    t_step("a derived type, no elements, no name, many elements");
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_FLOAT, &pair);
    MPI_Type_commit(&pair);
    TAGC_Tensor t;
    OK(make(10, pair, "pairs", "sparsity=0.5", &t));
    OK(TAGC_Tensor_free(&t));
    MPI_Type_free(&pair);
    OK(make(0, MPI_FLOAT, "", "sparsity=0.5", &t));
    OK(TAGC_Tensor_free(&t));
    OK(TAGC_Tensor_create(MPI_COMM_WORLD, NULL, 10, MPI_FLOAT, MPI_INFO_NULL, &t));
    OK(TAGC_Tensor_free(&t));
    OK(TAGC_Tensor_create_c(MPI_COMM_WORLD, NULL, (MPI_Count)5 << 32, MPI_FLOAT, MPI_INFO_NULL, &t));
    OK(TAGC_Tensor_free(&t));
}

static void test_errors_of_one(void)
{
    TAGC_Tensor t;
    for (culprit = 0; culprit<t_size; culprit += t_size> 1 ? t_size - 1 : 1) {
        int guilty = t_rank == culprit;
        t_step("errors of rank %d", culprit);
        expect_of_one(make(guilty ? -3 : 10, MPI_FLOAT, "w", "", &t), MPI_ERR_COUNT, "count is -3");
        expect_of_one(make(10, guilty ? MPI_DATATYPE_NULL : MPI_FLOAT, "w", "", &t), MPI_ERR_TYPE, "datatype is");
        expect_of_one(TAGC_Tensor_create(MPI_COMM_WORLD, "w", 10, MPI_FLOAT, MPI_INFO_NULL, guilty ? NULL : &t),
                      MPI_ERR_ARG, "tensor is NULL");
        expect_of_one(make(10, MPI_FLOAT, "w", guilty ? "sparsity=1.5" : "", &t), TAGC_ERR_SETTING,
                      "tagc_sparsity=1.5 (info): sparsity must be 0 .. 0.9999");
        expect_of_one(make(10, MPI_FLOAT, "w", guilty ? "sparseness=1" : "", &t), TAGC_ERR_SETTING, "tagc_sparseness");
        expect_of_one(make(10, MPI_FLOAT, "w", guilty ? "value=int4 algorithm=pack" : "", &t), TAGC_ERR_SETTING,
                      "algorithm=pack");
        expect_of_one(make(10, MPI_FLOAT, "w", guilty ? "backend=hip" : "", &t), TAGC_ERR_BACKEND, "hip");
#ifdef MPICH_VERSION /* which knows a handle that is none */
        MPI_Info info = guilty ? (MPI_Info)0x1234567 : MPI_INFO_NULL;
        float x[10] = {0}, y[10];
        TAGC_Request q;
        expect_of_one(TAGC_Tensor_create(MPI_COMM_WORLD, "w", 10, MPI_FLOAT, info, &t), MPI_ERR_INFO, "info: ");
        OK(make(10, MPI_FLOAT, "w", "", &t));
        expect_of_one(TAGC_Allreduce_init(x, y, 10, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, info, &q), MPI_ERR_INFO,
                      "info: ");
        OK(TAGC_Tensor_free(&t));
#endif
    }
    if (t_size == 1)
        return;
    culprit = t_size - 1;
    int other = t_rank == culprit;
    t_step("ranks differ");
    const struct {
        int count;
        MPI_Datatype type;
        const char *name, *settings, *text;
    } differ[] = {{11, MPI_FLOAT, "w", "", "count ("},
                  {10, MPI_DOUBLE, "w", "", "datatype"},
                  {10, TAGC_BFLOAT16, "w", "", "datatype"},
                  {10, MPI_INT, "w", "", "datatype"},
                  {10, MPI_FLOAT, "v", "", "name"},
                  {10, MPI_FLOAT, "w", "sparsity=0.5", "sparsity ("},
                  {10, MPI_FLOAT, "w", "warmup=3", "warmup ("}};
    for (size_t i = 0; i < COUNT(differ); i++) {
        int code = other ? make(differ[i].count, differ[i].type, differ[i].name, differ[i].settings, &t)
                         : make(10, MPI_FLOAT, "w", "", &t);
        expect(code, TAGC_ERR_MISMATCH, differ[i].text);
        CHECK(has(code, "differs between ranks") && has(code, "TAGC_Tensor_create"), "%s", t_error_text(code));
    }
    t_step("differences that are none");
    OK(make(10, other && MPI_REAL4 != MPI_DATATYPE_NULL ? MPI_REAL4 : MPI_FLOAT, "w", other ? "trace=-" : "", &t));
    OK(TAGC_Tensor_free(&t));
}

static void test_communicators(void)
{
    TAGC_Tensor t;
    t_step("no communicator");
    expect(TAGC_Tensor_create(MPI_COMM_NULL, "w", 10, MPI_FLOAT, MPI_INFO_NULL, &t), MPI_ERR_COMM, "MPI_COMM_NULL");
    if (t_size > 1) {
        t_step("inter-communicator");
        MPI_Comm half, inter;
        MPI_Comm_split(MPI_COMM_WORLD, t_rank % 2, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - t_rank % 2, 0, &inter);
        MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
        expect(TAGC_Tensor_create(inter, "w", 10, MPI_FLOAT, MPI_INFO_NULL, &t), MPI_ERR_COMM, "inter");
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    t_step("communicator freed before the tensor");
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    OK(TAGC_Tensor_create(dup, "w", 10, MPI_FLOAT, MPI_INFO_NULL, &t));
    MPI_Comm_free(&dup);
    expect(TAGC_Tensor_pack(t, NULL, 0), MPI_ERR_BUFFER, "buf is NULL");
    double norm;
    OK(TAGC_Tensor_get_norm(t, &norm));
    OK(TAGC_Tensor_free(&t));
}

static void test_info(void)
{
    t_step("settings in force");
    TAGC_Tensor t;
    MPI_Info used;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int flag = 0, n = 0;
    OK(make(10, MPI_FLOAT, "h.0.attn.c_attn.weight", "sparsity=0:0,50:0.8 warmup=3", &t));
    OK(TAGC_Tensor_get_info(t, &used));
    const char *const expected[][2] = {{"tagc_sparsity", "0:0,50:0.8"}, {"tagc_warmup", "3"},
                                       {"tagc_algorithm", "dense"},     {"tagc_min_count", "16384"},
                                       {"tagc_layers", "transformer"},  {"tagc_trace", "unset"}};
    for (size_t i = 0; i < COUNT(expected); i++) {
        MPI_Info_get(used, expected[i][0], MPI_MAX_INFO_VAL - 1, value, &flag);
        CHECK(flag && strcmp(value, expected[i][1]) == 0, "%s is %s", expected[i][0], flag ? value : "not there");
    }
    MPI_Info_get_nkeys(used, &n);
    CHECK(n == TAGCI_SETTINGS, "%d keys", n);
    t_step("an info from get_info makes the same tensor");
    TAGC_Tensor again;
    OK(TAGC_Tensor_create(MPI_COMM_WORLD, "h.0.attn.c_attn.weight", 10, MPI_FLOAT, used, &again));
    CHECK(tagci_settings_hash(&tagci_tensor_of(t)->settings) == tagci_settings_hash(&tagci_tensor_of(again)->settings));
    MPI_Info_free(&used);
    OK(TAGC_Tensor_free(&again));
    expect(TAGC_Tensor_get_info(t, NULL), MPI_ERR_ARG, "info_used is NULL");
    expect(TAGC_Tensor_get_norm(t, NULL), MPI_ERR_ARG, "l2 is NULL");
    OK(TAGC_Tensor_free(&t));
    t_step("long names and rules");
    char name[3000], rules[1200] = "layers=";
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    for (int i = 0; strlen(rules) < 240; i++)
        snprintf(rules + strlen(rules), sizeof rules - strlen(rules), "*block.%d.*:value=int8;", i);
    rules[strlen(rules) - 1] = 0;
    if (strlen(rules) < MPI_MAX_INFO_VAL) {
        OK(make(10, MPI_FLOAT, name, rules, &t));
        OK(TAGC_Tensor_get_info(t, &used));
        MPI_Info_free(&used);
        OK(TAGC_Tensor_free(&t));
    }
    expect(make(-1, MPI_FLOAT, name, "", &t), MPI_ERR_COUNT, "count is -1");
}

/* ---- Freed handles ---- */

static void test_stale(void)
{
    t_step("freed handles");
    TAGC_Tensor t, copy;
    OK(make(100, MPI_FLOAT, "w", "sparsity=0.5", &t));
    copy = t;
    OK(TAGC_Tensor_free(&t));
    CHECK(t == TAGC_TENSOR_NULL);
    for (int round = 0; round < 2; round++) {
        const TAGC_Tensor bad[] = {copy, TAGC_TENSOR_NULL, (TAGC_Tensor)(uintptr_t)1, (TAGC_Tensor)(uintptr_t)-1};
        for (size_t i = 0; i < COUNT(bad); i++) {
            MPI_Count bytes;
            MPI_Info info;
            double x;
            char buf[100];
            TAGC_Tensor again = bad[i];
            const char *what = bad[i] == TAGC_TENSOR_NULL ? "TAGC_TENSOR_NULL" : "freed, or never made";
            expect(TAGC_Tensor_free(&again), TAGC_ERR_TENSOR, what);
            expect(TAGC_Tensor_reset(bad[i]), TAGC_ERR_TENSOR, what);
            expect(TAGC_Tensor_get_info(bad[i], &info), TAGC_ERR_TENSOR, what);
            expect(TAGC_Tensor_get_norm(bad[i], &x), TAGC_ERR_TENSOR, what);
            expect(TAGC_Tensor_pack_size(bad[i], &bytes), TAGC_ERR_TENSOR, what);
            expect(TAGC_Tensor_pack(bad[i], buf, 100), TAGC_ERR_TENSOR, what);
            expect(TAGC_Tensor_unpack(bad[i], buf, 100), TAGC_ERR_TENSOR, what);
            expect(TAGC_Tensor_save(bad[i], "x"), TAGC_ERR_TENSOR, what);
            expect(TAGC_Tensor_load(bad[i], "x"), TAGC_ERR_TENSOR, what);
            if (bad[i] != TAGC_TENSOR_NULL)
                expect(TAGC_Get_stat(bad[i], TAGC_STAT_CALLS, &x), TAGC_ERR_TENSOR, what);
        }
        if (round == 0) /* its place has a new tenant: the copy is stale all the same */
            OK(make(100, MPI_FLOAT, "w", "sparsity=0.5", &t));
    }
    OK(TAGC_Tensor_free(&t));
    expect(TAGC_Tensor_free(NULL), MPI_ERR_ARG, "tensor is NULL");
}

static void test_many(void)
{
    t_step("many tensors");
    enum { N = 70 }; /* more than the table of handles has at first */
    TAGC_Tensor t[N];
    size_t before = 0;
    for (int round = 0; round < (t_size > 2 ? 2 : 3); round++) {
        for (int i = 0; i < N; i++)
            OK(make(100, MPI_FLOAT, "w", "sparsity=0.5", &t[i]));
        double held = t_stat(TAGC_TENSOR_NULL, TAGC_STAT_WORKSPACE_BYTES);
        double one = t_stat(t[0], TAGC_STAT_WORKSPACE_BYTES);
        CHECK(one >= 800 && held >= N * one, "%g %g", one, held);
        for (int i = 0; i < N; i++)
            OK(TAGC_Tensor_free(&t[(i * 37) % N]));
        if (round == 0)
            before = tagci_mem_held();
        CHECK(tagci_mem_held() == before, "%zu, at first %zu", tagci_mem_held(), before);
    }
    double x;
    expect(TAGC_Get_stat(TAGC_TENSOR_NULL, 0, &x), MPI_ERR_ARG, "no statistic 0");
    expect(TAGC_Get_stat(TAGC_TENSOR_NULL, 9999, &x), MPI_ERR_ARG, "no statistic 9999");
    expect(TAGC_Get_stat(TAGC_TENSOR_NULL, TAGC_STAT_CALLS, NULL), MPI_ERR_ARG, "value is NULL");
}

static void test_no_memory(void)
{
    /* Every allocation of create fails in turn on one rank: an error there, news of it elsewhere, nothing left behind. */
    TAGC_Tensor t, other;
    OK(make(10, MPI_FLOAT, "w", "sparsity=0.5", &other)); /* the backend's scratch memory, which it can do without */
    for (culprit = 0; culprit<t_size; culprit += t_size> 1 ? t_size - 1 : 1)
        for (uint64_t k = 1;; k++) {
            t_step("allocation %d of create fails on rank %d", (int)k, culprit);
            size_t before = tagci_mem_held();
            if (t_rank == culprit)
                tagci_mem_fail_at(k);
            int code = make(1000, MPI_FLOAT, "w", "sparsity=0.5", &t);
            tagci_mem_fail_at(0);
            if (!code) {
                OK(TAGC_Tensor_free(&t));
                CHECK(k > 3, "create takes %d blocks only?", (int)k);
                break;
            }
            expect_of_one(code, MPI_ERR_NO_MEM, "no memory");
            CHECK(tagci_mem_held() == before, "%zu, before %zu", tagci_mem_held(), before);
        }
    OK(TAGC_Tensor_free(&other));
}

/* Tensors made, asked and freed while operations of others, and their own, are in flight on the communicator. */
static void test_in_flight(void)
{
    enum { N = 20000 };
    static float x[N], y[N];
    static const char *const ways[] = {"pack", "sketch", "direct", "dense"};
    for (size_t i = 0; i < N; i++)
        x[i] = (float)put(t_rank, i);
    for (int round = 0; round < 8; round++) {
        t_step("in flight, round %d", round);
        size_t before = tagci_mem_held();
        TAGC_Tensor t, u;
        TAGC_Request request;
        char settings[64], image[64], name[16];
        snprintf(settings, sizeof settings, "sparsity=0.5 algorithm=%s", ways[round % 4]);
        snprintf(name, sizeof name, "t%d", round);
        OK(make(N, MPI_FLOAT, name, settings, &t));
        OK(TAGC_Iallreduce(x, y, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, t, &request));
        if (tagci_tensor_of(t)->in_flight) { /* not when the others were here before */
            expect(TAGC_Tensor_reset(t), TAGC_ERR_BUSY, "in flight");
            expect(TAGC_Tensor_pack(t, image, 64), TAGC_ERR_BUSY, "in flight");
            expect(TAGC_Tensor_unpack(t, image, 64), TAGC_ERR_BUSY, "in flight");
        }
        OK(make(10, MPI_FLOAT, "u", "", &u)); /* collective, in the midst of it */
        TAGC_Tensor copy = t;
        OK(TAGC_Tensor_free(&t));
        expect(TAGC_Tensor_reset(copy), TAGC_ERR_TENSOR, "freed");
        OK(TAGC_Wait(&request));
        OK(TAGC_Tensor_free(&u));
        CHECK(round < 1 || tagci_mem_held() == before, "%zu, before %zu", tagci_mem_held(), before);
    }
}

/* ---- State ---- */

static void test_reset(void)
{
    t_step("norm and reset");
    TAGC_Tensor t;
    OK(make(1000, MPI_DOUBLE, "w", "threshold=1", &t));
    fill(t, 5);
    double norm = 0, sum = 0;
    for (size_t i = 0; i < 1000; i++)
        sum += put(t_rank, i) * put(t_rank, i);
    OK(TAGC_Tensor_get_norm(t, &norm));
    CHECK(fabs(norm - sqrt(sum)) <= 1e-12 * norm, "%g, not %g", norm, sqrt(sum));
    double *r = tagci_tensor_of(t)->residual;
    const double scale[] = {1e-200, 1e200};
    for (size_t k = 0; k < COUNT(scale); k++) { /* squares that double does not hold */
        for (size_t i = 0; i < 1000; i++)
            r[i] = put(t_rank, i) * scale[k];
        OK(TAGC_Tensor_get_norm(t, &norm));
        CHECK(fabs(norm / scale[k] - sqrt(sum)) <= 1e-9 * sqrt(sum), "%g", norm);
    }
    OK(TAGC_Tensor_reset(t));
    OK(TAGC_Tensor_get_norm(t, &norm));
    CHECK(norm == 0 && tagci_tensor_of(t)->calls == 0);
    OK(TAGC_Tensor_free(&t));
}

static void test_pack(void)
{
    const int types[] = {T_F32, T_F64, T_F16, T_BF16};
    for (size_t k = 0; k < COUNT(types); k++) {
        t_step("pack and unpack, %s", t_type_names[types[k]]);
        TAGC_Tensor t, u;
        MPI_Count bytes, whole;
        OK(make(1001, t_datatype(types[k]), "w", "sparsity=0.5", &t));
        OK(make(1001, t_datatype(types[k]), "u", "algorithm=dense", &u)); /* needs no residual of its own */
        OK(TAGC_Tensor_pack_size(t, &whole));
        OK(TAGC_Tensor_pack_size(u, &bytes));
        CHECK(bytes == TAGCI_IMAGE_HEAD);
        unsigned char *image = malloc((size_t)whole), *other = malloc((size_t)whole);
        fill(t, 7);
        OK(TAGC_Tensor_pack(t, image, whole));
        CHECK(memcmp(image, "TAGCIMG\n", 8) == 0);
        OK(TAGC_Tensor_unpack(u, image, whole));
        expect_filled(u, 7);
        OK(TAGC_Tensor_pack(u, other, whole));
        CHECK(memcmp(image, other, (size_t)whole) == 0);
        OK(TAGC_Tensor_reset(t));
        OK(TAGC_Tensor_pack(t, other, whole)); /* a zero residual has the same size */
        OK(TAGC_Tensor_unpack(u, other, whole));
        double norm;
        OK(TAGC_Tensor_get_norm(u, &norm));
        CHECK(norm == 0 && tagci_tensor_of(u)->calls == 0);
        OK(TAGC_Tensor_unpack(u, image, whole));

        t_step("unpack of what is no image, %s", t_type_names[types[k]]);
        expect(TAGC_Tensor_pack(t, image, whole - 1), MPI_ERR_ARG, "bytes is");
        expect(TAGC_Tensor_pack(t, NULL, whole), MPI_ERR_BUFFER, "buf is NULL");
        expect(TAGC_Tensor_unpack(u, NULL, whole), MPI_ERR_BUFFER, "buf is NULL");
        expect(TAGC_Tensor_unpack(u, image, -1), MPI_ERR_ARG, "bytes is -1");
        expect(TAGC_Tensor_unpack(u, image, 63), TAGC_ERR_FILE, "shorter");
        expect(TAGC_Tensor_unpack(u, image, whole - 1), TAGC_ERR_FILE, "shorter");
        for (size_t i = 0; i < (size_t)whole; i += i < 64 ? 1 : 97) {
            image[i] ^= 0x40;
            int code = TAGC_Tensor_unpack(u, image, whole);
            CHECK(t_class(code) == TAGC_ERR_FILE, "byte %zu: %s", i, t_error_text(code));
            image[i] ^= 0x40;
        }
        struct tagci_tensor *inside = tagci_tensor_of(t);
        fill(t, 9);
        if (tagci_work_is_double(inside->type))
            ((double *)inside->residual)[1000] = (double)NAN;
        else
            ((float *)inside->residual)[1000] = -INFINITY;
        OK(TAGC_Tensor_pack(t, other, whole));
        expect(TAGC_Tensor_unpack(u, other, whole), TAGC_ERR_FILE, "not finite");
        TAGC_Tensor shorter, wide;
        OK(make(1000, t_datatype(types[k]), "s", "sparsity=0.5", &shorter));
        OK(make(1001, types[k] == T_F32 ? TAGC_FLOAT16 : MPI_FLOAT, "s", "sparsity=0.5", &wide));
        expect(TAGC_Tensor_unpack(shorter, image, whole), TAGC_ERR_TENSOR, "another tensor");
        expect(TAGC_Tensor_unpack(wide, image, whole), TAGC_ERR_TENSOR, "of another type");
        OK(TAGC_Tensor_free(&shorter));
        OK(TAGC_Tensor_free(&wide));
        expect_filled(u, 7); /* after all that */
        OK(TAGC_Tensor_free(&t));
        OK(TAGC_Tensor_free(&u));
        free(image);
        free(other);
    }
    expect(TAGC_Tensor_pack_size(TAGC_TENSOR_NULL, NULL), TAGC_ERR_TENSOR, "TAGC_TENSOR_NULL");
}

/* ---- Files ---- */

static const char *path_of(const char *name)
{
    static char path[64][600];
    static int next;
    const char *dir = getenv("TAGC_TEST_DIR");
    next = (next + 1) % 64;
    snprintf(path[next], sizeof path[next], "%s/%s", dir ? dir : ".", name);
    return path[next];
}

static size_t file_size(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return 0;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    fclose(f);
    return (size_t)n;
}

static unsigned char *file_read(const char *path, size_t *n)
{
    *n = file_size(path);
    unsigned char *data = malloc(*n + 1);
    FILE *f = fopen(path, "rb");
    CHECK(f && fread(data, 1, *n, f) == *n, "%s", path);
    if (f)
        fclose(f);
    return data;
}

/* By rank 0; the others wait. */
static void file_write(const char *path, const unsigned char *data, size_t n)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (t_rank == 0) {
        FILE *f = fopen(path, "wb");
        CHECK(f && fwrite(data, 1, n, f) == n, "%s", path);
        if (f)
            fclose(f);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A load that must fail on every rank and leave the tensor as it was. */
static void expect_no_load(TAGC_Tensor t, const char *path, const char *text)
{
    expect(TAGC_Tensor_load(t, path), TAGC_ERR_FILE, text);
    expect_filled(t, 3);
}

static void test_bad_files(TAGC_Tensor t, const char *good)
{
    size_t n;
    const char *bad = path_of("tensor.bad");
    MPI_Barrier(MPI_COMM_WORLD);
    unsigned char *data = file_read(good, &n);
    t_step("bad files");
    expect_no_load(t, path_of("tensor.not.there"), "cannot open");
    file_write(bad, data, 0);
    expect_no_load(t, bad, "shorter than any checkpoint");
    const size_t cuts[] = {63, 64, 70, 64 + 16 * (size_t)t_size, n / 2, n - 1};
    for (size_t i = 0; i < COUNT(cuts); i++) {
        t_step("file cut at %zu", cuts[i]);
        file_write(bad, data, cuts[i]);
        expect_no_load(t, bad, "cannot read");
    }
    size_t rare = t_size > 2 ? 4 : 1; /* ranks beyond the cores take long to meet */
    for (size_t i = 0; i < n; i += i < 200 ? 5 * rare : n / 20 * rare) {
        t_step("byte %zu of the file is wrong", i);
        size_t image = 64 + (16 * (size_t)t_size + 63) / 64 * 64;
        if (i >= 64 + 16 * (size_t)t_size && i < image)
            continue; /* between the table and the images */
        if (i >= image && (i - image) % ((64 + 4 * 10007 + 63) / 64 * 64) >= 64 + 4 * 10007)
            continue; /* behind an image */
        data[i] ^= 1;
        file_write(bad, data, n);
        expect_no_load(t, bad, "");
        data[i] ^= 1;
    }
    t_step("files of others");
    memset(data, 'x', n);
    file_write(bad, data, n);
    expect_no_load(t, bad, "it is no checkpoint");
    TAGC_Tensor other;
    OK(make(10008, MPI_FLOAT, "other", "sparsity=0.5", &other));
    OK(TAGC_Tensor_save(other, bad));
    expect_no_load(t, bad, "another count or type");
    OK(TAGC_Tensor_free(&other));
    OK(make(10007, TAGC_BFLOAT16, "other", "sparsity=0.5", &other));
    OK(TAGC_Tensor_save(other, bad));
    expect_no_load(t, bad, "another count or type");
    OK(TAGC_Tensor_free(&other));
    t_step("a residual that is not finite, on one rank");
    OK(make(10007, MPI_FLOAT, "other", "sparsity=0.5", &other));
    fill(other, 3);
    if (t_rank == t_size - 1)
        ((float *)tagci_tensor_of(other)->residual)[5000] = (float)NAN;
    OK(TAGC_Tensor_save(other, bad));
    expect_no_load(t, bad, "not finite");
    OK(TAGC_Tensor_free(&other));
    t_step("paths");
    culprit = t_size - 1;
    expect_of_one(TAGC_Tensor_save(t, t_rank == culprit ? NULL : bad), MPI_ERR_ARG, "path is NULL");
    expect_of_one(TAGC_Tensor_load(t, t_rank == culprit ? "" : bad), MPI_ERR_ARG, "path is empty");
    if (t_size > 1)
        expect(TAGC_Tensor_save(t, path_of(t_rank ? "tensor.1" : "tensor.0")), TAGC_ERR_MISMATCH, "path differs");
    expect(TAGC_Tensor_save(t, path_of("no/such/folder/x")), TAGC_ERR_FILE, "cannot create");
    expect_filled(t, 3);
    free(data);
}

static void test_files(void)
{
    TAGC_Tensor t, u;
    const char *path = path_of("tensor.file"), *again = path_of("tensor.again");
    t_step("save and load");
    OK(make(10007, MPI_FLOAT, "w", "sparsity=0.5", &t));
    OK(make(10007, MPI_FLOAT, "u", "", &u));
    fill(t, 3);
    OK(TAGC_Tensor_save(t, path));
    OK(TAGC_Tensor_load(u, path));
    expect_filled(u, 3);
    expect_filled(t, 3);
    t_step("save and load in small pieces, over a longer file");
    size_t usual = tagci_checkpoint_piece, n, m;
    tagci_checkpoint_piece = 4096;
    MPI_Barrier(MPI_COMM_WORLD);
    unsigned char *a = file_read(path, &n);
    unsigned char *longer = calloc(n + 5000, 1);
    file_write(again, longer, n + 5000);
    OK(TAGC_Tensor_save(t, again));
    MPI_Barrier(MPI_COMM_WORLD);
    unsigned char *b = file_read(again, &m);
    CHECK(n == m && memcmp(a, b, n) == 0);
    free(a);
    free(b);
    free(longer);
    OK(TAGC_Tensor_reset(u));
    OK(TAGC_Tensor_load(u, again));
    expect_filled(u, 3);
    test_bad_files(u, again);
    tagci_checkpoint_piece = usual;

    t_step("no memory for load on one rank");
    culprit = t_size - 1;
    for (uint64_t k = 1;; k++) {
        size_t before = tagci_mem_held();
        if (t_rank == culprit)
            tagci_mem_fail_at(k);
        int code = TAGC_Tensor_load(u, path);
        tagci_mem_fail_at(0);
        CHECK(tagci_mem_held() == before);
        expect_filled(u, 3);
        if (!code)
            break;
        expect(code, t_rank == culprit ? MPI_ERR_NO_MEM : TAGC_ERR_FILE, "no memory");
    }
    OK(TAGC_Tensor_free(&t));
    OK(TAGC_Tensor_free(&u));
}

/* ---- From one run to another ---- */

static const struct saved {
    const char *name, *settings;
    int type; /* T_..., or -1: MPI_INT */
    int count;
} saved[] = {{"a", "sparsity=0.9", T_F32, 100003},
             {"b", "sparsity=0.9", T_F64, 5001},
             {"c", "value=int4", T_BF16, 70001},
             {"d", "threshold=1", T_F16, 1},
             {"e", "sparsity=0.9", T_F32, 0},
             {"f", "algorithm=dense", T_F32, 33},
             {"g", "", -1, 12}};

static MPI_Datatype saved_type(const struct saved *s)
{
    return s->type < 0 ? MPI_INT : t_datatype(s->type);
}

static void save_all(void)
{
    for (size_t k = 0; k < COUNT(saved); k++) {
        const struct saved *s = &saved[k];
        t_step("save %s", s->name);
        TAGC_Tensor t;
        OK(make(s->count, saved_type(s), s->name, s->settings, &t));
        if (tagci_tensor_of(t)->residual)
            fill(t, 11 + (int)k);
        else
            tagci_tensor_of(t)->calls = 11 + (int)k;
        OK(TAGC_Tensor_save(t, path_of(s->name)));
        OK(TAGC_Tensor_free(&t));
    }
}

static int saved_here(void)
{
    int here = t_rank == 0 && access(path_of(saved[0].name), R_OK) == 0;
    MPI_Bcast(&here, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return here;
}

static void load_all(int ranks)
{
    for (size_t k = 0; k < COUNT(saved); k++)
        for (int exact = 0; exact < 2; exact++) {
            const struct saved *s = &saved[k];
            t_step("load %s", s->name);
            TAGC_Tensor tensor;
            OK(make(s->count, saved_type(s), s->name, exact ? "" : s->settings, &tensor));
            OK(TAGC_Tensor_load(tensor, path_of(s->name)));
            const struct tagci_tensor *t = tagci_tensor_of(tensor);
            CHECK(t->calls == 11 + (int)k, "%lld", (long long)t->calls);
            int held = s->type >= 0 && strcmp(s->settings, "algorithm=dense") != 0;
            size_t wrong = 0;
            double sum = 0, whole = 0, all = 0;
            for (size_t i = 0; i < t->count; i++) {
                double should = 0;
                for (int r = t_rank; r < ranks && held; r += t_size)
                    should += put(r, i);
                wrong += residual(t, i) != should;
                sum += residual(t, i);
                for (int r = 0; r < ranks && held; r++)
                    whole += put(r, i);
            }
            CHECK(wrong == 0, "%zu of %zu", wrong, t->count);
            MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            CHECK(all == whole, "%g, not %g", all, whole);
            OK(TAGC_Tensor_free(&tensor));
        }
}

static void fatal(void)
{
    TAGC_Tensor t;
    MPI_Info info = t_info("sparsity=2");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    TAGC_Tensor_create(MPI_COMM_WORLD, "my layer", 10, MPI_FLOAT, info, &t);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    t_start(&argc, &argv, 60);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (argc > 1 && strcmp(argv[1], "save") == 0) {
        save_all();
    } else if (argc > 2 && strcmp(argv[1], "load") == 0) {
        if (!saved_here()) {
            if (t_rank == 0)
                puts("nothing was saved");
            MPI_Finalize();
            return 77;
        }
        load_all(atoi(argv[2]));
    } else if (argc > 1 && strcmp(argv[1], "fatal") == 0) {
        fatal();
    } else {
        test_types();
        test_errors_of_one();
        test_communicators();
        test_info();
        test_stale();
        test_many();
        test_no_memory();
        test_in_flight();
        test_reset();
        test_pack();
        test_files();
    }
    return t_end();
}
