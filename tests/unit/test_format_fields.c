/* Fields of records by name: dtype, offset, axes and strides, as numpy has them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Expected values are those of numpy.dtype(descr_to_dtype(...)).fields. */
#include "test_format_support.h"

#include "format/record_fields.h"

static tegula_error error;

static const char *const plain = "[('a', '<i4'), ('b', '>f8', (2, 3)), ('', '|V3'), ('c', '|S5')]";
static const char *const nested =
    "[('n', '|u1'), ('p', [('x', '<f4'), ('q', [('y', '>i2'), ('z', '<f8')], (3,))], (4,)), "
    "('p.x', '<u2'), ('p.q', [('w', '|i1')])]";
static const char *const titled =
    "[(('Mass', 'm'), '<f4'), ('caf\xc3\xa9', '<f8'), ('\\n', '|b1')]";
static const char *const partly =
    "[('a', '<i4'), ('r', '|O8'), ('s', [('t', '|O16'), ('u', '<f2')], (2,)), ('l', '<f16'), "
    "('z', '<f8')]";

static void fields_are_where_numpy_has_them(void **state) {
  (void)state;
  static const struct {
    const char *const *descr;
    const char *name, *dtype;
    int64_t offset;
    int32_t ndim;
    int64_t shape[3], strides[3];
    const char *record;
  } cases[] = {
      {&plain, "a", "<i4", 0, 0, {0}, {0}, NULL},
      {&plain, "b", ">f8", 4, 2, {2, 3}, {24, 8}, NULL},
      {&plain, "c", "|S5", 55, 0, {0}, {0}, NULL},
      {&nested, "n", "|u1", 0, 0, {0}, {0}, NULL},
      {&nested,
       "p",
       "|V34",
       1,
       1,
       {4},
       {34},
       "[('x', '<f4'), ('q', [('y', '>i2'), ('z', '<f8')], (3,))]"},
      {&nested, "p.q.z", "<f8", 1 + 4 + 2, 2, {4, 3}, {34, 10}, NULL},
      {&nested, "p.q.y", ">i2", 1 + 4, 2, {4, 3}, {34, 10}, NULL},
      /* a name with a dot comes before a way into a record; both records are looked into */
      {&nested, "p.x", "<u2", 137, 0, {0}, {0}, NULL},
      {&nested, "p.q", "|V1", 139, 0, {0}, {0}, "[('w', '|i1')]"},
      {&nested, "p.q.w", "|i1", 139, 0, {0}, {0}, NULL},
      {&titled, "m", "<f4", 0, 0, {0}, {0}, NULL},
      {&titled, "Mass", "<f4", 0, 0, {0}, {0}, NULL},
      {&titled, "caf\xc3\xa9", "<f8", 4, 0, {0}, {0}, NULL},
      {&titled, "\n", "|b1", 12, 0, {0}, {0}, NULL},
      {&partly, "z", "<f8", 4 + 8 + 36 + 16, 0, {0}, {0}, NULL},
      {&partly, "s.u", "<f2", 4 + 8 + 16, 1, {2}, {18}, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tegula__field field;
    char text[TEGULA_DTYPE_TEXT];
    if (tegula__record_field("x.npy", *cases[i].descr, cases[i].name, &field, &error) != TEGULA_OK)
      fail_msg("%s: %s", cases[i].name, error.message);
    tegula_dtype_format(field.dtype, text);
    assert_string_equal(text, cases[i].dtype);
    assert_int_equal(field.offset, cases[i].offset);
    assert_int_equal(field.ndim, cases[i].ndim);
    for (int32_t k = 0; k < field.ndim; k++) {
      assert_int_equal(field.shape[k], cases[i].shape[k]);
      assert_int_equal(field.strides[k], cases[i].strides[k]);
    }
    if (cases[i].record == NULL)
      assert_null(field.descr);
    else
      assert_string_equal(field.descr, cases[i].record);
    free(field.descr);
  }
}

static void what_is_no_field_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *const *descr;
    const char *name;
    tegula_status status;
    const char *says;
  } cases[] = {
      {&plain, "", TEGULA_NOT_FOUND, "no field \"\""},
      {&plain, "d", TEGULA_NOT_FOUND, "\"x.npy\": its records have no field \"d\""},
      {&plain, "a.b", TEGULA_NOT_FOUND, "a.b"},
      {&plain, "a.", TEGULA_NOT_FOUND, "a."},
      {&plain, "aa", TEGULA_NOT_FOUND, "aa"},
      {&nested, "p.q.", TEGULA_NOT_FOUND, "p.q."},
      {&nested, "P", TEGULA_NOT_FOUND, "P"},
      {&titled, "\\n", TEGULA_NOT_FOUND, "\\n"},
      {&partly, "r", TEGULA_UNSUPPORTED, "cannot be loaded"},
      {&partly, "s", TEGULA_UNSUPPORTED, "cannot be loaded"},
      {&partly, "s.t", TEGULA_UNSUPPORTED, "cannot be loaded"},
      {&partly, "l", TEGULA_UNSUPPORTED, "cannot be loaded"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tegula__field field = {.offset = -5};
    tegula_status status =
        tegula__record_field("x.npy", *cases[i].descr, cases[i].name, &field, &error);
    if (status != cases[i].status || strstr(error.message, cases[i].says) == NULL)
      fail_msg("%s: %s: %s", cases[i].name, tegula_status_name(status), error.message);
    assert_int_equal(field.offset, -5);
  }
}

