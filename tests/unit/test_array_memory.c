/* The memory of a rank's tiles: one block or one each; memory of the caller is checked before it is
 * used.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "array/array.h"

static tegula_tiling *grid(const int64_t *shape, const int64_t *tile, int32_t ndim, int32_t ranks) {
  tegula_error error;
  tegula_tiling *tiling;
  assert_ok(tegula__tiling_grid(shape, tile, ndim, ranks, &tiling, &error));
  return tiling;
}

static void tiles_that_form_a_box_share_one_block(void **state) {
  (void)state;
  tegula_error error;
  tegula__array array;
  tegula_tiling *tiling = grid((int64_t[]){4, 6}, (int64_t[]){2, 3}, 2, 1);
  assert_ok(tegula__array_reserve(dtype_of(">f4"), tiling, 0, false, &array, &error));
  tegula__tiling_release(tiling); /* the array keeps it */
  assert_true(array.together);
  assert_int_equal(array.count, 4);
  assert_int_equal(array.block_count, 1);
  assert_int_equal(array.dtype.order, TEGULA__NATIVE_ORDER);
  for (int64_t i = 0; i < 4; i++) { /* rows of 6 * 4 bytes; tile 3 starts at row 2, column 3 */
    assert_int_equal(array.tiles[i].strides[0], 24);
    assert_int_equal(array.tiles[i].strides[1], 4);
    assert_int_equal(array.tiles[i].data - array.blocks[0].data, (i / 2) * 48 + (i % 2) * 12);
  }
  tegula__array_free(&array);
}

static void separate_tiles_have_a_block_each(void **state) {
  (void)state;
  tegula_error error;
  tegula__array array;
  tegula_tiling *tiling = grid((int64_t[]){4, 6}, (int64_t[]){3, 4}, 2, 1);
  assert_ok(tegula__array_reserve(dtype_of("<f4"), tiling, 0, true, &array, &error));
  assert_false(array.together);
  assert_int_equal(array.block_count, 4);
  static const int64_t row_bytes[4] = {16, 8, 16, 8}; /* 4 or 2 columns */
  for (int64_t i = 0; i < 4; i++) {
    assert_int_equal(array.tiles[i].strides[0], row_bytes[i]);
    assert_ptr_equal(array.tiles[i].data, array.blocks[i].data);
  }
  tegula__array_free(&array);
  tegula__tiling_release(tiling);
}

static void ranks_hold_their_own_tiles(void **state) {
  (void)state;
  tegula_error error;
  tegula__array array;
  tegula_tiling *tiling = grid((int64_t[]){6}, (int64_t[]){2}, 1, 2); /* owners 0, 0, 1 */
  assert_ok(tegula__array_reserve(dtype_of("|u1"), tiling, 0, false, &array, &error));
  assert_int_equal(array.count, 2);
  assert_true(array.together);
  tegula__array_free(&array);
  assert_ok(tegula__array_reserve(dtype_of("|u1"), tiling, 1, false, &array, &error));
  assert_int_equal(array.count, 1);
  assert_int_equal(array.numbers[0], 2);
  assert_int_equal(array.tiles[0].lo[0], 4);
  tegula__array_free(&array);
  tegula__tiling_release(tiling);
  tiling = grid((int64_t[]){2}, (int64_t[]){1}, 1, 3); /* rank 2 has none */
  assert_ok(tegula__array_reserve(dtype_of("|u1"), tiling, 2, false, &array, &error));
  assert_int_equal(array.count, 0);
  tegula__array_free(&array);
  tegula__tiling_release(tiling);
}

static void tiles_that_form_no_box_lie_apart(void **state) {
  (void)state;
  tegula_error error;
  tegula__array array;
  tegula_tiling *tiling;
  const tegula_box boxes[] = {{.ndim = 1, .lo = {0}, .hi = {2}},
                              {.ndim = 1, .lo = {2}, .hi = {4}},
                              {.ndim = 1, .lo = {4}, .hi = {6}}};
  assert_ok(
      tegula__tiling_custom((int64_t[]){6}, 1, boxes, (int32_t[]){0, 1, 0}, 3, 2, &tiling, &error));
  assert_ok(tegula__array_reserve(dtype_of("|u1"), tiling, 0, false, &array, &error));
  assert_false(array.together);
  assert_int_equal(array.block_count, 2);
  tegula__array_free(&array);
  tegula__tiling_release(tiling);
}

