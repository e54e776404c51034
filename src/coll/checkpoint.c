/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * In a file every rank's part is written and read piece by piece; each piece is one collective call, which ranks without
 * a piece join with nothing. A rank that has failed goes on with the others and says so when they meet. */
#include "coll/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "coll/image.h"
#include "coll/meet.h"
#include "core/frame.h"
#include "util/error.h"

#define NAME_SHOWN "\"%.100s\""

size_t tagci_checkpoint_piece = (size_t)16 << 20;

static const char magic[8] = {'T', 'A', 'G', 'C', 'S', 'E', 'T', '\n'};
enum { VERSION = 1, HEAD = 64, AT_CRC = 40, ENTRY = 16, MOST_RANKS = 1 << 26 };

/* ---- Memory ---- */

void tagci_checkpoint_pack(const struct tagci_tensor *t, void *buf)
{
    unsigned char *to = buf;
    tagci_image_head(t, to);
    if (t->residual)
        tagci_image_residual(t, 0, (size_t)tagci_image_bytes(t) - TAGCI_IMAGE_HEAD, to + TAGCI_IMAGE_HEAD);
}

/* The residual that a load or unpack has put together in `spare` becomes the tensor's. */
static void install(struct tagci_tensor *t, int residual, int64_t calls)
{
    if (residual) {
        void *swap = t->residual;
        t->residual = t->spare;
        t->spare = swap;
    }
    t->residual_is_zero = !residual;
    t->memory_name = 0; /* the next gather is a whole one */
    t->calls = calls;
}

int tagci_checkpoint_unpack(const char *call, struct tagci_tensor *t, const void *buf, uint64_t bytes)
{
    const unsigned char *at = buf;
    struct tagci_image image;
    const char *why = bytes < TAGCI_IMAGE_HEAD ? "it is shorter than any image" : tagci_image_read(at, &image);
    if (!why && bytes < image.bytes)
        why = "it is shorter than the image that it begins with";
    if (!why &&
        tagci_crc32c(tagci_image_crc(at), at + TAGCI_IMAGE_HEAD, (size_t)image.bytes - TAGCI_IMAGE_HEAD) != image.crc)
        why = "the image is damaged";
    if (why)
        return tagci_error(TAGC_ERR_FILE, "%s: tensor " NAME_SHOWN ": buf: %s", call, t->name, why);
    if (image.count != t->count || image.type != tagci_image_type(t))
        return tagci_error(TAGC_ERR_TENSOR,
                           "%s: tensor " NAME_SHOWN ": buf holds the image of another tensor, with %llu elements%s",
                           call, t->name, (unsigned long long)image.count,
                           image.type != tagci_image_type(t) ? " of another type" : "");
    if (image.residual && tagci_tensor_need_residual(t))
        return tagci_error(MPI_ERR_NO_MEM, "%s: tensor " NAME_SHOWN ": no memory for a residual", call, t->name);
    if (image.residual &&
        tagci_image_add(t, at + TAGCI_IMAGE_HEAD, 0, (size_t)image.bytes - TAGCI_IMAGE_HEAD, 1, t->spare))
        return tagci_error(TAGC_ERR_FILE, "%s: tensor " NAME_SHOWN ": buf: the residual has values that are not finite",
                           call, t->name);
    install(t, image.residual, image.calls);
    return MPI_SUCCESS;
}

/* ---- Files ---- */

/* One save or load on this rank. */
struct work {
    const char *call, *path;
    struct tagci_tensor *t;
    struct tagci_comm *c;
    MPI_File file;
    int is_open;
    int code;             /* first error of this rank */
    unsigned char *piece; /* tagci_checkpoint_piece bytes */
    unsigned char *head;  /* HEAD bytes and the table */
    uint64_t ranks;       /* images in the file */
};

static void failed(struct work *w, const char *doing, const char *why)
{
    if (!w->code)
        w->code = tagci_error(TAGC_ERR_FILE, "%s: tensor " NAME_SHOWN ": cannot %s \"%.150s\": %.150s", w->call,
                              w->t->name, doing, w->path, why);
}

static void no_memory(struct work *w)
{
    if (!w->code)
        w->code = tagci_error(MPI_ERR_NO_MEM, "%s: tensor " NAME_SHOWN ": no memory", w->call, w->t->name);
}

