/* The order of files from their names: sequences, holes, widths, foreigners.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each row is a set of names in any order, and what must become of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "discover/discover.h"

enum { MOST = 12 };

static tegula_error error;

static void assert_contains(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static int64_t count_names(const char *const *names) {
  int64_t count = 0;
  while (names[count] != NULL) count++;
  return count;
}

/* Orders a copy of the pointers. */
static tegula_status order(const char *const *names, const char **out) {
  int64_t count = count_names(names);
  memcpy(out, names, (size_t)count * sizeof *names);
  return tegula__names_order((char **)out, count, "dir", &error);
}

static void sequences_come_out_in_numeric_order(void **state) {
  (void)state;
  static const struct {
    const char *names[MOST], *expected[MOST];
  } rows[] = {
      {{"only.npy"}, {"only.npy"}},
      {{"s_2", "s_0", "s_1"}, {"s_0", "s_1", "s_2"}},
      {{"s_10", "s_9", "s_11", "s_8"}, {"s_8", "s_9", "s_10", "s_11"}},
      {{"s_0010.npy", "s_0009.npy"}, {"s_0009.npy", "s_0010.npy"}},
      {{"s99", "s100", "s98"}, {"s98", "s99", "s100"}},
      {{"s099", "s100", "s098"}, {"s098", "s099", "s100"}},
      {{"s999", "s1000", "s998"}, {"s998", "s999", "s1000"}},       /* %03d may grow */
      {{"run7_1.npy", "run7_0.npy"}, {"run7_0.npy", "run7_1.npy"}}, /* a number that all share */
      {{"1", "0"}, {"0", "1"}},
      {{"00", "01"}, {"00", "01"}},
      {{"a99999999999999999999", "a100000000000000000000"},
       {"a99999999999999999999", "a100000000000000000000"}},
      {{"a00018446744073709551616x", "a00018446744073709551615x"},
       {"a00018446744073709551615x", "a00018446744073709551616x"}},
      {{"\xff\xfe_2", "\xff\xfe_1"}, {"\xff\xfe_1", "\xff\xfe_2"}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const char *out[MOST];
    if (order(rows[i].names, out) != TEGULA_OK)
      fail_msg("%s...: %s", rows[i].names[0], error.message);
    for (int64_t k = 0; k < count_names(rows[i].names); k++)
      assert_string_equal(out[k], rows[i].expected[k]);
  }
}

static void others_are_refused_by_name(void **state) {
  (void)state;
  static const struct {
    const char *names[MOST];
    tegula_status status;
    const char *parts[3]; /* of the message */
  } rows[] = {
      {{"s_2", "s_0", "s_4", "s_1"},
       TEGULA_INCOMPLETE,
       {"number 3 (\"s_3\")", "\"s_2\" and \"s_4\""}},
      {{"s_0009.npy", "s_0011.npy"}, TEGULA_INCOMPLETE, {"number 0010 (\"s_0010.npy\")"}},
      {{"s_99", "s_101"}, TEGULA_INCOMPLETE, {"number 100 (\"s_100\")"}},
      {{"s_9", "s_19"}, TEGULA_INCOMPLETE, {"number 10 (\"s_10\")"}},
      {{"s_19", "s_29"}, TEGULA_INCOMPLETE, {"number 20 (\"s_20\")"}},
      {{"a18446744073709551615", "a18446744073709551617"},
       TEGULA_INCOMPLETE,
       {"number 18446744073709551616"}},
      {{"s_1", "s_2", "s_02"}, TEGULA_MISMATCH, {"\"s_2\" and \"s_02\" have the same number"}},
      {{"s_01", "s_02", "s_3"},
       TEGULA_MISMATCH,
       {"\"s_01\" and \"s_3\" pad their numbers differently"}},
      {{"s_1", "s_02", "s_003"}, TEGULA_MISMATCH, {"pad their numbers differently"}},
      {{"s_099", "s_0100"},
       TEGULA_MISMATCH,
       {"\"s_099\" and \"s_0100\" pad their numbers differently"}},
      {{"0", "01"}, TEGULA_MISMATCH, {"pad their numbers differently"}},
      {{"a1_b1", "a1_b2", "a2_b3"}, TEGULA_MISMATCH, {"\"a2_b3\"", "more than one number"}},
      {{"a1_b1", "a1_b2", "a2_b1"}, TEGULA_MISMATCH, {"\"a2_b1\"", "more than one number"}},
      {{"s_0.npy", "s_1.npy", "s_2.raw"}, TEGULA_MISMATCH, {"\"s_2.raw\" is not named like \"s_"}},
      {{"README", "s_0.npy", "s_1.npy", "s_2.npy"},
       TEGULA_MISMATCH,
       {"\"README\" is not named like \"s_"}},
      {{"s_0", "s_1", "s_"}, TEGULA_MISMATCH, {"\"s_\" is not named like"}},
      {{"s_0", "s_1", "s_1_0"}, TEGULA_MISMATCH, {"\"s_1_0\" is not named like"}},
      {{"a", "b"}, TEGULA_MISMATCH, {"is not named like"}},
      {{"a_1", "a_1"}, TEGULA_MISMATCH, {"same name"}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const char *out[MOST];
    tegula_status status = order(rows[i].names, out);
    if (status != rows[i].status)
      fail_msg("%s...: %s", rows[i].names[0], tegula_status_name(status));
    assert_contains(error.message, "\"dir\"");
    for (int k = 0; k < 3 && rows[i].parts[k] != NULL; k++)
      assert_contains(error.message, rows[i].parts[k]);
    assert_true(error.hint[0] != '\0' && error.path[0] != '\0');
  }
}

static void messages_leave_the_folder_out(void **state) {
  (void)state;
  const char *names[] = {"dir/s_0", "dir/s_2"};
  assert_int_equal(tegula__names_order((char **)names, 2, "dir/", &error), TEGULA_INCOMPLETE);
  assert_contains(error.message, "number 1 (\"s_1\") is missing between \"s_0\" and \"s_2\"");
  assert_string_equal(error.path, "dir/s_0");
}

/* Twelve names as a shell expands part_*. */
static void case_12_unpadded_numbers(void **state) {
  (void)state;
  const char *shell[12] = {"part_0", "part_1", "part_10", "part_11", "part_2", "part_3",
                           "part_4", "part_5", "part_6",  "part_7",  "part_8", "part_9"};
  assert_int_equal(tegula__names_check_order(shell, 12, &error), TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "\"part_2\" comes after \"part_11\"");
  assert_contains(error.hint, "--as-given");
  assert_int_equal(tegula__names_order((char **)shell, 12, "dir", &error), TEGULA_OK);
  for (int i = 0; i < 12; i++) {
    char name[32];
    snprintf(name, sizeof name, "part_%d", i);
    assert_string_equal(shell[i], name);
  }
  assert_int_equal(tegula__names_check_order(shell, 12, &error), TEGULA_OK);
}

static void lists_are_checked_where_they_are_sequences(void **state) {
  (void)state;
  static const struct {
    const char *names[MOST];
    tegula_status status;
  } rows[] = {{{"x"}, TEGULA_OK},
              {{"x", "y"}, TEGULA_OK},
              {{"b", "a1", "a0"}, TEGULA_OK},
              {{"s_1", "s_1"}, TEGULA_OK},
              {{"a2_b1", "a1_b2"}, TEGULA_OK},
              {{"d/s_1", "e/s_0"}, TEGULA_OK},
              {{"s_01", "s_02", "s_10"}, TEGULA_OK},
              {{"s_2", "s_7"}, TEGULA_OK},
              {{"part_1", "part_10", "part_2"}, TEGULA_INVALID_ARGUMENT},
              {{"run3/s_1", "run3/s_0"}, TEGULA_INVALID_ARGUMENT},
              {{"run1_part9", "run2_part1"}, TEGULA_OK},
              {{"run1_part1", "run1_part12", "run1_part2", "run2_part1"}, TEGULA_INVALID_ARGUMENT},
              {{"final", "part10", "part9", "x"}, TEGULA_INVALID_ARGUMENT},
              {{"s_100000000000000000000", "s_99999999999999999999"}, TEGULA_INVALID_ARGUMENT}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    assert_int_equal(tegula__names_check_order(rows[i].names, count_names(rows[i].names), &error),
                     rows[i].status);
}

/* A quadratic walk over this many names would take minutes. */
static void many_names_are_quick(void **state) {
  (void)state;
  enum { COUNT = 100000 };
  char **names = malloc(COUNT * sizeof *names);
  char *texts = malloc((size_t)COUNT * 32);
  assert_true(names != NULL && texts != NULL);
  for (int i = 0; i < COUNT; i++) {
    names[i] = texts + (size_t)i * 32;
    /* a permutation: 7919 is prime */
    snprintf(names[i], 32, "shard_%d.npy", (int)((int64_t)i * 7919 % COUNT));
  }
  double start = tegula__now();
  assert_int_equal(tegula__names_order(names, COUNT, "dir", &error), TEGULA_OK);
  assert_true(tegula__now() - start < 10);
  assert_string_equal(names[0], "shard_0.npy");
  assert_string_equal(names[54321], "shard_54321.npy");
  free(names);
  free(texts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sequences_come_out_in_numeric_order),
      cmocka_unit_test(others_are_refused_by_name),
      cmocka_unit_test(messages_leave_the_folder_out),
      cmocka_unit_test(case_12_unpadded_numbers),
      cmocka_unit_test(lists_are_checked_where_they_are_sequences),
      cmocka_unit_test(many_names_are_quick),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