static void empty_arrays_and_scalars_have_a_place(void **state) {
  (void)state;
  tegula_error error;
  tegula__array array;
  tegula_tiling *tiling = grid((int64_t[]){0, 4}, (int64_t[]){1, 4}, 2, 1);
  assert_ok(tegula__array_reserve(dtype_of("<f8"), tiling, 0, false, &array, &error));
  assert_int_equal(array.count, 1);
  assert_null(array.tiles[0].data);
  tegula__array_free(&array);
  tegula__tiling_release(tiling);
  tiling = grid(NULL, NULL, 0, 1);
  assert_ok(tegula__array_reserve(dtype_of("<f8"), tiling, 0, false, &array, &error));
  assert_int_equal(array.count, 1);
  *(double *)(void *)array.tiles[0].data = 3.5;
  tegula__array_free(&array);
  tegula__tiling_release(tiling);
}

static void what_cannot_be_had_is_said_before(void **state) {
  (void)state;
  tegula_error error;
  tegula__array array;
  tegula_tiling *tiling = grid((int64_t[]){(int64_t)1 << 60}, (int64_t[]){(int64_t)1 << 60}, 1, 1);
  assert_refused(tegula__array_reserve(dtype_of("<f8"), tiling, 0, false, &array, &error),
                 TEGULA_LIMIT_EXCEEDED); /* 2^63 bytes */
  assert_refused(tegula__array_reserve(dtype_of("|u1"), tiling, 0, false, &array, &error),
                 TEGULA_OUT_OF_MEMORY);
  tegula__tiling_release(tiling);
}

/* ---- memory of the caller ---- */

static char memory[4096];

static tegula_view view_of(int64_t lo, int64_t hi) {
  return (tegula_view){.data = memory,
                       .dtype = dtype_of("<f4"),
                       .box = {.ndim = 2, .lo = {lo, 0}, .hi = {hi, 4}},
                       .stride_bytes = {16, 4}};
}

static tegula_status wrap(const tegula_view *views, int64_t count, tegula__array *out,
                          tegula_error *error) {
  tegula_tiling *tiling = grid((int64_t[]){6, 4}, (int64_t[]){3, 4}, 2, 1);
  tegula_status status = tegula__array_wrap(dtype_of("<f4"), tiling, 0, views, count, out, error);
  tegula__tiling_release(tiling);
  return status;
}

static void wrapped_memory_is_used_as_it_is(void **state) {
  (void)state;
  tegula_error error;
  tegula__array array;
  tegula_view views[2] = {view_of(0, 3), view_of(3, 6)};
  views[1].data = memory + 1000;
  views[1].stride_bytes[0] = -16;
  views[1].dtype.order = '>';
  views[1].flags = TEGULA_VIEW_READ_ONLY;
  views[1].device_type = TEGULA_DEVICE_HOST;
  assert_ok(wrap(views, 2, &array, &error));
  assert_int_equal(array.count, 2);
  assert_int_equal(array.block_count, 0);
  assert_ptr_equal(array.tiles[1].data, memory + 1000);
  assert_int_equal(array.tiles[1].strides[0], -16);
  assert_int_equal(array.tiles[1].order, '>');
  assert_int_equal(array.tiles[0].order, '<');
  assert_true(array.read_only);
  assert_false(array.overlaps);
  tegula__array_free(&array);
}

