/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/reduce_result.h"

#include <string.h>

#include "coll/mpi.h"
#include "util/error.h"

/* Instead of the size of its frames: this rank cannot go on, and the others are to know. */
static const uint64_t broken = UINT64_MAX;

struct tagci_result {
    uint64_t *size; /* for each rank: bytes of its frames */
    size_t *offset; /* ranks + 1, of the frames in `frames` */
    unsigned char *frames;
    size_t own_bytes;
    unsigned char *own;
    struct tagci_counts counts;
    int raw; /* frames would not be less: the values travel as they are */
    uint64_t *bitmap;
    void *values; /* of one chunk, in the work type */
};

static size_t part_frames_bound(const struct tagci_op *op, int owner)
{
    return tagci_part_chunks(&op->geometry, owner) *
           tagci_frame_bound(op->type, TAGCI_VALUE_NATIVE, op->geometry.chunk);
}

static int wanted(const struct tagci_op *op)
{
    return op->args.collective == TAGCI_ALLREDUCE && op->geometry.ranks > 1;
}

size_t tagci_result_room(const struct tagci_op *op)
{
    if (!wanted(op))
        return 0;
    size_t ranks = op->geometry.ranks, chunk = op->geometry.chunk;
    size_t bytes = tagci_op_piece(1, sizeof(struct tagci_result)) + tagci_counts_room((int)ranks);
    bytes += tagci_op_piece(ranks, 8) + tagci_op_piece(ranks + 1, sizeof(size_t));
    bytes += tagci_op_piece(op->geometry.n, tagci_type_size(op->type)) + /* frames are taken only if they are less */
             tagci_op_piece(1, part_frames_bound(op, op->comm->rank));
    return bytes + tagci_op_piece((chunk + 63) / 64, 8) + tagci_op_piece(chunk, tagci_work_size(op->type));
}

void tagci_result_lay_out(struct tagci_op *op)
{
    op->result = NULL;
    if (!wanted(op))
        return;
    size_t ranks = op->geometry.ranks, chunk = op->geometry.chunk;
    struct tagci_result *r = op->result = tagci_op_take(op, 1, sizeof *r);
    tagci_counts_lay_out(op, &r->counts, (int)ranks);
    r->size = tagci_op_take(op, ranks, 8);
    r->offset = tagci_op_take(op, ranks + 1, sizeof(size_t));
    r->frames = tagci_op_take(op, op->geometry.n, tagci_type_size(op->type));
    r->own = tagci_op_take(op, 1, part_frames_bound(op, op->comm->rank));
    r->bitmap = tagci_op_take(op, (chunk + 63) / 64, 8);
    r->values = tagci_op_take(op, chunk, tagci_work_size(op->type));
}

