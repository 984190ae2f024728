/* What plugins are given: errors, files, and the builder of a manifest.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"
#include "format/plugin/plugin.h"

tegula_status tegula__plugin_wrong(const tegula_plugin_builder *builder, const char *what,
                                   tegula_error *err) {
  const char *path = builder->source->path;
  return tegula__fail(err, TEGULA_INTERNAL, path, -1, "the plugin that describes \"%s\" gave %s",
                      path, what);
}

/* ---- files ---- */

struct tegula_plugin_file {
  tegula_plugin_builder *builder;  /* NULL: the description is done */
  tegula_plugin_file *next, *last; /* of the builder's list */
  tegula__store store;
  void *handle; /* of the store; NULL: it is the file that is described, and open already */
  char *path;
  tegula__stamp stamp;
  bool changed; /* between its description and the handle of its own */
};

static tegula_status no_store(const char *path, tegula_error *err) {
  return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "\"%s\" cannot be opened from here", path);
}

/* Of a file that is left without a handle. */
static tegula_status no_handle(const tegula_plugin_file *file, tegula_error *err) {
  if (!file->changed) return no_store(file->path, err);
  return tegula__fail(err, TEGULA_CHANGED, file->path, -1, "\"%s\" changed while it was described",
                      file->path);
}

static tegula_status open_in_store(const tegula__source *source, tegula_plugin_file *file,
                                   tegula_error *err) {
  if (source->store == NULL) return no_store(file->path, err);
  file->store = *source->store;
  return source->store->open(source->store, file->path, &file->stamp, &file->handle, err);
}

static void free_file(tegula_plugin_file *file) {
  free(file->path);
  free(file);
}

static tegula_status file_open(tegula_plugin_builder *builder, const char *path,
                               tegula_plugin_file **out, tegula_error *err) {
  const tegula__source *source = builder->source;
  if (source->stamp == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "\"%s\" is not opened as a file",
                        source->path);
  tegula_plugin_file *file = calloc(1, sizeof *file);
  if (file == NULL || (file->path = strdup(path)) == NULL) {
    free(file);
    return tegula__out_of_memory(err, (int64_t)sizeof *file);
  }
  if (!builder->late && strcmp(path, source->path) == 0) {
    file->stamp = *source->stamp;
  } else {
    tegula_status status = open_in_store(source, file, err);
    if (status != TEGULA_OK) {
      free_file(file);
      return status;
    }
  }
  file->builder = builder;
  file->next = builder->open;
  if (file->next != NULL) file->next->last = file;
  builder->open = file;
  *out = file;
  return TEGULA_OK;
}

static void file_close(tegula_plugin_file *file) {
  if (file == NULL) return;
  if (file->next != NULL) file->next->last = file->last;
  if (file->last != NULL) file->last->next = file->next;
  if (file->builder != NULL && file->builder->open == file) file->builder->open = file->next;
  if (file->handle != NULL) file->store.close(file->handle);
  free_file(file);
}

static tegula_status file_read(tegula_plugin_file *file, int64_t offset, void *out, size_t size,
                               tegula_error *err) {
  int64_t end;
  if (size > INT64_MAX || !tegula__add(offset, (int64_t)size, &end) || end > file->stamp.size)
    return tegula__fail(err, TEGULA_SHORT_FILE, file->path, offset,
                        "\"%s\" is too short: expected %zu bytes at offset %lld, found %lld",
                        file->path, size, (long long)offset,
                        (long long)tegula__max(0, file->stamp.size - offset));
  if (file->handle != NULL) return file->store.read(file->handle, offset, out, size, err);
  if (file->builder == NULL) return no_handle(file, err);
  return tegula__source_read(file->builder->source, offset, out, size, err);
}

static tegula_status file_check(tegula_plugin_file *file, tegula_error *err) {
  if (file->handle != NULL) return file->store.check(file->handle, err);
  /* whoever describes looks after the described file */
  return file->builder != NULL ? TEGULA_OK : no_handle(file, err);
}

static bool file_locked(const tegula_plugin_file *file) {
  if (file->builder == NULL || file->builder->locked) return false;
  const tegula__source *source = file->builder->source;
  if (file->handle != NULL) return file->store.locked != NULL && file->store.locked(file->handle);
  return source->locked != NULL && source->locked(source);
}

