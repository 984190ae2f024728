/* JSON text -> a manifest. Nothing in the text is believed.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Checked here: every number's range, that parts lie in C or Fortran order in a file of the list, follow each other row by row and cover
 * the shape. What finish checks for all drivers (that each part lies within its file's size) is left to it. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
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
                      tegula__fail(err, TEGULA_UNSUPPORTED, root->file, -1, "\"%s\" is a manifest of version %lld, known is version 1",
                                   root->file, (long long)number),
                      "a newer tegula wrote it; make it again with this one");
}

/* Texts that stay the same for all datasets are static: one of `known`. */
static tegula_status read_known(const tegula__json *root, const char *key, const char *const *known, const char **out, tegula_error *err) {
  tegula__json member = tegula__json_member(root, key);
  const char *text = NULL;
  FORWARD(tegula__json_text(&member, &text, err));
  *out = find_text(text, known);
  if (*out != NULL) return TEGULA_OK;
  return tegula__fail(err, TEGULA_UNSUPPORTED, root->file, -1, "\"%s\": the %s \"%.60s\" is not known", root->file, key, text);
}

static tegula_status read_dataset(const tegula__json *root, tegula__manifest *out, tegula_error *err) {
  tegula__json member = tegula__json_member(root, "name");
  const char *text = NULL;
  FORWARD(tegula__json_text(&member, &text, err));
  if (text[0] == '\0') return tegula__json_wrong(&member, err, "the name of the dataset");
  char *name = strdup(text);
  FORWARD(tegula__manifest_keep(out, name, err));
  out->name = name;
  return TEGULA_OK;
}

static tegula_status read_dtype(const tegula__json *root, tegula__manifest *out, tegula_error *err) {
  tegula__json dtype = tegula__json_member(root, "dtype"), descr = tegula__json_member(root, "descr");
  const char *text = NULL;
  FORWARD(tegula__json_text(&dtype, &text, err));
  if (tegula_dtype_parse(text, &out->dtype, NULL) != TEGULA_OK) return tegula__json_wrong(&dtype, err, "a dtype such as <f4");
  out->dtype = tegula_dtype_native(out->dtype);
  if (descr.value == NULL) return TEGULA_OK;
  FORWARD(tegula__json_text(&descr, &text, err));
  if (out->dtype.kind != 'V') return tegula__json_wrong(&descr, err, "nothing, because the dtype holds no records");
  out->descr = strdup(text);
  return out->descr != NULL ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(text));
}

static tegula_status read_shape(const tegula__json *root, tegula__manifest *out, tegula_error *err) {
  tegula__json shape = tegula__json_member(root, "shape");
  int64_t bytes;
  FORWARD(tegula__json_lengths(&shape, 0, TEGULA_MAX_DIMS, false, out->shape, &out->ndim, err));
  if (tegula__shape_bytes(out->shape, out->ndim, out->dtype.item_size, &bytes)) return TEGULA_OK;
  return tegula__json_wrong(&shape, err, "a shape of at most 2^63 - 1 bytes");
}

