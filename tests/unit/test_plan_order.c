/* File order, requests and runs of boxes, against values worked out by hand; tiles found by rows,
 * against a loop.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "plan/plan.h"

typedef struct box3 {
  int64_t lo[3], hi[3];
} box3;

static tegula__file_order order_of(int32_t ndim, const int64_t *strides, const box3 *box) {
  tegula__part part = {.lo = box->lo, .hi = box->hi, .strides = strides, .order = '<'};
  tegula__file_order order;
  tegula__file_order_of(&part, ndim, box->lo, box->hi, &order);
  return order;
}

static void axes_go_from_slow_to_fast(void **state) {
  (void)state;
  const box3 box = {{0, 0, 0}, {2, 3, 4}};
  const int64_t c[3] = {48, 16, 4}, f[3] = {4, 8, 24}, mixed[3] = {12, 24, 4};
  tegula__file_order order = order_of(3, c, &box);
  assert_int_equal(order.count, 3);
  assert_memory_equal(order.axes, ((int32_t[]){0, 1, 2}), 3 * sizeof(int32_t));
  order = order_of(3, f, &box);
  assert_memory_equal(order.axes, ((int32_t[]){2, 1, 0}), 3 * sizeof(int32_t));
  order = order_of(3, mixed, &box);
  assert_memory_equal(order.axes, ((int32_t[]){1, 0, 2}), 3 * sizeof(int32_t));
}

static void axes_of_length_one_have_no_place(void **state) {
  (void)state;
  const box3 box = {{0, 2, 0}, {2, 3, 4}};
  const int64_t c[3] = {48, 16, 4};
  tegula__file_order order = order_of(3, c, &box);
  assert_int_equal(order.count, 2);
  assert_int_equal(order.axes[0], 0);
  assert_int_equal(order.axes[1], 2);
  const box3 one = {{1, 1, 1}, {2, 2, 2}};
  assert_int_equal(order_of(3, c, &one).count, 0);
}

static void a_request_spans_gaps_up_to_the_limit(void **state) {
  (void)state;
  /* rows of two 4-byte items, 4 bytes between them: 2 * 12 + 8 = 32 bytes from first to behind
   * last */
  const box3 rows = {{0, 0, 0}, {3, 2, 0}};
  const int64_t gapped[2] = {12, 4};
  tegula__file_order order = order_of(2, gapped, &rows);
  int64_t span;
  assert_int_equal(tegula__read_unit(&order, gapped, rows.lo, rows.hi, 4, 4, &span), 2);
  assert_int_equal(span, 32);
  assert_int_equal(tegula__read_unit(&order, gapped, rows.lo, rows.hi, 4, 3, &span), 1);
  assert_int_equal(span, 8);
  /* two of four columns of dense rows of 16 bytes */
  const box3 columns = {{0, 1, 0}, {3, 3, 0}};
  const int64_t dense[2] = {16, 4};
  order = order_of(2, dense, &columns);
  assert_int_equal(tegula__read_unit(&order, dense, columns.lo, columns.hi, 4, 0, &span), 1);
  assert_int_equal(span, 8);
  assert_int_equal(tegula__read_unit(&order, dense, columns.lo, columns.hi, 4, 8, &span), 2);
  assert_int_equal(span, 40);
  /* one element */
  const box3 one = {{1, 1, 0}, {2, 2, 0}};
  order = order_of(2, dense, &one);
  assert_int_equal(tegula__read_unit(&order, dense, one.lo, one.hi, 4, 0, &span), 0);
  assert_int_equal(span, 4);
}

static void a_common_run_lies_densely_in_both(void **state) {
  (void)state;
  const box3 box = {{0, 0, 0}, {2, 3, 4}};
  const int64_t c[3] = {48, 16, 4}, wide[3] = {96, 32, 4}, f[3] = {4, 8, 24},
                negative[3] = {48, 16, -4};
  tegula__file_order order = order_of(3, c, &box);
  int32_t axes;
  assert_int_equal(tegula__common_run(&order, c, c, box.lo, box.hi, 4, &axes), 96);
  assert_int_equal(axes, 3);
  assert_int_equal(tegula__common_run(&order, c, wide, box.lo, box.hi, 4, &axes), 16);
  assert_int_equal(axes, 1);
  assert_int_equal(tegula__common_run(&order, c, f, box.lo, box.hi, 4, &axes), 4);
  assert_int_equal(axes, 0);
  assert_int_equal(tegula__common_run(&order, c, negative, box.lo, box.hi, 4, &axes), 4);
  const box3 part = {{0, 0, 0}, {2, 3, 2}}; /* half of each row */
  order = order_of(3, c, &part);
  assert_int_equal(tegula__common_run(&order, c, c, part.lo, part.hi, 4, &axes), 8);
  assert_int_equal(axes, 1);
}