/* The description is done: what the plugin keeps open (for its readers) gets handles of its own.
 * The file that was described must be the same when it is opened again; if it is not, reads
 * fail. */
void tegula__plugin_detach(tegula_plugin_builder *builder) {
  for (tegula_plugin_file *file = builder->open, *next; file != NULL; file = next) {
    tegula__stamp stamp = file->stamp;
    next = file->next;
    if (file->handle == NULL && open_in_store(builder->source, file, NULL) == TEGULA_OK &&
        memcmp(&stamp, &file->stamp, sizeof stamp) != 0) {
      file->store.close(file->handle);
      file->handle = NULL;
      file->changed = true;
    }
    if (file->handle != NULL) file->store.detach(file->handle);
    file->builder = NULL;
    file->next = file->last = NULL;
  }
  builder->open = NULL;
}

static int64_t file_size(const tegula_plugin_file *file) { return file->stamp.size; }
static const char *file_path(const tegula_plugin_file *file) { return file->path; }

/* ---- the array ---- */

static tegula_status keep_text(tegula__manifest *manifest, const char *text, const char **out,
                               tegula_error *err) {
  char *copy = strdup(text);
  FORWARD(tegula__manifest_keep(manifest, copy, err));
  *out = copy;
  return TEGULA_OK;
}

static tegula_status keep_item(tegula__manifest *manifest, const void *value, const void **out,
                               tegula_error *err) {
  *out = NULL;
  if (value == NULL) return TEGULA_OK;
  if (!tegula__dtype_valid(manifest->dtype))
    return tegula__fail(err, TEGULA_INTERNAL, NULL, -1,
                        "the plugin gave a fill value before a dtype");
  void *copy = malloc(manifest->dtype.item_size);
  if (copy != NULL) memcpy(copy, value, manifest->dtype.item_size);
  FORWARD(tegula__manifest_keep(manifest, copy, err));
  *out = copy;
  return TEGULA_OK;
}

static tegula_status set_array(tegula_plugin_builder *builder, const char *name, tegula_dtype dtype,
                               int32_t ndim, const int64_t *shape, tegula_error *err) {
  tegula__manifest *out = builder->out;
  /* what is there has its size and axes */
  if (tegula__dtype_valid(out->dtype)) return tegula__plugin_wrong(builder, "an array twice", err);
  if (ndim < 0 || ndim > TEGULA_MAX_DIMS || !tegula__dtype_valid(dtype))
    return tegula__plugin_wrong(builder, "no valid dtype or number of axes", err);
  out->dtype = tegula_dtype_native(dtype);
  out->ndim = ndim;
  for (int32_t k = 0; k < ndim; k++) out->shape[k] = shape[k];
  return keep_text(out, name, &out->name, err);
}

static tegula_status set_fill(tegula_plugin_builder *builder, const void *value,
                              tegula_error *err) {
  return keep_item(builder->out, value, &builder->out->fill, err);
}

static tegula_status append_file(tegula_plugin_builder *builder, const char *path,
                                 const tegula__stamp *stamp, tegula_error *err) {
  tegula__manifest *out = builder->out;
  char *copy = strdup(path);
  if (copy == NULL || !tegula__vector_reserve((void **)&out->files, &builder->file_capacity,
                                              out->file_count + 1, sizeof *out->files)) {
    free(copy);
    return tegula__out_of_memory(err, (int64_t)strlen(path));
  }
  out->files[out->file_count++] = (tegula__file){.path = copy, .stamp = *stamp};
  return TEGULA_OK;
}

static tegula_status add_file(tegula_plugin_builder *builder, const tegula_plugin_file *file,
                              int64_t *number, tegula_error *err) {
  tegula__manifest *out = builder->out;
  /* mostly one of the last; stamps are compared faster than names */
  for (int64_t i = out->file_count - 1; i >= 0; i--) {
    if (out->files[i].stamp.inode != file->stamp.inode ||
        strcmp(out->files[i].path, file->path) != 0)
      continue;
    *number = i;
    return TEGULA_OK;
  }
  *number = out->file_count;
  return append_file(builder, file->path, &file->stamp, err);
}

/* ---- parts ---- */

