/* Steps about what is not stored: filled, or an error, as the caller of the move wants it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "engine/engine_priv.h"

static void fill_pieces(const tegula__worker *worker, const tegula__doing *doing,
                        const void *fill) {
  int32_t ndim = doing->move->manifest->ndim;
  for (int64_t i = 0; i < worker->piece_count; i++) {
    const tegula__piece *piece = &worker->pieces[i];
    int64_t extents[TEGULA_MAX_DIMS];
    for (int32_t k = 0; k < ndim; k++) extents[k] = piece->hi[k] - piece->lo[k];
    uint32_t swap = piece->tile->order != doing->move->manifest->dtype.order ? doing->swap_size : 1;
    tegula__fill_strided(tegula__tile_address(piece->tile, ndim, piece->lo), piece->tile->strides,
                         extents, ndim, doing->item_size, fill, swap);
  }
}

static tegula_status absent(const tegula__doing *doing, const int64_t *lo, tegula_error *err) {
  const tegula__manifest *manifest = doing->move->manifest;
  int64_t file = tegula__part_file(doing->part);
  if (file < 0 && manifest->file_count == 1) file = 0; /* else nobody knows which */
  const char *path = file >= 0 ? manifest->files[file].path : NULL;
  char place[TEGULA__SHAPE_TEXT];
  tegula__shape_format(lo, manifest->ndim, place);
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_INCOMPLETE, path, -1,
                                   "the data at %s of dataset \"%.200s\"%s%s%s was never written",
                                   place, manifest->name, path != NULL ? " in \"" : "",
                                   path != NULL ? path : "", path != NULL ? "\"" : ""),
                      "with missing=error or missing=fill it gets the fill value");
}

static tegula_status fill_chunks(tegula__worker *worker, const tegula__doing *doing,
                                 tegula_error *err) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  tegula__part piece;
  for (int64_t i = 0; i < doing->step->count; i++) {
    tegula__plan_chunk(doing->plan, doing->step->first + i, lo, hi, &piece);
    if (doing->move->missing == TEGULA_MISSING_STRICT) return absent(doing, lo, err);
    FORWARD(tegula__find_pieces(worker, doing, lo, hi, err));
    fill_pieces(worker, doing, doing->part->grid->fill);
  }
  return TEGULA_OK;
}

tegula_status tegula__absent_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula_error *err) {
  const tegula__part *part = doing->part;
  if (part->kind == TEGULA__PART_CHUNKED && doing->step->count > 0)
    return fill_chunks(worker, doing, err);
  if (part->kind == TEGULA__PART_LOST && doing->move->missing != TEGULA_MISSING_FILL) {
    if (err != NULL) *err = *part->lost;
    return part->lost->status;
  }
  if (doing->move->missing == TEGULA_MISSING_STRICT) return absent(doing, doing->step->lo, err);
  fill_pieces(worker, doing, part->kind == TEGULA__PART_CHUNKED ? part->grid->fill : part->fill);
  return TEGULA_OK;
}
