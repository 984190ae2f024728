/* Places: a box of the array, and where in a dataset its elements are.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "read/hdf5_read.h"

int64_t hdf5_place_length(const hdf5_place *place, int k) {
  int axis = place->axis[k];
  return axis < 0 ? 1 : place->hi[axis] - place->lo[axis];
}

bool hdf5_place_clip(const hdf5_place *outer, int dataset_ndim, const int64_t *lo,
                     const int64_t *hi, hdf5_place *out) {
  *out = *outer;
  for (int k = 0; k < dataset_ndim; k++) {
    int64_t from = outer->start[k], to = from + hdf5_place_length(outer, k);
    int64_t first = from > lo[k] ? from : lo[k], last = to < hi[k] ? to : hi[k];
    if (first >= last) return false;
    out->start[k] = first;
    int axis = outer->axis[k];
    if (axis < 0) continue;
    out->lo[axis] = outer->lo[axis] + (first - from);
    out->hi[axis] = out->lo[axis] + (last - first);
  }
  return true;
}

tegula_status hdf5_emit_grid(hdf5_dataset *dataset, int64_t grid, const int64_t *shape,
                             const int64_t *chunks, const hdf5_place *place, tegula_error *err) {
  int64_t start[HDF5_MAX_RANK], chunk[HDF5_MAX_RANK], slot[HDF5_MAX_RANK] = {0},
                                                      byte[HDF5_MAX_RANK] = {0};
  tegula_plugin_chunked part = {.lo = place->lo,
                                .hi = place->hi,
                                .start = start,
                                .chunk = chunk,
                                .slot_stride = slot,
                                .byte_stride = byte};
  for (int a = 0; a < place->ndim; a++) start[a] = 0, chunk[a] = 1;
  int64_t slots = 1, bytes = hdf5_type_bytes(&dataset->type);
  for (int k = dataset->ndim - 1; k >= 0; k--) {
    int axis = place->axis[k];
    int64_t length = chunks[k];
    if (axis < 0) {
      part.slot_base += place->start[k] / length * slots;
      part.byte_base += place->start[k] % length * bytes;
    } else {
      start[axis] = place->start[k];
      chunk[axis] = length;
      slot[axis] = slots;
      byte[axis] = bytes;
    }
    slots *= shape[k] / length + (shape[k] % length != 0);
    bytes *= length;
  }
  return hdf5_tell_chunked(dataset->call, grid, place->ndim, &part, &dataset->type, err);
}
