/* The public face of arrays.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/api.h"

/* The end of both ways to make an array: all ranks agree, then it becomes a handle. */
static tegula_status hand_over(tegula_context *context, const char *name, tegula__array *memory,
                               tegula_status status, tegula_release_fn release, void *state,
                               tegula_array **out, tegula_error *err) {
  tegula__call call;
  tegula__call_init(&call, name);
  if (status == TEGULA_OK) tegula__call_tiling(&call, memory->tiling, memory->dtype);
  tegula_array *array = status == TEGULA_OK ? calloc(1, sizeof *array) : NULL;
  if (status == TEGULA_OK && array == NULL) {
    tegula__array_free(memory);
    status = tegula__out_of_memory(err, sizeof *array);
  }
  status = tegula__comm_agree_call(context->comm, &call, status, err);
  if (status != TEGULA_OK) {
    if (array != NULL) tegula__array_free(memory);
    free(array);
    return status;
  }
  *array = (tegula_array){.references = 1,
                          .context = tegula__context_retain(context),
                          .memory = *memory,
                          .release = release,
                          .release_state = state};
  *out = array;
  return TEGULA_OK;
}

tegula_status tegula_array_create(tegula_context *context, tegula_dtype dtype,
                                  const tegula_tiling *tiling, const tegula_array_options *options,
                                  tegula_array **out, tegula_error *err) {
  CHECK_ARGUMENT(context != NULL, "the context is NULL");
  tegula__array memory;
  tegula_status status =
      tegula__array_reserve_here(context, dtype, tiling, options, out, &memory, err);
  return hand_over(context, "tegula_array_create", &memory, status, NULL, NULL, out, err);
}

tegula_status tegula_array_wrap(tegula_context *context, tegula_dtype dtype,
                                const tegula_tiling *tiling, const tegula_view *tiles,
                                int64_t count, tegula_release_fn release, void *state,
                                tegula_array **out, tegula_error *err) {
  CHECK_ARGUMENT(context != NULL, "the context is NULL");
  tegula__array memory;
  tegula_status status = tegula__array_check_group(context, dtype, tiling, out, err);
  if (status == TEGULA_OK && (count < 0 || (count > 0 && tiles == NULL)))
    status = tegula__argument(err, "the tiles are NULL");
  if (status == TEGULA_OK)
    status = tegula__array_wrap(dtype, tiling, context->comm->rank, tiles, count, &memory, err);
  return hand_over(context, "tegula_array_wrap", &memory, status, release, state, out, err);
}

int64_t tegula_array_tiles(const tegula_array *array) { return array->memory.count; }

static void fill_view(const tegula_array *array, char *data, uint8_t order, const int64_t *lo,
                      const int64_t *hi, const int64_t *strides, tegula_view *out) {
  int32_t ndim = array->memory.tiling->ndim;
  size_t bytes = (size_t)ndim * sizeof *lo;
  memset(out, 0, sizeof *out);
  out->data = data;
  out->flags = array->memory.read_only ? TEGULA_VIEW_READ_ONLY : 0;
  out->dtype = array->memory.dtype;
  out->dtype.order = order;
  out->device_type = TEGULA_DEVICE_HOST;
  out->box.ndim = ndim;
  memcpy(out->box.lo, lo, bytes);
  memcpy(out->box.hi, hi, bytes);
  memcpy(out->stride_bytes, strides, bytes);
}

tegula_status tegula_array_view(const tegula_array *array, int64_t index, tegula_view *out,
                                tegula_error *err) {
  CHECK_ARGUMENT(array != NULL && out != NULL, "the array or the place for the view is NULL");
  if (index < 0 || index >= array->memory.count)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "tile %lld was asked for, this rank has %lld", (long long)index,
                        (long long)array->memory.count);
  const tegula__tile *tile = &array->memory.tiles[index];
  fill_view(array, tile->data, tile->order, tile->lo, tile->hi, tile->strides, out);
  return TEGULA_OK;
}

/* One tile that lies like a fresh array, whoever owns the memory. */
static bool is_plain_tile(const tegula__array *memory) {
  const tegula__tile *tile = &memory->tiles[0];
  int32_t ndim = memory->tiling->ndim;
  int64_t shape[TEGULA_MAX_DIMS] = {0}, strides[TEGULA_MAX_DIMS];
  if (memory->count != 1 || tile->order != memory->dtype.order) return false;
  for (int32_t k = 0; k < ndim; k++) shape[k] = tile->hi[k] - tile->lo[k];
  tegula__dense_strides(shape, ndim, memory->dtype.item_size, 'C', strides);
  for (int32_t k = 0; k < ndim; k++)
    if (shape[k] > 1 && strides[k] != tile->strides[k]) return false;
  return true;
}

tegula_status tegula_array_block(const tegula_array *array, tegula_view *out, tegula_error *err) {
  CHECK_ARGUMENT(array != NULL && out != NULL, "the array or the place for the view is NULL");
  const tegula__array *memory = &array->memory;
  if (is_plain_tile(memory)) return tegula_array_view(array, 0, out, err);
  if (!memory->together)
    return tegula__hint(
        err,
        tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                     "cannot give the tiles of this array as one block: they lie apart"),
        "use tegula_array_view for each tile");
  int32_t ndim = memory->tiling->ndim;
  fill_view(array, memory->blocks[0].data, memory->dtype.order, memory->box, memory->box + ndim,
            memory->tiles[0].strides, out);
  return TEGULA_OK;
}
