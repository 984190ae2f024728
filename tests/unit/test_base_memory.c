/* Growable memory keeps to its maximum and keeps what it holds; vectors and texts fail instead of
 * overflowing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static void a_buffer_holds_what_is_appended(void **state) {
  (void)state;
  tegula__buffer buffer;
  tegula__buffer_init(&buffer, 100000);
  for (int i = 0; i < 1000; i++) assert_true(tegula__buffer_printf(&buffer, "%d,", i));
  assert_true(tegula__buffer_append(&buffer, "\0end", 5));
  assert_int_equal(buffer.size, 3890 + 5); /* 10 + 2 * 90 + 3 * 900 digits and 1000 commas */
  assert_memory_equal(buffer.data, "0,1,2,3,", 8);
  assert_memory_equal(buffer.data + 3886, "999,\0end", 9);
  tegula__buffer_free(&buffer);
  assert_int_equal(buffer.size, 0);
  assert_true(tegula__buffer_append(&buffer, "again", 5)); /* usable after free */
  tegula__buffer_free(&buffer);
}

static void a_buffer_keeps_to_its_maximum(void **state) {
  (void)state;
  tegula__buffer buffer;
  tegula__buffer_init(&buffer, 100);
  char bytes[100] = {1};
  assert_true(tegula__buffer_append(&buffer, bytes, 60));
  assert_false(tegula__buffer_append(&buffer, bytes, 41));
  assert_int_equal(buffer.size, 60); /* nothing of it was taken */
  assert_false(tegula__buffer_printf(&buffer, "%50d", 7));
  assert_int_equal(buffer.size, 60);
  assert_true(tegula__buffer_append(&buffer, bytes, 40));
  assert_false(tegula__buffer_append(&buffer, bytes, 1));
  assert_false(tegula__buffer_reserve(&buffer, SIZE_MAX));
  assert_true(buffer.capacity <= 100);
  tegula__buffer_free(&buffer);
}

static void impossible_sizes_are_refused(void **state) {
  (void)state;
  assert_null(tegula__realloc_array(NULL, INT64_MAX, 2));
  assert_null(tegula__realloc_array(NULL, -1, 2));
  assert_null(tegula__realloc_array(NULL, 2, SIZE_MAX));
  void *block = tegula__realloc_array(NULL, 0, 8);
  assert_non_null(block);
  free(block);
}

static void a_vector_grows_and_keeps_its_items(void **state) {
  (void)state;
  int64_t *items = NULL, capacity = 0;
  for (int64_t i = 0; i < 1000; i++) {
    assert_true(tegula__vector_reserve((void **)&items, &capacity, i + 1, sizeof *items));
    assert_true(capacity > i);
    items[i] = i * i;
  }
  for (int64_t i = 0; i < 1000; i++) assert_int_equal(items[i], i * i);
  int64_t before = capacity;
  assert_false(tegula__vector_reserve((void **)&items, &capacity, INT64_MAX / 4, sizeof *items));
  assert_int_equal(capacity, before);
  assert_int_equal(items[999], 998001); /* the old block stands */
  free(items);
}

static void texts_are_copied_and_made(void **state) {
  (void)state;
  assert_null(tegula__strdup(NULL));
  char *copy = tegula__strdup("abc"), *made = tegula__strprintf("%s-%04d", "x", 12);
  assert_string_equal(copy, "abc");
  assert_string_equal(made, "x-0012");
  free(copy);
  free(made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_buffer_holds_what_is_appended),
      cmocka_unit_test(a_buffer_keeps_to_its_maximum),
      cmocka_unit_test(impossible_sizes_are_refused),
      cmocka_unit_test(a_vector_grows_and_keeps_its_items),
      cmocka_unit_test(texts_are_copied_and_made),
  };
  return cmocka_run_group_tests_name("base: memory", tests, NULL, NULL);
}
