/* One dataset: its type, shape, fill value and layout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "read/hdf5_read.h"

static tegula_status read_type(hdf5_dataset *out, tegula_error *err) {
  hdf5_library *library = out->call->library;
  char why[512];
  out->type_id = library->call.H5Dget_type(out->id);
  if (out->type_id < 0)
    return hdf5_failed(library, err, TEGULA_CORRUPT, out->file->path,
                       "read the type of \"%s\" in \"%s\"", out->name, out->file->path);
  RETURN_IF(
      hdf5_element_of(library, out->file->address_width, out->type_id, &out->type, why, sizeof why),
      TEGULA_OK);
  return library->host->fail(err, TEGULA_UNSUPPORTED, out->file->path, -1,
                             "cannot load \"%s\" of \"%s\": it has %s", out->name, out->file->path,
                             why);
}

/* The extent in the dataset's own file. A virtual dataset with open ends has one that depends on
 * its sources: vds_mappings.c. */
static tegula_status read_shape(hdf5_dataset *out, tegula_error *err) {
  hdf5_library *library = out->call->library;
  const hdf5_functions *call = &library->call;
  hsize_t dims[HDF5_MAX_RANK] = {0};
  hid_t space = call->H5Dget_space(out->id);
  int type = space >= 0 ? call->H5Sget_simple_extent_type(space) : -1;
  out->ndim = type == HDF5_SPACE_SIMPLE ? call->H5Sget_simple_extent_ndims(space) : 0;
  bool good = type >= 0 && out->ndim >= 0 && out->ndim <= HDF5_MAX_RANK;
  good = good &&
         (type != HDF5_SPACE_SIMPLE || call->H5Sget_simple_extent_dims(space, dims, NULL) >= 0);
  if (space >= 0) call->H5Sclose(space);
  if (!good || type == HDF5_SPACE_NULL) out->ndim = -1;
  if (!good)
    return hdf5_failed(library, err, TEGULA_CORRUPT, out->file->path,
                       "read the shape of \"%s\" in \"%s\"", out->name, out->file->path);
  if (type == HDF5_SPACE_NULL)
    return library->host->fail(
        err, TEGULA_UNSUPPORTED, out->file->path, -1,
        "cannot load \"%s\" of \"%s\": it is empty (a null dataspace) and has no shape", out->name,
        out->file->path);
  for (int k = 0; k < out->ndim; k++) out->shape[k] = dims[k] > INT64_MAX ? -1 : (int64_t)dims[k];
  return TEGULA_OK;
}

int64_t hdf5_stored_item(const hdf5_dataset *dataset) {
  const hdf5_type *type = &dataset->type;
  return type->converted ? (int64_t)dataset->call->library->call.H5Tget_size(dataset->type_id)
                         : hdf5_type_bytes(type);
}

tegula_status hdf5_set_strides(hdf5_dataset *out, tegula_error *err) {
  int64_t bytes = hdf5_type_bytes(&out->type);
  bool good = true, empty = false;
  for (int k = out->ndim - 1; k >= 0 && good; k--) {
    out->strides[k] = bytes;
    empty = empty || out->shape[k] == 0;
    good = out->shape[k] >= 0 &&
           !__builtin_mul_overflow(bytes, out->shape[k] ? out->shape[k] : 1, &bytes);
  }
  out->bytes = empty ? 0 : bytes;
  RETURN_IF(good, TEGULA_OK);
  return out->call->library->host->fail(err, TEGULA_LIMIT_EXCEEDED, out->file->path, -1,
                                        "\"%s\" of \"%s\" has more than 2^63 bytes", out->name,
                                        out->file->path);
}

/* In the form of the file where that is known to be of use, else native. */
static bool get_fill(hdf5_dataset *out) {
  hdf5_library *library = out->call->library;
  bool shaped = out->type.converted || (out->type.record && out->type.record->refused);
  RETURN_IF(!shaped, library->call.H5Pget_fill_value(out->plist, out->type_id, out->fill) >= 0);
  hid_t memory = hdf5_type_memory(library, out->type_id, &out->type);
  bool good = memory >= 0 && library->call.H5Pget_fill_value(out->plist, memory, out->fill) >= 0;
  if (memory >= 0) library->call.H5Tclose(memory);
  return good;
}

/* The host has one fill value for all numbers of an element. */
static tegula_status check_uniform(const hdf5_dataset *dataset, tegula_error *err) {
  size_t item = dataset->type.dtype.item_size, bytes = (size_t)hdf5_type_bytes(&dataset->type);
  if (memcmp(dataset->fill, dataset->fill + item, bytes - item) == 0) return TEGULA_OK;
  return dataset->call->library->host->fail(
      err, TEGULA_UNSUPPORTED, dataset->file->path, -1,
      "cannot load \"%s\" of \"%s\": its fill value differs within an element, which is an array",
      dataset->name, dataset->file->path);
}

