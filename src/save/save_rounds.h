/* save_rounds: chunks that are written by several ranks, whose places rank 0 finds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_SAVE_SAVE_ROUNDS_H
#define TEGULA_SAVE_SAVE_ROUNDS_H

#include "dist/chunk_assignment.h"
#include "save/saving.h"

/* Collective, after an agreement; the outcome is still to be agreed. `move` is that of this rank
 * (its placer: rank 0's), `numbers` say which tiles of the tiling it has. */
tegula_status tegula__save_rounds(tegula_context *context, const tegula__move *move,
                                  const tegula_tiling *tiling, tegula_dtype dtype,
                                  const int64_t *numbers, tegula_error *err);

/* Where tiles come round by round: those that have this rank's chunks of the next one, until it is
 * asked again. */
typedef struct tegula__round_tiles {
  tegula_status (*next)(void *state, int64_t round, const tegula__tile **tiles, int64_t *count,
                        tegula_error *err);
  void *state;
} tegula__round_tiles;
/* The same with chunks that are dealt out already, none of which several ranks have; takes the
 * deal. `dealt`: how that went. */
tegula_status tegula__save_rounds_dealt(tegula_context *context, const tegula__move *move,
                                        tegula__deal *deal, tegula_status dealt,
                                        const tegula__round_tiles *tiles, tegula_error *err);

#endif
