/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What a tool has to say, as text for people or as JSON: sections of rows, a row being a name and some fields. */
#ifndef TAGCI_TOOLS_REPORT_H
#define TAGCI_TOOLS_REPORT_H

struct report_field {
    const char *name, *value; /* name: JSON only. value NULL: not there */
};

void report_begin(int json);
void report_section(const char *name);
/* Text: the first field stands beside the row's name, the second behind it, others on lines of their own. */
void report_row(const char *name, const struct report_field *fields, int n);
void report_value(const char *name, const char *value); /* a row of one value */
void report_end(void);

#endif
