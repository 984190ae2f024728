/* Datasets: open (discover, describe, join, agree), information, close.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "api/held.h"
#include "codec/codec.h"

static tegula_status check_options(const tegula_open_options *options, tegula_error *err) {
  CHECK_ARGUMENT(options->shape_ndim >= -1 && options->shape_ndim <= TEGULA_MAX_DIMS,
                 "shape_ndim must be -1 to 64");
  CHECK_ARGUMENT(options->row_ndim >= -1 && options->row_ndim <= TEGULA_MAX_DIMS - 1,
                 "row_ndim must be -1 to 63");
  CHECK_ARGUMENT(options->shape_ndim <= 0 || options->shape != NULL,
                 "shape_ndim is given, but shape is NULL");
  CHECK_ARGUMENT(options->row_ndim <= 0 || options->row_shape != NULL,
                 "row_ndim is given, but row_shape is NULL");
  CHECK_ARGUMENT(options->shape_ndim < 0 || options->row_ndim < 0,
                 "give shape or row_shape, not both");
  CHECK_ARGUMENT(options->order == 0 || options->order == 'C' || options->order == 'F',
                 "order must be 'C' or 'F'");
  CHECK_ARGUMENT(options->byte_order == 0 || options->byte_order == '<' ||
                     options->byte_order == '>',
                 "byte_order must be '<' or '>'");
  CHECK_ARGUMENT(options->offset >= 0, "offset must not be negative");
  CHECK_ARGUMENT(options->row_gap >= 0, "row_gap must not be negative");
  const uint32_t known = TEGULA_OPEN_CHECK_ORDER | TEGULA_OPEN_DEFER_HEADERS | TEGULA_OPEN_LOCKED;
  CHECK_ARGUMENT((options->flags & ~known) == 0 && options->reserved == 0, "unknown flags are set");
  CHECK_ARGUMENT(options->expect_files >= -1 && options->expect_rows >= -1,
                 "expected numbers must be -1 or more");
  return TEGULA_OK;
}

tegula_status tegula__discover_options_of(const tegula_open_options *options,
                                          tegula__discover_options *out, tegula_error *err) {
  FORWARD(check_options(options, err));
  *out = (tegula__discover_options){
      .format = options->format,
      .describe = {.shape = options->shape,
                   .row_shape = options->row_shape,
                   .shape_ndim = options->shape_ndim,
                   .row_ndim = options->row_ndim,
                   .offset = options->offset,
                   .row_gap = options->row_gap,
                   .order = options->order,
                   .byte_order = options->byte_order,
                   .dataset = options->dataset,
                   .locked = (options->flags & TEGULA_OPEN_LOCKED) != 0},
      .expect_files = options->expect_files,
      .expect_rows = options->expect_rows,
      .progress = options->progress,
      .progress_state = options->progress_state,
      .defer_headers = (options->flags & TEGULA_OPEN_DEFER_HEADERS) != 0};
  if (options->dtype == NULL) return TEGULA_OK;
  out->describe.has_dtype = true;
  /* an order in the text and another one beside it contradict each other */
  char said = options->dtype[0];
  if (options->byte_order != 0 && (said == '<' || said == '>') && said != options->byte_order)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "dtype \"%.60s\" says another byte order than byte_order '%c'",
                        options->dtype, options->byte_order);
  return tegula_dtype_parse(options->dtype, &out->describe.dtype, err);
}

/* Where the dataset's operations meet others: what it was opened from, or the files that those
 * speak of. */
static tegula_status choose_places(tegula_dataset *dataset, const tegula__places *opened,
                                   bool others, tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  dataset->places = *opened;
  if (!others && manifest->late_count == 0) return TEGULA_OK;
  int64_t count = manifest->file_count + manifest->late_count;
  const char **paths = tegula__realloc_array(NULL, count, sizeof *paths);
  if (paths == NULL) return tegula__out_of_memory(err, count * (int64_t)sizeof *paths);
  for (int64_t i = 0; i < manifest->file_count; i++) paths[i] = manifest->files[i].path;
  for (int64_t i = 0; i < manifest->late_count; i++)
    paths[manifest->file_count + i] = manifest->lates[i]->path;
  tegula_status status = tegula__places_of(paths, count, &dataset->places, err);
  free(paths);
  return status;
}

