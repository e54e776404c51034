/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Blocks of gathers through the kernels of every backend: the bytes of core/lossless.h, the elements back, and the same
 * verdict on bodies that have been damaged. */
#include "reference.h"

#include "core/lossless.h"

static struct tagci_lossless_work work;

/* How elements have changed since they were remembered. */
enum change { NO_MEMORY, SAME, A_LITTLE, MOST_SAME, FAR, CHANGES };

static uint64_t get_bits(const void *at, size_t size, size_t i)
{
    uint64_t x = 0;
    memcpy(&x, (const char *)at + i * size, size);
    return x;
}

static void put_bits(void *at, size_t size, size_t i, uint64_t x)
{
    memcpy((char *)at + i * size, &x, size);
}

static void remember(enum change change, size_t size, size_t n, const void *now, void *before)
{
    uint64_t state = n + (uint64_t)change;
    for (size_t i = 0; i < n; i++) {
        uint64_t x = get_bits(now, size, i), r = draw(&state), far = draw(&state);
        if (change == A_LITTLE)
            x += r % 100 == 0 ? far : r % 31 - 15;
        else if (change == MOST_SAME)
            x += r % 8 ? 0 : r % 200 == 0 ? far : (r >> 8) % 3 - 1;
        else if (change == FAR)
            x ^= far & 0xffff;
        put_bits(before, size, i, x);
    }
}

/* A block with its memory; all ends where memory ends. */
struct set {
    enum tagci_type type;
    size_t bytes;
    struct tagci_block block;
    unsigned char *want; /* the body */
    uint32_t word;
};

static void set_up(struct set *s, enum tagci_type type, size_t n, enum pattern pattern, enum change change)
{
    size_t size = tagci_type_size(type), bytes = n * size, room = (bytes + 7) / 8 * 8;
    void *now = guarded(bytes), *before = change ? guarded(bytes) : NULL;
    fill_input(type, pattern, 5, n, now);
    if (before)
        remember(change, size, n, now, before);
    *s = (struct set){.type = type, .bytes = bytes, .want = malloc(bytes + 1)};
    s->word = tagci_lossless_encode_block(type, now, before, n, s->want, &work);
    s->block = (struct tagci_block){
        .n = n, .now = now, .before = before, .out = guarded(bytes), .after = guarded(bytes), .body = guarded(room)};
}

static void tear_down(struct set *s)
{
    unguard((void *)(uintptr_t)s->block.now, s->bytes);
    unguard((void *)(uintptr_t)s->block.before, s->bytes);
    unguard(s->block.out, s->bytes);
    unguard(s->block.after, s->bytes);
    unguard(s->block.body, (s->bytes + 7) / 8 * 8);
    free(s->want);
}

static void forget_results(struct set *s)
{
    memset(s->block.out, 0x77, s->bytes);
    memset(s->block.after, 0x77, s->bytes);
}

