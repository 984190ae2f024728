/* Selections of virtual datasets, and the pieces that come of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_HDF5_VDS_H
#define TEGULA_HDF5_VDS_H

#include "read/hdf5_read.h"

/* Along one axis: blocks of `block` elements, `stride` apart, the first at `start`; the first
 * `total` elements of them. */
typedef struct hdf5_slab {
  int64_t start, stride, block, total;
} hdf5_slab;

/* A selection: one slab for each axis, or (`boxes` not NULL) any disjoint boxes: lo[ndim], hi[ndim]
 * of each in turn. */
typedef struct hdf5_selection {
  int ndim;
  int64_t extent[HDF5_MAX_RANK];
  hdf5_slab axes[HDF5_MAX_RANK];
  int unlimited; /* the axis that has no end: total is then not set; -1: none */
  bool whole;    /* all of a source: its shape is in the source's file only */
  int64_t *boxes;
  int64_t box_count;
} hdf5_selection;

typedef struct hdf5_mapping {
  char *file, *dataset;    /* as the file says; after hdf5_virtual_open without %b */
  hdf5_selection to, from; /* from.whole: `from` has the axes of `to` that are longer than one */
} hdf5_mapping;

void hdf5_mapping_free(hdf5_mapping *mapping);
tegula_status hdf5_fail_mapping(const hdf5_dataset *dataset, tegula_status status, int64_t index,
                                const char *text, tegula_error *err);

/* The virtual datasets that are being followed, innermost first. */
typedef struct hdf5_ancestor {
  const struct hdf5_ancestor *next;
  const char *canonical, *name;
} hdf5_ancestor;

typedef struct hdf5_source {
  hdf5_file *file;
  hdf5_found found;
  hdf5_dataset dataset;
} hdf5_source;

/* Opens the file and finds the dataset. What fails here is a source that is lost. */
tegula_status hdf5_source_find(hdf5_dataset *dataset, const hdf5_mapping *mapping, hdf5_source *out,
                               tegula_error *err);
/* Reads what the source is. What fails here is an error. */
tegula_status hdf5_source_read(hdf5_dataset *dataset, hdf5_source *source, tegula_error *err);
void hdf5_source_close(hdf5_call *call, hdf5_source *source);

typedef enum hdf5_selection_result {
  HDF5_SELECTION_OK,
  HDF5_SELECTION_BAD,
  HDF5_SELECTION_POINTS,
  HDF5_SELECTION_NO_MEMORY
} hdf5_selection_result;

hdf5_selection_result hdf5_selection_read(hdf5_library *library, hid_t space, hdf5_selection *out);
void hdf5_selection_free(hdf5_selection *selection);
/* Elements that it selects; -1: too many. Boxes and slabs that reach beyond `shape` give -2. */
int64_t hdf5_selection_count(const hdf5_selection *selection, const int64_t *shape);
/* For an axis without end: how many elements there are below `extent`; and the extent that holds
 * `count` of them. */
int64_t hdf5_slab_count(const hdf5_slab *slab, int64_t extent);
int64_t hdf5_slab_extent(const hdf5_slab *slab, int64_t count);

/* Pieces: boxes of the virtual dataset and where in a source they begin. Vectors of equal width in
 * one block of memory: lo[to], hi[to], start[from], axis[from] (of the virtual dataset, -1: none),
 * mapping (-1: a gap). */
typedef struct hdf5_pieces {
  int64_t *data;
  int64_t count, capacity;
  int to, from; /* ranks; `from` is the largest of all sources */
} hdf5_pieces;

#define HDF5_MOST_PIECES (INT64_C(1) << 20)

static inline int64_t hdf5_piece_width(const hdf5_pieces *p) { return 2 * p->to + 2 * p->from + 1; }
static inline int64_t *hdf5_piece(const hdf5_pieces *p, int64_t index) {
  return p->data + index * hdf5_piece_width(p);
}
static inline int64_t *hdf5_piece_start(const hdf5_pieces *p, int64_t *piece) {
  return piece + 2 * p->to;
}
static inline int64_t *hdf5_piece_axis(const hdf5_pieces *p, int64_t *piece) {
  return piece + 2 * p->to + p->from;
}
static inline int64_t *hdf5_piece_mapping(const hdf5_pieces *p, int64_t *piece) {
  return piece + 2 * p->to + 2 * p->from;
}

/* A new piece, all zeros; NULL: no memory, or too many. */
int64_t *hdf5_pieces_add(hdf5_pieces *pieces);
/* Adds the pieces of one mapping, whose selections have equally many elements. */
bool hdf5_mapping_pieces(const hdf5_mapping *mapping, int64_t index, hdf5_pieces *out);
/* Cuts pieces so that they are disjoint (the later mapping wins) and, with gaps, cover the
 * shape. */
bool hdf5_pieces_partition(const hdf5_pieces *in, const int64_t *shape, hdf5_pieces *out);

/* Pieces in the order of their sources. */
typedef struct hdf5_sorted {
  const hdf5_mapping *mapping; /* NULL: a gap */
  int64_t piece;
} hdf5_sorted;

enum { HDF5_AT_ONCE = 256 }; /* files that are opened when the dataset is described */

/* Has it so many sources that they are only looked at when they are wanted? */
bool hdf5_late_wanted(const hdf5_dataset *dataset, const hdf5_sorted *sorted, int64_t count);
/* Tells the host of the pieces that are in other files as late parts, one for each file. Mappings
 * and pieces then belong to dataset->kept. */
tegula_status hdf5_late_emit(hdf5_dataset *dataset, const hdf5_place *outer,
                             const hdf5_sorted *sorted, int64_t count, tegula_error *err);

/* The virtual dataset, without its file; counted by what is late of it, under the lock of the
 * library. */
typedef struct hdf5_kept {
  int64_t references;
  hdf5_file file;
  hdf5_dataset dataset, array; /* array: the type of the one that is described */
  hdf5_ancestor *ancestors;    /* of a source: what it is a source of, innermost first */
  int ancestor_count;
} hdf5_kept;

/* Mappings and pieces become those of dataset->kept; once. */
bool hdf5_late_keep(hdf5_dataset *dataset);
void hdf5_kept_forget(hdf5_kept *kept);

/* Is it in the file of the dataset itself, or a gap? */
bool hdf5_sorted_here(const hdf5_sorted *sorted);
/* Tells the host of pieces, sorted by source. */
tegula_status hdf5_emit_sources(hdf5_dataset *dataset, const hdf5_pieces *pieces,
                                const hdf5_place *outer, const hdf5_sorted *sorted, int64_t count,
                                tegula_error *err);
/* Does the piece lie in the place? Its box of the array that is described. */
bool hdf5_piece_seen(const hdf5_dataset *dataset, const hdf5_pieces *pieces, int64_t index,
                     const hdf5_place *outer, hdf5_place *out);

#endif
