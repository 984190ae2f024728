/* The hash of tiles equals the hash of the same elements in one dense run, whatever the tiling, the
 * strides and the byte order.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The dense run is hashed by tegula__hash_run, whose values are held by fixtures of the definition
 * (docs/content-hash.md). */
#include "support.h"

#include "verify/hash.h"

enum { TILES = 64, AXES = 3 };

typedef struct spread {
  int64_t count;
  tegula__tile tiles[TILES];
  int64_t vectors[TILES][3][AXES];
  char *blocks[TILES];
} spread;

/* One tile of the dense array, copied element by element to memory of its own with random
 * strides. */
static void add_tile(spread *s, uint64_t *seed, tegula_dtype dtype, const int64_t *shape,
                     int32_t ndim, const int64_t *lo, const int64_t *hi, const char *dense) {
  int64_t i = s->count++, bytes = dtype.item_size, start = 0, dense_strides[AXES], index[AXES];
  int64_t *strides = s->vectors[i][2];
  tegula__dense_strides(shape, ndim, dtype.item_size, 'C', dense_strides);
  bool fortran = random_between(seed, 0, 1);
  for (int32_t n = 0; n < ndim; n++) {
    int32_t k = fortran ? n : ndim - 1 - n;
    strides[k] = bytes + (random_between(seed, 0, 3) == 0 ? random_between(seed, 1, 9) : 0);
    bytes += (hi[k] - lo[k] - 1) * strides[k];
    if (random_between(seed, 0, 3) != 0) continue;
    start += (hi[k] - lo[k] - 1) * strides[k];
    strides[k] = -strides[k];
  }
  s->blocks[i] = malloc((size_t)bytes);
  assert_non_null(s->blocks[i]);
  for (int32_t k = 0; k < ndim; k++) {
    s->vectors[i][0][k] = index[k] = lo[k];
    s->vectors[i][1][k] = hi[k];
  }
  uint32_t group = tegula__dtype_swap_size(dtype);
  bool swap = group > 1 && random_between(seed, 0, 1);
  s->tiles[i] = (tegula__tile){.lo = s->vectors[i][0],
                               .hi = s->vectors[i][1],
                               .strides = strides,
                               .data = s->blocks[i] + start};
  s->tiles[i].order = swap ? '>' : dtype.order;
  for (bool more = true; more;) {
    char *to = s->tiles[i].data;
    const char *from = dense;
    for (int32_t k = 0; k < ndim; k++) {
      to += (index[k] - lo[k]) * strides[k];
      from += index[k] * dense_strides[k];
    }
    for (uint32_t b = 0; b < dtype.item_size; b++)
      to[b] = from[swap ? b / group * group + (group - 1 - b % group) : b];
    int32_t k = ndim - 1;
    for (; k >= 0 && ++index[k] == hi[k]; k--) index[k] = lo[k];
    more = k >= 0;
  }
}

static void cut(spread *s, uint64_t *seed, tegula_dtype dtype, const int64_t *shape, int32_t ndim,
                const int64_t *lo, const int64_t *hi, const char *dense, int depth) {
  int32_t axis = ndim > 0 ? (int32_t)random_between(seed, 0, ndim - 1) : -1;
  if (depth == 0 || axis < 0 || hi[axis] - lo[axis] < 2) {
    add_tile(s, seed, dtype, shape, ndim, lo, hi, dense);
    return;
  }
  int64_t middle = random_between(seed, lo[axis] + 1, hi[axis] - 1), other[AXES] = {0};
  for (int32_t k = 0; k < ndim; k++) other[k] = k == axis ? middle : hi[k];
  cut(s, seed, dtype, shape, ndim, lo, other, dense, depth - 1);
  for (int32_t k = 0; k < ndim; k++) other[k] = k == axis ? middle : lo[k];
  cut(s, seed, dtype, shape, ndim, other, hi, dense, depth - 1);
}

