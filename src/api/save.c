/* Saving: the same planner and engine, turned round. A format lays out each file, publish makes them visible at the end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "format/format.h"
#include "publish/publish.h"

#define LARGEST_HEADER ((size_t)64 << 20)

void tegula_save_options_init(tegula_save_options *options) { *options = (tegula_save_options){.struct_size = sizeof *options}; }

/* A save on its way. */
typedef struct saving {
  const tegula_array *array;
  tegula_save_options options;
  const tegula__format *format;
  tegula_dtype stored;
  int64_t file_count;
  tegula__manifest manifest; /* of the files that are written */
  tegula__buffer *headers;   /* one per file */
  tegula__publish publish;
  tegula__file_set *files;
  tegula__tally tally;
  tegula__first_error *first;
} saving;

/* Behind the last dot of the file's name, "" for none: a dot in front hides a file. */
static const char *suffix_of(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path, *dot = strrchr(name, '.');
  return dot == NULL || dot == name ? "" : dot;
}

/* By name, or by suffix: one that is not known is refused, because what it means may become known. The suffix of a folder says nothing. */
static tegula_status choose_format(saving *s, const char *path, tegula_error *err) {
  const char *suffix = s->options.shards > 0 ? "" : suffix_of(path);
  s->format = s->options.format != NULL ? tegula__format_by_name(s->options.format)
              : *suffix != '\0'         ? tegula__format_by_suffix(path)
                                        : &tegula__format_npy;
  if (s->format != NULL && s->format->lay_out != NULL) return TEGULA_OK;
  tegula_status status =
      s->options.format != NULL
          ? tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "cannot save format \"%.60s\"", s->options.format)
          : tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "cannot tell the format of \"%.500s\" from its suffix \"%.60s\"", path, suffix);
  return tegula__hint(err, status, "say which format: npy or raw");
}

static tegula_status check_options(saving *s, tegula_error *err) {
  const tegula_save_options *o = &s->options;
  const tegula_tiling *tiling = s->array->memory.tiling;
  CHECK_ARGUMENT(o->order == 0 || o->order == 'C' || o->order == 'F', "order must be 'C' or 'F'");
  CHECK_ARGUMENT(o->byte_order == 0 || o->byte_order == '<' || o->byte_order == '>', "byte_order must be '<' or '>'");
  CHECK_ARGUMENT(o->shards >= 0, "the number of shards must not be negative");
  CHECK_ARGUMENT(o->reserved == 0, "a reserved field is not zero");
  CHECK_ARGUMENT(o->shards == 0 || tiling->ndim > 0, "a scalar has no rows and cannot be cut into shards");
  s->stored = s->array->memory.dtype;
  if (s->stored.order != '|' && o->byte_order != 0) s->stored.order = (uint8_t)o->byte_order;
  s->file_count = o->shards == 0 ? 1 : tegula__min(o->shards, tegula__max(1, tiling->shape[0]));
  return TEGULA_OK;
}

/* Rows of file i: as even as they can be, all files have some. */
static int64_t first_row(const saving *s, int64_t i) {
  const tegula_tiling *tiling = s->array->memory.tiling;
  return tiling->ndim == 0 ? 0 : (int64_t)((__int128)tiling->shape[0] * i / s->file_count);
}

/* "shard_0012.npy": as many digits as the last number needs, at least 4. */
static char *file_path(const saving *s, int64_t i) {
  if (s->options.shards == 0) return strdup(s->publish.temporary);
  int width = snprintf(NULL, 0, "%" PRId64, s->file_count - 1);
  return tegula__strprintf("%s/shard_%0*" PRId64 "%s", s->publish.temporary, width < 4 ? 4 : width, i, s->format->suffixes[0]);
}

/* Header, place and size of one file. */
static tegula_status lay_out_file(saving *s, int64_t i, tegula_error *err) {
  const tegula_tiling *tiling = s->array->memory.tiling;
  int64_t lo[TEGULA_MAX_DIMS] = {0}, hi[TEGULA_MAX_DIMS], shape[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS], bytes;
  memcpy(hi, tiling->shape, sizeof hi);
  memcpy(shape, tiling->shape, sizeof shape);
  if (tiling->ndim > 0) {
    lo[0] = first_row(s, i);
    hi[0] = first_row(s, i + 1);
    shape[0] = hi[0] - lo[0];
  }
  tegula__layout_request request = {.dtype = s->stored,
                                    .descr = s->options.descr,
                                    .ndim = tiling->ndim,
                                    .shape = shape,
                                    .order = s->options.order != 0 ? s->options.order : 'C'};
  tegula__buffer_init(&s->headers[i], LARGEST_HEADER);
  FORWARD(s->format->lay_out(&request, &s->headers[i], strides, err));
  tegula__file *file = &s->manifest.files[i];
  file->path = file_path(s, i);
  if (file->path == NULL) return tegula__out_of_memory(err, 64);
  s->manifest.file_count = i + 1;
  if (!tegula__shape_bytes(shape, tiling->ndim, s->stored.item_size, &bytes) ||
      !tegula__add(bytes, (int64_t)s->headers[i].size, &file->stamp.size))
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1, "the file would be larger than 2^63 bytes");
  return tegula__manifest_add(&s->manifest, i, (int64_t)s->headers[i].size, lo, hi, strides, s->stored.order, err);
}

