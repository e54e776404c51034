/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The trainer of examples/ and its model, included with main switched off: is what they compute right? Prints TAP.
 *
 * Compiled twice, for double (-DTRAIN_DOUBLE, where gradients are held against finite differences) and for float. On
 * several ranks the runs are repeated on 1, 2, 4 ... of them. Files go to the directory TAGC_TEST_DIR, or /tmp. */
#define TRAIN_NO_MAIN
#include "examples/gpt_model.c"
#include "examples/train_gpt.c"

#include "reference.h"

#ifdef TRAIN_DOUBLE
static const double tight = 1e-11, loose = 1e-9;
#else
static const double tight = 2e-5, loose = 1e-4; /* of one gradient, and after ten steps */
#endif

static int world_rank, world_size, tests, failures;

/* One result that all ranks have a part in */
__attribute__((format(printf, 2, 3))) static void check(int good, const char *format, ...)
{
    va_list args;

    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    tests++;
    failures += !good;
    if (world_rank != 0)
        return;
    printf("%sok %d - ", good ? "" : "not ", tests);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static int near(double have, double want, double tolerance)
{
    double scale = fabs(want) > 1 ? fabs(want) : 1;

    if (fabs(have - want) <= tolerance * scale)
        return 1;
    printf("# %.12g is not %.12g, the difference is %.3g\n", have, want, have - want);
    return 0;
}

static int near_real(real have, real want, double tolerance)
{
    return near((double)have, (double)want, tolerance);
}

/* ---- Weights and tokens of reference.py ---------------------------------------------------------------------------- */

static uint32_t scramble(uint32_t i, uint32_t j)
{
    uint32_t h = i * 40503u + j * 2654435761u;

    h ^= h >> 15;
    h *= 2246822519u;
    return h ^ h >> 13;
}

static void formula_weights(Model *m)
{
    for (int i = 0; i < m->params; i++) {
        real *w = m->w.flat + m->param[i].offset;

        for (int j = 0; j < m->param[i].size; j++) {
            double v = ((int)(scramble((uint32_t)i, (uint32_t)j) % 20001) - 10000) / 10000.0;

            w[j] = (real)(m->param[i].decays ? 0.5 * v : 1 + 0.25 * v);
        }
    }
}

static void formula_batch(int step, int first, int B, int T, int V, int *tokens, int *targets)
{
    for (int i = 0; i < B * T; i++) {
        uint32_t at = (uint32_t)((first + i / T) * (T + 1) + i % T);

        tokens[i] = (int)(scramble(1000 + (uint32_t)step, at) % (uint32_t)V);
        targets[i] = (int)(scramble(1000 + (uint32_t)step, at + 1) % (uint32_t)V);
    }
}

static Options reference_options(const char *collective, const char *gather)
{
    Options o = default_options();

    o.depth = REF_LAYERS, o.heads = REF_HEADS, o.width = REF_WIDTH, o.context = REF_CONTEXT, o.batch = REF_BATCH;
    o.decay = REF_DECAY, o.clip = REF_CLIP;
    o.collective = collective, o.gather = gather;
    return o;
}

/* ---- Arithmetic ------------------------------------------------------------------------------------------------------ */

static void test_functions(void)
{
    int good = 1, at = 0;
    const int n = 4001;
    real *x = allocate((size_t)n, sizeof *x), *y = allocate((size_t)n, sizeof *y);
    double worst = 0;

    for (int i = 0; i < n; i++) {
        double v = -87.0 * i / (n - 1), error = fabs((double)fast_exp((real)v) / exp((double)(real)v) - 1);

        worst = error > worst ? error : worst;
    }
    check(worst < 4e-7, "exp is good to 4e-7 from -87 to 0");

    for (int i = 0; i < n; i++)
        x[i] = (real)(-8 + 16.0 * i / (n - 1));
    gelu_forward(y, x, (size_t)n);
    for (int i = 0; i < n; i++) {
        double v = (double)(real)(-8 + 16.0 * i / (n - 1)), below = 0.5 * erfc(-v * sqrt(0.5));

        good &= near((double)y[i], v * below, 6e-7);
        good &= near((double)x[i], below + v * exp(-v * v / 2) / sqrt(2 * acos(-1.0)), 6e-7);
    }
    check(good, "gelu and its derivative are good to 6e-7 from -8 to 8");

    good = 1;
    for (int forms = 0; forms < 3; forms++) { /* a b, a^T b, a b^T with strides, against the definition */
        enum { M = 5, N = 9, K = 13, S = 17 };
        real a[S * S], b[S * S], c[S * S];
        int ta = forms == 1, tb = forms == 2;

        for (int i = 0; i < S * S; i++) {
            a[i] = (real)((int)(scramble(1, (uint32_t)i) % 7) - 3);
            b[i] = (real)((int)(scramble(2, (uint32_t)i) % 7) - 3);
            c[i] = (real)i;
        }
        matmul(ta, tb, M, N, K, 2, a, S, b, S, (real)(forms == 0), c, S);
        for (int i = 0; i < S * S; i++) {
            int row = i / S, col = i % S;
            real want = (real)i;

            if (row < M && col < N) {
                want = forms == 0 ? want : 0;
                for (int k = 0; k < K; k++)
                    want += 2 * (ta ? a[k * S + row] : a[row * S + k]) * (tb ? b[col * S + k] : b[k * S + col]);
            }
            good &= c[i] == want;
        }
    }
    check(good, "matmul is the matrix product, in strides and in all forms");

    good = 1;
    for (int length = 1; length < 40; length++) {
        real sum = 0, most = -1000;

        for (int i = 0; i < length; i++) {
            x[i] = (real)((int)(scramble(3, (uint32_t)at++) % 2001) - 1000);
            sum += x[i];
            most = x[i] > most ? x[i] : most;
            y[i] = 2;
        }
        good &= row_sum(x, length) == sum && row_dot(x, y, length) == 2 * sum && row_max(x, length) == most;
    }
    check(good, "sums, products and maxima of rows of any length");
    free(x);
    free(y);
}

/* ---- Gradients ------------------------------------------------------------------------------------------------------- */

#ifdef TRAIN_DOUBLE
static void test_differences(void)
{
    enum { L = 2, H = 2, C = 8, V = 7, T = 5, B = 2 };
    Model m;
    int tokens[B * T], targets[B * T];
    const double h = 1e-5;

    model_init(&m, L, H, C, V, T, B);
    formula_weights(&m);
    formula_batch(0, 0, B, T, V, tokens, targets);
    model_loss(&m, tokens, targets, B, T);
    model_backward(&m, tokens, B, T);
    for (int i = 0; i < m.params; i++) {
        const Param *p = &m.param[i];
        int good = 1;

        for (int j = 0; j < p->size; j++) {
            real *w = &m.w.flat[p->offset + (size_t)j], keep = *w;
            double up, down;

            *w = keep + h;
            up = model_loss(&m, tokens, targets, B, T);
            *w = keep - h;
            down = model_loss(&m, tokens, targets, B, T);
            *w = keep;
            good &= near(m.grad.flat[p->offset + (size_t)j], (up - down) / (2 * h), 2e-9);
        }
        check(good, "%s: gradient equals finite differences, %d elements", p->name, p->size);
    }
    model_free(&m);
}
#endif

static void test_reference_gradient(void)
{
    enum { B = REF_BATCH, T = REF_CONTEXT };
    Model m;
    int tokens[B * T], targets[B * T];

    model_init(&m, REF_LAYERS, REF_HEADS, REF_WIDTH, REF_VOCABULARY, T, B);
    formula_weights(&m);
    formula_batch(0, 0, B, T, REF_VOCABULARY, tokens, targets);
    check(near(model_loss(&m, tokens, targets, B, T), ref_loss, tight), "the loss is PyTorch's");
    model_backward(&m, tokens, B, T);
    check(m.params == (int)(sizeof ref_gradient / sizeof ref_gradient[0]), "as many parameters as PyTorch has");
    for (int i = 0; i < m.params; i++) {
        const real *g = m.grad.flat + m.param[i].offset;
        int n = m.param[i].size, good = strcmp(m.param[i].name, ref_gradient[i].name) == 0;

        good &= near(sqrt((double)row_dot(g, g, n)), ref_gradient[i].norm, tight);
        good &= near((double)g[0], ref_gradient[i].first, tight);
        good &= near((double)g[n / 2], ref_gradient[i].middle, tight);
        good &= near((double)g[n - 1], ref_gradient[i].last, tight);
        check(good, "%s: the gradient is PyTorch's", ref_gradient[i].name);
    }
    model_free(&m);
}

/* A shorter sequence gives what the same tokens give at the start of a longer one: nothing looks ahead. */
static void test_causal(void)
{
    enum { T = 6, V = 7 };
    Model m;
    int tokens[T], targets[T], good = 1;
    real logits[T * V];

    model_init(&m, 2, 2, 8, V, T, 1);
    formula_weights(&m);
    formula_batch(0, 0, 1, T, V, tokens, targets);
    model_forward(&m, tokens, 1, T);
    memcpy(logits, m.logits, sizeof logits);
    for (int t = 1; t < T; t++) {
        model_forward(&m, tokens, 1, t);
        for (int i = 0; i < t * V; i++)
            good &= near_real(m.logits[i], logits[i], 1e-5);
    }
    check(good, "a token does not see what follows it");
    model_free(&m);
}

/* ---- Ten steps ------------------------------------------------------------------------------------------------------- */

/* The first n ranks alone; MPI_COMM_NULL on the others */
static MPI_Comm first_ranks(int n)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank < n ? 0 : MPI_UNDEFINED, world_rank, &comm);
    return comm;
}

