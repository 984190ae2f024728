/* Running a plan: workers, the first error, progress and cancellation, the check of each file after
 * its last transfer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_priv.h"

#define PROGRESS_SECONDS 0.05

typedef struct running {
  const tegula__engine *engine;
  const tegula__move *move;
  tegula__plan plan;
  tegula__targets targets;
  tegula__ring *ring;       /* NULL: nothing is encoded */
  tegula__worker **workers; /* made when they come: most calls have few steps */
  _Atomic int32_t *pending; /* steps left in each group (file) */
  /* the last step of each group: the place of an error that its check finds */
  int64_t *last_step;
  tegula__first_error *first;
  _Atomic int64_t done;
  _Atomic bool cancelled;
  pthread_mutex_t progress_lock;
  double progress_next;
  int32_t widest; /* workers */
} running;

/* The first step of a file brings the file's head along. */
static size_t head_of(const running *r, const tegula__step *step, int64_t file) {
  const tegula__heads *heads = r->move->heads;
  bool first = step == r->plan.steps || step[-1].group != step->group;
  return heads != NULL && first ? heads->size(heads->state, file) : 0;
}

static tegula_status do_step(running *r, tegula__worker *worker, const tegula__doing *doing,
                             int64_t *item, tegula_error *err) {
  if (tegula__step_has_box(doing->step))
    FORWARD(tegula__find_pieces(worker, doing, doing->step->lo, doing->step->hi, err));
  switch (doing->step->kind) {
    case TEGULA__STEP_DIRECT:
      return tegula__direct_step(worker, doing, err);
    case TEGULA__STEP_STAGED:
      return tegula__staged_step(worker, doing, err);
    case TEGULA__STEP_CHUNKS:
      return tegula__chunks_step(worker, doing, err);
    case TEGULA__STEP_FILL:
    case TEGULA__STEP_LOST:
      return tegula__absent_step(worker, doing, err);
    case TEGULA__STEP_READ:
      return tegula__reader_step(worker, doing, err);
    case TEGULA__STEP_ENCODE:
      return tegula__encode_step(worker, doing, r->ring, item, err);
  }
  return tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "a step of the plan has no kind");
}

/* A failure is that of step *item: whoever encodes writes what others have encoded. */
static tegula_status move_step(running *r, tegula__worker *worker, int64_t *item, int64_t file,
                               int fd, tegula_error *err) {
  const tegula__step *step = &r->plan.steps[*item];
  char head[TEGULA__HEAD_BYTES];
  const tegula__heads *heads = r->move->heads;
  const tegula__manifest *manifest = r->move->manifest;
  tegula__stored stored;
  tegula__doing doing = {.engine = r->engine,
                         .move = r->move,
                         .targets = &r->targets,
                         .plan = &r->plan,
                         .step = step,
                         .part = &manifest->parts[step->part],
                         .item_size = manifest->dtype.item_size,
                         .swap_size = tegula__dtype_swap_size(manifest->dtype)};
  bool dense = step->kind == TEGULA__STEP_DIRECT || step->kind == TEGULA__STEP_STAGED;
  if (dense) doing.part = tegula__step_stored(&r->plan, step, &stored);
  if (file >= 0) {
    doing.file = (tegula__io_file){.fd = fd,
                                   .index = file,
                                   .path = manifest->files[file].path,
                                   .writing = r->move->writing,
                                   .push = r->move->push,
                                   .counts = r->move->counts,
                                   .frame = tegula__file_frame(&manifest->files[file])};
    doing.head = head;
    doing.head_size = dense ? head_of(r, step, file) : 0;
    if (worker->lane == NULL) worker->lane = tegula__transport_take(r->engine->transport);
  }
  FORWARD(do_step(r, worker, &doing, item, err));
  return doing.head_size > 0 ? heads->check(heads->state, file, doing.head, doing.head_size, err)
                             : TEGULA_OK;
}

/* Tells the caller, at most every PROGRESS_SECONDS and never from two threads at once; the end is
 * always told. */
