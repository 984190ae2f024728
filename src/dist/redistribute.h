/* redistribute: pieces of the chunks of a round, to the ranks that encode them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each rank sends to the one behind it while it receives from the one before it, then to the second
 * one behind it, and so on, so all pairs have their turn and no two ranks wait for each other.
 * Messages have about 1 MiB; both sides cut the pieces alike. */
#ifndef TEGULA_DIST_REDISTRIBUTE_H
#define TEGULA_DIST_REDISTRIBUTE_H

#include "dist/chunk_assignment.h"

typedef struct tegula__exchange tegula__exchange;

/* `tiles` are this rank's, numbers[i] says which of the tiling. `dtype` is the array's. All
 * borrowed. */
tegula_status tegula__exchange_create(const tegula__deal *deal, tegula_comm *comm,
                                      const tegula__kernels *kernels, tegula_dtype dtype,
                                      const tegula__tile *tiles, const int64_t *numbers,
                                      int64_t count, tegula__exchange **out, tegula_error *err);
/* Not while the group is broken: transfers that are not done may write to it. */
void tegula__exchange_destroy(tegula__exchange *exchange);
/* Memory for a round: what may fail before all ranks have agreed. */
tegula_status tegula__exchange_prepare(tegula__exchange *exchange, int64_t round,
                                       tegula_error *err);
/* Collective: puts together the shared chunks of the round that are this rank's. */
tegula_status tegula__exchange_run(tegula__exchange *exchange, tegula_error *err);
/* Those chunks, as dense tiles, in the order of the array; valid until the next round is
 * prepared. */
const tegula__tile *tegula__exchange_tiles(const tegula__exchange *exchange, int64_t *count);

#endif
