/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * tagc_bench reduce_scatter, allreduce, ...: a collective beside MPI's own, in pairs of alternating runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "coll/select.h"
#include "tools/bench.h"
#include "tools/bench_mpi.h"

enum { MOST_PAIRS = 1000, MOST_ROWS = 64 };

/* One line of the table. */
struct row {
    double bytes, mpi, tagc, ratio, low, high; /* seconds of a call; the middle half of the ratios */
    double sent, bound, kept, together, error; /* bytes of an element; shares kept by a rank, by any */
    double wire;                               /* bytes of an element on the interface */
    int algorithm, reason;
    const char *verdict; /* of the check, or NULL */
};

static const char *algorithm_name(int id)
{
    static const char *const names[] = {"?", "dense", "sketch", "pack", "direct", "hierarchical", "local", "coded"};
    return names[id > 0 && id <= TAGC_ALGORITHM_CODED ? id : 0];
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int n, double q)
{
    double at = q * (n - 1);
    int i = (int)at;
    return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[i];
}

/* ---- measuring ---- */

/* Seconds of one call, the slowest rank's; calls in a row where one is too short to be timed. */
static double timed(struct bench_case *b, void (*call)(struct bench_case *, int), int first, int calls)
{
    double seconds = 0;
    for (int i = 0; i < calls; i++) {
        bench_prepare(b, first + i);
        if (i == 0 || b->o->in_place || b->o->persistent)
            MPI_Barrier(MPI_COMM_WORLD);
        double t = MPI_Wtime();
        call(b, first + i);
        seconds += MPI_Wtime() - t;
    }
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds / calls;
}

/* Bytes that an interface of this host has sent, -1: there is none. */
static double interface_bytes(const char *name)
{
    char path[256];
    double bytes = -1;
    snprintf(path, sizeof path, "/sys/class/net/%.64s/statistics/tx_bytes", name ? name : "");
    FILE *f = name ? fopen(path, "r") : NULL;
    if (f) {
        if (fscanf(f, "%lf", &bytes) != 1)
            bytes = -1;
        fclose(f);
    }
    return bytes;
}

/* Bits of an element that say whether it is kept, at least. */
static double entropy(double p)
{
    return p <= 0 || p >= 1 ? 0 : -(p * log2(p) + (1 - p) * log2(1 - p));
}

/* Least bytes of an element and rank: with all others silent, the owner has to learn positions and values of one. Of a
 * gather, 0: what can be saved is in the data. */
static double bound(const struct bench_case *b, const struct row *r)
{
    static const double form[TAGCI_VALUES] = {0, 2, 2, 1 + 2.0 / 128, 0.5 + 2.0 / 128, 0.2 + 2.0 / 128};
    struct tagci_tensor *t = b->tensor == TAGC_TENSOR_NULL ? NULL : tagci_tensor_of(b->tensor);
    int value = t && r->algorithm != TAGC_ALGORITHM_DENSE ? t->settings.value : TAGCI_VALUE_NATIVE;
    if (tagci_is_gather(b->o->what))
        return 0;
    double remote = (b->ranks - 1.0) / b->ranks, width = value == TAGCI_VALUE_NATIVE ? (double)b->width : form[value];
    double bytes = entropy(r->kept) / 8 + r->kept * width;
    if (b->o->what == TAGCI_ALLREDUCE)
        bytes += entropy(r->together) / 8 + r->together * (double)b->width;
    return remote * bytes;
}

static double mean(double x, int ranks)
{
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return x / ranks;
}

/* Calls in a row so that a run takes two milliseconds; the same on all ranks, as the time is. */
static int calls_of(double seconds)
{
    double calls = ceil(2e-3 / (seconds > 1e-9 ? seconds : 1e-9));
    return calls < 1 ? 1 : calls > 1000 ? 1000 : (int)calls;
}

