/* probe: drives the public C interface from one line of JSON per request, so that tests written in
 * Python run the real library under any sanitizer.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Standard input: one command {"do": NAME, ...} or a list of them per line; standard output: one
 * answer, or a list, per line. A list ends at its first error. The probe keeps one context,
 * dataset, tiling and array; making a new one lets go of the old. An error is {"error": {status,
 * message, hint, path, offset, errno, rank}}. Uses the public header and jansson only. */
#include <pthread.h>
#include <stdatomic.h>

#include "probe_check.h"
#include "probe_crowd.h"
#include "probe_json.h"
#include "probe_pieces.h"
#include "probe_save.h"
#include "probe_sizes.h"
#include "probe_view.h"

typedef json_t *(*probe_fn)(probe_state *state, const json_t *command);

/* ---- objects ---- */

static void blocks_free(probe_blocks *blocks) {
  for (int64_t i = 0; blocks && i < blocks->count; i++) {
    free(blocks->items[i].base);
  }
  if (blocks) {
    free(blocks->items);
    free(blocks);
  }
}

static void blocks_release(void *state) {
  probe_blocks *blocks = state;
  ++*blocks->released;
  blocks_free(blocks);
}

static void array_drop(probe_state *state) {
  tegula_array_destroy(state->array); /* frees the blocks through blocks_release */
  state->array = NULL;
  state->blocks = NULL;
}

static json_t *do_close(probe_state *state, const json_t *command) {
  const char *what = text(command, "what");
  int all = !what;
  if (all || !strcmp(what, "pieces")) {
    pieces_drop(state);
  }
  if (all || !strcmp(what, "saves")) {
    tegula_save_abandon(state->saving);
    state->saving = NULL;
    kept_drop(state);
  }
  if (all || !strcmp(what, "context")) {
    tegula_context_destroy(state->context);
    state->context = NULL;
  }
  if (all || !strcmp(what, "dataset")) {
    tegula_dataset_close(state->dataset);
    tegula_dataset_close(state->other);
    state->dataset = state->other = NULL;
  }
  if (all || !strcmp(what, "tiling")) {
    tegula_tiling_destroy(state->tiling);
    state->tiling = NULL;
  }
  if (all || !strcmp(what, "array")) {
    array_drop(state);
  }
  return json_pack("{s:I}", "released", (json_int_t)state->released);
}

static json_t *do_context(probe_state *state, const json_t *command) {
  tegula_context_options options;
  context_options_read(command, &options);
  tegula_context *context = NULL;
  tegula_error error;
  tegula_status status =
      tegula_context_create(flag(command, "defaults") ? NULL : &options, NULL, &context, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  tegula_context_destroy(state->context);
  state->context = context;
  return json_pack("{s:i}", "threads", (int)tegula_context_threads(context));
}

static json_t *info_answer(probe_state *state, const tegula_dataset *dataset) {
  tegula_dataset_info_t info;
  tegula_dataset_info_init(&info);
  tegula_error error;
  tegula_status status = tegula_dataset_info(dataset, &info, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  json_t *shape = json_array();
  for (int32_t axis = 0; axis < info.ndim; axis++) {
    json_array_append_new(shape, json_integer(info.shape[axis]));
  }
  return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:s?, s:s?, s:o}", "dtype",
                   dtype_answer(info.dtype), "shape", shape, "files", (json_int_t)info.files,
                   "sources", (json_int_t)info.sources, "chunks", (json_int_t)info.chunks, "bytes",
                   (json_int_t)info.bytes, "stored_bytes", (json_int_t)info.stored_bytes, "format",
                   info.format, "name", info.name, "descr", any_text(info.descr));
}

