/* Chunked, filled, lost and read parts: whatever the chunks, the files and the tiles, the engine
 * moves what a plain loop moves.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * An array is cut into boxes, also side by side. Each box is stored in its own way: in chunks of a
 * random shape (in random order and with gaps in a random file, some absent), densely, not at all,
 * or given by a function. The array's values are drawn first and then stored, by loops that go
 * element by element and know nothing of steps; what is loaded is compared with them. Chunks are
 * stored as they are: filters are there, but skipped. Boxes in chunks are often several parts that
 * share a grid: slabs of the box, that end anywhere in chunks. */
#include "test_engine_support.h"

#include <stdatomic.h>

enum { MOST_BOXES = 12, MOST_SHARERS = 5, MOST_FILES = 3 };

typedef struct world {
  move_case c;
  /* of the array, C order, native byte order; absent elements have their fill value */
  unsigned char *values;
  unsigned char *images[MOST_FILES];
  int64_t image_size[MOST_FILES], image_capacity[MOST_FILES];
  int64_t box_count, boxes[MOST_BOXES][2][MOST_AXES];
  _Atomic int64_t calls;   /* of the reader */
  _Atomic int64_t crossed; /* its calls that want more than one of its chunks */
  tegula_error lost;
  int64_t shared; /* see check_shared */
} world;

static size_t place_of(const tegula__manifest *m, const int64_t *index) {
  size_t place = 0;
  for (int32_t k = 0; k < m->ndim; k++) place = place * (size_t)m->shape[k] + (size_t)index[k];
  return place * m->dtype.item_size;
}

static void put(const world *w, unsigned char *to, const unsigned char *from, bool swap) {
  size_t size = w->c.manifest.dtype.item_size, group = tegula__dtype_swap_size(w->c.manifest.dtype);
  for (size_t i = 0; i < size; i++)
    to[i] = from[swap ? i / group * group + (group - 1 - i % group) : i];
}

/* ---- files ---- */

/* Room for `size` bytes somewhere behind what is there; the content is random until it is written
 * over. */
static int64_t take_room(uint64_t *seed, world *w, int64_t file, int64_t size) {
  int64_t gap = random_between(seed, 0, 3)    ? random_between(seed, 0, 40)
                : random_between(seed, 0, 20) ? 0
                                              : TEGULA__GAP + 5;
  int64_t offset = w->image_size[file] + gap;
  assert_true(tegula__vector_reserve((void **)&w->images[file], &w->image_capacity[file],
                                     offset + size, 1));
  random_bytes(seed, w->images[file] + w->image_size[file],
               (size_t)(offset + size - w->image_size[file]));
  w->image_size[file] = offset + size;
  return offset;
}

/* ---- parts ---- */

static void *random_fill(uint64_t *seed, world *w) {
  if (random_between(seed, 0, 1)) return NULL;
  unsigned char *fill = malloc(w->c.manifest.dtype.item_size);
  assert_non_null(fill);
  random_bytes(seed, fill, w->c.manifest.dtype.item_size);
  assert_int_equal(tegula__manifest_keep(&w->c.manifest, fill, NULL), TEGULA_OK);
  return fill;
}

static void set_value(world *w, const int64_t *index, const void *fill) {
  size_t size = w->c.manifest.dtype.item_size;
  if (fill != NULL)
    memcpy(w->values + place_of(&w->c.manifest, index), fill, size);
  else
    memset(w->values + place_of(&w->c.manifest, index), 0, size);
}

static uint8_t random_order(uint64_t *seed, const world *w) {
  if (tegula__dtype_swap_size(w->c.manifest.dtype) == 1) return w->c.manifest.dtype.order;
  return random_between(seed, 0, 1) ? '<' : '>';
}

/* How a box is stored in chunks. */
typedef struct layout {
  int64_t start[MOST_AXES], chunk[MOST_AXES], strides[MOST_AXES], slot_strides[MOST_AXES],
      counts[MOST_AXES];
  int64_t slot_base, offset, slots;
} layout;

static layout random_layout(uint64_t *seed, const world *w, const int64_t *lo, const int64_t *hi,
                            int64_t *chunk_bytes) {
  layout l = {0};
  int32_t ndim = w->c.manifest.ndim;
  int64_t item = w->c.manifest.dtype.item_size, slots = 1;
  bool large = random_between(seed, 0, 1), fortran = random_between(seed, 0, 1);
  for (int32_t k = 0; k < ndim; k++) {
    int64_t length = hi[k] - lo[k];
    bool folded = length == 1 && random_between(seed, 0, 1);
    l.chunk[k] = folded  ? 1
                 : large ? random_between(seed, length, length + 3)
                         : random_between(seed, 1, tegula__min(length + 2, 9));
    l.start[k] = folded || random_between(seed, 0, 1) ? 0 : random_between(seed, 0, 2 * l.chunk[k]);
    l.counts[k] = (l.start[k] + length + l.chunk[k] - 1) / l.chunk[k];
  }
  for (int32_t i = 0; i < ndim; i++) {
    int32_t k = fortran ? i : ndim - 1 - i;
    l.slot_strides[k] = slots;
    slots *= l.counts[k] + random_between(seed, 0, 1);
  }
  l.slot_base = random_between(seed, 0, 3);
  l.slots = l.slot_base + slots + random_between(seed, 0, 3);
  int64_t bytes = random_strides(seed, ndim, l.chunk, item, false, l.strides);
  l.offset = random_between(seed, 0, 3) ? 0 : random_between(seed, 1, 24);
  *chunk_bytes = l.offset + bytes + (random_between(seed, 0, 3) ? 0 : random_between(seed, 1, 24));
  for (int32_t k = 0; k < ndim; k++)
    if (l.chunk[k] == 1 && random_between(seed, 0, 1)) l.strides[k] = 0;
  return l;
}

