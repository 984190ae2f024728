/* Parts of which few chunks are stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A file of some kilobytes may claim any number of chunks. What is planned grows with those that
 * are stored: the chunks that are wanted are cut in halves, along the axis whose slots lie furthest
 * apart, until none of a half is stored, or few are left. A half without any becomes a box that is
 * filled, where tiles want all of it; where they want a part of it, it is cut further. */
#include "plan/plan_priv.h"

#define FEW_CHUNKS ((int64_t)64)

/* The elements of the part in these chunks. */
static void elements_of(const tegula__part *part, int32_t ndim, const int64_t *first,
                        const int64_t *last, int64_t *lo, int64_t *hi) {
  int64_t end[TEGULA_MAX_DIMS], unused[TEGULA_MAX_DIMS];
  tegula__part piece;
  for (int32_t k = 0; k < ndim; k++) end[k] = last[k] - 1;
  tegula__part_chunk(part, ndim, end, unused, hi, &piece);
  tegula__part_chunk(part, ndim, first, lo, unused, &piece);
}

/* Steps for chunks that are all absent; *done: tiles want all of them, or none. */
static tegula_status fill(const tegula__cutting *cutting, int64_t number, const int64_t *first,
                          const int64_t *last, bool *done, tegula_error *err) {
  tegula__plan *plan = cutting->plan;
  int32_t ndim = plan->manifest->ndim;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], want_lo[TEGULA_MAX_DIMS],
      want_hi[TEGULA_MAX_DIMS], bytes;
  elements_of(&plan->manifest->parts[number], ndim, first, last, lo, hi);
  bool wanted = tegula__plan_wants(plan, lo, hi, want_lo, want_hi, &bytes);
  *done = !wanted || bytes == tegula__box_count(ndim, lo, hi) * plan->manifest->dtype.item_size;
  if (!wanted || !*done) return TEGULA_OK;
  plan->absent += tegula__box_count(ndim, first, last);
  return tegula__cut_fill(cutting, number, lo, hi, err);
}

static int32_t axis_to_cut(const tegula__part *part, int32_t ndim, const int64_t *first,
                           const int64_t *last) {
  int32_t axis = -1;
  for (int32_t k = 0; k < ndim; k++)
    if (last[k] - first[k] > 1 && (axis < 0 || part->slot_strides[k] > part->slot_strides[axis]))
      axis = k;
  return axis;
}

tegula_status tegula__cut_sparse(const tegula__cutting *cutting, int64_t number, int64_t *first,
                                 int64_t *last, tegula__collect_fn collect, tegula_error *err) {
  const tegula__part *part = &cutting->plan->manifest->parts[number];
  int32_t ndim = cutting->plan->manifest->ndim;
  if (tegula__box_count(ndim, first, last) <= FEW_CHUNKS)
    return collect(cutting, number, first, last, err);
  if (tegula__part_bare(part, ndim, first, last)) {
    bool done;
    tegula_status status = fill(cutting, number, first, last, &done, err);
    if (status != TEGULA_OK || done) return status;
  }
  int32_t k = axis_to_cut(part, ndim, first, last);
  int64_t low = first[k], high = last[k], middle = low + (high - low) / 2;
  last[k] = middle;
  tegula_status status = tegula__cut_sparse(cutting, number, first, last, collect, err);
  last[k] = high;
  first[k] = middle;
  if (status == TEGULA_OK) status = tegula__cut_sparse(cutting, number, first, last, collect, err);
  first[k] = low;
  return status;
}
