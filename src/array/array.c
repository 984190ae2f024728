/* The memory of a rank's tiles: one block where they form a box, else one per tile, or the
 * caller's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "array/array.h"

#include <stdlib.h>
#include <string.h>

#define MADE_UP_GAP ((uintptr_t)4096)

/* Finds this rank's tiles and fills their boxes; data and strides stay empty. */
static tegula_status collect_tiles(tegula_dtype dtype, const tegula_tiling *tiling, int32_t rank,
                                   tegula__array *out, tegula_error *err) {
  *out = (tegula__array){.dtype = tegula_dtype_native(dtype)};
  int64_t bytes;
  if (!tegula__shape_bytes(tiling->shape, tiling->ndim, dtype.item_size, &bytes))
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1,
                        "the array is larger than 2^63 bytes");
  int64_t capacity = 0, share = tegula__ceil_div(tiling->count, tiling->ranks),
          granted = tegula__granted_memory();
  if (share > granted / (int64_t)(sizeof *out->tiles + sizeof *out->numbers +
                                  3 * sizeof *out->vectors * (size_t)tiling->ndim))
    return tegula__hint(
        err,
        tegula__fail(
            err, TEGULA_OUT_OF_MEMORY, NULL, -1,
            "the list of %lld tiles does not fit into the %lld bytes that this process can get",
            (long long)share, (long long)granted),
        "choose larger tiles");
  int64_t first, last;
  tegula__tiling_range(tiling, rank, &first, &last);
  for (int64_t i = first; i < last; i++) {
    if (tegula__tiling_owner(tiling, i) != rank) continue;
    if (!tegula__vector_reserve((void **)&out->numbers, &capacity, out->count + 1,
                                sizeof *out->numbers))
      return tegula__out_of_memory(err, (out->count + 1) * (int64_t)sizeof *out->numbers);
    out->numbers[out->count++] = i;
  }
  size_t axes = (size_t)tiling->ndim;
  out->tiles = tegula__realloc_array(NULL, out->count, sizeof *out->tiles);
  out->vectors = tegula__realloc_array(NULL, out->count, 3 * axes * sizeof *out->vectors + 1);
  if (out->tiles == NULL || out->vectors == NULL)
    return tegula__out_of_memory(err, out->count * (int64_t)(sizeof *out->tiles + 24 * axes));
  for (int64_t i = 0; i < out->count; i++) {
    int64_t *vectors = out->vectors + (size_t)i * 3 * axes;
    tegula__tiling_box(tiling, out->numbers[i], vectors, vectors + axes);
    out->tiles[i] = (tegula__tile){.lo = vectors,
                                   .hi = vectors + axes,
                                   .strides = vectors + 2 * axes,
                                   .order = out->dtype.order};
  }
  out->tiling = tegula__tiling_retain(tiling);
  return TEGULA_OK;
}

/* Do the tiles, which are disjoint, fill their bounding box? Its corners go to out->box. */
static bool form_a_box(tegula__array *out, int32_t ndim) {
  int64_t elements = 0;
  for (int64_t i = 0; i < out->count; i++) {
    const tegula__tile *tile = &out->tiles[i];
    elements += tegula__box_count(ndim, tile->lo, tile->hi);
    for (int32_t k = 0; k < ndim; k++) {
      out->box[k] = i == 0 ? tile->lo[k] : tegula__min(out->box[k], tile->lo[k]);
      out->box[ndim + k] = i == 0 ? tile->hi[k] : tegula__max(out->box[ndim + k], tile->hi[k]);
    }
  }
  return out->count > 0 && tegula__box_count(ndim, out->box, out->box + ndim) == elements;
}

/* All tiles of this rank; they are disjoint, so that the sum fits where the array's size does. */
static int64_t bytes_of_tiles(const tegula__array *array, int32_t ndim) {
  int64_t elements = 0;
  for (int64_t i = 0; i < array->count; i++)
    elements += tegula__box_count(ndim, array->tiles[i].lo, array->tiles[i].hi);
  return elements * array->dtype.item_size;
}

/* A block with memory, or (`real` false) one with a made-up address behind *address, far from the
 * next: a layout to reason about. */