static void texts_that_are_no_description_have_no_fields(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",
      "'<f4'",
      "[",
      "[5]",
      "['a']",
      "[('a',)]",
      "[('a', '<f4', (1,), 2)]",
      "[('a', 5)]",
      "[(5, '<f4')]",
      "[('a', '<f4', 3)]",
      "[('a', '<f4', (-1,))]",
      "[('a', '<f4', ('x',))]",
      "[('a', 'nonsense')]",
      "[('a', '|V2147483647'), ('b', '|u1')]",
      "[('a', '|V2147483647', (2147483647, 2147483647, 2147483647))]",
      "[('a', '<f4', (0, 4611686018427387904, 4611686018427387904))]",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    tegula__field field = {.offset = -5};
    tegula__buffer names;
    tegula_status status = tegula__record_field("x.npy", texts[i], "b", &field, &error);
    if (status == TEGULA_OK) fail_msg("%s", texts[i]);
    assert_int_equal(field.offset, -5);
    tegula__buffer_init(&names, 4096);
    assert_true(tegula__record_names(texts[i], &names)); /* ends, whatever it finds */
    tegula__buffer_free(&names);
  }
}

static void names_for_hints(void **state) {
  (void)state;
  static const struct {
    const char *descr, *names;
  } cases[] = {
      {"[('a', '<f4'), ('', '|V4'), ('b', '<f4')]", "a, b"},
      {"[('a', '|O8'), ('s', [('t', '|O16'), ('u', '<f2')], (2,)), (('T', 'z'), '<f8')]", "s.u, z"},
      {"[('a', '|u1'), ('b', '|u1'), ('c', '|u1'), ('d', '|u1'), ('e', '|u1'), ('f', '|u1'), "
       "('g', '|u1'), ('h', '|u1'), ('i', '|u1'), ('j', '|u1'), ('k', '|u1')]",
       "a, b, c, d, e, f, g, h, i, j, ..."},
      {"'<f4'", ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tegula__buffer names;
    tegula__buffer_init(&names, 4096);
    assert_true(tegula__record_names(cases[i].descr, &names) &&
                tegula__buffer_append(&names, "", 1));
    assert_string_equal(names.data, cases[i].names);
    tegula__buffer_free(&names);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fields_are_where_numpy_has_them),
      cmocka_unit_test(what_is_no_field_is_refused),
      cmocka_unit_test(texts_that_are_no_description_have_no_fields),
      cmocka_unit_test(names_for_hints),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