static const int64_t zeros[TEGULA_MAX_DIMS];

/* Parts and grids of files that are not there would be another file's after joining. */
static tegula_status check_place(const tegula_plugin_builder *builder, int64_t file,
                                 tegula_error *err) {
  if (!tegula__dtype_valid(builder->out->dtype))
    return tegula__plugin_wrong(builder, "a part before its array", err);
  return file < 0 || file >= builder->out->file_count
             ? tegula__plugin_wrong(builder, "the number of a file that is not there", err)
             : TEGULA_OK;
}

static tegula_status add_dense(tegula_plugin_builder *builder, int64_t file, int64_t offset,
                               const int64_t *lo, const int64_t *hi, const int64_t *byte_stride,
                               char order, tegula_error *err) {
  FORWARD(check_place(builder, file, err));
  return tegula__manifest_add(builder->out, file, offset, lo, hi, byte_stride, (uint8_t)order, err);
}

static uint16_t codec_by_name(const char *name) {
  for (uint16_t id = 1; id < TEGULA__CODEC_COUNT; id++)
    if (strcmp(tegula__codec_name(id), name) == 0) return id;
  return TEGULA__CODEC_NONE;
}

static tegula_status take_filters(const tegula_plugin_builder *builder,
                                  const tegula_plugin_filter *filters, int32_t count,
                                  tegula__grid *grid, tegula_error *err) {
  if (count < 0 || count > TEGULA__CHAIN_MAX)
    return tegula__fail(err, TEGULA_UNSUPPORTED, builder->source->path, -1,
                        "a chain of %d codecs is longer than %d", count, TEGULA__CHAIN_MAX);
  grid->filters = calloc((size_t)tegula__max(1, count), sizeof *grid->filters);
  if (grid->filters == NULL)
    return tegula__out_of_memory(err, count * (int64_t)sizeof *grid->filters);
  grid->filter_count = count;
  for (int32_t i = 0; i < count; i++) {
    tegula__filter *filter = &grid->filters[i];
    filter->codec = codec_by_name(filters[i].codec);
    if (filter->codec == TEGULA__CODEC_NONE)
      return tegula__fail(err, TEGULA_UNSUPPORTED, builder->source->path, -1,
                          "the codec \"%.60s\" of \"%s\" is not known", filters[i].codec,
                          builder->source->path);
    if (filters[i].param_count < 0 || filters[i].param_count > TEGULA__FILTER_PARAMS)
      return tegula__plugin_wrong(builder, "a codec with more parameters than there can be", err);
    filter->param_count = (uint16_t)filters[i].param_count;
    memcpy(filter->params, filters[i].params, sizeof filter->params);
  }
  return TEGULA_OK;
}

static tegula_status add_grid(tegula_plugin_builder *builder, int64_t file, int64_t chunk_bytes,
                              char order, const tegula_plugin_filter *filters, int32_t filter_count,
                              const void *fill, int64_t slots, int64_t count, uint64_t *coordinates,
                              tegula_plugin_chunk *chunks, int64_t *number, tegula_error *err) {
  _Static_assert(sizeof(tegula_plugin_chunk) == sizeof(tegula__chunk) &&
                     offsetof(tegula_plugin_chunk, mask) == offsetof(tegula__chunk, mask),
                 "chunks are handed over as they are");
  FORWARD(check_place(builder, file, err));
  if (chunk_bytes <= 0 || slots < 0 || count < 0 || count > slots ||
      (coordinates == NULL && count != slots) || (count > 0 && chunks == NULL))
    return tegula__plugin_wrong(builder, "a table of chunks that contradicts itself", err);
  tegula__grid *grid = calloc(1, sizeof *grid);
  if (grid == NULL) return tegula__out_of_memory(err, sizeof *grid);
  *grid = (tegula__grid){.file = file,
                         .chunk_bytes = chunk_bytes,
                         .order = (uint8_t)order,
                         .slots = slots,
                         .count = count};
  grid->chunks = (tegula__chunk *)(void *)chunks;
  tegula_status status = take_filters(builder, filters, filter_count, grid, err);
  if (status == TEGULA_OK) status = tegula__format_check_grid(grid, builder->source->path, err);
  if (status == TEGULA_OK) status = keep_item(builder->out, fill, &grid->fill, err);
  if (status == TEGULA_OK) status = tegula__manifest_add_grid(builder->out, grid, err);
  if (status != TEGULA_OK) {
    grid->chunks = NULL; /* still the caller's */
    tegula__grid_free(grid);
    return status;
  }
  grid->coordinates = coordinates;
  *number = builder->out->grid_count - 1;
  return TEGULA_OK;
}

