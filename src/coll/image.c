/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors */
#include "coll/image.h"

#include <math.h>
#include <string.h>

#include "core/frame.h"

static const char magic[8] = {'T', 'A', 'G', 'C', 'I', 'M', 'G', '\n'};
enum { VERSION = 1, AT_CRC = 48 };

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
static const int big_endian = 1;
#else
static const int big_endian = 0;
#endif

void tagci_put32(unsigned char *to, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(x >> 8 * i);
}

void tagci_put64(unsigned char *to, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(x >> 8 * i);
}

uint32_t tagci_get32(const unsigned char *from)
{
    uint32_t x = 0;
    for (int i = 0; i < 4; i++)
        x |= (uint32_t)from[i] << 8 * i;
    return x;
}

uint64_t tagci_get64(const unsigned char *from)
{
    return tagci_get32(from) | (uint64_t)tagci_get32(from + 4) << 32;
}

uint32_t tagci_image_type(const struct tagci_tensor *t)
{
    static const uint32_t number[TAGCI_TYPES] = {[TAGCI_F32] = 1, [TAGCI_F16] = 2, [TAGCI_BF16] = 3, [TAGCI_F64] = 4};
    return t->compressible ? number[t->type] : 0;
}

/* A residual that is zero is written all the same: the size of the image does not change from call to call. */
uint64_t tagci_image_bytes(const struct tagci_tensor *t)
{
    return TAGCI_IMAGE_HEAD + (t->residual ? (uint64_t)t->count * tagci_work_size(t->type) : 0);
}

void tagci_image_residual(const struct tagci_tensor *t, uint64_t from, size_t n, unsigned char *to)
{
    const unsigned char *at = t->residual;
    if (t->residual_is_zero) {
        memset(to, 0, n);
    } else if (!big_endian) {
        memcpy(to, at + from, n);
    } else {
        uint64_t swap = tagci_work_size(t->type) - 1;
        for (uint64_t i = from; i < from + n; i++)
            to[i - from] = at[i ^ swap];
    }
}

void tagci_image_head(const struct tagci_tensor *t, unsigned char head[TAGCI_IMAGE_HEAD])
{
    uint64_t bytes = tagci_image_bytes(t);
    memset(head, 0, TAGCI_IMAGE_HEAD);
    memcpy(head, magic, sizeof magic);
    tagci_put32(head + 8, VERSION);
    tagci_put32(head + 12, tagci_image_type(t));
    tagci_put64(head + 16, t->count);
    tagci_put64(head + 24, (uint64_t)t->calls);
    tagci_put64(head + 32, t->residual != NULL);
    tagci_put64(head + 40, bytes);
    uint32_t crc = tagci_crc32c(0, head, TAGCI_IMAGE_HEAD);
    unsigned char part[4096];
    for (uint64_t done = 0, n; done < bytes - TAGCI_IMAGE_HEAD; done += n) {
        n = bytes - TAGCI_IMAGE_HEAD - done;
        n = n < sizeof part ? n : sizeof part;
        tagci_image_residual(t, done, n, part);
        crc = tagci_crc32c(crc, part, n);
    }
    tagci_put32(head + AT_CRC, crc);
}

uint32_t tagci_image_crc(const unsigned char head[TAGCI_IMAGE_HEAD])
{
    unsigned char copy[TAGCI_IMAGE_HEAD];
    memcpy(copy, head, sizeof copy);
    tagci_put32(copy + AT_CRC, 0);
    return tagci_crc32c(0, copy, sizeof copy);
}

const char *tagci_image_read(const unsigned char head[TAGCI_IMAGE_HEAD], struct tagci_image *image)
{
    if (memcmp(head, magic, sizeof magic) != 0)
        return "it is no image of a tensor";
    if (tagci_get32(head + 8) != VERSION)
        return "the image is of a version that this library does not know";
    *image = (struct tagci_image){.type = tagci_get32(head + 12),
                                  .count = tagci_get64(head + 16),
                                  .calls = (int64_t)tagci_get64(head + 24),
                                  .residual = tagci_get64(head + 32) & 1,
                                  .bytes = tagci_get64(head + 40),
                                  .crc = tagci_get32(head + AT_CRC)};
    uint64_t width = image->type == 0 ? 0 : image->type == 4 ? 8 : 4;
    if (image->type > 4 || image->calls < 0 || image->count > (UINT64_MAX - TAGCI_IMAGE_HEAD) / 8 ||
        image->bytes != TAGCI_IMAGE_HEAD + (image->residual ? image->count * width : 0))
        return "the image is damaged";
    return NULL;
}

int tagci_image_add(const struct tagci_tensor *t, const unsigned char *part, uint64_t from, size_t n, int first,
                    void *sum)
{
    size_t width = tagci_work_size(t->type), at = (size_t)(from / width);
    int bad = 0;
    for (size_t i = 0; i < n / width; i++, part += width)
        if (width == 4) {
            uint32_t bits = tagci_get32(part);
            float x, *to = (float *)sum + at + i;
            memcpy(&x, &bits, sizeof x);
            *to = first ? x : *to + x;
            bad |= !isfinite(*to);
        } else {
            uint64_t bits = tagci_get64(part);
            double x, *to = (double *)sum + at + i;
            memcpy(&x, &bits, sizeof x);
            *to = first ? x : *to + x;
            bad |= !isfinite(*to);
        }
    return bad ? -1 : 0;
}
