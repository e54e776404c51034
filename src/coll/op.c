/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/op.h"

#include <stdio.h>
#include <string.h>

#include "coll/board.h"
#include "coll/cuts.h"
#include "coll/gather.h"
#include "coll/select.h"
#include "coll/verify.h"
#include "util/error.h"
#include "util/log.h"

const char *tagci_op_tensor_name(const struct tagci_op *op)
{
    return op->tensor ? op->tensor->name : "";
}

/* ---- memory ---- */

size_t tagci_op_piece(size_t count, size_t size)
{
    size_t bytes = tagci_mul(count, size);
    return bytes > SIZE_MAX - TAGCI_ALIGN ? SIZE_MAX : (bytes + TAGCI_ALIGN - 1) / TAGCI_ALIGN * TAGCI_ALIGN;
}

void *tagci_op_take(struct tagci_op *op, size_t count, size_t size)
{
    unsigned char *piece = op->room_at;
    op->room_at += tagci_op_piece(count, size);
    return piece; /* room() of the same parties asked for as much: checked when the room is laid out */
}

void *tagci_op_take_data(struct tagci_op *op, size_t count, size_t size)
{
    if (!op->order)
        return tagci_op_take(op, count, size);
    unsigned char *piece = op->device_at;
    op->device_at += tagci_op_piece(count, size);
    return piece;
}

/* With a device it is pinned, so that copies need not wait and the device finds descriptors in it. */
static struct tagci_room *room_of(struct tagci_op *op)
{
    return op->device ? &op->device->room[TAGCI_HOST] : op->tensor ? &op->tensor->work : &op->own_room;
}

/* Workspace of the chosen algorithm and what goes with it. */
static size_t room_needed(const struct tagci_op *op)
{
    size_t bytes = tagci_add(op->algorithm->room(op), tagci_op_edge_room(op, TAGCI_HOST));
    if (op->algorithm->cuts)
        bytes = tagci_add(bytes, tagci_cuts_room(op));
    if (op->algorithm->data_room && !op->order)
        bytes = tagci_add(bytes, op->algorithm->data_room(op));
    return tagci_add(bytes, tagci_verify_room(op));
}

static size_t device_room_needed(const struct tagci_op *op)
{
    return op->order ? tagci_add(op->algorithm->data_room(op), tagci_op_edge_room(op, TAGCI_DEVICE)) : 0;
}

static int get_room(struct tagci_op *op, size_t bytes)
{
    if (!op->device)
        return tagci_room_need(room_of(op), bytes);
    return tagci_device_need(op->device, TAGCI_HOST, bytes) ||
                   (op->order && tagci_device_need(op->device, TAGCI_DEVICE, device_room_needed(op)))
               ? -1
               : 0;
}

/* Memory for the call with this number: the tensor's workspace, or the operation's own. */
static int reserve(struct tagci_op *op, int64_t call)
{
    tagci_select(op, call);
    tagci_op_choose_side(op);
    size_t bytes = room_needed(op);
    if (get_room(op, bytes) || (op->algorithm->reserve && op->algorithm->reserve(op)))
        return tagci_error(MPI_ERR_NO_MEM, "%s: tensor \"%s\": no memory for a workspace of %zu bytes", op->args.call,
                           tagci_op_tensor_name(op), bytes);
    return MPI_SUCCESS;
}

/* The choice depends on the number of the call only through warm-up and schedule, so these calls stand for all. */
static int reserve_every(struct tagci_op *op)
{
    const struct tagci_settings *set = op->settings;
    int code = reserve(op, 0);
    if (tagci_is_gather(op->args.collective))
        return code;
    if (!code)
        code = reserve(op, set->warmup);
    for (int i = 0; i < set->sparsity.n && !code; i++)
        code = reserve(op, set->sparsity.from[i] > set->warmup ? set->sparsity.from[i] : set->warmup);
    return code;
}

static void lay_out(struct tagci_op *op)
{
    op->room_at = room_of(op)->at;
    op->device_at = op->order ? op->device->room[TAGCI_DEVICE].at : NULL;
    tagci_op_lay_out_edges(op);
    if (op->algorithm->cuts)
        tagci_cuts_lay_out(op);
    tagci_verify_lay_out(op);
    op->algorithm->lay_out(op);
}

/* ---- the vector ---- */