/* Notes the error of an MPI-IO call. */
static void check(struct work *w, const char *doing, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    text[strcspn(text, "\n")] = 0;
    char *tail = strstr(text, ", error stack:"); /* MPICH's, cut above */
    if (tail)
        *tail = 0;
    failed(w, doing, text);
}

/* The error that all have, if one has. */
static int meet(struct work *w)
{
    w->code = tagci_meet(w->c, w->call, w->t->name, w->code, TAGC_ERR_FILE, NULL);
    return w->code;
}

static int finish(struct work *w)
{
    /* Closing is collective: a rank that alone has the file open cannot. */
    if (w->is_open)
        check(w, "close", MPI_File_close(&w->file));
    tagci_free(w->piece);
    tagci_free(w->head);
    return meet(w);
}

static int open_file(struct work *w, int mode, const char *doing)
{
    check(w, doing, MPI_File_open(w->c->private, (char *)w->path, mode, MPI_INFO_NULL, &w->file));
    int opened = !w->code;
    if (meet(w))
        return w->code;
    w->is_open = opened;
    MPI_File_set_errhandler(w->file, MPI_ERRORS_RETURN);
    return MPI_SUCCESS;
}

static void write_piece(struct work *w, uint64_t at, const void *data, size_t n)
{
    MPI_Status status;
    int wrote = 0;
    int code = MPI_File_write_at_all(w->file, (MPI_Offset)at, data, (int)n, MPI_BYTE, &status);
    check(w, "write", code);
    if (!code && (MPI_Get_count(&status, MPI_BYTE, &wrote) || wrote != (int)n))
        failed(w, "write", "not all was written");
}

static void read_piece(struct work *w, uint64_t at, void *data, size_t n)
{
    MPI_Status status;
    int got = 0;
    int code = MPI_File_read_at_all(w->file, (MPI_Offset)at, data, (int)n, MPI_BYTE, &status);
    check(w, "read", code);
    if (!code && (MPI_Get_count(&status, MPI_BYTE, &got) || got != (int)n))
        failed(w, "read", "it ends too early");
}

static uint64_t pieces(uint64_t bytes)
{
    return (bytes + tagci_checkpoint_piece - 1) / tagci_checkpoint_piece;
}

static size_t piece_size(uint64_t bytes, uint64_t done)
{
    uint64_t left = bytes > done ? bytes - done : 0;
    return left < tagci_checkpoint_piece ? (size_t)left : tagci_checkpoint_piece;
}

static uint64_t image_at(const struct work *w, uint64_t i)
{
    return tagci_get64(w->head + HEAD + ENTRY * i);
}

static uint64_t image_bytes(const struct work *w, uint64_t i)
{
    return i < w->ranks ? tagci_get64(w->head + HEAD + ENTRY * i + 8) : 0;
}

static uint32_t head_crc(const struct work *w)
{
    unsigned char copy[HEAD];
    memcpy(copy, w->head, HEAD);
    tagci_put32(copy + AT_CRC, 0);
    return tagci_crc32c(tagci_crc32c(0, copy, HEAD), w->head + HEAD, ENTRY * w->ranks);
}

/* ---- Saving ---- */

/* Head and table, on every rank. */
static void lay_out(struct work *w)
{
    const struct tagci_tensor *t = w->t;
    uint64_t own = tagci_image_bytes(t), at = (HEAD + ENTRY * w->ranks + 63) & ~(uint64_t)63;
    memset(w->head, 0, HEAD);
    memcpy(w->head, magic, sizeof magic);
    tagci_put32(w->head + 8, VERSION);
    tagci_put32(w->head + 12, tagci_image_type(t));
    tagci_put64(w->head + 16, t->count);
    tagci_put64(w->head + 24, w->ranks);
    tagci_put64(w->head + 32, (uint64_t)t->calls);
    uint64_t *bytes = (uint64_t *)(w->head + HEAD);
    check(w, "plan", MPI_Allgather(&own, 1, MPI_UINT64_T, bytes, 1, MPI_UINT64_T, w->c->private));
    for (uint64_t i = w->ranks; i-- > 0;) { /* from the end, as the table takes more room */
        uint64_t n = bytes[i];
        tagci_put64(w->head + HEAD + ENTRY * i + 8, n);
    }
    for (uint64_t i = 0; i < w->ranks; i++) {
        tagci_put64(w->head + HEAD + ENTRY * i, at);
        at += (image_bytes(w, i) + 63) & ~(uint64_t)63;
    }
    tagci_put32(w->head + AT_CRC, head_crc(w));
}

