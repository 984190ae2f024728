/* Random small moves for the tests of plan and engine: a manifest over parts of any layout, and
 * tiles of any kind and memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: C, F and other orders of axes, with gaps between items, rows or planes, some too wide to
 * be read over. Tiles: even, grid, boxes of a random cut; some left out, some empty; their memory
 * in any order of axes, with gaps and negative strides, of either byte order. The loops here go
 * element by element and know nothing of steps or requests: they are what the library is compared
 * with. */
#ifndef TEGULA_TEST_ENGINE_SUPPORT_H
#define TEGULA_TEST_ENGINE_SUPPORT_H

#include "support.h"

#include "engine/engine.h"

enum { MOST_AXES = 4, MOST_PARTS = 5, MOST_TILES = 40 };

typedef struct move_case {
  tegula__manifest manifest;
  int64_t tile_count;
  tegula__tile tiles[MOST_TILES];
  int64_t vectors[MOST_TILES][3][MOST_AXES]; /* lo, hi, strides of the tiles */
  size_t memory_size[MOST_TILES];
  size_t memory_start[MOST_TILES]; /* where the element at lo is in the tile's memory */
} move_case;

/* The next index of the box in C order; false behind the last. */
static inline bool next_index(int32_t ndim, const int64_t *lo, const int64_t *hi, int64_t *index) {
  for (int32_t k = ndim - 1; k >= 0; k--) {
    if (++index[k] < hi[k]) return true;
    index[k] = lo[k];
  }
  return false;
}

static inline bool box_is_empty(int32_t ndim, const int64_t *lo, const int64_t *hi) {
  for (int32_t k = 0; k < ndim; k++)
    if (lo[k] >= hi[k]) return true;
  return false;
}

static inline bool box_holds(int32_t ndim, const int64_t *lo, const int64_t *hi,
                             const int64_t *index) {
  for (int32_t k = 0; k < ndim; k++)
    if (index[k] < lo[k] || index[k] >= hi[k]) return false;
  return true;
}

/* Strides of a box whose axes nest in a random order (or C, or F), with random gaps; returns the
 * bytes from first to behind
 * last. */
static inline int64_t random_strides(uint64_t *seed, int32_t ndim, const int64_t *extents,
                                     int64_t item, bool wide, int64_t *strides) {
  int32_t axes[MOST_AXES];
  int64_t kind = random_between(seed, 0, 3), bytes = item;
  /* from the fastest on: 1 is F, others C */
  for (int32_t k = 0; k < ndim; k++) axes[k] = kind == 1 ? k : ndim - 1 - k;
  for (int32_t k = ndim - 1; kind == 2 && k > 0; k--) {
    int32_t other = (int32_t)random_between(seed, 0, k), held = axes[k];
    axes[k] = axes[other];
    axes[other] = held;
  }
  bool gaps = random_between(seed, 0, 2) == 0;
  for (int32_t i = 0; i < ndim; i++) {
    int64_t gap = !gaps || random_between(seed, 0, 1) ? 0 : random_between(seed, 1, 30);
    if (wide && gaps && random_between(seed, 0, 5) == 0)
      gap = TEGULA__GAP + random_between(seed, -1, 1);
    strides[axes[i]] = bytes + gap;
    int64_t length = extents[axes[i]] > 0 ? extents[axes[i]] : 1;
    bytes += (length - 1) * strides[axes[i]];
  }
  return bytes;
}

/* ---- manifest ---- */

static inline void make_part(uint64_t *seed, tegula__manifest *m, int64_t *end, int64_t row_lo,
                             int64_t row_hi) {
  int64_t lo[MOST_AXES] = {0}, hi[MOST_AXES], extents[MOST_AXES], strides[MOST_AXES];
  for (int32_t k = 0; k < m->ndim; k++) hi[k] = extents[k] = m->shape[k];
  if (m->ndim > 0) {
    lo[0] = row_lo;
    hi[0] = row_hi;
    extents[0] = row_hi - row_lo;
  }
  bool same_file = m->file_count > 0 && random_between(seed, 0, 2) == 0;
  if (!same_file) {
    m->files[m->file_count].path = strdup("");
    *end = random_between(seed, 0, 200);
    m->file_count++;
  }
  uint8_t order = m->dtype.order;
  if (tegula__dtype_swap_size(m->dtype) > 1) order = random_between(seed, 0, 1) ? '<' : '>';
  int64_t bytes = random_strides(seed, m->ndim, extents, m->dtype.item_size, true, strides);
  assert_int_equal(tegula__manifest_add(m, m->file_count - 1, *end, lo, hi, strides, order, NULL),
                   TEGULA_OK);
  *end += bytes + random_between(seed, 0, 20);
  m->files[m->file_count - 1].stamp.size = *end;
}

