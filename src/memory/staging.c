/* Staging slots: made when first needed, kept, shared by all calls of a context.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>

#include "memory/memory.h"

#define DEFAULT_BUDGET ((int64_t)64 << 20)
#define SMALLEST_SLOT ((int64_t)16 << 10)
#define LARGEST_SLOT ((int64_t)4 << 20)

struct tegula__staging {
  pthread_mutex_t lock;
  pthread_cond_t given;
  int64_t slot;
  int64_t most;  /* slots that may exist */
  int64_t made;
  int64_t budget;
  int64_t counted; /* bytes that others take */
  int64_t free_count;
  char **free_slots; /* room for `most` */
};

tegula_status tegula__staging_create(int64_t budget, int32_t threads, tegula__staging **out, tegula_error *err) {
  if (budget == 0) budget = DEFAULT_BUDGET;
  int64_t slot = tegula__max(SMALLEST_SLOT, tegula__min(LARGEST_SLOT, budget / threads)) / 4096 * 4096;
  int64_t most = tegula__max(1, tegula__min(budget / slot, 4 * (int64_t)threads));
  tegula__staging *staging = calloc(1, sizeof *staging);
  char **slots = tegula__realloc_array(NULL, most, sizeof *slots);
  if (staging == NULL || slots == NULL) {
    free(staging);
    free(slots);
    return tegula__out_of_memory(err, most * (int64_t)sizeof *slots);
  }
  pthread_mutex_init(&staging->lock, NULL);
  pthread_cond_init(&staging->given, NULL);
  staging->slot = slot;
  staging->budget = budget;
  staging->most = most;
  staging->free_slots = slots;
  *out = staging;
  return TEGULA_OK;
}

void tegula__staging_destroy(tegula__staging *staging) {
  if (staging == NULL) return;
  for (int64_t i = 0; i < staging->free_count; i++) free(staging->free_slots[i]);
  pthread_mutex_destroy(&staging->lock);
  pthread_cond_destroy(&staging->given);
  free(staging->free_slots);
  free(staging);
}

int64_t tegula__staging_slot(const tegula__staging *staging) { return staging->slot; }

char *tegula__staging_take(tegula__staging *staging) {
  char *slot = NULL;
  pthread_mutex_lock(&staging->lock);
  while (staging->free_count == 0 && staging->made == staging->most) pthread_cond_wait(&staging->given, &staging->lock);
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

void tegula__staging_count(tegula__staging *staging, int64_t bytes) {
  pthread_mutex_lock(&staging->lock);
  while (staging->counted > 0 && bytes > staging->budget - staging->counted) pthread_cond_wait(&staging->given, &staging->lock);
  staging->counted += bytes;
  pthread_mutex_unlock(&staging->lock);
}

void tegula__staging_uncount(tegula__staging *staging, int64_t bytes) {
  pthread_mutex_lock(&staging->lock);
  staging->counted -= bytes;
  pthread_cond_broadcast(&staging->given); /* several may fit now */
  pthread_mutex_unlock(&staging->lock);
}
