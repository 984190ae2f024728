/* Shards become one array along axis 0, or the difference is told with the file and both values.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "manifest/manifest.h"

static const int64_t none[1] = {0}; /* the shape of a scalar */

/* One file at offset 128 with one dense part. */
static void make_shard(tegula__manifest *out, const char *path, const char *dtype, int32_t ndim,
                       const int64_t *shape) {
  int64_t lo[TEGULA_MAX_DIMS] = {0}, strides[TEGULA_MAX_DIMS];
  tegula__manifest_init(out);
  tegula_dtype stored = dtype_of(dtype);
  out->dtype = tegula_dtype_native(stored);
  out->ndim = ndim;
  if (ndim > 0) memcpy(out->shape, shape, (size_t)ndim * sizeof *shape);
  out->files = calloc(1, sizeof *out->files);
  assert_non_null(out->files);
  out->files[0].path = strdup(path);
  out->files[0].stamp.size = 1 << 20;
  out->file_count = 1;
  out->name = "data";
  tegula__dense_strides(shape, ndim, stored.item_size, 'C', strides);
  assert_int_equal(tegula__manifest_add(out, 0, 128, lo, shape, strides, stored.order, NULL),
                   TEGULA_OK);
}

static void free_all(tegula__manifest *shards, int count) {
  for (int i = 0; i < count; i++) tegula__manifest_free(&shards[i]);
}

static void rows_files_and_parts_follow_each_other(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest shards[3], out;
  make_shard(&shards[0], "a.npy", "<f4", 2, (int64_t[]){3, 4});
  make_shard(&shards[1], "b.npy", "<f4", 2, (int64_t[]){0, 4});
  /* byte order is the part's own affair */
  make_shard(&shards[2], "c.npy", ">f4", 2, (int64_t[]){5, 4});
  assert_ok(tegula__manifest_join(shards, 3, &out, &error));
  assert_int_equal(out.ndim, 2);
  assert_int_equal(out.shape[0], 8);
  assert_int_equal(out.shape[1], 4);
  assert_int_equal(out.file_count, 3);
  assert_int_equal(out.part_count, 3);
  assert_string_equal(out.name, "data");
  const int64_t rows[4] = {0, 3, 3, 8};
  const char *paths[3] = {"a.npy", "b.npy", "c.npy"};
  for (int i = 0; i < 3; i++) {
    assert_string_equal(out.files[i].path, paths[i]);
    assert_int_equal(out.parts[i].file, i);
    assert_int_equal(out.parts[i].offset, 128);
    assert_int_equal(out.parts[i].lo[0], rows[i]);
    assert_int_equal(out.parts[i].hi[0], rows[i + 1]);
    assert_int_equal(out.parts[i].lo[1], 0);
    assert_int_equal(out.parts[i].hi[1], 4);
    assert_int_equal(out.parts[i].strides[0], 16);
    assert_int_equal(shards[i].file_count + shards[i].part_count, 0); /* moved */
  }
  assert_int_equal(out.parts[2].order, '>');
  assert_ok(tegula__manifest_finish(&out, &error));
  tegula__manifest_free(&out);
  free_all(shards, 3);
}

static void a_shard_may_have_several_parts_and_files(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest shards[2], out;
  make_shard(&shards[0], "a.npy", "<i2", 1, (int64_t[]){3});
  make_shard(&shards[1], "b.npy", "<i2", 1, (int64_t[]){2});
  shards[1].files = realloc(shards[1].files, 2 * sizeof *shards[1].files);
  assert_non_null(shards[1].files);
  shards[1].files[1] = (tegula__file){.path = strdup("c.npy"), .stamp = {.size = 1000}};
  shards[1].file_count = 2;
  shards[1].shape[0] = 6;
  assert_ok(tegula__manifest_add(&shards[1], 1, 64, (int64_t[]){2}, (int64_t[]){6}, (int64_t[]){2},
                                 '<', &error));
  assert_ok(tegula__manifest_join(shards, 2, &out, &error));
  assert_ok(tegula__manifest_finish(&out, &error));
  assert_int_equal(out.shape[0], 9);
  assert_int_equal(out.part_count, 3);
  assert_int_equal(out.parts[2].file, 2);
  assert_string_equal(out.files[2].path, "c.npy");
  assert_int_equal(out.parts[2].lo[0], 5);
  assert_int_equal(out.parts[2].hi[0], 9);
  tegula__manifest_free(&out);
  free_all(shards, 2);
}

