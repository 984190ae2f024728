/* tegula_dataset_sums: digests of all that a dataset is stored in, as text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "verify/summing.h"

/* ---- the table of chunks ---- */

typedef struct collect {
  tegula__sums *sums;
  const tegula__part *part;
  int64_t file;
} collect;

static bool add_chunk(void *state, const tegula__chunk *chunk, const int64_t *lo,
                      const int64_t *hi) {
  (void)hi;
  collect *c = state;
  tegula__sums *sums = c->sums;
  if (!tegula__vector_reserve((void **)&sums->chunks, &sums->chunk_capacity, sums->chunk_count + 1,
                              sizeof *sums->chunks) ||
      !tegula__vector_reserve((void **)&sums->vectors, &sums->vector_capacity,
                              sums->vector_count + sums->ndim + 1, sizeof *sums->vectors))
    return false;
  sums->chunks[sums->chunk_count++] = (tegula__chunk_sum){.file = c->file,
                                                          .offset = (int64_t)chunk->offset,
                                                          .length = chunk->length,
                                                          .at = sums->vector_count,
                                                          .part = c->part};
  for (int32_t k = 0; k < sums->ndim; k++) sums->vectors[sums->vector_count++] = lo[k];
  return true;
}

static int compare_chunks(const void *left, const void *right) {
  const tegula__chunk_sum *a = left, *b = right;
  if (a->file != b->file) return a->file < b->file ? -1 : 1;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  if (a->length != b->length) return a->length < b->length ? -1 : 1;
  return (a->at > b->at) - (a->at < b->at);
}

/* By file and offset; one that the array shows in several places stays with the first, but is of no
 * one part. */
static void order_chunks(tegula__sums *sums) {
  int64_t kept = 0;
  if (sums->chunk_count > 1)
    qsort(sums->chunks, (size_t)sums->chunk_count, sizeof *sums->chunks, compare_chunks);
  for (int64_t i = 0; i < sums->chunk_count; i++) {
    const tegula__chunk_sum *next = &sums->chunks[i];
    tegula__chunk_sum *last = kept > 0 ? &sums->chunks[kept - 1] : NULL;
    if (last != NULL && last->file == next->file && last->offset == next->offset &&
        last->length == next->length) {
      last->part = NULL;
      continue;
    }
    tegula__file_sums *file = &sums->files[next->file];
    if (file->chunk_count++ == 0) file->first_chunk = kept;
    sums->chunks[kept++] = *next;
  }
  sums->chunk_count = kept;
}

static tegula_status list_chunks(const tegula__manifest *manifest, tegula__sums *sums,
                                 tegula_error *err) {
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    collect c = {.sums = sums, .part = part, .file = tegula__part_file(part)};
    if (tegula__part_in_chunks(part) && tegula__box_count(manifest->ndim, part->lo, part->hi) > 0 &&
        !tegula__part_visit(part, manifest->ndim, add_chunk, &c))
      return tegula__out_of_memory(err, sums->chunk_count * (int64_t)sizeof *sums->chunks);
  }
  order_chunks(sums);
  return TEGULA_OK;
}

/* ---- from a dataset to its sums ---- */

static tegula_status describe(const tegula_dataset *dataset, tegula__sums *sums,
                              tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  *sums = (tegula__sums){
      .format = tegula__strdup(manifest->format),
      .name = tegula__strdup(manifest->name),
      .dtype = manifest->dtype,
      .ndim = manifest->ndim,
      .files = calloc((size_t)tegula__max(1, manifest->file_count), sizeof *sums->files)};
  memcpy(sums->shape, manifest->shape, sizeof sums->shape);
  bool good = sums->format != NULL && sums->name != NULL && sums->files != NULL;
  for (int64_t i = 0; good && i < manifest->file_count; i++) {
    sums->files[i] = (tegula__file_sums){.path = tegula__strdup(manifest->files[i].path),
                                         .size = manifest->files[i].stamp.size};
    sums->file_count = i + 1;
    good = sums->files[i].path != NULL;
  }
  return good ? list_chunks(manifest, sums, err)
              : tegula__out_of_memory(err, manifest->file_count * (int64_t)sizeof *sums->files);
}

static tegula_status prepare(tegula__summing *s, tegula_dataset *dataset, tegula__sums *sums,
                             tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  FORWARD(describe(dataset, sums, err));
  FORWARD(tegula__summing_create(s, sums->file_count, err));
  s->chunks = sums->chunks;
  s->chunk_vectors = sums->vectors;
  s->chunk_count = sums->chunk_count;
  for (int64_t i = 0; i < sums->file_count; i++) {
    tegula__sum_file *file = &s->files[i];
    file->set = dataset->files;
    file->file = &manifest->files[i];
    file->index = i;
    file->size = sums->files[i].size;
    file->first_chunk = sums->files[i].first_chunk;
    file->chunk_count = sums->files[i].chunk_count;
  }
  for (int64_t i = 0; i < manifest->part_count; i++)
    FORWARD(tegula__summing_part(s, &manifest->parts[i], manifest->parts[i].file, err));
  return TEGULA_OK;
}

