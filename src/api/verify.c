/* tegula_dataset_verify: is every file there, the one that was described, and readable to its last
 * byte? Goes on after a problem.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Files are looked at in groups: first all names of a group, in parallel, then the bytes of those
 * that are in order, many files at a time in one window. Bytes are read in the file's own order and
 * stay in the file's byte order: nothing is done but reading. Where a window fails, its files are
 * read again one by one, so that each one's problem is found. Of each file one problem is told. On
 * several ranks each looks at a share of a group's files, and reads a share of its bytes; at the
 * end of a group all are told what each found. */
#include <pthread.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/problems.h"
#include "dataset/scan.h"
#include "check/check.h"

enum {
  GROUP = 1024 /* files */,
  LEAST_AT_ONCE = 64 << 10 /* bytes, on ranks */,
  ASK = 4096 /* boxes that are passed over */
};

/* A tile of the window, and the file that it is read from. */
typedef struct piece {
  int64_t file;
  tegula__tile tile;
} piece;

typedef struct verify {
  tegula_dataset *dataset;
  const tegula__manifest *manifest;
  tegula__stream_call call;
  int64_t *order; /* parts by file; NULL: they are in that order already */
  tegula_verify_report report;
  tegula_problem_fn visit;
  void *visit_state;
  tegula_error first; /* problem of all */
  /* the group: files [group, group + GROUP); -1 alone is the file of a reader */
  int64_t group;
  bool bad[GROUP];
  int64_t most;            /* bytes that are read at once */
  int64_t position, share; /* of the group's bytes: those that were given out, those of each rank */
  pthread_mutex_t lock;    /* of what follows */
  tegula__problems problems;
  tegula_status stop; /* not OK: verifying itself failed, or was cancelled */
  tegula_error stop_error;
  /* the window */
  tegula__block window;
  int64_t used;   /* bytes */
  int64_t passed; /* boxes */
  piece *pieces;
  int64_t piece_count, piece_capacity;
  tegula__tile *tiles; /* of the pieces, as the engine takes them */
  int64_t tile_capacity;
  int64_t *vectors; /* per piece ndim lo, hi, strides */
  int64_t vector_capacity;
  int64_t *boxes; /* scratch for tegula__range_boxes */
} verify;

bool tegula__status_is_ours(tegula_status status) {
  switch (status) {
    case TEGULA_OUT_OF_MEMORY:
    case TEGULA_LIMIT_EXCEEDED:
    case TEGULA_CANCELLED:
    case TEGULA_TIMEOUT:
    case TEGULA_COMM:
    case TEGULA_PEER_FAILED:
    case TEGULA_INTERNAL:
      return true;
    default:
      return false;
  }
}

static tegula_comm *comm_of(const verify *v) { return v->dataset->context->comm; }

static void note(verify *v, int64_t file, bool bytes, const tegula_error *error) {
  tegula__problem problem = {.file = file, .bytes = bytes, .error = *error};
  if (comm_of(v)->size > 1) problem.error.rank = comm_of(v)->rank;
  pthread_mutex_lock(&v->lock);
  if (tegula__status_is_ours(error->status)) {
    v->stop = error->status;
    v->stop_error = *error;
  } else if (!tegula__problems_add(&v->problems, &problem)) {
    v->stop = tegula__out_of_memory(&v->stop_error, (int64_t)sizeof problem);
  } else if (file >= 0) {
    v->bad[file - v->group] = true;
  }
  pthread_mutex_unlock(&v->lock);
}

/* Tells the group's problems in the order of files. */
static void tell(verify *v) {
  tegula__problems_order(&v->problems);
  for (int64_t i = 0; i < v->problems.count; i++) {
    if (v->report.problems++ == 0) v->first = v->problems.items[i].error;
    if (v->visit != NULL) v->visit(v->visit_state, &v->problems.items[i].error);
  }
  v->problems.count = 0;
}

/* Are the next `bytes` of the group this rank's to read? */
static bool next_is_mine(verify *v, int64_t bytes) {
  int64_t at = v->position;
  v->position += bytes;
  return tegula__min(at / v->share, comm_of(v)->size - 1) == comm_of(v)->rank;
}

