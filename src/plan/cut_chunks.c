/* Steps of chunked parts.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * All chunks that the tiles want are put in the order of the file. Small ones that lie next to each
 * other are read together. One that is stored as it is and large is dense bytes, and cut like any
 * other; so are small ones whose rows go on in the file as they do in the array, as they do when a
 * file was written row by row. Absent ones are filled, in the order of the array.
 *
 * Parts that share a grid (a virtual dataset has every fourth row from one source) are planned
 * together, so that a chunk which several of them want is read and decoded once, by one step.
 *
 * Chunks that are written have no place yet. They are taken in the order of the array, and get
 * their places in that order. */
#include <stdlib.h>

#include "plan/plan_priv.h"

/* bytes that one step reads, unless a single chunk has more */
#define LARGEST_SPAN ((int64_t)1 << 20)
/* bytes that one step encodes, unless a single chunk has more */
#define LARGEST_ENCODED ((int64_t)1 << 20)
#define MOST_ENCODED 1024 /* chunks */

/* ---- which chunks ---- */

static int64_t chunk_number(const int64_t *at, const int64_t *lo, const int64_t *hi, int32_t ndim) {
  int64_t number = 0;
  for (int32_t k = 0; k < ndim; k++) number = number * (hi[k] - lo[k]) + (at[k] - lo[k]);
  return number;
}

static tegula_status add_chunk(tegula__plan *plan, const tegula__planned_chunk *chunk,
                               tegula_error *err) {
  if (!tegula__vector_reserve((void **)&plan->chunks, &plan->chunk_capacity, plan->chunk_count + 1,
                              sizeof *plan->chunks))
    return tegula__out_of_memory(err, plan->chunk_count * (int64_t)sizeof *plan->chunks);
  plan->chunks[plan->chunk_count++] = *chunk;
  return TEGULA_OK;
}

/* All chunks between first and last (counted in chunks) that a tile wants. */
static tegula_status collect(const tegula__cutting *cutting, int64_t number, const int64_t *first,
                             const int64_t *last, tegula_error *err) {
  tegula__plan *plan = cutting->plan;
  const tegula__part *part = &plan->manifest->parts[number];
  int32_t ndim = plan->manifest->ndim;
  int64_t all_lo[TEGULA_MAX_DIMS], all_hi[TEGULA_MAX_DIMS], at[TEGULA_MAX_DIMS],
      lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  int64_t want_lo[TEGULA_MAX_DIMS], want_hi[TEGULA_MAX_DIMS];
  tegula__part piece;
  tegula__part_chunks(part, ndim, all_lo, all_hi);
  for (int32_t k = 0; k < ndim; k++) at[k] = first[k];
  for (;;) {
    int64_t slot = tegula__part_chunk(part, ndim, at, lo, hi, &piece);
    tegula__planned_chunk chunk = {.part = number,
                                   .number = chunk_number(at, all_lo, all_hi, ndim)};
    if (tegula__plan_wants(plan, lo, hi, want_lo, want_hi, &chunk.bytes)) {
      chunk.entry = tegula__grid_find(part->grid, slot);
      plan->absent += chunk.entry == NULL && !cutting->limits->writing;
      FORWARD(add_chunk(plan, &chunk, err));
    }
    int32_t k = ndim - 1;
    for (; k >= 0; k--) {
      if (++at[k] < last[k]) break;
      at[k] = first[k];
    }
    if (k < 0) return TEGULA_OK;
  }
}

/* All chunks of a part that a tile wants. */
static tegula_status collect_part(const tegula__cutting *cutting, int64_t number,
                                  tegula_error *err) {
  tegula__plan *plan = cutting->plan;
  const tegula__part *part = &plan->manifest->parts[number];
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], bytes;
  if (!tegula__plan_wants(plan, part->lo, part->hi, lo, hi, &bytes)) return TEGULA_OK;
  for (int32_t k = 0; k < plan->manifest->ndim; k++) {
    hi[k] = tegula__part_number(part, k, hi[k] - 1) + 1;
    lo[k] = tegula__part_number(part, k, lo[k]);
  }
  bool sparse = !cutting->limits->writing && part->grid->coordinates != NULL;
  return sparse ? tegula__cut_sparse(cutting, number, lo, hi, collect, err)
                : collect(cutting, number, lo, hi, err);
}

