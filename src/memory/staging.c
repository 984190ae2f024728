/* Staging slots and lent blocks: made when first needed, kept, shared by all calls of a context.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>

#include "memory/memory.h"

#define DEFAULT_BUDGET ((int64_t)64 << 20)
#define SMALLEST_SLOT ((int64_t)16 << 10)
#define LARGEST_SLOT ((int64_t)4 << 20)
/* lent blocks are multiples of it, so that one fits for the next */
#define BLOCK_UNIT ((int64_t)256 << 10)

enum { MOST_KEPT = 256 };

struct tegula__staging {
  pthread_mutex_t lock;
  pthread_cond_t given;
  int64_t slot;
  int64_t most; /* slots that may exist */
  int64_t made;
  int64_t budget;
  int64_t counted; /* bytes that others take */
  int64_t free_count;
  char **free_slots; /* room for `most` */
  int32_t threads;
  int32_t lent;        /* blocks that are out */
  tegula__block *kept; /* lent before, the latest last; room for `most_kept` */
  int kept_count, most_kept;
  int64_t kept_bytes;
};

tegula_status tegula__staging_create(int64_t budget, int32_t threads, tegula__staging **out,
                                     tegula_error *err) {
  if (budget == 0) budget = DEFAULT_BUDGET;
  int64_t slot =
      tegula__max(SMALLEST_SLOT, tegula__min(LARGEST_SLOT, budget / threads)) / 4096 * 4096;
  int64_t most = tegula__max(1, tegula__min(budget / slot, 4 * (int64_t)threads));
  tegula__staging *staging = calloc(1, sizeof *staging);
  char **slots = tegula__realloc_array(NULL, most, sizeof *slots);
  int most_kept = (int)tegula__max(MOST_KEPT, threads);
  tegula__block *kept = tegula__realloc_array(NULL, most_kept, sizeof *kept);
  if (staging == NULL || slots == NULL || kept == NULL) {
    free(staging);
    free(slots);
    free(kept);
    return tegula__out_of_memory(err, most * (int64_t)sizeof *slots);
  }
  pthread_mutex_init(&staging->lock, NULL);
  pthread_cond_init(&staging->given, NULL);
  staging->slot = slot;
  staging->budget = budget;
  staging->most = most;
  staging->free_slots = slots;
  staging->threads = threads;
  staging->kept = kept;
  staging->most_kept = most_kept;
  *out = staging;
  return TEGULA_OK;
}

void tegula__staging_destroy(tegula__staging *staging) {
  if (staging == NULL) return;
  for (int64_t i = 0; i < staging->free_count; i++) free(staging->free_slots[i]);
  for (int i = 0; i < staging->kept_count; i++) tegula__block_free(&staging->kept[i]);
  pthread_mutex_destroy(&staging->lock);
  pthread_cond_destroy(&staging->given);
  free(staging->free_slots);
  free(staging->kept);
  free(staging);
}

int64_t tegula__staging_budget(const tegula__staging *staging) { return staging->budget; }

int64_t tegula__staging_slot(const tegula__staging *staging) { return staging->slot; }

char *tegula__staging_take(tegula__staging *staging) {
  char *slot = NULL;
  pthread_mutex_lock(&staging->lock);
  while (staging->free_count == 0 && staging->made == staging->most)
    pthread_cond_wait(&staging->given, &staging->lock);
  if (staging->free_count > 0) {
    slot = staging->free_slots[--staging->free_count];
  } else {
    slot = aligned_alloc(4096, (size_t)staging->slot);
    if (slot != NULL) staging->made++;
  }
  pthread_mutex_unlock(&staging->lock);
  return slot;
}

void tegula__staging_give(tegula__staging *staging, char *slot) {
  pthread_mutex_lock(&staging->lock);
  staging->free_slots[staging->free_count++] = slot;
  pthread_cond_broadcast(&staging->given);
  pthread_mutex_unlock(&staging->lock);
}