/* ---- names and sizes ---- */

/* The first file of the group that a rank looks at. */
static int64_t first_of(const verify *v, int32_t rank) {
  int64_t files = tegula__min(GROUP, v->manifest->file_count - v->group);
  return v->group + files * rank / comm_of(v)->size;
}

static void check_file(void *state, int32_t worker, int64_t item) {
  (void)worker;
  verify *v = state;
  tegula_error error;
  int64_t file = first_of(v, comm_of(v)->rank) + item;
  if (tegula__file_set_check(v->dataset->files, file, &v->call.tally->counts, &error) != TEGULA_OK)
    note(v, file, false, &error);
}

/* ---- bytes ---- */

static tegula_status move(verify *v, const piece *pieces, int64_t count, tegula_error *err) {
  int64_t ndim = v->manifest->ndim, bytes = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t *vectors = v->vectors + (&pieces[i] - v->pieces) * 3 * ndim;
    v->tiles[i] = pieces[i].tile;
    v->tiles[i].lo = vectors;
    v->tiles[i].hi = vectors + ndim;
    v->tiles[i].strides = vectors + 2 * ndim;
    bytes +=
        tegula__box_count((int32_t)ndim, vectors, vectors + ndim) * v->manifest->dtype.item_size;
  }
  FORWARD(tegula__stream_move(&v->call, v->dataset, v->tiles, count, bytes, err));
  v->report.bytes += bytes;
  return TEGULA_OK;
}

/* Each file of the window by itself. What was met first is told even if it does not come again. */
static void read_one_by_one(verify *v, const tegula_error *met) {
  for (int64_t first = 0, last; first < v->piece_count && v->stop == TEGULA_OK; first = last) {
    int64_t file = v->pieces[first].file;
    for (last = first + 1; last < v->piece_count && v->pieces[last].file == file;) last++;
    tegula_error error = *met;
    /* a reader's alone: it may not be asked again */
    bool is_met =
        file < 0 ? v->manifest->file_count == 0
                 : strncmp(met->path, v->manifest->files[file].path, sizeof met->path - 1) == 0;
    if (is_met || move(v, &v->pieces[first], last - first, &error) != TEGULA_OK)
      note(v, file, true, &error);
  }
}

/* Reads what the window is laid out for, and empties it. */
static void flush(verify *v) {
  tegula_error error;
  if (v->piece_count > 0 && v->stop == TEGULA_OK &&
      move(v, v->pieces, v->piece_count, &error) != TEGULA_OK) {
    if (tegula__status_is_ours(error.status))
      note(v, TEGULA__NO_FILE, true, &error);
    else
      read_one_by_one(v, &error);
  }
  v->used = 0;
  v->piece_count = 0;
}

/* The axes of a part from the slowest in the file to the fastest, all of them. */
static void axes_in_file_order(const tegula__part *part, int32_t ndim,
                               int32_t axes[TEGULA_MAX_DIMS]) {
  tegula__file_order order;
  tegula__file_order_of(part, ndim, part->lo, part->hi, &order);
  int32_t place = 0;
  for (int32_t k = 0; k < ndim; k++)
    if (part->hi[k] - part->lo[k] == 1) axes[place++] = k;
  for (int32_t i = 0; i < order.count; i++) axes[place++] = order.axes[i];
}

/* Room for `more` pieces. */
static bool reserve(verify *v, int64_t more) {
  int64_t count = v->piece_count + more;
  return tegula__vector_reserve((void **)&v->pieces, &v->piece_capacity, count,
                                sizeof *v->pieces) &&
         tegula__vector_reserve((void **)&v->tiles, &v->tile_capacity, count, sizeof *v->tiles) &&
         tegula__vector_reserve((void **)&v->vectors, &v->vector_capacity,
                                count * 3 * v->manifest->ndim + 1, sizeof *v->vectors);
}

/* Adds the elements [first, first + count) of a part, counted in the file's order, to the
 * window. */
