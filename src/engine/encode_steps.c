/* Encode steps: chunks are gathered from the tiles, encoded by all workers at once, and written
 * where the format finds a place for them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Places are found in the order of the array, so the file does not depend on who was faster. A step
 * that is encoded waits in a ring until all before it have their places; whoever completes the next
 * one in order finds places for all that are ready behind it, and writes them. The ring bounds
 * memory: a step begins only when it has a slot.
 *
 *   steps   ... written | placed, being written | encoded, waiting | being encoded | not begun ...
 *               ^ base                          ^ next                       ^ base + slots */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_priv.h"

enum { STEPS_AT_ONCE = 64 };

typedef enum slot_state { FREE, BUSY, READY, WRITTEN } slot_state;

typedef struct slot {
  slot_state state;
  const tegula__step *step;
  tegula__block block; /* room for all encoded chunks of a step */
  tegula__encoded *chunks;
  int64_t count;
} slot;

struct tegula__ring {
  pthread_mutex_t lock;
  pthread_cond_t moved;
  int64_t count; /* slots */
  int64_t bytes; /* of a slot */
  int64_t most;  /* chunks of a step */
  int64_t base;  /* the first step that is not yet written */
  int64_t next;  /* the first step without places */
  int64_t end;   /* steps from here on are given up */
  bool placing;  /* somebody asks for places */
  slot *slots;
};

/* The largest room that a step needs, and the most chunks. */
static tegula_status measure(const tegula__plan *plan, tegula__ring *ring, tegula_error *err) {
  for (int64_t i = 0; i < plan->step_count; i++) {
    const tegula__step *step = &plan->steps[i];
    if (step->kind != TEGULA__STEP_ENCODE)
      return tegula__fail(err, TEGULA_INTERNAL, NULL, -1,
                          "chunks and other parts are written at once");
    const tegula__grid *grid = plan->manifest->parts[step->part].grid;
    int64_t bytes,
        bound = tegula__encode_bound(grid->filters, grid->filter_count, grid->chunk_bytes);
    if (!tegula__mul(bound, step->count, &bytes)) return tegula__out_of_memory(err, INT64_MAX);
    ring->bytes = tegula__max(ring->bytes, bytes);
    ring->most = tegula__max(ring->most, step->count);
  }
  return TEGULA_OK;
}

tegula_status tegula__ring_create(const tegula__engine *engine, const tegula__plan *plan,
                                  tegula__ring **out, tegula_error *err) {
  *out = NULL;
  if (plan->step_count == 0 || plan->steps[0].kind != TEGULA__STEP_ENCODE) return TEGULA_OK;
  tegula__ring *ring = calloc(1, sizeof *ring);
  if (ring == NULL) return tegula__out_of_memory(err, sizeof *ring);
  pthread_mutex_init(&ring->lock, NULL);
  pthread_cond_init(&ring->moved, NULL);
  *out = ring;
  FORWARD(measure(plan, ring, err));
  int64_t threads = tegula__pool_threads(engine->pool),
          fit = tegula__staging_budget(engine->staging) / tegula__max(1, ring->bytes);
  ring->count = tegula__min(plan->step_count, tegula__max(threads, tegula__min(4 * threads, fit)));
  ring->end = INT64_MAX;
  ring->slots = calloc((size_t)ring->count, sizeof *ring->slots);
  if (ring->slots == NULL)
    return tegula__out_of_memory(err, ring->count * (int64_t)sizeof *ring->slots);
  for (int64_t i = 0; i < ring->count; i++) {
    ring->slots[i].chunks = tegula__realloc_array(NULL, ring->most, sizeof *ring->slots[i].chunks);
    if (ring->slots[i].chunks == NULL)
      return tegula__out_of_memory(err, ring->most * (int64_t)sizeof *ring->slots[i].chunks);
  }
  return TEGULA_OK;
}

