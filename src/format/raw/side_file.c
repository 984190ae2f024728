/* What a side file means for the files beside it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * `shape` is that of each file, or that of the whole array; which of the two is decided by the rows
 * that the files have, and it must be one of them. So the number of rows of a file is either
 * listed, or follows from its size. */
#include "format/raw/side_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

/* ---- rows ---- */

static int compare_name(const void *name, const void *entry) {
  return strcmp(name, ((const tegula__named_rows *)entry)->name);
}

static tegula__named_rows *find_entry(const tegula__side_file *side, const char *path) {
  return bsearch(name_of(path), side->rows, (size_t)side->rows_count, sizeof *side->rows,
                 compare_name);
}

/* Does the side file say how many rows the file has? */
static bool find_rows(const tegula__side_file *side, const char *path, int64_t place,
                      int64_t *rows) {
  const tegula__named_rows *entry;
  switch (side->rows_kind) {
    case TEGULA__SIDE_ROWS_NONE:
      return false;
    case TEGULA__SIDE_ROWS_EACH:
      *rows = side->rows_count;
      return true;
    case TEGULA__SIDE_ROWS_LIST:
      entry = place < side->rows_count ? &side->rows[place] : NULL;
      break;
    default:
      entry = find_entry(side, path);
      break;
  }
  RETURN_IF(entry == NULL, false);
  *rows = entry->rows;
  return true;
}

static tegula_status not_there(const tegula__side_file *side, const char *name, tegula_error *err) {
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_INCOMPLETE, side->path, -1,
                                   "\"%s\" lists the file \"%.200s\", which is not there",
                                   side->path, name),
                      "a file is missing, or the side file is that of other files");
}

static tegula_status check_count(const tegula__side_file *side, bool says, const char *what,
                                 int64_t expected, int64_t found, tegula_error *err) {
  if (!says || expected == found) return TEGULA_OK;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_MISMATCH, side->path, -1,
                                   "\"%s\": %s %lld files, found %lld", side->path, what,
                                   (long long)expected, (long long)found),
                      "a file is missing, or one is there that does not belong to the set");
}

tegula_status tegula__side_file_check_names(tegula__side_file *side, const tegula__file *files,
                                            int64_t count, bool whole, int64_t total,
                                            tegula_error *err) {
  FORWARD(check_count(side, side->rows_kind == TEGULA__SIDE_ROWS_LIST, "rows lists",
                      side->rows_count, total, err));
  FORWARD(check_count(side, side->has_files, "num_shards says", side->files, total, err));
  if (side->rows_kind != TEGULA__SIDE_ROWS_BY_NAME) return TEGULA_OK;
  for (int64_t i = 0; i < count; i++) {
    tegula__named_rows *entry = find_entry(side, files[i].path);
    if (entry == NULL)
      return tegula__hint(err,
                          tegula__fail(err, TEGULA_MISMATCH, files[i].path, -1,
                                       "\"%s\" is not among the rows that \"%s\" lists",
                                       files[i].path, side->path),
                          "add it there, or move it away");
    entry->seen = true;
  }
  for (int64_t i = 0; whole && i < side->rows_count; i++)
    if (!side->rows[i].seen) return not_there(side, side->rows[i].name, err);
  return TEGULA_OK;
}

/* ---- what the side file says against what the caller says ---- */

static tegula_status differs(const tegula__side_file *side, const char *field, const char *says,
                             const char *asked, tegula_error *err) {
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_MISMATCH, side->path, -1,
                                   "\"%s\" says %s %.240s, but %.240s was asked for", side->path,
                                   field, says, asked),
                      "leave %s out, or correct the side file", field);
}

static tegula_status bytes_agree(const tegula__side_file *side, const char *field, bool has,
                                 int64_t says, int64_t asked, tegula_error *err) {
  if (!has || asked == 0 || says == asked) return TEGULA_OK;
  char one[32], other[32];
  snprintf(one, sizeof one, "%lld", (long long)says);
  snprintf(other, sizeof other, "%lld", (long long)asked);
  return differs(side, field, one, other, err);
}

static const char *order_name(char order) { return order == '<' ? "little" : "big"; }

static tegula_status dtypes_agree(const tegula__side_file *side,
                                  const tegula__describe_options *said, tegula_error *err) {
  char asked_order = said->byte_order != 0 ? said->byte_order
                     : said->has_dtype     ? (char)said->dtype.order
                                           : 0;
  if (side->has_dtype && said->has_dtype && !tegula_dtype_same(side->dtype, said->dtype)) {
    char one[TEGULA_DTYPE_TEXT], other[TEGULA_DTYPE_TEXT];
    tegula_dtype_format(side->dtype, one);
    tegula_dtype_format(said->dtype, other);
    return differs(side, "dtype", one, other, err);
  }
  if (side->byte_order == 0 || asked_order == 0 || asked_order == '|' ||
      side->byte_order == asked_order)
    return TEGULA_OK;
  return differs(side, "byte_order", order_name(side->byte_order), order_name(asked_order), err);
}

