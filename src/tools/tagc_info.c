/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * tagc_info: what this library is, what it can do here, and what its settings are. Runs without a launcher, and without
 * MPI_Init unless MPI is to be asked. */
#include "config.h"

#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "coll/edge.h"
#include "tagc.h"
#include "tools/report.h"
#include "util/mpi_state.h"
#include "util/settings.h"

#if HAVE_DECL_MPIX_GPU_QUERY_SUPPORT || HAVE_DECL_MPIX_QUERY_CUDA_SUPPORT
#define TAGC_ASKS_MPI 1
#else
#define TAGC_ASKS_MPI 0
#endif

static int trouble; /* exit status: the environment holds a wrong setting, or no backend can run */

static const char usage[] =
    "usage: tagc_info [-v] [-b] [-c] [-s] [-m] [-a] [-r NAME] [--json]\n"
    "  -v, --version        versions: library, API, wire, MPI of the build and of now\n"
    "  -b, --build          how it was built\n"
    "  -c, --config         every setting: value, where it came from, what is allowed, what it does\n"
    "  -s, --support        what runs the kernels here, or why not\n"
    "  -m, --mpi            -s, and whether MPI takes pointers to a device now: starts MPI, as one rank\n"
    "  -a, --algorithms     algorithms, and what they are for\n"
    "  -r, --rule NAME      settings of a tensor of this name: what the layer rules and the environment give\n"
    "  -j, --json           as JSON\n"
    "  -h, --help           this\n"
    "Without any: -v -s -c.\n";

static void versions(void)
{
    char text[64], mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    int version = 0, subversion = 0;
    report_section("version");
    report_value("library", TAGC_VERSION_STRING);
    snprintf(text, sizeof text, "%d", TAGC_API_VERSION);
    report_value("api", text);
    snprintf(text, sizeof text, "%d", TAGC_WIRE_VERSION);
    report_value("wire", text);
    report_value("mpi_built_with", TAGC_BUILD_MPI);
    tagci_mpi_library(mpi);
    report_value("mpi_runs_with", mpi);
    MPI_Get_version(&version, &subversion);
    snprintf(text, sizeof text, "%d.%d", version, subversion);
    report_value("mpi_standard", text);
}

static void build(void)
{
    report_section("build");
    report_value("host", TAGC_BUILD_HOST);
    report_value("compiler", TAGC_BUILD_CC);
    report_value("flags", TAGC_BUILD_CFLAGS);
    report_value("kernels", TAGC_BUILD_SIMD);
#ifdef _OPENMP
    report_value("openmp", "yes");
#else
    report_value("openmp", "no");
#endif
#ifdef HAVE_MPI_LARGE_COUNT
    report_value("large_counts", "yes");
#else
    report_value("large_counts", "no: this MPI has no functions with MPI_Count counts");
#endif
#ifdef TAGC_DEBUG
    report_value("self_checks", "yes");
#else
    report_value("self_checks", "no");
#endif
}

/* Whether the environment's settings can be used; says so if not. */
static int resolve(const char *name, struct tagci_settings *s)
{
    char why[600];
    if (tagci_settings_resolve(name, NULL, s, why, sizeof why) == TAGCI_SETTING_OK)
        return 1;
    fflush(stdout);
    fprintf(stderr, "tagc_info: %s\n", why);
    trouble = 1;
    return 0;
}

static void settings(void)
{
    struct tagci_settings s;
    int ok = resolve(NULL, &s);
    report_section("settings");
    for (int i = 0; i < TAGCI_SETTINGS; i++) {
        char value[TAGCI_PRINT_MAX] = "", allowed[400];
        if (ok)
            tagci_setting_print(&s, i, value, sizeof value);
        snprintf(allowed, sizeof allowed, "Values: %s.", tagci_setting_values(i));
        const struct report_field row[] = {{"value", ok ? value : NULL},
                                           {"source", ok ? tagci_setting_source_name(s.source[i]) : NULL},
                                           {"values", allowed},
                                           {"help", tagci_setting_help(i)}};
        report_row(tagci_setting_name(i), row, 4);
    }
}