/* The fill value in native order: zeros by default, NULL where none is defined. */
static tegula_status read_fill(hdf5_dataset *out, tegula_error *err) {
  hdf5_library *library = out->call->library;
  int state = HDF5_FILL_DEFAULT;
  const hdf5_type *type = &out->type;
  size_t bytes = (size_t)hdf5_type_bytes(type);
  bool known = library->call.H5Pfill_value_defined(out->plist, &state) >= 0;
  RETURN_IF(known && state == HDF5_FILL_UNDEFINED, TEGULA_OK);
  out->fill = known ? calloc(1, bytes + 16) : NULL;
  RETURN_IF(known && !out->fill, hdf5_out_of_memory(library, err));
  RETURN_IF(known && state == HDF5_FILL_DEFAULT, TEGULA_OK);
  if (!known || !get_fill(out))
    return hdf5_failed(library, err, TEGULA_CORRUPT, out->file->path,
                       "read the fill value of \"%s\" in \"%s\"", out->name, out->file->path);
  bool foreign = type->order != '|' && type->order != HDF5_NATIVE_ORDER;
  if (type->converted ? type->swapped : foreign)
    hdf5_type_swap_all(type->dtype, out->fill, (int64_t)(bytes / type->dtype.item_size));
  return check_uniform(out, err);
}

enum { INDEX_IMPLICIT = 2 };

/* Without an index all chunks lie one behind the other, so that they fit into the file: libhdf5
 * would list as many as a damaged file claims. */
static tegula_status check_implicit(const hdf5_dataset *dataset, tegula_error *err) {
  const hdf5_library *library = dataset->call->library;
  int index = -1;
  int64_t bytes = hdf5_type_bytes(&dataset->type);
  bool fits = true;
  if (library->call.H5Dget_chunk_index_type(dataset->id, &index) < 0 || index != INDEX_IMPLICIT)
    return TEGULA_OK;
  for (int k = 0; k < dataset->ndim; k++)
    fits = fits && !__builtin_mul_overflow(bytes, dataset->shape[k], &bytes);
  if (fits && bytes <= dataset->file->size) return TEGULA_OK;
  return library->host->fail(
      err, TEGULA_CORRUPT, dataset->file->path, -1,
      "\"%s\" of \"%s\" claims more chunks than the file of %lld bytes can hold", dataset->name,
      dataset->file->path, (long long)dataset->file->size);
}

static tegula_status read_chunk_shape(hdf5_dataset *out, tegula_error *err) {
  hsize_t dims[HDF5_MAX_RANK] = {0};
  int count = out->call->library->call.H5Pget_chunk(out->plist, HDF5_MAX_RANK, dims);
  bool good = count == out->ndim;
  for (int k = 0; good && k < count; k++) {
    good = dims[k] > 0 && dims[k] <= INT64_MAX;
    out->chunk[k] = (int64_t)dims[k];
  }
  if (good) {
    FORWARD(hdf5_filters_read(out, err));
    return check_implicit(out, err);
  }
  return out->call->library->host->fail(err, TEGULA_CORRUPT, out->file->path, -1,
                                        "\"%s\" of \"%s\" has chunks that do not fit its shape",
                                        out->name, out->file->path);
}

static tegula_status read_layout(hdf5_dataset *out, tegula_error *err) {
  hdf5_library *library = out->call->library;
  out->plist = library->call.H5Dget_create_plist(out->id);
  out->layout = out->plist >= 0 ? library->call.H5Pget_layout(out->plist) : -1;
  if (out->layout < 0)
    return hdf5_failed(library, err, TEGULA_CORRUPT, out->file->path,
                       "read the layout of \"%s\" in \"%s\"", out->name, out->file->path);
  FORWARD(read_fill(out, err));
  return out->layout == HDF5_CHUNKED ? read_chunk_shape(out, err) : TEGULA_OK;
}

tegula_status hdf5_dataset_open(hdf5_call *call, hdf5_file *file, hid_t id, const char *name,
                                hdf5_dataset *out, tegula_error *err) {
  *out = (hdf5_dataset){
      .call = call, .file = file, .name = name, .id = id, .type_id = -1, .plist = -1, .grid = -1};
  tegula_status status;
  FORWARD_WITH(status, read_shape(out, err));
  FORWARD_WITH(status, read_type(out, err));
  FORWARD_WITH(status, hdf5_set_strides(out, err));
  FORWARD_WITH(status, read_layout(out, err));
  if (out->layout == HDF5_VIRTUAL) FORWARD_WITH(status, hdf5_virtual_open(out, err));
done:
  if (status != TEGULA_OK) hdf5_dataset_close(out);
  return status;
}

void hdf5_dataset_close(hdf5_dataset *dataset) {
  const hdf5_functions *call = &dataset->call->library->call;
  hdf5_record_release(dataset->type.record);
  dataset->type.record = NULL;
  if (dataset->type_id >= 0) call->H5Tclose(dataset->type_id);
  if (dataset->plist >= 0) call->H5Pclose(dataset->plist);
  hdf5_conversion_close(dataset->call->library, &dataset->conversion);
  dataset->type_id = dataset->plist = -1;
  hdf5_virtual_close(dataset);
  free(dataset->slices);
  free(dataset->gaps);
  free(dataset->fill);
  free(dataset->filters);
  dataset->slices = NULL;
  dataset->gaps = NULL;
  dataset->fill = NULL;
  dataset->filters = NULL;
}
