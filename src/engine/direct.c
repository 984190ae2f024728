/* Direct steps: bytes between the file and their final place, without a copy in between.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each piece is a walk over runs that are contiguous in the file and in the tile's memory. The walks of all pieces are merged by offset
 * (plan/runs.c), so one vectored call reads whole rows of the file and scatters them over the tiles:
 *
 *   file row   [ tile 0 | tile 1 | tile 2 ] [ tile 0 | tile 1 | tile 2 ] ...     one preadv of up to 1024 runs
 *
 * Short gaps between wanted runs are read into waste memory (never written over: a write starts a new call instead). */
#include <stdlib.h>

#include "engine/engine_priv.h"

static tegula_status flush(tegula__batch *b, tegula__worker *worker, const tegula__doing *doing, tegula_error *err) {
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

static void append(tegula__batch *b, struct iovec *iov, char *data, int64_t size) {
  struct iovec *last = b->count > 0 ? &iov[b->count - 1] : NULL;
  if (last != NULL && (char *)last->iov_base + last->iov_len == data)
    last->iov_len += (size_t)size;
  else
    iov[b->count++] = (struct iovec){.iov_base = data, .iov_len = (size_t)size};
  b->end += size;
}

static tegula_status add_run(tegula__batch *b, tegula__worker *worker, const tegula__doing *doing, const tegula__run_walk *w, tegula_error *err) {
  int64_t gap = w->offset - b->end;
  if (!tegula__batch_takes(b, w->offset, doing->step->gap, TEGULA__IO_VECTORS)) {
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
    const tegula__piece *piece = &worker->pieces[i];
    tegula__run_start(&worker->walks[i], doing->part, doing->move->manifest->ndim, doing->item_size, piece);
    worker->heap[i] = i;
  }
  tegula__run_order(worker->walks, worker->heap, count);
  tegula__batch b = {0};
  while (count > 0) {
    FORWARD(add_run(&b, worker, doing, &worker->walks[worker->heap[0]], err));
    count = tegula__run_next(worker->walks, worker->heap, count);
  }
  FORWARD(flush(&b, worker, doing, err));
  worker->direct_bytes += doing->step->bytes;
  return TEGULA_OK;
}