static tegula_status lay_out(saving *s, tegula_error *err) {
  const tegula_tiling *tiling = s->array->memory.tiling;
  s->manifest.dtype = s->array->memory.dtype;
  s->manifest.ndim = tiling->ndim;
  memcpy(s->manifest.shape, tiling->shape, sizeof tiling->shape);
  s->manifest.files = calloc((size_t)s->file_count, sizeof *s->manifest.files);
  s->headers = calloc((size_t)s->file_count, sizeof *s->headers);
  s->first = tegula__first_error_create();
  if (s->manifest.files == NULL || s->headers == NULL || s->first == NULL) return tegula__out_of_memory(err, s->file_count * 64);
  for (int64_t i = 0; i < s->file_count; i++) FORWARD(lay_out_file(s, i, err));
  return tegula__manifest_finish(&s->manifest, err);
}

static void make_file(void *state, int32_t worker, int64_t i) {
  saving *s = state;
  tegula_error error;
  (void)worker;
  if (!tegula__first_error_wanted(s->first, i)) return;
  const tegula__file *file = &s->manifest.files[i];
  tegula_status status = tegula__io_create(file->path, file->stamp.size, s->headers[i].data, s->headers[i].size, s->options.durable != 0,
                                           s->publish.mode != 0 && !s->publish.folder ? s->publish.mode | 0200 : 0666, &s->tally.counts, &error);
  if (status != TEGULA_OK) tegula__first_error_set(s->first, i, status, &error);
}

static tegula_status write_files(saving *s, tegula_error *err) {
  tegula_context *context = s->array->context;
  tegula__pool_run_waiting(context->engine.pool, s->file_count, make_file, s);
  FORWARD(tegula__first_error_get(s->first, err));
  FORWARD(tegula__file_set_create(context->handles, s->manifest.files, s->file_count, true, &s->files, err));
  tegula__move move = {.manifest = &s->manifest,
                       .files = s->files,
                       .tiles = s->array->memory.tiles,
                       .tile_count = s->array->memory.count,
                       .writing = true,
                       .durable = s->options.durable != 0,
                       .progress = s->options.progress,
                       .progress_state = s->options.progress_state,
                       .statistics = &s->tally.statistics,
                       .counts = &s->tally.counts};
  return tegula__engine_run(&context->engine, &move, err);
}

/* Errors of a save speak of the target, not of temporary names. */
static void name_target(const saving *s, const char *path, tegula_status status, tegula_error *err) {
  if (err == NULL || status == TEGULA_OK || s->publish.temporary == NULL) return;
  if (strncmp(err->path, s->publish.temporary, strlen(s->publish.temporary)) != 0) return;
  if (err->os_errno != 0) /* a call failed: say which error, the call's own words hold the temporary name */
    tegula__fail_errno(err, err->os_errno, path, err->offset, "could not save \"%s\"", path);
  else
    tegula__fail(err, status, path, err->offset, "could not save \"%s\": %s", path, tegula_status_text(status));
}

static void end(saving *s) {
  tegula__file_set_destroy(s->files);
  for (int64_t i = 0; s->headers != NULL && i < s->file_count; i++) tegula__buffer_free(&s->headers[i]);
  free(s->headers);
  tegula__first_error_destroy(s->first);
  tegula__manifest_free(&s->manifest);
}

static tegula_status save(saving *s, const char *path, tegula_error *err) {
  tegula_status status;
  bool begun = false;
  FORWARD_WITH(status, choose_format(s, path, err));
  FORWARD_WITH(status, check_options(s, err));
  FORWARD_WITH(status, tegula__publish_begin(path, s->options.shards > 0, s->options.overwrite != 0, &s->publish, err));
  begun = true;
  FORWARD_WITH(status, lay_out(s, err));
  FORWARD_WITH(status, write_files(s, err));
done:
  end(s);
  status = s->array->context->comm->agree(s->array->context->comm, status, err);
  name_target(s, path, status, err);
  if (begun && status == TEGULA_OK) return tegula__publish_commit(&s->publish, s->options.durable != 0, err);
  if (begun) tegula__publish_abandon(&s->publish);
  return status;
}

tegula_status tegula__save(const tegula_array *array, const char *path, const tegula_save_options *options, tegula_error *err) {
  saving s = {.array = array, .options = *options};
  tegula__manifest_init(&s.manifest);
  FORWARD(tegula__tally_start(&s.tally, options->statistics, err));
  tegula_status status = save(&s, path, err);
  tegula__tally_end(&s.tally, options->statistics, offsetof(tegula_statistics, seconds_move));
  return status;
}

tegula_status tegula_save(const tegula_array *array, const char *path, const tegula_save_options *options, tegula_error *err) {
  CHECK_ARGUMENT(array != NULL && path != NULL && path[0] != '\0', "the array is NULL or the path is empty");
  tegula_save_options local;
  tegula__places places;
  tegula_op turn;
  tegula_save_options_init(&local);
  FORWARD(tegula__options_copy(&local, sizeof local, FIRST_SAVE_OPTIONS, options, "tegula_save_options", err));
  FORWARD(tegula__places_of(&path, 1, &places, err));
  tegula__queue_enter(array->context->queue, &turn, &(tegula__touch){.array = array, .places = &places, .places_change = true});
  tegula_status status = tegula__save(array, path, &local, err);
  tegula__queue_leave(&turn);
  tegula__places_free(&places);
  return status;
}