/* The shape behind axis 0; the rows are compared when they are known. */
static tegula_status shapes_agree(const tegula__side_file *side,
                                  const tegula__describe_options *said, tegula_error *err) {
  if (said->shape_ndim < 0 && said->row_ndim < 0) return TEGULA_OK;
  if (side->row_ndim < 0 && !side->is_scalar) return TEGULA_OK;
  bool scalar = said->shape_ndim == 0;
  int32_t ndim = scalar ? 0 : said->shape_ndim > 0 ? said->shape_ndim - 1 : said->row_ndim;
  const int64_t *lengths = said->shape_ndim > 0 ? said->shape + 1 : said->row_shape;
  int32_t known = side->is_scalar ? 0 : side->row_ndim;
  bool same = scalar == side->is_scalar && ndim == known &&
              (ndim <= 0 || memcmp(lengths, side->row_shape, (size_t)ndim * sizeof *lengths) == 0);
  if (same) return TEGULA_OK;
  char one[TEGULA__SHAPE_TEXT] = "of a scalar", other[TEGULA__SHAPE_TEXT] = "that of a scalar";
  if (!side->is_scalar) tegula__shape_format(side->row_shape, known, one);
  if (!scalar) tegula__shape_format(lengths, ndim, other);
  return differs(side, side->is_scalar ? "shape" : "row_shape", one, other, err);
}

static tegula_status settings_agree(const tegula__side_file *side,
                                    const tegula__describe_options *said, tegula_error *err) {
  for (int32_t i = 0; i < side->setting_count; i++) {
    const tegula_setting *one = &side->settings[i];
    const char *asked = tegula__settings_find(&said->settings, one->key);
    if (asked != NULL && strcmp(asked, one->value) != 0)
      return differs(side, one->key + strlen("raw."), one->value, asked, err);
  }
  return TEGULA_OK;
}

static tegula_status all_agree(const tegula__side_file *side, const tegula__describe_options *said,
                               tegula_error *err) {
  FORWARD(dtypes_agree(side, said, err));
  FORWARD(shapes_agree(side, said, err));
  FORWARD(bytes_agree(side, "offset", side->has_offset, side->offset, said->offset, err));
  FORWARD(settings_agree(side, said, err));
  FORWARD(bytes_agree(side, "row_gap", side->has_row_gap, side->row_gap, said->row_gap, err));
  if (side->order == 0 || said->order == 0 || side->order == said->order) return TEGULA_OK;
  return differs(side, "order", side->order == 'C' ? "C" : "F", said->order == 'C' ? "C" : "F",
                 err);
}

/* ---- options ---- */

static void complete_shape(const tegula__side_file *side, const char *path, int64_t place,
                           bool alone, int64_t *shape, tegula__describe_options *out) {
  int64_t rows = 0;
  int32_t row_ndim = side->row_ndim > 0 ? side->row_ndim : 0;
  /* the caller's word; the side file agrees */
  if (out->shape_ndim >= 0 || out->row_ndim >= 0) return;
  if (side->is_scalar) {
    out->shape_ndim = 0;
    return;
  }
  bool known = find_rows(side, path, place, &rows);
  if (!known && side->has_length && alone) {
    rows = side->length;
    known = true;
  }
  if (known) {
    shape[0] = rows;
    memcpy(shape + 1, side->row_shape, (size_t)row_ndim * sizeof *shape);
    out->shape = shape;
    out->shape_ndim = row_ndim + 1;
  } else if (side->row_ndim >= 0) {
    out->row_shape = side->row_shape;
    out->row_ndim = side->row_ndim;
  }
}

tegula_status tegula__side_file_options(const tegula__side_file *side,
                                        const tegula__describe_options *said, const char *path,
                                        int64_t place, bool alone, int64_t *shape,
                                        tegula__describe_options *out, tegula_error *err) {
  if (side->unknown.status != TEGULA_OK) { /* perhaps a field that is misspelt */
    if (err != NULL) *err = side->unknown;
    return side->unknown.status;
  }
  FORWARD(all_agree(side, said, err));
  *out = *said;
  if (!said->has_dtype && side->has_dtype) {
    out->has_dtype = true;
    out->dtype = side->dtype;
  }
  if (said->byte_order == 0) out->byte_order = side->byte_order;
  if (said->order == 0) out->order = side->order;
  if (said->offset == 0) out->offset = side->offset;
  if (said->row_gap == 0) out->row_gap = side->row_gap;
  out->besides = (tegula__settings){side->settings, side->setting_count};
  complete_shape(side, path, place, alone, shape, out);
  return TEGULA_OK;
}

/* ---- what was described ---- */

static tegula_status not_as_said(const tegula__side_file *side, const char *path, const char *what,
                                 const char *says, const char *found, tegula_error *err) {
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_MISMATCH, path, -1,
                                   "%s of \"%s\" is %.240s, but \"%s\" says %.240s", what, path,
                                   found, side->path, says),
                      "the file was cut, or the side file is not that of these files");
}