static bool add_range(verify *v, const tegula__part *part, int64_t first, int64_t count) {
  int32_t ndim = v->manifest->ndim, axes[TEGULA_MAX_DIMS];
  int64_t shape[TEGULA_MAX_DIMS], extents[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
  axes_in_file_order(part, ndim, axes);
  for (int32_t i = 0; i < ndim; i++) shape[i] = part->hi[axes[i]] - part->lo[axes[i]];
  int32_t added = tegula__range_boxes(shape, ndim, first, count, v->boxes);
  RETURN_IF(!reserve(v, added), false);
  for (int32_t b = 0; b < added; b++) {
    const int64_t *lo = v->boxes + (int64_t)b * 2 * ndim, *hi = lo + ndim;
    int64_t *vectors = v->vectors + v->piece_count * 3 * ndim;
    for (int32_t i = 0; i < ndim; i++) extents[i] = hi[i] - lo[i];
    tegula__dense_strides(extents, ndim, v->manifest->dtype.item_size, 'C', strides);
    for (int32_t i = 0; i < ndim; i++) {
      vectors[axes[i]] = part->lo[axes[i]] + lo[i];
      vectors[ndim + axes[i]] = part->lo[axes[i]] + hi[i];
      vectors[2 * ndim + axes[i]] = strides[i];
    }
    v->pieces[v->piece_count++] =
        (piece){.file = tegula__part_file(part),
                .tile = {.data = v->window.data + v->used, .order = part->order}};
    v->used += tegula__box_count(ndim, lo, hi) * v->manifest->dtype.item_size;
  }
  return true;
}

static bool is_bad(const verify *v, int64_t file) { return file >= 0 && v->bad[file - v->group]; }

/* How many of the part's elements from `at` on go into the window: whole indices along the slowest
 * axis of the file, so that nothing is read twice, unless one of them is larger than a window. */
static int64_t share_of_window(const verify *v, const tegula__part *part, int64_t at,
                               int64_t elements) {
  int64_t item = v->manifest->dtype.item_size, size = tegula__max(v->most, item), slice = elements;
  /* on ranks all cut alike, whatever they have read */
  int64_t used = comm_of(v)->size > 1 ? 0 : v->used;
  tegula__file_order order;
  tegula__file_order_of(part, v->manifest->ndim, part->lo, part->hi, &order);
  if (order.count > 0) slice /= part->hi[order.axes[0]] - part->lo[order.axes[0]];
  int64_t room = tegula__min(elements - at, (size - used) / item);
  return slice > size / item ? room : room / slice * slice;
}

static void read_part(verify *v, const tegula__part *part) {
  int64_t elements = tegula__box_count(v->manifest->ndim, part->lo, part->hi);
  for (int64_t at = 0, some;
       at < elements && v->stop == TEGULA_OK && !is_bad(v, tegula__part_file(part)); at += some) {
    some = share_of_window(v, part, at, elements);
    int64_t bytes = some * v->manifest->dtype.item_size;
    if (comm_of(v)->size > 1) {
      if (!next_is_mine(v, bytes)) continue;
      if (bytes > (int64_t)v->window.mapped - v->used) flush(v);
    }
    if (some > 0 && !add_range(v, part, at, some))
      v->stop = tegula__out_of_memory(&v->stop_error, v->piece_count * (int64_t)sizeof *v->pieces);
    if (at + some < elements && comm_of(v)->size == 1) flush(v);
  }
}

/* ---- bytes in chunks: none is decoded twice ---- */

/* Bytes of a block of so many chunks, as far as the part goes. */
static int64_t block_bytes(const verify *v, const tegula__part *part, const int64_t *chunks) {
  int64_t bytes = v->manifest->dtype.item_size, most;
  for (int32_t k = 0; k < v->manifest->ndim; k++) {
    int64_t length = part->hi[k] - part->lo[k];
    bytes *= tegula__mul(chunks[k], part->chunk[k], &most) ? tegula__min(length, most) : length;
  }
  return bytes;
}

/* How many chunks along each axis go into a window together: at least one. */
static void choose_blocks(const verify *v, const tegula__part *part, const int64_t *first,
                          const int64_t *last, int64_t *chunks) {
  for (int32_t k = 0; k < v->manifest->ndim; k++) chunks[k] = last[k] - first[k];
  for (int32_t k = 0; k < v->manifest->ndim && block_bytes(v, part, chunks) > v->most; k++) {
    chunks[k] = 1;
    chunks[k] = tegula__max(1, v->most / tegula__max(1, block_bytes(v, part, chunks)));
  }
}

/* Adds the box [lo, hi) of a part to the window, after what was there if it has no room. */
static void add_box(verify *v, const tegula__part *part, const int64_t *lo, const int64_t *hi) {
  int64_t ndim = v->manifest->ndim, extents[TEGULA_MAX_DIMS],
          bytes = tegula__box_count((int32_t)ndim, lo, hi) * v->manifest->dtype.item_size;
  if (comm_of(v)->size > 1 && !next_is_mine(v, bytes)) return;
  if (bytes > (int64_t)v->window.mapped - v->used) flush(v);
  if (v->stop == TEGULA_OK && !reserve(v, 1))
    v->stop = tegula__out_of_memory(&v->stop_error, v->piece_count * (int64_t)sizeof *v->pieces);
  if (v->stop != TEGULA_OK || is_bad(v, tegula__part_file(part))) return;
  int64_t *vectors = v->vectors + v->piece_count * 3 * ndim;
  for (int64_t k = 0; k < ndim; k++) {
    vectors[k] = lo[k];
    vectors[ndim + k] = hi[k];
    extents[k] = hi[k] - lo[k];
  }
  tegula__dense_strides(extents, (int32_t)ndim, v->manifest->dtype.item_size, 'C',
                        vectors + 2 * ndim);
  v->pieces[v->piece_count++] =
      (piece){.file = tegula__part_file(part),
              .tile = {.data = v->window.data + v->used, .order = part->order}};
  v->used += bytes;
}

/* Where no bytes move, nobody else asks whether to go on. */
static void ask(verify *v) {
  const tegula_load_options *options = v->call.options;
  if (v->stop == TEGULA_OK && options->progress != NULL &&
      options->progress(options->progress_state, v->call.told, v->call.total) != 0)
    v->stop = tegula__fail(&v->stop_error, TEGULA_CANCELLED, NULL, -1,
                           "cancelled after %lld of %lld files", (long long)v->report.files,
                           (long long)v->manifest->file_count);
}

/* Passes over a box of which nothing is stored. */
static void pass_over(verify *v, const int64_t *lo, const int64_t *hi) {
  int64_t bytes = tegula__box_count(v->manifest->ndim, lo, hi) * v->manifest->dtype.item_size;
  if (comm_of(v)->size > 1 && !next_is_mine(v, bytes)) return;
  v->report.bytes += bytes;
  v->call.done += bytes;
  v->call.told = tegula__max(v->call.told, tegula__min(v->call.total, v->call.done));
  if (++v->passed % ASK == 0) ask(v);
}

/* In blocks of whole chunks, so that none lies in two windows. */
static void read_chunked(verify *v, const tegula__part *part) {
  int32_t ndim = v->manifest->ndim;
  int64_t first[TEGULA_MAX_DIMS], last[TEGULA_MAX_DIMS], chunks[TEGULA_MAX_DIMS],
      at[TEGULA_MAX_DIMS], end[TEGULA_MAX_DIMS];
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], unused[TEGULA_MAX_DIMS];
  tegula__part chunk;
  if (tegula__box_count(ndim, part->lo, part->hi) == 0) return;
  tegula__part_chunks(part, ndim, first, last);
  choose_blocks(v, part, first, last, chunks);
  for (int32_t k = 0; k < ndim; k++) at[k] = first[k];
  while (v->stop == TEGULA_OK && !is_bad(v, tegula__part_file(part))) {
    for (int32_t k = 0; k < ndim; k++) end[k] = tegula__min(chunks[k], last[k] - at[k]) + at[k] - 1;
    tegula__part_chunk(part, ndim, end, unused, hi, &chunk);
    tegula__part_chunk(part, ndim, at, lo, unused, &chunk);
    for (int32_t i = 0; i < ndim; i++) end[i]++;
    if (v->call.options->missing != TEGULA_MISSING_STRICT && tegula__part_bare(part, ndim, at, end))
      pass_over(v, lo, hi);
    else
      add_box(v, part, lo, hi);
    int32_t k = ndim - 1;
    for (; k >= 0; k--) {
      at[k] = end[k];
      if (at[k] < last[k]) break;
      at[k] = first[k];
    }
    if (k < 0) return;
  }
}

