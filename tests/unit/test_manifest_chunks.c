/* Chunked parts: where the elements of a part are, what finish refuses, what join moves.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <time.h>

#include "manifest/manifest.h"

enum { AXES = 4 };

static tegula__manifest make_manifest(const char *dtype, int32_t ndim, const int64_t *shape,
                                      int64_t size) {
  tegula__manifest made;
  tegula__manifest_init(&made);
  made.dtype = tegula_dtype_native(dtype_of(dtype));
  made.ndim = ndim;
  if (ndim > 0) memcpy(made.shape, shape, (size_t)ndim * sizeof *shape);
  made.files = calloc(1, sizeof *made.files);
  assert_non_null(made.files);
  made.files[0].path = strdup("folder/x.h5");
  made.files[0].stamp.size = size;
  made.file_count = 1;
  return made;
}

static tegula__grid *make_grid(int64_t chunk_bytes, int64_t slots) {
  tegula__grid *grid = calloc(1, sizeof *grid);
  assert_non_null(grid);
  *grid = (tegula__grid){.chunk_bytes = chunk_bytes, .order = '<', .slots = slots, .count = slots};
  grid->chunks = calloc((size_t)slots + 1, sizeof *grid->chunks);
  assert_non_null(grid->chunks);
  return grid;
}

/* ---- geometry, against a loop over all elements ---- */

/* A part over a whole array of random shape, and how many times each chunk must be met. */
typedef struct geometry {
  tegula__part part;
  int32_t ndim;
  int64_t lo[AXES], hi[AXES], start[AXES], chunk[AXES], strides[AXES], slot_strides[AXES],
      step[AXES];
} geometry;

/* The number of an element in the stored array. */
static int64_t number_of(const geometry *g, int32_t k, int64_t index) {
  return g->start[k] + (index - g->lo[k]) * g->step[k];
}

static bool has_steps(const geometry *g) {
  for (int32_t k = 0; k < g->ndim; k++)
    if (g->step[k] > 1) return true;
  return false;
}

static void random_geometry(uint64_t *seed, geometry *g) {
  int64_t slots = 1, bytes = 1;
  *g = (geometry){.ndim = (int32_t)random_between(seed, 0, AXES)};
  for (int32_t k = g->ndim - 1; k >= 0; k--) {
    g->lo[k] = random_between(seed, 0, 5);
    g->hi[k] = g->lo[k] + random_between(seed, 1, 7);
    bool folded = g->hi[k] - g->lo[k] == 1 && random_between(seed, 0, 1);
    g->chunk[k] = folded ? 1 : random_between(seed, 1, 9);
    g->start[k] = folded ? 0 : random_between(seed, 0, 11);
    g->step[k] = folded || random_between(seed, 0, 1) ? 1 : random_between(seed, 1, 12);
    g->strides[k] = folded ? 0 : bytes * g->step[k];
    g->slot_strides[k] = folded ? 0 : slots;
    if (folded) continue;
    bytes *= g->chunk[k];
    slots *= number_of(g, k, g->hi[k] - 1) / g->chunk[k] + 1 + random_between(seed, 0, 2);
  }
  g->part = (tegula__part){.kind = TEGULA__PART_CHUNKED,
                           .order = '<',
                           .lo = g->lo,
                           .hi = g->hi,
                           .start = g->start,
                           .chunk = g->chunk,
                           .strides = g->strides,
                           .slot_strides = g->slot_strides,
                           .step = random_between(seed, 0, 2) > 0 || has_steps(g) ? g->step : NULL,
                           .slot_base = random_between(seed, 0, 9),
                           .offset = random_between(seed, 0, 9)};
}

static bool next(int32_t ndim, const int64_t *lo, const int64_t *hi, int64_t *index) {
  for (int32_t k = ndim - 1; k >= 0; k--) {
    if (++index[k] < hi[k]) return true;
    index[k] = lo[k];
  }
  return false;
}

/* Each element of the box must be in the chunk by the formula, and at the byte that the dense part
 * says. */
