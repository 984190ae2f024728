/* The strided copy of every table against a loop over all indices: random axes, orders, gaps,
 * signs, item sizes and swaps.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"

typedef struct block {
  int32_t ndim;
  uint32_t item, swap;
  int64_t extents[TEGULA_MAX_DIMS], dst[TEGULA_MAX_DIMS], src[TEGULA_MAX_DIMS];
} block;

static void copy_naively(char *dst, const char *src, const block *b, int32_t axis) {
  if (axis == b->ndim) {
    for (uint32_t k = 0; k < b->item; k++)
      dst[k] = src[k - k % b->swap + (b->swap - 1 - k % b->swap)];
    return;
  }
  for (int64_t i = 0; i < b->extents[axis]; i++)
    copy_naively(dst + i * b->dst[axis], src + i * b->src[axis], b, axis + 1);
}

/* Bytes from the lowest to the highest that strides reach; `first` is where the item with all
 * indices 0 begins. */
static int64_t reach(const block *b, const int64_t *strides, int64_t *first) {
  int64_t low = 0, high = b->item;
  for (int32_t k = 0; k < b->ndim; k++) {
    int64_t way = (b->extents[k] - 1) * strides[k];
    if (b->extents[k] == 0) return *first = 0;
    if (way < 0)
      low += way;
    else
      high += way;
  }
  *first = -low;
  return high - low;
}

static void describe(const block *b, char *out, size_t room) {
  size_t used = (size_t)snprintf(out, room, "item %u swap %u:", b->item, b->swap);
  for (int32_t k = 0; k < b->ndim && used < room; k++)
    used += (size_t)snprintf(out + used, room - used, " %lld (%lld <- %lld)",
                             (long long)b->extents[k], (long long)b->dst[k], (long long)b->src[k]);
}

static void check_block(const tegula__kernels *kernels, const block *b) {
  int64_t dst_first, src_first, offset = rand() % 2 ? 0 : rand() % 64;
  int64_t dst_bytes = offset + reach(b, b->dst, &dst_first),
          src_bytes = reach(b, b->src, &src_first);
  char *dst = malloc((size_t)dst_bytes + 1), *expected = malloc((size_t)dst_bytes + 1),
       *src = malloc((size_t)src_bytes + 1);
  for (int64_t i = 0; i < src_bytes; i++) src[i] = (char)(i * 167 + (i >> 7) * 13 + 5);
  memset(dst, 0x55, (size_t)dst_bytes + 1);
  memset(expected, 0x55, (size_t)dst_bytes + 1);
  copy_naively(expected + offset + dst_first, src + src_first, b, 0);
  tegula__copy_strided(kernels, dst + offset + dst_first, b->dst, src + src_first, b->src,
                       b->extents, b->ndim, b->item, b->swap);
  if (memcmp(dst, expected, (size_t)dst_bytes + 1) != 0) {
    char text[400];
    describe(b, text, sizeof text);
    fail_msg("%s: %s", kernels->name, text);
  }
  free(dst);
  free(expected);
  free(src);
}

/* Strides of memory in which axes lie in a random order, some with gaps, some backwards: items
 * never overlap. */
static void random_strides(const block *b, int64_t *strides, bool gaps) {
  int32_t order[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < b->ndim; k++) order[k] = k;
  for (int32_t k = b->ndim - 1; k > 0; k--) {
    int32_t other = rand() % (k + 1), kept = order[k];
    order[k] = order[other];
    order[other] = kept;
  }
  int64_t stride = b->item;
  for (int32_t k = 0; k < b->ndim; k++) {
    if (gaps && rand() % 4 == 0) stride += rand() % 3 ? b->item : (uint32_t)(rand() % 9);
    strides[order[k]] = gaps && rand() % 6 == 0 ? -stride : stride;
    stride *= b->extents[order[k]];
  }
}

static block random_block(void) {
  static const uint32_t items[] = {1, 2, 4, 8, 16, 3, 6, 12, 24, 5, 10, 20, 32, 48, 64, 100, 1024};
  block b = {.ndim = rand() % 6, .item = items[rand() % 17]};
  int64_t most = b.ndim < 3 ? (b.item > 32 ? 14 : 60) : b.ndim < 4 ? 14 : 5;
  if (b.item > 64 && b.ndim > 2) b.ndim = 2;
  for (int32_t k = 0; k < b.ndim; k++) b.extents[k] = rand() % 8 == 0 ? 1 : 1 + rand() % most;
  if (b.ndim > 0 && rand() % 40 == 0) b.extents[rand() % b.ndim] = 0;
  do b.swap = 1u << rand() % 4;
  while (b.item % b.swap);
  random_strides(&b, b.dst, rand() % 2);
  random_strides(&b, b.src, rand() % 2);
  if (rand() % 3 == 0) memcpy(b.src, b.dst, sizeof b.src);       /* dense runs in both */
  if (b.ndim > 0 && rand() % 8 == 0) b.src[rand() % b.ndim] = 0; /* a broadcast source */
  return b;
}

/* The tables take turns. */
static const tegula__kernels *table_of_round(int round) {
  size_t count = 1;
  while (tegula__kernel_at(count)) count++;
  return tegula__kernel_at((size_t)round % count);
}

