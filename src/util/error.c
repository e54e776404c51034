/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * MPI cannot take back an error code, so their number is bounded: when the ring is full, the oldest code of the same
 * class gets the new text.
 *
 * A code carries its class. For the library's own classes that is a class added to MPI. For MPI's classes it is MPI's own
 * where a code of it can be given a text (Open MPI); MPICH (seen with 4.0.2) makes such a code but then shows a text of
 * its own internals for it, so there a class is added that stands for MPI's, and MPI_Error_string is right while
 * MPI_Error_class gives the added class. TAGC_Error_class is right everywhere. */
#include "util/error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tagc.h"
#include "util/mpi_state.h"

enum { CODES = 512, CLASSES = 64, OWN_FIRST = TAGC_ERR_MISMATCH, OWN_LAST = TAGC_ERR_FILE };

struct code {
    int code, class;
    uint64_t made; /* when its text was set */
    char text[TAGC_MAX_ERROR_STRING];
};
struct class
{
    int class;     /* TAGC_ERR_... or MPI's */
    int mpi_class; /* what MPI knows it as */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct code codes[CODES];
static int ncodes;
static uint64_t clock_now;
static struct class classes[CLASSES];
static int nclasses;
static int mpi_texts = -1; /* whether codes of MPI's own classes can have texts; -1: not tried */

static const char *const own_text[] = {
    "the ranks do not agree",
    "unknown setting, or a value that it does not take",
    "invalid tensor, or one that does not fit this call",
    "invalid request",
    "an operation on this tensor is in flight",
    "the backend asked for is not available",
    "a message arrived damaged",
    "not supported by this version, this build or this MPI",
    "a file could not be read or written, or holds something else",
};

static int is_own(int class)
{
    return class >= OWN_FIRST && class <= OWN_LAST;
}

static void copy_cut(char *to, size_t size, const char *from)
{
    size_t n = strlen(from);
    if (n >= size)
        n = size - 1;
    memcpy(to, from, n);
    to[n] = 0;
}

/* MPI's limit on texts may be smaller than ours. */
static void attach(int code, const char *text)
{
    char cut[MPI_MAX_ERROR_STRING];
    copy_cut(cut, sizeof cut, text);
    MPI_Add_error_string(code, cut);
}

static int try_mpi_texts(void)
{
    static const char text[] = "TAGC: invalid argument";
    char back[MPI_MAX_ERROR_STRING];
    int code, len = 0;
    if (MPI_Add_error_code(MPI_ERR_ARG, &code) != MPI_SUCCESS || MPI_Add_error_string(code, text) != MPI_SUCCESS ||
        MPI_Error_string(code, back, &len) != MPI_SUCCESS)
        return 0;
    return strcmp(back, text) == 0;
}

/* MPI's name for the class, added if need be; -1 if MPI has no more room. */
static int class_in_mpi(int class)
{
    int own = is_own(class);
    if (!own) {
        if (mpi_texts < 0)
            mpi_texts = try_mpi_texts();
        if (mpi_texts)
            return class;
    }
    for (int i = 0; i < nclasses; i++)
        if (classes[i].class == class)
            return classes[i].mpi_class;
    int added;
    if (nclasses == CLASSES || MPI_Add_error_class(&added) != MPI_SUCCESS)
        return -1;
    classes[nclasses++] = (struct class){class, added};
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;
    if (own)
        snprintf(text, sizeof text, "TAGC: %s", own_text[class - OWN_FIRST]);
    else
        MPI_Error_string(class, text, &len);
    attach(added, text);
    return added;
}

/* A code of this class without a text of its own. */
static int bare(int class)
{
    if (!is_own(class))
        return class;
    for (int i = 0; i < nclasses; i++)
        if (classes[i].class == class)
            return classes[i].mpi_class;
    return MPI_ERR_OTHER;
}

/* Place in the ring for a new text, with its code and class filled in; NULL if there is none. */
static struct code *place_for(int class)
{
    int mine = 0; /* codes of this class: no class may keep the others from having some */
    for (int i = 0; i < ncodes; i++)
        mine += codes[i].class == class;
    if (ncodes < CODES / 2 || (ncodes < CODES && mine < CODES / 32)) {
        int mpi_class = class_in_mpi(class);
        int code;
        if (mpi_class >= 0 && MPI_Add_error_code(mpi_class, &code) == MPI_SUCCESS) {
            codes[ncodes].code = code;
            codes[ncodes].class = class;
            return &codes[ncodes++];
        }
    }
    struct code *oldest = NULL;
    for (int i = 0; i < ncodes; i++)
        if (codes[i].class == class && (!oldest || codes[i].made < oldest->made))
            oldest = &codes[i];
    return oldest;
}

int tagci_error(int class, const char *format, ...)
{
    char text[TAGC_MAX_ERROR_STRING];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);

