/* Rounds of a chunked save on ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * In a round each rank gets the pieces that others have of its chunks, encodes as many chunks as
 * fit in memory, and tells rank 0 how long they have become. Rank 0 finds places for all of them in
 * the order of the array and sends those back; then all write. Where the whole array fits in one
 * round the file is that of one process; else the order of chunks in it is another one, unless no
 * filter changes their length: then all places are found before the first round. */
#include "save/save_rounds.h"

#include <stdlib.h>

#include "dist/chunk_assignment.h"
#include "dist/redistribute.h"

enum { MOST_CHUNKS = 1 << 16, MOST_RECORDS = 1 << 22 }; /* of a rank in a round; of all */

/* What goes to rank 0 and comes back, of each chunk. */
typedef struct record {
  uint64_t offset;
  uint32_t length, mask;
} record;

typedef struct saving_rounds {
  tegula_context *context;
  const tegula__move *move;
  tegula__deal deal;
  tegula__rounds *rounds;
  tegula__exchange *exchange;
  const tegula__round_tiles *tiles; /* NULL: those of the move, all the time */
  tegula__round_chunk *chunks;      /* this rank's, of the round */
  int64_t count, capacity;
  record *records; /* of this rank's; rank 0: of all, rank after rank */
  int64_t record_capacity;
  int64_t *firsts;  /* rank 0: where those of each rank begin; one more for the end */
  int64_t *next;    /* rank 0: the next one of each rank */
  uint64_t *places; /* rank 0: of all chunks, where they are known; NULL */
} saving_rounds;

static void release(saving_rounds *r) {
  tegula__exchange_destroy(r->exchange);
  tegula__rounds_destroy(r->rounds);
  tegula__deal_free(&r->deal);
  free(r->chunks);
  free(r->records);
  free(r->firsts);
  free(r->next);
  free(r->places);
}

/* ---- before the first round ---- */

static tegula_status agree_limits(tegula_context *context, tegula__deal_limits *out,
                                  tegula_error *err) {
  int64_t words[2] = {-tegula__staging_budget(context->engine.staging),
                      -(int64_t)tegula__pool_threads(context->engine.pool)};
  FORWARD(tegula__comm_reduce(context->comm, TEGULA_PLUGIN_MAX, words, 2, err));
  int64_t most = tegula__max(1, tegula__min(MOST_CHUNKS, MOST_RECORDS / context->comm->size));
  *out = (tegula__deal_limits){
      .bytes = -words[0], .least = tegula__min(most, -words[1]), .most = most};
  return TEGULA_OK;
}

static tegula_status place(const saving_rounds *r, int64_t chunk, uint32_t length, uint32_t mask,
                           uint64_t *offset, tegula_error *err) {
  int64_t part, number, lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], at[TEGULA_MAX_DIMS];
  const tegula__placer *placer = r->move->placer;
  tegula__deal_chunk(&r->deal, chunk, &part, &number);
  tegula__deal_box(&r->deal, chunk, lo, hi, at);
  return placer->find(placer->state, part, at, length, mask, offset, err);
}

/* Chunks that no filter touches have their length: all places at once, in the order of the
 * array. */
static tegula_status place_plain(saving_rounds *r, tegula_error *err) {
  const tegula__manifest *manifest = r->move->manifest;
  if (r->context->comm->rank != 0 || r->deal.count == 0 ||
      manifest->parts[0].grid->filter_count > 0)
    return TEGULA_OK;
  r->places = tegula__realloc_array(NULL, r->deal.count, sizeof *r->places);
  if (r->places == NULL)
    return tegula__out_of_memory(err, r->deal.count * (int64_t)sizeof *r->places);
  for (int64_t i = 0; i < r->deal.count; i++) {
    int64_t part, number, chunk = r->deal.in_turn ? r->deal.order[i] : i;
    tegula__deal_chunk(&r->deal, chunk, &part, &number);
    FORWARD(place(r, chunk, (uint32_t)manifest->parts[part].grid->chunk_bytes, 0, &r->places[chunk],
                  err));
  }
  return TEGULA_OK;
}

