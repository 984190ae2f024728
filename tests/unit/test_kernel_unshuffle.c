/* Byte and bit shuffles in both directions: every table against a loop that takes one byte (bit) at
 * a time, and nothing written beside.
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

enum { GUARD = 64 };

static unsigned char *numbers(size_t bytes) {
  unsigned char *out = calloc(bytes + 1, 1);
  for (size_t i = 0; i < bytes; i++) out[i] = (unsigned char)((i * 2654435761u) >> 13);
  return out;
}

/* What an encoder does: byte k of item i goes to plane k, the rest behind the last item stays. */
static void shuffle_naively(unsigned char *dst, const unsigned char *src, size_t bytes,
                            size_t item) {
  size_t count = bytes / item;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < item; k++) dst[k * count + i] = src[i * item + k];
  for (size_t i = count * item; i < bytes; i++) dst[i] = src[i];
}

static void check_beside(const tegula__kernels *kernels, const unsigned char *out, size_t bytes,
                         size_t item, size_t offset) {
  for (size_t i = 0; i < offset + bytes + GUARD; i++)
    if ((i < offset || i >= offset + bytes) && out[i] != 0xEE)
      fail_msg("%s: %zu bytes of items of %zu: byte %zu written", kernels->name, bytes, item, i);
}

/* Memory is exactly as large as it must be, so that a sanitizer sees reads beside it; `offset`
 * misaligns both sides. */
static void check_unshuffle(const tegula__kernels *kernels, size_t bytes, size_t item,
                            size_t offset) {
  unsigned char *plain = numbers(bytes), *in = malloc(offset + bytes + 1),
                *out = malloc(offset + bytes + GUARD);
  unsigned char *source = in + 1; /* it ends where the block ends */
  shuffle_naively(source + offset, plain, bytes, item);
  memset(out, 0xEE, offset + bytes + GUARD);
  tegula__unshuffle(kernels, out + offset, source + offset, bytes, item);
  if (memcmp(out + offset, plain, bytes) != 0)
    fail_msg("%s: %zu bytes of items of %zu at +%zu", kernels->name, bytes, item, offset);
  check_beside(kernels, out, bytes, item, offset);
  free(plain);
  free(in);
  free(out);
}

static void check_shuffle(const tegula__kernels *kernels, size_t bytes, size_t item,
                          size_t offset) {
  unsigned char *plain = numbers(bytes), *in = malloc(offset + bytes + 1),
                *out = malloc(offset + bytes + GUARD), *expected = malloc(bytes + 1);
  unsigned char *source = in + 1;
  memcpy(source + offset, plain, bytes);
  shuffle_naively(expected, plain, bytes, item);
  memset(out, 0xEE, offset + bytes + GUARD);
  tegula__shuffle(kernels, out + offset, source + offset, bytes, item);
  if (memcmp(out + offset, expected, bytes) != 0)
    fail_msg("%s: shuffled %zu bytes of items of %zu at +%zu", kernels->name, bytes, item, offset);
  check_beside(kernels, out, bytes, item, offset);
  free(plain);
  free(in);
  free(out);
  free(expected);
}

static void check_both(const tegula__kernels *kernels, size_t bytes, size_t item, size_t offset) {
  check_unshuffle(kernels, bytes, item, offset);
  check_shuffle(kernels, bytes, item, offset);
}

static void items_of_each_size_come_back(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++)
    for (size_t item = 1; item <= 33; item++)
      for (size_t bytes = 0; bytes <= 200; bytes++)
        check_both(tegula__kernel_at(table), bytes, item, 0);
}

static void many_items_come_back_at_any_alignment(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++)
    for (size_t item = 1; item <= 33; item++)
      for (size_t offset = 0; offset < 40; offset += 13)
        check_both(tegula__kernel_at(table), 4096 * item + 31 * (offset + 1) + item - 1, item,
                   offset);
}

static void items_larger_than_the_data_are_copied(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++) {
    check_both(tegula__kernel_at(table), 7, 8, 0);
    check_both(tegula__kernel_at(table), 1000, SIZE_MAX, 3);
    check_both(tegula__kernel_at(table), 2000, 1000, 0);
  }
}

