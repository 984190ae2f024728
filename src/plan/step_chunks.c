/* The chunks of a step: which they are, where they are stored, and which parts share them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan_priv.h"

void tegula__plan_chunk(const tegula__plan *plan, int64_t index, int64_t *lo, int64_t *hi,
                        tegula__part *out) {
  const tegula__part *part = &plan->manifest->parts[plan->chunks[index].part];
  int32_t ndim = plan->manifest->ndim;
  int64_t at[TEGULA_MAX_DIMS], first[TEGULA_MAX_DIMS], last[TEGULA_MAX_DIMS],
      number = plan->chunks[index].number;
  tegula__part_chunks(part, ndim, first, last);
  for (int32_t k = ndim - 1; k >= 0; k--) {
    at[k] = first[k] + number % (last[k] - first[k]);
    number /= last[k] - first[k];
  }
  tegula__part_chunk(part, ndim, at, lo, hi, out);
}

int64_t tegula__plan_sharers(const tegula__plan *plan, int64_t index, int64_t end) {
  const tegula__planned_chunk *chunks = plan->chunks;
  int64_t count = 1;
  while (chunks[index].entry != NULL && index + count < end &&
         chunks[index + count].entry == chunks[index].entry)
    count++;
  return count;
}

void tegula__plan_stored(const tegula__plan *plan, int64_t first, int64_t count,
                         tegula__stored *out) {
  if (count > 1) {
    int64_t lo[TEGULA_MAX_DIMS];
    tegula__plan_chunk(plan, first + count - 1, lo, out->hi, &out->part);
    int64_t end = out->hi[0];
    tegula__plan_chunk(plan, first, out->lo, out->hi, &out->part);
    out->hi[0] = end;
  } else {
    tegula__plan_chunk(plan, first, out->lo, out->hi, &out->part);
  }
  out->part.offset += (int64_t)plan->chunks[first].entry->offset;
}

const tegula__part *tegula__step_stored(const tegula__plan *plan, const tegula__step *step,
                                        tegula__stored *out) {
  const tegula__part *part = &plan->manifest->parts[step->part];
  if (step->count == 0) return part;
  tegula__plan_stored(plan, step->first, step->count, out);
  return &out->part;
}