/* ---- all files ---- */

static const tegula__part *part_at(const verify *v, int64_t i) {
  return &v->manifest->parts[v->order != NULL ? v->order[i] : i];
}

static int compare_parts(const void *a, const void *b, void *state) {
  const tegula__part *parts = state;
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  int64_t first = tegula__part_file(&parts[i]), second = tegula__part_file(&parts[j]);
  if (first != second) return first < second ? -1 : 1;
  return (i > j) - (i < j);
}

static tegula_status order_parts(verify *v, tegula_error *err) {
  const tegula__manifest *manifest = v->manifest;
  bool sorted = true;
  for (int64_t i = 1; i < manifest->part_count; i++)
    sorted = sorted &&
             tegula__part_file(&manifest->parts[i - 1]) <= tegula__part_file(&manifest->parts[i]);
  if (sorted) return TEGULA_OK;
  v->order = tegula__realloc_array(NULL, manifest->part_count, sizeof *v->order);
  if (v->order == NULL)
    return tegula__out_of_memory(err, manifest->part_count * (int64_t)sizeof *v->order);
  for (int64_t i = 0; i < manifest->part_count; i++) v->order[i] = i;
  qsort_r(v->order, (size_t)manifest->part_count, sizeof *v->order, compare_parts, manifest->parts);
  return TEGULA_OK;
}

