/* tegula_sums_check: are files and content still what the sums say? Every difference is told.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything is read first and told then, so that a problem can say whether the content is the same
 * nevertheless. On several ranks each reads a run of the blocks; all have then what all have found,
 * and tell the same. */
#include <stdio.h>
#include <stdlib.h>

#include "dist/share_text.h"
#include "manifest/names.h"
#include "verify/sums_check.h"

static void tell(tegula__sums_checking *c, const tegula_error *problem) {
  if (c->report.problems++ == 0) c->first = *problem;
  if (c->visit != NULL) c->visit(c->visit_state, problem);
}

static tegula_status prepare(tegula__sums_checking *c, tegula_error *err) {
  tegula__sums *sums = &c->sums;
  tegula__namer namer;
  FORWARD(tegula__summing_create(&c->summing, sums->file_count, err));
  c->summing.chunks = sums->chunks;
  c->summing.chunk_count = sums->chunk_count;
  c->files = calloc((size_t)tegula__max(1, sums->file_count), sizeof *c->files);
  if (c->files == NULL)
    return tegula__out_of_memory(err, sums->file_count * (int64_t)sizeof *c->files);
  FORWARD(tegula__file_set_create(c->context->handles, c->files, sums->file_count, false, &c->set,
                                  err));
  for (int64_t i = 0; i < sums->file_count; i++) {
    c->files[i].path = sums->files[i].path;
    c->summing.files[i] = (tegula__sum_file){.set = c->set,
                                             .file = &c->files[i],
                                             .index = i,
                                             .size = sums->files[i].size,
                                             .first_chunk = sums->files[i].first_chunk,
                                             .chunk_count = sums->files[i].chunk_count,
                                             .failed = INT64_MAX};
  }
  FORWARD(tegula__namer_init(&namer, NULL, err));
  tegula_status status = tegula__sums_name_files(c, &namer, err);
  if (status == TEGULA_OK && c->dataset != NULL) status = tegula__sums_match_files(c, &namer, err);
  tegula__namer_free(&namer);
  return status;
}

/* ---- files ---- */

static int compare_sums(const void *a, const void *b, void *state) {
  const tegula__file_sums *files = state;
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  const tegula__hash128 *x = &files[i].sum, *y = &files[j].sum;
  if (x->high != y->high) return x->high < y->high ? -1 : 1;
  if (x->low != y->low) return x->low < y->low ? -1 : 1;
  return (i > j) - (i < j);
}

/* The file of the sums that had these bytes; -1: none, or no memory to look. */
static int64_t find_sum(tegula__sums_checking *c, tegula__hash128 sum) {
  int64_t low = 0, high = c->sums.file_count;
  if (c->by_sum == NULL) {
    c->by_sum = tegula__realloc_array(NULL, high, sizeof *c->by_sum);
    RETURN_IF(c->by_sum == NULL, -1);
    for (int64_t i = 0; i < high; i++) c->by_sum[i] = i;
    qsort_r(c->by_sum, (size_t)high, sizeof *c->by_sum, compare_sums, c->sums.files);
  }
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    const tegula__hash128 *at = &c->sums.files[c->by_sum[middle]].sum;
    if (at->high < sum.high || (at->high == sum.high && at->low < sum.low))
      low = middle + 1;
    else
      high = middle;
  }
  return low < c->sums.file_count && tegula__sum_same(c->sums.files[c->by_sum[low]].sum, sum)
             ? c->by_sum[low]
             : -1;
}

static void same_content(const tegula__sums_checking *c, tegula_error *problem) {
  if (c->report.content == 1 && problem->hint[0] == '\0')
    tegula__hint(problem, problem->status,
                 "the content of the array is the same: it was written again, or bytes changed "
                 "that are no elements");
}

