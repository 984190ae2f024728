/* Side files of raw files: every spelling gives the same fields, what contradicts is refused by
 * name, and nothing is believed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
/* link-options: -Wl,--wrap=calloc */
#include "support.h"

#include "format/raw/side_file.h"

static tegula_error error;

static tegula_status parse_sized(const char *text, size_t size, tegula__side_file *out) {
  char *copy = malloc(size > 0 ? size : 1); /* of exactly that size */
  assert_non_null(copy);
  memcpy(copy, text, size);
  memset(&error, 0, sizeof error);
  tegula_status status = tegula__side_file_parse(copy, size, "d/shard_meta.json", out, &error);
  free(copy);
  return status;
}

static bool no_memory; /* for the library's own calloc */
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
  return no_memory ? NULL : __real_calloc(count, size);
}

static tegula__side_file parse_good(const char *text) {
  tegula__side_file side;
  assert_ok(parse_sized(text, strlen(text), &side));
  return side;
}

static tegula__describe_options nothing(void) {
  return (tegula__describe_options){.shape_ndim = -1, .row_ndim = -1};
}

/* What the last described() gave refers to them. */
static int64_t lengths[TEGULA_MAX_DIMS];
static tegula__side_file last;

/* What the text makes of file `path`, number `place` of the folder. */
static tegula__describe_options described(const char *text, const char *path, int64_t place,
                                          bool alone) {
  tegula__side_file_free(&last);
  last = parse_good(text);
  tegula__describe_options said = nothing(), out;
  assert_ok(tegula__side_file_options(&last, &said, path, place, alone, lengths, &out, &error));
  return out;
}

static void rows_without_memory_are_one_error(void **state) {
  (void)state;
  static const char *const texts[] = {"{\"rows\": [1, 2, 3]}",
                                      "{\"rows_per_shard\": {\"a\": 1, \"b\": 2}}"};
  for (size_t i = 0; i < 2; i++) {
    tegula__side_file side;
    no_memory = true;
    tegula_status status = parse_sized(texts[i], strlen(texts[i]), &side);
    no_memory = false;
    assert_int_equal(status, TEGULA_OUT_OF_MEMORY);
    assert_int_equal(error.status, TEGULA_OUT_OF_MEMORY);
    tegula__side_file_free(&side);
  }
}

