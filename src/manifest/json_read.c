/* JSON text -> a manifest. Nothing in the text is believed.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * json_parts.c reads where the elements are. What finish checks for all drivers (that each piece
 * lies within its file's size) is left to it; everything else is checked here. */
#include <stdlib.h>
#include <string.h>

#include "base/frame.h"
#include "manifest/manifest_priv.h"

/* ---- the array ---- */

static const char *find_text(const char *text, const char *const *texts) {
  while (*texts != NULL && strcmp(*texts, text) != 0) texts++;
  return *texts;
}

static tegula_status read_version(const tegula__json *root, tegula_error *err) {
  tegula__json version = tegula__json_member(root, TEGULA__MANIFEST_KEY);
  int64_t number = 0;
  FORWARD(tegula__json_integer(&version, 1, INT64_MAX, &number, err));
  if (number == 1) return TEGULA_OK;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_UNSUPPORTED, root->file, -1,
                                   "\"%s\" is a manifest of version %lld, known is version 1",
                                   root->file, (long long)number),
                      "a newer tegula wrote it; make it again with this one");
}

/* Texts that stay the same for all datasets are static: one of `known`. */
static tegula_status read_known(const tegula__json *root, const char *key, const char *const *known,
                                const char **out, tegula_error *err) {
  tegula__json member = tegula__json_member(root, key);
  const char *text = NULL;
  FORWARD(tegula__json_text(&member, &text, err));
  *out = find_text(text, known);
  if (*out != NULL) return TEGULA_OK;
  return tegula__fail(err, TEGULA_UNSUPPORTED, root->file, -1,
                      "\"%s\": the %s \"%.60s\" is not known", root->file, key, text);
}

static tegula_status read_dataset(const tegula__json *root, tegula__manifest *out,
                                  tegula_error *err) {
  tegula__json member = tegula__json_member(root, "name");
  const char *text = NULL;
  FORWARD(tegula__json_text(&member, &text, err));
  if (text[0] == '\0') return tegula__json_wrong(&member, err, "the name of the dataset");
  char *name = strdup(text);
  FORWARD(tegula__manifest_keep(out, name, err));
  out->name = name;
  return TEGULA_OK;
}

static tegula_status read_dtype(const tegula__json *root, tegula__manifest *out,
                                tegula_error *err) {
  tegula__json dtype = tegula__json_member(root, "dtype"),
               descr = tegula__json_member(root, "descr");
  const char *text = NULL;
  FORWARD(tegula__json_text(&dtype, &text, err));
  if (tegula_dtype_parse(text, &out->dtype, NULL) != TEGULA_OK)
    return tegula__json_wrong(&dtype, err, "a dtype such as <f4");
  out->dtype = tegula_dtype_native(out->dtype);
  if (descr.value == NULL) return TEGULA_OK;
  FORWARD(tegula__json_text(&descr, &text, err));
  if (out->dtype.kind != 'V')
    return tegula__json_wrong(&descr, err, "nothing, because the dtype holds no records");
  out->descr = strdup(text);
  return out->descr != NULL ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(text));
}

static tegula_status read_shape(const tegula__json *root, tegula__manifest *out,
                                tegula_error *err) {
  tegula__json shape = tegula__json_member(root, "shape");
  int64_t bytes;
  FORWARD(tegula__json_lengths(&shape, 0, TEGULA_MAX_DIMS, false, out->shape, &out->ndim, err));
  if (tegula__shape_bytes(out->shape, out->ndim, out->dtype.item_size, &bytes)) return TEGULA_OK;
  return tegula__json_wrong(&shape, err, "a shape of at most 2^63 - 1 bytes");
}

static tegula_status read_durable(const tegula__json *root, bool *out, tegula_error *err) {
  tegula__json durable = tegula__json_member(root, "durable");
  int64_t number = 0;
  if (durable.value != NULL) FORWARD(tegula__json_integer(&durable, 0, 1, &number, err));
  *out = number != 0;
  return TEGULA_OK;
}

/* ---- files ---- */

/* The bytes that `hex` spells, in new memory; NULL when it is not pairs of digits, or spells a
 * NUL. */
static char *from_hex(const char *hex) {
  size_t size = strlen(hex);
  char *out = size % 2 == 0 ? calloc(1, size / 2 + 1) : NULL;
  for (size_t i = 0; out != NULL && i < size / 2; i++) {
    int high = tegula__json_hex_digit(hex[2 * i]), low = tegula__json_hex_digit(hex[2 * i + 1]);
    if (high >= 0 && low >= 0) out[i] = (char)(high << 4 | low);
    if (out[i] == '\0') {
      free(out);
      out = NULL;
    }
  }
  return out;
}

/* A name as it stands -> one that can be opened from here. */
static char *place_name(const char *manifest_path, const char *name) {
  const char *slash = strrchr(manifest_path, '/');
  if (name[0] == '/' || slash == NULL) return strdup(name);
  return tegula__strprintf("%.*s/%s", (int)(slash - manifest_path), manifest_path, name);
}