static int64_t slot_of(const world *w, const layout *l, const int64_t *lo, const int64_t *index,
                       int64_t *byte) {
  int64_t slot = l->slot_base;
  *byte = l->offset;
  for (int32_t k = 0; k < w->c.manifest.ndim; k++) {
    int64_t g = l->start[k] + index[k] - lo[k];
    slot += g / l->chunk[k] * l->slot_strides[k];
    *byte += g % l->chunk[k] * l->strides[k];
  }
  return slot;
}

/* Chunks in random order; of those that are left out nothing is stored. */
static void store_chunks(uint64_t *seed, world *w, tegula__grid *grid) {
  int64_t *order = malloc((size_t)grid->slots * sizeof *order);
  assert_non_null(order);
  for (int64_t i = 0; i < grid->slots; i++) order[i] = i;
  bool shuffled = random_between(seed, 0, 1);
  for (int64_t i = grid->slots - 1; shuffled && i > 0; i--) {
    int64_t other = random_between(seed, 0, i), held = order[i];
    order[i] = order[other];
    order[other] = held;
  }
  int64_t absent = random_between(seed, 0, 2) ? 0 : random_between(seed, 1, 3);
  for (int64_t i = 0; i < grid->slots; i++) {
    tegula__chunk *chunk = &grid->chunks[order[i]];
    if (absent > 0 && random_between(seed, 0, absent) == 0) continue;
    *chunk = (tegula__chunk){
        .offset = (uint64_t)take_room(seed, w, grid->file, grid->chunk_bytes),
        .length = (uint32_t)grid->chunk_bytes,
        .mask = grid->filter_count > 0 ? UINT32_MAX >> random_between(seed, 0, 20) : 0};
  }
  free(order);
}

/* The table without its absent entries. */
static void make_sparse(tegula__grid *grid) {
  grid->coordinates = malloc((size_t)grid->slots * sizeof *grid->coordinates + 1);
  assert_non_null(grid->coordinates);
  grid->count = 0;
  for (int64_t i = 0; i < grid->slots; i++) {
    if (grid->chunks[i].length == 0) continue;
    grid->coordinates[grid->count] = (uint64_t)i;
    grid->chunks[grid->count++] = grid->chunks[i];
  }
}

/* The part as slabs of it. */
static void add_slabs(uint64_t *seed, tegula__manifest *m, const tegula__part *whole) {
  int32_t axis = m->ndim > 0 ? (int32_t)random_between(seed, 0, m->ndim - 1) : 0;
  int64_t lo[MOST_AXES] = {0}, hi[MOST_AXES] = {0}, start[MOST_AXES] = {0},
          count = m->ndim > 0 ? random_between(seed, 1, MOST_SHARERS) : 1;
  for (int32_t k = 0; k < m->ndim; k++) {
    lo[k] = whole->lo[k];
    hi[k] = whole->hi[k];
    start[k] = whole->start[k];
  }
  for (int64_t i = 1; i <= count; i++) {
    if (m->ndim > 0)
      hi[axis] = i == count ? whole->hi[axis] : random_between(seed, lo[axis], whole->hi[axis]);
    if (m->ndim > 0 && hi[axis] == lo[axis]) continue;
    tegula__part part = *whole;
    part.lo = lo;
    part.hi = hi;
    part.start = start;
    assert_int_equal(tegula__manifest_add_part(m, &part, NULL), TEGULA_OK);
    start[axis] += hi[axis] - lo[axis];
    lo[axis] = hi[axis];
  }
}