/* ---- targets ---- */

enum { MOST_TILES = 12 };

static void tiles_are_found_by_rows_in_any_order(void **state) {
  (void)state;
  uint64_t seed = 2;
  for (int round = 0; round < 500; round++) {
    int64_t lo[MOST_TILES], hi[MOST_TILES], count = random_between(&seed, 0, MOST_TILES);
    tegula__tile tiles[MOST_TILES];
    for (int64_t i = 0; i < count; i++) { /* long and short ones, nested ones, empty ones */
      lo[i] = random_between(&seed, 0, 20);
      hi[i] = lo[i] + random_between(&seed, 0, round % 2 ? 3 : 20);
      tiles[i] = (tegula__tile){.lo = &lo[i], .hi = &hi[i]};
    }
    tegula__targets targets;
    tegula_error error;
    assert_ok(tegula__targets_create(1, tiles, count, &targets, &error));
    for (int64_t from = 0; from < 40; from++)
      for (int64_t to = from + 1; to <= 40; to++) {
        int64_t first, last;
        bool found[MOST_TILES] = {false};
        tegula__targets_find(&targets, &from, &to, &first, &last);
        for (int64_t i = first; i < last; i++) {
          assert_false(found[targets.sorted[i]]); /* each once */
          found[targets.sorted[i]] = true;
        }
        for (int64_t i = 0; i < count; i++)
          if (lo[i] < hi[i] && lo[i] < to && hi[i] > from) assert_true(found[i]);
      }
    tegula__targets_free(&targets);
  }
}

/* Columns, and a grid whose rows are many and whose columns are few: sorted by the axis that tells
 * them apart. */
static void tiles_are_found_along_the_axis_that_tells_them_apart(void **state) {
  (void)state;
  enum { TILES = 1000 };
  static int64_t vectors[TILES][4];
  static tegula__tile tiles[TILES];
  for (int shape = 0; shape < 2; shape++) {
    for (int64_t i = 0; i < TILES; i++) { /* from the last to the first */
      int64_t at = TILES - 1 - i, row = shape == 0 ? 0 : at / 4, column = shape == 0 ? at : at % 4;
      memcpy(vectors[i], (int64_t[]){8 * row, 10 * column, 8 * row + 8, 10 * column + 10},
             sizeof vectors[i]);
      tiles[i] = (tegula__tile){.lo = vectors[i], .hi = vectors[i] + 2};
    }
    tegula__targets targets;
    tegula_error error;
    assert_ok(tegula__targets_create(2, tiles, TILES, &targets, &error));
    assert_true(targets.first_row == 0 && targets.last_row == (shape == 0 ? 8 : 2000));
    for (int64_t i = 0; i < TILES; i++) {
      int64_t first, last;
      bool found = false;
      tegula__targets_find(&targets, tiles[i].lo, tiles[i].hi, &first, &last);
      assert_int_equal(last - first, shape == 0 ? 1 : 4);
      for (int64_t k = first; k < last; k++) found = found || targets.sorted[k] == i;
      assert_true(found);
    }
    tegula__targets_free(&targets);
  }
}

static void even_tiles_are_found_exactly(void **state) {
  (void)state;
  enum { TILES = 1000 };
  static int64_t lo[TILES], hi[TILES];
  static tegula__tile tiles[TILES];
  for (int64_t i = 0; i < TILES; i++) {
    lo[i] = 10 * i;
    hi[i] = 10 * i + 10;
    tiles[i] = (tegula__tile){.lo = &lo[i], .hi = &hi[i]};
  }
  tegula__targets targets;
  tegula_error error;
  int64_t first, last;
  assert_ok(tegula__targets_create(1, tiles, TILES, &targets, &error));
  /* rows of tiles 499 and 500, no more */
  tegula__targets_find(&targets, (int64_t[]){4995}, (int64_t[]){5010}, &first, &last);
  assert_int_equal(first, 499);
  assert_int_equal(last, 501);
  tegula__targets_find(&targets, (int64_t[]){9999}, (int64_t[]){10000}, &first, &last);
  assert_int_equal(first, 999);
  assert_int_equal(last, 1000);
  tegula__targets_free(&targets);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(axes_go_from_slow_to_fast),
      cmocka_unit_test(axes_of_length_one_have_no_place),
      cmocka_unit_test(a_request_spans_gaps_up_to_the_limit),
      cmocka_unit_test(a_common_run_lies_densely_in_both),
      cmocka_unit_test(tiles_are_found_by_rows_in_any_order),
      cmocka_unit_test(tiles_are_found_along_the_axis_that_tells_them_apart),
      cmocka_unit_test(even_tiles_are_found_exactly),
  };
  return cmocka_run_group_tests_name("plan: order, targets", tests, NULL, NULL);
}