static void report_progress(running *r, int64_t bytes) {
  bool last = atomic_fetch_add(&r->done, bytes) + bytes == r->plan.bytes;
  if (r->move->progress == NULL) return;
  if (last)
    pthread_mutex_lock(&r->progress_lock);
  else if (pthread_mutex_trylock(&r->progress_lock) != 0)
    return;
  double now = tegula__now();
  if (now >= r->progress_next || last) {
    r->progress_next = last ? INFINITY : now + PROGRESS_SECONDS;
    if (r->move->progress(r->move->progress_state, atomic_load(&r->done), r->plan.bytes) != 0)
      atomic_store(&r->cancelled, true);
  }
  pthread_mutex_unlock(&r->progress_lock);
}

/* What does not decode was perhaps written to meanwhile. */
static tegula_status unless_changed(const running *r, int64_t file, int fd, tegula_status status,
                                    tegula_error *err) {
  tegula_error changed;
  if (status != TEGULA_CORRUPT ||
      tegula__file_set_finish(r->move->files, file, fd, false, r->move->counts, &changed) !=
          TEGULA_CHANGED)
    return status;
  if (err != NULL) *err = changed;
  return TEGULA_CHANGED;
}

/* A step of a file: opens it if need be, and looks at it again after its last step. An error that
 * this finds belongs to the last step of the file, whichever step ended last. */
static tegula_status run_file_step(running *r, tegula__worker *worker, int64_t *item,
                                   tegula_error *err) {
  const tegula__step *step = &r->plan.steps[*item];
  int64_t file = tegula__part_file(&r->move->manifest->parts[step->part]);
  int fd;
  FORWARD(tegula__file_set_acquire(r->move->files, file, r->move->counts, &fd, err));
  tegula_status status =
      unless_changed(r, file, fd, move_step(r, worker, item, file, fd, err), err);
  if (status == TEGULA_OK && atomic_fetch_sub(&r->pending[step->group], 1) == 1) {
    status =
        tegula__file_set_finish(r->move->files, file, fd, r->move->durable, r->move->counts, err);
    *item = r->last_step[step->group];
  }
  tegula__file_set_release(r->move->files, file);
  return status;
}

/* NULL: no memory. */
static tegula__worker *worker_of(const running *r, int32_t number) {
  tegula__worker *worker = r->workers[number];
  if (worker == NULL) worker = r->workers[number] = calloc(1, sizeof *worker);
  if (worker != NULL) worker->extra = number >= tegula__pool_threads(r->engine->pool);
  return worker;
}

static tegula_status make_step(running *r, int32_t worker_number, int64_t *item,
                               tegula_error *err) {
  const tegula__step *step = &r->plan.steps[*item];
  tegula__worker *worker = worker_of(r, worker_number);
  if (worker == NULL) return tegula__out_of_memory(err, sizeof *worker);
  worker->steps++;
  bool from_file = tegula__part_file(&r->move->manifest->parts[step->part]) >= 0;
  return from_file ? run_file_step(r, worker, item, err)
                   : move_step(r, worker, item, TEGULA__NO_FILE, -1, err);
}

static void run_step(void *state, int32_t worker_number, int64_t item) {
  running *r = state;
  const tegula__step *step = &r->plan.steps[item];
  bool cancelled = atomic_load_explicit(&r->cancelled, memory_order_relaxed);
  if (cancelled && r->ring != NULL) tegula__ring_stop(r->ring, 0);
  if (cancelled || !tegula__first_error_wanted(r->first, item)) return;
  tegula_error error;
  tegula_status status = make_step(r, worker_number, &item, &error);
  if (status != TEGULA_OK) tegula__first_error_set(r->first, item, status, &error);
  if (status != TEGULA_OK && r->ring != NULL) tegula__ring_stop(r->ring, item);
  report_progress(r, step->bytes);
}

static tegula_status start(running *r, tegula_error *err) {
  int64_t groups = tegula__max(1, r->plan.group_count);
  r->workers = calloc((size_t)tegula__pool_most(r->engine->pool), sizeof(tegula__worker *));
  r->pending = calloc((size_t)groups, sizeof *r->pending);
  r->last_step = calloc((size_t)groups, sizeof *r->last_step);
  r->first = tegula__first_error_create();
  if (r->workers == NULL || r->pending == NULL || r->last_step == NULL || r->first == NULL)
    return tegula__out_of_memory(err,
                                 groups * (int64_t)(sizeof *r->pending + sizeof *r->last_step));
  for (int64_t i = 0; i < r->plan.step_count; i++) {
    r->pending[r->plan.steps[i].group]++;
    r->last_step[r->plan.steps[i].group] = i;
  }
  return TEGULA_OK;
}