/* Chunks are as long as the kernels like, but with many ranks short enough that a few for each of them fit in memory. */
static size_t chunk_elements(int ranks)
{
    size_t chunk = TAGCI_CHUNK_MAX;
    while (chunk > 2048 && chunk * (size_t)ranks > (size_t)4 << 20)
        chunk /= 2;
    return chunk;
}

static int shape(struct tagci_op *op)
{
    const struct tagci_args *a = &op->args;
    struct tagci_geometry *g = &op->geometry;
    int ranks = op->comm->size;
    size_t *offset = tagci_alloc(3 * ((size_t)ranks + 1), sizeof *offset), *first = offset + ranks + 1;
    MPI_Aint *displ = (MPI_Aint *)(first + ranks + 1); /* no larger than a size_t */
    if (!offset)
        return tagci_error(MPI_ERR_NO_MEM, "%s: no memory for the offsets of %d ranks", a->call, ranks);
    g->ranks = ranks;
    g->chunk = chunk_elements(ranks);
    offset[0] = first[0] = 0;
    for (int o = 0; o < ranks; o++) {
        size_t part;
        if (a->collective == TAGCI_REDUCE_SCATTER || a->collective == TAGCI_ALLGATHERV)
            part = (size_t)tagci_args_count(a, o);
        else if (a->collective == TAGCI_REDUCE_SCATTER_BLOCK || a->collective == TAGCI_ALLGATHER)
            part = (size_t)a->count;
        else
            part = (size_t)a->count / ranks + ((size_t)o < (size_t)a->count % ranks);
        displ[o] = a->collective == TAGCI_ALLGATHERV ? tagci_args_displ(a, o) : (MPI_Aint)offset[o];
        offset[o + 1] = offset[o] + part;
        first[o + 1] = first[o] + (part + g->chunk - 1) / g->chunk;
    }
    g->n = offset[ranks];
    g->offset = offset;
    g->first = first;
    op->displ = displ;
    return MPI_SUCCESS;
}

const void *tagci_op_in(const struct tagci_op *op, size_t i)
{
    return (const char *)op->in + i * tagci_type_size(op->type);
}
const void *tagci_op_residual(const struct tagci_op *op, size_t i)
{
    return op->residual_in ? (const char *)op->residual + i * tagci_work_size(op->type) : NULL;
}
void *tagci_op_residual_out(const struct tagci_op *op, size_t i)
{
    return op->residual_out ? (char *)op->spare + i * tagci_work_size(op->type) : NULL;
}

/* ---- life ---- */

int tagci_op_init(struct tagci_op *op, const struct tagci_args *args, struct tagci_comm *comm,
                  struct tagci_tensor *tensor, int every_call, int own_error)
{
    memset(op, 0, sizeof *op);
    op->args = *args;
    op->comm = comm;
    op->tensor = tensor;
    op->settings = tensor ? &tensor->settings : &comm->exact;
    op->user_send = args->sendbuf;
    op->user_recv = args->recvbuf;
    op->in_place = args->sendbuf == MPI_IN_PLACE;
    op->in = op->in_place ? args->recvbuf : args->sendbuf;
    int gather = tagci_is_gather(args->collective);
    enum tagci_type send;
    op->average = !gather && args->op == TAGC_AVG;
    op->compressible = tagci_type_of(args->datatype, &op->type) &&
                       (gather ? op->in_place || (tagci_type_of(args->sendtype, &send) && send == op->type)
                               : op->average || args->op == MPI_SUM);
    op->code = own_error;
    int code = MPI_SUCCESS;
    if (own_error)
        return MPI_SUCCESS; /* only to tell the others */
    char why[200];
    if (!tensor && !tagci_backend_pick(op->settings->backend, why))
        code = tagci_error(TAGC_ERR_BACKEND, "%s: %s", args->call, why);
    if (!code)
        code = tagci_op_find_edges(op);
    if (!code)
        code = shape(op);
    if (!code)
        code = every_call ? reserve_every(op) : reserve(op, tensor ? tensor->calls : 0);
    if (!code)
        return MPI_SUCCESS;
    if (!tensor) {
        tagci_op_release(op);
        return code;
    }
    op->code = code;
    return MPI_SUCCESS;
}

void tagci_op_release(struct tagci_op *op)
{
    tagci_free((void *)op->geometry.offset);
    op->geometry.offset = NULL;
    tagci_room_release(&op->own_room);
    if (op->own_device)
        tagci_device_put(op->device);
    op->own_device = 0;
    tagci_sketch_release(&op->plan[0]);
    tagci_sketch_release(&op->plan[1]);
}

