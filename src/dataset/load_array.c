/* Loading: a dataset, or a box of it, into an array.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "dataset/dataset.h"
#include "dataset/text_padding.h"

static tegula_status move_tiles(const tegula_dataset *dataset, const tegula__tile *tiles,
                                int64_t count, const tegula_load_options *options,
                                tegula__tally *tally, tegula_error *err) {
  tegula__heads heads = {
      .size = tegula__unread_size, .check = tegula__unread_check, .state = dataset->unread};
  tegula__move move = {.manifest = &dataset->manifest,
                       .files = dataset->files,
                       .tiles = tiles,
                       .tile_count = count,
                       .missing = (tegula_missing)options->missing,
                       .heads = tegula__unread_left(dataset->unread) > 0 ? &heads : NULL,
                       .progress = options->progress,
                       .progress_state = options->progress_state,
                       .statistics = &tally->statistics,
                       .counts = &tally->counts};
  FORWARD(tegula__engine_run(&dataset->context->engine, &move, err));
  return tegula__texts_pad(dataset->context->engine.pool, &dataset->manifest, tiles, count, err);
}

tegula_status tegula__dataset_move(const tegula_dataset *dataset, const tegula__tile *tiles,
                                   int64_t count, const tegula_load_options *options,
                                   tegula__tally *tally, tegula_error *err) {
  tegula_dataset *view;
  FORWARD(tegula__dataset_view(dataset, tiles, count, options, &tally->counts, &view, err));
  tegula_status status = move_tiles(view, tiles, count, options, tally, err);
  tegula_dataset_close(view);
  FORWARD(status);
  /* files that no tile wants anything of */
  return tegula__dataset_confirm(dataset, &tally->counts, err);
}

static tegula_status mismatch(const tegula_dataset *dataset, const tegula__array *array,
                              tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  char expected[TEGULA__SHAPE_TEXT], found[TEGULA__SHAPE_TEXT], expected_dtype[TEGULA_DTYPE_TEXT],
      found_dtype[TEGULA_DTYPE_TEXT];
  tegula__shape_format(manifest->shape, manifest->ndim, expected);
  tegula__shape_format(array->tiling->shape, array->tiling->ndim, found);
  tegula_dtype_format(manifest->dtype, expected_dtype);
  tegula_dtype_format(array->dtype, found_dtype);
  return tegula__fail(
      err, TEGULA_MISMATCH, NULL, -1,
      "the array has shape %s and dtype %s, but the dataset has shape %s and dtype %s", found,
      found_dtype, expected, expected_dtype);
}

/* Does the array, with its first element at `origin`, lie within the dataset? Without an origin it
 * must be all of it. */
static bool fits(const tegula__manifest *manifest, const tegula_tiling *tiling,
                 const int64_t *origin) {
  for (int32_t k = 0; k < manifest->ndim; k++) {
    if (origin == NULL && manifest->shape[k] != tiling->shape[k]) return false;
    if (origin != NULL && (origin[k] < 0 || origin[k] > manifest->shape[k] ||
                           manifest->shape[k] - origin[k] < tiling->shape[k]))
      return false;
  }
  return true;
}

/* Can this array take the dataset? */
static tegula_status check_array(const tegula_dataset *dataset, const tegula_array *array,
                                 const tegula_load_options *options, tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  const tegula__array *memory = &array->memory;
  CHECK_ARGUMENT(options->origin == NULL || options->origin_ndim == manifest->ndim,
                 "the origin has another number of axes than the dataset");
  if (manifest->ndim != memory->tiling->ndim ||
      !tegula_dtype_same(manifest->dtype, memory->dtype) ||
      !fits(manifest, memory->tiling, options->origin))
    return mismatch(dataset, memory, err);
  CHECK_ARGUMENT(!memory->read_only, "the array's memory is read-only");
  CHECK_ARGUMENT(!memory->overlaps,
                 "the strides of the array's memory let several elements share a place");
  CHECK_ARGUMENT(dataset->context->comm == array->context->comm,
                 "dataset and array belong to different groups of ranks");
  return TEGULA_OK;
}