/* What is lost is a problem of its own, unless the caller takes the fill value instead. */
static void look_at_part(verify *v, const tegula__part *part, tegula_verify_level level) {
  v->report.chunks += tegula__part_contiguous(part) || part->kind == TEGULA__PART_READ;
  if (part->kind == TEGULA__PART_LOST && v->call.options->missing != TEGULA_MISSING_FILL) {
    if (comm_of(v)->rank == 0) note(v, TEGULA__NO_FILE, false, part->lost);
    return;
  }
  if (level != TEGULA_VERIFY_DECODE || v->stop != TEGULA_OK) return;
  if (part->kind == TEGULA__PART_CHUNKED)
    read_chunked(v, part);
  else
    read_part(v, part);
}

/* What each rank reads of the parts [first, last). */
static void divide(verify *v, int64_t first, int64_t last) {
  int64_t bytes = 0, size = comm_of(v)->size;
  for (int64_t i = first; i < last; i++) {
    const tegula__part *part = part_at(v, i);
    bytes +=
        tegula__box_count(v->manifest->ndim, part->lo, part->hi) * v->manifest->dtype.item_size;
  }
  v->position = 0;
  v->share = tegula__max(1, tegula__ceil_div(bytes, size));
  v->most = (int64_t)v->window.mapped;
  if (size > 1) v->most = tegula__min(v->most, tegula__max(LEAST_AT_ONCE, v->share / 4));
}

/* The end of a group: all ranks know what each found, or that one must stop. */
static void share(verify *v) {
  tegula_comm *comm = comm_of(v);
  if (comm->size == 1) return;
  v->stop = tegula__comm_agree(comm, v->stop, &v->stop_error);
  if (v->stop == TEGULA_OK) v->stop = tegula__problems_share(&v->problems, comm, &v->stop_error);
}