static void spellings_of_a_field_mean_the_same(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"{\"dtype\": \">i4\"}", "{\"dtype\": \"int32\", \"byte_order\": \"big\"}"},
      {"{\"dtype\": \">i4\"}", "{\"dtype\": \"i4\", \"endianness\": \">\"}"},
      {"{\"dtype\": \">i4\"}",
       "{\"dtype\": \">i4\", \"byte_order\": \">\", \"endianness\": \"big\"}"},
      {"{\"dtype\": \"<i4\"}", "{\"dtype\": \"<i4\", \"byte_order\": \"little\"}"},
      {"{\"dtype\": \"i4\", \"byte_order\": \"native\"}",
       "{\"dtype\": \"i4\", \"endianness\": \"=\"}"},
      {"{\"dtype\": \"i4\", \"offset\": 12}", "{\"dtype\": \"i4\", \"header_bytes\": 12}"},
      {"{\"dtype\": \"i4\", \"offset\": 12}",
       "{\"dtype\": \"i4\", \"header_bytes\": 12, \"offset\": 12}"},
      {"{\"dtype\": \"i4\", \"row_shape\": [2, 3]}",
       "{\"dtype\": \"i4\", \"trailing_shape\": [2, 3]}"},
      {"{\"dtype\": \"i4\", \"row_shape\": [2]}",
       "{\"dtype\": \"i4\", \"trailing_shape\": 2, \"row_shape\": 2}"},
      {"{\"dtype\": \"i4\", \"row_shape\": [2, 3], \"rows\": [7]}",
       "{\"dtype\": \"i4\", \"row_shape\": [2, 3], \"rows\": {\"a\": 7}}"},
      {"{\"dtype\": \"i4\", \"row_shape\": [2, 3], \"rows\": [7]}",
       "{\"dtype\": \"i4\", \"row_shape\": [2, 3], \"rows_per_shard\": 7}"},
      {"{\"dtype\": \"i4\", \"row_shape\": [2, 3], \"rows\": [7]}",
       "{\"dtype\": \"i4\", \"row_shape\": [2, 3], \"rows_per_shard\": [7]}"},
      {"{\"dtype\": \"i4\", \"row_shape\": [2, 3], \"rows\": [7]}",
       "{\"num_shards\": 1, \"dtype\": \"int32\", \"trailing_axes\": [2, 3], \"per_shard_rows\": "
       "[7]}"},
      {"{\"dtype\": \"i4\", \"row_shape\": [2], \"rows\": [7]}",
       "{\"dtype\": \"i4\", \"trailing_axes\": 2, \"per_shard_rows\": 7}"},
      {"{\"dtype\": \"i4\", \"row_shape\": [2], \"rows\": {\"a\": 7}}",
       "{\"dtype\": \"i4\", \"row_shape\": [2], \"rows_per_shard\": {\"a\": 7}, \"rows\": {\"a\": "
       "7}}"},
      {"{\"dtype\": \"i4\", \"row_shape\": [2, 3], \"rows\": [7]}",
       "{\"dtype\": \"i4\", \"shape\": [7, 2, 3]}"},
      {"{\"dtype\": \"i4\", \"row_shape\": [], \"rows\": [7]}",
       "{\"dtype\": \"i4\", \"shape\": 7}"},
      {"{\"dtype\": \"i4\"}", "{\"dtype\": \"i4\", \"comment\": \"c\", \"description\": [], "
                              "\"version\": 3, \"name\": \"n\", "
                              "\"created\": null, \"_a\": 1, \"x-b\": {}}"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    int64_t first[TEGULA_MAX_DIMS], row[TEGULA_MAX_DIMS];
    tegula__describe_options one = described(rows[i][0], "d/a", 0, true);
    memcpy(first, lengths, sizeof first);
    if (one.row_ndim > 0) memcpy(row, one.row_shape, (size_t)one.row_ndim * sizeof *row);
    tegula__describe_options other = described(rows[i][1], "d/a", 0, true);
    if (!tegula_dtype_same(one.dtype, other.dtype) || one.byte_order != other.byte_order ||
        one.offset != other.offset || one.shape_ndim != other.shape_ndim ||
        one.row_ndim != other.row_ndim)
      fail_msg("%s is not %s", rows[i][1], rows[i][0]);
    for (int32_t k = 0; k < one.shape_ndim; k++) assert_int_equal(first[k], other.shape[k]);
    for (int32_t k = 0; k < one.row_ndim; k++) assert_int_equal(row[k], other.row_shape[k]);
  }
}

static void every_field_reaches_the_options(void **state) {
  (void)state;
  tegula__describe_options o =
      described("{\"dtype\": \"f8\", \"byte_order\": \"big\", \"order\": \"F\", \"offset\": 3, "
                "\"row_gap\": 5, \"row_shape\": [4]}",
                "d/a", 0, false);
  assert_true(o.has_dtype && o.dtype.kind == 'f' && o.dtype.item_size == 8);
  assert_int_equal(o.byte_order, '>');
  assert_int_equal(o.order, 'F');
  assert_int_equal(o.offset * 10 + o.row_gap, 35);
  assert_int_equal(o.shape_ndim, -1);
  assert_int_equal(o.row_ndim * 10 + o.row_shape[0], 14);
  o = described("{\"shape\": [9, 4]}", "d/a", 0, false); /* of each or of all: the sizes decide */
  assert_int_equal(o.row_ndim * 10 + o.row_shape[0], 14);
  o = described("{\"shape\": []}", "d/a", 0, false);
  assert_int_equal(o.shape_ndim, 0);
  o = described("{\"rows\": [2, 3], \"row_shape\": [4]}", "d/b", 1, false);
  assert_int_equal(o.shape_ndim * 100 + o.shape[0] * 10 + o.shape[1], 234);
  o = described("{\"rows\": {\"b\": 3, \"c\": 1, \"a\": 2}}", "d/b", 0, false);
  assert_int_equal(o.shape_ndim * 10 + o.shape[0], 13);
}