/* The tiles in the dataset's own indices. */
static tegula_status move_from_origin(const tegula_dataset *dataset, const tegula__array *memory,
                                      const tegula_load_options *options, tegula__tally *tally,
                                      tegula_error *err) {
  int64_t ndim = dataset->manifest.ndim;
  tegula__tile *tiles = tegula__realloc_array(NULL, memory->count,
                                              sizeof *tiles + 2 * (size_t)ndim * sizeof(int64_t));
  if (tiles == NULL) return tegula__out_of_memory(err, memory->count * (int64_t)sizeof *tiles);
  int64_t *vectors = (int64_t *)(void *)(tiles + memory->count);
  for (int64_t i = 0; i < memory->count; i++) {
    int64_t *lo = vectors + i * 2 * ndim, *hi = lo + ndim;
    for (int64_t k = 0; k < ndim; k++) {
      lo[k] = memory->tiles[i].lo[k] + options->origin[k];
      hi[k] = memory->tiles[i].hi[k] + options->origin[k];
    }
    tiles[i] = memory->tiles[i];
    tiles[i].lo = lo;
    tiles[i].hi = hi;
  }
  tegula_status status = tegula__dataset_move(dataset, tiles, memory->count, options, tally, err);
  free(tiles);
  return status;
}

void tegula__call_load(tegula__call *call, const tegula_dataset *dataset, const tegula_array *array,
                       const tegula_load_options *options) {
  tegula__call_dataset(call, dataset);
  tegula__call_tiling(call, array->memory.tiling, array->memory.dtype);
  tegula__call_add(call, "missing", "%u", options->missing);
  tegula__call_add(call, "the origin", "%s", options->origin != NULL ? "a box" : "the whole");
  if (options->origin != NULL)
    tegula__call_mix(call, options->origin, (size_t)options->origin_ndim * sizeof *options->origin);
}

tegula_status tegula__load_agree(const tegula_dataset *dataset, const tegula_array *array,
                                 const tegula_load_options *options, tegula_status status,
                                 tegula_error *err) {
  tegula__call call;
  tegula__call_init(&call, "tegula_load");
  if (status == TEGULA_OK) tegula__call_load(&call, dataset, array, options);
  return tegula__comm_agree_call(dataset->context->comm, &call, status, err);
}

static tegula_status move(const tegula_dataset *dataset, const tegula_array *array,
                          const tegula_load_options *options, tegula__tally *tally,
                          tegula_error *err) {
  const tegula__array *memory = &array->memory;
  FORWARD(check_array(dataset, array, options, err));
  return options->origin != NULL
             ? move_from_origin(dataset, memory, options, tally, err)
             : tegula__dataset_move(dataset, memory->tiles, memory->count, options, tally, err);
}

tegula_status tegula__load_here(const tegula_dataset *dataset, const tegula_array *array,
                                const tegula_load_options *options, tegula_error *err) {
  tegula__tally tally;
  FORWARD(tegula__tally_start(&tally, options->statistics, err));
  tegula_status status = move(dataset, array, options, &tally, err);
  tegula__tally_end(&tally, options->statistics, offsetof(tegula_statistics, seconds_move));
  return status;
}

/* Of the whole array, over all ranks. */
static int64_t tiling_bytes(const tegula_array *array) {
  const tegula_tiling *tiling = array->memory.tiling;
  int64_t bytes = 0;
  tegula__shape_bytes(tiling->shape, tiling->ndim, array->memory.dtype.item_size, &bytes);
  return bytes;
}

tegula_status tegula__load(const tegula_dataset *dataset, const tegula_array *array,
                           const tegula_load_options *options, tegula_error *err) {
  tegula__tally tally;
  tegula__news news;
  tegula_load_options local = *options;
  tegula_status status = tegula__tally_start(&tally, options->statistics, err);
  if (status != TEGULA_OK) return tegula__load_agree(dataset, array, options, status, err);
  tegula__news_begin(&news, dataset->context->comm, tiling_bytes(array), &local.progress,
                     &local.progress_state);
  status =
      tegula__load_agree(dataset, array, options, move(dataset, array, &local, &tally, err), err);
  tegula__news_end(&news, status);
  tegula__tally_end(&tally, options->statistics, offsetof(tegula_statistics, seconds_move));
  return status;
}