/* In the order of the file, those of one entry together in the order of their parts; absent ones
 * behind it in the order of the array. */
static int compare_chunks(const void *a, const void *b) {
  const tegula__planned_chunk *p = a, *q = b;
  if ((p->entry == NULL) != (q->entry == NULL)) return p->entry == NULL ? 1 : -1;
  if (p->entry != NULL && p->entry->offset != q->entry->offset)
    return p->entry->offset < q->entry->offset ? -1 : 1;
  /* of one table, at the same place */
  if (p->entry != q->entry) return p->entry < q->entry ? -1 : 1;
  if (p->part != q->part) return p->part < q->part ? -1 : 1;
  return (p->number > q->number) - (p->number < q->number);
}

static void sort_chunks(tegula__planned_chunk *chunks, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    if (compare_chunks(&chunks[i - 1], &chunks[i]) <= 0) continue;
    qsort(chunks, (size_t)count, sizeof *chunks, compare_chunks);
    return;
  }
}

/* ---- steps ---- */

static bool is_plain(const tegula__grid *grid, const tegula__planned_chunk *chunk) {
  return chunk->entry != NULL && tegula__chunk_plain(grid, chunk->entry);
}

/* Is the chunk, of so many of the plan, moved like a file of its own? */
static bool is_dense(const tegula__plan *plan, const tegula__grid *grid, int64_t index,
                     int64_t sharers) {
  if (grid->chunk_bytes < DENSE_CHUNK || !is_plain(grid, &plan->chunks[index])) return false;
  return sharers == 1 || tegula__plan_apart(plan, index, sharers);
}

/* Do chunks hold whole rows, one chunk behind the other along axis 0? Then neighbours in the file
 * go on where the one before ended. */
static bool holds_rows(const tegula__part *part, int32_t ndim) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], bytes;
  if (ndim == 0) return false;
  int64_t step = tegula__part_step(part, 0);
  tegula__part_chunks(part, ndim, lo, hi);
  for (int32_t k = 1; k < ndim; k++)
    if (hi[k] - lo[k] != 1) return false;
  return step <= part->chunk[0] && tegula__mul(part->strides[0] / step, part->chunk[0], &bytes) &&
         bytes == part->grid->chunk_bytes;
}

/* How many plain chunks from `first` on, which nothing else of the plan shares, are together dense
 * bytes; 0: it is not one. */
static int64_t dense_run(const tegula__plan *plan, int64_t first) {
  const tegula__planned_chunk *chunks = plan->chunks;
  const tegula__part *part = &plan->manifest->parts[chunks[first].part];
  int64_t count = 1;
  if (!is_plain(part->grid, &chunks[first])) return 0;
  bool rows = holds_rows(part, plan->manifest->ndim);
  for (; rows && first + count < plan->chunk_count; count++) {
    const tegula__planned_chunk *one = &chunks[first + count], *last = one - 1;
    bool goes_on = is_plain(part->grid, one) && one->part == last->part &&
                   one->number == last->number + 1 &&
                   one->entry->offset == last->entry->offset + last->entry->length;
    if (!goes_on || tegula__plan_sharers(plan, first + count,
                                         tegula__min(first + count + 2, plan->chunk_count)) > 1)
      break;
  }
  return count >= tegula__ceil_div(DENSE_CHUNK, part->grid->chunk_bytes) ? count : 0;
}

/* Does the chunk at `at`, of so many of the plan, go into the step that begins with `first`?
 * *decoded: bytes of those before it. */
static bool goes_along(const tegula__cutting *cutting, const tegula__grid *grid, int64_t first,
                       int64_t at, int64_t sharers, int64_t *decoded) {
  const tegula__planned_chunk *chunks = cutting->plan->chunks;
  const tegula__chunk *one = chunks[at].entry, *last = chunks[at - 1].entry;
  if ((one == NULL) != (last == NULL) || (one == NULL && chunks[at].part != chunks[first].part))
    return false;
  if (!tegula__add(*decoded, grid->chunk_bytes, decoded) || *decoded > cutting->share) return false;
  if (one == NULL) return true;
  int64_t gap = (int64_t)one->offset - (int64_t)last->offset - last->length;
  int64_t span = (int64_t)one->offset + one->length - (int64_t)chunks[first].entry->offset;
  return gap >= 0 && gap <= TEGULA__GAP && span <= LARGEST_SPAN &&
         !is_dense(cutting->plan, grid, at, sharers);
}

