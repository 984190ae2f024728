/* Copies: the windows that they go in, and senseless arguments.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan/copy_windows.h"
#include "test_api_support.h"

/* ---- windows: boxes of a table of 2-d parts, each element once, whole chunks, within the memory
 * ---- */

enum { ROWS = 60, COLUMNS = 50 };

typedef struct layout {
  int64_t borders[4]; /* rows at which parts begin; ends with ROWS */
  int64_t chunk[2];   /* 0: dense */
  bool columns_first; /* dense, Fortran order */
} layout;

static void fill(const layout *from, tegula__manifest *manifest, tegula__part parts[3],
                 int64_t vectors[3][8]) {
  *manifest = (tegula__manifest){.dtype = {.kind = 'u', .order = '|', .item_size = 1},
                                 .ndim = 2,
                                 .shape = {ROWS, COLUMNS},
                                 .parts = parts};
  for (int64_t i = 0; from->borders[i] < ROWS; i++) {
    int64_t rows = from->borders[i + 1] - from->borders[i];
    const int64_t values[8] = {from->borders[i],
                               0,
                               from->borders[i + 1],
                               COLUMNS,
                               from->columns_first ? 1 : COLUMNS,
                               from->columns_first ? rows : 1,
                               from->chunk[0],
                               from->chunk[1]};
    memcpy(vectors[i], values, sizeof values);
    parts[i] =
        (tegula__part){.kind = from->chunk[0] > 0 ? TEGULA__PART_CHUNKED : TEGULA__PART_DENSE,
                       .lo = vectors[i],
                       .hi = vectors[i] + 2,
                       .strides = vectors[i] + 4,
                       .chunk = from->chunk[0] > 0 ? vectors[i] + 6 : NULL};
    manifest->part_count = i + 1;
  }
}

static const layout LAYOUTS[] = {
    {{0, ROWS}, {0, 0}, false},         {{0, ROWS}, {0, 0}, true},
    {{0, 1, 23, ROWS}, {0, 0}, false},  {{0, 17, ROWS}, {0, 0}, true},
    {{0, ROWS}, {7, 50}, false},        {{0, ROWS}, {7, 9}, false},
    {{0, 20, ROWS}, {20, 5}, false},    {{0, ROWS}, {60, 50}, false},
    {{0, 30, 31, ROWS}, {4, 3}, false},
};
enum { LAYOUT_COUNT = sizeof LAYOUTS / sizeof *LAYOUTS };

static void walk(const layout *source_layout, const layout *target_layout, int64_t most) {
  tegula__manifest source, target;
  tegula__part source_parts[3], target_parts[3];
  int64_t source_vectors[3][8], target_vectors[3][8];
  unsigned char seen[ROWS][COLUMNS] = {{0}};
  fill(source_layout, &source, source_parts, source_vectors);
  fill(target_layout, &target, target_parts, target_vectors);
  int64_t largest = tegula__windows_largest(&source, &target, most), last_part = 0, found = 0;
  int64_t unit =
      target_layout->chunk[0] > 0 ? target_layout->chunk[0] * target_layout->chunk[1] : 1;
  assert_true(largest <= (most > unit ? most : unit));
  tegula__windows w;
  tegula__windows_start(&w, &source, &target, most);
  while (tegula__windows_next(&w)) {
    const tegula__part *part = &target_parts[w.part];
    assert_true(w.part >= last_part);
    last_part = w.part;
    for (int k = 0; k < 2; k++) {
      assert_true(part->lo[k] <= w.lo[k] && w.lo[k] < w.hi[k] && w.hi[k] <= part->hi[k]);
      int64_t chunk = part->chunk != NULL ? part->chunk[k] : 1;
      assert_int_equal((w.lo[k] - part->lo[k]) % chunk, 0);
      assert_true(w.hi[k] == part->hi[k] || (w.hi[k] - part->lo[k]) % chunk == 0);
    }
    int64_t bytes = (w.hi[0] - w.lo[0]) * (w.hi[1] - w.lo[1]);
    assert_true(bytes <= largest);
    found = tegula__max(found, bytes);
    for (int64_t row = w.lo[0]; row < w.hi[0]; row++)
      for (int64_t column = w.lo[1]; column < w.hi[1]; column++)
        assert_int_equal(seen[row][column]++, 0);
  }
  assert_false(tegula__windows_next(&w));
  assert_int_equal(found, largest);
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++) assert_int_equal(seen[row][column], 1);
}

static void windows_cover_everything_once(void **state) {
  (void)state;
  static const int64_t memories[] = {1, 7, 50, 100, 333, 1000, 2999, 3000, INT64_MAX};
  for (int s = 0; s < LAYOUT_COUNT; s++)
    for (int t = 0; t < LAYOUT_COUNT; t++)
      for (size_t m = 0; m < sizeof memories / sizeof *memories; m++)
        walk(&LAYOUTS[s], &LAYOUTS[t], memories[m]);
}

/* The first window of a copy between two layouts, of items of some bytes. */
static tegula__windows first_of(const layout *source_layout, const layout *target_layout,
                                uint32_t item, int64_t most) {
  tegula__manifest source, target;
  tegula__part source_parts[3], target_parts[3];
  int64_t source_vectors[3][8], target_vectors[3][8];
  fill(source_layout, &source, source_parts, source_vectors);
  fill(target_layout, &target, target_parts, target_vectors);
  source.dtype.item_size = target.dtype.item_size = item;
  tegula__windows w;
  tegula__windows_start(&w, &source, &target, most * item);
  assert_true(tegula__windows_next(&w));
  return w;
}

