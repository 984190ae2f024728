/* Bytes of external files whose elements have another type than the array: read through the host,
 * converted by libhdf5.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5 would open such a file itself, from wherever its settings say. A file is kept open until
 * the host releases its last reader. */
#include <stdlib.h>
#include <string.h>

#include "read/hdf5_read.h"

/* so much is read at once, whatever of it is wanted; and wanted at once by the host */
enum { WITHIN = 1 << 20 };

struct hdf5_raw_file {
  int64_t references; /* under the lock of the library */
  hdf5_library *library;
  tegula_plugin_file *file;
  hid_t stored;
  hdf5_conversion conversion;
  size_t stored_item, item, room; /* item: of the array; room: for the longest form of an element */
};

typedef struct reader {
  struct hdf5_raw_file *file;
  int64_t offset, lo[HDF5_MAX_RANK], strides[HDF5_MAX_RANK];
} reader;

struct hdf5_raw_file *hdf5_raw_open(const hdf5_dataset *dataset, tegula_plugin_file *file) {
  hdf5_library *library = dataset->call->library;
  struct hdf5_raw_file *out = malloc(sizeof *out);
  if (!out) {
    library->host->file_close(file);
    return NULL;
  }
  *out = (struct hdf5_raw_file){.references = 1,
                                .library = library,
                                .file = file,
                                .stored = library->call.H5Tcopy(dataset->type_id),
                                .stored_item = library->call.H5Tget_size(dataset->type_id),
                                .item = dataset->call->array_item};
  bool good =
      hdf5_conversion_copy(library, &dataset->conversion, &out->conversion) && out->stored >= 0;
  size_t sizes[] = {out->stored_item, out->item, out->conversion.item};
  for (int k = 0; k < 3; k++)
    if (sizes[k] > out->room) out->room = sizes[k];
  if (good) return out;
  hdf5_raw_close(out);
  return NULL;
}

void hdf5_raw_close(struct hdf5_raw_file *file) {
  if (!file) return;
  hdf5_library *library = file->library;
  hdf5_lock(library);
  bool last = --file->references == 0;
  if (last && file->stored >= 0) library->call.H5Tclose(file->stored);
  if (last) hdf5_conversion_close(library, &file->conversion);
  hdf5_unlock(library);
  if (!last) return;
  library->host->file_close(file->file);
  free(file);
}

static void release(void *state) {
  hdf5_raw_close(((reader *)state)->file);
  free(state);
}

/* ---- reading ---- */

typedef struct box {
  const reader *reader;
  int ndim;
  int64_t counts[HDF5_MAX_RANK];
  char *scratch; /* NULL: none yet */
  tegula_error *err;
} box;

/* The elements of axes k, k + 1, ... one behind the other; returns where the next one comes. */
static char *gather(const box *b, int k, const char *from, char *to) {
  size_t item = b->reader->file->stored_item;
  if (k == b->ndim) return (char *)memcpy(to, from, item) + item;
  for (int64_t i = 0; i < b->counts[k]; i++)
    to = gather(b, k + 1, from + i * b->reader->strides[k], to);
  return to;
}

/* Reads the elements of axes k, k + 1, ... from `offset` on: all that lies between at once, where
 * that is not much. */
static tegula_status read_axes(box *b, int k, int64_t offset, char **to) {
  const struct hdf5_raw_file *file = b->reader->file;
  const tegula_plugin_host *host = file->library->host;
  int64_t item = (int64_t)file->stored_item, span = item, bytes = item;
  for (int a = k; a < b->ndim; a++) {
    span += (b->counts[a] - 1) * b->reader->strides[a];
    bytes *= b->counts[a];
  }
  if (span == bytes) {
    char *here = *to;
    *to += bytes;
    return host->file_read(file->file, offset, here, (size_t)bytes, b->err);
  }
  if (span <= WITHIN) {
    if (!b->scratch && !(b->scratch = malloc(WITHIN)))
      return hdf5_out_of_memory(file->library, b->err);
    FORWARD(host->file_read(file->file, offset, b->scratch, (size_t)span, b->err));
    *to = gather(b, k, b->scratch, *to);
    return TEGULA_OK;
  }
  for (int64_t i = 0; i < b->counts[k]; i++)
    FORWARD(read_axes(b, k + 1, offset + i * b->reader->strides[k], to));
  return TEGULA_OK;
}

