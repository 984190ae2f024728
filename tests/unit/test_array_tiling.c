/* Tilings: the rule of even cuts, grids, whole files, any boxes; who owns which tile; what is
 * refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "array/array.h"

/* Checks that the tiles along one axis of an array with one axis end at these places. */
static void expect_ends(tegula_tiling *tiling, const int64_t *ends, int64_t count) {
  int64_t lo, hi, start = 0;
  assert_int_equal(tiling->count, count);
  for (int64_t i = 0; i < count; i++) {
    tegula__tiling_box(tiling, i, &lo, &hi);
    assert_int_equal(lo, start);
    assert_int_equal(hi, ends[i]);
    start = hi;
  }
  tegula__tiling_release(tiling);
}

static tegula_tiling *even(int64_t length, int64_t tiles, int32_t ranks) {
  tegula_error error;
  tegula_tiling *tiling;
  assert_ok(tegula__tiling_even(&length, 1, 0, tiles, ranks, &tiling, &error));
  return tiling;
}

static void even_cuts_follow_the_rule(void **state) {
  (void)state;
  expect_ends(even(10, 4, 1), (int64_t[]){3, 6, 9, 10}, 4); /* t = 3, the last one short */
  expect_ends(even(9, 4, 1), (int64_t[]){3, 6, 9}, 3);      /* fewer than asked, none empty */
  expect_ends(even(5, 4, 1), (int64_t[]){2, 4, 5}, 3);
  expect_ends(even(8, 4, 1), (int64_t[]){2, 4, 6, 8}, 4);
  expect_ends(even(3, 8, 1), (int64_t[]){1, 2, 3}, 3);
  expect_ends(even(7, 1, 1), (int64_t[]){7}, 1);
  expect_ends(even(0, 5, 1), (int64_t[]){0}, 1); /* the one empty tile of an empty array */
  expect_ends(even(INT64_MAX, 2, 1), (int64_t[]){(int64_t)1 << 62, INT64_MAX}, 2);
  for (int64_t n = 1; n <= 60; n++)
    for (int64_t asked = 1; asked <= 60; asked++) {
      tegula_tiling *tiling = even(n, asked, 1);
      int64_t t = (n + asked - 1) / asked, start = 0, lo, hi;
      assert_int_equal(tiling->count, (n + t - 1) / t);
      for (int64_t i = 0; i < tiling->count; i++) {
        tegula__tiling_box(tiling, i, &lo, &hi);
        assert_int_equal(lo, start);
        assert_true(hi > lo && hi - lo <= t);
        start = hi;
      }
      assert_int_equal(start, n);
      tegula__tiling_release(tiling);
    }
}

static void any_axis_can_be_cut(void **state) {
  (void)state;
  tegula_error error;
  tegula_tiling *tiling;
  int64_t lo[3], hi[3];
  assert_ok(tegula__tiling_even((int64_t[]){4, 6, 5}, 3, 2, 2, 1, &tiling, &error));
  assert_int_equal(tiling->count, 2);
  tegula__tiling_box(tiling, 1, lo, hi);
  assert_memory_equal(lo, ((int64_t[]){0, 0, 3}), sizeof lo);
  assert_memory_equal(hi, ((int64_t[]){4, 6, 5}), sizeof hi);
  tegula__tiling_release(tiling);
}

static void an_array_without_elements_has_one_empty_tile(void **state) {
  (void)state;
  tegula_error error;
  tegula_tiling *tiling;
  assert_ok(tegula__tiling_even((int64_t[]){0, 4}, 2, 0, 3, 1, &tiling, &error));
  assert_int_equal(tiling->count, 1);
  tegula__tiling_release(tiling);
  /* whichever axis has no length */
  assert_ok(tegula__tiling_even((int64_t[]){4, 0}, 2, 0, 3, 1, &tiling, &error));
  assert_int_equal(tiling->count, 1);
  int64_t lo[2], hi[2];
  tegula__tiling_box(tiling, 0, lo, hi);
  assert_memory_equal(hi, ((int64_t[]){4, 0}), sizeof hi);
  tegula__tiling_release(tiling);
}

static void a_scalar_has_one_tile(void **state) {
  (void)state;
  tegula_error error;
  tegula_tiling *tiling;
  assert_ok(tegula__tiling_even(NULL, 0, 7, 4, 2, &tiling, &error)); /* the axis is not read */
  assert_int_equal(tiling->count, 1);
  assert_int_equal(tegula__tiling_owner(tiling, 0), 0);
  tegula__tiling_release(tiling);
  assert_ok(tegula__tiling_grid(NULL, NULL, 0, 1, &tiling, &error));
  assert_int_equal(tiling->count, 1);
  tegula__tiling_release(tiling);
}