static void open_options_read(const json_t *command, tegula_open_options *options, int64_t shape[],
                              int64_t row_shape[]) {
  const char *order = text(command, "order");
  const char *byte_order = text(command, "byte_order");
  options->format = text(command, "format");
  options->dataset = text(command, "dataset");
  options->dtype = text(command, "dtype");
  if (json_is_array(json_object_get(command, "shape"))) {
    options->shape_ndim = numbers(json_object_get(command, "shape"), shape);
    options->shape = shape;
  }
  if (json_is_array(json_object_get(command, "row_shape"))) {
    options->row_ndim = numbers(json_object_get(command, "row_shape"), row_shape);
    options->row_shape = row_shape;
  }
  options->offset = number(command, "offset", 0);
  options->row_gap = number(command, "row_gap", 0);
  options->field = text(command, "field");
  options->order = order ? order[0] : 0;
  options->byte_order = byte_order ? byte_order[0] : 0;
  options->flags = (uint32_t)number(command, "flags", 0);
  options->expect_files = number(command, "expect_files", -1);
  options->expect_rows = number(command, "expect_rows", -1);
}

static tegula_status open_call(probe_state *state, const json_t *command,
                               const tegula_open_options *options, tegula_dataset **out,
                               tegula_error *error) {
  const json_t *list = json_object_get(command, "paths");
  if (!list) {
    return tegula_dataset_open(state->context, text(command, "path"), options, out, error);
  }
  size_t count = json_array_size(list);
  const char **paths = malloc((count + 1) * sizeof *paths);
  for (size_t i = 0; paths && i < count; i++) {
    paths[i] = json_string_value(json_array_get(list, i));
  }
  tegula_status status =
      tegula_dataset_open_list(state->context, paths, count, options, out, error);
  free(paths);
  return status;
}

static json_t *do_open(probe_state *state, const json_t *command) {
  int64_t shape[TEGULA_MAX_DIMS];
  int64_t row_shape[TEGULA_MAX_DIMS];
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  tegula_open_options options;
  tegula_open_options_init(&options);
  open_options_read(command, &options, shape, row_shape);
  options.statistics = &statistics;
  tegula_dataset *dataset = NULL;
  tegula_error error;
  tegula_error *where = flag(command, "null_error") ? NULL : &error;
  tegula_status status =
      open_call(state, command, flag(command, "defaults") ? NULL : &options, &dataset, where);
  if (status != TEGULA_OK) {
    json_t *answer = error_answer(state, status, where);
    json_object_set_new(answer, "out_untouched", json_boolean(dataset == NULL));
    return answer;
  }
  tegula_dataset **place = flag(command, "other") ? &state->other : &state->dataset;
  tegula_dataset_close(*place);
  *place = dataset;
  json_t *answer = info_answer(state, dataset);
  json_object_set_new(answer, "statistics", statistics_answer(&statistics));
  return answer;
}

