/* Validating and finishing a manifest.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "manifest/manifest_priv.h"

#include "base/frame.h"

#include <stdlib.h>
#include <string.h>

static const char *first_path(const tegula__manifest *manifest) {
  return manifest->file_count > 0 ? manifest->files[0].path : NULL;
}

/* ---- a dense part ---- */

static tegula_status too_short(const tegula__file *file, int64_t expected, tegula_error *err) {
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_SHORT_FILE, file->path, file->stamp.size,
                                   "\"%s\" is too short: expected %lld bytes, found %lld",
                                   file->path, (long long)expected, (long long)file->stamp.size),
                      "the file was cut or is still being written");
}

/* Does the part lie within its file? Checked: nothing here is trusted yet. */
static tegula_status check_extent(const tegula__manifest *manifest, const tegula__part *part,
                                  tegula_error *err) {
  const tegula__file *file = &manifest->files[part->file];
  int64_t last = 0, end;
  for (int32_t k = 0; k < manifest->ndim; k++) {
    int64_t length = part->hi[k] - part->lo[k], reach;
    if (length == 0) return TEGULA_OK;
    if (part->strides[k] <= 0 || !tegula__mul(length - 1, part->strides[k], &reach) ||
        !tegula__add(last, reach, &last))
      return tegula__fail(err, TEGULA_CORRUPT, file->path, part->offset,
                          "\"%s\": the strides of its data overflow", file->path);
  }
  if (file->frame.record > 0 && part->offset < file->frame.first)
    return tegula__fail(err, TEGULA_CORRUPT, file->path, part->offset,
                        "\"%s\": its data begins at byte %lld, its records at %lld", file->path,
                        (long long)part->offset, (long long)file->frame.first);
  if (!tegula__add(last, part->offset, &end) || !tegula__add(end, manifest->dtype.item_size, &end))
    return tegula__fail(err, TEGULA_CORRUPT, file->path, -1,
                        "\"%s\": the place of its data overflows", file->path);
  if (end <= tegula__frame_end(&file->frame, file->stamp.size)) return TEGULA_OK;
  /* of records, the marker behind the last byte is the least that is missing */
  int64_t behind = tegula__frame_place(&file->frame, end - 1) + 1 + file->frame.marker;
  return too_short(file, file->frame.record > 0 ? behind : end, err);
}

/* ---- a chunked part ---- */

/* Can elements be counted along the axis, and chunks, without overflow? */
static bool axis_in_place(const tegula__part *part, int32_t k) {
  int64_t step = tegula__part_step(part, k), behind;
  return part->start[k] >= 0 && part->chunk[k] >= 1 && step >= 1 &&
         tegula__mul(part->hi[k] - part->lo[k], step, &behind) &&
         tegula__add(part->start[k], behind, &behind);
}

const char *tegula__part_chunk_problem(const tegula__manifest *manifest, const tegula__part *part) {
  static const char slots[] = "its slots lie outside of those of its grid",
                    inside[] = "its elements lie outside of a decoded chunk";
  const tegula__grid *grid = part->grid;
  int64_t slot = part->slot_base, byte = part->offset, some, last;
  if (slot < 0) return slots;
  if (byte < 0) return inside;
  for (int32_t k = 0; k < manifest->ndim; k++) /* also where it is empty: nobody divides by 0 */
    if (part->chunk[k] < 1) return "a chunk has a length below 1";
  for (int32_t k = 0; k < manifest->ndim; k++) {
    int64_t length = part->hi[k] - part->lo[k];
    RETURN_IF(length == 0, NULL);
    if (!axis_in_place(part, k)) return "its start is negative or too large";
    if (part->strides[k] < 0 || part->slot_strides[k] < 0) return "a stride is negative";
    if (length > 1 && part->strides[k] == 0 && part->chunk[k] > 1)
      return "the elements of a chunk share a place";
    int64_t step = tegula__part_step(part, k);
    if (part->strides[k] % step != 0) return "a stride is no multiple of its step";
    last = part->start[k] + (length - 1) * step;
    if (!tegula__mul(last / part->chunk[k], part->slot_strides[k], &some) ||
        !tegula__add(slot, some, &slot))
      return slots;
    if (!tegula__mul(tegula__min(last, part->chunk[k] - 1), part->strides[k] / step, &some) ||
        !tegula__add(byte, some, &byte))
      return inside;
  }
  if (slot >= grid->slots) return slots;
  return tegula__add(byte, manifest->dtype.item_size, &byte) && byte <= grid->chunk_bytes ? NULL
                                                                                          : inside;
}

