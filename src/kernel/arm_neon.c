/* arm_neon: byte swap, transpose and unshuffle with the 16-byte registers that every AArch64
 * processor has.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel_priv.h"

#if TEGULA__KERNEL_NEON
#include <arm_neon.h>

/* Items of `bits` bits of the lower (zip1) or upper (zip2) halves, interleaved. */
#define ZIP(way, bits, a, b)                                                                       \
  vreinterpretq_u8_u##bits(                                                                        \
      v##way##q_u##bits(vreinterpretq_u##bits##_u8(a), vreinterpretq_u##bits##_u8(b)))

#define TARGET
#define NARROW uint8x16_t
#define NARROW_LOAD(from) vld1q_u8((const uint8_t *)(const void *)(from))
#define NARROW_STORE(to, value) vst1q_u8((uint8_t *)(void *)(to), value)
#define NARROW_LOW1(a, b) vzip1q_u8(a, b)
#define NARROW_HIGH1(a, b) vzip2q_u8(a, b)
#define NARROW_LOW2(a, b) ZIP(zip1, 16, a, b)
#define NARROW_HIGH2(a, b) ZIP(zip2, 16, a, b)
#define STREAM_END() (void)0

#define LANES 1
#define WIDE uint8x16_t
#define WIDE_LOAD(from) NARROW_LOAD(from)
#define WIDE_STORE(to, value) NARROW_STORE(to, value)
/* there is no intrinsic for one that passes the caches by */
#define WIDE_STREAM(to, value) NARROW_STORE(to, value)
#define WIDE_GATHER(from, step) NARROW_LOAD(from)
#define WIDE_SCATTER(to, step, value) NARROW_STORE(to, value)
#define WIDE_REVERSAL(swap_size) NARROW_LOAD(tegula__kernel_reversal[__builtin_ctz(swap_size)])
#define WIDE_REVERSE(value, reversal) vqtbl1q_u8(value, reversal)
#define WIDE_LOW1(a, b) vzip1q_u8(a, b)
#define WIDE_HIGH1(a, b) vzip2q_u8(a, b)
#define WIDE_LOW4(a, b) ZIP(zip1, 32, a, b)
#define WIDE_HIGH4(a, b) ZIP(zip2, 32, a, b)
#define WIDE_LOW8(a, b) ZIP(zip1, 64, a, b)
#define WIDE_HIGH8(a, b) ZIP(zip2, 64, a, b)
#define WIDE_SPLAT(byte) vdupq_n_u8(byte)
#define WIDE_XOR(a, b) veorq_u8(a, b)
#define WIDE_AND(a, b) vandq_u8(a, b)
#define WIDE_LEFT(a, bits) vreinterpretq_u8_u16(vshlq_n_u16(vreinterpretq_u16_u8(a), bits))
#define WIDE_RIGHT(a, bits) vreinterpretq_u8_u16(vshrq_n_u16(vreinterpretq_u16_u8(a), bits))

#include "kernel/vector_template.h"

#include "kernel/unshuffle_template.h"

#include "kernel/shuffle_template.h"

const tegula__kernels tegula__kernel_neon = {.name = "neon", TEGULA__KERNEL_FUNCTIONS};
#else
typedef int tegula__kernel_no_arm_neon; /* a file may not be empty */
#endif
