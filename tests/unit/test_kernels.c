/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Kernels of every instruction set that this machine has, with 1, 2 and 7 threads, against the reference. Inputs and
 * outputs end where memory ends. */
#include "reference.h"
#include "util/mem.h"
#include "core/bitmap.h"
#include "core/sample.h"

static const size_t sizes[] = {0,  1,   2,   7,   8,   9,   15,  16,   17,   31,   32,   33,   63,   64,   65,
                               66, 127, 128, 129, 200, 511, 512, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 5000};
#define SIZES (sizeof sizes / sizeof *sizes)

/* A chunk with all its buffers, exactly as large as they must be. */
struct set {
    struct tagci_chunk chunk;
    size_t in_bytes, work_bytes, bitmap_bytes, frame_bytes;
    struct tagci_run runs[64];
};

static void set_up(struct set *s, enum tagci_type type, enum tagci_value value, size_t n, enum pattern pattern,
                   uint64_t seed, int residual)
{
    memset(s, 0, sizeof *s);
    s->in_bytes = n * tagci_type_size(type);
    s->work_bytes = n * tagci_work_size(type);
    s->bitmap_bytes = (n + 63) / 64 * 8;
    s->frame_bytes = tagci_frame_bound(type, value, n);
    void *in = guarded(s->in_bytes), *old = NULL;
    fill_input(type, pattern, seed, n, in);
    if (residual) {
        old = guarded(s->work_bytes);
        fill_residual(type, seed + 1, n, old);
    }
    s->chunk = (struct tagci_chunk){.type = type,
                                    .n = n,
                                    .in = in,
                                    .residual = old,
                                    .residual_out = guarded(s->work_bytes),
                                    .runs = s->runs,
                                    .nruns = 1,
                                    .bitmap = guarded(s->bitmap_bytes),
                                    .values = guarded(s->work_bytes),
                                    .value = value,
                                    .frame = guarded(s->frame_bytes)};
    s->runs[0] = (struct tagci_run){n, TAGCI_CUT_NONZERO};
}