static int64_t check_chunk(const geometry *g, int64_t slot, const tegula__part *dense) {
  int64_t index[AXES] = {0}, elements = 0;
  for (int32_t k = 0; k < g->ndim; k++) {
    assert_true(g->lo[k] <= dense->lo[k] && dense->lo[k] < dense->hi[k] &&
                dense->hi[k] <= g->hi[k]);
    index[k] = dense->lo[k];
  }
  do {
    int64_t own_slot = g->part.slot_base, byte = g->part.offset, found = dense->offset;
    for (int32_t k = 0; k < g->ndim; k++) {
      int64_t number = number_of(g, k, index[k]);
      own_slot += number / g->chunk[k] * g->slot_strides[k];
      byte += number % g->chunk[k] * (g->strides[k] / g->step[k]);
      found += (index[k] - dense->lo[k]) * dense->strides[k];
    }
    assert_int_equal(own_slot, slot);
    assert_int_equal(byte, found);
    elements++;
  } while (next(g->ndim, dense->lo, dense->hi, index));
  return elements;
}

static void chunks_hold_each_element_once_where_the_formula_says(void **state) {
  (void)state;
  uint64_t seed = 3;
  for (int round = 0; round < 3000; round++) {
    geometry g;
    random_geometry(&seed, &g);
    int64_t first[AXES] = {0}, last[AXES] = {0}, at[AXES] = {0}, lo[AXES], hi[AXES], elements = 0;
    tegula__part dense;
    tegula__part_chunks(&g.part, g.ndim, first, last);
    for (int32_t k = 0; k < g.ndim; k++) at[k] = first[k];
    do {
      int64_t slot = tegula__part_chunk(&g.part, g.ndim, at, lo, hi, &dense);
      assert_true(dense.kind == TEGULA__PART_DENSE && dense.order == '<' && dense.grid == NULL &&
                  dense.chunk == NULL);
      elements += check_chunk(&g, slot, &dense);
    } while (next(g.ndim, first, last, at));
    /* boxes with one slot each are disjoint: each is met once */
    assert_int_equal(elements, tegula__box_count(g.ndim, g.lo, g.hi));
  }
}

static void chunks_are_found_in_full_and_sparse_tables(void **state) {
  (void)state;
  uint64_t seed = 4;
  for (int round = 0; round < 300; round++) {
    int64_t slots = random_between(&seed, 0, 60);
    tegula__grid *grid = make_grid(4, slots);
    uint32_t lengths[61] = {0};
    for (int64_t i = 0; i < slots; i++)
      grid->chunks[i].length = lengths[i] = (uint32_t)random_between(&seed, 0, 2);
    if (round % 2 == 1) { /* absent ones are left out, or stand there without a length */
      grid->coordinates = calloc((size_t)slots + 1, sizeof *grid->coordinates);
      assert_non_null(grid->coordinates);
      grid->count = 0;
      for (int64_t i = 0; i < slots; i++) {
        if (lengths[i] == 0 && random_between(&seed, 0, 1)) continue;
        grid->coordinates[grid->count] = (uint64_t)i;
        grid->chunks[grid->count++].length = lengths[i];
      }
    }
    for (int64_t i = 0; i < slots; i++) {
      const tegula__chunk *found = tegula__grid_find(grid, i);
      assert_int_equal(found != NULL ? found->length : 0, lengths[i]);
    }
    tegula__grid_free(grid);
  }
}

/* ---- every stored chunk of a part ---- */

typedef struct visited {
  const geometry *g;
  int64_t seen[1 << 14]; /* of each slot */
  int64_t count, most;
} visited;

/* The offset of each chunk is its slot. */
static bool note_visit(void *state, const tegula__chunk *chunk, const int64_t *lo,
                       const int64_t *hi) {
  visited *v = state;
  const geometry *g = v->g;
  int64_t slot = g->part.slot_base;
  for (int32_t k = 0; k < g->ndim; k++) {
    int64_t own = number_of(g, k, lo[k]) / g->chunk[k];
    assert_true(g->lo[k] <= lo[k] && lo[k] < hi[k] && hi[k] <= g->hi[k]);
    /* all elements of one chunk: those before and behind are in others */
    assert_int_equal(own, number_of(g, k, hi[k] - 1) / g->chunk[k]);
    assert_true(lo[k] == g->lo[k] || number_of(g, k, lo[k] - 1) / g->chunk[k] < own);
    assert_true(hi[k] == g->hi[k] || number_of(g, k, hi[k]) / g->chunk[k] > own);
    slot += own * g->slot_strides[k];
  }
  assert_int_equal(chunk->offset, slot);
  v->seen[slot]++;
  return ++v->count < v->most;
}