static void first_is(const layout *source, const layout *target, uint32_t item, int64_t most,
                     int64_t rows, int64_t columns) {
  tegula__windows w = first_of(source, target, item, most);
  assert_int_equal(w.hi[0], rows);
  assert_int_equal(w.hi[1], columns);
}

static void windows_hold_whole_chunks_of_both_sides(void **state) {
  (void)state; /* chunks of the source go through a codec */
  const layout dense = {{0, ROWS}, {0, 0}, false}, fortran = {{0, ROWS}, {0, 0}, true};
  const layout chunks = {{0, ROWS}, {10, 10}, false}, wide = {{0, ROWS}, {4, 25}, false};
  first_is(&dense, &dense, 1024, 1020, 20, 50);     /* whole rows */
  first_is(&fortran, &fortran, 1024, 1020, 60, 17); /* whole columns */
  /* two rows of chunks, though 29 rows would fit */
  first_is(&chunks, &dense, 1024, 1499, 20, 50);
  /* no row of chunks fits: whole chunks next to each other */
  first_is(&chunks, &dense, 1024, 499, 10, 40);
  first_is(&chunks, &dense, 1024, 99, 9, 10); /* no chunk fits: most of one */
  first_is(&dense, &wide, 1024, 999, 16, 50); /* chunks of the target */
  /* of both: 20 rows are a multiple of 10 and 4 */
  first_is(&chunks, &wide, 1024, 1999, 20, 50);
  first_is(&chunks, &wide, 1024, 999, 20, 25); /* of one axis */
  first_is(&dense, &wide, 1024, 10, 4, 25);    /* never less than one */
}

static void windows_keep_what_follows_one_another_together(void **state) {
  (void)state;
  const layout dense = {{0, ROWS}, {0, 0}, false}, fortran = {{0, ROWS}, {0, 0}, true},
               narrow = {{0, ROWS}, {30, 2}, false};
  for (int way = 0; way < 2; way++) { /* a good piece in one file and in the other */
    tegula__windows w = first_of(way ? &fortran : &dense, way ? &dense : &fortran, 64, 100);
    assert_true(w.hi[0] >= 4 && w.hi[1] >= 4 && w.hi[0] * w.hi[1] > 80);
  }
  /* a chunk is decoded several times rather than written in pieces of 16 bytes */
  first_is(&narrow, &dense, 8, 400, 8, 50);
}

/* Parts of the source that hold next to nothing stand first: windows are those of the part behind
 * them. */
static void windows_follow_the_bytes_and_not_the_first_part(void **state) {
  (void)state;
  const layout dense = {{0, ROWS}, {0, 0}, false}, fortran = {{0, ROWS}, {0, 0}, true};
  const layout starts[] = {{{0, 0, ROWS}, {0, 0}, false}, {{0, 1, ROWS}, {0, 0}, false}};
  for (int columns_first = 0; columns_first < 2; columns_first++)
    for (int i = 0; i < 2; i++) {
      layout source = starts[i];
      source.columns_first = columns_first != 0;
      tegula__windows alone = first_of(columns_first ? &fortran : &dense, &dense, 64, 100);
      first_is(&source, &dense, 64, 100, alone.hi[0], alone.hi[1]);
    }
}

/* ---- arguments ---- */

static void senseless_copies(void **state) {
  (void)state;
  tegula_error error;
  folder where = shards_write(), target = folder_make();
  tegula_context *context = context_make(2);
  tegula_dataset *dataset = dataset_open(context, where.path);
  file_name name = name_in(&target, "copy.npy");
  const char *path = name.text;
  assert_refused(tegula_copy(NULL, path, NULL, NULL, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_copy(dataset, NULL, NULL, NULL, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_copy(dataset, "", NULL, NULL, NULL, &error), TEGULA_INVALID_ARGUMENT);
  static const tegula_copy_options cases[] = {
      {.memory = -1}, {.tiles = -1}, {.missing = 3}, {.flags = 8}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tegula_copy_options options = cases[i];
    options.struct_size = sizeof options;
    assert_refused(tegula_copy(dataset, path, NULL, &options, NULL, &error),
                   TEGULA_INVALID_ARGUMENT);
    assert_int_equal(tegula_copy(dataset, path, NULL, &options, NULL, NULL),
                     TEGULA_INVALID_ARGUMENT);
  }
  tegula_copy_report report = {.struct_size = 8};
  assert_refused(tegula_copy(dataset, path, NULL, NULL, &report, &error), TEGULA_INVALID_ARGUMENT);
  assert_false(path_exists(path));
  tegula_copy_report_init(&report);
  assert_ok(tegula_copy(dataset, path, NULL, NULL, &report, &error));
  assert_int_equal(report.bytes, report.stored_bytes);
  assert_true(report.bytes == SHARD_ROWS * SHARD_COLUMNS * 4 && report.windows == 1 &&
              report.files == 1 && report.hash[0] == '\0');
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  folder_remove(&where);
  folder_remove(&target);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows_cover_everything_once),
      cmocka_unit_test(windows_hold_whole_chunks_of_both_sides),
      cmocka_unit_test(windows_keep_what_follows_one_another_together),
      cmocka_unit_test(windows_follow_the_bytes_and_not_the_first_part),
      cmocka_unit_test(senseless_copies),
  };
  return cmocka_run_group_tests_name("api: copy", tests, NULL, NULL);
}
