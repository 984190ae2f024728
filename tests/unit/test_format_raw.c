/* raw files: the size must fit what the caller says; and the table of formats.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbers are worked out by hand beside each row. */
#include "test_format_support.h"

static tegula_error error;

typedef struct raw_case {
  const char *dtype;
  int64_t size; /* of the file */
  int64_t offset, gap;
  int32_t shape_ndim, row_ndim; /* -1: not given */
  int64_t lengths[3];           /* of shape or row_shape */
  char order;
  tegula_status status;
  const char *part;    /* of the message */
  int64_t expected[3]; /* shape */
  int64_t strides[3];
} raw_case;

static tegula_status describe_case(const raw_case *row, tegula__manifest *out) {
  memory_file file = {.size = 0, .claimed = row->size};
  tegula__describe_options options = no_options();
  options.has_dtype = row->dtype != NULL;
  if (row->dtype != NULL) options.dtype = dtype_of(row->dtype);
  options.offset = row->offset;
  options.row_gap = row->gap;
  options.shape = options.row_shape = row->lengths;
  options.shape_ndim = row->shape_ndim;
  options.row_ndim = row->row_ndim;
  options.order = row->order;
  tegula__source source = {
      .path = "memory/x.raw", .size = file.claimed, .read = memory_read, .state = &file};
  tegula__manifest_init(out);
  return tegula__format_raw.describe(&source, &options, out, &error);
}

static void check_cases(const raw_case *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tegula__manifest m;
    tegula_status status = describe_case(&rows[i], &m);
    if (status != rows[i].status)
      fail_msg("row %zu: %s %s", i, tegula_status_name(status),
               status != TEGULA_OK ? error.message : "");
    if (status != TEGULA_OK) {
      assert_contains(error.message, rows[i].part);
      assert_string_equal(error.path, "memory/x.raw");
    } else {
      assert_int_equal(m.part_count, 1);
      assert_int_equal(m.parts[0].offset, rows[i].offset);
      for (int32_t k = 0; k < m.ndim; k++) {
        if (m.shape[k] != rows[i].expected[k])
          fail_msg("row %zu: shape[%d] is %lld", i, (int)k, (long long)m.shape[k]);
        if (m.parts[0].strides[k] != rows[i].strides[k])
          fail_msg("row %zu: stride[%d] %lld", i, (int)k, (long long)m.parts[0].strides[k]);
      }
    }
    tegula__manifest_free(&m);
  }
}

static void shape_given(void **state) {
  (void)state;
  static const raw_case rows[] = {
      {"<f4", 24, 0, 0, 2, -1, {2, 3}, 0, TEGULA_OK, NULL, {2, 3}, {12, 4}},
      {"<f4", 24, 0, 0, 2, -1, {2, 3}, 'F', TEGULA_OK, NULL, {2, 3}, {4, 8}},
      {"<f4", 124, 100, 0, 2, -1, {2, 3}, 'C', TEGULA_OK, NULL, {2, 3}, {12, 4}},
      {"<f4", 27, 0, 3, 2, -1, {2, 3}, 'C', TEGULA_OK, NULL, {2, 3}, {15, 4}}, /* 12 + 3 + 12 */
      {"<f4", 30, 0, 3, 2, -1, {2, 3}, 'C', TEGULA_OK, NULL, {2, 3}, {15, 4}}, /* and a last gap */
      {"<f8", 8, 0, 0, 0, -1, {0}, 0, TEGULA_OK, NULL, {0}, {0}},              /* a scalar */
      {"<f8", 5, 5, 0, 2, -1, {0, 4}, 0, TEGULA_OK, NULL, {0, 4}, {32, 8}},
      {"<f4", 23, 0, 0, 2, -1, {2, 3}, 0, TEGULA_SHORT_FILE, "(1 bytes missing)", {0}, {0}},
      {"<f4", 25, 0, 0, 2, -1, {2, 3}, 0, TEGULA_CORRUPT, "(1 bytes too many)", {0}, {0}},
      {"<f4", 28, 0, 3, 2, -1, {2, 3}, 0, TEGULA_CORRUPT, "(1 bytes too many)", {0}, {0}},
      {"<f4", 26, 0, 3, 2, -1, {2, 3}, 0, TEGULA_SHORT_FILE, "(1 bytes missing)", {0}, {0}},
      {"<f4", 24, 1, 0, 2, -1, {2, 3}, 0, TEGULA_SHORT_FILE, "(1 bytes missing)", {0}, {0}},
      {"<f4", 4, 0, 0, 2, -1, {0, 3}, 0, TEGULA_CORRUPT, "(4 bytes too many)", {0}, {0}},
  };
  check_cases(rows, sizeof rows / sizeof rows[0]);
}

