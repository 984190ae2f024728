/* A job whose tasks wait gets more workers, one that computes does not, and no two tasks ever share
 * a worker.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <stdatomic.h>

#include "base/pool.h"

enum { MOST = 32 };

typedef struct probe {
  _Atomic int inside[MOST];
  _Atomic int running, widest, wrong;
  _Atomic int64_t sum;
  void (*work)(void);
} probe;

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static void compute(void) {
  volatile uint64_t value = 1;
  for (int i = 0; i < 200000; i++) value = value * 6364136223846793005u + 1;
}

static void task(void *state, int32_t worker, int64_t item) {
  probe *p = state;
  if (worker < 0 || worker >= MOST || atomic_fetch_add(&p->inside[worker], 1) != 0) p->wrong++;
  int running = atomic_fetch_add(&p->running, 1) + 1, widest = atomic_load(&p->widest);
  while (running > widest && !atomic_compare_exchange_weak(&p->widest, &widest, running)) continue;
  p->work();
  p->sum += item;
  p->running--;
  p->inside[worker]--;
}

static int32_t run(probe *p, int32_t threads, int32_t most, int64_t items) {
  tegula_error error;
  tegula__pool *pool;
  assert_ok(tegula__pool_create(threads, most, &pool, &error));
  int32_t widest = tegula__pool_run_waiting(pool, items, task, p);
  tegula__pool_destroy(pool);
  assert_int_equal(p->wrong, 0);
  assert_int_equal(p->sum, items * (items - 1) / 2);
  return widest;
}

static void tasks_that_wait_get_more_workers(void **state) {
  (void)state;
  probe p = {.work = nap};
  int32_t widest = run(&p, 2, MOST, 4000);
  /* how fast it grows is a matter of time, that it does is not */
  assert_true(widest > 2 && widest <= MOST);
  assert_true(p.widest > 2 && p.widest <= widest);
}

static void tasks_that_compute_keep_the_processors(void **state) {
  (void)state;
  probe p = {.work = compute};
  assert_int_equal(run(&p, 2, MOST, 400), 2);
  assert_true(p.widest <= 2);
}

static void the_limit_holds(void **state) {
  (void)state;
  probe p = {.work = nap};
  assert_true(run(&p, 2, 5, 1000) <= 5);
  assert_true(p.widest <= 5);
  probe alone = {.work = nap};
  assert_int_equal(run(&alone, 1, 1, 20), 1);
  assert_int_equal(alone.widest, 1);
}

static void few_tasks_are_not_said_to_have_many_workers(void **state) {
  (void)state;
  probe p = {.work = nap};
  assert_true(run(&p, 2, MOST, 3) <= 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tasks_that_wait_get_more_workers),
      cmocka_unit_test(tasks_that_compute_keep_the_processors),
      cmocka_unit_test(the_limit_holds),
      cmocka_unit_test(few_tasks_are_not_said_to_have_many_workers),
  };
  return cmocka_run_group_tests_name("base: pace", tests, NULL, NULL);
}
