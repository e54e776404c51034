/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Each line is written by one call, so that lines of different ranks do not mix. */
#include "util/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/mpi_state.h"

enum { SAID = 256, FILES = 64, LINE = 1024, NAME = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t said[SAID]; /* hashes of the texts that were warned about, a ring */
static unsigned nsaid;
static struct {
    char *name;
    FILE *file; /* NULL: could not be opened, and that was said */
} files[FILES];
static int nfiles;

static int world_rank(void)
{
    int rank = 0;
    if (tagci_mpi_is_up())
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static int is_new(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    for (unsigned i = 0; i < nsaid && i < SAID; i++)
        if (said[i] == hash)
            return 0;
    said[nsaid++ % SAID] = hash;
    return 1;
}

void tagci_log_warn_once(const char *format, ...)
{
    char text[LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int rank = world_rank();
    pthread_mutex_lock(&lock);
    int wanted = is_new(text);
    pthread_mutex_unlock(&lock);
    if (wanted)
        fprintf(stderr, "tagc: rank %d: %s\n", rank, text);
}

static void close_files(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < nfiles; i++) {
        if (files[i].file && files[i].file != stderr)
            fclose(files[i].file);
        free(files[i].name);
    }
    nfiles = 0;
    pthread_mutex_unlock(&lock);
}

static FILE *open_file(const char *name, int rank)
{
    char path[NAME + 16];
    size_t n = 0;
    if (strcmp(name, "-") == 0)
        return stderr;
    for (; *name && n + 16 < sizeof path; name++) {
        if (name[0] == '%' && name[1] == 'r') {
            n += (size_t)snprintf(path + n, 16, "%d", rank);
            name++;
        } else {
            path[n++] = *name;
        }
    }
    path[n] = 0;
    FILE *f = fopen(path, "a");
    if (f)
        setvbuf(f, NULL, _IOLBF, BUFSIZ);
    else
        fprintf(stderr, "tagc: rank %d: cannot write the trace file %s\n", rank, path);
    return f;
}

/* File behind a name, opened at its first use. With the lock held. */
static FILE *file_of(const char *name, int rank)
{
    for (int i = 0; i < nfiles; i++)
        if (strcmp(files[i].name, name) == 0)
            return files[i].file;
    char *copy = nfiles < FILES ? strdup(name) : NULL;
    static int registered, said;
    if (!copy) {
        if (!said++)
            fprintf(stderr, "tagc: rank %d: %d trace files are open, %s is not written\n", rank, nfiles, name);
        return NULL;
    }
    if (!registered)
        registered = atexit(close_files) == 0;
    files[nfiles].name = copy;
    files[nfiles].file = open_file(name, rank);
    return files[nfiles++].file;
}

void tagci_trace(const char *file, const char *format, ...)
{
    if (!file || !file[0])
        return;
    char text[LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int rank = world_rank();
    pthread_mutex_lock(&lock);
    FILE *f = file_of(file, rank);
    if (f)
        fprintf(f, "tagc: rank %d: %s\n", rank, text);
    pthread_mutex_unlock(&lock);
}