static tegula_status mark_slices(tegula_plugin_builder *builder, int64_t grid, tegula_error *err) {
  if (grid < 0 || grid >= builder->out->grid_count)
    return tegula__plugin_wrong(builder, "the number of a table of chunks that is not there", err);
  builder->out->grids[grid]->slices = true;
  return TEGULA_OK;
}

static tegula_status add_chunked(tegula_plugin_builder *builder, int64_t grid,
                                 const tegula_plugin_chunked *part, tegula_error *err) {
  if (grid < 0 || grid >= builder->out->grid_count)
    return tegula__plugin_wrong(builder, "the number of a table of chunks that is not there", err);
  const tegula__grid *stored = builder->out->grids[grid];
  tegula__part copy = {.kind = TEGULA__PART_CHUNKED,
                       .order = stored->order,
                       .file = TEGULA__NO_FILE,
                       .offset = part->byte_base,
                       .lo = part->lo,
                       .hi = part->hi,
                       .strides = part->byte_stride,
                       .start = part->start,
                       .chunk = part->chunk,
                       .slot_strides = part->slot_stride,
                       .slot_base = part->slot_base,
                       .grid = stored};
  return tegula__manifest_add_part(builder->out, &copy, err);
}

tegula_status tegula__plugin_add_without_file(tegula_plugin_builder *builder, tegula__part *part,
                                              tegula_error *err) {
  int64_t shape[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS], bytes;
  if (!tegula__dtype_valid(builder->out->dtype))
    return tegula__plugin_wrong(builder, "a part before its array", err);
  for (int32_t k = 0; k < builder->out->ndim; k++) {
    if (part->lo[k] < 0 || part->hi[k] < part->lo[k])
      return tegula__plugin_wrong(builder, "a part that ends before it begins", err);
    shape[k] = part->hi[k] - part->lo[k];
  }
  if (!tegula__shape_bytes(shape, builder->out->ndim, builder->out->dtype.item_size, &bytes))
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, builder->source->path, -1,
                        "\"%s\": an array of more than 2^63 bytes", builder->source->path);
  tegula__dense_strides(shape, builder->out->ndim, builder->out->dtype.item_size, 'C', strides);
  part->strides = strides;
  part->order = builder->out->dtype.order;
  part->file = TEGULA__NO_FILE;
  return tegula__manifest_add_part(builder->out, part, err);
}

static tegula_status add_fill(tegula_plugin_builder *builder, const int64_t *lo, const int64_t *hi,
                              const void *fill, tegula_error *err) {
  tegula__part part = {.kind = TEGULA__PART_FILL, .lo = lo, .hi = hi};
  FORWARD(keep_item(builder->out, fill, &part.fill, err));
  return tegula__plugin_add_without_file(builder, &part, err);
}

static tegula_status add_lost(tegula_plugin_builder *builder, const int64_t *lo, const int64_t *hi,
                              const void *fill, tegula_status status, int32_t os_errno,
                              const char *text, const char *path, tegula_error *err) {
  tegula__part part = {.kind = TEGULA__PART_LOST, .lo = lo, .hi = hi};
  if (status == TEGULA_OK)
    return tegula__plugin_wrong(builder, "a lost part without an error", err);
  FORWARD(keep_item(builder->out, fill, &part.fill, err));
  char first[TEGULA__SHAPE_TEXT], end[TEGULA__SHAPE_TEXT];
  tegula__shape_format(lo, builder->out->ndim, first);
  tegula__shape_format(hi, builder->out->ndim, end);
  tegula_error *lost = malloc(sizeof *lost);
  if (lost != NULL)
    tegula__hint(
        lost, tegula__fail(lost, status, path, -1, "lost from %s up to %s: %s", first, end, text),
        "missing=fill puts the fill value in its place");
  if (lost != NULL) lost->os_errno = os_errno;
  FORWARD(tegula__manifest_keep(builder->out, lost, err));
  part.lost = lost;
  return tegula__plugin_add_without_file(builder, &part, err);
}

