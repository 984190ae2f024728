/* Blocks that are kept by a key: what is found, what goes first, what users and owners may rely
 * on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <pthread.h>

#include "memory/block_cache.h"

enum { BYTES = 1000 };

static tegula__block_cache *new_cache(int64_t blocks) {
  tegula__block_cache *cache;
  tegula_error error;
  assert_ok(tegula__block_cache_create(blocks * BYTES, &cache, &error));
  return cache;
}

/* A block whose bytes follow from its key, kept. False: there was no room. */
static bool put(tegula__block_cache *cache, uint64_t owner, int64_t key) {
  tegula__cached *block = tegula__block_cache_new(cache, owner, &key, 1, BYTES);
  if (block == NULL) return false;
  memset(block->data, (int)(key * 7 + (int64_t)owner), BYTES);
  tegula__block_cache_put(cache, block);
  tegula__block_cache_give(cache, block);
  return true;
}

static tegula__cached *find(tegula__block_cache *cache, uint64_t owner, int64_t key) {
  tegula__cached *block = tegula__block_cache_find(cache, owner, &key, 1);
  if (block == NULL) return NULL;
  char expected = (char)(key * 7 + (int64_t)owner);
  for (int i = 0; i < BYTES; i++)
    if (block->data[i] != expected) fail_msg("key %lld: byte %d", (long long)key, i);
  return block;
}

static bool there(tegula__block_cache *cache, uint64_t owner, int64_t key) {
  tegula__cached *block = find(cache, owner, key);
  if (block != NULL) tegula__block_cache_give(cache, block);
  return block != NULL;
}

static void what_was_used_longest_ago_goes_first(void **state) {
  (void)state;
  tegula__block_cache *cache = new_cache(4);
  assert_int_equal(tegula__block_cache_limit(cache), 4 * BYTES);
  assert_false(there(cache, 1, 0));
  for (int64_t key = 0; key < 4; key++) assert_true(put(cache, 1, key));
  assert_true(there(cache, 1, 0)); /* 1 is now the oldest */
  assert_true(put(cache, 1, 4));
  assert_false(there(cache, 1, 1));
  for (int64_t key = 0; key < 5; key++) assert_int_equal(there(cache, 1, key), key != 1);
  tegula__block_cache_destroy(cache);
}

static void keys_of_owners_differ(void **state) {
  (void)state;
  tegula__block_cache *cache = new_cache(100);
  uint64_t a = tegula__block_cache_owner(cache), b = tegula__block_cache_owner(cache);
  assert_true(a != 0 && b != 0 && a != b);
  for (int64_t key = 0; key < 20; key++) assert_true(put(cache, a, key));
  assert_false(there(cache, b, 3));
  assert_true(put(cache, b, 3));
  tegula__block_cache_forget(cache, a);
  for (int64_t key = 0; key < 20; key++) assert_false(there(cache, a, key));
  assert_true(there(cache, b, 3));
  tegula__block_cache_destroy(cache);
}

static void a_longer_key_is_another(void **state) {
  (void)state;
  tegula__block_cache *cache = new_cache(10);
  int64_t key[2] = {5, 0};
  assert_true(put(cache, 1, 5));
  assert_null(tegula__block_cache_find(cache, 1, key, 2));
  tegula__block_cache_destroy(cache);
}

/* Whoever has a block may go on reading it, whatever becomes of its place. */
static void blocks_in_use_are_not_freed(void **state) {
  (void)state;
  tegula__block_cache *cache = new_cache(2);
  assert_true(put(cache, 1, 0) && put(cache, 1, 1));
  tegula__cached *first = find(cache, 1, 0), *second = find(cache, 1, 1);
  assert_false(put(cache, 1, 2)); /* both are in use */
  tegula__block_cache_forget(cache, 1);
  assert_false(there(cache, 1, 0));
  for (int i = 0; i < BYTES; i++) assert_int_equal(first->data[i], 1);
  tegula__block_cache_give(cache, first);
  tegula__block_cache_give(cache, second);
  assert_true(put(cache, 1, 2) && put(cache, 1, 3)); /* their bytes are no longer counted */
  assert_true(there(cache, 1, 2) && there(cache, 1, 3));
  tegula__block_cache_destroy(cache);
}

static void a_block_that_is_there_already_goes_with_its_maker(void **state) {
  (void)state;
  tegula__block_cache *cache = new_cache(2);
  for (int i = 0; i < 10; i++) assert_true(put(cache, 1, 7));
  assert_true(put(cache, 1, 8));
  assert_true(there(cache, 1, 7) && there(cache, 1, 8));
  tegula__block_cache_destroy(cache);
}

static void what_is_too_large_is_refused(void **state) {
  (void)state;
  tegula__block_cache *cache = new_cache(2);
  int64_t key = 0;
  assert_null(tegula__block_cache_new(cache, 1, &key, 1, 2 * BYTES + 1));
  tegula__cached *block = tegula__block_cache_new(cache, 1, &key, 1, 2 * BYTES);
  assert_non_null(block);
  assert_null(tegula__block_cache_new(cache, 1, &key, 1, 1));
  tegula__block_cache_free(cache, block); /* was never put */
  tegula__cached *nothing = tegula__block_cache_new(cache, 1, &key, 1, 0);
  assert_non_null(nothing);
  tegula__block_cache_put(cache, nothing);
  tegula__block_cache_give(cache, nothing);
  nothing = tegula__block_cache_find(cache, 1, &key, 1);
  assert_true(nothing != NULL && nothing->bytes == 0);
  tegula__block_cache_give(cache, nothing);
  tegula__block_cache_destroy(cache);
}

/* More blocks than the table has places. */
static void many_small_blocks(void **state) {
  (void)state;
  tegula__block_cache *cache = new_cache(5000);
  int found = 0;
  for (int64_t key = 0; key < 5000; key++) assert_true(put(cache, 1, key));
  for (int64_t key = 0; key < 5000; key++) found += there(cache, 1, key);
  assert_true(found > 500 && found <= 1024);
  tegula__block_cache_destroy(cache);
}

typedef struct reader {
  tegula__block_cache *cache;
  uint64_t owner, seed;
} reader;

static void *use(void *state) {
  reader *r = state;
  for (int i = 0; i < 4000; i++) {
    int64_t key = (int64_t)random_between(&r->seed, 0, 40);
    tegula__cached *block = find(r->cache, r->owner, key);
    if (block != NULL)
      tegula__block_cache_give(r->cache, block);
    else
      put(r->cache, r->owner, key);
    if (i % 500 == 499) tegula__block_cache_forget(r->cache, r->owner);
  }
  return NULL;
}

static void threads_share_it(void **state) {
  (void)state;
  tegula__block_cache *cache = new_cache(30);
  pthread_t threads[8];
  reader readers[8];
  for (uint64_t i = 0; i < 8; i++) {
    readers[i] = (reader){.cache = cache, .owner = 1 + i % 2, .seed = i};
    assert_int_equal(pthread_create(&threads[i], NULL, use, &readers[i]), 0);
  }
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  for (int64_t key = 100; key < 130; key++)
    assert_true(put(cache, 3, key)); /* all bytes are free */
  tegula__block_cache_destroy(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_was_used_longest_ago_goes_first),
      cmocka_unit_test(keys_of_owners_differ),
      cmocka_unit_test(a_longer_key_is_another),
      cmocka_unit_test(blocks_in_use_are_not_freed),
      cmocka_unit_test(a_block_that_is_there_already_goes_with_its_maker),
      cmocka_unit_test(what_is_too_large_is_refused),
      cmocka_unit_test(many_small_blocks),
      cmocka_unit_test(threads_share_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