tegula_status tegula__dataset_name_codecs(tegula_dataset *dataset, tegula_error *err) {
  const tegula__part *part = tegula__storage_in_chunks(&dataset->manifest);
  tegula__buffer text;
  tegula__buffer_init(&text, 4096);
  bool good = tegula__buffer_reserve(&text, 1);
  if (part != NULL)
    good = good && tegula__chain_format(part->grid->filters, part->grid->filter_count, &text);
  good = good && tegula__buffer_append(&text, "", 1);
  if (!good) {
    tegula__buffer_free(&text);
    return tegula__out_of_memory(err, 4096);
  }
  dataset->codecs = text.data;
  return TEGULA_OK;
}

/* How it is found again in its file. */
static tegula_status note_request(tegula_dataset *dataset, const tegula__describe_options *options,
                                  tegula_error *err) {
  dataset->locked = options->locked;
  dataset->asked = tegula__strdup(options->dataset);
  bool good = options->dataset == NULL || dataset->asked != NULL;
  return good ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(options->dataset));
}

/* The places belong to the dataset on success, unless it has others. */
static tegula_status finish_dataset(tegula_dataset *dataset, const tegula__places *places,
                                    const tegula__describe_options *options, bool others,
                                    tegula_error *err) {
  FORWARD(note_request(dataset, options, err));
  FORWARD(tegula__unread_create(&dataset->manifest, &dataset->unread, err));
  FORWARD(tegula__dataset_name_codecs(dataset, err));
  FORWARD(tegula__views_create(dataset, err));
  return choose_places(dataset, places, others, err);
}

/* What a dataset owns but its context and its places. */
static void free_content(tegula_dataset *dataset) {
  tegula__held_free(dataset->held);
  tegula__views_destroy(dataset->views);
  tegula__file_set_destroy(dataset->files);
  tegula__unread_destroy(dataset->unread);
  tegula__manifest_free(&dataset->manifest);
  free(dataset->codecs);
  free(dataset->opened);
  free(dataset->asked);
}

static tegula_status find_and_open(tegula_context *context, const tegula__selection *selection,
                                   const tegula__places *places,
                                   const tegula__discover_options *options, tegula__tally *tally,
                                   tegula_dataset **out, tegula_error *err) {
  tegula__discovered found;
  tegula_dataset *dataset = calloc(1, sizeof *dataset);
  if (dataset == NULL) return tegula__out_of_memory(err, sizeof *dataset);
  tegula_status status = tegula__discover(context->engine.pool, context->handles, selection,
                                          options, &found, &tally->counts, err);
  if (status != TEGULA_OK) {
    free(dataset);
    return status;
  }
  dataset->manifest = found.manifest;
  dataset->files = found.files;
  dataset->opened = found.first;
  status = finish_dataset(dataset, places, &options->describe, found.others, err);
  if (status != TEGULA_OK) {
    free_content(dataset);
    free(dataset);
    return status;
  }
  atomic_init(&dataset->references, 1);
  dataset->context = tegula__context_retain(context);
  *out = dataset;
  return TEGULA_OK;
}

tegula_status tegula__dataset_of_manifest(tegula_context *context, tegula__manifest *manifest,
                                          tegula_dataset **out, tegula_error *err) {
  tegula_dataset *dataset = calloc(1, sizeof *dataset);
  tegula_status status = dataset == NULL ? tegula__out_of_memory(err, sizeof *dataset) : TEGULA_OK;
  if (dataset == NULL) {
    tegula__manifest_free(manifest);
    return status;
  }
  dataset->manifest = *manifest;
  manifest = &dataset->manifest;
  dataset->opened = strdup(manifest->files[0].path);
  if (dataset->opened == NULL)
    status = tegula__out_of_memory(err, (int64_t)strlen(manifest->files[0].path));
  if (status == TEGULA_OK)
    status = tegula__file_set_create(context->handles, manifest->files, manifest->file_count, false,
                                     &dataset->files, err);
  if (status == TEGULA_OK) status = tegula__dataset_name_codecs(dataset, err);
  atomic_init(&dataset->references, 1);
  dataset->context = tegula__context_retain(context);
  if (status == TEGULA_OK)
    *out = dataset;
  else
    tegula_dataset_close(dataset);
  return status;
}