/* A table of `slots`, of which one in `rarity` is stored; without coordinates when `full`. */
static tegula__grid *random_table(uint64_t *seed, int64_t slots, int64_t rarity, bool full) {
  tegula__grid *grid = make_grid(4, slots);
  if (!full) {
    grid->coordinates = calloc((size_t)slots + 1, sizeof *grid->coordinates);
    assert_non_null(grid->coordinates);
    grid->count = 0;
  }
  for (int64_t slot = 0; slot < slots; slot++) {
    uint32_t length = random_between(seed, 1, rarity) == 1;
    /* some are there without a length */
    if (!full && length == 0 && random_between(seed, 0, 3) > 0) continue;
    int64_t entry = full ? slot : grid->count++;
    if (!full) grid->coordinates[entry] = (uint64_t)slot;
    grid->chunks[entry] = (tegula__chunk){.offset = (uint64_t)slot, .length = length};
  }
  return grid;
}

/* Each slot of the part that is stored, once; nothing else. Returns how many. */
static int64_t check_visits(const geometry *g, const visited *v) {
  int64_t first[AXES] = {0}, last[AXES] = {0}, at[AXES] = {0}, lo[AXES], hi[AXES], stored = 0;
  tegula__part dense;
  tegula__part_chunks(&g->part, g->ndim, first, last);
  for (int32_t k = 0; k < g->ndim; k++) at[k] = first[k];
  do {
    int64_t slot = tegula__part_chunk(&g->part, g->ndim, at, lo, hi, &dense);
    bool there = tegula__grid_find(g->part.grid, slot) != NULL;
    assert_int_equal(v->seen[slot], there);
    stored += there;
  } while (next(g->ndim, first, last, at));
  assert_int_equal(v->count, stored);
  return stored;
}

static void every_stored_chunk_of_a_part_is_visited_once(void **state) {
  (void)state;
  static visited v;
  uint64_t seed = 5;
  for (int round = 0; round < 3000; round++) {
    geometry g;
    random_geometry(&seed, &g);
    int64_t slots = g.part.slot_base + 1;
    for (int32_t k = 0; k < g.ndim; k++)
      slots += number_of(&g, k, g.hi[k] - 1) / g.chunk[k] * g.slot_strides[k];
    slots += random_between(&seed, 0, 5);
    if (slots > 1 << 14) continue;
    tegula__grid *grid = random_table(&seed, slots, round % 7 == 0 ? 1 : 20, round % 3 == 0);
    g.part.grid = grid;
    v = (visited){.g = &g, .most = INT64_MAX};
    assert_true(tegula__part_visit(&g.part, g.ndim, note_visit, &v));
    int64_t stored = check_visits(&g, &v);
    if (stored > 0) {
      v = (visited){.g = &g, .most = 1};
      assert_false(tegula__part_visit(&g.part, g.ndim, note_visit, &v));
      assert_int_equal(v.count, 1);
    }
    tegula__grid_free(grid);
  }
}

/* Slots that two places share (a manifest can say so) are visited for each, also when few are
 * stored. */
static void places_that_share_a_slot_are_each_visited(void **state) {
  (void)state;
  static visited v;
  geometry g = {.ndim = 2, .hi = {6, 6}, .chunk = {1, 1}, .slot_strides = {1, 1}, .step = {1, 1}};
  g.part = (tegula__part){.kind = TEGULA__PART_CHUNKED,
                          .lo = g.lo,
                          .hi = g.hi,
                          .start = g.start,
                          .chunk = g.chunk,
                          .strides = g.strides,
                          .slot_strides = g.slot_strides};
  tegula__grid *grid = make_grid(1, 11);
  uint64_t slot = 4;
  grid->coordinates = &slot;
  grid->count = 1;
  grid->chunks[0] = (tegula__chunk){.offset = 4, .length = 1};
  g.part.grid = grid;
  v = (visited){.g = &g, .most = INT64_MAX};
  assert_true(tegula__part_visit(&g.part, 2, note_visit, &v));
  assert_int_equal(v.count, 5);
  grid->coordinates = NULL;
  tegula__grid_free(grid);
}

/* ---- what finish refuses ---- */

/* An array (6, 5) of i4 in chunks (4, 3): 2 x 2 slots of 48 bytes, one behind the other. */
typedef struct chunked {
  tegula__manifest manifest;
  tegula__grid *grid;
  int64_t lo[2], hi[2], start[2], chunk[2], strides[2], slot_strides[2];
  tegula__part part;
} chunked;

