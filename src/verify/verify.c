/* tegula_dataset_verify: is every file there, the one that was described, and readable to its last
 * byte? Goes on after a problem.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Files are looked at in groups: first all names of a group, in parallel, then the bytes of those
 * that are in order, many files at a time in one window. Bytes are read in the file's own order and
 * stay in the file's byte order: nothing is done but reading. Where a window fails, its files are
 * read again one by one, so that each one's problem is found. Of each file one problem is told. On
 * several ranks each looks at a share of a group's files, and reads a share of its bytes; at the
 * end of a group all are told what each found. */
#include <stdlib.h>

#include "verify/verify_priv.h"

/* Tells the group's problems in the order of files. */
static void tell(tegula__verify *v) {
  tegula__problems_order(&v->problems);
  for (int64_t i = 0; i < v->problems.count; i++) {
    if (v->report.problems++ == 0) v->first = v->problems.items[i].error;
    if (v->visit != NULL) v->visit(v->visit_state, &v->problems.items[i].error);
  }
  v->problems.count = 0;
}

/* ---- names and sizes ---- */

/* The first file of the group that a rank looks at. */
static int64_t first_of(const tegula__verify *v, int32_t rank) {
  int64_t files = tegula__min(GROUP, v->manifest->file_count - v->group);
  return v->group + files * rank / tegula__verify_comm(v)->size;
}

static void check_file(void *state, int32_t worker, int64_t item) {
  (void)worker;
  tegula__verify *v = state;
  tegula_error error;
  int64_t file = first_of(v, tegula__verify_comm(v)->rank) + item;
  if (tegula__file_set_check(v->dataset->files, file, &v->call.tally->counts, &error) != TEGULA_OK)
    tegula__verify_note(v, file, false, &error);
}

/* ---- all files ---- */

static const tegula__part *part_at(const tegula__verify *v, int64_t i) {
  return &v->manifest->parts[v->order != NULL ? v->order[i] : i];
}

static int compare_parts(const void *a, const void *b, void *state) {
  const tegula__part *parts = state;
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  int64_t first = tegula__part_file(&parts[i]), second = tegula__part_file(&parts[j]);
  if (first != second) return first < second ? -1 : 1;
  return (i > j) - (i < j);
}

static tegula_status order_parts(tegula__verify *v, tegula_error *err) {
  const tegula__manifest *manifest = v->manifest;
  bool sorted = true;
  for (int64_t i = 1; i < manifest->part_count; i++)
    sorted = sorted &&
             tegula__part_file(&manifest->parts[i - 1]) <= tegula__part_file(&manifest->parts[i]);
  if (sorted) return TEGULA_OK;
  v->order = tegula__realloc_array(NULL, manifest->part_count, sizeof *v->order);
  if (v->order == NULL)
    return tegula__out_of_memory(err, manifest->part_count * (int64_t)sizeof *v->order);
  for (int64_t i = 0; i < manifest->part_count; i++) v->order[i] = i;
  qsort_r(v->order, (size_t)manifest->part_count, sizeof *v->order, compare_parts, manifest->parts);
  return TEGULA_OK;
}

/* What is lost is a problem of its own, unless the caller takes the fill value instead. */
static void look_at_part(tegula__verify *v, const tegula__part *part, tegula_verify_level level) {
  v->report.chunks += tegula__part_contiguous(part) || part->kind == TEGULA__PART_READ;
  if (part->kind == TEGULA__PART_LOST && v->call.options->missing != TEGULA_MISSING_FILL) {
    if (tegula__verify_comm(v)->rank == 0)
      tegula__verify_note(v, TEGULA__NO_FILE, false, part->lost);
    return;
  }
  if (level != TEGULA_VERIFY_DECODE || v->stop != TEGULA_OK) return;
  if (part->kind == TEGULA__PART_CHUNKED)
    tegula__verify_read_chunked(v, part);
  else
    tegula__verify_read_part(v, part);
}

/* What each rank reads of the parts [first, last). */
static void divide(tegula__verify *v, int64_t first, int64_t last) {
  int64_t bytes = 0, size = tegula__verify_comm(v)->size;
  for (int64_t i = first; i < last; i++) {
    const tegula__part *part = part_at(v, i);
    bytes +=
        tegula__box_count(v->manifest->ndim, part->lo, part->hi) * v->manifest->dtype.item_size;
  }
  v->position = 0;
  v->share = tegula__max(1, tegula__ceil_div(bytes, size));
  v->most = (int64_t)v->window.mapped;
  if (size > 1) v->most = tegula__min(v->most, tegula__max(LEAST_AT_ONCE, v->share / 4));
}