static void measure(struct bench_case *b, struct row *r)
{
    const struct bench_options *o = b->o;
    static double mpi[MOST_PAIRS], tagc[MOST_PAIRS], ratio[MOST_PAIRS];
    int call = 0, calls;
    r->verdict = o->unchecked ? NULL : bench_check(b, call++, &r->error);
    for (int again = 0; again < 2 && o->verify && !r->verdict; again++) { /* with what the first call left behind */
        double unused;
        r->verdict = bench_check(b, call++, &unused);
    }
    if (!o->alone)
        timed(b, bench_call_mpi, 0, 1);
    for (int i = 0; i < o->warmup; i++, call++)
        timed(b, bench_call_tagc, call, 1);
    calls = o->calls;
    if (!calls) {
        double once = timed(b, bench_call_tagc, call++, 1);
        calls = calls_of(o->alone ? once : fmin(once, timed(b, bench_call_mpi, 0, 1)));
    }
    double sent = bench_stat(b->tensor, TAGC_STAT_BYTES_SENT), wire = 0;
    int from = call;
    for (int i = 0; i < o->pairs; i++) {
        mpi[i] = o->alone ? 0 : timed(b, bench_call_mpi, i, calls);
        double before = interface_bytes(o->interface);
        tagc[i] = timed(b, bench_call_tagc, call, calls);
        wire += interface_bytes(o->interface) - before;
        ratio[i] = mpi[i] / tagc[i];
        call += calls;
    }
    double all = (double)(call - from) * (double)(b->n ? b->n : 1);
    r->sent = mean(bench_stat(b->tensor, TAGC_STAT_BYTES_SENT) - sent, b->ranks) / all;
    r->wire = mean(wire, b->ranks) / all;
    r->kept = mean(bench_stat(b->tensor, TAGC_STAT_DENSITY), b->ranks);
    r->together = mean(bench_stat(b->tensor, TAGC_STAT_UNION_DENSITY), b->ranks);
    r->algorithm = (int)bench_stat(b->tensor, TAGC_STAT_ALGORITHM);
    r->reason = (int)bench_stat(b->tensor, TAGC_STAT_REASON);
    r->bound = bound(b, r);
    qsort(mpi, (size_t)o->pairs, sizeof *mpi, rising);
    qsort(tagc, (size_t)o->pairs, sizeof *tagc, rising);
    qsort(ratio, (size_t)o->pairs, sizeof *ratio, rising);
    r->bytes = (double)(b->n * b->width);
    r->mpi = quantile(mpi, o->pairs, 0.5);
    r->tagc = quantile(tagc, o->pairs, 0.5);
    r->ratio = quantile(ratio, o->pairs, 0.5);
    r->low = quantile(ratio, o->pairs, 0.25);
    r->high = quantile(ratio, o->pairs, 0.75);
}

/* ---- reporting ---- */

/* A gain that the spread of the runs does not reach is none. */
static const char *gain(const struct bench_options *o, const struct row *r)
{
    return o->alone ? "" : r->low > 1 ? "gain" : r->high < 1 ? "slower" : "no gain";
}

static void head(const struct bench_options *o, int ranks)
{
    static const char *const kinds[] = {"gauss", "laplace", "real"};
    char version[MPI_MAX_LIBRARY_VERSION_STRING], host[MPI_MAX_PROCESSOR_NAME], reason[200];
    int length;
    MPI_Get_library_version(version, &length);
    MPI_Get_processor_name(host, &length);
    version[strcspn(version, "\n")] = 0;
    const char *threads = getenv("OMP_NUM_THREADS");
    const struct tagci_backend *backend = tagci_backend_pick("auto", reason);
    printf("# tagc_bench %s: %s of %s, %s data; %d ranks, first on %s; OMP_NUM_THREADS=%s; %s (%s); %s\n", o->name,
           tagci_type_name(o->type), o->no_tensor ? "no tensor" : "a tensor", kinds[o->kind], ranks, host,
           threads ? threads : "unset", backend ? backend->name : "none", backend ? backend->describe() : reason,
           version);
    int n = 0;
    MPI_Info_get_nkeys(o->info, &n);
    for (int i = 0; i < n; i++) {
        char key[MPI_MAX_INFO_KEY + 1], value[1025];
        int flag;
        MPI_Info_get_nthkey(o->info, i, key);
        MPI_Info_get(o->info, key, 1024, value, &flag);
        printf("# %s=%s\n", key + 5, value);
    }
    if (o->csv)
        printf(
            "bytes,mpi_us,tagc_us,ratio,ratio_low,ratio_high,gain,bytes_per_element,bound,interface,kept,union,error,"
            "algorithm,reason,check\n");
    else
        printf("# %10s %11s %11s %7s %15s %8s %8s %8s%s %7s %9s  %s\n", "bytes", "MPI us", "TAGC us", "ratio",
               "middle half", "", "B/elem", "bound", o->interface ? "     wire" : "", "kept", "error", "algorithm");
    fflush(stdout);
}

static void report(const struct bench_options *o, const struct row *r)
{
    const char *why = tagci_reason(r->reason), *judged = r->verdict ? r->verdict : o->verify ? "verified" : "";
    if (o->csv) {
        printf("%.0f,%.6g,%.6g,%.4f,%.4f,%.4f,%s,%.6f,%.6f,%.6f,%.6f,%.6f,%.3g,%s,%s,%s\n", r->bytes, 1e6 * r->mpi,
               1e6 * r->tagc, r->ratio, r->low, r->high, gain(o, r), r->sent, r->bound, r->wire, r->kept, r->together,
               r->error, algorithm_name(r->algorithm), why, judged);
    } else {
        char wire[32] = "", least[32] = "-";
        if (r->bound > 0)
            snprintf(least, sizeof least, "%.4f", r->bound);
        if (o->interface)
            snprintf(wire, sizeof wire, " %8.4f", r->wire);
        printf("  %10.0f %11.1f %11.1f %7.2f %7.2f %7.2f %8s %8.4f %8s%s %7.4f %9.2e  %s: %s%s%s\n", r->bytes,
               1e6 * r->mpi, 1e6 * r->tagc, r->ratio, r->low, r->high, gain(o, r), r->sent, least, wire, r->kept,
               r->error, algorithm_name(r->algorithm), why, judged[0] ? "; " : "", judged);
    }
    fflush(stdout);
}

