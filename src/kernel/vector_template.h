/* vector_template: byte swap and transpose by registers of bytes; included once by each file of
 * variants that has them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The includer defines
 *   TARGET                          function attribute, may be empty
 *   NARROW                          a register of 16 bytes
 *   NARROW_LOAD(from), NARROW_STORE(to, value)
 *   NARROW_LOW1(a, b), NARROW_HIGH1(a, b)
 *                                   items of 1 byte of the lower (upper) 8 bytes of a and b,
 *                                   interleaved
 *   NARROW_LOW2(a, b), NARROW_HIGH2(a, b)
 *                                   items of 2 bytes
 *   WIDE                            a register of LANES x 16 bytes; the lanes work side by side
 *   LANES
 *   WIDE_LOAD(from), WIDE_STORE(to, value)
 *                                   neighbouring bytes
 *   WIDE_STREAM(to, value)          the same past the caches, where `to` is aligned
 *   STREAM_END()                    makes streamed bytes visible like all others
 *   WIDE_GATHER(from, step)         lane k is 16 bytes at from + k * step
 *   WIDE_LOW4(a, b), WIDE_HIGH4, WIDE_LOW8, WIDE_HIGH8
 *                                   as the narrow ones, in each lane, items of 4 and 8 bytes
 *   WIDE_REVERSAL(swap_size)        what WIDE_REVERSE takes
 *   WIDE_REVERSE(value, reversal)   the bytes of each group of swap_size reversed */

enum { WIDE_BYTES = 16 * LANES };

TARGET static inline void swap_groups(char *dst, const char *src, size_t bytes,
                                      uint32_t swap_size) {
  const WIDE order = WIDE_REVERSAL(swap_size);
  size_t at = 0;
  for (; at + 4 * WIDE_BYTES <= bytes; at += 4 * WIDE_BYTES) {
    WIDE a[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) a[k] = WIDE_LOAD(src + at + k * WIDE_BYTES);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) WIDE_STORE(dst + at + k * WIDE_BYTES, WIDE_REVERSE(a[k], order));
  }
  for (; at + WIDE_BYTES <= bytes; at += WIDE_BYTES)
    WIDE_STORE(dst + at, WIDE_REVERSE(WIDE_LOAD(src + at), order));
  for (; at < bytes; at += swap_size) tegula__kernel_swap_one(dst + at, src + at, swap_size);
}

/* The same past the caches, where dst can be brought to a line's start by whole groups; returns the
 * bytes done. */
TARGET static size_t swap_stream(char *dst, const char *src, size_t bytes, uint32_t swap_size) {
  const WIDE order = WIDE_REVERSAL(swap_size);
  size_t at = (size_t)(-(uintptr_t)dst % TEGULA__KERNEL_LINE);
  if (at % swap_size) return 0;
  swap_groups(dst, src, at, swap_size);
  for (; at + TEGULA__KERNEL_LINE <= bytes; at += TEGULA__KERNEL_LINE) {
    WIDE a[TEGULA__KERNEL_LINE / WIDE_BYTES];
#pragma GCC unroll 4
    for (int k = 0; k < TEGULA__KERNEL_LINE / WIDE_BYTES; k++)
      a[k] = WIDE_LOAD(src + at + k * WIDE_BYTES);
#pragma GCC unroll 4
    for (int k = 0; k < TEGULA__KERNEL_LINE / WIDE_BYTES; k++)
      WIDE_STREAM(dst + at + k * WIDE_BYTES, WIDE_REVERSE(a[k], order));
  }
  STREAM_END();
  return at;
}

TARGET static inline void swap_bytes(char *dst, const char *src, size_t bytes, uint32_t swap_size) {
  size_t done = 0;
  if (bytes >= TEGULA__KERNEL_STREAM_BYTES && dst != src)
    done = swap_stream(dst, src, bytes, swap_size);
  swap_groups(dst + done, src + done, bytes - done, swap_size);
}