static void what_contradicts_itself_is_refused(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"{\"dtype\": \">i4\", \"byte_order\": \"little\"}",
       "dtype is the text \">i4\", expected what byte_order says: little"},
      {"{\"byte_order\": \"big\", \"endianness\": \"little\"}",
       "endianness is the text \"little\", expected what byte_order says: big"},
      {"{\"offset\": 4, \"header_bytes\": 5}", "header_bytes is 5, expected what offset says: 4"},
      {"{\"row_shape\": [2], \"trailing_shape\": [3]}",
       "trailing_shape is a list of 1, expected what row_shape says: (2,)"},
      {"{\"shape\": [5, 2], \"row_shape\": [3]}",
       "row_shape is a list of 1, expected what shape says: (2,)"},
      {"{\"shape\": [5, 2], \"row_shape\": [2, 1]}",
       "row_shape is a list of 2, expected what shape says: (2,)"},
      {"{\"shape\": [], \"trailing_shape\": []}",
       "trailing_shape is a list of 0, expected what shape says: ()"},
      {"{\"rows\": [1], \"rows_per_shard\": [2]}", "rows_per_shard"},
      {"{\"rows\": [1], \"rows_per_shard\": 1}", "rows_per_shard is 1, expected what rows says"},
      {"{\"rows\": {\"a\": 1}, \"rows_per_shard\": {\"b\": 1}}", "rows_per_shard"},
      {"{\"rows\": [1], \"rows_per_shard\": [1], \"per_shard_rows\": [2]}",
       "per_shard_rows is a list of 1, expected what rows says"},
      {"{\"rows_per_shard\": 4, \"per_shard_rows\": 5}",
       "per_shard_rows is 5, expected what rows_per_shard says"},
      {"{\"per_shard_rows\": [1, -1]}", "per_shard_rows[1] is -1"},
      {"{\"per_shard_rows\": \"4\"}", "per_shard_rows is the text \"4\""},
      {"{\"shape\": [5, 2], \"trailing_axes\": [3]}",
       "trailing_axes is a list of 1, expected what shape says: (2,)"},
      {"{\"row_shape\": [2], \"trailing_shape\": [2], \"trailing_axes\": [3]}",
       "trailing_axes is a list of 1, expected what row_shape says"},
      {"{\"trailing_shape\": [2], \"trailing_axes\": []}",
       "trailing_axes is a list of 0, expected what trailing_shape says"},
      {"{\"num_shards\": 2, \"rows\": [1]}",
       "num_shards is 2, expected what the list of rows says: 1 files"},
      {"{\"num_shards\": 0, \"per_shard_rows\": {\"a\": 1}}",
       "num_shards is 0, expected what the list of rows says: 1 files"},
      {"{\"num_shards\": -1}", "num_shards is -1"},
      {"{\"num_shards\": [1]}", "num_shards is a list of 1"},
      {"{\"rows\": 5}", "rows is 5, expected a list of rows"},
      {"{\"rows\": [1, -1]}", "rows[1] is -1"},
      {"{\"rows\": [1, 1.5]}", "rows[1] is the number 1.5"},
      {"{\"rows\": {\"a\": \"3\"}}", "rows.a is the text \"3\""},
      {"{\"rows\": {\"../a\": 3}}", "\"../a\" is no name of a file beside it"},
      {"{\"rows\": {\"\": 3}}", "is no name of a file"},
      {"{\"rows_per_shard\": -1}", "rows_per_shard is -1"},
      {"{\"rows_per_shard\": null}", "rows_per_shard is null"},
      {"{\"dtype\": \"O\"}", "dtype is the text \"O\""},
      {"{\"dtype\": \"nonsense\"}", "dtype is the text \"nonsense\""},
      {"{\"dtype\": 4}", "dtype is 4"},
      {"{\"byte_order\": \"middle\"}", "byte_order is the text \"middle\", expected little, big"},
      {"{\"order\": \"row\"}", "order is the text \"row\", expected C or F"},
      {"{\"order\": \"CF\"}", "expected C or F"},
      {"{\"offset\": -1}", "offset is -1"},
      {"{\"offset\": \"12\"}", "offset is the text"},
      {"{\"row_gap\": 1.0}", "row_gap is the number 1"},
      {"{\"shape\": [2, -3]}", "shape[1] is -3"},
      {"{\"shape\": {}}", "shape is an object"},
      {"{\"shape\": \"2,3\"}", "shape is the text"},
      {"[]", "expected an object"},
      {"{", "no valid JSON"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tegula__side_file side;
    tegula_status status = parse_sized(rows[i][0], strlen(rows[i][0]), &side);
    tegula__side_file_free(&side);
    if (status != TEGULA_CORRUPT) fail_msg("%s: %s", rows[i][0], tegula_status_name(status));
    assert_contains(error.message, "d/shard_meta.json");
    assert_contains(error.message, rows[i][1]);
  }
}

