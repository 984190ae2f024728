/* Whatever the layout of files and tiles: the engine moves what a plain loop moves, both ways, and
 * touches nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Random cases (test_engine_support.h) over temporary files. Files and memory are compared whole,
 * so a byte in a gap that changes is seen, and a read that goes beyond a tile's memory is seen by
 * AddressSanitizer. */
#include "test_engine_support.h"

#include "engine/engine_priv.h"

/* ---- the plain loop ---- */

static size_t place_in_file(const move_case *c, const tegula__part *part, const int64_t *index) {
  int64_t place = part->offset;
  for (int32_t k = 0; k < c->manifest.ndim; k++)
    place += (index[k] - part->lo[k]) * part->strides[k];
  return (size_t)place;
}

static size_t place_in_memory(const move_case *c, int64_t tile, const int64_t *index) {
  int64_t place = (int64_t)c->memory_start[tile];
  for (int32_t k = 0; k < c->manifest.ndim; k++)
    place += (index[k] - c->tiles[tile].lo[k]) * c->tiles[tile].strides[k];
  return (size_t)place;
}

static void copy_item(unsigned char *to, const unsigned char *from, size_t size, size_t group,
                      bool swap) {
  for (size_t i = 0; i < size; i++)
    to[i] = from[swap ? i / group * group + (group - 1 - i % group) : i];
}

/* Moves every wanted element between images of the files and of the tiles' memory; returns the
 * bytes of it. */
static int64_t move_plainly(const move_case *c, unsigned char *const *files,
                            unsigned char *const *memory, bool writing) {
  int32_t ndim = c->manifest.ndim;
  int64_t index[MOST_AXES] = {0}, zero[MOST_AXES] = {0}, bytes = 0;
  size_t size = c->manifest.dtype.item_size, group = tegula__dtype_swap_size(c->manifest.dtype);
  if (box_is_empty(ndim, zero, c->manifest.shape)) return 0;
  do {
    int64_t tile = tile_of(c, index);
    if (tile < 0) continue;
    const tegula__part *part = &c->manifest.parts[part_of(c, index)];
    unsigned char *in_file = files[part->file] + place_in_file(c, part, index),
                  *in_memory = memory[tile] + place_in_memory(c, tile, index);
    bool swap = c->tiles[tile].order != part->order;
    copy_item(writing ? in_file : in_memory, writing ? in_memory : in_file, size, group, swap);
    bytes += (int64_t)size;
  } while (next_index(ndim, zero, c->manifest.shape, index));
  return bytes;
}

/* ---- one case ---- */

typedef struct images {
  unsigned char *files[MOST_PARTS], *memory[MOST_TILES], *expected[MOST_TILES];
} images;

static unsigned char *copy_of(const void *data, size_t size) {
  unsigned char *copy = malloc(size > 0 ? size : 1);
  assert_non_null(copy);
  memcpy(copy, data, size);
  return copy;
}

/* Random files on the disk and in memory; tiles of random bytes. */
static images images_make(uint64_t *seed, move_case *c, const folder *where) {
  images made = {0};
  for (int64_t i = 0; i < c->manifest.file_count; i++) {
    tegula__file *file = &c->manifest.files[i];
    free(file->path);
    file->path = strdup(name_in(where, "%d.bin", (int)i).text);
    made.files[i] = malloc((size_t)file->stamp.size + 1);
    assert_non_null(made.files[i]);
    random_bytes(seed, made.files[i], (size_t)file->stamp.size);
    unlink(file->path); /* some file systems are slow to write a truncated file again */
    file_write(file->path, made.files[i], (size_t)file->stamp.size);
  }
  for (int64_t i = 0; i < c->tile_count; i++) {
    made.memory[i] = malloc(c->memory_size[i] > 0 ? c->memory_size[i] : 1);
    assert_non_null(made.memory[i]);
    random_bytes(seed, made.memory[i], c->memory_size[i]);
    made.expected[i] = copy_of(made.memory[i], c->memory_size[i]);
    c->tiles[i].data = (char *)made.memory[i] + c->memory_start[i];
  }
  return made;
}

static void images_free(images *made, const move_case *c) {
  for (int64_t i = 0; i < c->manifest.file_count; i++) free(made->files[i]);
  for (int64_t i = 0; i < c->tile_count; i++) {
    free(made->memory[i]);
    free(made->expected[i]);
  }
}