static void one_shard_is_taken_as_it_is(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest shard, out;
  make_shard(&shard, "scalar.npy", "<f8", 0, none); /* a scalar alone is an array of shape () */
  assert_ok(tegula__manifest_join(&shard, 1, &out, &error));
  assert_int_equal(out.ndim, 0);
  assert_int_equal(out.part_count, 1);
  assert_int_equal(shard.file_count, 0);
  assert_ok(tegula__manifest_finish(&out, &error));
  tegula__manifest_free(&out);
  tegula__manifest_free(&shard);
}

/* Joins two shards, of which the second is called b.npy, and expects a refusal that says all of
 * `words`. */
static void refuse(tegula__manifest *shards, const char *path, const char *const *words) {
  tegula_error error;
  tegula__manifest out;
  assert_refused(tegula__manifest_join(shards, 2, &out, &error), TEGULA_MISMATCH);
  assert_string_equal(error.path, path);
  for (; *words != NULL; words++) assert_contains(error.message, *words);
  assert_int_equal(tegula__manifest_join(shards, 2, &out, NULL), TEGULA_MISMATCH);
  assert_int_equal(shards[0].file_count, 1); /* the caller still owns them */
  free_all(shards, 2);
}

static void a_scalar_is_no_shard_wherever_it_stands(void **state) {
  (void)state;
  tegula__manifest shards[2];
  make_shard(&shards[0], "a.npy", "<f4", 1, (int64_t[]){3});
  make_shard(&shards[1], "b.npy", "<f4", 0, none);
  refuse(shards, "b.npy", (const char *[]){"\"b.npy\"", "scalar", "()", NULL});
  make_shard(&shards[0], "a.npy", "<f4", 0, none);
  make_shard(&shards[1], "b.npy", "<f4", 1, (int64_t[]){3});
  refuse(shards, "a.npy", (const char *[]){"\"a.npy\"", "scalar", NULL});
}

static void another_dtype_names_the_file_and_both(void **state) {
  (void)state;
  tegula__manifest shards[2];
  make_shard(&shards[0], "a.npy", "<f4", 1, (int64_t[]){3});
  make_shard(&shards[1], "b.npy", "<i4", 1, (int64_t[]){3});
  refuse(shards, "b.npy", (const char *[]){"\"a.npy\"", "\"b.npy\"", "<f4", "<i4", "dtype", NULL});
  make_shard(&shards[0], "a.npy", "<M8[s]", 1, (int64_t[]){3});
  make_shard(&shards[1], "b.npy", "<M8[ms]", 1, (int64_t[]){3});
  refuse(shards, "b.npy", (const char *[]){"<M8[s]", "<M8[ms]", NULL});
}

static void other_trailing_axes_name_the_file_and_both(void **state) {
  (void)state;
  tegula__manifest shards[2];
  make_shard(&shards[0], "a.npy", "<f4", 3, (int64_t[]){3, 4, 5});
  make_shard(&shards[1], "b.npy", "<f4", 3, (int64_t[]){9, 4, 6});
  refuse(shards, "b.npy", (const char *[]){"\"a.npy\"", "\"b.npy\"", "(4, 5)", "(4, 6)", NULL});
  make_shard(&shards[0], "a.npy", "<f4", 2, (int64_t[]){3, 4});
  make_shard(&shards[1], "b.npy", "<f4", 1, (int64_t[]){3});
  refuse(shards, "b.npy", (const char *[]){"(4,)", "()", NULL});
  make_shard(&shards[0], "a.npy", "<f4", 2, (int64_t[]){0, 4}); /* no rows: it still must fit */
  make_shard(&shards[1], "b.npy", "<f4", 2, (int64_t[]){0, 5});
  refuse(shards, "b.npy", (const char *[]){"(4,)", "(5,)", NULL});
}

