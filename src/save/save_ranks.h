/* save_ranks: a save whose tiles are on several ranks. Rank 0 begins it and ends it, and all write.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_SAVE_SAVE_RANKS_H
#define TEGULA_SAVE_SAVE_RANKS_H

#include "save/saving.h"

typedef struct tegula__rank_save {
  tegula_context *context;
  const tegula_save_options *options; /* progress, statistics, durable */
  tegula__saving *saving;             /* rank 0's, begun by the caller; of no use to the others */
  bool begun;                         /* it is to be ended */
  tegula__manifest *manifests;        /* the others': one for each member */
  tegula__file_set **files;
  int64_t count;
  tegula__tally tally;
} tegula__rank_save;

/* Collective: all of a beginning. `said` is what the ranks must have been called with, `path` where
 * it goes, `status` that of this rank's arguments. Not OK: it has ended. */
tegula_status tegula__rank_save_begin(tegula__rank_save *save, const tegula__group *group,
                                      const char *said, const char *path, const char *name,
                                      tegula_status status, tegula_error *err);
/* Collective. `status`: how rank 0 began; the others get its places, or its error. Ended by
 * tegula__rank_save_end in any case. */
tegula_status tegula__rank_save_share(tegula__rank_save *save, tegula_status status,
                                      tegula_error *err);
/* Where the bytes of a member belong. */
const tegula__manifest *tegula__rank_save_manifest(const tegula__rank_save *save, int64_t number);
/* Does its chunks' places rank 0 have to find? */
bool tegula__rank_save_in_rounds(const tegula__rank_save *save, int64_t number);
/* Tiles of this rank as a move to be run; `placer` gets rank 0's. */
tegula__move tegula__rank_save_move_of(tegula__rank_save *save, int64_t number,
                                       const tegula__tile *tiles, int64_t count,
                                       tegula__placer *placer);
/* Its error, as the user is to see it. */
tegula_status tegula__rank_save_explain(const tegula__rank_save *save, tegula_status status,
                                        tegula_error *err);
/* Writes tiles to a member that is not in rounds. Nothing is agreed. */
tegula_status tegula__rank_save_move(tegula__rank_save *save, int64_t number,
                                     const tegula__tile *tiles, int64_t count, tegula_error *err);
/* Collective, after an agreement: writes the tiles of an array; the outcome is still to be
 * agreed. */
tegula_status tegula__rank_save_array(tegula__rank_save *save, int64_t number,
                                      const tegula__array *array, tegula_error *err);
/* Collective: an agreed status; makes it visible, or takes everything back. */
tegula_status tegula__rank_save_end(tegula__rank_save *save, tegula_status status,
                                    tegula_error *err);
/* What of this a rank does by itself. */
tegula_status tegula__rank_save_end_here(tegula__rank_save *save, tegula_status status,
                                         tegula_error *err);

/* What all ranks must have been called with: path and options. `dtype`: of the fill value. */
void tegula__call_save(tegula__call *call, const char *path, const tegula_save_options *options,
                       tegula_dtype dtype);

#endif
