/* Places in files of records, worked out by hand, and numbers that are no records.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/frame.h"

static void places_without_and_with_markers(void **state) {
  (void)state;
  /* records of 5 bytes, the first at 2: [3] at 2+4, [2] behind two markers at 13+4; then at 27 */
  const tegula__frame frame = {.first = 2, .record = 5, .most = 3, .marker = 4, .order = '<'};
  const int64_t places[] = {6, 7, 8, 17, 18, 27 + 4};
  int64_t period;
  assert_true(tegula__frame_valid(&frame) && tegula__frame_period(&frame, &period));
  assert_int_equal(period, 5 + 4 * 4);
  for (int64_t i = 0; i < 5; i++) assert_int_equal(tegula__frame_place(&frame, 2 + i), places[i]);
  assert_int_equal(tegula__frame_place(&frame, 7), 2 + period + 4);
  tegula__subrecord sub;
  tegula__frame_find(&frame, 6, &sub);
  assert_true(sub.from == 5 && sub.bytes == 2 && sub.at == 13 && sub.before == 2 &&
              sub.behind == -2);
  tegula__frame_find(&frame, 4, &sub);
  assert_true(sub.from == 2 && sub.bytes == 3 && sub.at == 2 && sub.before == -3 &&
              sub.behind == 3);
  assert_int_equal(tegula__frame_end(&frame, 2 + 2 * period), 2 + 2 * 5);
  assert_int_equal(tegula__frame_end(&frame, 2 + 2 * period - 1), 2 + 5);
  assert_int_equal(tegula__frame_end(&frame, 1), 0);
}

static void markers_are_written_as_they_are_read(void **state) {
  (void)state;
  const int64_t values[] = {0, 1, -1, 132, -132, INT32_MAX, -INT32_MAX};
  for (int kind = 0; kind < 4; kind++) {
    const tegula__frame frame = {.marker = kind & 1 ? 8 : 4, .order = kind & 2 ? '>' : '<'};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
      char stored[8];
      tegula__marker_put(&frame, values[i], stored);
      assert_int_equal(tegula__marker_get(&frame, stored), values[i]);
    }
  }
  char stored[4];
  tegula__marker_put(&(tegula__frame){.marker = 4, .order = '>'}, 132, stored);
  assert_memory_equal(stored, "\0\0\0\204", 4);
}

static void numbers_that_are_no_records(void **state) {
  (void)state;
  const tegula__frame good = {.record = 5, .most = 3, .marker = 4, .order = '<'};
  tegula__frame bad[8];
  for (int i = 0; i < 8; i++) bad[i] = good;
  bad[0].record = 0;
  bad[1].most = 0;
  bad[2].marker = 5;
  bad[3].order = '|';
  bad[4].first = -1;
  bad[5].record = bad[5].most = INT64_C(1) << 31;
  bad[6].record = INT64_MAX;
  bad[7].record = -1;
  assert_true(tegula__frame_valid(&good));
  for (int i = 0; i < 8; i++)
    if (tegula__frame_valid(&bad[i])) fail_msg("row %d is taken", i);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(places_without_and_with_markers),
      cmocka_unit_test(markers_are_written_as_they_are_read),
      cmocka_unit_test(numbers_that_are_no_records),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