/* One group; *part is where its parts begin, and then where those of the next do. */
static void verify_group(verify *v, int64_t files, tegula_verify_level level, int64_t *part) {
  int64_t first = *part,
          mine = files > 0 ? first_of(v, comm_of(v)->rank + 1) - first_of(v, comm_of(v)->rank) : 0;
  memset(v->bad, 0, sizeof v->bad);
  /* opening waits for storage */
  if (mine > 0) tegula__pool_run_waiting(v->dataset->context->engine.pool, mine, check_file, v);
  v->report.files += files;
  while (*part < v->manifest->part_count && tegula__part_file(part_at(v, *part)) < v->group + files)
    ++*part;
  divide(v, first, *part);
  for (int64_t i = first; i < *part; i++) {
    int64_t begin = v->position;
    const tegula__part *next = part_at(v, i);
    look_at_part(v, next, level);
    v->position = begin + tegula__box_count(v->manifest->ndim, next->lo, next->hi) *
                              v->manifest->dtype.item_size;
  }
  flush(v);
  share(v);
  if (v->stop == TEGULA_OK) tell(v);
}

/* The window, for a level that reads: at least the largest chunk. */
static tegula_status make_window(verify *v, tegula_error *err) {
  int64_t bytes = tegula__max(tegula__min(v->call.total, TEGULA__STREAM_BYTES),
                              v->manifest->dtype.item_size),
          one[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < v->manifest->ndim; k++) one[k] = 1;
  for (int64_t i = 0; i < v->manifest->part_count; i++)
    if (v->manifest->parts[i].kind == TEGULA__PART_CHUNKED)
      bytes = tegula__max(bytes, block_bytes(v, &v->manifest->parts[i], one));
  FORWARD(tegula__memory_check(bytes, err));
  v->boxes = tegula__realloc_array(NULL, tegula__max(1, v->manifest->ndim),
                                   TEGULA__RANGE_BOXES * 2 * sizeof *v->boxes);
  return v->boxes != NULL ? tegula__block_create(bytes, &v->window, err)
                          : tegula__out_of_memory(err, TEGULA__RANGE_BOXES);
}

static tegula_status prepare(verify *v, tegula_verify_level level, tegula_error *err) {
  FORWARD(order_parts(v, err));
  for (int64_t i = 0; i < v->manifest->grid_count; i++)
    for (int64_t k = 0; k < v->manifest->grids[i]->count && !v->manifest->grids[i]->slices; k++)
      v->report.chunks += v->manifest->grids[i]->chunks[k].length != 0;
  return level == TEGULA_VERIFY_DECODE ? make_window(v, err) : TEGULA_OK;
}

static tegula_status go_through(verify *v, tegula_verify_level level, tegula_error *err) {
  int64_t part = 0, files = v->manifest->file_count;
  if (files == 0) verify_group(v, 0, level, &part); /* a reader */
  for (; v->group < files && v->stop == TEGULA_OK; v->group += GROUP) {
    if (v->group > 0) ask(v);
    verify_group(v, tegula__min(GROUP, files - v->group), level, &part);
  }
  if (v->stop == TEGULA_OK) ask(v);
  v->stop = tegula__comm_agree(comm_of(v), v->stop, &v->stop_error);
  if (v->stop == TEGULA_OK)
    v->stop =
        tegula__comm_reduce(comm_of(v), TEGULA_PLUGIN_SUM, &v->report.bytes, 1, &v->stop_error);
  if (v->stop != TEGULA_OK) {
    *err = v->stop_error;
    return v->stop;
  }
  if (v->report.problems == 0) return TEGULA_OK;
  *err = v->first;
  return v->first.status;
}

/* All that a rank does by itself first. A source that cannot be described is a problem: no group
 * has it, and what else is wrong is not looked for. */
static tegula_status describe(verify *v, tegula_verify_level level, tegula_dataset **view,
                              bool *source, tegula_error *err) {
  FORWARD(tegula__dataset_confirm(v->dataset, &v->call.tally->counts, err));
  tegula_status status =
      tegula__dataset_view_all(v->dataset, v->call.options, &v->call.tally->counts, view, err);
  *source = status != TEGULA_OK;
  if (status != TEGULA_OK) return status;
  v->manifest = &(*view)->manifest;
  return prepare(v, level, err);
}

