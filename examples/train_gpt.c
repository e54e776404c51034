/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * train_gpt: a character-level GPT, trained in plain C on any number of MPI ranks.
 *
 * Every rank holds all parameters, works on its share of the batch, and owns an even part of every parameter. A step is
 *
 *     forward, backward     on the rank's own sequences                                       gpt_model.c
 *     reduce-scatter        every gradient, so that each owner gets the mean of its part      TAGC_Ireduce_scatter
 *     clip, AdamW           by the owner; only it keeps the two moments and the exact weights
 *     all-gather            the new parameters                                 MPI_Iallgatherv, TAGC_Iallgatherv
 *
 * and these overlap: a block's gradients are on their way while the blocks before it compute theirs, and a block's new
 * weights while the blocks before it compute with theirs. Clipping stands between, since it wants the norm of all. The
 * summary says how long the communication was under way, and how much of that the computation had to wait for it.
 *
 * The file is read from top to bottom: options, text, trainer, checkpoint, run. Without options it trains 4 blocks of
 * width 128 for 2000 steps, e.g.
 *
 *     mpiexec -n 4 ./train_gpt --layers transformer:sparsity=0.95,algorithm=direct input.txt
 *
 * which holds back 95 % of the gradients that bear it. (Without "algorithm" the library decides whether to compress at
 * all, and between ranks that share memory it does not pay.)
 *
 * The same options and number of ranks give the same bits. For that, and because ranks share the cores already, each
 * rank keeps OpenBLAS to one thread, unless --threads or OPENBLAS_NUM_THREADS says more.
 *
 * Compiled with -DTRAIN_DOUBLE it computes in double throughout: that is what the gradient checks use. A test that
 * includes this file defines TRAIN_NO_MAIN first.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tagc.h>

#include "gpt_model.h"

/* Rank 0 has read or written something for all: an empty text, or what went wrong. Then all leave in good order. */
static void agree(const char *why, MPI_Comm comm)
{
    char text[1024];

    snprintf(text, sizeof text, "%s", why);
    MPI_Bcast(text, sizeof text, MPI_CHAR, 0, comm);
    if (text[0] != '\0')
        refuse("%s", text);
}

/* --------------------------------------------------------------------------------------------------------------------
 * Options
 */

enum { MAX_SETTINGS = 64 };

typedef struct {
    const char *text, *vocab;
    int depth, heads, width, context;
    int batch, steps;
    double lr, min_lr, beta1, beta2, decay, clip;
    int warmup, decay_steps;
    uint64_t seed;
    const char *collective, *gather, *overlap;
    int settings;               /* how many of the next two are filled */
    char key[MAX_SETTINGS][64]; /* an MPI_Info key, "tagc_sparsity" */
    const char *value[MAX_SETTINGS];
    int print_every, eval_every;
    const char *log, *checkpoint, *resume;
    int checkpoint_every;
    int sample;
    double temperature, dropout;
    int threads;
} Options;

/* The setting of nanoGPT's small character model, which learns tiny Shakespeare to about 1.9 nats. */
static Options default_options(void)
{
    Options o;

    memset(&o, 0, sizeof o);
    o.vocab = "char";
    o.depth = 4, o.heads = 4, o.width = 128, o.context = 64;
    o.batch = 12, o.steps = 2000;
    o.lr = 1e-3, o.min_lr = 1e-4, o.beta1 = 0.9, o.beta2 = 0.99, o.decay = 0.1, o.clip = 1.0;
    o.warmup = 100, o.decay_steps = -1;
    o.seed = 1337;
    o.collective = "tagc", o.gather = "mpi", o.overlap = "yes";
    o.print_every = 10;
    o.temperature = 0.8;
    return o;
}

typedef struct {
    const char *name;
    char kind; /* i: int, u: uint64, d: double, s: string, t: a tagc setting of that name, n: a setting as name=value */
    void *where;
    const char *help;
} Option;

static void add_setting(Options *o, const char *name, size_t length, const char *value)
{
    if (o->settings == MAX_SETTINGS)
        refuse("more than %d settings", MAX_SETTINGS);
    if (length == 0 || length + sizeof "tagc_" > sizeof o->key[0])
        refuse("--set wants name=value, e.g. --set granularity=tensor");
    snprintf(o->key[o->settings], sizeof o->key[0], "tagc_%.*s", (int)length, name);
    o->value[o->settings++] = value;
}

static void set_option(Options *o, const Option *option, const char *value)
{
    char *end = NULL;
    const char *equals;

    errno = 0;
    switch (option->kind) {
    case 'i': {
        long v = strtol(value, &end, 10);

        if (v < INT32_MIN || v > INT32_MAX)
            errno = ERANGE;
        *(int *)option->where = (int)v;
        break;
    }
    case 'u':
        *(uint64_t *)option->where = strtoull(value, &end, 10);
        break;
    case 'd':
        *(double *)option->where = strtod(value, &end);
        break;
    case 's':
        *(const char **)option->where = value;
        break;
    case 't':
        if (strcmp(option->name, "layers") == 0 && value[strspn(value, "0123456789")] == '\0')
            refuse("--layers takes rules for the tensors' settings; the number of blocks is --depth");
        add_setting(o, option->name, strlen(option->name), value);
        break;
    default:
        equals = strchr(value, '=');
        add_setting(o, value, equals ? (size_t)(equals - value) : 0, equals ? equals + 1 : "");
    }
    if (end != NULL && (end == value || *end != '\0' || errno != 0))
        refuse("--%s %s: not a number in range", option->name, value);
}

/* Whether a word is among these, which single spaces part */
static int one_of(const char *word, const char *words)
{
    size_t length = strlen(word);

    for (; words != NULL; words = strchr(words, ' ') ? strchr(words, ' ') + 1 : NULL)
        if (strcspn(words, " ") == length && strncmp(words, word, length) == 0)
            return 1;
    return 0;
}

