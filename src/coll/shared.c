/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/shared.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/hash.h"
#include "util/mem.h"

enum { head = TAGCI_ALIGN }; /* before what the ranks are given: the mark */

/* How the ranks find the memory: rank 0 makes a file of that name in it, and writes the mark, in case that another machine
 * takes itself for this one. */
struct meeting {
    char name[64]; /* empty: there is none */
    uint64_t mark;
};

static unsigned char *map(int file, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* The memory is taken now: a page that is missing when it is written to would end the process. */
static unsigned char *make(struct meeting *m, size_t bytes)
{
    static unsigned made;
    double now = MPI_Wtime();
    unsigned char *at = NULL;
    memcpy(&m->mark, &now, sizeof m->mark);
    m->mark = tagci_hash(m->mark, (uint64_t)getpid());
    snprintf(m->name, sizeof m->name, "/tagc-%ld-%u-%08x", (long)getpid(),
             __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED), (unsigned)m->mark);
    int file = shm_open(m->name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0) {
        m->name[0] = 0;
        return NULL;
    }
    if (!posix_fallocate(file, 0, (off_t)bytes) && (at = map(file, bytes)))
        memcpy(at, &m->mark, sizeof m->mark);
    close(file);
    return at;
}

static unsigned char *find(const struct meeting *m, size_t bytes)
{
    unsigned char *at = NULL;
    int file = m->name[0] ? shm_open(m->name, O_RDWR, 0) : -1;
    if (file < 0)
        return NULL;
    if (lseek(file, 0, SEEK_END) == (off_t)bytes && (at = map(file, bytes)) &&
        memcmp(at, &m->mark, sizeof m->mark) != 0) {
        munmap(at, bytes);
        at = NULL;
    }
    close(file);
    return at;
}

int tagci_shared_open(MPI_Comm comm, size_t bytes, int usable, void **at)
{
    struct meeting m = {.name = ""};
    unsigned char *all = NULL;
    int rank;
    MPI_Comm_rank(comm, &rank);
    bytes = tagci_add(bytes, head);
    if (rank == 0 && usable)
        all = make(&m, bytes);
    int code = MPI_Bcast(&m, (int)sizeof m, MPI_BYTE, 0, comm);
    if (!code && rank != 0 && usable)
        all = find(&m, bytes);
    int ok = all != NULL;
    if (!code)
        code = MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, comm);
    if (rank == 0 && m.name[0])
        shm_unlink(m.name); /* all have it */
    if (all && (code || !ok)) {
        munmap(all, bytes);
        all = NULL;
    }
    *at = all ? all + head : NULL;
    return code;
}

void tagci_shared_close(void *at, size_t bytes)
{
    if (at)
        munmap((unsigned char *)at - head, bytes + head);
}