static tegula_status verify_dataset(verify *v, tegula_verify_level level, tegula_error *err) {
  tegula_dataset *dataset = v->dataset, *view = NULL;
  tegula_error why = {.rank = -1};
  tegula__call call;
  tegula__call_init(&call, "tegula_dataset_verify");
  tegula__call_add(&call, "the level", "%d", (int)level);
  tegula__call_add(&call, "missing", "%u", v->call.options->missing);
  tegula__call_dataset(&call, dataset);
  bool source = false;
  tegula_status status = describe(v, level, &view, &source, &why);
  if (status == TEGULA_OK) tegula__call_view(&call, view);
  status = tegula__comm_agree_call(dataset->context->comm, &call, status, &why);
  if (status == TEGULA_OK) {
    v->dataset = view;
    status = go_through(v, level, &why);
    v->dataset = dataset;
  } else {
    v->problems.count = 0; /* all ranks tell the one that was agreed on */
    /* which may be of the calls: no report speaks of them */
    if (comm_of(v)->size > 1) source = status != TEGULA_MISMATCH;
    if (!tegula__status_is_ours(status) && source) note(v, TEGULA__NO_FILE, false, &why);
    tell(v);
  }
  tegula_dataset_close(view);
  if (status != TEGULA_OK) *err = why;
  return status;
}

static void release(verify *v) {
  tegula__block_free(&v->window);
  pthread_mutex_destroy(&v->lock);
  free(v->order);
  free(v->problems.items);
  free(v->pieces);
  free(v->tiles);
  free(v->vectors);
  free(v->boxes);
}

static tegula_status check_arguments(tegula_dataset *dataset, tegula_verify_level level,
                                     tegula_verify_report *report, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL, "the dataset is NULL");
  CHECK_ARGUMENT(level == TEGULA_VERIFY_SIZES || level == TEGULA_VERIFY_CHECKSUMS ||
                     level == TEGULA_VERIFY_DECODE,
                 "there is no such level");
  tegula_verify_report none = {0};
  return report == NULL ? TEGULA_OK
                        : tegula__info_copy(report, sizeof none, FIRST_VERIFY_REPORT, &none,
                                            "tegula_verify_report", err);
}

tegula_status tegula_dataset_verify(tegula_dataset *dataset, tegula_verify_level level,
                                    tegula_problem_fn visit, void *state,
                                    const tegula_load_options *options,
                                    tegula_verify_report *report, tegula_error *err) {
  tegula_load_options local;
  tegula__tally tally;
  tegula_op turn;
  tegula_error unwanted;
  tegula__news news;
  if (err == NULL) err = &unwanted;
  tegula_load_options_init(&local);
  tegula_status status = check_arguments(dataset, level, report, err);
  if (status == TEGULA_OK) status = tegula__load_options_copy(&local, options, err);
  if (status == TEGULA_OK) status = tegula__tally_start(&tally, local.statistics, err);
  if (status != TEGULA_OK)
    return dataset != NULL ? tegula__comm_agree(dataset->context->comm, status, err) : status;
  verify v = {
      .dataset = dataset, .manifest = &dataset->manifest, .visit = visit, .visit_state = state};
  v.call = (tegula__stream_call){.options = &local, .tally = &tally};
  if (level == TEGULA_VERIFY_DECODE) /* finish has checked it */
    tegula__shape_bytes(v.manifest->shape, v.manifest->ndim, v.manifest->dtype.item_size,
                        &v.call.total);
  pthread_mutex_init(&v.lock, NULL);
  tegula__news_begin(&news, dataset->context->comm, v.call.total, &local.progress,
                     &local.progress_state);
  tegula__queue_enter(dataset->context->queue, &turn, &(tegula__touch){.places = &dataset->places});
  status = verify_dataset(&v, level, err);
  tegula__queue_leave(&turn);
  release(&v);
  status = tegula__comm_agree(dataset->context->comm, status, err);
  tegula__news_end(&news, status);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_move));
  if (report != NULL)
    (void)tegula__info_copy(report, sizeof v.report, FIRST_VERIFY_REPORT, &v.report,
                            "tegula_verify_report", NULL);
  return status;
}
