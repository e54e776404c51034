/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "common.h"

#include "memory.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/nodes.h"

/* ---- Run and verdict ---- */

int t_rank, t_size;
static const char *program;
static char step[512];
static int step_seconds;
static long checks_failed, failed_at_agreement;
static int shown;

static void out_of_time(int signal)
{
    (void)signal;
    static const char before[] = "no end of the step: ";
    ssize_t written = write(2, before, sizeof before - 1) + write(2, step, strlen(step)) + write(2, "\n", 1);
    _exit(written ? 3 : 4);
}

static void set_alarm(void)
{
    const char *scale = getenv("TAGC_TEST_TIMESCALE");
    alarm((unsigned)(step_seconds * (scale && atoi(scale) > 0 ? atoi(scale) : 1)));
}

void t_start(int *argc, char ***argv, int seconds)
{
    int up;
    MPI_Initialized(&up);
    if (!up)
        MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t_size);
    program = strrchr((*argv)[0], '/') ? strrchr((*argv)[0], '/') + 1 : (*argv)[0];
    step_seconds = seconds;
    tagci_nodes_pretend = getenv("TAGC_TEST_NODES") ? atoi(getenv("TAGC_TEST_NODES")) : 0;
    signal(SIGALRM, out_of_time);
    t_memory_start();
    t_step("start");
}

void t_step(const char *format, ...)
{
    int n = snprintf(step, sizeof step, "%s, rank %d of %d: ", program, t_rank, t_size);
    va_list list;
    va_start(list, format);
    vsnprintf(step + n, sizeof step - (size_t)n, format, list);
    va_end(list);
    set_alarm();
}

void t_fail(const char *file, int line, const char *what, const char *format, ...)
{
    checks_failed++;
    if (shown++ >= 8) /* the first ones say the most */
        return;
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    fprintf(stderr, "FAILED %s\n    %s:%d: %s:%s\n", step, name, line, what, text);
}

int t_failed_here(void)
{
    return checks_failed > 0;
}

const char *t_error_text(int code)
{
    static char text[TAGC_MAX_ERROR_STRING];
    int length;
    if (TAGC_Error_string(code, text, &length))
        snprintf(text, sizeof text, "code %d", code);
    return text;
}

int t_class(int code)
{
    int class = -1;
    if (TAGC_Error_class(code, &class))
        return -1;
    return class;
}

int t_agree(void)
{
    long mine = checks_failed - failed_at_agreement, all = 0;
    failed_at_agreement = checks_failed;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all == 0;
}

/* ---- Communicators ---- */

const char *const t_comm_names[T_COMMS] = {"world", "dup", "reversed", "odd or even", "self"};
static MPI_Comm comms[T_COMMS];

MPI_Comm t_comm(int which)
{
    static int made;
    if (!made) {
        made = 1;
        comms[T_WORLD] = MPI_COMM_WORLD;
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[T_DUP]);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -t_rank, &comms[T_REVERSED]);
        MPI_Comm_split(MPI_COMM_WORLD, t_rank % 2, t_rank, &comms[T_PARITY]);
        comms[T_SELF] = MPI_COMM_SELF;
    }
    return comms[which];
}

