/* Problems of files: collected, shared between ranks, ordered.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/problems.h"

#include <stdlib.h>

bool tegula__problems_add(tegula__problems *problems, const tegula__problem *problem) {
  if (!tegula__vector_reserve((void **)&problems->items, &problems->capacity, problems->count + 1,
                              sizeof *problems->items))
    return false;
  problems->items[problems->count++] = *problem;
  return true;
}

tegula_status tegula__problems_share(tegula__problems *problems, tegula_comm *comm,
                                     tegula_error *err) {
  FORWARD(tegula__comm_gather(comm, (void **)&problems->items, &problems->count,
                              sizeof *problems->items, err));
  problems->capacity = tegula__max(problems->capacity, problems->count);
  return TEGULA_OK;
}

static int compare(const void *left, const void *right) {
  const tegula__problem *a = left, *b = right;
  if (a->file != b->file) return a->file < b->file ? -1 : 1;
  if (a->bytes != b->bytes) return a->bytes ? 1 : -1;
  return (a->number > b->number) - (a->number < b->number);
}

void tegula__problems_order(tegula__problems *problems) {
  int64_t kept = 0;
  for (int64_t i = 0; i < problems->count; i++) problems->items[i].number = i;
  if (problems->count > 0)
    qsort(problems->items, (size_t)problems->count, sizeof *problems->items, compare);
  for (int64_t i = 0; i < problems->count; i++) {
    const tegula__problem *next = &problems->items[i];
    if (next->file >= 0 && kept > 0 && problems->items[kept - 1].file == next->file) continue;
    problems->items[kept++] = *next;
  }
  problems->count = kept;
}

bool tegula__status_is_ours(tegula_status status) {
  switch (status) {
    case TEGULA_OUT_OF_MEMORY:
    case TEGULA_LIMIT_EXCEEDED:
    case TEGULA_CANCELLED:
    case TEGULA_TIMEOUT:
    case TEGULA_COMM:
    case TEGULA_PEER_FAILED:
    case TEGULA_INTERNAL:
      return true;
    default:
      return false;
  }
}
