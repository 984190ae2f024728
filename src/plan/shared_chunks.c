/* Parts that share a grid, and large plain chunks that several of them want.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "plan/plan_priv.h"

/* larger plain chunks are not held in memory as a whole */
#define LARGEST_SHARED ((int64_t)64 << 20)

/* ---- which parts ---- */

typedef struct chunked {
  const tegula__grid *grid;
  int64_t part;
} chunked;

static int compare_grids(const void *a, const void *b) {
  const chunked *p = a, *q = b;
  if (p->grid != q->grid) return (uintptr_t)p->grid < (uintptr_t)q->grid ? -1 : 1;
  return (p->part > q->part) - (p->part < q->part);
}

/* Parts that are written have chunks without a place: each by itself. */
tegula_status tegula__link_parts(tegula__cutting *cutting, int64_t last, tegula_error *err) {
  const tegula__part *parts = cutting->plan->manifest->parts;
  int64_t first = cutting->first_part, count = 0;
  for (int64_t i = first; i < last; i++) count += parts[i].kind == TEGULA__PART_CHUNKED;
  if (count == 0) return TEGULA_OK;
  cutting->next = tegula__realloc_array(NULL, last - first, sizeof *cutting->next);
  chunked *all = tegula__realloc_array(NULL, count, sizeof *all);
  if (cutting->next == NULL || all == NULL) {
    free(all);
    return tegula__out_of_memory(err, count * (int64_t)sizeof *all);
  }
  count = 0;
  for (int64_t i = first; i < last; i++) {
    cutting->next[i - first] = TEGULA__NO_PART;
    if (parts[i].kind == TEGULA__PART_CHUNKED)
      all[count++] = (chunked){.grid = parts[i].grid, .part = i};
  }
  if (!cutting->limits->writing) {
    qsort(all, (size_t)count, sizeof *all, compare_grids);
    for (int64_t i = 1; i < count; i++)
      if (all[i].grid == all[i - 1].grid) cutting->next[all[i - 1].part - first] = all[i].part;
  }
  free(all);
  return TEGULA_OK;
}

/* ---- large plain chunks ---- */

/* What a chunk of the plan would read by itself. */
static void count_reads(const tegula__plan *plan, int64_t index, int64_t *bytes,
                        int64_t *requests) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], want_lo[TEGULA_MAX_DIMS],
      want_hi[TEGULA_MAX_DIMS], wanted, span, count = 1;
  tegula__part piece;
  tegula__file_order order;
  int32_t ndim = plan->manifest->ndim;
  tegula__plan_chunk(plan, index, lo, hi, &piece);
  if (!tegula__plan_wants(plan, lo, hi, want_lo, want_hi, &wanted)) return;
  tegula__file_order_of(&piece, ndim, want_lo, want_hi, &order);
  int32_t inner = tegula__read_unit(&order, piece.strides, want_lo, want_hi,
                                    plan->manifest->dtype.item_size, TEGULA__GAP, &span);
  for (int32_t i = 0; i < order.count - inner; i++)
    count *= want_hi[order.axes[i]] - want_lo[order.axes[i]];
  *bytes += span * count;
  *requests += count;
}

/* Nothing must be read twice; then either requests are long, or together they are less work than
 * the whole chunk. */
bool tegula__plan_apart(const tegula__plan *plan, int64_t index, int64_t count) {
  int64_t length = plan->chunks[index].entry->length, bytes = 0, requests = 0;
  if (length > LARGEST_SHARED) return true;
  for (int64_t i = 0; i < count; i++) {
    count_reads(plan, index + i, &bytes, &requests);
    if (bytes > length) return false;
  }
  return bytes / requests >= DENSE_CHUNK || bytes + requests * TEGULA__GAP <= length;
}

typedef struct begun {
  int64_t offset; /* in the decoded chunk */
  tegula__planned_chunk chunk;
} begun;

static int compare_begun(const void *a, const void *b) {
  const begun *p = a, *q = b;
  if (p->offset != q->offset) return p->offset < q->offset ? -1 : 1;
  return (p->chunk.part > q->chunk.part) - (p->chunk.part < q->chunk.part);
}

tegula_status tegula__plan_sort_apart(tegula__plan *plan, int64_t index, int64_t count,
                                      tegula_error *err) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  tegula__part piece;
  begun *all = tegula__realloc_array(NULL, count, sizeof *all);
  if (all == NULL) return tegula__out_of_memory(err, count * (int64_t)sizeof *all);
  for (int64_t i = 0; i < count; i++) {
    tegula__plan_chunk(plan, index + i, lo, hi, &piece);
    all[i] = (begun){.offset = piece.offset, .chunk = plan->chunks[index + i]};
  }
  qsort(all, (size_t)count, sizeof *all, compare_begun);
  for (int64_t i = 0; i < count; i++) plan->chunks[index + i] = all[i].chunk;
  free(all);
  return TEGULA_OK;
}