static void other_record_descriptions_differ(void **state) {
  (void)state;
  tegula__manifest shards[2];
  for (int with = 0; with < 2; with++) { /* against another one, against none */
    make_shard(&shards[0], "a.npy", "|V4", 1, (int64_t[]){3});
    make_shard(&shards[1], "b.npy", "|V4", 1, (int64_t[]){3});
    shards[0].descr = strdup("[('x', '<f4')]");
    if (with) shards[1].descr = strdup("[('y', '<i4')]");
    refuse(shards, "b.npy",
           (const char *[]){"[('x', '<f4')]", with ? "[('y', '<i4')]" : "none", "\"b.npy\"", NULL});
  }
}

static void equal_descriptions_are_kept(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest shards[2], out;
  for (int i = 0; i < 2; i++) {
    make_shard(&shards[i], "r.npy", "|V4", 1, (int64_t[]){3});
    shards[i].descr = strdup("[('x', '<f4')]");
  }
  assert_ok(tegula__manifest_join(shards, 2, &out, &error));
  assert_string_equal(out.descr, "[('x', '<f4')]");
  free_all(shards, 2);
  tegula__manifest_free(&out);
}

static void shards_of_one_file_are_called_by_their_names(void **state) {
  (void)state;
  tegula__manifest shards[2];
  make_shard(&shards[0], "x.h5", "<f4", 1, (int64_t[]){3});
  make_shard(&shards[1], "x.h5", "<i4", 1, (int64_t[]){3});
  shards[0].name = "/a_1";
  shards[1].name = "/a_2";
  refuse(shards, "x.h5",
         (const char *[]){"the dtype of \"/a_2\" in \"x.h5\" is <i4",
                          "\"/a_1\" in \"x.h5\" has <f4", NULL});
}

static void a_file_that_is_there_twice_is_there_once(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest shards[4], out;
  static const char *const paths[] = {"m.h5", "a.h5", "m.h5", "a.h5"};
  for (int i = 0; i < 4; i++) make_shard(&shards[i], paths[i], "<f4", 1, (int64_t[]){3});
  assert_ok(tegula__manifest_join(shards, 4, &out, &error));
  assert_ok(tegula__manifest_merge_files(&out, &error));
  assert_int_equal(out.file_count, 2);
  assert_string_equal(out.files[0].path, "m.h5");
  assert_string_equal(out.files[1].path, "a.h5");
  for (int i = 0; i < 4; i++) assert_int_equal(out.parts[i].file, i % 2);
  assert_ok(tegula__manifest_finish(&out, &error));
  tegula__manifest_free(&out);
  free_all(shards, 4);
}

static void a_file_that_changed_between_its_descriptions(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest shards[2], out;
  for (int i = 0; i < 2; i++) make_shard(&shards[i], "m.h5", "<f4", 1, (int64_t[]){3});
  shards[1].files[0].stamp.mtime_ns++;
  assert_ok(tegula__manifest_join(shards, 2, &out, &error));
  assert_refused(tegula__manifest_merge_files(&out, &error), TEGULA_CHANGED);
  tegula__manifest_free(&out);
  free_all(shards, 2);
}

static void too_many_rows_are_refused(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest shards[2], out;
  make_shard(&shards[0], "a.npy", "|u1", 1, (int64_t[]){INT64_MAX});
  make_shard(&shards[1], "b.npy", "|u1", 1, (int64_t[]){1});
  assert_refused(tegula__manifest_join(shards, 2, &out, &error), TEGULA_LIMIT_EXCEEDED);
  assert_string_equal(error.path, "b.npy");
  free_all(shards, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_files_and_parts_follow_each_other),
      cmocka_unit_test(a_shard_may_have_several_parts_and_files),
      cmocka_unit_test(one_shard_is_taken_as_it_is),
      cmocka_unit_test(a_scalar_is_no_shard_wherever_it_stands),
      cmocka_unit_test(another_dtype_names_the_file_and_both),
      cmocka_unit_test(other_trailing_axes_name_the_file_and_both),
      cmocka_unit_test(other_record_descriptions_differ),
      cmocka_unit_test(equal_descriptions_are_kept),
      cmocka_unit_test(shards_of_one_file_are_called_by_their_names),
      cmocka_unit_test(a_file_that_is_there_twice_is_there_once),
      cmocka_unit_test(a_file_that_changed_between_its_descriptions),
      cmocka_unit_test(too_many_rows_are_refused),
  };
  return cmocka_run_group_tests_name("manifest: join", tests, NULL, NULL);
}