static void random_blocks_are_copied(void **state) {
  (void)state;
  srand(3);
  for (int round = 0; round < 2500; round++) {
    block b = random_block();
    check_block(table_of_round(round), &b);
  }
}

static void fortran_order_becomes_c_order(void **state) {
  (void)state;
  srand(4);
  for (uint32_t item = 1; item <= 24; item++)
    for (int round = 0; round < 30; round++) {
      block b = {.ndim = 2 + round % 3, .item = item, .swap = item % 4 ? 1 : 4};
      for (int32_t k = 0; k < b.ndim; k++) b.extents[k] = 1 + rand() % (b.ndim == 2 ? 90 : 20);
      tegula__dense_strides(b.extents, b.ndim, item, 'C', b.dst);
      tegula__dense_strides(b.extents, b.ndim, item, 'F', b.src);
      check_block(table_of_round(round / 3), &b); /* each number of axes meets each table */
    }
}

/* Planes whose rows, columns or both are several short axes, longer together than a block: at both
 * ends of memory, with and without gaps behind them, between their items and backwards. */
static void short_axes_are_taken_together(void **state) {
  (void)state;
  srand(5);
  for (int round = 0; round < 600; round++) {
    block b = {.ndim = 3 + rand() % 3, .item = 1 + (uint32_t)(rand() % (rand() % 4 ? 16 : 70))};
    b.swap = b.item % 2 ? 1 : 1u << rand() % (b.item % 4 ? 2 : b.item % 8 ? 3 : 4);
    int32_t longest = rand() % b.ndim;
    for (int32_t k = 0; k < b.ndim; k++)
      b.extents[k] = 2 + rand() % (k == longest ? 300 : b.ndim == 3 ? 12 : 5);
    tegula__dense_strides(b.extents, b.ndim, b.item * (rand() % 6 ? 1 : 2), 'C', b.dst);
    tegula__dense_strides(b.extents, b.ndim, b.item * (rand() % 6 ? 1 : 2), 'F', b.src);
    if (rand() % 3 == 0) b.dst[0] += 3 * b.item;
    if (rand() % 3 == 0) b.src[b.ndim - 1] += 64;
    int32_t backwards = rand() % b.ndim;
    if (rand() % 3 == 0) b.src[backwards] = -b.src[backwards];
    if (rand() % 3 == 0) b.dst[backwards] = -b.dst[backwards];
    if (rand() % 8 == 0)
      for (int32_t k = 0; k < b.ndim; k++) b.src[k] = -b.src[k];
    check_block(table_of_round(round), &b);
  }
}

static void large_blocks_are_copied(void **state) {
  /* above the size from which writing may pass the caches by, for items of 2 bytes and more */
  (void)state;
  for (uint32_t item = 1; item <= 24; item += item < 4 ? 1 : 4) {
    block b = {.ndim = 2, .item = item, .swap = item % 4 ? 1 : 4, .extents = {900, 300}};
    b.dst[0] = (300 * item + 127) / 64 * 64;
    b.dst[1] = item;
    b.src[0] = item;
    b.src[1] = 900 * item;
    for (size_t table = 0; tegula__kernel_at(table); table++)
      check_block(tegula__kernel_at(table), &b);
  }
}

static void all_axes_there_can_be_are_copied(void **state) {
  (void)state;
  block b = {.ndim = TEGULA_MAX_DIMS, .item = 4, .swap = 4};
  for (int32_t k = 0; k < b.ndim; k++) b.extents[k] = k % 8 == 0 ? 2 : 1;
  tegula__dense_strides(b.extents, b.ndim, 4, 'C', b.dst);
  tegula__dense_strides(b.extents, b.ndim, 4, 'F', b.src);
  for (size_t table = 0; tegula__kernel_at(table); table++)
    check_block(tegula__kernel_at(table), &b);
}

static void a_worked_example(void **state) {
  /* numpy: np.arange(6, dtype='>u2').reshape((2, 3), order='F').astype('<u2').ravel() */
  (void)state;
  const unsigned char src[] = {0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5};
  const uint16_t expected[] = {0, 2, 4, 1, 3, 5};
  for (size_t table = 0; tegula__kernel_at(table); table++) {
    uint16_t dst[6];
    uint32_t swap = TEGULA__NATIVE_ORDER == '<' ? 2 : 1;
    tegula__copy_strided(tegula__kernel_at(table), (char *)dst, (int64_t[]){6, 2},
                         (const char *)src, (int64_t[]){2, 4}, (int64_t[]){2, 3}, 2, 2, swap);
    assert_memory_equal(dst, expected, sizeof expected);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_blocks_are_copied),
      cmocka_unit_test(fortran_order_becomes_c_order),
      cmocka_unit_test(short_axes_are_taken_together),
      cmocka_unit_test(large_blocks_are_copied),
      cmocka_unit_test(all_axes_there_can_be_are_copied),
      cmocka_unit_test(a_worked_example),
  };
  return cmocka_run_group_tests_name("kernel: strided", tests, NULL, NULL);
}