/* Can a failure come from what was foretold, or hide one that is the first when all headers are
 * read? Not if the system is why. */
static bool may_be_foretold(tegula_status status, const tegula_error *err) {
  return status != TEGULA_OK && status != TEGULA_OUT_OF_MEMORY && status != TEGULA_CANCELLED &&
         err->os_errno == 0;
}

/* What a file speaks of, the sources of a virtual dataset, is known only now: a save to one of them
 * is waited for, then all is read again. */
static tegula_status wait_for_sources(tegula_context *context, const tegula__selection *selection,
                                      const tegula__places *places,
                                      const tegula__discover_options *options, tegula__tally *tally,
                                      tegula_dataset **out, tegula_error *err) {
  tegula_dataset *first = *out;
  tegula_op turn;
  tegula_status status = TEGULA_OK;
  if (first->places.items == places->items) return TEGULA_OK; /* it speaks of no others */
  bool waited =
      tegula__queue_enter(context->queue, &turn, &(tegula__touch){.places = &first->places});
  if (waited) status = find_and_open(context, selection, places, options, tally, out, err);
  tegula__queue_leave(&turn);
  if (waited) tegula_dataset_close(first);
  return status;
}

tegula_status tegula__open_check(const char *const *paths, size_t count,
                                 const tegula_open_options *options, tegula_open_options *local,
                                 tegula__discover_options *discover, tegula_error *err) {
  CHECK_ARGUMENT(paths != NULL, "the path is NULL");
  CHECK_ARGUMENT(count > 0 && count <= INT64_MAX / sizeof *paths, "no paths were given");
  tegula_open_options_init(local);
  FORWARD(tegula__options_copy(local, sizeof *local, FIRST_OPEN_OPTIONS, options,
                               "tegula_open_options", err));
  FORWARD(tegula__discover_options_of(local, discover, err));
  for (size_t i = 0; i < count; i++)
    CHECK_ARGUMENT(paths[i] != NULL && paths[i][0] != '\0', "one of the paths is empty");
  return TEGULA_OK;
}

tegula_status tegula__open_here(tegula_context *context, const char *const *paths, size_t count,
                                const tegula_open_options *options, tegula_dataset **out,
                                tegula_error *err) {
  tegula_open_options local;
  tegula__discover_options discover;
  tegula__tally tally;
  tegula__places places;
  tegula_op turn;
  tegula_error unwanted;
  if (err == NULL) err = &unwanted;
  FORWARD(tegula__open_check(paths, count, options, &local, &discover, err));
  discover.describe.plugins = context->plugins;
  /* other ranks are told what is certain */
  discover.defer_headers = discover.defer_headers && context->comm->size == 1;
  FORWARD(tegula__tally_start(&tally, local.statistics, err));
  FORWARD(tegula__places_of_paths(paths, count, &places, err));
  /* a save to the place is waited for */
  tegula__queue_enter(context->queue, &turn, &(tegula__touch){.places = &places});
  const tegula__selection selection = {paths, (int64_t)count,
                                       count > 1 && (local.flags & TEGULA_OPEN_CHECK_ORDER) != 0};
  tegula_dataset *opened = NULL;
  tegula_status status =
      find_and_open(context, &selection, &places, &discover, &tally, &opened, err);
  if (discover.defer_headers && may_be_foretold(status, err)) {
    discover.defer_headers = false;
    status = find_and_open(context, &selection, &places, &discover, &tally, &opened, err);
  }
  tegula__queue_leave(&turn); /* which looked at the places until now */
  if (status == TEGULA_OK)
    status = wait_for_sources(context, &selection, &places, &discover, &tally, &opened, err);
  if (status != TEGULA_OK || opened->places.items != places.items) tegula__places_free(&places);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_describe));
  if (status == TEGULA_OK) *out = opened;
  return status;
}