static tegula_status prepare(saving_rounds *r, tegula_status dealt, tegula_dtype dtype,
                             const int64_t *numbers, tegula_error *err) {
  tegula_comm *comm = r->context->comm;
  const tegula__move *move = r->move;
  FORWARD(dealt);
  FORWARD(tegula__rounds_create(&r->context->engine, move, &r->rounds, err));
  FORWARD(tegula__exchange_create(&r->deal, comm, r->context->engine.kernels, dtype, move->tiles,
                                  numbers, move->tile_count, &r->exchange, err));
  r->firsts = calloc((size_t)comm->size + 1, sizeof *r->firsts);
  r->next = calloc((size_t)comm->size, sizeof *r->next);
  if (r->firsts == NULL || r->next == NULL)
    return tegula__out_of_memory(err, 2 * comm->size * (int64_t)sizeof *r->firsts);
  return place_plain(r, err);
}

/* ---- a round ---- */

static void note_chunk(saving_rounds *r, int64_t chunk, const tegula__tile **whole) {
  tegula__round_chunk *to = &r->chunks[r->count++];
  *to = (tegula__round_chunk){0};
  tegula__deal_chunk(&r->deal, chunk, &to->part, &to->number);
  if (tegula__deal_shared(&r->deal, chunk)) to->whole = (*whole)++;
}

static tegula_status take_tiles(saving_rounds *r, int64_t round, tegula_error *err) {
  const tegula__tile *tiles;
  int64_t count;
  if (r->tiles == NULL) return TEGULA_OK;
  FORWARD(r->tiles->next(r->tiles->state, round, &tiles, &count, err));
  return tegula__rounds_retile(r->rounds, tiles, count, err);
}

/* This rank's chunks; memory for all that the round needs. */
static tegula_status begin_round(saving_rounds *r, int64_t round, tegula_error *err) {
  const tegula__deal *d = &r->deal;
  tegula_comm *comm = r->context->comm;
  int64_t own = 0, all = d->starts[round + 1] - d->starts[round], shared;
  FORWARD(take_tiles(r, round, err));
  FORWARD(tegula__exchange_prepare(r->exchange, round, err));
  for (int64_t i = d->starts[round]; i < d->starts[round + 1]; i++)
    own += tegula__deal_owner(d, d->order[i]) == comm->rank;
  if (!tegula__vector_reserve((void **)&r->chunks, &r->capacity, own, sizeof *r->chunks) ||
      !tegula__vector_reserve((void **)&r->records, &r->record_capacity,
                              comm->rank == 0 ? all : own, sizeof *r->records))
    return tegula__out_of_memory(err, all * (int64_t)(sizeof *r->chunks + sizeof *r->records));
  const tegula__tile *whole = tegula__exchange_tiles(r->exchange, &shared);
  r->count = 0;
  for (int64_t i = d->starts[round]; i < d->starts[round + 1]; i++)
    if (tegula__deal_owner(d, d->order[i]) == comm->rank) note_chunk(r, d->order[i], &whole);
  return TEGULA_OK;
}

static void count_records(saving_rounds *r, int64_t round) {
  const tegula__deal *d = &r->deal;
  memset(r->firsts, 0, ((size_t)d->ranks + 1) * sizeof *r->firsts);
  for (int64_t i = d->starts[round]; i < d->starts[round + 1]; i++)
    r->firsts[tegula__deal_owner(d, d->order[i]) + 1]++;
  for (int32_t i = 0; i < d->ranks; i++) r->firsts[i + 1] += r->firsts[i];
}

/* Between each other rank and rank 0. */
static tegula_status pass_records(saving_rounds *r, bool back, tegula_error *err) {
  tegula_comm *comm = r->context->comm;
  if (comm->rank != 0) {
    int64_t bytes = r->count * (int64_t)sizeof *r->records;
    if (bytes == 0) return TEGULA_OK;
    return back ? tegula__comm_receive(comm, r->records, bytes, 0, err)
                : tegula__comm_send(comm, r->records, bytes, 0, err);
  }
  for (int32_t i = 1; i < comm->size; i++) {
    record *records = r->records + r->firsts[i];
    int64_t bytes = (r->firsts[i + 1] - r->firsts[i]) * (int64_t)sizeof *records;
    if (bytes > 0)
      FORWARD(back ? tegula__comm_send(comm, records, bytes, i, err)
                   : tegula__comm_receive(comm, records, bytes, i, err));
  }
  return TEGULA_OK;
}