static void add_chunked(uint64_t *seed, world *w, const int64_t *lo, const int64_t *hi) {
  tegula__manifest *m = &w->c.manifest;
  tegula__grid *grid = calloc(1, sizeof *grid);
  assert_non_null(grid);
  layout l = random_layout(seed, w, lo, hi, &grid->chunk_bytes);
  grid->file = random_between(seed, 0, m->file_count - 1);
  grid->order = random_order(seed, w);
  grid->filter_count = (int32_t)random_between(seed, 0, 2);
  grid->filters = calloc(2, sizeof *grid->filters);
  grid->slots = grid->count = l.slots;
  grid->chunks = calloc((size_t)l.slots, sizeof *grid->chunks);
  assert_true(grid->filters != NULL && grid->chunks != NULL);
  grid->filters[0].codec = grid->filters[1].codec = TEGULA__CODEC_DEFLATE;
  grid->fill = random_fill(seed, w);
  store_chunks(seed, w, grid);
  int64_t index[MOST_AXES] = {0}, byte;
  for (int32_t k = 0; k < m->ndim; k++) index[k] = lo[k];
  do {
    const tegula__chunk *chunk = &grid->chunks[slot_of(w, &l, lo, index, &byte)];
    if (chunk->length != 0)
      put(w, w->images[grid->file] + chunk->offset + byte, w->values + place_of(m, index),
          grid->order != m->dtype.order);
    else
      set_value(w, index, grid->fill);
  } while (next_index(m->ndim, lo, hi, index));
  if (random_between(seed, 0, 1)) make_sparse(grid);
  assert_int_equal(tegula__manifest_add_grid(m, grid, NULL), TEGULA_OK);
  tegula__part part = {.kind = TEGULA__PART_CHUNKED,
                       .order = grid->order,
                       .file = TEGULA__NO_FILE,
                       .offset = l.offset,
                       .lo = lo,
                       .hi = hi,
                       .strides = l.strides,
                       .start = l.start,
                       .chunk = l.chunk,
                       .slot_strides = l.slot_strides,
                       .slot_base = l.slot_base,
                       .grid = grid};
  add_slabs(seed, m, &part);
}

static void add_dense(uint64_t *seed, world *w, const int64_t *lo, const int64_t *hi) {
  tegula__manifest *m = &w->c.manifest;
  int64_t extents[MOST_AXES], strides[MOST_AXES], index[MOST_AXES] = {0},
                                                  file = random_between(seed, 0, m->file_count - 1);
  for (int32_t k = 0; k < m->ndim; k++) extents[k] = hi[k] - (index[k] = lo[k]);
  uint8_t order = random_order(seed, w);
  int64_t offset = take_room(
      seed, w, file, random_strides(seed, m->ndim, extents, m->dtype.item_size, false, strides));
  do {
    int64_t place = offset;
    for (int32_t k = 0; k < m->ndim; k++) place += (index[k] - lo[k]) * strides[k];
    put(w, w->images[file] + place, w->values + place_of(m, index), order != m->dtype.order);
  } while (next_index(m->ndim, lo, hi, index));
  assert_int_equal(tegula__manifest_add(m, file, offset, lo, hi, strides, order, NULL), TEGULA_OK);
}

static tegula_status read_values(void *state, const tegula_view *view, tegula_error *err) {
  world *w = state;
  const tegula__manifest *m = &w->c.manifest;
  int64_t index[MOST_AXES] = {0};
  (void)err;
  atomic_fetch_add(&w->calls, 1);
  for (int32_t k = 0; k < m->ndim; k++) index[k] = view->box.lo[k];
  const tegula__part *part = &m->parts[part_of(&w->c, index)];
  for (int32_t k = 0; k < m->ndim && part->chunk != NULL; k++) { /* within one piece of its own */
    int64_t first = part->start[k] + view->box.lo[k] - part->lo[k],
            last = part->start[k] + view->box.hi[k] - 1 - part->lo[k];
    if (first / part->chunk[k] != last / part->chunk[k]) atomic_fetch_add(&w->crossed, 1);
  }
  do {
    char *to = view->data;
    for (int32_t k = 0; k < m->ndim; k++)
      to += (index[k] - view->box.lo[k]) * view->stride_bytes[k];
    memcpy(to, w->values + place_of(m, index), m->dtype.item_size);
  } while (next_index(m->ndim, view->box.lo, view->box.hi, index));
  return TEGULA_OK;
}

static void add_without_file(uint64_t *seed, world *w, tegula__part_kind kind, const int64_t *lo,
                             const int64_t *hi) {
  tegula__manifest *m = &w->c.manifest;
  int64_t extents[MOST_AXES], strides[MOST_AXES], chunk[MOST_AXES], start[MOST_AXES] = {0},
                                                                    index[MOST_AXES] = {0};
  for (int32_t k = 0; k < m->ndim; k++) {
    extents[k] = hi[k] - (index[k] = lo[k]);
    chunk[k] = random_between(seed, 1, extents[k] + 1);
    start[k] = random_between(seed, 0, chunk[k]);
  }
  tegula__dense_strides(extents, m->ndim, m->dtype.item_size, 'C', strides);
  tegula__part part = {.kind = kind,
                       .order = m->dtype.order,
                       .file = TEGULA__NO_FILE,
                       .lo = lo,
                       .hi = hi,
                       .strides = strides};
  if (kind == TEGULA__PART_READ) {
    tegula__reader *reader = calloc(1, sizeof *reader);
    assert_non_null(reader);
    *reader = (tegula__reader){.read = read_values, .state = w, .name = strdup("test")};
    assert_int_equal(tegula__manifest_add_reader(m, reader, NULL), TEGULA_OK);
    part.reader = reader;
    part.start = start;
    if (random_between(seed, 0, 1)) part.chunk = chunk;
  } else {
    part.fill = random_fill(seed, w);
    part.lost = kind == TEGULA__PART_LOST ? &w->lost : NULL;
    do set_value(w, index, part.fill);
    while (next_index(m->ndim, lo, hi, index));
  }
  assert_int_equal(tegula__manifest_add_part(m, &part, NULL), TEGULA_OK);
}

