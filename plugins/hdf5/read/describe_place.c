/* Tells the host of one place of a dataset, by the kind of its storage.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A place of a virtual dataset leads to places of its sources, and so back to here. */
#include "read/hdf5_read.h"

static tegula_status emit_dense(hdf5_dataset *dataset, const hdf5_place *place, tegula_error *err) {
  int64_t offset = dataset->offset, strides[HDF5_MAX_RANK];
  for (int a = 0; a < place->ndim; a++) strides[a] = hdf5_type_bytes(&dataset->type);
  for (int k = 0; k < dataset->ndim; k++) {
    offset += place->start[k] * dataset->strides[k];
    if (place->axis[k] >= 0) strides[place->axis[k]] = dataset->strides[k];
  }
  return hdf5_tell_dense(dataset->call, dataset->file_number, offset, place, strides,
                         &dataset->type, err);
}

tegula_status hdf5_emit(hdf5_dataset *dataset, const hdf5_place *place, tegula_error *err) {
  FORWARD(hdf5_tell_texts(dataset->call, &dataset->type, err));
  switch (dataset->kind) {
    case HDF5_KIND_FILL:
      return hdf5_tell_fill(dataset->call, place, dataset->fill, err);
    case HDF5_KIND_DENSE:
      return dataset->slices ? hdf5_emit_slices(dataset, place, err)
                             : emit_dense(dataset, place, err);
    case HDF5_KIND_GRID:
      return hdf5_emit_grid(dataset, dataset->grid, dataset->shape, dataset->chunk, place, err);
    case HDF5_KIND_EXTERNAL:
      return hdf5_emit_external(dataset, place, err);
    case HDF5_KIND_READER:
      return hdf5_emit_reader(dataset, place, err);
    default:
      return hdf5_emit_virtual(dataset, place, err);
  }
}