static void test_steps(const char *collective, const char *gather, int ranks)
{
    MPI_Comm comm = first_ranks(ranks);
    int good = 1;

    if (comm != MPI_COMM_NULL) {
        Options o = reference_options(collective, gather);
        Trainer t;

        trainer_init(&t, &o, REF_VOCABULARY, comm);
        formula_weights(&t.model);
        share_weights(&t);
        for (int s = 0; s < REF_STEPS; s++) {
            formula_batch(s, t.rank * t.model.B, t.model.B, t.model.T, REF_VOCABULARY, t.tokens, t.targets);
            good &= near(train_step(&t, t.tokens, t.targets, REF_LR), ref_step[s][0], loose);
            good &= near(t.norm, ref_step[s][1], loose);
        }
        arrive(&t.gather, 0, t.model.params, 1);
        for (int i = 0; i < t.model.params; i++) {
            const real *w = t.model.w.flat + t.model.param[i].offset;

            good &= near(sqrt((double)row_dot(w, w, t.model.param[i].size)), ref_weight[i], loose);
        }
        trainer_free(&t);
        MPI_Comm_free(&comm);
    }
    check(good, "%s, %s, ranks: %d: ten steps of AdamW with clipping give PyTorch's losses, norms and weights",
          collective, gather, ranks);
}