static void wrong_memory_is_refused(void **state) {
  (void)state;
  tegula_error error;
  tegula__array array;
  tegula_view views[2] = {view_of(0, 3), view_of(3, 6)}, good = views[1];
  assert_refused(wrap(views, 1, &array, &error), TEGULA_MISMATCH); /* too few */
  assert_contains(error.message, "this rank has 2");
  views[1].box.hi[0] = 5;
  assert_refused(wrap(views, 2, &array, &error), TEGULA_MISMATCH); /* another box */
  assert_contains(error.message, "tile 1");
  views[1] = good;
  views[1].box.hi[1] = 5;
  /* outside of the array */
  assert_refused(wrap(views, 2, &array, &error), TEGULA_INVALID_ARGUMENT);
  views[1] = good;
  views[1].box.ndim = 1;
  assert_refused(wrap(views, 2, &array, &error), TEGULA_MISMATCH);
  views[1] = good;
  views[1].dtype = dtype_of("<i4");
  assert_refused(wrap(views, 2, &array, &error), TEGULA_MISMATCH);
  assert_contains(error.message, "<f4");
  views[1].dtype = (tegula_dtype){0};
  assert_refused(wrap(views, 2, &array, &error), TEGULA_MISMATCH);
  views[1] = good;
  views[1].data = NULL;
  assert_refused(wrap(views, 2, &array, &error), TEGULA_INVALID_ARGUMENT);
  views[1] = good;
  views[1].device_type = 2; /* DLPack's CUDA */
  assert_refused(wrap(views, 2, &array, &error), TEGULA_UNSUPPORTED);
  views[1] = good;
  views[1].stride_bytes[0] = 0;
  assert_ok(wrap(views, 2, &array, &error)); /* may be saved, not loaded into */
  assert_true(array.overlaps);
  tegula__array_free(&array);
}

static void a_view_without_elements_needs_no_address(void **state) {
  (void)state;
  tegula_error error;
  tegula_view view = view_of(2, 2);
  view.data = NULL;
  assert_ok(tegula__view_check(&view, dtype_of("<f4"), (int64_t[]){6, 4}, 2, &error));
}

static void shared_places_are_found(void **state) {
  (void)state;
  static const struct {
    int64_t lengths[2], strides[2];
    bool overlaps;
  } cases[] = {{{3, 4}, {16, 4}, false},
               {{3, 4}, {4, 12}, false}, /* C and F */
               /* stride 0 matters only where there are two */
               {{3, 4}, {0, 4}, true},
               {{1, 4}, {0, 4}, false},
               {{3, 4}, {-16, 4}, false},
               {{3, 4}, {-16, -4}, false},
               {{3, 4}, {-12, 4}, true},
               /* items of 4 bytes every 2 */
               {{3, 4}, {8, 4}, true},
               {{3, 4}, {16, 2}, true},
               /* nothing shares nothing */
               {{3, 4}, {15, 4}, true},
               {{0, 4}, {0, 0}, false},
               {{3, 4}, {100, 20}, false},
               {{3, 4}, {INT64_MAX, 4}, true},
               {{1, 1}, {0, 0}, false},
               {{2, 1}, {3, 0}, true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tegula_view view = view_of(0, cases[i].lengths[0]);
    view.box.hi[1] = cases[i].lengths[1];
    for (int k = 0; k < 2; k++) view.stride_bytes[k] = cases[i].strides[k];
    if (tegula__view_overlaps(&view) != cases[i].overlaps) fail_msg("case %zu", i);
  }
  tegula_view scalar = {.data = memory, .dtype = dtype_of("<f4")};
  assert_false(tegula__view_overlaps(&scalar));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_that_form_a_box_share_one_block),
      cmocka_unit_test(separate_tiles_have_a_block_each),
      cmocka_unit_test(ranks_hold_their_own_tiles),
      cmocka_unit_test(tiles_that_form_no_box_lie_apart),
      cmocka_unit_test(empty_arrays_and_scalars_have_a_place),
      cmocka_unit_test(what_cannot_be_had_is_said_before),
      cmocka_unit_test(wrapped_memory_is_used_as_it_is),
      cmocka_unit_test(wrong_memory_is_refused),
      cmocka_unit_test(a_view_without_elements_needs_no_address),
      cmocka_unit_test(shared_places_are_found),
  };
  return cmocka_run_group_tests_name("array: memory", tests, NULL, NULL);
}