static void cut_boxes(uint64_t *seed, world *w, const int64_t *lo, const int64_t *hi, int depth) {
  int32_t ndim = w->c.manifest.ndim,
          axis = ndim > 0 ? (int32_t)random_between(seed, 0, ndim - 1) : 0;
  if (depth == 0 || ndim == 0 || hi[axis] - lo[axis] < 2 || w->box_count > MOST_BOXES - 6 ||
      random_between(seed, 0, 3) == 0) {
    for (int32_t k = 0; k < ndim; k++) {
      w->boxes[w->box_count][0][k] = lo[k];
      w->boxes[w->box_count][1][k] = hi[k];
    }
    w->box_count++;
    return;
  }
  int64_t middle = random_between(seed, lo[axis] + 1, hi[axis] - 1), other[MOST_AXES] = {0};
  for (int32_t k = 0; k < ndim; k++) other[k] = k == axis ? middle : hi[k];
  cut_boxes(seed, w, lo, other, depth - 1);
  for (int32_t k = 0; k < ndim; k++) other[k] = k == axis ? middle : lo[k];
  cut_boxes(seed, w, other, hi, depth - 1);
}

static void add_box(uint64_t *seed, world *w, int64_t i, bool only_chunks) {
  int64_t kind = only_chunks ? 0 : random_between(seed, 0, 9), *lo = w->boxes[i][0],
          *hi = w->boxes[i][1];
  if (kind < 5)
    add_chunked(seed, w, lo, hi);
  else if (kind < 6)
    add_dense(seed, w, lo, hi);
  else
    add_without_file(seed, w,
                     kind < 7   ? TEGULA__PART_FILL
                     : kind < 8 ? TEGULA__PART_LOST
                                : TEGULA__PART_READ,
                     lo, hi);
}

/* ---- a case ---- */

static void random_shape(uint64_t *seed, tegula__manifest *m, int64_t most_bytes) {
  int64_t bytes = m->dtype.item_size;
  m->ndim = (int32_t)random_between(seed, 0, MOST_AXES);
  for (int32_t k = 0; k < m->ndim; k++) {
    int64_t room = tegula__max(1, most_bytes / bytes);
    m->shape[k] =
        random_between(seed, 1, k + 1 == m->ndim ? tegula__min(room, 4000) : tegula__min(room, 12));
    bytes *= m->shape[k];
  }
}

static void make_tiles(uint64_t *seed, move_case *c) {
  int64_t zero[MOST_AXES] = {0};
  if (random_between(seed, 0, 1))
    cut_grid(seed, c);
  else
    cut_randomly(seed, c, zero, c->manifest.shape, 4);
  if (random_between(seed, 0, 2) == 0) leave_some_out(seed, c);
  bool dense = random_between(seed, 0, 1);
  for (int64_t i = 0; i < c->tile_count; i++) {
    make_memory(seed, c, i, dense);
    unsigned char *memory = malloc(c->memory_size[i] > 0 ? c->memory_size[i] : 1);
    assert_non_null(memory);
    memset(memory, 0xA5, c->memory_size[i]);
    c->tiles[i].data = (char *)memory + c->memory_start[i];
  }
}

static world *world_make(uint64_t *seed, const char *dtype, const folder *where, bool only_chunks) {
  world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  tegula__manifest *m = &w->c.manifest;
  int64_t zero[MOST_AXES] = {0}, elements;
  tegula__manifest_init(m);
  m->dtype = tegula_dtype_native(dtype_of(dtype));
  m->name = "data";
  random_shape(seed, m, (int64_t)200 << 10);
  assert_true(tegula__shape_count(m->shape, m->ndim, &elements));
  w->values = malloc((size_t)elements * m->dtype.item_size);
  m->files = calloc(MOST_FILES, sizeof *m->files);
  assert_true(w->values != NULL && m->files != NULL);
  random_bytes(seed, w->values, (size_t)elements * m->dtype.item_size);
  tegula__fail(&w->lost, TEGULA_INCOMPLETE, "gone.bin", -1, "the source is gone");
  m->file_count = random_between(seed, 1, MOST_FILES);
  cut_boxes(seed, w, zero, m->shape, 3);
  for (int64_t i = 0; i < w->box_count; i++) add_box(seed, w, i, only_chunks);
  for (int64_t i = 0; i < m->file_count; i++) {
    m->files[i].path = strdup(name_in(where, "%d.bin", (int)i).text);
    m->files[i].stamp.size = w->image_size[i];
    unlink(m->files[i].path);
    file_write(m->files[i].path, w->images[i] != NULL ? w->images[i] : (const void *)"",
               (size_t)w->image_size[i]);
  }
  tegula_error error;
  assert_ok(tegula__manifest_finish(m, &error));
  make_tiles(seed, &w->c);
  return w;
}

