/* The list of operations that have not ended, and the threads that run it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One lock guards everything. An operation that has ended in the background waits in a second list
 * until a call of the program passes by and releases it: a thread of the queue never gives back a
 * dataset or an array, which could be the last to hold the context. */
#include "order/queue.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define MOST_THREADS 16

struct tegula__queue {
  pthread_mutex_t lock;
  pthread_cond_t changed;          /* an operation came, started, ended or was cancelled */
  tegula_op *first, *last;         /* have not ended */
  tegula_op *ended;                /* to be released */
  tegula_op *failed, *last_failed; /* in order of their end; not reported yet */
  int64_t arrivals;
  int32_t waiting; /* background operations that have not started */
  int32_t idle, started, most;
  bool closing;
  pthread_t threads[MOST_THREADS];
};

/* ---- order ---- */

static bool reads_also(const tegula__touch *touch, const void *array) {
  for (int64_t i = 0; i < touch->array_count; i++)
    if (touch->arrays[i] == array) return true;
  return false;
}

static bool conflict(const tegula__touch *a, const tegula__touch *b) {
  if (a->array != NULL && a->array == b->array && (a->array_changes || b->array_changes))
    return true;
  if ((a->array_changes && reads_also(b, a->array)) ||
      (b->array_changes && reads_also(a, b->array)))
    return true;
  if (a->places_change && tegula__places_meet(a->places, b->reads)) return true;
  if (b->places_change && tegula__places_meet(a->reads, b->places)) return true;
  return (a->places_change || b->places_change) && tegula__places_meet(a->places, b->places);
}

/* May it start? One that was cancelled does nothing, so it need not wait. Lock held. */
static bool ready(const tegula_op *op) {
  if (atomic_load(&op->cancelled)) return true;
  for (const tegula_op *earlier = op->previous; earlier != NULL; earlier = earlier->previous)
    if (conflict(&op->touch, &earlier->touch)) return false;
  return true;
}

static void append(tegula__queue *queue, tegula_op *op) {
  op->queue = queue;
  op->number = queue->arrivals++;
  op->next = NULL;
  op->previous = queue->last;
  *(queue->last != NULL ? &queue->last->next : &queue->first) = op;
  queue->last = op;
}

static void take_out(tegula_op *op) {
  tegula__queue *queue = op->queue;
  *(op->previous != NULL ? &op->previous->next : &queue->first) = op->next;
  *(op->next != NULL ? &op->next->previous : &queue->last) = op->previous;
  op->next = op->previous = NULL;
}

/* ---- the foreground ---- */

bool tegula__queue_enter(tegula__queue *queue, tegula_op *op, const tegula__touch *touch) {
  *op = (tegula_op){.touch = *touch};
  pthread_mutex_lock(&queue->lock);
  append(queue, op);
  bool waits = !ready(op);
  while (!ready(op)) pthread_cond_wait(&queue->changed, &queue->lock);
  op->running = true;
  pthread_mutex_unlock(&queue->lock);
  return waits;
}

void tegula__queue_leave(tegula_op *op) {
  tegula__queue *queue = op->queue;
  pthread_mutex_lock(&queue->lock);
  take_out(op);
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
}

/* ---- the background ---- */

static tegula_op *next_to_run(tegula__queue *queue) {
  if (queue->waiting == 0) return NULL;
  for (tegula_op *op = queue->first; op != NULL; op = op->next)
    if (op->run != NULL && !op->running && ready(op)) return op;
  return NULL;
}

static void note_failure(tegula__queue *queue, tegula_op *op) {
  op->references++;
  op->next_ended = NULL;
  *(queue->last_failed != NULL ? &queue->last_failed->next : &queue->failed) = op;
  queue->last_failed = op;
}

/* Gives a reference back; the last one sends it to be released. Lock held. */
static void drop(tegula__queue *queue, tegula_op *op) {
  if (--op->references > 0) return;
  op->next_ended = queue->ended;
  queue->ended = op;
}

static void run_one(tegula__queue *queue, tegula_op *op) {
  op->running = true;
  queue->waiting--;
  pthread_mutex_unlock(&queue->lock);
  tegula_error error;
  tegula__error_clear(&error);
  tegula_status status =
      atomic_load(&op->cancelled)
          ? tegula__fail(&error, TEGULA_CANCELLED, NULL, -1, "cancelled before it started")
          : op->run(op, &error);
  pthread_mutex_lock(&queue->lock);
  take_out(op);
  op->ended = true;
  op->status = status;
  op->error = error;
  if (status != TEGULA_OK) note_failure(queue, op);
  drop(queue, op); /* the queue's own reference */
  pthread_cond_broadcast(&queue->changed);
}