static tegula_status make_block(int64_t bytes, bool real, uintptr_t *address, tegula__block *out,
                                tegula_error *err) {
  if (real) return tegula__block_create(bytes, out, err);
  /* nothing is mapped, so nothing is given back */
  *out = (tegula__block){.data = (char *)*address};
  *address += (uintptr_t)bytes + MADE_UP_GAP;
  return TEGULA_OK;
}

static tegula_status reserve_together(tegula__array *out, int32_t ndim, bool real,
                                      tegula_error *err) {
  uintptr_t address = MADE_UP_GAP;
  int64_t shape[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS], bytes;
  for (int32_t k = 0; k < ndim; k++) shape[k] = out->box[ndim + k] - out->box[k];
  if (!tegula__shape_bytes(shape, ndim, out->dtype.item_size, &bytes))
    return tegula__out_of_memory(err, INT64_MAX);
  FORWARD(make_block(bytes, real, &address, &out->blocks[0], err));
  out->block_count = real ? 1 : 0;
  out->together = true;
  tegula__dense_strides(shape, ndim, out->dtype.item_size, 'C', strides);
  for (int64_t i = 0; i < out->count; i++) {
    tegula__tile *tile = &out->tiles[i];
    memcpy((int64_t *)tile->strides, strides, (size_t)ndim * sizeof *strides);
    tile->data = out->blocks[0].data;
    for (int32_t k = 0; k < ndim && tile->data != NULL; k++)
      tile->data += (tile->lo[k] - out->box[k]) * strides[k];
  }
  return TEGULA_OK;
}

static tegula_status reserve_separate(tegula__array *out, int32_t ndim, bool real,
                                      tegula_error *err) {
  uintptr_t address = MADE_UP_GAP;
  for (int64_t i = 0; i < out->count; i++) {
    tegula__tile *tile = &out->tiles[i];
    int64_t shape[TEGULA_MAX_DIMS], bytes;
    for (int32_t k = 0; k < ndim; k++) shape[k] = tile->hi[k] - tile->lo[k];
    if (!tegula__shape_bytes(shape, ndim, out->dtype.item_size, &bytes))
      return tegula__out_of_memory(err, INT64_MAX);
    FORWARD(make_block(bytes, real, &address, &out->blocks[i], err));
    out->block_count = real ? i + 1 : 0;
    tile->data = out->blocks[i].data;
    tegula__dense_strides(shape, ndim, out->dtype.item_size, 'C', (int64_t *)tile->strides);
  }
  return TEGULA_OK;
}

static tegula_status arrange(tegula_dtype dtype, const tegula_tiling *tiling, int32_t rank,
                             bool separate, bool real, tegula__array *out, tegula_error *err) {
  tegula_status status;
  FORWARD_WITH(status, collect_tiles(dtype, tiling, rank, out, err));
  out->blocks = calloc((size_t)tegula__max(1, out->count), sizeof *out->blocks);
  if (out->blocks == NULL) {
    status = tegula__out_of_memory(err, out->count * (int64_t)sizeof *out->blocks);
    goto done;
  }
  if (real) FORWARD_WITH(status, tegula__memory_check(bytes_of_tiles(out, tiling->ndim), err));
  bool together = !separate && form_a_box(out, tiling->ndim);
  status = together ? reserve_together(out, tiling->ndim, real, err)
                    : reserve_separate(out, tiling->ndim, real, err);
done:
  if (status != TEGULA_OK) tegula__array_free(out);
  return status;
}

tegula_status tegula__array_reserve(tegula_dtype dtype, const tegula_tiling *tiling, int32_t rank,
                                    bool separate, tegula__array *out, tegula_error *err) {
  return arrange(dtype, tiling, rank, separate, true, out, err);
}

tegula_status tegula__array_lay_out(tegula_dtype dtype, const tegula_tiling *tiling, int32_t rank,
                                    tegula__array *out, tegula_error *err) {
  return arrange(dtype, tiling, rank, false, false, out, err);
}