/* ---- the heads of the files, which come with the first data that is read of each ---- */

typedef struct heads_state {
  const move_case *c;
  const images *made;
  size_t sizes[MOST_PARTS];
  _Atomic int checks[MOST_PARTS];
} heads_state;

static size_t head_size(void *state, int64_t file) { return ((heads_state *)state)->sizes[file]; }

static tegula_status head_check(void *state, int64_t file, const void *head, size_t size,
                                tegula_error *err) {
  heads_state *heads = state;
  heads->checks[file]++;
  if (size == heads->sizes[file] && memcmp(head, heads->made->files[file], size) == 0)
    return TEGULA_OK;
  return tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "the head of file %d is wrong", (int)file);
}

/* None, all in front of the data, or any number of bytes. */
static void choose_heads(uint64_t *seed, const move_case *c, const images *made, heads_state *out) {
  *out = (heads_state){.c = c, .made = made};
  for (int64_t i = c->manifest.part_count - 1; i >= 0; i--) {
    const tegula__part *part = &c->manifest.parts[i];
    int64_t kind = random_between(seed, 0, 3),
            most = tegula__min(TEGULA__HEAD_BYTES, c->manifest.files[part->file].stamp.size);
    out->sizes[part->file] = (size_t)(kind == 0   ? 0
                                      : kind == 1 ? random_between(seed, 0, most)
                                                  : tegula__min(part->offset, most));
  }
}

/* Each file of which anything was read brought its head once, the others never. */
static void check_heads(const move_case *c, const heads_state *heads) {
  int64_t index[MOST_AXES] = {0}, zero[MOST_AXES] = {0};
  bool wanted[MOST_PARTS] = {0};
  if (!box_is_empty(c->manifest.ndim, zero, c->manifest.shape)) {
    do {
      if (tile_of(c, index) >= 0) wanted[c->manifest.parts[part_of(c, index)].file] = true;
    } while (next_index(c->manifest.ndim, zero, c->manifest.shape, index));
  }
  for (int64_t i = 0; i < c->manifest.file_count; i++)
    assert_int_equal(heads->checks[i], wanted[i] && heads->sizes[i] > 0);
}

static void run_case(bench *b, move_case *c, bool writing, heads_state *state,
                     tegula_statistics *statistics, tegula__io_counts *counts) {
  tegula__heads heads = {.size = head_size, .check = head_check, .state = state};
  tegula_error error;
  tegula__file_set *set;
  assert_ok(tegula__file_set_create(b->handles, c->manifest.files, c->manifest.file_count, writing,
                                    &set, &error));
  tegula__move move = {.manifest = &c->manifest,
                       .files = set,
                       .tiles = c->tiles,
                       .tile_count = c->tile_count,
                       .writing = writing,
                       .heads = state != NULL ? &heads : NULL,
                       .statistics = statistics,
                       .counts = counts};
  assert_ok(tegula__engine_run(&b->engine, &move, &error));
  tegula__file_set_destroy(set);
}

static void compare(const move_case *c, const images *made, bool writing) {
  for (int64_t i = 0; i < c->tile_count; i++)
    if (memcmp(made->memory[i], made->expected[i], c->memory_size[i]) != 0)
      fail_msg("the memory of tile %d is wrong", (int)i);
  for (int64_t i = 0; i < c->manifest.file_count; i++) {
    size_t size;
    unsigned char *found = file_read(c->manifest.files[i].path, &size);
    assert_int_equal(size, c->manifest.files[i].stamp.size);
    if (memcmp(found, made->files[i], size) != 0)
      fail_msg("file %d is wrong after %s", (int)i, writing ? "writing" : "reading");
    free(found);
  }
}