/* {ndim, lo, hi, step, field}: all may be left out. The dataset becomes what they select of it. */
static json_t *do_select(probe_state *state, const json_t *command) {
  const char *const names[] = {"lo", "hi", "step"};
  int64_t vectors[3][TEGULA_MAX_DIMS];
  tegula_selection selection;
  tegula_selection_init(&selection);
  const int64_t **places[] = {&selection.lo, &selection.hi, &selection.step};
  selection.ndim = (int32_t)number(command, "ndim", 0);
  selection.field = text(command, "field");
  for (int i = 0; i < 3; i++) {
    const json_t *list = json_object_get(command, names[i]);
    if (list) {
      numbers(list, vectors[i]);
      *places[i] = vectors[i];
    }
  }
  tegula_dataset *selected = NULL;
  tegula_error error;
  tegula_status status = tegula_dataset_select(state->dataset, &selection, &selected, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  tegula_dataset_close(state->dataset);
  state->dataset = selected;
  return info_answer(state, selected);
}

static json_t *do_files(probe_state *state, const json_t *command) {
  int64_t first = number(command, "first", 0);
  int64_t last = first + number(command, "count", 1);
  json_t *list = json_array();
  for (int64_t i = first; i < last; i++) {
    tegula_file_info info;
    tegula_file_info_init(&info);
    tegula_error error;
    tegula_status status = tegula_dataset_file(state->dataset, i, &info, &error);
    if (status != TEGULA_OK) {
      json_decref(list);
      return error_answer(state, status, &error);
    }
    json_array_append_new(list, json_pack("{s:o, s:I, s:[I, I], s:I}", "path", any_text(info.path),
                                          "size", (json_int_t)info.size, "rows",
                                          (json_int_t)info.row_lo, (json_int_t)info.row_hi,
                                          "data_offset", (json_int_t)info.data_offset));
  }
  return json_pack("{s:o}", "files", list);
}

static json_t *do_to_json(probe_state *state, const json_t *command) {
  char *out = NULL;
  tegula_error error;
  tegula_status status =
      tegula_dataset_to_json(state->dataset, text(command, "folder"), &out, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  json_t *answer = json_pack("{s:s}", "text", out);
  tegula_free(out);
  return answer;
}

/* ---- tilings ---- */

static tegula_status tiling_custom(const json_t *command, const int64_t *shape, int32_t ndim,
                                   int32_t ranks, tegula_tiling **out, tegula_error *error) {
  const json_t *list = json_object_get(command, "boxes");
  const json_t *owner_list = json_object_get(command, "owners");
  size_t count = json_array_size(list);
  tegula_box *boxes = malloc((count + 1) * sizeof *boxes);
  int32_t *owners = malloc((count + 1) * sizeof *owners);
  if (!boxes || !owners) {
    abort();
  }
  for (size_t i = 0; i < count; i++) {
    box_read(json_array_get(list, i), &boxes[i]);
    owners[i] = (int32_t)json_integer_value(json_array_get(owner_list, i));
  }
  tegula_status status = tegula_tiling_custom(shape, ndim, boxes, owner_list ? owners : NULL,
                                              (int64_t)count, ranks, out, error);
  free(boxes);
  free(owners);
  return status;
}

static tegula_status tiling_call(probe_state *state, const json_t *command, tegula_tiling **out,
                                 tegula_error *error) {
  const char *kind = text(command, "kind");
  int64_t shape[TEGULA_MAX_DIMS];
  int64_t tile[TEGULA_MAX_DIMS];
  int32_t ndim = numbers(json_object_get(command, "shape"), shape);
  int32_t ranks = (int32_t)number(command, "ranks", 1);
  int64_t tiles = number(command, "tiles", 1);
  if (!strcmp(kind, "even")) {
    return tegula_tiling_even(shape, ndim, (int32_t)number(command, "axis", 0), tiles, ranks, out,
                              error);
  }
  if (!strcmp(kind, "grid")) {
    numbers(json_object_get(command, "tile"), tile);
    return tegula_tiling_grid(shape, tile, ndim, ranks, out, error);
  }
  if (!strcmp(kind, "custom")) {
    return tiling_custom(command, shape, ndim, ranks, out, error);
  }
  return tegula_tiling_from_dataset(state->dataset, tiles, ranks, out, error);
}

static json_t *do_tiling(probe_state *state, const json_t *command) {
  tegula_tiling *tiling = NULL;
  tegula_error error;
  tegula_status status = tiling_call(state, command, &tiling, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  tegula_tiling_destroy(state->tiling);
  state->tiling = tiling;
  int64_t count = tegula_tiling_count(tiling);
  json_t *list = json_array();
  for (int64_t i = 0; flag(command, "list") && i < count; i++) {
    tegula_box box;
    int32_t rank = -1;
    status = tegula_tiling_tile(tiling, i, &box, &rank, &error);
    if (status != TEGULA_OK) {
      json_decref(list);
      return error_answer(state, status, &error);
    }
    json_array_append_new(list,
                          json_pack("{s:o, s:i}", "box", box_answer(&box), "rank", (int)rank));
  }
  return json_pack("{s:I, s:o}", "count", (json_int_t)count, "tiles", list);
}

/* ---- arrays ---- */

/* One block of the caller's memory per tile; "layouts" is used in turn. */
static tegula_status array_wrap(probe_state *state, const json_t *command, tegula_dtype dtype,
                                tegula_array **out, probe_blocks **made, tegula_error *error) {
  const json_t *layouts = json_object_get(command, "layouts");
  int64_t count = tegula_tiling_count(state->tiling);
  probe_blocks *blocks = calloc(1, sizeof *blocks);
  tegula_view *views = calloc((size_t)count + 1, sizeof *views);
  if (!blocks || !views || !(blocks->items = calloc((size_t)count + 1, sizeof *blocks->items))) {
    abort();
  }
  blocks->released = &state->released;
  tegula_status status = TEGULA_OK;
  for (int64_t i = 0; i < count && status == TEGULA_OK; i++) {
    tegula_box box;
    status = tegula_tiling_tile(state->tiling, i, &box, NULL, error);
    if (status == TEGULA_OK) {
      size_t turn = json_array_size(layouts) ? (size_t)i % json_array_size(layouts) : 0;
      probe_block_make(&blocks->items[i], dtype, &box, json_array_get(layouts, turn));
      blocks->count = i + 1;
      views[i] = blocks->items[i].view;
    }
  }
  if (status == TEGULA_OK) {
    int64_t given = number(command, "count", count);
    views[0].box.hi[0] += number(command, "spoil_box", 0);
    views[0].flags |= flag(command, "read_only") ? TEGULA_VIEW_READ_ONLY : 0;
    status = tegula_array_wrap(state->context, dtype, state->tiling, views, given, blocks_release,
                               blocks, out, error);
  }
  free(views);
  if (status != TEGULA_OK) {
    blocks_free(blocks); /* crashes when the library released them although the call failed */
    return status;
  }
  *made = blocks;
  return TEGULA_OK;
}

static json_t *do_array(probe_state *state, const json_t *command) {
  tegula_error error;
  tegula_dtype dtype;
  tegula_array *array = NULL;
  probe_blocks *blocks = NULL;
  tegula_array_options options;
  tegula_array_options_init(&options);
  options.flags = flag(command, "separate") ? TEGULA_ARRAY_SEPARATE : 0;
  options.device_type = (int32_t)number(command, "device_type", options.device_type);
  tegula_status status = tegula_dtype_parse(text(command, "dtype"), &dtype, &error);
  if (status == TEGULA_OK) {
    status = flag(command, "wrap") ? array_wrap(state, command, dtype, &array, &blocks, &error)
                                   : tegula_array_create(state->context, dtype, state->tiling,
                                                         &options, &array, &error);
  }
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  array_drop(state);
  state->array = array;
  state->blocks = blocks;
  tegula_view block;
  tegula_status whole = tegula_array_block(array, &block, &error);
  json_t *answer =
      json_pack("{s:I, s:s, s:I}", "tiles", (json_int_t)tegula_array_tiles(array), "block",
                tegula_status_name(whole), "released", (json_int_t)state->released);
  if (whole == TEGULA_OK) {
    json_object_set_new(answer, "block_box", box_answer(&block.box));
  }
  return answer;
}

/* Each tile as C-ordered bytes, one after the other, into one file. */
static json_t *do_dump(probe_state *state, const json_t *command) {
  const char *path = text(command, "path");
  json_t *list = json_array();
  int64_t stray = 0;
  if (!path || !file_write(path, "", 0, "wb")) {
    json_decref(list);
    return misuse(state, "could not write the dump");
  }
  for (int64_t i = 0; i < tegula_array_tiles(state->array); i++) {
    tegula_view view;
    tegula_error error;
    tegula_status status = tegula_array_view(state->array, i, &view, &error);
    if (status != TEGULA_OK) {
      json_decref(list);
      return error_answer(state, status, &error);
    }
    size_t bytes;
    unsigned char *data = probe_view_bytes(&view, &bytes);
    file_write(path, data, bytes, "ab");
    free(data);
    stray += state->blocks ? probe_block_stray(&state->blocks->items[i]) : 0;
    json_array_append_new(list, json_pack("{s:o, s:o, s:I}", "box", box_answer(&view.box), "dtype",
                                          dtype_answer(view.dtype), "bytes", (json_int_t)bytes));
  }
  return json_pack("{s:o, s:I}", "tiles", list, "stray", (json_int_t)stray);
}

/* The reverse of dump: the file holds the tiles one after the other. */
static json_t *do_fill(probe_state *state, const json_t *command) {
  size_t size = 0;
  size_t used = 0;
  unsigned char *bytes = file_read(text(command, "path"), &size);
  for (int64_t i = 0; bytes && i < tegula_array_tiles(state->array); i++) {
    tegula_view view;
    tegula_error error;
    tegula_status status = tegula_array_view(state->array, i, &view, &error);
    size_t need =
        status == TEGULA_OK ? (size_t)probe_box_count(&view.box) * view.dtype.item_size : 0;
    if (status != TEGULA_OK || need > size - used) {
      free(bytes);
      return status != TEGULA_OK ? error_answer(state, status, &error)
                                 : misuse(state, "the values are too few");
    }
    probe_copy copy = {bytes + used, view.dtype.item_size};
    probe_view_walk(&view, probe_item_in, &copy);
    used += need;
  }
  int whole = bytes && used == size;
  free(bytes);
  return whole ? json_object() : misuse(state, "the values do not fit the array");
}

/* ---- moving ---- */

typedef struct probe_progress {
  atomic_int inside;
  int64_t calls;
  int64_t cancel_after; /* -1: never */
  int64_t done;
  int64_t total;
  int64_t overlaps;
  int64_t backwards;
} probe_progress;

static int progress_note(void *state, int64_t done, int64_t total) {
  probe_progress *progress = state;
  progress->overlaps += atomic_exchange(&progress->inside, 1);
  progress->backwards += done < progress->done || done > total;
  progress->done = done;
  progress->total = total;
  int stop = progress->cancel_after >= 0 && progress->calls >= progress->cancel_after;
  progress->calls++;
  atomic_store(&progress->inside, 0);
  return stop;
}

static json_t *progress_answer(const probe_progress *p) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I}", "calls", (json_int_t)p->calls, "done",
                   (json_int_t)p->done, "total", (json_int_t)p->total, "overlaps",
                   (json_int_t)p->overlaps, "backwards", (json_int_t)p->backwards);
}