static void tell_other_bytes(tegula__sums_checking *c, int64_t number) {
  const tegula__file_sums *file = &c->sums.files[number];
  const char *path = c->summing.files[number].file->path;
  int64_t count = tegula__sum_blocks(file->size), first = -1, differ = 0;
  const tegula__hash128 *found = c->summing.block_sums + c->summing.files[number].first_item;
  const tegula__hash128 *expected = c->sums.blocks + file->first_block;
  for (int64_t i = 0; i < count; i++) {
    if (tegula__sum_same(found[i], expected[i])) continue;
    if (differ++ == 0) first = i;
  }
  if (differ == 0) return;
  tegula_error problem;
  tegula__hash128 whole;
  char a[TEGULA__SUM_TEXT], b[TEGULA__SUM_TEXT];
  tegula__sum_format(expected[first], a);
  tegula__sum_format(found[first], b);
  int64_t offset = first * TEGULA__SUM_BLOCK,
          end = tegula__min(file->size, offset + TEGULA__SUM_BLOCK);
  tegula__fail(&problem, TEGULA_MISMATCH, path, offset,
               "\"%s\" is not as the sums say: %lld of %lld blocks %s, the first is bytes %lld to "
               "%lld: expected %s, found %s",
               path, (long long)differ, (long long)count, differ == 1 ? "differs" : "differ",
               (long long)offset, (long long)end, a, b);
  int64_t other = tegula__sum_of_blocks(found, count, &whole) ? find_sum(c, whole) : -1;
  if (other >= 0)
    tegula__hint(&problem, problem.status, "it holds what \"%.400s\" held when the sums were made",
                 c->sums.files[other].path);
  same_content(c, &problem);
  tell(c, &problem);
}

static void tell_other_chunks(tegula__sums_checking *c, int64_t number) {
  const tegula__file_sums *file = &c->sums.files[number];
  const char *path = c->summing.files[number].file->path;
  for (int64_t i = file->first_chunk; i < file->first_chunk + file->chunk_count; i++) {
    const tegula__chunk_sum *chunk = &c->sums.chunks[i];
    if (!c->summing.chunk_done[i]) continue;
    c->report.chunks++;
    if (tegula__sum_same(chunk->sum, c->summing.chunk_sums[i])) continue;
    tegula_error problem;
    char place[TEGULA__SHAPE_TEXT], a[TEGULA__SUM_TEXT], b[TEGULA__SUM_TEXT];
    tegula__shape_format(c->sums.vectors + chunk->at, c->sums.ndim, place);
    tegula__sum_format(chunk->sum, a);
    tegula__sum_format(c->summing.chunk_sums[i], b);
    tegula__fail(&problem, TEGULA_MISMATCH, path, chunk->offset,
                 "the chunk at %s, bytes %lld to %lld of \"%s\", is not as the sums say: expected "
                 "%s, found %s",
                 place, (long long)chunk->offset, (long long)(chunk->offset + chunk->length), path,
                 a, b);
    same_content(c, &problem);
    tell(c, &problem);
  }
}

static void tell_file(tegula__sums_checking *c, int64_t number) {
  tegula__sum_file *file = &c->summing.files[number];
  if (file->error != NULL) {
    same_content(c, file->error);
    tell(c, file->error);
    return;
  }
  if (c->summing.level == TEGULA_VERIFY_SIZES) return;
  tell_other_bytes(c, number);
  tell_other_chunks(c, number);
}

static void tell_extra(tegula__sums_checking *c) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  for (int64_t i = 0; i < manifest->file_count; i++) {
    tegula_error problem;
    if (c->number[i] >= 0) continue;
    tegula__fail(&problem, TEGULA_MISMATCH, manifest->files[i].path, -1,
                 "\"%s\" is not in the sums, but the dataset has it", manifest->files[i].path);
    same_content(c, &problem);
    tell(c, &problem);
  }
}

/* ---- the array ---- */

static bool same_array(const tegula__sums_checking *c) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  return tegula_dtype_same(manifest->dtype, c->sums.dtype) && manifest->ndim == c->sums.ndim &&
         memcmp(manifest->shape, c->sums.shape, (size_t)manifest->ndim * sizeof *manifest->shape) ==
             0;
}

static void tell_other_array(tegula__sums_checking *c) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  char expected[TEGULA__SHAPE_TEXT], found[TEGULA__SHAPE_TEXT], expected_dtype[TEGULA_DTYPE_TEXT],
      found_dtype[TEGULA_DTYPE_TEXT];
  tegula_error problem;
  tegula__shape_format(c->sums.shape, c->sums.ndim, expected);
  tegula__shape_format(manifest->shape, manifest->ndim, found);
  tegula_dtype_format(c->sums.dtype, expected_dtype);
  tegula_dtype_format(manifest->dtype, found_dtype);
  tegula__fail(&problem, TEGULA_MISMATCH, NULL, -1,
               "the array is not that of the sums: expected shape %s and dtype %s, found shape %s "
               "and dtype %s",
               expected, expected_dtype, found, found_dtype);
  tell(c, &problem);
}