/* The end of a group: all ranks know what each found, or that one must stop. */
static void share(tegula__verify *v) {
  tegula_comm *comm = tegula__verify_comm(v);
  if (comm->size == 1) return;
  v->stop = tegula__comm_agree(comm, v->stop, &v->stop_error);
  if (v->stop == TEGULA_OK) v->stop = tegula__problems_share(&v->problems, comm, &v->stop_error);
}

/* One group; *part is where its parts begin, and then where those of the next do. */
static void verify_group(tegula__verify *v, int64_t files, tegula_verify_level level,
                         int64_t *part) {
  int64_t first = *part, mine = files > 0 ? first_of(v, tegula__verify_comm(v)->rank + 1) -
                                                first_of(v, tegula__verify_comm(v)->rank)
                                          : 0;
  memset(v->bad, 0, sizeof v->bad);
  /* opening waits for storage */
  if (mine > 0) tegula__pool_run_waiting(v->dataset->context->engine.pool, mine, check_file, v);
  v->report.files += files;
  while (*part < v->manifest->part_count && tegula__part_file(part_at(v, *part)) < v->group + files)
    ++*part;
  divide(v, first, *part);
  for (int64_t i = first; i < *part; i++) {
    int64_t begin = v->position;
    const tegula__part *next = part_at(v, i);
    look_at_part(v, next, level);
    v->position = begin + tegula__box_count(v->manifest->ndim, next->lo, next->hi) *
                              v->manifest->dtype.item_size;
  }
  tegula__verify_flush(v);
  share(v);
  if (v->stop == TEGULA_OK) tell(v);
}

/* The window, for a level that reads: at least the largest chunk. */
static tegula_status make_window(tegula__verify *v, tegula_error *err) {
  int64_t bytes = tegula__max(tegula__min(v->call.total, TEGULA__STREAM_BYTES),
                              v->manifest->dtype.item_size),
          one[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < v->manifest->ndim; k++) one[k] = 1;
  for (int64_t i = 0; i < v->manifest->part_count; i++)
    if (v->manifest->parts[i].kind == TEGULA__PART_CHUNKED)
      bytes = tegula__max(bytes, tegula__verify_block_bytes(v, &v->manifest->parts[i], one));
  FORWARD(tegula__memory_check(bytes, err));
  v->boxes = tegula__realloc_array(NULL, tegula__max(1, v->manifest->ndim),
                                   TEGULA__RANGE_BOXES * 2 * sizeof *v->boxes);
  return v->boxes != NULL ? tegula__block_create(bytes, &v->window, err)
                          : tegula__out_of_memory(err, TEGULA__RANGE_BOXES);
}

static tegula_status prepare(tegula__verify *v, tegula_verify_level level, tegula_error *err) {
  FORWARD(order_parts(v, err));
  for (int64_t i = 0; i < v->manifest->grid_count; i++)
    for (int64_t k = 0; k < v->manifest->grids[i]->count && !v->manifest->grids[i]->slices; k++)
      v->report.chunks += v->manifest->grids[i]->chunks[k].length != 0;
  return level == TEGULA_VERIFY_DECODE ? make_window(v, err) : TEGULA_OK;
}

static tegula_status go_through(tegula__verify *v, tegula_verify_level level, tegula_error *err) {
  int64_t part = 0, files = v->manifest->file_count;
  if (files == 0) verify_group(v, 0, level, &part); /* a reader */
  for (; v->group < files && v->stop == TEGULA_OK; v->group += GROUP) {
    if (v->group > 0) tegula__verify_ask(v);
    verify_group(v, tegula__min(GROUP, files - v->group), level, &part);
  }
  if (v->stop == TEGULA_OK) tegula__verify_ask(v);
  v->stop = tegula__comm_agree(tegula__verify_comm(v), v->stop, &v->stop_error);
  if (v->stop == TEGULA_OK)
    v->stop = tegula__comm_reduce(tegula__verify_comm(v), TEGULA_PLUGIN_SUM, &v->report.bytes, 1,
                                  &v->stop_error);
  if (v->stop != TEGULA_OK) {
    *err = v->stop_error;
    return v->stop;
  }
  if (v->report.problems == 0) return TEGULA_OK;
  *err = v->first;
  return v->first.status;
}

/* All that a rank does by itself first. A source that cannot be described is a problem: no group
 * has it, and what else is wrong is not looked for. */