/* By gnuplot; the picture's form is that of its name's end. 0, or -1 after it has said why. */
static int plot(const struct bench_options *o, const struct row *row, int rows)
{
    const char *dot = strrchr(o->plot, '.');
    const char *form = !dot ? "" : !strcmp(dot, ".svg") ? "svg" : !strcmp(dot, ".pdf") ? "pdfcairo" : "png";
    FILE *p = popen("gnuplot", "w");
    if (!p)
        return -1;
    fprintf(p,
            "set terminal %s size 800,500\nset output '%s'\nset logscale xy\nset logscale x 2\nset logscale y2\n"
            "set xlabel 'bytes'\nset ylabel 'us'\nset y2label 'ratio'\nset y2tics\nset key left top\nset grid\n"
            "$rows << END\n",
            !strcmp(form, "pdfcairo") ? "pdfcairo"
            : form[0]                 ? form
                                      : "png",
            o->plot);
    for (int i = 0; i < rows; i++)
        fprintf(p, "%.0f %g %g %g %g %g\n", row[i].bytes, 1e6 * row[i].mpi, 1e6 * row[i].tagc, row[i].ratio, row[i].low,
                row[i].high);
    fprintf(p, "END\nplot $rows using 1:2 with linespoints title 'MPI', $rows using 1:3 with linespoints title 'TAGC', "
               "$rows using 1:4:5:6 axes x1y2 with yerrorlines title 'ratio'\n");
    if (pclose(p) == 0)
        return 0;
    fprintf(stderr, "tagc_bench: gnuplot made no picture %s\n", o->plot);
    return -1;
}

/* ---- options ---- */

static int usage(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fputs("usage: tagc_bench reduce_scatter|reduce_scatter_block|allreduce|allgather|allgatherv [option ...]\n"
              "                  [NAME=VALUE ...]\n"
              "  -b BYTES       of the shortest vector (64k); sizes double up to\n"
              "  -e BYTES       the longest (16m, or of real data the file's); with k, m or g\n"
              "  -t TYPE        float, float16, bfloat16 or double\n"
              "  -n PAIRS       of runs, MPI and TAGC by turns (9)\n"
              "  -w CALLS       first, to warm up (3)\n"
              "  -c CALLS       in a row, in a run (as many as take 2 ms)\n"
              "  -i, -p         in place; persistent\n"
              "  --data KIND    gauss, laplace, or real FILE[,FILE ...]: raw floats, taken in turns; rank0 in a name\n"
              "                 becomes the rank\n"
              "  --no-tensor    calls without a tensor\n"
              "  --alone        without MPI's own call beside it\n"
              "  --no-check     without the call before the others that tells the error\n"
              "  --verify       results and residuals have to add up; exit status 1 if they do not\n"
              "  --interface IF bytes that the network interface IF of each host has sent\n"
              "  --csv          values separated by commas\n"
              "  --plot FILE    a picture, by gnuplot (.png, .svg, .pdf)\n"
              "NAME=VALUE: settings of the tensor, as in tagc_env(7) without TAGC_.\n",
              stderr);
    return 2;
}

static int read_size(const char *text, size_t *bytes)
{
    char *end;
    double x = text ? strtod(text, &end) : 0;
    if (!(x >= 1 && x <= 0x1p40))
        return -1;
    x *= *end == 'k' ? 1024 : *end == 'm' ? 1048576 : *end == 'g' ? 1073741824 : 1;
    *bytes = (size_t)x;
    return *end && (strspn(end, "kmg") != 1 || end[1]) ? -1 : 0;
}

static int read_count(const char *text, int least, int most, int *n)
{
    char *end;
    long x = text ? strtol(text, &end, 10) : -1;
    *n = (int)x;
    return !text || *end || x < least || x > most ? -1 : 0;
}

static int read_type(const char *text, enum tagci_type *type)
{
    for (int t = 0; text && t < TAGCI_TYPES; t++)
        if (!strcmp(text, tagci_type_name((enum tagci_type)t))) {
            *type = (enum tagci_type)t;
            return 0;
        }
    return -1;
}

