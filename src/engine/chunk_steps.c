/* Chunk steps: stored chunks that lie next to each other are read at once, then decoded and
 * scattered one by one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What several parts want of one stored chunk is scattered for one after the other, from one
 * decoded chunk.
 *
 * A chunk that one tile wants as a whole, in the order in which it is stored, is decoded into its
 * final place; every other one into lent memory, from where it is scattered: with its shuffle still
 * to be undone, where that comes last, so that one decoded chunk is all that a worker holds. What a
 * step takes is counted against the staging budget, and given back after it. */
#include <string.h>

#include "engine/engine_priv.h"

#define ALIGNMENT ((int64_t)4096)

/* A chunk on its way. */
typedef struct chunk {
  const tegula__planned_chunk *planned;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  tegula__part piece; /* what the part holds of it: offset and strides in the decoded chunk */
} chunk;

/* The memory of a step. */
typedef struct memory {
  char *encoded; /* all chunks as they are stored */
  char *decoded; /* room for one */
  size_t room;
  char *strip; /* TEGULA__STRIP bytes */
  size_t item; /* chunks may be left shuffled, in such items; 0: no */
} memory;

static void element_text(const chunk *c, int32_t ndim, char out[TEGULA__SHAPE_TEXT]) {
  tegula__shape_format(c->lo, ndim, out);
}

static tegula_status could_not_decode(const tegula__doing *doing, const chunk *c,
                                      const tegula_error *why, tegula_error *err) {
  const tegula__manifest *manifest = doing->move->manifest;
  char place[TEGULA__SHAPE_TEXT];
  element_text(c, manifest->ndim, place);
  return tegula__fail(err, why->status, doing->file.path, (int64_t)c->planned->entry->offset,
                      "could not decode the chunk at %s of dataset \"%.200s\" in \"%s\": %.300s",
                      place, manifest->name, doing->file.path, why->message);
}

static tegula_status decode(tegula__worker *worker, const tegula__doing *doing, const chunk *c,
                            const tegula__passage *passage, tegula__decoded *decoded,
                            tegula_error *err) {
  const tegula__grid *grid = doing->part->grid;
  tegula_error why;
  if (worker->decoder == NULL) worker->decoder = tegula__decoder_create(doing->engine->kernels);
  if (worker->decoder == NULL) return tegula__out_of_memory(err, grid->chunk_bytes);
  tegula_status status = tegula__decode_with(worker->decoder, grid->filters, grid->filter_count,
                                             c->planned->entry->mask, passage, decoded, &why);
  return status == TEGULA_OK ? TEGULA_OK : could_not_decode(doing, c, &why, err);
}

/* Chunk `index` of the plan, its part and its pieces. */
static tegula_status look_at(tegula__worker *worker, tegula__doing *doing, int64_t index, chunk *c,
                             tegula_error *err) {
  c->planned = &doing->plan->chunks[index];
  doing->part = &doing->move->manifest->parts[c->planned->part];
  tegula__plan_chunk(doing->plan, index, c->lo, c->hi, &c->piece);
  return tegula__find_pieces(worker, doing, c->lo, c->hi, err);
}

static void scatter(const tegula__worker *worker, const tegula__doing *doing, const chunk *c,
                    const char *data) {
  /* read only: nothing is written back in a load */
  for (int64_t i = 0; i < worker->piece_count; i++)
    tegula__copy_piece(doing, c->lo, c->piece.strides, (char *)(uintptr_t)data + c->piece.offset,
                       &worker->pieces[i]);
}

