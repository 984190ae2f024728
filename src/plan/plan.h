/* plan: cuts a manifest by the tiles that are wanted, into steps that each read (or write) one
 * range of one file once and feed all the tiles in it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A step is a box of one part, small enough to be shared out evenly and to be staged; steps are in
 * the order of files and offsets. Which tiles a step feeds is not stored: whoever runs it asks
 * tegula__targets_find again, so a plan stays small however many tiles there are. Nothing here
 * touches a file or the tiles' memory.
 *
 * Begin reading at plan.c; cut.c cuts dense bytes, cut_chunks.c chunks. storage.c and
 * copy_windows.c tell how a dataset is stored and which windows a copy of it needs. The folder
 * includes base and manifest. */
#ifndef TEGULA_PLAN_PLAN_H
#define TEGULA_PLAN_PLAN_H

#include "base/base.h"
#include "manifest/manifest.h"

/* ---- targets: the tiles of this rank, searchable along one axis ---- */

typedef struct tegula__targets {
  int32_t ndim;
  int64_t count;
  const tegula__tile *tiles;   /* borrowed */
  int32_t axis;                /* the one along which they overlap least */
  int64_t *sorted;             /* tile numbers by lo[axis] */
  int64_t *reach;              /* the largest hi[axis] among sorted[0..i] */
  int64_t first_row, last_row; /* of all tiles: [first_row, last_row) along axis 0 */
} tegula__targets;

tegula_status tegula__targets_create(int32_t ndim, const tegula__tile *tiles, int64_t count,
                                     tegula__targets *out, tegula_error *err);
void tegula__targets_free(tegula__targets *targets);
/* Tiles that may meet the box [lo, hi) are sorted[*first .. *last). */
void tegula__targets_find(const tegula__targets *targets, const int64_t *lo, const int64_t *hi,
                          int64_t *first, int64_t *last);

/* ---- how the file order of a box looks ---- */

/* The axes of a part from the slowest to the fastest in the file, those of length 1 in the box left
 * out. */
typedef struct tegula__file_order {
  int32_t count;
  int32_t axes[TEGULA_MAX_DIMS];
} tegula__file_order;

void tegula__file_order_of(const tegula__part *part, int32_t ndim, const int64_t *lo,
                           const int64_t *hi, tegula__file_order *out);

/* The largest gap that is worth reading. */
#define TEGULA__GAP ((int64_t)16 << 10)

/* How many of the innermost axes of `order` one read request spans (gaps up to `gap` included), and
 * the bytes from its first to behind its last element. */
int32_t tegula__read_unit(const tegula__file_order *order, const int64_t *strides,
                          const int64_t *lo, const int64_t *hi, uint32_t item_size, int64_t gap,
                          int64_t *span);

/* Bytes that lie next to each other both in the file and in the tile's memory, for the box of a
 * piece; `axes` gets how many of the innermost axes of `order` they span. Needs no gap and the same
 * order of axes. */
int64_t tegula__common_run(const tegula__file_order *order, const int64_t *file_strides,
                           const int64_t *memory_strides, const int64_t *lo, const int64_t *hi,
                           uint32_t item_size, int32_t *axes);

/* ---- in which ways parts are stored (storage.c) ---- */

#define TEGULA__WAYS 8

/* Parts in the same chunks and through the same filters, or dense with the same order of axes. */
typedef struct tegula__way {
  const tegula__part *part; /* the largest of them */
  double bytes;             /* of all of them */
  double largest;           /* of `part` */
} tegula__way;

/* Each way in which more than 1 / TEGULA__WAYS of the bytes are stored, and some others. */
typedef struct tegula__storage {
  tegula__way ways[TEGULA__WAYS];
  int32_t count; /* 0: nothing is stored, or all of it can be had in any boxes */
  double bytes;  /* of all ways */
} tegula__storage;

void tegula__storage_of(const tegula__manifest *manifest, tegula__storage *out);
/* Of the parts in chunks one of those that hold most; NULL: none is in chunks. */
const tegula__part *tegula__storage_in_chunks(const tegula__manifest *manifest);

/* ---- runs: what a direct step moves, in the file's order ---- */

/* The part of one tile that a step feeds. The vectors have ndim entries. */
typedef struct tegula__piece {
  const tegula__tile *tile;
  int64_t *lo, *hi;
} tegula__piece;

/* One piece on its way: the run it is at. `steps` has 4 numbers per outer axis, slowest first. */
typedef struct tegula__run_walk {
  int64_t offset; /* of the next run in the file */
  char *address;
  int64_t run; /* bytes */
  int32_t axes;
  struct {
    int64_t length, index, file, memory;
  } steps[TEGULA_MAX_DIMS];
} tegula__run_walk;

void tegula__run_start(tegula__run_walk *walk, const tegula__part *part, int32_t ndim,
                       uint32_t item_size, const tegula__piece *piece);
/* Makes `heap`, numbers of walks, a heap by offset: the next run is that of walk heap[0]. */
void tegula__run_order(const tegula__run_walk *walks, int64_t *heap, int64_t count);
/* Goes to the next run of all; returns how many walks are left. */
int64_t tegula__run_next(tegula__run_walk *walks, int64_t *heap, int64_t count);

/* The request that is being put together out of runs: a range of the file, and the number of
 * vectors that it is spread over. */
typedef struct tegula__batch {
  int64_t start, end;
  int count;
} tegula__batch;

