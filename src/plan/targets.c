/* Finding the tiles that meet a box, by bisection along one axis.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tiles sorted by where they begin: those that start at hi or later are cut off at the end, and
 * since `reach` only grows, those that end before lo are cut off at the front. What is left is
 * looked at one by one: so the axis is the one along which an index is in the fewest tiles. Tens of
 * thousands of columns would all be looked at if they were sorted by rows. */
#include <stdlib.h>

#include "plan/plan.h"

static int compare_starts(const void *a, const void *b, void *state) {
  const tegula__targets *targets = state;
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  int64_t first = targets->tiles[i].lo[targets->axis], second = targets->tiles[j].lo[targets->axis];
  if (first != second) return first < second ? -1 : 1;
  return i < j ? -1 : i > j;
}

static bool is_sorted(const tegula__targets *targets) {
  int32_t k = targets->axis;
  for (int64_t i = 1; i < targets->count; i++)
    if (targets->tiles[i].lo[k] < targets->tiles[i - 1].lo[k]) return false;
  return true;
}

/* In how many tiles an index of axis k is on average; *lo and *hi: where the first begins and the
 * last ends. */
static double overlap(const tegula__targets *targets, int32_t k, int64_t *lo, int64_t *hi) {
  double sum = 0;
  *lo = INT64_MAX;
  *hi = 0;
  for (int64_t i = 0; i < targets->count; i++) {
    const tegula__tile *tile = &targets->tiles[i];
    *lo = tegula__min(*lo, tile->lo[k]);
    *hi = tegula__max(*hi, tile->hi[k]);
    sum += (double)(tile->hi[k] - tile->lo[k]);
  }
  return *hi > *lo ? sum / (double)(*hi - *lo) : (double)targets->count;
}

/* Rows, unless another axis is clearly better. */
static void choose_axis(tegula__targets *out) {
  int64_t lo, hi;
  double least = overlap(out, 0, &out->first_row, &out->last_row);
  for (int32_t k = 1; k < out->ndim && least > 2; k++) {
    double found = overlap(out, k, &lo, &hi);
    if (found >= least / 2) continue;
    least = found;
    out->axis = k;
  }
}

tegula_status tegula__targets_create(int32_t ndim, const tegula__tile *tiles, int64_t count,
                                     tegula__targets *out, tegula_error *err) {
  *out = (tegula__targets){.ndim = ndim, .count = count, .tiles = tiles};
  out->sorted = tegula__realloc_array(NULL, 2 * count, sizeof *out->sorted);
  if (out->sorted == NULL)
    return tegula__out_of_memory(err, 2 * count * (int64_t)sizeof *out->sorted);
  out->reach = out->sorted + count;
  for (int64_t i = 0; i < count; i++) out->sorted[i] = i;
  if (ndim == 0) return TEGULA_OK;
  choose_axis(out);
  if (!is_sorted(out))
    qsort_r(out->sorted, (size_t)count, sizeof *out->sorted, compare_starts, out);
  int64_t reach = 0;
  for (int64_t i = 0; i < count; i++) {
    reach = tegula__max(reach, tiles[out->sorted[i]].hi[out->axis]);
    out->reach[i] = reach;
  }
  return TEGULA_OK;
}

void tegula__targets_free(tegula__targets *targets) {
  free(targets->sorted);
  *targets = (tegula__targets){0};
}

void tegula__targets_find(const tegula__targets *targets, const int64_t *lo, const int64_t *hi,
                          int64_t *first, int64_t *last) {
  *first = 0;
  *last = targets->count;
  if (targets->ndim == 0) return;
  int32_t k = targets->axis;
  int64_t low = 0, high = targets->count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (targets->reach[middle] <= lo[k])
      low = middle + 1;
    else
      high = middle;
  }
  *first = low;
  high = targets->count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (targets->tiles[targets->sorted[middle]].lo[k] < hi[k])
      low = middle + 1;
    else
      high = middle;
  }
  *last = low;
}
