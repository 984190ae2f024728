/* What a selection selects, and how two of them correspond: element by element in C order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "read/vds.h"

#define MOST_BOXES (INT64_C(1) << 20)

static bool read_slabs(hdf5_library *library, hid_t space, hdf5_selection *out) {
  hsize_t start[HDF5_MAX_RANK], stride[HDF5_MAX_RANK], count[HDF5_MAX_RANK], block[HDF5_MAX_RANK];
  if (library->call.H5Sget_regular_hyperslab(space, start, stride, count, block) < 0) return false;
  for (int k = 0; k < out->ndim; k++) {
    hdf5_slab *axis = &out->axes[k];
    bool endless = count[k] == HDF5_UNDEFINED || block[k] == HDF5_UNDEFINED;
    if (endless && out->unlimited >= 0) return false;
    if (endless) out->unlimited = k;
    if (count[k] == 1 || block[k] == HDF5_UNDEFINED)
      stride[k] = block[k] == HDF5_UNDEFINED ? 1 : block[k];
    if (start[k] > INT64_MAX || stride[k] > INT64_MAX || stride[k] == 0) return false;
    *axis = (hdf5_slab){.start = (int64_t)start[k],
                        .stride = (int64_t)stride[k],
                        .block = block[k] > INT64_MAX ? INT64_MAX : (int64_t)block[k]};
    if (!endless && (count[k] > INT64_MAX ||
                     __builtin_mul_overflow((int64_t)count[k], axis->block, &axis->total)))
      return false;
    if (axis->block == 0 ||
        (axis->block > axis->stride && !(endless && block[k] == HDF5_UNDEFINED)))
      return false;
  }
  return true;
}

static hdf5_selection_result read_boxes(hdf5_library *library, hid_t space, hdf5_selection *out) {
  int64_t count = library->call.H5Sget_select_hyper_nblocks(space);
  if (count < 0 || count > MOST_BOXES) return HDF5_SELECTION_BAD;
  size_t width = 2 * (size_t)out->ndim;
  out->boxes = malloc((size_t)(count + 1) * width * sizeof *out->boxes);
  if (!out->boxes) return HDF5_SELECTION_NO_MEMORY;
  out->box_count = count;
  if (count && library->call.H5Sget_select_hyper_blocklist(space, 0, (hsize_t)count,
                                                           (hsize_t *)out->boxes) < 0)
    return HDF5_SELECTION_BAD;
  for (int64_t k = 0; k < count; k++)
    for (int a = 0; a < out->ndim; a++) { /* the ends are inclusive */
      int64_t *lo = out->boxes + k * (int64_t)width + a, *hi = lo + out->ndim;
      if (*lo < 0 || *hi < *lo || *hi == INT64_MAX) return HDF5_SELECTION_BAD;
      ++*hi;
    }
  return HDF5_SELECTION_OK;
}

hdf5_selection_result hdf5_selection_read(hdf5_library *library, hid_t space, hdf5_selection *out) {
  const hdf5_functions *call = &library->call;
  hsize_t dims[HDF5_MAX_RANK] = {0};
  *out = (hdf5_selection){.unlimited = -1};
  out->ndim = call->H5Sget_simple_extent_ndims(space);
  if (out->ndim < 0 || out->ndim > HDF5_MAX_RANK ||
      (out->ndim && call->H5Sget_simple_extent_dims(space, dims, NULL) < 0))
    return HDF5_SELECTION_BAD;
  for (int k = 0; k < out->ndim; k++) {
    if (dims[k] > INT64_MAX) return HDF5_SELECTION_BAD;
    out->extent[k] = (int64_t)dims[k];
  }
  switch (call->H5Sget_select_type(space)) {
    case HDF5_SELECT_ALL:
      out->whole = true;
      for (int k = 0; k < out->ndim; k++) {
        int64_t length = out->extent[k];
        out->axes[k] = (hdf5_slab){
            .stride = length ? length : 1, .block = length ? length : 1, .total = length};
      }
      return HDF5_SELECTION_OK;
    case HDF5_SELECT_HYPERSLABS:
      if (call->H5Sis_regular_hyperslab(space) > 0)
        return read_slabs(library, space, out) ? HDF5_SELECTION_OK : HDF5_SELECTION_BAD;
      return read_boxes(library, space, out);
    case HDF5_SELECT_NONE:
      out->boxes = malloc(8);
      return out->boxes ? HDF5_SELECTION_OK : HDF5_SELECTION_NO_MEMORY;
    case HDF5_SELECT_POINTS:
      return HDF5_SELECTION_POINTS;
    default:
      return HDF5_SELECTION_BAD;
  }
}

