/* A table of sets: a key's blocks are in the set that its hash says.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a full set loses, and what goes when the bytes are too many, is the block that was not used
 * for longest and that nobody has. */
#include "memory/block_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 128, WAYS = 8, ENTRIES = SETS * WAYS };

struct tegula__block_cache {
  pthread_mutex_t lock; /* of all that follows */
  int64_t limit, bytes; /* of blocks that are put, and those that are being filled */
  uint64_t owners, clock;
  tegula__cached **entries; /* NULL: none was put */
};

tegula_status tegula__block_cache_create(int64_t limit, tegula__block_cache **out,
                                         tegula_error *err) {
  tegula__block_cache *cache = calloc(1, sizeof *cache);
  if (cache == NULL) return tegula__out_of_memory(err, sizeof *cache);
  pthread_mutex_init(&cache->lock, NULL);
  cache->limit = limit;
  *out = cache;
  return TEGULA_OK;
}

void tegula__block_cache_destroy(tegula__block_cache *cache) {
  if (cache == NULL) return;
  for (int i = 0; cache->entries != NULL && i < ENTRIES; i++) {
    if (cache->entries[i] != NULL) free(cache->entries[i]->data);
    free(cache->entries[i]);
  }
  pthread_mutex_destroy(&cache->lock);
  free(cache->entries);
  free(cache);
}

int64_t tegula__block_cache_limit(const tegula__block_cache *cache) { return cache->limit; }

uint64_t tegula__block_cache_owner(tegula__block_cache *cache) {
  pthread_mutex_lock(&cache->lock);
  uint64_t owner = ++cache->owners;
  pthread_mutex_unlock(&cache->lock);
  return owner;
}

static tegula__cached **set_of(const tegula__block_cache *cache, uint64_t owner, const int64_t *key,
                               size_t key_length) {
  uint64_t mixed = owner;
  for (size_t i = 0; i < key_length; i++) {
    mixed = (mixed ^ (uint64_t)key[i]) * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 32;
  }
  return cache->entries + mixed % SETS * WAYS;
}

static bool is_it(const tegula__cached *block, uint64_t owner, const int64_t *key,
                  size_t key_length) {
  return block != NULL && block->owner == owner && block->key_length == key_length &&
         memcmp(block->key, key, key_length * sizeof *key) == 0;
}

tegula__cached *tegula__block_cache_find(tegula__block_cache *cache, uint64_t owner,
                                         const int64_t *key, size_t key_length) {
  tegula__cached *found = NULL;
  pthread_mutex_lock(&cache->lock);
  tegula__cached **set = cache->entries != NULL ? set_of(cache, owner, key, key_length) : NULL;
  for (int i = 0; set != NULL && i < WAYS && found == NULL; i++)
    if (is_it(set[i], owner, key, key_length)) found = set[i];
  if (found != NULL) {
    found->users++;
    found->used = ++cache->clock;
  }
  pthread_mutex_unlock(&cache->lock);
  return found;
}

/* With the lock. */
static void drop(tegula__block_cache *cache, tegula__cached *block) {
  cache->bytes -= block->bytes;
  free(block->data);
  free(block);
}

void tegula__block_cache_give(tegula__block_cache *cache, tegula__cached *block) {
  pthread_mutex_lock(&cache->lock);
  if (--block->users == 0 && block->lost) drop(cache, block);
  pthread_mutex_unlock(&cache->lock);
}

/* The place of the block among `count` that nobody has and that was not used for longest; NULL:
 * there is none. */
static tegula__cached **oldest(tegula__cached **entries, int count) {
  tegula__cached **found = NULL;
  for (int i = 0; i < count; i++)
    if (entries[i] != NULL && entries[i]->users == 0 &&
        (found == NULL || entries[i]->used < (*found)->used))
      found = &entries[i];
  return found;
}

/* With the lock: makes room; the memory of a block that goes is taken where it fits, since new
 * memory costs a page fault for each page. */
static bool make_room(tegula__block_cache *cache, int64_t bytes, char **data) {
  while (cache->bytes > cache->limit - bytes) {
    tegula__cached **place = cache->entries != NULL ? oldest(cache->entries, ENTRIES) : NULL;
    if (place == NULL) return false;
    tegula__cached *block = *place;
    *place = NULL;
    if (*data == NULL && block->bytes == bytes && bytes > 0) {
      *data = block->data;
      block->data = NULL;
    }
    drop(cache, block);
  }
  cache->bytes += bytes;
  return true;
}

static void uncount(tegula__block_cache *cache, int64_t bytes) {
  pthread_mutex_lock(&cache->lock);
  cache->bytes -= bytes;
  pthread_mutex_unlock(&cache->lock);
}

tegula__cached *tegula__block_cache_new(tegula__block_cache *cache, uint64_t owner,
                                        const int64_t *key, size_t key_length, int64_t bytes) {
  char *data = NULL;
  if (bytes > cache->limit) return NULL;
  pthread_mutex_lock(&cache->lock);
  bool good = make_room(cache, bytes, &data);
  pthread_mutex_unlock(&cache->lock);
  if (!good) {
    free(data);
    return NULL;
  }
  tegula__cached *block = malloc(sizeof *block + key_length * sizeof *key);
  if (data == NULL) data = malloc(bytes > 0 ? (size_t)bytes : 1);
  if (block == NULL || data == NULL) {
    free(block);
    free(data);
    uncount(cache, bytes);
    return NULL;
  }
  *block = (tegula__cached){
      .data = data, .bytes = bytes, .owner = owner, .users = 1, .key_length = key_length};
  memcpy(block->key, key, key_length * sizeof *key);
  return block;
}

void tegula__block_cache_free(tegula__block_cache *cache, tegula__cached *block) {
  pthread_mutex_lock(&cache->lock);
  drop(cache, block);
  pthread_mutex_unlock(&cache->lock);
}

/* With the lock: where the block goes; NULL: it is there already, or all of its set are in use. */
static tegula__cached **place_for(tegula__block_cache *cache, const tegula__cached *block) {
  if (cache->entries == NULL) cache->entries = calloc(ENTRIES, sizeof(tegula__cached *));
  if (cache->entries == NULL) return NULL;
  tegula__cached **set = set_of(cache, block->owner, block->key, block->key_length), **empty = NULL;
  for (int i = 0; i < WAYS; i++) {
    if (is_it(set[i], block->owner, block->key, block->key_length)) return NULL;
    if (set[i] == NULL) empty = &set[i];
  }
  return empty != NULL ? empty : oldest(set, WAYS);
}

void tegula__block_cache_put(tegula__block_cache *cache, tegula__cached *block) {
  pthread_mutex_lock(&cache->lock);
  tegula__cached **place = place_for(cache, block);
  block->used = ++cache->clock;
  block->lost = place == NULL; /* it goes with the caller */
  if (place != NULL) {
    if (*place != NULL) drop(cache, *place);
    *place = block;
  }
  pthread_mutex_unlock(&cache->lock);
}

void tegula__block_cache_forget(tegula__block_cache *cache, uint64_t owner) {
  pthread_mutex_lock(&cache->lock);
  for (int i = 0; cache->entries != NULL && i < ENTRIES; i++) {
    tegula__cached *block = cache->entries[i];
    if (block == NULL || block->owner != owner) continue;
    cache->entries[i] = NULL;
    block->lost = true;
    if (block->users == 0) drop(cache, block);
  }
  pthread_mutex_unlock(&cache->lock);
}
