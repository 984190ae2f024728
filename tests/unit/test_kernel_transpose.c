/* Transposes of every table against the sentence in kernel.h, for random sizes, strides of both
 * signs, alignments and swaps.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"

typedef struct shape {
  int64_t rows, columns;
  int64_t dst_stride, src_stride;
  int64_t dst_offset, src_offset; /* of the first item from the start of its memory, bytes */
  uint32_t size, swap;
  bool stream;
} shape;

static tegula__transpose_fn transpose_of(const tegula__kernels *kernels, uint32_t size) {
  switch (size) {
    case 1:
      return kernels->transpose1;
    case 2:
      return kernels->transpose2;
    case 4:
      return kernels->transpose4;
    case 8:
      return kernels->transpose8;
    default:
      return kernels->transpose16;
  }
}

static void transpose_naively(char *dst, const char *src, const shape *s) {
  for (int64_t r = 0; r < s->rows; r++)
    for (int64_t c = 0; c < s->columns; c++)
      for (uint32_t b = 0; b < s->size; b++) {
        uint32_t from = b - b % s->swap + (s->swap - 1 - b % s->swap);
        dst[c * s->dst_stride + r * s->size + b] = src[r * s->src_stride + c * s->size + from];
      }
}

static int64_t span(int64_t lines, int64_t stride, int64_t line) {
  return lines ? (lines - 1) * llabs(stride) + line : 0;
}

/* Makes memory of exactly the needed size (64-byte aligned start plus the offset), runs and
 * compares all of it. */
static void check_transpose(const tegula__kernels *kernels, shape s) {
  int64_t dst_bytes = s.dst_offset + span(s.columns, s.dst_stride, s.rows * s.size);
  int64_t src_bytes = s.src_offset + span(s.rows, s.src_stride, s.columns * s.size);
  char *dst = aligned_alloc(64, ((size_t)dst_bytes + 127) / 64 * 64),
       *expected = malloc((size_t)dst_bytes + 1);
  char *src_block = malloc((size_t)src_bytes + 1), *src = src_block;
  for (int64_t i = 0; i < src_bytes; i++) src[i] = (char)(i * 167 + (i >> 7) * 13 + 5);
  memset(dst, 0x55, (size_t)dst_bytes + 1);
  memset(expected, 0x55, (size_t)dst_bytes + 1);
  int64_t dst_first = s.dst_offset + (s.dst_stride < 0 ? (s.columns - 1) * -s.dst_stride : 0);
  int64_t src_first = s.src_offset + (s.src_stride < 0 ? (s.rows - 1) * -s.src_stride : 0);
  transpose_naively(expected + dst_first, src + src_first, &s);
  transpose_of(kernels, s.size)(dst + dst_first, s.dst_stride, src + src_first, s.src_stride,
                                s.rows, s.columns, s.swap, s.stream);
  if (memcmp(dst, expected, (size_t)dst_bytes + 1) != 0)
    fail_msg("%s: transpose%u of %lld x %lld, strides %lld <- %lld, offsets %lld <- %lld, swap %u, "
             "stream %d",
             kernels->name, s.size, (long long)s.rows, (long long)s.columns,
             (long long)s.dst_stride, (long long)s.src_stride, (long long)s.dst_offset,
             (long long)s.src_offset, s.swap, s.stream);
  free(dst);
  free(expected);
  free(src_block);
}

static shape random_shape(uint32_t size, int64_t most) {
  shape s = {.size = size, .rows = 1 + rand() % most, .columns = 1 + rand() % most};
  s.dst_offset = rand() % 3 ? 0 : rand() % 70;
  s.src_offset = rand() % 3 ? 0 : rand() % 70;
  s.dst_stride = s.rows * size + (rand() % 2 ? rand() % 40 : 0);
  s.src_stride = s.columns * size + (rand() % 2 ? rand() % 40 : 0);
  if (rand() % 3 == 0) s.dst_stride = (s.dst_stride + 63) / 64 * 64;
  if (rand() % 3 == 0) s.src_stride = (s.src_stride + 63) / 64 * 64;
  if (rand() % 5 == 0) s.dst_stride = -s.dst_stride;
  if (rand() % 5 == 0) s.src_stride = -s.src_stride;
  s.swap = 1u << rand() % 4;
  if (s.swap > size) s.swap = size == 16 ? 8 : size;
  s.stream = rand() % 2;
  return s;
}

static void random_planes_are_transposed(void **state) {
  (void)state;
  srand(2);
  for (size_t table = 0; tegula__kernel_at(table); table++)
    for (uint32_t size = 1; size <= 16; size *= 2)
      for (int round = 0; round < 250; round++)
        check_transpose(tegula__kernel_at(table), random_shape(size, round % 2 ? 40 : 150));
}

static void planes_larger_than_a_block_of_rows_are_transposed(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++)
    for (uint32_t size = 1; size <= 16; size *= 2) {
      shape s = {
          .rows = 1100, .columns = 70, .size = size, .swap = size == 16 ? 8 : size, .stream = true};
      s.dst_offset = 48;
      s.dst_stride = 1100 * 16 + 32; /* a multiple of 64 */
      s.src_offset = 16;
      s.src_stride = 70 * 16 + 32;
      check_transpose(tegula__kernel_at(table), s);
      s.dst_offset = 0;
      s.rows = 1024;
      check_transpose(tegula__kernel_at(table), s);
    }
}

static void nothing_is_written_for_empty_planes(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++)
    for (uint32_t size = 1; size <= 16; size *= 2) {
      shape s = {
          .rows = 0, .columns = 5, .dst_stride = 80, .src_stride = 80, .size = size, .swap = 1};
      check_transpose(tegula__kernel_at(table), s);
      s.rows = 5;
      s.columns = 0;
      check_transpose(tegula__kernel_at(table), s);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_planes_are_transposed),
      cmocka_unit_test(planes_larger_than_a_block_of_rows_are_transposed),
      cmocka_unit_test(nothing_is_written_for_empty_planes),
  };
  return cmocka_run_group_tests_name("kernel: transpose", tests, NULL, NULL);
}