static const char *scatter(const tegula_view *dst, int k, size_t item, const char *from, char *to) {
  if (k == dst->box.ndim) {
    memcpy(to, from, item);
    return from + item;
  }
  for (int64_t i = 0; i < dst->box.hi[k] - dst->box.lo[k]; i++)
    from = scatter(dst, k + 1, item, from, to + i * dst->stride_bytes[k]);
  return from;
}

static tegula_status convert(const struct hdf5_raw_file *file, int64_t count, char *elements,
                             char *background, tegula_error *err) {
  hdf5_library *library = file->library;
  const hdf5_conversion *c = &file->conversion;
  FORWARD(hdf5_enter(library, 0, err));
  bool good = library->call.H5Tconvert(file->stored, c->memory, (size_t)count, elements, background,
                                       HDF5_DEFAULT) >= 0 &&
              hdf5_conversion_apply(library, c, elements, count);
  const char *path = library->host->file_path(file->file);
  tegula_status status = good ? TEGULA_OK
                              : hdf5_failed(library, err, TEGULA_UNSUPPORTED, path,
                                            "convert the elements of \"%s\"", path);
  hdf5_unlock(library);
  return status;
}

static tegula_status read_box(void *state, const tegula_view *dst, tegula_error *err) {
  const reader *r = state;
  const struct hdf5_raw_file *file = r->file;
  box b = {.reader = r, .ndim = dst->box.ndim, .err = err};
  int64_t count = 1, offset = r->offset;
  for (int k = 0; k < b.ndim; k++) {
    b.counts[k] = dst->box.hi[k] - dst->box.lo[k];
    count *= b.counts[k];
    offset += (dst->box.lo[k] - r->lo[k]) * r->strides[k];
  }
  RETURN_IF(count == 0, TEGULA_OK);
  char *elements = calloc((size_t)count, file->room),
       *background = calloc((size_t)count, file->room), *to = elements;
  tegula_status status = elements && background ? read_axes(&b, 0, offset, &to)
                                                : hdf5_out_of_memory(file->library, err);
  tegula_error changed;
  tegula_status still = file->library->host->file_check(file->file, &changed);
  if (still != TEGULA_OK) {
    if (err) *err = changed;
    status = still;
  }
  if (status == TEGULA_OK) status = convert(file, count, elements, background, err);
  if (status == TEGULA_OK) scatter(dst, 0, file->item, elements, dst->data);
  free(b.scratch);
  free(background);
  free(elements);
  return status;
}

/* ---- telling the host ---- */

tegula_status hdf5_emit_raw(hdf5_dataset *dataset, const hdf5_raw *raw, const hdf5_place *place,
                            tegula_error *err) {
  hdf5_library *library = dataset->call->library;
  struct hdf5_raw_file *file = raw->file;
  reader *r = malloc(sizeof *r);
  RETURN_IF(!r, hdf5_out_of_memory(library, err));
  *r = (reader){.file = file, .offset = raw->offset};
  int64_t chunk[HDF5_MAX_RANK], bytes = (int64_t)file->room;
  for (int a = place->ndim - 1; a >= 0; a--) { /* boxes of 1 MiB, or of an element */
    int64_t length = place->hi[a] - place->lo[a], most = bytes < WITHIN ? WITHIN / bytes : 1;
    r->lo[a] = place->lo[a];
    r->strides[a] = raw->strides[a];
    chunk[a] = length < most ? length : most;
    if (chunk[a] < 1) chunk[a] = 1;
    bytes *= chunk[a];
  }
  file->references++;
  char *why = hdf5_text("\"%s\" of \"%s\" has another type, which libhdf5 converts", dataset->name,
                        dataset->file->path);
  tegula_status status =
      hdf5_tell_reader(dataset->call, place, chunk, 2 * bytes + WITHIN,
                       why ? why : "libhdf5 converts it", read_box, r, release, err);
  free(why);
  return status;
}
