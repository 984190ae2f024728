/* x86_registers: registers of 16 and 32 bytes as vector_template.h and unshuffle_template.h take
 * them; for LANES 1 (SSSE3) and 2 (AVX2).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>

#define NARROW __m128i
#define NARROW_LOAD(from) _mm_loadu_si128((const __m128i *)(const void *)(from))
#define NARROW_STORE(to, value) _mm_storeu_si128((__m128i *)(void *)(to), value)
#define NARROW_LOW1(a, b) _mm_unpacklo_epi8(a, b)
#define NARROW_HIGH1(a, b) _mm_unpackhi_epi8(a, b)
#define NARROW_LOW2(a, b) _mm_unpacklo_epi16(a, b)
#define NARROW_HIGH2(a, b) _mm_unpackhi_epi16(a, b)
#define STREAM_END() _mm_sfence()

#define REVERSAL(swap_size) NARROW_LOAD(tegula__kernel_reversal[__builtin_ctz(swap_size)])

#if LANES == 1
#define WIDE __m128i
#define WIDE_LOAD(from) NARROW_LOAD(from)
#define WIDE_STORE(to, value) NARROW_STORE(to, value)
#define WIDE_STREAM(to, value) _mm_stream_si128((__m128i *)(void *)(to), value)
#define WIDE_GATHER(from, step) NARROW_LOAD(from)
#define WIDE_SCATTER(to, step, value) NARROW_STORE(to, value)
#define WIDE_REVERSAL(swap_size) REVERSAL(swap_size)
#define WIDE_REVERSE(value, reversal) _mm_shuffle_epi8(value, reversal)
#define WIDE_LOW1(a, b) _mm_unpacklo_epi8(a, b)
#define WIDE_HIGH1(a, b) _mm_unpackhi_epi8(a, b)
#define WIDE_LOW4(a, b) _mm_unpacklo_epi32(a, b)
#define WIDE_HIGH4(a, b) _mm_unpackhi_epi32(a, b)
#define WIDE_LOW8(a, b) _mm_unpacklo_epi64(a, b)
#define WIDE_HIGH8(a, b) _mm_unpackhi_epi64(a, b)
#define WIDE_SPLAT(byte) _mm_set1_epi8(byte)
#define WIDE_XOR(a, b) _mm_xor_si128(a, b)
#define WIDE_AND(a, b) _mm_and_si128(a, b)
#define WIDE_LEFT(a, bits) _mm_slli_epi16(a, bits)
#define WIDE_RIGHT(a, bits) _mm_srli_epi16(a, bits)
#else
#define WIDE __m256i
#define WIDE_LOAD(from) _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define WIDE_STORE(to, value) _mm256_storeu_si256((__m256i *)(void *)(to), value)
#define WIDE_STREAM(to, value) _mm256_stream_si256((__m256i *)(void *)(to), value)
/* Cheaper than crossing lanes later. */
#define WIDE_GATHER(from, step)                                                                    \
  _mm256_inserti128_si256(_mm256_castsi128_si256(NARROW_LOAD(from)), NARROW_LOAD((from) + (step)), \
                          1)
#define WIDE_SCATTER(to, step, value)                                                              \
  do {                                                                                             \
    NARROW_STORE(to, _mm256_castsi256_si128(value));                                               \
    NARROW_STORE((to) + (step), _mm256_extracti128_si256(value, 1));                               \
  } while (0)
#define WIDE_REVERSAL(swap_size) _mm256_broadcastsi128_si256(REVERSAL(swap_size))
#define WIDE_REVERSE(value, reversal) _mm256_shuffle_epi8(value, reversal)
#define WIDE_LOW1(a, b) _mm256_unpacklo_epi8(a, b)
#define WIDE_HIGH1(a, b) _mm256_unpackhi_epi8(a, b)
#define WIDE_LOW4(a, b) _mm256_unpacklo_epi32(a, b)
#define WIDE_HIGH4(a, b) _mm256_unpackhi_epi32(a, b)
#define WIDE_LOW8(a, b) _mm256_unpacklo_epi64(a, b)
#define WIDE_HIGH8(a, b) _mm256_unpackhi_epi64(a, b)
#define WIDE_SPLAT(byte) _mm256_set1_epi8(byte)
#define WIDE_XOR(a, b) _mm256_xor_si256(a, b)
#define WIDE_AND(a, b) _mm256_and_si256(a, b)
#define WIDE_LEFT(a, bits) _mm256_slli_epi16(a, bits)
#define WIDE_RIGHT(a, bits) _mm256_srli_epi16(a, bits)
#endif
