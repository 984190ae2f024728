/* The pool runs each item once, in ascending order of start, with distinct workers, for several
 * callers at once; the error kept is that of the lowest item.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"

enum { ITEMS = 2000, MAX_THREADS = 8 };

static tegula__pool *pool_of(int32_t threads) {
  tegula__pool *pool = NULL;
  assert_int_equal(tegula__pool_create(threads, threads, &pool, NULL), TEGULA_OK);
  assert_int_equal(tegula__pool_threads(pool), threads);
  return pool;
}

typedef struct count_state {
  int32_t threads;
  _Atomic int runs[ITEMS];
  _Atomic int inside[MAX_THREADS]; /* calls of each worker at this moment */
  _Atomic int wrong;
} count_state;

static void count_item(void *opaque, int32_t worker, int64_t item) {
  count_state *state = opaque;
  if (worker < 0 || worker >= state->threads || item < 0 || item >= ITEMS) {
    state->wrong++;
    return;
  }
  if (atomic_fetch_add(&state->inside[worker], 1) != 0) state->wrong++;
  state->runs[item]++;
  if (item % 64 == 0) sched_yield();
  state->inside[worker]--;
}

static int wrong_counts(tegula__pool *pool, int64_t count) {
  count_state state = {.threads = tegula__pool_threads(pool)};
  tegula__pool_run(pool, count, count_item, &state);
  int wrong = state.wrong;
  for (int64_t i = 0; i < ITEMS; i++) wrong += state.runs[i] != (i < count);
  return wrong;
}

static void each_item_runs_once(void **state) {
  (void)state;
  for (int32_t threads = 1; threads <= MAX_THREADS; threads += threads == 1 ? 1 : 3) {
    tegula__pool *pool = pool_of(threads);
    static const int64_t counts[] = {0, 1, 2, 3, 7, ITEMS};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
      assert_int_equal(wrong_counts(pool, counts[i]), 0);
    tegula__pool_destroy(pool);
  }
}

typedef struct caller {
  tegula__pool *pool;
  int wrong;
} caller;

static void *run_some_jobs(void *opaque) {
  caller *mine = opaque;
  for (int64_t round = 0; round < 40; round++)
    mine->wrong += wrong_counts(mine->pool, 1 + (round * 37) % 300);
  return NULL;
}

static void several_callers_share_a_pool(void **state) {
  (void)state;
  enum { CALLERS = 6 };
  tegula__pool *pool = pool_of(4);
  pthread_t threads[CALLERS];
  caller callers[CALLERS];
  for (int i = 0; i < CALLERS; i++) {
    callers[i] = (caller){pool, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, run_some_jobs, &callers[i]), 0);
  }
  for (int i = 0; i < CALLERS; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(callers[i].wrong, 0);
  }
  tegula__pool_destroy(pool);
}

typedef struct order_state {
  pthread_mutex_t lock;
  int64_t next;
  int wrong;
  pthread_t caller;
  int elsewhere; /* items that did not run on the calling thread as worker 0 */
} order_state;

static void expect_next(void *opaque, int32_t worker, int64_t item) {
  order_state *state = opaque;
  pthread_mutex_lock(&state->lock);
  state->wrong += item != state->next++;
  state->elsewhere += worker != 0 || !pthread_equal(pthread_self(), state->caller);
  pthread_mutex_unlock(&state->lock);
}

static void one_thread_runs_items_in_order_on_the_caller(void **state) {
  (void)state;
  tegula__pool *pool = pool_of(1);
  order_state order = {.lock = PTHREAD_MUTEX_INITIALIZER, .caller = pthread_self()};
  tegula__pool_run(pool, 500, expect_next, &order);
  assert_int_equal(order.next, 500);
  assert_int_equal(order.wrong, 0);
  assert_int_equal(order.elsewhere, 0);
  tegula__pool_destroy(pool);
}

typedef struct meet_state {
  _Atomic int arrived;
  _Atomic int met;
  pthread_t caller;
  _Atomic int caller_is_zero;
} meet_state;

/* Waits up to 60 s for the other item: only two threads at once can both see 2. */
static void meet(void *opaque, int32_t worker, int64_t item) {
  (void)item;
  meet_state *state = opaque;
  if (pthread_equal(pthread_self(), state->caller) && worker == 0) state->caller_is_zero = 1;
  state->arrived++;
  for (int i = 0; i < 60000 && state->arrived < 2; i++) usleep(1000);
  if (state->arrived == 2) state->met++;
}