int t_end(void)
{
    t_step("end");
    long all = 0;
    MPI_Allreduce(&checks_failed, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (t_rank == 0) {
        if (all)
            printf("%s: %ld checks failed on %d ranks\n", program, all, t_size);
        else
            printf("%s: ok on %d ranks\n", program, t_size);
        fflush(stdout);
    }
    for (int i = 0; i < T_COMMS; i++)
        if (i != T_WORLD && i != T_SELF && comms[i])
            MPI_Comm_free(&comms[i]);
    MPI_Finalize();
    alarm(0);
    if (t_memory_leaks()) {
        fprintf(stderr, "%s: %d blocks of the fake device are left\n", program, t_memory_leaks());
        return 1;
    }
    return all ? 1 : 0;
}

/* ---- Element types ---- */

const char *const t_type_names[T_TYPES] = {"float", "double", "float16", "bfloat16"};
static const struct {
    int digits, least; /* bits of a significand, exponent of the smallest normal number */
    double most;
} formats[T_TYPES] = {
    {24, -126, 0x1.fffffep127},
    {53, -1022, 0x1.fffffffffffffp1023},
    {11, -14, 0x1.ffcp15},
    {8, -126, 0x1.fep127},
};

MPI_Datatype t_datatype(int type)
{
    return type == T_F32 ? MPI_FLOAT : type == T_F64 ? MPI_DOUBLE : type == T_F16 ? TAGC_FLOAT16 : TAGC_BFLOAT16;
}

size_t t_size_of(int type)
{
    return type == T_F64 ? 8 : type == T_F32 ? 4 : 2;
}

static double unit(int digits, int least, double x)
{
    int e = x == 0 ? least : ilogb(x);
    return ldexp(1, (e > least ? e : least) - digits + 1);
}

double t_round(int type, double x)
{
    if (type == T_F64 || x == 0 || !isfinite(x))
        return x;
    double u = unit(formats[type].digits, formats[type].least, x), r = nearbyint(x / u) * u;
    return fabs(r) > formats[type].most ? copysign(INFINITY, x) : copysign(r, x);
}

double t_half_unit(int type, int result, double x)
{
    int f = result || type == T_F64 ? type : T_F32;
    return unit(formats[f].digits, formats[f].least, x) / 2;
}

double t_get(int type, const void *values, size_t i)
{
    if (type == T_F64)
        return ((const double *)values)[i];
    if (type == T_F32)
        return ((const float *)values)[i];
    uint16_t bits;
    memcpy(&bits, (const char *)values + 2 * i, 2);
    if (type == T_BF16) {
        uint32_t wide = (uint32_t)bits << 16;
        float f;
        memcpy(&f, &wide, 4);
        return f;
    }
    double sign = bits >> 15 ? -1 : 1;
    int e = bits >> 10 & 31, m = bits & 1023;
    if (e == 31)
        return m ? (double)NAN : sign * INFINITY;
    return sign * (e ? ldexp(1024 + m, e - 25) : ldexp(m, -24));
}

void t_set(int type, void *values, size_t i, double x)
{
    if (type == T_F64) {
        ((double *)values)[i] = x;
        return;
    }
    if (type == T_F32) {
        ((float *)values)[i] = (float)x;
        return;
    }
    uint16_t bits;
    double r = t_round(type, x);
    if (type == T_BF16) {
        float f = (float)r;
        uint32_t wide;
        memcpy(&wide, &f, 4);
        bits = (uint16_t)(wide >> 16);
        if (isnan(x))
            bits |= 0x40;
    } else {
        uint16_t sign = signbit(r) ? 0x8000 : 0;
        double a = fabs(r);
        if (isnan(r))
            bits = 0x7e00;
        else if (isinf(r))
            bits = sign | 0x7c00;
        else if (a < 0x1p-14)
            bits = sign | (uint16_t)(a * 0x1p24);
        else
            bits = sign | (uint16_t)((ilogb(a) + 15) << 10) | (uint16_t)(ldexp(a, 10 - ilogb(a)) - 1024);
    }
    memcpy((char *)values + 2 * i, &bits, 2);
}

double t_finish(int type, int average, int ranks, double sum)
{
    if (type == T_F64)
        return average ? sum / ranks : sum;
    float work = (float)sum;
    return t_round(type, average ? work / (float)ranks : work);
}

/* ---- Data ---- */

const char *const t_kind_names[T_KINDS] = {"integers",  "gaussian", "laplace", "ties",         "subnormal",
                                           "nonfinite", "scaled",   "narrow",  "1 beside 1e8", "zeros"};

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

double t_uniform(uint64_t stream, uint64_t i)
{
    return ((double)(mix(mix(stream + 1) ^ (i * UINT64_C(0x9e3779b97f4a7c15))) >> 11) + 0.5) * 0x1p-53;
}

static double draw(int kind, int type, int rank, int st, size_t i)
{
    uint64_t stream = ((uint64_t)(unsigned)st << 20 | (uint64_t)(unsigned)rank << 4) + 1000000007u * (unsigned)kind;
    double u = t_uniform(stream, 3 * i), w = t_uniform(stream, 3 * i + 1), z = t_uniform(stream, 3 * i + 2);
    double sign = z < 0.5 ? -1 : 1;
    switch (kind) {
    case T_INTEGERS:
        return u < 0.7 ? 0 : sign * (1 + floor(8 * w));
    case T_LAPLACE:
        return t_round(type, -log(u) * sign * (w < 0.002 ? 300 : 0.01));
    case T_TIES:
        return sign * ldexp(1, -(int)(4 * u));
    case T_SUBNORMAL:
        return t_round(type, sign * w * (type == T_F64 ? 0x1p-1030 : type == T_F16 ? 0x1p-15 : 1e-40));
    case T_NONFINITE:
        if (w < 0.01)
            return z < 0.2 ? (double)NAN : z < 0.6 ? (double)INFINITY : -(double)INFINITY;
        break;
    case T_NARROW:
        return t_round(type, 1e-3 * (1 + u));
    case T_BESIDE:
        return t_round(type, u < 0.03 ? sign * (type == T_F16 ? 3e4 : 1e8) : w < 0.3 ? 0 : sign);
    case T_ZEROS:
        return 0;
    default:
        break;
    }
    double g = sqrt(-2 * log(u)) * cos(6.283185307179586 * z);
    return t_round(type, kind == T_SCALED ? g * (type == T_F16 ? 16 : 65536) : g);
}

double t_value(int kind, int type, int rank, int st, size_t i)
{
    return draw(kind, type, rank, st, i) + 0.0; /* -0 to 0 */
}

void t_fill(int kind, int type, int rank, int st, void *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        t_set(type, values, i, t_value(kind, type, rank, st, i));
}

/* ---- Buffers ---- */

#define GUARD 64
static unsigned char poison_at(size_t i)
{
    return (unsigned char)(0xa5 ^ (i * 29));
}
static unsigned char guard_at(size_t i)
{
    return (unsigned char)(0x5c ^ (i * 13));
}

void t_buffer_make(struct t_buffer *b, size_t bytes)
{
    b->bytes = bytes;
    b->block = malloc(bytes + 2 * GUARD);
    if (!b->block)
        MPI_Abort(MPI_COMM_WORLD, 5);
    for (size_t i = 0; i < GUARD; i++)
        b->block[i] = b->block[GUARD + bytes + i] = guard_at(i);
    b->at = bytes ? b->block + GUARD : NULL;
    t_buffer_poison(b, 0);
}

void t_buffer_poison(struct t_buffer *b, size_t from)
{
    for (size_t i = from; i < b->bytes; i++)
        b->at[i] = poison_at(i);
}

size_t t_buffer_spoiled(const struct t_buffer *b, size_t from)
{
    size_t n = 0;
    for (size_t i = from; i < b->bytes; i++)
        n += b->at[i] != poison_at(i);
    return n;
}

int t_buffer_guarded(const struct t_buffer *b)
{
    for (size_t i = 0; i < GUARD; i++)
        if (b->block[i] != guard_at(i) || b->block[GUARD + b->bytes + i] != guard_at(i))
            return 0;
    return 1;
}

void t_buffer_free(struct t_buffer *b)
{
    free(b->block);
    memset(b, 0, sizeof *b);
}

/* ---- Forms ---- */

const char *const t_form_names[T_FORMS] = {"Reduce_scatter", "Reduce_scatter_block", "Allreduce"};

void t_job_make(struct t_job *job, int form, int type, int average, MPI_Comm comm, size_t n)
{
    static unsigned made;
    memset(job, 0, sizeof *job);
    job->form = form;
    job->drive = (int)(made++ % 6);
    job->type = type;
    job->average = average;
    job->comm = comm;
    MPI_Comm_rank(comm, &job->rank);
    MPI_Comm_size(comm, &job->size);
    job->counts = malloc((size_t)job->size * sizeof *job->counts);
    size_t parts = (size_t)job->size, left = n;
    for (size_t r = 0; r < parts; r++) {
        if (form == T_REDUCE_SCATTER) { /* about every third part is empty, the last takes the rest */
            size_t share = (size_t)((double)(2 * n / parts + 2) * t_uniform(77 + n, r));
            job->counts[r] = (int)(r + 1 == parts ? left : (n + r) % 3 == 2 ? 0 : share < left ? share : left);
            left -= (size_t)job->counts[r];
        } else {
            job->counts[r] = (int)(form == T_ALLREDUCE ? n : n / parts);
        }
    }
    job->n = form == T_REDUCE_SCATTER_BLOCK ? n / parts * parts : n;
    for (int r = 0; form != T_ALLREDUCE && r < job->rank; r++)
        job->at += (size_t)job->counts[r];
    job->own = (size_t)job->counts[job->rank];
}

void t_job_free(struct t_job *job)
{
    free(job->counts);
    job->counts = NULL;
}

/* One collective in the job's form; what is not blocking leaves a request. */
#define DRIVE(name, iname, counts, counts_c)                                                                           \
    switch (job->drive) {                                                                                              \
    case 0:                                                                                                            \
        code = TAGC_##name(send, recv, counts, type, op, job->comm, tensor);                                           \
        break;                                                                                                         \
    case 1:                                                                                                            \
        code = TAGC_##iname(send, recv, counts, type, op, job->comm, tensor, &request);                                \
        break;                                                                                                         \
    case 2:                                                                                                            \
        code = TAGC_##name##_init(send, recv, counts, type, op, job->comm, tensor, MPI_INFO_NULL, &request);           \
        break;                                                                                                         \
    case 3:                                                                                                            \
        code = TAGC_##name##_c(send, recv, counts_c, type, op, job->comm, tensor);                                     \
        break;                                                                                                         \
    case 4:                                                                                                            \
        code = TAGC_##iname##_c(send, recv, counts_c, type, op, job->comm, tensor, &request);                          \
        break;                                                                                                         \
    default:                                                                                                           \
        code = TAGC_##name##_init_c(send, recv, counts_c, type, op, job->comm, tensor, MPI_INFO_NULL, &request);       \
    }

int t_call(const struct t_job *job, const void *send, void *recv, TAGC_Tensor tensor)
{
    MPI_Datatype type = t_datatype(job->type);
    MPI_Op op = job->average ? TAGC_AVG : MPI_SUM;
    TAGC_Request request = TAGC_REQUEST_NULL;
    MPI_Count *large = malloc((size_t)job->size * sizeof *large);
    int code, persistent = job->drive % 3 == 2;
    for (int r = 0; r < job->size; r++)
        large[r] = job->counts[r];
    switch (job->form) {
    case T_REDUCE_SCATTER:
        DRIVE(Reduce_scatter, Ireduce_scatter, job->counts, large)
        break;
    case T_REDUCE_SCATTER_BLOCK:
        DRIVE(Reduce_scatter_block, Ireduce_scatter_block, job->counts[0], large[0])
        break;
    default:
        DRIVE(Allreduce, Iallreduce, job->counts[0], large[0])
    }
    free(large);
    if (!code && persistent)
        code = TAGC_Start(&request);
    if (!code)
        code = TAGC_Wait(&request);
    if (persistent && request != TAGC_REQUEST_NULL)
        OK(TAGC_Request_free(&request));
    CHECK(request == TAGC_REQUEST_NULL);
    return code;
}

int t_call_mpi(const struct t_job *job, const void *send, void *recv)
{
    MPI_Datatype type = t_datatype(job->type);
    switch (job->form) {
    case T_REDUCE_SCATTER:
        return MPI_Reduce_scatter(send, recv, job->counts, type, MPI_SUM, job->comm);
    case T_REDUCE_SCATTER_BLOCK:
        return MPI_Reduce_scatter_block(send, recv, job->counts[0], type, MPI_SUM, job->comm);
    default:
        return MPI_Allreduce(send, recv, job->counts[0], type, MPI_SUM, job->comm);
    }
}

/* ---- Tensors ---- */

MPI_Info t_info(const char *settings)
{
    MPI_Info info;
    MPI_Info_create(&info);
    char text[512];
    snprintf(text, sizeof text, "%s", settings ? settings : "");
    char *rest = text;
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        char *value = strchr(word, '='), key[80];
        *value++ = 0;
        snprintf(key, sizeof key, "tagc_%s", word);
        MPI_Info_set(info, key, value);
    }
    return info;
}