/* ---- files ---- */

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes that `hex` spells, in new memory; NULL when it is not pairs of digits, or spells a NUL. */
static char *from_hex(const char *hex) {
  size_t size = strlen(hex);
  char *out = size % 2 == 0 ? calloc(1, size / 2 + 1) : NULL;
  for (size_t i = 0; out != NULL && i < size / 2; i++) {
    int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
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

static tegula_status read_name(const tegula__json *file, char **out, tegula_error *err) {
  tegula__json path = tegula__json_member(file, "path"), hex = tegula__json_member(file, "path_hex");
  const char *text = NULL;
  if (hex.value == NULL) {
    FORWARD(tegula__json_text(&path, &text, err));
    *out = place_name(file->file, text);
  } else {
    if (path.value != NULL) return tegula__json_wrong(&hex, err, "either path or path_hex, not both");
    FORWARD(tegula__json_text(&hex, &text, err));
    char *name = from_hex(text);
    if (name == NULL) return tegula__json_wrong(&hex, err, "pairs of hexadecimal digits (0-9, a-f), none of them 00");
    *out = place_name(file->file, name);
    free(name);
  }
  return *out != NULL ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(text));
}

static tegula_status read_file(const tegula__json *file, tegula__file *out, tegula_error *err) {
  static const char *const keys[] = {"path", "path_hex", "size", "mtime_ns", NULL};
  FORWARD(tegula__json_expect(file, TEGULA__JSON_OBJECT, err));
  FORWARD(tegula__json_only(file, keys, err));
  tegula__json size = tegula__json_member(file, "size"), mtime = tegula__json_member(file, "mtime_ns");
  FORWARD(tegula__json_integer(&size, 0, INT64_MAX, &out->stamp.size, err));
  FORWARD(tegula__json_integer(&mtime, INT64_MIN, INT64_MAX, &out->stamp.mtime_ns, err));
  out->recorded = true;
  return read_name(file, &out->path, err);
}

static tegula_status read_files(const tegula__json *root, tegula__manifest *out, tegula_error *err) {
  tegula__json files = tegula__json_member(root, "files");
  FORWARD(tegula__json_expect(&files, TEGULA__JSON_LIST, err));
  int64_t count = tegula__json_count(&files);
  if (count == 0) return tegula__json_wrong(&files, err, "at least one file");
  out->files = calloc((size_t)count, sizeof *out->files); /* the text has two bytes or more for each, so this is in proportion */
  if (out->files == NULL) return tegula__out_of_memory(err, count * (int64_t)sizeof *out->files);
  out->file_count = count;
  for (int64_t i = 0; i < count; i++) {
    tegula__json file = tegula__json_item(&files, i);
    FORWARD(read_file(&file, &out->files[i], err));
  }
  return TEGULA_OK;
}

/* ---- parts ---- */

typedef struct part_text {
  tegula__json whole;
  int64_t file, offset;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
  uint8_t order;
} part_text;

static tegula_status read_vector(const tegula__json *part, const char *key, int32_t ndim, int64_t *out, tegula_error *err) {
  tegula__json member = tegula__json_member(part, key);
  int32_t count;
  return tegula__json_lengths(&member, ndim, ndim, false, out, &count, err);
}

static tegula_status read_order(const tegula__json *part, tegula_dtype dtype, uint8_t *out, tegula_error *err) {
  tegula__json member = tegula__json_member(part, "order");
  const char *text = NULL;
  bool ordered = dtype.order != '|';
  FORWARD(tegula__json_text(&member, &text, err));
  bool good = text[1] == '\0' && (ordered ? text[0] == '<' || text[0] == '>' : text[0] == '|');
  if (!good) return tegula__json_wrong(&member, err, ordered ? "\"<\" or \">\"" : "\"|\" for this dtype");
  *out = (uint8_t)text[0];
  return TEGULA_OK;
}

/* The first axis along which [lo, hi) is no part of rows from `row` on with all of the other axes; -1: it is one. */
static int32_t odd_axis(const tegula__manifest *manifest, const int64_t *lo, const int64_t *hi, int64_t row) {
  for (int32_t k = 0; k < manifest->ndim; k++) {
    int64_t most = manifest->shape[k];
    if (lo[k] != (k == 0 ? row : 0) || (k == 0 ? hi[k] < row || hi[k] > most : hi[k] != most)) return k;
  }
  return -1;
}

static tegula_status check_box(const tegula__manifest *out, const part_text *part, int64_t row, tegula_error *err) {
  int32_t k = odd_axis(out, part->lo, part->hi, row);
  if (k >= 0) {
    int64_t lo = k == 0 ? row : 0, most = out->shape[k];
    char way[TEGULA__JSON_WAY];
    tegula__json_way(&part->whole, way);
    return tegula__fail(err, TEGULA_CORRUPT, part->whole.file, -1,
                        "\"%s\": %s holds [%lld, %lld) of axis %d, expected [%lld, %s%lld)", part->whole.file, way, (long long)part->lo[k],
                        (long long)part->hi[k], k, (long long)lo, k == 0 ? "at most " : "", (long long)most);
  }
  return TEGULA_OK;
}

/* The orders that the text may have: dense C (`c`) or Fortran (`f`); in C order the rows may be further apart. Others could overlap. */
static bool usual_strides(const tegula__manifest *manifest, const int64_t *lo, const int64_t *hi, const int64_t *strides, int64_t *c,
                          int64_t *f) {
  int64_t shape[TEGULA_MAX_DIMS];
  bool is_c = true, is_f = true, positive = true, empty = false;
  for (int32_t k = 0; k < manifest->ndim; k++) shape[k] = hi[k] - lo[k];
  tegula__dense_strides(shape, manifest->ndim, manifest->dtype.item_size, 'C', c);
  tegula__dense_strides(shape, manifest->ndim, manifest->dtype.item_size, 'F', f);
  for (int32_t k = 0; k < manifest->ndim; k++) {
    is_c = is_c && (k == 0 ? strides[k] >= c[k] : strides[k] == c[k]);
    is_f = is_f && strides[k] == f[k];
    positive = positive && strides[k] > 0;
    empty = empty || shape[k] == 0;
  }
  return positive && (is_c || is_f || empty);
}

bool tegula__manifest_is_rows(const tegula__manifest *manifest) {
  int64_t c[TEGULA_MAX_DIMS], f[TEGULA_MAX_DIMS], row = 0;
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    if (odd_axis(manifest, part->lo, part->hi, row) >= 0 || !usual_strides(manifest, part->lo, part->hi, part->strides, c, f)) return false;
    if (manifest->ndim > 0) row = part->hi[0];
  }
  return true;
}

