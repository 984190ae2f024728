/* A finished manifest keeps its promises: parts lie within their files, follow each other and cover
 * the array; rows are found.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "manifest/manifest.h"

static const int64_t none[1] = {0}; /* vectors of no axes */

static tegula__manifest make_manifest(const char *dtype, int32_t ndim, const int64_t *shape,
                                      int64_t size) {
  tegula__manifest made;
  tegula__manifest_init(&made);
  made.dtype = tegula_dtype_native(dtype_of(dtype));
  made.ndim = ndim;
  if (ndim > 0) memcpy(made.shape, shape, (size_t)ndim * sizeof *shape);
  made.files = calloc(1, sizeof *made.files);
  assert_non_null(made.files);
  made.files[0].path = strdup("folder/x.npy");
  made.files[0].stamp.size = size;
  made.file_count = 1;
  return made;
}

static void add(tegula__manifest *to, int64_t offset, const int64_t *lo, const int64_t *hi,
                const int64_t *strides) {
  assert_int_equal(tegula__manifest_add(to, 0, offset, lo, hi, strides, '<', NULL), TEGULA_OK);
}

/* The status of finishing; the manifest is freed. */
static tegula_status finish(tegula__manifest *manifest, tegula_error *error) {
  tegula_status status = tegula__manifest_finish(manifest, error);
  tegula__manifest_free(manifest);
  return status;
}

static void a_short_file_says_expected_and_found(void **state) {
  (void)state;
  tegula_error error;
  for (int64_t size = 287; size <= 288; size++) { /* 128 + 10 * 4 * 4 = 288 bytes */
    tegula__manifest m = make_manifest("<i4", 2, (int64_t[]){10, 4}, size);
    add(&m, 128, (int64_t[]){0, 0}, (int64_t[]){10, 4}, (int64_t[]){16, 4});
    if (size == 288) {
      assert_ok(finish(&m, &error));
      continue;
    }
    assert_refused(finish(&m, &error), TEGULA_SHORT_FILE);
    assert_string_equal(error.path, "folder/x.npy");
    assert_contains(error.message, "\"folder/x.npy\"");
    assert_contains(error.message, "expected 288 bytes");
    assert_contains(error.message, "found 287");
    assert_true(error.hint[0] != '\0');
  }
}

static void the_gap_behind_the_last_row_need_not_be_there(void **state) {
  (void)state;
  tegula_error error;
  /* 3 rows of 12 bytes, 4 between: 16 + 16 + 12 = 44 */
  for (int64_t size = 43; size <= 44; size++) {
    tegula__manifest m = make_manifest("<i4", 2, (int64_t[]){3, 3}, size);
    add(&m, 0, (int64_t[]){0, 0}, (int64_t[]){3, 3}, (int64_t[]){16, 4});
    assert_int_equal(finish(&m, &error), size == 44 ? TEGULA_OK : TEGULA_SHORT_FILE);
  }
}

static void parts_without_elements_need_no_bytes(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest m = make_manifest("<i4", 2, (int64_t[]){0, 4}, 0);
  add(&m, 128, (int64_t[]){0, 0}, (int64_t[]){0, 4}, (int64_t[]){16, 4});
  assert_ok(finish(&m, &error));
  m = make_manifest("<i4", 2, (int64_t[]){5, 0}, 0);
  add(&m, 128, (int64_t[]){0, 0}, (int64_t[]){5, 0}, (int64_t[]){4, 4});
  assert_ok(finish(&m, &error));
}