/* Items from the middle of the planes, written nowhere else. */
static void check_some(const tegula__kernels *kernels, size_t plane, size_t first, size_t count,
                       size_t item) {
  unsigned char *plain = numbers(plane * item), *in = malloc(plane * item),
                *out = malloc(count * item + GUARD);
  shuffle_naively(in, plain, plane * item, item);
  memset(out, 0xEE, count * item + GUARD);
  tegula__unshuffle_items(kernels, out, in + first, plane, count, item);
  if (memcmp(out, plain + first * item, count * item) != 0)
    fail_msg("%s: %zu of %zu items of %zu", kernels->name, count, plane, item);
  for (size_t i = count * item; i < count * item + GUARD; i++) assert_int_equal(out[i], 0xEE);
  free(plain);
  free(in);
  free(out);
}

static void some_items_come_out_of_their_planes(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++)
    for (size_t item = 1; item <= 17; item++)
      for (size_t first = 0; first < 150; first += 37)
        for (size_t count = 0; count <= 150 - first; count += 1 + count / 8)
          check_some(tegula__kernel_at(table), 150, first, count, item);
}

static void known_bytes_come_back(void **state) {
  (void)state;
  /* four items of three bytes and two bytes over */
  const unsigned char in[] = {1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12, 13, 14};
  unsigned char out[14];
  for (size_t table = 0; tegula__kernel_at(table); table++) {
    tegula__unshuffle(tegula__kernel_at(table), out, in, 14, 3);
    for (size_t i = 0; i < 14; i++) assert_int_equal(out[i], i + 1);
    unsigned char again[14];
    tegula__shuffle(tegula__kernel_at(table), again, out, 14, 3);
    assert_memory_equal(again, in, 14);
  }
}

/* Bit b of byte 8 * g + j goes to bit j of byte g of row b. */
static void check_join(const tegula__kernels *kernels, size_t groups, size_t stride) {
  size_t used = groups > 0 ? 7 * stride + groups : 0;
  unsigned char *plain = numbers(8 * groups), *rows = calloc(used + 1, 1),
                *out = malloc(8 * groups + GUARD);
  unsigned char *source = rows + 1;
  for (size_t i = 0; i < 8 * groups; i++)
    for (size_t bit = 0; bit < 8; bit++)
      source[bit * stride + i / 8] |= (unsigned char)((plain[i] >> bit & 1) << i % 8);
  memset(out, 0xEE, 8 * groups + GUARD);
  kernels->join_bits((char *)out, (const char *)source, stride, groups);
  if (memcmp(out, plain, 8 * groups) != 0)
    fail_msg("%s: %zu groups, rows %zu apart", kernels->name, groups, stride);
  for (size_t i = 8 * groups; i < 8 * groups + GUARD; i++) assert_int_equal(out[i], 0xEE);
  free(plain);
  free(rows);
  free(out);
}

/* The other way: each row is written, and nothing between the rows. */
static void check_split(const tegula__kernels *kernels, size_t groups, size_t stride) {
  size_t used = 8 * stride + GUARD;
  unsigned char *plain = numbers(8 * groups), *expected = malloc(used), *out = malloc(used),
                *in = malloc(8 * groups + 1);
  memcpy(in + 1, plain, 8 * groups); /* it ends where the block ends */
  memset(expected, 0xEE, used);
  for (size_t bit = 0; bit < 8; bit++)
    for (size_t g = 0; g < groups; g++) {
      unsigned byte = 0;
      for (size_t j = 0; j < 8; j++) byte |= (unsigned)(plain[8 * g + j] >> bit & 1) << j;
      expected[bit * stride + g] = (unsigned char)byte;
    }
  memset(out, 0xEE, used);
  kernels->forward->split_bits((char *)out, stride, (const char *)in + 1, groups);
  if (memcmp(out, expected, used) != 0)
    fail_msg("%s: %zu groups split, rows %zu apart", kernels->name, groups, stride);
  free(plain);
  free(expected);
  free(out);
  free(in);
}

static void bytes_become_rows_of_bits(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++)
    for (size_t groups = 0; groups <= 200; groups++) {
      check_split(tegula__kernel_at(table), groups, groups);
      check_split(tegula__kernel_at(table), groups, groups + groups % 7);
    }
}

static void rows_of_bits_become_bytes(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++)
    for (size_t groups = 0; groups <= 200; groups++) {
      check_join(tegula__kernel_at(table), groups, groups);
      check_join(tegula__kernel_at(table), groups, groups + groups % 7);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(items_of_each_size_come_back),
      cmocka_unit_test(many_items_come_back_at_any_alignment),
      cmocka_unit_test(items_larger_than_the_data_are_copied),
      cmocka_unit_test(some_items_come_out_of_their_planes),
      cmocka_unit_test(known_bytes_come_back),
      cmocka_unit_test(rows_of_bits_become_bytes),
      cmocka_unit_test(bytes_become_rows_of_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
