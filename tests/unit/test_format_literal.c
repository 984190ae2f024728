/* The literal parser: what it takes, what it refuses, and that it never reads beyond its text.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every text is parsed from a block of exactly its size. Expected repr() texts are Python's. */
#include "test_format_support.h"

#include "format/npy/literal.h"

static tegula_error error;

/* Parses a copy of exactly `size` bytes; the copy must outlive the literal. */
static tegula_status parse(const char *text, size_t size, bool utf8, tegula__literal *literal,
                           char **copy) {
  *copy = malloc(size > 0 ? size : 1);
  assert_non_null(*copy);
  memcpy(*copy, text, size);
  return tegula__literal_parse(literal, *copy, size, utf8, "x.npy", 10, &error);
}

static tegula_status parse_status(const char *text, size_t size, bool utf8) {
  tegula__literal literal;
  char *copy;
  tegula_status status = parse(text, size, utf8, &literal, &copy);
  tegula__literal_free(&literal);
  free(copy);
  return status;
}

static void takes_the_values_of_headers(void **state) {
  (void)state;
  static const char *const good[] = {"{}",
                                     "[]",
                                     "()",
                                     "(1,)",
                                     "(1, 2)",
                                     "[1]",
                                     "[1,]",
                                     "{'a': 1}",
                                     "{'a': 1, }",
                                     "{'a': 1,\n'b' : (2 , ) }",
                                     " {} ",
                                     "True",
                                     "None",
                                     "-5",
                                     "0",
                                     "12L",
                                     "u'x'",
                                     "b\"x\"",
                                     "'\\''",
                                     "'\\x41\\101\\u0041\\U00000041'",
                                     "[(('t', 'a'), '<f4'), ('b', [('x', '|u1')], (2, 3))]",
                                     "'a\\qb'"};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    if (parse_status(good[i], strlen(good[i]), true) != TEGULA_OK)
      fail_msg("%s: %s", good[i], error.message);
  }
}

static void refuses_everything_else(void **state) {
  (void)state;
  static const char *const bad[] = {"",
                                    " ",
                                    "{",
                                    "}",
                                    "[1",
                                    "(1",
                                    "(1)",
                                    "(,)",
                                    "[,]",
                                    "{,}",
                                    "{'a'}",
                                    "{'a':}",
                                    "{'a' 1}",
                                    "{'a': 1 'b': 2}",
                                    "[1 2]",
                                    "'a",
                                    "\"a",
                                    "'a\\",
                                    "'a\n'",
                                    "'\\x4'",
                                    "'\\u12'",
                                    "'\\U00110000'",
                                    "'\\N{DIGIT ONE}'",
                                    "'\\\n'",
                                    "1.5",
                                    "1e3",
                                    "0x10",
                                    "007",
                                    "-",
                                    "--1",
                                    "1_0",
                                    "true",
                                    "Tru",
                                    "Truex",
                                    "nan",
                                    "x",
                                    "f('x')",
                                    "__import__('os')",
                                    "{} {}",
                                    "{}x",
                                    "[]]",
                                    "(1, 2]",
                                    "'a' 'b'",
                                    "1 + 1",
                                    "u",
                                    "b",
                                    "r'x'",
                                    "1LL",
                                    "{}#"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    if (parse_status(bad[i], strlen(bad[i]), true) != TEGULA_CORRUPT)
      fail_msg("%s was not refused", bad[i]);
    assert_string_equal(error.path, "x.npy");
    assert_true(error.offset >= 10 && error.offset <= 10 + (int64_t)strlen(bad[i]));
  }
  assert_int_equal(parse_status("{}\0", 3, true), TEGULA_CORRUPT);
  assert_contains(error.message, "expected nothing more at character 2, found byte 0x00");
}

static void every_cut_of_a_good_text_is_refused(void **state) {
  (void)state;
  const char *text =
      "{'descr': [(('t', \"a\\n\"), '<f4', (2, 3))], 'fortran_order': False, 'shape': (12L, -3), }";
  for (size_t size = 0; size < strlen(text); size++)
    assert_int_equal(parse_status(text, size, true), TEGULA_CORRUPT);
  assert_int_equal(parse_status(text, strlen(text), true), TEGULA_OK);
}

static void utf8_must_be_valid_where_it_is_the_encoding(void **state) {
  (void)state;
  static const char *const bad[] = {"'\xff'",         "'\xc3'",
                                    "'\xc0\x80'",     "'\xe2\x82'",
                                    "'\xed\xa0\x80'", "'\xf4\x90\x80\x80'",
                                    "'\x80'",         "'\xf8\x88\x80\x80\x80'"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(parse_status(bad[i], strlen(bad[i]), true), TEGULA_CORRUPT);
    /* any byte is a Latin-1 character */
    assert_int_equal(parse_status(bad[i], strlen(bad[i]), false), TEGULA_OK);
  }
  assert_int_equal(parse_status("'\xf0\x9d\x84\x9e'", 6, true), TEGULA_OK);
}

