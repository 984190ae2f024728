/* The one place where shards become one array: joined along axis 0.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest.h"

enum { LABEL_TEXT = 480 };

static const char *path_of(const tegula__manifest *shard) {
  return shard->file_count > 0 ? shard->files[0].path : "";
}

/* What a shard is called, in quotes: by its file, or by its dataset where the shards are of one
 * file. */
static const char *label(const tegula__manifest *first, const tegula__manifest *shard,
                         char out[LABEL_TEXT]) {
  bool datasets =
      first->name != NULL && shard->name != NULL && strcmp(path_of(first), path_of(shard)) == 0;
  if (datasets)
    snprintf(out, LABEL_TEXT, "\"%.200s\" in \"%.240s\"", shard->name, path_of(shard));
  else
    snprintf(out, LABEL_TEXT, "\"%.440s\"", path_of(shard));
  return out;
}

static tegula_status mismatch(const tegula__manifest *first, const tegula__manifest *other,
                              const char *what, const char *expected, const char *found,
                              tegula_error *err) {
  char one[LABEL_TEXT], two[LABEL_TEXT];
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_MISMATCH, path_of(other), -1,
                   "%s of %s is %.240s, but %s has %.240s", what, label(first, other, two), found,
                   label(other, first, one), expected),
      "all shards of one array need the same dtype and the same shape behind axis 0");
}

static tegula_status check_dtype(const tegula__manifest *first, const tegula__manifest *other,
                                 tegula_error *err) {
  if (!tegula_dtype_same(first->dtype, other->dtype)) {
    char expected[TEGULA_DTYPE_TEXT], found[TEGULA_DTYPE_TEXT];
    tegula_dtype_format(first->dtype, expected);
    tegula_dtype_format(other->dtype, found);
    return mismatch(first, other, "the dtype", expected, found, err);
  }
  const char *expected = first->descr != NULL ? first->descr : "none",
             *found = other->descr != NULL ? other->descr : "none";
  return strcmp(expected, found) == 0
             ? TEGULA_OK
             : mismatch(first, other, "the record description", expected, found, err);
}

static tegula_status check_shard(const tegula__manifest *first, const tegula__manifest *other,
                                 tegula_error *err) {
  char text[LABEL_TEXT];
  if (other->ndim == 0)
    return tegula__hint(
        err,
        tegula__fail(err, TEGULA_MISMATCH, path_of(other), -1,
                     "%s holds a scalar (shape ()), which has no rows and cannot be a shard",
                     label(first, other, text)),
        "load it alone, or leave it out of the list");
  FORWARD(check_dtype(first, other, err));
  bool same = first->ndim == other->ndim;
  for (int32_t k = 1; same && k < first->ndim; k++) same = first->shape[k] == other->shape[k];
  if (same) return TEGULA_OK;
  char expected[TEGULA__SHAPE_TEXT], found[TEGULA__SHAPE_TEXT];
  tegula__shape_format(first->shape + 1, first->ndim - 1, expected);
  tegula__shape_format(other->shape + 1, other->ndim - 1, found);
  return mismatch(first, other, "the shape behind axis 0", expected, found, err);
}

/* Numbers of files that are not the shard's would be those of another one behind it. */
static tegula_status check_file_numbers(const tegula__manifest *shard, tegula_error *err) {
  bool good = true;
  for (int64_t i = 0; i < shard->part_count; i++)
    good =
        good && shard->parts[i].file >= TEGULA__NO_FILE && shard->parts[i].file < shard->file_count;
  for (int64_t i = 0; i < shard->grid_count; i++)
    good = good && shard->grids[i]->file >= 0 && shard->grids[i]->file < shard->file_count;
  for (int64_t i = 0; i < shard->late_count; i++)
    good = good && shard->lates[i]->file >= 0 && shard->lates[i]->file < shard->file_count;
  if (good) return TEGULA_OK;
  return tegula__fail(err, TEGULA_INTERNAL, path_of(shard), -1,
                      "the manifest of \"%s\" speaks of a file that it does not have",
                      path_of(shard));
}

