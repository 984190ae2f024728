/* kernel_priv: the tables, and what their files share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each file of variants (portable.c, x86_ssse3.c, x86_avx2.c, x86_avx512.c, arm_neon.c) defines its
 * swaps, transposes and shuffles as static functions and one table. A file for a processor that is
 * not the one compiled for holds none. */
#ifndef TEGULA_KERNEL_KERNEL_PRIV_H
#define TEGULA_KERNEL_KERNEL_PRIV_H

#include <string.h>

#include "kernel/kernel.h"

#if defined(__x86_64__)
#define TEGULA__KERNEL_X86 1
#else
#define TEGULA__KERNEL_X86 0
#endif
#if defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TEGULA__KERNEL_NEON 1
#else
#define TEGULA__KERNEL_NEON 0
#endif

extern const tegula__kernels tegula__kernel_portable;
#if TEGULA__KERNEL_X86
extern const tegula__kernels tegula__kernel_ssse3;
extern const tegula__kernels tegula__kernel_avx2;
extern const tegula__kernels tegula__kernel_avx512;
#endif
#if TEGULA__KERNEL_NEON
extern const tegula__kernels tegula__kernel_neon;
#endif

/* The functions of a table, by the names they have in every file of variants. */
#define TEGULA__KERNEL_FUNCTIONS                                                                   \
  .swap2 = swap2, .swap4 = swap4, .swap8 = swap8, .transpose1 = transpose1_blocks,                 \
  .transpose2 = transpose2_blocks, .transpose4 = transpose4_blocks,                                \
  .transpose8 = transpose8_blocks, .transpose16 = transpose16_blocks, .unshuffle2 = unshuffle2,    \
  .unshuffle4 = unshuffle4, .unshuffle8 = unshuffle8, .unshuffle16 = unshuffle16,                  \
  .join_bits = join_bits, .forward = &forward_kernels

/* Bytes of a cache line: the transposes work in squares that are one line wide. */
enum { TEGULA__KERNEL_LINE = 64 };

/* Reverses one group; the tails of every variant. */
static inline void tegula__kernel_swap_one2(char *dst, const char *src) {
  uint16_t value;
  memcpy(&value, src, 2);
  value = __builtin_bswap16(value);
  memcpy(dst, &value, 2);
}

static inline void tegula__kernel_swap_one4(char *dst, const char *src) {
  uint32_t value;
  memcpy(&value, src, 4);
  value = __builtin_bswap32(value);
  memcpy(dst, &value, 4);
}

static inline void tegula__kernel_swap_one8(char *dst, const char *src) {
  uint64_t value;
  memcpy(&value, src, 8);
  value = __builtin_bswap64(value);
  memcpy(dst, &value, 8);
}

static inline void tegula__kernel_swap_one(char *dst, const char *src, uint32_t swap_size) {
  switch (swap_size) {
    case 2:
      tegula__kernel_swap_one2(dst, src);
      break;
    case 4:
      tegula__kernel_swap_one4(dst, src);
      break;
    default:
      tegula__kernel_swap_one8(dst, src);
  }
}

/* 8 x 8 bits in one word of 64, byte k being row k. */
static inline uint64_t tegula__kernel_transpose_bits(uint64_t x) {
  uint64_t t = (x ^ x >> 7) & UINT64_C(0x00aa00aa00aa00aa);
  x ^= t ^ t << 7;
  t = (x ^ x >> 14) & UINT64_C(0x0000cccc0000cccc);
  x ^= t ^ t << 14;
  t = (x ^ x >> 28) & UINT64_C(0x00000000f0f0f0f0);
  return x ^ t ^ t << 28;
}

/* Groups [at, groups) of tegula__join_bits_fn one by one. */
static inline void tegula__kernel_join_bits_rest(char *dst, const char *src, size_t row_stride,
                                                 size_t at, size_t groups) {
  for (; at < groups; at++) {
    uint64_t x = 0;
    for (size_t row = 0; row < 8; row++)
      x |= (uint64_t)(unsigned char)src[row * row_stride + at] << 8 * row;
    x = tegula__kernel_transpose_bits(x);
    for (size_t k = 0; k < 8; k++) dst[8 * at + k] = (char)(x >> 8 * k);
  }
}

/* Groups [at, groups) of tegula__split_bits_fn one by one. */
static inline void tegula__kernel_split_bits_rest(char *dst, size_t row_stride, const char *src,
                                                  size_t at, size_t groups) {
  for (; at < groups; at++) {
    uint64_t x = 0;
    for (size_t k = 0; k < 8; k++) x |= (uint64_t)(unsigned char)src[8 * at + k] << 8 * k;
    x = tegula__kernel_transpose_bits(x);
    for (size_t row = 0; row < 8; row++) dst[row * row_stride + at] = (char)(x >> 8 * row);
  }
}

#if TEGULA__KERNEL_X86 || TEGULA__KERNEL_NEON
/* Byte shuffle that reverses each group of 1 << row bytes within 16: row 0 changes nothing. */
static const uint8_t tegula__kernel_reversal[4][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14},
    {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12},
    {7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8},
};
#endif

#endif