void tegula__ring_destroy(tegula__ring *ring) {
  if (ring == NULL) return;
  for (int64_t i = 0; ring->slots != NULL && i < ring->count; i++) {
    tegula__block_free(&ring->slots[i].block);
    free(ring->slots[i].chunks);
  }
  free(ring->slots);
  pthread_cond_destroy(&ring->moved);
  pthread_mutex_destroy(&ring->lock);
  free(ring);
}

void tegula__ring_stop(tegula__ring *ring, int64_t step) {
  pthread_mutex_lock(&ring->lock);
  ring->end = tegula__min(ring->end, step);
  pthread_cond_broadcast(&ring->moved);
  pthread_mutex_unlock(&ring->lock);
}

/* ---- in: one step ---- */

/* A chunk of the part: what the array has of it. */
typedef struct chunk {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  tegula__part piece; /* offset and strides in the chunk */
} chunk;

static tegula_status check_whole(const tegula__worker *worker, const tegula__doing *doing,
                                 const chunk *c, tegula_error *err) {
  int32_t ndim = doing->move->manifest->ndim;
  int64_t there = 0, wanted = tegula__box_count(ndim, c->lo, c->hi);
  for (int64_t i = 0; i < worker->piece_count; i++)
    there += tegula__box_count(ndim, worker->pieces[i].lo, worker->pieces[i].hi);
  if (there == wanted) return TEGULA_OK;
  char place[TEGULA__SHAPE_TEXT];
  tegula__shape_format(c->lo, ndim, place);
  return tegula__fail(
      err, TEGULA_INVALID_ARGUMENT, doing->file.path, -1,
      "the chunk at %s of \"%.500s\" is given in part only: %lld of its %lld elements", place,
      doing->file.path, (long long)there, (long long)wanted);
}

/* The whole chunk in `out`; zeros where it goes beyond the array. */
static void gather(const tegula__worker *worker, const tegula__doing *doing, const chunk *c,
                   char *out) {
  int64_t bytes = doing->part->grid->chunk_bytes;
  if (tegula__box_count(doing->move->manifest->ndim, c->lo, c->hi) * doing->item_size < bytes)
    memset(out, 0, (size_t)bytes);
  for (int64_t i = 0; i < worker->piece_count; i++)
    tegula__copy_piece(doing, c->lo, c->piece.strides, out + c->piece.offset, &worker->pieces[i]);
}

static tegula_status encode(tegula__worker *worker, const tegula__doing *doing, const char *from,
                            char *out, tegula__encoded *to, tegula_error *err) {
  const tegula__grid *grid = doing->part->grid;
  int64_t room = tegula__encode_bound(grid->filters, grid->filter_count, grid->chunk_bytes);
  size_t size = 0;
  if (worker->encoder == NULL) worker->encoder = tegula__encoder_create(doing->engine->kernels);
  if (worker->encoder == NULL) return tegula__out_of_memory(err, grid->chunk_bytes);
  tegula_error why;
  tegula_status status =
      tegula__encode(worker->encoder, grid->filters, grid->filter_count, from,
                     (size_t)grid->chunk_bytes, out, (size_t)room, &size, &to->mask, &why);
  if (status == TEGULA_OK && size > UINT32_MAX)
    status = tegula__fail(&why, TEGULA_LIMIT_EXCEEDED, NULL, -1,
                          "%zu bytes are more than a chunk can have", size);
  to->length = (uint32_t)size;
  if (status == TEGULA_OK) return TEGULA_OK;
  return tegula__fail(err, status, doing->file.path, -1,
                      "could not encode a chunk of \"%s\": %.300s", doing->file.path, why.message);
}

