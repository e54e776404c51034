/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Kernels of every instruction set that this machine has, with 1, 2 and 7 threads, against the reference. Inputs and
 * outputs end where memory ends. */
#include "reference.h"
#ifdef _OPENMP
#include <omp.h>
#endif

#include "core/bitmap.h"

static const char *variant_names[4];
static int variant_count;

static void find_variants(void)
{
    for (int i = 0; tagcb_openmp_variant(i); i++)
        if (tagcb_openmp_use(tagcb_openmp_variant(i)->name) == 0)
            variant_names[variant_count++] = tagcb_openmp_variant(i)->name;
}

static void use(int variant, int threads)
{
    assert_int_equal(tagcb_openmp_use(variant_names[variant]), 0);
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    (void)threads;
#endif
}

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
    tagcb_openmp.select(c->type, c->in, c->residual, c->n, k, &got, &got_above, &got_tied);
    assert_int_equal(got.key, want.key);
    assert_int_equal(got.ties, want.ties);
    assert_int_equal(got_above, above);
    assert_int_equal(got_tied, tied);
    assert_int_equal(tagcb_openmp.count_key(c->type, c->in, c->residual, c->n, want.key),
                     want.key ? tied : tagcb_openmp.count_key(c->type, c->in, c->residual, c->n, 0));
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
    tagcb_openmp.encode(c, 1);
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
    struct tagci_decode d = {.n = c->n, .sum = guarded(s->work_bytes), .first = 1};
    const char *reason;
    unsigned char *frame = guarded(bytes); /* decoding may read nothing past its end */
    memcpy(frame, c->frame, bytes);
    assert_int_equal(tagci_frame_read(frame, bytes, c->type, c->n, c->seal, &d.frame, &reason), 0);
    tagcb_openmp.decode(&d, 1);
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
    /* once more, added */
    d.first = 0;
    tagcb_openmp.decode(&d, 1);
    memcpy(rest, d.sum, s->work_bytes);
    d.first = 1;
    tagcb_openmp.decode(&d, 1);
    for (size_t i = 0; i < c->n; i++) {
        double once = work_get(c->type, d.sum, i), twice = work_get(c->type, rest, i);
        assert_true(once != once ? twice != twice : twice == work_round(c->type, once + once));
    }
    unguard(frame, bytes);
    unguard(d.sum, s->work_bytes);

    /* sparsify: the kept values as they are, nothing of them left */
    memset(c->residual_out, 0x5a, s->work_bytes);
    memset(c->bitmap, 0x5a, s->bitmap_bytes);
    tagcb_openmp.sparsify(c, 1);
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
    for (int variant = 0; variant < variant_count; variant++) {
        use(variant, 1);
        for (int type = 0; type < TAGCI_TYPES; type++)
            for (int value = 0; value < TAGCI_VALUES; value++)
                for (int pattern = 0; pattern < PATTERNS; pattern++)
                    for (size_t i = 0; i < SIZES; i++) {
                        size_t n = sizes[i], pick = i + (size_t)(type * 5 + value * 3 + pattern * 7);
                        size_t above, tied;
                        struct set s;
                        set_up(&s, type, value, n, pattern, n * 7 + pick, pick % 3 != 0);
                        size_t k = (size_t)(shares[pick % 6] * (double)n);
                        check_select(&s.chunk, k);
                        tagcb_openmp.select(type, s.chunk.in, s.chunk.residual, n, k, &s.runs[0].cut, &above, &tied);
                        s.chunk.all = pick % 11 == 0;
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
    for (int variant = 0; variant < variant_count; variant++) {
        use(variant, 1);
        for (int type = 0; type < TAGCI_TYPES; type++)
            for (size_t l = 0; l < 8; l++)
                for (int pattern = 0; pattern < PATTERNS; pattern++) {
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
                        tagcb_openmp.select(type, (const char *)s.chunk.in + at * tagci_type_size(type),
                                            (const char *)s.chunk.residual + at * tagci_work_size(type), m, m / 3,
                                            &run->cut, &above, &tied);
                        if (at % 5 == 0 && run->cut.key)
                            run->cut.ties = at % 2 ? UINT64_MAX : 0;
                        at += m;
                    }
                    check_chunk(&s);
                    tear_down(&s);
                }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form),
        cmocka_unit_test(test_runs),
    };
    find_variants();
    tagcb_openmp.open();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tagcb_openmp.close();
    return failed;
}
