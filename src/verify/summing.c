/* Digests of files, block by block, on all threads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/problems.h"
#include "verify/summing.h"

#include <stdlib.h>

tegula_status tegula__summing_create(tegula__summing *s, int64_t files, tegula_error *err) {
  pthread_mutex_init(&s->lock, NULL);
  tegula__error_clear(&s->stop);
  tegula__error_clear(&s->content_error);
  s->files = calloc((size_t)tegula__max(1, files), sizeof *s->files);
  if (s->files == NULL) return tegula__out_of_memory(err, files * (int64_t)sizeof *s->files);
  s->file_count = files;
  for (int64_t i = 0; i < files; i++) s->files[i].failed = INT64_MAX;
  if (s->dataset == NULL) return TEGULA_OK;
  const tegula__manifest *manifest = &s->dataset->manifest;
  /* finish has checked it */
  tegula__shape_bytes(manifest->shape, manifest->ndim, manifest->dtype.item_size,
                      &s->content_bytes);
  s->content_block = tegula__hash_block_elements(manifest->dtype) * manifest->dtype.item_size;
  return TEGULA_OK;
}

void tegula__summing_free(tegula__summing *s) {
  for (int64_t i = 0; s->files != NULL && i < s->file_count; i++) free(s->files[i].error);
  pthread_mutex_destroy(&s->lock);
  free(s->files);
  free(s->block_sums);
  free(s->chunk_sums);
  free(s->chunk_done);
  free(s->segments);
  free(s->runs);
  tegula__assembly_destroy(s->assembly);
}

/* ---- which bytes of a file are content as they are ---- */

