/* A plan: all parts of a manifest, cut by what the tiles want of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "plan/plan_priv.h"

/* Bytes that make enough steps for all workers to end together. */
static int64_t even_share(const tegula__targets *targets, uint32_t item, int32_t threads,
                          int64_t largest) {
  int64_t total = 0;
  for (int64_t i = 0; i < targets->count; i++)
    total += tegula__box_count(targets->ndim, targets->tiles[i].lo, targets->tiles[i].hi) * item;
  return tegula__max(SMALLEST_STEP, tegula__min(largest, total / (8 * (int64_t)threads)));
}

static void point_at_vectors(tegula__plan *plan) {
  int64_t ndim = plan->manifest->ndim, at = 0;
  for (int64_t i = 0; i < plan->step_count; i++) {
    if (!tegula__step_has_box(&plan->steps[i])) continue;
    plan->steps[i].lo = plan->vectors + at;
    plan->steps[i].hi = plan->vectors + at + ndim;
    at += 2 * ndim;
  }
}

/* A part that is absent as a whole. */
static tegula_status cut_absent(const tegula__cutting *cutting, int64_t number, tegula_error *err) {
  const tegula__part *part = &cutting->plan->manifest->parts[number];
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], bytes;
  cutting->plan->absent += tegula__plan_wants(cutting->plan, part->lo, part->hi, lo, hi, &bytes);
  return tegula__cut_fill(cutting, number, part->lo, part->hi, err);
}

static tegula_status cut_part(const tegula__cutting *cutting, int64_t number, tegula_error *err) {
  const tegula__part *part = &cutting->plan->manifest->parts[number];
  if (cutting->next != NULL && cutting->next[number - cutting->first_part] == TEGULA__CUT_PART)
    return TEGULA_OK;
  switch (part->kind) {
    case TEGULA__PART_DENSE:
      return tegula__cut_dense(cutting, part, number, -1, 0, err);
    case TEGULA__PART_CHUNKED:
      return tegula__cut_chunked(cutting, number, err);
    case TEGULA__PART_FILL:
      return cut_absent(cutting, number, err);
    case TEGULA__PART_LOST:
      return tegula__cut_other(cutting, number, TEGULA__STEP_LOST, err);
    case TEGULA__PART_READ:
      return tegula__cut_other(cutting, number, TEGULA__STEP_READ, err);
    case TEGULA__PART_LATE:
      break; /* whoever plans finds out first */
  }
  return tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "part %lld cannot be planned",
                      (long long)number);
}

tegula_status tegula__plan_create(const tegula__manifest *manifest, const tegula__targets *targets,
                                  const tegula__plan_limits *limits, tegula__plan *out,
                                  tegula_error *err) {
  *out = (tegula__plan){.manifest = manifest, .targets = targets};
  uint32_t item = manifest->dtype.item_size;
  tegula__cutting cutting = {.plan = out,
                             .limits = limits,
                             .share = even_share(targets, item, limits->threads, LARGEST_STEP),
                             .direct = even_share(targets, item, limits->threads,
                                                  limits->writing ? LARGEST_WRITE : LARGEST_STEP)};
  int64_t first = 0, last = manifest->part_count;
  if (manifest->ndim > 0 && targets->count > 0)
    tegula__manifest_find(manifest, targets->first_row, targets->last_row, &first, &last);
  cutting.first_part = first;
  tegula_status status = tegula__link_parts(&cutting, last, err);
  for (int64_t i = first; i < last && status == TEGULA_OK; i++) status = cut_part(&cutting, i, err);
  free(cutting.next);
  if (status == TEGULA_OK)
    point_at_vectors(out);
  else
    tegula__plan_free(out);
  return status;
}

void tegula__plan_free(tegula__plan *plan) {
  free(plan->steps);
  free(plan->chunks);
  free(plan->vectors);
  *plan = (tegula__plan){0};
}
