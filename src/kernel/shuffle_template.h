/* shuffle_template: items to planes of bytes, and a plane of bytes to rows of bits: what
 * unshuffle_template undoes; included behind it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The includer defines what unshuffle_template takes, and
 *   WIDE_GATHER(from, step)      lane k comes from from + k * step; or, instead of it,
 *   WIDE_GATHER_ROWS(a, from, rows)
 *                                lane k of a[row] comes from from + 16 * (rows * k + row); rows is
 *                                a power of two
 *   WIDE_STORE(to, value)        LANES x 16 neighbouring bytes
 *
 * A lane's 16 items of S bytes are S registers. Bytes of plane k, column i, are wanted where item
 * i, byte k is: the bits of a byte's place, (register, byte), are i3 i2 i1 i0 k.. and become k.. i3
 * i2 i1 i0. One interleaving turns them by one to the left: four do it. */

#ifndef WIDE_GATHER_ROWS
#define WIDE_GATHER_ROWS(a, from, rows)                                                            \
  do {                                                                                             \
    _Pragma("GCC unroll 16") for (int k_ = 0; k_ < (rows); k_++)(a)[k_] =                          \
        WIDE_GATHER((from) + 16 * k_, 16 * (rows));                                                \
  } while (0)
#endif

/* a: `rows` registers (a power of two). Unrolled wholly: `rows` is a constant where it is
 * called. */
TARGET static inline __attribute__((always_inline)) void take_apart(WIDE *a, int rows) {
  WIDE b[16];
#pragma GCC unroll 4
  for (int round = 0; round < 4; round++) {
#pragma GCC unroll 16
    for (int k = 0; k < rows / 2; k++) {
      b[2 * k] = WIDE_LOW1(a[k], a[k + rows / 2]);
      b[2 * k + 1] = WIDE_HIGH1(a[k], a[k + rows / 2]);
    }
#pragma GCC unroll 16
    for (int k = 0; k < rows; k++) a[k] = b[k];
  }
}

TARGET static inline __attribute__((always_inline)) void shuffle_run(char *dst, const char *src,
                                                                     size_t count, int size) {
  const size_t columns = 16 * LANES;
  size_t at = 0;
  for (; at + columns <= count; at += columns) {
    WIDE a[16];
    WIDE_GATHER_ROWS(a, src + at * (size_t)size, size);
    take_apart(a, size);
#pragma GCC unroll 16
    for (int k = 0; k < size; k++) WIDE_STORE(dst + (size_t)k * count + at, a[k]);
  }
  for (; at < count; at++)
    for (int k = 0; k < size; k++) dst[(size_t)k * count + at] = src[at * (size_t)size + (size_t)k];
}

TARGET static void shuffle2(char *dst, const char *src, size_t count) {
  shuffle_run(dst, src, count, 2);
}
TARGET static void shuffle4(char *dst, const char *src, size_t count) {
  shuffle_run(dst, src, count, 4);
}
TARGET static void shuffle8(char *dst, const char *src, size_t count) {
  shuffle_run(dst, src, count, 8);
}
TARGET static void shuffle16(char *dst, const char *src, size_t count) {
  shuffle_run(dst, src, count, 16);
}

TARGET static void split_bits(char *dst, size_t row_stride, const char *src, size_t groups) {
  const size_t columns = 16 * LANES;
  size_t at = 0;
  for (; at + columns <= groups; at += columns) {
    WIDE a[16];
    WIDE_GATHER_ROWS(a, src + 8 * at, 8);
    take_apart(a, 8);
    transpose_bits(a);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) WIDE_STORE(dst + (size_t)k * row_stride + at, a[k]);
  }
  tegula__kernel_split_bits_rest(dst, row_stride, src, at, groups);
}

static const tegula__forward_kernels forward_kernels = {.shuffle2 = shuffle2,
                                                        .shuffle4 = shuffle4,
                                                        .shuffle8 = shuffle8,
                                                        .shuffle16 = shuffle16,
                                                        .split_bits = split_bits};