/* A stored chunk, for `count` chunks of the plan from `index` on. */
static tegula_status move_chunk(tegula__worker *worker, tegula__doing *doing, int64_t index,
                                int64_t count, const memory *m, tegula_error *err) {
  const tegula__chunk *entry = doing->plan->chunks[index].entry;
  chunk c;
  FORWARD(look_at(worker, doing, index, &c, err));
  tegula__passage passage = {
      .in = m->encoded + (entry->offset - doing->plan->chunks[doing->step->first].entry->offset),
      .in_size = entry->length,
      .scratch = m->decoded,
      .scratch_size = m->room,
      .out = count == 1 ? tegula__as_stored(worker, doing, &c.piece) : NULL,
      .size = (size_t)doing->part->grid->chunk_bytes,
      .item = m->item};
  tegula__decoded decoded;
  FORWARD(decode(worker, doing, &c, &passage, &decoded, err));
  if (passage.out != NULL) return TEGULA_OK;
  if (decoded.planes) {
    tegula__scatter_planes(worker, doing, &c.piece, decoded.data, passage.size / m->item, m->strip);
    return TEGULA_OK;
  }
  scatter(worker, doing, &c, decoded.data);
  for (int64_t i = 1; i < count; i++) {
    FORWARD(look_at(worker, doing, index + i, &c, err));
    scatter(worker, doing, &c, decoded.data);
  }
  return TEGULA_OK;
}

static tegula_status move_chunks(tegula__worker *worker, const tegula__doing *doing,
                                 const memory *m, int64_t span, tegula_error *err) {
  struct iovec vector = {.iov_base = m->encoded, .iov_len = (size_t)span};
  worker->requests[0] =
      (tegula__request){.offset = (int64_t)doing->plan->chunks[doing->step->first].entry->offset,
                        .vectors = &vector,
                        .count = 1};
  FORWARD(tegula__lane_move(worker->lane, &doing->file, worker->requests, 1, err));
  tegula__doing own = *doing; /* its part is that of the chunk */
  int64_t end = doing->step->first + doing->step->count;
  for (int64_t i = doing->step->first, sharers; i < end; i += sharers) {
    sharers = tegula__plan_sharers(doing->plan, i, end);
    FORWARD(move_chunk(worker, &own, i, sharers, m, err));
  }
  worker->staged_bytes += doing->step->bytes;
  return TEGULA_OK;
}

/* A decoder may hold as much as a chunk: of the workers that are more than there are processors,
 * none keeps a large one. */
static void drop_large_decoder(tegula__worker *worker, const tegula__doing *doing, int64_t own) {
  if (!worker->extra || own <= tegula__staging_slot(doing->engine->staging)) return;
  tegula__decoder_destroy(worker->decoder);
  worker->decoder = NULL;
}

tegula_status tegula__chunks_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula_error *err) {
  const tegula__grid *grid = doing->part->grid;
  const tegula__chunk *first = doing->plan->chunks[doing->step->first].entry;
  const tegula__chunk *last =
      doing->plan->chunks[doing->step->first + doing->step->count - 1].entry;
  int64_t span = (int64_t)(last->offset + last->length - first->offset),
          read = (span + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  memory m = {.item = tegula__planes_item(doing)};
  int64_t own = tegula__chain_own(grid->filters, grid->filter_count, grid->chunk_bytes, m.item),
          bytes;
  m.room = grid->filter_count > 0 ? tegula__chain_room(grid->chunk_bytes) : 0;
  if (m.room > INT64_MAX || !tegula__add(read, (int64_t)m.room, &bytes) ||
      !tegula__add(bytes, m.item > 0 ? TEGULA__STRIP : 0, &bytes))
    return tegula__out_of_memory(err, INT64_MAX);
  if (bytes > tegula__staging_slot(doing->engine->staging))
    FORWARD(tegula__memory_check(bytes, err));
  tegula__block block;
  FORWARD(tegula__staging_lend(doing->engine->staging, bytes, own, &block, err));
  m.encoded = block.data;
  m.decoded = m.room > 0 ? block.data + read : NULL;
  m.strip = block.data + read + m.room;
  tegula_status status = move_chunks(worker, doing, &m, span, err);
  drop_large_decoder(worker, doing, own);
  tegula__staging_return(doing->engine->staging, &block, own);
  return status;
}
