/* Blocks: aligned, zero, not touched before they are used, refused when there is not enough;
 * staging: bounded and shared.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "memory/memory.h"

static const int64_t HUGE = (int64_t)2 << 20;

static void blocks_are_aligned_and_whole(void **state) {
  (void)state;
  const int64_t sizes[] = {1, 4095, 4096, 4097, HUGE - 1, HUGE, HUGE + 1, 5 * HUGE / 2, 16 * HUGE};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    tegula_error error;
    tegula__block block;
    assert_ok(tegula__block_create(sizes[i], &block, &error));
    assert_int_equal((uintptr_t)block.data % 4096, 0);
    if (sizes[i] >= HUGE) assert_int_equal((uintptr_t)block.data % (uintptr_t)HUGE, 0);
    assert_true(block.mapped >= (size_t)sizes[i] && block.mapped < (size_t)sizes[i] + 4096);
    assert_int_equal(block.data[0], 0);
    assert_int_equal(block.data[sizes[i] - 1], 0);
    block.data[0] = block.data[sizes[i] - 1] = 1;
    tegula__block_free(&block);
    assert_null(block.data);
    tegula__block_free(&block); /* twice does no harm */
  }
}

static void no_bytes_need_no_block(void **state) {
  (void)state;
  tegula_error error;
  tegula__block block;
  assert_ok(tegula__block_create(0, &block, &error));
  assert_null(block.data);
  assert_int_equal(block.mapped, 0);
  tegula__block_free(&block);
}

static void a_block_is_reserved_not_touched(void **state) {
  (void)state;
  tegula_error error;
  tegula__block block;
  static unsigned char resident[(64 << 20) / 4096];
  assert_ok(tegula__block_create(64 << 20, &block, &error));
  assert_int_equal(mincore(block.data, 64 << 20, resident), 0);
  for (size_t i = 0; i < sizeof resident; i++) assert_int_equal(resident[i] & 1, 0);
  block.data[0] = 1;
  assert_int_equal(mincore(block.data, 64 << 20, resident), 0);
  assert_int_equal(resident[0] & 1, 1);
  tegula__block_free(&block);
}

static void too_much_is_refused_with_both_numbers(void **state) {
  (void)state;
  tegula_error error;
  tegula__block block;
  if (tegula__granted_memory() == INT64_MAX) {
    print_message("skipped: this system does not say how much memory there is\n");
    skip();
  }
  assert_refused(tegula__memory_check((int64_t)1 << 60, &error), TEGULA_OUT_OF_MEMORY);
  assert_contains(error.message, "1152921504606846976 bytes");
  const char *about = strstr(error.message, "about ");
  assert_non_null(about);
  long long granted = strtoll(about + 6, NULL, 10), now = (long long)tegula__granted_memory();
  assert_true(granted > now / 2 && granted / 2 < now); /* others use memory too while this runs */
  assert_true(error.hint[0] != '\0');
  assert_int_equal(tegula__block_create((int64_t)1 << 60, &block, NULL), TEGULA_OUT_OF_MEMORY);
  assert_refused(tegula__block_create(INT64_MAX, &block, &error), TEGULA_OUT_OF_MEMORY);
}

/* ---- staging ---- */

static void slots_follow_from_budget_and_threads(void **state) {
  (void)state;
  static const struct {
    int64_t budget;
    int32_t threads;
    int64_t slot;
  } cases[] = {{0, 4, 4 << 20},         /* 64 MiB / 4 = 16 MiB, at most 4 MiB */
               {0, 64, 1 << 20},        /* 64 MiB / 64 */
               {1 << 20, 4, 256 << 10}, /* 1 MiB / 4 */
               {100000, 4, 24576},      /* 25000, down to whole pages */
               {1, 4, 16384},           /* never less than 16 KiB */
               {(int64_t)1 << 40, 1, 4 << 20}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tegula_error error;
    tegula__staging *staging;
    assert_ok(tegula__staging_create(cases[i].budget, cases[i].threads, &staging, &error));
    assert_int_equal(tegula__staging_slot(staging), cases[i].slot);
    char *slot = tegula__staging_take(staging);
    assert_non_null(slot);
    assert_int_equal((uintptr_t)slot % 4096, 0);
    memset(slot, 1, (size_t)cases[i].slot);
    tegula__staging_give(staging, slot);
    assert_ptr_equal(tegula__staging_take(staging), slot); /* kept */
    tegula__staging_give(staging, slot);
    tegula__staging_destroy(staging);
  }
  tegula__staging_destroy(NULL);
}

