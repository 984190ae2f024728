/* JSON strings out of any bytes, and several texts as one. What must come out is written down by
 * hand, after RFC 8259 and the table of well-formed UTF-8.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/base.h"

static void expect(const char *text, const char *json) {
  tegula__buffer buffer;
  tegula__buffer_init(&buffer, 1000);
  assert_true(tegula__buffer_json_text(&buffer, text));
  assert_int_equal(buffer.size, strlen(json));
  assert_memory_equal(buffer.data, json, buffer.size);
  tegula__buffer_free(&buffer);
}

static void plain_text_stays_as_it_is(void **state) {
  (void)state;
  expect("", "\"\"");
  expect("shard_0001.npy", "\"shard_0001.npy\"");
  expect("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
  expect(NULL, "null");
}

static void special_characters_are_escaped(void **state) {
  (void)state;
  expect("a\"b\\c", "\"a\\\"b\\\\c\"");
  expect("\n\t\r\x01\x1f\x7f", "\"\\n\\t\\u000d\\u0001\\u001f\\u007f\"");
}

#define MARK "\xef\xbf\xbd"

static void bytes_that_are_no_text_are_marked(void **state) {
  (void)state;
  expect("a\xff", "\"a" MARK "\"");
  expect("\x80x", "\"" MARK "x\"");
  expect("\xc3", "\"" MARK "\"");                            /* cut off */
  expect("\xe2\x82x", "\"" MARK MARK "x\"");                 /* cut off by another character */
  expect("\xc0\xaf", "\"" MARK MARK "\"");                   /* overlong */
  expect("\xe0\x80\xaf", "\"" MARK MARK MARK "\"");          /* overlong */
  expect("\xed\xa0\x80", "\"" MARK MARK MARK "\"");          /* a surrogate */
  expect("\xf4\x90\x80\x80", "\"" MARK MARK MARK MARK "\""); /* above U+10FFFF */
  expect("\xf0\x8f\xbf\xbf", "\"" MARK MARK MARK MARK "\""); /* overlong */
  /* the last before each of those */
  expect("\xed\x9f\xbf\xf4\x8f\xbf\xbf", "\"\xed\x9f\xbf\xf4\x8f\xbf\xbf\"");
}

static void a_full_buffer_says_so(void **state) {
  (void)state;
  tegula__buffer buffer;
  for (size_t room = 0; room < 6; room++) {
    tegula__buffer_init(&buffer, room);
    assert_int_equal(tegula__buffer_json_text(&buffer, "a\nb"), room >= 6);
    tegula__buffer_free(&buffer);
  }
  tegula__buffer_init(&buffer, 6);
  assert_true(tegula__buffer_json_text(&buffer, "a\nb"));
  tegula__buffer_free(&buffer);
}

static void texts_of_any_bytes_come_out_as_they_went_in(void **state) {
  (void)state;
  static const char *const texts[] = {
      "", "a", "\x01\x1e\x1f\n\r\t", "\xff\xfe", "%s %b \\ \" ' ; : , |", ""};
  enum { COUNT = sizeof texts / sizeof *texts };
  tegula__buffer all;
  tegula__buffer_init(&all, 1000);
  for (int i = 0; i < COUNT; i++) assert_true(tegula__texts_append(&all, texts[i]));
  assert_int_equal(tegula__texts_count(all.data, all.size), COUNT);
  const char *at = all.data;
  for (int i = 0; i < COUNT; i++)
    assert_string_equal(tegula__texts_next(&at, all.data + all.size), texts[i]);
  assert_null(tegula__texts_next(&at, all.data + all.size));
  tegula__buffer_free(&all);
}

static void a_text_that_was_cut_is_none(void **state) {
  (void)state;
  const char cut[] = {'a', '\0', 'b'}, *at = cut;
  assert_int_equal(tegula__texts_count(cut, sizeof cut), 1);
  assert_string_equal(tegula__texts_next(&at, cut + sizeof cut), "a");
  assert_null(tegula__texts_next(&at, cut + sizeof cut));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain_text_stays_as_it_is),
      cmocka_unit_test(special_characters_are_escaped),
      cmocka_unit_test(bytes_that_are_no_text_are_marked),
      cmocka_unit_test(a_full_buffer_says_so),
      cmocka_unit_test(texts_of_any_bytes_come_out_as_they_went_in),
      cmocka_unit_test(a_text_that_was_cut_is_none),
  };
  return cmocka_run_group_tests_name("base: text", tests, NULL, NULL);
}
