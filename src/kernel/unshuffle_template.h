/* unshuffle_template: planes of bytes back to items, and rows of bits back to a plane of bytes;
 * included once by each file of variants.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The includer defines
 *   TARGET                function attribute, may be empty
 *   WIDE                  a register of LANES x 16 bytes; the lanes work side by side, each on 16
 *                         columns
 *   LANES
 *   WIDE_LOAD(from)       LANES x 16 neighbouring bytes
 *   WIDE_SCATTER(to, step, value)
 *                         lane k goes to to + k * step; or, instead of it,
 *   WIDE_SCATTER_ROWS(to, a, rows)
 *                         lane k of a[row] goes to to + 16 * (rows * k + row); rows is a power of
 *                         two, `a` is not needed after
 *   WIDE_LOW1(a, b), WIDE_HIGH1(a, b)
 *                         the lower (upper) 8 bytes of each lane of a and b, interleaved
 *   WIDE_SPLAT(byte), WIDE_XOR(a, b), WIDE_AND(a, b)
 *   WIDE_LEFT(a, bits), WIDE_RIGHT(a, bits)
 *                         shifts of 16-bit units
 *
 * Rows k and k + S/2 are interleaved log2(S) times; S rows of 16 columns are then 16 dense items of
 * S bytes. */

#ifndef WIDE_SCATTER_ROWS
#define WIDE_SCATTER_ROWS(to, a, rows)                                                             \
  do {                                                                                             \
    _Pragma("GCC unroll 16") for (int k_ = 0; k_ < (rows); k_++)                                   \
        WIDE_SCATTER((to) + 16 * k_, 16 * (rows), (a)[k_]);                                        \
  } while (0)
#endif

/* a: `rows` registers (a power of two), interleaved in place. Unrolled wholly: `rows` is a constant
 * where it is called. */
TARGET static inline __attribute__((always_inline)) void interleave(WIDE *a, int rows) {
  WIDE b[16];
  for (int half = rows / 2, round = 1; round < rows; round *= 2) {
#pragma GCC unroll 16
    for (int k = 0; k < half; k++) {
      b[2 * k] = WIDE_LOW1(a[k], a[k + half]);
      b[2 * k + 1] = WIDE_HIGH1(a[k], a[k + half]);
    }
#pragma GCC unroll 16
    for (int k = 0; k < rows; k++) a[k] = b[k];
  }
}

/* S registers of 16 columns to 16 items in each lane; 16 rows in two halves, so that one half at a
 * time is in registers. */
TARGET static inline __attribute__((always_inline)) void interleave_rows(WIDE *a, const char *src,
                                                                         size_t plane, int size) {
  WIDE upper[8], lower[8];
  if (size < 16) {
#pragma GCC unroll 8
    for (int k = 0; k < size; k++) a[k] = WIDE_LOAD(src + (size_t)k * plane);
    interleave(a, size);
    return;
  }
#pragma GCC unroll 8
  for (int k = 0; k < 8; k++) lower[k] = WIDE_LOAD(src + (size_t)k * plane);
  interleave(lower, 8);
#pragma GCC unroll 8
  for (int k = 0; k < 8; k++) upper[k] = WIDE_LOAD(src + (size_t)(k + 8) * plane);
  interleave(upper, 8);
#pragma GCC unroll 8
  for (int k = 0; k < 8; k++) {
    a[2 * k] = WIDE_LOW8(lower[k], upper[k]);
    a[2 * k + 1] = WIDE_HIGH8(lower[k], upper[k]);
  }
}

TARGET static inline __attribute__((always_inline)) void
unshuffle_run(char *dst, const char *src, size_t plane, size_t count, int size) {
  const size_t columns = 16 * LANES;
  size_t at = 0;
  for (; at + columns <= count; at += columns) {
    WIDE a[16];
    interleave_rows(a, src + at, plane, size);
    WIDE_SCATTER_ROWS(dst + at * (size_t)size, a, size);
  }
  for (; at < count; at++)
    for (int k = 0; k < size; k++) dst[at * (size_t)size + (size_t)k] = src[(size_t)k * plane + at];
}

TARGET static void unshuffle2(char *dst, const char *src, size_t plane, size_t count) {
  unshuffle_run(dst, src, plane, count, 2);
}
TARGET static void unshuffle4(char *dst, const char *src, size_t plane, size_t count) {
  unshuffle_run(dst, src, plane, count, 4);
}
TARGET static void unshuffle8(char *dst, const char *src, size_t plane, size_t count) {
  unshuffle_run(dst, src, plane, count, 8);
}
TARGET static void unshuffle16(char *dst, const char *src, size_t plane, size_t count) {
  unshuffle_run(dst, src, plane, count, 16);
}

/* Swaps the bits of `a` that `mask << shift` covers with those of `b` that `mask` covers: one step
 * of transposing 8 x 8 bits. */
#define SWAP_BITS(a, b, mask, shift)                                                               \
  do {                                                                                             \
    WIDE differ_ = WIDE_AND(WIDE_XOR(WIDE_RIGHT(a, shift), b), mask);                              \
    b = WIDE_XOR(b, differ_);                                                                      \
    a = WIDE_XOR(a, WIDE_LEFT(differ_, shift));                                                    \
  } while (0)

/* Registers are rows of bits, first row lowest; afterwards register j holds in each byte what bits
 * j of the rows were. */
TARGET static inline __attribute__((always_inline)) void transpose_bits(WIDE *a) {
  const WIDE fours = WIDE_SPLAT(0x0f), twos = WIDE_SPLAT(0x33), ones = WIDE_SPLAT(0x55);
#pragma GCC unroll 4
  for (int k = 0; k < 4; k++) SWAP_BITS(a[k], a[k + 4], fours, 4);
#pragma GCC unroll 4
  for (int k = 0; k < 4; k++) SWAP_BITS(a[k / 2 * 4 + k % 2], a[k / 2 * 4 + k % 2 + 2], twos, 2);
#pragma GCC unroll 4
  for (int k = 0; k < 4; k++) SWAP_BITS(a[2 * k], a[2 * k + 1], ones, 1);
}

TARGET static void join_bits(char *dst, const char *src, size_t row_stride, size_t groups) {
  const size_t columns = 16 * LANES;
  size_t at = 0;
  for (; at + columns <= groups; at += columns) {
    WIDE a[16];
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) a[k] = WIDE_LOAD(src + (size_t)k * row_stride + at);
    transpose_bits(a);
    interleave(a, 8);
    WIDE_SCATTER_ROWS(dst + 8 * at, a, 8);
  }
  tegula__kernel_join_bits_rest(dst, src, row_stride, at, groups);
}

#undef SWAP_BITS
