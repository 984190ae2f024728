/* Datasets with chunked, filled and lost parts through the public header: information, verify,
 * hash, compare, batches, tilings, explain.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * No format gives such parts without a plugin: the datasets are put together here. Chunks are
 * stored as they are. */
#include "test_api_support.h"

#include "api/api.h"

/* An array of bytes: `rows` x `columns` in chunks (all of file 0), then optionally more rows.
 * Element i is value(i). */
typedef struct world {
  folder folder;
  tegula_context *context;
  tegula_dataset *dataset;
  int64_t rows, columns, chunk[2], stored;
  tegula_error lost;
} world;

static unsigned char value(int64_t row, int64_t column) {
  return (unsigned char)(row * 31 + column * 7 + row / 256 + 1);
}

static void add_file(world *w, const char *name, const unsigned char *bytes, size_t size) {
  tegula__manifest *m = &w->dataset->manifest;
  m->files = realloc(m->files, (size_t)(m->file_count + 1) * sizeof *m->files);
  assert_non_null(m->files);
  m->files[m->file_count++] = (tegula__file){.path = strdup(name_in(&w->folder, "%s", name).text),
                                             .stamp = {.size = (int64_t)size}};
  file_write(m->files[m->file_count - 1].path, bytes, size);
}

/* The box [lo, hi) in chunks of its own file, its last chunk first; chunk `absent` (-1: none) is
 * not there. */
static void add_chunked(world *w, const int64_t *lo, const int64_t *hi, int64_t absent) {
  tegula__manifest *m = &w->dataset->manifest;
  int64_t rows = w->chunk[0], columns = w->chunk[1], size = rows * columns, zero[2] = {0, 0};
  int64_t across = tegula__ceil_div(hi[1] - lo[1], columns),
          count = tegula__ceil_div(hi[0] - lo[0], rows) * across;
  tegula__grid *grid = calloc(1, sizeof *grid);
  unsigned char *bytes = calloc((size_t)count, (size_t)size);
  assert_true(grid != NULL && bytes != NULL);
  *grid = (tegula__grid){
      .file = m->file_count, .chunk_bytes = size, .order = '|', .slots = count, .count = count};
  grid->chunks = calloc((size_t)count, sizeof *grid->chunks);
  assert_non_null(grid->chunks);
  for (int64_t slot = 0; slot < count; slot++) {
    int64_t at = (count - 1 - slot) * size, row = lo[0] + slot / across * rows,
            column = lo[1] + slot % across * columns;
    for (int64_t i = 0; i < size; i++)
      bytes[at + i] = value(row + i / columns, column + i % columns);
    if (slot == absent) continue;
    grid->chunks[slot] = (tegula__chunk){.offset = (uint64_t)at, .length = (uint32_t)size};
    w->stored += size;
  }
  char name[32];
  snprintf(name, sizeof name, "%d.bin", (int)m->file_count);
  add_file(w, name, bytes, (size_t)(count * size));
  free(bytes);
  assert_int_equal(tegula__manifest_add_grid(m, grid, NULL), TEGULA_OK);
  tegula__part part = {.kind = TEGULA__PART_CHUNKED,
                       .order = '|',
                       .file = TEGULA__NO_FILE,
                       .lo = lo,
                       .hi = hi,
                       .strides = (int64_t[]){columns, 1},
                       .start = zero,
                       .chunk = w->chunk,
                       .slot_strides = (int64_t[]){across, 1},
                       .grid = grid};
  assert_int_equal(tegula__manifest_add_part(m, &part, NULL), TEGULA_OK);
}

static void add_absent(world *w, tegula__part_kind kind, const int64_t *lo, const int64_t *hi) {
  tegula__part part = {.kind = kind,
                       .order = '|',
                       .file = TEGULA__NO_FILE,
                       .lo = lo,
                       .hi = hi,
                       .strides = (int64_t[]){hi[1] - lo[1], 1},
                       .fill = "\x2a",
                       .lost = kind == TEGULA__PART_LOST ? &w->lost : NULL};
  assert_int_equal(tegula__manifest_add_part(&w->dataset->manifest, &part, NULL), TEGULA_OK);
}

