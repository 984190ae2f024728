/* Errors are fields, are cut when too long, and cost nothing where the caller gives NULL; names and
 * texts exist for every status.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/base.h"

static void every_status_has_its_name(void **state) {
  (void)state;
  assert_string_equal(tegula_status_name(TEGULA_OK), "ok");
  assert_string_equal(tegula_status_name(TEGULA_SHORT_FILE), "short_file");
  assert_string_equal(tegula_status_name((tegula_status)999), "unknown");
#define HAS_TEXT(name, value, text, sentence)                                                      \
  assert_string_equal(tegula_status_name(TEGULA_##name), text);                                    \
  assert_string_equal(tegula_status_text(TEGULA_##name), sentence);
  TEGULA_STATUS_MAP(HAS_TEXT)
#undef HAS_TEXT
}

static void a_failure_fills_all_fields(void **state) {
  (void)state;
  tegula_error error;
  memset(&error, 0x5a, sizeof error);
  tegula_status status = tegula__fail(&error, TEGULA_SHORT_FILE, "a/b.npy", 128,
                                      "\"%s\" holds %d bytes, expected %d", "a/b.npy", 5, 9);
  assert_int_equal(status, TEGULA_SHORT_FILE);
  assert_int_equal(error.status, TEGULA_SHORT_FILE);
  assert_string_equal(error.message, "\"a/b.npy\" holds 5 bytes, expected 9");
  assert_string_equal(error.hint, "");
  assert_string_equal(error.path, "a/b.npy");
  assert_int_equal(error.offset, 128);
  assert_int_equal(error.os_errno, 0);
  assert_int_equal(error.rank, -1);
}

static void hints_are_added(void **state) {
  (void)state;
  tegula_error error;
  tegula_status status = tegula__hint(
      &error, tegula__fail(&error, TEGULA_EXISTS, NULL, -1, "it exists"), "remove %s", "it");
  assert_int_equal(status, TEGULA_EXISTS);
  assert_string_equal(error.message, "it exists");
  assert_string_equal(error.hint, "remove it");
  assert_string_equal(error.path, "");
  assert_int_equal(error.offset, -1);
}

static void without_an_error_struct_the_status_still_comes(void **state) {
  (void)state;
  assert_int_equal(tegula__fail(NULL, TEGULA_CORRUPT, "x", 1, "text"), TEGULA_CORRUPT);
  assert_int_equal(tegula__hint(NULL, TEGULA_CORRUPT, "text"), TEGULA_CORRUPT);
  assert_int_equal(tegula__fail_errno(NULL, ENOENT, "x", 1, "text"), TEGULA_NOT_FOUND);
  assert_int_equal(tegula__out_of_memory(NULL, 5), TEGULA_OUT_OF_MEMORY);
  tegula__error_clear(NULL);
}

static void system_errors_pick_the_status_and_add_the_text(void **state) {
  (void)state;
  tegula_error error;
  assert_int_equal(tegula__fail_errno(&error, ENOENT, "x", -1, "could not open \"x\""),
                   TEGULA_NOT_FOUND);
  assert_string_equal(error.message, "could not open \"x\": No such file or directory");
  assert_int_equal(error.os_errno, ENOENT);
  assert_int_equal(tegula__fail_errno(&error, EACCES, "x", -1, "y"), TEGULA_PERMISSION);
  assert_int_equal(tegula__fail_errno(&error, ENOMEM, "x", -1, "y"), TEGULA_OUT_OF_MEMORY);
  assert_int_equal(tegula__fail_errno(&error, EEXIST, "x", -1, "y"), TEGULA_EXISTS);
  assert_int_equal(tegula__fail_errno(&error, EIO, "x", -1, "y"), TEGULA_IO);
}

static void long_texts_are_cut_and_ended(void **state) {
  (void)state;
  tegula_error error;
  char longer[3000];
  memset(longer, 'p', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  tegula__hint(&error, tegula__fail(&error, TEGULA_IO, longer, -1, "%s", longer), "%s", longer);
  assert_int_equal(strlen(error.message), sizeof error.message - 1);
  assert_int_equal(strlen(error.hint), sizeof error.hint - 1);
  assert_int_equal(strlen(error.path), sizeof error.path - 1);
  tegula__fail_errno(&error, EIO, longer, -1, "%s", longer);
  assert_true(strlen(error.message) < sizeof error.message);
}

static void messages_stay_on_one_line(void **state) {
  (void)state;
  tegula_error error;
  tegula__fail(&error, TEGULA_IO, "a\nb", -1, "could not read \"%s\"", "a\nb\tc");
  assert_null(strpbrk(error.message, "\n\t"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_status_has_its_name),
      cmocka_unit_test(a_failure_fills_all_fields),
      cmocka_unit_test(hints_are_added),
      cmocka_unit_test(without_an_error_struct_the_status_still_comes),
      cmocka_unit_test(system_errors_pick_the_status_and_add_the_text),
      cmocka_unit_test(long_texts_are_cut_and_ended),
      cmocka_unit_test(messages_stay_on_one_line),
  };
  return cmocka_run_group_tests_name("base: error", tests, NULL, NULL);
}