/* KIND, and with real the files behind it: how many arguments that were, or 0. */
static int read_data(struct bench_options *o, int argc, char **argv)
{
    if (argc < 1)
        return 0;
    if (!strcmp(argv[0], "gauss") || !strcmp(argv[0], "laplace")) {
        o->kind = argv[0][0] == 'g' ? BENCH_GAUSS : BENCH_LAPLACE;
        return 1;
    }
    if (strcmp(argv[0], "real") != 0 || argc < 2)
        return 0;
    o->kind = BENCH_REAL;
    o->files = 0;
    for (char *name = strtok(argv[1], ","); name && o->files < BENCH_FILES; name = strtok(NULL, ","))
        o->file[o->files++] = name;
    return o->files ? 2 : 0;
}

static int read_options(struct bench_options *o, int argc, char **argv)
{
    static const struct {
        const char *name;
        size_t offset;
    } switches[] = {
        {"-i", offsetof(struct bench_options, in_place)},           {"-p", offsetof(struct bench_options, persistent)},
        {"--no-tensor", offsetof(struct bench_options, no_tensor)}, {"--alone", offsetof(struct bench_options, alone)},
        {"--verify", offsetof(struct bench_options, verify)},       {"--csv", offsetof(struct bench_options, csv)},
        {"--no-check", offsetof(struct bench_options, unchecked)},
    };
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL, *is = strchr(a, '=');
        int known = 0, bad = 0;
        for (size_t s = 0; s < sizeof switches / sizeof *switches && !known; s++)
            if (!strcmp(a, switches[s].name))
                known = *(int *)((char *)o + switches[s].offset) = 1;
        if (known)
            continue;
        if (a[0] != '-' && is && is - a < 40) {
            char key[64];
            snprintf(key, sizeof key, "tagc_%.*s", (int)(is - a), a);
            MPI_Info_set(o->info, key, is + 1);
            continue;
        }
        if (!strcmp(a, "--data")) {
            int took = read_data(o, argc - i - 1, argv + i + 1);
            bad = !took;
            i += took;
        } else {
            bad = !strcmp(a, "-b")            ? read_size(value, &o->from)
                  : !strcmp(a, "-e")          ? read_size(value, &o->to)
                  : !strcmp(a, "-t")          ? read_type(value, &o->type)
                  : !strcmp(a, "-n")          ? read_count(value, 1, MOST_PAIRS, &o->pairs)
                  : !strcmp(a, "-w")          ? read_count(value, 0, 1000000, &o->warmup)
                  : !strcmp(a, "-c")          ? read_count(value, 1, 1000, &o->calls)
                  : !strcmp(a, "--interface") ? !(o->interface = value)
                  : !strcmp(a, "--plot")      ? !(o->plot = value)
                                              : 1;
            i++;
        }
        if (bad)
            return -1;
    }
    return 0;
}

static int run(struct bench_options *o)
{
    static struct row row[MOST_ROWS];
    int rank, ranks, rows = 0, failed = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t width = tagci_type_size(o->type), file = o->kind == BENCH_REAL ? bench_file_elements(o, 0) * width : 0;
    if (o->kind == BENCH_REAL && !file)
        return 1;
    o->from = o->from ? o->from : file ? file : 64 << 10;
    o->to = o->to ? o->to : file ? file : (size_t)16 << 20;
    o->to = o->to > o->from ? o->to : o->from;
    if (o->to / width > (size_t)1 << 31) {
        if (rank == 0)
            fputs("tagc_bench: at most 2^31 elements\n", stderr);
        return 1;
    }
    if (rank == 0)
        head(o, ranks);
    for (size_t bytes = o->from; bytes <= o->to && rows < MOST_ROWS; bytes *= 2, rows++) {
        struct bench_case b;
        if (bench_case_make(&b, o, (bytes + width - 1) / width))
            return 1;
        measure(&b, &row[rows]);
        bench_case_free(&b);
        failed |= row[rows].verdict != NULL;
        if (rank == 0)
            report(o, &row[rows]);
    }
    if (o->plot && rank == 0)
        failed |= plot(o, row, rows) != 0;
    return failed;
}

int bench_collective(int argc, char **argv)
{
    static const struct {
        const char *name;
        enum tagci_collective what;
    } all[] = {{"reduce_scatter", TAGCI_REDUCE_SCATTER},
               {"reduce_scatter_block", TAGCI_REDUCE_SCATTER_BLOCK},
               {"allreduce", TAGCI_ALLREDUCE},
               {"allgather", TAGCI_ALLGATHER},
               {"allgatherv", TAGCI_ALLGATHERV}};
    struct bench_options o = {.pairs = 9, .warmup = 3, .type = TAGCI_F32};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(argv[0], all[i].name)) {
            o.what = all[i].what;
            o.name = all[i].name;
        }
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Info_create(&o.info);
    int status = read_options(&o, argc, argv) ? usage() : run(&o);
    MPI_Info_free(&o.info);
    MPI_Finalize();
    return status;
}