static void world_free(world *w) {
  for (int64_t i = 0; i < w->c.tile_count; i++)
    free((char *)w->c.tiles[i].data - w->c.memory_start[i]);
  for (int i = 0; i < MOST_FILES; i++) free(w->images[i]);
  case_free(&w->c);
  free(w->values);
  free(w);
}

/* What tiles want, by a loop over all elements. */
typedef struct wanted {
  int64_t bytes, absent, lost, read_bytes, absent_bytes;
} wanted;

static int64_t slot_number(const world *w, const tegula__part *part, const int64_t *index) {
  int64_t slot = part->slot_base;
  for (int32_t k = 0; k < w->c.manifest.ndim; k++)
    slot += (part->start[k] + index[k] - part->lo[k]) / part->chunk[k] * part->slot_strides[k];
  return slot;
}

/* Per slot: is it there, or was it counted? */
static bool *mark_stored(const tegula__part *part) {
  bool *marks = calloc((size_t)(part->grid != NULL ? part->grid->slots : 1), sizeof *marks);
  assert_non_null(marks);
  if (part->kind == TEGULA__PART_DENSE || part->kind == TEGULA__PART_READ) marks[0] = true;
  for (int64_t i = 0; part->grid != NULL && i < part->grid->count; i++)
    if (part->grid->chunks[i].length != 0)
      marks[part->grid->coordinates != NULL ? part->grid->coordinates[i] : (uint64_t)i] = true;
  return marks;
}

static wanted count_wanted(const world *w) {
  const tegula__manifest *m = &w->c.manifest;
  int64_t index[MOST_AXES] = {0}, zero[MOST_AXES] = {0}, number, item = m->dtype.item_size;
  wanted sum = {0};
  bool *there[MOST_BOXES * MOST_SHARERS], *seen[MOST_BOXES * MOST_SHARERS];
  for (int64_t i = 0; i < m->part_count; i++) {
    there[i] = mark_stored(&m->parts[i]);
    seen[i] = mark_stored(&m->parts[i]);
  }
  do {
    if (tile_of(&w->c, index) < 0) continue;
    int64_t p = part_of(&w->c, index);
    const tegula__part *part = &m->parts[p];
    sum.bytes += item;
    sum.read_bytes += part->kind == TEGULA__PART_READ ? item : 0;
    number = part->kind == TEGULA__PART_CHUNKED ? slot_number(w, part, index) : 0;
    if (there[p][number]) continue;
    sum.absent_bytes += item;
    sum.absent += !seen[p][number];
    sum.lost += part->kind == TEGULA__PART_LOST && !seen[p][number];
    seen[p][number] = true;
  } while (next_index(m->ndim, zero, m->shape, index));
  for (int64_t i = 0; i < m->part_count; i++) {
    free(there[i]);
    free(seen[i]);
  }
  return sum;
}

/* Every element, and every byte between elements, of the tiles. */
static void check_tiles(const world *w) {
  const move_case *c = &w->c;
  const tegula__manifest *m = &c->manifest;
  for (int64_t i = 0; i < c->tile_count; i++) {
    unsigned char *expected = malloc(c->memory_size[i] > 0 ? c->memory_size[i] : 1);
    int64_t index[MOST_AXES] = {0};
    assert_non_null(expected);
    memset(expected, 0xA5, c->memory_size[i]);
    for (int32_t k = 0; k < m->ndim; k++) index[k] = c->tiles[i].lo[k];
    if (!box_is_empty(m->ndim, c->tiles[i].lo, c->tiles[i].hi)) {
      do {
        unsigned char *to = expected + c->memory_start[i];
        for (int32_t k = 0; k < m->ndim; k++)
          to += (index[k] - c->tiles[i].lo[k]) * c->tiles[i].strides[k];
        put(w, to, w->values + place_of(m, index), c->tiles[i].order != m->dtype.order);
      } while (next_index(m->ndim, c->tiles[i].lo, c->tiles[i].hi, index));
    }
    if (memcmp(expected, (char *)c->tiles[i].data - c->memory_start[i], c->memory_size[i]) != 0)
      fail_msg("tile %d is wrong", (int)i);
    free(expected);
  }
}

typedef struct progress {
  int64_t done, total, calls;
} progress;

static int see_progress(void *state, int64_t done, int64_t total) {
  progress *p = state;
  p->done = done;
  p->total = total;
  p->calls++;
  return 0;
}

typedef struct outcome {
  tegula_status status;
  tegula_error error;
  tegula_statistics statistics;
  tegula__io_counts counts;
  progress progress;
} outcome;

static void world_run(bench *b, world *w, tegula_missing missing, outcome *out) {
  tegula_error error;
  tegula__file_set *set;
  *out = (outcome){0};
  tegula_statistics_init(&out->statistics);
  atomic_store(&w->calls, 0);
  assert_ok(tegula__file_set_create(b->handles, w->c.manifest.files, w->c.manifest.file_count,
                                    false, &set, &error));
  tegula__move move = {.manifest = &w->c.manifest,
                       .files = set,
                       .tiles = w->c.tiles,
                       .tile_count = w->c.tile_count,
                       .missing = missing,
                       .progress = see_progress,
                       .progress_state = &out->progress,
                       .statistics = &out->statistics,
                       .counts = &out->counts};
  out->status = tegula__engine_run(&b->engine, &move, &out->error);
  tegula__file_set_destroy(set);
}

