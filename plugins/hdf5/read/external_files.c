/* Datasets whose bytes lie in raw files beside the HDF5 file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The files follow each other; names count from the folder of the HDF5 file. Where one ends within
 * a row, the part is cut into boxes; within an element, the dataset is refused. What a file that is
 * too short lacks is lost, not zero. */
#include <stdlib.h>
#include <string.h>

#include "read/hdf5_read.h"

typedef struct segment {
  char *path;
  tegula_status status; /* why it cannot be read, or OK */
  int32_t os_errno;
  char text[512];
  int64_t number, offset, item; /* item: bytes of an element in the file */
  struct hdf5_raw_file *raw;    /* NULL: its elements are those of the array */
  /* elements [first, last); those from `there` on the file does not hold */
  int64_t first, last, there;
} segment;

/* Elements [first, last) in C order as boxes: at most two for each axis. */
typedef struct cutter {
  hdf5_dataset *dataset;
  const hdf5_place *place;
  const segment *at;
  tegula_error *err;
} cutter;

static tegula_status put(const cutter *cut, const int64_t *lo, const int64_t *hi, bool lost) {
  hdf5_dataset *dataset = cut->dataset;
  hdf5_place part;
  if (!hdf5_place_clip(cut->place, dataset->ndim, lo, hi, &part)) return TEGULA_OK;
  if (lost)
    return hdf5_tell_lost(dataset->call, &part, dataset->fill,
                          cut->at->status ? cut->at->status : TEGULA_SHORT_FILE, cut->at->os_errno,
                          cut->at->text, cut->at->path, cut->err);
  int64_t element = 0, item = cut->at->item;
  hdf5_raw raw = {.file = cut->at->raw};
  for (int a = 0; a < part.ndim; a++) raw.strides[a] = item;
  for (int k = 0; k < dataset->ndim; k++) {
    int64_t row = dataset->strides[k] / hdf5_type_bytes(&dataset->type);
    element += part.start[k] * row;
    if (part.axis[k] >= 0) raw.strides[part.axis[k]] = row * item;
  }
  raw.offset = cut->at->offset + (element - cut->at->first) * item;
  if (raw.file) return hdf5_emit_raw(dataset, &raw, &part, cut->err);
  return hdf5_tell_dense(dataset->call, cut->at->number, raw.offset, &part, raw.strides,
                         &dataset->type, cut->err);
}

/* [first, last) within the sub-array of axes k, k+1, ... at lo/hi for the axes before. */
static tegula_status cut_range(const cutter *cut, int k, int64_t first, int64_t last, int64_t *lo,
                               int64_t *hi, bool lost) {
  const hdf5_dataset *dataset = cut->dataset;
  RETURN_IF(first >= last, TEGULA_OK);
  if (k == dataset->ndim) return put(cut, lo, hi, lost);
  /* elements of one index of axis k */
  int64_t row = dataset->strides[k] / hdf5_type_bytes(&dataset->type);
  int64_t whole_from = first / row + (first % row != 0), whole_to = last / row;
  if (whole_from > whole_to) { /* within one index */
    lo[k] = first / row, hi[k] = lo[k] + 1;
    return cut_range(cut, k + 1, first % row, first % row + (last - first), lo, hi, lost);
  }
  if (first % row) {
    lo[k] = first / row, hi[k] = lo[k] + 1;
    FORWARD(cut_range(cut, k + 1, first % row, row, lo, hi, lost));
  }
  if (whole_from < whole_to) {
    lo[k] = whole_from, hi[k] = whole_to;
    for (int m = k + 1; m < dataset->ndim; m++) lo[m] = 0, hi[m] = dataset->shape[m];
    FORWARD(put(cut, lo, hi, lost));
  }
  if (last % row) {
    lo[k] = whole_to, hi[k] = whole_to + 1;
    FORWARD(cut_range(cut, k + 1, 0, last % row, lo, hi, lost));
  }
  return TEGULA_OK;
}

static tegula_status open_segment(hdf5_dataset *dataset, segment *out, tegula_error *err) {
  hdf5_call *call = dataset->call;
  const tegula_plugin_host *host = call->library->host;
  int64_t item = out->item;
  tegula_plugin_file *file = NULL;
  tegula_error failure = {0};
  tegula_status status = host->file_open(call->builder, out->path, &file, &failure);
  if (status != TEGULA_OK) {
    RETURN_IF(status == TEGULA_OUT_OF_MEMORY || status == TEGULA_CANCELLED,
              (err ? *err = failure : (tegula_error){0}, status));
    out->status = status;
    out->os_errno = failure.os_errno;
    char *text = hdf5_text("external file \"%s\" of \"%s\" in \"%s\" %s", out->path, dataset->name,
                           dataset->file->path,
                           status == TEGULA_NOT_FOUND ? "is not there" : "could not be opened");
    if (text) strncpy(out->text, text, sizeof out->text - 1);
    free(text);
    out->there = out->first;
    return TEGULA_OK;
  }
  int64_t size = host->file_size(file), bytes = size > out->offset ? size - out->offset : 0;
  if (bytes / item < out->last - out->first) {
    out->there = out->first + bytes / item;
    char *text = hdf5_text(
        "external file \"%s\" of \"%s\" in \"%s\" has %lld bytes from %lld on: expected %lld",
        out->path, dataset->name, dataset->file->path, (long long)bytes, (long long)out->offset,
        (long long)((out->last - out->first) * item));
    if (text) strncpy(out->text, text, sizeof out->text - 1);
    free(text);
  }
  status = host->add_file(call->builder, file, &out->number, err);
  if (status == TEGULA_OK && dataset->conversion.memory > 0)
    return (out->raw = hdf5_raw_open(dataset, file)) ? TEGULA_OK
                                                     : hdf5_out_of_memory(call->library, err);
  host->file_close(file);
  return status;
}