static void support(int ask)
{
    struct tagci_settings s;
    const struct tagci_backend *b, *chosen = NULL;
    char reason[200] = "";
    if (resolve(NULL, &s) && !(chosen = tagci_backend_pick(s.backend, reason))) {
        fprintf(stderr, "tagc_info: backend=%s: %s\n", s.backend, reason);
        trouble = 1;
    }
    report_section("backends");
    for (int i = 0; (b = tagci_backend_at(i)); i++) {
        const char *why = b->probe();
        const struct report_field row[] = {{"here", why ? "no" : "yes"},
                                           {"state", why ? why : b->describe()},
                                           {"chosen", b == chosen ? "chosen for buffers in host memory" : NULL}};
        report_row(b->name, row, 3);
    }
    const char *name, *why;
    for (int i = 0; (name = tagci_backend_missing(i, &why)); i++) {
        const struct report_field row[] = {{"here", "no"}, {"state", why}};
        report_row(name, row, 2);
    }
    report_section("device_pointers");
    report_value("mpi", TAGC_ASKS_MPI
                            ? "a running MPI is asked whether it takes them; if it does not, buffers on a device are "
                              "copied through pinned memory"
                            : "this MPI cannot be asked whether it takes them: buffers on a device are copied "
                              "through pinned memory");
    static const char *const kinds[] = {"cuda", "hip"};
    for (int i = 0; i < 2 && ask; i++)
        report_value(kinds[i], tagci_mpi_reaches(kinds[i])
                                   ? "yes: this MPI takes them now"
                                   : "no: this MPI was not built to take them, or has it switched off");
}

static void algorithms(void)
{
    static const struct {
        const char *name, *for_what, *restriction;
    } list[] = {
        {"auto", "the cheapest of the others by a cost model", "short vectors (min_count) go dense"},
        {"dense", "MPI's own collective", "any type, any operation; with a tensor, residual and input travel whole"},
        {"sketch", "merged bitmap, then an additive sketch that MPI reduces",
         "float, double, float16, bfloat16; sum and average; value=native"},
        {"pack", "merged bitmap, then the values of the union, which MPI reduces",
         "float, double, float16, bfloat16; sum and average; value=native"},
        {"direct", "every rank sends every owner its own positions and values",
         "float, double, float16, bfloat16; sum and average; any value"},
        {"hierarchical", "dense inside a node, direct between nodes",
         "as direct; nodes with the same number of ranks, two or more (elsewhere it is direct)"},
    };
    report_section("algorithms");
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        const struct report_field row[] = {
            {"how", list[i].for_what}, {"unused", NULL}, {"restrictions", list[i].restriction}};
        report_row(list[i].name, row, 3);
    }
}

static void rule(const char *name)
{
    struct tagci_settings s;
    char text[600];
    int ok = resolve(name, &s);
    report_section("tensor");
    report_value("name", name);
    if (!ok)
        return;
    tagci_settings_rule(s.layers, name, text, sizeof text);
    report_value("rule", text[0] ? text : "none");
    for (int i = 0; i < TAGCI_SETTINGS; i++) {
        char value[TAGCI_PRINT_MAX];
        tagci_setting_print(&s, i, value, sizeof value);
        const struct report_field row[] = {{"value", value}, {"source", tagci_setting_source_name(s.source[i])}};
        report_row(tagci_setting_name(i), row, 2);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"version", no_argument, NULL, 'v'},    {"build", no_argument, NULL, 'b'},
        {"config", no_argument, NULL, 'c'},     {"support", no_argument, NULL, 's'},
        {"mpi", no_argument, NULL, 'm'},        {"algorithms", no_argument, NULL, 'a'},
        {"rule", required_argument, NULL, 'r'}, {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0}};
    const char *tensor = NULL;
    int wanted[256] = {0}, any = 0, json = 0, c;
    while ((c = getopt_long(argc, argv, "vbcsmar:jh", options, NULL)) != -1) {
        if (c == 'h') {
            fputs(usage, stdout);
            return 0;
        }
        if (c == '?') { /* getopt has said what is wrong */
            fputs(usage, stderr);
            return 2;
        }
        if (c == 'j') {
            json = 1;
            continue;
        }
        if (c == 'r')
            tensor = optarg;
        wanted[c] = any = 1;
    }
    if (optind < argc) {
        fprintf(stderr, "tagc_info: unexpected argument '%s'\n%s", argv[optind], usage);
        return 2;
    }
    if (!any)
        wanted['v'] = wanted['s'] = wanted['c'] = 1;
    report_begin(json);
    if (wanted['v'])
        versions();
    if (wanted['b'])
        build();
    if (wanted['m'])
        MPI_Init(&argc, &argv);
    if (wanted['s'] || wanted['m'])
        support(wanted['m']);
    if (wanted['m'])
        MPI_Finalize();
    if (wanted['a'])
        algorithms();
    if (wanted['c'])
        settings();
    if (wanted['r'])
        rule(tensor);
    report_end();
    return fflush(stdout) || ferror(stdout) ? 1 : trouble;
}
