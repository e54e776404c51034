/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/edge.h"

#include <string.h>

#include "coll/gather.h"
#include "coll/verify.h"
#include "util/error.h"

/* ---- Where buffers begin and end ---- */

struct hull {
    MPI_Aint from, to;
};

/* Widens the hull by `count` elements of which the first stands `at` extents behind the buffer's address. */
static void take_in(struct hull *h, MPI_Datatype type, MPI_Aint at, MPI_Count count)
{
    MPI_Aint lower, extent, true_lower, true_extent;
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return;
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_get_true_extent(type, &true_lower, &true_extent);
    MPI_Aint first = at * extent + true_lower, last = first + (MPI_Aint)(count - 1) * extent;
    MPI_Aint from = first < last ? first : last, to = (first < last ? last : first) + true_extent;
    if (h->from == h->to)
        *h = (struct hull){from, to};
    h->from = from < h->from ? from : h->from;
    h->to = to > h->to ? to : h->to;
}

static void describe(struct tagci_edge *e, const void *buffer, struct hull whole, struct hull back, int in)
{
    memset(e, 0, sizeof *e);
    e->bytes = (size_t)(whole.to - whole.from);
    e->shift = whole.from;
    e->user = e->bytes && buffer ? (unsigned char *)(uintptr_t)buffer + whole.from : NULL;
    e->in = in;
    e->back_from = (size_t)(back.from - whole.from);
    e->back_bytes = (size_t)(back.to - back.from);
}

static int elsewhere(const struct tagci_home *a, const struct tagci_home *b)
{
    return a->backend != b->backend || a->device != b->device;
}

/* Where the kernels of this call would run. */
static int find_home(const struct tagci_edges *e, const struct tagci_args *a, struct tagci_home *home)
{
    const struct tagci_home *send = &e->at[TAGCI_EDGE_SEND].home, *recv = &e->at[TAGCI_EDGE_RECV].home;
    if (send->kind == TAGCI_DEVICE && recv->kind == TAGCI_DEVICE && elsewhere(send, recv))
        return tagci_error(TAGC_ERR_BACKEND,
                           "%s: the buffers are on two devices: sendbuf on %s device %d, recvbuf on %s device %d",
                           a->call, send->backend->name, send->device, recv->backend->name, recv->device);
    *home = send->kind == TAGCI_HOST || (send->kind == TAGCI_SHARED && recv->kind == TAGCI_DEVICE) ? *recv : *send;
    return MPI_SUCCESS;
}

int tagci_edges_find(struct tagci_edges *e, const struct tagci_args *a, const struct tagci_comm *c,
                     struct tagci_home *home)
{
    const struct hull none = {0, 0};
    struct hull send = none, recv = none, back = none;
    int in_place = a->sendbuf == MPI_IN_PLACE, gaps = 0;
    enum tagci_type type;
    switch (a->collective) {
    case TAGCI_ALLREDUCE:
        take_in(&send, a->datatype, 0, a->count);
        recv = back = send;
        break;
    case TAGCI_REDUCE_SCATTER:
    case TAGCI_REDUCE_SCATTER_BLOCK: {
        int block = a->collective == TAGCI_REDUCE_SCATTER_BLOCK;
        MPI_Count own = block ? a->count : tagci_args_count(a, c->rank), all = block ? own * c->size : 0;
        for (int r = 0; r < c->size && !block; r++)
            all += tagci_args_count(a, r);
        take_in(&send, a->datatype, 0, all);
        take_in(&back, a->datatype, 0, own);
        recv = in_place ? send : back;
        break;
    }
    default:
        if (!in_place)
            take_in(&send, a->sendtype, 0, a->sendcount);
        if (a->collective == TAGCI_ALLGATHER)
            take_in(&recv, a->datatype, 0, a->count * c->size);
        else
            for (int r = 0; r < c->size; r++)
                take_in(&recv, a->datatype, tagci_args_displ(a, r), tagci_args_count(a, r));
        back = recv;
        gaps = a->collective == TAGCI_ALLGATHERV;
    }
    /* What the call does not write between and behind its results has to be as it was. */
    gaps |= !tagci_type_of(a->datatype, &type);
    describe(&e->at[TAGCI_EDGE_SEND], in_place ? NULL : a->sendbuf, in_place ? none : send, none, 1);
    describe(&e->at[TAGCI_EDGE_RECV], a->recvbuf, recv, back, in_place || gaps);
    for (int i = TAGCI_EDGE_SEND; i <= TAGCI_EDGE_RECV; i++)
        e->at[i].home = tagci_device_owner(e->at[i].user);
    return find_home(e, a, home);
}

