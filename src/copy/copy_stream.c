/* Windows of a copy: the next one is read while one is written.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "copy/copy.h"

#define USUAL_MEMORY ((int64_t)256 << 20)

int tegula__copying_progress(void *state, int64_t bytes_done, int64_t bytes_total) {
  tegula__copying *c = state;
  (void)bytes_total;
  pthread_mutex_lock(&c->lock);
  c->told = tegula__max(c->told, c->done + bytes_done);
  int stop = c->progress != NULL ? c->progress(c->progress_state, c->told, c->total) : 0;
  pthread_mutex_unlock(&c->lock);
  return stop;
}

/* What is read ahead has no progress of its own. */
static int reading_progress(void *state, int64_t bytes_done, int64_t bytes_total) {
  tegula__copying *c = state;
  (void)bytes_done;
  (void)bytes_total;
  pthread_mutex_lock(&c->lock);
  int stop = c->progress != NULL ? c->progress(c->progress_state, c->told, c->total) : 0;
  pthread_mutex_unlock(&c->lock);
  return stop;
}

struct tegula__copy_reading {
  tegula_op op; /* first: the queue knows this part only */
  tegula__copying *copying;
  tegula_load_options options;
  tegula__tile tile;
  int64_t bytes;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
};

typedef tegula__copy_reading reading;

static tegula_status run_reading(tegula_op *op, tegula_error *err) {
  reading *r = (reading *)op;
  return tegula__dataset_move(r->copying->dataset, &r->tile, 1, &r->options, &r->copying->reading,
                              err);
}

static void release_reading(tegula_op *op) { free(op); }

/* Of several ranks each has its turn. */
static bool next_window(tegula__copying *c) {
  const tegula_comm *comm = c->dataset->context->comm;
  while (tegula__windows_next(&c->windows))
    if (c->turn++ % comm->size == comm->rank) return true;
  return false;
}

tegula_status tegula__copying_read(tegula__copying *c, reading **out, tegula_error *err) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  int32_t ndim = manifest->ndim;
  int64_t extents[TEGULA_MAX_DIMS];
  *out = NULL;
  if (!next_window(c)) return TEGULA_OK;
  reading *r = calloc(1, sizeof *r);
  if (r == NULL) return tegula__out_of_memory(err, sizeof *r);
  r->op.run = run_reading;
  r->op.release = release_reading;
  r->copying = c;
  tegula_load_options_init(&r->options);
  r->options.missing = c->options.missing;
  r->options.progress = reading_progress;
  r->options.progress_state = c;
  tegula__queue_watch(&r->op, &r->options.progress, &r->options.progress_state);
  for (int32_t k = 0; k < ndim; k++) {
    r->lo[k] = c->windows.lo[k];
    r->hi[k] = c->windows.hi[k];
    extents[k] = r->hi[k] - r->lo[k];
  }
  tegula__dense_strides(extents, ndim, manifest->dtype.item_size, 'C', r->strides);
  r->bytes = tegula__box_count(ndim, r->lo, r->hi) * manifest->dtype.item_size;
  r->tile = (tegula__tile){.lo = r->lo,
                           .hi = r->hi,
                           .strides = r->strides,
                           .data = c->blocks[c->report.windows++ % 2].data,
                           .order = manifest->dtype.order};
  tegula_status status = tegula__queue_submit(c->dataset->context->queue, &r->op, err);
  if (status == TEGULA_OK)
    *out = r;
  else
    free(r);
  return status;
}

void tegula__copying_give_up(reading *r) {
  if (r == NULL) return;
  tegula__queue_cancel(&r->op);
  tegula__queue_wait(&r->op, -1, NULL);
  tegula__queue_forget(&r->op);
}

tegula_status tegula__copying_wait(reading *r, const tegula__tile **tile, tegula_error *err) {
  *tile = &r->tile;
  return tegula__queue_wait(&r->op, -1, err);
}

void tegula__copying_done(tegula__copying *c, reading *r) {
  pthread_mutex_lock(&c->lock);
  c->done += r->bytes;
  pthread_mutex_unlock(&c->lock);
  tegula__queue_forget(&r->op);
}

static tegula_status write_window(tegula__copying *c, const tegula__tile *tile, tegula_error *err) {
  return c->ranks != NULL ? tegula__rank_save_move(c->ranks, 0, tile, 1, err)
                          : tegula__saving_move(&c->saving, 0, tile, 1, err);
}

tegula_status tegula__copying_windows(tegula__copying *c, tegula_error *err) {
  reading *now, *next = NULL;
  const tegula__tile *tile;
  FORWARD(tegula__copying_read(c, &now, err));
  while (now != NULL) {
    tegula_status status = tegula__copying_wait(now, &tile, err);
    if (status == TEGULA_OK) status = tegula__copying_read(c, &next, err);
    if (status == TEGULA_OK) status = write_window(c, tile, err);
    tegula__copying_done(c, now);
    if (status != TEGULA_OK) {
      tegula__copying_give_up(next);
      return status;
    }
    now = next;
    next = NULL;
  }
  return TEGULA_OK;
}

/* Two of them, the staging of reads and the chunks that are encoded share the memory. */
int64_t tegula__copying_window_bytes(const tegula__copying *c) {
  int64_t memory = c->options.memory > 0 ? c->options.memory : USUAL_MEMORY;
  int64_t staging = tegula__staging_budget(c->dataset->context->engine.staging);
  return tegula__max(memory / 4, memory / 2 - tegula__min(memory / 2, staging));
}

tegula_status tegula__copying_make_blocks(tegula__copying *c, tegula_error *err) {
  const tegula__manifest *source = &c->dataset->manifest;
  int64_t largest = tegula__windows_largest(source, c->target, c->most);
  tegula__windows_start(&c->windows, source, c->target, c->most);
  FORWARD(tegula__block_create(largest, &c->blocks[0], err));
  return largest < c->bytes ? tegula__block_create(largest, &c->blocks[1], err) : TEGULA_OK;
}
