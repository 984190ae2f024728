/* Chunks in rounds: all of a round are encoded, then somebody finds their places, then all are
 * written.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * For saves on ranks, where one rank finds the places of all. The caller says which chunks; memory
 * is that of a round's encoded chunks, and one chunk for each worker. */
#include <pthread.h>
#include <stdlib.h>

#include "engine/engine_priv.h"

/* bytes that one task writes, unless a single chunk has more */
#define LARGEST_RUN ((int64_t)4 << 20)

struct tegula__rounds {
  const tegula__engine *engine;
  const tegula__move *move;
  tegula__targets own, whole;
  tegula__plan plan; /* the chunks of a round; no steps */
  tegula__encoded *encoded;
  char **places; /* in the block */
  int64_t *runs; /* where those chunks begin that are written together */
  int64_t capacity;
  tegula__block block;
  tegula__worker **workers;
  bool *written; /* each file */
  tegula__first_error *first;
  tegula__round_chunk *chunks; /* the caller's */
  int64_t count;
  int64_t done, total; /* bytes, for progress */
  bool cancelled;
  int32_t widest;
  pthread_mutex_t lock; /* of done, cancelled and the progress function */
};

static int64_t tile_bytes(const tegula__move *move) {
  int64_t sum = 0;
  for (int64_t i = 0; i < move->tile_count; i++)
    sum += tegula__box_count(move->manifest->ndim, move->tiles[i].lo, move->tiles[i].hi);
  return sum * move->manifest->dtype.item_size;
}

tegula_status tegula__rounds_create(const tegula__engine *engine, const tegula__move *move,
                                    tegula__rounds **out, tegula_error *err) {
  tegula__rounds *r = calloc(1, sizeof *r);
  *out = NULL;
  if (r == NULL) return tegula__out_of_memory(err, sizeof *r);
  *r = (tegula__rounds){.engine = engine,
                        .move = move,
                        .plan = {.manifest = move->manifest},
                        .total = tile_bytes(move)};
  pthread_mutex_init(&r->lock, NULL);
  r->workers = calloc((size_t)tegula__pool_most(engine->pool), sizeof(tegula__worker *));
  r->written = calloc((size_t)tegula__max(1, move->manifest->file_count), sizeof *r->written);
  r->first = tegula__first_error_create();
  tegula_status status = r->workers != NULL && r->written != NULL && r->first != NULL
                             ? TEGULA_OK
                             : tegula__out_of_memory(err, sizeof *r);
  if (status == TEGULA_OK)
    status =
        tegula__targets_create(move->manifest->ndim, move->tiles, move->tile_count, &r->own, err);
  if (status == TEGULA_OK)
    *out = r;
  else
    tegula__rounds_destroy(r);
  return status;
}

void tegula__rounds_destroy(tegula__rounds *r) {
  if (r == NULL) return;
  for (int32_t i = 0; r->workers != NULL && i < tegula__pool_most(r->engine->pool); i++)
    tegula__worker_free(r->engine, r->workers[i]);
  tegula__targets_free(&r->own);
  tegula__targets_free(&r->whole);
  tegula__block_free(&r->block);
  tegula__first_error_destroy(r->first);
  pthread_mutex_destroy(&r->lock);
  free(r->plan.chunks);
  free(r->encoded);
  free(r->places);
  free(r->runs);
  free(r->workers);
  free(r->written);
  free(r);
}

int64_t tegula__rounds_bound(const tegula__manifest *manifest, int64_t part) {
  const tegula__grid *grid = manifest->parts[part].grid;
  return tegula__encode_bound(grid->filters, grid->filter_count, grid->chunk_bytes);
}

tegula_status tegula__rounds_retile(tegula__rounds *r, const tegula__tile *tiles, int64_t count,
                                    tegula_error *err) {
  tegula__targets_free(&r->own);
  r->own = (tegula__targets){0};
  return tegula__targets_create(r->move->manifest->ndim, tiles, count, &r->own, err);
}

/* NULL: no memory. */
static tegula__worker *worker_of(const tegula__rounds *r, int32_t number) {
  if (r->workers[number] == NULL) r->workers[number] = calloc(1, sizeof(tegula__worker));
  return r->workers[number];
}

static void note_progress(tegula__rounds *r, int64_t bytes) {
  pthread_mutex_lock(&r->lock);
  /* of chunks that others have pieces of, too, more or less is encoded than the tiles have */
  r->done = tegula__min(r->total, r->done + bytes);
  if (r->move->progress != NULL &&
      r->move->progress(r->move->progress_state, r->done, r->total) != 0)
    r->cancelled = true;
  pthread_mutex_unlock(&r->lock);
}

