/* The pool: jobs in a list, helpers that take items from the oldest job with work left.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A job lives on the stack of the call that runs it. It leaves the list when its items are handed
 * out, and the call returns when the last helper has left it; both happen under the pool's lock,
 * items themselves are taken with one atomic addition. How wide a waiting job gets is pace.c's
 * decision. */
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/pace.h"

typedef struct job {
  struct job *next;
  tegula__task_fn task;
  void *state;
  int64_t count;
  _Atomic int64_t taken;
  tegula__pace *pace; /* NULL: a job that only computes */
  int32_t joined;     /* worker numbers given out; under the pool's lock, like all below */
  int32_t running;    /* helpers inside */
  bool listed;
} job;

struct tegula__pool {
  int32_t threads;
  int32_t most;
  int32_t started;
  /* helpers that count as processors: those with a worker number below `threads` */
  int32_t working;
  bool closing;
  job *jobs;
  pthread_mutex_t lock;
  pthread_cond_t work; /* a job came, one got wider, or closing */
  pthread_cond_t idle; /* a helper left a job */
  pthread_t *helpers;
};

static void unlist(tegula__pool *pool, job *wanted) {
  if (!wanted->listed) return;
  job **link = &pool->jobs;
  while (*link != wanted) link = &(*link)->next;
  *link = wanted->next;
  wanted->listed = false;
}

static int32_t width_of(const tegula__pool *pool, const job *current) {
  return current->pace != NULL ? tegula__pace_width(current->pace) : pool->threads;
}

/* The oldest job that can use one more worker; lock held. Helpers beyond the processors go only to
 * jobs that wait. */
static job *find_job(const tegula__pool *pool) {
  for (job *current = pool->jobs; current != NULL; current = current->next) {
    bool as_processor = current->joined < pool->threads;
    if (current->joined < width_of(pool, current) &&
        (!as_processor || pool->working < pool->threads - 1))
      return current;
  }
  return NULL;
}

/* Starts helpers up to `wanted`; a thread that cannot be had is done without. Signals go to the
 * program's own threads. Lock held. */
static void *helper_main(void *argument);
static void start_helpers(tegula__pool *pool, int64_t wanted) {
  if (pool->started >= wanted) return;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  while (pool->started < wanted &&
         pthread_create(&pool->helpers[pool->started], NULL, helper_main, pool) == 0)
    pool->started++;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Lets more helpers in after the job has got wider. */
static void widen(tegula__pool *pool, const job *current) {
  pthread_mutex_lock(&pool->lock);
  int64_t left = current->count - atomic_load(&current->taken);
  start_helpers(pool, tegula__min(tegula__pace_width(current->pace) - 1,
                                  current->joined - 1 + tegula__max(left, 0)));
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->lock);
}

static void work_on(tegula__pool *pool, job *current, int32_t worker) {
  for (;;) {
    /* it got narrower */
    if (current->pace != NULL && worker >= tegula__pace_width(current->pace)) return;
    int64_t item = atomic_fetch_add_explicit(&current->taken, 1, memory_order_relaxed);
    if (item >= current->count) return;
    if (current->pace == NULL || !tegula__pace_wants(current->pace, item)) {
      current->task(current->state, worker, item);
      continue;
    }
    tegula__lap lap;
    tegula__pace_start(&lap);
    current->task(current->state, worker, item);
    if (tegula__pace_end(current->pace, &lap)) widen(pool, current);
  }
}

static void help(tegula__pool *pool, job *current) {
  int32_t worker = current->joined++;
  bool as_processor = worker < pool->threads;
  pool->working += as_processor;
  current->running++;
  pthread_mutex_unlock(&pool->lock);
  work_on(pool, current, worker);
  pthread_mutex_lock(&pool->lock);
  if (atomic_load(&current->taken) >= current->count) unlist(pool, current);
  pool->working -= as_processor;
  /* another job may wait for a processor */
  if (as_processor && pool->jobs != NULL) pthread_cond_signal(&pool->work);
  if (--current->running == 0) pthread_cond_broadcast(&pool->idle);
}

static void *helper_main(void *argument) {
  tegula__pool *pool = argument;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    job *current = find_job(pool);
    if (current != NULL) {
      help(pool, current);
      continue;
    }
    if (pool->closing) break;
    pthread_cond_wait(&pool->work, &pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

tegula_status tegula__pool_create(int32_t threads, int32_t most, tegula__pool **out,
                                  tegula_error *err) {
  if (most < threads) most = threads;
  tegula__pool *pool = calloc(1, sizeof *pool);
  pthread_t *helpers = calloc((size_t)most, sizeof *helpers);
  if (pool == NULL || helpers == NULL) {
    free(pool);
    free(helpers);
    return tegula__out_of_memory(err, (int64_t)sizeof *pool + most * (int64_t)sizeof *helpers);
  }
  pool->threads = threads;
  pool->most = most;
  pool->helpers = helpers;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->work, NULL);
  pthread_cond_init(&pool->idle, NULL);
  *out = pool;
  return TEGULA_OK;
}

void tegula__pool_destroy(tegula__pool *pool) {
  if (pool == NULL) return;
  pthread_mutex_lock(&pool->lock);
  pool->closing = true;
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->lock);
  for (int32_t i = 0; i < pool->started; i++) pthread_join(pool->helpers[i], NULL);
  pthread_mutex_destroy(&pool->lock);
  pthread_cond_destroy(&pool->work);
  pthread_cond_destroy(&pool->idle);
  free(pool->helpers);
  free(pool);
}

int32_t tegula__pool_threads(const tegula__pool *pool) { return pool->threads; }
int32_t tegula__pool_most(const tegula__pool *pool) { return pool->most; }

static void list_job(tegula__pool *pool, job *mine) {
  pthread_mutex_lock(&pool->lock);
  start_helpers(pool, tegula__min(pool->threads - 1, mine->count - 1));
  job **link = &pool->jobs;
  while (*link != NULL) link = &(*link)->next;
  *link = mine;
  mine->listed = true;
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->lock);
}

static void run(tegula__pool *pool, job *mine) {
  if (mine->count <= 0) return;
  if (mine->count == 1 || (pool->threads == 1 && mine->pace == NULL)) {
    mine->task(mine->state, 0, 0);
    for (int64_t item = 1; item < mine->count; item++) mine->task(mine->state, 0, item);
    return;
  }
  list_job(pool, mine);
  work_on(pool, mine, 0);
  pthread_mutex_lock(&pool->lock);
  unlist(pool, mine);
  while (mine->running > 0) pthread_cond_wait(&pool->idle, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

void tegula__pool_run(tegula__pool *pool, int64_t count, tegula__task_fn task, void *state) {
  job mine = {.task = task, .state = state, .count = count, .joined = 1};
  run(pool, &mine);
}

int32_t tegula__pool_run_waiting(tegula__pool *pool, int64_t count, tegula__task_fn task,
                                 void *state) {
  tegula__pace pace;
  tegula__pace_init(&pace, pool->threads, pool->most);
  job mine = {.task = task, .state = state, .count = count, .joined = 1, .pace = &pace};
  run(pool, &mine);
  tegula__pace_free(&pace);
  return (int32_t)tegula__min(tegula__pace_widest(&pace), tegula__max(1, count));
}
