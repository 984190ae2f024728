/* Opening a dataset: files are found, described and joined, once no earlier operation writes to
 * them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "dataset/dataset.h"
#include "dataset/selection.h"

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
  CHECK_ARGUMENT(options->reserved_end == 0, "a reserved field is not zero");
  CHECK_ARGUMENT(options->expect_files >= -1 && options->expect_rows >= -1,
                 "expected numbers must be -1 or more");
  return TEGULA_OK;
}

/* The fields of a record say their byte orders themselves. */
static tegula_status record_of(const tegula_open_options *options, tegula__discover_options *out,
                               tegula_error *err) {
  CHECK_ARGUMENT(options->byte_order == 0,
                 "byte_order is given for records, whose fields say it themselves");
  out->describe.record = options->dtype;
  return tegula__record_read(options->dtype, &out->describe.dtype, NULL, err);
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
                   .settings = {options->settings, options->setting_count},
                   .locked = (options->flags & TEGULA_OPEN_LOCKED) != 0},
      .expect_files = options->expect_files,
      .expect_rows = options->expect_rows,
      .progress = options->progress,
      .progress_state = options->progress_state,
      .defer_headers = (options->flags & TEGULA_OPEN_DEFER_HEADERS) != 0};
  FORWARD(tegula__settings_check(&out->describe.settings, TEGULA__SETTING_OPEN, err));
  if (options->dtype == NULL) return TEGULA_OK;
  out->describe.has_dtype = true;
  if (options->dtype[0] == '[') return record_of(options, out, err);
  /* an order in the text and another one beside it contradict each other */
  char said = options->dtype[0];
  if (options->byte_order != 0 && (said == '<' || said == '>') && said != options->byte_order)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "dtype \"%.60s\" says another byte order than byte_order '%c'",
                        options->dtype, options->byte_order);
  return tegula_dtype_parse(options->dtype, &out->describe.dtype, err);
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
  status = tegula__dataset_finish(dataset, places, &options->describe, found.others, err);
  if (status != TEGULA_OK) {
    tegula__dataset_free_content(dataset);
    free(dataset);
    return status;
  }
  atomic_init(&dataset->references, 1);
  dataset->context = tegula__context_retain(context);
  *out = dataset;
  return TEGULA_OK;
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

/* Refuses records of which a field cannot be loaded. The hint names the fields that can. */
static tegula_status check_all_fields(tegula_dataset **dataset, const char *path,
                                      tegula_error *err) {
  const tegula__manifest *manifest = &(*dataset)->manifest;
  tegula__buffer names;
  RETURN_IF(manifest->refused == NULL, TEGULA_OK);
  tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "cannot load \"%s\" of \"%s\": %s",
               manifest->name != NULL ? manifest->name : "", path, manifest->refused);
  tegula__buffer_init(&names, 4096);
  if (tegula__record_names(manifest->descr, &names) && names.size > 0)
    tegula__hint(err, TEGULA_UNSUPPORTED,
                 "fields that can be loaded: %.*s (option --field NAME, field= in Python)",
                 (int)tegula__min((int64_t)names.size, 400), names.data);
  tegula__buffer_free(&names);
  tegula_dataset_close(*dataset);
  return TEGULA_UNSUPPORTED;
}

/* Replaces what was opened by one field of it. */
static tegula_status take_field(const char *name, tegula_dataset **dataset, tegula_error *err) {
  tegula__subset whole;
  tegula_dataset *field = NULL;
  tegula__subset_whole(&(*dataset)->manifest, &whole);
  tegula_status status = tegula__dataset_select_field(*dataset, &whole, name, &field, err);
  tegula_dataset_close(*dataset);
  *dataset = field;
  return status;
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
  if (status == TEGULA_OK && local.field != NULL)
    status = take_field(local.field, &opened, err);
  else if (status == TEGULA_OK)
    status = check_all_fields(&opened, paths[0], err);
  if (status == TEGULA_OK) *out = opened;
  return status;
}