static void check_options(const Options *o)
{
    const struct {
        const char *name;
        int value, least;
    } bounds[] = {
        {"depth", o->depth, 1},           {"heads", o->heads, 1},
        {"width", o->width, 1},           {"context", o->context, 1},
        {"batch", o->batch, 1},           {"steps", o->steps, 0},
        {"warmup", o->warmup, 0},         {"print-every", o->print_every, 1},
        {"eval-every", o->eval_every, 0}, {"checkpoint-every", o->checkpoint_every, 0},
        {"sample", o->sample, 0},         {"threads", o->threads, 0},
    };

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (bounds[i].value < bounds[i].least)
            refuse("--%s %d: must be at least %d", bounds[i].name, bounds[i].value, bounds[i].least);
    if (o->width % o->heads != 0)
        refuse("--width %d is not a multiple of --heads %d", o->width, o->heads);
    if (!one_of(o->vocab, "char byte"))
        refuse("--vocab %s: must be char or byte", o->vocab);
    if (!one_of(o->collective, "mpi tagc"))
        refuse("--collective %s: must be mpi or tagc", o->collective);
    if (!one_of(o->gather, "mpi lossless native bfloat16 int8"))
        refuse("--gather %s: must be mpi, lossless, native, bfloat16 or int8", o->gather);
    if (!one_of(o->overlap, "yes no"))
        refuse("--overlap %s: must be yes or no", o->overlap);
    if (strcmp(o->collective, "mpi") == 0 && strcmp(o->gather, "mpi") == 0 && o->settings > 0)
        refuse("%s has no effect with --collective mpi; use --collective tagc", o->key[0] + strlen("tagc_"));
    if (o->dropout != 0)
        refuse("--dropout: only 0 is supported");
    if (!(o->temperature > 0))
        refuse("--temperature: must be above 0");
    if (o->checkpoint_every > 0 && o->checkpoint == NULL)
        refuse("--checkpoint-every needs --checkpoint DIR");
    if (o->text == NULL)
        refuse("no text to learn from; usage: train_gpt [options] FILE (--help lists the options)");
}

static Options parse_options(int argc, char **argv)
{
    Options o = default_options();
    const Option table[] = {
        {"text", 's', &o.text, "FILE to learn from (or give it without an option)"},
        {"vocab", 's', &o.vocab, "char: the UTF-8 characters of the text; byte: all 256 bytes"},
        {"depth", 'i', &o.depth, "transformer blocks"},
        {"heads", 'i', &o.heads, "attention heads"},
        {"width", 'i', &o.width, "channels, a multiple of the heads"},
        {"context", 'i', &o.context, "tokens that the model sees"},
        {"batch", 'i', &o.batch, "sequences in a step, all ranks together"},
        {"steps", 'i', &o.steps, "length of the run, earlier steps of a resumed run included"},
        {"seed", 'u', &o.seed, "of the first weights, the batches and the sample"},
        {"lr", 'd', &o.lr, "learning rate after the warm-up"},
        {"min-lr", 'd', &o.min_lr, "learning rate at the end of a cosine"},
        {"warmup", 'i', &o.warmup, "steps over which the learning rate rises"},
        {"decay-steps", 'i', &o.decay_steps, "steps after which it is at its least; -1: those of --steps"},
        {"beta1", 'd', &o.beta1, "AdamW"},
        {"beta2", 'd', &o.beta2, "AdamW"},
        {"weight-decay", 'd', &o.decay, "AdamW, matrices only"},
        {"clip", 'd', &o.clip, "largest norm of the whole gradient; 0: no clipping"},
        {"dropout", 'd', &o.dropout, "only 0"},
        {"collective", 's', &o.collective, "mpi or tagc: who reduces the gradients"},
        {"gather", 's', &o.gather, "mpi, or a form of the library's gathers: lossless, native, bfloat16, int8"},
        {"overlap", 's', &o.overlap, "yes or no: communication while the model computes"},
        {"sparsity", 't', NULL, "share of a gradient that is held back, or a schedule"},
        {"value", 't', NULL, "form of the values on the wire: bfloat16, int4 ..."},
        {"algorithm", 't', NULL, "how a reduction travels: direct, sketch ..."},
        {"layers", 't', NULL, "transformer, none, or rules pattern:name=value;..."},
        {"set", 'n', NULL, "name=value: any other setting of the library"},
        {"print-every", 'i', &o.print_every, "steps between two lines"},
        {"eval-every", 'i', &o.eval_every, "steps between two full validations; 0: at the end only"},
        {"log", 's', &o.log, "FILE for the curve: step, train loss, validation loss"},
        {"checkpoint", 's', &o.checkpoint, "DIRECTORY to save to"},
        {"checkpoint-every", 'i', &o.checkpoint_every, "steps between two checkpoints; 0: at the end only"},
        {"resume", 's', &o.resume, "DIRECTORY to go on from"},
        {"sample", 'i', &o.sample, "characters to write after the run"},
        {"temperature", 'd', &o.temperature, "of the sample"},
        {"threads", 'i', &o.threads, "of OpenBLAS, per rank; 0: what OPENBLAS_NUM_THREADS says, or 1"},
    };
    const size_t options = sizeof table / sizeof table[0];

    for (int i = 1; i < argc; i++) {
        const char *name = argv[i] + 2, *value = strchr(argv[i], '=');
        size_t k, length = value ? (size_t)(value - name) : strlen(argv[i]) - 2;

        if (strncmp(argv[i], "--", 2) != 0) {
            o.text = argv[i];
            continue;
        }
        if (strcmp(name, "help") == 0) {
            int rank;

            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            if (rank == 0) {
                puts("usage: mpiexec -n RANKS train_gpt [options] FILE\n");
                for (k = 0; k < options; k++)
                    printf("  --%-18s %s\n", table[k].name, table[k].help);
            }
            MPI_Finalize();
            exit(0);
        }
        for (k = 0; k < options; k++)
            if (strlen(table[k].name) == length && strncmp(table[k].name, name, length) == 0)
                break;
        if (k == options)
            refuse("unknown option %s (--help lists them)", argv[i]);
        if (value == NULL && i + 1 == argc)
            refuse("--%s wants a value", name);
        set_option(&o, &table[k], value ? value + 1 : argv[++i]);
    }
    check_options(&o);
    return o;
}