static bool is_cancelled(tegula__rounds *r) {
  pthread_mutex_lock(&r->lock);
  bool cancelled = r->cancelled;
  pthread_mutex_unlock(&r->lock);
  return cancelled;
}

/* The first failure of the chunks or runs. */
static tegula_status outcome(tegula__rounds *r, tegula_error *err) {
  tegula_status status = tegula__first_error_get(r->first, err);
  if (status != TEGULA_OK || !r->cancelled) return status;
  return tegula__fail(err, TEGULA_CANCELLED, NULL, -1, "cancelled after %lld of %lld bytes",
                      (long long)r->done, (long long)r->total);
}

/* ---- encoding ---- */

static tegula_status reserve(tegula__rounds *r, int64_t count, tegula_error *err) {
  if (count <= r->capacity) return TEGULA_OK;
  free(r->plan.chunks);
  free(r->encoded);
  free(r->places);
  free(r->runs);
  r->capacity = 0;
  r->plan.chunks = tegula__realloc_array(NULL, count, sizeof *r->plan.chunks);
  r->encoded = tegula__realloc_array(NULL, count, sizeof *r->encoded);
  r->places = tegula__realloc_array(NULL, count, sizeof *r->places);
  r->runs = tegula__realloc_array(NULL, count + 1, sizeof *r->runs);
  if (r->plan.chunks == NULL || r->encoded == NULL || r->places == NULL || r->runs == NULL)
    return tegula__out_of_memory(err,
                                 count * (int64_t)(sizeof *r->plan.chunks + sizeof *r->encoded));
  r->capacity = count;
  return TEGULA_OK;
}

/* A place for each encoded chunk, however long it may become. */
static tegula_status make_room(tegula__rounds *r, tegula_error *err) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < r->count; i++)
    if (!tegula__add(bytes, tegula__rounds_bound(r->move->manifest, r->chunks[i].part), &bytes))
      return tegula__out_of_memory(err, INT64_MAX);
  if (bytes > (int64_t)r->block.mapped) {
    tegula__block_free(&r->block);
    FORWARD(tegula__block_create(bytes, &r->block, err));
  }
  char *at = r->block.data;
  for (int64_t i = 0; i < r->count; i++) {
    r->places[i] = at;
    at += tegula__rounds_bound(r->move->manifest, r->chunks[i].part);
  }
  return TEGULA_OK;
}

/* What has whole chunks of the round. */
static tegula_status find_whole(tegula__rounds *r, tegula_error *err) {
  int64_t count = 0;
  for (int64_t i = 0; i < r->count; i++) count += r->chunks[i].whole != NULL;
  tegula__targets_free(&r->whole);
  r->whole = (tegula__targets){0};
  if (count == 0) return TEGULA_OK;
  const tegula__tile *first = NULL;
  for (int64_t i = 0; i < r->count && first == NULL; i++) first = r->chunks[i].whole;
  return tegula__targets_create(r->move->manifest->ndim, first, count, &r->whole, err);
}

static tegula_status encode_one(tegula__rounds *r, int32_t number, int64_t item, int64_t *bytes,
                                tegula_error *err) {
  tegula__worker *worker = worker_of(r, number);
  if (worker == NULL) return tegula__out_of_memory(err, sizeof *worker);
  const tegula__manifest *manifest = r->move->manifest;
  tegula__round_chunk *chunk = &r->chunks[item];
  tegula__doing doing = {.engine = r->engine,
                         .move = r->move,
                         .targets = chunk->whole != NULL ? &r->whole : &r->own,
                         .plan = &r->plan,
                         .part = &manifest->parts[chunk->part],
                         .item_size = manifest->dtype.item_size,
                         .swap_size = tegula__dtype_swap_size(manifest->dtype)};
  doing.file.path = manifest->files[doing.part->grid->file].path;
  r->encoded[item] = (tegula__encoded){.chunk = item};
  FORWARD(tegula__encode_chunk(worker, &doing, r->places[item], &r->encoded[item], err));
  chunk->length = r->encoded[item].length;
  chunk->mask = r->encoded[item].mask;
  *bytes = 0;
  for (int64_t i = 0; i < worker->piece_count; i++)
    *bytes += tegula__box_count(manifest->ndim, worker->pieces[i].lo, worker->pieces[i].hi);
  *bytes *= doing.item_size;
  worker->staged_bytes += *bytes;
  worker->steps++;
  return TEGULA_OK;
}

static void encode_task(void *state, int32_t worker, int64_t item) {
  tegula__rounds *r = state;
  tegula_error error;
  int64_t bytes = 0;
  if (!tegula__first_error_wanted(r->first, item) || is_cancelled(r)) return;
  tegula_status status = encode_one(r, worker, item, &bytes, &error);
  if (status != TEGULA_OK) tegula__first_error_set(r->first, item, status, &error);
  note_progress(r, bytes);
}