/* Was the file of this error told already? */
static bool is_told(const tegula__sums_checking *c, const tegula_error *error) {
  for (int64_t i = 0; i < c->summing.file_count; i++)
    if (c->summing.files[i].error != NULL &&
        strcmp(c->summing.files[i].error->path, error->path) == 0)
      return true;
  return false;
}

static void tell_content(tegula__sums_checking *c, const char *found) {
  tegula_error problem;
  if (c->summing.content_error.status != TEGULA_OK) {
    if (!is_told(c, &c->summing.content_error)) tell(c, &c->summing.content_error);
  } else if (c->report.content == 0 && c->sums.content[0] != '\0') {
    tegula__fail(&problem, TEGULA_MISMATCH, NULL, -1,
                 "the content is not that of the sums: expected %s, found %s", c->sums.content,
                 found);
    tell(c, &problem);
  }
}

/* ---- the whole ---- */

static void tell_all(tegula__sums_checking *c) {
  char found[TEGULA_HASH_TEXT] = "";
  bool array = c->dataset == NULL || same_array(c);
  bool known = c->summing.level == TEGULA_VERIFY_DECODE && c->dataset != NULL &&
               c->summing.content_error.status == TEGULA_OK;
  if (known && c->sums.content[0] != '\0') {
    const tegula__manifest *manifest = &c->dataset->manifest;
    tegula__hash_text(manifest->dtype, manifest->shape, manifest->ndim, c->summing.content, found);
    c->report.content = strcmp(found, c->sums.content) == 0;
  } else if (!array) {
    c->report.content = 0;
  }
  for (int64_t i = 0; i < c->sums.file_count; i++) tell_file(c, i);
  if (c->dataset != NULL) tell_extra(c);
  if (!array) tell_other_array(c);
  if (array || c->summing.content_error.status != TEGULA_OK) tell_content(c, found);
}

/* Rank 0 reads them. */
static tegula_status read_sums(tegula__sums_checking *c, const char *path, tegula_error *err) {
  FORWARD(tegula__io_read_whole(NULL, path, (int64_t)TEGULA__SUMS_BYTES, &c->text, &c->text_size,
                                &c->summing.call.tally->counts, err));
  return tegula__sums_read(c->text, c->text_size, path, &c->sums, err);
}

/* The others get its text. */
static tegula_status share_sums(tegula__sums_checking *c, const char *path, tegula_error *err) {
  tegula_comm *comm = c->context->comm;
  tegula_status status =
      comm->size > 1 ? tegula__share_text(c->context, &c->text, &c->text_size, err) : TEGULA_OK;
  if (status == TEGULA_OK && comm->rank != 0)
    status = tegula__sums_read(c->text, c->text_size, path, &c->sums, err);
  free(c->text);
  c->text = NULL;
  return status;
}

static tegula_status check_view(tegula__sums_checking *c, tegula_status status, tegula_error *err) {
  if (status == TEGULA_OK) status = prepare(c, err);
  status = tegula__summing_agree(&c->summing, status, err);
  if (status == TEGULA_OK) status = tegula__summing_run(&c->summing, err);
  int64_t bytes = atomic_load(&c->summing.done);
  if (status == TEGULA_OK)
    status = tegula__comm_reduce(c->context->comm, TEGULA_PLUGIN_SUM, &bytes, 1, err);
  if (status == TEGULA_OK) {
    c->report.files = c->sums.file_count;
    c->report.bytes = bytes;
    tell_all(c);
    if (c->report.problems > 0) {
      status = c->first.status;
      *err = c->first;
    }
  }
  if (c->summing.files != NULL) tegula__summing_free(&c->summing);
  return status;
}

/* What must be the same on all ranks. */
static void describe(const tegula__sums_checking *c, const char *path, const tegula_dataset *view,
                     tegula__call *call) {
  tegula__call_add(call, "the sums", "%s", path);
  tegula__call_mix(call, path, strlen(path));
  tegula__call_add(call, "the level", "%d", (int)c->summing.level);
  tegula__call_add(call, "missing", "%u", c->summing.call.options->missing);
  if (view == NULL) {
    tegula__call_add(call, "the dataset", "none");
    return;
  }
  tegula__call_dataset(call, view);
  tegula__call_view(call, view);
}