/* --------------------------------------------------------------------------------------------------------------------
 * Text: read by rank 0, turned into tokens by everyone. The first 90 % are for training.
 */

typedef struct {
    int *token;
    size_t tokens, train;
    int symbols;
    int *symbol; /* the code point, or byte, of every token value, rising */
    int bytes;   /* symbols are bytes, not code points */
} Text;

/* The code point at s, and how many bytes it takes; 0 where there is no well-formed one */
static int utf8_decode(const unsigned char *s, size_t left, int *code)
{
    int length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;

    if (length == 0 || left < (size_t)length)
        return 0;
    *code = length == 1 ? s[0] : s[0] & (0xFF >> (length + 1));
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3F);
    }
    return length;
}

static void utf8_print(int code)
{
    if (code < 0x80) {
        putchar(code);
        return;
    }
    if (code < 0x800) {
        putchar(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            putchar(0xE0 | code >> 12);
        } else {
            putchar(0xF0 | code >> 18);
            putchar(0x80 | (code >> 12 & 0x3F));
        }
        putchar(0x80 | (code >> 6 & 0x3F));
    }
    putchar(0x80 | (code & 0x3F));
}

static unsigned char *read_file(const char *path, MPI_Comm comm, size_t *length)
{
    unsigned char *data;
    char why[1024] = "";
    int rank;
    long size = 0;
    FILE *f = NULL;

    MPI_Comm_rank(comm, &rank);
    if (rank == 0) {
        f = fopen(path, "rb");
        if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0)
            snprintf(why, sizeof why, "%s: %s", path, strerror(errno));
        else if (size >= INT32_MAX)
            snprintf(why, sizeof why, "%s: not a file of less than 2 GiB", path);
    }
    agree(why, comm);
    MPI_Bcast(&size, 1, MPI_LONG, 0, comm);
    data = allocate((size_t)size, 1);
    if (rank == 0) {
        if (fread(data, 1, (size_t)size, f) != (size_t)size)
            snprintf(why, sizeof why, "%s: could not be read whole", path);
        fclose(f);
    }
    agree(why, comm);
    MPI_Bcast(data, (int)size, MPI_BYTE, 0, comm);
    *length = (size_t)size;
    return data;
}

static void text_load(Text *t, const char *path, const char *vocab, int context, MPI_Comm comm)
{
    enum { CODES = 0x110000 };
    size_t length;
    unsigned char *data = read_file(path, comm, &length);
    int *value = allocate(CODES, sizeof *value); /* code point to token */

    memset(t, 0, sizeof *t);
    t->bytes = strcmp(vocab, "byte") == 0;
    t->token = allocate(length, sizeof *t->token);
    for (size_t at = 0; at < length;) {
        int code = data[at], step = t->bytes ? 1 : utf8_decode(data + at, length - at, &code);

        if (step == 0)
            refuse("%s is not UTF-8 at byte %zu; use --vocab byte", path, at);
        t->token[t->tokens++] = code;
        value[code] = 1;
        at += (size_t)step;
    }
    for (int c = 0; c < CODES; c++)
        t->symbols += t->bytes ? c < 256 : value[c];
    t->symbol = allocate((size_t)t->symbols, sizeof *t->symbol);
    t->symbols = 0;
    for (int c = 0; c < CODES; c++) {
        if (t->bytes ? c < 256 : value[c]) {
            value[c] = t->symbols;
            t->symbol[t->symbols++] = c;
        }
    }
    for (size_t i = 0; i < t->tokens; i++)
        t->token[i] = value[t->token[i]];
    t->train = (size_t)(0.9 * (double)t->tokens);
    if (t->train <= (size_t)context || t->tokens - t->train <= (size_t)context)
        refuse("%s has only %zu characters: too few for --context %d, which must fit in the last tenth", path,
               t->tokens, context);
    free(value);
    free(data);
}

static void text_free(Text *t)
{
    free(t->token);
    free(t->symbol);
}

/* --------------------------------------------------------------------------------------------------------------------
 * Trainer: the model, this rank's part of the optimizer, and the communication
 */

/* A collective for each parameter, by the library or by MPI: the request of one of them is not null while it is under way. */
typedef struct {
    TAGC_Request *tagc; /* (params) */
    MPI_Request *mpi;   /* (params) */
    int params, under_way;
    double since;   /* there has been something under way */
    double seconds; /* with something under way, so far */
    double exposed; /* of the computation's time, in starting, looking and waiting, so far */
} Traffic;

typedef struct {
    const Options *o;
    MPI_Comm comm;
    int rank, ranks;
    Model model;
    int *counts, *displs;   /* (params, ranks): how each parameter is split */
    size_t *mine, own;      /* (params): where this rank's part stands in the next four; their length */
    real *g, *w, *m, *v;    /* reduced gradient, exact weights, and the two moments of AdamW */
    TAGC_Tensor *gradients; /* (params), or NULL with --collective mpi */
    TAGC_Tensor *weights;   /* (params), or NULL with --gather mpi */
    Traffic reduce, gather;
    int step;              /* steps done */
    uint64_t random;       /* state of the batches' generator */
    int *tokens, *targets; /* (B, T) of this rank */
    double kept, dense_bytes;
    int counted; /* steps in these sums */
    double norm; /* of the last gradient, before clipping */
} Trainer;

/* ---- traffic ---- */