static void too_many_axes_are_refused(void **state) {
  (void)state;
  for (int axes = 63; axes <= 65; axes++) {
    char text[512] = "{\"shape\": [1";
    for (int k = 1; k < axes; k++) strcat(text, ",1");
    strcat(text, "]}");
    tegula__side_file side;
    assert_int_equal(parse_sized(text, strlen(text), &side),
                     axes <= 64 ? TEGULA_OK : TEGULA_CORRUPT);
    tegula__side_file_free(&side);
    snprintf(text, sizeof text, "{\"row_shape\": [1");
    for (int k = 1; k < axes; k++) strcat(text, ",1");
    strcat(text, "]}");
    assert_int_equal(parse_sized(text, strlen(text), &side),
                     axes <= 63 ? TEGULA_OK : TEGULA_CORRUPT);
    tegula__side_file_free(&side);
  }
}

static void a_misspelt_key_is_refused_when_something_is_described(void **state) {
  (void)state;
  tegula__side_file side = parse_good("{\"dtype\": \"f4\", \"ofset\": 16}");
  tegula__describe_options said = nothing(), out;
  assert_refused(tegula__side_file_options(&side, &said, "d/a", 0, true, lengths, &out, &error),
                 TEGULA_CORRUPT);
  assert_contains(error.message, "ofset is no key");
  tegula__side_file_free(&side);
}

static tegula_status with_said(const char *text, tegula__describe_options said,
                               tegula__describe_options *out) {
  tegula__side_file side = parse_good(text);
  tegula_status status =
      tegula__side_file_options(&side, &said, "d/a", 0, true, lengths, out, &error);
  tegula__side_file_free(&side);
  return status;
}

static void what_the_caller_says_completes_or_is_refused(void **state) {
  (void)state;
  static const int64_t two[] = {2}, three[] = {3}, five_two[] = {5, 2};
  tegula__describe_options said = nothing(), out;
  said.has_dtype = true;
  said.dtype = dtype_of("<f4");
  assert_ok(with_said("{\"offset\": 8}", said, &out));
  assert_true(out.has_dtype && out.offset == 8);
  assert_refused(with_said("{\"dtype\": \"f8\"}", said, &out), TEGULA_MISMATCH);
  assert_string_equal(error.message, "\"d/shard_meta.json\" says dtype <f8, but <f4 was asked for");
  assert_refused(with_said("{\"dtype\": \">f4\"}", said, &out), TEGULA_MISMATCH);
  assert_contains(error.message, "says byte_order big, but little was asked for");
  said.byte_order = '>';
  assert_ok(with_said("{\"dtype\": \">f4\"}", said, &out));
  assert_ok(with_said("{\"dtype\": \"f4\"}", said, &out));
  assert_int_equal(out.byte_order, '>');
  said = nothing();
  said.offset = 8;
  assert_ok(with_said("{\"header_bytes\": 8}", said, &out));
  assert_refused(with_said("{\"header_bytes\": 9}", said, &out), TEGULA_MISMATCH);
  assert_contains(error.message, "says offset 9, but 8 was asked for");
  said = nothing();
  said.row_gap = 1;
  assert_refused(with_said("{\"row_gap\": 0}", said, &out), TEGULA_MISMATCH);
  said = nothing();
  said.order = 'C';
  assert_refused(with_said("{\"order\": \"F\"}", said, &out), TEGULA_MISMATCH);
  said = nothing();
  said.row_shape = three;
  said.row_ndim = 1;
  assert_refused(with_said("{\"shape\": [5, 2]}", said, &out), TEGULA_MISMATCH);
  assert_contains(error.message, "says row_shape (2,), but (3,) was asked for");
  assert_refused(with_said("{\"shape\": []}", said, &out), TEGULA_MISMATCH);
  said.row_shape = two;
  assert_ok(with_said("{\"shape\": [5, 2]}", said, &out));
  assert_int_equal(out.row_ndim, 1); /* the caller's word */
  said = nothing();
  said.shape = five_two;
  said.shape_ndim = 2;
  assert_ok(with_said("{\"row_shape\": [2]}", said, &out));
  assert_refused(with_said("{\"row_shape\": []}", said, &out), TEGULA_MISMATCH);
  said.shape_ndim = 0;
  assert_refused(with_said("{\"row_shape\": []}", said, &out), TEGULA_MISMATCH);
  assert_ok(with_said("{\"shape\": []}", said, &out));
}

