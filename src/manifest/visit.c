/* The stored chunks of a part, one by one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A small file can claim a huge array of which few chunks are stored: then the entries of the
 * grid's table are walked, and each slot is turned back into the chunk's place in the part. */
#include <stdlib.h>

#include "manifest/manifest_priv.h"

/* The chunks of the stored array that a part may meet: first[k] to last[k] along axis k. */
typedef struct chunk_range {
  const tegula__part *part;
  int32_t ndim;
  int64_t first[TEGULA_MAX_DIMS], last[TEGULA_MAX_DIMS];
} chunk_range;

/* Chunk `at` of the stored array, unless the part steps over it. */
static bool visit_at(const chunk_range *range, const int64_t *at, const tegula__chunk *entry,
                     tegula__chunk_fn each, void *state) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], number[TEGULA_MAX_DIMS];
  tegula__part piece;
  for (int32_t k = 0; k < range->ndim; k++)
    RETURN_IF(!tegula__part_number_of(range->part, k, at[k], &number[k]), true);
  int64_t slot = tegula__part_chunk(range->part, range->ndim, number, lo, hi, &piece);
  if (entry == NULL) entry = tegula__grid_find(range->part->grid, slot);
  return entry == NULL || each(state, entry, lo, hi);
}

static bool visit_box(const chunk_range *range, tegula__chunk_fn each, void *state) {
  int64_t at[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < range->ndim; k++) at[k] = range->first[k];
  for (;;) {
    RETURN_IF(!visit_at(range, at, NULL, each, state), false);
    int32_t k = range->ndim - 1;
    for (; k >= 0; k--) {
      if (++at[k] < range->last[k]) break;
      at[k] = range->first[k];
    }
    RETURN_IF(k < 0, true);
  }
}

/* Axes along which the slot changes, the slowest first; false: slots do not tell the place (two
 * places may share one). */
static bool order_axes(const chunk_range *range, int32_t *axes, int32_t *count) {
  const int64_t *strides = range->part->slot_strides;
  int64_t below = 0; /* the largest sum that the axes with smaller strides reach */
  *count = 0;
  for (int32_t k = 0; k < range->ndim; k++) {
    if (range->last[k] - range->first[k] == 1) continue;
    int32_t at = (*count)++;
    for (; at > 0 && strides[axes[at - 1]] < strides[k]; at--) axes[at] = axes[at - 1];
    axes[at] = k;
  }
  for (int32_t i = *count - 1; i >= 0; i--) {
    int32_t k = axes[i];
    RETURN_IF(strides[k] <= below, false);
    /* a slot of the grid: finish has checked that it fits */
    below += strides[k] * (range->last[k] - 1 - range->first[k]);
  }
  return true;
}

static int64_t slot_of(const chunk_range *range, const int64_t *at) {
  int64_t slot = range->part->slot_base;
  for (int32_t k = 0; k < range->ndim; k++) slot += at[k] * range->part->slot_strides[k];
  return slot;
}

/* Is `slot`, counted from the part's first, one of the part? Fills the place along `axes`. */
static bool place_of(const chunk_range *range, const int32_t *axes, int32_t count, int64_t slot,
                     int64_t *at) {
  for (int32_t i = 0; i < count; i++) {
    int32_t k = axes[i];
    int64_t steps = slot / range->part->slot_strides[k];
    RETURN_IF(steps >= range->last[k] - range->first[k], false);
    at[k] = range->first[k] + steps;
    slot -= steps * range->part->slot_strides[k];
  }
  return slot == 0;
}

static bool visit_entries(const chunk_range *range, const int32_t *axes, int32_t count,
                          tegula__chunk_fn each, void *state) {
  const tegula__grid *grid = range->part->grid;
  int64_t at[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < range->ndim; k++) at[k] = range->last[k] - 1;
  int64_t end = slot_of(range, at);
  for (int32_t k = 0; k < range->ndim; k++) at[k] = range->first[k];
  int64_t begin = slot_of(range, at);
  for (int64_t i = tegula__grid_entry_from(grid, begin);
       i < grid->count && grid->coordinates[i] <= (uint64_t)end; i++)
    if (grid->chunks[i].length != 0 &&
        place_of(range, axes, count, (int64_t)grid->coordinates[i] - begin, at) &&
        !visit_at(range, at, &grid->chunks[i], each, state))
      return false;
  return true;
}

bool tegula__part_visit(const tegula__part *part, int32_t ndim, tegula__chunk_fn each,
                        void *state) {
  chunk_range range = {.part = part, .ndim = ndim};
  int32_t axes[TEGULA_MAX_DIMS], count;
  int64_t chunks = 1;
  bool huge = false;
  for (int32_t k = 0; k < ndim; k++) {
    RETURN_IF(part->hi[k] == part->lo[k], true);
    range.first[k] = part->start[k] / part->chunk[k];
    range.last[k] = tegula__part_element(part, k, part->hi[k] - 1) / part->chunk[k] + 1;
    huge = huge || !tegula__mul(chunks, range.last[k] - range.first[k], &chunks);
  }
  bool sparse = part->grid->coordinates != NULL && (huge || chunks > part->grid->count);
  if (sparse && order_axes(&range, axes, &count))
    return visit_entries(&range, axes, count, each, state);
  return visit_box(&range, each, state);
}