static inline void make_manifest(uint64_t *seed, tegula__manifest *m, const char *dtype,
                                 int64_t most_bytes) {
  tegula__manifest_init(m);
  m->dtype = dtype_of(dtype);
  m->ndim = (int32_t)random_between(seed, 0, MOST_AXES);
  int64_t bytes = m->dtype.item_size;
  for (int32_t k = 0; k < m->ndim; k++) {
    int64_t most = tegula__max(1, tegula__min(9, most_bytes / bytes));
    m->shape[k] = random_between(seed, 0, 30) == 0 ? 0 : random_between(seed, 1, most);
    bytes *= tegula__max(1, m->shape[k]);
  }
  m->files = calloc(MOST_PARTS, sizeof *m->files);
  assert_non_null(m->files);
  int64_t parts = m->ndim == 0 ? 1 : random_between(seed, 1, MOST_PARTS), row = 0, end = 0;
  for (int64_t i = 0; i < parts; i++) {
    int64_t next = m->ndim == 0     ? 0
                   : i == parts - 1 ? m->shape[0]
                                    : random_between(seed, row, m->shape[0]);
    make_part(seed, m, &end, row, next);
    row = next;
  }
  tegula_error error;
  assert_ok(tegula__manifest_finish(m, &error));
}

/* ---- tiles ---- */

static inline void add_tile(move_case *c, const int64_t *lo, const int64_t *hi) {
  if (c->tile_count == MOST_TILES) return;
  int64_t(*vectors)[MOST_AXES] = c->vectors[c->tile_count];
  for (int32_t k = 0; k < c->manifest.ndim; k++) {
    vectors[0][k] = lo[k];
    vectors[1][k] = hi[k];
  }
  c->tiles[c->tile_count++] =
      (tegula__tile){.lo = vectors[0], .hi = vectors[1], .strides = vectors[2]};
}

static inline void cut_grid(uint64_t *seed, move_case *c) {
  int64_t tile[MOST_AXES], index[MOST_AXES] = {0}, counts[MOST_AXES], zero[MOST_AXES] = {0},
                           lo[MOST_AXES], hi[MOST_AXES];
  int32_t ndim = c->manifest.ndim, even = random_between(seed, 0, 1) && ndim > 0
                                              ? (int32_t)random_between(seed, 0, ndim - 1)
                                              : -1;
  for (int32_t k = 0; k < ndim; k++) {
    int64_t length = tegula__max(1, c->manifest.shape[k]);
    tile[k] =
        even >= 0 && k != even ? length : random_between(seed, tegula__max(1, length / 3), length);
    counts[k] = tegula__ceil_div(length, tile[k]);
  }
  do {
    for (int32_t k = 0; k < ndim; k++) {
      lo[k] = tegula__min(index[k] * tile[k], c->manifest.shape[k]);
      hi[k] = tegula__min(lo[k] + tile[k], c->manifest.shape[k]);
    }
    add_tile(c, lo, hi);
  } while (next_index(ndim, zero, counts, index));
}

static inline void cut_randomly(uint64_t *seed, move_case *c, const int64_t *lo, const int64_t *hi,
                                int depth) {
  int32_t ndim = c->manifest.ndim;
  int32_t axis = ndim > 0 ? (int32_t)random_between(seed, 0, ndim - 1) : 0;
  if (depth == 0 || ndim == 0 || random_between(seed, 0, 4) == 0) {
    add_tile(c, lo, hi);
    return;
  }
  int64_t middle = random_between(seed, lo[axis], hi[axis]); /* at an end: one half is empty */
  int64_t other[MOST_AXES] = {0};
  for (int32_t k = 0; k < ndim; k++) other[k] = k == axis ? middle : hi[k];
  cut_randomly(seed, c, lo, other, depth - 1);
  for (int32_t k = 0; k < ndim; k++) other[k] = k == axis ? middle : lo[k];
  cut_randomly(seed, c, other, hi, depth - 1);
}

