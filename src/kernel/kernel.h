/* kernel: the inner loops that change bytes on their way: byte swap, transpose, strided copy. One
 * table per processor family.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Portable code comes first; variants are compiled with function attributes and chosen once, by
 * tegula__kernel_select. No kernel allocates or fails; all are thread safe.
 *
 * Begin reading at tegula__kernels; portable.c has the plain form of each, strided.c the copies
 * that the engine uses. The folder includes base. */
#ifndef TEGULA_KERNEL_KERNEL_H
#define TEGULA_KERNEL_KERNEL_H

#include "base/base.h"

/* Bytes of one copy that are taken for too many to stay in the caches until they are used. */
#define TEGULA__KERNEL_STREAM_BYTES ((size_t)512 << 10)

/* Copies `count` groups of 2, 4 or 8 bytes and reverses the bytes of each. dst == src is allowed,
 * other overlap is not. From TEGULA__KERNEL_STREAM_BYTES on, writing elsewhere may pass the caches
 * by. */
typedef void (*tegula__swap_fn)(void *dst, const void *src, size_t count);

/* dst[c * dst_stride + r * S] = src[r * src_stride + c * S] for r < rows, c < columns, S = 1, 2, 4,
 * 8 or 16 bytes: each dst row is dense
 * (`rows` items), each src row is dense (`columns` items). Each group of `swap_size` bytes is
 * reversed on the way (1: none; it divides S). `stream`: dst is too large to be read again from the
 * caches, so writing may pass them by. Strides in bytes, any sign. No overlap. */
typedef void (*tegula__transpose_fn)(char *dst, int64_t dst_stride, const char *src,
                                     int64_t src_stride, int64_t rows, int64_t columns,
                                     uint32_t swap_size, bool stream);

/* Planes of bytes back to items: dst[i * S + k] = src[k * plane + i] for i < count, k < S = 2, 4, 8
 * or 16. No overlap. */
typedef void (*tegula__unshuffle_fn)(char *dst, const char *src, size_t plane, size_t count);

/* Eight rows of bits back to bytes: bit b of dst[8 * g + j] is bit j of src[b * row_stride + g], g
 * < groups, b and j < 8. No overlap. */
typedef void (*tegula__join_bits_fn)(char *dst, const char *src, size_t row_stride, size_t groups);

/* Items to planes of bytes: dst[k * count + i] = src[i * S + k] for i < count, k < S = 2, 4, 8
 * or 16. No overlap. */
typedef void (*tegula__shuffle_fn)(char *dst, const char *src, size_t count);

/* Bytes to eight rows of bits: bit j of dst[b * row_stride + g] is bit b of src[8 * g + j], g <
 * groups, b and j < 8. No overlap. */
typedef void (*tegula__split_bits_fn)(char *dst, size_t row_stride, const char *src, size_t groups);

/* What encoding needs. */
typedef struct tegula__forward_kernels {
  tegula__shuffle_fn shuffle2, shuffle4, shuffle8, shuffle16;
  tegula__split_bits_fn split_bits;
} tegula__forward_kernels;

typedef struct tegula__kernels {
  const char *name; /* "portable", "ssse3", "avx2", "avx512", "neon" */
  tegula__swap_fn swap2, swap4, swap8;
  tegula__transpose_fn transpose1, transpose2, transpose4, transpose8, transpose16;
  tegula__unshuffle_fn unshuffle2, unshuffle4, unshuffle8, unshuffle16;
  tegula__join_bits_fn join_bits;
  const tegula__forward_kernels *forward; /* never NULL in a table of tegula__kernel_at */
} tegula__kernels;

/* The best table for this processor. */
const tegula__kernels *tegula__kernel_select(void);
/* Table `index` of those this processor can run, NULL at the end: tests try each. Index 0 is
 * portable. */
const tegula__kernels *tegula__kernel_at(size_t index);

/* Copies `bytes` bytes and reverses each group of `swap_size` (1, 2, 4 or 8; divides bytes). With a
 * swap dst == src is allowed. */
void tegula__swap_groups(const tegula__kernels *kernels, void *dst, const void *src, size_t bytes,
                         uint32_t swap_size);

/* Undoes a byte shuffle of `bytes` bytes in items of `item_size` (>= 1); bytes behind the last
 * whole item are copied. No overlap. */
void tegula__unshuffle(const tegula__kernels *kernels, void *dst, const void *src, size_t bytes,
                       size_t item_size);
/* The same for `count` items out of planes of `plane` bytes each; `src` is where the first of them
 * stands in the first plane. */
void tegula__unshuffle_items(const tegula__kernels *kernels, void *dst, const void *src,
                             size_t plane, size_t count, size_t item_size);

/* Byte shuffle of `bytes` bytes in items of `item_size` (>= 1); bytes behind the last whole item
 * are copied. No overlap. */
void tegula__shuffle(const tegula__kernels *kernels, void *dst, const void *src, size_t bytes,
                     size_t item_size);

/* The one fused pass of the staged path: copies an N-d block between two strided memories and
 * reverses the bytes of each group of `swap_size` bytes on the way (1: no swap; swap_size divides
 * item_size). Strides in bytes, any sign; dst items do not overlap each other or src. ndim 0 is one
 * item. Addresses need no alignment. */
void tegula__copy_strided(const tegula__kernels *kernels, char *dst, const int64_t *dst_strides,
                          const char *src, const int64_t *src_strides, const int64_t *extents,
                          int32_t ndim, uint32_t item_size, uint32_t swap_size);

/* Puts `value` (item_size bytes; NULL: zeros), each group of `swap_size` bytes reversed, in every
 * item of a strided block. Strides in bytes, any sign. */
void tegula__fill_strided(char *dst, const int64_t *strides, const int64_t *extents, int32_t ndim,
                          uint32_t item_size, const void *value, uint32_t swap_size);

#endif
