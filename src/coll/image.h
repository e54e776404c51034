/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The image of one rank's state of a tensor, as pack makes it and as it stands in a file. All numbers little-endian.
 *
 *   offset 0   8 bytes  "TAGCIMG\n"
 *          8   u32      version of the image (1)
 *          12  u32      element type: 1 float, 2 float16, 3 bfloat16, 4 double, 0 any other
 *          16  u64      count: elements of the tensor
 *          24  u64      calls that the tensor has completed
 *          32  u64      flags: bit 0: a residual follows
 *          40  u64      bytes of the image
 *          48  u32      CRC32C of the image with this field zero
 *          52  12 bytes zero
 *          64  residual: count values, float for the first three types, double for the fourth
 *
 * A file of R images:
 *
 *   offset 0   8 bytes  "TAGCSET\n"
 *          8   u32      version (1)
 *          12  u32      element type
 *          16  u64      count
 *          24  u64      R
 *          32  u64      calls
 *          40  u32      CRC32C of these 64 bytes, with this field zero, and the table
 *          44  20 bytes zero
 *          64  table: R times u64 offset of the image in the file, u64 its bytes
 *              images, in rank order, each at a multiple of 64
 *
 * The head is written last, so that a file that was not finished is none. */
#ifndef TAGCI_COLL_IMAGE_H
#define TAGCI_COLL_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "coll/tensor.h"

#define TAGCI_IMAGE_HEAD 64

struct tagci_image {
    uint32_t type;
    uint64_t count;
    int64_t calls;
    int residual;
    uint64_t bytes;
    uint32_t crc;
};

uint64_t tagci_image_bytes(const struct tagci_tensor *t);
uint32_t tagci_image_type(const struct tagci_tensor *t);
/* Head of the tensor's image, CRC and all. */
void tagci_image_head(const struct tagci_tensor *t, unsigned char head[TAGCI_IMAGE_HEAD]);
/* n bytes of the residual's part of the image, from a byte of it on. */
void tagci_image_residual(const struct tagci_tensor *t, uint64_t from, size_t n, unsigned char *to);
/* Reads a head. NULL, or what is wrong with it (static text). */
const char *tagci_image_read(const unsigned char head[TAGCI_IMAGE_HEAD], struct tagci_image *image);
/* CRC of the head as the image's CRC begins. */
uint32_t tagci_image_crc(const unsigned char head[TAGCI_IMAGE_HEAD]);
/* Adds n bytes of a residual's part, whole elements from byte `from` on, to `sum` (whole vector, work type), or puts them
 * there if first. 0, or -1 if a sum is not finite. */
int tagci_image_add(const struct tagci_tensor *t, const unsigned char *part, uint64_t from, size_t n, int first,
                    void *sum);

void tagci_put32(unsigned char *to, uint32_t x);
void tagci_put64(unsigned char *to, uint64_t x);
uint32_t tagci_get32(const unsigned char *from);
uint64_t tagci_get64(const unsigned char *from);

#endif
