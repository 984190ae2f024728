/* The content hash of what was not hashed together with the files: read through the engine, many
 * runs of blocks in one window.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "verify/problems.h"
#include "verify/summing.h"

typedef struct rest {
  tegula__summing *s;
  int64_t elements, block; /* of the array; of a block */
  tegula__block window;
  int64_t room, used; /* blocks */
  /* of the blocks that are left: those that went by, and what this rank reads of them */
  int64_t seen, begin, end;
  tegula__sum_run *runs;
  int64_t run_count, run_capacity;
  tegula__tile *tiles;
  int64_t tile_count, tile_capacity;
  int64_t *vectors; /* of each tile lo, hi and strides */
  int64_t vector_capacity;
  int64_t *boxes;
} rest;

static bool add_tiles(rest *r, tegula__sum_run run) {
  const tegula__manifest *manifest = &r->s->dataset->manifest;
  int64_t first = run.first * r->block,
          count = tegula__min(r->elements, run.last * r->block) - first, ndim = manifest->ndim;
  int64_t extents[TEGULA_MAX_DIMS];
  int32_t boxes = tegula__range_boxes(manifest->shape, manifest->ndim, first, count, r->boxes);
  if (!tegula__vector_reserve((void **)&r->tiles, &r->tile_capacity, r->tile_count + boxes,
                              sizeof *r->tiles) ||
      !tegula__vector_reserve((void **)&r->vectors, &r->vector_capacity,
                              (r->tile_count + boxes) * 3 * ndim + 1, sizeof *r->vectors))
    return false;
  char *data = r->window.data + r->used * r->block * manifest->dtype.item_size;
  for (int32_t i = 0; i < boxes; i++) {
    const int64_t *lo = r->boxes + (int64_t)i * 2 * ndim, *hi = lo + ndim;
    int64_t *vectors = r->vectors + r->tile_count * 3 * ndim;
    for (int64_t k = 0; k < ndim; k++) {
      vectors[k] = lo[k];
      vectors[ndim + k] = hi[k];
      extents[k] = hi[k] - lo[k];
    }
    tegula__dense_strides(extents, manifest->ndim, manifest->dtype.item_size, 'C',
                          vectors + 2 * ndim);
    r->tiles[r->tile_count++] = (tegula__tile){.data = data, .order = manifest->dtype.order};
    data += tegula__box_count(manifest->ndim, lo, hi) * manifest->dtype.item_size;
  }
  return true;
}

/* Reads what the window is laid out for, hashes it, and empties it. */
static tegula_status flush(rest *r, tegula_error *err) {
  tegula__summing *s = r->s;
  const tegula__engine *engine = &s->context->engine;
  const tegula__manifest *manifest = &s->dataset->manifest;
  int64_t ndim = manifest->ndim, bytes = 0;
  for (int64_t i = 0; i < r->tile_count; i++) {
    r->tiles[i].lo = r->vectors + i * 3 * ndim;
    r->tiles[i].hi = r->tiles[i].lo + ndim;
    r->tiles[i].strides = r->tiles[i].hi + ndim;
    bytes += tegula__box_count(manifest->ndim, r->tiles[i].lo, r->tiles[i].hi) *
             manifest->dtype.item_size;
  }
  FORWARD(tegula__stream_move(&s->call, s->dataset, r->tiles, r->tile_count, bytes, err));
  char *data = r->window.data;
  for (int64_t i = 0; i < r->run_count; i++) {
    int64_t first = r->runs[i].first * r->block,
            count = tegula__min(r->elements, r->runs[i].last * r->block) - first;
    FORWARD(tegula__hash_run(engine->pool, engine->kernels, manifest->dtype, data, first, count,
                             &s->content, err));
    data += (r->runs[i].last - r->runs[i].first) * r->block * manifest->dtype.item_size;
  }
  r->used = r->run_count = r->tile_count = 0;
  return TEGULA_OK;
}