tegula_status tegula__encode_chunk(tegula__worker *worker, const tegula__doing *doing, char *out,
                                   tegula__encoded *to, tegula_error *err) {
  const tegula__grid *grid = doing->part->grid;
  chunk c;
  tegula__plan_chunk(doing->plan, to->chunk, c.lo, c.hi, &c.piece);
  FORWARD(tegula__find_pieces(worker, doing, c.lo, c.hi, err));
  FORWARD(check_whole(worker, doing, &c, err));
  to->data = out;
  if (grid->filter_count == 0) {
    gather(worker, doing, &c, out);
    to->length = (uint32_t)grid->chunk_bytes;
    to->mask = 0;
    return TEGULA_OK;
  }
  const char *from = tegula__as_stored(worker, doing, &c.piece);
  if (from == NULL) {
    if ((int64_t)worker->gathered.mapped < grid->chunk_bytes) {
      tegula__block_free(&worker->gathered);
      FORWARD(tegula__block_create(grid->chunk_bytes, &worker->gathered, err));
    }
    gather(worker, doing, &c, worker->gathered.data);
    from = worker->gathered.data;
  }
  return encode(worker, doing, from, out, to, err);
}

static tegula_status fill_slot(tegula__worker *worker, const tegula__doing *doing,
                               const tegula__ring *ring, slot *s, tegula_error *err) {
  if (s->block.data == NULL) FORWARD(tegula__block_create(ring->bytes, &s->block, err));
  char *out = s->block.data;
  s->step = doing->step;
  s->count = doing->step->count;
  for (int64_t i = 0; i < s->count; i++) {
    s->chunks[i].chunk = doing->step->first + i;
    FORWARD(tegula__encode_chunk(worker, doing, out, &s->chunks[i], err));
    out += s->chunks[i].length;
  }
  worker->staged_bytes += doing->step->bytes;
  return TEGULA_OK;
}

/* ---- out: places in order, then bytes ---- */

static tegula_status find_places(const tegula__doing *doing, slot *s, tegula_error *err) {
  const tegula__manifest *manifest = doing->move->manifest;
  const tegula__part *part = &manifest->parts[s->step->part];
  int64_t at[TEGULA_MAX_DIMS], first[TEGULA_MAX_DIMS], last[TEGULA_MAX_DIMS];
  tegula__part_chunks(part, manifest->ndim, first, last);
  for (int64_t i = 0; i < s->count; i++) {
    int64_t number = doing->plan->chunks[s->chunks[i].chunk].number;
    for (int32_t k = manifest->ndim - 1; k >= 0; k--) {
      at[k] = first[k] + number % (last[k] - first[k]);
      number /= last[k] - first[k];
    }
    const tegula__placer *placer = doing->move->placer;
    FORWARD(placer->find(placer->state, s->step->part, at, s->chunks[i].length, s->chunks[i].mask,
                         &s->chunks[i].offset, err));
  }
  return TEGULA_OK;
}

/* Chunks that follow each other in the file go in one request. */
static tegula_status write_chunks(tegula__worker *worker, const tegula__encoded *chunks,
                                  int64_t count, const tegula__io_file *file, tegula_error *err) {
  struct iovec vectors[TEGULA__IO_DEPTH];
  for (int64_t i = 0; i < count;) {
    int used = 0;
    uint64_t start = chunks[i].offset, end = start;
    for (; i < count && used < TEGULA__IO_DEPTH && chunks[i].offset == end; i++) {
      vectors[used++] = (struct iovec){.iov_base = (void *)(uintptr_t)chunks[i].data,
                                       .iov_len = chunks[i].length};
      end += chunks[i].length;
    }
    worker->requests[0] =
        (tegula__request){.offset = (int64_t)start, .vectors = vectors, .count = used};
    FORWARD(tegula__lane_move(worker->lane, file, worker->requests, 1, err));
  }
  return TEGULA_OK;
}

tegula_status tegula__encoded_write(tegula__worker *worker, const tegula__move *move, int64_t part,
                                    const tegula__encoded *chunks, int64_t count,
                                    tegula_error *err) {
  tegula__io_file file = {
      .index = move->manifest->parts[part].grid->file, .writing = true, .counts = move->counts};
  file.path = move->manifest->files[file.index].path;
  FORWARD(tegula__file_set_acquire(move->files, file.index, move->counts, &file.fd, err));
  tegula_status status = write_chunks(worker, chunks, count, &file, err);
  tegula__file_set_release(move->files, file.index);
  return status;
}