static void world_start(world *w, int64_t rows, int64_t columns, int64_t chunk_rows,
                        int64_t chunk_columns) {
  *w = (world){.folder = folder_make(),
               .context = context_make(2),
               .rows = rows,
               .columns = columns,
               .chunk = {chunk_rows, chunk_columns}};
  w->dataset = calloc(1, sizeof *w->dataset);
  assert_non_null(w->dataset);
  tegula__manifest *m = &w->dataset->manifest;
  tegula__manifest_init(m);
  m->dtype = dtype_of("|u1");
  m->ndim = 2;
  m->shape[0] = rows;
  m->shape[1] = columns;
  m->format = "test";
  m->name = "/x";
  tegula__fail(&w->lost, TEGULA_NOT_FOUND, "gone.bin", -1, "the source \"gone.bin\" is not there");
}

static void world_finish(world *w) {
  tegula_error error;
  tegula_dataset *dataset = w->dataset;
  assert_ok(tegula__manifest_finish(&dataset->manifest, &error));
  assert_ok(tegula__file_set_create(w->context->handles, dataset->manifest.files,
                                    dataset->manifest.file_count, false, &dataset->files, &error));
  for (int64_t i = 0; i < dataset->manifest.file_count; i++) {
    tegula__io_counts counts = {0};
    int fd;
    assert_ok(tegula__file_set_acquire(dataset->files, i, &counts, &fd, &error)); /* described */
    tegula__file_set_release(dataset->files, i);
  }
  atomic_init(&dataset->references, 1);
  dataset->context = tegula__context_retain(w->context);
}

static void world_free(world *w) {
  tegula_dataset_close(w->dataset);
  tegula_context_destroy(w->context);
  folder_remove(&w->folder);
}

/* (20, 12): rows 0 to 9 side by side in two files, rows 10 to 14 absent, 15 to 19 in a third file
 * but for its first chunk; chunks (4, 3). */
static void mixed_make(world *w, tegula__part_kind between) {
  world_start(w, 20, 12, 4, 3);
  add_chunked(w, (int64_t[]){0, 6}, (int64_t[]){10, 12}, -1);
  add_chunked(w, (int64_t[]){15, 0}, (int64_t[]){20, 12}, 0);
  add_absent(w, between, (int64_t[]){10, 0}, (int64_t[]){15, 12});
  add_chunked(w, (int64_t[]){0, 0}, (int64_t[]){10, 6}, -1);
  world_finish(w);
}

static unsigned char mixed_value(int64_t row, int64_t column) {
  if (row >= 10 && row < 15) return 0x2a;
  return row >= 15 && row < 19 && column < 3 ? 0 : value(row, column);
}

static void expect_mixed(const char *data, int64_t row, int64_t column) {
  if ((unsigned char)*data != mixed_value(row, column))
    fail_msg("the element at (%d, %d) is wrong", (int)row, (int)column);
}

static void what_is_stored_is_told(void **state) {
  (void)state;
  tegula_error error;
  world w;
  tegula_dataset_info_t info;
  tegula_file_info file;
  mixed_make(&w, TEGULA__PART_FILL);
  tegula_dataset_info_init(&info);
  assert_ok(tegula_dataset_info(w.dataset, &info, &error));
  assert_int_equal(info.files, 3);
  assert_int_equal(info.chunks, 6 + 6 + 7);
  assert_int_equal(info.stored_bytes, w.stored);
  assert_int_equal(info.bytes, 240);
  assert_true(info.chunk != NULL && info.chunk[0] == 4 && info.chunk[1] == 3);
  assert_string_equal(info.codecs, "");
  static const int64_t rows[3][2] = {{0, 10}, {15, 20}, {0, 10}};
  for (int64_t i = 0; i < 3; i++) {
    tegula_file_info_init(&file);
    assert_ok(tegula_dataset_file(w.dataset, i, &file, &error));
    assert_int_equal(file.row_lo, rows[i][0]);
    assert_int_equal(file.row_hi, rows[i][1]);
  }
  world_free(&w);
}

