/* x86_ssse3: byte swap, transpose and unshuffle with 16-byte registers, for x86-64 processors that
 * have SSSE3.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel_priv.h"

#if TEGULA__KERNEL_X86
#define TARGET __attribute__((target("ssse3")))
#define LANES 1
#include "kernel/x86_registers.h"

#include "kernel/vector_template.h"

#include "kernel/unshuffle_template.h"

#include "kernel/shuffle_template.h"

const tegula__kernels tegula__kernel_ssse3 = {.name = "ssse3", TEGULA__KERNEL_FUNCTIONS};
#else
typedef int tegula__kernel_no_x86_ssse3; /* a file may not be empty */
#endif