static void depth_has_a_limit(void **state) {
  (void)state;
  char text[4096];
  memset(text, '[', sizeof text);
  assert_int_equal(parse_status(text, sizeof text, true), TEGULA_LIMIT_EXCEEDED);
  memset(text + TEGULA__LITERAL_MAX_DEPTH, ']', TEGULA__LITERAL_MAX_DEPTH);
  assert_int_equal(parse_status(text, 2 * TEGULA__LITERAL_MAX_DEPTH, true), TEGULA_OK);
}

static void nodes_have_a_limit(void **state) {
  (void)state;
  /* with the list itself one too many */
  size_t values = TEGULA__LITERAL_MAX_NODES, size = 2 * values + 1;
  char *text = malloc(size);
  assert_non_null(text);
  text[0] = '[';
  for (size_t i = 0; i < values; i++) memcpy(text + 1 + 2 * i, "1,", 2);
  text[size - 1] = ']';
  assert_int_equal(parse_status(text, size, true), TEGULA_LIMIT_EXCEEDED);
  text[size - 3] = ']';
  assert_int_equal(parse_status(text, size - 2, true), TEGULA_OK);
  free(text);
}

static void integers_keep_value_or_sign(void **state) {
  (void)state;
  tegula__literal literal;
  char *copy;
  const char *text = "(9223372036854775807, 9223372036854775808, -99999999999999999999999999, -7)";
  assert_int_equal(parse(text, strlen(text), true, &literal, &copy), TEGULA_OK);
  assert_int_equal(literal.nodes[0].count, 4);
  assert_true(literal.nodes[1].fits && literal.nodes[1].value == INT64_MAX);
  assert_true(!literal.nodes[2].fits && literal.nodes[2].value > 0);
  assert_true(!literal.nodes[3].fits && literal.nodes[3].value < 0);
  assert_true(literal.nodes[4].fits && literal.nodes[4].value == -7);
  tegula__literal_free(&literal);
  free(copy);
}

static void nodes_know_where_they_end(void **state) {
  (void)state;
  tegula__literal literal;
  char *copy;
  const char *text = "{'a': [1, (2, 3)], 'b': None}";
  assert_int_equal(parse(text, strlen(text), true, &literal, &copy), TEGULA_OK);
  assert_int_equal(literal.nodes[0].count, 4);
  assert_int_equal(literal.nodes[0].end, 9);
  assert_true(tegula__literal_is(&literal, 1, "a"));
  assert_int_equal(literal.nodes[2].kind, TEGULA__LITERAL_LIST);
  assert_int_equal(literal.nodes[2].end, 7);
  assert_true(tegula__literal_is(&literal, 7, "b"));
  assert_false(tegula__literal_is(&literal, 7, "bc"));
  assert_false(tegula__literal_is(&literal, 7, ""));
  assert_int_equal(literal.nodes[8].kind, TEGULA__LITERAL_NONE);
  tegula__literal_free(&literal);
  free(copy);
}

static void text_prints_as_python_does(void **state) {
  (void)state;
  static const struct {
    const char *text, *printed;
    bool utf8;
  } rows[] = {{"'a'", "'a'", true},
              {"\"a\"", "'a'", true},
              {"'it\\'s'", "\"it's\"", true},
              {"'\\'\"'", "'\\'\"'", true},
              {"'\\n\\t\\r\\\\\\0\\x7f'", "'\\n\\t\\r\\\\\\x00\\x7f'", true},
              {"'\xc3\xa9\\xad'", "'\xc3\xa9\\xad'", true},
              {"'\xe9'", "'\xc3\xa9'", false},
              {"'\\u0416\\U0001d11e\\ud800'", "'\xd0\x96\xf0\x9d\x84\x9e\\ud800'", true},
              {"'\\q'", "'\\\\q'", true}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tegula__literal literal;
    tegula__buffer out;
    char *copy;
    tegula__buffer_init(&out, 1024);
    assert_int_equal(parse(rows[i].text, strlen(rows[i].text), rows[i].utf8, &literal, &copy),
                     TEGULA_OK);
    assert_true(tegula__literal_print(&literal, 0, &out) && tegula__buffer_append(&out, "", 1));
    assert_string_equal(out.data, rows[i].printed);
    tegula__buffer_free(&out);
    tegula__literal_free(&literal);
    free(copy);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_the_values_of_headers),
      cmocka_unit_test(refuses_everything_else),
      cmocka_unit_test(every_cut_of_a_good_text_is_refused),
      cmocka_unit_test(utf8_must_be_valid_where_it_is_the_encoding),
      cmocka_unit_test(depth_has_a_limit),
      cmocka_unit_test(nodes_have_a_limit),
      cmocka_unit_test(integers_keep_value_or_sign),
      cmocka_unit_test(nodes_know_where_they_end),
      cmocka_unit_test(text_prints_as_python_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