/* What is read whole is read by one step. Returns how many chunks of the plan come with another
 * one's. */
static int64_t check_shared(const tegula__plan *plan) {
  int64_t shared = 0;
  for (int64_t i = 0; i < plan->step_count; i++) {
    const tegula__step *step = &plan->steps[i];
    if (step->kind != TEGULA__STEP_CHUNKS) continue;
    for (int64_t k = step->first; k < step->first + step->count; k++) {
      bool again = k > step->first && plan->chunks[k].entry == plan->chunks[k - 1].entry;
      shared += again;
      for (int64_t other = 0; !again && other < plan->chunk_count; other++)
        if (plan->chunks[other].entry == plan->chunks[k].entry)
          assert_true(other >= k && other < step->first + step->count);
    }
  }
  return shared;
}

/* Requests and calls of the reader, as the plan counts them. */
static int64_t planned_requests(const bench *b, world *w) {
  tegula_error error;
  tegula__targets targets;
  tegula__plan plan;
  int64_t reads[MOST_TILES] = {0}, total = 0;
  tegula__plan_limits limits = {.threads = tegula__pool_threads(b->engine.pool),
                                .staging_slot = tegula__staging_slot(b->engine.staging)};
  assert_ok(
      tegula__targets_create(w->c.manifest.ndim, w->c.tiles, w->c.tile_count, &targets, &error));
  assert_ok(tegula__plan_create(&w->c.manifest, &targets, &limits, &plan, &error));
  assert_ok(tegula__plan_requests(&plan, TEGULA__IO_VECTORS, reads, &total, &error));
  w->shared += check_shared(&plan);
  tegula__plan_free(&plan);
  tegula__targets_free(&targets);
  return total;
}

static void check_run(const bench *b, world *w, const outcome *o, const wanted *want) {
  assert_int_equal(o->statistics.reader_bytes, want->read_bytes);
  assert_int_equal(o->statistics.direct_bytes + o->statistics.staged_bytes,
                   want->bytes - want->read_bytes - want->absent_bytes);
  assert_int_equal(o->statistics.missing, want->absent);
  assert_int_equal(atomic_load(&w->crossed), 0);
  assert_int_equal(o->counts.reads + atomic_load(&w->calls), planned_requests(b, w));
  assert_int_equal(o->progress.done, want->bytes);
  assert_int_equal(o->progress.total, want->bytes);
  assert_true(want->bytes == 0 || o->progress.calls > 0);
}

static void check_mode(bench *b, world *w, tegula_missing missing, const wanted *want) {
  outcome o;
  world_run(b, w, missing, &o);
  bool fails = missing == TEGULA_MISSING_STRICT ? want->absent > 0
                                                : missing == TEGULA_MISSING_ERROR && want->lost > 0;
  if (!fails) {
    if (o.status != TEGULA_OK) fail_msg("%s", o.error.message);
    check_tiles(w);
    check_run(b, w, &o, want);
    return;
  }
  assert_int_equal(o.status, TEGULA_INCOMPLETE);
  bool lost = strstr(o.error.message, "the source is gone") != NULL;
  assert_true(lost ? want->lost > 0 : missing == TEGULA_MISSING_STRICT);
  if (!lost) assert_contains(o.error.message, "of dataset \"data\"");
  if (!lost) assert_contains(o.error.message, "was never written");
}

static void any_parts_and_tiles_are_moved_right(void **state) {
  (void)state;
  static const char *const dtypes[] = {"|u1", "<i2", "<f4", "<f8", "<c16", "|V5", "<U3", "|V16"};
  static const tegula_missing modes[] = {TEGULA_MISSING_FILL, TEGULA_MISSING_ERROR,
                                         TEGULA_MISSING_STRICT};
  bench b = bench_make(3, (int64_t)96 << 10, 4);
  uint64_t seed = 21;
  int64_t absent = 0, lost = 0, read = 0, shared = 0;
  for (int round = 0; round < rounds_of(400); round++) {
    world *w = world_make(&seed, dtypes[round % 8], &b.folder, round % 4 == 0);
    wanted want = count_wanted(w);
    for (int m = 0; m < (round % 3 == 0 ? 3 : 1); m++) check_mode(&b, w, modes[m], &want);
    absent += want.absent;
    lost += want.lost;
    read += want.read_bytes;
    shared += w->shared;
    world_free(w);
  }
  assert_true(absent > 100 && lost > 10 && read > 1000 && shared > 1000);
  bench_free(&b);
}

/* ---- ways and errors ---- */

/* One file with `count` chunks one behind the other, each `rows` rows of `columns` bytes; all in
 * one tile. */
typedef struct stack {
  bench b;
  tegula__manifest manifest;
  tegula__grid *grid;
  char *memory;
  int64_t strides[2];
  int64_t zero[2];
} stack;

