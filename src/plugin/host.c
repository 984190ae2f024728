/* What plugins are given: errors, files, and the builder of a manifest.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"
#include "plugin/plugin_priv.h"

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

static tegula_status set_record(tegula_plugin_builder *builder, const char *descr,
                                const char *refused, tegula_error *err) {
  tegula__manifest *out = builder->out;
  if (out->dtype.kind != 'V' || out->descr != NULL)
    return tegula__plugin_wrong(builder, "the description of records that it has not", err);
  out->descr = tegula__strdup(descr);
  out->refused = tegula__strdup(refused);
  bool good = out->descr != NULL && (refused == NULL || out->refused != NULL);
  return good ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(descr));
}

static tegula__text_place place_of(const tegula_plugin_text *text) {
  return (tegula__text_place){.offset = text->offset,
                              .count = text->count,
                              .stride = text->stride,
                              .size = text->size,
                              .padding = (uint8_t)text->padding};
}

/* Sources of a virtual dataset mostly follow others of their kind. */
static bool same_texts(const tegula__texts *now, const tegula_plugin_text *texts, int64_t count) {
  if (now == NULL || now->count != count) return now == NULL && count == 0;
  for (int64_t i = 0; i < count; i++) {
    tegula__text_place place = place_of(&texts[i]);
    const tegula__text_place *other = &now->places[i];
    if (place.offset != other->offset || place.count != other->count ||
        place.stride != other->stride || place.size != other->size ||
        place.padding != other->padding)
      return false;
  }
  return true;
}

static tegula_status set_texts(tegula_plugin_builder *builder, const tegula_plugin_text *texts,
                               int64_t count, tegula_error *err) {
  if (count < 0 || count > TEGULA__MOST_TEXTS)
    return tegula__plugin_wrong(builder, "too many texts", err);
  if (same_texts(builder->out->texts, texts, count)) return TEGULA_OK;
  builder->out->texts = NULL;
  if (count == 0) return TEGULA_OK;
  tegula__texts *out = tegula__texts_new(count);
  FORWARD(tegula__manifest_keep(builder->out, out, err));
  for (int64_t i = 0; i < count; i++) out->places[i] = place_of(&texts[i]);
  builder->out->texts = out;
  return TEGULA_OK;
}

tegula_status tegula__plugin_append_file(tegula_plugin_builder *builder, const char *path,
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
  return tegula__plugin_append_file(builder, file->path, &file->stamp, err);
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
                                                .file_open = tegula__plugin_file_open,
                                                .file_close = tegula__plugin_file_close,
                                                .file_read = tegula__plugin_file_read,
                                                .file_check = tegula__plugin_file_check,
                                                .file_locked = tegula__plugin_file_locked,
                                                .file_size = tegula__plugin_file_size,
                                                .file_path = tegula__plugin_file_path,
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
                                                .new_late_of = tegula__plugin_new_late_of,
                                                .set_record = set_record,
                                                .set_texts = set_texts};
