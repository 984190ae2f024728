/* Windows of batches.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset/batch_window.h"

#include <string.h>

#include "dataset/chunk_align.h"

/* times that each chunk would be decoded more than with a window: else one is not worth its memory
 * and the copies */
#define OFTEN 1.5

/* Elements that pieces of a length decode along axis k, for each of theirs: chunks whose borders
 * are not borders of pieces come twice or more. */
static double decoded(const tegula__part *part, int32_t k, int64_t piece) {
  /* the distance of borders that both may have */
  int64_t chunk = tegula__part_chunk_length(part, k), shared = piece, rest = chunk;
  while (rest != 0) {
    int64_t next = shared % rest;
    shared = rest;
    rest = next;
  }
  if (!tegula__borders_at(part, k, shared)) shared = 0;
  return 1 + (double)(chunk - shared) / (double)piece;
}

/* The slowest axis along which pieces cut chunks; -1: too few are decoded again to matter. `inner`:
 * how often they are because of the faster ones. */
static int32_t cut_axis(const tegula__manifest *manifest, const tegula__part *part,
                        const int64_t *piece, double *inner) {
  int32_t axis = -1;
  double times = *inner = 1;
  for (int32_t k = manifest->ndim - 1; k >= 0; k--) {
    double along = piece[k] < manifest->shape[k] ? decoded(part, k, piece[k]) : 1;
    if (along <= 1) continue;
    *inner = times;
    times *= along;
    axis = k;
  }
  return times >= OFTEN ? axis : -1;
}

/* Do the pieces in the window decode so much more by themselves? */
static bool worth(const tegula__part *part, int32_t axis, int64_t piece, double inner,
                  const tegula_box *box, const tegula_box *window) {
  int64_t whole = (window->hi[axis] - box->lo[axis]) / piece * piece,
          held = tegula__max(whole, box->hi[axis] - box->lo[axis]);
  return (double)held * decoded(part, axis, piece) * inner >=
         OFTEN * (double)(window->hi[axis] - window->lo[axis]);
}

/* Bytes and chunks of a box. */
static bool measure(const tegula__manifest *manifest, const tegula__part *part,
                    const tegula_box *box, int64_t *bytes, int64_t *chunks) {
  int64_t lengths[TEGULA_MAX_DIMS];
  *chunks = 1;
  for (int32_t k = 0; k < manifest->ndim; k++) {
    lengths[k] = box->hi[k] - box->lo[k];
    if (!tegula__mul(*chunks, tegula__ceil_div(lengths[k], tegula__part_chunk_length(part, k)),
                     chunks))
      return false;
  }
  return tegula__shape_bytes(lengths, manifest->ndim, manifest->dtype.item_size, bytes);
}

/* Whole chunks around the piece, those that the next pieces want too; as many that all workers have
 * some. False: there is no such window. */
static bool choose(const tegula_dataset *dataset, const int64_t *piece, const tegula_box *box,
                   tegula_box *out) {
  const tegula__manifest *manifest = &dataset->manifest;
  const tegula__engine *engine = &dataset->context->engine;
  int64_t most = tegula__staging_budget(engine->staging),
          enough = 2 * (int64_t)tegula__pool_threads(engine->pool);
  int64_t last[TEGULA_MAX_DIMS], bytes, chunks;
  if (manifest->ndim == 0) return false;
  for (int32_t k = 0; k < manifest->ndim; k++) last[k] = box->hi[k] - 1;
  const tegula__part *part = tegula__encoded_part_at(manifest, box->lo),
                     *end = tegula__encoded_part_at(manifest, last);
  double inner;
  int32_t axis = part != NULL && end != NULL ? cut_axis(manifest, part, piece, &inner) : -1;
  if (axis < 0) return false;
  *out = *box;
  for (int32_t k = axis + 1; k < manifest->ndim; k++) {
    out->lo[k] = 0;
    out->hi[k] = manifest->shape[k];
  }
  out->lo[axis] = tegula__border_before(part, axis, box->lo[axis]);
  out->hi[axis] = tegula__border_behind(end, axis, box->hi[axis]);
  if (!measure(manifest, part, out, &bytes, &chunks) || bytes > most) return false;
  bool alone = (out->hi[axis] - box->lo[axis]) / 2 < piece[axis];
  /* another piece, then more chunks */
  for (int64_t step = alone ? piece[axis] : 1; out->hi[axis] < end->hi[axis]; step = 1) {
    tegula_box longer = *out;
    if (step == 1 && chunks >= enough) break;
    longer.hi[axis] = end->hi[axis] - out->hi[axis] < step
                          ? end->hi[axis]
                          : tegula__border_behind(end, axis, out->hi[axis] + step);
    if (!measure(manifest, part, &longer, &bytes, &chunks) || bytes > most) break;
    *out = longer;
  }
  return worth(part, axis, piece[axis], inner, box, out);
}

