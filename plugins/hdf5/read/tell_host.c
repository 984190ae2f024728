/* What the host is told of an array: with the axes of its elements, where those are arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything else in this room takes such an element for one item. Its axes stand behind those of
 * the dataset, dense and whole in every box. */
#include <string.h>

#include "read/hdf5_read.h"

/* A box with all axes. */
typedef struct box {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
} box;

static void widen(const hdf5_inner *inner, int ndim, const int64_t *lo, const int64_t *hi,
                  box *out) {
  memcpy(out->lo, lo, (size_t)ndim * sizeof *lo);
  memcpy(out->hi, hi, (size_t)ndim * sizeof *hi);
  for (int k = 0; k < inner->ndim; k++) {
    out->lo[ndim + k] = 0;
    out->hi[ndim + k] = inner->shape[k];
  }
}

static void widen_place(const hdf5_call *call, const hdf5_place *place, box *out) {
  widen(&call->inner, place->ndim, place->lo, place->hi, out);
}

/* Vectors of all axes: `of` those of the dataset, then bytes from one element to the next. */
static void widen_strides(const hdf5_type *type, int ndim, const int64_t *of, int64_t *out) {
  int64_t bytes = type->dtype.item_size;
  memcpy(out, of, (size_t)ndim * sizeof *of);
  for (int k = type->inner.ndim - 1; k >= 0; k--) {
    out[ndim + k] = bytes;
    bytes *= type->inner.shape[k];
  }
}

int hdf5_all_axes(const hdf5_dataset *dataset, const int64_t *vector, int64_t *out) {
  const hdf5_inner *inner = &dataset->type.inner;
  memcpy(out, vector, (size_t)dataset->ndim * sizeof *out);
  memcpy(out + dataset->ndim, inner->shape, (size_t)inner->ndim * sizeof *out);
  return dataset->ndim + inner->ndim;
}

tegula_status hdf5_tell_texts(hdf5_call *call, const hdf5_type *type, tegula_error *err) {
  const tegula_plugin_host *host = call->library->host;
  const tegula_plugin_text whole = {
      .count = 1, .size = type->dtype.item_size, .padding = type->padding};
  if (type->record && type->record->text_count > 0)
    return host->set_texts(call->builder, type->record->texts, type->record->text_count, err);
  return host->set_texts(call->builder, &whole, type->padding ? 1 : 0, err);
}

tegula_status hdf5_tell_array(hdf5_call *call, const hdf5_dataset *dataset, tegula_error *err) {
  const tegula_plugin_host *host = call->library->host;
  const hdf5_type *type = &dataset->type;
  int64_t shape[TEGULA_MAX_DIMS];
  call->array_item = (size_t)hdf5_type_bytes(type);
  call->inner = type->inner;
  int ndim = hdf5_all_axes(dataset, dataset->shape, shape);
  FORWARD(host->set_array(call->builder, dataset->name, type->dtype, ndim, shape, err));
  FORWARD(host->set_fill(call->builder, dataset->fill, err));
  RETURN_IF(!type->record, TEGULA_OK);
  return host->set_record(call->builder, type->record->descr, type->record->refused, err);
}

tegula_status hdf5_tell_dense(hdf5_call *call, int64_t file, int64_t offset,
                              const hdf5_place *place, const int64_t *strides,
                              const hdf5_type *type, tegula_error *err) {
  box all;
  int64_t bytes[TEGULA_MAX_DIMS];
  widen_place(call, place, &all);
  widen_strides(type, place->ndim, strides, bytes);
  return call->library->host->add_dense(call->builder, file, offset, all.lo, all.hi, bytes,
                                        type->order, err);
}

tegula_status hdf5_tell_chunked(hdf5_call *call, int64_t grid, int ndim,
                                const tegula_plugin_chunked *part, const hdf5_type *type,
                                tegula_error *err) {
  const hdf5_inner *inner = &call->inner;
  box all;
  int64_t start[TEGULA_MAX_DIMS], chunk[TEGULA_MAX_DIMS], slot[TEGULA_MAX_DIMS],
      byte[TEGULA_MAX_DIMS];
  widen(inner, ndim, part->lo, part->hi, &all);
  memcpy(start, part->start, (size_t)ndim * sizeof *start);
  memcpy(chunk, part->chunk, (size_t)ndim * sizeof *chunk);
  memcpy(slot, part->slot_stride, (size_t)ndim * sizeof *slot);
  for (int k = 0; k < inner->ndim; k++) {
    start[ndim + k] = slot[ndim + k] = 0;
    chunk[ndim + k] = inner->shape[k];
  }
  widen_strides(type, ndim, part->byte_stride, byte);
  tegula_plugin_chunked wide = {.lo = all.lo,
                                .hi = all.hi,
                                .start = start,
                                .chunk = chunk,
                                .slot_stride = slot,
                                .byte_stride = byte,
                                .slot_base = part->slot_base,
                                .byte_base = part->byte_base};
  return call->library->host->add_chunked(call->builder, grid, &wide, err);
}

tegula_status hdf5_tell_fill(hdf5_call *call, const hdf5_place *place, const void *fill,
                             tegula_error *err) {
  box all;
  widen_place(call, place, &all);
  return call->library->host->add_fill(call->builder, all.lo, all.hi, fill, err);
}

tegula_status hdf5_tell_lost(hdf5_call *call, const hdf5_place *place, const void *fill,
                             tegula_status status, int32_t os_errno, const char *text,
                             const char *path, tegula_error *err) {
  box all;
  widen_place(call, place, &all);
  return call->library->host->add_lost(call->builder, all.lo, all.hi, fill, status, os_errno, text,
                                       path, err);
}

tegula_status hdf5_tell_late(hdf5_call *call, int64_t late, const hdf5_place *place,
                             tegula_error *err) {
  box all;
  widen_place(call, place, &all);
  return call->library->host->add_late(call->builder, late, all.lo, all.hi, err);
}

tegula_status hdf5_tell_reader(hdf5_call *call, const hdf5_place *place, const int64_t *chunk,
                               int64_t cost, const char *why, tegula_reader_fn read, void *state,
                               tegula_release_fn release, tegula_error *err) {
  box all;
  int64_t chunks[TEGULA_MAX_DIMS];
  widen_place(call, place, &all);
  memcpy(chunks, chunk, (size_t)place->ndim * sizeof *chunk);
  memcpy(chunks + place->ndim, call->inner.shape, (size_t)call->inner.ndim * sizeof *chunk);
  return call->library->host->add_reader(call->builder, all.lo, all.hi, chunks, cost, why, read,
                                         state, release, err);
}
