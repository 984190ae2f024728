/* Tilings: even cuts, grids, whole files per tile, any boxes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Even: n = 10 elements in 4 tiles: t = ceil(10 / 4) = 3, so 3 + 3 + 3 + 1. n = 9 in 4: t = 3, so 3
 * tiles: fewer than asked, none empty. */
#include <stdlib.h>
#include <string.h>

#include "array/array.h"

static tegula_status new_tiling(const int64_t *shape, int32_t ndim, int32_t ranks,
                                tegula_tiling **out, tegula_error *err) {
  if (ndim < 0 || ndim > TEGULA_MAX_DIMS)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "a tiling has 0 to %d axes, not %d",
                        TEGULA_MAX_DIMS, ndim);
  if (ranks < 1)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "the number of ranks is %d, it must be 1 or more", ranks);
  int64_t elements;
  for (int32_t k = 0; k < ndim; k++)
    if (shape[k] < 0)
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                          "axis %d has the negative length %lld", k, (long long)shape[k]);
  if (!tegula__shape_count(shape, ndim, &elements))
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "the shape has more than 2^63 elements");
  tegula_tiling *tiling = calloc(1, sizeof *tiling);
  if (tiling == NULL) return tegula__out_of_memory(err, sizeof *tiling);
  atomic_init(&tiling->references, 1);
  tiling->ndim = ndim;
  tiling->ranks = ranks;
  for (int32_t k = 0; k < ndim; k++) tiling->shape[k] = shape[k];
  *out = tiling;
  return TEGULA_OK;
}

tegula_tiling *tegula__tiling_retain(const tegula_tiling *tiling) {
  tegula_tiling *shared = (tegula_tiling *)tiling; /* only the count changes */
  atomic_fetch_add(&shared->references, 1);
  return shared;
}

void tegula__tiling_release(tegula_tiling *tiling) {
  if (tiling == NULL || atomic_fetch_sub(&tiling->references, 1) != 1) return;
  free(tiling->boxes);
  free(tiling->owners);
  free(tiling);
}

tegula_status tegula__tiling_grid(const int64_t *shape, const int64_t *tile, int32_t ndim,
                                  int32_t ranks, tegula_tiling **out, tegula_error *err) {
  tegula_tiling *tiling;
  int64_t elements;
  FORWARD(new_tiling(shape, ndim, ranks, &tiling, err));
  tegula__shape_count(shape, ndim, &elements); /* new_tiling has checked it */
  tiling->count = 1;
  for (int32_t k = 0; k < ndim; k++) {
    if (tile[k] < 1) {
      tegula__tiling_release(tiling);
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                          "a tile has length %lld along axis %d, it must be 1 or more",
                          (long long)tile[k], k);
    }
    /* an array without elements is one tile */
    tiling->tile[k] = elements > 0 ? tile[k] : tegula__max(1, shape[k]);
    tiling->counts[k] = tegula__max(1, tegula__ceil_div(shape[k], tiling->tile[k]));
    tiling->count *= tiling->counts[k]; /* no more than there are elements */
  }
  *out = tiling;
  return TEGULA_OK;
}

tegula_status tegula__tiling_even(const int64_t *shape, int32_t ndim, int32_t axis, int64_t tiles,
                                  int32_t ranks, tegula_tiling **out, tegula_error *err) {
  if (tiles < 1)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "%lld tiles were asked for, it must be 1 or more", (long long)tiles);
  int64_t tile[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < ndim && k < TEGULA_MAX_DIMS; k++) tile[k] = tegula__max(1, shape[k]);
  if (ndim > 0 && ndim <= TEGULA_MAX_DIMS) {
    if (axis < 0 || axis >= ndim)
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                          "axis %d was asked for, but the array has %d axes", axis, ndim);
    if (shape[axis] > 0) tile[axis] = tegula__ceil_div(shape[axis], tiles);
  }
  return tegula__tiling_grid(shape, tile, ndim, ranks, out, err);
}

void tegula__tiling_box(const tegula_tiling *tiling, int64_t index, int64_t *lo, int64_t *hi) {
  int32_t ndim = tiling->ndim;
  if (tiling->boxes != NULL) {
    memcpy(lo, tiling->boxes + index * 2 * ndim, (size_t)ndim * sizeof *lo);
    memcpy(hi, tiling->boxes + index * 2 * ndim + ndim, (size_t)ndim * sizeof *hi);
    return;
  }
  for (int32_t k = ndim - 1; k >= 0; k--) { /* C order: the last axis counts fastest */
    int64_t place = index % tiling->counts[k];
    index /= tiling->counts[k];
    lo[k] = tegula__min(place * tiling->tile[k], tiling->shape[k]);
    hi[k] = tiling->shape[k] - lo[k] < tiling->tile[k] ? tiling->shape[k] : lo[k] + tiling->tile[k];
  }
}

