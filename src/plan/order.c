/* The file order of a box: which axes lie inside which, and how much of it is one run of bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Example: rows of 8 bytes with 4 bytes between them, shape (3, 2) of 4-byte items: strides (12,
 * 4). File order is (0, 1). The innermost axis spans 8 bytes; the next one starts 12 bytes on, a
 * gap of 4, so one request of 2 * 12 + 8 = 32 bytes reads all. */
#include "plan/plan.h"

void tegula__file_order_of(const tegula__part *part, int32_t ndim, const int64_t *lo,
                           const int64_t *hi, tegula__file_order *out) {
  out->count = 0;
  for (int32_t k = 0; k < ndim; k++) {
    if (hi[k] - lo[k] == 1) continue;
    int32_t place = out->count++; /* insertion by falling stride; equal strides keep their order */
    while (place > 0 && part->strides[out->axes[place - 1]] < part->strides[k]) {
      out->axes[place] = out->axes[place - 1];
      place--;
    }
    out->axes[place] = k;
  }
}

int32_t tegula__read_unit(const tegula__file_order *order, const int64_t *strides,
                          const int64_t *lo, const int64_t *hi, uint32_t item_size, int64_t gap,
                          int64_t *span) {
  int64_t bytes = item_size;
  int32_t inner = 0;
  for (; inner < order->count; inner++) {
    int32_t k = order->axes[order->count - 1 - inner];
    if (strides[k] - bytes > gap) break;
    bytes += (hi[k] - lo[k] - 1) * strides[k];
  }
  *span = bytes;
  return inner;
}

int64_t tegula__common_run(const tegula__file_order *order, const int64_t *file_strides,
                           const int64_t *memory_strides, const int64_t *lo, const int64_t *hi,
                           uint32_t item_size, int32_t *axes) {
  int64_t bytes = item_size;
  int32_t inner = 0;
  for (; inner < order->count; inner++) {
    int32_t k = order->axes[order->count - 1 - inner];
    if (file_strides[k] != bytes || memory_strides[k] != bytes) break;
    bytes *= hi[k] - lo[k];
  }
  *axes = inner;
  return bytes;
}