static void chunked_make(chunked *c) {
  *c = (chunked){.manifest = make_manifest("<i4", 2, (int64_t[]){6, 5}, 4 * 48),
                 .grid = make_grid(48, 4),
                 .hi = {6, 5},
                 .chunk = {4, 3},
                 .strides = {12, 4},
                 .slot_strides = {2, 1}};
  for (int i = 0; i < 4; i++)
    c->grid->chunks[i] = (tegula__chunk){.offset = (uint64_t)i * 48, .length = 48};
  c->part = (tegula__part){.kind = TEGULA__PART_CHUNKED,
                           .order = '<',
                           .file = TEGULA__NO_FILE,
                           .lo = c->lo,
                           .hi = c->hi,
                           .start = c->start,
                           .chunk = c->chunk,
                           .strides = c->strides,
                           .slot_strides = c->slot_strides,
                           .grid = c->grid};
}

static tegula_status chunked_finish(chunked *c, tegula_error *error) {
  assert_int_equal(tegula__manifest_add_grid(&c->manifest, c->grid, NULL), TEGULA_OK);
  assert_int_equal(tegula__manifest_add_part(&c->manifest, &c->part, NULL), TEGULA_OK);
  tegula_status status = tegula__manifest_finish(&c->manifest, error);
  tegula__manifest_free(&c->manifest);
  return status;
}

#define CASE(status, change)                                                                       \
  do {                                                                                             \
    chunked c;                                                                                     \
    tegula_error error;                                                                            \
    chunked_make(&c);                                                                              \
    change;                                                                                        \
    assert_refused(chunked_finish(&c, &error), status);                                            \
  } while (0)

#define GOOD(change)                                                                               \
  do {                                                                                             \
    chunked c;                                                                                     \
    tegula_error error;                                                                            \
    chunked_make(&c);                                                                              \
    change;                                                                                        \
    assert_ok(chunked_finish(&c, &error));                                                         \
  } while (0)

static void parts_that_leave_their_grid_are_refused(void **state) {
  (void)state;
  GOOD((void)0);
  GOOD(c.part.step = ((int64_t[]){1, 1}));
  CASE(TEGULA_INTERNAL, c.part.step = ((int64_t[]){0, 1}));
  CASE(TEGULA_INTERNAL, c.part.step = ((int64_t[]){1, -1}));
  CASE(TEGULA_INTERNAL, c.part.step = ((int64_t[]){1, 3})); /* is no part of the stride */
  CASE(TEGULA_INTERNAL, c.part.step = ((int64_t[]){2, 1})); /* element 10 of 8 */
  CASE(TEGULA_INTERNAL, c.part.step = ((int64_t[]){1, 2}));
  CASE(TEGULA_INTERNAL, c.part.step = ((int64_t[]){INT64_MAX, 1}));
  CASE(TEGULA_INTERNAL, c.grid->slots = c.grid->count = 3);
  CASE(TEGULA_INTERNAL, c.part.slot_base = 1);
  CASE(TEGULA_INTERNAL, c.part.slot_base = -1);
  CASE(TEGULA_INTERNAL, c.part.slot_base = INT64_MAX);
  CASE(TEGULA_INTERNAL, c.slot_strides[0] = 3);
  CASE(TEGULA_INTERNAL, c.slot_strides[1] = -1);
  CASE(TEGULA_INTERNAL, c.slot_strides[0] = INT64_MAX);
  CASE(TEGULA_INTERNAL, c.start[0] = 3); /* 3 + 6 > 8 rows of two chunks */
  GOOD(c.start[0] = 2);
  CASE(TEGULA_INTERNAL, c.start[1] = -1);
  CASE(TEGULA_INTERNAL, (c.start[0] = INT64_MAX, c.slot_strides[0] = 0));
  /* one behind it overflows */
  CASE(TEGULA_INTERNAL,
       (c.start[0] = INT64_MAX - 5, c.chunk[0] = 1, c.slot_strides[0] = 0, c.strides[0] = 0));
  CASE(TEGULA_INTERNAL, c.part.offset = 4);
  CASE(TEGULA_INTERNAL, c.part.offset = -4);
  CASE(TEGULA_INTERNAL, c.part.offset = INT64_MAX);
  CASE(TEGULA_INTERNAL, c.strides[0] = 16);
  CASE(TEGULA_INTERNAL, c.strides[1] = -4);
  CASE(TEGULA_INTERNAL, c.strides[1] = 0);
  CASE(TEGULA_INTERNAL, c.strides[0] = INT64_MAX / 2);
  CASE(TEGULA_INTERNAL, c.chunk[0] = 0);
  CASE(TEGULA_INTERNAL, c.chunk[0] = -4);
  CASE(TEGULA_INTERNAL, c.part.order = '>');
  CASE(TEGULA_INTERNAL, c.part.order = c.grid->order = '=');
  GOOD(c.part.order = c.grid->order = '>');
  CASE(TEGULA_INTERNAL, (c.part.grid = NULL));
  CASE(TEGULA_INTERNAL, (c.part.chunk = NULL));
  CASE(TEGULA_INTERNAL, c.hi[1] = 6);
  CASE(TEGULA_INTERNAL, c.lo[1] = -1);
  CASE(TEGULA_INTERNAL, c.hi[1] = 4); /* does not cover */
}

