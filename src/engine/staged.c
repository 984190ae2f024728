/* Staged steps: one range of the file in a slot, then one fused pass that swaps, transposes and
 * scatters (or gathers, to write).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The slot holds the step's box in the file's order. The innermost axes that one request spans lie
 * as in the file (short gaps included), requests lie one behind the other:
 *
 *   box of 2 rows x 3 columns out of wide rows:
 *   request 0 [a b c]   request 1 [d e f]   ->   slot [a b c d e f] */
#include <stdlib.h>

#include "engine/engine_priv.h"

/* How a box lies in the slot, and the requests that fill it. */
typedef struct staging_layout {
  int64_t strides[TEGULA_MAX_DIMS]; /* of the slot; 0 for axes of length 1 */
  int64_t span;                     /* bytes of one request */
  int64_t bytes;                    /* of all requests together */
  tegula__file_order order;
  int32_t outer; /* axes of order that lie outside of a request */
} staging_layout;

static void lay_out(const tegula__doing *doing, const int64_t *lo, const int64_t *hi,
                    staging_layout *out) {
  const tegula__part *part = doing->part;
  for (int32_t k = 0; k < doing->move->manifest->ndim; k++) out->strides[k] = 0;
  tegula__file_order_of(part, doing->move->manifest->ndim, lo, hi, &out->order);
  int32_t inner = tegula__read_unit(&out->order, part->strides, lo, hi, doing->item_size,
                                    doing->step->gap, &out->span);
  out->outer = out->order.count - inner;
  for (int32_t i = out->outer; i < out->order.count; i++)
    out->strides[out->order.axes[i]] = part->strides[out->order.axes[i]];
  out->bytes = out->span;
  for (int32_t i = out->outer - 1; i >= 0; i--) {
    int32_t k = out->order.axes[i];
    out->strides[k] = out->bytes;
    out->bytes *= hi[k] - lo[k];
  }
}

/* To the next request of a box, in the file's order; false after the last. */
static bool advance(const tegula__part *part, const int64_t *lo, const int64_t *hi,
                    const staging_layout *layout, int64_t *index, int64_t *offset) {
  for (int32_t i = layout->outer - 1; i >= 0; i--) {
    int32_t k = layout->order.axes[i];
    *offset += part->strides[k];
    if (++index[i] < hi[k] - lo[k]) return true;
    *offset -= index[i] * part->strides[k];
    index[i] = 0;
  }
  return false;
}

/* A request for the file's head, if this step brings it. */
static int start_with_head(tegula__worker *worker, const tegula__doing *doing,
                           struct iovec *vector) {
  if (doing->head_size == 0) return 0;
  *vector = (struct iovec){.iov_base = doing->head, .iov_len = doing->head_size};
  worker->requests[0] = (tegula__request){.offset = 0, .vectors = vector, .count = 1};
  return 1;
}

/* Reads or writes all requests of a box, as many at once as the lane likes; the head lies in one
 * with what follows it. */
static tegula_status transfer(tegula__worker *worker, const tegula__doing *doing, const int64_t *lo,
                              const int64_t *hi, const staging_layout *layout, char *slot,
                              tegula_error *err) {
  struct iovec vectors[TEGULA__IO_DEPTH + 1];
  int64_t offset = tegula__part_offset(doing->part, doing->move->manifest->ndim, lo),
          index[TEGULA_MAX_DIMS] = {0};
  int depth = tegula__lane_depth(worker->lane), count = start_with_head(worker, doing, vectors),
      used = count;
  for (bool more = true; more;) {
    vectors[used] = (struct iovec){.iov_base = slot, .iov_len = (size_t)layout->span};
    if (used == 1 && offset == (int64_t)doing->head_size)
      worker->requests[0].count = 2;
    else
      worker->requests[count++] =
          (tegula__request){.offset = offset, .vectors = &vectors[used], .count = 1};
    used++;
    slot += layout->span;
    more = advance(doing->part, lo, hi, layout, index, &offset);
    if (more && count < depth) continue;
    FORWARD(tegula__lane_move(worker->lane, &doing->file, worker->requests, count, err));
    count = used = 0;
  }
  return TEGULA_OK;
}

