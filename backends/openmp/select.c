/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Exact cut of the k largest magnitudes, without a copy of the data.
 *
 * A pass over the data counts what lies above a bracket of keys and collects what lies inside; if the k-th largest key
 * is in the bracket and all of it could be collected, it is found among those. A sample makes the first bracket so
 * narrow that it holds a few per cent of the data. Where there is no room to collect (many equal keys, a bracket that
 * missed, no scratch memory), the pass counts the keys inside in bins instead, and the next bracket is one bin. The
 * answer is exact in any case, and the same for any number of threads. */
#include "backends/openmp/select_keys.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "core/sample.h"
#include "util/mem.h"

#define SCRATCH ((size_t)4 << 20) /* bytes for keys: one of these in a process */
#define GUESS_RUN 4               /* neighbours that are looked at together for a guess, or a run of a sample */
#define GUESS_FROM 8192           /* smaller ones are collected whole */
#define MOST_THREADS 128

/* Scratch that one caller at a time has; others go without. */
static void *_Atomic scratch;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t users;

/* Without the scratch everything works, more slowly. */
int tagcb_select_open(void)
{
    pthread_mutex_lock(&lock);
    if (users++ == 0)
        atomic_store(&scratch, tagci_alloc(SCRATCH, 1));
    pthread_mutex_unlock(&lock);
    return 0;
}

void tagcb_select_close(void)
{
    pthread_mutex_lock(&lock);
    if (users > 0 && --users == 0)
        tagci_free(atomic_exchange(&scratch, NULL));
    pthread_mutex_unlock(&lock);
}

struct data {
    enum tagci_type type;
    const void *in, *residual;
    size_t n, width; /* bytes of a key */
    uint64_t inf;
    size_t all, runs; /* of `all` elements, these runs are the data (n = runs * TAGCI_SAMPLE_RUN); runs 0: all are */
};

/* A bracket of keys, and what a pass found out about it. */
struct bracket {
    uint64_t lo, hi;
    size_t above, inside, zeros; /* keys above it, in it, and zero */
    unsigned char *keys;         /* room for the keys inside, or NULL */
    size_t room;                 /* in keys */
    int collected;               /* they are all there; otherwise counted in bins */
    int shift;                   /* bin of a key: (key - lo) >> shift */
    uint64_t bins[BINS];
};

static void count_bins(const struct bracket *b, const void *keys, size_t n, size_t width, uint64_t *bins)
{
    if (width == 8)
        for (size_t i = 0; i < n; i++)
            bins[(((const uint64_t *)keys)[i] - b->lo) >> b->shift]++;
    else
        for (size_t i = 0; i < n; i++)
            bins[(((const uint32_t *)keys)[i] - b->lo) >> b->shift]++;
}

static const void *at(const void *base, size_t i, size_t size)
{
    return base ? (const char *)base + i * size : NULL;
}

/* Collects from elements [i, i + m) of the data; of sampled ones in whole runs. */
static size_t collect(const struct data *d, size_t i, size_t m, uint64_t lo, uint64_t hi, void *keys, size_t *above,
                      size_t *zeros)
{
    const struct tagcb_kernels *k = tagcb_kernels_now();
    size_t size = tagci_type_size(d->type);
    if (!d->runs)
        return k->collect(d->type, at(d->in, i, size), at(d->residual, i, d->width), m, lo, hi, keys, above, zeros);
    uint64_t values[TAGCB_COLLECT_MAX]; /* of the work type */
    size_t where[TAGCB_COLLECT_MAX / TAGCI_SAMPLE_RUN], first = i / TAGCI_SAMPLE_RUN, runs = m / TAGCI_SAMPLE_RUN;
    size_t piece = tagci_sample_piece(d->all, d->runs, first), next;
    for (size_t r = 0; r < runs; r++, piece = next) {
        next = tagci_sample_piece(d->all, d->runs, first + r + 1);
        where[r] = tagci_sample_in(piece, next, first + r);
    }
    k->gather_runs(d->type, d->in, d->residual, where, runs, values);
    return k->collect(d->width == 8 ? TAGCI_F64 : TAGCI_F32, values, NULL, m, lo, hi, keys, above, zeros);
}

/* What one thread saw in its part of the data. */
struct part {
    size_t above, inside, zeros;
    int collected; /* its keys inside stand in its part of the room */
};

/* One thread's part of a pass: elements [from, to), with room for `capacity` keys. */
static struct part pass_part(const struct data *d, struct bracket *b, size_t from, size_t to, unsigned char *room,
                             size_t capacity)
{
    struct part part = {0, 0, 0, 1};
    uint64_t bins[BINS], local[TAGCB_COLLECT_MAX + TAGCB_SLACK];
    for (size_t i = from; i < to; i += TAGCB_COLLECT_MAX) {
        size_t m = to - i < TAGCB_COLLECT_MAX ? to - i : TAGCB_COLLECT_MAX;
        int fits = part.collected && capacity - part.inside >= m + TAGCB_SLACK;
        if (part.collected && !fits) {
            part.collected = 0;
            memset(bins, 0, sizeof bins);
            count_bins(b, room, part.inside, d->width, bins);
        }
        void *keys = fits ? room + part.inside * d->width : (void *)local;
        size_t got = collect(d, i, m, b->lo, b->hi, keys, &part.above, &part.zeros);
        part.inside += got;
        if (!fits)
            count_bins(b, local, got, d->width, bins);
    }
    if (!part.collected) {
#pragma omp critical(tagcb_select)
        for (int i = 0; i < BINS; i++)
            b->bins[i] += bins[i];
    }
    return part;
}

