/* Comparing two runs of elements: whole blocks by memcmp, and element by element only where that
 * finds a difference.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two floats of different bits are the same value when both are NaN or both are zero. Without the
 * sign bit NaNs are the numbers above infinity and zeros are 0, so integer arithmetic decides, in
 * loops that compilers turn into vectors. */
#include <stdatomic.h>
#include <string.h>

#include "verify/hash.h"

#define ITEM_BYTES ((int64_t)1 << 20) /* what one worker takes at a time */
/* what one memcmp looks at: stays in the first-level cache for the search behind it */
#define BLOCK_BYTES ((int64_t)32 << 10)

typedef struct compare_state {
  const char *a, *b;
  tegula_dtype dtype;
  int64_t count;
  int64_t per_item, per_block; /* elements */
  bool values;
  _Atomic int64_t first; /* the lowest that differs; count: none so far */
} compare_state;

static inline uint64_t load_bits(const char *at, uint32_t size) {
  uint16_t half;
  uint32_t single;
  uint64_t whole;
  switch (size) {
    case 2:
      memcpy(&half, at, sizeof half);
      return half;
    case 4:
      memcpy(&single, at, sizeof single);
      return single;
    default:
      memcpy(&whole, at, sizeof whole);
      return whole;
  }
}

static inline bool floats_differ(uint64_t x, uint64_t y, uint64_t magnitude, uint64_t infinity) {
  uint64_t u = x & magnitude, v = y & magnitude;
  return (x != y) & !((u | v) == 0) & !((u > infinity) & (v > infinity));
}

/* The first of `count` floats of `size` bytes that differs in value, or count. Inlined for each
 * size, so that the loop is a vector loop. */
static inline __attribute__((always_inline)) int64_t
find_float(const char *a, const char *b, int64_t count, uint32_t size, uint64_t infinity) {
  uint64_t magnitude = UINT64_MAX >> (65 - 8 * size);
  enum { STRIDE = 256 };
  for (int64_t at = 0; at < count; at += STRIDE) {
    int64_t end = tegula__min(count, at + STRIDE);
    bool any = false;
    for (int64_t i = at; i < end; i++)
      any |= floats_differ(load_bits(a + i * size, size), load_bits(b + i * size, size), magnitude,
                           infinity);
    for (int64_t i = at; any && i < end; i++)
      if (floats_differ(load_bits(a + i * size, size), load_bits(b + i * size, size), magnitude,
                        infinity))
        return i;
  }
  return count;
}

static int64_t find_value(tegula_dtype dtype, const char *a, const char *b, int64_t count) {
  uint32_t parts = dtype.kind == 'c' ? 2 : 1, size = dtype.item_size / parts;
  int64_t floats = count * parts, found = floats;
  if (dtype.kind == 'E')
    found = find_float(a, b, floats, 2, 0x7f80);
  else if (size == 2)
    found = find_float(a, b, floats, 2, 0x7c00);
  else if (size == 4)
    found = find_float(a, b, floats, 4, 0x7f800000);
  else
    found = find_float(a, b, floats, 8, 0x7ff0000000000000);
  return found / parts;
}

static int64_t find_bool(const char *a, const char *b, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if ((a[i] != 0) != (b[i] != 0)) return i;
  return count;
}

static int64_t find_bytes(const char *a, const char *b, int64_t bytes) {
  int64_t at = 0;
  while (at < bytes && a[at] == b[at]) at++;
  return at;
}

/* In a block whose bytes differ somewhere. */
static int64_t find_in_block(const compare_state *s, const char *a, const char *b, int64_t count) {
  if (s->dtype.kind == 'b') return find_bool(a, b, count);
  bool is_float = s->dtype.kind == 'f' || s->dtype.kind == 'E' || s->dtype.kind == 'c';
  if (s->values && is_float) return find_value(s->dtype, a, b, count);
  return find_bytes(a, b, count * s->dtype.item_size) / s->dtype.item_size;
}

static void lower(_Atomic int64_t *first, int64_t found) {
  int64_t now = atomic_load(first);
  while (found < now && !atomic_compare_exchange_weak(first, &now, found)) continue;
}

static void compare_item(void *state, int32_t worker, int64_t item) {
  (void)worker;
  compare_state *s = state;
  int64_t size = s->dtype.item_size, end = tegula__min(s->count, (item + 1) * s->per_item);
  for (int64_t at = item * s->per_item;
       at < end && at < atomic_load_explicit(&s->first, memory_order_relaxed); at += s->per_block) {
    int64_t some = tegula__min(s->per_block, end - at);
    const char *a = s->a + at * size, *b = s->b + at * size;
    if (memcmp(a, b, (size_t)(some * size)) == 0) continue;
    int64_t found = find_in_block(s, a, b, some);
    if (found < some) {
      lower(&s->first, at + found);
      return;
    }
  }
}

int64_t tegula__compare_run(tegula__pool *pool, tegula_dtype dtype, const void *a, const void *b,
                            int64_t count, bool values) {
  compare_state state = {.a = a, .b = b, .dtype = dtype, .count = count, .values = values};
  state.per_item = tegula__max(1, ITEM_BYTES / dtype.item_size);
  state.per_block = tegula__max(1, BLOCK_BYTES / dtype.item_size);
  atomic_init(&state.first, count);
  if (count > 0)
    tegula__pool_run(pool, tegula__ceil_div(count, state.per_item), compare_item, &state);
  int64_t first = atomic_load(&state.first);
  return first < count ? first : -1;
}