static void traffic_init(Traffic *f, int params)
{
    memset(f, 0, sizeof *f);
    f->params = params;
    f->tagc = allocate((size_t)params, sizeof *f->tagc);
    f->mpi = allocate((size_t)params, sizeof *f->mpi);
    for (int i = 0; i < params; i++) {
        f->tagc[i] = TAGC_REQUEST_NULL;
        f->mpi[i] = MPI_REQUEST_NULL;
    }
}

static int is_under_way(const Traffic *f, int i)
{
    return f->tagc[i] != TAGC_REQUEST_NULL || f->mpi[i] != MPI_REQUEST_NULL;
}

/* Parameters from first to before last. wait: until all are there; else only until one is found that is not */
static void arrive(Traffic *f, int first, int last, int wait)
{
    double start = MPI_Wtime();

    if (f->under_way == 0)
        return;
    for (int i = first, there = 1; i < last && there; i++) {
        if (!is_under_way(f, i))
            continue;
        if (wait) {
            TAGC_Wait(&f->tagc[i]);
            MPI_Wait(&f->mpi[i], MPI_STATUS_IGNORE);
        } else {
            TAGC_Test(&f->tagc[i], &there);
            if (there)
                MPI_Test(&f->mpi[i], &there, MPI_STATUS_IGNORE);
        }
        if (there && --f->under_way == 0)
            f->seconds += MPI_Wtime() - f->since;
    }
    f->exposed += MPI_Wtime() - start;
}

static void traffic_free(Traffic *f)
{
    arrive(f, 0, f->params, 1);
    free(f->tagc);
    free(f->mpi);
}

/* A parameter's collective, which call starts, is under way; where nothing overlaps, until it is there */
static void depart(Trainer *t, Traffic *f, int i, void (*call)(Trainer *t, int i))
{
    double start = MPI_Wtime();

    if (f->under_way++ == 0)
        f->since = start;
    call(t, i);
    f->exposed += MPI_Wtime() - start;
    if (strcmp(t->o->overlap, "no") == 0)
        arrive(f, i, i + 1, 1);
}

static void reduce(Trainer *t, int i)
{
    const real *from = t->model.grad.flat + t->model.param[i].offset;
    const int *counts = t->counts + i * t->ranks;

    if (t->gradients != NULL)
        TAGC_Ireduce_scatter(from, t->g + t->mine[i], counts, MPI_REAL_C, TAGC_AVG, t->comm, t->gradients[i],
                             &t->reduce.tagc[i]);
    else
        MPI_Ireduce_scatter(from, t->g + t->mine[i], counts, MPI_REAL_C, MPI_SUM, t->comm, &t->reduce.mpi[i]);
}

/* From the exact weights: where a gather rounds, every rank computes with the same rounded ones. */
static void gather(Trainer *t, int i)
{
    const real *from = t->w + t->mine[i];
    real *to = t->model.w.flat + t->model.param[i].offset;
    const int *counts = t->counts + i * t->ranks, *displs = t->displs + i * t->ranks;

    if (t->weights != NULL)
        TAGC_Iallgatherv(from, counts[t->rank], MPI_REAL_C, to, counts, displs, MPI_REAL_C, t->comm, t->weights[i],
                         &t->gather.tagc[i]);
    else
        MPI_Iallgatherv(from, counts[t->rank], MPI_REAL_C, to, counts, displs, MPI_REAL_C, t->comm, &t->gather.mpi[i]);
}

/* The model's hooks */
static void wait_for_weights(void *who, int group)
{
    Trainer *t = who;

    arrive(&t->gather, model_group(&t->model, group), model_group(&t->model, group + 1), 1);
}

static void send_gradients(void *who, int group)
{
    Trainer *t = who;

    for (int i = model_group(&t->model, group); i < model_group(&t->model, group + 1); i++)
        depart(t, &t->reduce, i, reduce);
}

/* Neither MPI nor the library goes on by itself, unless they have a thread for that. */
static void move_on(void *who)
{
    Trainer *t = who;

    arrive(&t->gather, 0, t->model.params, 0);
    arrive(&t->reduce, 0, t->model.params, 0);
}

/* ---- making ---- */

/* Of the settings on the command line, and of one more, if there is a value for it */
static MPI_Info make_info(const Options *o, const char *key, const char *value)
{
    MPI_Info info;

    MPI_Info_create(&info);
    for (int i = 0; i < o->settings; i++)
        MPI_Info_set(info, o->key[i], o->value[i]);
    if (value != NULL)
        MPI_Info_set(info, key, value);
    return info;
}

static TAGC_Tensor *make_tensors(const Model *model, MPI_Comm comm, MPI_Info info)
{
    TAGC_Tensor *tensor = allocate((size_t)model->params, sizeof *tensor);

    for (int i = 0; i < model->params; i++)
        TAGC_Tensor_create(comm, model->param[i].name, model->param[i].size, MPI_REAL_C, info, &tensor[i]);
    MPI_Info_free(&info);
    return tensor;
}

