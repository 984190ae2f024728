/* Counting the read requests of a plan without making them: by the same walks and the same rules by
 * which the engine makes them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A request may bring bytes of several tiles; it counts once in the total and once for each of
 * them. */
#include <stdlib.h>

#include "plan/plan.h"

/* What is kept from step to step. */
typedef struct counter {
  const tegula__plan *plan;
  int vectors;
  tegula__piece *pieces;
  int64_t piece_count, piece_capacity;
  int64_t *corners; /* behind the pieces' lo and hi */
  int64_t corner_capacity;
  tegula__run_walk *walks;
  int64_t walk_capacity;
  int64_t *heap;
  int64_t heap_capacity;
  int64_t *latest; /* per tile: the last request that brought something */
  int64_t *reads;
  int64_t total;
} counter;

static tegula_status find_pieces(counter *c, const int64_t *box_lo, const int64_t *box_hi,
                                 tegula_error *err) {
  const tegula__targets *targets = c->plan->targets;
  int32_t ndim = targets->ndim;
  int64_t first, last;
  tegula__targets_find(targets, box_lo, box_hi, &first, &last);
  if (!tegula__vector_reserve((void **)&c->pieces, &c->piece_capacity, last - first,
                              sizeof *c->pieces) ||
      !tegula__vector_reserve((void **)&c->corners, &c->corner_capacity,
                              (last - first) * 2 * ndim + 1, sizeof *c->corners))
    return tegula__out_of_memory(err, (last - first) * (int64_t)sizeof *c->pieces);
  c->piece_count = 0;
  for (int64_t i = first; i < last; i++) {
    const tegula__tile *tile = &targets->tiles[targets->sorted[i]];
    int64_t *lo = c->corners + c->piece_count * 2 * ndim, *hi = lo + ndim;
    if (tegula__box_intersect(ndim, box_lo, box_hi, tile->lo, tile->hi, lo, hi))
      c->pieces[c->piece_count++] = (tegula__piece){.tile = tile, .lo = lo, .hi = hi};
  }
  return TEGULA_OK;
}

static int64_t tile_number(const counter *c, int64_t piece) {
  return c->pieces[piece].tile - c->plan->targets->tiles;
}

/* One request per index of the axes that lie outside of a request. */
static void count_staged(counter *c, const tegula__step *step, const tegula__part *part) {
  const tegula__manifest *manifest = c->plan->manifest;
  tegula__file_order order;
  int64_t span, requests = 1;
  tegula__file_order_of(part, manifest->ndim, step->lo, step->hi, &order);
  int32_t outer = order.count - tegula__read_unit(&order, part->strides, step->lo, step->hi,
                                                  manifest->dtype.item_size, step->gap, &span);
  for (int32_t i = 0; i < outer; i++) requests *= step->hi[order.axes[i]] - step->lo[order.axes[i]];
  c->total += requests;
  for (int64_t p = 0; p < c->piece_count; p++) {
    int64_t own = 1;
    for (int32_t i = 0; i < outer; i++)
      own *= c->pieces[p].hi[order.axes[i]] - c->pieces[p].lo[order.axes[i]];
    c->reads[tile_number(c, p)] += own;
  }
}

static void add_run(counter *c, tegula__batch *batch, const char **end, const tegula__step *step,
                    int64_t piece) {
  const tegula__run_walk *walk = &c->walks[piece];
  if (!tegula__batch_takes(batch, walk->offset, step->gap, c->vectors)) {
    c->total++;
    batch->count = 0;
    *end = NULL;
  } else if (walk->offset > batch->end) { /* a vector for the gap */
    batch->count++;
    *end = NULL;
  }
  batch->count += *end != walk->address;
  batch->end = walk->offset + walk->run;
  *end = walk->address + walk->run;
  int64_t tile = tile_number(c, piece);
  c->reads[tile] += c->latest[tile] != c->total;
  c->latest[tile] = c->total;
}

