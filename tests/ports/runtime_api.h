/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * What CUDA's and HIP's runtime libraries call alike but for the prefix; the files that include it define PORT(x). */
#include <stddef.h>

typedef enum {
    PORT(Success) = 0,
    PORT(ErrorInvalidValue) = 1,
    PORT(ErrorNoDevice) = 100,
    PORT_WRONG_HANDLE = 400,
    PORT(ErrorNotReady) = 600
} PORT(Error_t);
typedef enum { PORT(MemcpyDefault) = 4 } PORT(MemcpyKind);
typedef struct PORT(Stream) * PORT(Stream_t);
typedef struct PORT(Event) * PORT(Event_t);

#define PORT_FLAGS_STREAM 1
#define PORT_FLAGS_EVENT 2
enum { PORT(StreamNonBlocking) = PORT_FLAGS_STREAM, PORT(EventDisableTiming) = PORT_FLAGS_EVENT };

PORT(Error_t) PORT(GetDeviceCount)(int *count);
PORT(Error_t) PORT(GetDevice)(int *device);
PORT(Error_t) PORT(SetDevice)(int device);
PORT(Error_t) PORT(DeviceSynchronize)(void);
PORT(Error_t) PORT(GetLastError)(void);
const char *PORT(GetErrorString)(PORT(Error_t) error);
PORT(Error_t) PORT(Malloc)(void **at, size_t bytes);
PORT(Error_t) PORT(Free)(void *at);
PORT(Error_t)
PORT(MemcpyAsync)(void *to, const void *from, size_t bytes, PORT(MemcpyKind) kind, PORT(Stream_t) stream);
PORT(Error_t) PORT(MemsetAsync)(void *at, int byte, size_t bytes, PORT(Stream_t) stream);
PORT(Error_t) PORT(StreamCreateWithFlags)(PORT(Stream_t) * stream, unsigned flags);
PORT(Error_t) PORT(StreamDestroy)(PORT(Stream_t) stream);
PORT(Error_t) PORT(StreamSynchronize)(PORT(Stream_t) stream);
PORT(Error_t) PORT(StreamWaitEvent)(PORT(Stream_t) stream, PORT(Event_t) event, unsigned flags);
PORT(Error_t) PORT(EventCreateWithFlags)(PORT(Event_t) * event, unsigned flags);
PORT(Error_t) PORT(EventDestroy)(PORT(Event_t) event);
PORT(Error_t) PORT(EventRecord)(PORT(Event_t) event, PORT(Stream_t) stream);
PORT(Error_t) PORT(EventQuery)(PORT(Event_t) event);
PORT(Error_t) PORT(EventSynchronize)(PORT(Event_t) event);
