/* What only libhdf5 can read: filters of its own, types that must be converted, data inside of an
 * object's header.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A reader keeps its file and dataset open until the host releases it. Its calls run one at a time,
 * under the library's lock. */
#include <stdlib.h>
#include <string.h>

#include "read/hdf5_read.h"

typedef struct reader {
  int64_t references; /* of pieces, and of who makes them */
  hdf5_library *library;
  hdf5_file *file;
  char *name;
  hid_t id;
  hdf5_conversion conversion;
  int ndim;
  hdf5_place place;
  size_t item;      /* an element of the array: */
  hdf5_inner inner; /* it may be an array of items of `part` bytes itself */
  size_t part;
  size_t chunk_bytes; /* what libhdf5 needs to decode a chunk; 0: there are none */
} reader;

static void reader_release(void *state) {
  reader *r = state;
  hdf5_lock(r->library);
  if (--r->references > 0) {
    hdf5_unlock(r->library);
    return;
  }
  hdf5_conversion_close(r->library, &r->conversion);
  if (r->id > 0) r->library->call.H5Oclose(r->id);
  /* not in the list of any call by now, or still in that of the one that made it */
  r->file->references--;
  if (r->file->references == 0) {
    r->file->references = 1;
    hdf5_file_release(NULL, r->file);
  }
  hdf5_unlock(r->library);
  free(r->name);
  free(r);
}

/* Reads the box, in C order, into `out`, which has room for the longer of the items. */
static tegula_status read_box(const reader *r, const tegula_view *dst, int64_t elements, void *out,
                              tegula_error *err) {
  const hdf5_functions *call = &r->library->call;
  hsize_t start[HDF5_MAX_RANK], count[HDF5_MAX_RANK];
  for (int k = 0; k < r->ndim; k++) {
    int axis = r->place.axis[k];
    start[k] =
        (hsize_t)(r->place.start[k] + (axis < 0 ? 0 : dst->box.lo[axis] - r->place.lo[axis]));
    count[k] = axis < 0 ? 1 : (hsize_t)(dst->box.hi[axis] - dst->box.lo[axis]);
  }
  hid_t in_file = 0, in_memory = 0;
  bool good = true;
  if (r->ndim > 0) {
    in_file = call->H5Dget_space(r->id);
    in_memory = call->H5Screate_simple(r->ndim, count, NULL);
    good = in_file >= 0 && in_memory >= 0 &&
           call->H5Sselect_hyperslab(in_file, 0 /* set */, start, NULL, count, NULL) >= 0;
  }
  r->library->data = true;
  good = good &&
         call->H5Dread(r->id, r->conversion.memory, in_memory, in_file, HDF5_DEFAULT, out) >= 0;
  r->library->data = false;
  good = good && hdf5_conversion_apply(r->library, &r->conversion, out, elements);
  tegula_status status = good ? TEGULA_OK
                              : hdf5_failed(r->library, err, TEGULA_CORRUPT, r->file->path,
                                            "read \"%s\" of \"%s\"", r->name, r->file->path);
  if (in_file > 0) call->H5Sclose(in_file);
  if (in_memory > 0) call->H5Sclose(in_memory);
  return status;
}

/* How the elements of a box lie in memory where it holds nothing else, in C order. */
typedef struct dense_box {
  int64_t elements;                 /* of the dataset */
  int64_t strides[TEGULA_MAX_DIMS]; /* bytes, of all axes */
  int64_t offset;                   /* of what the view begins with */
} dense_box;

/* Elements that are arrays are whole, whatever the view wants of them. */
static void lay_out(const reader *r, const tegula_view *view, dense_box *out) {
  int ndim = view->box.ndim, outer = ndim - r->inner.ndim;
  int64_t bytes = (int64_t)r->part;
  *out = (dense_box){.elements = 1};
  for (int k = ndim - 1; k >= 0; k--) {
    bool within = k >= outer;
    int64_t length = view->box.hi[k] - view->box.lo[k];
    out->strides[k] = bytes;
    if (within) out->offset += view->box.lo[k] * bytes;
    if (!within || length == 0) out->elements *= length;
    bytes *= within ? r->inner.shape[k - outer] : length;
  }
}