void hdf5_selection_free(hdf5_selection *selection) {
  free(selection->boxes);
  selection->boxes = NULL;
}

int64_t hdf5_slab_count(const hdf5_slab *slab, int64_t extent) {
  if (extent <= slab->start) return 0;
  int64_t there = extent - slab->start;
  if (slab->block == INT64_MAX) return there;
  int64_t rest = there % slab->stride;
  return there / slab->stride * slab->block + (rest < slab->block ? rest : slab->block);
}

int64_t hdf5_slab_extent(const hdf5_slab *slab, int64_t count) {
  if (count <= 0) return 0;
  int64_t blocks = (count - 1) / slab->block, rest = (count - 1) % slab->block + 1, out;
  if (__builtin_mul_overflow(blocks, slab->stride, &out) ||
      __builtin_add_overflow(out, rest, &out) || __builtin_add_overflow(out, slab->start, &out))
    return INT64_MAX;
  return out;
}

int64_t hdf5_selection_count(const hdf5_selection *selection, const int64_t *shape) {
  int64_t all = selection->boxes ? 0 : 1;
  for (int k = 0; !selection->boxes && k < selection->ndim; k++) {
    if (hdf5_slab_extent(&selection->axes[k], selection->axes[k].total) > shape[k]) return -2;
    if (__builtin_mul_overflow(all, selection->axes[k].total, &all)) return -1;
  }
  for (int64_t b = 0; b < selection->box_count; b++) {
    const int64_t *lo = selection->boxes + b * 2 * selection->ndim, *hi = lo + selection->ndim;
    int64_t one = 1;
    for (int k = 0; k < selection->ndim; k++) {
      if (hi[k] > shape[k]) return -2;
      if (__builtin_mul_overflow(one, hi[k] - lo[k], &one)) return -1;
    }
    if (__builtin_add_overflow(all, one, &all)) return -1;
  }
  return all;
}

/* ---- pieces ---- */

int64_t *hdf5_pieces_add(hdf5_pieces *pieces) {
  int64_t width = hdf5_piece_width(pieces);
  if (pieces->count == pieces->capacity) {
    int64_t capacity = pieces->capacity ? 2 * pieces->capacity : 64;
    int64_t *data = pieces->count < HDF5_MOST_PIECES
                        ? realloc(pieces->data, (size_t)(capacity * width) * sizeof *data)
                        : NULL;
    if (!data) return NULL;
    pieces->data = data;
    pieces->capacity = capacity;
  }
  int64_t *piece = hdf5_piece(pieces, pieces->count++);
  memset(piece, 0, (size_t)width * sizeof *piece);
  for (int k = 0; k < pieces->from; k++) hdf5_piece_axis(pieces, piece)[k] = -1;
  return piece;
}

/* ---- slabs on both sides, axis by axis ---- */

/* Blocks along one pair of axes: `to`, `from` and the length of each. */
typedef struct segments {
  int to_axis, from_axis;
  int64_t *items;
  int64_t count;
} segments;

/* Where the element of that number is, and how many more follow it without a gap (itself
 * included). */
static int64_t slab_at(const hdf5_slab *slab, int64_t number, int64_t *run) {
  int64_t block = number / slab->block, within = number % slab->block;
  *run = slab->stride == slab->block ? slab->total - number : slab->block - within;
  return slab->start + block * slab->stride + within;
}