static void write_images(struct work *w)
{
    unsigned char head[TAGCI_IMAGE_HEAD];
    uint64_t rank = (uint64_t)w->c->rank, at = image_at(w, rank), own = image_bytes(w, rank), most = 0;
    for (uint64_t i = 0; i < w->ranks; i++)
        most = image_bytes(w, i) > most ? image_bytes(w, i) : most;
    own -= TAGCI_IMAGE_HEAD;
    most -= TAGCI_IMAGE_HEAD;
    tagci_image_head(w->t, head);
    write_piece(w, at, head, sizeof head);
    for (uint64_t k = 0, done = 0; k < pieces(most); k++) {
        size_t n = piece_size(own, done);
        if (n)
            tagci_image_residual(w->t, done, n, w->piece);
        write_piece(w, at + TAGCI_IMAGE_HEAD + done, w->piece, n);
        done += n;
    }
}

int tagci_checkpoint_save(const char *call, struct tagci_tensor *t, const char *path)
{
    struct work w = {.call = call, .path = path, .t = t, .c = t->comm, .ranks = (uint64_t)t->comm->size};
    w.piece = tagci_alloc(tagci_checkpoint_piece, 1);
    w.head = tagci_alloc_zero(w.ranks, ENTRY + HEAD);
    if (!w.piece || !w.head)
        no_memory(&w);
    if (!meet(&w)) {
        lay_out(&w);
        if (!meet(&w) && !open_file(&w, MPI_MODE_CREATE | MPI_MODE_WRONLY, "create")) {
            check(&w, "empty", MPI_File_set_size(w.file, 0));
            write_images(&w);
            check(&w, "write", MPI_File_sync(w.file));
            if (!meet(&w)) /* all is there: now it may be a checkpoint */
                write_piece(&w, 0, w.head, w.c->rank == 0 ? HEAD + (size_t)w.ranks * ENTRY : 0);
        }
    }
    return finish(&w);
}

/* ---- Loading ---- */

/* What rank 0 has read, for all. An error of rank 0 shows when they meet. */
static void share(struct work *w, void *data, int n)
{
    check(w, "share", MPI_Bcast(data, n, MPI_BYTE, 0, w->c->private));
}

static void read_alone(struct work *w, uint64_t at, void *data, size_t n)
{
    MPI_Status status;
    int got = 0, code = MPI_File_read_at(w->file, (MPI_Offset)at, data, (int)n, MPI_BYTE, &status);
    check(w, "read", code);
    if (!code && (MPI_Get_count(&status, MPI_BYTE, &got) || got != (int)n))
        failed(w, "read", "it ends too early");
}

/* The head without its table; *size becomes the file's. */
static int read_head(struct work *w, unsigned char head[HEAD], uint64_t *size)
{
    unsigned char both[HEAD + 8] = {0};
    if (w->c->rank == 0) {
        MPI_Offset bytes = 0;
        check(w, "read", MPI_File_get_size(w->file, &bytes));
        tagci_put64(both + HEAD, (uint64_t)bytes);
        if (!w->code && bytes < HEAD)
            failed(w, "read", "it is shorter than any checkpoint");
        if (!w->code)
            read_alone(w, 0, both, HEAD);
    }
    share(w, both, sizeof both);
    if (meet(w))
        return w->code;
    memcpy(head, both, HEAD);
    *size = tagci_get64(both + HEAD);
    w->ranks = tagci_get64(head + 24);
    const struct tagci_tensor *t = w->t;
    if (memcmp(head, magic, sizeof magic) != 0)
        failed(w, "read", "it is no checkpoint of a tensor");
    else if (tagci_get32(head + 8) != VERSION)
        failed(w, "read", "it is of a version that this library does not know");
    else if (w->ranks < 1 || w->ranks > MOST_RANKS || w->ranks > (*size - HEAD) / ENTRY)
        failed(w, "read", "it is damaged");
    else if (tagci_get64(head + 16) != t->count || tagci_get32(head + 12) != tagci_image_type(t))
        failed(w, "load", "it holds a tensor of another count or type");
    return w->code; /* the same on all */
}