static void tables_that_contradict_themselves_are_refused(void **state) {
  (void)state;
  static const uint64_t ascending[] = {0, 1, 2, 3}, twice[] = {0, 1, 1, 3},
                        backwards[] = {0, 2, 1, 3}, beyond[] = {0, 1, 2, 4};
  static const uint64_t *const tables[] = {ascending, twice, backwards, beyond};
  for (int i = 0; i < 4; i++) {
    chunked c;
    tegula_error error;
    chunked_make(&c);
    c.grid->coordinates = malloc(sizeof ascending);
    assert_non_null(c.grid->coordinates);
    memcpy(c.grid->coordinates, tables[i], sizeof ascending);
    assert_int_equal(chunked_finish(&c, &error), i == 0 ? TEGULA_OK : TEGULA_INTERNAL);
  }
  CASE(TEGULA_INTERNAL, c.grid->count = 3); /* without coordinates each slot has an entry */
  CASE(TEGULA_INTERNAL, c.grid->slots = c.grid->count = -1);
  CASE(TEGULA_INTERNAL, c.grid->file = 1);
  CASE(TEGULA_INTERNAL, c.grid->file = -1);
  CASE(TEGULA_INTERNAL, c.grid->chunk_bytes = 0);
  CASE(TEGULA_INTERNAL, c.grid->filter_count = -1);
  CASE(TEGULA_INTERNAL, c.grid->filter_count = TEGULA__CHAIN_MAX + 1);
}

static void chunks_must_be_in_their_file_and_of_their_length(void **state) {
  (void)state;
  CASE(TEGULA_SHORT_FILE, c.manifest.files[0].stamp.size = 4 * 48 - 1);
  CASE(TEGULA_SHORT_FILE, c.grid->chunks[1].offset = 3 * 48 + 1);
  CASE(TEGULA_CORRUPT, c.grid->chunks[1].offset = UINT64_MAX);
  CASE(TEGULA_CORRUPT, c.grid->chunks[1].offset = INT64_MAX - 47);
  CASE(TEGULA_CORRUPT, c.grid->chunks[1].length = 47);
  CASE(TEGULA_SHORT_FILE, c.grid->chunks[3].length = 49);
  CASE(TEGULA_CORRUPT, c.grid->chunks[2].length = 49);
  CASE(TEGULA_CORRUPT,
       (c.grid->filter_count = 2, c.grid->chunks[2].mask = 3, c.grid->chunks[2].length = 7));
  /* one filter is left: any length */
  GOOD((c.grid->filter_count = 2, c.grid->chunks[2].mask = 1, c.grid->chunks[2].length = 7));
  /* absent: nothing is where it says */
  GOOD((c.grid->chunks[2].length = 0, c.grid->chunks[2].offset = UINT64_MAX));
  chunked c;
  tegula_error error;
  chunked_make(&c);
  c.grid->chunks[3].length = 49;
  assert_refused(chunked_finish(&c, &error), TEGULA_SHORT_FILE);
  assert_contains(error.message, "expected 193 bytes, found 192");
  assert_string_equal(error.path, "folder/x.h5");
}

static tegula_status never(void *state, const tegula_view *view, tegula_error *err) {
  (void)state, (void)view;
  return tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "never called");
}

/* A part without a file over the array (6, 5). */
static tegula_status finish_without_file(tegula__part part, tegula_error *error) {
  tegula__manifest m = make_manifest("<i4", 2, (int64_t[]){6, 5}, 0);
  part.lo = (int64_t[]){0, 0};
  part.hi = (int64_t[]){6, 5};
  static const int64_t strides[2] = {20, 4};
  if (part.strides == NULL) part.strides = strides;
  if (part.order == 0) part.order = m.dtype.order;
  assert_int_equal(tegula__manifest_add_part(&m, &part, NULL), TEGULA_OK);
  tegula_status status = tegula__manifest_finish(&m, error);
  tegula__manifest_free(&m);
  return status;
}