typedef struct listed {
  unsigned char seen[20][12];
  int64_t count, most;
} listed;

/* The bytes at the place are those of the box. */
static int look_at_chunk(void *state, const tegula_chunk_info *chunk) {
  listed *l = state;
  unsigned char bytes[12];
  assert_int_equal(chunk->struct_size, sizeof *chunk);
  assert_int_equal(chunk->ndim, 2);
  assert_int_equal(chunk->mask, 0);
  assert_int_equal(chunk->length, sizeof bytes);
  FILE *file = fopen(chunk->path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, (long)chunk->offset, SEEK_SET), 0);
  assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
  fclose(file);
  for (int64_t i = chunk->lo[0]; i < chunk->hi[0]; i++)
    for (int64_t j = chunk->lo[1]; j < chunk->hi[1]; j++) {
      assert_int_equal(bytes[(i - chunk->lo[0]) * 3 + j - chunk->lo[1]], value(i, j));
      l->seen[i][j]++;
    }
  return ++l->count == l->most;
}

static void stored_pieces_are_listed(void **state) {
  (void)state;
  for (int kind = 0; kind < 2; kind++) {
    tegula_error error;
    world w;
    mixed_make(&w, kind == 0 ? TEGULA__PART_FILL : TEGULA__PART_LOST);
    listed l = {0};
    assert_ok(tegula_dataset_chunks(w.dataset, look_at_chunk, &l, &error));
    assert_int_equal(l.count, 6 + 6 + 7);
    for (int64_t i = 0; i < 20; i++)
      for (int64_t j = 0; j < 12; j++)
        assert_int_equal(l.seen[i][j], (i < 10 || i >= 15) && !(i >= 15 && i < 19 && j < 3));
    l = (listed){.most = 7};
    assert_refused(tegula_dataset_chunks(w.dataset, look_at_chunk, &l, &error), TEGULA_CANCELLED);
    assert_int_equal(l.count, 7);
    assert_refused(tegula_dataset_chunks(w.dataset, NULL, NULL, &error), TEGULA_INVALID_ARGUMENT);
    assert_refused(tegula_dataset_chunks(NULL, look_at_chunk, NULL, &error),
                   TEGULA_INVALID_ARGUMENT);
    world_free(&w);
  }
}

static void every_way_of_reading_gives_the_same(void **state) {
  (void)state;
  tegula_error error;
  world w;
  tegula_tiling *tiling = NULL;
  tegula_array *array = NULL;
  tegula_load_options options;
  tegula_statistics statistics;
  char hash[TEGULA_HASH_TEXT], own[TEGULA_HASH_TEXT];
  mixed_make(&w, TEGULA__PART_FILL);
  tegula_load_options_init(&options);
  tegula_statistics_init(&statistics);
  options.statistics = &statistics;
  assert_ok(tegula_tiling_even((int64_t[]){20, 12}, 2, 1, 5, 1, &tiling, &error));
  assert_ok(tegula_array_create(w.context, dtype_of("|u1"), tiling, NULL, &array, &error));
  assert_ok(tegula_load(w.dataset, array, &options, &error));
  assert_int_equal(statistics.missing, 2); /* the part, and one chunk */
  for (int64_t t = 0; t < tegula_array_tiles(array); t++) {
    tegula_view view;
    assert_ok(tegula_array_view(array, t, &view, &error));
    for (int64_t i = view.box.lo[0]; i < view.box.hi[0]; i++)
      for (int64_t k = view.box.lo[1]; k < view.box.hi[1]; k++)
        expect_mixed((char *)view.data + (i - view.box.lo[0]) * view.stride_bytes[0] +
                         (k - view.box.lo[1]) * view.stride_bytes[1],
                     i, k);
  }
  assert_ok(tegula_array_hash(array, own, &error));
  assert_ok(tegula_dataset_hash(w.dataset, hash, NULL, &error));
  assert_string_equal(hash, own);
  tegula_difference difference;
  tegula_difference_init(&difference);
  assert_ok(tegula_compare(w.dataset, w.dataset, 0, NULL, &difference, &error));
  assert_true(difference.equal);
  tegula_array_destroy(array);
  tegula_tiling_destroy(tiling);
  world_free(&w);
}

