/* The public face of tilings.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/api.h"

static tegula_status check_shape(const int64_t *shape, int32_t ndim, tegula_tiling **out,
                                 tegula_error *err) {
  CHECK_ARGUMENT(out != NULL, "the place for the tiling is NULL");
  CHECK_ARGUMENT(ndim == 0 || shape != NULL, "the shape is NULL");
  return TEGULA_OK;
}

tegula_status tegula_tiling_even(const int64_t *shape, int32_t ndim, int32_t axis, int64_t tiles,
                                 int32_t ranks, tegula_tiling **out, tegula_error *err) {
  FORWARD(check_shape(shape, ndim, out, err));
  return tegula__tiling_even(shape, ndim, axis, tiles, ranks, out, err);
}

tegula_status tegula_tiling_grid(const int64_t *shape, const int64_t *tile, int32_t ndim,
                                 int32_t ranks, tegula_tiling **out, tegula_error *err) {
  FORWARD(check_shape(shape, ndim, out, err));
  CHECK_ARGUMENT(ndim == 0 || tile != NULL, "the shape of a tile is NULL");
  return tegula__tiling_grid(shape, tile, ndim, ranks, out, err);
}

tegula_status tegula_tiling_custom(const int64_t *shape, int32_t ndim, const tegula_box *boxes,
                                   const int32_t *owners, int64_t count, int32_t ranks,
                                   tegula_tiling **out, tegula_error *err) {
  FORWARD(check_shape(shape, ndim, out, err));
  CHECK_ARGUMENT(boxes != NULL, "the boxes are NULL");
  return tegula__tiling_custom(shape, ndim, boxes, owners, count, ranks, out, err);
}

tegula_status tegula_tiling_from_dataset(const tegula_dataset *dataset, int64_t tiles,
                                         int32_t ranks, tegula_tiling **out, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && out != NULL, "the dataset or the place for the tiling is NULL");
  FORWARD(tegula__dataset_confirm(dataset, NULL, err));
  const tegula__manifest *manifest = &dataset->manifest;
  int64_t *rows = tegula__realloc_array(NULL, manifest->part_count + 1, sizeof *rows);
  if (rows == NULL) return tegula__out_of_memory(err, manifest->part_count * (int64_t)sizeof *rows);
  rows[0] = 0;
  int64_t count = manifest->part_count;
  for (int64_t i = 0; i < count; i++) {
    rows[i + 1] = manifest->ndim > 0 ? manifest->parts[i].hi[0] : 1;
    /* files side by side: no rows are a file's alone */
    if (manifest->ndim > 0 && manifest->parts[i].lo[0] != rows[i]) count = 0;
  }
  if (count == 0 && manifest->part_count > 0) rows[count = 1] = manifest->shape[0];
  tegula_status status = tegula__tiling_from_rows(manifest->shape, manifest->ndim, rows, count,
                                                  tiles, ranks, out, err);
  free(rows);
  return status;
}

void tegula_tiling_destroy(tegula_tiling *tiling) { tegula__tiling_release(tiling); }

int64_t tegula_tiling_count(const tegula_tiling *tiling) { return tiling->count; }

tegula_status tegula_tiling_tile(const tegula_tiling *tiling, int64_t index, tegula_box *box,
                                 int32_t *rank, tegula_error *err) {
  CHECK_ARGUMENT(tiling != NULL && box != NULL, "the tiling or the place for the box is NULL");
  if (index < 0 || index >= tiling->count)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "tile %lld was asked for, the tiling has %lld", (long long)index,
                        (long long)tiling->count);
  box->ndim = tiling->ndim;
  tegula__tiling_box(tiling, index, box->lo, box->hi);
  if (rank != NULL) *rank = tegula__tiling_owner(tiling, index);
  return TEGULA_OK;
}
