/* Sizes and shapes: sums and products that must not overflow, strides, boxes. Expected values are
 * worked out by hand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static void sums_and_products_stop_at_63_bits(void **state) {
  (void)state;
  int64_t out = -7;
  assert_true(tegula__add(INT64_MAX - 5, 5, &out));
  assert_true(out == INT64_MAX);
  assert_false(tegula__add(INT64_MAX, 1, &out));
  assert_false(tegula__add(-1, 5, &out));
  assert_false(tegula__add(5, -1, &out));
  /* floor(sqrt(2^63 - 1)) */
  assert_true(tegula__mul(INT64_C(3037000499), INT64_C(3037000499), &out));
  assert_true(out == INT64_C(9223372030926249001));
  assert_false(tegula__mul(INT64_C(3037000500), INT64_C(3037000500), &out));
  assert_false(tegula__mul(-1, -1, &out));
  assert_true(tegula__mul(INT64_MAX, 0, &out));
  assert_int_equal(out, 0);
}

static void division_rounds_up(void **state) {
  (void)state;
  assert_int_equal(tegula__ceil_div(0, 3), 0);
  assert_int_equal(tegula__ceil_div(6, 3), 2);
  assert_int_equal(tegula__ceil_div(7, 3), 3);
  assert_true(tegula__ceil_div(INT64_MAX, 2) == INT64_C(4611686018427387904));
}

static void shapes_are_counted(void **state) {
  (void)state;
  int64_t count = -1;
  assert_true(tegula__shape_count(NULL, 0, &count));
  assert_int_equal(count, 1);
  assert_true(tegula__shape_count((int64_t[]){3, 4, 5}, 3, &count));
  assert_int_equal(count, 60);
  assert_true(tegula__shape_count((int64_t[]){0, 4}, 2, &count));
  assert_int_equal(count, 0);
  assert_true(tegula__shape_count((int64_t[]){INT64_C(1) << 31, INT64_C(1) << 31, 1}, 3, &count));
  assert_true(count == INT64_C(1) << 62);
  assert_false(tegula__shape_count((int64_t[]){INT64_C(1) << 31, INT64_C(1) << 31, 2}, 3, &count));
  assert_false(tegula__shape_count((int64_t[]){-1}, 1, &count));
  assert_false(tegula__shape_count((int64_t[]){0, -1}, 2, &count));
  assert_false(tegula__shape_count((int64_t[]){0, INT64_C(1) << 62, INT64_C(1) << 62}, 3, &count));
}

static void bytes_of_shapes_are_counted(void **state) {
  (void)state;
  int64_t bytes = -1;
  assert_true(tegula__shape_bytes((int64_t[]){3, 4}, 2, 8, &bytes));
  assert_int_equal(bytes, 96);
  assert_true(tegula__shape_bytes((int64_t[]){0, 4}, 2, 8, &bytes));
  assert_int_equal(bytes, 0);
  assert_true(tegula__shape_bytes((int64_t[]){INT64_C(1) << 60}, 1, 4, &bytes));
  assert_false(tegula__shape_bytes((int64_t[]){INT64_C(1) << 60}, 1, 8, &bytes));
  assert_false(tegula__shape_bytes((int64_t[]){0, INT64_C(1) << 60}, 2, 8, &bytes));
}

static void strides_are_those_of_numpy(void **state) {
  (void)state; /* numpy: np.empty((3, 4, 5), 'f8', order=...).strides */
  int64_t strides[3];
  const int64_t shape[] = {3, 4, 5};
  tegula__dense_strides(shape, 3, 8, 'C', strides);
  assert_memory_equal(strides, ((int64_t[]){160, 40, 8}), sizeof strides);
  tegula__dense_strides(shape, 3, 8, 'F', strides);
  assert_memory_equal(strides, ((int64_t[]){8, 24, 96}), sizeof strides);
}

static const char *shape_text(const int64_t *shape, int32_t ndim) {
  static char text[TEGULA__SHAPE_TEXT];
  tegula__shape_format(shape, ndim, text);
  return text;
}