static tegula_status add_blocks(rest *r, int64_t first, int64_t last, tegula_error *err) {
  int64_t shift = first - r->seen; /* from places among those that are left to numbers of blocks */
  r->seen += last - first;
  first = tegula__max(first, r->begin + shift);
  last = tegula__min(last, r->end + shift);
  while (first < last) {
    tegula__sum_run run = {.first = first, .last = tegula__min(last, first + (r->room - r->used))};
    if (!tegula__vector_reserve((void **)&r->runs, &r->run_capacity, r->run_count + 1,
                                sizeof *r->runs) ||
        !add_tiles(r, run))
      return tegula__out_of_memory(err, r->tile_count * (int64_t)sizeof *r->tiles);
    r->runs[r->run_count++] = run;
    r->used += run.last - run.first;
    first = run.last;
    if (r->used == r->room) FORWARD(flush(r, err));
  }
  return TEGULA_OK;
}

static int compare_runs(const void *left, const void *right) {
  const tegula__sum_run *a = left, *b = right;
  return (a->first > b->first) - (a->first < b->first);
}

/* All blocks that are in no run. */
static tegula_status walk(rest *r, tegula_error *err) {
  tegula__summing *s = r->s;
  int64_t at = 0, blocks = tegula__ceil_div(r->elements, r->block);
  if (s->run_count > 1) qsort(s->runs, (size_t)s->run_count, sizeof *s->runs, compare_runs);
  for (int64_t i = 0; i < s->run_count; i++) {
    FORWARD(add_blocks(r, at, s->runs[i].first, err));
    at = s->runs[i].last;
  }
  FORWARD(add_blocks(r, at, blocks, err));
  return r->run_count > 0 ? flush(r, err) : TEGULA_OK;
}

static tegula_status make_window(rest *r, tegula_error *err) {
  const tegula__manifest *manifest = &r->s->dataset->manifest;
  int64_t done = 0, bytes = r->block * manifest->dtype.item_size,
          blocks = tegula__ceil_div(r->elements, r->block);
  for (int64_t i = 0; i < r->s->run_count; i++) done += r->s->runs[i].last - r->s->runs[i].first;
  int64_t rank = r->s->comm != NULL ? r->s->comm->rank : 0,
          ranks = r->s->comm != NULL ? r->s->comm->size : 1, left = blocks - done;
  r->begin = left / ranks * rank + left % ranks * rank / ranks;
  r->end = left / ranks * (rank + 1) + left % ranks * (rank + 1) / ranks;
  r->room = tegula__max(1, tegula__min(r->end - r->begin, TEGULA__STREAM_BYTES / bytes));
  r->boxes = tegula__realloc_array(NULL, tegula__max(1, manifest->ndim),
                                   TEGULA__RANGE_BOXES * 2 * sizeof *r->boxes);
  if (r->boxes == NULL) return tegula__out_of_memory(err, TEGULA__RANGE_BOXES);
  return tegula__block_create(tegula__min(r->elements * manifest->dtype.item_size, r->room * bytes),
                              &r->window, err);
}

tegula_status tegula__sum_content(tegula__summing *s, tegula_error *err) {
  const tegula__manifest *manifest = &s->dataset->manifest;
  rest r = {.s = s, .block = tegula__hash_block_elements(manifest->dtype)};
  tegula_error error;
  tegula__shape_count(manifest->shape, manifest->ndim, &r.elements);
  s->call.done = tegula__summing_done(s);
  tegula_status status = r.elements > 0 ? make_window(&r, &error) : TEGULA_OK;
  if (status == TEGULA_OK && r.elements > 0) status = walk(&r, &error);
  free(r.runs);
  free(r.tiles);
  free(r.vectors);
  free(r.boxes);
  tegula__block_free(&r.window);
  if (status == TEGULA_OK) return TEGULA_OK;
  if (!tegula__status_is_ours(status)) {
    s->content_error = error;
    return TEGULA_OK;
  }
  if (err != NULL) *err = error;
  return status;
}
