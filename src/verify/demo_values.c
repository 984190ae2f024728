/* Demonstration values: which values there are, and making runs of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "verify/demo_values.h"

enum { MAX_ITEM = 16 };

#define SEED_FACTOR UINT64_C(0xD1342543DE82EF95)
#define INDEX_FACTOR UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/* Through signed integers, which processors convert in one step. */
static inline float float_of(uint64_t z) { return (float)(int32_t)(z >> 40) * 0x1p-24f; }
static inline double double_of(uint64_t z) { return (double)(int64_t)(z >> 11) * 0x1p-53; }

/* Bits of value * 2^scale as a half: exact for value < 2048 and the scales 0 and -11. */
static inline uint16_t half_bits(uint32_t value, int scale) {
  if (value == 0) return 0;
  int top = 31 - __builtin_clz(value);
  uint32_t fraction = value << (10 - (top > 10 ? 10 : top)) & 0x3ff;
  return (uint16_t)((uint32_t)(top + scale + 15) << 10 | fraction);
}

static inline uint16_t bfloat_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Writes `count` values in the processor's byte order; `expression` uses z or n. */
#define GENERATE(type, expression)                                                                 \
  for (int64_t k = 0; k < count; k++) {                                                            \
    uint64_t z = mix(at + (uint64_t)k * by);                                                       \
    type value = (type)(expression);                                                               \
    memcpy(out + k * (int64_t)sizeof value, &value, sizeof value);                                 \
  }

static void generate_random(const tegula__demo_generator *maker, int64_t index, int64_t step,
                            int64_t count, char *out) {
  uint64_t by = (uint64_t)step * INDEX_FACTOR;
  uint64_t at = maker->seed * SEED_FACTOR + ((uint64_t)index + 1) * INDEX_FACTOR;
  switch (maker->dtype.kind << 8 | maker->dtype.item_size) {
    case 'b' << 8 | 1:
      GENERATE(uint8_t, z >> 63);
      break;
    case 'i' << 8 | 1:
    case 'u' << 8 | 1:
      GENERATE(uint8_t, z);
      break;
    case 'i' << 8 | 2:
    case 'u' << 8 | 2:
      GENERATE(uint16_t, z);
      break;
    case 'i' << 8 | 4:
    case 'u' << 8 | 4:
      GENERATE(uint32_t, z);
      break;
    case 'i' << 8 | 8:
    case 'u' << 8 | 8:
      GENERATE(uint64_t, z);
      break;
    case 'f' << 8 | 2:
      GENERATE(uint16_t, half_bits((uint32_t)(z >> 53), -11));
      break;
    case 'E' << 8 | 2:
      GENERATE(uint16_t, bfloat_bits((float)(z >> 56) * 0x1p-8f));
      break;
    case 'f' << 8 | 4:
      GENERATE(float, float_of(z));
      break;
    default:
      GENERATE(double, double_of(z));
      break;
  }
}

#undef GENERATE
#define GENERATE(type, expression)                                                                 \
  for (int64_t k = 0; k < count; k++) {                                                            \
    uint32_t n = (uint32_t)((index + k * step) % 1000);                                            \
    type value = (type)(expression);                                                               \
    memcpy(out + k * (int64_t)sizeof value, &value, sizeof value);                                 \
  }

static void generate_ramp(const tegula__demo_generator *maker, int64_t index, int64_t step,
                          int64_t count, char *out) {
  switch (maker->dtype.kind << 8 | maker->dtype.item_size) {
    case 'b' << 8 | 1:
      GENERATE(uint8_t, n != 0);
      break;
    case 'i' << 8 | 1:
    case 'u' << 8 | 1:
      GENERATE(uint8_t, n);
      break;
    case 'i' << 8 | 2:
    case 'u' << 8 | 2:
      GENERATE(uint16_t, n);
      break;
    case 'i' << 8 | 4:
    case 'u' << 8 | 4:
      GENERATE(uint32_t, n);
      break;
    case 'i' << 8 | 8:
    case 'u' << 8 | 8:
      GENERATE(uint64_t, n);
      break;
    case 'f' << 8 | 2:
      GENERATE(uint16_t, half_bits(n, 0));
      break;
    case 'E' << 8 | 2:
      GENERATE(uint16_t, bfloat_bits((float)n));
      break;
    case 'f' << 8 | 4:
      GENERATE(float, n);
      break;
    default:
      GENERATE(double, n);
      break;
  }
}

#undef GENERATE

/* Complex numbers: both parts of each element; at most TEGULA__DEMO_VALUES elements. */
static void generate_complex(const tegula__demo_generator *maker, int64_t index, int64_t step,
                             int64_t count, char *out) {
  size_t part = maker->dtype.item_size / 2;
  tegula__demo_generator parts = *maker;
  parts.dtype.kind = 'f';
  parts.dtype.item_size = (uint32_t)part;
  char values[2][TEGULA__DEMO_VALUES * MAX_ITEM / 2];
  if (maker->values == TEGULA_VALUES_RAMP) {
    generate_ramp(&parts, index, step, count, values[0]);
    memset(values[1], 0, (size_t)count * part);
  } else { /* part numbers count modulo 2^64, as the mix does */
    int64_t first = (int64_t)((uint64_t)index * 2), second = (int64_t)((uint64_t)index * 2 + 1),
            by = (int64_t)((uint64_t)step * 2);
    generate_random(&parts, first, by, count, values[0]);
    generate_random(&parts, second, by, count, values[1]);
  }
  for (int64_t k = 0; k < count; k++)
    for (int64_t half = 0; half < 2; half++)
      memcpy(out + (2 * k + half) * (int64_t)part, values[half] + k * (int64_t)part, part);
}

uint32_t tegula__demo_order_group(tegula_dtype dtype) {
  return dtype.order == TEGULA__NATIVE_ORDER ? 1 : tegula__dtype_swap_size(dtype);
}

void tegula__demo_generate(const tegula__demo_generator *maker, const tegula__kernels *kernels,
                           int64_t index, int64_t step, int64_t count, char *out) {
  if (maker->dtype.kind == 'c')
    generate_complex(maker, index, step, count, out);
  else if (maker->values == TEGULA_VALUES_RAMP)
    generate_ramp(maker, index, step, count, out);
  else
    generate_random(maker, index, step, count, out);
  uint32_t group = tegula__demo_order_group(maker->dtype);
  if (group > 1)
    tegula__swap_groups(kernels, out, out, (size_t)count * maker->dtype.item_size, group);
}