static tegula_status add_reader(tegula_plugin_builder *builder, const int64_t *lo,
                                const int64_t *hi, const int64_t *chunk, int64_t cost_bytes,
                                const char *why, tegula_reader_fn read, void *state,
                                tegula_release_fn release, tegula_error *err) {
  tegula__reader *reader = calloc(1, sizeof *reader);
  bool good = reader != NULL;
  if (good) {
    *reader =
        (tegula__reader){.read = read, .state = state, .release = release, .cost = cost_bytes};
    reader->name = strdup(builder->out->format);
    reader->why = tegula__strdup(why);
    good = reader->name != NULL && (why == NULL || reader->why != NULL);
  }
  tegula_status status = good ? tegula__manifest_add_reader(builder->out, reader, err)
                              : tegula__out_of_memory(err, sizeof *reader);
  if (status != TEGULA_OK) {
    if (release != NULL) release(state);
    if (reader != NULL) {
      free(reader->name);
      free(reader->why);
    }
    free(reader);
    return status;
  }
  tegula__part part = {.kind = TEGULA__PART_READ,
                       .lo = lo,
                       .hi = hi,
                       .start = zeros,
                       .chunk = chunk,
                       .reader = reader};
  return tegula__plugin_add_without_file(builder, &part, err);
}

static void *allocate(size_t size) { return malloc(size > 0 ? size : 1); }
static void release_memory(void *memory) { free(memory); }

const tegula_plugin_host tegula__plugin_host = {.struct_size = sizeof(tegula_plugin_host),
                                                .version = TEGULA_PLUGIN_VERSION,
                                                .fail = tegula__fail,
                                                .hint = tegula__hint,
                                                .file_open = file_open,
                                                .file_close = file_close,
                                                .file_read = file_read,
                                                .file_check = file_check,
                                                .file_locked = file_locked,
                                                .file_size = file_size,
                                                .file_path = file_path,
                                                .set_array = set_array,
                                                .set_fill = set_fill,
                                                .add_file = add_file,
                                                .add_dense = add_dense,
                                                .add_grid = add_grid,
                                                .add_chunked = add_chunked,
                                                .add_fill = add_fill,
                                                .add_lost = add_lost,
                                                .add_reader = add_reader,
                                                .allocate = allocate,
                                                .release = release_memory,
                                                .dtype_parse = tegula_dtype_parse,
                                                .dtype_format = tegula_dtype_format,
                                                .sink_size = tegula__plugin_sink_size,
                                                .sink_path = tegula__plugin_sink_path,
                                                .sink_read = tegula__plugin_sink_read,
                                                .sink_write = tegula__plugin_sink_write,
                                                .sink_resize = tegula__plugin_sink_resize,
                                                .new_late = tegula__plugin_new_late,
                                                .add_late = tegula__plugin_add_late,
                                                .mark_slices = mark_slices,
                                                .new_late_of = tegula__plugin_new_late_of};

/* ---- calling a plugin ---- */

/* Only the file that is described: its caller has it in a table. */
static void drop_own_file(tegula__manifest *out) {
  if (out->file_count != 1) return;
  free(out->files[0].path);
  free(out->files);
  out->files = NULL;
  out->file_count = 0;
}

static tegula_status start_builder(tegula_plugin_builder *builder, const tegula__source *source,
                                   const tegula__describe_options *options, tegula__manifest *out,
                                   tegula_error *err) {
  *builder = (tegula_plugin_builder){.source = source, .out = out, .locked = options->locked};
  if (source->stamp == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1, "\"%s\" is not opened as a file",
                        source->path);
  return append_file(builder, source->path, source->stamp, err);
}

tegula_status tegula__plugin_describe(const char *name, const tegula__source *source,
                                      const tegula__describe_options *options,
                                      tegula__manifest *out, tegula_error *err) {
  const tegula_plugin *plugin = NULL;
  void *state = NULL;
  tegula_plugin_builder builder;
  FORWARD(tegula__plugins_open(options->plugins, name, &plugin, &state, err));
  FORWARD(start_builder(&builder, source, options, out, err));
  tegula_status status = plugin->describe(state, &builder, source->path, options->dataset, err);
  tegula__plugin_detach(&builder);
  if (status == TEGULA_OK) drop_own_file(out);
  return status;
}