/* Tile i belongs to rank floor(i * ranks / tiles). */
static void tiles_are_dealt_to_ranks(void **state) {
  (void)state;
  static const struct {
    int64_t tiles;
    int32_t ranks, owners[5];
  } cases[] = {{5, 2, {0, 0, 0, 1, 1}}, {4, 4, {0, 1, 2, 3}}, {2, 3, {0, 1}},
               {3, 2, {0, 0, 1}},       {1, 4, {0}},          {5, 3, {0, 0, 1, 1, 2}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tegula_tiling *tiling = even(cases[i].tiles, cases[i].tiles, cases[i].ranks);
    for (int64_t k = 0; k < cases[i].tiles; k++)
      assert_int_equal(tegula__tiling_owner(tiling, k), cases[i].owners[k]);
    tegula__tiling_release(tiling);
  }
  tegula_tiling *huge = even(INT64_MAX, INT64_MAX, INT32_MAX); /* i * ranks has more than 63 bits */
  assert_int_equal(huge->count, INT64_MAX);
  assert_int_equal(tegula__tiling_owner(huge, INT64_MAX - 1), INT32_MAX - 1);
  assert_int_equal(tegula__tiling_owner(huge, INT64_MAX / 2 + 1), INT32_MAX / 2);
  int64_t lo, hi;
  tegula__tiling_box(huge, INT64_MAX - 1, &lo, &hi);
  assert_int_equal(lo, INT64_MAX - 1);
  assert_int_equal(hi, INT64_MAX);
  tegula__tiling_release(huge);
}

static void grids_are_in_c_order_and_clipped(void **state) {
  (void)state;
  tegula_error error;
  tegula_tiling *tiling;
  static const int64_t expected[6][4] = {{0, 0, 2, 3}, {0, 3, 2, 4}, {2, 0, 4, 3},
                                         {2, 3, 4, 4}, {4, 0, 5, 3}, {4, 3, 5, 4}};
  assert_ok(tegula__tiling_grid((int64_t[]){5, 4}, (int64_t[]){2, 3}, 2, 1, &tiling, &error));
  assert_int_equal(tiling->count, 6);
  for (int64_t i = 0; i < 6; i++) {
    int64_t lo[2], hi[2];
    tegula__tiling_box(tiling, i, lo, hi);
    assert_memory_equal(lo, expected[i], sizeof lo);
    assert_memory_equal(hi, expected[i] + 2, sizeof hi);
  }
  tegula__tiling_release(tiling);
  assert_ok(
      tegula__tiling_grid((int64_t[]){5, 4}, (int64_t[]){INT64_MAX, 9}, 2, 1, &tiling, &error));
  assert_int_equal(tiling->count, 1);
  tegula__tiling_release(tiling);
}

static void senseless_requests_are_refused(void **state) {
  (void)state;
  tegula_error error;
  tegula_tiling *out = (tegula_tiling *)16, *kept = out;
  const int64_t shape[2] = {5, 4};
  assert_refused(tegula__tiling_even(shape, 2, 0, 0, 1, &out, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula__tiling_even(shape, 2, 2, 3, 1, &out, &error), TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "axis 2");
  assert_refused(tegula__tiling_even(shape, 2, -1, 3, 1, &out, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula__tiling_even(shape, 2, 0, 3, 0, &out, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula__tiling_even(shape, -1, 0, 3, 1, &out, &error), TEGULA_INVALID_ARGUMENT);
  int64_t many[TEGULA_MAX_DIMS + 1];
  for (int k = 0; k <= TEGULA_MAX_DIMS; k++) many[k] = 1;
  assert_refused(tegula__tiling_even(many, TEGULA_MAX_DIMS + 1, 0, 3, 1, &out, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula__tiling_even((int64_t[]){5, -4}, 2, 0, 3, 1, &out, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "-4");
  assert_refused(tegula__tiling_even((int64_t[]){INT64_MAX, 2}, 2, 0, 3, 1, &out, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula__tiling_grid(shape, (int64_t[]){2, 0}, 2, 1, &out, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "axis 1");
  assert_ptr_equal(out, kept); /* written only when it worked */
}

/* ---- custom boxes ---- */

static tegula_box box2(int64_t lo0, int64_t hi0, int64_t lo1, int64_t hi1) {
  return (tegula_box){.ndim = 2, .lo = {lo0, lo1}, .hi = {hi0, hi1}};
}

static const int64_t custom_shape[2] = {4, 6};

static tegula_status custom(const tegula_box *boxes, const int32_t *owners, int64_t count,
                            tegula_error *error) {
  tegula_tiling *tiling;
  tegula_status status =
      tegula__tiling_custom(custom_shape, 2, boxes, owners, count, 2, &tiling, error);
  if (status == TEGULA_OK) tegula__tiling_release(tiling);
  return status;
}

static void any_disjoint_cover_will_do(void **state) {
  (void)state;
  tegula_error error;
  tegula_tiling *tiling;
  /* a pinwheel: no cut goes through; and an empty box, which harms nobody */
  const tegula_box boxes[] = {box2(0, 1, 0, 4), box2(0, 3, 4, 6), box2(3, 4, 2, 6),
                              box2(1, 4, 0, 2), box2(1, 3, 2, 4), box2(2, 2, 0, 6)};
  assert_ok(tegula__tiling_custom(custom_shape, 2, boxes, (int32_t[]){1, 0, 1, 0, 1, 0}, 6, 2,
                                  &tiling, &error));
  for (int64_t i = 0; i < 6; i++) {
    int64_t lo[2], hi[2];
    tegula__tiling_box(tiling, i, lo, hi);
    assert_memory_equal(lo, boxes[i].lo, sizeof lo); /* kept in the order given */
    assert_memory_equal(hi, boxes[i].hi, sizeof hi);
    assert_int_equal(tegula__tiling_owner(tiling, i), i % 2 == 0);
  }
  tegula_tiling *shared = tegula__tiling_retain(tiling);
  tegula__tiling_release(tiling);
  assert_int_equal(shared->count, 6); /* lives on */
  tegula__tiling_release(shared);
  assert_ok(custom(boxes, NULL, 6, &error));
}

static void overlaps_gaps_and_strangers_are_refused(void **state) {
  (void)state;
  tegula_error error;
  const tegula_box overlap[] = {box2(0, 4, 0, 3), box2(0, 4, 3, 5), box2(3, 4, 4, 6),
                                box2(0, 3, 5, 6)};
  assert_refused(custom(overlap, NULL, 4, &error), TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "tiles 1 and 2 overlap");
  const tegula_box twice[] = {box2(0, 4, 0, 6), box2(0, 4, 0, 6)};
  assert_refused(custom(twice, NULL, 2, &error), TEGULA_INVALID_ARGUMENT);
  /* 24 elements in all, but not each once */
  const tegula_box balanced[] = {box2(0, 4, 0, 3), box2(0, 4, 2, 5)};
  assert_refused(custom(balanced, NULL, 2, &error), TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "overlap");
  const tegula_box gap[] = {box2(0, 4, 0, 3), box2(0, 4, 3, 5)};
  assert_refused(custom(gap, NULL, 2, &error), TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "cover 20 of 24");
  const tegula_box outside[] = {box2(0, 4, 0, 3), box2(0, 4, 3, 7)};
  assert_refused(custom(outside, NULL, 2, &error), TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "tile 1");
  const tegula_box negative[] = {box2(-1, 4, 0, 6)};
  assert_refused(custom(negative, NULL, 1, &error), TEGULA_INVALID_ARGUMENT);
  const tegula_box backwards[] = {box2(0, 4, 0, 6), box2(3, 2, 0, 6)};
  assert_refused(custom(backwards, NULL, 2, &error), TEGULA_INVALID_ARGUMENT);
  tegula_box thin = box2(0, 4, 0, 6);
  thin.ndim = 1;
  assert_refused(custom(&thin, NULL, 1, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(custom(&thin, NULL, 0, &error), TEGULA_INVALID_ARGUMENT);
  const tegula_box whole[] = {box2(0, 4, 0, 6)};
  assert_refused(custom(whole, (int32_t[]){2}, 1, &error), TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "rank 2 of 2");
  assert_refused(custom(whole, (int32_t[]){-1}, 1, &error), TEGULA_INVALID_ARGUMENT);
}

/* A box moved by one place makes one overlap and one gap: the sum of elements stays right, so only
 * comparing finds it. */
static void every_displaced_box_is_found(void **state) {
  (void)state;
  tegula_error error;
  uint64_t seed = 11;
  for (int round = 0; round < 300; round++) {
    tegula_box boxes[24];
    for (int i = 0; i < 24; i++) boxes[i] = box2(i / 6, i / 6 + 1, i % 6, i % 6 + 1);
    for (int i = 23; i > 0; i--) { /* in any order */
      int64_t k = random_between(&seed, 0, i);
      tegula_box held = boxes[i];
      boxes[i] = boxes[k];
      boxes[k] = held;
    }
    assert_ok(custom(boxes, NULL, 24, &error));
    tegula_box *moved = &boxes[random_between(&seed, 0, 23)];
    int axis = (int)random_between(&seed, 0, 1);
    int64_t by = moved->lo[axis] > 0 ? -1 : 1;
    moved->lo[axis] += by;
    moved->hi[axis] += by;
    assert_refused(custom(boxes, NULL, 24, &error), TEGULA_INVALID_ARGUMENT);
  }
}

static void a_custom_scalar_has_one_box(void **state) {
  (void)state;
  tegula_error error;
  tegula_tiling *tiling;
  const tegula_box boxes[2] = {{.ndim = 0}, {.ndim = 0}};
  assert_ok(tegula__tiling_custom(NULL, 0, boxes, NULL, 1, 1, &tiling, &error));
  tegula__tiling_release(tiling);
  assert_refused(tegula__tiling_custom(NULL, 0, boxes, NULL, 2, 1, &tiling, &error),
                 TEGULA_INVALID_ARGUMENT);
}

/* ---- whole files ---- */

static tegula_tiling *by_files(const int64_t *rows, int64_t files, int64_t tiles) {
  tegula_error error;
  tegula_tiling *tiling;
  assert_ok(tegula__tiling_from_rows(&rows[files], 1, rows, files, tiles, 1, &tiling, &error));
  return tiling;
}

static void files_are_put_together_to_even_tiles(void **state) {
  (void)state;
  const int64_t uniform[] = {0, 10, 20, 30, 40};
  expect_ends(by_files(uniform, 4, 4), (int64_t[]){10, 20, 30, 40}, 4); /* a tile per file */
  expect_ends(by_files(uniform, 4, 2), (int64_t[]){20, 40}, 2);
  expect_ends(by_files(uniform, 4, 1), (int64_t[]){40}, 1);
  /* one large file and three small: the border nearest to 50 is 70 */
  const int64_t uneven[] = {0, 70, 80, 90, 100};
  expect_ends(by_files(uneven, 4, 2), (int64_t[]){70, 100}, 2);
  const int64_t late[] = {0, 10, 20, 30, 100};
  expect_ends(by_files(late, 4, 2), (int64_t[]){30, 100}, 2);
  const int64_t few[] = {0, 6, 10}; /* fewer files than tiles: as even */
  expect_ends(by_files(few, 2, 4), (int64_t[]){3, 6, 9, 10}, 4);
  const int64_t none[] = {0, 0, 0, 0};
  expect_ends(by_files(none, 3, 2), (int64_t[]){0}, 1);
}

static void tiles_of_files_end_where_files_end(void **state) {
  (void)state;
  uint64_t seed = 12;
  for (int round = 0; round < 2000; round++) {
    int64_t rows[13] = {0}, files = random_between(&seed, 1, 12), lo, hi, start = 0;
    for (int64_t i = 0; i < files; i++)
      rows[i + 1] = rows[i] + tegula__max(0, random_between(&seed, -3, 9));
    if (rows[files] == 0) continue;
    int64_t tiles = random_between(&seed, 1, files);
    tegula_tiling *tiling = by_files(rows, files, tiles);
    assert_true(tiling->count >= 1 && tiling->count <= tiles);
    for (int64_t i = 0; i < tiling->count; i++) {
      tegula__tiling_box(tiling, i, &lo, &hi);
      assert_int_equal(lo, start);
      assert_true(hi > lo); /* none empty */
      bool border = false;
      for (int64_t k = 1; k <= files; k++) border = border || rows[k] == hi;
      assert_true(border);
      start = hi;
    }
    assert_int_equal(start, rows[files]);
    tegula__tiling_release(tiling);
  }
}

static void the_tiles_of_a_rank_lie_in_its_range(void **state) {
  (void)state;
  for (int64_t tiles = 1; tiles <= 13; tiles++)
    for (int32_t ranks = 1; ranks <= 15; ranks++) {
      tegula_tiling *tiling = even(tiles, tiles, ranks);
      int64_t end = 0, first, last;
      for (int32_t rank = 0; rank < ranks; rank++) {
        tegula__tiling_range(tiling, rank, &first, &last);
        assert_int_equal(first, end); /* each tile has one owner */
        for (int64_t i = first; i < last; i++)
          assert_int_equal(tegula__tiling_owner(tiling, i), rank);
        end = last;
      }
      assert_int_equal(end, tiles);
      tegula__tiling_release(tiling);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(even_cuts_follow_the_rule),
      cmocka_unit_test(any_axis_can_be_cut),
      cmocka_unit_test(an_array_without_elements_has_one_empty_tile),
      cmocka_unit_test(a_scalar_has_one_tile),
      cmocka_unit_test(tiles_are_dealt_to_ranks),
      cmocka_unit_test(the_tiles_of_a_rank_lie_in_its_range),
      cmocka_unit_test(grids_are_in_c_order_and_clipped),
      cmocka_unit_test(senseless_requests_are_refused),
      cmocka_unit_test(any_disjoint_cover_will_do),
      cmocka_unit_test(overlaps_gaps_and_strangers_are_refused),
      cmocka_unit_test(every_displaced_box_is_found),
      cmocka_unit_test(a_custom_scalar_has_one_box),
      cmocka_unit_test(files_are_put_together_to_even_tiles),
      cmocka_unit_test(tiles_of_files_end_where_files_end),
  };
  return cmocka_run_group_tests_name("array: tiling", tests, NULL, NULL);
}
