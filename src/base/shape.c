/* Shapes and boxes: products that cannot overflow, strides, intersections.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"

bool tegula__shape_count(const int64_t *shape, int32_t ndim, int64_t *count) {
  int64_t product = 1;
  bool empty = false;
  for (int32_t k = 0; k < ndim; k++) {
    if (shape[k] == 0) {
      empty = true;
      continue;
    }
    RETURN_IF(!tegula__mul(product, shape[k], &product), false);
  }
  *count = empty ? 0 : product;
  return true;
}

bool tegula__shape_bytes(const int64_t *shape, int32_t ndim, uint32_t item_size, int64_t *bytes) {
  int64_t count, strided = item_size;
  for (int32_t k = 0; k < ndim; k++) /* strides of an empty array must not overflow either */
    if (shape[k] != 0) RETURN_IF(!tegula__mul(strided, shape[k], &strided), false);
  RETURN_IF(!tegula__shape_count(shape, ndim, &count), false);
  return tegula__mul(count, item_size, bytes);
}

void tegula__dense_strides(const int64_t *shape, int32_t ndim, uint32_t item_size, char order,
                           int64_t *strides) {
  int64_t stride = item_size;
  for (int32_t i = 0; i < ndim; i++) {
    int32_t k = order == 'F' ? i : ndim - 1 - i;
    strides[k] = stride;
    if (shape[k] != 0) stride *= shape[k];
  }
}

void tegula__shape_format(const int64_t *shape, int32_t ndim, char out[TEGULA__SHAPE_TEXT]) {
  size_t used = (size_t)snprintf(out, TEGULA__SHAPE_TEXT, "(");
  for (int32_t k = 0; k < ndim; k++) {
    used += (size_t)snprintf(out + used, TEGULA__SHAPE_TEXT - used, k > 0 ? ", %lld" : "%lld",
                             (long long)shape[k]);
    if (used > TEGULA__SHAPE_TEXT - 32) { /* room for the end and one more number */
      snprintf(out + used, TEGULA__SHAPE_TEXT - used, "%s", k + 1 < ndim ? ", ...)" : ")");
      return;
    }
  }
  snprintf(out + used, TEGULA__SHAPE_TEXT - used, ndim == 1 ? ",)" : ")");
}

bool tegula__box_intersect(int32_t ndim, const int64_t *a_lo, const int64_t *a_hi,
                           const int64_t *b_lo, const int64_t *b_hi, int64_t *lo, int64_t *hi) {
  /* whoever asks for many boxes has chosen them by axis 0 already */
  for (int32_t k = ndim - 1; k >= 0; k--) {
    int64_t l = tegula__max(a_lo[k], b_lo[k]), h = tegula__min(a_hi[k], b_hi[k]);
    RETURN_IF(l >= h, false);
    lo[k] = l;
    hi[k] = h;
  }
  return true;
}

int64_t tegula__box_count(int32_t ndim, const int64_t *lo, const int64_t *hi) {
  int64_t count = 1;
  for (int32_t k = 0; k < ndim; k++) count *= hi[k] - lo[k];
  return count;
}