static unsigned char *buffer_of(const struct tagci_edge *e)
{
    return e->here - e->shift;
}

static void put_into(const struct tagci_edges *e, struct tagci_args *a)
{
    if (e->at[TAGCI_EDGE_SEND].here)
        a->sendbuf = buffer_of(&e->at[TAGCI_EDGE_SEND]);
    if (e->at[TAGCI_EDGE_RECV].here)
        a->recvbuf = buffer_of(&e->at[TAGCI_EDGE_RECV]);
}

static int copy_in(struct tagci_device *d, const struct tagci_edge *e)
{
    return e->here && e->in ? tagci_device_copy(d, e->here, e->user, e->bytes) : 0;
}

static int copy_back(struct tagci_device *d, const struct tagci_edge *e)
{
    int all = !e->here || e->gone == e->back_bytes; /* already on their way */
    return all ? 0 : tagci_device_copy(d, e->user + e->back_from, e->here + e->back_from, e->back_bytes);
}

/* ---- Straight to MPI ---- */

static int failed_on(const struct tagci_args *a, const struct tagci_backend *b)
{
    const char *why = b->failure ? b->failure() : NULL;
    return tagci_error(TAGC_ERR_BACKEND, "%s: backend %s failed%s%s", a->call, b->name, why ? ": " : "",
                       why ? why : "");
}

int tagci_edges_lift(struct tagci_edges *e, struct tagci_args *a, const struct tagci_home *home,
                     struct tagci_device **d)
{
    int reaches = tagci_mpi_reaches(home->backend->name), failed = 0;
    size_t bytes = 0;
    *d = tagci_device_get(home->backend, home->device);
    for (int i = TAGCI_EDGE_SEND; i <= TAGCI_EDGE_RECV; i++)
        if (e->at[i].home.kind == TAGCI_DEVICE && !reaches)
            bytes = tagci_add(bytes, tagci_op_piece(e->at[i].bytes, 1));
    if (!*d || tagci_device_need(*d, TAGCI_HOST, bytes)) {
        tagci_device_put(*d);
        *d = NULL;
        return tagci_error(MPI_ERR_NO_MEM, "%s: no memory for a copy of %zu bytes", a->call, bytes);
    }
    unsigned char *room = (*d)->room[TAGCI_HOST].at;
    failed = home->backend->after((*d)->order, NULL);
    for (int i = TAGCI_EDGE_SEND; i <= TAGCI_EDGE_RECV; i++)
        if (e->at[i].home.kind == TAGCI_DEVICE && !reaches) {
            e->at[i].here = room;
            room += tagci_op_piece(e->at[i].bytes, 1);
            failed = failed || copy_in(*d, &e->at[i]);
        }
    if (failed || tagci_device_settle(*d)) {
        tagci_device_put(*d);
        *d = NULL;
        return failed_on(a, home->backend);
    }
    put_into(e, a);
    return MPI_SUCCESS;
}

int tagci_edges_drop(struct tagci_edges *e, const struct tagci_args *a, struct tagci_device *d, int failed)
{
    int code = MPI_SUCCESS;
    if (!failed && (copy_back(d, &e->at[TAGCI_EDGE_RECV]) || tagci_device_settle(d)))
        code = failed_on(a, d->of);
    tagci_device_put(d);
    return code;
}

/* ---- Operations ---- */

static int is_far(const struct tagci_op *op, const struct tagci_home *home)
{
    const struct tagci_tensor *t = op->tensor;
    int send = !elsewhere(&op->edges.at[TAGCI_EDGE_SEND].home, home);
    return tagci_error(TAGC_ERR_BACKEND, "%s: tensor \"%s\" lives on %s device %d, %s is on %s device %d",
                       op->args.call, t->name, t->device->of->name, t->device->number, send ? "sendbuf" : "recvbuf",
                       home->backend->name, home->device);
}

