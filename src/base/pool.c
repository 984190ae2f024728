/* The pool: jobs in a list, helpers that take items from the oldest job with work left.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A job lives on the stack of the call that runs it. It leaves the list when its items are handed out, and the call returns when the
 * last helper has left it; both happen under the pool's lock, items themselves are taken with one atomic addition. */
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct job {
  struct job *next;
  tegula__task_fn task;
  void *state;
  int64_t count;
  _Atomic int64_t taken;
  int32_t joined;  /* worker numbers given out; under the pool's lock */
  int32_t running; /* helpers inside; under the pool's lock */
  bool listed;
} job;

struct tegula__pool {
  int32_t threads;
  int32_t started;
  bool closing;
  job *jobs;
  pthread_mutex_t lock;
  pthread_cond_t work; /* a job came, or closing */
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

static void work_on(job *current, int32_t worker) {
  for (;;) {
    int64_t item = atomic_fetch_add_explicit(&current->taken, 1, memory_order_relaxed);
    if (item >= current->count) return;
    current->task(current->state, worker, item);
  }
}

/* The oldest job that can use one more worker; lock held. */
static job *find_job(tegula__pool *pool) {
  for (job *current = pool->jobs; current != NULL; current = current->next)
    if (current->joined < pool->threads) return current;
  return NULL;
}

static void *helper_main(void *argument) {
  tegula__pool *pool = argument;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    job *current = find_job(pool);
    if (current == NULL) {
      if (pool->closing) break;
      pthread_cond_wait(&pool->work, &pool->lock);
      continue;
    }
    int32_t worker = current->joined++;
    current->running++;
    pthread_mutex_unlock(&pool->lock);
    work_on(current, worker);
    pthread_mutex_lock(&pool->lock);
    unlist(pool, current);
    if (--current->running == 0) pthread_cond_broadcast(&pool->idle);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

/* Starts helpers up to what `count` items can use; a thread that cannot be had is done without. Signals go to the program's own
 * threads. Lock held. */
static void start_helpers(tegula__pool *pool, int64_t count) {
  int64_t wanted = tegula__min(pool->threads - 1, count - 1);
  if (pool->started >= wanted) return;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  while (pool->started < wanted && pthread_create(&pool->helpers[pool->started], NULL, helper_main, pool) == 0) pool->started++;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

tegula_status tegula__pool_create(int32_t threads, tegula__pool **out, tegula_error *err) {
  tegula__pool *pool = calloc(1, sizeof *pool);
  pthread_t *helpers = calloc((size_t)threads, sizeof *helpers);
  if (pool == NULL || helpers == NULL) {
    free(pool);
    free(helpers);
    return tegula__out_of_memory(err, (int64_t)sizeof *pool + threads * (int64_t)sizeof *helpers);
  }
  pool->threads = threads;
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

static void list_job(tegula__pool *pool, job *mine) {
  pthread_mutex_lock(&pool->lock);
  start_helpers(pool, mine->count);
  job **link = &pool->jobs;
  while (*link != NULL) link = &(*link)->next;
  *link = mine;
  mine->listed = true;
  if (mine->count == 2)
    pthread_cond_signal(&pool->work);
  else
    pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->lock);
}

void tegula__pool_run(tegula__pool *pool, int64_t count, tegula__task_fn task, void *state) {
  if (count <= 0) return;
  job mine = {.task = task, .state = state, .count = count, .joined = 1};
  if (pool->threads == 1 || count == 1) {
    work_on(&mine, 0);
    return;
  }
  list_job(pool, &mine);
  work_on(&mine, 0);
  pthread_mutex_lock(&pool->lock);
  unlist(pool, &mine);
  while (mine.running > 0) pthread_cond_wait(&pool->idle, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

/* ---- the first error ---- */

struct tegula__first_error {
  _Atomic int64_t item; /* lowest that failed, INT64_MAX for none */
  tegula_error error;
  pthread_mutex_t lock;
};

tegula__first_error *tegula__first_error_create(void) {
  tegula__first_error *first = calloc(1, sizeof *first);
  if (first == NULL) return NULL;
  atomic_init(&first->item, INT64_MAX);
  pthread_mutex_init(&first->lock, NULL);
  return first;
}

void tegula__first_error_destroy(tegula__first_error *first) {
  if (first == NULL) return;
  pthread_mutex_destroy(&first->lock);
  free(first);
}

bool tegula__first_error_wanted(const tegula__first_error *first, int64_t item) {
  return item < atomic_load_explicit(&first->item, memory_order_relaxed);
}

void tegula__first_error_set(tegula__first_error *first, int64_t item, tegula_status status, const tegula_error *error) {
  pthread_mutex_lock(&first->lock);
  if (item < atomic_load(&first->item)) {
    first->error = *error;
    first->error.status = status;
    atomic_store(&first->item, item);
  }
  pthread_mutex_unlock(&first->lock);
}

tegula_status tegula__first_error_get(const tegula__first_error *first, tegula_error *err) {
  RETURN_IF(atomic_load(&first->item) == INT64_MAX, TEGULA_OK);
  if (err != NULL) *err = first->error;
  return first->error.status;
}
