/* A manifest that was written as JSON, opened like any other file: it brings the files of another
 * format with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * It is recognised by its first key, whatever the white space, so that a file that went through
 * another JSON program still opens. It describes files without opening them: whether they are still
 * those files shows when they are first read. */
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"
#include "format/format_priv.h"

static const char *skip_space(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
  return at;
}

static bool manifest_recognise(const void *head, size_t size) {
  static const char key[] = "\"" TEGULA__MANIFEST_KEY "\"";
  const char *at = head, *end = at + size;
  at = skip_space(at, end);
  if (at == end || *at++ != '{') return false;
  at = skip_space(at, end);
  return (size_t)(end - at) >= sizeof key - 1 && memcmp(at, key, sizeof key - 1) == 0;
}

enum { MOST_FORMATS = 16 };

static void list_formats(const char **formats) {
  size_t count = 0;
  for (size_t i = 0; tegula__format_at(i) != NULL && count + 1 < MOST_FORMATS; i++)
    if (tegula__format_at(i) != &tegula__format_manifest)
      formats[count++] = tegula__format_at(i)->name;
  formats[count] = NULL;
}

static tegula_status check_grids(const tegula__manifest *manifest, tegula_error *err) {
  for (int64_t i = 0; i < manifest->grid_count; i++)
    FORWARD(tegula__format_check_grid(manifest->grids[i],
                                      manifest->files[manifest->grids[i]->file].path, err));
  return TEGULA_OK;
}

static tegula_status read_text(const char *text, size_t size, const char *path,
                               tegula__manifest *out, tegula_error *err) {
  const char *formats[MOST_FORMATS];
  list_formats(formats);
  const tegula__manifest_names names = {.formats = formats, .codecs = tegula__codec_names()};
  FORWARD(tegula__manifest_read(text, size, path, &names, out, err));
  return check_grids(out, err);
}

tegula_status tegula__format_manifest_packed(const void *data, size_t size, const char *path,
                                             tegula__manifest *out, tegula_error *err) {
  const char *formats[MOST_FORMATS];
  list_formats(formats);
  const tegula__manifest_names names = {.formats = formats, .codecs = tegula__codec_names()};
  FORWARD(tegula__manifest_unpack(data, size, path, &names, out, err));
  return check_grids(out, err);
}

static tegula_status manifest_describe(const tegula__source *source,
                                       const tegula__describe_options *options,
                                       tegula__manifest *out, tegula_error *err) {
  FORWARD(tegula__format_check_raw_only(source, options, "a manifest, which says it all",
                                        "a manifest", err));
  if ((uint64_t)source->size > TEGULA__MANIFEST_BYTES)
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, source->path, -1,
                        "\"%s\" is too long: expected at most %zu bytes, found %lld", source->path,
                        TEGULA__MANIFEST_BYTES, (long long)source->size);
  size_t size = (size_t)source->size;
  /* of just that size, so that a reader beyond the end is found */
  char *text = malloc(size > 0 ? size : 1);
  if (text == NULL) return tegula__out_of_memory(err, source->size);
  tegula_status status = tegula__source_read(source, 0, text, size, err);
  if (status == TEGULA_OK) status = read_text(text, size, source->path, out, err);
  if (status == TEGULA_OK)
    status = tegula__format_check_dataset(options->dataset, out->name, source->path, err);
  if (status == TEGULA_OK)
    status = tegula__format_check_dtype(source, options, out->dtype, out->descr, "manifest", err);
  free(text);
  return status;
}

const tegula__format tegula__format_manifest = {
    .name = "manifest",
    .recognise = manifest_recognise,
    .describe = manifest_describe,
};