TARGET static void swap2(void *dst, const void *src, size_t count) {
  swap_bytes(dst, src, 2 * count, 2);
}
TARGET static void swap4(void *dst, const void *src, size_t count) {
  swap_bytes(dst, src, 4 * count, 4);
}
TARGET static void swap8(void *dst, const void *src, size_t count) {
  swap_bytes(dst, src, 8 * count, 8);
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

TARGET static inline void write_line(char *dst, const char *line, uint32_t swap_size, bool stream) {
  const WIDE order = WIDE_REVERSAL(swap_size);
  if (stream && (uintptr_t)dst % TEGULA__KERNEL_LINE == 0) {
#pragma GCC unroll 4
    for (int k = 0; k < TEGULA__KERNEL_LINE; k += WIDE_BYTES)
      WIDE_STREAM(dst + k, WIDE_REVERSE(WIDE_LOAD(line + k), order));
  } else {
#pragma GCC unroll 4
    for (int k = 0; k < TEGULA__KERNEL_LINE; k += WIDE_BYTES)
      WIDE_STORE(dst + k, WIDE_REVERSE(WIDE_LOAD(line + k), order));
  }
}

/* EDGE rows of 16 bytes, which are EDGE items each (in each lane EDGE rows further): rows k and k +
 * EDGE/2 are interleaved log2(EDGE) times, and row k holds then what column k held. */
#define TRANSPOSE_EDGE(name, REGISTER, EDGE, GATHER, LOW, HIGH, STORE)                             \
  TARGET static inline void name(char *to, const char *from, int64_t stride) {                     \
    REGISTER a[EDGE], b[EDGE];                                                                     \
    _Pragma("GCC unroll 16") for (int k = 0; k < EDGE; k++) a[k] =                                 \
        GATHER(from + k * stride, EDGE * stride);                                                  \
    _Pragma("GCC unroll 4") for (int round = 1; round < EDGE; round *= 2) {                        \
      _Pragma("GCC unroll 8") for (int k = 0; k < EDGE / 2; k++) {                                 \
        b[2 * k] = LOW(a[k], a[k + EDGE / 2]);                                                     \
        b[2 * k + 1] = HIGH(a[k], a[k + EDGE / 2]);                                                \
      }                                                                                            \
      _Pragma("GCC unroll 16") for (int k = 0; k < EDGE; k++) a[k] = b[k];                         \
    }                                                                                              \
    _Pragma("GCC unroll 16") for (int k = 0; k < EDGE; k++)                                        \
        STORE(to + k * TEGULA__KERNEL_LINE, a[k]);                                                 \
  }

#define NARROW_GATHER(from, step) NARROW_LOAD(from)
TRANSPOSE_EDGE(micro1, NARROW, 16, NARROW_GATHER, NARROW_LOW1, NARROW_HIGH1, NARROW_STORE)
TRANSPOSE_EDGE(micro2, NARROW, 8, NARROW_GATHER, NARROW_LOW2, NARROW_HIGH2, NARROW_STORE)
TRANSPOSE_EDGE(columns4, WIDE, 4, WIDE_GATHER, WIDE_LOW4, WIDE_HIGH4, WIDE_STORE)
TRANSPOSE_EDGE(columns8, WIDE, 2, WIDE_GATHER, WIDE_LOW8, WIDE_HIGH8, WIDE_STORE)

TARGET static inline void micro4(char *to, const char *from, int64_t stride) {
  for (int lane = 0; lane < LANES; lane++)
    columns4(to + 4 * lane * TEGULA__KERNEL_LINE, from + 16 * lane, stride);
}

TARGET static inline void micro8(char *to, const char *from, int64_t stride) {
  for (int lane = 0; lane < LANES; lane++)
    columns8(to + 2 * lane * TEGULA__KERNEL_LINE, from + 16 * lane, stride);
}

#define WRITE_LINE(dst, line, swap, stream) write_line(dst, line, swap, stream)
#define WRITE_PART(dst, line, bytes, swap) write_part(dst, line, bytes, swap)

#define SIZE 1
#define TRANSPOSE(name) transpose1_##name
#define MICRO 16
#define MICRO_RUN(to, from, stride) micro1(to, from, stride)
#include "kernel/transpose_template.h"

#define SIZE 2
#define TRANSPOSE(name) transpose2_##name
#define MICRO 8
#define MICRO_RUN(to, from, stride) micro2(to, from, stride)
#include "kernel/transpose_template.h"

#define SIZE 4
#define TRANSPOSE(name) transpose4_##name
#define MICRO (4 * LANES)
#define MICRO_RUN(to, from, stride) micro4(to, from, stride)
#include "kernel/transpose_template.h"

#define SIZE 8
#define TRANSPOSE(name) transpose8_##name
#define MICRO (2 * LANES)
#define MICRO_RUN(to, from, stride) micro8(to, from, stride)
#include "kernel/transpose_template.h"

#define SIZE 16
#define TRANSPOSE(name) transpose16_##name
#define MICRO 1
#define MICRO_RUN(to, from, stride) (void)0
#include "kernel/transpose_template.h"

#undef NARROW_GATHER
#undef TRANSPOSE_EDGE