static void parts_without_a_file_are_checked(void **state) {
  (void)state;
  tegula_error error, good = {.status = TEGULA_INCOMPLETE, .message = "gone"}, none = {0};
  tegula__reader reader = {.read = never};
  const int64_t two[2] = {2, 2}, zero[2] = {0, 0}, high[2] = {INT64_MAX, 0}, negative[2] = {-4, 4},
                wide[2] = {INT64_MAX / 4, 4};
  tegula__part fill = {.kind = TEGULA__PART_FILL, .file = TEGULA__NO_FILE},
               lost = {.kind = TEGULA__PART_LOST, .file = TEGULA__NO_FILE};
  tegula__part read = {.kind = TEGULA__PART_READ, .file = TEGULA__NO_FILE, .reader = &reader};
  assert_ok(finish_without_file(fill, &error));
  lost.lost = &good;
  assert_ok(finish_without_file(lost, &error));
  assert_ok(finish_without_file(read, &error));
  read.chunk = two;
  read.start = zero;
  assert_ok(finish_without_file(read, &error));
  tegula__part bad = read;
  bad.chunk = zero; /* would be divided by */
  assert_refused(finish_without_file(bad, &error), TEGULA_INTERNAL);
  bad.chunk = two;
  bad.start = high;
  assert_refused(finish_without_file(bad, &error), TEGULA_INTERNAL);
  bad = read;
  bad.reader = NULL;
  assert_refused(finish_without_file(bad, &error), TEGULA_INTERNAL);
  bad = read;
  bad.order = '>'; /* a reader gives native bytes */
  assert_refused(finish_without_file(bad, &error), TEGULA_INTERNAL);
  bad = lost;
  bad.lost = &none; /* an error that is none would leave the memory as it is */
  assert_refused(finish_without_file(bad, &error), TEGULA_INTERNAL);
  bad.lost = NULL;
  assert_refused(finish_without_file(bad, &error), TEGULA_INTERNAL);
  bad = fill;
  bad.file = 0;
  assert_refused(finish_without_file(bad, &error), TEGULA_INTERNAL);
  bad = fill;
  bad.strides = negative;
  assert_refused(finish_without_file(bad, &error), TEGULA_INTERNAL);
  bad.strides = wide;
  assert_refused(finish_without_file(bad, &error), TEGULA_INTERNAL);
  bad = fill;
  bad.kind = (tegula__part_kind)7;
  assert_refused(finish_without_file(bad, &error), TEGULA_INTERNAL);
}

/* ---- parts side by side ---- */

static void add_box(tegula__manifest *m, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
  tegula__part part = {.kind = TEGULA__PART_FILL,
                       .order = m->dtype.order,
                       .file = TEGULA__NO_FILE,
                       .lo = (int64_t[]){r0, c0},
                       .hi = (int64_t[]){r1, c1},
                       .strides = (int64_t[]){4 * tegula__max(1, c1 - c0), 4}};
  assert_int_equal(tegula__manifest_add_part(m, &part, NULL), TEGULA_OK);
}

static void parts_must_cover_and_not_overlap(void **state) {
  (void)state;
  static const int64_t boxes[][5][4] = {
      {{0, 3, 0, 2}, {0, 3, 2, 5}, {3, 6, 0, 5}}, /* covers */
      {{3, 6, 0, 5}, {0, 3, 2, 5}, {0, 3, 0, 2}}, /* in another order */
      {{0, 3, 0, 2}, {0, 3, 3, 5}, {3, 6, 0, 5}}, /* a hole */
      {{0, 3, 0, 3}, {0, 3, 2, 5}, {3, 6, 0, 5}}, /* overlap */
      {{0, 3, 0, 3}, {0, 3, 2, 4}, {3, 6, 0, 5}}, /* overlap and hole of one size */
      /* an empty one among others */
      {{0, 6, 0, 2}, {0, 2, 2, 5}, {2, 4, 2, 5}, {4, 6, 2, 5}, {4, 4, 0, 5}},
  };
  for (int i = 0; i < 6; i++) {
    tegula_error error;
    tegula__manifest m = make_manifest("<i4", 2, (int64_t[]){6, 5}, 0);
    for (int k = 0; k < 5; k++)
      if (boxes[i][k][3] > 0)
        add_box(&m, boxes[i][k][0], boxes[i][k][1], boxes[i][k][2], boxes[i][k][3]);
    bool good = i < 2 || i == 5;
    if (!good) {
      assert_refused(tegula__manifest_finish(&m, &error), TEGULA_INTERNAL);
    } else {
      assert_ok(tegula__manifest_finish(&m, &error));
      for (int64_t k = 1; k < m.part_count; k++)
        assert_true(m.parts[k - 1].lo[0] <= m.parts[k].lo[0]);
      for (int64_t row = 0; row < 6; row++) { /* all parts of a row are found */
        int64_t first, last, columns = 0;
        tegula__manifest_find(&m, row, row + 1, &first, &last);
        for (int64_t k = first; k < last; k++)
          if (m.parts[k].lo[0] <= row && row < m.parts[k].hi[0])
            columns += m.parts[k].hi[1] - m.parts[k].lo[1];
        assert_int_equal(columns, 5);
      }
    }
    tegula__manifest_free(&m);
  }
}