static bool holds(const tegula__batches_window *window, const tegula_box *box) {
  for (int32_t k = 0; k < box->ndim && window->array != NULL; k++)
    if (box->lo[k] < window->box.lo[k] || window->box.hi[k] < box->hi[k]) return false;
  return window->array != NULL;
}

/* Memory for a window; that of the one before where it is of the same shape. */
static tegula_status make_room(tegula__batches_window *window, const tegula_dataset *dataset,
                               const tegula_box *box, tegula_error *err) {
  tegula_tiling *whole;
  int64_t shape[TEGULA_MAX_DIMS];
  size_t bytes = (size_t)box->ndim * sizeof *shape;
  for (int32_t k = 0; k < box->ndim; k++) shape[k] = box->hi[k] - box->lo[k];
  if (window->array != NULL && memcmp(window->array->memory.tiling->shape, shape, bytes) == 0)
    return TEGULA_OK;
  tegula__batches_window_release(window);
  FORWARD(tegula__tiling_even(shape, box->ndim, 0, 1, 1, &whole, err));
  tegula_status status = tegula__array_create_here(dataset->context, dataset->manifest.dtype, whole,
                                                   &window->array, err);
  tegula__tiling_release(whole);
  return status;
}

static tegula_status read_window(tegula__batches_window *window, const tegula_dataset *dataset,
                                 const tegula_load_options *options, const tegula_box *box,
                                 tegula_error *err) {
  tegula_load_options local = *options;
  FORWARD(make_room(window, dataset, box, err));
  window->box = *box;
  local.origin = box->lo;
  local.origin_ndim = box->ndim;
  tegula_status status = tegula__load(dataset, window->array, &local, err);
  if (status != TEGULA_OK) tegula__batches_window_release(window);
  return status;
}

tegula_status tegula__batches_window_fill(tegula__batches_window *window,
                                          const tegula_dataset *dataset, const int64_t *piece,
                                          const tegula_load_options *options, const tegula_box *box,
                                          tegula_array *array, bool *done, tegula_error *err) {
  tegula_box wanted;
  *done = false;
  if (!holds(window, box)) {
    if (window->off || !choose(dataset, piece, box, &wanted)) return TEGULA_OK;
    tegula_status status = read_window(window, dataset, options, &wanted, err);
    if (status == TEGULA_CANCELLED) return status;
    window->off = status != TEGULA_OK;
    if (window->off) return TEGULA_OK;
  }
  tegula__tile tile = array->memory.tiles[0];
  tile.lo = box->lo;
  tile.hi = box->hi;
  tegula__copy_out_of_box(array->context, array->memory.dtype, &window->box,
                          window->array->memory.tiles[0].data, &tile);
  *done = true;
  return TEGULA_OK;
}

void tegula__batches_window_release(tegula__batches_window *window) {
  tegula_array_destroy(window->array);
  window->array = NULL;
}