static void batches_follow_each_other(void **state) {
  (void)state;
  tegula_error error;
  world w;
  tegula_batches *batches = NULL;
  int64_t elements = 0;
  mixed_make(&w, TEGULA__PART_FILL);
  assert_ok(tegula_batches_open(w.dataset, (int64_t[]){7, 5}, 2, NULL, &batches, &error));
  for (;;) {
    tegula_array *array = NULL;
    tegula_box box;
    tegula_view view;
    tegula_status status = tegula_batches_next(batches, &array, &box, &error);
    if (status == TEGULA_END) break;
    assert_int_equal(status, TEGULA_OK);
    assert_ok(tegula_array_view(array, 0, &view, &error));
    for (int64_t i = box.lo[0]; i < box.hi[0]; i++)
      for (int64_t k = box.lo[1]; k < box.hi[1]; k++, elements++)
        expect_mixed((char *)view.data + (i - box.lo[0]) * view.stride_bytes[0] +
                         (k - box.lo[1]) * view.stride_bytes[1],
                     i, k);
    tegula_array_destroy(array);
  }
  assert_int_equal(elements, 240);
  tegula_batches_close(batches);
  world_free(&w);
}

static void files_side_by_side_make_no_tiles_of_their_own(void **state) {
  (void)state;
  tegula_error error;
  world w;
  tegula_tiling *tiling = NULL;
  char *text = NULL;
  mixed_make(&w, TEGULA__PART_FILL);
  assert_ok(tegula_tiling_from_dataset(w.dataset, 2, 1, &tiling, &error));
  assert_int_equal(tegula_tiling_count(tiling), 2);
  assert_ok(tegula_explain(w.dataset, tiling, &text, &error));
  assert_contains(text, "0.bin");
  assert_contains(text, "\"rows\": [0, 10]");
  assert_contains(text, "{\"file\": null, \"rows\": [0, 5]}");
  tegula_free(text);
  tegula_tiling_destroy(tiling);
  world_free(&w);
}

