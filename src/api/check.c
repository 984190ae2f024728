/* The public face of the checks: content hashes of arrays and datasets, demonstration values.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include "api/stream.h"

static tegula_status hash_array(const tegula_array *array, tegula__hash128 *sum, tegula_error *err) {
  const tegula__array *memory = &array->memory;
  const tegula_tiling *tiling = memory->tiling;
  const tegula__engine *engine = &array->context->engine;
  int64_t elements;
  tegula__shape_count(tiling->shape, tiling->ndim, &elements); /* the tiling has checked it */
  if (memory->together && tiling->ranks == 1)
    return tegula__hash_run(engine->pool, engine->kernels, memory->dtype, memory->blocks[0].data, 0, elements, sum, err);
  tegula__targets targets;
  FORWARD(tegula__targets_create(tiling->ndim, memory->tiles, memory->count, &targets, err));
  tegula_status status =
      tegula__hash_tiles(engine->pool, engine->kernels, memory->dtype, tiling->shape, tiling->ndim, &targets, sum, err);
  tegula__targets_free(&targets);
  return status;
}

tegula_status tegula_array_hash(const tegula_array *array, char out[TEGULA_HASH_TEXT], tegula_error *err) {
  CHECK_ARGUMENT(array != NULL && out != NULL, "the array or the place for the hash is NULL");
  tegula__hash128 sum = {0};
  const tegula_tiling *tiling = array->memory.tiling;
  tegula_op turn;
  tegula__queue_enter(array->context->queue, &turn, &(tegula__touch){.array = array});
  tegula_status status = hash_array(array, &sum, err);
  tegula__queue_leave(&turn);
  status = array->context->comm->agree(array->context->comm, status, err);
  if (status == TEGULA_OK) tegula__hash_text(array->memory.dtype, tiling->shape, tiling->ndim, sum, out);
  return status;
}

static tegula_status hash_dataset(const tegula_dataset *dataset, const tegula_load_options *options, tegula__tally *tally,
                                  tegula__hash128 *sum, tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  const tegula__engine *engine = &dataset->context->engine;
  int64_t item = manifest->dtype.item_size, block = tegula__hash_block_elements(manifest->dtype), elements;
  tegula__shape_count(manifest->shape, manifest->ndim, &elements);
  /* a whole number of hash blocks */
  int64_t window = tegula__min(elements, tegula__max(1, TEGULA__STREAM_BYTES / (block * item)) * block);
  tegula__stream_call call = {.options = options, .tally = tally, .total = elements * item};
  tegula__stream stream;
  tegula_status status = tegula__stream_create(&call, dataset, window, &stream, err);
  for (int64_t first = 0; first < elements && status == TEGULA_OK; first += window) {
    int64_t count = tegula__min(window, elements - first);
    status = tegula__stream_read(&stream, first, count, err);
    if (status == TEGULA_OK)
      status = tegula__hash_run(engine->pool, engine->kernels, manifest->dtype, stream.window.data, first, count, sum, err);
  }
  tegula__stream_free(&stream);
  return status;
}

tegula_status tegula_dataset_hash(tegula_dataset *dataset, char out[TEGULA_HASH_TEXT], const tegula_load_options *options,
                                  tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && out != NULL, "the dataset or the place for the hash is NULL");
  tegula_load_options local;
  tegula__tally tally;
  tegula__hash128 sum = {0};
  tegula_load_options_init(&local);
  FORWARD(tegula__load_options_copy(&local, options, err));
  FORWARD(tegula__tally_start(&tally, local.statistics, err));
  tegula_status status = hash_dataset(dataset, &local, &tally, &sum, err);
  status = dataset->context->comm->agree(dataset->context->comm, status, err);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_move));
  const tegula__manifest *manifest = &dataset->manifest;
  if (status == TEGULA_OK) tegula__hash_text(manifest->dtype, manifest->shape, manifest->ndim, sum, out);
  return status;
}

tegula_status tegula_demo_fill(tegula_context *context, const tegula_view *view, const int64_t *shape, tegula_values values, uint64_t seed,
                               tegula_error *err) {
  CHECK_ARGUMENT(context != NULL && view != NULL, "the context or the view is NULL");
  return tegula__demo_fill(context->engine.pool, context->engine.kernels, view, shape, values, seed, err);
}

tegula_status tegula_demo_check(tegula_context *context, const tegula_view *view, const int64_t *shape, tegula_values values, uint64_t seed,
                                tegula_error *err) {
  CHECK_ARGUMENT(context != NULL && view != NULL, "the context or the view is NULL");
  return tegula__demo_check(context->engine.pool, context->engine.kernels, view, shape, values, seed, err);
}
