/* Senseless arguments: INVALID_ARGUMENT (or the status the header names) with a message, nothing
 * written, with and without `err`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test_api_support.h"

static tegula_error error;
static folder where;
static tegula_context *context;
static tegula_dataset *dataset;
static tegula_tiling *tiling;
static tegula_array *array;

static int setup(void **state) {
  (void)state;
  where = shards_write();
  context = context_make(2);
  dataset = dataset_open(context, where.path);
  tiling = tiling_make(SHARD_ROWS, SHARD_COLUMNS, 2);
  array = array_make(context, SHARD_ROWS, SHARD_COLUMNS, 2);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  tegula_array_destroy(array);
  tegula_tiling_destroy(tiling);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  folder_remove(&where);
  return 0;
}

/* The call (which names `error` and `out`) is refused, leaves `out` alone, and is refused too when
 * there is no place for the error. */
#define REFUSE(type, status, call_with_error, call_without)                                        \
  do {                                                                                             \
    type *const mark = (type *)(uintptr_t)0x10, *out = mark;                                       \
    assert_refused(call_with_error, status);                                                       \
    assert_ptr_equal(out, mark);                                                                   \
    assert_int_equal(call_without, status);                                                        \
    assert_ptr_equal(out, mark);                                                                   \
  } while (0)

