/* Direct steps: bytes between the file and their final place, without a copy in between.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each piece is a walk over runs that are contiguous in the file and in the tile's memory, in the file's order. A heap merges the walks
 * of all pieces by offset, so one vectored call reads whole rows of the file and scatters them over the tiles:
 *
 *   file row   [ tile 0 | tile 1 | tile 2 ] [ tile 0 | tile 1 | tile 2 ] ...     one preadv of up to 1024 runs
 *
 * Short gaps between wanted runs are read into waste memory (never written over: a write starts a new call instead). */
#include <stdlib.h>

#include "engine/engine_priv.h"

/* One piece on its way. `steps` has 4 numbers per outer axis, slowest first: length, index, file stride, memory stride. */
struct tegula__run_walk {
  int64_t offset; /* of the next run in the file */
  char *address;
  int64_t run; /* bytes */
  int32_t axes;
  struct {
    int64_t length, index, file, memory;
  } steps[TEGULA_MAX_DIMS];
};
typedef struct tegula__run_walk run_walk;

static void start(run_walk *w, const tegula__doing *doing, const tegula__piece *piece) {
  const tegula__part *part = doing->part;
  int32_t ndim = doing->move->manifest->ndim, inner;
  tegula__file_order order;
  tegula__file_order_of(part, ndim, piece->lo, piece->hi, &order);
  w->run = tegula__common_run(&order, part->strides, piece->tile->strides, piece->lo, piece->hi, doing->item_size, &inner);
  w->offset = tegula__part_offset(part, ndim, piece->lo);
  w->address = tegula__tile_address(piece->tile, ndim, piece->lo);
  w->axes = order.count - inner;
  for (int32_t i = 0; i < w->axes; i++) {
    int32_t k = order.axes[i];
    w->steps[i].length = piece->hi[k] - piece->lo[k];
    w->steps[i].index = 0;
    w->steps[i].file = part->strides[k];
    w->steps[i].memory = piece->tile->strides[k];
  }
}

/* To the next run; false after the last. */
static bool advance(run_walk *w) {
  for (int32_t i = w->axes - 1; i >= 0; i--) {
    if (++w->steps[i].index < w->steps[i].length) {
      w->offset += w->steps[i].file;
      w->address += w->steps[i].memory;
      return true;
    }
    w->offset -= (w->steps[i].length - 1) * w->steps[i].file;
    w->address -= (w->steps[i].length - 1) * w->steps[i].memory;
    w->steps[i].index = 0;
  }
  return false;
}

static void sift_down(const run_walk *walks, int64_t *heap, int64_t count, int64_t at) {
  for (;;) {
    int64_t least = at;
    for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
      if (walks[heap[child]].offset < walks[heap[least]].offset) least = child;
    if (least == at) return;
    int64_t held = heap[at];
    heap[at] = heap[least];
    heap[least] = held;
    at = least;
  }
}

/* The vectored call that is being put together. */
typedef struct batch {
  int64_t start, end; /* file range */
  int count;
} batch;

static tegula_status flush(batch *b, tegula__worker *worker, const tegula__doing *doing, tegula_error *err) {
  if (b->count == 0) return TEGULA_OK;
  int count = b->count;
  b->count = 0;
  if (count == 1) { /* the plain call is a little cheaper, and the common case */
    void *data = worker->iov[0].iov_base;
    size_t size = worker->iov[0].iov_len;
    return doing->move->writing ? tegula__io_write(doing->fd, doing->path, b->start, data, size, doing->move->counts, err)
                                : tegula__io_read(doing->fd, doing->path, b->start, data, size, doing->move->counts, err);
  }
  return doing->move->writing ? tegula__io_writev(doing->fd, doing->path, b->start, worker->iov, count, doing->move->counts, err)
                              : tegula__io_readv(doing->fd, doing->path, b->start, worker->iov, count, doing->move->counts, err);
}

static void append(batch *b, struct iovec *iov, char *data, int64_t size) {
  struct iovec *last = b->count > 0 ? &iov[b->count - 1] : NULL;
  if (last != NULL && (char *)last->iov_base + last->iov_len == data)
    last->iov_len += (size_t)size;
  else
    iov[b->count++] = (struct iovec){.iov_base = data, .iov_len = (size_t)size};
  b->end += size;
}

static tegula_status add_run(batch *b, tegula__worker *worker, const tegula__doing *doing, const run_walk *w, tegula_error *err) {
  int64_t gap = w->offset - b->end;
  bool joins = b->count > 0 && gap >= 0 && gap <= doing->step->gap && b->count + 2 <= TEGULA__IO_VECTORS;
  if (!joins) {
    FORWARD(flush(b, worker, doing, err));
    b->start = b->end = w->offset;
  } else if (gap > 0) {
    append(b, worker->iov, worker->waste, gap);
  }
  append(b, worker->iov, w->address, w->run);
  return TEGULA_OK;
}

static tegula_status prepare(tegula__worker *worker, tegula_error *err) {
  if (worker->iov == NULL) worker->iov = malloc(TEGULA__IO_VECTORS * sizeof *worker->iov);
  if (worker->waste == NULL) worker->waste = malloc(TEGULA__GAP);
  if (worker->iov == NULL || worker->waste == NULL ||
      !tegula__vector_reserve((void **)&worker->walks, &worker->walk_capacity, worker->piece_count, sizeof *worker->walks) ||
      !tegula__vector_reserve((void **)&worker->heap, &worker->heap_capacity, worker->piece_count, sizeof *worker->heap))
    return tegula__out_of_memory(err, worker->piece_count * (int64_t)sizeof *worker->walks);
  return TEGULA_OK;
}

tegula_status tegula__direct_step(tegula__worker *worker, const tegula__doing *doing, tegula_error *err) {
  FORWARD(prepare(worker, err));
  int64_t count = worker->piece_count;
  for (int64_t i = 0; i < count; i++) {
    start(&worker->walks[i], doing, &worker->pieces[i]);
    worker->heap[i] = i;
  }
  for (int64_t i = count / 2 - 1; i >= 0; i--) sift_down(worker->walks, worker->heap, count, i);
  batch b = {0};
  while (count > 0) {
    run_walk *w = &worker->walks[worker->heap[0]];
    FORWARD(add_run(&b, worker, doing, w, err));
    if (!advance(w)) worker->heap[0] = worker->heap[--count];
    sift_down(worker->walks, worker->heap, count, 0);
  }
  FORWARD(flush(&b, worker, doing, err));
  worker->direct_bytes += doing->step->bytes;
  return TEGULA_OK;
}
