/* Loading: a dataset into an array, or a box of it into any memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

void tegula_load_options_init(tegula_load_options *options) { *options = (tegula_load_options){.struct_size = sizeof *options}; }

tegula_status tegula__dataset_move(const tegula_dataset *dataset, const tegula__tile *tiles, int64_t count, const tegula_load_options *options,
                                   tegula__tally *tally, tegula_error *err) {
  tegula__move move = {.manifest = &dataset->manifest,
                       .files = dataset->files,
                       .tiles = tiles,
                       .tile_count = count,
                       .progress = options->progress,
                       .progress_state = options->progress_state,
                       .statistics = &tally->statistics,
                       .counts = &tally->counts};
  return tegula__engine_run(&dataset->context->engine, &move, err);
}

static tegula_status mismatch(const tegula_dataset *dataset, const tegula__array *array, tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  char expected[TEGULA__SHAPE_TEXT], found[TEGULA__SHAPE_TEXT], expected_dtype[TEGULA_DTYPE_TEXT], found_dtype[TEGULA_DTYPE_TEXT];
  tegula__shape_format(manifest->shape, manifest->ndim, expected);
  tegula__shape_format(array->tiling->shape, array->tiling->ndim, found);
  tegula_dtype_format(manifest->dtype, expected_dtype);
  tegula_dtype_format(array->dtype, found_dtype);
  return tegula__fail(err, TEGULA_MISMATCH, NULL, -1, "the array has shape %s and dtype %s, but the dataset has shape %s and dtype %s", found,
                      found_dtype, expected, expected_dtype);
}

/* Can this array take the dataset? */
static tegula_status check_array(const tegula_dataset *dataset, const tegula_array *array, tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  const tegula__array *memory = &array->memory;
  bool same = manifest->ndim == memory->tiling->ndim && tegula_dtype_same(manifest->dtype, memory->dtype);
  for (int32_t k = 0; same && k < manifest->ndim; k++) same = manifest->shape[k] == memory->tiling->shape[k];
  if (!same) return mismatch(dataset, memory, err);
  CHECK_ARGUMENT(!memory->read_only, "the array's memory is read-only");
  CHECK_ARGUMENT(!memory->overlaps, "the strides of the array's memory let several elements share a place");
  CHECK_ARGUMENT(dataset->context->comm == array->context->comm, "dataset and array belong to different groups of ranks");
  return TEGULA_OK;
}

tegula_status tegula__load(const tegula_dataset *dataset, const tegula_array *array, const tegula_load_options *options, tegula_error *err) {
  tegula__tally tally;
  FORWARD(tegula__tally_start(&tally, options->statistics, err));
  tegula_status status = check_array(dataset, array, err);
  if (status == TEGULA_OK) status = tegula__dataset_move(dataset, array->memory.tiles, array->memory.count, options, &tally, err);
  status = dataset->context->comm->agree(dataset->context->comm, status, err);
  tegula__tally_end(&tally, options->statistics, offsetof(tegula_statistics, seconds_move));
  return status;
}

tegula_status tegula_load(tegula_dataset *dataset, tegula_array *array, const tegula_load_options *options, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && array != NULL, "the dataset or the array is NULL");
  tegula_load_options local;
  tegula_op turn;
  tegula_load_options_init(&local);
  FORWARD(tegula__options_copy(&local, sizeof local, sizeof local, options, "tegula_load_options", err));
  tegula__queue_enter(dataset->context->queue, &turn,
                      &(tegula__touch){.array = array, .array_changes = true, .places = &dataset->places});
  tegula_status status = tegula__load(dataset, array, &local, err);
  tegula__queue_leave(&turn);
  return status;
}

tegula_status tegula_dataset_read(const tegula_dataset *dataset, const tegula_view *dst, const tegula_load_options *options,
                                  tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && dst != NULL, "the dataset or the view is NULL");
  tegula_load_options local;
  tegula__tally tally;
  tegula_load_options_init(&local);
  FORWARD(tegula__options_copy(&local, sizeof local, sizeof local, options, "tegula_load_options", err));
  FORWARD(tegula__view_check(dst, dataset->manifest.dtype, dataset->manifest.shape, dataset->manifest.ndim, err));
  CHECK_ARGUMENT((dst->flags & TEGULA_VIEW_READ_ONLY) == 0, "the view is read-only");
  CHECK_ARGUMENT(!tegula__view_overlaps(dst), "the strides of the view let several elements share a place");
  FORWARD(tegula__tally_start(&tally, local.statistics, err));
  tegula__tile tile = {.lo = dst->box.lo, .hi = dst->box.hi, .strides = dst->stride_bytes, .data = dst->data, .order = dst->dtype.order};
  tegula_status status = tegula__dataset_move(dataset, &tile, 1, &local, &tally, err);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_move));
  return status;
}