static void senseless_contexts(void **state) {
  (void)state;
  static const struct {
    int32_t threads, files;
    int64_t staging;
  } cases[] = {{-1, 0, 0}, {4097, 0, 0}, {1, -1, 0}, {1, 0, -1}, {INT32_MAX, 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tegula_context_options options;
    tegula_context_options_init(&options);
    options.threads = cases[i].threads;
    options.max_open_files = cases[i].files;
    options.staging_bytes = cases[i].staging;
    REFUSE(tegula_context, TEGULA_INVALID_ARGUMENT,
           tegula_context_create(&options, NULL, &out, &error),
           tegula_context_create(&options, NULL, &out, NULL));
  }
  assert_refused(tegula_context_create(NULL, NULL, NULL, &error), TEGULA_INVALID_ARGUMENT);
  tegula_context_destroy(NULL);
}

static void senseless_paths(void **state) {
  (void)state;
  REFUSE(tegula_dataset, TEGULA_INVALID_ARGUMENT,
         tegula_dataset_open(NULL, where.path, NULL, &out, &error),
         tegula_dataset_open(NULL, where.path, NULL, &out, NULL));
  REFUSE(tegula_dataset, TEGULA_INVALID_ARGUMENT,
         tegula_dataset_open(context, NULL, NULL, &out, &error),
         tegula_dataset_open(context, NULL, NULL, &out, NULL));
  REFUSE(tegula_dataset, TEGULA_INVALID_ARGUMENT,
         tegula_dataset_open(context, "", NULL, &out, &error),
         tegula_dataset_open(context, "", NULL, &out, NULL));
  assert_refused(tegula_dataset_open(context, where.path, NULL, NULL, &error),
                 TEGULA_INVALID_ARGUMENT);
  file_name first = name_in(&where, "shard_0000.npy");
  const char *const holes[][2] = {
      {first.text, NULL}, {NULL, first.text}, {first.text, ""}, {"", first.text}};
  for (size_t i = 0; i < sizeof holes / sizeof *holes; i++)
    REFUSE(tegula_dataset, TEGULA_INVALID_ARGUMENT,
           tegula_dataset_open_list(context, holes[i], 2, NULL, &out, &error),
           tegula_dataset_open_list(context, holes[i], 2, NULL, &out, NULL));
  REFUSE(tegula_dataset, TEGULA_INVALID_ARGUMENT,
         tegula_dataset_open_list(context, holes[0], 0, NULL, &out, &error),
         tegula_dataset_open_list(context, holes[0], 0, NULL, &out, NULL));
  REFUSE(tegula_dataset, TEGULA_INVALID_ARGUMENT,
         tegula_dataset_open_list(context, NULL, 1, NULL, &out, &error),
         tegula_dataset_open_list(context, NULL, 1, NULL, &out, NULL));
  REFUSE(tegula_dataset, TEGULA_INVALID_ARGUMENT,
         tegula_dataset_open_list(context, holes[0], SIZE_MAX, NULL, &out, &error),
         tegula_dataset_open_list(context, holes[0], SIZE_MAX, NULL, &out, NULL));
  REFUSE(tegula_dataset, TEGULA_NOT_FOUND,
         tegula_dataset_open(context, name_in(&where, "none.npy").text, NULL, &out, &error),
         tegula_dataset_open(context, name_in(&where, "none.npy").text, NULL, &out, NULL));
  tegula_dataset_close(NULL);
}

/* One field after the other is set to something senseless. */
static void senseless_open_options(void **state) {
  (void)state;
  static const int64_t shape[1] = {3};
  for (int i = 0; i < 18; i++) {
    tegula_open_options o;
    tegula_open_options_init(&o);
    switch (i) {
      case 0:
        o.shape_ndim = -2;
        break;
      case 1:
        o.shape_ndim = TEGULA_MAX_DIMS + 1;
        o.shape = shape;
        break;
      case 2:
        o.shape_ndim = 1;
        break; /* without a shape */
      case 3:
        o.row_ndim = TEGULA_MAX_DIMS;
        o.row_shape = shape;
        break;
      case 4:
        o.row_ndim = 1;
        break;
      case 5:
        o.shape_ndim = o.row_ndim = 1;
        o.shape = o.row_shape = shape;
        break;
      case 6:
        o.order = 'X';
        break;
      case 7:
        o.byte_order = '=';
        break;
      case 8:
        o.offset = -1;
        break;
      case 9:
        o.row_gap = -1;
        break;
      case 10:
        o.flags = 8;
        break;
      case 11:
        o.reserved = 1;
        break;
      case 12:
        o.expect_files = -2;
        break;
      case 13:
        o.expect_rows = -2;
        break;
      case 14:
        o.dtype = "no such type";
        break;
      case 15:
        o.format = "no such format";
        break;
      case 16:
        o.row_ndim = -2;
        break;
      default:
        o.dtype = "";
        break;
    }
    REFUSE(tegula_dataset, TEGULA_INVALID_ARGUMENT,
           tegula_dataset_open(context, where.path, &o, &out, &error),
           tegula_dataset_open(context, where.path, &o, &out, NULL));
  }
}

static void expectations_that_fail(void **state) {
  (void)state;
  tegula_open_options o;
  tegula_open_options_init(&o);
  o.expect_files = 4;
  REFUSE(tegula_dataset, TEGULA_MISMATCH,
         tegula_dataset_open(context, where.path, &o, &out, &error),
         tegula_dataset_open(context, where.path, &o, &out, NULL));
  o.expect_files = 3;
  o.expect_rows = 7;
  REFUSE(tegula_dataset, TEGULA_MISMATCH,
         tegula_dataset_open(context, where.path, &o, &out, &error),
         tegula_dataset_open(context, where.path, &o, &out, NULL));
  o.expect_rows = SHARD_ROWS;
  tegula_dataset *made = NULL;
  assert_ok(tegula_dataset_open(context, where.path, &o, &made, &error));
  tegula_dataset_close(made);
}

static void senseless_tilings(void **state) {
  (void)state;
  const int64_t shape[2] = {6, 4};
  const tegula_box box = {.ndim = 2, .hi = {6, 4}};
  REFUSE(tegula_tiling, TEGULA_INVALID_ARGUMENT, tegula_tiling_even(NULL, 2, 0, 2, 1, &out, &error),
         tegula_tiling_even(NULL, 2, 0, 2, 1, &out, NULL));
  REFUSE(tegula_tiling, TEGULA_INVALID_ARGUMENT,
         tegula_tiling_even(shape, 2, 2, 2, 1, &out, &error),
         tegula_tiling_even(shape, 2, 2, 2, 1, &out, NULL));
  REFUSE(tegula_tiling, TEGULA_INVALID_ARGUMENT,
         tegula_tiling_grid(shape, NULL, 2, 1, &out, &error),
         tegula_tiling_grid(shape, NULL, 2, 1, &out, NULL));
  REFUSE(tegula_tiling, TEGULA_INVALID_ARGUMENT,
         tegula_tiling_custom(shape, 2, NULL, NULL, 1, 1, &out, &error),
         tegula_tiling_custom(shape, 2, NULL, NULL, 1, 1, &out, NULL));
  REFUSE(tegula_tiling, TEGULA_INVALID_ARGUMENT,
         tegula_tiling_custom(shape, 2, &box, NULL, 0, 1, &out, &error),
         tegula_tiling_custom(shape, 2, &box, NULL, 0, 1, &out, NULL));
  REFUSE(tegula_tiling, TEGULA_INVALID_ARGUMENT,
         tegula_tiling_from_dataset(NULL, 2, 1, &out, &error),
         tegula_tiling_from_dataset(NULL, 2, 1, &out, NULL));
  REFUSE(tegula_tiling, TEGULA_INVALID_ARGUMENT,
         tegula_tiling_from_dataset(dataset, 0, 1, &out, &error),
         tegula_tiling_from_dataset(dataset, 0, 1, &out, NULL));
  REFUSE(tegula_tiling, TEGULA_INVALID_ARGUMENT,
         tegula_tiling_from_dataset(dataset, 2, 0, &out, &error),
         tegula_tiling_from_dataset(dataset, 2, 0, &out, NULL));
  assert_refused(tegula_tiling_even(shape, 2, 0, 2, 1, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_tiling_grid(shape, shape, 2, 1, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_tiling_custom(shape, 2, &box, NULL, 1, 1, NULL, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_tiling_from_dataset(dataset, 2, 1, NULL, &error), TEGULA_INVALID_ARGUMENT);
  tegula_box got = {.ndim = 77};
  const int64_t wrong[] = {-1, 2, INT64_MAX};
  for (int i = 0; i < 3; i++)
    assert_refused(tegula_tiling_tile(tiling, wrong[i], &got, NULL, &error),
                   TEGULA_INVALID_ARGUMENT);
  assert_int_equal(got.ndim, 77);
  assert_refused(tegula_tiling_tile(NULL, 0, &got, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_tiling_tile(tiling, 0, NULL, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_ok(tegula_tiling_tile(tiling, 1, &got, NULL, NULL)); /* the rank is not asked for */
  assert_int_equal(got.lo[0], 3);
  tegula_tiling_destroy(NULL);
}

static void release_nothing(void *state) { ++*(int *)state; }

static void senseless_arrays(void **state) {
  (void)state;
  tegula_dtype i4 = dtype_of("<i4"), nonsense = {.kind = 'q', .item_size = 4};
  tegula_view views[2], view;
  int released = 0;
  for (int i = 0; i < 2; i++) assert_ok(tegula_array_view(array, i, &views[i], &error));
  REFUSE(tegula_array, TEGULA_INVALID_ARGUMENT,
         tegula_array_create(NULL, i4, tiling, NULL, &out, &error),
         tegula_array_create(NULL, i4, tiling, NULL, &out, NULL));
  REFUSE(tegula_array, TEGULA_INVALID_ARGUMENT,
         tegula_array_create(context, i4, NULL, NULL, &out, &error),
         tegula_array_create(context, i4, NULL, NULL, &out, NULL));
  REFUSE(tegula_array, TEGULA_INVALID_ARGUMENT,
         tegula_array_create(context, nonsense, tiling, NULL, &out, &error),
         tegula_array_create(context, nonsense, tiling, NULL, &out, NULL));
  assert_refused(tegula_array_create(context, i4, tiling, NULL, NULL, &error),
                 TEGULA_INVALID_ARGUMENT);
  tegula_array_options o;
  tegula_array_options_init(&o);
  o.flags = 2;
  REFUSE(tegula_array, TEGULA_INVALID_ARGUMENT,
         tegula_array_create(context, i4, tiling, &o, &out, &error),
         tegula_array_create(context, i4, tiling, &o, &out, NULL));
  tegula_array_options_init(&o);
  o.reserved = 1;
  REFUSE(tegula_array, TEGULA_INVALID_ARGUMENT,
         tegula_array_create(context, i4, tiling, &o, &out, &error),
         tegula_array_create(context, i4, tiling, &o, &out, NULL));
  tegula_array_options_init(&o);
  o.device_type = 2;
  REFUSE(tegula_array, TEGULA_UNSUPPORTED,
         tegula_array_create(context, i4, tiling, &o, &out, &error),
         tegula_array_create(context, i4, tiling, &o, &out, NULL));
  tegula_tiling *for_two;
  /* two ranks, but this context is one */
  assert_ok(tegula_tiling_even((int64_t[]){6, 4}, 2, 0, 2, 2, &for_two, &error));
  REFUSE(tegula_array, TEGULA_MISMATCH,
         tegula_array_create(context, i4, for_two, NULL, &out, &error),
         tegula_array_create(context, i4, for_two, NULL, &out, NULL));
  tegula_tiling_destroy(for_two);
  REFUSE(tegula_array, TEGULA_INVALID_ARGUMENT,
         tegula_array_wrap(context, i4, tiling, NULL, 2, NULL, NULL, &out, &error),
         tegula_array_wrap(context, i4, tiling, NULL, 2, NULL, NULL, &out, NULL));
  REFUSE(tegula_array, TEGULA_INVALID_ARGUMENT,
         tegula_array_wrap(context, i4, tiling, views, -1, NULL, NULL, &out, &error),
         tegula_array_wrap(context, i4, tiling, views, -1, NULL, NULL, &out, NULL));
  REFUSE(tegula_array, TEGULA_MISMATCH,
         tegula_array_wrap(context, i4, tiling, views, 1, release_nothing, &released, &out, &error),
         tegula_array_wrap(context, i4, tiling, views, 1, release_nothing, &released, &out, NULL));
  assert_int_equal(released, 0); /* a call that fails takes nothing over */
  memset(&view, 0x5A, sizeof view);
  tegula_view before = view;
  assert_refused(tegula_array_view(array, 2, &view, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_array_view(array, -1, &view, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_array_view(NULL, 0, &view, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_array_block(NULL, &view, &error), TEGULA_INVALID_ARGUMENT);
  assert_memory_equal(&view, &before, sizeof view);
  assert_refused(tegula_array_view(array, 0, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_array_block(array, NULL, &error), TEGULA_INVALID_ARGUMENT);
  tegula_array_destroy(NULL);
}

static void senseless_loads_and_reads(void **state) {
  (void)state;
  tegula_view good, view;
  assert_ok(tegula_array_view(array, 0, &good, &error));
  assert_refused(tegula_load(NULL, array, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_load(dataset, NULL, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_dataset_read(NULL, &good, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_dataset_read(dataset, NULL, NULL, &error), TEGULA_INVALID_ARGUMENT);
  view = good;
  view.flags = TEGULA_VIEW_READ_ONLY;
  assert_refused(tegula_dataset_read(dataset, &view, NULL, &error), TEGULA_INVALID_ARGUMENT);
  view = good;
  view.stride_bytes[0] = 0;
  assert_refused(tegula_dataset_read(dataset, &view, NULL, &error), TEGULA_INVALID_ARGUMENT);
  view = good;
  view.box.hi[0] = SHARD_ROWS + 1;
  assert_refused(tegula_dataset_read(dataset, &view, NULL, &error), TEGULA_INVALID_ARGUMENT);
  view = good;
  view.dtype = dtype_of("<f4");
  assert_refused(tegula_dataset_read(dataset, &view, NULL, &error), TEGULA_MISMATCH);
  view = good;
  view.device_type = 2;
  assert_refused(tegula_dataset_read(dataset, &view, NULL, &error), TEGULA_UNSUPPORTED);
  tegula_array *other = array_make(context, SHARD_ROWS, SHARD_COLUMNS + 1, 2);
  assert_refused(tegula_load(dataset, other, NULL, &error), TEGULA_MISMATCH);
  assert_contains(error.message, "(6, 5)");
  assert_contains(error.message, "(6, 4)");
  tegula_array_destroy(other);
}

static void memory_that_cannot_be_loaded_into(void **state) {
  (void)state;
  int32_t memory[SHARD_ROWS * SHARD_COLUMNS];
  tegula_tiling *one = tiling_make(SHARD_ROWS, SHARD_COLUMNS, 1);
  for (int i = 0; i < 2; i++) {
    tegula_view view = {.data = memory,
                        .dtype = dtype_of("<i4"),
                        .box = {.ndim = 2, .hi = {SHARD_ROWS, SHARD_COLUMNS}},
                        .stride_bytes = {16, 4}};
    if (i == 0) view.flags = TEGULA_VIEW_READ_ONLY;
    if (i == 1) view.stride_bytes[0] = 0;
    tegula_array *wrapped;
    assert_ok(tegula_array_wrap(context, view.dtype, one, &view, 1, NULL, NULL, &wrapped, &error));
    assert_refused(tegula_load(dataset, wrapped, NULL, &error), TEGULA_INVALID_ARGUMENT);
    tegula_array_destroy(wrapped);
  }
  tegula_tiling_destroy(one);
}

static void senseless_saves(void **state) {
  (void)state;
  file_name target = name_in(&where, "out/saved.npy");
  assert_refused(tegula_save(NULL, target.text, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_save(array, NULL, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_save(array, "", NULL, &error), TEGULA_INVALID_ARGUMENT);
  for (int i = 0; i < 4; i++) {
    tegula_save_options o;
    tegula_save_options_init(&o);
    if (i == 0) o.order = 'X';
    if (i == 1) o.byte_order = '=';
    if (i == 2) o.shards = -1;
    if (i == 3) o.flags = 8;
    assert_refused(tegula_save(array, target.text, &o, &error), TEGULA_INVALID_ARGUMENT);
    assert_int_equal(tegula_save(array, target.text, &o, NULL), TEGULA_INVALID_ARGUMENT);
  }
  tegula_save_options o;
  tegula_save_options_init(&o);
  o.format = "no such format";
  assert_refused(tegula_save(array, target.text, &o, &error), TEGULA_UNSUPPORTED);
  assert_contains(error.hint, "npy");
  assert_false(path_exists(name_in(&where, "out").text)); /* nothing was begun */
}

static int never_told(void *state, const tegula_attribute *attribute) {
  (void)state, (void)attribute;
  fail();
  return 1;
}

static void senseless_hashes_and_questions(void **state) {
  (void)state;
  char text[TEGULA_HASH_TEXT];
  assert_refused(tegula_array_hash(NULL, text, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_array_hash(array, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_dataset_hash(NULL, text, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_dataset_hash(dataset, NULL, NULL, &error), TEGULA_INVALID_ARGUMENT);
  tegula_dataset_info_t info;
  tegula_file_info file;
  tegula_dataset_info_init(&info);
  tegula_file_info_init(&file);
  assert_refused(tegula_dataset_info(NULL, &info, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_dataset_info(dataset, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_dataset_file(NULL, 0, &file, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_dataset_file(dataset, 0, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_dataset_file(dataset, -1, &file, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_dataset_file(dataset, SHARDS, &file, &error), TEGULA_INVALID_ARGUMENT);
  assert_null(file.path);
  assert_refused(tegula_attributes(NULL, where.path, NULL, never_told, NULL, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_attributes(context, "", NULL, never_told, NULL, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_attributes(context, where.path, NULL, NULL, NULL, &error),
                 TEGULA_INVALID_ARGUMENT);
  /* several files */
  assert_refused(tegula_attributes(context, where.path, NULL, never_told, NULL, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "attributes are listed of one file");
}

#define WITH_SHARDS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_SHARDS(senseless_contexts),        WITH_SHARDS(senseless_paths),
      WITH_SHARDS(senseless_open_options),    WITH_SHARDS(expectations_that_fail),
      WITH_SHARDS(senseless_tilings),         WITH_SHARDS(senseless_arrays),
      WITH_SHARDS(senseless_loads_and_reads), WITH_SHARDS(memory_that_cannot_be_loaded_into),
      WITH_SHARDS(senseless_saves),           WITH_SHARDS(senseless_hashes_and_questions),
  };
  return cmocka_run_group_tests_name("api: arguments", tests, NULL, NULL);
}
