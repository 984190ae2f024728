/* Digests of files, block by block, on all threads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/summing.h"

#include <stdlib.h>

/* read at once: it stays in the processor's cache while it is hashed */
#define BUFFER_BYTES ((int64_t)512 << 10)

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

/* ---- one task ---- */

typedef struct task {
  tegula__summing *s;
  tegula__sum_file *file;
  int64_t from, to; /* of the file */
  tegula__sum_state *block, *chunk, *content;
  tegula__kept *kept;            /* chunks that are to be hashed for the content; NULL: none */
  bool keeps;                    /* the chunk that is passed now */
  int64_t next_chunk, chunk_end; /* the first that is not done; where the last one ended */
  int64_t next_segment;
  tegula__hash128 sum; /* of the content */
} task;

static bool create_states(task *t) {
  t->block = tegula__sum_create();
  t->chunk = t->file->chunk_count > 0 ? tegula__sum_create() : NULL;
  t->content = t->file->segment_count > 0 ? tegula__sum_create() : NULL;
  t->kept = t->file->chunk_count > 0 ? tegula__kept_create(t->s->assembly) : NULL;
  return t->block != NULL && (t->chunk != NULL || t->file->chunk_count == 0) &&
         (t->content != NULL || t->file->segment_count == 0);
}

static void destroy_states(task *t) {
  tegula__sum_destroy(t->block);
  tegula__sum_destroy(t->chunk);
  tegula__sum_destroy(t->content);
  tegula__kept_destroy(t->kept);
}