/* What both ways to open share. */
static tegula_status open_any(tegula_context *context, const char *const *paths, size_t count,
                              const tegula_open_options *options, tegula_dataset **out,
                              tegula_error *err) {
  CHECK_ARGUMENT(context != NULL && out != NULL,
                 "the context or the place for the dataset is NULL");
  if (context->comm->size > 1)
    return tegula__open_on_ranks(context, paths, count, options, out, err);
  return tegula__comm_agree(context->comm,
                            tegula__open_here(context, paths, count, options, out, err), err);
}

tegula_status tegula_dataset_open(tegula_context *context, const char *path,
                                  const tegula_open_options *options, tegula_dataset **out,
                                  tegula_error *err) {
  return open_any(context, &path, 1, options, out, err);
}

tegula_status tegula_dataset_open_list(tegula_context *context, const char *const *paths,
                                       size_t count, const tegula_open_options *options,
                                       tegula_dataset **out, tegula_error *err) {
  return open_any(context, paths, count, options, out, err);
}

tegula_status tegula_find_files(const char *path, tegula_path_fn visit, void *state,
                                tegula_error *err) {
  CHECK_ARGUMENT(path != NULL && visit != NULL, "the path or the function to be called is NULL");
  tegula__paths found;
  tegula_error problem;
  FORWARD(tegula__paths_find_all(path, &found, &problem, err));
  tegula_status status = TEGULA_OK;
  for (int64_t i = 0; i < found.count && status == TEGULA_OK; i++)
    status = visit(state, found.items[i], err);
  tegula__paths_free(&found);
  if (status != TEGULA_OK || problem.status == TEGULA_OK) return status;
  if (err != NULL) *err = problem;
  return problem.status;
}

tegula_dataset *tegula__dataset_retain(const tegula_dataset *dataset) {
  tegula_dataset *shared = (tegula_dataset *)dataset; /* only the count changes */
  atomic_fetch_add(&shared->references, 1);
  return shared;
}

void tegula_dataset_close(tegula_dataset *dataset) {
  if (dataset == NULL || atomic_fetch_sub(&dataset->references, 1) != 1) return;
  tegula__places_free(&dataset->places);
  free_content(dataset);
  tegula__context_release(dataset->context);
  free(dataset);
}

tegula_status tegula__dataset_confirm(const tegula_dataset *dataset, tegula__io_counts *counts,
                                      tegula_error *err) {
  tegula__io_counts uncounted = {0};
  return tegula__unread_check_all(dataset->unread, dataset->context->engine.pool, dataset->files,
                                  counts != NULL ? counts : &uncounted, err);
}

/* Chunks and bytes in the files. A grid that several parts refer to counts once. */
static void count_stored(const tegula__manifest *manifest, tegula_dataset_info_t *info) {
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    if (!tegula__part_contiguous(part) && part->kind != TEGULA__PART_READ) continue;
    info->chunks++;
    info->stored_bytes +=
        tegula__box_count(manifest->ndim, part->lo, part->hi) * manifest->dtype.item_size;
  }
  for (int64_t i = 0; i < manifest->grid_count; i++)
    for (int64_t k = 0; k < manifest->grids[i]->count && !manifest->grids[i]->slices; k++) {
      info->chunks += manifest->grids[i]->chunks[k].length != 0;
      info->stored_bytes += manifest->grids[i]->chunks[k].length;
    }
}

tegula_status tegula_dataset_info(const tegula_dataset *dataset, tegula_dataset_info_t *out,
                                  tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && out != NULL,
                 "the dataset or the place for its information is NULL");
  dataset = tegula__dataset_known(dataset);
  const tegula__manifest *manifest = &dataset->manifest;
  tegula_dataset_info_t info = {.dtype = manifest->dtype,
                                .ndim = manifest->ndim,
                                .files = manifest->file_count,
                                .format = manifest->format,
                                .name = manifest->name,
                                .descr = manifest->descr,
                                .sources = manifest->late_count};
  memcpy(info.shape, manifest->shape, sizeof info.shape);
  /* finish has checked it */
  tegula__shape_bytes(manifest->shape, manifest->ndim, manifest->dtype.item_size, &info.bytes);
  count_stored(manifest, &info);
  const tegula__part *part = tegula__storage_in_chunks(manifest);
  if (part != NULL) info.chunk = part->chunk;
  info.codecs = dataset->codecs != NULL ? dataset->codecs : "";
  info.fill = manifest->fill;
  return tegula__info_copy(out, sizeof info, FIRST_DATASET_INFO, &info, "tegula_dataset_info_t",
                           err);
}

