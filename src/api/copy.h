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
  tegula__windows windows;
  tegula__block blocks[2]; /* one is read while the other is written */
  tegula__tally reading;
  /* progress of all phases together */
  tegula_progress_fn progress; /* the caller's, or NULL */
  void *progress_state;
  pthread_mutex_t lock; /* it is called from both directions */
  int64_t done, told, total;
} tegula__copying;

/* A tegula_progress_fn for a phase, or a window of one; `state` is the copying, whose `done` counts those that have ended. */
int tegula__copying_progress(void *state, int64_t bytes_done, int64_t bytes_total);

/* copy_check.c: reads the temporary target back; `state` is the copying. */
tegula_status tegula__copying_check(void *state, const tegula__saving *saving, tegula_error *err);

#endif
