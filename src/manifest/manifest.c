/* Building, validating and searching a manifest.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "manifest/manifest.h"

#include <stdlib.h>
#include <string.h>

void tegula__manifest_init(tegula__manifest *manifest) { *manifest = (tegula__manifest){.name = "", .format = ""}; }

void tegula__manifest_free(tegula__manifest *manifest) {
  if (manifest->vectors == NULL) /* not finished: each part owns its vectors */
    for (int64_t i = 0; i < manifest->part_count; i++) free((void *)manifest->parts[i].lo);
  for (int64_t i = 0; i < manifest->file_count; i++) free(manifest->files[i].path);
  if (manifest->reader != NULL) {
    if (manifest->reader->release != NULL) manifest->reader->release(manifest->reader->state);
    free(manifest->reader->name);
    free(manifest->reader);
  }
  free(manifest->vectors);
  free(manifest->parts);
  free(manifest->files);
  free(manifest->descr);
  tegula__manifest_init(manifest);
}

tegula_status tegula__manifest_add(tegula__manifest *manifest, int64_t file, int64_t offset, const int64_t *lo, const int64_t *hi,
                                   const int64_t *strides, uint8_t order, tegula_error *err) {
  size_t axes = (size_t)manifest->ndim, bytes = axes * sizeof(int64_t);
  int64_t *vectors = malloc(3 * bytes + 1);
  if (vectors == NULL || !tegula__vector_reserve((void **)&manifest->parts, &manifest->part_capacity, manifest->part_count + 1,
                                                 sizeof *manifest->parts)) {
    free(vectors);
    return tegula__out_of_memory(err, (int64_t)(3 * bytes));
  }
  memcpy(vectors, lo, bytes);
  memcpy(vectors + axes, hi, bytes);
  memcpy(vectors + 2 * axes, strides, bytes);
  manifest->parts[manifest->part_count++] = (tegula__part){
      .file = file, .offset = offset, .lo = vectors, .hi = vectors + axes, .strides = vectors + 2 * axes, .order = order};
  return TEGULA_OK;
}

static const char *first_path(const tegula__manifest *manifest) { return manifest->file_count > 0 ? manifest->files[0].path : NULL; }

/* Does the part lie within its file? Checked: nothing here is trusted yet. */
static tegula_status check_extent(const tegula__manifest *manifest, const tegula__part *part, tegula_error *err) {
  const tegula__file *file = &manifest->files[part->file];
  int64_t last = 0, end;
  for (int32_t k = 0; k < manifest->ndim; k++) {
    int64_t length = part->hi[k] - part->lo[k], reach;
    if (length == 0) return TEGULA_OK;
    if (part->strides[k] <= 0 || !tegula__mul(length - 1, part->strides[k], &reach) || !tegula__add(last, reach, &last))
      return tegula__fail(err, TEGULA_CORRUPT, file->path, part->offset, "\"%s\": the strides of its data overflow", file->path);
  }
  if (!tegula__add(last, part->offset, &end) || !tegula__add(end, manifest->dtype.item_size, &end))
    return tegula__fail(err, TEGULA_CORRUPT, file->path, -1, "\"%s\": the place of its data overflows", file->path);
  if (end > file->stamp.size)
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_SHORT_FILE, file->path, file->stamp.size,
                                     "\"%s\" is too short: expected %lld bytes, found %lld", file->path, (long long)end,
                                     (long long)file->stamp.size),
                        "the file was cut or is still being written");
  return TEGULA_OK;
}

/* One part: inside the shape, all of the trailing axes, rows that start where the last part's ended. */
static bool part_in_place(const tegula__manifest *manifest, const tegula__part *part, int64_t row) {
  bool file_good = manifest->reader != NULL ? part->file == TEGULA__NO_FILE : part->file >= 0 && part->file < manifest->file_count;
  RETURN_IF(!file_good || part->offset < 0, false);
  for (int32_t k = 0; k < manifest->ndim; k++) {
    RETURN_IF(part->lo[k] < 0 || part->hi[k] < part->lo[k] || part->hi[k] > manifest->shape[k], false);
    RETURN_IF(k == 0 && part->lo[0] != row, false);
    RETURN_IF(k > 0 && (part->lo[k] != 0 || part->hi[k] != manifest->shape[k]), false);
  }
  return true;
}

static tegula_status check_parts(const tegula__manifest *manifest, tegula_error *err) {
  int64_t row = 0;
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    if (!part_in_place(manifest, part, row))
      return tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "part %lld of the manifest is out of place", (long long)i);
    if (manifest->reader == NULL) FORWARD(check_extent(manifest, part, err));
    if (manifest->ndim > 0) row = part->hi[0];
  }
  bool whole = manifest->ndim > 0 ? row == manifest->shape[0] : manifest->part_count == 1;
  return whole ? TEGULA_OK : tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "the parts of the manifest do not cover its shape");
}

/* Moves the vectors of all parts into one block. */
static tegula_status gather_vectors(tegula__manifest *manifest, tegula_error *err) {
  size_t axes = (size_t)manifest->ndim;
  int64_t *block = tegula__realloc_array(NULL, tegula__max(1, manifest->part_count), 3 * axes * sizeof *block + 1);
  if (block == NULL) return tegula__out_of_memory(err, manifest->part_count * (int64_t)(3 * axes * sizeof *block));
  for (int64_t i = 0; i < manifest->part_count; i++) {
    tegula__part *part = &manifest->parts[i];
    int64_t *vectors = block + (size_t)i * 3 * axes;
    memcpy(vectors, part->lo, 3 * axes * sizeof *vectors);
    free((void *)part->lo);
    part->lo = vectors;
    part->hi = vectors + axes;
    part->strides = vectors + 2 * axes;
  }
  manifest->vectors = block;
  return TEGULA_OK;
}

tegula_status tegula__manifest_finish(tegula__manifest *manifest, tegula_error *err) {
  int64_t bytes;
  if (manifest->ndim < 0 || manifest->ndim > TEGULA_MAX_DIMS || !tegula__dtype_valid(manifest->dtype))
    return tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "the manifest has no valid dtype or number of axes");
  if (!tegula__shape_bytes(manifest->shape, manifest->ndim, manifest->dtype.item_size, &bytes)) {
    char text[TEGULA__SHAPE_TEXT];
    tegula__shape_format(manifest->shape, manifest->ndim, text);
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, first_path(manifest), -1,
                        "an array of shape %s is larger than 2^63 bytes", text);
  }
  FORWARD(check_parts(manifest, err));
  return gather_vectors(manifest, err);
}

void tegula__manifest_find(const tegula__manifest *manifest, int64_t lo, int64_t hi, int64_t *first, int64_t *last) {
  *first = 0;
  *last = manifest->part_count;
  if (manifest->ndim == 0) return;
  int64_t low = 0, high = manifest->part_count;
  while (low < high) { /* the first part that ends behind lo */
    int64_t middle = low + (high - low) / 2;
    if (manifest->parts[middle].hi[0] <= lo)
      low = middle + 1;
    else
      high = middle;
  }
  *first = low;
  high = manifest->part_count;
  while (low < high) { /* the first part that starts at hi or later */
    int64_t middle = low + (high - low) / 2;
    if (manifest->parts[middle].lo[0] < hi)
      low = middle + 1;
    else
      high = middle;
  }
  *last = low;
}
