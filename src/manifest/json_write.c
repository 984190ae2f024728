/* A manifest as JSON text.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The schema is docs/manifest.md. The text is written in one go without a tree of values: a
 * manifest of a million files needs the memory of its text. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "manifest/manifest_priv.h"

static tegula_status too_long(const tegula__buffer *buffer, tegula_error *err) {
  if (buffer->size <= buffer->maximum / 2) return tegula__out_of_memory(err, (int64_t)buffer->size);
  return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1,
                      "the manifest is longer than %zu bytes of JSON", buffer->maximum);
}

static bool write_member(tegula__buffer *buffer, const char *key, const char *text) {
  return tegula__buffer_printf(buffer, ",\n \"%s\": ", key) &&
         tegula__buffer_json_text(buffer, text);
}

/* One item, or null: its bytes in little-endian order, so that any machine can read them. */
static bool write_item(tegula__buffer *buffer, const char *key, const tegula__manifest *manifest,
                       const void *item) {
  if (item == NULL) return tegula__buffer_printf(buffer, "\"%s\": null", key);
  uint32_t size = manifest->dtype.item_size,
           group = TEGULA__NATIVE_ORDER == '<' ? 1 : tegula__dtype_swap_size(manifest->dtype);
  bool good = tegula__buffer_printf(buffer, "\"%s\": \"", key);
  for (uint32_t i = 0; good && i < size; i++)
    good = tegula__buffer_printf(
        buffer, "%02x",
        ((const unsigned char *)item)[i / group * group + (group - 1 - i % group) * (group > 1)]);
  return good && tegula__buffer_append(buffer, "\"", 1);
}