static json_t *moved_answer(const tegula_statistics *statistics, const probe_progress *progress) {
  json_t *answer = json_pack("{s:o}", "statistics", statistics_answer(statistics));
  if (progress) {
    json_object_set_new(answer, "progress", progress_answer(progress));
  }
  return answer;
}

/* Waits for what was queued, if it was. */
static tegula_status op_end(tegula_status queued, tegula_op **op, tegula_error *error) {
  tegula_status status = queued == TEGULA_OK ? tegula_op_wait(*op, -1, error) : queued;
  tegula_op_destroy(*op);
  return status;
}

/* "missing": "error", "strict" or "fill". */
static uint32_t missing_of(const json_t *command) {
  const char *said = text(command, "missing");
  if (said == NULL) return TEGULA_MISSING_ERROR;
  return !strcmp(said, "strict") ? TEGULA_MISSING_STRICT
         : !strcmp(said, "fill") ? TEGULA_MISSING_FILL
                                 : TEGULA_MISSING_ERROR;
}

static json_t *do_load(probe_state *state, const json_t *command) {
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  probe_progress progress = {.cancel_after = number(command, "cancel_after", -1)};
  tegula_load_options options;
  tegula_load_options_init(&options);
  options.statistics = &statistics;
  options.progress = flag(command, "progress") ? progress_note : NULL;
  options.progress_state = &progress;
  options.missing = missing_of(command);
  tegula_error error;
  tegula_error *where = flag(command, "null_error") ? NULL : &error;
  tegula_load_options *chosen = flag(command, "defaults") ? NULL : &options;
  tegula_op *op = NULL;
  tegula_status status =
      flag(command, "async")
          ? op_end(tegula_load_async(state->dataset, state->array, chosen, &op, where), &op, where)
          : tegula_load(state->dataset, state->array, chosen, where);
  if (status != TEGULA_OK) {
    return error_answer(state, status, where);
  }
  return moved_answer(&statistics, flag(command, "progress") ? &progress : NULL);
}

