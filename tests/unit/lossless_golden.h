/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * CRC32C of what tests/unit/test_lossless.c encodes: a line for each type (float, float16, bfloat16, double, bytes), a
 * pair for each sort of data (without and with a memory). The test prints the lines when they differ; change them only
 * together with the wire version. */
{{0xf2c5b988, 0x46525e25}, {0x92ba042b, 0x71a767d9}, {0x7b9c059a, 0xc8b1bbec}, {0x12c3e61c, 0x5fb9a149}},
    {{0x12aaaf77, 0x46525e25}, {0x53f69077, 0x56a16115}, {0x062335a0, 0x15dc5496}, {0xb4665a92, 0xb80eac6d}},
    {{0x49bc3d3c, 0x46525e25}, {0xe19185ef, 0x103ba2ae}, {0xfd7000ac, 0x8bad0880}, {0x3fac0a50, 0x94d03304}},
    {{0x5008057f, 0x46525e25}, {0xf341262d, 0x5e4cec38}, {0xfc681c63, 0x6ce239c1}, {0x0dbd2fd3, 0x143b8795}},
    {{0x3057f539, 0x46525e25}, {0x484af3a9, 0x63ae6670}, {0x34e0ea88, 0x43f10512}, {0xdf46b7be, 0xeee370f1}},