static bool pair_axes(const hdf5_slab *to, const hdf5_slab *from, segments *out) {
  int64_t capacity = 0;
  for (int64_t at = 0; at < to->total;) {
    if (out->count == capacity) {
      capacity = capacity ? 2 * capacity : 16;
      int64_t *items = capacity <= 2 * HDF5_MOST_PIECES
                           ? realloc(out->items, (size_t)capacity * 3 * sizeof *items)
                           : NULL;
      if (!items) return false;
      out->items = items;
    }
    int64_t to_run, from_run, *item = out->items + 3 * out->count++;
    item[0] = slab_at(to, at, &to_run);
    item[1] = slab_at(from, at, &from_run);
    int64_t run = to_run < from_run ? to_run : from_run;
    item[2] = run < to->total - at ? run : to->total - at;
    at += item[2];
  }
  return true;
}

/* Pairs the axes that are longer than one; -1: they do not correspond, 0: no memory, 1: done. */
static int pair_slabs(const hdf5_mapping *mapping, segments *pairs, int *count) {
  const hdf5_selection *to = &mapping->to, *from = &mapping->from;
  int a = 0, b = 0;
  *count = 0;
  for (;; a++, b++) {
    while (a < to->ndim && to->axes[a].total == 1) a++;
    while (b < from->ndim && from->axes[b].total == 1) b++;
    if (a == to->ndim || b == from->ndim) break;
    if (to->axes[a].total != from->axes[b].total) return -1;
    segments *pair = &pairs[(*count)++];
    *pair = (segments){.to_axis = a, .from_axis = b};
    if (!pair_axes(&to->axes[a], &from->axes[b], pair)) return 0;
  }
  return a == to->ndim && b == from->ndim ? 1 : -1;
}

/* One piece for each combination of blocks. */
static bool cross(const hdf5_mapping *mapping, int64_t index, const segments *pairs, int count,
                  hdf5_pieces *out) {
  int64_t at[HDF5_MAX_RANK] = {0};
  for (;;) {
    int64_t *piece = hdf5_pieces_add(out);
    if (!piece) return false;
    for (int k = 0; k < mapping->to.ndim; k++) {
      piece[k] = mapping->to.axes[k].start;
      piece[out->to + k] = piece[k] + 1;
    }
    for (int k = 0; k < mapping->from.ndim; k++)
      hdf5_piece_start(out, piece)[k] = mapping->from.axes[k].start;
    for (int p = 0; p < count; p++) {
      const int64_t *item = pairs[p].items + 3 * at[p];
      piece[pairs[p].to_axis] = item[0];
      piece[out->to + pairs[p].to_axis] = item[0] + item[2];
      hdf5_piece_start(out, piece)[pairs[p].from_axis] = item[1];
      hdf5_piece_axis(out, piece)[pairs[p].from_axis] = pairs[p].to_axis;
    }
    *hdf5_piece_mapping(out, piece) = index;
    int p = count - 1;
    while (p >= 0 && ++at[p] == pairs[p].count) at[p--] = 0;
    if (p < 0) return true;
  }
}

/* ---- anything else: runs along the last axis, in C order ---- */

typedef struct run {
  int64_t at, length; /* linear index in the extent */
} run;

typedef struct runs {
  run *items;
  int64_t count, capacity;
} runs;

static bool add_box_runs(const hdf5_selection *selection, const int64_t *lo, const int64_t *hi,
                         runs *out) {
  int64_t at[HDF5_MAX_RANK];
  int last = selection->ndim - 1;
  memcpy(at, lo, (size_t)selection->ndim * sizeof *at);
  for (;;) {
    if (out->count == out->capacity) {
      int64_t capacity = out->capacity ? 2 * out->capacity : 64;
      run *items = capacity <= 2 * HDF5_MOST_PIECES
                       ? realloc(out->items, (size_t)capacity * sizeof *items)
                       : NULL;
      if (!items) return false;
      out->items = items;
      out->capacity = capacity;
    }
    int64_t linear = 0;
    for (int k = 0; k <= last; k++) linear = linear * selection->extent[k] + at[k];
    out->items[out->count++] = (run){linear, last < 0 ? 1 : hi[last] - lo[last]};
    int k = last - 1;
    while (k >= 0 && ++at[k] == hi[k]) {
      at[k] = lo[k];
      k--;
    }
    if (k < 0) return true;
  }
}

