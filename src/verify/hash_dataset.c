/* tegula_array_hash and tegula_dataset_hash: content hashes of arrays and datasets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/verify.h"

#include "dataset/scan.h"

static tegula_status hash_array(const tegula_array *array, tegula__hash128 *sum,
                                tegula_error *err) {
  const tegula__array *memory = &array->memory;
  if (array->context->comm->size > 1) return tegula__hash_on_ranks(array, sum, err);
  const tegula_tiling *tiling = memory->tiling;
  const tegula__engine *engine = &array->context->engine;
  int64_t elements;
  tegula__shape_count(tiling->shape, tiling->ndim, &elements); /* the tiling has checked it */
  if (memory->together && tiling->ranks == 1)
    return tegula__hash_run(engine->pool, engine->kernels, memory->dtype, memory->blocks[0].data, 0,
                            elements, sum, err);
  tegula__targets targets;
  FORWARD(tegula__targets_create(tiling->ndim, memory->tiles, memory->count, &targets, err));
  tegula_status status = tegula__hash_tiles(engine->pool, engine->kernels, memory->dtype,
                                            tiling->shape, tiling->ndim, &targets, sum, err);
  tegula__targets_free(&targets);
  return status;
}

tegula_status tegula_array_hash(const tegula_array *array, char out[TEGULA_HASH_TEXT],
                                tegula_error *err) {
  CHECK_ARGUMENT(array != NULL && out != NULL, "the array or the place for the hash is NULL");
  tegula__hash128 sum = {0};
  const tegula_tiling *tiling = array->memory.tiling;
  tegula_op turn;
  tegula__queue_enter(array->context->queue, &turn, &(tegula__touch){.array = array});
  tegula_status status = hash_array(array, &sum, err);
  tegula__queue_leave(&turn);
  status = tegula__comm_agree(array->context->comm, status, err);
  if (status == TEGULA_OK)
    tegula__hash_text(array->memory.dtype, tiling->shape, tiling->ndim, sum, out);
  return status;
}

/* The elements [begin, end) that this rank hashes of a dataset: whole blocks, dealt out evenly. */
static void share_of_rank(const tegula_comm *comm, int64_t elements, int64_t block, int64_t *begin,
                          int64_t *end) {
  __int128 blocks = tegula__ceil_div(elements, block);
  *begin = tegula__min(elements, (int64_t)(blocks * comm->rank / comm->size) * block);
  *end = comm->rank + 1 == comm->size
             ? elements
             : tegula__min(elements, (int64_t)(blocks * (comm->rank + 1) / comm->size) * block);
}

/* All ranks have hashed what is theirs. */
static tegula_status join_sums(tegula_comm *comm, tegula__hash128 *sum, tegula_error *err) {
  int64_t words[2] = {(int64_t)sum->low, (int64_t)sum->high};
  FORWARD(tegula__comm_reduce(comm, TEGULA_PLUGIN_XOR, words, 2, err));
  *sum = (tegula__hash128){.low = (uint64_t)words[0], .high = (uint64_t)words[1]};
  return TEGULA_OK;
}

static tegula_status hash_dataset(const tegula_dataset *dataset, const tegula_load_options *options,
                                  tegula__tally *tally, tegula__hash128 *sum, tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  const tegula__engine *engine = &dataset->context->engine;
  int64_t item = manifest->dtype.item_size, block = tegula__hash_block_elements(manifest->dtype),
          elements;
  tegula__shape_count(manifest->shape, manifest->ndim, &elements);
  /* a whole number of hash blocks */
  int64_t window =
      tegula__min(elements, tegula__max(1, TEGULA__STREAM_BYTES / (block * item)) * block);
  int64_t begin, end;
  share_of_rank(dataset->context->comm, elements, block, &begin, &end);
  tegula__stream_call call = {.options = options, .tally = tally, .total = (end - begin) * item};
  tegula__stream stream;
  tegula_status status =
      tegula__stream_create(&call, dataset, tegula__min(window, end - begin), &stream, err);
  for (int64_t first = begin; first < end && status == TEGULA_OK; first += window) {
    int64_t count = tegula__min(window, end - first);
    status = tegula__stream_read(&stream, first, count, err);
    if (status == TEGULA_OK)
      status = tegula__hash_run(engine->pool, engine->kernels, manifest->dtype, stream.window.data,
                                first, count, sum, err);
  }
  tegula__stream_free(&stream);
  return status;
}

tegula_status tegula_dataset_hash(tegula_dataset *dataset, char out[TEGULA_HASH_TEXT],
                                  const tegula_load_options *options, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && out != NULL, "the dataset or the place for the hash is NULL");
  tegula_load_options local;
  tegula__tally tally;
  tegula__hash128 sum = {0};
  tegula_load_options_init(&local);
  tegula__call call;
  tegula_comm *comm = dataset->context->comm;
  tegula__call_init(&call, "tegula_dataset_hash");
  tegula__call_dataset(&call, dataset);
  tegula_status status = tegula__load_options_copy(&local, options, err);
  if (status == TEGULA_OK) status = tegula__tally_start(&tally, local.statistics, err);
  if (status != TEGULA_OK) return tegula__comm_agree_call(comm, &call, status, err);
  tegula__call_add(&call, "missing", "%u", local.missing);
  int64_t bytes = 0;
  tegula__news news;
  tegula__shape_bytes(dataset->manifest.shape, dataset->manifest.ndim,
                      dataset->manifest.dtype.item_size, &bytes);
  tegula__news_begin(&news, comm, bytes, &local.progress, &local.progress_state);
  status = hash_dataset(dataset, &local, &tally, &sum, err);
  status = tegula__comm_agree_call(comm, &call, status, err);
  if (status == TEGULA_OK) status = join_sums(comm, &sum, err);
  tegula__news_end(&news, status);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_move));
  const tegula__manifest *manifest = &dataset->manifest;
  if (status == TEGULA_OK)
    tegula__hash_text(manifest->dtype, manifest->shape, manifest->ndim, sum, out);
  return status;
}
