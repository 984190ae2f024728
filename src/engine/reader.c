/* Reader steps: elements from a user's callback, straight into their final place where they are
 * wanted as they come.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A stored piece that several tiles want is read once, into memory of its own, and scattered from
 * there. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine_priv.h"

static tegula_status call(const tegula__doing *doing, const int64_t *lo, const int64_t *hi,
                          char *data, const int64_t *strides, tegula_error *err) {
  const tegula__manifest *manifest = doing->move->manifest;
  const tegula__reader *reader = doing->part->reader;
  tegula_view view = {.data = data,
                      .dtype = manifest->dtype,
                      .device_type = TEGULA_DEVICE_HOST,
                      .box.ndim = manifest->ndim};
  for (int32_t k = 0; k < manifest->ndim; k++) {
    view.box.lo[k] = lo[k] - (k == 0 ? reader->row : 0);
    view.box.hi[k] = hi[k] - (k == 0 ? reader->row : 0);
    view.stride_bytes[k] = strides[k];
  }
  tegula_error theirs;
  tegula__error_clear(&theirs);
  tegula_status status = reader->read(reader->state, &view, &theirs);
  if (status == TEGULA_OK) return TEGULA_OK;
  if (theirs.status == TEGULA_OK)
    tegula__fail(&theirs, status, NULL, -1, "reader \"%s\" failed without a message", reader->name);
  theirs.status = status;
  if (err != NULL) *err = theirs;
  return status;
}

static tegula_status read_into_place(tegula__worker *worker, const tegula__doing *doing,
                                     tegula_error *err) {
  for (int64_t i = 0; i < worker->piece_count; i++) {
    const tegula__piece *piece = &worker->pieces[i];
    char *data = tegula__tile_address(piece->tile, doing->move->manifest->ndim, piece->lo);
    FORWARD(call(doing, piece->lo, piece->hi, data, piece->tile->strides, err));
  }
  return TEGULA_OK;
}

static tegula_status read_and_scatter(tegula__worker *worker, const tegula__doing *doing,
                                      tegula_error *err) {
  const tegula__step *step = doing->step;
  int32_t ndim = doing->move->manifest->ndim;
  int64_t shape[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS], bytes;
  for (int32_t k = 0; k < ndim; k++) shape[k] = step->hi[k] - step->lo[k];
  if (!tegula__shape_bytes(shape, ndim, doing->item_size, &bytes))
    return tegula__out_of_memory(err, INT64_MAX);
  tegula__dense_strides(shape, ndim, doing->item_size, 'C', strides);
  char *memory = malloc((size_t)bytes);
  if (memory == NULL) return tegula__out_of_memory(err, bytes);
  tegula_status status = call(doing, step->lo, step->hi, memory, strides, err);
  for (int64_t i = 0; status == TEGULA_OK && i < worker->piece_count; i++)
    tegula__copy_piece(doing, step->lo, strides, memory, &worker->pieces[i]);
  free(memory);
  return status;
}

tegula_status tegula__reader_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula_error *err) {
  const tegula__reader *reader = doing->part->reader;
  bool in_place = doing->part->chunk == NULL || worker->piece_count == 1;
  for (int64_t i = 0; i < worker->piece_count; i++)
    in_place =
        in_place && (doing->swap_size == 1 || worker->pieces[i].tile->order == doing->part->order);
  int64_t cost = tegula__max(0, reader->cost),
          box = tegula__box_count(doing->move->manifest->ndim, doing->step->lo, doing->step->hi);
  if (!in_place && !tegula__add(cost, box * doing->item_size, &cost)) cost = INT64_MAX;
  tegula__staging_count(doing->engine->staging, cost);
  tegula_status status =
      in_place ? read_into_place(worker, doing, err) : read_and_scatter(worker, doing, err);
  tegula__staging_uncount(doing->engine->staging, cost);
  worker->reader_bytes += doing->step->bytes;
  return status;
}