/* ---- stages that every operation may have ---- */

enum tagci_progress tagci_op_fail(struct tagci_op *op, int code)
{
    if (!op->code)
        op->code = code;
    return TAGCI_FAILED;
}

enum tagci_progress tagci_op_fail_text(struct tagci_op *op, int class, const char *text)
{
    return tagci_op_fail(op,
                         tagci_error(class, "%s: tensor \"%s\": %s", op->args.call, tagci_op_tensor_name(op), text));
}

int tagci_op_ran(const struct tagci_op *op, int result)
{
    if (!result)
        return MPI_SUCCESS;
    const struct tagci_backend *b = op->device ? op->device->backend : op->backend;
    const char *why = b->failure ? b->failure() : NULL;
    return tagci_error(TAGC_ERR_BACKEND, "%s: tensor \"%s\": backend %s failed%s%s", op->args.call,
                       tagci_op_tensor_name(op), b->name, why ? ": " : "", why ? why : "");
}

enum tagci_progress tagci_op_run(struct tagci_op *op, int result)
{
    return result ? tagci_op_fail(op, tagci_op_ran(op, result)) : TAGCI_THROUGH;
}

int tagci_op_settle(const struct tagci_op *op)
{
    return op->order ? tagci_device_settle(op->device) : 0;
}

enum tagci_progress tagci_op_posted(struct tagci_op *op, int code)
{
    if (code)
        return tagci_op_fail(op, code);
    if (op->request[op->n_requests] != MPI_REQUEST_NULL)
        op->n_requests++;
    return TAGCI_THROUGH;
}

enum tagci_progress tagci_op_wait_requests(struct tagci_op *op)
{
    int done = 1, code = MPI_SUCCESS;
    if (op->n_requests && op->blocking)
        code = MPI_Waitall(op->n_requests, op->request, MPI_STATUSES_IGNORE);
    else if (op->n_requests)
        code = MPI_Testall(op->n_requests, op->request, &done, MPI_STATUSES_IGNORE);
    if (code)
        return tagci_op_fail(op, code);
    if (!done)
        return TAGCI_PENDING;
    op->n_requests = 0;
    return TAGCI_THROUGH;
}

/* What must be the same on all ranks for a call on a tensor, and the number of earlier calls; without a tensor, that is as
 * in MPI. */
static uint64_t facts(const struct tagci_op *op)
{
    uint64_t h = tagci_fact(0xcbf29ce484222325u, op->args.collective);
    h = tagci_fact(h, op->average ? 2 : op->compressible);
    h = tagci_fact(h, op->algorithm->id);
    for (int o = 0; o < op->geometry.ranks; o++)
        h = tagci_fact(h, op->geometry.offset[o + 1]);
    return h;
}

/* What a call on a tensor leaves for the next one: whether MPI alone does it, now and as long as it is called alike. Of a
 * blocking call: the counts of another may be gone by now. */
static void remember_plain(const struct tagci_op *op)
{
    struct tagci_plain *p = &op->tensor->plain;
    *p = (struct tagci_plain){0};
    if (!op->calm || op->algorithm != &tagci_algorithm_dense || !op->compressible || op->average ||
        tagci_type_size(op->type) < sizeof(float) || op->settings->trace[0] || !tagci_select_lasts(op))
        return;
    p->known = 1;
    p->collective = op->args.collective;
    p->shape = tagci_args_shape(&op->args, op->geometry.ranks);
    p->facts = facts(op);
    p->reason = op->reason;
}

static int on_board(const struct tagci_op *op)
{
    return op->calm && op->comm->board && op->args.tensor != TAGC_TENSOR_NULL;
}

static enum tagci_progress agree_post(struct tagci_op *op)
{
    uint64_t hash = op->code || !op->tensor ? 0 : tagci_fact(facts(op), (uint64_t)op->tensor->calls);
    tagci_agreement_init(&op->agreement, op->code, hash, op->comm);
    if (!op->code && op->algorithm == &tagci_gather_coded)
        tagci_agreement_compare(&op->agreement, tagci_gather_alike(op));
    if (on_board(op)) {
        tagci_board_write(op->comm->board, &op->agreement);
        return TAGCI_THROUGH;
    }
    return tagci_op_posted(op, MPI_Iallreduce(MPI_IN_PLACE, op->agreement.word, TAGCI_AGREE_WORDS, MPI_INT64_T, MPI_MAX,
                                              op->comm->private, &op->request[op->n_requests]));
}