static bool write_head(tegula__buffer *buffer, const tegula__manifest *manifest) {
  char dtype[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(manifest->dtype, dtype);
  return tegula__buffer_printf(buffer, "{\"" TEGULA__MANIFEST_KEY "\": 1") &&
         write_member(buffer, "format", manifest->format) &&
         write_member(buffer, "name", manifest->name) && write_member(buffer, "dtype", dtype) &&
         (manifest->descr == NULL || write_member(buffer, "descr", manifest->descr)) &&
         tegula__buffer_printf(buffer, ",\n \"shape\": ") &&
         tegula__json_write_numbers(buffer, manifest->shape, manifest->ndim) &&
         (manifest->fill == NULL || (tegula__buffer_printf(buffer, ",\n ") &&
                                     write_item(buffer, "fill", manifest, manifest->fill))) &&
         (!manifest->durable || tegula__buffer_printf(buffer, ",\n \"durable\": 1"));
}

/* A name that is no UTF-8 cannot be a text in JSON: its bytes are written as hexadecimal digits. */
bool tegula__json_write_name(tegula__buffer *buffer, const char *name) {
  if (tegula__json_is_text(name))
    return tegula__buffer_printf(buffer, "\"path\": ") && tegula__buffer_json_text(buffer, name);
  bool good = tegula__buffer_printf(buffer, "\"path_hex\": \"");
  for (; good && *name != '\0'; name++)
    good = tegula__buffer_printf(buffer, "%02x", (unsigned char)*name);
  return good && tegula__buffer_append(buffer, "\"", 1);
}

static bool write_records(tegula__buffer *buffer, const tegula__frame *frame) {
  return frame->record == 0 ||
         tegula__buffer_printf(buffer,
                               ", \"records\": {\"first\": %lld, \"bytes\": %lld, \"most\": %lld, "
                               "\"marker\": %d, \"order\": \"%c\"}",
                               (long long)frame->first, (long long)frame->record,
                               (long long)frame->most, frame->marker, frame->order);
}

static tegula_status write_file(tegula__buffer *buffer, const tegula__file *file,
                                tegula__namer *namer, bool first, tegula_error *err) {
  char *name = NULL;
  FORWARD(tegula__namer_name(namer, file->path, &name, err));
  bool good = tegula__buffer_printf(buffer, first ? "\n  {" : ",\n  {") &&
              tegula__json_write_name(buffer, name) &&
              tegula__buffer_printf(buffer, ", \"size\": %lld, \"mtime_ns\": %lld",
                                    (long long)file->stamp.size, (long long)file->stamp.mtime_ns) &&
              write_records(buffer, &file->frame) && tegula__buffer_append(buffer, "}", 1);
  free(name);
  return good ? TEGULA_OK : too_long(buffer, err);
}

/* ---- grids ---- */

static bool write_codecs(tegula__buffer *buffer, const tegula__grid *grid,
                         const char *const *codecs) {
  bool good = tegula__buffer_printf(buffer, ", \"codecs\": [");
  for (int32_t i = 0; good && i < grid->filter_count; i++) {
    const tegula__filter *filter = &grid->filters[i];
    good = tegula__buffer_printf(buffer, "%s[\"%s\"", i > 0 ? ", " : "", codecs[filter->codec]);
    for (uint16_t k = 0; good && k < filter->param_count; k++)
      good = tegula__buffer_printf(buffer, ", %u", filter->params[k]);
    good = good && tegula__buffer_append(buffer, "]", 1);
  }
  return good && tegula__buffer_append(buffer, "]", 1);
}

typedef enum column { OFFSETS, LENGTHS, MASKS, COORDINATES } column;

static uint64_t cell(const tegula__grid *grid, column which, int64_t i) {
  switch (which) {
    /* an absent chunk is nowhere */
    case OFFSETS:
      return grid->chunks[i].length > 0 ? grid->chunks[i].offset : 0;
    case LENGTHS:
      return grid->chunks[i].length;
    case MASKS:
      return grid->chunks[i].length > 0 ? grid->chunks[i].mask : 0;
    case COORDINATES:
      return grid->coordinates[i];
  }
  return 0;
}

static bool write_column(tegula__buffer *buffer, const char *key, const tegula__grid *grid,
                         column which) {
  bool good = tegula__buffer_printf(buffer, ",\n   \"%s\": [", key);
  for (int64_t i = 0; good && i < grid->count; i++)
    good = tegula__buffer_printf(buffer, i > 0 ? ", %llu" : "%llu",
                                 (unsigned long long)cell(grid, which, i));
  return good && tegula__buffer_append(buffer, "]", 1);
}

static bool any_masked(const tegula__grid *grid) {
  for (int64_t i = 0; i < grid->count; i++)
    if (cell(grid, MASKS, i) != 0) return true;
  return false;
}

static bool write_grid(tegula__buffer *buffer, const tegula__manifest *manifest,
                       const tegula__grid *grid, const char *const *codecs, bool first) {
  return tegula__buffer_printf(
             buffer, "%s\n  {\"file\": %lld, \"chunk_bytes\": %lld, \"order\": \"%c\"",
             first ? "" : ",", (long long)grid->file, (long long)grid->chunk_bytes, grid->order) &&
         write_codecs(buffer, grid, codecs) && tegula__buffer_printf(buffer, ", ") &&
         write_item(buffer, "fill", manifest, grid->fill) &&
         tegula__buffer_printf(buffer, ", \"slots\": %lld", (long long)grid->slots) &&
         (grid->coordinates == NULL || write_column(buffer, "coordinates", grid, COORDINATES)) &&
         write_column(buffer, "offsets", grid, OFFSETS) &&
         write_column(buffer, "lengths", grid, LENGTHS) &&
         (!any_masked(grid) || write_column(buffer, "masks", grid, MASKS)) &&
         tegula__buffer_printf(buffer, grid->slices ? ", \"slices\": 1}" : "}");
}

static bool write_grids(tegula__buffer *buffer, const tegula__manifest *manifest,
                        const char *const *codecs) {
  if (manifest->grid_count == 0) return true;
  bool good = tegula__buffer_printf(buffer, ",\n \"grids\": [");
  for (int64_t i = 0; good && i < manifest->grid_count; i++)
    good = write_grid(buffer, manifest, manifest->grids[i], codecs, i == 0);
  return good && tegula__buffer_printf(buffer, "\n ]");
}

/* ---- parts ---- */

static bool write_vector(tegula__buffer *buffer, const char *key, const int64_t *numbers,
                         int32_t ndim) {
  return tegula__buffer_printf(buffer, ", \"%s\": ", key) &&
         tegula__json_write_numbers(buffer, numbers, ndim);
}

static bool write_stored(tegula__buffer *buffer, const char *key, int64_t number,
                         const tegula__part *part, int32_t ndim) {
  return tegula__buffer_printf(buffer, "\"%s\": %lld, \"offset\": %lld", key, (long long)number,
                               (long long)part->offset) &&
         write_vector(buffer, "lo", part->lo, ndim) && write_vector(buffer, "hi", part->hi, ndim) &&
         write_vector(buffer, "strides", part->strides, ndim);
}

static bool write_chunked(tegula__buffer *buffer, int64_t grid, const tegula__part *part,
                          int32_t ndim) {
  return write_stored(buffer, "grid", grid, part, ndim) &&
         write_vector(buffer, "start", part->start, ndim) &&
         write_vector(buffer, "chunk", part->chunk, ndim) &&
         tegula__buffer_printf(buffer, ", \"slot\": %lld", (long long)part->slot_base) &&
         write_vector(buffer, "slot_strides", part->slot_strides, ndim) &&
         (part->step == NULL || write_vector(buffer, "step", part->step, ndim));
}

static bool write_lost(tegula__buffer *buffer, const tegula_error *lost) {
  return tegula__buffer_printf(buffer, "\"lost\": {\"status\": \"%s\", \"message\": ",
                               tegula_status_name(lost->status)) &&
         tegula__buffer_json_text(buffer, lost->message) &&
         tegula__buffer_printf(buffer, ", \"hint\": ") &&
         tegula__buffer_json_text(buffer, lost->hint[0] != '\0' ? lost->hint : NULL) &&
         tegula__buffer_printf(buffer, ", \"path\": ") &&
         tegula__buffer_json_text(buffer, lost->path[0] != '\0' ? lost->path : NULL) &&
         tegula__buffer_printf(buffer, ", \"errno\": %d}, ", lost->os_errno);
}

/* Lists of offset, count, stride, size, and 0 (up to the first zero) or 1 (without blanks at the
 * end). */
static bool write_texts(tegula__buffer *buffer, const tegula__texts *texts) {
  bool good = tegula__buffer_printf(buffer, "\"texts\": [");
  for (int64_t i = 0; good && i < texts->count; i++) {
    const tegula__text_place *place = &texts->places[i];
    good = (i == 0 || tegula__buffer_append(buffer, ", ", 2)) &&
           tegula__json_write_numbers(buffer,
                                      (int64_t[]){place->offset, place->count, place->stride,
                                                  place->size, place->padding == ' '},
                                      5);
  }
  return good && tegula__buffer_append(buffer, "], ", 3);
}

/* `grid`: the number of its grid. */
static bool write_part(tegula__buffer *buffer, const tegula__manifest *manifest,
                       const tegula__part *part, int64_t grid, bool first) {
  int32_t ndim = manifest->ndim;
  bool good = tegula__buffer_printf(buffer, first ? "\n  {" : ",\n  {") &&
              (part->texts == NULL || write_texts(buffer, part->texts));
  if (part->kind == TEGULA__PART_DENSE)
    return good && write_stored(buffer, "file", part->file, part, ndim) &&
           tegula__buffer_printf(buffer, ", \"order\": \"%c\"}", part->order);
  if (part->kind == TEGULA__PART_CHUNKED)
    return good && write_chunked(buffer, grid, part, ndim) && tegula__buffer_append(buffer, "}", 1);
  if (part->kind == TEGULA__PART_LOST) good = good && write_lost(buffer, part->lost);
  return good && write_item(buffer, "fill", manifest, part->fill) &&
         write_vector(buffer, "lo", part->lo, ndim) && write_vector(buffer, "hi", part->hi, ndim) &&
         tegula__buffer_append(buffer, "}", 1);
}

int64_t tegula__part_grid_number(const tegula__manifest *manifest, const tegula__part *part,
                                 int64_t last) {
  for (int64_t i = 0; part->grid != NULL && i < manifest->grid_count; i++) {
    int64_t number = (last + i) % manifest->grid_count;
    if (manifest->grids[number] == part->grid) return number;
  }
  return last;
}

static bool write_parts(tegula__buffer *buffer, const tegula__manifest *manifest) {
  int64_t grid = 0;
  bool good = tegula__buffer_printf(buffer, ",\n \"parts\": [");
  for (int64_t i = 0; good && i < manifest->part_count; i++) {
    grid = tegula__part_grid_number(manifest, &manifest->parts[i], grid);
    good = write_part(buffer, manifest, &manifest->parts[i], grid, i == 0);
  }
  return good && tegula__buffer_append(buffer, "\n ]}\n", sizeof "\n ]}\n");
}

/* ---- the whole ---- */

static tegula_status write_all(tegula__buffer *buffer, const tegula__manifest *manifest,
                               const char *const *codecs, tegula__namer *namer, tegula_error *err) {
  if (!write_head(buffer, manifest) || !tegula__buffer_printf(buffer, ",\n \"files\": ["))
    return too_long(buffer, err);
  for (int64_t i = 0; i < manifest->file_count; i++)
    FORWARD(write_file(buffer, &manifest->files[i], namer, i == 0, err));
  bool good = tegula__buffer_printf(buffer, "\n ]") && write_grids(buffer, manifest, codecs) &&
              write_parts(buffer, manifest);
  return good ? TEGULA_OK : too_long(buffer, err);
}

static tegula_status refuse_reader(const tegula__reader *reader, const char *path,
                                   tegula_error *err) {
  if (reader->local)
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                                     "a dataset of the format \"%.60s\" comes from a function of "
                                     "this program and cannot be written as JSON",
                                     reader->name),
                        "save the array to files first");
  return tegula__hint(
      err,
      tegula__fail(
          err, TEGULA_UNSUPPORTED, path, -1, "a manifest cannot be written as JSON: %.700s",
          reader->why != NULL ? reader->why : "the format's plugin reads the elements itself"),
      "open it by the file's own name, or copy the data to a dataset in chunks or without");
}

