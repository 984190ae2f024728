/* What fuzz targets of manifests share: a small one that finish accepts is planned, and all that
 * the plan reads lies in its place.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_FUZZ_PLAN_H
#define TEGULA_FUZZ_PLAN_H

#include "fuzz.h"
#include "plan/plan.h"

enum { MOST_ELEMENTS = 4000, MOST_BYTES = 1 << 16 };

/* All elements of the box [lo, hi) of a dense part lie in [0, size), by arithmetic that cannot
 * overflow. */
static inline void check_inside(const tegula__manifest *m, const tegula__part *part,
                                const int64_t *lo, const int64_t *hi, int64_t size) {
  __int128 first = part->offset, last = part->offset;
  for (int32_t k = 0; k < m->ndim; k++) {
    MUST(part->lo[k] <= lo[k] && lo[k] < hi[k] && hi[k] <= part->hi[k] &&
         part->hi[k] <= m->shape[k]);
    first += (__int128)(lo[k] - part->lo[k]) * part->strides[k];
    last += (__int128)(hi[k] - part->lo[k] - 1) * part->strides[k];
  }
  MUST(first >= 0 && last + m->dtype.item_size <= size);
}

static inline int64_t check_chunks(const tegula__plan *plan, const tegula__step *step) {
  const tegula__manifest *m = plan->manifest;
  const tegula__part *part = &m->parts[step->part];
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], bytes = 0;
  tegula__part piece;
  MUST(step->first >= 0 && step->count > 0 && step->first + step->count <= plan->chunk_count);
  for (int64_t i = step->first; i < step->first + step->count; i++) {
    const tegula__chunk *entry = plan->chunks[i].entry;
    MUST(m->parts[plan->chunks[i].part].grid == part->grid &&
         (entry != NULL || plan->chunks[i].part == step->part));
    tegula__plan_chunk(plan, i, lo, hi, &piece);
    check_inside(m, &piece, lo, hi, part->grid->chunk_bytes);
    bytes += plan->chunks[i].bytes;
    MUST((entry == NULL) == (step->kind == TEGULA__STEP_FILL));
    if (entry == NULL) continue;
    MUST((__int128)entry->offset + entry->length <= m->files[part->grid->file].stamp.size);
    MUST(i == step->first || entry->offset >= plan->chunks[i - 1].entry->offset);
    /* what is read ends with it */
    const tegula__chunk *last = plan->chunks[step->first + step->count - 1].entry;
    MUST(entry->offset + entry->length <= last->offset + last->length);
    if (tegula__chunk_plain(part->grid, entry)) MUST(entry->length == part->grid->chunk_bytes);
  }
  MUST(bytes == step->bytes);
  return bytes;
}

static inline void check_plan(const tegula__plan *plan) {
  const tegula__manifest *m = plan->manifest;
  int64_t bytes = 0, whole;
  for (int64_t i = 0; i < plan->step_count; i++) {
    const tegula__step *step = &plan->steps[i];
    tegula__stored stored;
    bytes += step->bytes;
    if (!tegula__step_has_box(step)) {
      check_chunks(plan, step);
      continue;
    }
    MUST(tegula__box_count(m->ndim, step->lo, step->hi) * m->dtype.item_size == step->bytes);
    const tegula__part *part = tegula__step_stored(plan, step, &stored);
    if (step->kind == TEGULA__STEP_DIRECT || step->kind == TEGULA__STEP_STAGED)
      check_inside(m, part, step->lo, step->hi,
                   m->files[tegula__part_file(&m->parts[step->part])].stamp.size);
  }
  /* each once */
  MUST(tegula__shape_bytes(m->shape, m->ndim, m->dtype.item_size, &whole) && bytes == whole &&
       plan->bytes == whole);
}

static inline void plan_all(const tegula__manifest *m) {
  int64_t lo[TEGULA_MAX_DIMS] = {0}, strides[TEGULA_MAX_DIMS], elements, reads = 0, total = 0;
  if (!tegula__shape_count(m->shape, m->ndim, &elements) || elements > MOST_ELEMENTS) return;
  if (elements * (int64_t)m->dtype.item_size > MOST_BYTES) return;
  tegula__dense_strides(m->shape, m->ndim, m->dtype.item_size, 'C', strides);
  static char memory[MOST_BYTES]; /* never touched: addresses are compared */
  tegula__tile tile = {
      .lo = lo, .hi = m->shape, .strides = strides, .data = memory, .order = m->dtype.order};
  tegula__plan_limits limits = {.threads = 2, .staging_slot = 1 << 14};
  tegula__targets targets;
  tegula__plan plan;
  MUST(tegula__targets_create(m->ndim, &tile, elements > 0, &targets, NULL) == TEGULA_OK);
  MUST(tegula__plan_create(m, &targets, &limits, &plan, NULL) == TEGULA_OK);
  check_plan(&plan);
  MUST(tegula__plan_requests(&plan, 64, &reads, &total, NULL) == TEGULA_OK);
  MUST(reads <= total && total <= elements);
  tegula__plan_free(&plan);
  tegula__targets_free(&targets);
}

#endif
