/* Demonstration values: runs of them, in the processor's byte order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_VERIFY_DEMO_VALUES_H
#define TEGULA_VERIFY_DEMO_VALUES_H

#include "base/base.h"
#include "kernel/kernel.h"

enum { TEGULA__DEMO_VALUES = 512 }; /* that are made at once, at most */

/* Which values to make. */
typedef struct tegula__demo_generator {
  tegula_dtype dtype;
  tegula_values values;
  uint64_t seed;
} tegula__demo_generator;

/* `count` <= TEGULA__DEMO_VALUES values of indices index, index + step, ... in the byte order of
 * the dtype. */
void tegula__demo_generate(const tegula__demo_generator *maker, const tegula__kernels *kernels,
                           int64_t index, int64_t step, int64_t count, char *out);

/* Bytes to reverse as one group between the dtype's order and the processor's; 1 for none. */
uint32_t tegula__demo_order_group(tegula_dtype dtype);

#endif
