/* Stands in for libcuda.so.1 in tests of device memory: the memory of the device is the host's, at
 * addresses that the host cannot use.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Copies are asynchronous in the worst way: what they read and write is touched when the stream is
 * waited for, and not before. A buffer that is used too early, or never waited for, gives wrong
 * numbers. */
#include <stdlib.h>
#include <string.h>

#define BIAS (1ull << 60)

enum { HOST = 1, DEVICE = 2, MOST = 1 << 16, INVALID = 1, NO_MEMORY = 2, NOT_MAPPED = 211 };

typedef struct side {
  size_t x, y;
  int type;
  void *host;
  unsigned long long device;
  void *array;
  size_t pitch;
} side;

typedef struct rectangle {
  side from, to;
  size_t width, rows;
} rectangle;

/* For tests. */
int fake_fail_after = -1; /* this many calls succeed, all others fail; -1: none fails */
int fake_pinned_buffers, fake_pinned_most = 1 << 30;
long fake_copies;
unsigned long long fake_bias(void) { return BIAS; }
int fake_waiting(void);

static rectangle queue[MOST];
static int queued;

int fake_waiting(void) { return queued; }

static int fails(void) {
  return fake_fail_after >= 0 && fake_fail_after-- <= 0 ? (fake_fail_after = 0, 1) : 0;
}

int cuGetErrorName(int error, const char **name);
int cuMemHostAlloc(void **out, size_t size, unsigned flags);
int cuMemcpy2DAsync_v2(const rectangle *what, void *stream);
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t size, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t size, void *stream);
int cuStreamSynchronize(void *stream);

int cuGetErrorName(int error, const char **name) {
  *name = error == NOT_MAPPED  ? "CUDA_ERROR_MAP_FAILED"
          : error == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                               : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}

int cuMemHostAlloc(void **out, size_t size, unsigned flags) {
  if (flags != 1) return INVALID;
  if (fake_pinned_buffers >= fake_pinned_most) return NO_MEMORY;
  fake_pinned_buffers++;
  *out = malloc(size);
  return *out != NULL ? 0 : NO_MEMORY;
}

static int sound(const side *s, size_t width) {
  if (s->type == DEVICE ? s->device < BIAS : s->type != HOST || s->host == NULL) return 0;
  return s->pitch >= width && s->x == 0 && s->y == 0;
}

int cuMemcpy2DAsync_v2(const rectangle *what, void *stream) {
  if (stream != (void *)7 || !sound(&what->from, what->width) || !sound(&what->to, what->width) ||
      what->from.type == what->to.type)
    return INVALID;
  if (fails()) return NOT_MAPPED;
  if (queued == MOST) abort();
  fake_copies++;
  queue[queued++] = *what;
  return 0;
}

static int one_row(side from, side to, size_t size, void *stream) {
  from.pitch = to.pitch = size;
  return cuMemcpy2DAsync_v2(&(rectangle){.from = from, .to = to, .width = size, .rows = 1}, stream);
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t size, void *stream) {
  return one_row((side){.type = HOST, .host = (void *)from}, (side){.type = DEVICE, .device = to},
                 size, stream);
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t size, void *stream) {
  return one_row((side){.type = DEVICE, .device = from}, (side){.type = HOST, .host = to}, size,
                 stream);
}

static char *place(const side *s) {
  return s->type == DEVICE ? (char *)(size_t)(s->device - BIAS) : s->host;
}

int cuStreamSynchronize(void *stream) {
  if (stream != (void *)7) return INVALID;
  for (int i = 0; i < queued; i++)
    for (size_t row = 0; row < queue[i].rows; row++)
      memcpy(place(&queue[i].to) + row * queue[i].to.pitch,
             place(&queue[i].from) + row * queue[i].from.pitch, queue[i].width);
  queued = 0;
  return 0;
}