/* The first chunk of the file that begins at `offset` or behind. */
static int64_t chunk_from(const tegula__summing *s, const tegula__sum_file *file, int64_t offset) {
  int64_t low = file->first_chunk, high = file->first_chunk + file->chunk_count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (s->chunks[middle].offset < offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The bytes [at, end) are at `data`. Chunks that begin in another task, or share bytes with the one
 * before, are left, and those that end in another, unless the task reads on for them. */
static void take_chunks(task *t, int64_t at, int64_t end, const char *data) {
  tegula__summing *s = t->s;
  for (int64_t last = t->file->first_chunk + t->file->chunk_count; t->next_chunk < last;
       t->next_chunk++) {
    const tegula__chunk_sum *chunk = &s->chunks[t->next_chunk];
    int64_t stop = chunk->offset + chunk->length;
    if (chunk->offset >= tegula__min(end, t->to)) return;
    if (chunk->offset < t->chunk_end) continue;
    if (chunk->offset >= at) t->keeps = stop <= t->file->size && tegula__kept_wants(t->kept, chunk);
    if (stop > t->to && !t->keeps) continue;
    int64_t lo = tegula__max(at, chunk->offset), hi = tegula__min(end, stop);
    if (chunk->offset >= at) tegula__sum_reset(t->chunk, 0);
    tegula__sum_update(t->chunk, data + (lo - at), (size_t)(hi - lo));
    if (t->keeps) tegula__kept_add(t->kept, chunk, lo - chunk->offset, data + (lo - at), hi - lo);
    if (stop > end) return;
    s->chunk_sums[t->next_chunk] = tegula__sum_digest(t->chunk);
    s->chunk_done[t->next_chunk] = 1;
    t->chunk_end = stop;
  }
}

/* What of a segment belongs to the task: whole blocks of the content hash, [*first, *last). */
static bool whole_blocks(const task *t, const tegula__sum_segment *segment, int64_t *first,
                         int64_t *last) {
  const tegula__summing *s = t->s;
  int64_t lo = tegula__max(t->from, segment->offset),
          hi = tegula__min(t->to, segment->offset + segment->bytes);
  if (lo >= hi) return false;
  int64_t end = segment->content + (hi - segment->offset);
  *first = tegula__ceil_div(segment->content + (lo - segment->offset), s->content_block);
  *last =
      end == s->content_bytes ? tegula__ceil_div(end, s->content_block) : end / s->content_block;
  return *first < *last;
}

/* The content's bytes [at, end), as far as they are of whole blocks. */
static void take_content(task *t, int64_t at, int64_t end, char *data) {
  const tegula__summing *s = t->s;
  const tegula__manifest *manifest = &s->dataset->manifest;
  tegula__hash_canonical(s->context->engine.kernels, manifest->dtype, data,
                         (end - at) / manifest->dtype.item_size);
  for (int64_t next; at < end; data += next - at, at = next) {
    int64_t index = at / s->content_block, from = index * s->content_block,
            to = tegula__min(s->content_bytes, from + s->content_block);
    next = tegula__min(end, to);
    if (at == from && next == to) {
      tegula__hash_xor(&t->sum, tegula__hash_block(data, (size_t)(to - from), index));
      continue;
    }
    if (at == from) tegula__sum_reset(t->content, index);
    tegula__sum_update(t->content, data, (size_t)(next - at));
    if (next == to) tegula__hash_xor(&t->sum, tegula__sum_digest(t->content));
  }
}

static void take_segments(task *t, int64_t at, int64_t end, char *data) {
  const tegula__summing *s = t->s;
  int64_t last = t->file->first_segment + t->file->segment_count, first_block, last_block;
  for (int64_t i = t->next_segment; i < last && s->segments[i].offset < end; i++) {
    const tegula__sum_segment *segment = &s->segments[i];
    if (segment->offset + segment->bytes <= at) {
      t->next_segment = i + 1;
      continue;
    }
    if (!whole_blocks(t, segment, &first_block, &last_block)) continue;
    /* from places in the file to places in the content */
    int64_t shift = segment->content - segment->offset;
    int64_t lo = tegula__max(at + shift, first_block * s->content_block);
    int64_t hi =
        tegula__min(end + shift, tegula__min(s->content_bytes, last_block * s->content_block));
    if (lo < hi) take_content(t, lo, hi, data + (lo - shift - at));
  }
}

static bool note_runs(task *t) {
  tegula__summing *s = t->s;
  tegula__sum_run run;
  bool good = true;
  for (int64_t i = t->file->first_segment;
       good && i < t->file->first_segment + t->file->segment_count; i++) {
    if (!whole_blocks(t, &s->segments[i], &run.first, &run.last)) continue;
    good = tegula__vector_reserve((void **)&s->runs, &s->run_capacity, s->run_count + 1,
                                  sizeof *s->runs);
    if (good) s->runs[s->run_count++] = run;
  }
  return good;
}

int64_t tegula__summing_done(tegula__summing *s) {
  return tegula__min(atomic_load(&s->done) + atomic_load(&s->unpacked), s->call.total);
}

/* Tells the caller of progress, and asks whether to go on. */
static tegula_status ask(tegula__summing *s, int64_t bytes, tegula_error *err) {
  const tegula_load_options *options = s->call.options;
  atomic_fetch_add(&s->done, bytes);
  if (options->progress != NULL && pthread_mutex_trylock(&s->lock) == 0) {
    int64_t done = tegula__summing_done(s);
    if (!atomic_load(&s->stopped) &&
        options->progress(options->progress_state, done, s->call.total) != 0)
      atomic_store(&s->stopped, true);
    s->call.told = done;
    pthread_mutex_unlock(&s->lock);
  }
  if (!atomic_load(&s->stopped)) return TEGULA_OK;
  return tegula__fail(err, TEGULA_CANCELLED, NULL, -1, "cancelled after %lld of %lld bytes",
                      (long long)atomic_load(&s->done), (long long)s->call.total);
}

/* The rest of a chunk that ends behind the task; then all that was kept is decoded. */
static tegula_status read_on(task *t, int fd, char *slot, tegula_error *err) {
  tegula__summing *s = t->s;
  int64_t step = tegula__min(BUFFER_BYTES, tegula__staging_slot(s->context->engine.staging)),
          stop = 0;
  bool begun = t->next_chunk < t->file->first_chunk + t->file->chunk_count &&
               s->chunks[t->next_chunk].offset < t->to;
  if (begun) stop = s->chunks[t->next_chunk].offset + s->chunks[t->next_chunk].length;
  for (int64_t at = t->to, end; at < stop; at = end) {
    end = tegula__min(stop, at + step);
    FORWARD(tegula__io_read(fd, t->file->file->path, at, slot, (size_t)(end - at),
                            &s->call.tally->counts, err));
    take_chunks(t, at, end, slot);
    FORWARD(ask(s, 0, err));
  }
  tegula__kept_flush(t->kept);
  return TEGULA_OK;
}

static tegula_status read_task(task *t, int fd, char *slot, tegula_error *err) {
  tegula__summing *s = t->s;
  int64_t step = tegula__min(BUFFER_BYTES, tegula__staging_slot(s->context->engine.staging));
  for (int64_t at = t->from, end; at < t->to; at = end) {
    end = tegula__min(t->to, at + step);
    FORWARD(tegula__io_read(fd, t->file->file->path, at, slot, (size_t)(end - at),
                            &s->call.tally->counts, err));
    tegula__sum_update(t->block, slot, (size_t)(end - at));
    if (t->chunk != NULL) take_chunks(t, at, end, slot);
    /* the last: it changes the bytes of bools */
    if (t->content != NULL) take_segments(t, at, end, slot);
    FORWARD(ask(s, end - at, err));
  }
  return t->kept != NULL ? read_on(t, fd, slot, err) : TEGULA_OK;
}

static tegula_status sum_opened(task *t, int fd, int64_t item, tegula_error *err) {
  tegula__summing *s = t->s;
  char *slot = tegula__staging_take(s->context->engine.staging);
  if (slot == NULL)
    return tegula__out_of_memory(err, tegula__staging_slot(s->context->engine.staging));
  tegula_status status = create_states(t) ? TEGULA_OK : tegula__out_of_memory(err, BUFFER_BYTES);
  if (status == TEGULA_OK) {
    tegula__sum_reset(t->block, 0);
    t->next_chunk = chunk_from(s, t->file, t->from);
    t->next_segment = t->file->first_segment;
    status = read_task(t, fd, slot, err);
  }
  tegula__staging_give(s->context->engine.staging, slot);
  if (status == TEGULA_OK)
    status = tegula__file_set_finish(t->file->set, t->file->index, fd, false,
                                     &s->call.tally->counts, err);
  if (status == TEGULA_OK) s->block_sums[item] = tegula__sum_digest(t->block);
  destroy_states(t);
  return status;
}

static tegula_status wrong_size(const tegula__sum_file *file, tegula_error *err) {
  int64_t found = file->file->stamp.size;
  return tegula__fail(err, found < file->size ? TEGULA_SHORT_FILE : TEGULA_MISMATCH,
                      file->file->path, -1,
                      "\"%s\" is not as the sums say: expected %lld bytes, found %lld",
                      file->file->path, (long long)file->size, (long long)found);
}

static tegula_status sum_block(tegula__summing *s, tegula__sum_file *file, int64_t item,
                               tegula_error *err) {
  task t = {.s = s, .file = file, .from = (item - file->first_item) * TEGULA__SUM_BLOCK};
  t.to = tegula__min(file->size, t.from + TEGULA__SUM_BLOCK);
  int fd;
  FORWARD(tegula__file_set_acquire(file->set, file->index, &s->call.tally->counts, &fd, err));
  tegula_status status = file->file->stamp.size != file->size ? wrong_size(file, err) : TEGULA_OK;
  if (status == TEGULA_OK && s->level != TEGULA_VERIFY_SIZES)
    status = sum_opened(&t, fd, item, err);
  tegula__file_set_release(file->set, file->index);
  if (status != TEGULA_OK) return status;
  pthread_mutex_lock(&s->lock);
  bool noted = s->level != TEGULA_VERIFY_DECODE || note_runs(&t);
  tegula__hash_xor(&s->content, t.sum);
  pthread_mutex_unlock(&s->lock);
  return noted ? TEGULA_OK : tegula__out_of_memory(err, s->run_count * (int64_t)sizeof *s->runs);
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
  if (sum_block(s, file, item, &error) != TEGULA_OK) note(s, file, item, &error);
}

/* ---- chunks that lie in several blocks ---- */

static tegula_status read_chunk(tegula__summing *s, tegula__sum_file *file, int64_t number, int fd,
                                char *slot, tegula_error *err) {
  const tegula__chunk_sum *chunk = &s->chunks[number];
  int64_t end = chunk->offset + chunk->length,
          step = tegula__min(BUFFER_BYTES, tegula__staging_slot(s->context->engine.staging));
  tegula__sum_state *state = tegula__sum_create();
  if (state == NULL) return tegula__out_of_memory(err, BUFFER_BYTES);
  tegula_status status = TEGULA_OK;
  tegula__sum_reset(state, 0);
  for (int64_t at = chunk->offset, some; at < end && status == TEGULA_OK; at += some) {
    some = tegula__min(step, end - at);
    status =
        tegula__io_read(fd, file->file->path, at, slot, (size_t)some, &s->call.tally->counts, err);
    if (status == TEGULA_OK) {
      tegula__sum_update(state, slot, (size_t)some);
      status = ask(s, 0, err);
    }
  }
  s->chunk_sums[number] = tegula__sum_digest(state);
  tegula__sum_destroy(state);
  return status;
}

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
    status = slot != NULL ? read_chunk(s, file, number, fd, slot, &error)
                          : tegula__out_of_memory(&error, BUFFER_BYTES);
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
  if (s->stop.status == TEGULA_OK && !atomic_load(&s->stopped)) (void)ask(s, 0, &s->stop);
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