/* A frame of this many bytes starts at the next multiple of eight. */
static size_t aligned(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

enum tagci_progress tagci_result_encode(struct tagci_op *op)
{
    struct tagci_result *r = op->result;
    if (!r)
        return TAGCI_THROUGH;
    int me = op->comm->rank;
    r->own_bytes = op->broken ? broken : 0;
    for (size_t c = 0; !op->broken && c < tagci_part_chunks(&op->geometry, me); c++) {
        size_t begin, n = tagci_part_chunk(&op->geometry, me, c, &begin);
        struct tagci_run run = {n, TAGCI_CUT_NONZERO};
        struct tagci_chunk chunk = {.type = op->type,
                                    .n = n,
                                    .in = (char *)op->args.recvbuf + begin * tagci_type_size(op->type),
                                    .runs = &run,
                                    .nruns = 1,
                                    .bitmap = r->bitmap,
                                    .values = r->values,
                                    .value = TAGCI_VALUE_NATIVE,
                                    .index = (enum tagci_index)op->settings->index,
                                    .seal = op->settings->checksum,
                                    .frame = r->own + r->own_bytes};
        int code = tagci_op_ran(op, op->backend->encode(op->order, &chunk, 1));
        if (code)
            return tagci_op_fail(op, code);
        r->own_bytes += aligned(chunk.frame_bytes);
    }
    return TAGCI_THROUGH;
}

enum tagci_progress tagci_result_sizes(struct tagci_op *op)
{
    struct tagci_result *r = op->result;
    if (!r)
        return TAGCI_THROUGH;
    r->size[op->comm->rank] = r->own_bytes;
    return tagci_op_posted(op, MPI_Iallgather(MPI_IN_PLACE, 0, MPI_UINT64_T, r->size, 1, MPI_UINT64_T,
                                              op->comm->private, &op->request[op->n_requests]));
}

enum tagci_progress tagci_result_post(struct tagci_op *op)
{
    struct tagci_result *r = op->result;
    if (!r)
        return TAGCI_THROUGH;
    size_t width = tagci_type_size(op->type), ranks = op->geometry.ranks;
    r->offset[0] = 0;
    for (size_t i = 0; i < ranks; i++)
        if (r->size[i] == broken)
            return tagci_op_fail(op, op->broken ? op->broken
                                                : tagci_error(TAGC_ERR_WIRE, "%s: tensor \"%s\": rank %zu failed",
                                                              op->args.call, tagci_op_tensor_name(op), i));
    for (size_t i = 0; i < ranks; i++)
        r->offset[i + 1] = r->offset[i] + r->size[i];
    r->raw = r->offset[ranks] >= op->geometry.n * width;
    MPI_Request *request = &op->request[op->n_requests];
    double bytes;
    int code;
    if (r->raw) {
        /* Not MPI_BYTE: more elements than ints can count would come sooner. */
        tagci_counts_set(&r->counts, op->geometry.offset);
        bytes = (double)(op->geometry.n * width);
        code = tagci_mpi_allgatherv(MPI_IN_PLACE, 0, op->args.datatype, op->args.recvbuf, &r->counts, op->args.datatype,
                                    op->comm->private, request);
    } else {
        memcpy(r->frames + r->offset[op->comm->rank], r->own, r->own_bytes);
        tagci_counts_set(&r->counts, r->offset);
        bytes = (double)r->offset[ranks];
        code = tagci_mpi_allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, r->frames, &r->counts, MPI_BYTE, op->comm->private,
                                    request);
    }
    tagci_op_leave_line(op);
    bytes *= (double)(ranks - 1) / (double)ranks;
    tagci_op_count(op, TAGC_STAT_BYTES_SENT, bytes);
    tagci_op_count(op, TAGC_STAT_BYTES_RECEIVED, bytes);
    return tagci_op_posted(op, code);
}

enum tagci_progress tagci_result_decode(struct tagci_op *op)
{
    struct tagci_result *r = op->result;
    if (!r || r->raw)
        return TAGCI_THROUGH;
    const struct tagci_geometry *g = &op->geometry;
    size_t width = tagci_type_size(op->type);
    int narrow = width != tagci_work_size(op->type);
    for (int o = 0; o < g->ranks; o++) {
        size_t at = r->offset[o];
        for (size_t c = 0; c < tagci_part_chunks(g, o); c++) {
            size_t begin, n = tagci_part_chunk(g, o, c, &begin);
            char *out = (char *)op->args.recvbuf + begin * width;
            struct tagci_decode take = {.n = n, .sum = narrow ? r->values : out, .first = 1};
            const char *why = "frames end early";
            size_t bytes = tagci_frame_length(r->frames + at, r->offset[o + 1] - at, op->type, n);
            if (!bytes ||
                tagci_frame_read(r->frames + at, bytes, op->type, n, op->settings->checksum, &take.frame, &why))
                return tagci_op_fail(op, tagci_error(TAGC_ERR_WIRE, "%s: tensor \"%s\": result of rank %d: %s",
                                                     op->args.call, tagci_op_tensor_name(op), o, why));
            int failed = op->backend->decode(op->order, &take, 1);
            if (!failed && narrow)
                failed = op->backend->finish(op->order, op->type, r->values, n, 1, 0, out);
            if (failed)
                return tagci_op_run(op, failed);
            tagci_op_hand_back(op, out, n * width);
            at += aligned(bytes);
        }
    }
    return TAGCI_THROUGH;
}
