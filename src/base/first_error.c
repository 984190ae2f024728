/* The error of the lowest item of a job, whatever thread met which first.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/pool.h"

struct tegula__first_error {
  _Atomic int64_t item; /* lowest that failed, INT64_MAX for none */
  tegula_error error;
  pthread_mutex_t lock;
};

tegula__first_error *tegula__first_error_create(void) {
  tegula__first_error *first = calloc(1, sizeof *first);
  if (first == NULL) return NULL;
  atomic_init(&first->item, INT64_MAX);
  pthread_mutex_init(&first->lock, NULL);
  return first;
}

void tegula__first_error_destroy(tegula__first_error *first) {
  if (first == NULL) return;
  pthread_mutex_destroy(&first->lock);
  free(first);
}

bool tegula__first_error_wanted(const tegula__first_error *first, int64_t item) {
  return item < atomic_load_explicit(&first->item, memory_order_relaxed);
}

void tegula__first_error_set(tegula__first_error *first, int64_t item, tegula_status status,
                             const tegula_error *error) {
  pthread_mutex_lock(&first->lock);
  if (item < atomic_load(&first->item)) {
    first->error = *error;
    first->error.status = status;
    atomic_store(&first->item, item);
  }
  pthread_mutex_unlock(&first->lock);
}

tegula_status tegula__first_error_get(const tegula__first_error *first, tegula_error *err) {
  RETURN_IF(atomic_load(&first->item) == INT64_MAX, TEGULA_OK);
  if (err != NULL) *err = first->error;
  return first->error.status;
}