void tegula__copy_piece(const tegula__doing *doing, const int64_t *lo, const int64_t *slot_strides,
                        char *slot, const tegula__piece *piece) {
  int32_t ndim = doing->move->manifest->ndim;
  int64_t extents[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < ndim; k++) {
    extents[k] = piece->hi[k] - piece->lo[k];
    slot += (piece->lo[k] - lo[k]) * slot_strides[k];
  }
  char *memory = tegula__tile_address(piece->tile, ndim, piece->lo);
  uint32_t swap = piece->tile->order != doing->part->order ? doing->swap_size : 1;
  if (doing->move->writing)
    tegula__copy_strided(doing->engine->kernels, slot, slot_strides, memory, piece->tile->strides,
                         extents, ndim, doing->item_size, swap);
  else
    tegula__copy_strided(doing->engine->kernels, memory, piece->tile->strides, slot, slot_strides,
                         extents, ndim, doing->item_size, swap);
}

char *tegula__as_stored(const tegula__worker *worker, const tegula__doing *doing,
                        const tegula__part *chunk) {
  const tegula__piece *piece = worker->pieces;
  int32_t ndim = doing->move->manifest->ndim, axes;
  RETURN_IF(worker->piece_count != 1 || chunk->offset != 0, NULL);
  RETURN_IF(doing->swap_size > 1 && piece->tile->order != doing->part->order, NULL);
  tegula__file_order order;
  tegula__file_order_of(chunk, ndim, piece->lo, piece->hi, &order);
  int64_t run = tegula__common_run(&order, chunk->strides, piece->tile->strides, piece->lo,
                                   piece->hi, doing->item_size, &axes);
  return run == doing->part->grid->chunk_bytes ? tegula__tile_address(piece->tile, ndim, piece->lo)
                                               : NULL;
}

static tegula_status read_box(tegula__worker *worker, const tegula__doing *doing, char *slot,
                              tegula_error *err) {
  staging_layout layout;
  lay_out(doing, doing->step->lo, doing->step->hi, &layout);
  FORWARD(transfer(worker, doing, doing->step->lo, doing->step->hi, &layout, slot, err));
  for (int64_t i = 0; i < worker->piece_count; i++)
    tegula__copy_piece(doing, doing->step->lo, layout.strides, slot, &worker->pieces[i]);
  return TEGULA_OK;
}

/* Writes the step's box at once when the pieces cover it, else each piece by itself: what other
 * ranks own is not touched. */
static tegula_status write_box(tegula__worker *worker, const tegula__doing *doing, char *slot,
                               tegula_error *err) {
  int32_t ndim = doing->move->manifest->ndim;
  staging_layout layout;
  if (tegula__box_count(ndim, doing->step->lo, doing->step->hi) * doing->item_size ==
      doing->step->bytes) {
    lay_out(doing, doing->step->lo, doing->step->hi, &layout);
    for (int64_t i = 0; i < worker->piece_count; i++)
      tegula__copy_piece(doing, doing->step->lo, layout.strides, slot, &worker->pieces[i]);
    return transfer(worker, doing, doing->step->lo, doing->step->hi, &layout, slot, err);
  }
  for (int64_t i = 0; i < worker->piece_count; i++) {
    const tegula__piece *piece = &worker->pieces[i];
    lay_out(doing, piece->lo, piece->hi, &layout);
    tegula__copy_piece(doing, piece->lo, layout.strides, slot, piece);
    FORWARD(transfer(worker, doing, piece->lo, piece->hi, &layout, slot, err));
  }
  return TEGULA_OK;
}

tegula_status tegula__staged_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula_error *err) {
  tegula__staging *staging = doing->engine->staging;
  staging_layout layout;
  lay_out(doing, doing->step->lo, doing->step->hi, &layout);
  /* a single item that is larger than a slot */
  bool large = layout.bytes > tegula__staging_slot(staging);
  char *slot = large ? malloc((size_t)layout.bytes) : tegula__staging_take(staging);
  if (slot == NULL) return tegula__out_of_memory(err, layout.bytes);
  tegula_status status = doing->move->writing ? write_box(worker, doing, slot, err)
                                              : read_box(worker, doing, slot, err);
  if (large)
    free(slot);
  else
    tegula__staging_give(staging, slot);
  worker->staged_bytes += doing->step->bytes;
  return status;
}