static void holes_overlaps_and_rests_are_defects(void **state) {
  (void)state;
  tegula_error error;
  static const struct {
    int64_t a_lo, a_hi, b_lo, b_hi;
  } cases[] = {{0, 4, 5, 10}, {0, 6, 5, 10}, {0, 4, 4, 9},
               {1, 5, 5, 10}, {0, 5, 5, 11}, {0, 4, 4, 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tegula__manifest m = make_manifest("<i4", 1, (int64_t[]){10}, 1000);
    add(&m, 0, &cases[i].a_lo, &cases[i].a_hi, (int64_t[]){4});
    add(&m, 100, &cases[i].b_lo, &cases[i].b_hi, (int64_t[]){4});
    assert_refused(finish(&m, &error), TEGULA_INTERNAL);
  }
  /* not all of a trailing axis */
  tegula__manifest m = make_manifest("<i4", 2, (int64_t[]){2, 4}, 1000);
  add(&m, 0, (int64_t[]){0, 0}, (int64_t[]){2, 3}, (int64_t[]){16, 4});
  assert_refused(finish(&m, &error), TEGULA_INTERNAL);
  m = make_manifest("<i4", 1, (int64_t[]){2}, 1000); /* a file that is not in the table */
  add(&m, 0, (int64_t[]){0}, (int64_t[]){2}, (int64_t[]){4});
  m.parts[0].file = 1;
  assert_refused(finish(&m, &error), TEGULA_INTERNAL);
  m = make_manifest("<i4", 1, (int64_t[]){2}, 1000);
  add(&m, -4, (int64_t[]){0}, (int64_t[]){2}, (int64_t[]){4});
  assert_refused(finish(&m, &error), TEGULA_INTERNAL);
}

static void a_scalar_has_exactly_one_part(void **state) {
  (void)state;
  tegula_error error;
  for (int parts = 0; parts < 3; parts++) {
    tegula__manifest m = make_manifest("<f8", 0, none, 8);
    for (int i = 0; i < parts; i++) add(&m, 0, none, none, none);
    assert_int_equal(finish(&m, &error), parts == 1 ? TEGULA_OK : TEGULA_INTERNAL);
  }
  tegula__manifest m = make_manifest("<f8", 0, none, 7);
  add(&m, 0, none, none, none);
  assert_refused(finish(&m, &error), TEGULA_SHORT_FILE);
}

static void strides_and_places_that_overflow_are_corrupt(void **state) {
  (void)state;
  tegula_error error;
  static const struct {
    int64_t offset, stride0, stride1;
  } cases[] = {{0, INT64_MAX, 4},  {0, INT64_MAX / 2, 4},
               {INT64_MAX, 16, 4}, {INT64_MAX - 40, 16, 4},
               {0, 0, 4},          {0, 16, 0},
               {0, -16, 4},        {0, 16, -4},
               {0, INT64_MIN, 4}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tegula__manifest m = make_manifest("<i4", 2, (int64_t[]){4, 4}, INT64_MAX);
    add(&m, cases[i].offset, (int64_t[]){0, 0}, (int64_t[]){4, 4},
        (int64_t[]){cases[i].stride0, cases[i].stride1});
    assert_refused(finish(&m, &error), TEGULA_CORRUPT);
    assert_string_equal(error.path, "folder/x.npy");
  }
}

static void shapes_beyond_the_limits_are_refused(void **state) {
  (void)state;
  tegula_error error;
  /* 2^63 bytes */
  tegula__manifest m =
      make_manifest("<f8", 2, (int64_t[]){(int64_t)1 << 31, (int64_t)1 << 29}, INT64_MAX);
  add(&m, 0, (int64_t[]){0, 0}, m.shape, (int64_t[]){(int64_t)1 << 32, 8});
  assert_refused(finish(&m, &error), TEGULA_LIMIT_EXCEEDED);
  assert_contains(error.message, "(2147483648, 536870912)");
  /* a zero does not excuse it */
  m = make_manifest("<f8", 3, (int64_t[]){0, (int64_t)1 << 62, 4}, INT64_MAX);
  assert_refused(finish(&m, &error), TEGULA_LIMIT_EXCEEDED);
  m = make_manifest("<f8", 0, none, 8);
  m.ndim = TEGULA_MAX_DIMS + 1;
  assert_refused(finish(&m, &error), TEGULA_INTERNAL);
  m = make_manifest("<f8", 0, none, 8);
  m.dtype.item_size = 0;
  assert_refused(finish(&m, &error), TEGULA_INTERNAL);
}

/* ---- find ---- */

static void rows_are_found_in_any_table(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (int round = 0; round < 300; round++) {
    int64_t parts = random_between(&seed, 1, 12), borders[13] = {0};
    for (int64_t i = 0; i < parts; i++)
      borders[i + 1] = borders[i] + tegula__max(0, random_between(&seed, -2, 4)); /* many empty */
    tegula__manifest m = make_manifest("|u1", 1, &borders[parts], 1000);
    for (int64_t i = 0; i < parts; i++)
      add(&m, borders[i], &borders[i], &borders[i + 1], (int64_t[]){1});
    tegula_error error;
    assert_ok(tegula__manifest_finish(&m, &error));
    for (int64_t lo = 0; lo <= borders[parts]; lo++)
      for (int64_t hi = lo + 1; hi <= borders[parts]; hi++) {
        int64_t first, last;
        tegula__manifest_find(&m, lo, hi, &first, &last);
        assert_true(first >= 0 && last <= parts);
        for (int64_t i = 0; i < parts; i++) {
          bool meets = tegula__max(lo, borders[i]) < tegula__min(hi, borders[i + 1]),
               found = i >= first && i < last;
          if (meets) assert_true(found);
          /* an empty part in between does no harm */
          if (found && borders[i] < borders[i + 1]) assert_true(meets);
        }
      }
    tegula__manifest_free(&m);
  }
}

static void a_scalar_is_found_whatever_the_rows(void **state) {
  (void)state;
  tegula_error error;
  int64_t first, last;
  tegula__manifest m = make_manifest("<f8", 0, none, 8);
  add(&m, 0, none, none, none);
  assert_ok(tegula__manifest_finish(&m, &error));
  tegula__manifest_find(&m, 7, 9, &first, &last);
  assert_int_equal(first, 0);
  assert_int_equal(last, 1);
  tegula__manifest_free(&m);
}

static void an_unfinished_manifest_can_be_freed(void **state) {
  (void)state;
  tegula__manifest m = make_manifest("<i4", 1, (int64_t[]){2}, 1000);
  add(&m, 0, (int64_t[]){0}, (int64_t[]){2}, (int64_t[]){4});
  m.descr = strdup("x");
  tegula__manifest_free(&m);
  assert_int_equal(m.part_count, 0);
  tegula__manifest_free(&m); /* twice does no harm */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_short_file_says_expected_and_found),
      cmocka_unit_test(the_gap_behind_the_last_row_need_not_be_there),
      cmocka_unit_test(parts_without_elements_need_no_bytes),
      cmocka_unit_test(holes_overlaps_and_rests_are_defects),
      cmocka_unit_test(a_scalar_has_exactly_one_part),
      cmocka_unit_test(strides_and_places_that_overflow_are_corrupt),
      cmocka_unit_test(shapes_beyond_the_limits_are_refused),
      cmocka_unit_test(rows_are_found_in_any_table),
      cmocka_unit_test(a_scalar_is_found_whatever_the_rows),
      cmocka_unit_test(an_unfinished_manifest_can_be_freed),
  };
  return cmocka_run_group_tests_name("manifest: finish, find", tests, NULL, NULL);
}
