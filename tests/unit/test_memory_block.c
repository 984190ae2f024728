/* Blocks: aligned, zero, not touched before they are used, refused when there is not enough; staging: bounded and shared.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <pthread.h>
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
  } cases[] = {{0, 4, 4 << 20},          /* 64 MiB / 4 = 16 MiB, at most 4 MiB */
               {0, 64, 1 << 20},         /* 64 MiB / 64 */
               {1 << 20, 4, 256 << 10},  /* 1 MiB / 4 */
               {100000, 4, 24576},       /* 25000, down to whole pages */
               {1, 4, 16384},            /* never less than 16 KiB */
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
    while (out > most && !atomic_compare_exchange_weak(&c->most, &most, out)) {
    }
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
  assert_ok(tegula__staging_create(BUDGET, TAKERS, &c.staging, &error)); /* 16 KiB slots: five of them for eight takers */
  for (int i = 0; i < TAKERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, take_many, &c), 0);
  for (int i = 0; i < TAKERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_true(c.most <= 5);
  assert_int_equal(c.spoiled, 0);
  tegula__staging_destroy(c.staging);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_aligned_and_whole),          cmocka_unit_test(no_bytes_need_no_block),
      cmocka_unit_test(a_block_is_reserved_not_touched),       cmocka_unit_test(too_much_is_refused_with_both_numbers),
      cmocka_unit_test(slots_follow_from_budget_and_threads),  cmocka_unit_test(who_finds_no_slot_waits_for_one),
      cmocka_unit_test(many_takers_stay_within_the_budget),
  };
  return cmocka_run_group_tests_name("memory: block, staging", tests, NULL, NULL);
}
