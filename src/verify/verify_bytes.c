/* The bytes of files that are verified: read in windows, decoded where they are in chunks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/verify_priv.h"

tegula_comm *tegula__verify_comm(const tegula__verify *v) { return v->dataset->context->comm; }

void tegula__verify_note(tegula__verify *v, int64_t file, bool bytes, const tegula_error *error) {
  tegula__problem problem = {.file = file, .bytes = bytes, .error = *error};
  if (tegula__verify_comm(v)->size > 1) problem.error.rank = tegula__verify_comm(v)->rank;
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

/* Are the next `bytes` of the group this rank's to read? */
static bool next_is_mine(tegula__verify *v, int64_t bytes) {
  int64_t at = v->position;
  v->position += bytes;
  return tegula__min(at / v->share, tegula__verify_comm(v)->size - 1) ==
         tegula__verify_comm(v)->rank;
}

static tegula_status move(tegula__verify *v, const tegula__verify_piece *pieces, int64_t count,
                          tegula_error *err) {
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
static void read_one_by_one(tegula__verify *v, const tegula_error *met) {
  for (int64_t first = 0, last; first < v->piece_count && v->stop == TEGULA_OK; first = last) {
    int64_t file = v->pieces[first].file;
    for (last = first + 1; last < v->piece_count && v->pieces[last].file == file;) last++;
    tegula_error error = *met;
    /* a reader's alone: it may not be asked again */
    bool is_met =
        file < 0 ? v->manifest->file_count == 0
                 : strncmp(met->path, v->manifest->files[file].path, sizeof met->path - 1) == 0;
    if (is_met || move(v, &v->pieces[first], last - first, &error) != TEGULA_OK)
      tegula__verify_note(v, file, true, &error);
  }
}

void tegula__verify_flush(tegula__verify *v) {
  tegula_error error;
  if (v->piece_count > 0 && v->stop == TEGULA_OK &&
      move(v, v->pieces, v->piece_count, &error) != TEGULA_OK) {
    if (tegula__status_is_ours(error.status))
      tegula__verify_note(v, TEGULA__NO_FILE, true, &error);
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
static bool reserve(tegula__verify *v, int64_t more) {
  int64_t count = v->piece_count + more;
  return tegula__vector_reserve((void **)&v->pieces, &v->piece_capacity, count,
                                sizeof *v->pieces) &&
         tegula__vector_reserve((void **)&v->tiles, &v->tile_capacity, count, sizeof *v->tiles) &&
         tegula__vector_reserve((void **)&v->vectors, &v->vector_capacity,
                                count * 3 * v->manifest->ndim + 1, sizeof *v->vectors);
}

/* Adds the elements [first, first + count) of a part, counted in the file's order, to the
 * window. */
static bool add_range(tegula__verify *v, const tegula__part *part, int64_t first, int64_t count) {
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
        (tegula__verify_piece){.file = tegula__part_file(part),
                               .tile = {.data = v->window.data + v->used, .order = part->order}};
    v->used += tegula__box_count(ndim, lo, hi) * v->manifest->dtype.item_size;
  }
  return true;
}

static bool is_bad(const tegula__verify *v, int64_t file) {
  return file >= 0 && v->bad[file - v->group];
}

/* How many of the part's elements from `at` on go into the window: whole indices along the slowest
 * axis of the file, so that nothing is read twice, unless one of them is larger than a window. */
static int64_t share_of_window(const tegula__verify *v, const tegula__part *part, int64_t at,
                               int64_t elements) {
  int64_t item = v->manifest->dtype.item_size, size = tegula__max(v->most, item), slice = elements;
  /* on ranks all cut alike, whatever they have read */
  int64_t used = tegula__verify_comm(v)->size > 1 ? 0 : v->used;
  tegula__file_order order;
  tegula__file_order_of(part, v->manifest->ndim, part->lo, part->hi, &order);
  if (order.count > 0) slice /= part->hi[order.axes[0]] - part->lo[order.axes[0]];
  int64_t room = tegula__min(elements - at, (size - used) / item);
  return slice > size / item ? room : room / slice * slice;
}

void tegula__verify_read_part(tegula__verify *v, const tegula__part *part) {
  int64_t elements = tegula__box_count(v->manifest->ndim, part->lo, part->hi);
  for (int64_t at = 0, some;
       at < elements && v->stop == TEGULA_OK && !is_bad(v, tegula__part_file(part)); at += some) {
    some = share_of_window(v, part, at, elements);
    int64_t bytes = some * v->manifest->dtype.item_size;
    if (tegula__verify_comm(v)->size > 1) {
      if (!next_is_mine(v, bytes)) continue;
      if (bytes > (int64_t)v->window.mapped - v->used) tegula__verify_flush(v);
    }
    if (some > 0 && !add_range(v, part, at, some))
      v->stop = tegula__out_of_memory(&v->stop_error, v->piece_count * (int64_t)sizeof *v->pieces);
    if (at + some < elements && tegula__verify_comm(v)->size == 1) tegula__verify_flush(v);
  }
}

int64_t tegula__verify_block_bytes(const tegula__verify *v, const tegula__part *part,
                                   const int64_t *chunks) {
  int64_t bytes = v->manifest->dtype.item_size, most;
  for (int32_t k = 0; k < v->manifest->ndim; k++) {
    int64_t length = part->hi[k] - part->lo[k];
    bytes *= tegula__mul(chunks[k], tegula__part_chunk_length(part, k), &most)
                 ? tegula__min(length, most)
                 : length;
  }
  return bytes;
}

/* How many chunks along each axis go into a window together: at least one. */
static void choose_blocks(const tegula__verify *v, const tegula__part *part, const int64_t *first,
                          const int64_t *last, int64_t *chunks) {
  for (int32_t k = 0; k < v->manifest->ndim; k++) chunks[k] = last[k] - first[k];
  for (int32_t k = 0;
       k < v->manifest->ndim && tegula__verify_block_bytes(v, part, chunks) > v->most; k++) {
    chunks[k] = 1;
    chunks[k] =
        tegula__max(1, v->most / tegula__max(1, tegula__verify_block_bytes(v, part, chunks)));
  }
}

/* Adds the box [lo, hi) of a part to the window, after what was there if it has no room. */
static void add_box(tegula__verify *v, const tegula__part *part, const int64_t *lo,
                    const int64_t *hi) {
  int64_t ndim = v->manifest->ndim, extents[TEGULA_MAX_DIMS],
          bytes = tegula__box_count((int32_t)ndim, lo, hi) * v->manifest->dtype.item_size;
  if (tegula__verify_comm(v)->size > 1 && !next_is_mine(v, bytes)) return;
  if (bytes > (int64_t)v->window.mapped - v->used) tegula__verify_flush(v);
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
      (tegula__verify_piece){.file = tegula__part_file(part),
                             .tile = {.data = v->window.data + v->used, .order = part->order}};
  v->used += bytes;
}

void tegula__verify_ask(tegula__verify *v) {
  const tegula_load_options *options = v->call.options;
  if (v->stop == TEGULA_OK && options->progress != NULL &&
      options->progress(options->progress_state, v->call.told, v->call.total) != 0)
    v->stop = tegula__fail(&v->stop_error, TEGULA_CANCELLED, NULL, -1,
                           "cancelled after %lld of %lld files", (long long)v->report.files,
                           (long long)v->manifest->file_count);
}

/* Passes over a box of which nothing is stored. */
static void pass_over(tegula__verify *v, const int64_t *lo, const int64_t *hi) {
  int64_t bytes = tegula__box_count(v->manifest->ndim, lo, hi) * v->manifest->dtype.item_size;
  if (tegula__verify_comm(v)->size > 1 && !next_is_mine(v, bytes)) return;
  v->report.bytes += bytes;
  v->call.done += bytes;
  v->call.told = tegula__max(v->call.told, tegula__min(v->call.total, v->call.done));
  if (++v->passed % ASK == 0) tegula__verify_ask(v);
}

void tegula__verify_read_chunked(tegula__verify *v, const tegula__part *part) {
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