static bool is_dense(const reader *r, const tegula_view *view, const dense_box *box) {
  for (int k = 0; k < view->box.ndim; k++) {
    int64_t length = view->box.hi[k] - view->box.lo[k];
    int at = k - (view->box.ndim - r->inner.ndim);
    if (at >= 0 && length != r->inner.shape[at]) return false;
    if (length > 1 && view->stride_bytes[k] != box->strides[k]) return false;
  }
  return true;
}

static void scatter(const tegula_view *dst, size_t item, const dense_box *box, const char *from) {
  int64_t at[TEGULA_MAX_DIMS] = {0};
  char *to = dst->data;
  from += box->offset;
  for (;;) {
    memcpy(to, from, item);
    int k = dst->box.ndim - 1;
    for (; k >= 0; k--) {
      to += dst->stride_bytes[k];
      from += box->strides[k];
      if (++at[k] < dst->box.hi[k] - dst->box.lo[k]) break;
      to -= at[k] * dst->stride_bytes[k];
      from -= at[k] * box->strides[k];
      at[k] = 0;
    }
    if (k < 0) return;
  }
}

static tegula_status reader_read(void *state, const tegula_view *dst, tegula_error *err) {
  const reader *r = state;
  dense_box box;
  lay_out(r, dst, &box);
  bool dense = is_dense(r, dst, &box) && r->conversion.item <= r->item;
  RETURN_IF(box.elements == 0, TEGULA_OK);
  /* cleared: of records libhdf5 may leave some out */
  char *scratch = dense ? NULL
                        : calloc((size_t)box.elements,
                                 r->item > r->conversion.item ? r->item : r->conversion.item);
  RETURN_IF(!dense && !scratch, hdf5_out_of_memory(r->library, err));
  tegula_status status = hdf5_enter(r->library, r->chunk_bytes, err);
  if (status == TEGULA_OK) {
    status = read_box(r, dst, box.elements, dense ? dst->data : scratch, err);
    hdf5_unlock(r->library);
  }
  /* libhdf5 keeps some of what it read: a file that is written to may give any mixture, or
   * damage */
  tegula_error changed;
  tegula_status still = r->library->host->file_check(r->file->host, &changed);
  if (still != TEGULA_OK) {
    if (err) *err = changed;
    status = still;
  }
  if (status == TEGULA_OK && !dense) scatter(dst, r->part, &box, scratch);
  free(scratch);
  return status;
}

/* Why libhdf5 reads it; NULL: no memory. */
static char *reason(const hdf5_dataset *dataset) {
  const char *name = dataset->name, *path = dataset->file->path;
  if (dataset->layout == HDF5_COMPACT)
    return hdf5_text(
        "\"%s\" of \"%s\" is compact: its data lies in its header, from where libhdf5 reads it",
        name, path);
  const char *filter = hdf5_filters_other(dataset);
  if (filter)
    return hdf5_text(
        "the chunks of \"%s\" of \"%s\" went through the filter %s, which libhdf5 undoes", name,
        path, filter);
  return hdf5_text("\"%s\" of \"%s\" has another type, which libhdf5 converts", name, path);
}

/* A chunk as it is stored, and decoded. */
static size_t memory_for_a_chunk(const hdf5_dataset *dataset, size_t item) {
  size_t bytes = 2 * item;
  RETURN_IF(dataset->layout != HDF5_CHUNKED, 0);
  for (int k = 0; k < dataset->ndim; k++)
    if (__builtin_mul_overflow(bytes, (size_t)dataset->chunk[k], &bytes)) return SIZE_MAX;
  return bytes;
}