int tagci_op_find_edges(struct tagci_op *op)
{
    struct tagci_home home;
    int code = tagci_edges_find(&op->edges, &op->args, op->comm, &home), failed = 0;
    struct tagci_tensor *t = op->tensor;
    if (code)
        return code;
    if (t && home.backend && !tagci_tensor_may_use(t, &home))
        return is_far(op, &home);
    if (t) {
        failed = home.backend && tagci_tensor_use(t, &home);
        tagci_op_follow_tensor(op);
    } else if (home.backend) {
        op->device = tagci_device_get(home.backend, home.device);
        failed = !op->device;
        op->own_device = !failed;
    }
    if (!failed)
        return MPI_SUCCESS;
    return tagci_error(MPI_ERR_NO_MEM, "%s: tensor \"%s\": no memory on %s device %d", op->args.call,
                       tagci_op_tensor_name(op), home.backend->name, home.device);
}

void tagci_op_follow_tensor(struct tagci_op *op)
{
    tagci_tensor_to_device(op->tensor); /* or it stays on the host, which serves as well */
    op->device = op->tensor->device;
    op->resident = op->tensor->resident;
}

/* Only MPI touches the buffers of this call. */
static int is_mpi_s_alone(const struct tagci_op *op)
{
    if (tagci_is_gather(op->args.collective))
        return op->algorithm == &tagci_gather_native;
    return op->algorithm == &tagci_algorithm_dense &&
           (!op->compressible || (tagci_type_size(op->type) > 2 && !op->residual_in && !op->average &&
                                  (!op->in_place || op->args.collective == TAGCI_ALLREDUCE)));
}

void tagci_op_choose_side(struct tagci_op *op)
{
    struct tagci_tensor *t = op->tensor;
    struct tagci_edge *e = op->edges.at;
    op->backend = &tagcb_openmp;
    op->order = NULL;
    op->residual = t ? t->residual : NULL;
    op->spare = t ? t->spare : NULL;
    for (int i = 0; i < TAGCI_EDGES; i++)
        op->copied[i] = 0;
    if (!op->device)
        return;
    int there = t && t->resident && op->algorithm->on_device && op->settings->verify == TAGCI_VERIFY_OFF &&
                (!tagci_is_gather(op->args.collective) || (op->compressible && !tagci_gather_rounds(op)));
    if (there) {
        op->algorithm = op->algorithm->on_device;
        op->backend = op->device->backend;
        op->order = op->device->order;
    }
    enum tagci_memory far = there ? TAGCI_HOST : TAGCI_DEVICE;
    int reaches = !there && is_mpi_s_alone(op) && tagci_mpi_reaches(op->device->of->name);
    for (int i = TAGCI_EDGE_SEND; i <= TAGCI_EDGE_RECV; i++)
        op->copied[i] = e[i].user && e[i].home.kind == far && !reaches;
    size_t bytes = t && t->residual ? t->count * tagci_work_size(t->type) : 0;
    int apart = bytes && (t->resident ? TAGCI_DEVICE : TAGCI_HOST) == far;
    for (int i = TAGCI_EDGE_RESIDUAL; i <= TAGCI_EDGE_SPARE; i++) {
        int residual = i == TAGCI_EDGE_RESIDUAL;
        e[i] = (struct tagci_edge){.bytes = bytes, .in = residual, .back_bytes = residual ? 0 : bytes};
        op->copied[i] = apart && (residual ? op->residual_in : 1); /* the spare one serves as room too */
    }
}

size_t tagci_op_edge_room(const struct tagci_op *op, enum tagci_memory kind)
{
    size_t bytes = 0;
    if (op->device && kind == (op->order ? TAGCI_DEVICE : TAGCI_HOST))
        for (int i = 0; i < TAGCI_EDGES; i++)
            if (op->copied[i])
                bytes = tagci_add(bytes, tagci_op_piece(op->edges.at[i].bytes, 1));
    return bytes;
}