static int read_table(struct work *w, const unsigned char head[HEAD], uint64_t size)
{
    size_t n = (size_t)w->ranks * ENTRY;
    if (!(w->head = tagci_alloc(HEAD + n, 1)))
        no_memory(w);
    if (meet(w))
        return w->code;
    memcpy(w->head, head, HEAD);
    if (w->c->rank == 0)
        read_alone(w, HEAD, w->head + HEAD, n);
    share(w, w->head + HEAD, (int)n);
    if (meet(w))
        return w->code;
    int ok = head_crc(w) == tagci_get32(head + AT_CRC) && (int64_t)tagci_get64(head + 32) >= 0;
    uint64_t whole = TAGCI_IMAGE_HEAD + w->t->count * (w->t->compressible ? tagci_work_size(w->t->type) : 0);
    for (uint64_t i = 0; i < w->ranks && ok; i++) {
        uint64_t at = image_at(w, i), bytes = image_bytes(w, i);
        ok = at <= size && bytes <= size - at && (bytes == whole || bytes == TAGCI_IMAGE_HEAD);
    }
    if (!ok)
        failed(w, "read", "it is damaged, or was cut");
    return w->code; /* the same on all */
}

/* Adds image i to the sum in `spare`; i may be past the last. The ranks read as many pieces as the longest of this round. */
static void add_image(struct work *w, uint64_t i, uint64_t longest, int *any)
{
    struct tagci_tensor *t = w->t;
    unsigned char head[TAGCI_IMAGE_HEAD];
    struct tagci_image image = {0};
    int mine = i < w->ranks;
    uint64_t at = mine ? image_at(w, i) : 0, bytes = mine ? image_bytes(w, i) - TAGCI_IMAGE_HEAD : 0;
    read_piece(w, at, head, mine ? sizeof head : 0);
    uint32_t crc = 0;
    if (mine && !w->code) {
        const char *why = tagci_image_read(head, &image);
        if (!why &&
            (image.bytes != bytes + TAGCI_IMAGE_HEAD || image.count != t->count || image.type != tagci_image_type(t)))
            why = "one of its images is damaged";
        if (why)
            failed(w, "read", why);
        crc = tagci_image_crc(head);
    }
    for (uint64_t k = 0, done = 0; k < pieces(longest - TAGCI_IMAGE_HEAD); k++) {
        size_t n = piece_size(bytes, done);
        read_piece(w, at + TAGCI_IMAGE_HEAD + done, w->piece, n);
        if (n && !w->code) {
            crc = tagci_crc32c(crc, w->piece, n);
            if (tagci_image_add(t, w->piece, done, n, !*any, t->spare))
                failed(w, "load", "a residual in it, or the sum of several, is not finite");
        }
        done += n;
    }
    if (mine && !w->code && crc != image.crc)
        failed(w, "read", "one of its images is damaged");
    *any |= bytes > 0;
}

static void read_images(struct work *w)
{
    struct tagci_tensor *t = w->t;
    uint64_t size = (uint64_t)w->c->size, rank = (uint64_t)w->c->rank;
    int residuals = 0, any = 0;
    for (uint64_t i = 0; i < w->ranks; i++)
        residuals |= image_bytes(w, i) > TAGCI_IMAGE_HEAD;
    if (!(w->piece = tagci_alloc(tagci_checkpoint_piece, 1)) || (residuals && tagci_tensor_need_residual(t)))
        no_memory(w);
    if (meet(w))
        return;
    for (uint64_t round = 0; round < w->ranks; round += size) {
        uint64_t longest = TAGCI_IMAGE_HEAD;
        for (uint64_t i = round; i < round + size; i++)
            longest = image_bytes(w, i) > longest ? image_bytes(w, i) : longest;
        add_image(w, round + rank, longest, &any);
    }
    if (!meet(w))
        install(t, any, (int64_t)tagci_get64(w->head + 32));
}

int tagci_checkpoint_load(const char *call, struct tagci_tensor *t, const char *path)
{
    struct work w = {.call = call, .path = path, .t = t, .c = t->comm};
    unsigned char head[HEAD];
    uint64_t size = 0;
    if (!open_file(&w, MPI_MODE_RDONLY, "open") && !read_head(&w, head, &size) && !read_table(&w, head, size))
        read_images(&w);
    return finish(&w);
}