/* Does a run at `offset` still go into it? A gap takes a vector of its own. */
static inline bool tegula__batch_takes(const tegula__batch *batch, int64_t offset,
                                       int64_t largest_gap, int vectors) {
  int64_t gap = offset - batch->end;
  return batch->count > 0 && gap >= 0 && gap <= largest_gap && batch->count + 2 <= vectors;
}

/* Address of the element at `index` in a tile's memory. */
static inline char *tegula__tile_address(const tegula__tile *tile, int32_t ndim,
                                         const int64_t *index) {
  char *address = tile->data;
  for (int32_t k = 0; k < ndim; k++) address += (index[k] - tile->lo[k]) * tile->strides[k];
  return address;
}

static inline int64_t tegula__part_offset(const tegula__part *part, int32_t ndim,
                                          const int64_t *index) {
  int64_t offset = part->offset;
  for (int32_t k = 0; k < ndim; k++) offset += (index[k] - part->lo[k]) * part->strides[k];
  return offset;
}

/* ---- the plan ---- */

typedef enum tegula__step_kind {
  TEGULA__STEP_DIRECT, /* bytes go straight between file and tiles */
  TEGULA__STEP_STAGED, /* bytes go through a staging slot */
  /* stored chunks that lie next to each other: read at once, decoded one by one */
  TEGULA__STEP_CHUNKS,
  TEGULA__STEP_FILL, /* nothing is stored: a box, or absent chunks */
  TEGULA__STEP_LOST,
  TEGULA__STEP_READ, /* the part's reader is called */
  /* writing: chunks are gathered and encoded, and go where the format finds a place for them */
  TEGULA__STEP_ENCODE
} tegula__step_kind;

/* A chunk that is wanted, by one part: where several parts share a grid, each has its own for the
 * same entry, one behind the other. */
typedef struct tegula__planned_chunk {
  int64_t part;
  int64_t number;             /* in C order among all chunks that the part meets */
  int64_t bytes;              /* wanted of it */
  const tegula__chunk *entry; /* NULL: absent */
} tegula__planned_chunk;

typedef struct tegula__step {
  tegula__step_kind kind;
  /* of several chunks the first one's: they are of one grid, and only CHUNKS may be of several
   * parts */
  int64_t part;
  /* steps of one file that follow each other have the same number; numbers count up from 0 */
  int64_t group;
  int64_t bytes; /* wanted */
  /* gaps in the file up to this size are read and thrown away rather than skipped with a new
   * request; 0 for writing */
  int64_t gap;
  /* the chunks of the plan that it is about (or takes a box out of); count 0: it is about the part
   * as it is */
  int64_t first, count;
  /* the box that is moved, unless it is about several chunks; owned by the plan */
  const int64_t *lo, *hi;
} tegula__step;

/* Is it about one box, not about several chunks? */
static inline bool tegula__step_has_box(const tegula__step *step) {
  return step->kind != TEGULA__STEP_CHUNKS && step->kind != TEGULA__STEP_ENCODE &&
         !(step->kind == TEGULA__STEP_FILL && step->count > 0);
}

typedef struct tegula__plan_limits {
  int32_t threads;
  int64_t staging_slot; /* most bytes that a staged step may hold */
  bool writing;         /* from tiles to file: gaps in the file may not be touched */
  /* blocks of the file system: steps begin and end at multiples in the file where they can; a power
   * of two, or 0: anywhere */
  int64_t align;
} tegula__plan_limits;

typedef struct tegula__plan {
  const tegula__manifest *manifest; /* borrowed */
  const tegula__targets *targets;   /* borrowed */
  tegula__step *steps;
  int64_t step_count, step_capacity;
  tegula__planned_chunk *chunks;
  int64_t chunk_count, chunk_capacity;
  int64_t group_count;
  int64_t bytes;  /* wanted by all steps */
  int64_t absent; /* chunks and parts among what is wanted that are not stored */
  int64_t *vectors;
  int64_t vector_count, vector_capacity;
} tegula__plan;

tegula_status tegula__plan_create(const tegula__manifest *manifest, const tegula__targets *targets,
                                  const tegula__plan_limits *limits, tegula__plan *out,
                                  tegula_error *err);
void tegula__plan_free(tegula__plan *plan);

/* What chunk `index` of the plan holds of its part: see tegula__part_chunk. */
void tegula__plan_chunk(const tegula__plan *plan, int64_t index, int64_t *lo, int64_t *hi,
                        tegula__part *out);
/* How many chunks of the plan from `index` on, below `end`, are of one entry: read and decoded
 * once. Absent ones count by themselves. */
int64_t tegula__plan_sharers(const tegula__plan *plan, int64_t index, int64_t end);
/* The dense bytes that a direct or staged step moves: the part, or a plain chunk of it as a part of
 * its own, described in `out`. */
typedef struct tegula__stored {
  tegula__part part;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
} tegula__stored;
const tegula__part *tegula__step_stored(const tegula__plan *plan, const tegula__step *step,
                                        tegula__stored *out);

/* ---- what a plan will do, without doing it ---- */

/* Read requests of the plan: adds to *total how many there are, and to reads[i] those that bring
 * bytes of tile i. `vectors`: how many places one request can scatter to. Of a reader, the calls of
 * its function are counted. */
tegula_status tegula__plan_requests(const tegula__plan *plan, int vectors, int64_t *reads,
                                    int64_t *total, tegula_error *err);

/* The tile [lo, hi) as a JSON object: box, rank, the rows of each file that it comes from, bytes,
 * reads. False on lack of memory. */
bool tegula__plan_explain_tile(const tegula__manifest *manifest, const int64_t *lo,
                               const int64_t *hi, int32_t rank, int64_t reads, tegula__buffer *out);

#endif