static void trainer_init(Trainer *t, const Options *o, int symbols, MPI_Comm comm)
{
    Model *model = &t->model;

    memset(t, 0, sizeof *t);
    t->o = o;
    t->comm = comm;
    MPI_Comm_rank(comm, &t->rank);
    MPI_Comm_size(comm, &t->ranks);
    if (o->batch % t->ranks != 0)
        refuse("--batch %d does not divide among %d ranks; it counts the sequences of all ranks together", o->batch,
               t->ranks);
    set_threads(o->threads);
    model_init(model, o->depth, o->heads, o->width, symbols, o->context, o->batch / t->ranks);
    model->hooks = (Hooks){t, wait_for_weights, send_gradients, move_on};
    first_weights(model, o->seed);
    t->random = o->seed ^ 0x5851F42D4C957F2Du;
    t->tokens = allocate((size_t)model->B * model->T, sizeof *t->tokens);
    t->targets = allocate((size_t)model->B * model->T, sizeof *t->targets);

    t->counts = allocate((size_t)model->params * t->ranks, sizeof *t->counts);
    t->displs = allocate((size_t)model->params * t->ranks, sizeof *t->displs);
    t->mine = allocate((size_t)model->params, sizeof *t->mine);
    for (int i = 0, at; i < model->params; i++) {
        int size = model->param[i].size, *counts = t->counts + i * t->ranks, *displs = t->displs + i * t->ranks;

        at = 0;
        for (int r = 0; r < t->ranks; r++) {
            counts[r] = size / t->ranks + (r < size % t->ranks);
            displs[r] = at;
            at += counts[r];
        }
        t->mine[i] = t->own;
        t->own += (size_t)counts[t->rank];
    }
    t->g = allocate(t->own, sizeof *t->g);
    t->w = allocate(t->own, sizeof *t->w);
    t->m = allocate(t->own, sizeof *t->m);
    t->v = allocate(t->own, sizeof *t->v);

    traffic_init(&t->reduce, model->params);
    traffic_init(&t->gather, model->params);
    if (strcmp(o->collective, "tagc") == 0)
        t->gradients = make_tensors(model, comm, make_info(o, NULL, NULL));
    if (strcmp(o->gather, "mpi") != 0)
        t->weights = make_tensors(model, comm, make_info(o, "tagc_gather", o->gather));
}

static void tensors_free(TAGC_Tensor *tensor, int params)
{
    for (int i = 0; tensor != NULL && i < params; i++)
        TAGC_Tensor_free(&tensor[i]);
    free(tensor);
}

static void trainer_free(Trainer *t)
{
    traffic_free(&t->reduce);
    traffic_free(&t->gather);
    tensors_free(t->gradients, t->model.params);
    tensors_free(t->weights, t->model.params);
    free(t->counts);
    free(t->displs);
    free(t->mine);
    free(t->g);
    free(t->w);
    free(t->m);
    free(t->v);
    free(t->tokens);
    free(t->targets);
    model_free(&t->model);
}

/* ---- a step ---- */

/* Owners take their parts of what the model holds now, and all see what a gather makes of them. */
static void share_weights(Trainer *t)
{
    for (int i = 0; i < t->model.params; i++) {
        memcpy(t->w + t->mine[i], t->model.w.flat + t->model.param[i].offset + t->displs[i * t->ranks + t->rank],
               (size_t)t->counts[i * t->ranks + t->rank] * sizeof(real));
        depart(t, &t->gather, i, gather);
    }
}

/* Up in a line, down in half a cosine, reaching the least rate at the last step */
static double learning_rate(const Options *o, int step)
{
    int last = (o->decay_steps >= 0 ? o->decay_steps : o->steps) - 1;

    if (step < o->warmup)
        return o->lr * (step + 1) / (o->warmup + 1);
    if (step >= last)
        return o->min_lr;
    return o->min_lr +
           0.5 * (o->lr - o->min_lr) * (1 + cos(3.14159265358979324 * (step - o->warmup) / (last - o->warmup)));
}

/* Until each owner has the mean gradient of its part */
static void finish_gradients(Trainer *t)
{
    double sent = 0;

    arrive(&t->reduce, 0, t->model.params, 1);
    for (size_t i = 0; t->gradients == NULL && i < t->own; i++)
        t->g[i] /= (real)t->ranks;
    for (int i = 0; i < t->model.params; i++) {
        double density = 1;

        if (t->gradients != NULL)
            TAGC_Get_stat(t->gradients[i], TAGC_STAT_DENSITY, &density);
        sent += density * t->model.param[i].size;
    }
    t->kept += sent / (double)t->model.size;
    /* what the best algorithm sends: each rank all but its own part */
    t->dense_bytes += (double)t->model.size * sizeof(real) * (t->ranks - 1) / t->ranks;
    t->counted++;
}

/* AdamW on one stretch; clipping is a factor on its gradient */
static void adamw(real *restrict w, const real *restrict g, real *restrict m, real *restrict v, int n, real factor,
                  double lr, double decay, double beta1, double beta2, int step)
{
    real shrink = (real)(1 - lr * decay), b1 = (real)beta1, b2 = (real)beta2;
    real rate = (real)(lr / (1 - pow(beta1, step)));
    real root = (real)(1 / sqrt(1 - pow(beta2, step)));

    for (int i = 0; i < n; i++) {
        real d = g[i] * factor;

        m[i] = b1 * m[i] + (1 - b1) * d;
        v[i] = b2 * v[i] + (1 - b2) * d * d;
#ifdef TRAIN_DOUBLE
        w[i] = w[i] * shrink - rate * m[i] / (sqrt(v[i]) * root + 1e-8);
#else
        w[i] = w[i] * shrink - rate * m[i] / (sqrtf(v[i]) * root + 1e-8f);
#endif
    }
}

/* One step on tokens (B, T) of this rank; returns the mean loss of all ranks. The new weights are on their way. */
static double train_step(Trainer *t, const int *tokens, const int *targets, double lr)
{
    Model *model = &t->model;
    const Options *o = t->o;
    double sums[2]; /* of the losses, and of the squared gradient */
    real factor;

    sums[0] = model_loss(model, tokens, targets, model->B, model->T);
    model_backward(model, tokens, model->B, model->T);
    finish_gradients(t);

    sums[1] = 0;
    for (size_t i = 0; i < t->own; i++)
        sums[1] += (double)t->g[i] * (double)t->g[i];
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, t->comm);
    t->norm = sqrt(sums[1]);
    factor = (real)(o->clip > 0 ? fmin(1, o->clip / (t->norm + 1e-6)) : 1);

    t->step++;
    for (int i = 0; i < model->params; i++) {
        size_t at = t->mine[i];

        adamw(t->w + at, t->g + at, t->m + at, t->v + at, t->counts[i * t->ranks + t->rank], factor, lr,
              model->param[i].decays ? o->decay : 0, o->beta1, o->beta2, t->step);
        depart(t, &t->gather, i, gather);
    }
    return sums[0] / t->ranks;
}