static void rows_follow_from_the_size(void **state) {
  (void)state;
  static const raw_case rows[] = {
      {"<f4", 36, 0, 0, -1, 1, {3}, 0, TEGULA_OK, NULL, {3, 3}, {12, 4}},
      {"<f4", 36, 0, 0, -1, 1, {3}, 'F', TEGULA_OK, NULL, {3, 3}, {4, 12}},
      {"<f4", 48, 0, 0, -1, 2, {3, 2}, 'F', TEGULA_OK, NULL, {2, 3, 2}, {4, 8, 24}},
      {"<f4", 36, 0, 0, -1, 0, {0}, 0, TEGULA_OK, NULL, {9}, {4}},
      {"<f4", 36, 0, 0, -1, -1, {0}, 0, TEGULA_OK, NULL, {9}, {4}},
      {"<f4", 36, 12, 0, -1, -1, {0}, 0, TEGULA_OK, NULL, {6}, {4}},
      {"<f4", 0, 0, 0, -1, 1, {3}, 0, TEGULA_OK, NULL, {0, 3}, {12, 4}},
      {"<f4", 7, 7, 0, -1, 1, {3}, 0, TEGULA_OK, NULL, {0, 3}, {12, 4}},
      {"<i2", 22, 0, 2, -1, 1, {5}, 0, TEGULA_OK, NULL, {2, 5}, {12, 2}}, /* 10 2 10 */
      {"<i2", 24, 0, 2, -1, 1, {5}, 0, TEGULA_OK, NULL, {2, 5}, {12, 2}}, /* 10 2 10 2 */
      {"<i2", 10, 0, 2, -1, 1, {5}, 0, TEGULA_OK, NULL, {1, 5}, {12, 2}},
      {"<i2", 0, 0, 2, -1, 1, {5}, 0, TEGULA_OK, NULL, {0, 5}, {12, 2}},
      /* 2 10 2: a gap longer than the row */
      {"<i2", 14, 0, 10, -1, 0, {0}, 0, TEGULA_OK, NULL, {2}, {12}},
      {"<i2",
       23,
       0,
       2,
       -1,
       1,
       {5},
       0,
       TEGULA_CORRUPT,
       "1 bytes too many behind 2 whole rows of 10 bytes (11 bytes missing",
       {0},
       {0}},
      {"<i2",
       2,
       0,
       2,
       -1,
       1,
       {5},
       0,
       TEGULA_CORRUPT,
       "2 bytes too many behind 0 whole rows of 10 bytes (8 bytes missing",
       {0},
       {0}},
      {"<i2",
       10,
       0,
       10,
       -1,
       0,
       {0},
       0,
       TEGULA_CORRUPT,
       "8 bytes too many behind 1 whole rows",
       {0},
       {0}},
      {"<f4", 3, 7, 0, -1, 1, {3}, 0, TEGULA_SHORT_FILE, "(4 bytes missing)", {0}, {0}},
  };
  check_cases(rows, sizeof rows / sizeof rows[0]);
}

static void case_08_leftover_bytes_are_counted(void **state) {
  (void)state;
  static const raw_case rows[] = {
      {"<i4",
       4097,
       0,
       0,
       -1,
       -1,
       {0},
       0,
       TEGULA_CORRUPT,
       "1 bytes too many behind 1024 whole rows of 4 bytes (3 bytes missing",
       {0},
       {0}},
      {"<i4",
       4100,
       0,
       0,
       -1,
       1,
       {10},
       0,
       TEGULA_CORRUPT,
       "20 bytes too many behind 102 whole rows of 40 bytes (20 bytes missing",
       {0},
       {0}},
      {"<i4",
       399,
       0,
       0,
       1,
       -1,
       {100},
       0,
       TEGULA_SHORT_FILE,
       "expected 400 bytes, found 399 (1 bytes missing)",
       {0},
       {0}},
      {"<i4",
       404,
       0,
       0,
       1,
       -1,
       {100},
       0,
       TEGULA_CORRUPT,
       "expected 400 bytes, found 404 (4 bytes too many)",
       {0},
       {0}},
  };
  check_cases(rows, sizeof rows / sizeof rows[0]);
}