static inline void leave_some_out(uint64_t *seed, move_case *c) {
  int64_t kept = 0;
  for (int64_t i = 0; i < c->tile_count; i++) {
    if (random_between(seed, 0, 2) == 0) continue;
    for (int v = 0; v < 2; v++)
      memmove(c->vectors[kept][v], c->vectors[i][v], sizeof c->vectors[i][v]);
    kept++;
  }
  c->tile_count = kept;
}

/* Memory of a tile in any order of axes; some axes run backwards. */
static inline void make_memory(uint64_t *seed, move_case *c, int64_t i, bool dense) {
  const tegula__manifest *m = &c->manifest;
  int64_t extents[MOST_AXES], *strides = c->vectors[i][2];
  for (int32_t k = 0; k < m->ndim; k++)
    extents[k] = tegula__max(1, c->vectors[i][1][k] - c->vectors[i][0][k]);
  if (dense) {
    int64_t bytes;
    tegula__dense_strides(extents, m->ndim, m->dtype.item_size, 'C', strides);
    assert_true(tegula__shape_bytes(extents, m->ndim, m->dtype.item_size, &bytes));
    c->memory_size[i] = (size_t)bytes;
  } else {
    c->memory_size[i] =
        (size_t)random_strides(seed, m->ndim, extents, m->dtype.item_size, false, strides);
  }
  c->memory_start[i] = 0;
  for (int32_t k = 0; k < m->ndim; k++) {
    if (dense || random_between(seed, 0, 3) != 0) continue;
    c->memory_start[i] += (size_t)((extents[k] - 1) * strides[k]);
    strides[k] = -strides[k];
  }
  c->tiles[i].order = m->dtype.order;
  if (tegula__dtype_swap_size(m->dtype) > 1)
    c->tiles[i].order = random_between(seed, 0, 3) ? TEGULA__NATIVE_ORDER : '>';
}

static inline void case_make(uint64_t *seed, const char *dtype, int64_t most_bytes, move_case *c) {
  int64_t zero[MOST_AXES] = {0};
  c->tile_count = 0;
  make_manifest(seed, &c->manifest, dtype, most_bytes);
  if (random_between(seed, 0, 1))
    cut_grid(seed, c);
  else
    cut_randomly(seed, c, zero, c->manifest.shape, 4);
  if (random_between(seed, 0, 2) == 0) leave_some_out(seed, c);
  bool dense = random_between(seed, 0, 1);
  for (int64_t i = 0; i < c->tile_count; i++) make_memory(seed, c, i, dense);
}

static inline void case_free(move_case *c) { tegula__manifest_free(&c->manifest); }

/* The tile that holds an index, or -1. */
static inline int64_t tile_of(const move_case *c, const int64_t *index) {
  for (int64_t i = 0; i < c->tile_count; i++)
    if (box_holds(c->manifest.ndim, c->tiles[i].lo, c->tiles[i].hi, index)) return i;
  return -1;
}

static inline int64_t part_of(const move_case *c, const int64_t *index) {
  for (int64_t i = 0; i < c->manifest.part_count; i++)
    if (box_holds(c->manifest.ndim, c->manifest.parts[i].lo, c->manifest.parts[i].hi, index))
      return i;
  fail_msg("no part holds the index");
  return -1;
}

/* ---- what a move works with ---- */

typedef struct bench {
  tegula__engine engine;
  tegula__handles *handles;
  folder folder;
} bench;

static inline bench bench_make(int32_t threads, int64_t staging, int32_t open_files) {
  bench b = {.folder = folder_make()};
  tegula_error error;
  b.engine.kernels = tegula__kernel_select();
  assert_ok(tegula__pool_create(threads, threads, &b.engine.pool, &error));
  assert_ok(tegula__staging_create(staging, threads, &b.engine.staging, &error));
  assert_ok(tegula__handles_create(open_files, &b.handles, &error));
  return b;
}

static inline void bench_free(bench *b) {
  tegula__handles_destroy(b->handles);
  tegula__staging_destroy(b->engine.staging);
  tegula__pool_destroy(b->engine.pool);
  folder_remove(&b->folder);
}

#endif