static tegula_status check_strides(const tegula__manifest *out, const part_text *part, tegula_error *err) {
  int64_t c[TEGULA_MAX_DIMS], f[TEGULA_MAX_DIMS];
  if (usual_strides(out, part->lo, part->hi, part->strides, c, f)) return TEGULA_OK;
  tegula__json strides = tegula__json_member(&part->whole, "strides");
  char expected_c[TEGULA__SHAPE_TEXT], expected_f[TEGULA__SHAPE_TEXT], way[TEGULA__JSON_WAY], found[TEGULA__SHAPE_TEXT];
  tegula__shape_format(c, out->ndim, expected_c);
  tegula__shape_format(f, out->ndim, expected_f);
  tegula__shape_format(part->strides, out->ndim, found);
  tegula__json_way(&strides, way);
  return tegula__fail(err, TEGULA_CORRUPT, strides.file, -1, "\"%s\": %s is %s, expected %s (C, rows may be further apart) or %s (Fortran)",
                      strides.file, way, found, expected_c, expected_f);
}

static tegula_status read_part(const tegula__json *json, tegula__manifest *out, int64_t *row, tegula_error *err) {
  static const char *const keys[] = {"file", "offset", "lo", "hi", "strides", "order", NULL};
  part_text part = {.whole = *json};
  FORWARD(tegula__json_expect(json, TEGULA__JSON_OBJECT, err));
  FORWARD(tegula__json_only(json, keys, err));
  tegula__json file = tegula__json_member(json, "file"), offset = tegula__json_member(json, "offset");
  FORWARD(tegula__json_integer(&file, 0, out->file_count - 1, &part.file, err));
  FORWARD(tegula__json_integer(&offset, 0, INT64_MAX, &part.offset, err));
  FORWARD(read_vector(json, "lo", out->ndim, part.lo, err));
  FORWARD(read_vector(json, "hi", out->ndim, part.hi, err));
  FORWARD(read_vector(json, "strides", out->ndim, part.strides, err));
  FORWARD(read_order(json, out->dtype, &part.order, err));
  FORWARD(check_box(out, &part, *row, err));
  FORWARD(check_strides(out, &part, err));
  if (out->ndim > 0) *row = part.hi[0];
  return tegula__manifest_add(out, part.file, part.offset, part.lo, part.hi, part.strides, part.order, err);
}

static tegula_status read_parts(const tegula__json *root, tegula__manifest *out, tegula_error *err) {
  tegula__json parts = tegula__json_member(root, "parts");
  FORWARD(tegula__json_expect(&parts, TEGULA__JSON_LIST, err));
  int64_t count = tegula__json_count(&parts), row = 0;
  if (out->ndim == 0 && count != 1) return tegula__json_wrong(&parts, err, "one part, because the shape is that of a scalar");
  for (int64_t i = 0; i < count; i++) {
    tegula__json part = tegula__json_item(&parts, i);
    FORWARD(read_part(&part, out, &row, err));
  }
  if (out->ndim == 0 || row == out->shape[0]) return TEGULA_OK;
  return tegula__fail(err, TEGULA_CORRUPT, root->file, -1, "\"%s\": the parts hold %lld rows, expected %lld as in the shape", root->file,
                      (long long)row, (long long)out->shape[0]);
}

/* ---- the whole ---- */

static tegula_status read_root(const tegula__json *root, const char *const *formats, tegula__manifest *out, tegula_error *err) {
  static const char *const keys[] = {TEGULA__MANIFEST_KEY, "format", "name", "dtype", "descr", "shape", "files", "parts", NULL};
  FORWARD(read_version(root, err));
  FORWARD(tegula__json_only(root, keys, err));
  FORWARD(read_known(root, "format", formats, &out->format, err));
  FORWARD(read_dataset(root, out, err));
  FORWARD(read_dtype(root, out, err));
  FORWARD(read_shape(root, out, err));
  FORWARD(read_files(root, out, err));
  return read_parts(root, out, err);
}

tegula_status tegula__manifest_read(const void *text, size_t size, const char *path, const char *const *formats, tegula__manifest *out,
                                    tegula_error *err) {
  tegula__json root;
  FORWARD(tegula__json_parse(text, size, TEGULA__MANIFEST_BYTES, path, &root, err));
  tegula_status status = read_root(&root, formats, out, err);
  tegula__json_free(&root);
  return status;
}