/* Where the first stored byte of a part is; -1 when nothing of it is. */
static int64_t first_offset(const tegula__part *part) {
  const tegula__grid *grid = part->grid;
  if (grid == NULL) return part->offset;
  for (int64_t i = 0; i < grid->count; i++)
    if (grid->chunks[i].length != 0) return (int64_t)grid->chunks[i].offset;
  return -1;
}

/* The rows of a file. Drivers give one part per file, in the same order; a manifest may speak of
 * several parts of one file, or of none. */
static void find_rows(const tegula__manifest *manifest, int64_t file, tegula_file_info *out) {
  bool usual = file < manifest->part_count && manifest->part_count == manifest->file_count &&
               tegula__part_file(&manifest->parts[file]) == file;
  int64_t first = usual ? file : 0, last = usual ? file + 1 : manifest->part_count;
  bool found = false;
  for (int64_t i = first; i < last; i++) {
    const tegula__part *part = &manifest->parts[i];
    if (tegula__part_file(part) != file) continue;
    int64_t lo = manifest->ndim > 0 ? part->lo[0] : 0, hi = manifest->ndim > 0 ? part->hi[0] : 1;
    if (!found) out->data_offset = first_offset(part);
    out->row_lo = found ? tegula__min(out->row_lo, lo) : lo;
    out->row_hi = found ? tegula__max(out->row_hi, hi) : hi;
    found = true;
  }
}

tegula_status tegula_dataset_file(const tegula_dataset *dataset, int64_t index,
                                  tegula_file_info *out, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && out != NULL,
                 "the dataset or the place for its information is NULL");
  const tegula__manifest *manifest = &tegula__dataset_known(dataset)->manifest;
  if (index < 0 || index >= manifest->file_count)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "file %lld was asked for, the dataset has %lld", (long long)index,
                        (long long)manifest->file_count);
  FORWARD(tegula__dataset_confirm(dataset, NULL, err));
  tegula_file_info info = {.path = manifest->files[index].path,
                           .size = manifest->files[index].stamp.size};
  find_rows(manifest, index, &info);
  return tegula__info_copy(out, sizeof info, FIRST_FILE_INFO, &info, "tegula_file_info", err);
}

tegula_status tegula_dataset_to_json(const tegula_dataset *dataset, const char *folder, char **out,
                                     tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && out != NULL, "the dataset or the place for its text is NULL");
  FORWARD(tegula__dataset_confirm(dataset, NULL, err));
  const tegula__manifest_names names = {.codecs = tegula__codec_names()};
  tegula_dataset *view;
  FORWARD(tegula__dataset_view_all(dataset, NULL, NULL, &view, err));
  tegula_status status = tegula__manifest_write(&view->manifest, &names, folder, out, err);
  tegula_dataset_close(view);
  return status;
}

static tegula_status find_lost(const tegula__manifest *manifest, int64_t index, tegula_box *box,
                               tegula_error *why) {
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    if (part->kind != TEGULA__PART_LOST || index-- > 0) continue;
    box->ndim = manifest->ndim;
    for (int32_t k = 0; k < manifest->ndim; k++) {
      box->lo[k] = part->lo[k];
      box->hi[k] = part->hi[k];
    }
    if (why != NULL) *why = *part->lost;
    return TEGULA_OK;
  }
  return TEGULA_END;
}

tegula_status tegula_dataset_lost(const tegula_dataset *dataset, int64_t index, tegula_box *box,
                                  tegula_error *why, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && box != NULL, "the dataset or the place for the box is NULL");
  CHECK_ARGUMENT(index >= 0, "the index is negative");
  tegula_dataset *view;
  FORWARD(tegula__dataset_view_all(dataset, NULL, NULL, &view, err));
  tegula_status status = find_lost(&view->manifest, index, box, why);
  tegula_dataset_close(view);
  return status;
}