/* ---- files and what was described ---- */

static tegula__file files[3] = {{.path = "d/a"}, {.path = "d/b"}, {.path = "d/c"}};

static tegula_status names(const char *text, int64_t count, bool whole, int64_t total) {
  tegula__side_file side = parse_good(text);
  tegula_status status = tegula__side_file_check_names(&side, files, count, whole, total, &error);
  tegula__side_file_free(&side);
  return status;
}

static void lists_of_files_are_those_that_are_there(void **state) {
  (void)state;
  assert_ok(names("{\"rows\": {\"a\": 1, \"b\": 1, \"c\": 1}}", 3, true, 3));
  /* one of them is opened */
  assert_ok(names("{\"rows\": {\"a\": 1, \"b\": 1, \"c\": 1}}", 1, false, 1));
  assert_refused(names("{\"rows\": {\"a\": 1, \"b\": 1, \"c\": 1, \"d\": 1}}", 3, true, 3),
                 TEGULA_INCOMPLETE);
  assert_contains(error.message, "\"d\", which is not there");
  assert_refused(names("{\"rows\": {\"a\": 1, \"c\": 1}}", 3, true, 3), TEGULA_MISMATCH);
  assert_contains(error.message, "\"d/b\" is not among the rows");
  assert_refused(names("{\"rows\": {}}", 1, false, 1), TEGULA_MISMATCH);
  assert_ok(names("{\"rows\": [1, 1, 1]}", 3, true, 3));
  assert_ok(names("{\"rows\": [1, 1, 1]}", 1, false, 3));
  assert_refused(names("{\"rows\": [1, 1]}", 3, true, 3), TEGULA_MISMATCH);
  assert_contains(error.message, "rows lists 2 files, found 3");
  assert_ok(names("{\"rows_per_shard\": 5}", 3, true, 3));
  assert_ok(names("{\"num_shards\": 3}", 1, false, 3));
  assert_refused(names("{\"num_shards\": 4, \"per_shard_rows\": 5}", 3, true, 3), TEGULA_MISMATCH);
  assert_contains(error.message, "num_shards says 4 files, found 3");
}

/* Three shards of 4, 4 and 4 + `more` rows of 2 little-endian int32. */
static tegula_status check(const char *text, int64_t more, bool whole) {
  tegula__manifest shards[3];
  for (int i = 0; i < 3; i++) {
    tegula__manifest_init(&shards[i]);
    shards[i].dtype = dtype_of("<i4");
    shards[i].ndim = 2;
    shards[i].shape[0] = i < 2 ? 4 : 4 + more;
    shards[i].shape[1] = 2;
  }
  tegula__side_file side = parse_good(text);
  tegula_status status = tegula__side_file_check(&side, shards, files, NULL, 3, whole, &error);
  tegula__side_file_free(&side);
  return status;
}