/* A thread of the queue is woken by one of the program, which has other things to do: it must not
 * push that one off its processor, as the scheduler would let it. Only where nobody chose another
 * policy; where it is refused things stay as they are. */
static void give_way(void) {
  struct sched_param parameters;
  int policy;
  if (pthread_getschedparam(pthread_self(), &policy, &parameters) == 0 && policy == SCHED_OTHER)
    pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameters);
}

static void *thread_main(void *argument) {
  tegula__queue *queue = argument;
  give_way();
  pthread_mutex_lock(&queue->lock);
  for (;;) {
    tegula_op *op = next_to_run(queue);
    if (op != NULL) {
      run_one(queue, op);
      continue;
    }
    if (queue->closing && queue->waiting == 0) break;
    queue->idle++;
    pthread_cond_wait(&queue->changed, &queue->lock);
    queue->idle--;
  }
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}

/* A further thread when none is idle; not OK only when there would be none at all. Lock held. */
static tegula_status start_thread(tegula__queue *queue, tegula_error *err) {
  if (queue->idle > 0 || queue->started == queue->most) return TEGULA_OK;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); /* signals go to the program's own threads */
  int failed = pthread_create(&queue->threads[queue->started], NULL, thread_main, queue);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (failed == 0) queue->started++;
  return queue->started > 0 ? TEGULA_OK
                            : tegula__fail_errno(err, failed, NULL, -1, "could not start a thread");
}

/* Releases what has ended, outside of the lock. */
static void sweep(tegula__queue *queue) {
  pthread_mutex_lock(&queue->lock);
  tegula_op *ended = queue->ended;
  queue->ended = NULL;
  pthread_mutex_unlock(&queue->lock);
  while (ended != NULL) {
    tegula_op *op = ended;
    ended = op->next_ended;
    op->release(op);
  }
}

tegula_status tegula__queue_submit(tegula__queue *queue, tegula_op *op, tegula_error *err) {
  sweep(queue);
  pthread_mutex_lock(&queue->lock);
  tegula_status status = queue->closing
                             ? tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                                            "the context has been destroyed: nothing can be queued")
                             : start_thread(queue, err);
  if (status == TEGULA_OK) {
    op->references = 2;
    queue->waiting++;
    append(queue, op);
    pthread_cond_broadcast(&queue->changed);
  }
  pthread_mutex_unlock(&queue->lock);
  return status;
}

void tegula__queue_forget(tegula_op *op) {
  tegula__queue *queue = op->queue;
  pthread_mutex_lock(&queue->lock);
  drop(queue, op);
  pthread_mutex_unlock(&queue->lock);
  sweep(queue);
}

tegula_op *tegula__queue_retain(tegula_op *op) {
  pthread_mutex_lock(&op->queue->lock);
  op->references++;
  pthread_mutex_unlock(&op->queue->lock);
  return op;
}

void tegula__queue_conclude(tegula_op *op, tegula_status status, const tegula_error *error) {
  pthread_mutex_lock(&op->queue->lock);
  bool fails = op->status == TEGULA_OK && status != TEGULA_OK;
  op->status = status;
  op->error = *error;
  if (fails) note_failure(op->queue, op);
  pthread_mutex_unlock(&op->queue->lock);
}

bool tegula__queue_ended(const tegula_op *op) {
  pthread_mutex_lock(&op->queue->lock);
  bool ended = op->ended;
  pthread_mutex_unlock(&op->queue->lock);
  return ended;
}

void tegula__queue_cancel(tegula_op *op) {
  pthread_mutex_lock(&op->queue->lock);
  atomic_store(&op->cancelled, true);
  pthread_cond_broadcast(&op->queue->changed);
  pthread_mutex_unlock(&op->queue->lock);
}

static int watch(void *state, int64_t done, int64_t total) {
  const tegula_op *op = state;
  int stop = op->progress != NULL ? op->progress(op->progress_state, done, total) : 0;
  return stop != 0 || atomic_load(&op->cancelled);
}

void tegula__queue_watch(tegula_op *op, tegula_progress_fn *progress, void **progress_state) {
  op->progress = *progress;
  op->progress_state = *progress_state;
  *progress = watch;
  *progress_state = op;
}

