/* Direct steps: bytes between the file and their final place, without a copy in between.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each piece is a walk over runs that are contiguous in the file and in the tile's memory. The
 * walks of all pieces are merged by offset (plan/runs.c), so one request reads whole rows of the
 * file and scatters them over the tiles:
 *
 *   file row   [ tile 0 | tile 1 | tile 2 ] [ tile 0 | tile 1 | ...   one preadv of up to 1024 runs
 *
 * Short gaps between wanted runs are read into waste memory (never written over: a write starts a
 * new request instead). Requests that do not lie next to each other are handed over together. */
#include <stdlib.h>

#include "engine/engine_priv.h"

/* Requests that are collected to be moved together; the last one is still open for more runs. */
typedef struct group {
  tegula__batch open;
  int requests, depth; /* how many there are, the open one included, and at most */
  int used;            /* vectors of all requests */
} group;

static tegula_status flush(group *g, tegula__worker *worker, const tegula__doing *doing,
                           tegula_error *err) {
  int count = g->requests;
  g->requests = g->used = g->open.count = 0;
  return count > 0 ? tegula__lane_move(worker->lane, &doing->file, worker->requests, count, err)
                   : TEGULA_OK;
}

static void append(group *g, tegula__worker *worker, char *data, int64_t size) {
  tegula__request *open = &worker->requests[g->requests - 1];
  struct iovec *last = open->count > 0 ? &open->vectors[open->count - 1] : NULL;
  g->open.end += size;
  if (last != NULL && (char *)last->iov_base + last->iov_len == data) {
    last->iov_len += (size_t)size;
    return;
  }
  worker->iov[g->used++] = (struct iovec){.iov_base = data, .iov_len = (size_t)size};
  g->open.count = ++open->count;
}

/* The vectors hold the requests before and a whole new one. */
static tegula_status start_request(group *g, tegula__worker *worker, const tegula__doing *doing,
                                   int64_t offset, tegula_error *err) {
  if (g->requests == g->depth || g->used > TEGULA__IO_VECTORS)
    FORWARD(flush(g, worker, doing, err));
  worker->requests[g->requests++] =
      (tegula__request){.offset = offset, .vectors = &worker->iov[g->used]};
  g->open = (tegula__batch){.start = offset, .end = offset};
  return TEGULA_OK;
}

static tegula_status add_run(group *g, tegula__worker *worker, const tegula__doing *doing,
                             const tegula__run_walk *w, tegula_error *err) {
  int64_t gap = w->offset - g->open.end;
  if (!tegula__batch_takes(&g->open, w->offset, doing->step->gap, TEGULA__IO_VECTORS))
    FORWARD(start_request(g, worker, doing, w->offset, err));
  else if (gap > 0)
    append(g, worker, worker->waste, gap);
  append(g, worker, w->address, w->run);
  return TEGULA_OK;
}

static tegula_status prepare(tegula__worker *worker, tegula_error *err) {
  if (worker->iov == NULL) worker->iov = malloc(2 * TEGULA__IO_VECTORS * sizeof *worker->iov);
  if (worker->waste == NULL) worker->waste = malloc(TEGULA__GAP);
  if (worker->iov == NULL || worker->waste == NULL ||
      !tegula__vector_reserve((void **)&worker->walks, &worker->walk_capacity, worker->piece_count,
                              sizeof *worker->walks) ||
      !tegula__vector_reserve((void **)&worker->heap, &worker->heap_capacity, worker->piece_count,
                              sizeof *worker->heap))
    return tegula__out_of_memory(err, worker->piece_count * (int64_t)sizeof *worker->walks);
  return TEGULA_OK;
}

tegula_status tegula__direct_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula_error *err) {
  FORWARD(prepare(worker, err));
  int64_t count = worker->piece_count;
  for (int64_t i = 0; i < count; i++) {
    const tegula__piece *piece = &worker->pieces[i];
    tegula__run_start(&worker->walks[i], doing->part, doing->move->manifest->ndim, doing->item_size,
                      piece);
    worker->heap[i] = i;
  }
  tegula__run_order(worker->walks, worker->heap, count);
  group g = {.depth = tegula__lane_depth(worker->lane)};
  if (doing->head_size > 0) { /* in one request with what lies near */
    FORWARD(start_request(&g, worker, doing, 0, err));
    append(&g, worker, doing->head, (int64_t)doing->head_size);
  }
  while (count > 0) {
    FORWARD(add_run(&g, worker, doing, &worker->walks[worker->heap[0]], err));
    count = tegula__run_next(worker->walks, worker->heap, count);
  }
  FORWARD(flush(&g, worker, doing, err));
  worker->direct_bytes += doing->step->bytes;
  return TEGULA_OK;
}