tegula_status tegula__json_read_name(const tegula__json *file, char **out, tegula_error *err) {
  tegula__json path = tegula__json_member(file, "path"),
               hex = tegula__json_member(file, "path_hex");
  const char *text = NULL;
  if (hex.value == NULL) {
    FORWARD(tegula__json_text(&path, &text, err));
    *out = place_name(file->file, text);
  } else {
    if (path.value != NULL)
      return tegula__json_wrong(&hex, err, "either path or path_hex, not both");
    FORWARD(tegula__json_text(&hex, &text, err));
    char *name = from_hex(text);
    if (name == NULL)
      return tegula__json_wrong(&hex, err,
                                "pairs of hexadecimal digits (0-9, a-f), none of them 00");
    *out = place_name(file->file, name);
    free(name);
  }
  return *out != NULL ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(text));
}

static tegula_status read_records(const tegula__json *file, tegula__frame *out, tegula_error *err) {
  static const char *const keys[] = {"first", "bytes", "most", "marker", "order", NULL};
  tegula__json records = tegula__json_member(file, "records");
  const char *order = NULL;
  int64_t marker = 0;
  if (records.value == NULL) return TEGULA_OK;
  FORWARD(tegula__json_expect(&records, TEGULA__JSON_OBJECT, err));
  FORWARD(tegula__json_only(&records, keys, err));
  FORWARD(tegula__json_read_number(&records, "first", 0, INT64_MAX, &out->first, err));
  FORWARD(tegula__json_read_number(&records, "bytes", 1, INT64_MAX, &out->record, err));
  FORWARD(tegula__json_read_number(&records, "most", 1, INT64_MAX, &out->most, err));
  FORWARD(tegula__json_read_number(&records, "marker", 4, 8, &marker, err));
  tegula__json order_text = tegula__json_member(&records, "order");
  FORWARD(tegula__json_text(&order_text, &order, err));
  out->marker = (uint8_t)marker;
  out->order = strlen(order) == 1 ? (uint8_t)order[0] : 0;
  return tegula__frame_valid(out)
             ? TEGULA_OK
             : tegula__json_wrong(&records, err, "records with markers of 4 or 8 bytes");
}

static tegula_status read_file(const tegula__json *file, tegula__file *out, tegula_error *err) {
  static const char *const keys[] = {"path", "path_hex", "size", "mtime_ns", "records", NULL};
  FORWARD(tegula__json_expect(file, TEGULA__JSON_OBJECT, err));
  FORWARD(tegula__json_only(file, keys, err));
  tegula__json size = tegula__json_member(file, "size"),
               mtime = tegula__json_member(file, "mtime_ns");
  FORWARD(tegula__json_integer(&size, 0, INT64_MAX, &out->stamp.size, err));
  FORWARD(tegula__json_integer(&mtime, INT64_MIN, INT64_MAX, &out->stamp.mtime_ns, err));
  out->recorded = true;
  FORWARD(read_records(file, &out->frame, err));
  return tegula__json_read_name(file, &out->path, err);
}

static tegula_status read_files(const tegula__json *root, tegula__manifest *out,
                                tegula_error *err) {
  tegula__json files = tegula__json_member(root, "files");
  FORWARD(tegula__json_expect(&files, TEGULA__JSON_LIST, err));
  int64_t count = tegula__json_count(&files);
  if (count == 0) return tegula__json_wrong(&files, err, "at least one file");
  /* the text has two bytes or more for each, so this is in proportion */
  out->files = calloc((size_t)count, sizeof *out->files);
  if (out->files == NULL) return tegula__out_of_memory(err, count * (int64_t)sizeof *out->files);
  out->file_count = count;
  for (int64_t i = 0; i < count; i++) {
    tegula__json file = tegula__json_item(&files, i);
    FORWARD(read_file(&file, &out->files[i], err));
  }
  return TEGULA_OK;
}

/* ---- the whole ---- */

static tegula_status read_root(const tegula__json *root, const tegula__manifest_names *names,
                               tegula__manifest *out, tegula_error *err) {
  static const char *const keys[] = {TEGULA__MANIFEST_KEY,
                                     "format",
                                     "name",
                                     "dtype",
                                     "descr",
                                     "shape",
                                     "fill",
                                     "durable",
                                     "files",
                                     "grids",
                                     "parts",
                                     NULL};
  FORWARD(read_version(root, err));
  FORWARD(tegula__json_only(root, keys, err));
  FORWARD(read_known(root, "format", names->formats, &out->format, err));
  FORWARD(read_dataset(root, out, err));
  FORWARD(read_dtype(root, out, err));
  FORWARD(read_shape(root, out, err));
  FORWARD(tegula__json_read_item(root, "fill", out, &out->fill, err));
  FORWARD(read_durable(root, &out->durable, err));
  FORWARD(read_files(root, out, err));
  FORWARD(tegula__json_read_grids(root, names->codecs, out, err));
  return tegula__json_read_parts(root, out, err);
}

tegula_status tegula__manifest_read(const void *text, size_t size, const char *path,
                                    const tegula__manifest_names *names, tegula__manifest *out,
                                    tegula_error *err) {
  tegula__json root;
  FORWARD(tegula__json_parse(text, size, TEGULA__MANIFEST_BYTES, path, &root, err));
  tegula_status status = read_root(&root, names, out, err);
  tegula__json_free(&root);
  return status;
}
