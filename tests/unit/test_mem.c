/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Memory: alignment, accounting, overflow, failures on demand; handles. */
#include "unit.h"

#include "util/handles.h"
#include "util/mem.h"

static void given_sizes_expect_aligned_counted_blocks(void **state)
{
    (void)state;
    size_t before = tagci_mem_held();
    uint64_t count = tagci_mem_count();
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1000000};
    void *block[7];
    size_t sum = 0;
    for (int i = 0; i < 7; i++) {
        block[i] = i % 2 ? tagci_alloc_zero(sizes[i], 1) : tagci_alloc(1, sizes[i]);
        assert_non_null(block[i]);
        assert_int_equal((uintptr_t)block[i] % TAGCI_ALIGN, 0);
        for (size_t k = 0; i % 2 && k < sizes[i]; k++)
            assert_int_equal(((unsigned char *)block[i])[k], 0);
        memset(block[i], 0xa5, sizes[i] ? sizes[i] : 1);
        sum += sizes[i];
        assert_int_equal(tagci_mem_held() - before, sum);
    }
    assert_int_equal(tagci_mem_count() - count, 7);
    for (int i = 0; i < 7; i++)
        tagci_free(block[i]);
    tagci_free(NULL);
    assert_int_equal(tagci_mem_held(), before);
}

static void given_overflow_expect_no_block(void **state)
{
    (void)state;
    assert_int_equal(tagci_mul(SIZE_MAX / 2, 3), SIZE_MAX);
    assert_int_equal(tagci_add(SIZE_MAX - 1, 2), SIZE_MAX);
    assert_int_equal(tagci_mul(6, 7), 42);
    assert_int_equal(tagci_add(40, 2), 42);
    assert_null(tagci_alloc(SIZE_MAX / 2, 3));
    assert_null(tagci_alloc_zero(SIZE_MAX, 1));
    assert_null(tagci_alloc(SIZE_MAX - 1, 1)); /* no room for the head */
    assert_null(tagci_alloc(SIZE_MAX - 70, 1));
}

static void given_order_to_fail_expect_that_one_to_fail(void **state)
{
    (void)state;
    tagci_mem_fail_at(3);
    void *a = tagci_alloc(1, 1), *b = tagci_alloc(1, 1), *c = tagci_alloc(1, 1), *d = tagci_alloc(1, 1);
    assert_true(a && b && !c && d);
    tagci_mem_fail_at(1);
    tagci_mem_fail_at(0);
    void *e = tagci_alloc(1, 1);
    assert_non_null(e);
    tagci_free(a);
    tagci_free(b);
    tagci_free(d);
    tagci_free(e);
}

static void given_room_expect_growth_only(void **state)
{
    (void)state;
    size_t before = tagci_mem_held();
    struct tagci_room room = {0};
    assert_int_equal(tagci_room_need(&room, 0), 0);
    assert_non_null(room.at);
    assert_int_equal(tagci_room_need(&room, 100), 0);
    void *at = room.at;
    assert_int_equal(tagci_room_need(&room, 50), 0);
    assert_ptr_equal(room.at, at);
    assert_int_equal(room.bytes, 100);
    tagci_mem_fail_at(1);
    assert_int_equal(tagci_room_need(&room, 200), -1);
    assert_ptr_equal(room.at, at);
    assert_int_equal(room.bytes, 100);
    assert_int_equal(tagci_room_need(&room, 200), 0);
    assert_int_equal(tagci_mem_held() - before, 200);
    tagci_room_release(&room);
    tagci_room_release(&room);
    assert_int_equal(tagci_mem_held(), before);
}

static void given_freed_handles_expect_recognition(void **state)
{
    (void)state;
    enum { N = 300 };
    static struct tagci_handles h = TAGCI_HANDLES_INIT;
    static int object[N];
    uintptr_t handle[N], old[N];
    for (int i = 0; i < N; i++)
        handle[i] = tagci_handle_make(&h, &object[i]);
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(tagci_handle_look(&h, handle[i]), &object[i]);
        old[i] = handle[i];
        tagci_handle_drop(&h, handle[i]);
        assert_null(tagci_handle_look(&h, handle[i]));
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < N; i++)
            handle[i] = tagci_handle_make(&h, &object[i]);
        for (int i = 0; i < N; i++) {
            assert_null(tagci_handle_look(&h, old[i]));
            tagci_handle_drop(&h, old[i]); /* nothing */
            assert_ptr_equal(tagci_handle_look(&h, handle[i]), &object[i]);
        }
        for (int i = 0; i < N; i++)
            tagci_handle_drop(&h, handle[i]);
    }
    assert_null(tagci_handle_any(&h));
    static const uintptr_t never[] = {0, 1, 2, 12345, UINTPTR_MAX, UINTPTR_MAX / 2};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        assert_null(tagci_handle_look(&h, never[i]));
    tagci_handles_release(&h);
    assert_null(tagci_handle_look(&h, handle[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_sizes_expect_aligned_counted_blocks),   cmocka_unit_test(given_overflow_expect_no_block),
        cmocka_unit_test(given_order_to_fail_expect_that_one_to_fail), cmocka_unit_test(given_room_expect_growth_only),
        cmocka_unit_test(given_freed_handles_expect_recognition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