static void check_blocks(struct set *sets, size_t n, enum tagci_type type)
{
    struct tagci_block blocks[8];
    for (size_t i = 0; i < n; i++)
        blocks[i] = sets[i].block;
    run_blocks(tested->lossless_encode, type, blocks, n);
    for (size_t i = 0; i < n; i++) {
        struct set *s = &sets[i];
        assert_int_equal(blocks[i].word, s->word);
        assert_memory_equal(blocks[i].body, s->want, tagci_lossless_body(s->word));
        assert_memory_equal(blocks[i].out, s->block.now, s->bytes);
        assert_memory_equal(blocks[i].after, s->block.now, s->bytes);
        forget_results(s);
        blocks[i].now = NULL;
        blocks[i].damaged = 7;
    }
    run_blocks(tested->lossless_decode, type, blocks, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(blocks[i].damaged, 0);
        assert_memory_equal(blocks[i].out, sets[i].block.now, sets[i].bytes);
        assert_memory_equal(blocks[i].after, sets[i].block.now, sets[i].bytes);
    }
    /* the memory moves on in place */
    for (size_t i = 0; i < n; i++) {
        if (!blocks[i].before)
            continue;
        blocks[i].out = blocks[i].after = (void *)(uintptr_t)blocks[i].before;
        run_blocks(tested->lossless_decode, type, &blocks[i], 1);
        assert_memory_equal(blocks[i].before, sets[i].block.now, sets[i].bytes);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 255, 256, 259, 1000, 5003};
    uint32_t methods = 0;
    for (int variant = 0; variant < variant_count(); variant++) {
        use_variant(variant, variant ? 1 : 3);
        for (int type = 0; type < TAGCI_TYPES; type++)
            for (int pattern = 0; pattern < PATTERNS; pattern++)
                for (int change = 0; change < CHANGES; change++) {
                    struct set sets[8];
                    if (slow && (pattern + change + type + variant) % 4)
                        continue;
                    for (size_t i = 0; i < 8; i++) {
                        set_up(&sets[i], type, sizes[i], pattern, change);
                        methods |= 1u << (sets[i].word >> 24);
                    }
                    check_blocks(sets, 8, type);
                    for (size_t i = 0; i < 8; i++)
                        tear_down(&sets[i]);
                }
    }
    assert_int_equal(methods, (1u << TAGCI_LOSSLESS_METHODS) - 1);
}

/* The longest blocks; a pattern and change for each type. */
static void test_whole_blocks(void **state)
{
    (void)state;
    for (int variant = 0; variant < variant_count(); variant++) {
        use_variant(variant, 1);
        for (int type = 0; type < TAGCI_TYPES; type++)
            for (int change = 0; change < CHANGES; change += slow ? 2 : 1) {
                struct set s;
                set_up(&s, type, TAGCI_LOSSLESS_BLOCK, change == MOST_SAME ? WIDE : BELL, change);
                check_blocks(&s, 1, type);
                tear_down(&s);
            }
    }
}

/* A bit somewhere in the body or its word is another, or the body ends early: both say the same of it, and if it still is
 * one, it is of the same elements. */
static void test_damage(void **state)
{
    (void)state;
    uint64_t seed = 3;
    int bad = 0, good = 0;
    for (int variant = 0; variant < variant_count(); variant++) {
        use_variant(variant, 1);
        for (int type = 0; type < TAGCI_TYPES; type++)
            for (int change = 0; change < CHANGES; change++)
                for (int times = 0; times < (slow ? 25 : 200); times++) {
                    struct set s;
                    set_up(&s, type, 300 + draw(&seed) % 300, draw(&seed) % 3 ? BELL : WIDE, change);
                    uint32_t bytes = (uint32_t)tagci_lossless_body(s.word);
                    uint64_t what = draw(&seed), where = draw(&seed);
                    size_t header = bytes < 40 ? bytes : 40;
                    if (what % 16 == 0)
                        s.word ^= (uint32_t)1 << (24 + where % 3);
                    else if (what % 16 == 1 && bytes)
                        s.word -= (uint32_t)(1 + where % (bytes < 9 ? bytes : 9));
                    else if (bytes)
                        s.want[what % 3 ? where % bytes : where % header] ^= (unsigned char)(1 << (where >> 32) % 8);
                    bytes = (uint32_t)tagci_lossless_body(s.word);
                    /* where the body ends, memory does */
                    unsigned char *body = guarded((bytes + 7) / 8 * 8), *out = malloc(s.bytes);
                    const char *reason;
                    memcpy(body, s.want, bytes);
                    int verdict = tagci_lossless_decode_block(type, s.word, s.want, s.block.before, s.block.n, out,
                                                              &work, &reason) != 0;
                    struct tagci_block b = s.block;
                    b.word = s.word;
                    b.body = body;
                    run_blocks(tested->lossless_decode, type, &b, 1);
                    assert_int_equal(b.damaged, verdict);
                    if (!verdict)
                        assert_memory_equal(b.out, out, s.bytes);
                    bad += verdict;
                    good += !verdict;
                    unguard(body, (bytes + 7) / 8 * 8);
                    free(out);
                    tear_down(&s);
                }
    }
    assert_true(bad > 100 && good > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_whole_blocks),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
