/* tegula_sums_check: are files and content still what the sums say? Every difference is told.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything is read first and told then, so that a problem can say whether the content is the same
 * nevertheless. On several ranks each reads a run of the blocks; all have then what all have found,
 * and tell the same. */
#include <stdio.h>
#include <stdlib.h>

#include "api/summing.h"
#include "dist/share_text.h"
#include "manifest/names.h"

typedef struct checking {
  tegula_context *context;
  tegula_dataset *dataset; /* NULL: none */
  char *text;              /* of the sums */
  size_t text_size;
  tegula__sums sums;
  tegula__summing summing;
  tegula__file *files; /* of the sums, where they are not files of the dataset */
  tegula__file_set *set;
  char **names;     /* absolute, of the files of the sums */
  int64_t *by_name; /* numbers of the files of the sums in the order of their names */
  int64_t *number;  /* of the file of the sums for each of the dataset; -1: an extra one */
  int64_t *by_sum;  /* made when it is needed */
  tegula_sums_report report;
  tegula_problem_fn visit;
  void *visit_state;
  tegula_error first; /* problem */
} checking;

static void tell(checking *c, const tegula_error *problem) {
  if (c->report.problems++ == 0) c->first = *problem;
  if (c->visit != NULL) c->visit(c->visit_state, problem);
}

/* ---- which file of the dataset is which of the sums ---- */

/* What cannot be resolved is no file of the dataset. */
static char *absolute_name(tegula__namer *namer, const char *path) {
  char *name = NULL;
  return tegula__namer_name(namer, path, &name, NULL) == TEGULA_OK ? name : tegula__strdup(path);
}

static int compare_names(const void *a, const void *b, void *state) {
  char *const *names = state;
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  int order = strcmp(names[i], names[j]);
  return order != 0 ? order : (i > j) - (i < j);
}

static tegula_status name_files(checking *c, tegula__namer *namer, tegula_error *err) {
  int64_t count = c->sums.file_count;
  c->names = calloc((size_t)tegula__max(1, count), sizeof *c->names);
  c->by_name = tegula__realloc_array(NULL, count, sizeof *c->by_name);
  bool good = c->names != NULL && c->by_name != NULL;
  for (int64_t i = 0; good && i < count; i++) {
    c->names[i] = absolute_name(namer, c->sums.files[i].path);
    c->by_name[i] = i;
    good = c->names[i] != NULL;
  }
  if (!good) return tegula__out_of_memory(err, count * (int64_t)sizeof *c->names);
  if (count > 1) qsort_r(c->by_name, (size_t)count, sizeof *c->by_name, compare_names, c->names);
  return TEGULA_OK;
}

/* The first file of the sums that has this name; -1: none. */
static int64_t find_name(const checking *c, const char *name) {
  int64_t low = 0, high = c->sums.file_count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (strcmp(c->names[c->by_name[middle]], name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < c->sums.file_count && strcmp(c->names[c->by_name[low]], name) == 0 ? c->by_name[low]
                                                                                  : -1;
}

/* ---- which chunk of the sums is which of the dataset ---- */

typedef struct match {
  tegula__sums *sums;
  const tegula__file_sums *file;
  const tegula__part *part;
} match;

static bool match_chunk(void *state, const tegula__chunk *chunk, const int64_t *lo,
                        const int64_t *hi) {
  (void)hi;
  const match *m = state;
  int64_t low = m->file->first_chunk, high = low + m->file->chunk_count, end = high;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (m->sums->chunks[middle].offset < (int64_t)chunk->offset)
      low = middle + 1;
    else
      high = middle;
  }
  tegula__chunk_sum *found = low < end ? &m->sums->chunks[low] : NULL;
  if (found == NULL || found->offset != (int64_t)chunk->offset || found->length != chunk->length)
    return true;
  bool here = memcmp(m->sums->vectors + found->at, lo, (size_t)m->sums->ndim * sizeof *lo) == 0;
  found->part = here ? m->part : NULL; /* another place: several parts show it */
  return true;
}

/* Those that are the same can be hashed for the content in passing. */
static void match_chunks(checking *c) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  if (c->sums.ndim != manifest->ndim) return;
  c->summing.chunk_vectors = c->sums.vectors;
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    int64_t file = tegula__part_in_chunks(part) ? tegula__part_file(part) : -1,
            number = file >= 0 ? c->number[file] : -1;
    if (number < 0 || c->summing.files[number].index != file ||
        tegula__box_count(manifest->ndim, part->lo, part->hi) == 0)
      continue;
    tegula__part_visit(part, manifest->ndim, match_chunk,
                       &(match){.sums = &c->sums, .file = &c->sums.files[number], .part = part});
  }
}

