/* copy: what the parts of tegula_copy share.
 *
 * Begin reading at copy.c. copy_prepare.c chooses what is made, copy_attributes.c what is taken
 * along, copy_stream.c moves windows, copy_readback.c compares, copy_ranks.c does it on several
 * ranks. The folder includes dataset, save and verify, and all that they include.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_COPY_COPY_H
#define TEGULA_COPY_COPY_H

#include <pthread.h>

#include "memory/memory.h"
#include "plan/copy_windows.h"
#include "save/save_ranks.h"
#include "save/saving.h"

/* The save options, and what they point at that is ours. */
typedef struct tegula__copy_wanted {
  tegula_save_options save;
  tegula__buffer codec;
  tegula_tiling *tiling;
} tegula__copy_wanted;

typedef struct tegula__copying {
  tegula_dataset *dataset;
  tegula_copy_options options;
  tegula_copy_report report;
  int64_t bytes; /* of the array */
  tegula__saving saving;
  bool begun;                     /* it is to be ended */
  const tegula__manifest *target; /* where it goes */
  int64_t most;                   /* bytes of a window */
  tegula__windows windows;
  int64_t turn;             /* windows that came, of all ranks */
  tegula__rank_save *ranks; /* on several ranks: window i is rank i % ranks'; NULL */
  tegula__block blocks[2];  /* one is read while the other is written */
  tegula__tally reading;
  tegula__wanted wanted; /* while the save begins */
  const char *path;
  char first_dropped[512]; /* what was left out first, as a part of a sentence */
  /* progress of all phases together */
  tegula_progress_fn progress; /* the caller's, or NULL */
  void *progress_state;
  pthread_mutex_t lock; /* it is called from both directions */
  int64_t done, told, total;
} tegula__copying;

/* A tegula_progress_fn for a phase, or a window of one; `state` is the copying, whose `done` counts
 * those that have ended. */
int tegula__copying_progress(void *state, int64_t bytes_done, int64_t bytes_total);

/* Is the file or folder one that the dataset is read from, or does it hold one? NULL: no. */
const char *tegula__copying_reads(const tegula__manifest *manifest, const char *path);

/* A window on its way into memory, in the background. */
typedef struct tegula__copy_reading tegula__copy_reading;
/* Starts to read this process's next window into the other block; *out is NULL when there is
 * none. */
tegula_status tegula__copying_read(tegula__copying *copying, tegula__copy_reading **out,
                                   tegula_error *err);
/* Waits until it is there. */
tegula_status tegula__copying_wait(tegula__copy_reading *reading, const tegula__tile **tile,
                                   tegula_error *err);
/* It is written, and counted as done. */
void tegula__copying_done(tegula__copying *copying, tegula__copy_reading *reading);
/* Waits until nothing reads any more. Accepts NULL. */
void tegula__copying_give_up(tegula__copy_reading *reading);

/* copy_prepare.c and copy_stream.c: steps of a copy. What the options leave open is taken from the
 * dataset; the save is begun, and may be; all windows of this process are written, from memory for
 * them. */
tegula_status tegula__copying_prepare(tegula__copying *copying, tegula__copy_wanted *wanted,
                                      tegula_error *err);
tegula_status tegula__copying_make_blocks(tegula__copying *copying, tegula_error *err);
tegula_status tegula__copying_windows(tegula__copying *copying, tegula_error *err);
/* The report says what was written. */
void tegula__copying_note_target(tegula__copying *copying);
/* Bytes of a window, where one is read while one is written. */
int64_t tegula__copying_window_bytes(const tegula__copying *copying);
/* copy_ranks.c: tegula_copy on several ranks. `status`: that of the arguments on this rank. */
tegula_status tegula__copy_on_ranks(tegula__copying *copying, tegula__copy_wanted *wanted,
                                    tegula_status status, tegula_error *err);

/* copy_attributes.c: what is left out, told to the caller; `name` may be NULL. */
void tegula__copying_drop(tegula__copying *copying, uint32_t kind, const char *what,
                          const char *name, const char *reason);
/* Attributes of the dataset that go nowhere, since the target has none. */
tegula_status tegula__copying_list_attributes(tegula__copying *copying, tegula_error *err);
/* Begins the save, with what goes along. */
tegula_status tegula__copying_begin(tegula__copying *copying, const tegula_save_options *options,
                                    tegula_error *err);

/* copy_readback.c: reads the temporary target back; `state` is the copying. */
tegula_status tegula__copying_check(void *state, const tegula__saving *saving, tegula_error *err);
/* Collective, after an agreement: all ranks read it back; the outcome is the same on all. */
tegula_status tegula__copying_check_on_ranks(tegula__copying *copying, tegula_error *err);

#endif
