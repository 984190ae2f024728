/* Filling a strided block with one value.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/kernel.h"

/* `count` items one behind the other; the first is there already. */
static void repeat(char *dst, size_t item, int64_t count) {
  size_t done = item, all = item * (size_t)count;
  while (done < all) {
    size_t some = done < all - done ? done : all - done;
    /* from the first-level caches; items are smaller, or doubled one by one */
    some = some < 65536 ? some : 65536 / item * item;
    if (some == 0) some = item;
    memcpy(dst + done, dst, some);
    done += some;
  }
}

static void put_item(char *dst, const char *value, uint32_t item, uint32_t swap) {
  if (value == NULL) {
    memset(dst, 0, item);
    return;
  }
  for (uint32_t group = 0; group < item; group += swap)
    for (uint32_t i = 0; i < swap; i++) dst[group + i] = value[group + swap - 1 - i];
}

static void fill_row(char *dst, int64_t stride, int64_t count, uint32_t item, const char *value,
                     uint32_t swap) {
  if (stride == (int64_t)item) {
    put_item(dst, value, item, swap);
    repeat(dst, item, count);
    return;
  }
  for (int64_t i = 0; i < count; i++) put_item(dst + i * stride, value, item, swap);
}

void tegula__fill_strided(char *dst, const int64_t *strides, const int64_t *extents, int32_t ndim,
                          uint32_t item_size, const void *value, uint32_t swap_size) {
  int64_t index[TEGULA_MAX_DIMS] = {0}, run = 1;
  for (int32_t k = 0; k < ndim; k++)
    if (extents[k] == 0) return;
  while (ndim > 0 && (extents[ndim - 1] == 1 || strides[ndim - 1] == run * (int64_t)item_size))
    run *= extents[--ndim];
  int64_t stride = item_size;
  if (run == 1 && ndim > 0) { /* the innermost axis is not dense */
    ndim--;
    run = extents[ndim];
    stride = strides[ndim];
  }
  for (;;) {
    fill_row(dst, stride, run, item_size, value, swap_size);
    int32_t k = ndim - 1;
    for (; k >= 0; k--) {
      dst += strides[k];
      if (++index[k] < extents[k]) break;
      dst -= extents[k] * strides[k];
      index[k] = 0;
    }
    if (k < 0) return;
  }
}
