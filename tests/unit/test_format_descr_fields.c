/* The fields of a description: names, offsets, shapes, and which are within others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "format/npy/fields.h"

static tegula_error error;

static tegula_status read_fields(const char *descr, uint32_t bytes, tegula_plugin_field **out,
                                 int64_t *count) {
  tegula_dtype dtype = {.kind = 'V', .order = '|', .item_size = bytes};
  return tegula__record_fields(descr, dtype, out, count, &error);
}

static void expect(const tegula_plugin_field *field, const char *name, const char *dtype,
                   int64_t offset, int32_t ndim, int64_t within) {
  char text[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(field->dtype, text);
  assert_string_equal(field->name, name);
  assert_string_equal(text, dtype);
  assert_int_equal(field->offset, offset);
  assert_int_equal(field->ndim, ndim);
  assert_int_equal(field->fields, within);
}

static void fields_follow_the_record_that_they_are_in(void **state) {
  (void)state;
  tegula_plugin_field *fields;
  int64_t count;
  assert_ok(read_fields("[('a', '<i2'), ('', '|V6'), (('title', 'b'), [('x', '>f4', (3,)), "
                        "('y', [('z', '|S5')], (2, 2))], 2), ('c', '|b1'), ('', '|V3')]",
                        76, &fields, &count));
  assert_int_equal(count, 6);
  expect(&fields[0], "a", "<i2", 0, 0, 0);
  expect(&fields[1], "b", "|V32", 8, 1, 3);
  assert_int_equal(fields[1].shape[0], 2);
  expect(&fields[2], "x", ">f4", 0, 1, 0);
  assert_int_equal(fields[2].shape[0], 3);
  expect(&fields[3], "y", "|V5", 12, 2, 1);
  assert_int_equal(fields[3].shape[1], 2);
  expect(&fields[4], "z", "|S5", 0, 0, 0);
  expect(&fields[5], "c", "|b1", 72, 0, 0);
  free(fields);
}

static void names_are_text_or_the_bytes_of_a_file(void **state) {
  (void)state;
  tegula_plugin_field *fields;
  int64_t count;
  assert_ok(read_fields("[('\\xe9\\n', '<i4'), ('caf\\udce9', '<i4')]", 8, &fields, &count));
  assert_string_equal(fields[0].name, "\xc3\xa9\n");
  assert_string_equal(fields[1].name, "caf\xe9");
  free(fields);
}

static void what_is_no_record_or_cannot_be_stored_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *descr, *says;
    uint32_t bytes;
    tegula_status status;
  } rows[] = {
      {"'<f4'", "expected a list of fields", 4, TEGULA_INVALID_ARGUMENT},
      {"[('a', '<f4')]", "records of 4 bytes", 8, TEGULA_INVALID_ARGUMENT},
      {"[('a', '<f4')", "", 4, TEGULA_INVALID_ARGUMENT},
      {"[('', '|V4')]", "no fields", 4, TEGULA_UNSUPPORTED},
      {"[('', '<f4')]", "no name", 4, TEGULA_UNSUPPORTED},
      {"[('a', '<f16')]", "long double", 16, TEGULA_UNSUPPORTED},
      {"[('a', '|O8')]", "pickled", 8, TEGULA_UNSUPPORTED},
      {"[('a', '|V0'), ('b', '|i1')]", "no bytes", 1, TEGULA_UNSUPPORTED},
      {"[('a', '<f4', (0,)), ('b', '|i1')]", "length of 0", 1, TEGULA_UNSUPPORTED},
      {"[('a', [('', '|V4')])]", "no fields", 4, TEGULA_UNSUPPORTED},
      {"[('a\\x00', '|i1')]", "character", 1, TEGULA_UNSUPPORTED},
      {"[('\\ud800', '|i1')]", "character", 1, TEGULA_UNSUPPORTED},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tegula_plugin_field *fields = NULL;
    int64_t count;
    tegula_status status = read_fields(rows[i].descr, rows[i].bytes, &fields, &count);
    if (status != rows[i].status)
      fail_msg("%s: %s (%s)", rows[i].descr, tegula_status_name(status), error.message);
    assert_contains(error.message, rows[i].says);
    assert_null(fields);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fields_follow_the_record_that_they_are_in),
      cmocka_unit_test(names_are_text_or_the_bytes_of_a_file),
      cmocka_unit_test(what_is_no_record_or_cannot_be_stored_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