tegula_status tegula__manifest_check_writable(const tegula__manifest *manifest, tegula_error *err) {
  const char *path = manifest->file_count > 0 ? manifest->files[0].path : NULL;
  if (manifest->reader_count > 0) return refuse_reader(manifest->readers[0], path, err);
  if (manifest->late_count > 0)
    return tegula__fail(err, TEGULA_INTERNAL, path, -1,
                        "a manifest with late parts cannot be written as JSON");
  bool good = manifest->file_count > 0;
  for (int64_t i = 0; good && i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    good = part->kind != TEGULA__PART_DENSE ||
           tegula__strides_distinct(manifest->ndim, manifest->dtype.item_size, part->lo, part->hi,
                                    part->strides);
  }
  if (!good)
    return tegula__fail(
        err, TEGULA_UNSUPPORTED, path, -1,
        "a dataset of the format \"%.60s\" of which elements share bytes cannot be written as JSON",
        manifest->format);
  return TEGULA_OK;
}

static tegula_status check_texts(const tegula__manifest *manifest, tegula_error *err) {
  const char *path = manifest->files[0].path;
  if (!tegula__json_is_text(manifest->name))
    return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1,
                        "the dataset's name is no UTF-8 and cannot be written as JSON");
  if (manifest->descr != NULL && !tegula__json_is_text(manifest->descr))
    return tegula__fail(
        err, TEGULA_UNSUPPORTED, path, -1,
        "the record description of \"%s\" is no UTF-8 and cannot be written as JSON", path);
  return TEGULA_OK;
}

tegula_status tegula__manifest_write(const tegula__manifest *manifest,
                                     const tegula__manifest_names *names, const char *folder,
                                     char **out, tegula_error *err) {
  FORWARD(tegula__manifest_check_writable(manifest, err));
  FORWARD(check_texts(manifest, err));
  tegula__buffer buffer;
  tegula__buffer_init(&buffer, TEGULA__MANIFEST_BYTES);
  tegula__namer namer;
  tegula_status status = tegula__namer_init(&namer, folder, err);
  if (status == TEGULA_OK) status = write_all(&buffer, manifest, names->codecs, &namer, err);
  tegula__namer_free(&namer);
  if (status == TEGULA_OK)
    *out = buffer.data;
  else
    tegula__buffer_free(&buffer);
  return status;
}