static tegula_status count_direct(counter *c, const tegula__step *step, const tegula__part *part,
                                  tegula_error *err) {
  const tegula__manifest *manifest = c->plan->manifest;
  int64_t count = c->piece_count;
  if (!tegula__vector_reserve((void **)&c->walks, &c->walk_capacity, count, sizeof *c->walks) ||
      !tegula__vector_reserve((void **)&c->heap, &c->heap_capacity, count, sizeof *c->heap))
    return tegula__out_of_memory(err, count * (int64_t)sizeof *c->walks);
  for (int64_t i = 0; i < count; i++) {
    tegula__run_start(&c->walks[i], part, manifest->ndim, manifest->dtype.item_size, &c->pieces[i]);
    c->heap[i] = i;
  }
  tegula__run_order(c->walks, c->heap, count);
  tegula__batch batch = {0};
  const char *end = NULL;
  while (count > 0) {
    add_run(c, &batch, &end, step, c->heap[0]);
    count = tegula__run_next(c->walks, c->heap, count);
  }
  return TEGULA_OK;
}

/* A stored piece that several tiles want, or in another byte order, is read once for all. */
static void count_reader(counter *c, const tegula__part *part) {
  bool in_place = part->chunk == NULL || c->piece_count == 1,
       swaps = tegula__dtype_swap_size(c->plan->manifest->dtype) > 1;
  for (int64_t p = 0; p < c->piece_count; p++) {
    c->reads[tile_number(c, p)]++;
    in_place = in_place && (!swaps || c->pieces[p].tile->order == part->order);
  }
  c->total += in_place ? c->piece_count : 1;
}

/* Chunks that lie next to each other are one request. */
static tegula_status count_chunks(counter *c, const tegula__step *step, tegula_error *err) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  tegula__part piece;
  c->total++;
  for (int64_t i = step->first; i < step->first + step->count; i++) {
    tegula__plan_chunk(c->plan, i, lo, hi, &piece);
    FORWARD(find_pieces(c, lo, hi, err));
    for (int64_t p = 0; p < c->piece_count; p++) {
      int64_t tile = tile_number(c, p);
      c->reads[tile] += c->latest[tile] != c->total;
      c->latest[tile] = c->total;
    }
  }
  return TEGULA_OK;
}

static tegula_status count_step(counter *c, const tegula__step *step, tegula_error *err) {
  const tegula__part *part = &c->plan->manifest->parts[step->part];
  tegula__stored stored;
  switch (step->kind) {
    case TEGULA__STEP_CHUNKS:
      return count_chunks(c, step, err);
    case TEGULA__STEP_FILL:
    case TEGULA__STEP_LOST:
      return TEGULA_OK;
    default:
      break;
  }
  FORWARD(find_pieces(c, step->lo, step->hi, err));
  if (step->kind == TEGULA__STEP_READ)
    count_reader(c, part);
  else if (step->kind == TEGULA__STEP_STAGED)
    count_staged(c, step, tegula__step_stored(c->plan, step, &stored));
  else
    return count_direct(c, step, tegula__step_stored(c->plan, step, &stored), err);
  return TEGULA_OK;
}

tegula_status tegula__plan_requests(const tegula__plan *plan, int vectors, int64_t *reads,
                                    int64_t *total, tegula_error *err) {
  counter c = {.plan = plan, .vectors = vectors, .reads = reads};
  tegula_status status = TEGULA_OK;
  /* requests count from 1 */
  c.latest = calloc((size_t)tegula__max(1, plan->targets->count), sizeof *c.latest);
  if (c.latest == NULL)
    status = tegula__out_of_memory(err, plan->targets->count * (int64_t)sizeof *c.latest);
  for (int64_t i = 0; i < plan->step_count && status == TEGULA_OK; i++)
    status = count_step(&c, &plan->steps[i], err);
  *total += c.total;
  free(c.pieces);
  free(c.corners);
  free(c.walks);
  free(c.heap);
  free(c.latest);
  return status;
}