static void nonsense_is_refused(void **state) {
  (void)state;
  static const raw_case rows[] = {
      {NULL, 24, 0, 0, -1, -1, {0}, 0, TEGULA_INVALID_ARGUMENT, "dtype is not given", {0}, {0}},
      {"<f4", 24, -1, 0, -1, -1, {0}, 0, TEGULA_INVALID_ARGUMENT, "offset is negative", {0}, {0}},
      {"<f4", 24, 0, -1, -1, -1, {0}, 0, TEGULA_INVALID_ARGUMENT, "gap is negative", {0}, {0}},
      {"<f4", 24, 0, 0, 1, 1, {6}, 0, TEGULA_INVALID_ARGUMENT, "both", {0}, {0}},
      {"<f4", 24, 0, 0, 2, -1, {-2, -3}, 0, TEGULA_INVALID_ARGUMENT, "negative entry", {0}, {0}},
      {"<f4", 24, 0, 0, -1, 1, {-3}, 0, TEGULA_INVALID_ARGUMENT, "negative entry", {0}, {0}},
      {"<f4", 24, 0, 0, -1, 2, {3, 0}, 0, TEGULA_INVALID_ARGUMENT, "rows have no bytes", {0}, {0}},
      {"<f4", 24, 0, 4, -1, 1, {0}, 0, TEGULA_INVALID_ARGUMENT, "rows have no bytes", {0}, {0}},
      {"<f4", 24, 0, 4, 1, -1, {6}, 'F', TEGULA_INVALID_ARGUMENT, "order C", {0}, {0}},
      {"<f4", 24, 0, 4, 0, -1, {0}, 0, TEGULA_INVALID_ARGUMENT, "scalar", {0}, {0}},
      {"<f4", 24, 0, 0, -1, -1, {0}, 'X', TEGULA_INVALID_ARGUMENT, "neither C nor F", {0}, {0}},
      {"<f4", 24, 0, 0, 65, -1, {0}, 0, TEGULA_INVALID_ARGUMENT, "64 axes", {0}, {0}},
      {"<f4", 24, 0, 0, -1, 64, {0}, 0, TEGULA_INVALID_ARGUMENT, "64 axes", {0}, {0}},
      {"<f4", 24, 0, 0, 2, -1, {INT64_MAX, 2}, 0, TEGULA_INVALID_ARGUMENT, "2^63", {0}, {0}},
      {"<f4", 24, 0, 0, 1, -1, {INT64_MAX / 4 + 1}, 0, TEGULA_INVALID_ARGUMENT, "2^63", {0}, {0}},
      {"<f4", 24, INT64_MAX, 0, 1, -1, {6}, 0, TEGULA_INVALID_ARGUMENT, "2^63", {0}, {0}},
      {"<f4", 24, 0, INT64_MAX, 1, -1, {6}, 0, TEGULA_INVALID_ARGUMENT, "2^63", {0}, {0}},
      {"<f4", 24, 0, INT64_MAX / 4, 2, -1, {6, 1}, 0, TEGULA_INVALID_ARGUMENT, "2^63", {0}, {0}},
      {"<f4", 24, 0, INT64_MAX, -1, 1, {1}, 0, TEGULA_INVALID_ARGUMENT, "2^63", {0}, {0}},
      {"<f4",
       24,
       0,
       0,
       -1,
       2,
       {INT64_MAX, INT64_MAX},
       0,
       TEGULA_INVALID_ARGUMENT,
       "2^63",
       {0},
       {0}},
      {"<f4",
       24,
       INT64_MAX,
       0,
       -1,
       -1,
       {0},
       0,
       TEGULA_SHORT_FILE,
       "too short for its offset",
       {0},
       {0}},
  };
  check_cases(rows, sizeof rows / sizeof rows[0]);
}

static void byte_order_comes_from_the_option_or_the_dtype(void **state) {
  (void)state;
  static const struct {
    const char *dtype;
    char option, stored;
  } rows[] = {{"<f4", 0, '<'},         {">f4", 0, '>'}, {"<f4", '>', '>'},
              {">bfloat16", '<', '<'}, {"?", '>', '|'}, {"S4", '>', '|'}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tegula__describe_options options = no_options();
    options.has_dtype = true;
    options.dtype = dtype_of(rows[i].dtype);
    options.byte_order = rows[i].option;
    tegula__source source = {.path = "x", .size = 16};
    tegula__manifest m;
    tegula__manifest_init(&m);
    assert_int_equal(tegula__format_raw.describe(&source, &options, &m, &error), TEGULA_OK);
    assert_int_equal(m.parts[0].order, rows[i].stored);
    assert_int_equal(m.dtype.order, rows[i].stored == '|' ? '|' : TEGULA__NATIVE_ORDER);
    tegula__manifest_free(&m);
  }
}

