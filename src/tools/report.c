/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "tools/report.h"

#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH = 16, LINE = 100, INDENT = 6 };

static int json, sections, rows;

/* Bytes of the UTF-8 character at s; 0 if it is none. */
static int utf8(const unsigned char *s)
{
    int n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))) ||
        (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))))
        return 0;
    return n;
}

static void json_string(const char *text)
{
    putchar('"');
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        int n = utf8(s);
        if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            printf("\\u%04x", *s);
        else if (n == 0) /* no text in any JSON reader's sense */
            fputs("\\ufffd", stdout);
        else
            fwrite(s, 1, (size_t)n, stdout);
        s += n ? n : 1;
    }
    putchar('"');
}

void report_begin(int as_json)
{
    json = as_json;
    sections = rows = 0;
    if (json)
        putchar('{');
}

static void close_section(void)
{
    if (json && sections)
        fputs(rows ? "\n  }" : "}", stdout);
}

void report_section(const char *name)
{
    close_section();
    if (json) {
        fputs(sections ? ",\n  " : "\n  ", stdout);
        json_string(name);
        fputs(": {", stdout);
    } else {
        printf("%s%s\n", sections ? "\n" : "", name);
    }
    sections++;
    rows = 0;
}

static void json_row(const char *name, const struct report_field *fields, int n)
{
    fputs(rows++ ? ",\n    " : "\n    ", stdout);
    json_string(name);
    fputs(": ", stdout);
    if (n == 1 && !fields[0].name) {
        json_string(fields[0].value);
        return;
    }
    putchar('{');
    for (int i = 0, any = 0; i < n; i++) {
        if (!fields[i].value)
            continue;
        if (any++)
            fputs(", ", stdout);
        json_string(fields[i].name);
        fputs(": ", stdout);
        json_string(fields[i].value);
    }
    putchar('}');
}

/* A text of any length on indented lines, broken at blanks. */
static void paragraph(const char *text)
{
    while (*text) {
        size_t n = strlen(text);
        if (n > LINE - INDENT)
            for (n = LINE - INDENT; n > 1 && text[n] != ' ';)
                n--;
        if (n <= 1)
            n = strlen(text);
        printf("%*s%.*s\n", INDENT, "", (int)n, text);
        text += n;
        text += strspn(text, " ");
    }
}

void report_row(const char *name, const struct report_field *fields, int n)
{
    if (json) {
        json_row(name, fields, n);
        return;
    }
    printf("  %-*s %s", NAME_WIDTH, name, n > 0 && fields[0].value ? fields[0].value : "");
    if (n > 1 && fields[1].value)
        printf("  (%s)", fields[1].value);
    putchar('\n');
    for (int i = 2; i < n; i++)
        if (fields[i].value)
            paragraph(fields[i].value);
}

void report_value(const char *name, const char *value)
{
    const struct report_field field = {NULL, value};
    report_row(name, &field, 1);
}

void report_end(void)
{
    close_section();
    if (json)
        fputs("\n}\n", stdout);
}
