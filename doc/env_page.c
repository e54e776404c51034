/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Prints the manual page tagc_env(7) from the table of settings. doc/check-env compares it with the page in the tree. */
#include <ctype.h>
#include <stdio.h>

#include "util/settings.h"

/* A line of text for troff: backslashes and hyphens as they are, no request at its start. */
static void text(const char *s)
{
    if (*s == '.' || *s == '\'')
        fputs("\\&", stdout);
    for (; *s; s++) {
        if (*s == '\\')
            fputs("\\e", stdout);
        else if (*s == '-')
            fputs("\\-", stdout);
        else
            putchar(*s);
    }
    putchar('\n');
}

int main(void)
{
    puts(".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
         ".\\\" Copyright (c) the TAGC authors\n"
         ".\\\" Made from the table of settings: do not edit, run make update-env\n"
         ".TH tagc_env 7 \"\" \"TAGC 0.1\" \"TAGC\"\n"
         ".SH NAME\n"
         "tagc_env \\- settings of TAGC: environment variables and info keys\n"
         ".SH DESCRIPTION\n"
         "A setting\n"
         ".I name\n"
         "is the environment variable\n"
         ".BI TAGC_ NAME\n"
         "and the info key\n"
         ".BI tagc_ name\n"
         "of\n"
         ".BR TAGC_Tensor_create (3).\n"
         "What decides is, from the first to the last: the environment; a rule of\n"
         ".B layers\n"
         "that the user wrote; the info of the tensor; the built\\-in rules\n"
         ".BR transformer ;\n"
         "the default.\n"
         ".PP\n"
         "An unknown variable or key of these names, or a value that a setting does not take, is an error that says "
         "what\n"
         "is allowed. An empty variable counts as unset. Variables that begin with\n"
         ".B TAGC_TEST_\n"
         "belong to the tests of the library. A call without a tensor never drops or rounds a value, whatever the\n"
         "environment says.\n"
         ".PP\n"
         ".BR tagc_info (1)\n"
         "prints every setting with its value and where it came from.\n"
         ".SH SETTINGS\n"
         "The first value is the default, unless another is named.");
    for (int i = 0; i < TAGCI_SETTINGS; i++) {
        const char *name = tagci_setting_name(i);
        fputs(".TP\n.BI TAGC_", stdout);
        for (const char *p = name; *p; p++)
            putchar(toupper((unsigned char)*p));
        printf("\\fR, \" tagc_\" \"%s\"\n", name);
        fputs("Values: ", stdout);
        text(tagci_setting_values(i));
        puts(".br");
        text(tagci_setting_help(i));
        if (i == TAGCI_SET_MIN_COUNT)
            printf("Default: %d.\n", TAGCI_MIN_COUNT_DEFAULT);
    }
    puts(".SH EXAMPLES\n"
         "Hold back 95 % of the feed\\-forward matrices, send attention in four bits, the rest as the built\\-in rules "
         "say:\n"
         ".PP\n"
         ".nf\n"
         "TAGC_LAYERS='*mlp*:sparsity=0.95;*attn*:value=int4;transformer'\n"
         ".fi\n"
         ".PP\n"
         "Compare every result with MPI's own:\n"
         ".PP\n"
         ".nf\n"
         "TAGC_VERIFY=report\n"
         ".fi\n"
         ".SH SEE ALSO\n"
         ".BR TAGC_Tensor_create (3),\n"
         ".BR tagc_info (1),\n"
         ".BR tagc (7)");
    return 0;
}
