/* x86_avx2: byte swap, transpose and unshuffle with 32-byte registers, for x86-64 processors that
 * have AVX2.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel_priv.h"

#if TEGULA__KERNEL_X86
#define TARGET __attribute__((target("avx2")))
#define LANES 2
#include "kernel/x86_registers.h"

#include "kernel/vector_template.h"

#include "kernel/unshuffle_template.h"

#include "kernel/shuffle_template.h"

const tegula__kernels tegula__kernel_avx2 = {.name = "avx2", TEGULA__KERNEL_FUNCTIONS};
#else
typedef int tegula__kernel_no_x86_avx2; /* a file may not be empty */
#endif
