/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/messages.h"

#include "util/error.h"

size_t tagci_messages_room(size_t n)
{
    return tagci_add(tagci_op_piece(n, sizeof(MPI_Request)),
                     tagci_add(tagci_op_piece(n, sizeof(int)), tagci_op_piece(n, sizeof(MPI_Status))));
}

void tagci_messages_lay_out(struct tagci_op *op, struct tagci_messages *m, size_t n)
{
    m->n = (int)n;
    m->request = tagci_op_take(op, n, sizeof *m->request);
    m->index = tagci_op_take(op, n, sizeof *m->index);
    m->status = tagci_op_take(op, n, sizeof *m->status);
}

void tagci_messages_begin(struct tagci_messages *m)
{
    for (int i = 0; i < m->n; i++)
        m->request[i] = MPI_REQUEST_NULL;
}

int tagci_messages_look(struct tagci_op *op, struct tagci_messages *m, int block, int *done)
{
    double then = MPI_Wtime();
    int code = block ? MPI_Waitsome(m->n, m->request, done, m->index, m->status)
                     : MPI_Testsome(m->n, m->request, done, m->index, m->status);
    tagci_op_count(op, TAGC_STAT_TIME_COMM, MPI_Wtime() - then);
    if (code && tagci_error_class(code) == MPI_ERR_IN_STATUS)
        for (int i = 0; i < *done; i++)
            if (m->status[i].MPI_ERROR)
                return m->status[i].MPI_ERROR;
    if (code || *done == MPI_UNDEFINED)
        *done = 0;
    return code;
}