static tegula_status describe(tegula__verify *v, tegula_verify_level level, tegula_dataset **view,
                              bool *source, tegula_error *err) {
  FORWARD(tegula__dataset_confirm(v->dataset, &v->call.tally->counts, err));
  tegula_status status =
      tegula__dataset_view_all(v->dataset, v->call.options, &v->call.tally->counts, view, err);
  *source = status != TEGULA_OK;
  if (status != TEGULA_OK) return status;
  v->manifest = &(*view)->manifest;
  return prepare(v, level, err);
}

static tegula_status verify_dataset(tegula__verify *v, tegula_verify_level level,
                                    tegula_error *err) {
  tegula_dataset *dataset = v->dataset, *view = NULL;
  tegula_error why = {.rank = -1};
  tegula__call call;
  tegula__call_init(&call, "tegula_dataset_verify");
  tegula__call_add(&call, "the level", "%d", (int)level);
  tegula__call_add(&call, "missing", "%u", v->call.options->missing);
  tegula__call_dataset(&call, dataset);
  bool source = false;
  tegula_status status = describe(v, level, &view, &source, &why);
  if (status == TEGULA_OK) tegula__call_view(&call, view);
  status = tegula__comm_agree_call(dataset->context->comm, &call, status, &why);
  if (status == TEGULA_OK) {
    v->dataset = view;
    status = go_through(v, level, &why);
    v->dataset = dataset;
  } else {
    v->problems.count = 0; /* all ranks tell the one that was agreed on */
    /* which may be of the calls: no report speaks of them */
    if (tegula__verify_comm(v)->size > 1) source = status != TEGULA_MISMATCH;
    if (!tegula__status_is_ours(status) && source)
      tegula__verify_note(v, TEGULA__NO_FILE, false, &why);
    tell(v);
  }
  tegula_dataset_close(view);
  if (status != TEGULA_OK) *err = why;
  return status;
}

static void release(tegula__verify *v) {
  tegula__block_free(&v->window);
  pthread_mutex_destroy(&v->lock);
  free(v->order);
  free(v->problems.items);
  free(v->pieces);
  free(v->tiles);
  free(v->vectors);
  free(v->boxes);
}

static tegula_status check_arguments(tegula_dataset *dataset, tegula_verify_level level,
                                     tegula_verify_report *report, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL, "the dataset is NULL");
  CHECK_ARGUMENT(level == TEGULA_VERIFY_SIZES || level == TEGULA_VERIFY_CHECKSUMS ||
                     level == TEGULA_VERIFY_DECODE,
                 "there is no such level");
  tegula_verify_report none = {0};
  return report == NULL ? TEGULA_OK
                        : tegula__info_copy(report, sizeof none, FIRST_VERIFY_REPORT, &none,
                                            "tegula_verify_report", err);
}

tegula_status tegula_dataset_verify(tegula_dataset *dataset, tegula_verify_level level,
                                    tegula_problem_fn visit, void *state,
                                    const tegula_load_options *options,
                                    tegula_verify_report *report, tegula_error *err) {
  tegula_load_options local;
  tegula__tally tally;
  tegula_op turn;
  tegula_error unwanted;
  tegula__news news;
  if (err == NULL) err = &unwanted;
  tegula_load_options_init(&local);
  tegula_status status = check_arguments(dataset, level, report, err);
  if (status == TEGULA_OK) status = tegula__load_options_copy(&local, options, err);
  if (status == TEGULA_OK) status = tegula__tally_start(&tally, local.statistics, err);
  if (status != TEGULA_OK)
    return dataset != NULL ? tegula__comm_agree(dataset->context->comm, status, err) : status;
  tegula__verify v = {
      .dataset = dataset, .manifest = &dataset->manifest, .visit = visit, .visit_state = state};
  v.call = (tegula__stream_call){.options = &local, .tally = &tally};
  if (level == TEGULA_VERIFY_DECODE) /* finish has checked it */
    tegula__shape_bytes(v.manifest->shape, v.manifest->ndim, v.manifest->dtype.item_size,
                        &v.call.total);
  pthread_mutex_init(&v.lock, NULL);
  tegula__news_begin(&news, dataset->context->comm, v.call.total, &local.progress,
                     &local.progress_state);
  tegula__queue_enter(dataset->context->queue, &turn, &(tegula__touch){.places = &dataset->places});
  status = verify_dataset(&v, level, err);
  tegula__queue_leave(&turn);
  release(&v);
  status = tegula__comm_agree(dataset->context->comm, status, err);
  tegula__news_end(&news, status);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_move));
  if (report != NULL)
    (void)tegula__info_copy(report, sizeof v.report, FIRST_VERIFY_REPORT, &v.report,
                            "tegula_verify_report", NULL);
  return status;
}