static void tear_down(struct set *s)
{
    unguard((void *)(uintptr_t)s->chunk.in, s->in_bytes);
    unguard((void *)(uintptr_t)s->chunk.residual, s->work_bytes);
    unguard(s->chunk.residual_out, s->work_bytes);
    unguard(s->chunk.bitmap, s->bitmap_bytes);
    unguard(s->chunk.values, s->work_bytes);
    unguard(s->chunk.frame, s->frame_bytes);
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The cut by sorting everything. */
static void reference_select(const struct tagci_chunk *c, size_t k, struct tagci_cut *cut, size_t *above, size_t *tied)
{
    uint64_t *keys = malloc((c->n + 1) * sizeof *keys), inf = reference_inf(c->type);
    size_t nonzero = 0, endless = 0, greater = 0;
    for (size_t i = 0; i < c->n; i++) {
        keys[i] = work_key(c->type, input_get(c->type, c->in, c->residual, i));
        nonzero += keys[i] > 0;
        endless += keys[i] >= inf;
    }
    qsort(keys, c->n, sizeof *keys, by_key);
    *tied = 0;
    if (nonzero <= k) {
        *cut = TAGCI_CUT_NONZERO;
        *above = nonzero;
    } else {
        *cut = (struct tagci_cut){endless >= k ? inf - 1 : keys[k - 1], 0};
        for (size_t i = 0; i < c->n; i++) {
            greater += keys[i] > cut->key;
            *tied += keys[i] == cut->key;
        }
        cut->ties = endless >= k ? 0 : k - greater;
        *above = endless >= k ? endless : k;
    }
    free(keys);
}

static void check_select(const struct tagci_chunk *c, size_t k)
{
    struct tagci_cut want, got;
    size_t above, tied, got_above, got_tied;
    reference_select(c, k, &want, &above, &tied);
    run_select(c->type, c->in, c->residual, c->n, k, &got, &got_above, &got_tied);
    assert_int_equal(got.key, want.key);
    assert_int_equal(got.ties, want.ties);
    assert_int_equal(got_above, above);
    assert_int_equal(got_tied, tied);
    assert_int_equal(run_count_key(c->type, c->in, c->residual, c->n, want.key),
                     want.key ? tied : run_count_key(c->type, c->in, c->residual, c->n, 0));
}

/* encode and sparsify against the reference, and the law of the residual. */
static void check_chunk(struct set *s)
{
    struct tagci_chunk *c = &s->chunk;
    unsigned char *want = malloc(16 * c->n + 64);
    void *rest = malloc(s->work_bytes + 8);
    double *v = malloc((c->n + 1) * sizeof *v);
    unsigned char *kept = malloc(c->n + 1);
    size_t count, bytes = reference_encode(c, want, rest, &count);

    reference_cut(c, v, kept);
    run_encode(c, 1);
    assert_int_equal(c->kept, count);
    assert_int_equal(c->frame_bytes, bytes);
    assert_true(bytes <= s->frame_bytes);
    if (!c->seal)
        assert_memory_equal(c->frame, want, bytes);
    assert_memory_equal(c->residual_out, rest, s->work_bytes);
    for (size_t i = 0; i < c->n; i++)
        assert_int_equal(c->bitmap[i / 64] >> i % 64 & 1, kept[i]);
    if (c->n % 64)
        assert_int_equal(c->bitmap[c->n / 64] >> c->n % 64, 0);

    /* what comes out again, and what was kept back, is what went in */
    struct tagci_decode d = {.n = c->n, .sum = guarded(s->work_bytes), .seen = guarded(s->bitmap_bytes), .first = 1};
    const char *reason;
    unsigned char *frame = guarded(bytes); /* decoding may read nothing past its end */
    memcpy(frame, c->frame, bytes);
    assert_int_equal(tagci_frame_read(frame, bytes, c->type, c->n, c->seal, &d.frame, &reason), 0);
    run_decode(&d, 1);
    for (size_t i = 0; i < c->n; i++) {
        double sent = work_get(c->type, d.sum, i), left = work_get(c->type, c->residual_out, i);
        assert_true(isfinite(left));
        if (!isfinite(v[i]))
            assert_true(left == 0 && (v[i] != v[i] ? sent != sent : sent == v[i]));
        else if (!kept[i])
            assert_true(sent == 0 && left == v[i]);
        else
            assert_true(isfinite(sent) && left == work_round(c->type, v[i] - sent));
    }
    if (d.frame.indexed)
        assert_memory_equal(d.seen, c->bitmap, s->bitmap_bytes);
    for (size_t i = 0; !d.frame.indexed && i < c->n; i++)
        assert_true(d.seen[i / 64] >> i % 64 & 1);
    if (c->n % 64)
        assert_int_equal(d.seen[c->n / 64] >> c->n % 64, 0);
    /* once more, added */
    d.first = 0;
    for (size_t i = 0; d.frame.indexed && i < s->bitmap_bytes / 8; i++)
        d.seen[i] = ~c->bitmap[i];
    run_decode(&d, 1);
    for (size_t i = 0; i < s->bitmap_bytes / 8; i++)
        assert_true(!d.frame.indexed || d.seen[i] == UINT64_MAX);
    memcpy(rest, d.sum, s->work_bytes);
    d.first = 1;
    run_decode(&d, 1);
    for (size_t i = 0; i < c->n; i++) {
        double once = work_get(c->type, d.sum, i), twice = work_get(c->type, rest, i);
        assert_true(once != once ? twice != twice : twice == work_round(c->type, once + once));
    }
    unguard(frame, bytes);
    unguard(d.sum, s->work_bytes);
    unguard(d.seen, s->bitmap_bytes);

    /* sparsify: the kept values as they are, nothing of them left */
    memset(c->residual_out, 0x5a, s->work_bytes);
    memset(c->bitmap, 0x5a, s->bitmap_bytes);
    run_sparsify(c, 1);
    assert_int_equal(c->kept, count);
    for (size_t i = 0, j = 0; i < c->n; i++) {
        assert_int_equal(c->bitmap[i / 64] >> i % 64 & 1, kept[i]);
        double left = work_get(c->type, c->residual_out, i);
        assert_true(kept[i] ? left == 0 : left == v[i]);
        assert_false(left == 0 && signbit(left));
        if (kept[i]) {
            double x = work_get(c->type, c->values, j++);
            assert_true(v[i] != v[i] ? x != x : x == v[i]);
        }
    }
    if (c->n % 64)
        assert_int_equal(c->bitmap[c->n / 64] >> c->n % 64, 0);
    free(want);
    free(rest);
    free(v);
    free(kept);
}

static void test_every_form(void **state)
{
    (void)state;
    static const double shares[] = {0.2, 0, 1, 0.01, 0.5, 0.98};
    for (int variant = 0; variant < variant_count(); variant++) {
        use_variant(variant, 1);
        for (int type = 0; type < TAGCI_TYPES; type++)
            for (int value = 0; value < TAGCI_VALUES; value++)
                for (int pattern = 0; pattern < PATTERNS; pattern++)
                    for (size_t i = 0; i < SIZES; i++) {
                        size_t n = sizes[i], pick = i + (size_t)(type * 5 + value * 3 + pattern * 7);
                        size_t above, tied;
                        struct set s;
                        if (slow && (pick + (size_t)variant) % 7)
                            continue;
                        set_up(&s, type, value, n, pattern, n * 7 + pick, pick % 3 != 0);
                        size_t k = (size_t)(shares[pick % 6] * (double)n);
                        check_select(&s.chunk, k);
                        run_select(type, s.chunk.in, s.chunk.residual, n, k, &s.runs[0].cut, &above, &tied);
                        s.chunk.all = pick % 11 == 0;
                        s.chunk.stream = pick % 2;
                        s.chunk.index = (enum tagci_index)(pick / 6 % 3);
                        check_chunk(&s);
                        assert_int_equal(s.chunk.kept, s.chunk.all ? n : above);
                        tear_down(&s);
                    }
    }
}

static void test_runs(void **state)
{
    (void)state;
    static const size_t lengths[] = {65, 64, 1, 63, 130, 0, 100, 4096};
    for (int variant = 0; variant < variant_count(); variant++) {
        use_variant(variant, 1);
        for (int type = 0; type < TAGCI_TYPES; type++)
            for (size_t l = 0; l < 8; l++)
                for (int pattern = 0; pattern < PATTERNS; pattern++) {
                    if (slow && (l + (size_t)(type + pattern)) % 5)
                        continue;
                    struct set s;
                    size_t n = 1500;
                    set_up(&s, type, pattern % 2 ? TAGCI_VALUE_NATIVE : TAGCI_VALUE_INT8, n, pattern, l + 3, 1);
                    s.chunk.nruns = 0;
                    for (size_t at = 0; at < n;) {
                        size_t m = l == 5 ? 1 + at % 77 : lengths[l] ? lengths[l] : 1, above, tied;
                        if (s.chunk.nruns == 63 || m > n - at)
                            m = n - at;
                        struct tagci_run *run = &s.runs[s.chunk.nruns++];
                        run->n = m;
                        run_select(type, (const char *)s.chunk.in + at * tagci_type_size(type),
                                   (const char *)s.chunk.residual + at * tagci_work_size(type), m, m / 3, &run->cut,
                                   &above, &tied);
                        if (at % 5 == 0 && run->cut.key)
                            run->cut.ties = at % 2 ? UINT64_MAX : 0;
                        at += m;
                    }
                    check_chunk(&s);
                    tear_down(&s);
                }
    }
}

/* Long vectors, where threads share the work: with and without scratch memory, against a full sort. */
static void test_long_select(void **state)
{
    (void)state;
    static const size_t lengths[] = {8191, 8200, 12001, 20001, 150000};
    for (int type = 0; type < TAGCI_TYPES; type++)
        for (int pattern = 0; pattern < PATTERNS; pattern++)
            for (int l = 0; l < 5; l++) {
                struct set s;
                size_t n = lengths[l];
                if ((n > 100000 && (pattern != BELL || type % 3)) || (slow && (type + pattern + l) % 4))
                    continue;
                set_up(&s, type, TAGCI_VALUE_NATIVE, n, pattern, n, pattern % 2);
                struct tagci_chunk *c = &s.chunk;
                const size_t ks[] = {0, 1, n / 100, n / 5, n / 2, n - n / 20, n - 1, n};
                struct tagci_cut want;
                size_t k = ks[(l + pattern + type) % 8], above, tied;
                reference_select(c, k, &want, &above, &tied);
                for (int variant = 0; variant < variant_count(); variant++)
                    for (int threads = 1; threads <= 7; threads += threads == 1 ? 1 : 5)
                        for (int open = 0; open < 2; open++) {
                            struct tagci_cut got;
                            size_t got_above, got_tied;
                            if (threads > 1 && (pattern % 5 || l % 2)) /* waiting costs time where cores are few */
                                continue;
                            use_variant(variant, threads);
                            if (!open && !tested->close)
                                continue;
                            if (!open)
                                tested->close();
                            run_select(type, c->in, c->residual, n, k, &got, &got_above, &got_tied);
                            if (!open)
                                tested->open();
                            assert_int_equal(got.key, want.key);
                            assert_int_equal(got.ties, want.ties);
                            assert_int_equal(got_above, above);
                            assert_int_equal(got_tied, tied);
                        }
                tear_down(&s);
            }
}

/* By a sample: what the exact choice finds among the elements of the sample, and near the share; or exact, where many are
 * equal. Whatever the scratch memory and the threads. */
static void check_sampled_select(enum tagci_type type, enum pattern pattern)
{
    const size_t n = 4194304 + 999, k = n / 2, runs = tagci_sample_runs(n, k), run = TAGCI_SAMPLE_RUN, m = runs * run;
    const size_t size = tagci_type_size(type), work = tagci_work_size(type), keep = tagci_sample_keep(n, k, runs);
    struct set s, some;
    struct tagci_cut want;
    size_t above, tied, last = 0;
    assert_true(runs > 0 && m <= n / 16 && keep == m / 2);
    set_up(&s, type, TAGCI_VALUE_NATIVE, n, pattern, n, pattern % 2);
    set_up(&some, type, TAGCI_VALUE_NATIVE, m, pattern, n, pattern % 2);
    struct tagci_chunk *c = &s.chunk, *d = &some.chunk;
    for (size_t i = 0; i < runs; i++) {
        size_t at = tagci_sample_at(n, runs, i);
        assert_true(at % run == 0 && at + run <= n && (i == 0 || at > last));
        last = at;
        memcpy((char *)(uintptr_t)d->in + i * run * size, (const char *)c->in + at * size, run * size);
        if (c->residual)
            memcpy((char *)(uintptr_t)d->residual + i * run * work, (const char *)c->residual + at * work, run * work);
    }
    reference_select(d, keep, &want, &above, &tied);
    int by_sample = !tagci_sample_tied(tied, keep);
    if (by_sample)
        want.ties = want.key ? UINT64_MAX : 0;
    else
        tagcb_openmp_select(type, c->in, c->residual, n, k, &want, &above, &tied);
    if (pattern == BELL && (type == TAGCI_F32 || type == TAGCI_F64))
        assert_true(by_sample);
    if (pattern == EQUAL || pattern == LEVELS)
        assert_false(by_sample && want.key);
    for (int variant = 0; variant < variant_count(); variant++)
        for (int round = 0; round < 3; round++) {
            struct tagci_choice choice = {.in = c->in, .residual = c->residual, .n = n, .k = k, .runs = runs};
            if (round && (pattern % 4 || order))
                continue;
            use_variant(variant, round == 1 ? 3 : 1);
            if (round == 2)
                tagcb_openmp.close();
            run_choice(type, &choice);
            if (round == 2)
                tagcb_openmp.open();
            assert_int_equal(choice.cut.key, want.key);
            assert_int_equal(choice.cut.ties, want.ties);
            assert_int_equal(choice.above, by_sample ? 0 : above);
            assert_int_equal(choice.tied, by_sample ? 0 : tied);
        }
    if (by_sample && pattern == BELL) {
        size_t over = 0;
        for (size_t i = 0; i < n; i++)
            over += work_key(type, input_get(type, c->in, c->residual, i)) > want.key;
        assert_true(fabs((double)over / (double)k - 1) < 0.05);
    }
    tear_down(&s);
    tear_down(&some);
}

static void test_sampled_select(void **state)
{
    (void)state;
    assert_int_equal(tagci_sample_runs((size_t)4 << 20, 4096 * 15), 0);
    assert_int_equal(tagci_sample_runs((size_t)4 << 20, 4096 * 16), (1 << 18) / TAGCI_SAMPLE_RUN);
    assert_int_equal(tagci_sample_runs(((size_t)2 << 20) - 16, (size_t)1 << 20), 0);
    assert_int_equal(tagci_sample_runs((size_t)2 << 20, (size_t)1 << 20), (1 << 17) / TAGCI_SAMPLE_RUN);
    assert_int_equal(tagci_sample_runs((size_t)64 << 20, (size_t)64 << 12), (1 << 20) / TAGCI_SAMPLE_RUN);
    for (size_t n = (size_t)4 << 20; n < (size_t)64 << 20; n += n / 7) { /* it reaches from end to end */
        size_t runs = tagci_sample_runs(n, n / 3);
        assert_true(tagci_sample_at(n, runs, 0) <= n / runs);
        assert_true(tagci_sample_at(n, runs, runs - 1) + 2 * (n / runs) >= n);
    }
    for (int pattern = 0; pattern < PATTERNS; pattern++)
        for (int type = 0; type < (pattern == BELL && !slow ? (int)TAGCI_TYPES : 1); type++)
            if (!slow || pattern == BELL || pattern == EQUAL)
                check_sampled_select(type, pattern);
}

/* Data that a sample says nothing about: what is large stands together, in order, or is hidden among equal values. */
static void test_misleading_select(void **state)
{
    (void)state;
    size_t n = 30000;
    struct set s;
    for (int kind = 0; kind < 5; kind++) {
        set_up(&s, TAGCI_F32, TAGCI_VALUE_NATIVE, n, BELL, 5, 0);
        float *x = (float *)(uintptr_t)s.chunk.in;
        for (size_t i = 0; i < n; i++)
            x[i] = kind == 0   ? (float)i
                   : kind == 1 ? (i < n / 10 ? 1 + (float)i : 1e-3f)
                   : kind == 2 ? (i % 64 == 1 ? 5.0f + (float)(i % 3) : 1.0f)
                   : kind == 3 ? (i == n / 2 ? 2.0f
                                  : i % 2    ? 1.0f
                                             : -1.0f)
                               : (i > n - 100 ? 1e20f : 1.0f + (float)(i % 1000) * 1e-7f);
        for (int variant = 0; variant < variant_count(); variant++) {
            use_variant(variant, 2);
            for (size_t k = 1; k < n; k = k * (slow ? 20 : 3) + 1)
                check_select(&s.chunk, k);
        }
        tear_down(&s);
    }
}

/* Several chunks at once, frames of several ranks added in one call, any number of threads. */
static void test_threads(void **state)
{
    (void)state;
    enum { CHUNKS = 9, RANKS = 3 };
    static const size_t all_lengths[][CHUNKS] = {{65536, 65536, 4097, 65536, 1, 0, 65536, 65536, 65535},
                                                 {5000, 9001, 4097, 65536, 1, 0, 1024, 1000, 8192}};
    const size_t *lengths = all_lengths[slow];
    static const enum tagci_value forms[RANKS] = {TAGCI_VALUE_NATIVE, TAGCI_VALUE_INT8, TAGCI_VALUE_FLOAT16};
    for (int type = 0; type < TAGCI_TYPES; type++) {
        struct set s[RANKS][CHUNKS];
        double *want[CHUNKS], *v = malloc(TAGCI_CHUNK_MAX * sizeof *v);
        void *sum[CHUNKS];
        for (int i = 0; i < CHUNKS; i++) {
            sum[i] = guarded(lengths[i] * tagci_work_size(type));
            want[i] = calloc(lengths[i] + 1, sizeof **want);
            for (int r = 0; r < RANKS; r++) {
                set_up(&s[r][i], type, forms[r], lengths[i], r == 2 ? ODDITIES : BELL, (uint64_t)(r * 100 + i), 1);
                double cut = i % 2 ? 0.01 : 0.015;
                s[r][i].runs[0].cut.key = type == TAGCI_F64 ? tagci_f64_bits(cut) : tagci_f32_bits((float)cut);
                s[r][i].chunk.index = (enum tagci_index)r;
            }
        }
        for (int variant = 0; variant < variant_count(); variant++)
            for (int threads = 1; threads <= 7; threads += threads == 1 ? 1 : 5) {
                use_variant(variant, threads);
                struct tagci_decode d[RANKS * CHUNKS];
                for (int r = 0; r < RANKS; r++) {
                    struct tagci_chunk chunks[CHUNKS];
                    for (int i = 0; i < CHUNKS; i++) {
                        chunks[i] = s[r][i].chunk;
                        memset(chunks[i].frame, 0xee, s[r][i].frame_bytes);
                    }
                    run_encode(chunks, CHUNKS);
                    for (int i = 0; i < CHUNKS; i++) {
                        const char *reason;
                        struct tagci_decode *at = &d[i * RANKS + r];
                        *at = (struct tagci_decode){.n = lengths[i], .sum = sum[i], .first = r == 0};
                        assert_int_equal(tagci_frame_read(chunks[i].frame, chunks[i].frame_bytes, type, lengths[i], 0,
                                                          &at->frame, &reason),
                                         0);
                    }
                }
                run_decode(d, RANKS * CHUNKS);
                for (int i = 0; i < CHUNKS; i++)
                    for (size_t j = 0; j < lengths[i]; j++) {
                        double x = work_get(type, sum[i], j);
                        if (variant == 0 && threads == 1)
                            want[i][j] = x;
                        else
                            assert_true(x != x ? want[i][j] != want[i][j] : x == want[i][j]);
                    }
                /* one by one, added here in rank order */
                for (int i = 0; threads == 7 && i < CHUNKS; i++) {
                    for (size_t j = 0; j < lengths[i]; j++)
                        v[j] = -0.0;
                    for (int r = 0; r < RANKS; r++) {
                        struct tagci_decode alone = d[i * RANKS + r];
                        alone.first = 1;
                        run_decode(&alone, 1);
                        for (size_t j = 0; j < lengths[i]; j++)
                            v[j] = work_round(type, v[j] + work_get(type, sum[i], j));
                    }
                    for (size_t j = 0; j < lengths[i]; j++)
                        assert_true(v[j] != v[j] ? want[i][j] != want[i][j] : v[j] == want[i][j]);
                }
            }
        for (int i = 0; i < CHUNKS; i++) {
            for (int r = 0; r < RANKS; r++)
                tear_down(&s[r][i]);
            unguard(sum[i], lengths[i] * tagci_work_size(type));
            free(want[i]);
        }
        free(v);
    }
}

static void test_convert(void **state)
{
    (void)state;
    for (int variant = 0; variant < variant_count(); variant++)
        for (int type = 0; type < TAGCI_TYPES; type++)
            for (int pattern = 0; pattern < PATTERNS; pattern++)
                for (size_t i = 0; i <= SIZES; i++) {
                    size_t n = i < SIZES ? sizes[i] : 40001;
                    if ((n > 40000 && pattern != ODDITIES) || (slow && (i + (size_t)pattern) % 5))
                        continue;
                    struct set s;
                    set_up(&s, type, TAGCI_VALUE_NATIVE, n, pattern, n + 3, i % 2);
                    const struct tagci_chunk *c = &s.chunk;
                    void *wide = guarded(s.work_bytes), *narrow = guarded(s.in_bytes);
                    use_variant(variant, i % 2 ? 1 : 3);
                    run_gather_input(type, c->in, c->residual, n, wide);
                    for (size_t j = 0; j < n; j++) {
                        double v = input_get(type, c->in, c->residual, j), x = work_get(type, wide, j);
                        assert_true(v != v ? x != x : x == v && signbit(x) == signbit(v));
                    }
                    double divide = i % 3 ? 3 : 1;
                    int plus_zero = i % 4 < 2;
                    run_finish(type, wide, n, divide, plus_zero, narrow);
                    for (size_t j = 0; j < n; j++) {
                        double x = work_round(type, work_get(type, wide, j) / divide);
                        uint64_t got = 0, want = type == TAGCI_F64   ? tagci_f64_bits(x)
                                                 : type == TAGCI_F32 ? tagci_f32_bits((float)x)
                                                 : type == TAGCI_F16 ? tagci_f32_to_f16((float)x)
                                                                     : tagci_f32_to_bf16((float)x);
                        if (x != x)
                            want = type == TAGCI_F64   ? TAGCI_F64_NAN
                                   : type == TAGCI_F32 ? TAGCI_F32_NAN
                                   : type == TAGCI_F16 ? TAGCI_F16_NAN
                                                       : TAGCI_BF16_NAN;
                        if (plus_zero && want == (uint64_t)1 << (8 * tagci_type_size(type) - 1))
                            want = 0;
                        memcpy(&got, (char *)narrow + j * tagci_type_size(type), tagci_type_size(type));
                        assert_int_equal(got, want);
                    }
                    if (tagci_type_size(type) == tagci_work_size(type)) { /* in place */
                        run_finish(type, wide, n, divide, plus_zero, wide);
                        assert_memory_equal(wide, narrow, s.in_bytes);
                    }
                    unguard(wide, s.work_bytes);
                    unguard(narrow, s.in_bytes);
                    tear_down(&s);
                }
}

static void test_spread(void **state)
{
    (void)state;
    for (int variant = 0; variant < variant_count(); variant++)
        for (size_t width = 4; width <= 8; width += 4)
            for (size_t i = 0; i <= SIZES; i++)
                for (int dense = 0; dense < 4; dense++) {
                    size_t n = i < SIZES ? sizes[i] : 150001, words = (n + 63) / 64, kept = 0, whole_count = 0;
                    uint64_t seed = n + (uint64_t)dense;
                    uint64_t *own = guarded(words * 8), *whole = guarded(words * 8);
                    for (size_t w = 0; w < words; w++) {
                        whole[w] = dense == 3 ? UINT64_MAX : dense == 2 ? draw(&seed) : draw(&seed) & draw(&seed);
                        if (dense == 0)
                            whole[w] &= draw(&seed) & draw(&seed);
                        if (n % 64 && w + 1 == words)
                            whole[w] &= ((uint64_t)1 << n % 64) - 1;
                        own[w] = whole[w] & draw(&seed);
                        kept += (size_t)__builtin_popcountll(own[w]);
                        whole_count += (size_t)__builtin_popcountll(whole[w]);
                    }
                    unsigned char *values = guarded(kept * width), *out = guarded(whole_count * width);
                    unsigned char *back = guarded(n * width);
                    for (size_t j = 0; j < kept * width; j++)
                        values[j] = (unsigned char)(1 + draw(&seed) % 255);
                    use_variant(variant, i % 2 ? 1 : 4);
                    assert_int_equal(run_spread(own, whole, n, values, width, out), whole_count);
                    assert_int_equal(run_unpack(whole, n, out, width, back), whole_count);
                    static const unsigned char zero[8];
                    size_t from = 0, to = 0;
                    for (size_t j = 0; j < n; j++) {
                        int mine = own[j / 64] >> j % 64 & 1, anyone = whole[j / 64] >> j % 64 & 1;
                        const void *expect = mine ? values + from++ * width : zero;
                        if (anyone)
                            assert_memory_equal(out + to++ * width, expect, width);
                        assert_memory_equal(back + j * width, expect, width);
                    }
                    unguard(own, words * 8);
                    unguard(whole, words * 8);
                    unguard(values, kept * width);
                    unguard(out, whole_count * width);
                    unguard(back, n * width);
                }
}

/* Results of 16-bit types. */
static void test_unpack_16(void **state)
{
    (void)state;
    for (int variant = 0; variant < variant_count(); variant++)
        for (size_t i = 0; i < SIZES; i++) {
            size_t n = sizes[i], words = (n + 63) / 64, count = 0;
            uint64_t seed = n, *whole = guarded(words * 8);
            for (size_t w = 0; w < words; w++)
                whole[w] = draw(&seed) & (w + 1 == words && n % 64 ? ((uint64_t)1 << n % 64) - 1 : UINT64_MAX);
            for (size_t w = 0; w < words; w++)
                count += (size_t)__builtin_popcountll(whole[w]);
            uint16_t *packed = guarded(count * 2), *out = guarded(n * 2);
            for (size_t j = 0; j < count; j++)
                packed[j] = (uint16_t)(j + 1);
            use_variant(variant, i % 2 ? 1 : 4);
            assert_int_equal(run_unpack(whole, n, packed, 2, out), count);
            for (size_t j = 0, next = 0; j < n; j++)
                assert_int_equal(out[j], whole[j / 64] >> j % 64 & 1 ? ++next : 0);
            unguard(whole, words * 8);
            unguard(packed, count * 2);
            unguard(out, n * 2);
        }
}

/* Buffers that are not wanted may be missing, and a residual that is all zeros too. */
static void test_missing_buffers(void **state)
{
    (void)state;
    for (int variant = 0; variant < variant_count(); variant++)
        for (int value = 0; value < TAGCI_VALUES; value++) {
            struct set s;
            set_up(&s, TAGCI_F32, value, 3000, BELL, 1, 1);
            s.runs[0].cut.key = tagci_f32_bits(0.01f);
            use_variant(variant, 1);
            run_encode(&s.chunk, 1);
            size_t bytes = s.chunk.frame_bytes;
            unsigned char *first = malloc(bytes);
            memcpy(first, s.chunk.frame, bytes);
            struct tagci_chunk bare = s.chunk;
            bare.residual_out = NULL;
            bare.bitmap = NULL;
            bare.values = NULL;
            run_encode(&bare, 1);
            assert_int_equal(bare.frame_bytes, bytes);
            assert_memory_equal(bare.frame, first, bytes);
            bare.seal = 1;
            run_encode(&bare, 1);
            struct tagci_frame f;
            const char *reason;
            assert_int_equal(tagci_frame_read(bare.frame, bytes, TAGCI_F32, 3000, 1, &f, &reason), 0);
            free(first);
            tear_down(&s);
        }
}

#if defined __SSE2__ && !defined TAGC_TEST_EXECUTOR
/* A program that flushes subnormals and rounds upwards gets the same bits, and keeps its ways. */
static void test_float_state(void **state)
{
    (void)state;
    unsigned before = _mm_getcsr(), odd = 0x8040 | 0x4000 | 0x1f80; /* flush both ways, round up */
    _mm_setcsr(odd);
    unsigned held = _mm_getcsr();
    _mm_setcsr(before);
    if (held != odd)
        skip(); /* valgrind does not flush */
    for (int variant = 0; variant < variant_count(); variant++)
        for (int value = 0; value < TAGCI_VALUES; value++) {
            struct set s;
            set_up(&s, TAGCI_F32, value, 5000, TINY, 9, 1);
            use_variant(variant, 1);
            unsigned char *want = malloc(16 * 5000 + 64);
            void *rest = malloc(s.work_bytes);
            size_t kept, bytes = reference_encode(&s.chunk, want, rest, &kept);
            _mm_setcsr(odd);
            run_encode(&s.chunk, 1);
            unsigned after = _mm_getcsr();
            _mm_setcsr(before);
            assert_int_equal(after, odd);
            assert_int_equal(s.chunk.frame_bytes, bytes);
            assert_memory_equal(s.chunk.frame, want, bytes);
            assert_memory_equal(s.chunk.residual_out, rest, s.work_bytes);
            free(want);
            free(rest);
            tear_down(&s);
        }
}
#endif

static void test_allocates_nothing(void **state)
{
    (void)state;
    struct set s;
    struct tagci_cut cut;
    size_t above, tied;
    set_up(&s, TAGCI_F32, TAGCI_VALUE_INT8, 65536, BELL, 2, 1);
    use_variant(0, 2);
    uint64_t count = tagci_mem_count();
    run_select(TAGCI_F32, s.chunk.in, s.chunk.residual, 65536, 1000, &cut, &above, &tied);
    run_encode(&s.chunk, 1);
    assert_int_equal(tagci_mem_count(), count);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_long_select),
        cmocka_unit_test(test_sampled_select),
        cmocka_unit_test(test_misleading_select),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_convert),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_unpack_16),
        cmocka_unit_test(test_missing_buffers),
#if defined __SSE2__ && !defined TAGC_TEST_EXECUTOR
        cmocka_unit_test(test_float_state),
#endif
        cmocka_unit_test(test_allocates_nothing),
    };
    size_t held = tagci_mem_held();
    use_variant(0, 1);
    if (tested->open)
        tested->open();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (tested->close)
        tested->close();
    return failed || tagci_mem_held() != held;
}
