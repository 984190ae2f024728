/* Digests of one block or chunk of a file, and what of its bytes is content as it is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "verify/summing.h"

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

tegula_status tegula__sum_ask(tegula__summing *s, int64_t bytes, tegula_error *err) {
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
  int64_t step = tegula__min(TEGULA__SUM_BUFFER, tegula__staging_slot(s->context->engine.staging)),
          stop = 0;
  bool begun = t->next_chunk < t->file->first_chunk + t->file->chunk_count &&
               s->chunks[t->next_chunk].offset < t->to;
  if (begun) stop = s->chunks[t->next_chunk].offset + s->chunks[t->next_chunk].length;
  for (int64_t at = t->to, end; at < stop; at = end) {
    end = tegula__min(stop, at + step);
    FORWARD(tegula__io_read(fd, t->file->file->path, at, slot, (size_t)(end - at),
                            &s->call.tally->counts, err));
    take_chunks(t, at, end, slot);
    FORWARD(tegula__sum_ask(s, 0, err));
  }
  tegula__kept_flush(t->kept);
  return TEGULA_OK;
}

static tegula_status read_task(task *t, int fd, char *slot, tegula_error *err) {
  tegula__summing *s = t->s;
  int64_t step = tegula__min(TEGULA__SUM_BUFFER, tegula__staging_slot(s->context->engine.staging));
  for (int64_t at = t->from, end; at < t->to; at = end) {
    end = tegula__min(t->to, at + step);
    FORWARD(tegula__io_read(fd, t->file->file->path, at, slot, (size_t)(end - at),
                            &s->call.tally->counts, err));
    tegula__sum_update(t->block, slot, (size_t)(end - at));
    if (t->chunk != NULL) take_chunks(t, at, end, slot);
    /* the last: it changes the bytes of bools */
    if (t->content != NULL) take_segments(t, at, end, slot);
    FORWARD(tegula__sum_ask(s, end - at, err));
  }
  return t->kept != NULL ? read_on(t, fd, slot, err) : TEGULA_OK;
}

static tegula_status sum_opened(task *t, int fd, int64_t item, tegula_error *err) {
  tegula__summing *s = t->s;
  char *slot = tegula__staging_take(s->context->engine.staging);
  if (slot == NULL)
    return tegula__out_of_memory(err, tegula__staging_slot(s->context->engine.staging));
  tegula_status status =
      create_states(t) ? TEGULA_OK : tegula__out_of_memory(err, TEGULA__SUM_BUFFER);
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

tegula_status tegula__sum_block(tegula__summing *s, tegula__sum_file *file, int64_t item,
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

tegula_status tegula__sum_read_chunk(tegula__summing *s, tegula__sum_file *file, int64_t number,
                                     int fd, char *slot, tegula_error *err) {
  const tegula__chunk_sum *chunk = &s->chunks[number];
  int64_t end = chunk->offset + chunk->length,
          step = tegula__min(TEGULA__SUM_BUFFER, tegula__staging_slot(s->context->engine.staging));
  tegula__sum_state *state = tegula__sum_create();
  if (state == NULL) return tegula__out_of_memory(err, TEGULA__SUM_BUFFER);
  tegula_status status = TEGULA_OK;
  tegula__sum_reset(state, 0);
  for (int64_t at = chunk->offset, some; at < end && status == TEGULA_OK; at += some) {
    some = tegula__min(step, end - at);
    status =
        tegula__io_read(fd, file->file->path, at, slot, (size_t)some, &s->call.tally->counts, err);
    if (status == TEGULA_OK) {
      tegula__sum_update(state, slot, (size_t)some);
      status = tegula__sum_ask(s, 0, err);
    }
  }
  s->chunk_sums[number] = tegula__sum_digest(state);
  tegula__sum_destroy(state);
  return status;
}