static void what_was_described_must_agree(void **state) {
  (void)state;
  /* byte order is told by the file or by the options */
  assert_ok(check("{\"dtype\": \">i4\", \"shape\": [4, 2]}", 0, true));
  assert_ok(check("{\"shape\": [12, 2]}", 0, true));
  assert_ok(check("{\"shape\": [13, 2]}", 1, true));
  assert_refused(check("{\"shape\": [12, 2]}", 1, true), TEGULA_MISMATCH);
  assert_contains(error.message, "\"d/a\" has 4 rows and all files together 13, but "
                                 "\"d/shard_meta.json\" says a shape of 12 rows");
  assert_refused(check("{\"shape\": [4, 2]}", 1, true), TEGULA_MISMATCH);
  assert_contains(error.message, "\"d/c\" has 5 rows");
  /* not all files: the sum is not known */
  assert_refused(check("{\"shape\": [12, 2]}", 0, false), TEGULA_MISMATCH);
  assert_ok(check("{\"shape\": [4, 2]}", 0, false));
  assert_ok(check("{\"shape\": [12, 2], \"rows\": [4, 4, 4]}", 0, false)); /* unless it is listed */
  assert_refused(check("{\"shape\": [12, 2], \"rows\": [4, 4, 5]}", 1, true), TEGULA_MISMATCH);
  assert_refused(check("{\"shape\": [12, 2], \"rows\": [9223372036854775807, 1, 4]}", 0, true),
                 TEGULA_MISMATCH);
  assert_refused(check("{\"rows\": [4, 4, 4]}", -1, true), TEGULA_MISMATCH);
  assert_contains(error.message,
                  "the number of rows of \"d/c\" is 3, but \"d/shard_meta.json\" says 4");
  assert_refused(check("{\"rows\": {\"a\": 4, \"b\": 3, \"c\": 4}}", 0, true), TEGULA_MISMATCH);
  assert_contains(error.message, "\"d/b\" is 4");
  assert_refused(check("{\"rows_per_shard\": 4}", 1, true), TEGULA_MISMATCH);
  assert_refused(check("{\"dtype\": \"f4\"}", 0, true), TEGULA_MISMATCH);
  assert_contains(error.message, "the dtype of \"d/a\" is <i4, but \"d/shard_meta.json\" says <f4");
  assert_refused(check("{\"row_shape\": [3]}", 0, true), TEGULA_MISMATCH);
  assert_contains(error.message, "is (2,), but");
  assert_refused(check("{\"row_shape\": []}", 0, true), TEGULA_MISMATCH);
  assert_refused(check("{\"shape\": []}", 0, true), TEGULA_MISMATCH);
}

static void random_changes_do_not_crash(void **state) {
  (void)state;
  static const char good[] = "{\"dtype\": \"<f4\", \"shape\": [12, 2], \"byte_order\": \"little\", "
                             "\"header_bytes\": 16, \"row_gap\": 2,"
                             " \"rows\": {\"a\": 4, \"b\": 4, \"c\": 4}, \"trailing_shape\": [2]}";
  static const char bytes[] = "0123456789-[]{},:\"abc<>\\ ";
  uint64_t seed = 3;
  for (int i = 0; i < 20000; i++) {
    char text[sizeof good];
    memcpy(text, good, sizeof good);
    for (int64_t changes = random_between(&seed, 0, 3); changes > 0; changes--)
      text[random_between(&seed, 0, (int64_t)sizeof good - 2)] =
          bytes[random_between(&seed, 0, (int64_t)sizeof bytes - 2)];
    tegula__side_file side;
    tegula__describe_options said = nothing(), out;
    size_t size =
        i % 7 == 0 ? (size_t)random_between(&seed, 0, (int64_t)sizeof good - 1) : sizeof good - 1;
    if (parse_sized(text, size, &side) == TEGULA_OK) {
      if (tegula__side_file_options(&side, &said, "d/b", 1, true, lengths, &out, &error) ==
          TEGULA_OK)
        assert_true(out.offset >= 0 && out.row_gap >= 0 && out.shape_ndim <= 64);
    }
    tegula__side_file_free(&side);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spellings_of_a_field_mean_the_same),
      cmocka_unit_test(rows_without_memory_are_one_error),
      cmocka_unit_test(every_field_reaches_the_options),
      cmocka_unit_test(what_contradicts_itself_is_refused),
      cmocka_unit_test(too_many_axes_are_refused),
      cmocka_unit_test(a_misspelt_key_is_refused_when_something_is_described),
      cmocka_unit_test(what_the_caller_says_completes_or_is_refused),
      cmocka_unit_test(lists_of_files_are_those_that_are_there),
      cmocka_unit_test(what_was_described_must_agree),
      cmocka_unit_test(random_changes_do_not_crash),
  };
  int failed = cmocka_run_group_tests_name("format: side file", tests, NULL, NULL);
  tegula__side_file_free(&last);
  return failed;
}