static tegula_status check_chunk(const tegula__grid *grid, const tegula__chunk *chunk,
                                 const tegula__file *file, tegula_error *err) {
  int64_t offset = (int64_t)chunk->offset, end;
  if (offset < 0 || !tegula__add(offset, chunk->length, &end))
    return tegula__fail(err, TEGULA_CORRUPT, file->path, -1,
                        "\"%s\": the place of a chunk overflows", file->path);
  if (end > file->stamp.size) return too_short(file, end, err);
  if (tegula__chunk_plain(grid, chunk) && chunk->length != grid->chunk_bytes)
    return tegula__fail(err, TEGULA_CORRUPT, file->path, offset,
                        "\"%s\": an unfiltered chunk has %lld bytes, expected %lld", file->path,
                        (long long)chunk->length, (long long)grid->chunk_bytes);
  return TEGULA_OK;
}

static tegula_status check_grid(const tegula__manifest *manifest, const tegula__grid *grid,
                                tegula_error *err) {
  bool good = grid->file >= 0 && grid->file < manifest->file_count && grid->chunk_bytes > 0 &&
              grid->filter_count >= 0 && grid->filter_count <= TEGULA__CHAIN_MAX &&
              grid->slots >= 0 && grid->count >= 0 &&
              (grid->coordinates != NULL || grid->count == grid->slots);
  for (int64_t i = 0; good && grid->coordinates != NULL && i < grid->count; i++)
    good = grid->coordinates[i] < (uint64_t)grid->slots &&
           (i == 0 || grid->coordinates[i - 1] < grid->coordinates[i]);
  if (!good)
    return tegula__fail(err, TEGULA_INTERNAL, first_path(manifest), -1,
                        "a table of chunks is out of order");
  for (int64_t i = 0; i < grid->count; i++)
    if (grid->chunks[i].length != 0)
      FORWARD(check_chunk(grid, &grid->chunks[i], &manifest->files[grid->file], err));
  return TEGULA_OK;
}

/* ---- all parts ---- */

/* A part without bytes in a file: its strides, by which it is cut, and a reader's chunks. */
static bool free_in_place(const tegula__manifest *manifest, const tegula__part *part) {
  int64_t last = manifest->dtype.item_size, reach;
  RETURN_IF(part->file != TEGULA__NO_FILE || part->grid != NULL, false);
  for (int32_t k = 0; k < manifest->ndim; k++) {
    int64_t length = part->hi[k] - part->lo[k];
    RETURN_IF(part->chunk != NULL && !axis_in_place(part, k), false);
    RETURN_IF(length == 0, true);
    RETURN_IF(part->strides[k] <= 0 || !tegula__mul(length - 1, part->strides[k], &reach) ||
                  !tegula__add(last, reach, &last),
              false);
  }
  return true;
}

/* As stored: needed where bytes have an order. */
static bool order_in_place(const tegula__manifest *manifest, const tegula__part *part) {
  RETURN_IF(tegula__dtype_swap_size(manifest->dtype) <= 1, true);
  bool stored = part->kind == TEGULA__PART_DENSE || part->kind == TEGULA__PART_CHUNKED;
  return part->order == manifest->dtype.order ||
         (stored && (part->order == '<' || part->order == '>'));
}

