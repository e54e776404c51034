/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "util/costs.h"

#include <errno.h>
#include <string.h>

#include "util/settings_table.h"

/* Measured by tagc_bench tune: two ranks of one core each in a 2020s x86 server, and links of 10 Gbit/s. */
const struct tagci_costs tagci_costs_builtin = {
    .select = 1.0e-9,
    .encode = 1.05e-9,
    .decode = 0.52e-9,
    .round = 2.2e-9,
    .compress = 1.0e-9,
    .decompress = 0.25e-9,
    .node = {0.5e-6, 0.15e-9, 0.7e-9},
    .network = {9e-6, 1.0e-9, 1.4e-9},
};

static const struct {
    const char *name;
    size_t offset;
} names[] = {
    {"kernel.select", offsetof(struct tagci_costs, select)},
    {"kernel.encode", offsetof(struct tagci_costs, encode)},
    {"kernel.decode", offsetof(struct tagci_costs, decode)},
    {"kernel.round", offsetof(struct tagci_costs, round)},
    {"kernel.compress", offsetof(struct tagci_costs, compress)},
    {"kernel.decompress", offsetof(struct tagci_costs, decompress)},
    {"node.message", offsetof(struct tagci_costs, node.message)},
    {"node.byte", offsetof(struct tagci_costs, node.byte)},
    {"node.dense", offsetof(struct tagci_costs, node.dense)},
    {"network.message", offsetof(struct tagci_costs, network.message)},
    {"network.byte", offsetof(struct tagci_costs, network.byte)},
    {"network.dense", offsetof(struct tagci_costs, network.dense)},
};

static int take_line(char *line, struct tagci_costs *costs)
{
    char *save, *name, *value;
    line[strcspn(line, "#\n")] = 0;
    if (!(name = strtok_r(line, " \t\r", &save)))
        return 0;
    if (!(value = strtok_r(NULL, " \t\r", &save)) || strtok_r(NULL, " \t\r", &save))
        return -1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double x;
        if (strcmp(name, names[i].name) != 0)
            continue;
        if (tagci_read_number(value, strlen(value), &x) || !(x > 0 && x < 1))
            return -1;
        *(double *)((char *)costs + names[i].offset) = x;
        return 0;
    }
    return -1;
}

int tagci_costs_read(const char *path, struct tagci_costs *costs, char *why, size_t size)
{
    char line[256];
    FILE *f = fopen(path, "r");
    if (!f) {
        snprintf(why, size, "it cannot be read: %s", strerror(errno));
        return -1;
    }
    *costs = tagci_costs_builtin;
    int number = 0, bad = 0;
    while (!bad && fgets(line, sizeof line, f)) {
        size_t length = strlen(line);
        number++;
        bad = length == 0 || (line[length - 1] != '\n' && !feof(f)) || take_line(line, costs);
    }
    if (bad)
        snprintf(why, size, "its line %d is no \"NAME SECONDS\" that tagc_bench tune writes", number);
    else if ((bad = ferror(f)))
        snprintf(why, size, "it cannot be read");
    fclose(f);
    return bad ? -1 : 0;
}

void tagci_costs_write(FILE *f, const struct tagci_costs *costs)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fprintf(f, "%-18s %.4g\n", names[i].name, *(const double *)((const char *)costs + names[i].offset));
}
