/* How many workers a job that waits for storage should have: found by measuring the job while it
 * runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Data that is in memory keeps as many threads busy as there are processors; storage that answers
 * in a millisecond wants dozens of requests on their way. Each task is timed: when the workers of a
 * job slept through most of it, the number of workers is doubled; that goes on while it pays. A
 * width that turns out slower than the one before is taken back. */
#ifndef TEGULA_BASE_PACE_H
#define TEGULA_BASE_PACE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"

typedef struct tegula__pace {
  _Atomic int32_t width;
  int32_t most;
  _Atomic int64_t asleep_ns, total_ns, tasks; /* of the current window */
  pthread_mutex_t lock;                       /* of what follows; only tried, never waited for */
  int32_t widest, before;                     /* width before the last change */
  double window_start, rate_before;           /* tasks a second at the width before */
  /* windows in a row in which the last change did not pay */
  int32_t doubts;
  _Atomic bool settled; /* nothing more to find out */
  _Atomic bool calm;    /* nobody slept lately: only some tasks are timed */
} tegula__pace;

/* Taken around a task. */
typedef struct tegula__lap {
  int64_t total_ns, processor_ns, sleeps;
} tegula__lap;

void tegula__pace_init(tegula__pace *pace, int32_t width, int32_t most);
int32_t tegula__pace_width(const tegula__pace *pace);
/* The most workers it ever had. Not while the job runs. */
int32_t tegula__pace_widest(const tegula__pace *pace);
void tegula__pace_free(tegula__pace *pace);
/* Should this task be timed? */
bool tegula__pace_wants(const tegula__pace *pace, int64_t item);
void tegula__pace_start(tegula__lap *lap);
/* True when the job has just got wider. */
bool tegula__pace_end(tegula__pace *pace, const tegula__lap *lap);

#endif
