/* x86_avx2: byte swap, transpose and unshuffle with 32-byte registers, for x86-64 processors that have AVX2.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel_priv.h"

#if TEGULA__KERNEL_X86
#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))

#define LOAD(address) _mm256_loadu_si256((const __m256i *)(const void *)(address))
#define STREAM(address, value) _mm256_stream_si256((__m256i *)(void *)(address), value)
#define STORE(address, value) _mm256_storeu_si256((__m256i *)(void *)(address), value)
#define LOAD16(address) _mm_loadu_si128((const __m128i *)(const void *)(address))
#define STORE16(address, value) _mm_storeu_si128((__m128i *)(void *)(address), value)
/* 16 bytes of one row in the low half, 16 bytes of another in the high half: cheaper than crossing halves later. */
#define LOAD_PAIR(low, high) _mm256_inserti128_si256(_mm256_castsi128_si256(LOAD16(low)), LOAD16(high), 1)

TARGET static inline __m256i reversal(uint32_t swap_size) {
  return _mm256_broadcastsi128_si256(LOAD16(tegula__kernel_reversal[__builtin_ctz(swap_size)]));
}

TARGET static inline void swap_groups(char *dst, const char *src, size_t bytes, uint32_t swap_size) {
  const __m256i order = reversal(swap_size);
  size_t at = 0;
  for (; at + 128 <= bytes; at += 128) {
    __m256i a = LOAD(src + at), b = LOAD(src + at + 32), c = LOAD(src + at + 64), d = LOAD(src + at + 96);
    STORE(dst + at, _mm256_shuffle_epi8(a, order));
    STORE(dst + at + 32, _mm256_shuffle_epi8(b, order));
    STORE(dst + at + 64, _mm256_shuffle_epi8(c, order));
    STORE(dst + at + 96, _mm256_shuffle_epi8(d, order));
  }
  for (; at + 32 <= bytes; at += 32) STORE(dst + at, _mm256_shuffle_epi8(LOAD(src + at), order));
  for (; at < bytes; at += swap_size) tegula__kernel_swap_one(dst + at, src + at, swap_size);
}

/* The same past the caches, where dst can be brought to a line's start by whole groups; returns the bytes done. */
TARGET static size_t swap_stream(char *dst, const char *src, size_t bytes, uint32_t swap_size) {
  const __m256i order = reversal(swap_size);
  size_t at = (size_t)(-(uintptr_t)dst % TEGULA__KERNEL_LINE);
  if (at % swap_size) return 0;
  swap_groups(dst, src, at, swap_size);
  for (; at + TEGULA__KERNEL_LINE <= bytes; at += TEGULA__KERNEL_LINE) {
    __m256i a = LOAD(src + at), b = LOAD(src + at + 32);
    STREAM(dst + at, _mm256_shuffle_epi8(a, order));
    STREAM(dst + at + 32, _mm256_shuffle_epi8(b, order));
  }
  _mm_sfence();
  return at;
}

TARGET static inline void swap_bytes(char *dst, const char *src, size_t bytes, uint32_t swap_size) {
  size_t done = 0;
  if (bytes >= TEGULA__KERNEL_STREAM_BYTES && dst != src) done = swap_stream(dst, src, bytes, swap_size);
  swap_groups(dst + done, src + done, bytes - done, swap_size);
}

TARGET static void swap2(void *dst, const void *src, size_t count) { swap_bytes(dst, src, 2 * count, 2); }
TARGET static void swap4(void *dst, const void *src, size_t count) { swap_bytes(dst, src, 4 * count, 4); }
TARGET static void swap8(void *dst, const void *src, size_t count) { swap_bytes(dst, src, 8 * count, 8); }

static void write_part(char *dst, const char *src, size_t bytes, uint32_t swap_size) {
  switch (swap_size) {
    case 2: swap2(dst, src, bytes / 2); break;
    case 4: swap4(dst, src, bytes / 4); break;
    case 8: swap8(dst, src, bytes / 8); break;
    default: memcpy(dst, src, bytes);
  }
}

TARGET static inline void write_line(char *dst, const char *line, uint32_t swap_size, bool stream) {
  const __m256i order = reversal(swap_size);
  if (stream && (uintptr_t)dst % TEGULA__KERNEL_LINE == 0) {
#pragma GCC unroll 4
    for (int k = 0; k < TEGULA__KERNEL_LINE; k += 32) STREAM(dst + k, _mm256_shuffle_epi8(LOAD(line + k), order));
  } else {
#pragma GCC unroll 4
    for (int k = 0; k < TEGULA__KERNEL_LINE; k += 32) STORE(dst + k, _mm256_shuffle_epi8(LOAD(line + k), order));
  }
}

/* 16 x 16 bytes: four rounds that each interleave row k with row k + 8. */
TARGET static inline void micro1(char *to, const char *from, int64_t stride) {
  __m128i a[16], b[16];
#pragma GCC unroll 16
  for (int k = 0; k < 16; k++) a[k] = LOAD16(from + k * stride);
#pragma GCC unroll 4
  for (int round = 0; round < 4; round++) {
#pragma GCC unroll 16
    for (int k = 0; k < 8; k++) {
      b[2 * k] = _mm_unpacklo_epi8(a[k], a[k + 8]);
      b[2 * k + 1] = _mm_unpackhi_epi8(a[k], a[k + 8]);
    }
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) a[k] = b[k];
  }
#pragma GCC unroll 16
  for (int k = 0; k < 16; k++) STORE16(to + k * TEGULA__KERNEL_LINE, a[k]);
}