static void move_many(bool writing, int rounds, uint64_t seed) {
  static const char *const dtypes[] = {"|u1",   "<f4",    "|V5",    "<c16", "<U3",
                                       "|V700", "|V1500", "<U5000", "<i8",  "<M8[s]"};
  /* slots of 32 KiB: steps are cut, items of 20000 bytes are one step each */
  bench b = bench_make(3, (int64_t)96 << 10, 4);
  int64_t direct = 0, staged = 0, steps = 0;
  for (int round = 0; round < rounds; round++) {
    move_case c;
    case_make(&seed, dtypes[round % 10], (int64_t)300 << 10, &c);
    images made = images_make(&seed, &c, &b.folder);
    int64_t bytes = move_plainly(&c, made.files, writing ? made.memory : made.expected, writing);
    tegula_statistics statistics;
    tegula_statistics_init(&statistics);
    tegula__io_counts counts = {0};
    heads_state heads;
    choose_heads(&seed, &c, &made, &heads);
    run_case(&b, &c, writing, writing ? NULL : &heads, &statistics, &counts);
    compare(&c, &made, writing);
    if (!writing) check_heads(&c, &heads);
    assert_int_equal(statistics.direct_bytes + statistics.staged_bytes, bytes);
    assert_true(statistics.steps > 0 || bytes == 0);
    if (writing) assert_int_equal(counts.bytes_written, bytes); /* a gap is never written */
    if (bytes > 0) assert_string_equal(statistics.io_path, writing ? "pwrite" : "pread");
    direct += statistics.direct_bytes;
    staged += statistics.staged_bytes;
    steps += statistics.steps;
    images_free(&made, &c);
    case_free(&c);
  }
  /* both paths were taken, and cases were cut */
  assert_true(direct > 0 && staged > 0 && steps > rounds);
  bench_free(&b);
}

static void reading_moves_what_a_plain_loop_moves(void **state) {
  (void)state;
  move_many(false, 300, 7);
}

/* Parts that hold something of the tile. */
static int64_t parts_of_tile(const move_case *c, const tegula__tile *tile) {
  int64_t count = 0, lo[MOST_AXES], hi[MOST_AXES];
  for (int64_t i = 0; i < c->manifest.part_count; i++)
    count += tegula__box_intersect(c->manifest.ndim, c->manifest.parts[i].lo,
                                   c->manifest.parts[i].hi, tile->lo, tile->hi, lo, hi);
  return count;
}

/* Each tile as a move of its own; returns how many were small enough to need no plan. */
static int64_t run_alone(bench *b, move_case *c, int64_t *bytes) {
  int64_t small = 0;
  tegula_error error;
  tegula__file_set *set;
  assert_ok(tegula__file_set_create(b->handles, c->manifest.files, c->manifest.file_count, false,
                                    &set, &error));
  for (int64_t i = 0; i < c->tile_count; i++) {
    tegula__io_counts counts = {0};
    tegula_statistics statistics;
    tegula_statistics_init(&statistics);
    tegula__move move = {.manifest = &c->manifest,
                         .files = set,
                         .tiles = &c->tiles[i],
                         .tile_count = 1,
                         .statistics = &statistics,
                         .counts = &counts};
    tegula_status status;
    bool taken = tegula__small_run(&b->engine, &move, &status, &error);
    if (!taken) status = tegula__engine_run(&b->engine, &move, &error);
    assert_ok(status);
    *bytes += statistics.direct_bytes + statistics.staged_bytes;
    small += taken;
    if (!taken) continue;
    /* one request for each, and one look behind it */
    assert_int_equal(counts.reads, parts_of_tile(c, &c->tiles[i]));
    assert_int_equal(counts.stats, counts.opens + counts.reads);
    assert_int_equal(statistics.steps, counts.reads);
    assert_int_equal(statistics.workers, 1);
    assert_string_equal(statistics.io_path, "pread");
  }
  tegula__file_set_destroy(set);
  return small;
}

static void small_boxes_need_no_plan(void **state) {
  (void)state;
  static const char *const dtypes[] = {"|u1", "<f4",   "|V5", "<c16",
                                       "<U3", "|V700", "<i8", "<U5000"};
  bench b = bench_make(2, 0, 2);
  int64_t small = 0, all = 0;
  uint64_t seed = 11;
  for (int round = 0; round < 300; round++) {
    move_case c;
    case_make(&seed, dtypes[round % 8], (int64_t)300 << 10, &c);
    images made = images_make(&seed, &c, &b.folder);
    int64_t bytes = move_plainly(&c, made.files, made.expected, false), moved = 0;
    small += run_alone(&b, &c, &moved);
    all += c.tile_count;
    compare(&c, &made, false);
    assert_int_equal(moved, bytes);
    images_free(&made, &c);
    case_free(&c);
  }
  assert_true(small > all / 3 && small < all * 2 / 3); /* large and empty ones are planned */
  bench_free(&b);
}