typedef struct taker {
  tegula__staging *staging;
  _Atomic(char *) got;
} taker;

static void *take_one(void *state) {
  taker *t = state;
  char *slot = tegula__staging_take(t->staging);
  atomic_store(&t->got, slot);
  return NULL;
}

static void who_finds_no_slot_waits_for_one(void **state) {
  (void)state;
  tegula_error error;
  taker t = {0};
  pthread_t thread;
  assert_ok(tegula__staging_create(2 * 16384, 2, &t.staging, &error)); /* two slots */
  char *a = tegula__staging_take(t.staging), *b = tegula__staging_take(t.staging);
  assert_ptr_not_equal(a, b);
  assert_int_equal(pthread_create(&thread, NULL, take_one, &t), 0);
  sleep_ms(50);
  assert_null(atomic_load(&t.got)); /* still waiting: there is no third */
  tegula__staging_give(t.staging, b);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_ptr_equal(atomic_load(&t.got), b);
  tegula__staging_give(t.staging, a);
  tegula__staging_give(t.staging, b);
  tegula__staging_destroy(t.staging);
}

enum { TAKERS = 8, BUDGET = 5 * 16384 };

typedef struct crowd {
  tegula__staging *staging;
  _Atomic int out, most, spoiled;
} crowd;

static void *take_many(void *state) {
  crowd *c = state;
  char mark = (char)(uintptr_t)&mark;
  for (int i = 0; i < 300; i++) {
    char *slot = tegula__staging_take(c->staging);
    int out = atomic_fetch_add(&c->out, 1) + 1, most = atomic_load(&c->most);
    while (out > most && !atomic_compare_exchange_weak(&c->most, &most, out)) {}
    memset(slot, mark, 16384);
    for (int k = 0; k < 16384; k += 1000)
      if (slot[k] != mark) c->spoiled++;
    atomic_fetch_sub(&c->out, 1);
    tegula__staging_give(c->staging, slot);
  }
  return NULL;
}

static void many_takers_stay_within_the_budget(void **state) {
  (void)state;
  tegula_error error;
  crowd c = {0};
  pthread_t threads[TAKERS];
  /* 16 KiB slots: five of them for eight takers */
  assert_ok(tegula__staging_create(BUDGET, TAKERS, &c.staging, &error));
  for (int i = 0; i < TAKERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, take_many, &c), 0);
  for (int i = 0; i < TAKERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_true(c.most <= 5);
  assert_int_equal(c.spoiled, 0);
  tegula__staging_destroy(c.staging);
}

/* ---- lent blocks ---- */

/* The block whose first byte is 7, not another one that was put at its address. */
static bool is_there(const char *page) {
  unsigned char resident;
  return mincore((void *)(uintptr_t)page, 4096, &resident) == 0 && *page == 7;
}

static void lent_blocks_are_kept_until_somebody_needs_their_room(void **state) {
  (void)state;
  tegula_error error;
  tegula__staging *staging;
  tegula__block a, b, c;
  const int64_t mib = 1 << 20;
  assert_ok(tegula__staging_create(16 * mib, 1, &staging, &error));
  assert_ok(tegula__staging_lend(staging, 8 * mib - 100, 0, &a, &error));
  assert_true(a.mapped == (size_t)(8 * mib));
  char *first = a.data;
  first[0] = 7;
  tegula__staging_return(staging, &a, 0);
  assert_null(a.data);
  assert_ok(tegula__staging_lend(staging, 7 * mib, mib, &a, &error)); /* the same again */
  assert_ptr_equal(a.data, first);
  assert_int_equal(a.data[0], 7);
  tegula__staging_return(staging, &a, mib);
  /* 8 MiB would be too many for it: one of its own */
  assert_ok(tegula__staging_lend(staging, mib, 0, &b, &error));
  assert_true(b.mapped == (size_t)mib && is_there(first));
  /* 1 + 10 + the kept 8 are too many */
  assert_ok(tegula__staging_lend(staging, 10 * mib, 0, &c, &error));
  assert_false(is_there(first));
  char *third = c.data;
  third[0] = 7;
  tegula__staging_return(staging, &c, 0);
  assert_true(is_there(third));
  tegula__staging_count(staging, 8 * mib); /* of somebody else */
  assert_false(is_there(third));
  tegula__staging_uncount(staging, 8 * mib);
  tegula__staging_return(staging, &b, 0);
  /* more than the budget: alone, and kept for the one thread */
  assert_ok(tegula__staging_lend(staging, 40 * mib, 0, &c, &error));
  third = c.data;
  third[0] = 7;
  tegula__staging_return(staging, &c, 0);
  assert_true(is_there(third));
  tegula__staging_trim(staging); /* until the work is done */
  assert_false(is_there(third));
  assert_refused(tegula__staging_lend(staging, INT64_MAX, 0, &c, &error), TEGULA_OUT_OF_MEMORY);
  assert_refused(tegula__staging_lend(staging, INT64_MAX / 2, INT64_MAX / 2 + 2, &c, &error),
                 TEGULA_OUT_OF_MEMORY);
  /* the system has not so much */
  assert_refused(tegula__staging_lend(staging, INT64_MAX / 2, 0, &c, &error), TEGULA_OUT_OF_MEMORY);
  /* and nothing of it stays counted */
  assert_ok(tegula__staging_lend(staging, 0, mib, &c, &error));
  tegula__staging_return(staging, &c, mib);
  tegula__staging_destroy(staging);
}

