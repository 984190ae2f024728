/* portable: byte swap, transpose and unshuffle in plain C, right on every processor; the reference
 * the other tables are tested against.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel_priv.h"

/* Groups of 2 and 4 bytes go eight bytes at a time. */
static void swap2(void *dst, const void *src, size_t count) {
  const uint64_t every_second = UINT64_C(0x00ff00ff00ff00ff);
  char *to = dst;
  const char *from = src;
  size_t whole = count - count % 4;
  for (size_t at = 0; at < whole; at += 4) {
    uint64_t four;
    memcpy(&four, from + 2 * at, 8);
    four = (four & every_second) << 8 | (four >> 8 & every_second);
    memcpy(to + 2 * at, &four, 8);
  }
  for (size_t at = whole; at < count; at++) tegula__kernel_swap_one2(to + 2 * at, from + 2 * at);
}

static void swap4(void *dst, const void *src, size_t count) {
  char *to = dst;
  const char *from = src;
  size_t whole = count - count % 2;
  for (size_t at = 0; at < whole; at += 2) {
    uint64_t two;
    memcpy(&two, from + 4 * at, 8);
    two = __builtin_bswap64(two);
    two = two << 32 | two >> 32;
    memcpy(to + 4 * at, &two, 8);
  }
  for (size_t at = whole; at < count; at++) tegula__kernel_swap_one4(to + 4 * at, from + 4 * at);
}

static void swap8(void *dst, const void *src, size_t count) {
  char *to = dst;
  const char *from = src;
  for (size_t i = 0; i < count; i++) tegula__kernel_swap_one8(to + 8 * i, from + 8 * i);
}

static void write_part(char *dst, const char *src, size_t bytes, uint32_t swap_size) {
  switch (swap_size) {
    case 2:
      swap2(dst, src, bytes / 2);
      break;
    case 4:
      swap4(dst, src, bytes / 4);
      break;
    case 8:
      swap8(dst, src, bytes / 8);
      break;
    default:
      memcpy(dst, src, bytes);
  }
}

#define TARGET
#define WRITE_LINE(dst, line, swap, stream)                                                        \
  ((void)(stream), write_part(dst, line, TEGULA__KERNEL_LINE, swap))
#define WRITE_PART(dst, line, bytes, swap) write_part(dst, line, bytes, swap)
#define STREAM_END() (void)0

#define SIZE 1
#define TRANSPOSE(name) transpose1_##name
#define MICRO 1
#define MICRO_RUN(to, from, stride) (void)0
#include "kernel/transpose_template.h"

#define SIZE 2
#define TRANSPOSE(name) transpose2_##name
#define MICRO 1
#define MICRO_RUN(to, from, stride) (void)0
#include "kernel/transpose_template.h"

#define SIZE 4
#define TRANSPOSE(name) transpose4_##name
#define MICRO 1
#define MICRO_RUN(to, from, stride) (void)0
#include "kernel/transpose_template.h"

#define SIZE 8
#define TRANSPOSE(name) transpose8_##name
#define MICRO 1
#define MICRO_RUN(to, from, stride) (void)0
#include "kernel/transpose_template.h"

#define SIZE 16
#define TRANSPOSE(name) transpose16_##name
#define MICRO 1
#define MICRO_RUN(to, from, stride) (void)0
#include "kernel/transpose_template.h"

/* The compilers' own vectors: 16 bytes wide on every processor that has such registers. */
typedef unsigned char bytes16 __attribute__((vector_size(16)));
typedef uint16_t units8 __attribute__((vector_size(16)));

static inline bytes16 load16(const char *from) {
  bytes16 value;
  memcpy(&value, from, 16);
  return value;
}

#define LANES 1
#define WIDE bytes16
#define WIDE_LOAD(from) load16(from)
#define WIDE_GATHER(from, step) load16(from)
#define WIDE_STORE(to, value) memcpy(to, &(value), 16)
#define WIDE_SCATTER(to, step, value) memcpy(to, &(value), 16)
#define WIDE_LOW1(a, b)                                                                            \
  __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define WIDE_HIGH1(a, b)                                                                           \
  __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define WIDE_LOW8(a, b)                                                                            \
  __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define WIDE_HIGH8(a, b)                                                                           \
  __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#define WIDE_SPLAT(byte) ((bytes16){0} + (unsigned char)(byte))
#define WIDE_XOR(a, b) ((a) ^ (b))
#define WIDE_AND(a, b) ((a) & (b))
#define WIDE_LEFT(a, bits) ((bytes16)((units8)(a) << (bits)))
#define WIDE_RIGHT(a, bits) ((bytes16)((units8)(a) >> (bits)))
#include "kernel/unshuffle_template.h"

#include "kernel/shuffle_template.h"

const tegula__kernels tegula__kernel_portable = {.name = "portable", TEGULA__KERNEL_FUNCTIONS};