/* Every rank draws the whole batch and keeps its own sequences, so that the batch does not depend on the number of ranks. */
static void draw_batch(Trainer *t, const Text *text)
{
    int T = t->model.T, B = t->model.B;

    for (int b = 0; b < t->o->batch; b++) {
        const int *from = text->token + (size_t)(random_uniform(&t->random) * (double)(text->train - (size_t)T));
        int own = b - t->rank * B;

        if (own < 0 || own >= B)
            continue;
        memcpy(t->tokens + own * T, from, (size_t)T * sizeof *from);
        memcpy(t->targets + own * T, from + 1, (size_t)T * sizeof *from);
    }
}

/* Mean loss over all of the last tenth, in windows side by side that the ranks take in turn */
static double validate(Trainer *t, const Text *text)
{
    int T = t->model.T, B = t->model.B;
    const int *from = text->token + text->train;
    size_t windows = (text->tokens - text->train - 1) / (size_t)T;
    double sum = 0;

    for (size_t first = (size_t)t->rank * B; first < windows; first += (size_t)t->ranks * B) {
        size_t take = windows - first < (size_t)B ? windows - first : (size_t)B;

        sum += (double)take * model_loss(&t->model, from + first * T, from + first * T + 1, (int)take, T);
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, t->comm);
    return sum / (double)windows;
}

/* Writes count symbols, one at a time, each drawn from the model's distribution at that temperature. */
static void sample(Trainer *t, const Text *text, int count, double temperature)
{
    Model *m = &t->model;
    uint64_t random = t->o->seed ^ 0x14057B7EF767814Fu;
    int *seen = t->tokens, length = 1;

    seen[0] = 0;
    for (int s = 0; s < text->symbols; s++)
        if (text->symbol[s] == '\n')
            seen[0] = s;
    for (int i = 0; i < count; i++) {
        const real *row;
        double sum = 0, at;
        int next = 0;

        model_forward(m, seen, 1, length);
        row = m->logits + (size_t)(length - 1) * m->V;
        for (int v = 0, most = 0; v < m->V; v++) {
            most = row[v] > row[most] ? v : most;
            next = most;
        }
        for (int v = 0; v < m->V; v++)
            sum += exp((double)(row[v] - row[next]) / temperature);
        at = random_uniform(&random) * sum;
        for (int v = 0, most = next; v < m->V; v++) {
            at -= exp((double)(row[v] - row[most]) / temperature);
            if (at < 0) {
                next = v;
                break;
            }
        }
        if (text->bytes)
            putchar(text->symbol[next]);
        else
            utf8_print(text->symbol[next]);
        if (length == m->T)
            memmove(seen, seen + 1, (size_t)--length * sizeof *seen);
        seen[length++] = next;
    }
    putchar('\n');
}

/* --------------------------------------------------------------------------------------------------------------------
 * Checkpoint: DIR/step-N.model, a file of residuals beside it for each tensor, and DIR/latest, which names N and is
 * replaced last, so that a run killed at any time leaves a whole checkpoint. Exact weights and moments are stored as whole
 * vectors: a run may go on with another number of ranks, and goes on with the same bits with the same number.
 */

enum { HEADER = 16, CHECKPOINT_VERSION = 1, PATH_ROOM = 512 };
static const int64_t checkpoint_magic = 0x54504743414754; /* "TGACGPT" */

static void path_of(char path[PATH_ROOM], const char *directory, int step, const char *what)
{
    if (snprintf(path, PATH_ROOM, "%s/step-%d.%s", directory, step, what) >= PATH_ROOM)
        die("%s: name too long", directory);
}

/* A vector spread over the owners, whole on rank 0 */
static void collect(const Trainer *t, const real *part, real *whole)
{
    for (int i = 0; i < t->model.params; i++)
        MPI_Gatherv(part + t->mine[i], t->counts[i * t->ranks + t->rank], MPI_REAL_C,
                    t->rank == 0 ? whole + t->model.param[i].offset : NULL, t->counts + i * t->ranks,
                    t->displs + i * t->ranks, MPI_REAL_C, 0, t->comm);
}

static void spread(const Trainer *t, const real *whole, real *part)
{
    for (int i = 0; i < t->model.params; i++)
        MPI_Scatterv(t->rank == 0 ? whole + t->model.param[i].offset : NULL, t->counts + i * t->ranks,
                     t->displs + i * t->ranks, MPI_REAL_C, part + t->mine[i], t->counts[i * t->ranks + t->rank],
                     MPI_REAL_C, 0, t->comm);
}

/* The step that DIR/latest names, or -1 */
static int checkpoint_latest(const char *directory)
{
    char path[PATH_ROOM];
    int step = -1;
    FILE *f;

    if (snprintf(path, sizeof path, "%s/latest", directory) >= PATH_ROOM || (f = fopen(path, "r")) == NULL)
        return -1;
    if (fscanf(f, "%d", &step) != 1)
        step = -1;
    fclose(f);
    return step;
}

/* On rank 0: parameters and both moments into one file; 0 or an errno */
static int write_model(const Trainer *t, const Text *text, const char *path, const real *weights, const real *first,
                       const real *second)
{
    const Model *m = &t->model;
    const int64_t header[HEADER] = {
        checkpoint_magic,   CHECKPOINT_VERSION, (int64_t)sizeof(real), m->L, m->H, m->C, m->T, m->V, t->step,
        (int64_t)t->random, t->ranks,           t->gradients != NULL};
    size_t symbols = (size_t)m->V;
    FILE *f = fopen(path, "wb");
    int good = f != NULL && fwrite(header, sizeof header, 1, f) == 1;

    good = good && fwrite(text->symbol, sizeof *text->symbol, symbols, f) == symbols;
    good = good && fwrite(weights, sizeof(real), m->size, f) == m->size;
    good = good && fwrite(first, sizeof(real), m->size, f) == m->size;
    good = good && fwrite(second, sizeof(real), m->size, f) == m->size;
    good = good && fflush(f) == 0 && fsync(fileno(f)) == 0;
    return (f != NULL && fclose(f) != 0) || !good ? errno : 0;
}

