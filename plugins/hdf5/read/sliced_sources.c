/* Contiguous sources of which many pieces of a virtual dataset want a little everywhere, columns
 * for example: read piece by piece, the same bytes would be read for each of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Such a source is described as plain chunks, slices of its bytes, because chunks are read once for
 * all that want something of them. What is left behind the last whole slice along the axis that is
 * cut is a grid of its own. */
#include <stdlib.h>
#include <string.h>

#include "read/vds.h"

#define GAP ((int64_t)16 << 10)  /* the engine reads over shorter ones */
#define SLICE ((int64_t)1 << 20) /* bytes */
#define LARGE_SLICE ((int64_t)16 << 20)
/* slices, by all pieces: each costs memory while it is loaded */
#define MOST_WANTED ((int64_t)1 << 20)

typedef struct grid {
  int64_t number; /* of the host; -1: not made */
  /* the box of the dataset that it covers, from a whole slice on */
  int64_t lo[HDF5_MAX_RANK], hi[HDF5_MAX_RANK];
} grid;

struct hdf5_slices {
  int axis; /* that is cut; those before it are one long in a slice, those behind it whole */
  int64_t chunk[HDF5_MAX_RANK];
  grid grids[2]; /* of whole slices, of the rest; the second may be empty */
};

void hdf5_reads_add(hdf5_reads *reads, const hdf5_dataset *dataset, const hdf5_place *place) {
  int64_t span = hdf5_type_bytes(&dataset->type), requests = 1, first = 0, last = span;
  bool inside = true;
  for (int k = dataset->ndim - 1; k >= 0; k--) {
    int64_t length = hdf5_place_length(place, k);
    inside = inside && (length == 1 || dataset->strides[k] - span <= GAP);
    if (inside)
      span += (length - 1) * dataset->strides[k];
    else
      requests *= length;
    first += place->start[k] * dataset->strides[k];
    last += (place->start[k] + length - 1) * dataset->strides[k];
  }
  reads->places++;
  if (__builtin_add_overflow(reads->bytes, span * requests, &reads->bytes))
    reads->bytes = INT64_MAX;
  if (first < reads->first) reads->first = first;
  if (last > reads->last) reads->last = last;
}

static bool choose(const hdf5_dataset *dataset, int64_t most, struct hdf5_slices *s) {
  int64_t inner = hdf5_type_bytes(&dataset->type);
  s->axis = dataset->ndim - 1;
  while (s->axis > 0 && inner * dataset->shape[s->axis] < most) inner *= dataset->shape[s->axis--];
  int64_t length = most / inner > 1 ? most / inner : 1, whole = dataset->shape[s->axis];
  if (length > whole) length = whole;
  /* without a rest, if that is not much less */
  for (int64_t less = length; less > length / 4; less--)
    if (whole % less == 0) {
      length = less;
      break;
    }
  for (int k = 0; k < dataset->ndim; k++)
    s->chunk[k] = k < s->axis ? 1 : k == s->axis ? length : dataset->shape[k];
  for (int k = 0; k < dataset->ndim; k++) {
    s->grids[0].lo[k] = s->grids[1].lo[k] = 0;
    s->grids[0].hi[k] = s->grids[1].hi[k] = dataset->shape[k];
  }
  s->grids[0].hi[s->axis] = s->grids[1].lo[s->axis] = whole / length * length;
  return inner * length < UINT32_MAX;
}

static int64_t count_slices(const hdf5_dataset *dataset, const struct hdf5_slices *s) {
  int64_t count = dataset->shape[s->axis] / s->chunk[s->axis] + 1;
  for (int k = 0; k < s->axis; k++) count *= dataset->shape[k];
  return count;
}

void hdf5_slice(hdf5_dataset *dataset, int64_t places) {
  struct hdf5_slices *s = malloc(sizeof *s);
  if (!s) return; /* then it is read more slowly */
  bool good = choose(dataset, SLICE, s);
  if (good && count_slices(dataset, s) > MOST_WANTED / places)
    good = choose(dataset, LARGE_SLICE, s);
  good = good && count_slices(dataset, s) <= MOST_WANTED / places;
  s->grids[0].number = s->grids[1].number = -1;
  dataset->slices = good ? s : NULL;
  if (!good) free(s);
}

/* Bytes of a slice of the grid. */
static int64_t slice_bytes(const hdf5_dataset *dataset, const grid *g) {
  const struct hdf5_slices *s = dataset->slices;
  int64_t whole = g == &s->grids[0] ? s->chunk[s->axis] : g->hi[s->axis] - g->lo[s->axis];
  return whole * dataset->strides[s->axis];
}

static tegula_status make_grid(hdf5_dataset *dataset, grid *g, tegula_error *err) {
  const tegula_plugin_host *host = dataset->call->library->host;
  const struct hdf5_slices *s = dataset->slices;
  int64_t bytes = slice_bytes(dataset, g), row = g->hi[s->axis] - g->lo[s->axis],
          count = row * dataset->strides[s->axis] / bytes, rows = 1;
  for (int k = 0; k < s->axis; k++) rows *= dataset->shape[k];
  tegula_plugin_chunk *chunks = host->allocate((size_t)(rows * count) * sizeof *chunks);
  RETURN_IF(!chunks, hdf5_out_of_memory(dataset->call->library, err));
  int64_t offset = dataset->offset + g->lo[s->axis] * dataset->strides[s->axis],
          step = dataset->shape[s->axis] * dataset->strides[s->axis];
  for (int64_t i = 0; i < rows * count; i++)
    chunks[i] = (tegula_plugin_chunk){(uint64_t)(offset + i / count * step + i % count * bytes),
                                      (uint32_t)bytes, 0};
  tegula_status status =
      host->add_grid(dataset->call->builder, dataset->file_number, bytes, dataset->type.order, NULL,
                     0, dataset->fill, rows * count, rows * count, NULL, chunks, &g->number, err);
  if (status != TEGULA_OK) host->release(chunks);
  bool known =
      host->struct_size >= offsetof(tegula_plugin_host, mark_slices) + sizeof host->mark_slices &&
      host->mark_slices;
  return status == TEGULA_OK && known ? host->mark_slices(dataset->call->builder, g->number, err)
                                      : status;
}

tegula_status hdf5_emit_slices(hdf5_dataset *dataset, const hdf5_place *outer, tegula_error *err) {
  const struct hdf5_slices *s = dataset->slices;
  for (int i = 0; i < 2; i++) {
    grid *g = &dataset->slices->grids[i];
    hdf5_place place;
    if (g->lo[s->axis] == g->hi[s->axis] ||
        !hdf5_place_clip(outer, dataset->ndim, g->lo, g->hi, &place))
      continue;
    if (g->number < 0) FORWARD(make_grid(dataset, g, err));
    int64_t chunk[HDF5_MAX_RANK], shape[HDF5_MAX_RANK];
    for (int k = 0; k < dataset->ndim; k++) {
      shape[k] = g->hi[k] - g->lo[k];
      chunk[k] = k == s->axis && s->chunk[k] > shape[k] ? shape[k] : s->chunk[k];
      place.start[k] -= g->lo[k];
    }
    FORWARD(hdf5_emit_grid(dataset, g->number, shape, chunk, &place, err));
  }
  return TEGULA_OK;
}