int32_t tegula__tiling_owner(const tegula_tiling *tiling, int64_t index) {
  if (tiling->owners != NULL) return tiling->owners[index];
  return (int32_t)((__int128)index * tiling->ranks / tiling->count);
}

void tegula__tiling_range(const tegula_tiling *tiling, int32_t rank, int64_t *first,
                          int64_t *last) {
  *first = 0;
  *last = tiling->count;
  if (tiling->owners != NULL) return;
  __int128 count = tiling->count; /* floor(i * ranks / count) = rank, solved for i */
  *first = (int64_t)((rank * count + tiling->ranks - 1) / tiling->ranks);
  *last = (int64_t)(((rank + 1) * count + tiling->ranks - 1) / tiling->ranks);
}

/* ---- custom boxes ---- */

typedef struct sweep {
  const tegula_tiling *tiling;
  int32_t axis;
} sweep;

static const int64_t *box_of(const tegula_tiling *tiling, int64_t i) {
  return tiling->boxes + i * 2 * tiling->ndim;
}

static int compare_start(const void *a, const void *b, void *state) {
  const sweep *s = state;
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  int64_t start_i = box_of(s->tiling, i)[s->axis], start_j = box_of(s->tiling, j)[s->axis];
  return start_i < start_j ? -1 : start_i > start_j ? 1 : i < j ? -1 : i > j;
}

/* Sorts the boxes by their start along an axis and counts the different starts. */
static int64_t sort_along(const tegula_tiling *tiling, int32_t axis, int64_t *order) {
  sweep s = {tiling, axis};
  for (int64_t i = 0; i < tiling->count; i++) order[i] = i;
  qsort_r(order, (size_t)tiling->count, sizeof *order, compare_start, &s);
  int64_t starts = 1;
  for (int64_t i = 1; i < tiling->count; i++)
    starts += box_of(tiling, order[i])[axis] != box_of(tiling, order[i - 1])[axis];
  return starts;
}

/* The axis with the most starts: along it the fewest boxes are open at once. `order` ends sorted
 * along it. */
static int32_t sweep_axis(const tegula_tiling *tiling, int64_t *order) {
  int32_t best = 0;
  int64_t most = 0;
  for (int32_t k = 0; k < tiling->ndim; k++) {
    int64_t starts = sort_along(tiling, k, order);
    if (starts > most) best = k;
    most = tegula__max(most, starts);
  }
  sort_along(tiling, best, order);
  return best;
}

/* Sweeps with the boxes that are still open and compares each new one with those. */
static tegula_status check_disjoint(const tegula_tiling *tiling, tegula_error *err) {
  int64_t *order = tegula__realloc_array(NULL, 2 * tiling->count, sizeof *order),
          *active = order + tiling->count, active_count = 0;
  if (order == NULL) return tegula__out_of_memory(err, 2 * tiling->count * (int64_t)sizeof *order);
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  int32_t ndim = tiling->ndim, axis = sweep_axis(tiling, order);
  tegula_status status = TEGULA_OK;
  for (int64_t i = 0; i < tiling->count && status == TEGULA_OK; i++) {
    const int64_t *box = box_of(tiling, order[i]);
    int64_t kept = 0;
    for (int64_t j = 0; j < active_count; j++) {
      const int64_t *other = box_of(tiling, active[j]);
      if (other[ndim + axis] <= box[axis]) continue; /* ended */
      active[kept++] = active[j];
      if (tegula__box_intersect(ndim, box, box + ndim, other, other + ndim, lo, hi))
        status = tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "tiles %lld and %lld overlap",
                              (long long)tegula__min(order[i], active[j]),
                              (long long)tegula__max(order[i], active[j]));
    }
    active_count = kept;
    active[active_count++] = order[i];
  }
  free(order);
  return status;
}

static tegula_status copy_box(tegula_tiling *tiling, int64_t i, const tegula_box *box,
                              int64_t *covered, tegula_error *err) {
  int32_t ndim = tiling->ndim;
  if (box->ndim != ndim)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "tile %lld has %d axes, the array %d", (long long)i, box->ndim, ndim);
  int64_t *lo = tiling->boxes + i * 2 * ndim, elements = 1;
  for (int32_t k = 0; k < ndim; k++) {
    if (box->lo[k] < 0 || box->hi[k] < box->lo[k] || box->hi[k] > tiling->shape[k])
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                          "tile %lld spans %lld to %lld along axis %d of length %lld", (long long)i,
                          (long long)box->lo[k], (long long)box->hi[k], k,
                          (long long)tiling->shape[k]);
    lo[k] = box->lo[k];
    lo[ndim + k] = box->hi[k];
  }
  /* within the shape, whose element count fits; but with a 0 in it the other lengths may not */
  if (!tegula__shape_count(tiling->shape, ndim, &elements) || elements == 0) return TEGULA_OK;
  elements = tegula__box_count(ndim, lo, lo + ndim);
  if (!tegula__add(*covered, elements, covered)) *covered = INT64_MAX;
  return TEGULA_OK;
}