static tegula_status emit_segment(hdf5_dataset *dataset, const hdf5_place *place, segment *at,
                                  tegula_error *err) {
  int64_t lo[HDF5_MAX_RANK] = {0}, hi[HDF5_MAX_RANK] = {0};
  cutter cut = {.dataset = dataset, .place = place, .at = at, .err = err};
  at->there = at->last;
  FORWARD(open_segment(dataset, at, err));
  tegula_status status = cut_range(&cut, 0, at->first, at->there, lo, hi, false);
  hdf5_raw_close(at->raw);
  return status == TEGULA_OK ? cut_range(&cut, 0, at->there, at->last, lo, hi, true) : status;
}

/* What the external files must hold: elements as they are stored. */
static tegula_status stored_bytes(const hdf5_dataset *dataset, int64_t *item, int64_t *bytes,
                                  tegula_error *err) {
  hdf5_library *library = dataset->call->library;
  *item = hdf5_stored_item(dataset);
  RETURN_IF(!__builtin_mul_overflow(dataset->bytes / hdf5_type_bytes(&dataset->type), *item, bytes),
            TEGULA_OK);
  return library->host->fail(err, TEGULA_LIMIT_EXCEEDED, dataset->file->path, -1,
                             "\"%s\" of \"%s\" has more than 2^63 bytes", dataset->name,
                             dataset->file->path);
}

static tegula_status segment_at(hdf5_dataset *dataset, int index, int64_t item, int64_t bytes,
                                int64_t *from, segment *out, tegula_error *err) {
  hdf5_library *library = dataset->call->library;
  char name[4096];
  int64_t offset = 0;
  hsize_t size = 0;
  if (library->call.H5Pget_external(dataset->plist, (unsigned)index, sizeof name, name, &offset,
                                    &size) < 0)
    return hdf5_failed(library, err, TEGULA_CORRUPT, dataset->file->path,
                       "read the external files of \"%s\" in \"%s\"", dataset->name,
                       dataset->file->path);
  name[sizeof name - 1] = 0;
  int64_t left = bytes - *from, length = size > (hsize_t)left ? left : (int64_t)size;
  if (offset < 0 || offset > INT64_MAX - length)
    return library->host->fail(err, TEGULA_CORRUPT, dataset->file->path, -1,
                               "\"%s\" of \"%s\" has an external file with the offset %lld",
                               dataset->name, dataset->file->path, (long long)offset);
  if (*from % item != 0 || (length % item != 0 && length < left))
    return library->host->fail(
        err, TEGULA_UNSUPPORTED, dataset->file->path, -1,
        "cannot load \"%s\" of \"%s\": its external file \"%s\" ends within an element",
        dataset->name, dataset->file->path, name);
  *out = (segment){.path = hdf5_resolve(dataset->file, name),
                   .offset = offset,
                   .item = item,
                   .first = *from / item,
                   .last = (*from + length) / item};
  *from += length;
  return out->path ? TEGULA_OK : hdf5_out_of_memory(library, err);
}

tegula_status hdf5_emit_external(hdf5_dataset *dataset, const hdf5_place *place,
                                 tegula_error *err) {
  int count = dataset->call->library->call.H5Pget_external_count(dataset->plist);
  int64_t from = 0, item, bytes;
  FORWARD(stored_bytes(dataset, &item, &bytes, err));
  for (int k = 0; k < count && from < bytes; k++) {
    segment at;
    FORWARD(segment_at(dataset, k, item, bytes, &from, &at, err));
    tegula_status status = at.first < at.last ? emit_segment(dataset, place, &at, err) : TEGULA_OK;
    free(at.path);
    FORWARD(status);
  }
  RETURN_IF(from >= bytes, TEGULA_OK);
  return dataset->call->library->host->fail(
      err, TEGULA_CORRUPT, dataset->file->path, -1,
      "the external files of \"%s\" in \"%s\" hold %lld bytes: expected %lld", dataset->name,
      dataset->file->path, (long long)from, (long long)bytes);
}
