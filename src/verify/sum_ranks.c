/* Sums on several ranks: each goes through a run of blocks, and of the chunks that begin in them;
 * then all have what all found.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "verify/problems.h"
#include "verify/summing.h"

static int64_t first_item(const tegula__summing *s, int64_t rank, int64_t ranks) {
  return s->items / ranks * rank + s->items % ranks * rank / ranks;
}

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
  s->own_chunks =
      (rank + 1 == ranks ? s->chunk_count : chunk_from_item(s, s->own_item + s->own_items)) -
      s->own_chunk;
}

tegula_status tegula__summing_agree(tegula__summing *s, tegula_status mine, tegula_error *err) {
  return s->comm != NULL ? tegula__comm_agree(s->comm, mine, err) : mine;
}

/* Of each rank its part of the list; where that fails the list is kept: it may still be written
 * to. */
static tegula_status spread(tegula__summing *s, void **list, int64_t item, bool chunks,
                            tegula_error *err) {
  for (int32_t rank = 0; rank < s->comm->size; rank++) {
    int64_t first = first_item(s, rank, s->comm->size),
            last = first_item(s, rank + 1, s->comm->size);
    if (chunks) first = rank == 0 ? 0 : chunk_from_item(s, first);
    if (chunks) last = rank + 1 == s->comm->size ? s->chunk_count : chunk_from_item(s, last);
    if (first == last) continue;
    tegula_status status = tegula__comm_broadcast(s->comm, (char *)*list + first * item,
                                                  (last - first) * item, rank, err);
    if (status != TEGULA_OK) *list = NULL;
    FORWARD(status);
  }
  return TEGULA_OK;
}

/* What is wrong with a file, and where. */
typedef struct finding {
  int64_t file, failed;
  tegula_error error;
} finding;

static tegula_status list_findings(const tegula__summing *s, finding **out, int64_t *count,
                                   tegula_error *err) {
  int64_t capacity = 0;
  for (int64_t i = 0; i < s->file_count; i++) {
    const tegula__sum_file *file = &s->files[i];
    if (file->error == NULL) continue;
    if (!tegula__vector_reserve((void **)out, &capacity, *count + 1, sizeof **out))
      return tegula__out_of_memory(err, *count * (int64_t)sizeof **out);
    finding *next = &(*out)[(*count)++];
    *next = (finding){.file = i, .failed = file->failed, .error = *file->error};
    next->error.rank = s->comm->rank;
  }
  return TEGULA_OK;
}

/* Of each file the error of its lowest item, whoever has met it. */
static tegula_status take_findings(tegula__summing *s, const finding *found, int64_t count,
                                   tegula_error *err) {
  for (int64_t i = 0; i < count; i++) {
    tegula__sum_file *file = &s->files[found[i].file];
    if (found[i].failed > file->failed) continue;
    if (file->error == NULL) file->error = malloc(sizeof *file->error);
    if (file->error == NULL) return tegula__out_of_memory(err, (int64_t)sizeof *file->error);
    file->failed = found[i].failed;
    *file->error = found[i].error;
  }
  return TEGULA_OK;
}

static tegula_status share_findings(tegula__summing *s, tegula_error *err) {
  finding *found = NULL;
  int64_t count = 0;
  tegula_status status = tegula__comm_agree(s->comm, list_findings(s, &found, &count, err), err);
  if (status == TEGULA_OK)
    status = tegula__comm_gather(s->comm, (void **)&found, &count, sizeof *found, err);
  if (status == TEGULA_OK)
    status = tegula__comm_agree(s->comm, take_findings(s, found, count, err), err);
  free(found);
  return status;
}

tegula_status tegula__summing_share(tegula__summing *s, tegula_error *err) {
  RETURN_IF(s->comm == NULL, TEGULA_OK);
  FORWARD(spread(s, (void **)&s->block_sums, (int64_t)sizeof *s->block_sums, false, err));
  FORWARD(spread(s, (void **)&s->chunk_sums, (int64_t)sizeof *s->chunk_sums, true, err));
  if (s->checks) FORWARD(spread(s, (void **)&s->chunk_done, 1, true, err));
  if (s->checks) FORWARD(share_findings(s, err));
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

tegula_status tegula__summing_join_error(tegula__summing *s, tegula_error *err) {
  tegula_error found = s->content_error;
  tegula_status status = tegula__comm_agree(s->comm, found.status, &found);
  if (status != TEGULA_OK && !tegula__status_is_ours(status)) {
    s->content_error = found;
    status = TEGULA_OK;
  }
  if (status != TEGULA_OK) *err = found;
  return status;
}