static int by_place(const void *a, const void *b) {
  const run *x = a, *y = b;
  return x->at < y->at ? -1 : x->at > y->at;
}

static bool slab_runs(const hdf5_selection *selection, runs *out) {
  int64_t number[HDF5_MAX_RANK] = {0}, lo[HDF5_MAX_RANK], hi[HDF5_MAX_RANK], skip;
  for (;;) { /* a box for each combination of blocks */
    int64_t length[HDF5_MAX_RANK];
    for (int k = 0; k < selection->ndim; k++) {
      lo[k] = slab_at(&selection->axes[k], number[k], &skip);
      length[k] =
          skip < selection->axes[k].total - number[k] ? skip : selection->axes[k].total - number[k];
      hi[k] = lo[k] + length[k];
    }
    if (!add_box_runs(selection, lo, hi, out)) return false;
    int k = selection->ndim - 1;
    while (k >= 0 && (number[k] += length[k]) >= selection->axes[k].total) number[k--] = 0;
    if (k < 0) return true;
  }
}

static bool list_runs(const hdf5_selection *selection, runs *out) {
  bool good = true;
  for (int64_t b = 0; good && b < selection->box_count; b++) {
    const int64_t *lo = selection->boxes + b * 2 * selection->ndim;
    good = add_box_runs(selection, lo, lo + selection->ndim, out);
  }
  if (!selection->boxes) good = slab_runs(selection, out);
  if (good) qsort(out->items, (size_t)out->count, sizeof *out->items, by_place);
  return good;
}

static void unravel(const hdf5_selection *selection, int64_t linear, int64_t *out) {
  for (int k = selection->ndim - 1; k >= 0; k--) {
    out[k] = linear % selection->extent[k];
    linear /= selection->extent[k];
  }
}

static bool pair_runs(const hdf5_mapping *mapping, int64_t index, const runs *to, const runs *from,
                      hdf5_pieces *out) {
  int64_t i = 0, j = 0, i_done = 0, j_done = 0;
  while (i < to->count && j < from->count) {
    int64_t a = to->items[i].length - i_done, b = from->items[j].length - j_done,
            length = a < b ? a : b;
    int64_t *piece = hdf5_pieces_add(out);
    if (!piece) return false;
    unravel(&mapping->to, to->items[i].at + i_done, piece);
    for (int k = 0; k < out->to; k++) piece[out->to + k] = piece[k] + 1;
    piece[2 * out->to - 1] += length - 1;
    unravel(&mapping->from, from->items[j].at + j_done, hdf5_piece_start(out, piece));
    if (mapping->from.ndim > 0) hdf5_piece_axis(out, piece)[mapping->from.ndim - 1] = out->to - 1;
    *hdf5_piece_mapping(out, piece) = index;
    i_done += length, j_done += length;
    if (i_done == to->items[i].length) i++, i_done = 0;
    if (j_done == from->items[j].length) j++, j_done = 0;
  }
  return true;
}

bool hdf5_mapping_pieces(const hdf5_mapping *mapping, int64_t index, hdf5_pieces *out) {
  segments pairs[HDF5_MAX_RANK] = {{0}};
  int count = 0, paired = -1;
  bool good = true;
  if (!mapping->to.boxes && !mapping->from.boxes) paired = pair_slabs(mapping, pairs, &count);
  if (paired >= 0) good = paired && cross(mapping, index, pairs, count, out);
  for (int k = 0; k < count; k++) free(pairs[k].items);
  if (paired >= 0) return good;
  runs to = {0}, from = {0};
  good = list_runs(&mapping->to, &to) && list_runs(&mapping->from, &from) &&
         pair_runs(mapping, index, &to, &from, out);
  free(to.items);
  free(from.items);
  return good;
}