void tagci_op_lay_out_edges(struct tagci_op *op)
{
    struct tagci_edge *e = op->edges.at;
    for (int i = 0; i < TAGCI_EDGES; i++) {
        e[i].here = op->copied[i] ? tagci_op_take_data(op, e[i].bytes, 1) : NULL;
        e[i].gone = 0;
    }
    if (e[TAGCI_EDGE_RESIDUAL].here)
        op->residual = e[TAGCI_EDGE_RESIDUAL].here;
    if (e[TAGCI_EDGE_SPARE].here)
        op->spare = e[TAGCI_EDGE_SPARE].here;
    if (op->tensor) {
        e[TAGCI_EDGE_RESIDUAL].user = op->tensor->residual;
        e[TAGCI_EDGE_SPARE].user = op->tensor->spare;
    }
    op->edges.begun = op->edges.come = op->edges.failed = 0;
    int input = op->copied[op->in_place ? TAGCI_EDGE_RECV : TAGCI_EDGE_SEND] || op->copied[TAGCI_EDGE_RESIDUAL];
    op->edges.streamed = input && !op->order && op->algorithm->takes != TAGCI_WHOLE && op->compressible &&
                         op->settings->verify == TAGCI_VERIFY_OFF;
    op->args.sendbuf = op->user_send;
    op->args.recvbuf = op->user_recv;
    put_into(&op->edges, &op->args);
    op->in = op->in_place ? op->args.recvbuf : op->args.sendbuf;
}

void tagci_op_leave_edges(struct tagci_op *op)
{
    op->args.sendbuf = op->user_send;
    op->args.recvbuf = op->user_recv;
}

/* ---- In ---- */

enum { stretches = TAGCI_MARKS - 2 }; /* a mark of the order of copies for each */

/* Chunks come in the order in which they are taken, first of all by who looks for cuts in them. */
static int part_by_part(const struct tagci_op *op)
{
    return op->share > 0 || op->algorithm->takes == TAGCI_BY_PART;
}

static size_t turns(const struct tagci_op *op)
{
    const struct tagci_geometry *g = &op->geometry;
    return part_by_part(op) ? g->first[g->ranks] : tagci_longest_part_chunks(g) * (size_t)g->ranks;
}

static size_t turn_of(const struct tagci_op *op, int owner, size_t c)
{
    size_t ranks = (size_t)op->geometry.ranks, behind = (size_t)(owner - op->comm->rank) + ranks - 1;
    return part_by_part(op) ? op->geometry.first[owner] + c : c * ranks + behind % ranks;
}

/* The chunk of this turn: its elements, 0 if the part has no such chunk. *owner: that of an earlier turn, or 0. */
static size_t chunk_of(const struct tagci_op *op, size_t turn, int *owner, size_t *begin)
{
    const struct tagci_geometry *g = &op->geometry;
    size_t ranks = (size_t)g->ranks, c = turn / ranks;
    if (part_by_part(op)) {
        while (turn >= g->first[*owner + 1])
            ++*owner;
        c = turn - g->first[*owner];
    } else {
        *owner = (int)(((size_t)op->comm->rank + 1 + turn) % ranks);
        if (c >= tagci_part_chunks(g, *owner))
            return 0;
    }
    return tagci_part_chunk(g, *owner, c, begin);
}

static int stretch_of(size_t turn, size_t of)
{
    return (int)(turn * stretches / of);
}

/* Input and residual of the elements [from, to). */
static int copy_elements(struct tagci_op *op, size_t from, size_t to)
{
    const struct tagci_edge *in = &op->edges.at[op->in_place ? TAGCI_EDGE_RECV : TAGCI_EDGE_SEND];
    const struct tagci_edge *e[] = {in, &op->edges.at[TAGCI_EDGE_RESIDUAL]};
    size_t size[] = {tagci_type_size(op->type), tagci_work_size(op->type)};
    struct tagci_order *copies = op->device->copies;
    int failed = 0;
    for (int i = 0; i < 2 && from < to && !failed; i++)
        if (e[i]->here)
            failed = op->device->of->copy(copies, e[i]->here + from * size[i], e[i]->user + from * size[i],
                                          (to - from) * size[i]);
    return failed;
}

static int begin_stretches(struct tagci_op *op)
{
    size_t turn = 0, of = turns(op), from = 0, to = 0;
    int owner = 0, failed = 0;
    for (int s = 0; s < stretches && !failed; s++) {
        for (; turn < of && stretch_of(turn, of) == s && !failed; turn++) {
            size_t begin, n = chunk_of(op, turn, &owner, &begin);
            if (n && begin != to) {
                failed = copy_elements(op, from, to);
                from = begin;
            }
            to = n ? begin + n : to;
        }
        failed = failed || copy_elements(op, from, to) || op->device->of->record(op->device->copies, s);
        from = op->edges.until[s] = to;
    }
    return failed;
}

