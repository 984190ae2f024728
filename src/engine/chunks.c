/* Chunk steps: stored chunks that lie next to each other are read at once, then decoded and scattered one by one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A chunk that one tile wants as a whole, in the order in which it is stored, is decoded into its final place; every other one into lent
 * memory, from where it is scattered. What a step takes is counted against the staging budget, and given back after it. */
#include <string.h>

#include "engine/engine_priv.h"

#define ALIGNMENT ((int64_t)4096)

/* A chunk on its way. */
typedef struct chunk {
  const tegula__planned_chunk *planned;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  tegula__part piece; /* what the part holds of it: offset and strides in the decoded chunk */
} chunk;

static void element_text(const chunk *c, int32_t ndim, char out[TEGULA__SHAPE_TEXT]) { tegula__shape_format(c->lo, ndim, out); }

static tegula_status could_not_decode(const tegula__doing *doing, const chunk *c, const tegula_error *why, tegula_error *err) {
  const tegula__manifest *manifest = doing->move->manifest;
  char place[TEGULA__SHAPE_TEXT];
  element_text(c, manifest->ndim, place);
  return tegula__fail(err, why->status, doing->file.path, (int64_t)c->planned->entry->offset,
                      "could not decode the chunk at %s of dataset \"%.200s\" in \"%s\": %.300s", place, manifest->name, doing->file.path,
                      why->message);
}

/* Where the whole chunk is wanted as it is stored: its final place; else NULL. */
static char *final_place(const tegula__worker *worker, const tegula__doing *doing, const chunk *c) {
  const tegula__piece *piece = worker->pieces;
  int32_t ndim = doing->move->manifest->ndim, axes;
  RETURN_IF(worker->piece_count != 1 || c->piece.offset != 0, NULL);
  RETURN_IF(doing->swap_size > 1 && piece->tile->order != doing->part->order, NULL);
  tegula__file_order order;
  tegula__file_order_of(&c->piece, ndim, piece->lo, piece->hi, &order);
  int64_t run = tegula__common_run(&order, c->piece.strides, piece->tile->strides, piece->lo, piece->hi, doing->item_size, &axes);
  return run == doing->part->grid->chunk_bytes ? tegula__tile_address(piece->tile, ndim, piece->lo) : NULL;
}

static tegula_status decode(tegula__worker *worker, const tegula__doing *doing, const chunk *c, const char *encoded, char *out,
                            tegula_error *err) {
  const tegula__grid *grid = doing->part->grid;
  const tegula__chunk *entry = c->planned->entry;
  tegula_error why;
  if (worker->decoder == NULL) worker->decoder = tegula__decoder_create(doing->engine->kernels);
  if (worker->decoder == NULL) return tegula__out_of_memory(err, grid->chunk_bytes);
  tegula_status status = tegula__decode(worker->decoder, grid->filters, grid->filter_count, entry->mask, encoded, entry->length, out,
                                        (size_t)grid->chunk_bytes, &why);
  return status == TEGULA_OK ? TEGULA_OK : could_not_decode(doing, c, &why, err);
}

/* `scratch`: room for a decoded chunk, where chunks are not stored as they are. */
static tegula_status move_chunk(tegula__worker *worker, const tegula__doing *doing, int64_t index, char *encoded, char *scratch,
                                tegula_error *err) {
  const tegula__grid *grid = doing->part->grid;
  chunk c = {.planned = &doing->plan->chunks[index]};
  tegula__plan_chunk(doing->plan, doing->part, index, c.lo, c.hi, &c.piece);
  FORWARD(tegula__find_pieces(worker, doing, c.lo, c.hi, err));
  char *place = final_place(worker, doing, &c), *from = encoded;
  if (place != NULL) return decode(worker, doing, &c, encoded, place, err);
  if (!tegula__chunk_plain(grid, c.planned->entry)) {
    from = scratch;
    FORWARD(decode(worker, doing, &c, encoded, from, err));
  }
  for (int64_t i = 0; i < worker->piece_count; i++)
    tegula__copy_piece(doing, c.lo, c.piece.strides, from + c.piece.offset, &worker->pieces[i]);
  return TEGULA_OK;
}

static tegula_status move_chunks(tegula__worker *worker, const tegula__doing *doing, char *memory, int64_t span, char *scratch,
                                 tegula_error *err) {
  const tegula__planned_chunk *chunks = doing->plan->chunks + doing->step->first;
  struct iovec vector = {.iov_base = memory, .iov_len = (size_t)span};
  worker->requests[0] = (tegula__request){.offset = (int64_t)chunks[0].entry->offset, .vectors = &vector, .count = 1};
  FORWARD(tegula__lane_move(worker->lane, &doing->file, worker->requests, 1, err));
  for (int64_t i = 0; i < doing->step->count; i++)
    FORWARD(move_chunk(worker, doing, doing->step->first + i, memory + (chunks[i].entry->offset - chunks[0].entry->offset), scratch, err));
  worker->staged_bytes += doing->step->bytes;
  return TEGULA_OK;
}

/* A decoder may hold as much as a chunk: of the workers that are more than there are processors, none keeps a large one. */
static void drop_large_decoder(tegula__worker *worker, const tegula__doing *doing) {
  if (!worker->extra || doing->part->grid->chunk_bytes <= tegula__staging_slot(doing->engine->staging)) return;
  tegula__decoder_destroy(worker->decoder);
  worker->decoder = NULL;
}

tegula_status tegula__chunks_step(tegula__worker *worker, const tegula__doing *doing, tegula_error *err) {
  const tegula__grid *grid = doing->part->grid;
  const tegula__chunk *first = doing->plan->chunks[doing->step->first].entry;
  const tegula__chunk *last = doing->plan->chunks[doing->step->first + doing->step->count - 1].entry;
  int64_t span = (int64_t)(last->offset + last->length - first->offset), decoded = grid->filter_count > 0 ? grid->chunk_bytes : 0;
  int64_t scratch = (span + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, bytes;
  tegula__block block;
  if (!tegula__add(scratch, decoded, &bytes)) return tegula__out_of_memory(err, INT64_MAX);
  if (bytes > tegula__staging_slot(doing->engine->staging)) FORWARD(tegula__memory_check(bytes, err));
  FORWARD(tegula__staging_lend(doing->engine->staging, bytes, decoded, &block, err));
  tegula_status status = move_chunks(worker, doing, block.data, span, block.data + scratch, err);
  drop_large_decoder(worker, doing);
  tegula__staging_return(doing->engine->staging, &block, decoded);
  return status;
}
