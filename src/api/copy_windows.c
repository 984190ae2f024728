/* Windows of a copy.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/copy_windows.h"

#include <string.h>

static int64_t bytes_of(const tegula__windows *w, const int64_t *length) {
  int64_t bytes;
  return tegula__shape_bytes(length, w->target->ndim, w->target->dtype.item_size, &bytes) ? bytes : INT64_MAX;
}

static int64_t common_multiple(int64_t a, int64_t b) {
  int64_t x = a, y = b, product;
  while (y != 0) {
    int64_t rest = x % y;
    x = y;
    y = rest;
  }
  return tegula__mul(a / x, b, &product) ? product : INT64_MAX;
}

/* The first part in chunks: what the windows are to be made of. */
static const int64_t *chunk_of(const tegula__manifest *manifest) {
  for (int64_t i = 0; i < manifest->part_count; i++)
    if (manifest->parts[i].chunk != NULL) return manifest->parts[i].chunk;
  return NULL;
}

/* The axes from the fastest in the target's file to the slowest. */
static void order_axes(const tegula__part *part, int32_t ndim, int32_t *axes) {
  for (int32_t k = 0; k < ndim; k++) axes[k] = ndim - 1 - k;
  if (part->chunk != NULL || ndim < 2 || part->strides[0] >= part->strides[ndim - 1]) return;
  for (int32_t k = 0; k < ndim; k++) axes[k] = k;
}

/* As many units as fit, axis by axis; whole axes first. */
static void grow(const tegula__windows *w, const tegula__part *part, const int64_t *unit, int64_t *length) {
  int32_t ndim = w->target->ndim, axes[TEGULA_MAX_DIMS];
  order_axes(part, ndim, axes);
  memcpy(length, unit, (size_t)ndim * sizeof *length);
  for (int32_t i = 0; i < ndim; i++) {
    int32_t k = axes[i];
    int64_t extent = part->hi[k] - part->lo[k], units = w->most / bytes_of(w, length);
    if (units >= tegula__ceil_div(extent, unit[k])) {
      length[k] = extent;
      continue;
    }
    length[k] = tegula__max(1, units) * unit[k];
    return;
  }
}

/* The lengths of windows of a part. */
static void measure(const tegula__windows *w, const tegula__part *part, int64_t *length) {
  const int64_t *chunk = chunk_of(w->source);
  int64_t unit[TEGULA_MAX_DIMS], both[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < w->target->ndim; k++) {
    int64_t extent = part->hi[k] - part->lo[k];
    unit[k] = tegula__min(extent, part->chunk != NULL ? part->chunk[k] : 1);
    both[k] = tegula__min(extent, chunk != NULL ? common_multiple(part->chunk != NULL ? part->chunk[k] : 1, chunk[k]) : unit[k]);
  }
  grow(w, part, bytes_of(w, both) <= w->most ? both : unit, length);
}

static bool is_empty(const tegula__windows *w, const tegula__part *part) {
  return tegula__box_count(w->target->ndim, part->lo, part->hi) == 0;
}

void tegula__windows_start(tegula__windows *w, const tegula__manifest *source, const tegula__manifest *target, int64_t most) {
  *w = (tegula__windows){.source = source, .target = target, .most = tegula__max(1, most), .part = -1};
}

/* The first window of the next part. */
static bool enter_part(tegula__windows *w) {
  do w->part++;
  while (w->part < w->target->part_count && is_empty(w, &w->target->parts[w->part]));
  if (w->part >= w->target->part_count) return false;
  const tegula__part *part = &w->target->parts[w->part];
  measure(w, part, w->length);
  for (int32_t k = 0; k < w->target->ndim; k++) {
    w->lo[k] = part->lo[k];
    w->hi[k] = tegula__min(part->hi[k], part->lo[k] + w->length[k]);
  }
  return true;
}

bool tegula__windows_next(tegula__windows *w) {
  if (w->part < 0) return enter_part(w);
  if (w->part >= w->target->part_count) return false;
  const tegula__part *part = &w->target->parts[w->part];
  for (int32_t k = w->target->ndim - 1; k >= 0; k--) {
    bool more = w->hi[k] < part->hi[k];
    w->lo[k] = more ? w->hi[k] : part->lo[k];
    w->hi[k] = part->hi[k] - w->lo[k] < w->length[k] ? part->hi[k] : w->lo[k] + w->length[k];
    if (more) return true;
  }
  return enter_part(w);
}

int64_t tegula__windows_largest(const tegula__manifest *source, const tegula__manifest *target, int64_t most) {
  tegula__windows w;
  int64_t largest = 0, length[TEGULA_MAX_DIMS];
  tegula__windows_start(&w, source, target, most);
  for (int64_t i = 0; i < target->part_count; i++) {
    if (is_empty(&w, &target->parts[i])) continue;
    measure(&w, &target->parts[i], length);
    for (int32_t k = 0; k < target->ndim; k++) length[k] = tegula__min(length[k], target->parts[i].hi[k] - target->parts[i].lo[k]);
    largest = tegula__max(largest, bytes_of(&w, length));
  }
  return largest;
}