static tegula_status fill_custom(tegula_tiling *tiling, const tegula_box *boxes,
                                 const int32_t *owners, tegula_error *err) {
  int64_t covered = 0, elements;
  for (int64_t i = 0; i < tiling->count; i++) {
    FORWARD(copy_box(tiling, i, &boxes[i], &covered, err));
    if (owners == NULL) continue;
    if (owners[i] < 0 || owners[i] >= tiling->ranks)
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                          "tile %lld belongs to rank %d of %d", (long long)i, owners[i],
                          tiling->ranks);
    tiling->owners[i] = owners[i];
  }
  tegula__shape_count(tiling->shape, tiling->ndim, &elements); /* new_tiling has checked it */
  if (tiling->ndim == 0 && tiling->count > 1)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "a scalar has one tile, not %lld",
                        (long long)tiling->count);
  if (tiling->ndim > 0) FORWARD(check_disjoint(tiling, err));
  if (covered == elements) return TEGULA_OK;
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                      "the tiles cover %lld of %lld elements", (long long)covered,
                      (long long)elements);
}

tegula_status tegula__tiling_custom(const int64_t *shape, int32_t ndim, const tegula_box *boxes,
                                    const int32_t *owners, int64_t count, int32_t ranks,
                                    tegula_tiling **out, tegula_error *err) {
  if (count < 1)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "%lld tiles were given, it must be 1 or more", (long long)count);
  tegula_tiling *tiling;
  FORWARD(new_tiling(shape, ndim, ranks, &tiling, err));
  tiling->count = count;
  tiling->boxes = tegula__realloc_array(NULL, count, 2 * (size_t)ndim * sizeof *tiling->boxes);
  if (owners != NULL) tiling->owners = tegula__realloc_array(NULL, count, sizeof *tiling->owners);
  tegula_status status =
      tiling->boxes == NULL || (owners != NULL && tiling->owners == NULL)
          ? tegula__out_of_memory(err, count * 2 * ndim * (int64_t)sizeof *tiling->boxes)
          : fill_custom(tiling, boxes, owners, err);
  if (status == TEGULA_OK)
    *out = tiling;
  else
    tegula__tiling_release(tiling);
  return status;
}

/* Tile j ends at the file border that is nearest to its even share of the rows, at least one file
 * on. */
tegula_status tegula__tiling_from_rows(const int64_t *shape, int32_t ndim, const int64_t *rows,
                                       int64_t files, int64_t tiles, int32_t ranks,
                                       tegula_tiling **out, tegula_error *err) {
  int64_t elements;
  if (!tegula__shape_count(shape, ndim, &elements) || elements == 0 || ndim == 0 || files < tiles)
    return tegula__tiling_even(shape, ndim, 0, tiles, ranks, out, err);
  if (tiles < 1)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "%lld tiles were asked for, it must be 1 or more", (long long)tiles);
  tegula_tiling *tiling;
  FORWARD(new_tiling(shape, ndim, ranks, &tiling, err));
  tiling->boxes = tegula__realloc_array(NULL, tiles, 2 * (size_t)ndim * sizeof *tiling->boxes);
  if (tiling->boxes == NULL) {
    tegula__tiling_release(tiling);
    return tegula__out_of_memory(err, tiles * 2 * ndim * (int64_t)sizeof *tiling->boxes);
  }
  int64_t border = 0;
  for (int64_t j = 0; j < tiles; j++) {
    int64_t start = rows[border], goal = (int64_t)((__int128)shape[0] * (j + 1) / tiles);
    border++;
    while (border < files - (tiles - 1 - j) && rows[border + 1] <= goal) border++;
    if (border < files - (tiles - 1 - j) && rows[border] < goal &&
        rows[border + 1] - goal < goal - rows[border])
      border++;
    if (j == tiles - 1) border = files;
    if (rows[border] == start) continue; /* files without rows make no tile */
    int64_t *lo = tiling->boxes + tiling->count++ * 2 * ndim, *hi = lo + ndim;
    for (int32_t k = 0; k < ndim; k++) {
      lo[k] = k == 0 ? start : 0;
      hi[k] = k == 0 ? rows[border] : shape[k];
    }
  }
  *out = tiling;
  return TEGULA_OK;
}
