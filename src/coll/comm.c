/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * State of communicators and of the library as a whole. */
#include "coll/comm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/device.h"
#include "coll/agree.h"
#include "coll/board.h"
#include "coll/nodes.h"
#include "tagc.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int started; /* 1: yes; 2: over, MPI_Finalize has begun */
static int comm_key = MPI_KEYVAL_INVALID;
static struct tagci_comm *all_comms;
static void (*at_finalize[8])(void);
static int n_at_finalize;

int tagci_mpi_usable(void)
{
    int yes = 0, over = 0;
    MPI_Initialized(&yes);
    if (yes)
        MPI_Finalized(&over);
    return yes && !over;
}

void tagci_at_finalize(void (*f)(void))
{
    pthread_mutex_lock(&lock);
    int known = 0;
    for (int i = 0; i < n_at_finalize; i++)
        known |= at_finalize[i] == f;
    if (!known && n_at_finalize < 8)
        at_finalize[n_at_finalize++] = f;
    pthread_mutex_unlock(&lock);
}

void tagci_comm_hold(struct tagci_comm *c)
{
    __atomic_add_fetch(&c->holders, 1, __ATOMIC_RELAXED);
}

static void discard(struct tagci_comm *c)
{
    tagci_board_release(c->board);
    tagci_nodes_free(c->nodes);
    tagci_free(c->setup_why);
    tagci_free(c);
}

void tagci_comm_drop(struct tagci_comm *c)
{
    if (__atomic_sub_fetch(&c->holders, 1, __ATOMIC_ACQ_REL))
        return;
    pthread_mutex_lock(&lock);
    struct tagci_comm **at = &all_comms;
    while (*at && *at != c)
        at = &(*at)->next;
    if (*at)
        *at = c->next;
    pthread_mutex_unlock(&lock);
    if (c->private != MPI_COMM_NULL && tagci_mpi_usable())
        MPI_Comm_free(&c->private);
    if (c->nodes) {
        tagci_comm_drop(c->nodes->here);
        tagci_comm_drop(c->nodes->across);
    }
    discard(c);
}

static int comm_deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    ((struct tagci_comm *)value)->user_gone = 1;
    tagci_comm_drop(value);
    return MPI_SUCCESS;
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first, while MPI still works. */
static int finalizing(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    __atomic_store_n(&started, 2, __ATOMIC_RELEASE);
    for (int i = n_at_finalize; i-- > 0;)
        at_finalize[i]();
    tagci_device_release_all();
    /* What the user's communicators still hold goes when MPI deletes their attributes; MPI does not promise to do that
     * for those alive at the end, so the duplicates go now and the states stay valid until then. */
    for (struct tagci_comm *c = all_comms; c; c = c->next)
        if (c->private != MPI_COMM_NULL)
            MPI_Comm_free(&c->private);
    return MPI_SUCCESS;
}

/* The states of communicators that MPI never deleted. Runs after main, when nobody calls any more. */
__attribute__((destructor)) static void process_ends(void)
{
    while (all_comms) {
        struct tagci_comm *c = all_comms;
        all_comms = c->next;
        discard(c);
    }
}

static void warn_about_launch(void)
{
    const char *tasks = getenv("SLURM_NTASKS");
    int world = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    if (tasks && getenv("SLURM_PROCID") && world == 1 && atoi(tasks) > 1)
        tagci_log_warn_once("Slurm started %s tasks but each is an MPI world of 1: this MPI and srun do not meet; see "
                            "srun --mpi=list and try --mpi=pmi2 or --mpi=pmix",
                            tasks);
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
#if defined(OMPI_MAJOR_VERSION)
    const char *built = "Open MPI";
#elif defined(MPICH_VERSION)
    const char *built = "MPI"; /* MPICH and its relatives share one ABI */
    if (strstr(text, "Open MPI"))
        built = "MPICH";
#else
    const char *built = "";
#endif
    if (!strstr(text, built))
        tagci_log_warn_once("built with %s, running with: %.80s", built, text);
}

int tagci_start_library(void)
{
    int state = __atomic_load_n(&started, __ATOMIC_ACQUIRE);
    if (state)
        return state == 1 ? MPI_SUCCESS : MPI_ERR_OTHER;
    if (!tagci_mpi_usable())
        return MPI_ERR_OTHER;
    pthread_mutex_lock(&lock);
    int code = MPI_SUCCESS;
    if (!started) {
        int self_key;
        code = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, comm_deleted, &comm_key, NULL);
        if (!code)
            code = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalizing, &self_key, NULL);
        if (!code)
            code = MPI_Comm_set_attr(MPI_COMM_SELF, self_key, NULL);
        if (!code)
            MPI_Comm_free_keyval(&self_key); /* goes with its last attribute */
        if (!code) {
            warn_about_launch();
            __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Collective over the ranks of a node: how many of them may use the processors that this one may use. Threads follow. */
static void share_processors(MPI_Comm node, int here)
{
    uint64_t own = tagcb_openmp_processors(), *all = tagci_alloc(here, sizeof *all);
    int good = all != NULL, sharers = 0;
    if (MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, node) == MPI_SUCCESS && good &&
        MPI_Allgather(&own, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, node) == MPI_SUCCESS)
        for (int r = 0; r < here; r++)
            sharers += own != 0 && all[r] == own;
    tagcb_openmp_shared_by(sharers);
    tagci_free(all);
}

