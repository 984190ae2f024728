/* Calls that work: without the GIL, and where they may take long, in a thread of their own, so that
 * the caller's thread can hear signals, tell the progress and keep the time.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only the main thread of a process hears signals; for the others a call needs a thread of its own
 * only when it has a progress callback or a time limit. A call that is cancelled is waited for: its
 * memory is ours. */
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core.h"

enum { LOOK_EVERY_NS = 50000000 };

int core_note(void *state, int64_t done, int64_t total) {
  core_call *call = state;
  atomic_store_explicit(&call->total, total, memory_order_relaxed);
  atomic_store_explicit(&call->done, done, memory_order_relaxed);
  return atomic_load_explicit(&call->cancelled, memory_order_relaxed) ||
         (call->stop != NULL && atomic_load_explicit(call->stop, memory_order_relaxed));
}

static void *run_apart(void *state) {
  core_call *call = state;
  call->run(call);
  pthread_mutex_lock(&call->lock);
  call->finished = true;
  pthread_cond_signal(&call->ended);
  pthread_mutex_unlock(&call->lock);
  return NULL;
}

/* Signals stay with the threads that Python knows. */
static bool start(core_call *call, pthread_t *thread) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(thread, NULL, run_apart, call) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

static bool wait_a_moment(core_call *call) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += LOOK_EVERY_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&call->lock);
  while (!call->finished && pthread_cond_timedwait(&call->ended, &call->lock, &until) == 0)
    continue;
  bool finished = call->finished;
  pthread_mutex_unlock(&call->lock);
  return finished;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* False with an exception when the callback raised. */
static bool tell(core_call *call) {
  if (call->progress == NULL || call->progress == Py_None || atomic_load(&call->total) == 0)
    return true;
  PyObject *said = PyObject_CallFunction(call->progress, "LL", (long long)atomic_load(&call->done),
                                         (long long)atomic_load(&call->total));
  Py_XDECREF(said);
  return said != NULL;
}

/* Returns false when an exception (or the time) has ended the call. */
static bool watch(core_call *call, bool signals, bool *late) {
  double begin = seconds();
  bool wanted = true, finished = false;
  while (!finished && core_generation() == call->process) {
    Py_BEGIN_ALLOW_THREADS;
    finished = wait_a_moment(call);
    Py_END_ALLOW_THREADS;
    if (finished || !wanted) continue;
    *late = call->timeout > 0 && seconds() - begin > call->timeout;
    wanted = !*late && !(signals && PyErr_CheckSignals() < 0) && tell(call);
    if (wanted) continue;
    atomic_store(&call->cancelled, true);
    if (call->work != NULL) atomic_store(call->work, true);
  }
  return wanted && (!finished || tell(call));
}

static bool hears_signals(void) { return getpid() == gettid(); }

/* False: no thread could be made. */
static bool run_watched(core_call *call, bool *wanted, bool *late) {
  pthread_condattr_t monotonic;
  pthread_t thread;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&call->lock, NULL);
  pthread_cond_init(&call->ended, &monotonic);
  pthread_condattr_destroy(&monotonic);
  bool started = start(call, &thread);
  if (started) {
    *wanted = watch(call, hears_signals(), late);
    /* a child that was forked by a callback has no such thread */
    if (core_generation() != call->process) return true;
    pthread_join(thread, NULL);
  }
  pthread_cond_destroy(&call->ended);
  pthread_mutex_destroy(&call->lock);
  return started;
}

static int late_failure(core_call *call) {
  call->error.status = TEGULA_TIMEOUT;
  snprintf(call->error.message, sizeof call->error.message, "it took longer than %g seconds",
           call->timeout);
  snprintf(call->error.hint, sizeof call->error.hint, "give more time (TEGULA_TIMEOUT)");
  core_raise(&call->error);
  return -1;
}

int core_run(core_call *call) {
  bool wanted = true, late = false;
  if (!core_usable()) return -1;
  call->error = (tegula_error){.rank = -1, .offset = -1};
  call->stop = core_flag_of(call->progress);
  if (call->stop != NULL) call->progress = NULL;
  call->process = core_generation();
  core_enter();
  bool needs_thread =
      !call->here && ((call->slow && hears_signals()) ||
                      (call->progress != NULL && call->progress != Py_None) || call->timeout > 0);
  if (!needs_thread || !run_watched(call, &wanted, &late)) {
    Py_BEGIN_ALLOW_THREADS;
    call->run(call);
    Py_END_ALLOW_THREADS;
  }
  /* nobody works in the child; what ran in the parent makes it unusable */
  if (core_generation() != call->process) {
    if (!PyErr_Occurred()) core_usable();
    return -1;
  }
  core_leave();
  if (late && call->status == TEGULA_CANCELLED) return late_failure(call);
  if (!wanted && !late) return -1;
  if (call->status != TEGULA_OK && call->status != TEGULA_END) core_raise(&call->error);
  return call->status == TEGULA_OK || call->status == TEGULA_END ? 0 : -1;
}