static void stack_make(stack *s, int64_t count, int64_t rows, int64_t columns, int64_t staging) {
  tegula_error error;
  *s = (stack){.b = bench_make(2, staging, 4)};
  tegula__manifest *m = &s->manifest;
  tegula__manifest_init(m);
  m->dtype = dtype_of("|u1");
  m->name = "/x";
  m->ndim = 2;
  m->shape[0] = count * rows;
  m->shape[1] = columns;
  m->files = calloc(1, sizeof *m->files);
  s->grid = calloc(1, sizeof *s->grid);
  s->memory = malloc((size_t)(count * rows * columns));
  assert_true(m->files != NULL && s->grid != NULL && s->memory != NULL);
  m->file_count = 1;
  m->files[0] = (tegula__file){.path = strdup(name_in(&s->b.folder, "stack.bin").text),
                               .stamp = {.size = count * rows * columns}};
  for (int64_t i = 0; i < count * rows * columns; i++) s->memory[i] = (char)(i * 7 + i / 251);
  file_write(m->files[0].path, s->memory, (size_t)m->files[0].stamp.size);
  *s->grid =
      (tegula__grid){.chunk_bytes = rows * columns, .order = '|', .slots = count, .count = count};
  s->grid->chunks = calloc((size_t)count, sizeof *s->grid->chunks);
  assert_non_null(s->grid->chunks);
  for (int64_t i = 0; i < count; i++)
    s->grid->chunks[i] = (tegula__chunk){.offset = (uint64_t)(i * rows * columns),
                                         .length = (uint32_t)(rows * columns)};
  s->strides[0] = columns;
  s->strides[1] = 1;
  assert_ok(tegula__manifest_add_grid(m, s->grid, &error));
  tegula__part part = {.kind = TEGULA__PART_CHUNKED,
                       .order = '|',
                       .file = TEGULA__NO_FILE,
                       .lo = s->zero,
                       .hi = m->shape,
                       .strides = s->strides,
                       .start = s->zero,
                       .chunk = (int64_t[]){rows, columns},
                       .slot_strides = (int64_t[]){1, 0},
                       .grid = s->grid};
  assert_ok(tegula__manifest_add_part(m, &part, &error));
  assert_ok(tegula__manifest_finish(m, &error));
}

static tegula_status stack_run(stack *s, tegula__file_set *set, tegula_missing missing, char *out,
                               tegula_statistics *statistics, tegula__io_counts *counts,
                               tegula_error *error) {
  tegula__tile tile = {
      .lo = s->zero, .hi = s->manifest.shape, .strides = s->strides, .data = out, .order = '|'};
  tegula__move move = {.manifest = &s->manifest,
                       .files = set,
                       .tiles = &tile,
                       .tile_count = 1,
                       .missing = missing,
                       .statistics = statistics,
                       .counts = counts};
  tegula_statistics_init(statistics);
  *counts = (tegula__io_counts){0};
  return tegula__engine_run(&s->b.engine, &move, error);
}

static void stack_free(stack *s) {
  free(s->memory);
  tegula__manifest_free(&s->manifest);
  bench_free(&s->b);
}

/* Exchanges the places of the first two chunks: what was in order is so no longer. */
static void exchange_two(stack *s) {
  tegula__chunk *chunks = s->grid->chunks, first = chunks[0];
  size_t bytes = (size_t)s->grid->chunk_bytes;
  chunks[0] = chunks[1];
  chunks[1] = first;
  char *kept = malloc(bytes);
  assert_non_null(kept);
  memcpy(kept, s->memory, bytes);
  memcpy(s->memory, s->memory + bytes, bytes);
  memcpy(s->memory + bytes, kept, bytes);
  free(kept);
}

/* Large ones, and small ones that follow each other; but not small ones alone. */
static void plain_chunks_go_straight_from_64_kib_on(void **state) {
  (void)state;
  enum { LARGE, FOLLOWING, ALONE, CASES };
  for (int kind = 0; kind < CASES; kind++) {
    stack s;
    tegula_error error;
    tegula_statistics statistics;
    tegula__io_counts counts;
    tegula__file_set *set;
    int64_t count = kind == ALONE ? 3 : 16;
    stack_make(&s, count, 16, kind == LARGE ? 4096 : 4095, 0); /* 64 KiB, or 16 bytes less */
    size_t size = (size_t)s.manifest.files[0].stamp.size;
    assert_ok(tegula__file_set_create(s.b.handles, s.manifest.files, 1, false, &set, &error));
    char *out = malloc(size);
    assert_non_null(out);
    if (kind == ALONE) exchange_two(&s); /* 1, 0, 2: nobody is followed by his neighbour */
    assert_ok(stack_run(&s, set, TEGULA_MISSING_STRICT, out, &statistics, &counts, &error));
    assert_memory_equal(out, s.memory, size);
    assert_int_equal(kind == ALONE ? statistics.staged_bytes : statistics.direct_bytes, size);
    assert_int_equal(counts.bytes_read, size);
    assert_int_equal(statistics.missing, 0);
    tegula__file_set_destroy(set);
    free(out);
    stack_free(&s);
  }
}

