/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The GPU backends' vtables over the executor: kinds of memory, orders and marks, and every call of the vendor's library
 * failing once: an error with a text, and nothing left over. */
#include "unit.h"

#include <stdlib.h>

#include "tests/executor/executor_c.h"

static const struct vendor {
    const struct tagci_backend *b;
    void (*fail_at)(int k);
    size_t (*held)(void);
} vendors[] = {{&tagcb_executor32, tagcb_executor32_fail_at, tagcb_executor32_held},
               {&tagcb_executor64, tagcb_executor64_fail_at, tagcb_executor64_held}};
#define EACH_VENDOR(v) (const struct vendor *v = vendors; v < vendors + 2; v++)

static void test_no_device(void **state)
{
    (void)state;
    for
        EACH_VENDOR(v)
        {
            assert_null(v->b->probe());
            setenv("EXECUTOR_DEVICES", "0", 1);
            assert_non_null(strstr(v->b->probe(), "no device"));
            assert_string_equal(v->b->describe(), "no device");
            unsetenv("EXECUTOR_DEVICES");
            assert_null(v->b->probe());
        }
}

static void test_memory(void **state)
{
    (void)state;
    for
        EACH_VENDOR(v)
        {
            struct tagci_order *o = v->b->order_make(0);
            int mine = 0, number = 7; /* as a stream: of device 0 */
            char *device = v->b->alloc(o, TAGCI_DEVICE, 100), *host = v->b->alloc(o, TAGCI_HOST, 0), back[100];
            assert_non_null(o);
            assert_non_null(device);
            assert_non_null(host);
            assert_int_equal(v->b->classify(device, &number), TAGCI_DEVICE);
            assert_int_equal(v->b->classify(device + 99, &number), TAGCI_DEVICE);
            assert_int_equal(v->b->classify(host, &number), TAGCI_HOST);
            assert_int_equal(v->b->classify(&mine, &number), TAGCI_HOST);
            assert_int_equal(v->b->fill(o, device, 7, 100), 0);
            assert_int_equal(v->b->copy(o, back, device, 100), 0);
            assert_int_equal(v->b->copy(o, back, device, 0), 0);
            assert_int_equal(v->b->record(o, 3), 0);
            assert_int_equal(v->b->query(o, 3), 0); /* not yet */
            assert_int_equal(v->b->query(o, 3), 1);
            assert_int_equal(v->b->wait(o, 3), 0);
            assert_int_equal(back[99], 7);
            assert_int_equal(v->b->after(o, NULL), 0);
            assert_int_equal(v->b->after(o, &mine), 0);
            v->b->release(o, TAGCI_DEVICE, device);
            v->b->release(o, TAGCI_HOST, host);
            v->b->order_free(o);
            assert_int_equal(v->held(), 0);
        }
}

static void test_order_fails(void **state)
{
    (void)state;
    for
        EACH_VENDOR(v)
        {
            int k = 0;
            struct tagci_order *o = NULL;
            while (!o) {
                v->fail_at(++k);
                o = v->b->order_make(0);
                v->fail_at(0);
                assert_true(k < 100);
                if (!o) {
                    assert_int_equal(v->held(), 0);
                    assert_non_null(v->b->failure());
                }
            }
            assert_true(k > TAGCI_MARKS);
            v->b->order_free(o);
            assert_int_equal(v->held(), 0);
        }
}

