/* Filling strided memory: what a loop over all items does, and nothing beside it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "kernel/kernel.h"

enum { AXES = 5 };

/* Strides for axes that nest in a random order, with gaps, some backwards; returns the bytes,
 * *start is where item 0 is. */
static int64_t random_memory(uint64_t *seed, int32_t ndim, const int64_t *extents, int64_t item,
                             int64_t *strides, int64_t *start) {
  int32_t axes[AXES];
  int64_t bytes = item;
  bool dense = random_between(seed, 0, 2) == 0;
  for (int32_t k = 0; k < ndim; k++) axes[k] = ndim - 1 - k;
  for (int32_t k = ndim - 1; !dense && k > 0; k--) {
    int32_t other = (int32_t)random_between(seed, 0, k), held = axes[k];
    axes[k] = axes[other];
    axes[other] = held;
  }
  *start = 0;
  for (int32_t i = 0; i < ndim; i++) {
    int32_t k = axes[i];
    int64_t length = extents[k] > 0 ? extents[k] : 1,
            gap = dense || random_between(seed, 0, 1) ? 0 : random_between(seed, 1, 9);
    strides[k] = bytes + gap;
    bytes += (length - 1) * strides[k];
    if (random_between(seed, 0, 3) != 0) continue;
    *start += (length - 1) * strides[k];
    strides[k] = -strides[k];
  }
  return bytes;
}

static void fill_plainly(unsigned char *at, const int64_t *strides, const int64_t *extents,
                         int32_t ndim, size_t item, const unsigned char *value, size_t swap) {
  if (ndim > 0) {
    for (int64_t i = 0; i < extents[0]; i++)
      fill_plainly(at + i * strides[0], strides + 1, extents + 1, ndim - 1, item, value, swap);
    return;
  }
  for (size_t i = 0; i < item; i++)
    at[i] = value == NULL ? 0 : value[i / swap * swap + (swap - 1 - i % swap)];
}

static void one_case(uint64_t *seed, int32_t ndim, const int64_t *extents, uint32_t item,
                     uint32_t swap) {
  int64_t strides[AXES] = {0}, start,
          bytes = random_memory(seed, ndim, extents, item, strides, &start);
  unsigned char *memory = malloc((size_t)bytes), *expected = malloc((size_t)bytes), value[4096];
  assert_true(memory != NULL && expected != NULL && item <= sizeof value);
  random_bytes(seed, memory, (size_t)tegula__min(bytes, 4096));
  for (int64_t i = 4096; i < bytes; i++) memory[i] = (unsigned char)(i * 31);
  memcpy(expected, memory, (size_t)bytes);
  random_bytes(seed, value, item);
  bool zeros = random_between(seed, 0, 3) == 0;
  fill_plainly(expected + start, strides, extents, ndim, item, zeros ? NULL : value, swap);
  tegula__fill_strided((char *)memory + start, strides, extents, ndim, item, zeros ? NULL : value,
                       swap);
  if (memcmp(memory, expected, (size_t)bytes) != 0)
    fail_msg("%d axes, items of %u bytes, groups of %u", ndim, item, swap);
  free(memory);
  free(expected);
}

static void any_strides_and_items(void **state) {
  (void)state;
  uint64_t seed = 5;
  for (int round = 0; round < 6000; round++) {
    int64_t extents[AXES] = {0};
    int32_t ndim = (int32_t)random_between(&seed, 0, AXES);
    for (int32_t k = 0; k < ndim; k++)
      extents[k] = random_between(&seed, 0, 20) == 0 ? 0 : random_between(&seed, 1, 5);
    uint32_t item = (uint32_t)random_between(&seed, 1, 33), swap = 1;
    for (uint32_t group = 8; group > 1 && swap == 1; group /= 2)
      if (item % group == 0 && random_between(&seed, 0, 1)) swap = group;
    one_case(&seed, ndim, extents, item, swap);
  }
}

/* Around 64 KiB, from where on what is there is copied piece by piece. */
static void long_runs_and_large_items(void **state) {
  (void)state;
  static const uint32_t items[] = {1, 2, 3, 7, 8, 16, 33, 1000, 4096};
  uint64_t seed = 6;
  for (int i = 0; i < 9; i++)
    for (int64_t more = -1; more <= 1; more++)
      for (int64_t times = 1; times <= 4; times += 3) {
        int64_t extents[2] = {2, times * 65536 / items[i] + more};
        one_case(&seed, 2, extents, items[i], 1);
        one_case(&seed, 1, extents + 1, items[i], 1);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_strides_and_items),
      cmocka_unit_test(long_runs_and_large_items),
  };
  return cmocka_run_group_tests_name("kernel: fill", tests, NULL, NULL);
}
