/* JSON from strangers: what is accepted, what is refused and in which words, and that what is
 * written can be read again.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each text lies in a block of exactly its size, so that AddressSanitizer sees a read beyond it. */
#include "support.h"

#include "base/json.h"

static tegula_error error;

static tegula_status parse(const char *text, size_t size, tegula__json *out) {
  char *copy = malloc(size > 0 ? size : 1);
  assert_non_null(copy);
  memcpy(copy, text, size);
  memset(&error, 0, sizeof error);
  tegula_status status = tegula__json_parse(copy, size, 1 << 20, "dir/a.json", out, &error);
  free(copy);
  return status;
}

static tegula__json parse_good(const char *text) {
  tegula__json out;
  assert_ok(parse(text, strlen(text), &out));
  return out;
}

static void refused(const char *text, size_t size, tegula_status status, const char *part) {
  tegula__json out;
  assert_refused(parse(text, size, &out), status);
  assert_contains(error.message, "dir/a.json");
  assert_contains(error.message, part);
  assert_string_equal(error.path, "dir/a.json");
}

static void what_is_no_json_is_refused_with_its_place(void **state) {
  (void)state;
  static const struct {
    const char *text, *part;
  } rows[] = {
      {"", "line 1"},
      {"{\"a\": 1,\n \"b\" 2}", "line 2"},
      {"{\"a\": 1} x", "no valid JSON"},
      {"{\"a\": 1, \"a\": 2}", "duplicate"},
      {"{\"a\": \"x\\u0000y\"}", "no valid JSON"},
      {"{\"a\\u0000b\": 1}", "no valid JSON"},
      {"{\"a\": \"\xff\"}", "no valid JSON"},
      {"{\"a\": 99999999999999999999}", "no valid JSON"},
      {"{\"a\": 1e999}", "no valid JSON"},
      {"{\"a\": NaN}", "no valid JSON"},
      {"[1, 2]", "the document is a list of 2, expected an object"},
      {"3", "the document is 3, expected an object"},
      {"\"x\"", "the document is the text \"x\", expected an object"},
      {"null", "the document is null, expected an object"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    refused(rows[i].text, strlen(rows[i].text), TEGULA_CORRUPT, rows[i].part);
  refused("{\"a\": 1}\0", 9, TEGULA_CORRUPT, "no valid JSON");
}

static void every_prefix_of_a_text_is_refused(void **state) {
  (void)state;
  const char *text = "{\"a\": [1, {\"b\": \"c\\n\"}], \"d\": null}";
  for (size_t size = 0; size < strlen(text); size++) refused(text, size, TEGULA_CORRUPT, "");
  tegula__json out = parse_good(text);
  tegula__json_free(&out);
}

static void depth_and_size_have_limits(void **state) {
  (void)state;
  enum { DEEP = 200000 };
  char *deep = malloc(DEEP);
  assert_non_null(deep);
  memset(deep, '[', DEEP);
  refused(deep, DEEP, TEGULA_CORRUPT, "too deep");
  memset(deep, '{', DEEP);
  refused(deep, DEEP, TEGULA_CORRUPT, "too deep");
  free(deep);
  tegula__json out = parse_good("{\"a\":[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]}"); /* 16 */
  tegula__json_free(&out);
  const char *seventeen = "{\"a\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}";
  refused(seventeen, strlen(seventeen), TEGULA_CORRUPT, "more than 16");
  out = parse_good(
      "{\"a\": \"[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[[[\"}"); /* brackets in a text are no depth */
  tegula__json_free(&out);
  assert_refused(tegula__json_parse("{\"a\":1}", 7, 6, "f", &out, &error), TEGULA_LIMIT_EXCEEDED);
  assert_contains(error.message, "at most 6 bytes of JSON, found 7");
}

static void getters_say_where_what_was_expected_and_found(void **state) {
  (void)state;
  tegula__json root = parse_good(
      "{\"a\": [1, {\"b\": \"x\"}, -1, 1.0, true, null, [], \"\"], \"s\": [2, 3], \"n\": 7}");
  tegula__json a = tegula__json_member(&root, "a"), item = tegula__json_item(&a, 1),
               b = tegula__json_member(&item, "b");
  tegula__json none = tegula__json_member(&item, "none"), s = tegula__json_member(&root, "s"),
               n = tegula__json_member(&root, "n");
  int64_t number = 0, lengths[4];
  int32_t count = 0;
  const char *text = NULL;
  assert_refused(tegula__json_integer(&b, 0, INT64_MAX, &number, &error), TEGULA_CORRUPT);
  assert_string_equal(error.message,
                      "\"dir/a.json\": a[1].b is the text \"x\", expected an integer of 0 or more");
  assert_refused(tegula__json_integer(&none, 0, INT64_MAX, &number, &error), TEGULA_CORRUPT);
  assert_string_equal(error.message,
                      "\"dir/a.json\": a[1].none is missing, expected an integer of 0 or more");
  for (int64_t i = 2; i <= 7; i++) { /* a number with a point is no integer, and true is no 1 */
    tegula__json bad = tegula__json_item(&a, i);
    assert_refused(tegula__json_integer(&bad, 0, 9, &number, &error), TEGULA_CORRUPT);
    assert_contains(error.message, "expected an integer of 0 to 9");
  }
  tegula__json first = tegula__json_item(&a, 0), empty = tegula__json_item(&a, 7);
  assert_ok(tegula__json_integer(&first, 1, 1, &number, &error));
  assert_int_equal(number, 1);
  assert_refused(tegula__json_integer(&first, 2, 3, &number, &error), TEGULA_CORRUPT);
  assert_refused(tegula__json_text(&empty, &text, &error), TEGULA_CORRUPT);
  assert_refused(tegula__json_text(&first, &text, &error), TEGULA_CORRUPT);
  assert_ok(tegula__json_text(&b, &text, &error));
  assert_string_equal(text, "x");
  assert_ok(tegula__json_lengths(&s, 0, 2, false, lengths, &count, &error));
  assert_int_equal(count, 2);
  assert_int_equal(lengths[0] * 10 + lengths[1], 23);
  assert_refused(tegula__json_lengths(&s, 0, 1, false, lengths, &count, &error), TEGULA_CORRUPT);
  assert_refused(tegula__json_lengths(&s, 3, 3, false, lengths, &count, &error), TEGULA_CORRUPT);
  assert_contains(error.message, "s is a list of 2, expected a list of 3 integers");
  assert_refused(tegula__json_lengths(&a, 0, 64, false, lengths, &count, &error), TEGULA_CORRUPT);
  assert_contains(error.message, "a[1] is an object of 1");
  assert_refused(tegula__json_lengths(&n, 0, 2, false, lengths, &count, &error), TEGULA_CORRUPT);
  assert_ok(tegula__json_lengths(&n, 0, 2, true, lengths, &count, &error));
  assert_int_equal(count * 10 + lengths[0], 17);
  tegula__json_free(&root);
}

static void unknown_keys_are_refused_unless_they_say_that_they_are_private(void **state) {
  (void)state;
  static const char *const known[] = {"a", "b", NULL};
  tegula__json root = parse_good("{\"a\": 1, \"_c\": 2, \"x-d\": 3, \"b\": 4}");
  assert_ok(tegula__json_only(&root, known, &error));
  tegula__json_free(&root);
  root = parse_good("{\"a\": 1, \"B\": 4}");
  assert_refused(tegula__json_only(&root, known, &error), TEGULA_CORRUPT);
  assert_contains(error.message, "B is no key");
  tegula__json_free(&root);
}

static void members_are_walked_in_order(void **state) {
  (void)state;
  tegula__json root = parse_good("{\"z\": 1, \"a\": 2, \"m\": 3}"), member = {0};
  char keys[8] = "";
  while (tegula__json_next(&root, &member)) strcat(keys, member.key);
  assert_string_equal(keys, "zam");
  tegula__json_free(&root);
}

static void long_ways_and_texts_are_cut(void **state) {
  (void)state;
  char text[4096], way[TEGULA__JSON_WAY];
  char name[1001];
  memset(name, 'k', 1000);
  name[1000] = '\0';
  snprintf(text, sizeof text, "{\"%s\": {\"%s\": \"%s\"}}", name, name, name);
  tegula__json root = parse_good(text), a = tegula__json_member(&root, name),
               b = tegula__json_member(&a, name);
  int64_t number;
  assert_refused(tegula__json_integer(&b, 0, 1, &number, &error), TEGULA_CORRUPT);
  assert_true(strlen(error.message) < 400);
  tegula__json_way(&b, way);
  assert_true(strlen(way) < sizeof way);
  tegula__json_free(&root);
}

/* Python's json.dumps(s, ensure_ascii=False) gives the same but for \x7f, which it leaves as it
 * is. */
static void texts_are_written_so_that_they_read_back(void **state) {
  (void)state;
  const char *text = "a\"b\\c\n\t\x01/\x7f \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
  tegula__buffer buffer;
  tegula__buffer_init(&buffer, 4096);
  assert_true(tegula__buffer_json_text(&buffer, text));
  assert_true(tegula__buffer_append(&buffer, "", 1));
  assert_string_equal(buffer.data,
                      "\"a\\\"b\\\\c\\n\\t\\u0001/\\u007f \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
  char document[256];
  snprintf(document, sizeof document, "{\"t\": %s}", buffer.data);
  tegula__json root = parse_good(document), member = tegula__json_member(&root, "t");
  const char *back = NULL;
  assert_ok(tegula__json_text(&member, &back, &error));
  assert_string_equal(back, text);
  tegula__json_free(&root);
  tegula__buffer_free(&buffer);
  assert_true(tegula__json_is_text(text));
  assert_false(tegula__json_is_text("\xff"));
  assert_false(tegula__json_is_text("\xc3"));
  static const char *const good[] = {"",
                                     "\x7f",
                                     "\xc2\x80",
                                     "\xdf\xbf",
                                     "\xe0\xa0\x80",
                                     "\xed\x9f\xbf",
                                     "\xee\x80\x80",
                                     "\xef\xbf\xbf",
                                     "\xf0\x90\x80\x80",
                                     "\xf4\x8f\xbf\xbf"};
  static const char *const bad[] = {
      "\x80",         "\xc0\x80",         "\xc1\xbf",        "\xc2",         "\xc2z",
      "\xe0\x9f\xbf", "\xe1\x80",         "\xe1\x80z",       "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
      "\xf1\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_true(tegula__json_is_text(good[i]));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(tegula__json_is_text(bad[i]));
  int64_t numbers[] = {1, -2, INT64_MAX};
  assert_true(tegula__json_write_numbers(&buffer, numbers, 3) &&
              tegula__buffer_append(&buffer, "", 1));
  assert_string_equal(buffer.data, "[1, -2, 9223372036854775807]");
  tegula__buffer_free(&buffer);
  tegula__buffer_init(&buffer, 8);
  assert_false(tegula__buffer_json_text(&buffer, "123456789"));
  tegula__buffer_free(&buffer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_no_json_is_refused_with_its_place),
      cmocka_unit_test(every_prefix_of_a_text_is_refused),
      cmocka_unit_test(depth_and_size_have_limits),
      cmocka_unit_test(getters_say_where_what_was_expected_and_found),
      cmocka_unit_test(unknown_keys_are_refused_unless_they_say_that_they_are_private),
      cmocka_unit_test(members_are_walked_in_order),
      cmocka_unit_test(long_ways_and_texts_are_cut),
      cmocka_unit_test(texts_are_written_so_that_they_read_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
