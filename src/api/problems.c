/* Problems of files: collected, shared between ranks, ordered.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/problems.h"

#include <stdlib.h>
#include <string.h>

bool tegula__problems_add(tegula__problems *problems, const tegula__problem *problem) {
  if (!tegula__vector_reserve((void **)&problems->items, &problems->capacity, problems->count + 1, sizeof *problems->items)) return false;
  problems->items[problems->count++] = *problem;
  return true;
}

tegula_status tegula__problems_share(tegula__problems *problems, tegula_comm *comm, tegula_error *err) {
  int64_t all = problems->count, item = (int64_t)sizeof *problems->items;
  RETURN_IF(comm->size == 1, TEGULA_OK);
  FORWARD(tegula__comm_reduce(comm, TEGULA_PLUGIN_SUM, &all, 1, err));
  RETURN_IF(all == 0, TEGULA_OK);
  tegula__problem *items = tegula__realloc_array(NULL, all, sizeof *items);
  tegula_status status = tegula__comm_agree(comm, items != NULL ? TEGULA_OK : tegula__out_of_memory(err, all * item), err);
  int64_t at = 0;
  for (int32_t rank = 0; rank < comm->size && status == TEGULA_OK; rank++) {
    int64_t count = rank == comm->rank ? problems->count : 0;
    status = tegula__comm_reduce(comm, TEGULA_PLUGIN_MAX, &count, 1, err);
    if (status != TEGULA_OK || count == 0) continue;
    if (rank == comm->rank) memcpy(items + at, problems->items, (size_t)(count * item));
    status = tegula__comm_broadcast(comm, items + at, count * item, rank, err);
    if (status != TEGULA_OK) items = NULL; /* kept: a transfer that is not done may write to it */
    at += count;
  }
  if (status != TEGULA_OK) {
    free(items);
    return status;
  }
  free(problems->items);
  *problems = (tegula__problems){.items = items, .count = all, .capacity = all};
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
  if (problems->count > 0) qsort(problems->items, (size_t)problems->count, sizeof *problems->items, compare);
  for (int64_t i = 0; i < problems->count; i++) {
    const tegula__problem *next = &problems->items[i];
    if (next->file >= 0 && kept > 0 && problems->items[kept - 1].file == next->file) continue;
    problems->items[kept++] = *next;
  }
  problems->count = kept;
}
