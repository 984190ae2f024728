/* The content hash against values made by an independent implementation (Python, numpy and the
 * xxhash package), whatever the byte order in memory, the number of threads and the table of
 * kernels.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "verify/hash.h"

static tegula_dtype dtype_of(const char *text) {
  tegula_dtype dtype;
  assert_int_equal(tegula_dtype_parse(text, &dtype, NULL), TEGULA_OK);
  return dtype;
}

/* The hash of a dense array in memory, cut into runs of at most `run` blocks. */
static void hash_in_runs(int32_t threads, const tegula__kernels *kernels, tegula_dtype dtype,
                         const void *data, const int64_t *shape, int32_t ndim, int64_t run,
                         char out[TEGULA_HASH_TEXT]) {
  tegula__pool *pool;
  tegula__hash128 sum = {0, 0};
  int64_t count, step = run * tegula__hash_block_elements(dtype);
  assert_true(tegula__shape_count(shape, ndim, &count));
  assert_int_equal(tegula__pool_create(threads, threads, &pool, NULL), TEGULA_OK);
  for (int64_t at = 0; at < count; at += step) {
    const char *from = (const char *)data + at * dtype.item_size;
    assert_int_equal(
        tegula__hash_run(pool, kernels, dtype, from, at, tegula__min(step, count - at), &sum, NULL),
        TEGULA_OK);
  }
  tegula__hash_text(dtype, shape, ndim, sum, out);
  tegula__pool_destroy(pool);
}

/* Every way to come to the hash gives the same text. */
static void check_hash(const char *dtype, const void *data, const int64_t *shape, int32_t ndim,
                       const char *expected) {
  char text[TEGULA_HASH_TEXT];
  for (size_t table = 0; tegula__kernel_at(table); table++) {
    hash_in_runs(1, tegula__kernel_at(table), dtype_of(dtype), data, shape, ndim, 1, text);
    assert_string_equal(text, expected);
    hash_in_runs(3, tegula__kernel_at(table), dtype_of(dtype), data, shape, ndim, 1000, text);
    assert_string_equal(text, expected);
  }
}

static void integers_in_either_byte_order(void **state) {
  (void)state; /* arange(100000, dtype='<i4') as (1000, 100) */
  int32_t *little = malloc(400000), *big = malloc(400000);
  for (int32_t i = 0; i < 100000; i++) {
    little[i] = TEGULA__NATIVE_ORDER == '<' ? i : (int32_t)__builtin_bswap32((uint32_t)i);
    big[i] = (int32_t)__builtin_bswap32((uint32_t)little[i]);
  }
  const int64_t shape[] = {1000, 100};
  check_hash("<i4", little, shape, 2, "tegula1:d6d09fb0a9574ab84bb79cc39418d26d");
  check_hash(">i4", big, shape, 2, "tegula1:d6d09fb0a9574ab84bb79cc39418d26d");
  /* memory is not changed */
  assert_int_equal(big[1], TEGULA__NATIVE_ORDER == '<' ? 0x01000000 : 1);
  free(little);
  free(big);
}

static void many_zeros(void **state) {
  (void)state; /* zeros (4096, 1024) f4 */
  void *data = calloc(4096 * 1024, 4);
  check_hash("<f4", data, (int64_t[]){4096, 1024}, 2, "tegula1:4079c42e1386c28cf3b386b099e52e50");
  check_hash(">f4", data, (int64_t[]){4096, 1024}, 2, "tegula1:4079c42e1386c28cf3b386b099e52e50");
  free(data);
}

static void any_true_counts_as_one(void **state) {
  (void)state; /* arange(70000) % 3 == 0 as (7, 10000) bool */
  unsigned char *data = malloc(70000);
  const int64_t shape[] = {7, 10000};
  for (int i = 0; i < 70000; i++) data[i] = i % 3 == 0;
  check_hash("|b1", data, shape, 2, "tegula1:aed9ff204a1037e16fc10cb8776078ab");
  for (int i = 0; i < 70000; i++) data[i] = i % 3 == 0 ? (unsigned char)(1 + i % 255) : 0;
  check_hash("|b1", data, shape, 2, "tegula1:aed9ff204a1037e16fc10cb8776078ab");
  free(data);
}

static void no_elements_and_one_element(void **state) {
  (void)state;
  const double scalar = 3.5;
  check_hash("<f4", NULL, (int64_t[]){0, 4}, 2, "tegula1:4c519d72ff89e088e13e8831d35f3a49");
  check_hash("|V5", NULL, (int64_t[]){0, 3}, 2, "tegula1:3d58d3b3b19c973d36ce8b5e339190cb");
  check_hash(TEGULA__NATIVE_ORDER == '<' ? "<f8" : ">f8", &scalar, NULL, 0,
             "tegula1:7c12c993b6b8c21ff93add91baf78844");
}

static void text_is_swapped_by_code_units(void **state) {
  (void)state; /* np.array(['tegula', 'Gr\u00f6\u00dfe', '\U0001F9F1'], '>U7') */
  static const uint32_t text[3][7] = {
      {0x74, 0x65, 0x67, 0x75, 0x6c, 0x61}, {0x47, 0x72, 0xf6, 0xdf, 0x65}, {0x1f9f1}};
  unsigned char big[84];
  for (int i = 0; i < 21; i++)
    for (int k = 0; k < 4; k++)
      big[4 * i + k] = (unsigned char)(text[i / 7][i % 7] >> (24 - 8 * k));
  check_hash(">U7", big, (int64_t[]){3}, 1, "tegula1:dca8ba3de59fa00cc500c45427e1b434");
}