static unsigned char *room_of(const struct data *d, const struct bracket *b, size_t capacity, int t)
{
    return b->keys ? b->keys + capacity * (size_t)t * d->width : NULL;
}

/* Looks at all the data with the bracket's lo and hi. */
static void pass(const struct data *d, struct bracket *b)
{
    struct part parts[MOST_THREADS];
    int threads = tagcb_threads(d->n / TAGCB_PIECE);
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    size_t capacity = b->room / (size_t)threads, step = (d->n / (size_t)threads + 64) & ~(size_t)63;
    b->above = b->inside = b->zeros = 0;
    b->collected = 1;
    b->shift = shift_for(b->lo, b->hi, BINS);
    memset(b->bins, 0, sizeof b->bins);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        size_t from = step * (size_t)t, to = from + step;
        tagcb_float_state state = tagcb_float_enter();
        parts[t] =
            pass_part(d, b, from < d->n ? from : d->n, to < d->n ? to : d->n, room_of(d, b, capacity, t), capacity);
        tagcb_float_leave(state);
    }
    for (int t = 0; t < threads; t++)
        b->collected &= parts[t].collected;
    for (int t = 0; t < threads; t++) {
        unsigned char *keys = room_of(d, b, capacity, t);
        if (b->collected)
            memmove(b->keys + b->inside * d->width, keys, parts[t].inside * d->width);
        else if (parts[t].collected)
            count_bins(b, keys, parts[t].inside, d->width, b->bins);
        b->above += parts[t].above;
        b->inside += parts[t].inside;
        b->zeros += parts[t].zeros;
    }
}

/* First bracket, by a sample that goes to the room: four standard deviations and a half to both sides, and some more
 * because neighbours resemble each other. */
static void guess(const struct data *d, size_t k, struct bracket *b)
{
    size_t each = d->runs ? TAGCI_SAMPLE_RUN : GUESS_RUN, runs = d->n / (64 * each), got = 0, unused = 0, greater,
           equal;
    size_t most = b->room / (2 * each) < 32768 / each ? b->room / (2 * each) : 32768 / each;
    uint64_t random = 1, top = d->width == 8 ? INT64_MAX : INT32_MAX;
    runs = runs < most ? runs : most;
    if (runs < 64)
        return;
    size_t stride = d->n / runs;
    for (size_t i = 0; i < runs; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t where = i * stride + (size_t)(random >> 33) % (stride - each + 1);
        if (d->runs)
            where -= where % TAGCI_SAMPLE_RUN;
        got += collect(d, where, each, 0, top, b->keys + got * d->width, &unused, &unused);
    }
    double p = (double)k / (double)d->n, middle = p * (double)got;
    double margin = 6.5 * sqrt((double)got * p * (1 - p)) + 4;
    size_t upper = middle - margin < 1 ? 0 : (size_t)(middle - margin), lower = (size_t)(middle + margin);
    unsigned char *copy = b->keys + got * d->width;
    memcpy(copy, b->keys, got * d->width);
    if (lower < got) {
        uint64_t lo = select_key(copy, got, d->width, 0, top, lower, &greater, &equal);
        b->lo = lo > 1 ? lo : 1;
    }
    if (upper > 0) {
        uint64_t hi = select_key(b->keys, got, d->width, 0, top, upper, &greater, &equal);
        b->hi = hi < b->hi ? hi : b->hi;
    }
    if (b->lo > b->hi) /* the sample is full of Inf */
        b->lo = 1;
}

/* Narrows the bracket until it is one key. The caller has set the first bracket. */
static void search(const struct data *d, size_t k, struct bracket *b, struct tagci_cut *cut, size_t *above,
                   size_t *tied)
{
    const uint64_t largest = d->inf - 1;
    for (;;) {
        pass(d, b);
        size_t nonzero = d->n - b->zeros;
        if (nonzero <= k) {
            *cut = TAGCI_CUT_NONZERO;
            *above = nonzero;
            *tied = 0;
            return;
        }
        if (b->above >= k && b->hi == largest) { /* Inf and NaN alone are enough, and all of them stay */
            *cut = (struct tagci_cut){largest, 0};
            *above = b->above;
            *tied = d->runs            ? 0
                    : b->lo == largest ? b->inside
                                       : tagcb_openmp_count_key(d->type, d->in, d->residual, d->n, largest);
            return;
        }
        if (b->above >= k) {
            b->lo = b->hi + 1;
            b->hi = largest;
            continue;
        }
        if (b->above + b->inside < k) { /* there are smaller ones that are not zero, so lo is not 1 */
            b->hi = b->lo - 1;
            b->lo = 1;
            continue;
        }
        size_t r = k - b->above, greater;
        uint64_t key;
        if (b->collected) {
            key = select_key(b->keys, b->inside, d->width, b->lo, b->hi, r, &greater, tied);
        } else {
            uint64_t bin = (uint64_t)find_bin(b->bins, BINS, r, &greater);
            key = b->lo + (bin << b->shift);
            if (b->shift > 0) {
                uint64_t last = key + (((uint64_t)1 << b->shift) - 1);
                b->lo = key;
                b->hi = last < b->hi ? last : b->hi;
                continue;
            }
            *tied = b->bins[bin];
        }
        *cut = (struct tagci_cut){key, r - greater};
        *above = k;
        return;
    }
}