/* What can be asked of an order; 0, or -1. */
static int ask(const struct vendor *v, struct tagci_order *o, int what, void *device, void *host)
{
    const struct tagci_backend *b = v->b;
    struct tagci_choice *choice = host;
    struct tagci_tally *tally = host;
    struct tagci_chunk *chunk = host;
    struct tagci_decode *frame = host;
    memset(host, 0, 512);
    void *at;
    switch (what) {
    case 0:
    case 1:
        at = b->alloc(o, what ? TAGCI_HOST : TAGCI_DEVICE, 10);
        if (at)
            b->release(o, what ? TAGCI_HOST : TAGCI_DEVICE, at);
        return at ? 0 : -1;
    case 2:
        return b->copy(o, device, host, 8);
    case 3:
        return b->fill(o, device, 1, 8);
    case 4:
        return b->after(o, NULL);
    case 5:
        return b->after(o, host);
    case 6:
        return b->record(o, 0);
    case 7:
        return b->query(o, 0) < 0 ? -1 : 0;
    case 8:
        return b->wait(o, 0);
    case 9:
        return b->select(o, TAGCI_F32, choice, 1);
    case 10:
        return b->count_key(o, TAGCI_F32, tally, 1);
    case 11:
        return b->sparsify(o, chunk, 0);
    case 12:
        return b->encode(o, chunk, 0);
    case 13:
        return b->decode(o, frame, 0);
    case 14:
        return b->gather_input(o, TAGCI_F32, device, NULL, 2, device);
    case 15:
        return b->finish(o, TAGCI_F32, device, 2, 2, 0, device);
    case 16:
        return b->spread(o, device, device, 0, device, 4, device, host);
    case 17:
        return b->unpack(o, device, 0, device, 4, device, host);
    case 18:
        return b->sketch_exponents(o, 0, device, 2, host, host);
    case 19:
    case 20:
        return (what == 19 ? b->sketch_encode : b->sketch_decode)(o, host, 0, 1, device, host, host, device, device);
    case 21:
        return b->move_blocks(o, host, 0, 0, 4, device, device, 0);
    case 22:
        return b->lossless_encode(o, TAGCI_F32, host, 0, NULL);
    case 23:
        return b->lossless_decode(o, TAGCI_F32, host, 0, NULL);
    default:
        return 1;
    }
}

static void test_calls_fail(void **state)
{
    (void)state;
    for
        EACH_VENDOR(v)
        {
            struct tagci_order *o = v->b->order_make(0);
            void *device = v->b->alloc(o, TAGCI_DEVICE, 64), *host = v->b->alloc(o, TAGCI_HOST, 512);
            size_t held = v->held();
            for (int what = 0; ask(v, o, what, device, host) <= 0; what++) {
                int failures = 0;
                assert_int_equal(ask(v, o, what, device, host), 0);
                v->fail_at(1); /* the first call of the library that it makes */
                failures += ask(v, o, what, device, host) < 0;
                v->fail_at(0);
                assert_int_equal(failures, 1);
                assert_non_null(v->b->failure());
                assert_int_equal(ask(v, o, what, device, host), 0);
                assert_int_equal(v->held(), held);
            }
            /* a kernel that cannot be put on its stream */
            v->fail_at(2);
            assert_int_equal(v->b->gather_input(o, TAGCI_F32, device, NULL, 2, device), -1);
            v->fail_at(0);
            v->b->release(o, TAGCI_DEVICE, device);
            v->b->release(o, TAGCI_HOST, host);
            v->b->order_free(o);
            assert_int_equal(v->held(), 0);
        }
}

/* A thread that is on another device than the order, whatever it asks for and whatever fails. */
static void test_devices(void **state)
{
    (void)state;
    for
        EACH_VENDOR(v)
        {
            int of[2] = {0, 1}, number = -1;
            assert_int_equal(v->b->use(2), -1);
            assert_int_equal(v->b->use(1), 0);
            struct tagci_order *o = v->b->order_make(0);
            void *device = v->b->alloc(o, TAGCI_DEVICE, 64), *host = v->b->alloc(o, TAGCI_HOST, 512);
            assert_int_equal(v->b->classify(device, &number), TAGCI_DEVICE);
            assert_int_equal(number, 0);
            for (int what = 0; ask(v, o, what, device, host) <= 0; what++)
                for (int k = 0; k < 5; k++) {
                    v->fail_at(k);
                    int failed = ask(v, o, what, device, host);
                    v->fail_at(0);
                    assert_true(k || !failed);
                    assert_int_equal(v->b->current(), 1);
                }
            assert_int_equal(v->b->after(o, &of[0]), 0);
            assert_int_equal(v->b->after(o, &of[1]), -1);
            assert_non_null(strstr(v->b->failure(), "another device"));
            assert_null(v->b->order_make(2));
            v->b->release(o, TAGCI_DEVICE, device);
            v->b->release(o, TAGCI_HOST, host);
            v->b->order_free(o);
            assert_int_equal(v->b->current(), 1);
            assert_int_equal(v->held(), 0);
            assert_int_equal(v->b->use(0), 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_device),  cmocka_unit_test(test_memory),  cmocka_unit_test(test_order_fails),
        cmocka_unit_test(test_calls_fail), cmocka_unit_test(test_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