static tegula_status open_and_write(tegula__worker *worker, const tegula__doing *doing,
                                    const slot *s, tegula_error *err) {
  return tegula__encoded_write(worker, doing->move, s->step->part, s->chunks, s->count, err);
}

static slot *slot_of(const tegula__ring *ring, int64_t step) {
  return &ring->slots[step % ring->count];
}

/* With the lock, and given back with it: places for [first, last), then their bytes. Where a place
 * is not found, what is before it is written all the same: the error of the lowest step is the one
 * that is told, whoever was faster. */
static tegula_status place_and_write(tegula__worker *worker, const tegula__doing *doing,
                                     tegula__ring *ring, int64_t last, int64_t *item,
                                     tegula_error *err) {
  int64_t first = ring->next, placed = first, written = first;
  tegula_status status = TEGULA_OK, write_status = TEGULA_OK;
  tegula_error write_error;
  ring->placing = true;
  pthread_mutex_unlock(&ring->lock);
  while (placed < last && (status = find_places(doing, slot_of(ring, placed), err)) == TEGULA_OK)
    placed++;
  pthread_mutex_lock(&ring->lock);
  ring->placing = false;
  ring->next = placed;
  if (status != TEGULA_OK) ring->end = tegula__min(ring->end, placed);
  pthread_mutex_unlock(&ring->lock);
  while (written < placed && (write_status = open_and_write(worker, doing, slot_of(ring, written),
                                                            &write_error)) == TEGULA_OK)
    written++;
  if (write_status != TEGULA_OK) {
    status = write_status;
    if (err != NULL) *err = write_error;
  }
  pthread_mutex_lock(&ring->lock);
  if (status != TEGULA_OK) {
    *item = written;
    ring->end = tegula__min(ring->end, written);
  } else {
    for (int64_t i = first; i < last; i++) slot_of(ring, i)->state = WRITTEN;
    for (; slot_of(ring, ring->base)->state == WRITTEN && ring->base < ring->next; ring->base++)
      slot_of(ring, ring->base)->state = FREE;
  }
  pthread_cond_broadcast(&ring->moved);
  return status;
}

static tegula_status write_ready(tegula__worker *worker, const tegula__doing *doing,
                                 tegula__ring *ring, int64_t *item, tegula_error *err) {
  tegula_status status = TEGULA_OK;
  pthread_mutex_lock(&ring->lock);
  while (status == TEGULA_OK && !ring->placing) {
    int64_t last = ring->next,
            most = tegula__min(ring->base + ring->count, ring->next + STEPS_AT_ONCE);
    while (last < tegula__min(most, ring->end) && slot_of(ring, last)->state == READY) last++;
    if (last == ring->next) break;
    status = place_and_write(worker, doing, ring, last, item, err);
  }
  pthread_mutex_unlock(&ring->lock);
  return status;
}

/* Waits for its slot; false: the step is given up. */
static bool enter(tegula__ring *ring, int64_t step) {
  pthread_mutex_lock(&ring->lock);
  while (step < ring->end && step >= ring->base + ring->count)
    pthread_cond_wait(&ring->moved, &ring->lock);
  bool wanted = step < ring->end;
  if (wanted) slot_of(ring, step)->state = BUSY;
  pthread_mutex_unlock(&ring->lock);
  return wanted;
}

tegula_status tegula__encode_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula__ring *ring, int64_t *item, tegula_error *err) {
  if (!enter(ring, *item)) return TEGULA_OK;
  slot *s = slot_of(ring, *item);
  FORWARD(fill_slot(worker, doing, ring, s, err)); /* whoever runs the step stops the ring */
  pthread_mutex_lock(&ring->lock);
  s->state = READY;
  pthread_mutex_unlock(&ring->lock);
  return write_ready(worker, doing, ring, item, err);
}