static void shapes_are_written_as_numpy_writes_them(void **state) {
  (void)state;
  assert_string_equal(shape_text(NULL, 0), "()");
  assert_string_equal(shape_text((int64_t[]){5}, 1), "(5,)");
  assert_string_equal(shape_text((int64_t[]){3, 4}, 2), "(3, 4)");
  assert_string_equal(shape_text((int64_t[]){INT64_MAX, 0}, 2), "(9223372036854775807, 0)");
}

static void long_shapes_are_cut(void **state) {
  (void)state;
  int64_t shape[TEGULA_MAX_DIMS];
  for (int k = 0; k < TEGULA_MAX_DIMS; k++) shape[k] = INT64_MAX - k;
  for (int32_t ndim = 1; ndim <= TEGULA_MAX_DIMS; ndim++) {
    const char *text = shape_text(shape, ndim);
    size_t size = strlen(text);
    assert_true(size < TEGULA__SHAPE_TEXT);
    assert_true(text[size - 1] == ')');
    if (ndim > 12) assert_string_equal(text + size - 6, ", ...)");
  }
}

static void boxes_intersect(void **state) {
  (void)state;
  const int64_t a_lo[] = {0, 10}, a_hi[] = {5, 20}, b_lo[] = {3, 15}, b_hi[] = {9, 40};
  int64_t lo[2], hi[2];
  assert_true(tegula__box_intersect(2, a_lo, a_hi, b_lo, b_hi, lo, hi));
  assert_memory_equal(lo, ((int64_t[]){3, 15}), sizeof lo);
  assert_memory_equal(hi, ((int64_t[]){5, 20}), sizeof hi);
  assert_int_equal(tegula__box_count(2, lo, hi), 10);
  /* they only touch */
  assert_false(tegula__box_intersect(2, a_lo, a_hi, (int64_t[]){5, 0}, (int64_t[]){6, 40}, lo, hi));
  assert_true(tegula__box_intersect(0, NULL, NULL, NULL, NULL, NULL, NULL));
  assert_int_equal(tegula__box_count(0, NULL, NULL), 1);
}

static void box_results_may_lie_on_the_operands(void **state) {
  (void)state;
  int64_t lo[] = {0, 10}, hi[] = {5, 20};
  assert_true(tegula__box_intersect(2, lo, hi, (int64_t[]){3, 15}, (int64_t[]){9, 40}, lo, hi));
  assert_memory_equal(lo, ((int64_t[]){3, 15}), sizeof lo);
  assert_memory_equal(hi, ((int64_t[]){5, 20}), sizeof hi);
}

static void intersections_hold_just_the_common_points(void **state) {
  (void)state;
  srand(1);
  for (int round = 0; round < 2000; round++) {
    int64_t a_lo[2], a_hi[2], b_lo[2], b_hi[2], lo[2], hi[2];
    for (int k = 0; k < 2; k++) {
      a_lo[k] = rand() % 6, a_hi[k] = a_lo[k] + rand() % 5;
      b_lo[k] = rand() % 6, b_hi[k] = b_lo[k] + rand() % 5;
    }
    bool some = tegula__box_intersect(2, a_lo, a_hi, b_lo, b_hi, lo, hi);
    int64_t common = 0;
    for (int64_t i = 0; i < 12; i++)
      for (int64_t j = 0; j < 12; j++) {
        bool inside = i >= a_lo[0] && i < a_hi[0] && j >= a_lo[1] && j < a_hi[1] && i >= b_lo[0] &&
                      i < b_hi[0] && j >= b_lo[1] && j < b_hi[1];
        common += inside;
        if (some) assert_int_equal(inside, i >= lo[0] && i < hi[0] && j >= lo[1] && j < hi[1]);
      }
    assert_int_equal(some, common > 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_and_products_stop_at_63_bits),
      cmocka_unit_test(division_rounds_up),
      cmocka_unit_test(shapes_are_counted),
      cmocka_unit_test(bytes_of_shapes_are_counted),
      cmocka_unit_test(strides_are_those_of_numpy),
      cmocka_unit_test(shapes_are_written_as_numpy_writes_them),
      cmocka_unit_test(long_shapes_are_cut),
      cmocka_unit_test(boxes_intersect),
      cmocka_unit_test(box_results_may_lie_on_the_operands),
      cmocka_unit_test(intersections_hold_just_the_common_points),
  };
  return cmocka_run_group_tests_name("base: shape", tests, NULL, NULL);
}
