/* A run of elements in C order is cut into boxes that follow each other and hold each element once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "verify/hash.h"

static void the_example_of_the_file_holds(void **state) {
  (void)state;
  int64_t v[4 * 4]; /* shape (3, 4), elements 2 to 10 */
  assert_int_equal(tegula__range_boxes((int64_t[]){3, 4}, 2, 2, 9, v), 3);
  assert_memory_equal(v, ((int64_t[]){0, 2, 1, 4, 1, 0, 2, 4, 2, 0, 3, 3}), 12 * sizeof *v);
}

static void whole_rows_are_one_box(void **state) {
  (void)state;
  int64_t v[6 * 6];
  assert_int_equal(tegula__range_boxes((int64_t[]){5, 2, 3}, 3, 6, 18, v), 1);
  assert_memory_equal(v, ((int64_t[]){1, 0, 0, 4, 2, 3}), 6 * sizeof *v);
  assert_int_equal(tegula__range_boxes((int64_t[]){7}, 1, 2, 3, v), 1);
  assert_memory_equal(v, ((int64_t[]){2, 5}), 2 * sizeof *v);
  assert_int_equal(tegula__range_boxes((int64_t[]){5, 2, 3}, 3, 6, 0, v), 0);
}

static void a_scalar_is_one_box(void **state) {
  (void)state;
  int64_t v[1];
  assert_int_equal(tegula__range_boxes(NULL, 0, 0, 1, v), 1);
}

/* Walks the boxes element by element: the linear index must count up from `first` without a
 * hole. */
static void check_range(const int64_t *shape, int32_t ndim, int64_t first, int64_t count) {
  int64_t v[2 * 4 * 2 * 4], at = first;
  int32_t boxes = tegula__range_boxes(shape, ndim, first, count, v);
  assert_true(boxes <= 2 * ndim);
  for (int32_t b = 0; b < boxes; b++) {
    const int64_t *lo = v + b * 2 * ndim, *hi = lo + ndim;
    int64_t index[4];
    bool more = true;
    for (int32_t k = 0; k < ndim; k++) {
      assert_true(lo[k] >= 0 && lo[k] < hi[k] && hi[k] <= shape[k]);
      index[k] = lo[k];
    }
    while (more) {
      int64_t linear = 0;
      for (int32_t k = 0; k < ndim; k++) linear = linear * shape[k] + index[k];
      assert_int_equal(linear, at++);
      int32_t k = ndim - 1;
      for (; k >= 0 && ++index[k] == hi[k]; k--) index[k] = lo[k];
      more = k >= 0;
    }
  }
  assert_int_equal(at, first + count);
}

static void every_range_of_small_shapes_is_covered_in_order(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {{13, 1, 1, 1}, {3, 4, 1, 1}, {1, 5, 2, 1}, {3, 2, 4, 1},
                                      {2, 3, 2, 2},  {1, 1, 1, 1}, {2, 1, 3, 1}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int32_t ndim = 1; ndim <= 4; ndim++) {
      int64_t elements = 1;
      for (int32_t k = 0; k < ndim; k++) elements *= shapes[s][k];
      for (int64_t first = 0; first < elements; first++)
        for (int64_t count = 0; first + count <= elements; count++)
          check_range(shapes[s], ndim, first, count);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_example_of_the_file_holds),
      cmocka_unit_test(whole_rows_are_one_box),
      cmocka_unit_test(a_scalar_is_one_box),
      cmocka_unit_test(every_range_of_small_shapes_is_covered_in_order),
  };
  return cmocka_run_group_tests_name("check: range", tests, NULL, NULL);
}
