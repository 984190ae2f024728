/* A pool of threads that calls share. The calling thread is always worker 0 of its own job; helpers
 * join while there is work.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Threads start at the first job that can use them; a pool of one never starts any for work.
 * Several jobs may run at once: idle threads go to the oldest job that still has items. A job whose
 * tasks wait for storage most of the time gets more workers than processors, as long as that makes
 * it faster: measured while it runs, whatever the storage is. */
#ifndef TEGULA_BASE_POOL_H
#define TEGULA_BASE_POOL_H

#include "base/base.h"

typedef struct tegula__pool tegula__pool;

/* `most`: workers that a waiting job may have; at least `threads`. */
tegula_status tegula__pool_create(int32_t threads, int32_t most, tegula__pool **out,
                                  tegula_error *err);
/* No job may be running. */
void tegula__pool_destroy(tegula__pool *pool);
int32_t tegula__pool_threads(const tegula__pool *pool);
int32_t tegula__pool_most(const tegula__pool *pool);

/* Runs task(state, worker, item) once for each item in [0, count), in ascending order of start, and
 * returns when all are done. `worker` is in [0, threads) and no two calls of one job have the same
 * worker at the same time. */
typedef void (*tegula__task_fn)(void *state, int32_t worker, int64_t item);
void tegula__pool_run(tegula__pool *pool, int64_t count, tegula__task_fn task, void *state);
/* The same for tasks that may wait for storage: `worker` is in [0, most). Returns the most workers
 * that it had. */
int32_t tegula__pool_run_waiting(tegula__pool *pool, int64_t count, tegula__task_fn task,
                                 void *state);

/* For tasks that can fail: keeps the error of the lowest item, the same one whatever thread met it
 * first. */
typedef struct tegula__first_error tegula__first_error;
tegula__first_error *tegula__first_error_create(void);
void tegula__first_error_destroy(tegula__first_error *first);
/* Should an item still run? Items below the lowest failed one must, so that the lowest failure is
 * found. */
bool tegula__first_error_wanted(const tegula__first_error *first, int64_t item);
/* Notes a failure of `item`. */
void tegula__first_error_set(tegula__first_error *first, int64_t item, tegula_status status,
                             const tegula_error *error);
/* The status, and the error copied into `err` (may be NULL). */
tegula_status tegula__first_error_get(const tegula__first_error *first, tegula_error *err);

#endif
