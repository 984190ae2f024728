/* select: which table of kernels this processor can run, and which swap of a table fits a group.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing is remembered: the processor's features are read where they are asked for, and callers
 * keep the table. */
#include "kernel/kernel_priv.h"

const tegula__kernels *tegula__kernel_at(size_t index) {
  const tegula__kernels *able[4] = {&tegula__kernel_portable};
#if TEGULA__KERNEL_X86
  size_t count = 1;
  if (__builtin_cpu_supports("ssse3")) able[count++] = &tegula__kernel_ssse3;
  if (__builtin_cpu_supports("avx2")) able[count++] = &tegula__kernel_avx2;
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vbmi"))
    able[count++] = &tegula__kernel_avx512;
#elif TEGULA__KERNEL_NEON
  able[1] = &tegula__kernel_neon;
#endif
  return index < sizeof able / sizeof *able ? able[index] : NULL;
}

const tegula__kernels *tegula__kernel_select(void) {
  const tegula__kernels *best = tegula__kernel_at(0);
  for (size_t index = 1; tegula__kernel_at(index); index++) best = tegula__kernel_at(index);
  return best;
}

void tegula__swap_groups(const tegula__kernels *kernels, void *dst, const void *src, size_t bytes,
                         uint32_t swap_size) {
  switch (swap_size) {
    case 2:
      kernels->swap2(dst, src, bytes / 2);
      break;
    case 4:
      kernels->swap4(dst, src, bytes / 4);
      break;
    case 8:
      kernels->swap8(dst, src, bytes / 8);
      break;
    default:
      memcpy(dst, src, bytes);
  }
}

void tegula__shuffle(const tegula__kernels *kernels, void *dst, const void *src, size_t bytes,
                     size_t item_size) {
  const tegula__forward_kernels *forward = kernels->forward;
  size_t count = bytes / item_size, whole = count * item_size;
  switch (count > 1 ? item_size : 1) {
    case 1:
      memcpy(dst, src, whole);
      break;
    case 2:
      forward->shuffle2(dst, src, count);
      break;
    case 4:
      forward->shuffle4(dst, src, count);
      break;
    case 8:
      forward->shuffle8(dst, src, count);
      break;
    case 16:
      forward->shuffle16(dst, src, count);
      break;
    default:
      kernels->transpose1(dst, (int64_t)count, src, (int64_t)item_size, (int64_t)count,
                          (int64_t)item_size, 1, false);
  }
  if (whole < bytes) memcpy((char *)dst + whole, (const char *)src + whole, bytes - whole);
}

void tegula__unshuffle_items(const tegula__kernels *kernels, void *dst, const void *src,
                             size_t plane, size_t count, size_t item_size) {
  switch (plane > 1 ? item_size : 1) {
    case 1:
      memcpy(dst, src, count * item_size);
      break;
    case 2:
      kernels->unshuffle2(dst, src, plane, count);
      break;
    case 4:
      kernels->unshuffle4(dst, src, plane, count);
      break;
    case 8:
      kernels->unshuffle8(dst, src, plane, count);
      break;
    case 16:
      kernels->unshuffle16(dst, src, plane, count);
      break;
    default:
      kernels->transpose1(dst, (int64_t)item_size, src, (int64_t)plane, (int64_t)item_size,
                          (int64_t)count, 1, false);
  }
}

void tegula__unshuffle(const tegula__kernels *kernels, void *dst, const void *src, size_t bytes,
                       size_t item_size) {
  size_t count = bytes / item_size, whole = count * item_size;
  tegula__unshuffle_items(kernels, dst, src, count, count, item_size);
  if (whole < bytes) memcpy((char *)dst + whole, (const char *)src + whole, bytes - whole);
}