static void raw_is_written_without_a_header(void **state) {
  (void)state;
  static const int64_t shape[2] = {3, 2};
  tegula__layout_request request = {
      .dtype = dtype_of("bfloat16"), .ndim = 2, .shape = shape, .order = 'F'};
  tegula__buffer header;
  tegula__buffer_init(&header, 1024);
  int64_t strides[2];
  assert_int_equal(tegula__format_raw.lay_out(&request, &header, strides, &error), TEGULA_OK);
  assert_int_equal(header.size, 0);
  assert_true(strides[0] == 2 && strides[1] == 6);
  tegula__buffer_free(&header);
}

static void formats_are_found_by_name_content_and_suffix(void **state) {
  (void)state;
  assert_ptr_equal(tegula__format_by_name("npy"), &tegula__format_npy);
  assert_ptr_equal(tegula__format_by_name("raw"), &tegula__format_raw);
  assert_null(tegula__format_by_name("NPY"));
  assert_ptr_equal(tegula__format_by_content("\x93NUMPY\x01", 7), &tegula__format_npy);
  assert_null(tegula__format_by_content("\x93NUMP", 5));
  assert_null(tegula__format_by_content("PK\x03\x04..........", 14));
  assert_ptr_equal(tegula__format_by_suffix("a.raw/b.npy"), &tegula__format_npy);
  assert_ptr_equal(tegula__format_by_suffix("b.raw"), &tegula__format_raw);
  assert_ptr_equal(tegula__format_by_content(" {\n \"tegula_manifest\": 1", 23),
                   &tegula__format_manifest);
  assert_null(tegula__format_by_content("{\"tegula_manifest", 17));
  assert_null(tegula__format_by_suffix("a.json"));
  assert_null(tegula__format_by_suffix("npy"));
  assert_null(tegula__format_by_suffix("b.npy.gz"));
  char names[64];
  tegula__format_names(names, sizeof names);
  assert_string_equal(names, "npy, raw, hdf5, manifest");
  tegula__format_names(names, 5);
  assert_string_equal(names, "npy,");
  size_t count = 0;
  while (tegula__format_at(count) != NULL) count++;
  assert_int_equal(count, 4);
}

static void sources_take_the_head_first_and_check_the_end(void **state) {
  (void)state;
  memory_file file = memory_make("0123456789", 10);
  tegula__source source = {.path = "x",
                           .size = 10,
                           .read = memory_read,
                           .state = &file,
                           .head = (const unsigned char *)"abcd",
                           .head_size = 4};
  char out[16] = "";
  assert_int_equal(tegula__source_read(&source, 1, out, 3, &error), TEGULA_OK);
  assert_memory_equal(out, "bcd", 3);
  assert_int_equal(file.reads, 0);
  assert_int_equal(tegula__source_read(&source, 2, out, 8, &error), TEGULA_OK);
  assert_memory_equal(out, "23456789", 8);
  assert_int_equal(tegula__source_read(&source, 2, out, 9, &error), TEGULA_SHORT_FILE);
  assert_int_equal(tegula__source_read(&source, -1, out, 1, &error), TEGULA_SHORT_FILE);
  assert_int_equal(tegula__source_read(&source, INT64_MAX, out, 1, &error), TEGULA_SHORT_FILE);
  assert_int_equal(tegula__source_read(&source, 0, out, SIZE_MAX, &error), TEGULA_SHORT_FILE);
  assert_int_equal(tegula__source_read(&source, 10, out, 0, &error), TEGULA_OK);
  memory_free(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shape_given),
      cmocka_unit_test(rows_follow_from_the_size),
      cmocka_unit_test(case_08_leftover_bytes_are_counted),
      cmocka_unit_test(nonsense_is_refused),
      cmocka_unit_test(byte_order_comes_from_the_option_or_the_dtype),
      cmocka_unit_test(raw_is_written_without_a_header),
      cmocka_unit_test(formats_are_found_by_name_content_and_suffix),
      cmocka_unit_test(sources_take_the_head_first_and_check_the_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