/* Collective: the ranks compare their environments and learn where they are. */
static int meet(const char *call, struct tagci_comm *c)
{
    char why[512];
    int own = MPI_SUCCESS;
    enum tagci_setting_error e = tagci_settings_exact(&c->exact, why, sizeof why);
    if (e)
        own = tagci_error(TAGC_ERR_SETTING, "%s: %s", call, why);
    uint64_t hash = e ? 0 : tagci_settings_hash(&c->exact);

    MPI_Comm node;
    int here = 0;
    int split = tagci_nodes_split(c, &node);
    if (!split) {
        MPI_Comm_size(node, &here);
        share_processors(node, here);
    }
    struct tagci_agreement a;
    tagci_agreement_init(&a, own, hash, c);
    a.word[TAGCI_AGREE_LARGEST] = -here;
    int code = MPI_Allreduce(MPI_IN_PLACE, a.word, TAGCI_AGREE_WORDS, MPI_INT64_T, MPI_MAX, c->private);
    if (!code)
        c->one_node = a.word[TAGCI_AGREE_LARGEST] == -c->size;
    /* a.word: what all ranks know */
    if (!code && !c->one_node && a.word[TAGCI_AGREE_LARGEST] < 0)
        code = tagci_nodes_find(c, node);
    else if (!split)
        MPI_Comm_free(&node);
    if (code)
        return code;
    return tagci_agreement_result(&a, own, c, call, "", "the TAGC_ environment variables");
}

int tagci_comm_adopt(MPI_Comm private, struct tagci_comm **state)
{
    struct tagci_comm *c = tagci_alloc_zero(1, sizeof *c);
    if (!c) {
        MPI_Comm_free(&private);
        return MPI_ERR_NO_MEM;
    }
    c->private = private;
    c->holders = 1;
    MPI_Comm_set_errhandler(c->private, MPI_ERRORS_RETURN);
    MPI_Comm_rank(c->private, &c->rank);
    MPI_Comm_size(c->private, &c->size);
    pthread_mutex_lock(&lock);
    c->next = all_comms;
    all_comms = c;
    pthread_mutex_unlock(&lock);
    *state = c;
    return MPI_SUCCESS;
}

static int make(MPI_Comm comm, struct tagci_comm **state)
{
    /* Not MPI_Comm_dup, which would run the user's attribute copies. */
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm private = MPI_COMM_NULL;
    int code = MPI_Comm_group(comm, &group);
    if (!code) {
        code = MPI_Comm_create(comm, group, &private);
        MPI_Group_free(&group);
    }
    if (code)
        return code;
    return tagci_comm_adopt(private, state);
}

int tagci_comm_copy(struct tagci_comm *c, struct tagci_comm **copy)
{
    int code = make(c->private, copy);
    if (code)
        return code;
    (*copy)->one_node = c->one_node;
    (*copy)->exact = c->exact;
    MPI_Comm node;
    if (!c->nodes || (code = tagci_nodes_split(*copy, &node)))
        return code;
    return tagci_nodes_find(*copy, node);
}

/* The first call's error is that of every later call too, which it then names. */
static void keep_setup_error(struct tagci_comm *c, const char *call, int code)
{
    char text[TAGC_MAX_ERROR_STRING];
    size_t skip = strlen(call);
    tagci_error_text(code, text);
    const char *why = strncmp(text, call, skip) == 0 ? text + skip + strspn(text + skip, ": ") : text;
    c->setup_error = tagci_error_class(code);
    c->setup_why = tagci_alloc(strlen(why) + 1, 1);
    if (c->setup_why)
        strcpy(c->setup_why, why);
}

static int setup_error_again(const char *call, const struct tagci_comm *c)
{
    return tagci_error(c->setup_error, "%s: %s", call, c->setup_why ? c->setup_why : "the communicator's setup failed");
}

int tagci_comm_look(const char *call, MPI_Comm comm, struct tagci_comm **state)
{
    *state = NULL;
    int code = tagci_start_library();
    if (code)
        return tagci_error(MPI_ERR_OTHER, "%s: MPI is not initialized, or is finalized", call);
    if (comm == MPI_COMM_NULL)
        return tagci_error(MPI_ERR_COMM, "%s: comm is MPI_COMM_NULL", call);
    int found, inter;
    if ((code = MPI_Comm_get_attr(comm, comm_key, state, &found)))
        return code;
    if (found)
        return MPI_SUCCESS;
    *state = NULL;
    if ((code = MPI_Comm_test_inter(comm, &inter)))
        return code;
    return inter ? tagci_error(MPI_ERR_COMM, "%s: comm is an inter-communicator", call) : MPI_SUCCESS;
}

int tagci_comm_get(const char *call, MPI_Comm comm, struct tagci_comm **state)
{
    int code = tagci_comm_look(call, comm, state);
    if (code)
        return code;
    if (*state)
        return (*state)->setup_error ? setup_error_again(call, *state) : MPI_SUCCESS;

    struct tagci_comm *c = NULL;
    if ((code = make(comm, &c)))
        return tagci_error_of_mpi(code, call, "", "no duplicate of the communicator");
    int setup = meet(call, c);
    if (setup)
        keep_setup_error(c, call, setup);
    if ((code = MPI_Comm_set_attr(comm, comm_key, c))) {
        tagci_comm_drop(c);
        return code;
    }
    *state = c;
    return setup;
}