/* So few that all keys fit on the stack. */
static void search_few(const struct data *d, size_t k, struct tagci_cut *cut, size_t *above, size_t *tied)
{
    uint64_t keys[TAGCB_COLLECT_MAX + TAGCB_SLACK];
    size_t over = 0, zeros = 0, greater;
    tagcb_float_state state = tagcb_float_enter();
    size_t n = tagcb_kernels_now()->collect(d->type, d->in, d->residual, d->n, 1, d->inf - 1, keys, &over, &zeros);
    tagcb_float_leave(state);
    if (over + n <= k) {
        *cut = TAGCI_CUT_NONZERO;
        *above = over + n;
        *tied = 0;
    } else if (over >= k) {
        *cut = (struct tagci_cut){d->inf - 1, 0};
        *above = over;
        *tied = 0;
        for (size_t i = 0; i < n; i++)
            *tied += key_at(keys, i, d->width) == d->inf - 1;
    } else {
        uint64_t key = select_key(keys, n, d->width, 1, d->inf - 1, k - over, &greater, tied);
        *cut = (struct tagci_cut){key, k - over - greater};
        *above = k;
    }
}

static void search_all(const struct data *d, size_t k, struct tagci_cut *cut, size_t *above, size_t *tied)
{
    struct bracket b = {.lo = k ? 1 : d->inf - 1, .hi = d->inf - 1};
    void *room = atomic_exchange(&scratch, NULL);
    if (room) {
        b.keys = room;
        b.room = SCRATCH / d->width;
        int all_fit = d->runs && d->n + TAGCB_SLACK + TAGCB_COLLECT_MAX * 2 <= b.room; /* better than a second look */
        if (k && d->n > GUESS_FROM && !all_fit)
            guess(d, k, &b);
    }
    search(d, k, &b, cut, above, tied);
    if (room)
        atomic_store(&scratch, room);
}

void tagcb_openmp_select(enum tagci_type type, const void *in, const void *residual, size_t n, size_t k,
                         struct tagci_cut *cut, size_t *above, size_t *tied)
{
    struct data d = {.type = type, .in = in, .residual = residual, .n = n, .width = tagci_work_size(type)};
    d.inf = tagci_work_is_double(type) ? TAGCI_KEY_INF_F64 : TAGCI_KEY_INF_F32;
    if (n <= TAGCB_COLLECT_MAX)
        search_few(&d, k, cut, above, tied);
    else
        search_all(&d, k, cut, above, tied);
}

/* By the sample, unless many are equal there. */
void tagcb_openmp_choose(enum tagci_type type, struct tagci_choice *c)
{
    size_t keep = c->runs ? tagci_sample_keep(c->n, c->k, c->runs) : 0;
    struct data d = {.type = type, .in = c->in, .residual = c->residual, .width = tagci_work_size(type)};
    d.inf = tagci_work_is_double(type) ? TAGCI_KEY_INF_F64 : TAGCI_KEY_INF_F32;
    d.n = c->runs * TAGCI_SAMPLE_RUN;
    d.all = c->n;
    d.runs = c->runs;
    if (keep)
        search_all(&d, keep, &c->cut, &c->above, &c->tied);
    if (keep && !tagci_sample_tied(c->tied, keep)) {
        c->cut.ties = c->cut.key ? UINT64_MAX : 0;
        c->above = c->tied = 0;
    } else {
        tagcb_openmp_select(type, c->in, c->residual, c->n, c->k, &c->cut, &c->above, &c->tied);
    }
}

size_t tagcb_openmp_count_key(enum tagci_type type, const void *in, const void *residual, size_t n, uint64_t key)
{
    size_t count = 0, size = tagci_type_size(type), work = tagci_work_size(type);
    int threads = tagcb_threads(n / TAGCB_PIECE);
    size_t step = (n / (size_t)threads + 64) & ~(size_t)63;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1) reduction(+ : count)
    for (int t = 0; t < threads; t++) {
        size_t from = step * (size_t)t < n ? step * (size_t)t : n, to = from + step < n ? from + step : n;
        tagcb_float_state state = tagcb_float_enter();
        count += tagcb_kernels_now()->count_key(type, at(in, from, size), at(residual, from, work), to - from, key);
        tagcb_float_leave(state);
    }
    return count;
}
