/* What a process is granted follows its affinity mask, not the machine; the clock goes forward.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "base/base.h"

static void threads_follow_the_affinity_mask(void **state) {
  (void)state;
  cpu_set_t all, one;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  int32_t before = tegula__granted_threads();
  assert_in_range(before, 1, CPU_COUNT(&all));
  int first = 0;
  while (!CPU_ISSET(first, &all)) first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  assert_int_equal(tegula__granted_threads(), 1);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  assert_int_equal(tegula__granted_threads(), before);
}

static void memory_is_a_plausible_number(void **state) {
  (void)state;
  int64_t granted = tegula__granted_memory();
  assert_true(granted > 1 << 20);
}

static void the_clock_goes_forward(void **state) {
  (void)state;
  double before = tegula__now();
  for (int i = 0; i < 1000; i++) {
    double now = tegula__now();
    assert_true(now >= before);
    before = now;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_follow_the_affinity_mask),
      cmocka_unit_test(memory_is_a_plausible_number),
      cmocka_unit_test(the_clock_goes_forward),
  };
  return cmocka_run_group_tests_name("base: granted", tests, NULL, NULL);
}