static enum tagci_progress agree_wait(struct tagci_op *op)
{
    if (!on_board(op))
        return tagci_op_wait_requests(op);
    for (unsigned n = 0; !tagci_board_read(op->comm->board, &op->agreement); n++) {
        if (!op->blocking)
            return TAGCI_PENDING;
        tagci_board_pause(op->comm, n);
    }
    return TAGCI_THROUGH;
}

static enum tagci_progress agree_result(struct tagci_op *op)
{
    int code = tagci_agreement_result(&op->agreement, op->code, op->comm, op->args.call, tagci_op_tensor_name(op),
                                      TAGCI_CALL_FACTS);
    if (code) {
        op->code = code;
        return TAGCI_FAILED;
    }
    /* Counted here, where all ranks are known to take part: a call that then fails on one of them has been a call on all,
     * and the next one is understood. */
    if (!tagci_is_gather(op->args.collective)) {
        op->tensor->calls++;
        remember_plain(op);
    }
    return TAGCI_THROUGH;
}

static const struct tagci_stage agree_stages[] = {
    {agree_post, TAGCI_PHASE_COMM, 1},
    {agree_wait, TAGCI_PHASE_COMM, 0},
    {agree_result, TAGCI_PHASE_NONE, 0},
    TAGCI_STAGES_END,
};
static const struct tagci_stage copy_in_stages[] = {
    {tagci_op_copy_in, TAGCI_PHASE_ENCODE, 0},
    TAGCI_STAGES_END,
};
static const struct tagci_stage copy_back_stages[] = {
    {tagci_op_copy_back, TAGCI_PHASE_DECODE, 0},
    TAGCI_STAGES_END,
};
static const struct tagci_stage cut_stages[] = {
    {tagci_cuts_find, TAGCI_PHASE_SELECT, 0},
    TAGCI_STAGES_END,
};

static void add_stages(struct tagci_op *op, const struct tagci_stage *s)
{
    for (; s->run; s++)
        op->stages[op->n_stages++] = *s;
}

/* ---- driving ---- */

static void join_line(struct tagci_op *op)
{
    struct tagci_op **at = &op->comm->line;
    while (*at)
        at = &(*at)->line_next;
    *at = op;
    op->line_next = NULL;
    op->in_line = 1;
}

static void leave_line(struct tagci_op *op)
{
    if (!op->in_line)
        return;
    struct tagci_op **at = &op->comm->line;
    while (*at != op)
        at = &(*at)->line_next;
    *at = op->line_next;
    op->in_line = 0;
}

void tagci_op_leave_line(struct tagci_op *op)
{
    if (!op->verify) /* which has more to post */
        leave_line(op);
}

void tagci_op_take_tensor(struct tagci_op *op, struct tagci_tensor *t)
{
    op->tensor = t;
    op->settings = t ? &t->settings : &op->comm->exact;
    if (!t)
        op->device = NULL;
}

void tagci_op_start(struct tagci_op *op)
{
    if (op->code) /* it only meets the other ranks', and the tensor may be freed meanwhile */
        tagci_op_take_tensor(op, NULL);
    op->started = MPI_Wtime();
    op->number = op->comm->started++;
    op->stage = op->n_stages = op->n_requests = 0;
    op->broken = MPI_SUCCESS;
    op->alarm = 0;
    op->active = 1;
    if (op->tensor && !op->code)
        op->tensor->in_flight = op;
    /* The tensor has come to a device, or left it, since the operation was made: the one start that may allocate. */
    if (!op->code && op->tensor && (op->tensor->device != op->device || op->tensor->resident != op->resident)) {
        tagci_op_follow_tensor(op);
        op->code = reserve_every(op);
    }
    if (!op->code) {
        tagci_select(op, op->tensor ? op->tensor->calls : 0);
        tagci_op_choose_side(op);
        lay_out(op);
        if (op->device)
            add_stages(op, copy_in_stages);
    }
    if (op->args.tensor != TAGC_TENSOR_NULL || op->algorithm == &tagci_gather_coded)
        add_stages(op, agree_stages);
    if (!op->code) {
        add_stages(op, tagci_verify_before(op));
        if (op->algorithm->cuts)
            add_stages(op, cut_stages);
        add_stages(op, op->algorithm->stages);
        add_stages(op, tagci_verify_after(op));
        if (op->device)
            add_stages(op, copy_back_stages);
    }
    join_line(op);
}