static void checkpoint_save(Trainer *t, const Text *text, const char *directory)
{
    const Model *m = &t->model;
    char path[PATH_ROOM], fresh[PATH_ROOM + 8], why[1024] = "";
    size_t whole = t->rank == 0 ? m->size : 0;
    real *weights = allocate(whole, sizeof *weights);
    real *first = allocate(whole, sizeof *first), *second = allocate(whole, sizeof *second);
    int old = checkpoint_latest(directory), error = 0;

    collect(t, t->w, weights);
    collect(t, t->m, first);
    collect(t, t->v, second);
    path_of(path, directory, t->step, "model");
    if (t->rank == 0) {
        if (mkdir(directory, 0777) != 0 && errno != EEXIST)
            error = errno;
        else
            error = write_model(t, text, path, weights, first, second);
        if (error != 0)
            snprintf(why, sizeof why, "%s: %s", path, strerror(error));
    }
    agree(why, t->comm);
    for (int i = 0; t->gradients != NULL && i < m->params; i++) {
        path_of(path, directory, t->step, m->param[i].name);
        TAGC_Tensor_save(t->gradients[i], path);
    }
    MPI_Barrier(t->comm);
    if (t->rank == 0) {
        FILE *f;

        snprintf(path, sizeof path, "%s/latest", directory);
        snprintf(fresh, sizeof fresh, "%s.new", path);
        f = fopen(fresh, "w");
        if (f == NULL || fprintf(f, "%d\n", t->step) < 0 || fclose(f) != 0 || rename(fresh, path) != 0)
            snprintf(why, sizeof why, "%s: %s", path, strerror(errno));
    }
    agree(why, t->comm);
    if (t->rank == 0 && old >= 0 && old != t->step) {
        path_of(path, directory, old, "model");
        unlink(path);
        for (int i = 0; i < m->params; i++) {
            path_of(path, directory, old, m->param[i].name);
            unlink(path);
        }
    }
    free(weights);
    free(first);
    free(second);
}

/* What keeps this program from using a checkpoint, or nothing */
static void check_header(const Trainer *t, const int64_t *h, const char *path, char *why, size_t size)
{
    static const char *const shape[] = {"depth", "heads", "width", "context", "vocabulary"};
    const int have[] = {t->model.L, t->model.H, t->model.C, t->model.T, t->model.V};

    if (h[0] != checkpoint_magic)
        snprintf(why, size, "%s is not a checkpoint of this program, or of a machine of the other byte order", path);
    else if (h[1] != CHECKPOINT_VERSION)
        snprintf(why, size, "%s has checkpoint version %d, this program reads version %d", path, (int)h[1],
                 CHECKPOINT_VERSION);
    else if (h[2] != (int64_t)sizeof(real))
        snprintf(why, size, "%s holds values of %d bytes, this program computes with %d (see TRAIN_DOUBLE)", path,
                 (int)h[2], (int)sizeof(real));
    for (int i = 0; i < 5 && why[0] == '\0'; i++)
        if (h[3 + i] != have[i])
            snprintf(why, size, "%s was made with %s %d, not %d: give the options and the text of the first run again",
                     path, shape[i], (int)h[3 + i], have[i]);
}

/* On rank 0: the reverse of write_model */
static void read_model(Trainer *t, const Text *text, const char *path, int64_t header[HEADER], real *first,
                       real *second, char *why, size_t size)
{
    Model *m = &t->model;
    size_t symbols = (size_t)m->V;
    int *symbol = allocate(symbols, sizeof *symbol), good;
    FILE *f = fopen(path, "rb");

    if (f == NULL) {
        snprintf(why, size, "%s: %s", path, strerror(errno));
        free(symbol);
        return;
    }
    good = fread(header, HEADER * sizeof *header, 1, f) == 1;
    if (good)
        check_header(t, header, path, why, size);
    if (why[0] == '\0') {
        good = good && fread(symbol, sizeof *symbol, symbols, f) == symbols;
        if (good && memcmp(symbol, text->symbol, symbols * sizeof *symbol) != 0)
            snprintf(why, size, "%s was made with another vocabulary: give the text of the first run again", path);
        good = good && fread(m->w.flat, sizeof(real), m->size, f) == m->size;
        good = good && fread(first, sizeof(real), m->size, f) == m->size;
        good = good && fread(second, sizeof(real), m->size, f) == m->size;
        if (!good)
            snprintf(why, size, "%s is cut short", path);
    }
    fclose(f);
    free(symbol);
}

static void checkpoint_load(Trainer *t, const Text *text, const char *directory)
{
    Model *m = &t->model;
    char path[PATH_ROOM], why[1024] = "";
    size_t whole = t->rank == 0 ? m->size : 0;
    real *first = allocate(whole, sizeof *first), *second = allocate(whole, sizeof *second);
    int64_t header[HEADER] = {0};

    if (t->rank == 0 && checkpoint_latest(directory) < 0) {
        snprintf(why, sizeof why, "%s/latest: not there; --resume wants the directory of an earlier --checkpoint",
                 directory);
    } else if (t->rank == 0) {
        path_of(path, directory, checkpoint_latest(directory), "model");
        read_model(t, text, path, header, first, second, why, sizeof why);
    }
    agree(why, t->comm);
    MPI_Bcast(header, HEADER, MPI_INT64_T, 0, t->comm);
    t->step = (int)header[8];
    t->random = (uint64_t)header[9];
    for (int i = 0; i < m->params; i++)
        MPI_Bcast(m->w.flat + m->param[i].offset, m->param[i].size, MPI_REAL_C, 0, t->comm);
    spread(t, first, t->m);
    spread(t, second, t->v);
    for (int i = 0; t->gradients != NULL && header[11] && i < m->params; i++) {
        path_of(path, directory, t->step, m->param[i].name);
        TAGC_Tensor_load(t->gradients[i], path);
    }
    free(first);
    free(second);
}