/* 1: the mark is passed; 0: not yet; -1: something before it failed. */
static int passed(const struct tagci_op *op, struct tagci_order *order, int mark, int wait)
{
    const struct tagci_backend *b = op->device->of;
    return wait && op->blocking ? (b->wait(order, mark) ? -1 : 1) : b->query(order, mark);
}

static int has_come(struct tagci_op *op, int stretch, int wait)
{
    struct tagci_edges *e = &op->edges;
    while (e->streamed && e->come <= stretch) {
        int now = passed(op, op->device->copies, e->come, wait);
        if (!now)
            return 0;
        e->come = now < 0 ? stretches : e->come + 1;
        if (now < 0 && !op->broken)
            op->broken = tagci_op_ran(op, -1);
    }
    return 1;
}

int tagci_op_has_come(struct tagci_op *op, int owner, size_t c)
{
    return !op->edges.streamed || has_come(op, stretch_of(turn_of(op, owner, c), turns(op)), 0);
}

int tagci_op_all_has_come(struct tagci_op *op)
{
    return has_come(op, stretches - 1, 0);
}

size_t tagci_op_come(struct tagci_op *op, size_t least)
{
    const struct tagci_edges *e = &op->edges;
    size_t here = e->come ? e->until[e->come - 1] : 0;
    while (e->streamed && e->come < stretches && has_come(op, e->come, here < least))
        here = e->until[e->come - 1];
    return e->streamed && e->come < stretches ? here : op->geometry.n;
}

static int begin_in(struct tagci_op *op)
{
    struct tagci_device *d = op->device;
    void *stream = op->tensor ? op->tensor->stream : NULL;
    int failed = d->of->after(d->order, stream) || d->of->after(d->copies, stream);
    if (op->edges.streamed)
        return failed || begin_stretches(op) ? -1 : 0;
    for (int i = 0; i < TAGCI_EDGES && !failed; i++)
        failed = copy_in(d, &op->edges.at[i]);
    return failed || d->of->record(d->order, 0) ? -1 : 0;
}

enum tagci_progress tagci_op_copy_in(struct tagci_op *op)
{
    struct tagci_edges *e = &op->edges;
    int goes_on = op->order || e->streamed; /* a device's kernels wait by themselves; the others ask for each chunk */
    int now = e->begun ? 0 : begin_in(op) ? -1 : goes_on;
    e->begun = 1;
    if (!now)
        now = passed(op, op->device->order, 0, 1);
    if (now >= 0)
        return now ? TAGCI_THROUGH : TAGCI_PENDING;
    int code = op->code ? op->code : tagci_op_ran(op, -1);
    e->begun = 0;
    e->come = stretches;
    op->broken = code;
    if (op->tensor)
        op->code = code; /* the ranks hear of it when they agree */
    return op->tensor || e->streamed ? TAGCI_THROUGH : tagci_op_fail(op, code); /* or from the algorithm */
}

/* ---- Back ---- */

void tagci_op_hand_back(struct tagci_op *op, const void *at, size_t bytes)
{
    for (int i = TAGCI_EDGE_RECV; i < TAGCI_EDGES && op->device && bytes; i++) {
        struct tagci_edge *e = &op->edges.at[i];
        const unsigned char *from = at, *begin = e->here + e->back_from;
        if (!e->here || from < begin || from >= begin + e->back_bytes)
            continue;
        op->edges.failed |= tagci_device_copy(op->device, e->user + (from - e->here), at, bytes);
        e->gone += bytes;
    }
}

int tagci_op_hand_back_rest(struct tagci_op *op, int edge)
{
    return op->edges.failed || copy_back(op->device, &op->edges.at[edge]) ? -1 : 0;
}

enum tagci_progress tagci_op_copy_back(struct tagci_op *op)
{
    struct tagci_device *d = op->device;
    int now = 0;
    if (op->edges.begun == 1) {
        op->edges.begun = 2;
        if (tagci_op_hand_back_rest(op, TAGCI_EDGE_RECV) ||
            (op->residual_out && tagci_op_hand_back_rest(op, TAGCI_EDGE_SPARE)) || d->of->record(d->order, 0))
            now = -1;
    }
    if (!now)
        now = passed(op, d->order, 0, 1);
    return now < 0 ? tagci_op_run(op, -1) : now ? TAGCI_THROUGH : TAGCI_PENDING;
}