static tegula_status check_dtype(const tegula__side_file *side, const tegula__manifest *shard,
                                 const char *path, tegula_error *err) {
  if (!side->has_dtype || tegula_dtype_same(side->dtype, shard->dtype)) return TEGULA_OK;
  /* npy has no name for it */
  if (side->dtype.kind == 'E' && shard->dtype.kind == 'V' && shard->dtype.item_size == 2)
    return TEGULA_OK;
  char one[TEGULA_DTYPE_TEXT], other[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(side->dtype, one);
  tegula_dtype_format(shard->dtype, other);
  return not_as_said(side, path, "the dtype", one, other, err);
}

static tegula_status check_shape(const tegula__side_file *side, const tegula__manifest *shard,
                                 const char *path, tegula_error *err) {
  if (side->row_ndim < 0 && !side->is_scalar) return TEGULA_OK;
  int32_t ndim = side->is_scalar ? 0 : side->row_ndim + 1;
  bool same =
      shard->ndim == ndim && (ndim < 2 || memcmp(shard->shape + 1, side->row_shape,
                                                 (size_t)(ndim - 1) * sizeof *shard->shape) == 0);
  if (same) return TEGULA_OK;
  char one[TEGULA__SHAPE_TEXT] = "() for the whole", other[TEGULA__SHAPE_TEXT] = "that of a scalar";
  if (!side->is_scalar) tegula__shape_format(side->row_shape, side->row_ndim, one);
  if (shard->ndim > 0) tegula__shape_format(shard->shape + 1, shard->ndim - 1, other);
  return not_as_said(side, path, "the shape behind axis 0", one, other, err);
}

static tegula_status check_rows(const tegula__side_file *side, const tegula__manifest *shard,
                                const char *path, int64_t place, tegula_error *err) {
  int64_t expected = 0;
  if (!find_rows(side, path, place, &expected) || (shard->ndim > 0 && shard->shape[0] == expected))
    return TEGULA_OK;
  char one[32], other[32] = "none (a scalar)";
  snprintf(one, sizeof one, "%lld", (long long)expected);
  if (shard->ndim > 0) snprintf(other, sizeof other, "%lld", (long long)shard->shape[0]);
  return not_as_said(side, path, "the number of rows", one, other, err);
}

/* Rows of all files of the folder: as listed (each file has been compared with the list), else
 * those of the shards, when they are all. */
static int64_t sum_rows(const tegula__side_file *side, const tegula__manifest *shards,
                        int64_t count) {
  bool listed =
      side->rows_kind == TEGULA__SIDE_ROWS_LIST || side->rows_kind == TEGULA__SIDE_ROWS_BY_NAME;
  int64_t total = 0, items = listed ? side->rows_count : count;
  for (int64_t i = 0; i < items; i++) /* more than any length */
    if (!tegula__add(total, listed ? side->rows[i].rows : shards[i].shape[0], &total))
      return INT64_MAX;
  return total;
}

/* The length of axis 0 that `shape` says is that of every file, or that of all together. */
static tegula_status check_length(const tegula__side_file *side, const tegula__manifest *shards,
                                  const tegula__file *files, int64_t count, bool whole,
                                  tegula_error *err) {
  int64_t total = sum_rows(side, shards, count), other = 0;
  if (!side->has_length) return TEGULA_OK;
  while (other < count && shards[other].shape[0] == side->length) other++;
  bool sum_known = whole || side->rows_kind == TEGULA__SIDE_ROWS_LIST ||
                   side->rows_kind == TEGULA__SIDE_ROWS_BY_NAME;
  if (other == count || (sum_known && total == side->length)) return TEGULA_OK;
  char all[64] = "";
  if (sum_known) snprintf(all, sizeof all, " and all files together %lld", (long long)total);
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_MISMATCH, files[other].path, -1,
                   "\"%s\" has %lld rows%s, but \"%s\" says a shape of %lld rows",
                   files[other].path, (long long)shards[other].shape[0], all, side->path,
                   (long long)side->length),
      sum_known
          ? "shape is that of each file or that of the whole array; a file was cut, or one is "
            "missing"
          : "shape is that of each file; where it is that of all together, open the whole folder");
}

tegula_status tegula__side_file_check(const tegula__side_file *side, const tegula__manifest *shards,
                                      const tegula__file *files, const int64_t *places,
                                      int64_t count, bool whole, tegula_error *err) {
  for (int64_t i = 0; i < count; i++) {
    FORWARD(check_dtype(side, &shards[i], files[i].path, err));
    FORWARD(check_shape(side, &shards[i], files[i].path, err));
    FORWARD(check_rows(side, &shards[i], files[i].path, places != NULL ? places[i] : i, err));
  }
  return check_length(side, shards, files, count, whole, err);
}