/* --------------------------------------------------------------------------------------------------------------------
 * The run
 */

typedef struct {
    double val_loss;
    double kept;    /* share of the gradient that this rank sent, in the mean */
    double *losses; /* NULL, or room for one per step */
} Result;

/* Bytes that this rank has sent for these tensors, or what MPI sends at its best */
static double bytes_sent(const Trainer *t, const TAGC_Tensor *tensor)
{
    double bytes = 0;

    for (int i = 0; tensor != NULL && i < t->model.params; i++) {
        double sent;

        TAGC_Get_stat(tensor[i], TAGC_STAT_BYTES_SENT, &sent);
        bytes += sent;
    }
    return tensor != NULL ? bytes : t->dense_bytes;
}

static void print_summary(Trainer *t, double val_loss, double seconds)
{
    double steps = t->counted > 0 ? t->counted : 1;
    double sums[] = {bytes_sent(t, t->gradients) / steps,
                     bytes_sent(t, t->weights) / steps,
                     t->kept / steps,
                     t->reduce.seconds,
                     t->reduce.exposed,
                     t->gather.seconds,
                     t->gather.exposed};

    MPI_Allreduce(MPI_IN_PLACE, sums, sizeof sums / sizeof *sums, MPI_DOUBLE, MPI_SUM, t->comm);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        sums[i] /= t->ranks;
    if (t->rank == 0)
        printf("summary: collective=%s gather=%s overlap=%s ranks=%d steps=%d val_loss=%.4f "
               "bytes_per_step_rank=%.0f gather_bytes_per_step_rank=%.0f kept=%.4f comm_seconds=%.3f comm_exposed=%.3f "
               "gather_seconds=%.3f gather_exposed=%.3f total_seconds=%.3f\n",
               t->o->collective, t->o->gather, t->o->overlap, t->ranks, t->step, val_loss, sums[0], sums[1], sums[2],
               sums[3], sums[4], sums[5], sums[6], seconds);
}

static void train(const Options *o, MPI_Comm comm, Result *result)
{
    Trainer t;
    Text text;
    FILE *log = NULL;
    double begin = MPI_Wtime(), last = begin, sum = 0, val = NAN;
    int summed = 0;

    text_load(&text, o->text, o->vocab, o->context, comm);
    trainer_init(&t, o, text.symbols, comm);
    if (o->resume != NULL)
        checkpoint_load(&t, &text, o->resume);
    share_weights(&t);
    if (t.rank == 0) {
        printf("%s: %zu symbols of %d kinds; %zu parameters; %d ranks with %d sequences of %d each; %s reduces\n",
               o->text, text.tokens, text.symbols, t.model.size, t.ranks, t.model.B, t.model.T, o->collective);
        if (o->resume != NULL)
            printf("%s: going on after step %d\n", o->resume, t.step);
        if (o->log != NULL && (log = fopen(o->log, t.step > 0 ? "a" : "w")) == NULL)
            die("%s: %s", o->log, strerror(errno));
        if (log != NULL && t.step == 0)
            fputs("# step train_loss val_loss\n", log);
    }
    while (t.step < o->steps) {
        double lr = learning_rate(o, t.step), loss, now;
        int at_end = t.step + 1 == o->steps, print;

        draw_batch(&t, &text);
        loss = train_step(&t, t.tokens, t.targets, lr);
        if (result != NULL && result->losses != NULL)
            result->losses[t.step - 1] = loss;
        if (!(loss < 1e30))
            refuse("the loss is %g at step %d; a smaller --lr or a longer --warmup may help", loss, t.step);
        sum += loss;
        summed++;
        print = at_end || t.step == 1 || t.step % o->print_every == 0;
        now = MPI_Wtime();
        val = NAN;
        if (at_end || (o->eval_every > 0 && t.step % o->eval_every == 0))
            val = validate(&t, &text);
        if (t.rank == 0 && (print || !isnan(val))) {
            printf("step %5d/%d  loss %.4f  norm %7.3f  lr %.2e  %6.1f ms", t.step, o->steps, sum / summed, t.norm, lr,
                   1e3 * (now - last) / summed);
            if (!isnan(val))
                printf("  validation %.4f", val);
            putchar('\n');
            fflush(stdout);
            if (log != NULL) {
                if (isnan(val))
                    fprintf(log, "%d %.6f NaN\n", t.step, sum / summed);
                else
                    fprintf(log, "%d %.6f %.6f\n", t.step, sum / summed, val);
            }
        }
        if (print || !isnan(val)) {
            last = MPI_Wtime();
            sum = 0;
            summed = 0;
        }
        if (o->checkpoint != NULL && (at_end || (o->checkpoint_every > 0 && t.step % o->checkpoint_every == 0)))
            checkpoint_save(&t, &text, o->checkpoint);
    }
    if (isnan(val)) /* nothing was left to do, but the question stands */
        val = validate(&t, &text);
    print_summary(&t, val, MPI_Wtime() - begin);
    if (t.rank == 0 && o->sample > 0)
        sample(&t, &text, o->sample, o->temperature);
    if (result != NULL) {
        result->val_loss = val;
        result->kept = t.counted > 0 ? t.kept / t.counted : 0;
    }
    if (log != NULL)
        fclose(log);
    trainer_free(&t);
    text_free(&text);
}

#ifndef TRAIN_NO_MAIN
int main(int argc, char **argv)
{
    Options o;
    int level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level); /* what --set progress=thread wants */
    o = parse_options(argc, argv);
    train(&o, MPI_COMM_WORLD, NULL);
    MPI_Finalize();
    return 0;
}
#endif