/* As many blocks as threads are always to be had, however large. */
static void each_thread_has_a_block(void **state) {
  (void)state;
  tegula_error error;
  tegula__staging *staging;
  tegula__block blocks[3];
  assert_ok(tegula__staging_create((int64_t)1 << 20, 3, &staging, &error));
  /* nobody waits */
  for (int i = 0; i < 3; i++)
    assert_ok(tegula__staging_lend(staging, (int64_t)4 << 20, 1 << 20, &blocks[i], &error));
  char *first = blocks[0].data;
  first[0] = 7;
  tegula__staging_return(staging, &blocks[0], 1 << 20);
  assert_true(is_there(first));
  /* the same again */
  assert_ok(tegula__staging_lend(staging, (int64_t)4 << 20, 1 << 20, &blocks[0], &error));
  assert_ptr_equal(blocks[0].data, first);
  for (int i = 0; i < 3; i++) tegula__staging_return(staging, &blocks[i], 1 << 20);
  tegula__staging_trim(staging);
  assert_false(is_there(first));
  tegula__staging_destroy(staging);
}

/* Borrowers of odd sizes, more than there are threads: what they have together is within the budget
 * but for one block a thread. */
typedef struct borrowers {
  tegula__staging *staging;
  _Atomic int64_t bytes, most;
  _Atomic int spoiled;
} borrowers;

static void *borrow_many(void *argument) {
  borrowers *all = argument;
  uint64_t seed = (uint64_t)(uintptr_t)&seed;
  for (int round = 0; round < 300; round++) {
    tegula__block block;
    int64_t size = random_between(&seed, 1, 1500000), besides = random_between(&seed, 0, 300000);
    if (tegula__staging_lend(all->staging, size, besides, &block, NULL) != TEGULA_OK) break;
    int64_t now = atomic_fetch_add(&all->bytes, size + besides) + size + besides,
            most = atomic_load(&all->most);
    while (now > most && !atomic_compare_exchange_weak(&all->most, &most, now)) {}
    memset(block.data, round, 64);
    block.data[size - 1] = (char)round;
    sched_yield();
    for (int i = 0; i < 64; i++) all->spoiled += block.data[i] != (char)round;
    atomic_fetch_sub(&all->bytes, size + besides);
    tegula__staging_return(all->staging, &block, besides);
  }
  return NULL;
}

static void many_borrowers_stay_within_the_budget(void **state) {
  (void)state;
  tegula_error error;
  borrowers all = {0};
  pthread_t threads[TAKERS];
  assert_ok(tegula__staging_create((int64_t)4 << 20, 1, &all.staging, &error));
  for (int i = 0; i < TAKERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, borrow_many, &all), 0);
  for (int i = 0; i < TAKERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_true(all.most > 1 << 20 && all.most <= 4 << 20);
  assert_int_equal(all.spoiled, 0);
  assert_int_equal(all.bytes, 0);
  tegula__staging_destroy(all.staging);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_aligned_and_whole),
      cmocka_unit_test(no_bytes_need_no_block),
      cmocka_unit_test(a_block_is_reserved_not_touched),
      cmocka_unit_test(too_much_is_refused_with_both_numbers),
      cmocka_unit_test(slots_follow_from_budget_and_threads),
      cmocka_unit_test(who_finds_no_slot_waits_for_one),
      cmocka_unit_test(many_takers_stay_within_the_budget),
      cmocka_unit_test(lent_blocks_are_kept_until_somebody_needs_their_room),
      cmocka_unit_test(each_thread_has_a_block),
      cmocka_unit_test(many_borrowers_stay_within_the_budget),
  };
  return cmocka_run_group_tests_name("memory: block, staging", tests, NULL, NULL);
}
