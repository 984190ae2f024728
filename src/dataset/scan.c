/* Windows over a dataset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset/scan.h"

#include <stdlib.h>

/* Progress of the whole call from that of one window. */
static int window_progress(void *state, int64_t bytes_done, int64_t bytes_total) {
  tegula__stream_call *call = state;
  (void)bytes_total;
  call->told = tegula__max(call->told, tegula__min(call->total, call->done + bytes_done));
  return call->options->progress(call->options->progress_state, call->told, call->total);
}

tegula_status tegula__stream_move(tegula__stream_call *call, const tegula_dataset *dataset,
                                  const tegula__tile *tiles, int64_t count, int64_t bytes,
                                  tegula_error *err) {
  tegula_load_options options = *call->options;
  if (options.progress != NULL) {
    options.progress = window_progress;
    options.progress_state = call;
  }
  FORWARD(tegula__dataset_move(dataset, tiles, count, &options, call->tally, err));
  call->done += bytes;
  return TEGULA_OK;
}

tegula_status tegula__stream_create(tegula__stream_call *call, const tegula_dataset *dataset,
                                    int64_t elements, tegula__stream *out, tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  *out = (tegula__stream){.call = call, .dataset = dataset};
  FORWARD(tegula__block_create(elements * manifest->dtype.item_size, &out->window, err));
  size_t vectors = (size_t)TEGULA__RANGE_BOXES * 3 * (size_t)tegula__max(1, manifest->ndim);
  out->vectors = malloc(vectors * sizeof *out->vectors);
  return out->vectors != NULL
             ? TEGULA_OK
             : tegula__out_of_memory(err, (int64_t)(vectors * sizeof *out->vectors));
}

void tegula__stream_free(tegula__stream *stream) {
  free(stream->vectors);
  tegula__block_free(&stream->window);
}

tegula_status tegula__stream_read(tegula__stream *stream, int64_t first, int64_t count,
                                  tegula_error *err) {
  const tegula__manifest *manifest = &stream->dataset->manifest;
  int32_t ndim = manifest->ndim,
          boxes = tegula__range_boxes(manifest->shape, ndim, first, count, stream->vectors);
  tegula__tile tiles[TEGULA__RANGE_BOXES];
  int64_t *strides = stream->vectors + TEGULA__RANGE_BOXES * 2 * ndim, extents[TEGULA_MAX_DIMS];
  char *data = stream->window.data;
  for (int32_t i = 0; i < boxes; i++, strides += ndim) {
    const int64_t *lo = stream->vectors + (int64_t)i * 2 * ndim, *hi = lo + ndim;
    for (int32_t k = 0; k < ndim; k++) extents[k] = hi[k] - lo[k];
    tegula__dense_strides(extents, ndim, manifest->dtype.item_size, 'C', strides);
    tiles[i] = (tegula__tile){
        .lo = lo, .hi = hi, .strides = strides, .data = data, .order = manifest->dtype.order};
    data += tegula__box_count(ndim, lo, hi) * manifest->dtype.item_size;
  }
  return tegula__stream_move(stream->call, stream->dataset, tiles, boxes,
                             count * manifest->dtype.item_size, err);
}
