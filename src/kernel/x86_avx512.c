/* x86_avx512: shuffles and unshuffles with 64-byte registers, for x86-64 processors that have
 * AVX-512 VBMI; the rest as for AVX2.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * No instruction here needs VBMI: it stands for processors that do not run slower for such
 * registers. */
#include "kernel/kernel_priv.h"

#if TEGULA__KERNEL_X86
#define TARGET __attribute__((target("avx512bw,avx512vl,avx512vbmi")))
#define LANES 2
#include "kernel/x86_registers.h"

#include "kernel/vector_template.h"

#undef LANES
#undef WIDE
#undef WIDE_LOAD
#undef WIDE_STORE
#undef WIDE_LOW1
#undef WIDE_HIGH1
#undef WIDE_LOW8
#undef WIDE_HIGH8
#undef WIDE_SPLAT
#undef WIDE_XOR
#undef WIDE_AND
#undef WIDE_LEFT
#undef WIDE_RIGHT

#define LANES 4
#define WIDE __m512i
#define WIDE_LOAD(from) _mm512_loadu_si512(from)
#define WIDE_STORE(to, value) _mm512_storeu_si512(to, value)
#define WIDE_LOW1(a, b) _mm512_unpacklo_epi8(a, b)
#define WIDE_HIGH1(a, b) _mm512_unpackhi_epi8(a, b)
#define WIDE_LOW8(a, b) _mm512_unpacklo_epi64(a, b)
#define WIDE_HIGH8(a, b) _mm512_unpackhi_epi64(a, b)
#define WIDE_SPLAT(byte) _mm512_set1_epi8(byte)
#define WIDE_XOR(a, b) _mm512_xor_si512(a, b)
#define WIDE_AND(a, b) _mm512_and_si512(a, b)
#define WIDE_LEFT(a, bits) _mm512_slli_epi16(a, bits)
#define WIDE_RIGHT(a, bits) _mm512_srli_epi16(a, bits)
#define WIDE_SCATTER_ROWS(to, a, rows) scatter_rows(to, a, rows)
#define WIDE_GATHER_ROWS(a, from, rows) gather_rows(a, from, rows)

/* Lane l of row k to row l, lane k. */
TARGET static inline __attribute__((always_inline)) void transpose_lanes(__m512i *a) {
  __m512i low01 = _mm512_shuffle_i32x4(a[0], a[1], 0x44),
          high01 = _mm512_shuffle_i32x4(a[0], a[1], 0xee);
  __m512i low23 = _mm512_shuffle_i32x4(a[2], a[3], 0x44),
          high23 = _mm512_shuffle_i32x4(a[2], a[3], 0xee);
  a[0] = _mm512_shuffle_i32x4(low01, low23, 0x88);
  a[1] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
  a[2] = _mm512_shuffle_i32x4(high01, high23, 0x88);
  a[3] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
}

/* One store of 64 bytes for four of 16. */
TARGET static inline __attribute__((always_inline)) void scatter_rows(char *to, __m512i *a,
                                                                      int rows) {
  if (rows == 2) {
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                  high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi64(a[0], low, a[1]));
    _mm512_storeu_si512(to + 64, _mm512_permutex2var_epi64(a[0], high, a[1]));
    return;
  }
#pragma GCC unroll 4
  for (int first = 0; first < rows; first += 4) {
    transpose_lanes(a + first);
#pragma GCC unroll 4
    for (int lane = 0; lane < 4; lane++)
      _mm512_storeu_si512(to + 16 * (rows * lane + first), a[first + lane]);
  }
}

/* And one load. */
TARGET static inline __attribute__((always_inline)) void gather_rows(__m512i *a, const char *from,
                                                                     int rows) {
  if (rows == 2) {
    const __m512i even = _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13),
                  odd = _mm512_setr_epi64(2, 3, 6, 7, 10, 11, 14, 15);
    __m512i low = _mm512_loadu_si512(from), high = _mm512_loadu_si512(from + 64);
    a[0] = _mm512_permutex2var_epi64(low, even, high);
    a[1] = _mm512_permutex2var_epi64(low, odd, high);
    return;
  }
#pragma GCC unroll 4
  for (int first = 0; first < rows; first += 4) {
#pragma GCC unroll 4
    for (int lane = 0; lane < 4; lane++)
      a[first + lane] = _mm512_loadu_si512(from + 16 * (rows * lane + first));
    transpose_lanes(a + first);
  }
}

#include "kernel/unshuffle_template.h"

#include "kernel/shuffle_template.h"

const tegula__kernels tegula__kernel_avx512 = {.name = "avx512", TEGULA__KERNEL_FUNCTIONS};
#else
typedef int tegula__kernel_no_x86_avx512; /* a file may not be empty */
#endif