/* What has another form is planned: nothing is touched then. */
static void small_run_declines(void **state) {
  (void)state;
  bench b = bench_make(1, 0, 2);
  tegula_error error;
  tegula__heads heads = {0};
  for (int kind = 0; kind < 6; kind++) {
    tegula__manifest manifest;
    tegula__manifest_init(&manifest);
    manifest.dtype = dtype_of("<i4");
    manifest.ndim = 1;
    manifest.shape[0] = 32768;
    manifest.files = calloc(1, sizeof *manifest.files);
    manifest.file_count = 1;
    manifest.files[0].path = strdup(name_in(&b.folder, "none").text);
    manifest.files[0].stamp.size = 32768 * 4;
    int64_t zero = 0, end = kind == 1 ? 16385 : kind == 2 ? 0 : 16384, stride = 4, file_stride = 4;
    assert_ok(
        tegula__manifest_add(&manifest, 0, 0, &zero, manifest.shape, &file_stride, '<', &error));
    assert_ok(tegula__manifest_finish(&manifest, &error));
    tegula__tile tiles[2] = {
        {.lo = &zero, .hi = &end, .strides = &stride, .order = kind == 5 ? '>' : '<'},
        {.lo = &zero, .hi = &zero}};
    tegula__move move = {.manifest = &manifest,
                         .tiles = tiles,
                         .tile_count = kind == 3 ? 2 : 1,
                         .heads = kind == 4 ? &heads : NULL,
                         .writing = kind == 0};
    tegula_status status;
    /* written, large, empty, several, heads, much to be swapped */
    assert_false(tegula__small_run(&b.engine, &move, &status, &error));
    tegula__manifest_free(&manifest);
  }
  bench_free(&b);
}

static void writing_moves_what_a_plain_loop_moves(void **state) {
  (void)state;
  move_many(true, 300, 8);
}

/* An item larger than a staging slot is staged in memory of its own. */
static void items_larger_than_a_slot_are_staged(void **state) {
  (void)state;
  bench b = bench_make(2, 1, 4); /* one slot of 16 KiB */
  for (int writing = 0; writing < 2; writing++) {
    uint64_t seed = 9;
    move_case c;
    do {
      case_make(&seed, "<U5000", (int64_t)300 << 10, &c);
      if (c.manifest.ndim > 0 && c.tile_count > 0 && c.manifest.shape[0] > 0 &&
          c.manifest.part_count > 1)
        break;
      case_free(&c);
    } while (true);
    for (int64_t i = 0; i < c.tile_count; i++) c.tiles[i].order = '<';
    for (int64_t i = 0; i < c.manifest.part_count; i++) c.manifest.parts[i].order = '>';
    images made = images_make(&seed, &c, &b.folder);
    int64_t bytes = move_plainly(&c, made.files, writing ? made.memory : made.expected, writing);
    tegula_statistics statistics;
    tegula_statistics_init(&statistics);
    tegula__io_counts counts = {0};
    run_case(&b, &c, writing, NULL, &statistics, &counts);
    compare(&c, &made, writing);
    assert_true(bytes > 0);
    assert_int_equal(statistics.staged_bytes, bytes);
    images_free(&made, &c);
    case_free(&c);
  }
  bench_free(&b);
}

/* ---- how bytes travel: one file, tiles side by side ---- */

typedef struct wide {
  bench b;
  tegula__manifest manifest;
  char *memory;
  int64_t lo[4][2], hi[4][2], strides[2];
  tegula__tile tiles[4];
} wide;

