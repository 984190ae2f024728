/* Sums on several ranks: each goes through a run of blocks, and of the chunks that begin in them; then all have what all found.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/summing.h"

static int64_t first_item(const tegula__summing *s, int64_t rank, int64_t ranks) { return s->items / ranks * rank + s->items % ranks * rank / ranks; }

/* The first chunk that begins in block `item` or behind it. */
static int64_t chunk_from_item(const tegula__summing *s, int64_t item) {
  int64_t file = 0, low = 0, high = s->chunk_count;
  RETURN_IF(item >= s->items, s->chunk_count);
  while (file + 1 < s->file_count && s->files[file + 1].first_item <= item) file++;
  int64_t offset = (item - s->files[file].first_item) * TEGULA__SUM_BLOCK;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    const tegula__chunk_sum *chunk = &s->chunks[middle];
    if (chunk->file < file || (chunk->file == file && chunk->offset < offset))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void tegula__summing_divide(tegula__summing *s) {
  int32_t rank = s->comm != NULL ? s->comm->rank : 0, ranks = s->comm != NULL ? s->comm->size : 1;
  s->own_item = first_item(s, rank, ranks);
  s->own_items = first_item(s, rank + 1, ranks) - s->own_item;
  s->own_chunk = chunk_from_item(s, s->own_item);
  s->own_chunks = (rank + 1 == ranks ? s->chunk_count : chunk_from_item(s, s->own_item + s->own_items)) - s->own_chunk;
}

tegula_status tegula__summing_agree(tegula__summing *s, tegula_status mine, tegula_error *err) {
  return s->comm != NULL ? tegula__comm_agree(s->comm, mine, err) : mine;
}

/* Of each rank its part of the list; where that fails the list is kept: it may still be written to. */
static tegula_status spread(tegula__summing *s, tegula__hash128 **list, bool chunks, tegula_error *err) {
  int64_t item = (int64_t)sizeof **list;
  for (int32_t rank = 0; rank < s->comm->size; rank++) {
    int64_t first = first_item(s, rank, s->comm->size), last = first_item(s, rank + 1, s->comm->size);
    if (chunks) first = rank == 0 ? 0 : chunk_from_item(s, first);
    if (chunks) last = rank + 1 == s->comm->size ? s->chunk_count : chunk_from_item(s, last);
    if (first == last) continue;
    tegula_status status = tegula__comm_broadcast(s->comm, *list + first, (last - first) * item, rank, err);
    if (status != TEGULA_OK) *list = NULL;
    FORWARD(status);
  }
  return TEGULA_OK;
}

tegula_status tegula__summing_share(tegula__summing *s, tegula_error *err) {
  RETURN_IF(s->comm == NULL, TEGULA_OK);
  FORWARD(spread(s, &s->block_sums, false, err));
  FORWARD(spread(s, &s->chunk_sums, true, err));
  FORWARD(tegula__comm_gather(s->comm, (void **)&s->runs, &s->run_count, sizeof *s->runs, err));
  s->run_capacity = s->run_count;
  return TEGULA_OK;
}

tegula_status tegula__summing_join(tegula__summing *s, tegula_error *err) {
  int64_t words[2] = {(int64_t)s->content.low, (int64_t)s->content.high};
  RETURN_IF(s->comm == NULL, TEGULA_OK);
  FORWARD(tegula__comm_reduce(s->comm, TEGULA_PLUGIN_XOR, words, 2, err));
  s->content = (tegula__hash128){.low = (uint64_t)words[0], .high = (uint64_t)words[1]};
  return TEGULA_OK;
}
