/* memory: where tiles and staged bytes live.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Blocks are reserved, not touched: the worker that fills a page is the one that touches it.
 * Staging is bounded for all calls of a context together: a call that wants more waits for a
 * slot.
 *
 * block.c makes blocks, staging.c lends slots, block_cache.c keeps blocks by a key. The folder
 * includes base. */
#ifndef TEGULA_MEMORY_MEMORY_H
#define TEGULA_MEMORY_MEMORY_H

#include "base/base.h"

typedef struct tegula__block {
  char *data; /* aligned to 2 MiB from that size on, else to a page; NULL for no bytes */
  size_t mapped;
} tegula__block;

/* OUT_OF_MEMORY when so much, in all blocks together, is more than this process is granted: before
 * anything is touched. */
tegula_status tegula__memory_check(int64_t bytes, tegula_error *err);
tegula_status tegula__block_create(int64_t bytes, tegula__block *out, tegula_error *err);
void tegula__block_free(tegula__block *block);

typedef struct tegula__staging tegula__staging;
/* Slots for `threads` workers out of `budget` bytes (0: 64 MiB). */
tegula_status tegula__staging_create(int64_t budget, int32_t threads, tegula__staging **out,
                                     tegula_error *err);
void tegula__staging_destroy(tegula__staging *staging);
int64_t tegula__staging_budget(const tegula__staging *staging);
/* Bytes of a slot: what one step may stage. */
int64_t tegula__staging_slot(const tegula__staging *staging);
/* A slot, page aligned; waits while all are in use. Whoever holds one never takes another. NULL: no
 * memory. */
char *tegula__staging_take(tegula__staging *staging);
void tegula__staging_give(tegula__staging *staging, char *slot);
/* Counts memory that somebody else takes (a reader's callback) against the budget: waits until it
 * fits, or until nothing else is counted. Whoever has something counted takes no slot and counts
 * nothing else. */
void tegula__staging_count(tegula__staging *staging, int64_t bytes);
void tegula__staging_uncount(tegula__staging *staging, int64_t bytes);
/* A block of at least `bytes`, counted together with `besides` bytes that the caller takes
 * elsewhere. One for each thread is always to be had; more wait until they fit in the budget.
 * Blocks that come back are kept while the budget has room for them, or threads are without one;
 * trim frees what is too much for the budget when nobody has one any more. Whoever has one lends no
 * other. The content is undefined. */
tegula_status tegula__staging_lend(tegula__staging *staging, int64_t bytes, int64_t besides,
                                   tegula__block *out, tegula_error *err);
void tegula__staging_return(tegula__staging *staging, tegula__block *block, int64_t besides);
void tegula__staging_trim(tegula__staging *staging);

#endif