typedef struct probe_reader {
  pthread_t thread;
  const tegula_dataset *dataset;
  probe_block block;
  tegula_status status;
} probe_reader;

static void *reader_run(void *state) {
  probe_reader *reader = state;
  reader->status = tegula_dataset_read(reader->dataset, &reader->block.view, NULL, NULL);
  return NULL;
}

/* The same box from several threads at once into memory of their own: how many got something else
 * than `expected`. */
static int64_t readers_differ(probe_state *state, const json_t *command,
                              const probe_block *expected) {
  int64_t count = number(command, "readers", 0);
  int64_t different = 0;
  size_t bytes;
  probe_reader *readers = calloc((size_t)count + 1, sizeof *readers);
  unsigned char *right = probe_view_bytes(&expected->view, &bytes);
  for (int64_t i = 0; readers && i < count; i++) {
    readers[i].dataset = state->dataset;
    probe_block_make(&readers[i].block, expected->view.dtype, &expected->view.box,
                     json_object_get(command, "layout"));
    if (pthread_create(&readers[i].thread, NULL, reader_run, &readers[i])) {
      abort();
    }
  }
  for (int64_t i = 0; readers && i < count; i++) {
    pthread_join(readers[i].thread, NULL);
    unsigned char *got = probe_view_bytes(&readers[i].block.view, &bytes);
    different += readers[i].status != TEGULA_OK || memcmp(got, right, bytes) != 0;
    free(got);
    free(readers[i].block.base);
  }
  free(right);
  free(readers);
  return different;
}

