/* A manifest as JSON text.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The schema is docs/manifest.md. The text is written in one go without a tree of values: a manifest of a million files needs the memory
 * of its text. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "manifest/manifest_priv.h"

static tegula_status too_long(const tegula__buffer *buffer, tegula_error *err) {
  if (buffer->size <= buffer->maximum / 2) return tegula__out_of_memory(err, (int64_t)buffer->size);
  return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1, "the manifest is longer than %zu bytes of JSON", buffer->maximum);
}

static bool write_member(tegula__buffer *buffer, const char *key, const char *text) {
  return tegula__buffer_printf(buffer, ",\n \"%s\": ", key) && tegula__buffer_json_text(buffer, text);
}

static bool write_head(tegula__buffer *buffer, const tegula__manifest *manifest) {
  char dtype[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(manifest->dtype, dtype);
  return tegula__buffer_printf(buffer, "{\"" TEGULA__MANIFEST_KEY "\": 1") && write_member(buffer, "format", manifest->format) &&
         write_member(buffer, "name", manifest->name) && write_member(buffer, "dtype", dtype) &&
         (manifest->descr == NULL || write_member(buffer, "descr", manifest->descr)) && tegula__buffer_printf(buffer, ",\n \"shape\": ") &&
         tegula__json_write_numbers(buffer, manifest->shape, manifest->ndim);
}

/* A name that is no UTF-8 cannot be a text in JSON: its bytes are written as hexadecimal digits. */
static bool write_name(tegula__buffer *buffer, const char *name) {
  if (tegula__json_is_text(name)) return tegula__buffer_printf(buffer, "\"path\": ") && tegula__buffer_json_text(buffer, name);
  bool good = tegula__buffer_printf(buffer, "\"path_hex\": \"");
  for (; good && *name != '\0'; name++) good = tegula__buffer_printf(buffer, "%02x", (unsigned char)*name);
  return good && tegula__buffer_append(buffer, "\"", 1);
}

static tegula_status write_file(tegula__buffer *buffer, const tegula__file *file, tegula__namer *namer, bool first, tegula_error *err) {
  char *name = NULL;
  FORWARD(tegula__namer_name(namer, file->path, &name, err));
  bool good = tegula__buffer_printf(buffer, first ? "\n  {" : ",\n  {") && write_name(buffer, name) &&
              tegula__buffer_printf(buffer, ", \"size\": %lld, \"mtime_ns\": %lld}", (long long)file->stamp.size,
                                    (long long)file->stamp.mtime_ns);
  free(name);
  return good ? TEGULA_OK : too_long(buffer, err);
}

static bool write_part(tegula__buffer *buffer, const tegula__part *part, int32_t ndim, bool first) {
  return tegula__buffer_printf(buffer, "%s\n  {\"file\": %lld, \"offset\": %lld, \"lo\": ", first ? "" : ",", (long long)part->file,
                               (long long)part->offset) &&
         tegula__json_write_numbers(buffer, part->lo, ndim) && tegula__buffer_printf(buffer, ", \"hi\": ") &&
         tegula__json_write_numbers(buffer, part->hi, ndim) && tegula__buffer_printf(buffer, ", \"strides\": ") &&
         tegula__json_write_numbers(buffer, part->strides, ndim) && tegula__buffer_printf(buffer, ", \"order\": \"%c\"}", part->order);
}

static tegula_status write_all(tegula__buffer *buffer, const tegula__manifest *manifest, tegula__namer *namer, tegula_error *err) {
  if (!write_head(buffer, manifest) || !tegula__buffer_printf(buffer, ",\n \"files\": [")) return too_long(buffer, err);
  for (int64_t i = 0; i < manifest->file_count; i++) FORWARD(write_file(buffer, &manifest->files[i], namer, i == 0, err));
  bool good = tegula__buffer_printf(buffer, "\n ],\n \"parts\": [");
  for (int64_t i = 0; good && i < manifest->part_count; i++) good = write_part(buffer, &manifest->parts[i], manifest->ndim, i == 0);
  good = good && tegula__buffer_append(buffer, "\n ]}\n", sizeof "\n ]}\n");
  return good ? TEGULA_OK : too_long(buffer, err);
}

static tegula_status check_writable(const tegula__manifest *manifest, tegula_error *err) {
  const char *path = manifest->file_count > 0 ? manifest->files[0].path : NULL;
  for (int64_t i = 0; i < manifest->part_count; i++)
    if (manifest->parts[i].kind != TEGULA__PART_DENSE && manifest->parts[i].kind != TEGULA__PART_READ)
      return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1,
                          "a dataset of the format \"%.60s\" that is stored in chunks or has absent pieces cannot be written as JSON yet",
                          manifest->format);
  if (manifest->reader_count > 0)
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                                     "a dataset of the format \"%.60s\" comes from a function of this program and cannot be written as JSON",
                                     manifest->readers[0]->name),
                        "save the array to files first");
  if (manifest->file_count == 0 || !tegula__manifest_is_rows(manifest))
    return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1,
                        "a dataset of the format \"%.60s\" that is not made of rows after rows cannot be written as JSON yet",
                        manifest->format);
  if (!tegula__json_is_text(manifest->name))
    return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "the dataset's name is no UTF-8 and cannot be written as JSON");
  if (manifest->descr != NULL && !tegula__json_is_text(manifest->descr))
    return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "the record description of \"%s\" is no UTF-8 and cannot be written as JSON", path);
  return TEGULA_OK;
}

tegula_status tegula__manifest_write(const tegula__manifest *manifest, const char *folder, char **out, tegula_error *err) {
  FORWARD(check_writable(manifest, err));
  tegula__buffer buffer;
  tegula__buffer_init(&buffer, TEGULA__MANIFEST_BYTES);
  tegula__namer namer;
  tegula_status status = tegula__namer_init(&namer, folder, err);
  if (status == TEGULA_OK) status = write_all(&buffer, manifest, &namer, err);
  tegula__namer_free(&namer);
  if (status == TEGULA_OK)
    *out = buffer.data;
  else
    tegula__buffer_free(&buffer);
  return status;
}