/* Moves the parts and files of a shard behind those of `out`; its rows start at `row`. */
static void move_shard(tegula__manifest *shard, tegula__manifest *out, int64_t row) {
  for (int64_t i = 0; i < shard->part_count; i++) {
    tegula__part part = shard->parts[i];
    int64_t *lo = (int64_t *)part.lo; /* the shard owns it until now, out from here on */
    lo[0] += row;
    lo[shard->ndim] += row;
    if (part.file >= 0) part.file += out->file_count;
    out->parts[out->part_count++] = part;
  }
  for (int64_t i = 0; i < shard->grid_count; i++) {
    shard->grids[i]->file += out->file_count;
    out->grids[out->grid_count++] = shard->grids[i];
  }
  for (int64_t i = 0; i < shard->reader_count; i++) {
    shard->readers[i]->row += row;
    out->readers[out->reader_count++] = shard->readers[i];
  }
  for (int64_t i = 0; i < shard->late_count; i++) {
    tegula__late *late = shard->lates[i];
    late->row += row;
    late->file += out->file_count;
    late->number = out->late_count;
    out->lates[out->late_count++] = late;
  }
  for (int64_t i = 0; i < shard->kept_count; i++) out->kept[out->kept_count++] = shard->kept[i];
  for (int64_t i = 0; i < shard->file_count; i++) out->files[out->file_count++] = shard->files[i];
  shard->part_count = shard->file_count = shard->grid_count = shard->reader_count =
      shard->late_count = shard->kept_count = 0;
}

/* Room for all that the shards hold together. */
static bool make_room(const tegula__manifest *shards, int64_t count, tegula__manifest *out) {
  int64_t parts = 0, files = 0, grids = 0, readers = 0, lates = 0, kept = 0;
  for (int64_t i = 0; i < count; i++) {
    parts += shards[i].part_count;
    files += shards[i].file_count;
    grids += shards[i].grid_count;
    readers += shards[i].reader_count;
    lates += shards[i].late_count;
    kept += shards[i].kept_count;
  }
  out->files = tegula__realloc_array(NULL, tegula__max(1, files), sizeof *out->files);
  return out->files != NULL &&
         tegula__vector_reserve((void **)&out->parts, &out->part_capacity, parts,
                                sizeof *out->parts) &&
         tegula__vector_reserve((void **)&out->grids, &out->grid_capacity, grids, sizeof(void *)) &&
         tegula__vector_reserve((void **)&out->readers, &out->reader_capacity, readers,
                                sizeof(void *)) &&
         tegula__vector_reserve((void **)&out->lates, &out->late_capacity, lates, sizeof(void *)) &&
         tegula__vector_reserve((void **)&out->kept, &out->kept_capacity, kept, sizeof *out->kept);
}

tegula_status tegula__manifest_join(tegula__manifest *shards, int64_t count, tegula__manifest *out,
                                    tegula_error *err) {
  if (count == 1) {
    *out = shards[0];
    tegula__manifest_init(&shards[0]);
    return TEGULA_OK;
  }
  int64_t rows = 0;
  for (int64_t i = 0; i < count; i++) {
    FORWARD(check_shard(&shards[0], &shards[i], err));
    FORWARD(check_file_numbers(&shards[i], err));
    if (!tegula__add(rows, shards[i].shape[0], &rows))
      return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, path_of(&shards[i]), -1,
                          "up to \"%s\" the shards have more than 2^63 rows", path_of(&shards[i]));
  }
  tegula__manifest joined;
  tegula__manifest_init(&joined);
  if (!make_room(shards, count, &joined)) {
    tegula__manifest_free(&joined);
    return tegula__out_of_memory(err, count * (int64_t)sizeof *shards);
  }
  joined.dtype = shards[0].dtype;
  joined.ndim = shards[0].ndim;
  for (int32_t k = 0; k < joined.ndim; k++) joined.shape[k] = shards[0].shape[k];
  joined.format = shards[0].format;
  joined.fill = shards[0].fill; /* kept: moved with the shard */
  joined.name = shards[0].name; /* static, or kept: moved with the shard */
  joined.descr = shards[0].descr;
  shards[0].descr = NULL;
  joined.refused = shards[0].refused;
  shards[0].refused = NULL;
  int64_t row = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t length = shards[i].shape[0];
    move_shard(&shards[i], &joined, row);
    tegula__manifest_free(&shards[i]);
    row += length;
  }
  joined.shape[0] = rows;
  *out = joined;
  return TEGULA_OK;
}