/* Takes kept block i out of the list. */
static tegula__block take_kept(tegula__staging *staging, int i) {
  tegula__block block = staging->kept[i];
  staging->kept_count--;
  for (int k = i; k < staging->kept_count; k++) staging->kept[k] = staging->kept[k + 1];
  staging->kept_bytes -= (int64_t)block.mapped;
  return block;
}

/* With the lock: does it fit, or is nothing else counted? */
static bool fits(const tegula__staging *staging, int64_t bytes) {
  return staging->counted <= 0 || bytes <= staging->budget - staging->counted;
}

/* With the lock: kept blocks give way to what is counted, the oldest first, but for one for each
 * thread that has none. */
static void make_way(tegula__staging *staging, int32_t threads) {
  while (staging->kept_count > 0 && staging->kept_bytes > staging->budget - staging->counted &&
         staging->kept_count + staging->lent > threads) {
    tegula__block block = take_kept(staging, 0);
    tegula__block_free(&block);
  }
}

void tegula__staging_count(tegula__staging *staging, int64_t bytes) {
  pthread_mutex_lock(&staging->lock);
  while (!fits(staging, bytes)) pthread_cond_wait(&staging->given, &staging->lock);
  staging->counted += bytes;
  make_way(staging, 0);
  pthread_mutex_unlock(&staging->lock);
}

void tegula__staging_uncount(tegula__staging *staging, int64_t bytes) {
  pthread_mutex_lock(&staging->lock);
  staging->counted -= bytes;
  pthread_cond_broadcast(&staging->given); /* several may fit now */
  pthread_mutex_unlock(&staging->lock);
}

/* ---- lent blocks ---- */

/* With the lock: a kept block that is large enough and not much too large, the latest first. */
static tegula__block find_kept(tegula__staging *staging, int64_t bytes) {
  for (int i = staging->kept_count - 1; i >= 0; i--) {
    int64_t size = (int64_t)staging->kept[i].mapped;
    if (size >= bytes && size / 2 <= bytes) return take_kept(staging, i);
  }
  return (tegula__block){0};
}

tegula_status tegula__staging_lend(tegula__staging *staging, int64_t bytes, int64_t besides,
                                   tegula__block *out, tegula_error *err) {
  int64_t size, sum;
  *out = (tegula__block){0};
  if (!tegula__add(bytes, BLOCK_UNIT - 1, &size) || !tegula__add(size, besides, &sum))
    return tegula__out_of_memory(err, INT64_MAX);
  size = size / BLOCK_UNIT * BLOCK_UNIT;
  pthread_mutex_lock(&staging->lock);
  while (!fits(staging, size + besides) && staging->lent >= staging->threads)
    pthread_cond_wait(&staging->given, &staging->lock);
  staging->counted += size + besides;
  staging->lent++;
  *out = find_kept(staging, size);
  if (out->mapped > 0) staging->counted += (int64_t)out->mapped - size;
  make_way(staging, staging->threads);
  pthread_mutex_unlock(&staging->lock);
  if (out->mapped > 0 || size == 0) return TEGULA_OK;
  tegula_status status = tegula__block_create(size, out, err);
  if (status == TEGULA_OK) return TEGULA_OK;
  tegula__staging_return(staging, out, size + besides);
  return status;
}

void tegula__staging_return(tegula__staging *staging, tegula__block *block, int64_t besides) {
  int64_t size = (int64_t)block->mapped;
  pthread_mutex_lock(&staging->lock);
  staging->counted -= size + besides;
  staging->lent--;
  bool keeps = size <= staging->budget - staging->counted - staging->kept_bytes ||
               staging->kept_count + staging->lent < staging->threads;
  if (size > 0 && staging->kept_count < staging->most_kept && keeps) {
    staging->kept[staging->kept_count++] = *block;
    staging->kept_bytes += size;
    *block = (tegula__block){0};
  }
  pthread_cond_broadcast(&staging->given);
  pthread_mutex_unlock(&staging->lock);
  tegula__block_free(block);
}

void tegula__staging_trim(tegula__staging *staging) {
  pthread_mutex_lock(&staging->lock);
  if (staging->lent == 0) make_way(staging, 0);
  pthread_mutex_unlock(&staging->lock);
}
