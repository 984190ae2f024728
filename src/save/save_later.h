/* save_later: saves in the background on several ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * All ranks begin such a save together, each writes its tiles on a thread of the queue, and all end
 * it together: where the program waits for it, at a fence, or before a call that would change what
 * it saves or uses its path. So no call of MPI comes from a thread of the queue. Chunks go in
 * rounds, in which ranks need each other: they are encoded and written at the end. */
#ifndef TEGULA_SAVE_SAVE_LATER_H
#define TEGULA_SAVE_SAVE_LATER_H

#include "save/save_ranks.h"

typedef struct tegula__later {
  /* of the context's that have not ended, in the order in which they were begun: the same on all
   * ranks */
  struct tegula__later *next;
  tegula_op *op;             /* this rank's part; a reference is held until the end */
  const tegula_array *array; /* borrowed from the operation */
  const char *said;          /* the path as it was given; the same */
  tegula__places places;
  tegula__rank_save ranks;
  tegula__saving saving; /* rank 0's */
  bool written;          /* this rank's part was not cancelled before it began; its outcome: */
  tegula_status status;
  tegula_error error;
  bool ended; /* the operation has the outcome of all */
} tegula__later;

/* Collective: array and said are there; `path` is where it goes, `options` live until the end, and
 * `status` is that of this rank's arguments. Not OK: nothing was begun. */
tegula_status tegula__later_begin(tegula__later *later, const char *path,
                                  const tegula_save_options *options, tegula_status status,
                                  tegula_error *err);
/* Collective, when `op` was queued, or was not (`status`). Not OK: it was taken back, and the
 * caller has the only reference to it, if it was queued. */
tegula_status tegula__later_queued(tegula__later *later, tegula_op *op, tegula_status status,
                                   tegula_error *err);
/* This rank's part. */
void tegula__later_write(tegula__later *later);

/* Collective: waits and ends it; `name`: the call. TIMEOUT, and nothing is changed, where one
 * rank's part has not ended. */
tegula_status tegula__later_wait(tegula__later *later, const char *name, int64_t timeout_ns,
                                 tegula_error *err);

/* Collective: ends all; those that need this array as it is; those to these paths. Their outcome
 * stays with their operations: a failure here is one of the ranks that did not come to it. */
tegula_status tegula__later_end_all(tegula_context *context, const char *name, tegula_error *err);
tegula_status tegula__later_end_of_array(tegula_context *context, const tegula_array *array,
                                         const char *name, tegula_error *err);
tegula_status tegula__later_end_of_paths(tegula_context *context, const char *const *paths,
                                         size_t count, const char *name, tegula_error *err);
/* This rank alone, when the context goes: what was not waited for is given up. */
void tegula__later_give_up_all(tegula_context *context);

/* save_on_ranks.c: tegula_save and tegula_save_group on several ranks. `status`: that of the
 * arguments on this rank. */
tegula_status tegula__save_on_ranks(tegula_context *context, const tegula__group *group,
                                    const char *path, const tegula_save_options *options,
                                    const char *name, tegula_status status, tegula_error *err);

/* open_after_saves.c: opens a dataset, once saves in the background to its paths have ended.
 * Collective. */
tegula_status tegula__open_any(tegula_context *context, const char *const *paths, size_t count,
                               const tegula_open_options *options, tegula_dataset **out,
                               tegula_error *err);

#endif
