/* Which pieces of the tiles lie in a box.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine_priv.h"

tegula_status tegula__find_pieces(tegula__worker *worker, const tegula__doing *doing,
                                  const int64_t *box_lo, const int64_t *box_hi, tegula_error *err) {
  const tegula__targets *targets = doing->targets;
  int32_t ndim = targets->ndim;
  int64_t first, last;
  tegula__targets_find(targets, box_lo, box_hi, &first, &last);
  if (!tegula__vector_reserve((void **)&worker->pieces, &worker->piece_capacity, last - first,
                              sizeof *worker->pieces) ||
      !tegula__vector_reserve((void **)&worker->vectors, &worker->vector_capacity,
                              (last - first) * 2 * ndim + 1, sizeof *worker->vectors))
    return tegula__out_of_memory(err, (last - first) * (int64_t)sizeof *worker->pieces);
  worker->piece_count = 0;
  for (int64_t i = first; i < last; i++) {
    const tegula__tile *tile = &targets->tiles[targets->sorted[i]];
    int64_t *lo = worker->vectors + worker->piece_count * 2 * ndim, *hi = lo + ndim;
    if (tegula__box_intersect(ndim, box_lo, box_hi, tile->lo, tile->hi, lo, hi))
      worker->pieces[worker->piece_count++] = (tegula__piece){.tile = tile, .lo = lo, .hi = hi};
  }
  return TEGULA_OK;
}
