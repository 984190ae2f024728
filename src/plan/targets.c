/* Finding the tiles that meet a range of rows, by bisection.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tiles sorted by first row: those that start at hi or later are cut off at the end, and since `reach` only grows, those that end
 * before lo are cut off at the front. What is left is looked at one by one. */
#include <stdlib.h>

#include "plan/plan.h"

static int compare_rows(const void *a, const void *b, void *state) {
  const tegula__tile *tiles = state;
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  if (tiles[i].lo[0] != tiles[j].lo[0]) return tiles[i].lo[0] < tiles[j].lo[0] ? -1 : 1;
  return i < j ? -1 : i > j;
}

static bool is_sorted(const tegula__targets *targets) {
  for (int64_t i = 1; i < targets->count; i++)
    if (targets->tiles[i].lo[0] < targets->tiles[i - 1].lo[0]) return false;
  return true;
}

tegula_status tegula__targets_create(int32_t ndim, const tegula__tile *tiles, int64_t count, tegula__targets *out, tegula_error *err) {
  *out = (tegula__targets){.ndim = ndim, .count = count, .tiles = tiles};
  out->sorted = tegula__realloc_array(NULL, 2 * count, sizeof *out->sorted);
  if (out->sorted == NULL) return tegula__out_of_memory(err, 2 * count * (int64_t)sizeof *out->sorted);
  out->reach = out->sorted + count;
  for (int64_t i = 0; i < count; i++) out->sorted[i] = i;
  if (ndim == 0) return TEGULA_OK;
  if (!is_sorted(out)) qsort_r(out->sorted, (size_t)count, sizeof *out->sorted, compare_rows, (void *)tiles);
  int64_t reach = 0;
  for (int64_t i = 0; i < count; i++) {
    reach = tegula__max(reach, tiles[out->sorted[i]].hi[0]);
    out->reach[i] = reach;
  }
  return TEGULA_OK;
}

void tegula__targets_free(tegula__targets *targets) {
  free(targets->sorted);
  *targets = (tegula__targets){0};
}

void tegula__targets_find(const tegula__targets *targets, int64_t lo, int64_t hi, int64_t *first, int64_t *last) {
  *first = 0;
  *last = targets->count;
  if (targets->ndim == 0) return;
  int64_t low = 0, high = targets->count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (targets->reach[middle] <= lo)
      low = middle + 1;
    else
      high = middle;
  }
  *first = low;
  high = targets->count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (targets->tiles[targets->sorted[middle]].lo[0] < hi)
      low = middle + 1;
    else
      high = middle;
  }
  *last = low;
}
