/* copy: what the parts of tegula_copy share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_API_COPY_H
#define TEGULA_API_COPY_H

#include <pthread.h>

#include "api/copy_windows.h"
#include "api/saving.h"
#include "memory/memory.h"

typedef struct tegula__copying {
  tegula_dataset *dataset;
  tegula_copy_options options;
  tegula_copy_report report;
  int64_t bytes; /* of the array */
  tegula__saving saving;
  bool begun; /* it is to be ended */
  tegula__windows windows;
  tegula__block blocks[2]; /* one is read while the other is written */
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

/* A tegula_progress_fn for a phase, or a window of one; `state` is the copying, whose `done` counts those that have ended. */
int tegula__copying_progress(void *state, int64_t bytes_done, int64_t bytes_total);

/* Is the file or folder one that the dataset is read from, or does it hold one? NULL: no. */
const char *tegula__copying_reads(const tegula__manifest *manifest, const char *path);

/* copy_along.c: what is left out, told to the caller; `name` may be NULL. */
void tegula__copying_drop(tegula__copying *copying, uint32_t kind, const char *what, const char *name, const char *reason);
/* Attributes of the dataset that go nowhere, since the target has none. */
tegula_status tegula__copying_list_attributes(tegula__copying *copying, tegula_error *err);
/* Begins the save, with what goes along. */
tegula_status tegula__copying_begin(tegula__copying *copying, const tegula_save_options *options, tegula_error *err);

/* copy_check.c: reads the temporary target back; `state` is the copying. */
tegula_status tegula__copying_check(void *state, const tegula__saving *saving, tegula_error *err);

#endif