static void items_larger_than_a_block(void **state) {
  /* opaque bytes (i * 7 + i // 256) % 256, and U17000 text with code units 0, 1, 2, ... */
  (void)state;
  unsigned char *data = malloc(140000);
  for (int i = 0; i < 140000; i++) data[i] = (unsigned char)(i * 7 + i / 256);
  check_hash("|V70000", data, (int64_t[]){2}, 1, "tegula1:0b38cdd37d5e94fc8ac64b30d29e7740");
  for (int i = 0; i < 34000; i++)
    for (int k = 0; k < 4; k++) data[4 * i + k] = (unsigned char)(i >> (24 - 8 * k));
  check_hash(">U17000", data, (int64_t[]){2}, 1, "tegula1:d9e10045b09b8d09ab3ebd5cf16b43b2");
  free(data);
}

static void many_blocks_of_eight_byte_items(void **state) {
  (void)state; /* np.arange(200000) * 2654435761 as '>u8' */
  unsigned char *data = malloc(1600000);
  for (uint64_t i = 0; i < 200000; i++)
    for (int k = 0; k < 8; k++)
      data[8 * i + (uint64_t)k] = (unsigned char)(i * UINT64_C(2654435761) >> (56 - 8 * k));
  check_hash(">u8", data, (int64_t[]){200000}, 1, "tegula1:92c1fb8785b58b2ac9ce3397f93fa511");
  data[8 * 123456 + 7] ^= 1;
  char text[TEGULA_HASH_TEXT];
  hash_in_runs(2, tegula__kernel_select(), dtype_of(">u8"), data, (int64_t[]){200000}, 1, 4, text);
  assert_string_not_equal(text, "tegula1:92c1fb8785b58b2ac9ce3397f93fa511"); /* one bit */
  free(data);
}

/* The library's function for any processor, and whatever the build chose for this one. */
static void blocks_hash_alike_on_every_processor(void **state) {
  (void)state;
  enum { LARGEST = 65536 + 300 };
  unsigned char *data = malloc(LARGEST + 8);
  for (uint32_t i = 0; i < LARGEST + 8; i++) data[i] = (unsigned char)(i * 2654435761U >> 24);
  for (size_t bytes = 0; bytes <= LARGEST; bytes += bytes < 2100 ? 1 : 149)
    for (size_t offset = 0; offset < 8; offset += 7) {
      const int64_t index = (int64_t)(bytes * 3 + offset);
      XXH128_hash_t expected = XXH3_128bits_withSeed(data + offset, bytes, (XXH64_hash_t)index);
      tegula__hash128 got = tegula__hash_block(data + offset, bytes, index);
      assert_true(got.low == expected.low64 && got.high == expected.high64);
    }
  free(data);
}

static void canonical_form_is_little_endian_in_place(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++) {
    unsigned char half[] = {1, 2, 3, 4}, truth[] = {0, 2, 255, 1},
                  complex_pair[] = {1, 2, 3, 4, 5, 6, 7, 8};
    tegula__hash_canonical(tegula__kernel_at(table), dtype_of(">f2"), half, 2);
    assert_memory_equal(half, ((unsigned char[]){2, 1, 4, 3}), 4);
    tegula__hash_canonical(tegula__kernel_at(table), dtype_of("<f2"), half, 2);
    assert_memory_equal(half, ((unsigned char[]){2, 1, 4, 3}), 4);
    tegula__hash_canonical(tegula__kernel_at(table), dtype_of("b1"), truth, 4);
    assert_memory_equal(truth, ((unsigned char[]){0, 1, 1, 1}), 4);
    tegula__hash_canonical(tegula__kernel_at(table), dtype_of(">c8"), complex_pair, 1);
    assert_memory_equal(complex_pair, ((unsigned char[]){4, 3, 2, 1, 8, 7, 6, 5}), 8);
  }
  assert_true(tegula__hash_is_canonical(dtype_of("<f8")));
  assert_true(tegula__hash_is_canonical(dtype_of("S7")));
  assert_false(tegula__hash_is_canonical(dtype_of(">f8")));
  assert_false(tegula__hash_is_canonical(dtype_of("b1")));
  assert_int_equal(tegula__hash_block_elements(dtype_of("V12")), 5461);
  assert_int_equal(tegula__hash_block_elements(dtype_of("V65537")), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_in_either_byte_order),
      cmocka_unit_test(many_zeros),
      cmocka_unit_test(any_true_counts_as_one),
      cmocka_unit_test(no_elements_and_one_element),
      cmocka_unit_test(text_is_swapped_by_code_units),
      cmocka_unit_test(items_larger_than_a_block),
      cmocka_unit_test(many_blocks_of_eight_byte_items),
      cmocka_unit_test(canonical_form_is_little_endian_in_place),
      cmocka_unit_test(blocks_hash_alike_on_every_processor),
  };
  return cmocka_run_group_tests_name("check: hash", tests, NULL, NULL);
}
