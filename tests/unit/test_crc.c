/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * CRC32C against published check values, and its two ways against each other. */
#include "core/frame.h"
#include "unit.h"

static void test_known(void **state)
{
    (void)state;
    unsigned char data[32];
    uint32_t (*const ways[])(uint32_t, const void *, size_t) = {tagci_crc32c, tagci_crc32c_plain};
    for (int w = 0; w < 2; w++) {
        assert_int_equal(ways[w](0, "", 0), 0);
        assert_int_equal(ways[w](0, "123456789", 9), 0xe3069283); /* the usual check value */
        memset(data, 0, 32);                                      /* these three: RFC 3720, B.4 */
        assert_int_equal(ways[w](0, data, 32), 0x8a9136aa);
        memset(data, 0xff, 32);
        assert_int_equal(ways[w](0, data, 32), 0x62a8ab43);
        for (int i = 0; i < 32; i++)
            data[i] = (unsigned char)i;
        assert_int_equal(ways[w](0, data, 32), 0x46dd794e);
    }
}

static void test_both_ways(void **state)
{
    (void)state;
    unsigned char data[300];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 167 + (i >> 3));
    for (size_t from = 0; from < 9; from++)
        for (size_t n = 0; n + from <= sizeof data; n++) {
            uint32_t crc = tagci_crc32c(0, data + from, n);
            assert_int_equal(crc, tagci_crc32c_plain(0, data + from, n));
            /* in two parts */
            assert_int_equal(crc, tagci_crc32c(tagci_crc32c(0, data + from, n / 3), data + from + n / 3, n - n / 3));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known), cmocka_unit_test(test_both_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