/* Rank 0: in the order of the array. */
static tegula_status find_places(saving_rounds *r, int64_t round, tegula_error *err) {
  const tegula__deal *d = &r->deal;
  if (r->context->comm->rank != 0) return TEGULA_OK;
  memcpy(r->next, r->firsts, (size_t)d->ranks * sizeof *r->next);
  for (int64_t i = d->starts[round]; i < d->starts[round + 1]; i++) {
    int64_t chunk = d->order[i];
    record *of = &r->records[r->next[tegula__deal_owner(d, chunk)]++];
    if (r->places != NULL)
      of->offset = r->places[chunk];
    else
      FORWARD(place(r, chunk, of->length, of->mask, &of->offset, err));
  }
  return TEGULA_OK;
}

/* `before`: how this rank ended the round before. */
static tegula_status run_round(saving_rounds *r, int64_t round, tegula_status before,
                               tegula_error *err) {
  tegula_comm *comm = r->context->comm;
  tegula_status status = before == TEGULA_OK ? begin_round(r, round, err) : before;
  FORWARD(tegula__comm_agree(comm, status, err));
  FORWARD(tegula__exchange_run(r->exchange, err));
  FORWARD(
      tegula__comm_agree(comm, tegula__rounds_encode(r->rounds, r->chunks, r->count, err), err));
  for (int64_t i = 0; i < r->count; i++)
    r->records[i] = (record){.length = r->chunks[i].length, .mask = r->chunks[i].mask};
  if (comm->rank == 0) count_records(r, round);
  FORWARD(pass_records(r, false, err));
  FORWARD(tegula__comm_agree(comm, find_places(r, round, err), err));
  FORWARD(pass_records(r, true, err));
  for (int64_t i = 0; i < r->count; i++) r->chunks[i].offset = r->records[i].offset;
  return TEGULA_OK;
}

/* The last part of a round is this rank's own matter; how it went is agreed in the next one. */
static tegula_status run(saving_rounds *r, tegula_error *err) {
  tegula_status status = TEGULA_OK;
  for (int64_t round = 0; round < r->deal.rounds; round++) {
    FORWARD(run_round(r, round, status, err));
    status = tegula__rounds_write(r->rounds, r->chunks, r->count, err);
  }
  return status == TEGULA_OK ? tegula__rounds_finish(r->rounds, err) : status;
}

static tegula_status save(saving_rounds *r, tegula_status dealt, tegula_dtype dtype,
                          const int64_t *numbers, tegula_error *err) {
  tegula_comm *comm = r->context->comm;
  tegula_status status = tegula__comm_agree(comm, prepare(r, dealt, dtype, numbers, err), err);
  if (status == TEGULA_OK) status = run(r, err);
  if (!comm->broken) release(r); /* else a transfer may still write to it */
  return status;
}

tegula_status tegula__save_rounds(tegula_context *context, const tegula__move *move,
                                  const tegula_tiling *tiling, tegula_dtype dtype,
                                  const int64_t *numbers, tegula_error *err) {
  saving_rounds r = {.context = context, .move = move};
  tegula__deal_limits limits;
  FORWARD(agree_limits(context, &limits, err));
  tegula_status dealt = tegula__deal_create(move->manifest, tiling, &limits, &r.deal, err);
  return save(&r, dealt, dtype, numbers, err);
}

tegula_status tegula__save_rounds_dealt(tegula_context *context, const tegula__move *move,
                                        tegula__deal *deal, tegula_status dealt,
                                        const tegula__round_tiles *tiles, tegula_error *err) {
  saving_rounds r = {.context = context, .move = move, .deal = *deal, .tiles = tiles};
  *deal = (tegula__deal){0};
  return save(&r, dealt, move->manifest->dtype, NULL, err);
}