/* All that a rank does by itself first. */
static tegula_status begin(tegula__sums_checking *c, const char *path, tegula_dataset **view,
                           tegula_error *err) {
  tegula__io_counts *counts = &c->summing.call.tally->counts;
  if (c->context->comm->rank == 0) FORWARD(read_sums(c, path, err));
  if (c->dataset != NULL) FORWARD(tegula__dataset_confirm(c->dataset, counts, err));
  return c->dataset != NULL
             ? tegula__dataset_view_all(c->dataset, c->summing.call.options, counts, view, err)
             : TEGULA_OK;
}

static tegula_status check_all(tegula__sums_checking *c, const char *path, tegula_error *err) {
  tegula_dataset *dataset = c->dataset, *view = NULL;
  tegula__call call;
  tegula__call_init(&call, "tegula_sums_check");
  tegula_status status = begin(c, path, &view, err);
  if (status == TEGULA_OK) describe(c, path, view, &call);
  status = tegula__comm_agree_call(c->context->comm, &call, status, err);
  if (status == TEGULA_OK) {
    status = share_sums(c, path, err);
    c->dataset = view;
    c->summing.dataset = view;
    status = check_view(c, status, err);
    c->dataset = dataset;
    c->summing.dataset = dataset;
  }
  tegula_dataset_close(view);
  return status;
}

static void release(tegula__sums_checking *c) {
  if (c->set != NULL) tegula__file_set_destroy(c->set);
  for (int64_t i = 0; c->names != NULL && i < c->sums.file_count; i++) free(c->names[i]);
  free(c->names);
  free(c->text);
  free(c->by_name);
  free(c->number);
  free(c->by_sum);
  free(c->files);
  tegula__sums_free(&c->sums);
}

static tegula_status check_arguments(const tegula_context *context, const char *path,
                                     const tegula_dataset *dataset, tegula_verify_level level,
                                     tegula_sums_report *report, tegula_error *err) {
  CHECK_ARGUMENT(path != NULL && path[0] != '\0', "the context or the path of the sums is NULL");
  CHECK_ARGUMENT(dataset == NULL || dataset->context == context,
                 "the dataset belongs to another context");
  CHECK_ARGUMENT(level == TEGULA_VERIFY_SIZES || level == TEGULA_VERIFY_CHECKSUMS ||
                     level == TEGULA_VERIFY_DECODE,
                 "there is no such level");
  tegula_sums_report none = {.content = -1};
  return report == NULL ? TEGULA_OK
                        : tegula__info_copy(report, sizeof none, FIRST_SUMS_REPORT, &none,
                                            "tegula_sums_report", err);
}

tegula_status tegula_sums_check(tegula_context *context, const char *path, tegula_dataset *dataset,
                                tegula_verify_level level, tegula_problem_fn visit, void *state,
                                const tegula_load_options *options, tegula_sums_report *report,
                                tegula_error *err) {
  CHECK_ARGUMENT(context != NULL, "the context or the path of the sums is NULL");
  tegula_comm *comm = context->comm;
  tegula_load_options local;
  tegula__tally tally;
  tegula_op turn;
  tegula_error unwanted;
  tegula__news news;
  if (err == NULL) err = &unwanted;
  tegula_load_options_init(&local);
  tegula_status status = check_arguments(context, path, dataset, level, report, err);
  if (status == TEGULA_OK) status = tegula__load_options_copy(&local, options, err);
  if (status == TEGULA_OK) status = tegula__tally_start(&tally, local.statistics, err);
  if (status != TEGULA_OK) return tegula__comm_agree(comm, status, err);
  tegula__news_begin(&news, comm, INT64_MAX, &local.progress, &local.progress_state);
  tegula__sums_checking c = {.context = context,
                             .dataset = dataset,
                             .visit = visit,
                             .visit_state = state,
                             .report = {.content = -1}};
  c.summing = (tegula__summing){.context = context,
                                .dataset = dataset,
                                .comm = comm->size > 1 ? comm : NULL,
                                .checks = true,
                                .news = &news,
                                .level = level,
                                .call = {.options = &local, .tally = &tally}};
  tegula__queue_enter(context->queue, &turn,
                      &(tegula__touch){.places = dataset != NULL ? &dataset->places : NULL});
  status = check_all(&c, path, err);
  tegula__queue_leave(&turn);
  release(&c);
  status = tegula__comm_agree(comm, status, err);
  tegula__news_end(&news, status);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_move));
  if (report != NULL)
    (void)tegula__info_copy(report, sizeof c.report, FIRST_SUMS_REPORT, &c.report,
                            "tegula_sums_report", NULL);
  return status;
}