/* Larger than the whole budget: one at a time, and nothing is kept. */
static void chunks_larger_than_the_budget_are_moved(void **state) {
  (void)state;
  stack s;
  tegula_error error;
  tegula_statistics statistics;
  tegula__io_counts counts;
  tegula__file_set *set;
  /* one slot of 16 KiB; chunks of 32 KiB, whose memory is lent in units of 256 KiB */
  stack_make(&s, 6, 8, 4001, 1);
  size_t size = (size_t)s.manifest.files[0].stamp.size;
  char *out = malloc(size);
  assert_non_null(out);
  assert_ok(tegula__file_set_create(s.b.handles, s.manifest.files, 1, false, &set, &error));
  assert_ok(stack_run(&s, set, TEGULA_MISSING_ERROR, out, &statistics, &counts, &error));
  assert_memory_equal(out, s.memory, size);
  tegula__file_set_destroy(set);
  free(out);
  stack_free(&s);
}

static void a_file_that_was_cut_or_changed_is_an_error(void **state) {
  (void)state;
  for (int cut = 0; cut < 2; cut++) {
    stack s;
    tegula_error error;
    tegula_statistics statistics;
    tegula__io_counts counts = {0};
    tegula__file_set *set;
    int fd;
    stack_make(&s, 64, 8, 1000, 0);
    size_t size = (size_t)s.manifest.files[0].stamp.size;
    char *out = malloc(size);
    assert_non_null(out);
    assert_ok(tegula__file_set_create(s.b.handles, s.manifest.files, 1, false, &set, &error));
    assert_ok(tegula__file_set_acquire(set, 0, &counts, &fd, &error)); /* described */
    tegula__file_set_release(set, 0);
    sleep_ms(20);
    if (cut)
      assert_int_equal(truncate(s.manifest.files[0].path, (off_t)size / 2 + 100), 0);
    else
      file_write(s.manifest.files[0].path, s.memory, size);
    tegula_status status =
        stack_run(&s, set, TEGULA_MISSING_ERROR, out, &statistics, &counts, &error);
    assert_true(status == TEGULA_CHANGED || (cut && status == TEGULA_SHORT_FILE));
    assert_contains(error.message, "stack.bin");
    tegula__file_set_destroy(set);
    free(out);
    stack_free(&s);
  }
}

static void strict_names_the_first_chunk_that_is_absent(void **state) {
  (void)state;
  stack s;
  tegula_error error;
  tegula_statistics statistics;
  tegula__io_counts counts;
  tegula__file_set *set;
  stack_make(&s, 10, 8, 100, 0);
  s.grid->chunks[7].length = 0;
  s.grid->chunks[3].length = 0;
  char *out = malloc(8000);
  assert_non_null(out);
  assert_ok(tegula__file_set_create(s.b.handles, s.manifest.files, 1, false, &set, &error));
  assert_refused(stack_run(&s, set, TEGULA_MISSING_STRICT, out, &statistics, &counts, &error),
                 TEGULA_INCOMPLETE);
  assert_contains(error.message, "the data at (24, 0) of dataset \"/x\" in \"");
  assert_contains(error.message, "stack.bin\" was never written");
  assert_ok(stack_run(&s, set, TEGULA_MISSING_ERROR, out, &statistics, &counts, &error));
  assert_int_equal(statistics.missing, 2);
  memset(s.memory + 2400, 0, 800); /* no fill value is defined */
  memset(s.memory + 5600, 0, 800);
  assert_memory_equal(out, s.memory, 8000);
  tegula__file_set_destroy(set);
  free(out);
  stack_free(&s);
}

/* Whatever thread meets it: files are cut so that several steps fail. */
static void the_error_is_the_first_by_offset(void **state) {
  (void)state;
  stack s;
  tegula_error error, first = {0};
  tegula_statistics statistics;
  tegula__io_counts counts;
  stack_make(&s, 64, 16, 4096, 0);
  size_t size = (size_t)s.manifest.files[0].stamp.size;
  char *out = malloc(size);
  assert_non_null(out);
  assert_int_equal(truncate(s.manifest.files[0].path, (off_t)size / 2 + 100), 0);
  for (int round = 0; round < 20; round++) {
    tegula__file_set *set;
    assert_ok(tegula__file_set_create(s.b.handles, s.manifest.files, 1, false, &set, &error));
    assert_refused(stack_run(&s, set, TEGULA_MISSING_ERROR, out, &statistics, &counts, &error),
                   TEGULA_SHORT_FILE);
    assert_int_equal(error.offset, size / 2 + 100);
    if (round == 0) first = error;
    assert_string_equal(error.message, first.message);
    tegula__file_set_destroy(set);
  }
  free(out);
  stack_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_parts_and_tiles_are_moved_right),
      cmocka_unit_test(plain_chunks_go_straight_from_64_kib_on),
      cmocka_unit_test(chunks_larger_than_the_budget_are_moved),
      cmocka_unit_test(a_file_that_was_cut_or_changed_is_an_error),
      cmocka_unit_test(strict_names_the_first_chunk_that_is_absent),
      cmocka_unit_test(the_error_is_the_first_by_offset),
  };
  return cmocka_run_group_tests_name("engine: chunks", tests, NULL, NULL);
}
