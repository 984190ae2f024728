/* Where the bytes of a dataset are, and how its elements become those of the array.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "read/hdf5_read.h"

/* Contiguous: it has no place in the file. */
static bool never_written(const hdf5_dataset *dataset) {
  haddr_t offset = dataset->call->library->call.H5Dget_offset(dataset->id);
  /* libhdf5 adds the user block to an address that is none, too */
  haddr_t shifted = HDF5_UNDEFINED + (haddr_t)dataset->file->base;
  return offset == HDF5_UNDEFINED || offset == shifted;
}

/* Where a member has another size in the file than in memory, that of the record is worked out: it
 * must be what libhdf5 has allocated. */
static tegula_status check_record(const hdf5_dataset *dataset, tegula_error *err) {
  hdf5_library *library = dataset->call->library;
  hsize_t stored = library->call.H5Dget_storage_size(dataset->id);
  if (stored == (hsize_t)dataset->bytes) return TEGULA_OK;
  return library->host->fail(
      err, TEGULA_UNSUPPORTED, dataset->file->path, -1,
      "cannot load \"%s\" of \"%s\": its records have %lld bytes in all, but %llu are stored",
      dataset->name, dataset->file->path, (long long)dataset->bytes, (unsigned long long)stored);
}

static tegula_status prepare_contiguous(hdf5_dataset *dataset, tegula_error *err) {
  hdf5_library *library = dataset->call->library;
  if (never_written(dataset)) {
    dataset->kind = HDF5_KIND_FILL;
    return TEGULA_OK;
  }
  if (dataset->type.record && dataset->type.record->refused) FORWARD(check_record(dataset, err));
  haddr_t offset = library->call.H5Dget_offset(dataset->id);
  dataset->kind = HDF5_KIND_DENSE;
  dataset->offset = (int64_t)offset;
  if (offset > (haddr_t)dataset->file->size ||
      (haddr_t)dataset->bytes > (haddr_t)dataset->file->size - offset)
    return library->host->fail(
        err, TEGULA_SHORT_FILE, dataset->file->path, dataset->file->size,
        "\"%s\" of \"%s\" is cut: expected %lld bytes from %llu on, found a file of %lld bytes",
        dataset->name, dataset->file->path, (long long)dataset->bytes, (unsigned long long)offset,
        (long long)dataset->file->size);
  return hdf5_file_number(dataset->call, dataset->file, &dataset->file_number, err);
}

/* Numbers convert into each other, as libhdf5 converts them; anything else must be the same. */
static bool converts(const hdf5_type *from, const hdf5_type *to) {
  static const char numbers[] = "iufE";
  return from->inner.ndim == 0 && to->inner.ndim == 0 && strchr(numbers, from->dtype.kind) &&
         strchr(numbers, to->dtype.kind);
}

static bool same_dtype(tegula_dtype a, tegula_dtype b) {
  return a.kind == b.kind && a.item_size == b.item_size;
}

