/* A range of elements in C order as boxes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shape (3, 4), elements 2 to 11: the rest of row 0, all of row 1, the start of row 2:
 *
 *   . . a a      box 0: [0,1) x [2,4)
 *   b b b b      box 1: [1,2) x [0,4)
 *   c c c .      box 2: [2,3) x [0,3) */
#include "base/base.h"

int32_t tegula__range_boxes(const int64_t *shape, int32_t ndim, int64_t first, int64_t count,
                            int64_t *vectors) {
  int64_t inner[TEGULA_MAX_DIMS + 1]; /* elements of one index along axis k - 1 */
  inner[ndim] = 1;
  for (int32_t k = ndim - 1; k >= 0; k--) inner[k] = inner[k + 1] * shape[k];
  if (ndim == 0) return 1;
  int32_t boxes = 0;
  for (int64_t at = first, end = first + count; at < end; boxes++) {
    int32_t axis = 0; /* the slowest axis of which a whole index starts here and fits */
    while (axis < ndim - 1 && (at % inner[axis + 1] != 0 || at + inner[axis + 1] > end)) axis++;
    int64_t *lo = vectors + (int64_t)boxes * 2 * ndim, *hi = lo + ndim;
    for (int32_t k = 0; k < ndim; k++) {
      lo[k] = k <= axis ? at / inner[k + 1] % shape[k] : 0;
      hi[k] = k < axis ? lo[k] + 1 : shape[k];
    }
    int64_t length = tegula__min(shape[axis] - lo[axis], (end - at) / inner[axis + 1]);
    hi[axis] = lo[axis] + length;
    at += length * inner[axis + 1];
  }
  return boxes;
}