static void compare(tegula__pool *pool, const tegula__kernels *kernels, uint64_t *seed,
                    const char *name, const int64_t *shape, int32_t ndim) {
  tegula_error error;
  tegula_dtype dtype = dtype_of(name);
  int64_t bytes, zero[AXES] = {0};
  assert_true(tegula__shape_bytes(shape, ndim, dtype.item_size, &bytes));
  char *dense = malloc((size_t)bytes);
  assert_non_null(dense);
  random_bytes(seed, dense, (size_t)bytes);
  tegula__hash128 expected = {0}, found = {0};
  assert_ok(
      tegula__hash_run(pool, kernels, dtype, dense, 0, bytes / dtype.item_size, &expected, &error));
  static spread s;
  s.count = 0;
  cut(&s, seed, dtype, shape, ndim, zero, shape, dense, 5);
  tegula__targets targets;
  assert_ok(tegula__targets_create(ndim, s.tiles, s.count, &targets, &error));
  assert_ok(tegula__hash_tiles(pool, kernels, dtype, shape, ndim, &targets, &found, &error));
  assert_true(found.low == expected.low && found.high == expected.high);
  tegula__targets_free(&targets);
  for (int64_t i = 0; i < s.count; i++) free(s.blocks[i]);
  free(dense);
}

/* Blocks are 65536 bytes: shapes of one block and of several, items that do not divide it, one item
 * larger than a block. */
static void tilings_and_strides_do_not_matter(void **state) {
  (void)state;
  static const struct {
    const char *dtype;
    int64_t shape[AXES];
  } cases[] = {{"<f4", {10, 7, 3}},    {"<f4", {40, 50, 30}}, {"|b1", {100, 90, 40}},
               {"<c16", {20, 30, 20}}, {"|V7", {40, 30, 30}}, {"<U5", {20, 20, 20}},
               {"|V70000", {2, 3, 2}}, {"<i2", {1, 1, 1}},    {"<M8[s]", {3, 5000, 4}},
               {"<U20000", {2, 2, 1}}};
  uint64_t seed = 13;
  for (int32_t threads = 1; threads <= 3; threads += 2) {
    tegula_error error;
    tegula__pool *pool;
    assert_ok(tegula__pool_create(threads, threads, &pool, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
      for (int32_t ndim = 0; ndim <= AXES; ndim++)
        compare(pool, tegula__kernel_select(), &seed, cases[i].dtype, cases[i].shape, ndim);
    tegula__pool_destroy(pool);
  }
}

/* A change of one element must be seen, else the test above proves nothing. */
static void each_element_matters(void **state) {
  (void)state;
  tegula_error error;
  tegula__pool *pool;
  assert_ok(tegula__pool_create(1, 1, &pool, &error));
  int32_t values[2][6] = {{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}};
  const int64_t shape[2] = {2, 6}, lo[2][2] = {{0, 0}, {1, 0}}, hi[2][2] = {{1, 6}, {2, 6}},
                strides[2] = {24, 4};
  tegula__tile tiles[2];
  for (int i = 0; i < 2; i++)
    tiles[i] = (tegula__tile){
        .lo = lo[i], .hi = hi[i], .strides = strides, .data = (char *)values[i], .order = '<'};
  tegula__targets targets;
  assert_ok(tegula__targets_create(2, tiles, 2, &targets, &error));
  tegula__hash128 first = {0};
  assert_ok(tegula__hash_tiles(pool, tegula__kernel_select(), dtype_of("<i4"), shape, 2, &targets,
                               &first, &error));
  for (int i = 0; i < 12; i++) {
    tegula__hash128 other = {0};
    values[i / 6][i % 6] ^= 1;
    assert_ok(tegula__hash_tiles(pool, tegula__kernel_select(), dtype_of("<i4"), shape, 2, &targets,
                                 &other, &error));
    assert_true(other.low != first.low && other.high != first.high);
    values[i / 6][i % 6] ^= 1;
  }
  tegula__targets_free(&targets);
  tegula__pool_destroy(pool);
}

static void nothing_hashes_to_zero(void **state) {
  (void)state;
  tegula_error error;
  tegula__pool *pool;
  tegula__targets targets;
  tegula__hash128 sum = {0};
  const int64_t shape[2] = {0, 4}, lo[2] = {0, 0}, strides[2] = {16, 4};
  tegula__tile tile = {.lo = lo, .hi = shape, .strides = strides, .order = '<'};
  assert_ok(tegula__pool_create(1, 1, &pool, &error));
  assert_ok(tegula__targets_create(2, &tile, 1, &targets, &error));
  assert_ok(tegula__hash_tiles(pool, tegula__kernel_select(), dtype_of("<i4"), shape, 2, &targets,
                               &sum, &error));
  assert_true(sum.low == 0 && sum.high == 0);
  tegula__targets_free(&targets);
  tegula__pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tilings_and_strides_do_not_matter),
      cmocka_unit_test(each_element_matters),
      cmocka_unit_test(nothing_hashes_to_zero),
  };
  return cmocka_run_group_tests_name("check: hash of tiles", tests, NULL, NULL);
}
