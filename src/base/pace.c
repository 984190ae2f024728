/* Measuring and deciding.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Time off the processor counts as sleep only when the kernel says that the thread gave it up by
 * itself (a voluntary context switch): a thread that other programs push aside is not waiting for
 * storage. */
#include "base/pace.h"

#include <sys/resource.h>
#include <time.h>

#define WINDOW_SECONDS 0.004
#define PATIENCE 3
/* one task in so many is timed while nobody sleeps: a timed task costs about half a microsecond
 * more */
#define CALM_SAMPLE 8

static int64_t nanoseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t of_timeval(struct timeval time) {
  return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

void tegula__pace_init(tegula__pace *pace, int32_t width, int32_t most) {
  *pace = (tegula__pace){
      .width = width, .most = most, .widest = width, .before = width, .settled = width >= most};
  pthread_mutex_init(&pace->lock, NULL);
}

void tegula__pace_free(tegula__pace *pace) { pthread_mutex_destroy(&pace->lock); }

bool tegula__pace_wants(const tegula__pace *pace, int64_t item) {
  if (atomic_load_explicit(&pace->settled, memory_order_relaxed)) return false;
  return !atomic_load_explicit(&pace->calm, memory_order_relaxed) || item % CALM_SAMPLE == 0;
}

int32_t tegula__pace_width(const tegula__pace *pace) {
  return atomic_load_explicit(&pace->width, memory_order_relaxed);
}
int32_t tegula__pace_widest(const tegula__pace *pace) { return pace->widest; }

void tegula__pace_start(tegula__lap *lap) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  lap->total_ns = nanoseconds(CLOCK_MONOTONIC);
  lap->processor_ns = of_timeval(usage.ru_utime) + of_timeval(usage.ru_stime);
  lap->sleeps = usage.ru_nvcsw;
}

/* The next width, when a window has been measured; lock held. New threads take a while to come, so
 * that a change gets PATIENCE windows to show what it is worth. */
static int32_t decide(tegula__pace *pace, double rate, double asleep) {
  int32_t width = tegula__pace_width(pace);
  bool grown = width > pace->before, was_calm = atomic_exchange(&pace->calm, asleep < 0.1);
  if (was_calm) return width; /* its rate is that of a sample */
  if (grown && rate < 1.1 * pace->rate_before) {
    if (++pace->doubts < PATIENCE) return width;
    pace->settled = true;
    return rate < 0.85 * pace->rate_before ? pace->before : width;
  }
  pace->doubts = 0;
  if (asleep < 0.5) return width;
  pace->before = width;
  pace->rate_before = rate;
  return (int32_t)tegula__min(2 * (int64_t)width, pace->most);
}

bool tegula__pace_end(tegula__pace *pace, const tegula__lap *start) {
  tegula__lap end;
  tegula__pace_start(&end);
  int64_t total = end.total_ns - start->total_ns,
          asleep = total - (end.processor_ns - start->processor_ns);
  atomic_fetch_add(&pace->total_ns, total);
  if (end.sleeps > start->sleeps && asleep > 0) atomic_fetch_add(&pace->asleep_ns, asleep);
  int64_t tasks = atomic_fetch_add(&pace->tasks, 1) + 1;
  int32_t width = tegula__pace_width(pace);
  if (tasks < 2 * width || pthread_mutex_trylock(&pace->lock) != 0) return false;
  double now = (double)end.total_ns * 1e-9;
  if (pace->window_start == 0) pace->window_start = (double)start->total_ns * 1e-9;
  bool wider = false;
  if (now - pace->window_start >= WINDOW_SECONDS && !pace->settled) {
    int64_t slept = atomic_exchange(&pace->asleep_ns, 0), all = atomic_exchange(&pace->total_ns, 0);
    double rate = (double)atomic_exchange(&pace->tasks, 0) / (now - pace->window_start);
    int32_t next = decide(pace, rate, all > 0 ? (double)slept / (double)all : 0);
    wider = next > width;
    pace->widest = next > pace->widest ? next : pace->widest;
    pace->window_start = now;
    atomic_store(&pace->width, next);
  }
  pthread_mutex_unlock(&pace->lock);
  return wider;
}