/* How many chunks from `first` on one step takes. */
static int64_t together(const tegula__cutting *cutting, const tegula__grid *grid, int64_t first,
                        int64_t *bytes) {
  const tegula__plan *plan = cutting->plan;
  int64_t at = first, decoded = grid->chunk_bytes;
  *bytes = 0;
  while (at < plan->chunk_count) {
    int64_t sharers = tegula__plan_sharers(plan, at, plan->chunk_count);
    if (at > first && !goes_along(cutting, grid, first, at, sharers, &decoded)) break;
    for (int64_t end = at + sharers; at < end; at++) *bytes += plan->chunks[at].bytes;
  }
  return at - first;
}

/* Steps for chunks that are dense bytes, `count` together. */
static tegula_status step_dense(const tegula__cutting *cutting, int64_t first, int64_t count,
                                tegula_error *err) {
  tegula__stored stored;
  tegula__plan_stored(cutting->plan, first, count, &stored);
  return tegula__cut_dense(cutting, &stored.part, cutting->plan->chunks[first].part, first, count,
                           err);
}

static tegula_status step_chunks(const tegula__cutting *cutting, const tegula__grid *grid,
                                 int64_t first, tegula_error *err) {
  tegula__plan *plan = cutting->plan;
  for (int64_t at = first; at < plan->chunk_count;) {
    int64_t sharers = tegula__plan_sharers(plan, at, plan->chunk_count),
            dense = sharers == 1 ? dense_run(plan, at) : 0;
    if (dense > 0) {
      FORWARD(step_dense(cutting, at, dense, err));
      at += dense;
      continue;
    }
    if (sharers > 1 && is_dense(plan, grid, at, sharers)) {
      FORWARD(tegula__plan_sort_apart(plan, at, sharers, err));
      for (int64_t end = at + sharers; at < end; at++) FORWARD(step_dense(cutting, at, 1, err));
      continue;
    }
    const tegula__planned_chunk *chunk = &plan->chunks[at];
    tegula__step step = {.kind = chunk->entry != NULL ? TEGULA__STEP_CHUNKS : TEGULA__STEP_FILL,
                         .part = chunk->part,
                         .first = at};
    step.count = together(cutting, grid, at, &step.bytes);
    FORWARD(tegula__plan_add(plan, &step, err));
    at += step.count;
  }
  return TEGULA_OK;
}

/* The same for chunks that are written. */
static tegula_status step_encoded(const tegula__cutting *cutting, int64_t number, int64_t first,
                                  tegula_error *err) {
  tegula__plan *plan = cutting->plan;
  int64_t size = plan->manifest->parts[number].grid->chunk_bytes,
          most = tegula__max(1, tegula__min(MOST_ENCODED, LARGEST_ENCODED / size));
  for (int64_t at = first; at < plan->chunk_count;) {
    tegula__step step = {.kind = TEGULA__STEP_ENCODE,
                         .part = number,
                         .first = at,
                         .count = tegula__min(most, plan->chunk_count - at)};
    for (int64_t i = 0; i < step.count; i++) step.bytes += plan->chunks[at + i].bytes;
    FORWARD(tegula__plan_add(plan, &step, err));
    at += step.count;
  }
  return TEGULA_OK;
}

tegula_status tegula__cut_chunked(const tegula__cutting *cutting, int64_t number,
                                  tegula_error *err) {
  tegula__plan *plan = cutting->plan;
  int64_t first = plan->chunk_count;
  for (int64_t part = number, next; part != TEGULA__NO_PART; part = next) {
    next = cutting->next[part - cutting->first_part];
    cutting->next[part - cutting->first_part] = TEGULA__CUT_PART;
    FORWARD(collect_part(cutting, part, err));
  }
  if (plan->chunk_count == first) return TEGULA_OK;
  if (cutting->limits->writing) return step_encoded(cutting, number, first, err);
  sort_chunks(plan->chunks + first, plan->chunk_count - first);
  return step_chunks(cutting, plan->manifest->parts[number].grid, first, err);
}