/* ---- Whole runs ------------------------------------------------------------------------------------------------------ */

static char text_path[4096], directory[4096];
static double kept; /* of the gradient, by the last run */

/* Sentences by chance, so that there is something to learn */
static void write_text(void)
{
    static const char *const words[] = {"the ",    "residual ", "of ", "a ",  "gradient ", "is ",
                                        "small, ", "and ",      "so ", "it ", "waits.\n",  "na\xc3\xafve "};
    uint64_t random = 7;
    FILE *f;

    if (world_rank != 0)
        return;
    f = fopen(text_path, "w");
    if (f == NULL)
        die("%s: %s", text_path, strerror(errno));
    for (int i = 0; i < 2000; i++)
        fputs(words[random_bits(&random) % (sizeof words / sizeof words[0])], f);
    fclose(f);
}

/* Runs the trainer with these options, a NULL at their end, and a small model; losses get the steps it made. */
static double run(double *losses, MPI_Comm comm, const char *const *options)
{
    const char *argv[64] = {"train_gpt",        "--depth=2",  "--heads=2", "--width=16",
                            "--context=16",     "--batch=12", "--lr=0.01", "--print-every=1000000",
                            "--decay-steps=20", "--warmup=4", text_path};
    int argc = 11;
    Result result = {0, 0, losses};
    Options o;

    while (*options != NULL)
        argv[argc++] = *options++;
    o = parse_options(argc, (char **)(uintptr_t)argv);
    train(&o, comm, &result);
    kept = result.kept;
    return result.val_loss;
}

#define RUN(losses, ...) run(losses, MPI_COMM_WORLD, (const char *const[]){__VA_ARGS__, NULL})