    int up = tagci_mpi_is_up();
    pthread_mutex_lock(&lock);
    struct code *c = NULL;
    for (int i = 0; i < ncodes && !c; i++)
        if (codes[i].class == class && strcmp(codes[i].text, text) == 0)
            c = &codes[i];
    if (!c && up && (c = place_for(class)) != NULL) {
        memcpy(c->text, text, sizeof text);
        c->made = ++clock_now;
        attach(c->code, text);
    }
    int code = c ? c->code : bare(class);
    pthread_mutex_unlock(&lock);
    return code;
}

int tagci_error_raise(MPI_Comm comm, int code)
{
    if (code != MPI_SUCCESS && tagci_mpi_is_up())
        MPI_Comm_call_errhandler(comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm, code);
    return code;
}

/* A code that MPI may be asked about: with others MPICH (4.0.2) looks outside of its tables. */
static int is_mpi_s(int code)
{
    int *last, flag = 0;
    if (code < 0 || !tagci_mpi_is_up() || MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag) || !flag)
        return 0;
    int most = code;
#ifdef MPICH_VERSION
    MPI_Error_class(code, &most); /* there it is the last class; a code's is a part of it, and no table is looked at */
#endif
    return code <= *last || most <= *last;
}

int tagci_error_class(int code)
{
    if (code == MPI_SUCCESS || is_own(code))
        return code;
    int class = MPI_SUCCESS;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < ncodes && class == MPI_SUCCESS; i++)
        if (codes[i].code == code)
            class = codes[i].class;
    for (int i = 0; i < nclasses && class == MPI_SUCCESS; i++)
        if (classes[i].mpi_class == code)
            class = classes[i].class;
    pthread_mutex_unlock(&lock);
    if (class != MPI_SUCCESS)
        return class;
    if (is_mpi_s(code) && MPI_Error_class(code, &class) == MPI_SUCCESS)
        return class;
    return code > 0 && code < MPI_ERR_LASTCODE ? code : MPI_ERR_UNKNOWN;
}

void tagci_error_text(int code, char *text)
{
    int found = 0;
    text[0] = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < ncodes && !found; i++)
        if (codes[i].code == code) {
            memcpy(text, codes[i].text, TAGC_MAX_ERROR_STRING);
            found = 1;
        }
    pthread_mutex_unlock(&lock);
    if (found)
        return;
    int class = tagci_error_class(code);
    if (is_own(class)) {
        snprintf(text, TAGC_MAX_ERROR_STRING, "TAGC: %s", own_text[class - OWN_FIRST]);
    } else if (is_mpi_s(code)) {
        char full[MPI_MAX_ERROR_STRING + 1] = "";
        int len = 0;
        MPI_Error_string(code, full, &len);
        copy_cut(text, TAGC_MAX_ERROR_STRING, full);
    } else if (tagci_mpi_is_up()) {
        snprintf(text, TAGC_MAX_ERROR_STRING, "%d is not an error code of MPI or of this library", code);
    } else {
        snprintf(text, TAGC_MAX_ERROR_STRING,
                 code == MPI_SUCCESS ? "no error" : "MPI error class %d (MPI is not running)", class);
    }
}

int tagci_error_of_mpi(int code, const char *call, const char *tensor, const char *what)
{
    char text[TAGC_MAX_ERROR_STRING];
    tagci_error_text(code, text);
    return tagci_error(tagci_error_class(code), "%s: tensor \"%.100s\": %s: %.300s", call, tensor, what, text);
}
