/* block_cache: blocks of bytes that are kept by a key; those that were not used for longest go
 * first.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * All blocks together have at most the bytes that the cache was made with. Any number of threads
 * may use it at once. */
#ifndef TEGULA_MEMORY_BLOCK_CACHE_H
#define TEGULA_MEMORY_BLOCK_CACHE_H

#include "base/base.h"

typedef struct tegula__block_cache tegula__block_cache;

/* One block; who has it from the cache may read `data` until it gives it back. */
typedef struct tegula__cached {
  char *data;
  int64_t bytes;
  int64_t tag; /* what the owner noted with it */
  uint64_t owner;
  uint64_t used; /* when it was found or put last */
  int32_t users; /* who has it now; it is not thrown away before */
  bool lost;     /* its owner is gone: it is freed when the last user is */
  size_t key_length;
  int64_t key[]; /* key_length numbers */
} tegula__cached;

/* `limit`: bytes of all blocks. Nothing is allocated for blocks before the first is put. */
tegula_status tegula__block_cache_create(int64_t limit, tegula__block_cache **out,
                                         tegula_error *err);
/* Nobody has a block any more. Accepts NULL. */
void tegula__block_cache_destroy(tegula__block_cache *cache);
int64_t tegula__block_cache_limit(const tegula__block_cache *cache);

/* A number by which one owner's keys differ from those of all others; never 0. */
uint64_t tegula__block_cache_owner(tegula__block_cache *cache);

/* NULL: not there. */
tegula__cached *tegula__block_cache_find(tegula__block_cache *cache, uint64_t owner,
                                         const int64_t *key, size_t key_length);
void tegula__block_cache_give(tegula__block_cache *cache, tegula__cached *block);

/* A new block of that size, at most the limit, which only the caller has: it is filled, then put or
 * freed. Others are thrown away for it. NULL: no memory, or too many blocks are in use. */
tegula__cached *tegula__block_cache_new(tegula__block_cache *cache, uint64_t owner,
                                        const int64_t *key, size_t key_length, int64_t bytes);
void tegula__block_cache_free(tegula__block_cache *cache, tegula__cached *block);
/* The caller still has it, and gives it back. */
void tegula__block_cache_put(tegula__block_cache *cache, tegula__cached *block);

/* Throws away all blocks of an owner. */
void tegula__block_cache_forget(tegula__block_cache *cache, uint64_t owner);

#endif