static void helpers_work_beside_the_caller(void **state) {
  (void)state;
  tegula__pool *pool = pool_of(2);
  meet_state two = {.caller = pthread_self()};
  tegula__pool_run(pool, 2, meet, &two);
  assert_int_equal(two.met, 2);
  assert_int_equal(two.caller_is_zero, 1);
  tegula__pool_destroy(pool);
}

typedef struct start_state {
  _Atomic int64_t started[ITEMS]; /* how many had started when this item did */
  _Atomic int64_t clock;
} start_state;

static void note_start(void *opaque, int32_t worker, int64_t item) {
  (void)worker;
  start_state *state = opaque;
  state->started[item] = state->clock++;
}

static void items_start_in_ascending_order(void **state) {
  (void)state;
  tegula__pool *pool = pool_of(4);
  start_state starts = {.clock = 0};
  tegula__pool_run(pool, ITEMS, note_start, &starts);
  /* an item taken by a thread that then loses its processor may be noted late, so only the items of
   * 4 threads can overtake it */
  int late = 0;
  for (int64_t i = 0; i < ITEMS; i++) late += starts.started[i] < i - 3;
  assert_int_equal(late, 0);
  tegula__pool_destroy(pool);
}

static void a_pool_that_never_worked_can_go(void **state) {
  (void)state;
  tegula__pool_destroy(pool_of(4));
  tegula__pool_destroy(NULL);
}

/* ---- the first error ---- */

typedef struct failing {
  tegula__first_error *first;
  _Atomic int64_t ran;
} failing;

static void fail_every_seventh(void *opaque, int32_t worker, int64_t item) {
  (void)worker;
  failing *state = opaque;
  if (!tegula__first_error_wanted(state->first, item)) return;
  state->ran++;
  if (item % 7 != 5) return;
  if (item < 20) usleep(2000); /* let higher items fail before */
  tegula_error error;
  tegula__fail(&error, TEGULA_CORRUPT, "file", item, "item %d", (int)item);
  tegula__first_error_set(state->first, item, TEGULA_CORRUPT, &error);
}

static void the_error_of_the_lowest_item_is_kept(void **state) {
  (void)state;
  tegula__pool *pool = pool_of(4);
  for (int round = 0; round < 50; round++) {
    failing work = {.first = tegula__first_error_create()};
    tegula__pool_run(pool, ITEMS, fail_every_seventh, &work);
    tegula_error error;
    assert_int_equal(tegula__first_error_get(work.first, &error), TEGULA_CORRUPT);
    assert_string_equal(error.message, "item 5");
    assert_int_equal(error.offset, 5);
    assert_int_equal(tegula__first_error_get(work.first, NULL), TEGULA_CORRUPT);
    assert_true(work.ran >= 6); /* all below the lowest failure have run */
    tegula__first_error_destroy(work.first);
  }
  tegula__pool_destroy(pool);
}

static void without_a_failure_all_is_well(void **state) {
  (void)state;
  tegula__first_error *first = tegula__first_error_create();
  assert_true(tegula__first_error_wanted(first, INT64_MAX - 1));
  assert_int_equal(tegula__first_error_get(first, NULL), TEGULA_OK);
  tegula_error error;
  tegula__fail(&error, TEGULA_IO, NULL, -1, "nine");
  tegula__first_error_set(first, 9, TEGULA_IO, &error);
  assert_true(tegula__first_error_wanted(first, 8));
  assert_false(tegula__first_error_wanted(first, 10));
  tegula__fail(&error, TEGULA_CORRUPT, NULL, -1, "twelve");
  tegula__first_error_set(first, 12, TEGULA_CORRUPT, &error);
  assert_int_equal(tegula__first_error_get(first, &error), TEGULA_IO);
  assert_string_equal(error.message, "nine");
  tegula__first_error_destroy(first);
  tegula__first_error_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_item_runs_once),
      cmocka_unit_test(several_callers_share_a_pool),
      cmocka_unit_test(one_thread_runs_items_in_order_on_the_caller),
      cmocka_unit_test(helpers_work_beside_the_caller),
      cmocka_unit_test(items_start_in_ascending_order),
      cmocka_unit_test(a_pool_that_never_worked_can_go),
      cmocka_unit_test(the_error_of_the_lowest_item_is_kept),
      cmocka_unit_test(without_a_failure_all_is_well),
  };
  return cmocka_run_group_tests_name("base: pool", tests, NULL, NULL);
}