static bool is_as_hashed(const tegula__manifest *manifest, const tegula__part *part) {
  int64_t extents[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
  if (part->kind != TEGULA__PART_DENSE ||
      tegula__file_frame(&manifest->files[part->file]) != NULL ||
      (part->order == '>' && tegula__dtype_swap_size(manifest->dtype) > 1))
    return false;
  if (TEGULA__NATIVE_ORDER != '<' || tegula__box_count(manifest->ndim, part->lo, part->hi) == 0)
    return false;
  for (int32_t k = 0; k < manifest->ndim; k++) {
    extents[k] = part->hi[k] - part->lo[k];
    if (k > 0 && extents[k] != manifest->shape[k]) return false;
  }
  tegula__dense_strides(extents, manifest->ndim, manifest->dtype.item_size, 'C', strides);
  for (int32_t k = 0; k < manifest->ndim; k++)
    if (extents[k] > 1 && part->strides[k] != strides[k]) return false;
  return true;
}

tegula_status tegula__summing_part(tegula__summing *s, const tegula__part *part, int64_t file,
                                   tegula_error *err) {
  const tegula__manifest *manifest = &s->dataset->manifest;
  if (!is_as_hashed(manifest, part)) return TEGULA_OK;
  int64_t bytes = tegula__box_count(manifest->ndim, part->lo, part->hi) * manifest->dtype.item_size;
  int64_t rows = manifest->ndim > 0 ? part->hi[0] - part->lo[0] : 1,
          before = manifest->ndim > 0 ? bytes / rows * part->lo[0] : 0;
  if (!tegula__vector_reserve((void **)&s->segments, &s->segment_capacity, s->segment_count + 1,
                              sizeof *s->segments))
    return tegula__out_of_memory(err, s->segment_count * (int64_t)sizeof *s->segments);
  s->segments[s->segment_count++] = (tegula__sum_segment){
      .file = file, .offset = part->offset, .bytes = bytes, .content = before};
  return TEGULA_OK;
}

static int compare_segments(const void *left, const void *right) {
  const tegula__sum_segment *a = left, *b = right;
  if (a->file != b->file) return a->file < b->file ? -1 : 1;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return (a->content > b->content) - (a->content < b->content);
}

/* By file and offset; of those that share bytes the first one stays. */
static void order_segments(tegula__summing *s) {
  int64_t kept = 0;
  if (s->segment_count > 1)
    qsort(s->segments, (size_t)s->segment_count, sizeof *s->segments, compare_segments);
  for (int64_t i = 0; i < s->segment_count; i++) {
    tegula__sum_segment *last = kept > 0 ? &s->segments[kept - 1] : NULL, *next = &s->segments[i];
    if (last != NULL && last->file == next->file && next->offset < last->offset + last->bytes)
      continue;
    tegula__sum_file *file = &s->files[next->file];
    if (file->segment_count++ == 0) file->first_segment = kept;
    s->segments[kept++] = *next;
  }
  s->segment_count = kept;
}

/* ---- all of them ---- */

/* The error of the lowest item of a file is that of the file. */
static void note(tegula__summing *s, tegula__sum_file *file, int64_t item,
                 const tegula_error *error) {
  pthread_mutex_lock(&s->lock);
  bool ours = tegula__status_is_ours(error->status);
  if (!ours && item < file->failed) {
    if (file->error == NULL) file->error = malloc(sizeof *file->error);
    ours = file->error == NULL;
    if (!ours) {
      *file->error = *error;
      __atomic_store_n(&file->failed, item, __ATOMIC_RELAXED);
    }
  }
  if (ours) {
    if (s->stop.status == TEGULA_OK) {
      if (tegula__status_is_ours(error->status))
        s->stop = *error;
      else
        tegula__out_of_memory(&s->stop, (int64_t)sizeof *error);
    }
    atomic_store(&s->stopped, true);
  }
  pthread_mutex_unlock(&s->lock);
}

static tegula__sum_file *file_of(const tegula__summing *s, int64_t item) {
  int64_t low = 0, high = s->file_count - 1;
  while (low < high) {
    int64_t middle = low + (high - low + 1) / 2;
    if (s->files[middle].first_item <= item)
      low = middle;
    else
      high = middle - 1;
  }
  return &s->files[low];
}

static void run_item(void *state, int32_t worker, int64_t item) {
  (void)worker;
  tegula__summing *s = state;
  item += s->own_item;
  tegula__sum_file *file = file_of(s, item);
  tegula_error error;
  if (atomic_load(&s->stopped) || item > __atomic_load_n(&file->failed, __ATOMIC_RELAXED)) return;
  if (tegula__sum_block(s, file, item, &error) != TEGULA_OK) note(s, file, item, &error);
}

/* ---- chunks that lie in several blocks ---- */

static void run_chunk(void *state, int32_t worker, int64_t number) {
  (void)worker;
  tegula__summing *s = state;
  number += s->own_chunk;
  tegula__sum_file *file = &s->files[s->chunks[number].file];
  tegula_error error;
  int fd;
  if (s->chunk_done[number] || atomic_load(&s->stopped) || file->failed != INT64_MAX) return;
  tegula_status status =
      tegula__file_set_acquire(file->set, file->index, &s->call.tally->counts, &fd, &error);
  if (status == TEGULA_OK) {
    char *slot = tegula__staging_take(s->context->engine.staging);
    status = slot != NULL ? tegula__sum_read_chunk(s, file, number, fd, slot, &error)
                          : tegula__out_of_memory(&error, TEGULA__SUM_BUFFER);
    if (slot != NULL) tegula__staging_give(s->context->engine.staging, slot);
    if (status == TEGULA_OK)
      status = tegula__file_set_finish(file->set, file->index, fd, false, &s->call.tally->counts,
                                       &error);
    tegula__file_set_release(file->set, file->index);
  }
  if (status == TEGULA_OK)
    s->chunk_done[number] = 1;
  else
    note(s, file, INT64_MAX - 1, &error);
}

/* ---- the whole ---- */

static tegula_status lay_out(tegula__summing *s, tegula_error *err) {
  int64_t total = 0;
  for (int64_t i = 0; i < s->file_count; i++) {
    tegula__sum_file *file = &s->files[i];
    file->first_item = s->items;
    s->items += s->level == TEGULA_VERIFY_SIZES ? 1 : tegula__sum_blocks(file->size);
    if (s->level != TEGULA_VERIFY_SIZES && !tegula__add(total, file->size, &total))
      total = INT64_MAX;
  }
  /* of the content, to be read by itself */
  int64_t left = s->level == TEGULA_VERIFY_DECODE && s->dataset != NULL ? s->content_bytes : 0;
  for (int64_t i = 0; left > 0 && i < s->segment_count; i++)
    left -= tegula__min(left, s->segments[i].bytes);
  if (!tegula__add(total, left, &s->call.total)) s->call.total = INT64_MAX;
  s->block_sums = tegula__realloc_array(NULL, s->items, sizeof *s->block_sums);
  s->chunk_sums = tegula__realloc_array(NULL, s->chunk_count, sizeof *s->chunk_sums);
  s->chunk_done = calloc((size_t)tegula__max(1, s->chunk_count), 1);
  bool good = s->block_sums != NULL && s->chunk_sums != NULL && s->chunk_done != NULL;
  return good ? TEGULA_OK
              : tegula__out_of_memory(err, tegula__max(s->items, s->chunk_count) *
                                               (int64_t)sizeof *s->block_sums);
}

const tegula_error *tegula__summing_problem(const tegula__summing *s) {
  for (int64_t i = 0; i < s->file_count; i++)
    if (s->files[i].error != NULL) return s->files[i].error;
  return s->content_error.status != TEGULA_OK ? &s->content_error : NULL;
}

/* This rank's blocks and chunks. */
static tegula_status run_own(tegula__summing *s, tegula_error *err) {
  tegula__pool *pool = s->context->engine.pool;
  if (s->level == TEGULA_VERIFY_DECODE && s->dataset != NULL && s->chunk_vectors != NULL &&
      s->chunk_count > 0)
    s->assembly = tegula__assembly_create(s);
  if (s->own_items > 0) tegula__pool_run_waiting(pool, s->own_items, run_item, s);
  if (s->own_chunks > 0 && s->level != TEGULA_VERIFY_SIZES)
    tegula__pool_run_waiting(pool, s->own_chunks, run_chunk, s);
  if (s->assembly != NULL && !tegula__assembly_end(s->assembly))
    return tegula__out_of_memory(err, s->run_count * (int64_t)sizeof *s->runs);
  if (s->stop.status == TEGULA_OK && !atomic_load(&s->stopped))
    (void)tegula__sum_ask(s, 0, &s->stop);
  const tegula_error *problem = s->stop.status != TEGULA_OK     ? &s->stop
                                : s->comm != NULL && !s->checks ? tegula__summing_problem(s)
                                                                : NULL;
  if (problem == NULL) return TEGULA_OK;
  if (err != NULL) *err = *problem;
  return problem->status;
}

tegula_status tegula__summing_run(tegula__summing *s, tegula_error *err) {
  if (s->level != TEGULA_VERIFY_DECODE) s->segment_count = 0;
  order_segments(s);
  FORWARD(tegula__summing_agree(s, lay_out(s, err), err));
  tegula__summing_divide(s);
  if (s->news != NULL) s->news->total = s->call.total;
  FORWARD(tegula__summing_agree(s, run_own(s, err), err));
  FORWARD(tegula__summing_share(s, err));
  if (s->level != TEGULA_VERIFY_DECODE || s->dataset == NULL) return TEGULA_OK;
  tegula_status status = tegula__sum_content(s, err);
  if (s->comm != NULL && !s->checks && status == TEGULA_OK &&
      s->content_error.status != TEGULA_OK) {
    *err = s->content_error;
    status = err->status;
  }
  FORWARD(tegula__summing_agree(s, status, err));
  if (s->checks && s->comm != NULL) FORWARD(tegula__summing_join_error(s, err));
  return s->content_error.status == TEGULA_OK ? tegula__summing_join(s, err) : TEGULA_OK;
}