static bool same_axes(const hdf5_inner *a, const hdf5_inner *b) {
  return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

/* True where elements of both have the same bytes, but for the order of numbers. */
static bool same_elements(const hdf5_type *a, const hdf5_type *b) {
  if (!same_dtype(a->dtype, b->dtype) || !same_axes(&a->inner, &b->inner)) return false;
  if (!a->record || !b->record) return a->record == b->record;
  return strcmp(a->record->descr, b->record->descr) == 0;
}

static const char *in_parts(const hdf5_type *type) {
  return type->record ? " (records)" : type->inner.ndim > 0 ? " (arrays)" : "";
}

/* Elements of all levels are converted once, from what is stored to what the array has, as libhdf5
 * does it. */
static tegula_status check_source(const hdf5_dataset *dataset, const hdf5_dataset *like,
                                  tegula_error *err) {
  hdf5_library *library = dataset->call->library;
  const tegula_plugin_host *host = library->host;
  char have[TEGULA_DTYPE_TEXT], want[TEGULA_DTYPE_TEXT];
  bool agrees = hdf5_type_agrees(library, dataset->type_id, like->type_id);
  RETURN_IF(agrees && (same_elements(&dataset->type, &like->type) ||
                       converts(&dataset->type, &like->type)),
            TEGULA_OK);
  host->dtype_format(dataset->type.dtype, have);
  host->dtype_format(like->type.dtype, want);
  return host->fail(err, TEGULA_MISMATCH, dataset->file->path, -1,
                    "\"%s\" of \"%s\" is a source of a virtual dataset of dtype %s%s, but has "
                    "dtype %s%s, which does not convert",
                    dataset->name, dataset->file->path, want,
                    !agrees ? " (an enumeration)" : in_parts(&like->type), have,
                    !agrees ? " (another enumeration, or none)" : in_parts(&dataset->type));
}

static tegula_status make_conversion(hdf5_dataset *dataset, tegula_error *err) {
  RETURN_IF(hdf5_conversion_make(dataset), TEGULA_OK);
  return hdf5_failed(dataset->call->library, err, TEGULA_INTERNAL, dataset->file->path,
                     "make a type in memory for \"%s\"", dataset->name);
}

static bool is_like(const hdf5_dataset *dataset) {
  return same_dtype(dataset->type.dtype, dataset->like->type.dtype);
}

/* The fill value as an element of the array. */
static tegula_status convert_fill(hdf5_dataset *dataset, tegula_error *err) {
  hdf5_library *library = dataset->call->library;
  RETURN_IF(!dataset->fill || is_like(dataset), TEGULA_OK);
  FORWARD(make_conversion(dataset, err));
  unsigned char fill[16] = {0}; /* a number */
  int state = HDF5_FILL_DEFAULT;
  bool good = library->call.H5Pfill_value_defined(dataset->plist, &state) >= 0;
  if (good && state != HDF5_FILL_DEFAULT)
    good = library->call.H5Pget_fill_value(dataset->plist, dataset->conversion.memory, fill) >= 0;
  good = good && hdf5_conversion_apply(library, &dataset->conversion, fill, 1);
  memcpy(dataset->fill, fill, dataset->like->type.dtype.item_size); /* it has 16 bytes to spare */
  RETURN_IF(good, TEGULA_OK);
  return hdf5_failed(library, err, TEGULA_CORRUPT, dataset->file->path,
                     "convert the fill value of \"%s\" in \"%s\"", dataset->name,
                     dataset->file->path);
}

/* What libhdf5 reads: because of the type, or (compact) of the place. */
static tegula_status prepare_reader(hdf5_dataset *dataset, tegula_error *err) {
  dataset->kind = HDF5_KIND_READER;
  FORWARD(make_conversion(dataset, err));
  hdf5_chain chain = {.reader = true};
  dataset->unwritten = dataset->layout == HDF5_CONTIGUOUS && never_written(dataset);
  RETURN_IF(dataset->layout != HDF5_CHUNKED, TEGULA_OK);
  FORWARD(hdf5_filters_map(dataset, &chain, err));
  return hdf5_find_gaps(dataset, err);
}

static bool is_external(const hdf5_dataset *dataset) {
  return dataset->layout == HDF5_CONTIGUOUS &&
         dataset->call->library->call.H5Pget_external_count(dataset->plist) > 0;
}

static tegula_status prepare_external(hdf5_dataset *dataset, tegula_error *err) {
  dataset->kind = HDF5_KIND_EXTERNAL;
  if (dataset->type.converted || !is_like(dataset)) FORWARD(make_conversion(dataset, err));
  return convert_fill(dataset, err);
}

tegula_status hdf5_prepare(hdf5_dataset *dataset, const hdf5_dataset *like, tegula_error *err) {
  dataset->like = like;
  if (dataset != like) FORWARD(check_source(dataset, like, err));
  if (dataset->layout == HDF5_VIRTUAL) {
    dataset->kind = HDF5_KIND_VIRTUAL;
    return convert_fill(dataset, err);
  }
  RETURN_IF(is_external(dataset), prepare_external(dataset, err));
  if (dataset->type.converted || !is_like(dataset) || dataset->layout == HDF5_COMPACT)
    return prepare_reader(dataset, err);
  if (dataset->layout == HDF5_CHUNKED) return hdf5_prepare_chunks(dataset, err);
  if (dataset->layout == HDF5_CONTIGUOUS) return prepare_contiguous(dataset, err);
  return dataset->call->library->host->fail(
      err, TEGULA_UNSUPPORTED, dataset->file->path, -1,
      "cannot load \"%s\" of \"%s\": it has a layout that is not known", dataset->name,
      dataset->file->path);
}
