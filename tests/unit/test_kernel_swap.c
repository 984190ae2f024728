/* Byte swaps of every table against one byte at a time, at any alignment, in place too, and nothing
 * written beside.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"

static void swap_naively(unsigned char *dst, const unsigned char *src, size_t bytes, size_t group) {
  for (size_t i = 0; i < bytes; i++) dst[i] = src[i - i % group + (group - 1 - i % group)];
}

static tegula__swap_fn swap_of(const tegula__kernels *kernels, size_t group) {
  return group == 2 ? kernels->swap2 : group == 4 ? kernels->swap4 : kernels->swap8;
}

/* `bytes` bytes from source offset `from` to destination offset `to`; memory is exactly as large as
 * it must be. */
static void check_swap(const tegula__kernels *kernels, size_t group, size_t bytes, size_t from,
                       size_t to) {
  enum { GUARD = 64 };
  unsigned char *src = malloc(from + bytes + 1), *expected = malloc(to + bytes + GUARD),
                *dst = malloc(to + bytes + GUARD);
  for (size_t i = 0; i < from + bytes; i++) src[i] = (unsigned char)(i * 131 + (i >> 8) * 17 + 3);
  memset(expected, 0xEE, to + bytes + GUARD);
  memset(dst, 0xEE, to + bytes + GUARD);
  swap_naively(expected + to, src + from, bytes, group);
  swap_of(kernels, group)(dst + to, src + from, bytes / group);
  if (memcmp(dst, expected, to + bytes + GUARD) != 0)
    fail_msg("%s: swap%zu of %zu bytes from +%zu to +%zu", kernels->name, group, bytes, from, to);
  swap_of(kernels, group)(src + from, src + from, bytes / group);
  if (memcmp(src + from, expected + to, bytes) != 0)
    fail_msg("%s: swap%zu of %zu bytes in place at +%zu", kernels->name, group, bytes, from);
  free(src);
  free(expected);
  free(dst);
}

static void bytes_of_each_group_are_reversed(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++)
    for (size_t group = 2; group <= 8; group *= 2)
      for (size_t count = 0; count < 100; count++)
        for (size_t offset = 0; offset < 9; offset += 1 + count % 3)
          check_swap(tegula__kernel_at(table), group, count * group, offset, offset / 2);
}

static void long_runs_are_swapped_at_any_alignment(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++)
    for (size_t group = 2; group <= 8; group *= 2)
      for (size_t to = 0; to < 66; to += 7)
        check_swap(tegula__kernel_at(table), group,
                   TEGULA__KERNEL_STREAM_BYTES + 3 * to / 7 * group, to / 2, to);
}

static void a_known_value_is_reversed(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++) {
    unsigned char out[16];
    const unsigned char in[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    tegula__kernel_at(table)->swap4(out, in, 4);
    assert_memory_equal(
        out, ((unsigned char[]){4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9, 16, 15, 14, 13}), 16);
    tegula__swap_groups(tegula__kernel_at(table), out, in, 16, 8);
    assert_memory_equal(
        out, ((unsigned char[]){8, 7, 6, 5, 4, 3, 2, 1, 16, 15, 14, 13, 12, 11, 10, 9}), 16);
    tegula__swap_groups(tegula__kernel_at(table), out, in, 16, 1);
    assert_memory_equal(out, in, 16);
  }
}

static void tables_have_names_and_the_last_is_selected(void **state) {
  (void)state;
  size_t count = 0;
  assert_string_equal(tegula__kernel_at(0)->name, "portable");
  while (tegula__kernel_at(count)) count++;
  assert_ptr_equal(tegula__kernel_select(), tegula__kernel_at(count - 1));
  assert_null(tegula__kernel_at(SIZE_MAX));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_of_each_group_are_reversed),
      cmocka_unit_test(long_runs_are_swapped_at_any_alignment),
      cmocka_unit_test(a_known_value_is_reversed),
      cmocka_unit_test(tables_have_names_and_the_last_is_selected),
  };
  return cmocka_run_group_tests_name("kernel: swap", tests, NULL, NULL);
}
