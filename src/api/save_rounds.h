/* save_rounds: chunks that are written by several ranks, whose places rank 0 finds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_API_SAVE_ROUNDS_H
#define TEGULA_API_SAVE_ROUNDS_H

#include "api/saving.h"

/* Collective, after an agreement; the outcome is still to be agreed. `move` is that of this rank (its placer: rank 0's), `numbers` say which tiles of
 * the tiling it has. */
tegula_status tegula__save_rounds(tegula_context *context, const tegula__move *move, const tegula_tiling *tiling, tegula_dtype dtype,
                                  const int64_t *numbers, tegula_error *err);

#endif
