/* As much of cmocka as the unit tests of src/kernel need, for processors that it is not installed
 * for: the first failure ends the program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_TEST_CROSS_CMOCKA_H
#define TEGULA_TEST_CROSS_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
  const char *name;
  void (*function)(void **state);
};

#define cmocka_unit_test(function)                                                                 \
  { #function, function }

#define fail_msg(...)                                                                              \
  do {                                                                                             \
    fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                \
    fprintf(stderr, __VA_ARGS__);                                                                  \
    fputc('\n', stderr);                                                                           \
    exit(1);                                                                                       \
  } while (0)
#define assert_true(condition)                                                                     \
  do {                                                                                             \
    if (!(condition)) fail_msg("%s", #condition);                                                  \
  } while (0)
#define assert_null(pointer) assert_true((pointer) == NULL)
#define assert_non_null(pointer) assert_true((pointer) != NULL)
#define assert_ptr_equal(a, b) assert_true((const void *)(a) == (const void *)(b))
#define assert_int_equal(a, b) assert_true((unsigned long long)(a) == (unsigned long long)(b))
#define assert_string_equal(a, b) assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, size) assert_true(memcmp(a, b, size) == 0)

#define cmocka_run_group_tests_name(group, tests, setup, teardown)                                 \
  run_tests(group, tests, sizeof tests / sizeof *tests)
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
  run_tests(#tests, tests, sizeof tests / sizeof *tests)

static inline int run_tests(const char *group, const struct CMUnitTest *tests, size_t count) {
  for (size_t k = 0; k < count; k++) {
    void *state = NULL;
    tests[k].function(&state);
  }
  printf("%s: %zu passed\n", group, count);
  return 0;
}

#endif