static bool kind_in_place(const tegula__manifest *manifest, const tegula__part *part) {
  switch (part->kind) {
    case TEGULA__PART_DENSE:
      return part->file >= 0 && part->file < manifest->file_count && part->offset >= 0 &&
             part->grid == NULL && part->chunk == NULL;
    case TEGULA__PART_CHUNKED:
      return part->grid != NULL && part->chunk != NULL && part->order == part->grid->order &&
             tegula__part_chunk_problem(manifest, part) == NULL;
    case TEGULA__PART_FILL:
      return part->chunk == NULL && free_in_place(manifest, part);
    case TEGULA__PART_LOST:
      return part->lost != NULL && part->lost->status != TEGULA_OK && part->chunk == NULL &&
             free_in_place(manifest, part);
    case TEGULA__PART_READ:
      return part->reader != NULL && free_in_place(manifest, part);
    case TEGULA__PART_LATE:
      return part->late != NULL && part->late->file >= 0 &&
             part->late->file < manifest->file_count && part->chunk == NULL &&
             free_in_place(manifest, part);
  }
  return false;
}

static tegula_status check_part(const tegula__manifest *manifest, int64_t index,
                                tegula_error *err) {
  const tegula__part *part = &manifest->parts[index];
  bool good = true;
  for (int32_t k = 0; good && k < manifest->ndim; k++)
    good = part->lo[k] >= 0 && part->hi[k] >= part->lo[k] && part->hi[k] <= manifest->shape[k];
  good = good && order_in_place(manifest, part) && kind_in_place(manifest, part) &&
         (part->texts == NULL || tegula__texts_valid(part->texts, manifest->dtype.item_size));
  if (!good)
    return tegula__fail(err, TEGULA_INTERNAL, first_path(manifest), -1,
                        "part %lld of the manifest is out of place", (long long)index);
  return part->kind == TEGULA__PART_DENSE ? check_extent(manifest, part, err) : TEGULA_OK;
}

static int compare_along(const void *a, const void *b, void *axis) {
  const tegula__part *p = *(tegula__part *const *)a, *q = *(tegula__part *const *)b;
  int32_t k = *(int32_t *)axis;
  return (p->lo[k] > q->lo[k]) - (p->lo[k] < q->lo[k]);
}

/* The axis along which parts are the shortest: where a sweep meets the fewest pairs. */
static int32_t shortest_axis(const tegula__manifest *manifest) {
  int32_t best = 0;
  double least = 0;
  for (int32_t k = 0; k < manifest->ndim; k++) {
    double sum = 0;
    for (int64_t i = 0; i < manifest->part_count; i++)
      sum += (double)(manifest->parts[i].hi[k] - manifest->parts[i].lo[k]) /
             (double)tegula__max(1, manifest->shape[k]);
    if (k > 0 && sum >= least) continue;
    best = k;
    least = sum;
  }
  return best;
}

/* The first two of the sorted parts that meet. */
static bool two_meet(const tegula__manifest *manifest, const tegula__part **sorted, int32_t axis,
                     tegula__cover *out) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  for (int64_t i = 0; i < manifest->part_count; i++)
    for (int64_t j = i + 1; j < manifest->part_count && sorted[j]->lo[axis] < sorted[i]->hi[axis];
         j++)
      if (tegula__box_intersect(manifest->ndim, sorted[i]->lo, sorted[i]->hi, sorted[j]->lo,
                                sorted[j]->hi, lo, hi)) {
        out->one = tegula__min(sorted[i] - manifest->parts, sorted[j] - manifest->parts);
        out->two = tegula__max(sorted[i] - manifest->parts, sorted[j] - manifest->parts);
        return true;
      }
  return false;
}