/* Opens the dataset once more, for all pieces of the place. */
static tegula_status make_reader(const hdf5_dataset *dataset, const hdf5_place *place, reader **out,
                                 tegula_error *err) {
  hdf5_library *library = dataset->call->library;
  const hdf5_functions *call = &library->call;
  reader *r = calloc(1, sizeof *r);
  RETURN_IF(!r, hdf5_out_of_memory(library, err));
  *r = (reader){.references = 1,
                .library = library,
                .file = dataset->file,
                .name = strdup(dataset->name),
                .ndim = dataset->ndim,
                .place = *place,
                .item = dataset->call->array_item,
                .inner = dataset->call->inner,
                .part = dataset->like->type.dtype.item_size};
  dataset->file->references++;
  r->id = call->H5Oopen(dataset->file->id, dataset->name, HDF5_DEFAULT);
  bool converts = hdf5_conversion_copy(library, &dataset->conversion, &r->conversion);
  r->chunk_bytes =
      memory_for_a_chunk(dataset, r->item > r->conversion.item ? r->item : r->conversion.item);
  *out = r;
  RETURN_IF(r->name && r->id >= 0 && converts, TEGULA_OK);
  tegula_status status =
      hdf5_failed(library, err, TEGULA_CORRUPT, dataset->file->path,
                  "open \"%s\" of \"%s\" for reading", dataset->name, dataset->file->path);
  if (r->id < 0) r->id = 0;
  reader_release(r);
  return status;
}

/* Pieces on their way to the host. */
typedef struct emitting {
  hdf5_dataset *dataset;
  reader *reader;
  char *why;
  unsigned char *fill; /* as elements of the array; NULL: not asked for yet, or none is defined */
} emitting;

static tegula_status emit_stored(const emitting *e, const hdf5_place *piece, tegula_error *err) {
  const hdf5_dataset *dataset = e->dataset;
  int64_t chunk[HDF5_MAX_RANK],
      cost = (int64_t)(e->reader->item > e->reader->conversion.item ? e->reader->item
                                                                    : e->reader->conversion.item);
  for (int a = 0; a < piece->ndim; a++) chunk[a] = piece->hi[a] - piece->lo[a];
  for (int k = 0; k < dataset->ndim; k++) {
    int axis = piece->axis[k];
    bool chunked = dataset->layout == HDF5_CHUNKED;
    if (axis >= 0 && chunked && dataset->chunk[k] < chunk[axis]) chunk[axis] = dataset->chunk[k];
    int64_t length = chunked ? dataset->chunk[k] : dataset->shape[k];
    if (__builtin_mul_overflow(cost, length, &cost)) cost = INT64_MAX / 4;
  }
  e->reader->references++;
  return hdf5_tell_reader(dataset->call, piece, chunk, 2 * cost,
                          e->why ? e->why : "libhdf5 reads it", reader_read, e->reader,
                          reader_release, err);
}

/* The fill value in the type of the array: libhdf5 converts it as it reads an element that is not
 * there. */
static tegula_status read_fill(emitting *e, const hdf5_place *piece, tegula_error *err) {
  RETURN_IF(e->fill || !e->dataset->fill, TEGULA_OK);
  e->fill = calloc(1, e->reader->item);
  RETURN_IF(!e->fill, hdf5_out_of_memory(e->dataset->call->library, err));
  const hdf5_inner *inner = &e->reader->inner;
  tegula_view one = {.data = e->fill, .box = {.ndim = piece->ndim + inner->ndim}};
  for (int a = 0; a < piece->ndim + inner->ndim; a++) {
    one.box.lo[a] = a < piece->ndim ? piece->lo[a] : 0;
    one.box.hi[a] = one.box.lo[a] + 1;
    one.stride_bytes[a] = (int64_t)e->reader->item;
  }
  return reader_read(e->reader, &one, err);
}

/* An hdf5_gap_fn. */
static tegula_status emit_piece(void *state, bool stored, const hdf5_place *piece,
                                tegula_error *err) {
  emitting *e = state;
  if (stored) return emit_stored(e, piece, err);
  FORWARD(read_fill(e, piece, err));
  return hdf5_tell_fill(e->dataset->call, piece, e->fill, err);
}

tegula_status hdf5_emit_reader(hdf5_dataset *dataset, const hdf5_place *place, tegula_error *err) {
  emitting e = {.dataset = dataset};
  int64_t number;
  /* a file that is read, like any other */
  FORWARD(hdf5_file_number(dataset->call, dataset->file, &number, err));
  FORWARD(make_reader(dataset, place, &e.reader, err));
  e.why = reason(dataset);
  tegula_status status = hdf5_gaps_cut(dataset, place, emit_piece, &e, err);
  reader_release(e.reader);
  free(e.why);
  free(e.fill);
  return status;
}