/* 8 x 8 items of 2 bytes: three rounds that each interleave row k with row k + 4. */
TARGET static inline void micro2(char *to, const char *from, int64_t stride) {
  __m128i a[8], b[8];
#pragma GCC unroll 16
  for (int k = 0; k < 8; k++) a[k] = LOAD16(from + k * stride);
#pragma GCC unroll 4
  for (int round = 0; round < 3; round++) {
#pragma GCC unroll 16
    for (int k = 0; k < 4; k++) {
      b[2 * k] = _mm_unpacklo_epi16(a[k], a[k + 4]);
      b[2 * k + 1] = _mm_unpackhi_epi16(a[k], a[k + 4]);
    }
#pragma GCC unroll 16
    for (int k = 0; k < 8; k++) a[k] = b[k];
  }
#pragma GCC unroll 16
  for (int k = 0; k < 8; k++) STORE16(to + k * TEGULA__KERNEL_LINE, a[k]);
}

/* 8 rows x 4 columns of 4 bytes: row k and row k + 4 share a register, then each half is a 4 x 4 transpose. */
TARGET static inline void micro4_half(char *to, const char *from, int64_t stride) {
  __m256i a = LOAD_PAIR(from, from + 4 * stride), b = LOAD_PAIR(from + stride, from + 5 * stride);
  __m256i c = LOAD_PAIR(from + 2 * stride, from + 6 * stride), d = LOAD_PAIR(from + 3 * stride, from + 7 * stride);
  __m256i ab_low = _mm256_unpacklo_epi32(a, b), ab_high = _mm256_unpackhi_epi32(a, b);
  __m256i cd_low = _mm256_unpacklo_epi32(c, d), cd_high = _mm256_unpackhi_epi32(c, d);
  STORE(to, _mm256_unpacklo_epi64(ab_low, cd_low));
  STORE(to + TEGULA__KERNEL_LINE, _mm256_unpackhi_epi64(ab_low, cd_low));
  STORE(to + 2 * TEGULA__KERNEL_LINE, _mm256_unpacklo_epi64(ab_high, cd_high));
  STORE(to + 3 * TEGULA__KERNEL_LINE, _mm256_unpackhi_epi64(ab_high, cd_high));
}

TARGET static inline void micro4(char *to, const char *from, int64_t stride) {
  micro4_half(to, from, stride);
  micro4_half(to + 4 * TEGULA__KERNEL_LINE, from + 16, stride);
}

/* 4 rows x 2 columns of 8 bytes, twice. */
TARGET static inline void micro8(char *to, const char *from, int64_t stride) {
  for (int half = 0; half < 2; half++, from += 16, to += 2 * TEGULA__KERNEL_LINE) {
    __m256i a = LOAD_PAIR(from, from + 2 * stride), b = LOAD_PAIR(from + stride, from + 3 * stride);
    STORE(to, _mm256_unpacklo_epi64(a, b));
    STORE(to + TEGULA__KERNEL_LINE, _mm256_unpackhi_epi64(a, b));
  }
}

#define WRITE_LINE(dst, line, swap, stream) write_line(dst, line, swap, stream)
#define WRITE_PART(dst, line, bytes, swap) write_part(dst, line, bytes, swap)
#define STREAM_END() _mm_sfence()

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
#define MICRO 8
#define MICRO_RUN(to, from, stride) micro4(to, from, stride)
#include "kernel/transpose_template.h"

#define SIZE 8
#define TRANSPOSE(name) transpose8_##name
#define MICRO 4
#define MICRO_RUN(to, from, stride) micro8(to, from, stride)
#include "kernel/transpose_template.h"

#define SIZE 16
#define TRANSPOSE(name) transpose16_##name
#define MICRO 1
#define MICRO_RUN(to, from, stride) (void)0
#include "kernel/transpose_template.h"

/* Its two lanes go to different places. */
TARGET static inline void store_lanes(char *to, size_t step, __m256i value) {
  STORE16(to, _mm256_castsi256_si128(value));
  STORE16(to + step, _mm256_extracti128_si256(value, 1));
}

#define LANES 2
#define WIDE __m256i
#define WIDE_LOAD(from) LOAD(from)
#define WIDE_STORE(to, step, value) store_lanes(to, (size_t)(step), value)
#define WIDE_LOW(a, b) _mm256_unpacklo_epi8(a, b)
#define WIDE_HIGH(a, b) _mm256_unpackhi_epi8(a, b)
#define WIDE_SPLAT(byte) _mm256_set1_epi8(byte)
#define WIDE_XOR(a, b) _mm256_xor_si256(a, b)
#define WIDE_AND(a, b) _mm256_and_si256(a, b)
#define WIDE_LEFT(a, bits) _mm256_slli_epi16(a, bits)
#define WIDE_RIGHT(a, bits) _mm256_srli_epi16(a, bits)
#define WIDE_GATHER(from, step) LOAD_PAIR(from, (from) + (step))
#include "kernel/unshuffle_template.h"
#include "kernel/shuffle_template.h"

static const tegula__forward_kernels forward = FORWARD_KERNELS;

const tegula__kernels tegula__kernel_avx2 = {
    .name = "avx2",
    .swap2 = swap2,
    .swap4 = swap4,
    .swap8 = swap8,
    .transpose1 = transpose1_blocks,
    .transpose2 = transpose2_blocks,
    .transpose4 = transpose4_blocks,
    .transpose8 = transpose8_blocks,
    .transpose16 = transpose16_blocks,
    .unshuffle2 = unshuffle2,
    .unshuffle4 = unshuffle4,
    .unshuffle8 = unshuffle8,
    .unshuffle16 = unshuffle16,
    .join_bits = join_bits,
    .forward = &forward,
};
#else
typedef int tegula__kernel_no_x86_avx2; /* a file may not be empty */
#endif