/* Takes a failure out of the list of those to report. Lock held. */
static void report(tegula__queue *queue, tegula_op *op) {
  if (op->reported || op->status == TEGULA_OK) return;
  op->reported = true;
  tegula_op **link = &queue->failed, *before = NULL;
  while (*link != op) {
    before = *link;
    link = &(*link)->next;
  }
  *link = op->next;
  if (queue->last_failed == op) queue->last_failed = before;
  drop(queue, op);
}

static struct timespec deadline_after(int64_t nanoseconds) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  int64_t seconds = nanoseconds / 1000000000;
  at.tv_nsec += (long)(nanoseconds % 1000000000);
  if (at.tv_nsec >= 1000000000) {
    at.tv_nsec -= 1000000000;
    seconds++;
  }
  at.tv_sec = seconds > INT32_MAX ? INT32_MAX : at.tv_sec + (time_t)seconds;
  return at;
}

tegula_status tegula__queue_wait(tegula_op *op, int64_t timeout_ns, tegula_error *err) {
  tegula__queue *queue = op->queue;
  struct timespec until = deadline_after(timeout_ns > 0 ? timeout_ns : 0);
  int expired = 0;
  pthread_mutex_lock(&queue->lock);
  while (!op->ended && expired != ETIMEDOUT)
    expired = timeout_ns < 0 ? pthread_cond_wait(&queue->changed, &queue->lock)
                             : pthread_cond_timedwait(&queue->changed, &queue->lock, &until);
  tegula_status status = op->ended ? op->status : TEGULA_TIMEOUT;
  if (!op->ended)
    tegula__fail(err, TEGULA_TIMEOUT, NULL, -1, "the operation has not ended after %.3f seconds",
                 (double)timeout_ns * 1e-9);
  else if (status != TEGULA_OK) {
    if (err != NULL) *err = op->error;
    report(queue, op);
  }
  pthread_mutex_unlock(&queue->lock);
  return status;
}

/* Has anything of the background that came before `number` not ended? Lock held. */
static bool pending_before(const tegula__queue *queue, int64_t number) {
  for (const tegula_op *op = queue->first; op != NULL && op->number < number; op = op->next)
    if (op->run != NULL) return true;
  return false;
}

tegula_status tegula__queue_fence(tegula__queue *queue, tegula_error *err) {
  tegula_status status = TEGULA_OK;
  pthread_mutex_lock(&queue->lock);
  int64_t number = queue->arrivals;
  while (pending_before(queue, number)) pthread_cond_wait(&queue->changed, &queue->lock);
  tegula_op *first = NULL; /* to arrive, not to end: the same on every run */
  int64_t more = -1;
  for (tegula_op *op = queue->failed; op != NULL; op = op->next, more++)
    if (first == NULL || op->number < first->number) first = op;
  if (first != NULL) {
    status = first->status;
    if (err != NULL) *err = first->error;
    report(queue, first);
    if (more > 0)
      tegula__hint(err, status,
                   "%lld more operations failed; the next fence returns the next of them",
                   (long long)more);
  }
  pthread_mutex_unlock(&queue->lock);
  sweep(queue);
  return status;
}

/* ---- life ---- */

tegula_status tegula__queue_create(int32_t threads, tegula__queue **out, tegula_error *err) {
  tegula__queue *queue = calloc(1, sizeof *queue);
  if (queue == NULL) return tegula__out_of_memory(err, sizeof *queue);
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->changed, &clock);
  pthread_condattr_destroy(&clock);
  queue->most = (int32_t)tegula__max(2, tegula__min(threads, MOST_THREADS));
  *out = queue;
  return TEGULA_OK;
}

void tegula__queue_close(tegula__queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->closing = true;
  pthread_cond_broadcast(&queue->changed);
  int32_t started = queue->started;
  pthread_mutex_unlock(&queue->lock);
  for (int32_t i = 0; i < started; i++) pthread_join(queue->threads[i], NULL);
  pthread_mutex_lock(&queue->lock);
  queue->started = 0;
  while (queue->failed != NULL) report(queue, queue->failed); /* nobody asked */
  pthread_mutex_unlock(&queue->lock);
  sweep(queue);
}

void tegula__queue_destroy(tegula__queue *queue) {
  if (queue == NULL) return;
  pthread_mutex_destroy(&queue->lock);
  pthread_cond_destroy(&queue->changed);
  free(queue);
}