static void missing_must_be_one_of_its_values(void **state) {
  (void)state;
  tegula_error error;
  world w;
  tegula_load_options options;
  tegula_batches *batches = NULL;
  char hash[TEGULA_HASH_TEXT];
  tegula_difference difference;
  mixed_make(&w, TEGULA__PART_FILL);
  tegula_load_options_init(&options);
  options.missing = TEGULA_MISSING_FILL + 1;
  tegula_difference_init(&difference);
  assert_refused(tegula_dataset_hash(w.dataset, hash, &options, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_compare(w.dataset, w.dataset, 0, &options, &difference, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_refused(
      tegula_dataset_verify(w.dataset, TEGULA_VERIFY_DECODE, NULL, NULL, &options, NULL, &error),
      TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_batches_open(w.dataset, (int64_t[]){7, 5}, 2, &options, &batches, &error),
                 TEGULA_INVALID_ARGUMENT);
  world_free(&w);
}

/* ---- verify ---- */

typedef struct seen {
  int count;
  tegula_error problems[4];
} seen;

static void see(void *state, const tegula_error *problem) {
  seen *s = state;
  assert_true(s->count < 4);
  s->problems[s->count++] = *problem;
}

static tegula_status verify(world *w, tegula_verify_level level, tegula_missing missing, seen *s,
                            tegula_verify_report *report, tegula_statistics *statistics) {
  tegula_error error;
  tegula_load_options options;
  tegula_load_options_init(&options);
  options.missing = missing;
  options.statistics = statistics;
  *s = (seen){0};
  tegula_verify_report_init(report);
  tegula_statistics_init(statistics);
  tegula_status status = tegula_dataset_verify(w->dataset, level, see, s, &options, report, &error);
  assert_int_equal(s->count, report->problems);
  return status;
}

/* Chunks that reach from one window into the next would be read twice. */
static void verify_reads_each_chunk_once(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {{4000, 10000, 90, 100}, {150, 300000, 150, 150}};
  for (int i = 0; i < 2; i++) {
    world w;
    seen s;
    tegula_verify_report report;
    tegula_statistics statistics;
    const int64_t *shape = shapes[i];
    world_start(&w, shape[0], shape[1], shape[2], shape[3]);
    add_chunked(&w, (int64_t[]){0, 0}, (int64_t[]){shape[0], shape[1]}, -1);
    world_finish(&w);
    assert_int_equal(
        verify(&w, TEGULA_VERIFY_DECODE, TEGULA_MISSING_STRICT, &s, &report, &statistics),
        TEGULA_OK);
    assert_int_equal(report.bytes, shape[0] * shape[1]);
    assert_int_equal(report.chunks,
                     tegula__ceil_div(shape[0], shape[2]) * tegula__ceil_div(shape[1], shape[3]));
    assert_true(shape[0] * shape[1] > (int64_t)32 << 20);
    assert_int_equal(statistics.bytes_read, w.stored);
    world_free(&w);
  }
}

static void verify_tells_of_each_file_by_itself(void **state) {
  (void)state;
  for (int lost = 0; lost < 2; lost++) {
    world w;
    seen s;
    tegula_verify_report report;
    tegula_statistics statistics;
    mixed_make(&w, lost ? TEGULA__PART_LOST : TEGULA__PART_FILL);
    tegula_status status =
        verify(&w, TEGULA_VERIFY_DECODE, TEGULA_MISSING_ERROR, &s, &report, &statistics);
    assert_int_equal(status, lost ? TEGULA_NOT_FOUND : TEGULA_OK);
    assert_int_equal(s.count, lost);
    assert_int_equal(report.chunks, 19);
    if (lost) assert_string_equal(s.problems[0].path, "gone.bin");
    assert_int_equal(
        verify(&w, TEGULA_VERIFY_SIZES, TEGULA_MISSING_ERROR, &s, &report, &statistics),
        lost ? TEGULA_NOT_FOUND : TEGULA_OK);
    assert_int_equal(
        verify(&w, TEGULA_VERIFY_DECODE, TEGULA_MISSING_FILL, &s, &report, &statistics), TEGULA_OK);
    assert_int_equal(report.bytes, 240);
    assert_int_equal(
        verify(&w, TEGULA_VERIFY_DECODE, TEGULA_MISSING_STRICT, &s, &report, &statistics),
        lost ? TEGULA_NOT_FOUND : TEGULA_INCOMPLETE);
    assert_int_equal(s.count, 2); /* the part of no file, and the file with the chunk */
    assert_contains(s.problems[1].path, "1.bin");
    assert_int_equal(truncate(w.dataset->manifest.files[2].path, 20), 0);
    verify(&w, TEGULA_VERIFY_DECODE, TEGULA_MISSING_FILL, &s, &report, &statistics);
    assert_int_equal(s.count, 1); /* not told again for the part of no file */
    assert_contains(s.problems[0].path, "2.bin");
    world_free(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_stored_is_told),
      cmocka_unit_test(stored_pieces_are_listed),
      cmocka_unit_test(every_way_of_reading_gives_the_same),
      cmocka_unit_test(batches_follow_each_other),
      cmocka_unit_test(files_side_by_side_make_no_tiles_of_their_own),
      cmocka_unit_test(missing_must_be_one_of_its_values),
      cmocka_unit_test(verify_reads_each_chunk_once),
      cmocka_unit_test(verify_tells_of_each_file_by_itself),
  };
  return cmocka_run_group_tests_name("api: chunks", tests, NULL, NULL);
}