static tegula_status match_files(checking *c, tegula__namer *namer, tegula_error *err) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  c->number = tegula__realloc_array(NULL, manifest->file_count, sizeof *c->number);
  if (c->number == NULL)
    return tegula__out_of_memory(err, manifest->file_count * (int64_t)sizeof *c->number);
  for (int64_t i = 0; i < manifest->file_count; i++) {
    char *name = absolute_name(namer, manifest->files[i].path);
    if (name == NULL) return tegula__out_of_memory(err, 1024);
    c->number[i] = find_name(c, name);
    free(name);
    tegula__sum_file *file = c->number[i] >= 0 ? &c->summing.files[c->number[i]] : NULL;
    if (file == NULL) continue;
    file->set = c->dataset->files;
    file->file = &manifest->files[i];
    file->index = i;
  }
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    int64_t number = part->kind == TEGULA__PART_DENSE ? c->number[part->file] : -1;
    const tegula__sum_file *file = number >= 0 ? &c->summing.files[number] : NULL;
    if (file != NULL && file->index == part->file && file->size == file->file->stamp.size)
      FORWARD(tegula__summing_part(&c->summing, part, number, err));
  }
  match_chunks(c);
  return TEGULA_OK;
}

static tegula_status prepare(checking *c, tegula_error *err) {
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
  tegula_status status = name_files(c, &namer, err);
  if (status == TEGULA_OK && c->dataset != NULL) status = match_files(c, &namer, err);
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
static int64_t find_sum(checking *c, tegula__hash128 sum) {
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

static void same_content(const checking *c, tegula_error *problem) {
  if (c->report.content == 1 && problem->hint[0] == '\0')
    tegula__hint(problem, problem->status,
                 "the content of the array is the same: it was written again, or bytes changed "
                 "that are no elements");
}

static void tell_other_bytes(checking *c, int64_t number) {
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

static void tell_other_chunks(checking *c, int64_t number) {
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

static void tell_file(checking *c, int64_t number) {
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

static void tell_extra(checking *c) {
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

static bool same_array(const checking *c) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  return tegula_dtype_same(manifest->dtype, c->sums.dtype) && manifest->ndim == c->sums.ndim &&
         memcmp(manifest->shape, c->sums.shape, (size_t)manifest->ndim * sizeof *manifest->shape) ==
             0;
}

static void tell_other_array(checking *c) {
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
static bool is_told(const checking *c, const tegula_error *error) {
  for (int64_t i = 0; i < c->summing.file_count; i++)
    if (c->summing.files[i].error != NULL &&
        strcmp(c->summing.files[i].error->path, error->path) == 0)
      return true;
  return false;
}

static void tell_content(checking *c, const char *found) {
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

static void tell_all(checking *c) {
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
static tegula_status read_sums(checking *c, const char *path, tegula_error *err) {
  FORWARD(tegula__io_read_whole(NULL, path, (int64_t)TEGULA__SUMS_BYTES, &c->text, &c->text_size,
                                &c->summing.call.tally->counts, err));
  return tegula__sums_read(c->text, c->text_size, path, &c->sums, err);
}

/* The others get its text. */
static tegula_status share_sums(checking *c, const char *path, tegula_error *err) {
  tegula_comm *comm = c->context->comm;
  tegula_status status =
      comm->size > 1 ? tegula__share_text(c->context, &c->text, &c->text_size, err) : TEGULA_OK;
  if (status == TEGULA_OK && comm->rank != 0)
    status = tegula__sums_read(c->text, c->text_size, path, &c->sums, err);
  free(c->text);
  c->text = NULL;
  return status;
}

static tegula_status check_view(checking *c, tegula_status status, tegula_error *err) {
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
static void describe(const checking *c, const char *path, const tegula_dataset *view,
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
static tegula_status begin(checking *c, const char *path, tegula_dataset **view,
                           tegula_error *err) {
  tegula__io_counts *counts = &c->summing.call.tally->counts;
  if (c->context->comm->rank == 0) FORWARD(read_sums(c, path, err));
  if (c->dataset != NULL) FORWARD(tegula__dataset_confirm(c->dataset, counts, err));
  return c->dataset != NULL
             ? tegula__dataset_view_all(c->dataset, c->summing.call.options, counts, view, err)
             : TEGULA_OK;
}

static tegula_status check_all(checking *c, const char *path, tegula_error *err) {
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

static void release(checking *c) {
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
  checking c = {.context = context,
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