static json_t *do_read(probe_state *state, const json_t *command) {
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  tegula_load_options options;
  tegula_load_options_init(&options);
  options.statistics = &statistics;
  options.missing = missing_of(command);
  tegula_error error;
  tegula_dtype dtype;
  tegula_box box;
  box_read(json_object_get(command, "box"), &box);
  tegula_status status = tegula_dtype_parse(text(command, "dtype"), &dtype, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  probe_block block;
  probe_block_make(&block, dtype, &box, json_object_get(command, "layout"));
  block.view.flags = flag(command, "read_only") ? TEGULA_VIEW_READ_ONLY : 0;
  status = tegula_dataset_read(state->dataset, &block.view, &options, &error);
  json_t *answer =
      status == TEGULA_OK ? moved_answer(&statistics, NULL) : error_answer(state, status, &error);
  if (status == TEGULA_OK) {
    size_t bytes;
    unsigned char *data = probe_view_bytes(&block.view, &bytes);
    file_write(text(command, "path"), data, bytes, "wb");
    free(data);
    json_object_set_new(answer, "stray", json_integer(probe_block_stray(&block)));
    json_object_set_new(answer, "different", json_integer(readers_differ(state, command, &block)));
  }
  free(block.base);
  return answer;
}

static json_t *do_save(probe_state *state, const json_t *command) {
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  probe_progress progress = {.cancel_after = number(command, "cancel_after", -1)};
  probe_wanted wanted;
  tegula_save_options options;
  save_options_read(command, &wanted, &options);
  options.progress = flag(command, "progress") ? progress_note : NULL;
  options.progress_state = &progress;
  options.statistics = &statistics;
  tegula_error error;
  tegula_error *where = flag(command, "null_error") ? NULL : &error;
  tegula_save_options *chosen = flag(command, "defaults") ? NULL : &options;
  if (flag(command, "detached")) { /* the fence tells how it ended */
    options.statistics = NULL;
    tegula_status queued =
        tegula_save_async(state->array, text(command, "path"), chosen, NULL, where);
    wanted_free(&wanted);
    return queued == TEGULA_OK ? json_object() : error_answer(state, queued, where);
  }
  tegula_op *op = NULL;
  tegula_status status =
      flag(command, "async")
          ? op_end(tegula_save_async(state->array, text(command, "path"), chosen, &op, where), &op,
                   where)
          : tegula_save(state->array, text(command, "path"), chosen, where);
  wanted_free(&wanted);
  if (status != TEGULA_OK) {
    return error_answer(state, status, where);
  }
  return moved_answer(&statistics, flag(command, "progress") ? &progress : NULL);
}

static json_t *do_hash(probe_state *state, const json_t *command) {
  char out[TEGULA_HASH_TEXT];
  tegula_error error;
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  tegula_load_options options;
  tegula_load_options_init(&options);
  options.statistics = &statistics;
  int of_array = text(command, "of") && !strcmp(text(command, "of"), "array");
  tegula_status status = of_array ? tegula_array_hash(state->array, out, &error)
                                  : tegula_dataset_hash(state->dataset, out, &options, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  return json_pack("{s:s, s:o}", "hash", out, "statistics", statistics_answer(&statistics));
}

/* Fills a block, changes the bytes named in "poke", and checks it. */
static json_t *do_demo(probe_state *state, const json_t *command) {
  int64_t shape[TEGULA_MAX_DIMS];
  numbers(json_object_get(command, "shape"), shape);
  uint64_t seed = strtoull(text(command, "seed") ? text(command, "seed") : "0", NULL, 10);
  tegula_values values = flag(command, "ramp") ? TEGULA_VALUES_RAMP : TEGULA_VALUES_RANDOM;
  tegula_error error;
  tegula_dtype dtype;
  tegula_box box;
  box_read(json_object_get(command, "box"), &box);
  tegula_status status = tegula_dtype_parse(text(command, "dtype"), &dtype, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  probe_block block;
  probe_block_make(&block, dtype, &box, json_object_get(command, "layout"));
  status = tegula_demo_fill(state->context, &block.view, shape, values, seed, &error);
  if (status == TEGULA_OK) {
    size_t bytes;
    unsigned char *data = probe_view_bytes(&block.view, &bytes);
    file_write(text(command, "path"), data, bytes, "wb");
    free(data);
    const json_t *poke = json_object_get(command, "poke");
    for (size_t i = 0; i < json_array_size(poke); i++) {
      block.base[json_integer_value(json_array_get(poke, i))] ^= 0x10;
    }
    status = tegula_demo_check(state->context, &block.view, shape, values, seed, &error);
  }
  json_t *answer = status == TEGULA_OK
                       ? json_pack("{s:I}", "stray", (json_int_t)probe_block_stray(&block))
                       : error_answer(state, status, &error);
  free(block.base);
  return answer;
}

/* ---- small things ---- */

static json_t *do_dtype(probe_state *state, const json_t *command) {
  tegula_dtype dtype;
  tegula_dtype other;
  tegula_error error;
  tegula_status status = tegula_dtype_parse(text(command, "text"), &dtype, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  json_t *answer =
      json_pack("{s:o, s:o, s:s#, s:s#, s:i, s:i, s:I}", "text", dtype_answer(dtype), "native",
                dtype_answer(tegula_dtype_native(dtype)), "kind", (const char *)&dtype.kind,
                (size_t)1, "order", (const char *)&dtype.order, (size_t)1, "unit", (int)dtype.unit,
                "unit_count", (int)dtype.unit_count, "item_size", (json_int_t)dtype.item_size);
  if (text(command, "other")) {
    status = tegula_dtype_parse(text(command, "other"), &other, &error);
    json_object_set_new(answer, "same",
                        json_integer(status == TEGULA_OK ? tegula_dtype_same(dtype, other) : -1));
  }
  return answer;
}

static json_t *do_statuses(probe_state *state, const json_t *command) {
  (void)state;
  (void)command;
  json_t *list = json_object();
#define STATUS_ROW(name, value, short_text, sentence)                                              \
  json_object_set_new(list, short_text,                                                            \
                      json_pack("[i, s, s]", value, tegula_status_name((tegula_status)value),      \
                                tegula_status_text((tegula_status)value)));
  TEGULA_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
  return json_pack("{s:o, s:s, s:s}", "statuses", list, "unknown",
                   tegula_status_name((tegula_status)7777), "version", tegula_version());
}

static json_t *do_build(probe_state *state, const json_t *command) {
  (void)state;
  (void)command;
  const char *sanitizer = NULL;
#if defined(__SANITIZE_ADDRESS__)
  sanitizer = "address";
#elif defined(__SANITIZE_THREAD__)
  sanitizer = "thread";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  sanitizer = "address";
#elif __has_feature(thread_sanitizer)
  sanitizer = "thread";
#endif
#endif
  return json_pack("{s:s?}", "sanitizer", sanitizer);
}

/* Calls of the library between {"on": true} and {"on": false} may be made to fail; does nothing
 * without faults.c in front. */
void tegula_faults_window(int open) __attribute__((weak));

static json_t *do_faults(probe_state *state, const json_t *command) {
  (void)state;
  if (tegula_faults_window) {
    tegula_faults_window(flag(command, "on"));
  }
  return json_object();
}

/* ---- the loop ---- */

static const struct {
  const char *name;
  probe_fn run;
} commands[] = {{"close", do_close},
                {"context", do_context},
                {"open", do_open},
                {"select", do_select},
                {"files", do_files},
                {"tiling", do_tiling},
                {"array", do_array},
                {"dump", do_dump},
                {"fill", do_fill},
                {"load", do_load},
                {"read", do_read},
                {"save", do_save},
                {"hash", do_hash},
                {"demo", do_demo},
                {"dtype", do_dtype},
                {"statuses", do_statuses},
                {"build", do_build},
                {"sizes", do_sizes},
                {"explain", do_explain},
                {"verify", do_verify},
                {"compare", do_compare},
                {"faults", do_faults},
                {"to_json", do_to_json},
                {"batches", do_batches},
                {"pieces", do_pieces},
                {"reader", do_reader},
                {"readers", do_readers},
                {"fence", do_fence},
                {"crowd", do_crowd},
                {"read_boxes", do_read_boxes},
                {"keep", do_keep},
                {"save_group", do_save_group},
                {"save_begin", do_save_begin},
                {"save_tiles", do_save_tiles},
                {"save_token", do_save_token},
                {"save_commit", do_save_commit},
                {"save_abandon", do_save_abandon}};

static json_t *command_run(probe_state *state, const json_t *command) {
  const char *name = text(command, "do");
  for (size_t i = 0; name && i < sizeof commands / sizeof *commands; i++) {
    if (!strcmp(name, commands[i].name)) {
      return commands[i].run(state, command);
    }
  }
  return misuse(state, "no such command");
}

static json_t *line_run(probe_state *state, const json_t *line) {
  state->failed = 0;
  if (!json_is_array(line)) {
    return command_run(state, line);
  }
  json_t *answers = json_array();
  for (size_t i = 0; i < json_array_size(line) && !state->failed; i++) {
    json_array_append_new(answers, command_run(state, json_array_get(line, i)));
  }
  return answers;
}

/* libblosc2 keeps memory of arrays whose chunks do not decode (3.3.5). */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libblosc2.so"; }

int main(void) {
  probe_state state = {0};
  size_t room = 1 << 16;
  char *line = malloc(room); /* enough for lines that are read while allocations fail */
  while (getline(&line, &room, stdin) > 0) {
    json_t *request = json_loads(line, 0, NULL);
    json_t *answer = line_run(&state, request);
    json_dumpf(answer, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(answer);
    json_decref(request);
  }
  json_decref(do_close(&state, NULL));
  free(line);
  return 0;
}