static tegula_status go_through(tegula__summing *s, tegula_error *err) {
  FORWARD(tegula__summing_run(s, err));
  const tegula_error *problem = tegula__summing_problem(s);
  if (problem == NULL) return TEGULA_OK;
  *err = *problem;
  return problem->status;
}

/* Takes what was found. */
static tegula_status conclude(tegula__summing *s, tegula__sums *sums, tegula_error *err) {
  sums->blocks = s->block_sums;
  sums->block_count = s->items;
  s->block_sums = NULL;
  for (int64_t i = 0; i < sums->file_count; i++) {
    sums->files[i].first_block = s->files[i].first_item;
    if (!tegula__sum_of_blocks(sums->blocks + s->files[i].first_item,
                               tegula__sum_blocks(sums->files[i].size), &sums->files[i].sum))
      return tegula__out_of_memory(err, 1024);
  }
  for (int64_t i = 0; i < sums->chunk_count; i++) sums->chunks[i].sum = s->chunk_sums[i];
  if (s->level == TEGULA_VERIFY_DECODE)
    tegula__hash_text(sums->dtype, sums->shape, sums->ndim, s->content, sums->content);
  return TEGULA_OK;
}

/* All that a rank does by itself first, and what it must be called with like the others. */
static tegula_status agree_start(tegula_dataset *dataset, const tegula__summing *s,
                                 tegula_status mine, tegula_error *err) {
  tegula__call call;
  tegula__call_init(&call, "tegula_dataset_sums");
  tegula__call_dataset(&call, dataset);
  tegula__call_add(&call, "the level", "%d", (int)s->level);
  if (mine == TEGULA_OK) tegula__call_view(&call, dataset);
  return tegula__comm_agree_call(dataset->context->comm, &call, mine, err);
}

static tegula_status sum_view(tegula_dataset *dataset, tegula__summing *s, const char *folder,
                              char **out, tegula_status status, tegula_error *err) {
  tegula__sums sums = {0};
  if (status == TEGULA_OK) status = prepare(s, dataset, &sums, err);
  status = agree_start(dataset, s, status, err);
  if (status == TEGULA_OK) status = go_through(s, err);
  if (status == TEGULA_OK) status = conclude(s, &sums, err);
  if (s->files != NULL) tegula__summing_free(s);
  if (status == TEGULA_OK) status = tegula__sums_write(&sums, folder, out, err);
  tegula__sums_free(&sums);
  return status;
}

static tegula_status sum_dataset(tegula_dataset *dataset, tegula__summing *s, const char *folder,
                                 char **out, tegula_error *err) {
  tegula_dataset *view = NULL;
  tegula_status status = tegula__dataset_confirm(dataset, &s->call.tally->counts, err);
  if (status == TEGULA_OK)
    status = tegula__dataset_view_all(dataset, s->call.options, &s->call.tally->counts, &view, err);
  if (view != NULL) s->dataset = view;
  status = sum_view(view != NULL ? view : dataset, s, folder, out, status, err);
  s->dataset = dataset;
  tegula_dataset_close(view);
  return status;
}

static tegula_status check_arguments(tegula_verify_level level, char **out, tegula_error *err) {
  CHECK_ARGUMENT(out != NULL, "the dataset or the place for its sums is NULL");
  CHECK_ARGUMENT(level == TEGULA_VERIFY_CHECKSUMS || level == TEGULA_VERIFY_DECODE,
                 "sums are made at the levels checksums and decode");
  return TEGULA_OK;
}

tegula_status tegula_dataset_sums(tegula_dataset *dataset, const char *folder,
                                  tegula_verify_level level, const tegula_load_options *options,
                                  char **out, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL, "the dataset or the place for its sums is NULL");
  CHECK_ARGUMENT(dataset->selected == NULL, "sums are of whole files, not of a selection");
  tegula_comm *comm = dataset->context->comm;
  tegula_error unwanted;
  tegula__news news;
  if (err == NULL) err = &unwanted;
  tegula_load_options local;
  tegula__tally tally;
  tegula_op turn;
  char *text = NULL;
  tegula_load_options_init(&local);
  tegula_status status = check_arguments(level, out, err);
  if (status == TEGULA_OK) status = tegula__load_options_copy(&local, options, err);
  if (status == TEGULA_OK) status = tegula__tally_start(&tally, local.statistics, err);
  if (status != TEGULA_OK) return tegula__comm_agree(comm, status, err);
  tegula__news_begin(&news, comm, INT64_MAX, &local.progress, &local.progress_state);
  tegula__summing s = {.context = dataset->context,
                       .dataset = dataset,
                       .comm = comm->size > 1 ? comm : NULL,
                       .news = &news,
                       .level = level,
                       .call = {.options = &local, .tally = &tally}};
  tegula__queue_enter(dataset->context->queue, &turn, &(tegula__touch){.places = &dataset->places});
  status = sum_dataset(dataset, &s, folder, &text, err);
  tegula__queue_leave(&turn);
  status = tegula__comm_agree(comm, status, err);
  tegula__news_end(&news, status);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_move));
  if (status == TEGULA_OK)
    *out = text;
  else
    free(text);
  return status;
}