/* The way that moved most of the bytes, and the first reason why it was not the one that was
 * wanted. */
static void add_way(const running *r, tegula_statistics *statistics) {
  tegula__io_use sum = {0};
  for (int32_t i = 0; i < tegula__pool_most(r->engine->pool); i++) {
    if (r->workers[i] == NULL) continue;
    tegula__io_use use = tegula__lane_use(r->workers[i]->lane);
    sum.way_bytes += use.way_bytes;
    sum.reference_bytes += use.reference_bytes;
    if (use.way != NULL) sum.way = use.way;
    if (sum.declined == NULL) sum.declined = use.declined;
  }
  const char *reference = r->move->writing ? "pwrite" : "pread";
  statistics->io_path = statistics->reader_bytes > 0          ? "reader"
                        : sum.way_bytes > sum.reference_bytes ? sum.way
                                                              : reference;
  if (sum.declined != NULL) statistics->fallback_reason = sum.declined;
}

static void add_statistics(const running *r) {
  tegula_statistics *statistics = r->move->statistics;
  if (statistics == NULL) return;
  for (int32_t i = 0; i < tegula__pool_most(r->engine->pool); i++) {
    const tegula__worker *worker = r->workers[i];
    if (worker == NULL) continue;
    statistics->direct_bytes += worker->direct_bytes;
    statistics->staged_bytes += worker->staged_bytes;
    statistics->reader_bytes += worker->reader_bytes;
    statistics->steps += worker->steps;
  }
  statistics->missing += r->plan.absent;
  statistics->workers = tegula__max(statistics->workers, r->widest);
  if (r->plan.step_count > 0) add_way(r, statistics);
}

void tegula__worker_free(const tegula__engine *engine, tegula__worker *worker) {
  if (worker == NULL) return;
  tegula__transport_give(engine->transport, worker->lane);
  free(worker->pieces);
  free(worker->vectors);
  free(worker->walks);
  free(worker->heap);
  free(worker->iov);
  free(worker->waste);
  tegula__block_free(&worker->gathered);
  tegula__encoder_destroy(worker->encoder);
  tegula__decoder_destroy(worker->decoder);
  free(worker);
}

static void stop(running *r) {
  tegula__staging_trim(r->engine->staging);
  for (int32_t i = 0; r->workers != NULL && i < tegula__pool_most(r->engine->pool); i++)
    tegula__worker_free(r->engine, r->workers[i]);
  free(r->workers);
  tegula__ring_destroy(r->ring);
  free((void *)r->pending);
  free(r->last_step);
  tegula__first_error_destroy(r->first);
  tegula__plan_free(&r->plan);
  tegula__targets_free(&r->targets);
  pthread_mutex_destroy(&r->progress_lock);
}

tegula_status tegula__engine_run(const tegula__engine *engine, const tegula__move *move,
                                 tegula_error *err) {
  running r = {.engine = engine, .move = move};
  tegula__plan_limits limits = {.threads = tegula__pool_threads(engine->pool),
                                .staging_slot = tegula__staging_slot(engine->staging),
                                .writing = move->writing,
                                .align = move->align};
  tegula_status status;
  if (tegula__small_run(engine, move, &status, err)) return status;
  pthread_mutex_init(&r.progress_lock, NULL);
  FORWARD_WITH(status, tegula__targets_create(move->manifest->ndim, move->tiles, move->tile_count,
                                              &r.targets, err));
  FORWARD_WITH(status, tegula__plan_create(move->manifest, &r.targets, &limits, &r.plan, err));
  FORWARD_WITH(status, start(&r, err));
  FORWARD_WITH(status, tegula__ring_create(engine, &r.plan, &r.ring, err));
  if (r.ring == NULL)
    r.widest = tegula__pool_run_waiting(engine->pool, r.plan.step_count, run_step, &r);
  else /* those that wait for their turn would be taken for waiting for storage */
    tegula__pool_run(engine->pool, r.plan.step_count, run_step, &r);
  add_statistics(&r);
  status = tegula__first_error_get(r.first, err);
  if (status == TEGULA_OK && atomic_load(&r.cancelled))
    status = tegula__fail(err, TEGULA_CANCELLED, NULL, -1, "cancelled after %lld of %lld bytes",
                          (long long)atomic_load(&r.done), (long long)r.plan.bytes);
done:
  stop(&r);
  return status;
}
