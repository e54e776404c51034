/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * CRC32C of what tests/unit/test_lossless.c encodes: a line for each type
 * (float, float16, bfloat16, double, bytes), a pair for each sort of data
 * (without and with a memory). The test prints the lines when they differ;
 * change them only together with the wire version. */
/* clang-format off */
{{0xf2c5b988, 0x46525e25},
 {0xc410af08, 0x68ea7b66},
 {0x7b9c059a, 0x1c7e2be9},
 {0xb988c92a, 0x177b568b}},
    {{0x12aaaf77, 0x46525e25},
     {0x53f69077, 0x942274df},
     {0x062335a0, 0x7a36b0be},
     {0xb4665a92, 0x39880158}},
    {{0x49bc3d3c, 0x46525e25},
     {0x6bc56132, 0xf039db88},
     {0xfd7000ac, 0xbcea9ab4},
     {0xc45c975e, 0x22a11fcc}},
    {{0x5008057f, 0x46525e25},
     {0xa31f11db, 0x4d3ca532},
     {0xfc681c63, 0x42f35050},
     {0x0dbd2fd3, 0xe339a0e9}},
    {{0x3057f539, 0x46525e25},
     {0x484af3a9, 0xef4ed71e},
     {0x34e0ea88, 0x0974d08f},
     {0xdf46b7be, 0xcc4b62dc}},
