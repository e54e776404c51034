/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/nodes.h"

#include "util/mem.h"

int tagci_nodes_pretend;

int tagci_nodes_split(struct tagci_comm *c, MPI_Comm *here)
{
    int k = tagci_nodes_pretend;
    if (k)
        return MPI_Comm_split(c->private, k > 0 ? c->rank / k : c->rank % -k, 0, here);
    return MPI_Comm_split_type(c->private, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, here);
}

/* What is known of every rank: the lowest rank of its node, and its own there. */
struct place {
    int lowest, local;
};

/* Returns 0 if the nodes are not alike. index: room for a number for each rank. */
static int number(struct tagci_nodes *n, const struct place *of, int *index, int size, int me)
{
    n->nodes = 0;
    for (int r = 0; r < size; r++)
        if (of[r].lowest == r)
            index[r] = n->nodes++;
    n->per_node = size / n->nodes;
    if (n->nodes < 2 || n->per_node < 2 || n->nodes * n->per_node != size)
        return 0;
    for (int r = 0; r < size; r++) {
        if (of[r].local >= n->per_node)
            return 0;
        n->rank[index[of[r].lowest] * n->per_node + of[r].local] = r;
    }
    n->node = index[of[me].lowest];
    n->local = of[me].local;
    return 1;
}

int tagci_nodes_find(struct tagci_comm *c, MPI_Comm here)
{
    int code, alike = 0, size = c->size;
    struct place mine = {.lowest = c->rank}, *of = tagci_alloc(size, sizeof *of + sizeof(int));
    struct tagci_nodes *n = tagci_alloc_zero(1, sizeof *n + (size_t)size * sizeof n->rank[0]);
    int memory = of && n;
    code = MPI_Allreduce(MPI_IN_PLACE, &memory, 1, MPI_INT, MPI_MIN, c->private);
    if (!code && !memory)
        code = MPI_ERR_NO_MEM;
    if (!code)
        code = MPI_Allreduce(MPI_IN_PLACE, &mine.lowest, 1, MPI_INT, MPI_MIN, here);
    if (!code) {
        MPI_Comm_rank(here, &mine.local);
        code = MPI_Allgather(&mine, 2, MPI_INT, of, 2, MPI_INT, c->private);
    }
    if (!code)
        alike = number(n, of, (int *)(of + size), size, c->rank);
    /* Memory that MPI says is shared may still be none: ranks in containers of their own */
    int share = alike && !(code = tagci_lanes_open(here, &n->lanes)) && n->lanes;
    int all = MPI_Allreduce(MPI_IN_PLACE, &share, 1, MPI_INT, MPI_MIN, c->private);
    code = code ? code : all;
    MPI_Comm across;
    if (!code && share && !(code = MPI_Comm_split(c->private, n->local, n->node, &across)) &&
        !(code = tagci_comm_adopt(across, &n->across))) {
        code = tagci_comm_adopt(here, &n->here);
        here = MPI_COMM_NULL;
        if (!code) {
            c->nodes = n;
            n = NULL;
        }
    }
    if (here != MPI_COMM_NULL)
        MPI_Comm_free(&here);
    tagci_free(of);
    tagci_nodes_free(n);
    return code;
}

void tagci_nodes_free(struct tagci_nodes *n)
{
    if (n)
        tagci_lanes_close(n->lanes);
    tagci_free(n);
}