/* Disjoint parts whose sizes add up to the whole cover it. */
tegula_status tegula__parts_share(const tegula__manifest *manifest, int64_t wanted,
                                  tegula__cover *out, tegula_error *err) {
  int64_t total = 0;
  int32_t ndim = manifest->ndim;
  *out = (tegula__cover){.one = -1, .two = -1};
  for (int64_t i = 0; i < manifest->part_count; i++)
    if (!tegula__add(total, tegula__box_count(ndim, manifest->parts[i].lo, manifest->parts[i].hi),
                     &total))
      return TEGULA_OK;
  out->good = total == wanted;
  if (!out->good || ndim == 0 || wanted == 0) return TEGULA_OK;
  const tegula__part **sorted =
      tegula__realloc_array(NULL, tegula__max(1, manifest->part_count), sizeof *sorted);
  if (sorted == NULL)
    return tegula__out_of_memory(err, manifest->part_count * (int64_t)sizeof *sorted);
  int32_t axis = shortest_axis(manifest);
  for (int64_t i = 0; i < manifest->part_count; i++) sorted[i] = &manifest->parts[i];
  qsort_r(sorted, (size_t)manifest->part_count, sizeof *sorted, compare_along, &axis);
  out->good = !two_meet(manifest, sorted, axis, out);
  free(sorted);
  return TEGULA_OK;
}

tegula_status tegula__parts_cover(const tegula__manifest *manifest, tegula__cover *out,
                                  tegula_error *err) {
  int64_t wanted = 1;
  for (int32_t k = 0; k < manifest->ndim; k++) wanted *= manifest->shape[k];
  return tegula__parts_share(manifest, wanted, out, err);
}

bool tegula__parts_follow(const tegula__manifest *manifest) {
  int64_t row = 0;
  RETURN_IF(manifest->ndim == 0, manifest->part_count == 1);
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    RETURN_IF(part->lo[0] != row, false);
    for (int32_t k = 1; k < manifest->ndim; k++)
      RETURN_IF(part->lo[k] != 0 || part->hi[k] != manifest->shape[k], false);
    row = part->hi[0];
  }
  return row == manifest->shape[0];
}

static int compare_rows(const void *a, const void *b, void *state) {
  const tegula__part *p = a, *q = b;
  int32_t ndim = *(int32_t *)state;
  for (int32_t k = 0; k < ndim; k++)
    if (p->lo[k] != q->lo[k]) return p->lo[k] < q->lo[k] ? -1 : 1;
  return 0;
}

void tegula__manifest_sort(tegula__manifest *manifest) {
  bool sorted = true;
  for (int64_t i = 1; sorted && i < manifest->part_count; i++)
    sorted = compare_rows(&manifest->parts[i - 1], &manifest->parts[i], &manifest->ndim) <= 0;
  if (!sorted)
    qsort_r(manifest->parts, (size_t)manifest->part_count, sizeof *manifest->parts, compare_rows,
            &manifest->ndim);
}

static tegula_status check_each(const tegula__manifest *manifest, tegula_error *err) {
  for (int64_t i = 0; i < manifest->grid_count; i++)
    FORWARD(check_grid(manifest, manifest->grids[i], err));
  for (int64_t i = 0; i < manifest->part_count; i++) FORWARD(check_part(manifest, i, err));
  return TEGULA_OK;
}

static tegula_status check_parts(tegula__manifest *manifest, tegula_error *err) {
  FORWARD(check_each(manifest, err));
  if (tegula__parts_follow(manifest)) return TEGULA_OK;
  tegula__cover cover;
  FORWARD(tegula__parts_cover(manifest, &cover, err));
  if (!cover.good)
    return tegula__fail(err, TEGULA_INTERNAL, first_path(manifest), -1,
                        "the parts of the manifest overlap or do not cover its shape");
  tegula__manifest_sort(manifest);
  return TEGULA_OK;
}

tegula_status tegula__manifest_reach(tegula__manifest *manifest, tegula_error *err) {
  int64_t reach = 0;
  manifest->reach =
      tegula__realloc_array(NULL, tegula__max(1, manifest->part_count), sizeof *manifest->reach);
  if (manifest->reach == NULL)
    return tegula__out_of_memory(err, manifest->part_count * (int64_t)sizeof *manifest->reach);
  for (int64_t i = 0; i < manifest->part_count; i++) {
    if (manifest->ndim > 0) reach = tegula__max(reach, manifest->parts[i].hi[0]);
    manifest->reach[i] = reach;
  }
  return TEGULA_OK;
}