/* Files that one description has opened may be read for another: all end together. */
tegula_status tegula__plugin_describe_many(const char *name, const tegula__source *source,
                                           const tegula__describe_options *options,
                                           const char *const *datasets, int64_t count,
                                           tegula__manifest *out, tegula_error *err) {
  const tegula_plugin *plugin = NULL;
  void *state = NULL;
  FORWARD(tegula__plugins_open(options->plugins, name, &plugin, &state, err));
  tegula_plugin_builder *builders = tegula__realloc_array(NULL, count, sizeof *builders);
  tegula_plugin_builder **table = tegula__realloc_array(NULL, count, sizeof *table);
  tegula_status status = builders != NULL && table != NULL
                             ? TEGULA_OK
                             : tegula__out_of_memory(err, count * (int64_t)sizeof *builders);
  for (int64_t i = 0; status == TEGULA_OK && i < count; i++) {
    table[i] = &builders[i];
    status = start_builder(table[i], source, options, &out[i], err);
  }
  if (status == TEGULA_OK) {
    status = plugin->describe_many(state, table, source->path, datasets, count, err);
    for (int64_t i = 0; i < count; i++) tegula__plugin_detach(table[i]);
  }
  for (int64_t i = 0; status == TEGULA_OK && i < count; i++) drop_own_file(&out[i]);
  free(builders);
  free(table);
  return status;
}

/* A plugin and a builder for what makes no manifest. */
typedef struct visit {
  const tegula_plugin *plugin;
  void *opened;
  tegula__manifest none;
  tegula_plugin_builder builder;
} visit;

static tegula_status start_visit(const char *name, const tegula__source *source,
                                 const tegula__describe_options *options, visit *v,
                                 tegula_error *err) {
  FORWARD(tegula__plugins_open(options->plugins, name, &v->plugin, &v->opened, err));
  tegula__manifest_init(&v->none);
  v->builder =
      (tegula_plugin_builder){.source = source, .out = &v->none, .locked = options->locked};
  return TEGULA_OK;
}

static tegula_status end_visit(visit *v, tegula_status status) {
  tegula__plugin_detach(&v->builder);
  tegula__manifest_free(&v->none);
  return status;
}

tegula_status tegula__plugin_list(const char *name, const tegula__source *source,
                                  const tegula__describe_options *options,
                                  tegula_plugin_list_fn each, void *state, tegula_error *err) {
  visit v;
  FORWARD(start_visit(name, source, options, &v, err));
  if (v.plugin->list == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                        "files of the format %s cannot be listed", name);
  return end_visit(&v, v.plugin->list(v.opened, &v.builder, source->path, each, state, err));
}

tegula_status tegula__plugin_attributes(const char *name, const tegula__source *source,
                                        const tegula__describe_options *options,
                                        tegula_plugin_attribute_fn each, void *state,
                                        tegula_error *err) {
  visit v;
  FORWARD(start_visit(name, source, options, &v, err));
  bool known =
      v.plugin->struct_size >= offsetof(tegula_plugin, attributes) + sizeof v.plugin->attributes;
  if (!known || v.plugin->attributes == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                        "files of the format %s have no attributes", name);
  return end_visit(&v, v.plugin->attributes(v.opened, &v.builder, source->path, options->dataset,
                                            each, state, err));
}

tegula_status tegula__plugin_names(const char *name, const tegula__source *source,
                                   const tegula__describe_options *options, const char *group,
                                   tegula_plugin_name_fn each, void *state, tegula_error *err) {
  visit v;
  FORWARD(start_visit(name, source, options, &v, err));
  bool known = v.plugin->struct_size >=
               offsetof(tegula_plugin, describe_many) + sizeof v.plugin->describe_many;
  if (!known || v.plugin->names == NULL || v.plugin->describe_many == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                        "files of the format %s know no patterns of datasets", name);
  return end_visit(&v,
                   v.plugin->names(v.opened, &v.builder, source->path, group, each, state, err));
}