TAGC_Tensor t_tensor(MPI_Comm comm, const char *name, size_t n, int type, const char *settings)
{
    TAGC_Tensor tensor = TAGC_TENSOR_NULL;
    MPI_Info info = t_info(settings);
    int code = TAGC_Tensor_create(comm, name, (int)n, t_datatype(type), info, &tensor);
    MPI_Info_free(&info);
    if (code) {
        fprintf(stderr, "tensor \"%s\" with \"%s\": %s\n", name, settings, t_error_text(code));
        MPI_Abort(MPI_COMM_WORLD, 6);
    }
    return tensor;
}

double t_stat(TAGC_Tensor tensor, int stat)
{
    double value = NAN;
    OK(TAGC_Get_stat(tensor, stat, &value));
    return value;
}

/* As the image is laid out (src/coll/image.h): a head of 64 bytes, bit 0 of byte 32 says that a residual follows. */
void t_residual(TAGC_Tensor tensor, int type, size_t n, double *out)
{
    MPI_Count bytes = 0;
    const size_t width = type == T_F64 ? 8 : 4;
    memset(out, 0, n * sizeof *out);
    OK(TAGC_Tensor_pack_size(tensor, &bytes));
    unsigned char *image = calloc((size_t)bytes + 64, 1);
    OK(TAGC_Tensor_pack(tensor, image, bytes));
    if (image[32] & 1) {
        CHECK((size_t)bytes >= 64 + n * width);
        for (size_t i = 0; i < n && (size_t)bytes >= 64 + n * width; i++)
            out[i] = t_get(width == 8 ? T_F64 : T_F32, image + 64, i);
    }
    free(image);
}