/* The residual changes here and nowhere else. */
static void commit(struct tagci_op *op)
{
    struct tagci_tensor *t = op->tensor;
    if (tagci_is_gather(op->args.collective) || !op->compressible)
        return;
    if (op->residual_out) {
        void *swap = t->residual;
        t->residual = t->spare;
        t->spare = swap;
        t->residual_is_zero = 0;
    } else {
        t->residual_is_zero = 1;
    }
}

static void complete(struct tagci_op *op)
{
    leave_line(op);
    tagci_op_leave_edges(op);
    op->active = 0;
    if (op->code && op->device)
        tagci_device_settle(op->device); /* what is still on the order works in memory that others get */
    if (!op->code) {
        double *s = op->stats.at, now = MPI_Wtime(), share = op->geometry.ranks - 1.0;
        s[TAGC_STAT_CALLS] = 1;
        s[TAGC_STAT_ELEMENTS] = op->geometry.n;
        s[TAGC_STAT_ALGORITHM] =
            op->geometry.ranks > 1 || !op->algorithm->cuts ? op->algorithm->id : TAGC_ALGORITHM_LOCAL;
        s[TAGC_STAT_REASON] = op->reason;
        s[TAGC_STAT_TIME_TOTAL] = now - op->started;
        int size;
        MPI_Type_size(op->args.datatype, &size);
        s[TAGC_STAT_BYTES_DENSE] =
            share / op->geometry.ranks * op->geometry.n * size * (op->args.collective == TAGCI_ALLREDUCE ? 2 : 1);
        if (op->settings->trace[0])
            tagci_trace(op->settings->trace,
                        "call=%s tensor=%s n=%zu algorithm=%s reason=\"%s\" density=%.6g union=%.6g sent=%.0f "
                        "dense=%.0f resent=%.0f seconds=%.6g select=%.6g encode=%.6g comm=%.6g decode=%.6g",
                        op->args.call, tagci_op_tensor_name(op), op->geometry.n, op->algorithm->name,
                        tagci_reason(op->reason), s[TAGC_STAT_DENSITY], s[TAGC_STAT_UNION_DENSITY],
                        s[TAGC_STAT_BYTES_SENT], s[TAGC_STAT_BYTES_DENSE], s[TAGC_STAT_RESENT], s[TAGC_STAT_TIME_TOTAL],
                        s[TAGC_STAT_TIME_SELECT], s[TAGC_STAT_TIME_ENCODE], s[TAGC_STAT_TIME_COMM],
                        s[TAGC_STAT_TIME_DECODE]);
        tagci_stats_add(op->tensor, &op->stats);
        if (op->tensor)
            commit(op);
    }
    memset(&op->stats, 0, sizeof op->stats);
    struct tagci_tensor *t = op->tensor;
    if (t && t->in_flight == op) {
        t->in_flight = NULL;
        if (t->freed) {
            op->tensor = NULL;
            tagci_tensor_destroy(t);
        }
    }
}

static int go_on(struct tagci_op *op)
{
    static const int stat_of[TAGCI_PHASES] = {0, TAGC_STAT_TIME_SELECT, TAGC_STAT_TIME_ENCODE, TAGC_STAT_TIME_COMM,
                                              TAGC_STAT_TIME_DECODE};
    double then = MPI_Wtime();
    while (op->active && op->stage < op->n_stages) {
        const struct tagci_stage *s = &op->stages[op->stage];
        if (s->in_line && op->in_line && op->comm->line != op)
            return 0; /* one that has left the line posts nothing more in such a stage */
        enum tagci_progress p = s->run(op);
        double now = MPI_Wtime();
        op->stats.at[stat_of[s->phase]] += now - then;
        then = now;
        if (p == TAGCI_PENDING)
            return 0;
        if (p == TAGCI_FAILED)
            break;
        op->stage++;
    }
    if (op->active)
        complete(op);
    return 1;
}

int tagci_op_progress(struct tagci_op *op)
{
    const struct tagci_device *d = op->device;
    int before = tagci_device_enter(d), complete = go_on(op);
    tagci_device_leave(d, before);
    return complete;
}