tegula_status tegula__view_check(const tegula_view *view, tegula_dtype dtype, const int64_t *shape,
                                 int32_t ndim, tegula_error *err) {
  if (view->device_type != 0 && view->device_type != TEGULA_DEVICE_HOST)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "cannot use memory of device type %d: only host memory is supported",
                        view->device_type);
  if (!tegula__dtype_valid(view->dtype) || !tegula_dtype_same(view->dtype, dtype)) {
    char expected[TEGULA_DTYPE_TEXT];
    tegula_dtype_format(dtype, expected);
    return tegula__fail(err, TEGULA_MISMATCH, NULL, -1,
                        "the memory has another dtype than the array (%s)", expected);
  }
  if (view->box.ndim != ndim)
    return tegula__fail(err, TEGULA_MISMATCH, NULL, -1, "the memory has %d axes, the array %d",
                        view->box.ndim, ndim);
  bool empty = false;
  for (int32_t k = 0; k < ndim; k++) {
    int64_t lo = view->box.lo[k], hi = view->box.hi[k];
    if (lo < 0 || hi < lo || hi > shape[k])
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                          "the box spans %lld to %lld along axis %d of length %lld", (long long)lo,
                          (long long)hi, k, (long long)shape[k]);
    empty = empty || lo == hi;
  }
  if (view->data == NULL && !empty)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "the memory has no address, but its box has elements");
  return TEGULA_OK;
}

/* Sufficient and simple: sorted by stride, each axis must step over all that the denser ones reach.
 * Unusual interleavings count as overlapping; numpy makes none of them. */
bool tegula__view_overlaps(const tegula_view *view) {
  int64_t reach = view->dtype.item_size;
  bool used[TEGULA_MAX_DIMS] = {false};
  for (int32_t round = 0; round < view->box.ndim; round++) {
    int32_t densest = -1;
    for (int32_t k = 0; k < view->box.ndim; k++) {
      if (view->box.hi[k] == view->box.lo[k]) return false; /* no elements */
      if (used[k] || view->box.hi[k] - view->box.lo[k] == 1) continue;
      if (densest < 0 || llabs(view->stride_bytes[k]) < llabs(view->stride_bytes[densest]))
        densest = k;
    }
    if (densest < 0) return false;
    used[densest] = true;
    int64_t stride = llabs(view->stride_bytes[densest]), far;
    if (stride < reach) return true;
    if (!tegula__mul(view->box.hi[densest] - view->box.lo[densest] - 1, stride, &far) ||
        !tegula__add(reach, far, &reach))
      return true;
  }
  return false;
}

static tegula_status wrap_tile(tegula__array *out, int64_t i, const tegula_view *view,
                               tegula_error *err) {
  const tegula_tiling *tiling = out->tiling;
  tegula__tile *tile = &out->tiles[i];
  FORWARD(tegula__view_check(view, out->dtype, tiling->shape, tiling->ndim, err));
  for (int32_t k = 0; k < tiling->ndim; k++) {
    if (view->box.lo[k] != tile->lo[k] || view->box.hi[k] != tile->hi[k])
      return tegula__fail(err, TEGULA_MISMATCH, NULL, -1,
                          "tile %lld spans %lld to %lld along axis %d, but its memory %lld to %lld",
                          (long long)i, (long long)tile->lo[k], (long long)tile->hi[k], k,
                          (long long)view->box.lo[k], (long long)view->box.hi[k]);
    ((int64_t *)tile->strides)[k] = view->stride_bytes[k];
  }
  tile->data = view->data;
  tile->order = view->dtype.order;
  out->read_only = out->read_only || (view->flags & TEGULA_VIEW_READ_ONLY) != 0;
  out->overlaps = out->overlaps || tegula__view_overlaps(view);
  return TEGULA_OK;
}

tegula_status tegula__array_wrap(tegula_dtype dtype, const tegula_tiling *tiling, int32_t rank,
                                 const tegula_view *views, int64_t count, tegula__array *out,
                                 tegula_error *err) {
  tegula_status status;
  FORWARD_WITH(status, collect_tiles(dtype, tiling, rank, out, err));
  if (count != out->count) {
    status = tegula__fail(err, TEGULA_MISMATCH, NULL, -1,
                          "%lld tiles of memory were given, this rank has %lld", (long long)count,
                          (long long)out->count);
    goto done;
  }
  for (int64_t i = 0; i < count; i++) FORWARD_WITH(status, wrap_tile(out, i, &views[i], err));
done:
  if (status != TEGULA_OK) tegula__array_free(out);
  return status;
}

void tegula__array_free(tegula__array *array) {
  for (int64_t i = 0; i < array->block_count; i++) tegula__block_free(&array->blocks[i]);
  free(array->blocks);
  free(array->tiles);
  free(array->numbers);
  free(array->vectors);
  tegula__tiling_release(array->tiling);
  *array = (tegula__array){0};
}