static void remove_checkpoint(void)
{
    char command[5000];

    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0) {
        snprintf(command, sizeof command, "rm -rf '%s'", directory);
        if (system(command) != 0)
            die("%s: cannot be removed", directory);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The same options thrice: twice in one go, once with a stop; at most that share of the gradient is sent */
static void test_runs(const char *collective, const char *first_option, const char *second_option, double most)
{
    double first[20], second[20] = {0}, third[20] = {0}, val, val_second, val_third;
    char title[200];

    snprintf(title, sizeof title, "%s %s %s", collective, first_option, second_option);
    val = RUN(first, "--collective", collective, "--steps=20", first_option, second_option);
    check(kept <= most, "%s: at most %g of the gradient is sent", title, most);
    val_second = RUN(second, "--collective", collective, "--steps=20", first_option, second_option);
    check(memcmp(first, second, sizeof first) == 0 && val == val_second, "%s: a run repeats bit for bit", title);
    check(first[19] < first[0] - 0.3 && val < first[0] - 0.3, "%s: it learns", title);

    remove_checkpoint();
    RUN(third, "--collective", collective, "--steps=11", first_option, second_option, "--checkpoint", directory,
        "--checkpoint-every=4");
    val_third =
        RUN(third, "--collective", collective, "--steps=20", first_option, second_option, "--resume", directory);
    check(memcmp(first, third, sizeof first) == 0 && val == val_third,
          "%s: a run that was stopped and resumed gives the same bits", title);
    remove_checkpoint();
}

/* Nothing but time depends on whether communication overlaps with computation; without loss is without loss. */
static void test_overlap(const char *collective, const char *gather, const char *option)
{
    double with[20], without[20] = {0}, mpi[20] = {0}, val, val_without, val_mpi;

    val = RUN(with, "--collective", collective, "--gather", gather, "--steps=20", option);
    val_without = RUN(without, "--collective", collective, "--gather", gather, "--steps=20", option, "--overlap=no");
    check(memcmp(with, without, sizeof with) == 0 && val == val_without,
          "%s, %s, %s: the same bits with and without overlap", collective, gather, option);
    val_mpi = RUN(mpi, "--collective", collective, "--gather=mpi", "--steps=20", option);
    if (one_of(gather, "mpi native lossless"))
        check(memcmp(with, mpi, sizeof with) == 0 && val == val_mpi, "%s, %s, %s: the bits of MPI_Allgatherv",
              collective, gather, option);
    else
        check(memcmp(with, mpi, sizeof with) != 0 && near(val, val_mpi, 0.05), "%s, %s, %s: near MPI_Allgatherv",
              collective, gather, option);
}

/* A checkpoint of all ranks goes on with any other number of them. */
static void test_other_ranks(void)
{
    double whole[20], part[20] = {0};
    const char *const rest[] = {"--collective=mpi", "--steps=20", "--resume", directory, NULL};

    RUN(whole, "--collective=mpi", "--steps=20");
    RUN(part, "--collective=mpi", "--steps=8", "--checkpoint", directory);
    for (int ranks = 1; ranks <= world_size; ranks++) {
        MPI_Comm comm = first_ranks(ranks);
        int good = 1;

        if (comm != MPI_COMM_NULL) {
            run(part, comm, rest);
            for (int s = 0; s < 20; s++)
                good &= near(part[s], whole[s], 1e-3);
            MPI_Comm_free(&comm);
        }
        check(good, "a checkpoint of %d ranks goes on with %d", world_size, ranks);
    }
    remove_checkpoint();
}

static void test_text(void)
{
    static const int codes[] = {0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF};
    static const char *const bytes[] = {
        "A", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
    int good = 1, code;
    Text t;

    for (int i = 0; i < 8; i++) {
        int length = (int)strlen(bytes[i]);

        good &= utf8_decode((const unsigned char *)bytes[i], (size_t)length, &code) == length && code == codes[i];
        good &= length == 1 || utf8_decode((const unsigned char *)bytes[i], (size_t)length - 1, &code) == 0;
    }
    good &= utf8_decode((const unsigned char *)"\x80", 1, &code) == 0 &&
            utf8_decode((const unsigned char *)"\xc3(", 2, &code) == 0;
    check(good, "UTF-8 is decoded, and what is none is refused");

    text_load(&t, text_path, "char", 16, MPI_COMM_WORLD);
    good = t.symbols == 22 && t.symbol[0] == '\n' && t.symbol[t.symbols - 1] == 0xEF && t.train == t.tokens * 9 / 10;
    for (size_t i = 0; i < t.tokens; i++)
        good &= t.token[i] >= 0 && t.token[i] < t.symbols;
    check(good, "characters: %d symbols, in order, the last tenth kept apart", t.symbols);
    text_free(&t);
    text_load(&t, text_path, "byte", 16, MPI_COMM_WORLD);
    check(t.symbols == 256 && t.symbol[200] == 200, "bytes: 256 symbols");
    text_free(&t);
    check(RUN(NULL, "--vocab=byte", "--steps=10", "--collective=mpi", "--sample=20", "--eval-every=5") < 5.3,
          "bytes are learnt too, and sampled");
}

static void test_schedule(void)
{
    Options o = default_options();
    int good = near(learning_rate(&o, 0), 1e-3 / 101, 1e-12) && near(learning_rate(&o, 100), 1e-3, 1e-12);

    good &= near(learning_rate(&o, 1999), 1e-4, 1e-12) && learning_rate(&o, 1998) > 1e-4;
    for (int s = 101; s < 2000; s++)
        good &= learning_rate(&o, s) < learning_rate(&o, s - 1);
    o.decay_steps = 50; /* over before the warm-up is */
    good &= learning_rate(&o, 101) == o.min_lr;
    check(good, "the learning rate rises, falls in a cosine and ends at its least");
}

static void test_shape(void)
{
    Options o = default_options();
    Trainer t;
    int good = 1;

    o.batch = 12 * world_size;
    trainer_init(&t, &o, 65, MPI_COMM_WORLD);
    check(t.model.size == 804096, "the default model has 804096 parameters with 65 symbols");
    for (int i = 0; i < t.model.params; i++) {
        const int *counts = t.counts + i * world_size;
        int sum = 0;

        for (int r = 0; r < world_size; r++) {
            good &= counts[r] - counts[world_size - 1] <= 1 && counts[r] >= counts[world_size - 1];
            good &= t.displs[i * world_size + r] == sum;
            sum += counts[r];
        }
        good &= sum == t.model.param[i].size;
    }
    check(good, "every parameter is split evenly");
    trainer_free(&t);
}

int main(int argc, char **argv)
{
    const char *where = getenv("TAGC_TEST_DIR");
    int level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    set_threads(1);
    snprintf(text_path, sizeof text_path, "%s/train-text-%d", where ? where : "/tmp", (int)getpid());
    MPI_Bcast(text_path, sizeof text_path, MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(directory, sizeof directory, "%.4000s.checkpoint", text_path);
    write_text();

    test_functions();
#ifdef TRAIN_DOUBLE
    test_differences();
#endif
    test_reference_gradient();
    test_causal();
    test_shape();
    test_schedule();
    for (int ranks = 1; ranks <= world_size && REF_BATCH % ranks == 0; ranks *= 2) {
        test_steps("mpi", "mpi", ranks);
        test_steps("tagc", "lossless", ranks);
    }
    test_text();
    test_runs("mpi", "--seed=3", "--clip=0", 1);
    test_runs("tagc", "--seed=3", "--clip=0", 1);
    /* An algorithm is named because tensors as short as these are not compressed of themselves. */
    test_runs("tagc", "--sparsity=0:0,3:0.8", "--algorithm=direct", 0.4);
    test_runs("tagc", "--sparsity=0.5", "--algorithm=pack", 0.55);
    test_runs("tagc", "--value=int4", "--algorithm=direct", 1);
    test_runs("tagc", "--value=int4", "--gather=int8", 1);
    test_overlap("mpi", "mpi", "--seed=5");
    test_overlap("tagc", "lossless", "--layers=*mlp*:sparsity=0.8,algorithm=direct");
    test_overlap("tagc", "native", "--set=progress=thread");
    test_overlap("tagc", "bfloat16", "--value=int4");
    test_overlap("mpi", "int8", "--seed=5");
    test_other_ranks();

    if (world_rank == 0) {
        unlink(text_path);
        printf("1..%d\n", tests);
    }
    MPI_Finalize();
    return failures > 0;
}