/* A sweep over pairs would be 2 * 10^8 of them. */
static void many_parts_side_by_side_are_checked_quickly(void **state) {
  (void)state;
  enum { PARTS = 20000, SIDE = 100 };
  for (int layout = 0; layout < 3; layout++) {
    tegula_error error;
    tegula__manifest m = layout == 2 ? make_manifest("<i4", 2, (int64_t[]){2 * SIDE, PARTS / 2}, 0)
                                     : make_manifest("<i4", 2, (int64_t[]){2, PARTS}, 0);
    for (int64_t i = PARTS - 1; i >= 0; i--) {
      if (layout == 0) add_box(&m, 0, 2, i, i + 1);
      if (layout == 1) add_box(&m, i % 2, i % 2 + 1, i / 2 * 2, i / 2 * 2 + 2);
      if (layout == 2) add_box(&m, i / SIDE, i / SIDE + 1, i % SIDE * SIDE, (i % SIDE + 1) * SIDE);
    }
    clock_t begin = clock();
    assert_ok(tegula__manifest_finish(&m, &error));
    /* of this process: others do not count */
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (seconds > 1) fail_msg("%d parts of layout %d took %.1f seconds", PARTS, layout, seconds);
    tegula__manifest_free(&m);
  }
}

/* ---- join ---- */

static int released;
static void release(void *state) {
  assert_ptr_equal(state, &released);
  released++;
}

/* (4, 3) of i4: two rows in chunks of file `file` of two, one row read, then half a row filled and
 * half lost. */
static void make_shard(tegula__manifest *m, const char *name) {
  *m = make_manifest("<i4", 2, (int64_t[]){4, 3}, 100);
  m->files = realloc(m->files, 2 * sizeof *m->files);
  assert_non_null(m->files);
  m->files[1] = (tegula__file){.path = strdup(name), .stamp = {.size = 100}};
  m->file_count = 2;
  tegula__grid *grid = make_grid(24, 1);
  grid->file = 1;
  grid->chunks[0] = (tegula__chunk){.offset = 76, .length = 24};
  tegula__reader *reader = calloc(1, sizeof *reader);
  tegula_error *lost = calloc(1, sizeof *lost);
  void *fill = calloc(1, 4);
  assert_true(reader != NULL && lost != NULL && fill != NULL);
  *reader =
      (tegula__reader){.read = never, .state = &released, .release = release, .name = strdup(name)};
  tegula__fail(lost, TEGULA_INCOMPLETE, name, -1, "gone");
  memset(fill, 7, 4);
  assert_int_equal(tegula__manifest_add_grid(m, grid, NULL), TEGULA_OK);
  assert_int_equal(tegula__manifest_add_reader(m, reader, NULL), TEGULA_OK);
  assert_int_equal(tegula__manifest_keep(m, lost, NULL), TEGULA_OK);
  assert_int_equal(tegula__manifest_keep(m, fill, NULL), TEGULA_OK);
  m->fill = grid->fill = fill;
  const int64_t zero[2] = {0}, strides[2] = {12, 4}, one[2] = {1, 0}, chunk[2] = {2, 3};
  tegula__part part = {.kind = TEGULA__PART_CHUNKED,
                       .order = '<',
                       .file = TEGULA__NO_FILE,
                       .lo = zero,
                       .hi = (int64_t[]){2, 3},
                       .strides = strides,
                       .start = zero,
                       .chunk = chunk,
                       .slot_strides = one,
                       .grid = grid};
  assert_int_equal(tegula__manifest_add_part(m, &part, NULL), TEGULA_OK);
  part = (tegula__part){.kind = TEGULA__PART_READ,
                        .order = '<',
                        .file = TEGULA__NO_FILE,
                        .lo = (int64_t[]){2, 0},
                        .hi = (int64_t[]){3, 3},
                        .strides = strides,
                        .start = zero,
                        .chunk = chunk,
                        .reader = reader};
  assert_int_equal(tegula__manifest_add_part(m, &part, NULL), TEGULA_OK);
  part = (tegula__part){.kind = TEGULA__PART_FILL,
                        .order = '<',
                        .file = TEGULA__NO_FILE,
                        .lo = (int64_t[]){3, 0},
                        .hi = (int64_t[]){4, 1},
                        .strides = strides,
                        .fill = fill};
  assert_int_equal(tegula__manifest_add_part(m, &part, NULL), TEGULA_OK);
  part = (tegula__part){.kind = TEGULA__PART_LOST,
                        .order = '<',
                        .file = TEGULA__NO_FILE,
                        .lo = (int64_t[]){3, 1},
                        .hi = (int64_t[]){4, 3},
                        .strides = strides,
                        .lost = lost};
  assert_int_equal(tegula__manifest_add_part(m, &part, NULL), TEGULA_OK);
}