/* Moves the vectors of all parts into one block. */
static tegula_status gather_vectors(tegula__manifest *manifest, tegula_error *err) {
  size_t axes = (size_t)manifest->ndim;
  int64_t count = 0, used = 0;
  for (int64_t i = 0; i < manifest->part_count; i++)
    count += tegula__part_vectors(&manifest->parts[i]);
  int64_t *block = tegula__realloc_array(NULL, tegula__max(1, count), axes * sizeof *block + 1);
  if (block == NULL) return tegula__out_of_memory(err, count * (int64_t)(axes * sizeof *block));
  for (int64_t i = 0; i < manifest->part_count; i++) {
    tegula__part *part = &manifest->parts[i];
    int64_t *vectors = block + (size_t)used * axes, own = tegula__part_vectors(part);
    memcpy(vectors, part->lo, (size_t)own * axes * sizeof *vectors);
    free((void *)part->lo);
    tegula__part_point(part, vectors, manifest->ndim);
    used += own;
  }
  manifest->vectors = block;
  return tegula__manifest_reach(manifest, err);
}

tegula_status tegula__manifest_finish(tegula__manifest *manifest, tegula_error *err) {
  int64_t bytes;
  bool good = manifest->ndim >= 0 && manifest->ndim <= TEGULA_MAX_DIMS &&
              tegula__dtype_valid(manifest->dtype);
  for (int32_t k = 0; good && k < manifest->ndim; k++) good = manifest->shape[k] >= 0;
  if (!good)
    return tegula__fail(err, TEGULA_INTERNAL, first_path(manifest), -1,
                        "the manifest has no valid dtype, number of axes or shape");
  if (!tegula__shape_bytes(manifest->shape, manifest->ndim, manifest->dtype.item_size, &bytes)) {
    char text[TEGULA__SHAPE_TEXT];
    tegula__shape_format(manifest->shape, manifest->ndim, text);
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, first_path(manifest), -1,
                        "an array of shape %s is larger than 2^63 bytes", text);
  }
  FORWARD(check_parts(manifest, err));
  for (int64_t i = 0; i < manifest->late_count; i++) manifest->lates[i]->elements = 0;
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    if (part->kind == TEGULA__PART_LATE)
      part->late->elements += tegula__box_count(manifest->ndim, part->lo, part->hi);
  }
  return gather_vectors(manifest, err);
}

/* Does the part lie in one of the late's boxes in the finished manifest `whole`? */
static bool late_holds(const tegula__manifest *whole, const tegula__late *late,
                       const tegula__part *part) {
  int64_t first, last;
  int32_t ndim = whole->ndim;
  if (tegula__box_count(ndim, part->lo, part->hi) == 0) return true;
  tegula__manifest_find(whole, ndim > 0 ? part->lo[0] : 0, ndim > 0 ? part->hi[0] : 1, &first,
                        &last);
  for (int64_t i = first; i < last; i++) {
    const tegula__part *box = &whole->parts[i];
    bool inside = box->late == late;
    for (int32_t k = 0; inside && k < ndim; k++)
      inside = box->lo[k] <= part->lo[k] && part->hi[k] <= box->hi[k];
    if (inside) return true;
  }
  return false;
}

tegula_status tegula__manifest_finish_late(tegula__manifest *manifest,
                                           const tegula__manifest *whole, const tegula__late *late,
                                           tegula_error *err) {
  FORWARD(check_each(manifest, err));
  tegula__cover cover;
  FORWARD(tegula__parts_share(manifest, late->elements, &cover, err));
  for (int64_t i = 0; cover.good && i < manifest->part_count; i++)
    cover.good = late_holds(whole, late, &manifest->parts[i]);
  if (!cover.good)
    return tegula__fail(err, TEGULA_INTERNAL, late->path, -1,
                        "the parts that \"%s\" gave are not the boxes that were asked for",
                        late->path);
  tegula__manifest_sort(manifest);
  return gather_vectors(manifest, err);
}