tegula_status tegula__rounds_encode(tegula__rounds *r, tegula__round_chunk *chunks, int64_t count,
                                    tegula_error *err) {
  r->chunks = chunks;
  r->count = count;
  FORWARD(reserve(r, count, err));
  FORWARD(make_room(r, err));
  FORWARD(find_whole(r, err));
  for (int64_t i = 0; i < count; i++)
    r->plan.chunks[i] = (tegula__planned_chunk){.part = chunks[i].part, .number = chunks[i].number};
  r->plan.chunk_count = count;
  r->widest =
      tegula__max(r->widest, (int32_t)tegula__min(count, tegula__pool_threads(r->engine->pool)));
  tegula__pool_run(r->engine->pool, count, encode_task, r);
  return outcome(r, err);
}

/* ---- writing ---- */

static tegula_status write_run(tegula__rounds *r, int32_t number, int64_t run, tegula_error *err) {
  tegula__worker *worker = worker_of(r, number);
  if (worker == NULL) return tegula__out_of_memory(err, sizeof *worker);
  if (worker->lane == NULL) worker->lane = tegula__transport_take(r->engine->transport);
  int64_t first = r->runs[run];
  return tegula__encoded_write(worker, r->move, r->chunks[first].part, &r->encoded[first],
                               r->runs[run + 1] - first, err);
}

static void write_task(void *state, int32_t worker, int64_t item) {
  tegula__rounds *r = state;
  tegula_error error;
  if (!tegula__first_error_wanted(r->first, item)) return;
  tegula_status status = write_run(r, worker, item, &error);
  if (status != TEGULA_OK) tegula__first_error_set(r->first, item, status, &error);
}

/* Chunks of one part, as many as are written together; returns how many runs there are. */
static int64_t cut_runs(tegula__rounds *r) {
  int64_t runs = 0, bytes = 0;
  for (int64_t i = 0; i < r->count; i++) {
    bool goes_along = i > 0 && r->chunks[i].part == r->chunks[i - 1].part &&
                      bytes + r->chunks[i].length <= LARGEST_RUN;
    if (!goes_along) {
      r->runs[runs++] = i;
      bytes = 0;
    }
    bytes += r->chunks[i].length;
  }
  r->runs[runs] = r->count;
  return runs;
}

tegula_status tegula__rounds_write(tegula__rounds *r, const tegula__round_chunk *chunks,
                                   int64_t count, tegula_error *err) {
  if (count == 0) return TEGULA_OK;
  for (int64_t i = 0; i < count; i++) {
    r->encoded[i].offset = chunks[i].offset;
    r->written[r->move->manifest->parts[chunks[i].part].grid->file] = true;
  }
  int32_t width = tegula__pool_run_waiting(r->engine->pool, cut_runs(r), write_task, r);
  r->widest = tegula__max(r->widest, width);
  return outcome(r, err);
}

/* ---- the end ---- */

static tegula_status finish_file(tegula__rounds *r, int64_t file, tegula_error *err) {
  const tegula__move *move = r->move;
  int fd;
  FORWARD(tegula__file_set_acquire(move->files, file, move->counts, &fd, err));
  tegula_status status =
      tegula__file_set_finish(move->files, file, fd, move->durable, move->counts, err);
  tegula__file_set_release(move->files, file);
  return status;
}

static void finish_task(void *state, int32_t worker, int64_t item) {
  tegula__rounds *r = state;
  tegula_error error;
  (void)worker;
  if (!r->written[item] || !tegula__first_error_wanted(r->first, item)) return;
  tegula_status status = finish_file(r, item, &error);
  if (status != TEGULA_OK) tegula__first_error_set(r->first, item, status, &error);
}

tegula_status tegula__rounds_finish(tegula__rounds *r, tegula_error *err) {
  tegula_statistics *statistics = r->move->statistics;
  if (r->move->durable)
    tegula__pool_run_waiting(r->engine->pool, r->move->manifest->file_count, finish_task, r);
  for (int32_t i = 0; statistics != NULL && i < tegula__pool_most(r->engine->pool); i++) {
    if (r->workers[i] == NULL) continue;
    statistics->staged_bytes += r->workers[i]->staged_bytes;
    statistics->steps += r->workers[i]->steps;
  }
  if (statistics != NULL) statistics->workers = tegula__max(statistics->workers, r->widest);
  if (statistics != NULL && r->widest > 0) statistics->io_path = "pwrite";
  return outcome(r, err);
}