static void shards_with_all_kinds_of_parts_are_joined(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest shards[3], joined;
  static const char *const names[] = {"a", "b", "c"};
  released = 0;
  for (int i = 0; i < 3; i++) make_shard(&shards[i], names[i]);
  assert_ok(tegula__manifest_join(shards, 3, &joined, &error));
  assert_ok(tegula__manifest_finish(&joined, &error));
  assert_int_equal(joined.shape[0], 12);
  assert_int_equal(joined.part_count, 12);
  assert_int_equal(joined.file_count, 6);
  assert_memory_equal(joined.fill, "\7\7\7\7", 4);
  for (int64_t i = 0; i < 3; i++) {
    const tegula__part *part = &joined.parts[4 * i];
    assert_int_equal(part[0].kind, TEGULA__PART_CHUNKED);
    assert_int_equal(part[0].lo[0], 4 * i);
    assert_int_equal(part[0].hi[0], 4 * i + 2);
    assert_int_equal(part[0].start[0], 0); /* counts in the stored array: not shifted */
    assert_int_equal(part[0].chunk[1], 3);
    assert_string_equal(joined.files[tegula__part_file(&part[0])].path, names[i]);
    assert_memory_equal(part[0].grid->fill, "\7\7\7\7", 4);
    assert_string_equal(part[1].reader->name, names[i]);
    assert_int_equal(part[1].lo[0], 4 * i + 2);
    assert_memory_equal(part[2].fill, "\7\7\7\7", 4);
    assert_string_equal(part[3].lost->path, names[i]);
    for (int k = 1; k < 4; k++) assert_int_equal(tegula__part_file(&part[k]), TEGULA__NO_FILE);
  }
  for (int i = 0; i < 3; i++) tegula__manifest_free(&shards[i]);
  assert_int_equal(released, 0);
  tegula__manifest_free(&joined);
  assert_int_equal(released, 3);
}

/* A number that is wrong in one shard would be right, but another file's, in all of them. */
static void shards_that_speak_of_files_they_have_not_are_refused(void **state) {
  (void)state;
  for (int which = 0; which < 4; which++) {
    tegula_error error;
    tegula__manifest shards[3], joined;
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) make_shard(&shards[i], names[i]);
    if (which < 2)
      shards[1].grids[0]->file = which == 0 ? -1 : 2;
    else
      shards[1].parts[2].file = which == 2 ? -3 : 2;
    assert_refused(tegula__manifest_join(shards, 3, &joined, &error), TEGULA_INTERNAL);
    for (int i = 0; i < 3; i++) tegula__manifest_free(&shards[i]); /* all there still */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chunks_hold_each_element_once_where_the_formula_says),
      cmocka_unit_test(chunks_are_found_in_full_and_sparse_tables),
      cmocka_unit_test(every_stored_chunk_of_a_part_is_visited_once),
      cmocka_unit_test(places_that_share_a_slot_are_each_visited),
      cmocka_unit_test(parts_that_leave_their_grid_are_refused),
      cmocka_unit_test(tables_that_contradict_themselves_are_refused),
      cmocka_unit_test(chunks_must_be_in_their_file_and_of_their_length),
      cmocka_unit_test(parts_without_a_file_are_checked),
      cmocka_unit_test(parts_must_cover_and_not_overlap),
      cmocka_unit_test(many_parts_side_by_side_are_checked_quickly),
      cmocka_unit_test(shards_with_all_kinds_of_parts_are_joined),
      cmocka_unit_test(shards_that_speak_of_files_they_have_not_are_refused),
  };
  return cmocka_run_group_tests_name("manifest: chunks", tests, NULL, NULL);
}
