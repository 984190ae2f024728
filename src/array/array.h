/* array: tilings (who owns which box) and the memory of this rank's tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Begin reading at struct tegula_tiling; tiling.c makes tilings, array.c the memory of tiles. The
 * folder includes base and memory. */
#ifndef TEGULA_ARRAY_ARRAY_H
#define TEGULA_ARRAY_ARRAY_H

#include <stdatomic.h>

#include "base/base.h"
#include "memory/memory.h"

/* A regular grid computes its boxes; custom boxes are stored. Immutable and counted, so arrays
 * share it. */
struct tegula_tiling {
  _Atomic int32_t references;
  int32_t ndim;
  int32_t ranks;
  int64_t count;
  int64_t shape[TEGULA_MAX_DIMS];
  int64_t tile[TEGULA_MAX_DIMS];   /* grid: lengths of a tile */
  int64_t counts[TEGULA_MAX_DIMS]; /* grid: tiles along each axis */
  int64_t *boxes;                  /* custom: per tile ndim lo, then ndim hi; NULL for a grid */
  int32_t *owners;                 /* custom, may be NULL: by the rule */
};

tegula_status tegula__tiling_grid(const int64_t *shape, const int64_t *tile, int32_t ndim,
                                  int32_t ranks, tegula_tiling **out, tegula_error *err);
tegula_status tegula__tiling_even(const int64_t *shape, int32_t ndim, int32_t axis, int64_t tiles,
                                  int32_t ranks, tegula_tiling **out, tegula_error *err);
tegula_status tegula__tiling_custom(const int64_t *shape, int32_t ndim, const tegula_box *boxes,
                                    const int32_t *owners, int64_t count, int32_t ranks,
                                    tegula_tiling **out, tegula_error *err);
/* Whole files per tile: rows[0..files] are the borders of the files. */
tegula_status tegula__tiling_from_rows(const int64_t *shape, int32_t ndim, const int64_t *rows,
                                       int64_t files, int64_t tiles, int32_t ranks,
                                       tegula_tiling **out, tegula_error *err);
tegula_tiling *tegula__tiling_retain(const tegula_tiling *tiling);
void tegula__tiling_release(tegula_tiling *tiling);
/* Box of tile `index` into two vectors of ndim entries. */
void tegula__tiling_box(const tegula_tiling *tiling, int64_t index, int64_t *lo, int64_t *hi);
int32_t tegula__tiling_owner(const tegula_tiling *tiling, int64_t index);
/* All tiles of `rank` are among [*first, *last); where owners follow the rule, these are exactly
 * its tiles. */
void tegula__tiling_range(const tegula_tiling *tiling, int32_t rank, int64_t *first, int64_t *last);

/* ---- memory of one rank's tiles ---- */

typedef struct tegula__array {
  tegula_dtype dtype; /* native */
  tegula_tiling *tiling;
  int64_t count;       /* tiles of this rank */
  tegula__tile *tiles; /* vectors point into `vectors` */
  int64_t *numbers;    /* of the tiles in the tiling */
  int64_t *vectors;
  tegula__block *blocks; /* memory we own */
  int64_t block_count;
  bool together;                    /* the tiles are one C-ordered box in blocks[0] */
  bool read_only;                   /* wrapped memory that may not be written */
  bool overlaps;                    /* wrapped memory in which several elements share a place */
  int64_t box[2 * TEGULA_MAX_DIMS]; /* when together: its lo, then hi (ndim entries each) */
} tegula__array;

/* Reserves memory for the tiles of `rank`. */
tegula_status tegula__array_reserve(tegula_dtype dtype, const tegula_tiling *tiling, int32_t rank,
                                    bool separate, tegula__array *out, tegula_error *err);
/* The same places without memory: the addresses are made up and may not be followed. For looking at
 * what a load would do. */
tegula_status tegula__array_lay_out(tegula_dtype dtype, const tegula_tiling *tiling, int32_t rank,
                                    tegula__array *out, tegula_error *err);
/* Uses the caller's memory. */
tegula_status tegula__array_wrap(tegula_dtype dtype, const tegula_tiling *tiling, int32_t rank,
                                 const tegula_view *views, int64_t count, tegula__array *out,
                                 tegula_error *err);
void tegula__array_free(tegula__array *array);

/* Checks what every view from a caller must fulfil: host memory, valid dtype of the same values as
 * `dtype`, a box of ndim axes within the shape, an address where there are elements. */
tegula_status tegula__view_check(const tegula_view *view, tegula_dtype dtype, const int64_t *shape,
                                 int32_t ndim, tegula_error *err);
/* Do several elements of a view share a place? */
bool tegula__view_overlaps(const tegula_view *view);

#endif