/* One file of `rows` x `columns` of i4 at offset 0. */
static void wide_make(wide *w, int64_t rows, int64_t columns, char order, const char *stored,
                      int64_t tiles) {
  tegula_error error;
  w->b = bench_make(2, 0, 4);
  tegula__manifest_init(&w->manifest);
  w->manifest.dtype = dtype_of("<i4");
  w->manifest.ndim = 2;
  w->manifest.shape[0] = rows;
  w->manifest.shape[1] = columns;
  w->manifest.files = calloc(1, sizeof *w->manifest.files);
  assert_non_null(w->manifest.files);
  w->manifest.file_count = 1;
  w->manifest.files[0].path = strdup(name_in(&w->b.folder, "wide.bin").text);
  w->manifest.files[0].stamp.size = rows * columns * 4;
  w->memory = calloc((size_t)(rows * columns), 4);
  assert_non_null(w->memory);
  for (int64_t i = 0; i < rows * columns; i++) ((int32_t *)(void *)w->memory)[i] = (int32_t)i;
  file_write(w->manifest.files[0].path, w->memory, (size_t)(rows * columns) * 4);
  int64_t zero[2] = {0, 0}, strides[2];
  tegula__dense_strides(w->manifest.shape, 2, 4, order, strides);
  assert_ok(tegula__manifest_add(&w->manifest, 0, 0, zero, w->manifest.shape, strides,
                                 dtype_of(stored).order, &error));
  assert_ok(tegula__manifest_finish(&w->manifest, &error));
  w->strides[0] = columns * 4;
  w->strides[1] = 4;
  for (int64_t i = 0; i < tiles; i++) {
    w->lo[i][0] = 0, w->hi[i][0] = rows;
    w->lo[i][1] = columns * i / tiles, w->hi[i][1] = columns * (i + 1) / tiles;
    w->tiles[i] = (tegula__tile){.lo = w->lo[i],
                                 .hi = w->hi[i],
                                 .strides = w->strides,
                                 .data = w->memory + w->lo[i][1] * 4,
                                 .order = '<'};
  }
}

static tegula_statistics wide_run(wide *w, int64_t tiles, tegula__io_counts *counts) {
  tegula_error error;
  tegula__file_set *set;
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  assert_ok(tegula__file_set_create(w->b.handles, w->manifest.files, 1, false, &set, &error));
  tegula__move move = {.manifest = &w->manifest,
                       .files = set,
                       .tiles = w->tiles,
                       .tile_count = tiles,
                       .statistics = &statistics,
                       .counts = counts};
  assert_ok(tegula__engine_run(&w->b.engine, &move, &error));
  tegula__file_set_destroy(set);
  return statistics;
}

static void wide_free(wide *w) {
  free(w->memory);
  tegula__manifest_free(&w->manifest);
  bench_free(&w->b);
}

static void plain_rows_go_straight_to_their_place(void **state) {
  (void)state;
  wide w;
  wide_make(&w, 64, 16384, 'C', "<i4", 4); /* 4 MiB; each tile has 16 KiB of each row */
  tegula__io_counts counts = {0};
  tegula_statistics statistics = wide_run(&w, 4, &counts);
  assert_int_equal(statistics.direct_bytes, 4 << 20);
  assert_int_equal(statistics.staged_bytes, 0);
  assert_int_equal(counts.bytes_read, 4 << 20); /* each byte once, for all four tiles */
  assert_int_equal(counts.opens, 1);
  assert_int_equal(counts.stats, 2); /* at the open, and after the last read */
  assert_int_equal(counts.reads, statistics.steps);
  wide_free(&w);
}

static void swapped_and_fortran_files_are_staged(void **state) {
  (void)state;
  for (int fortran = 0; fortran < 2; fortran++) {
    wide w;
    wide_make(&w, 64, 16384, fortran ? 'F' : 'C', fortran ? "<i4" : ">i4", 4);
    tegula__io_counts counts = {0};
    tegula_statistics statistics = wide_run(&w, 4, &counts);
    assert_int_equal(statistics.direct_bytes, 0);
    assert_int_equal(statistics.staged_bytes, 4 << 20);
    assert_int_equal(counts.bytes_read, 4 << 20);
    const int32_t *values = (const int32_t *)(const void *)w.memory;
    /* element (3, 5) lies at 5 * rows + 3 */
    if (fortran) assert_int_equal(values[16384 * 3 + 5], 5 * 64 + 3);
    /* its bytes 03 02 01 00 read backwards */
    if (!fortran) assert_int_equal(values[0x010203], 0x03020100);
    wide_free(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reading_moves_what_a_plain_loop_moves),
      cmocka_unit_test(writing_moves_what_a_plain_loop_moves),
      cmocka_unit_test(items_larger_than_a_slot_are_staged),
      cmocka_unit_test(plain_rows_go_straight_to_their_place),
      cmocka_unit_test(swapped_and_fortran_files_are_staged),
      cmocka_unit_test(small_boxes_need_no_plan),
      cmocka_unit_test(small_run_declines),
  };
  return cmocka_run_group_tests_name("engine: move", tests, NULL, NULL);
}
