/* The main job through the public header: open, load, save, hash; any order of destruction; many
 * threads at once; exact counts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test_api_support.h"

#include <pthread.h>

static folder where;

static int setup(void **state) {
  (void)state;
  where = shards_write();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  folder_remove(&where);
  return 0;
}

static void shards_are_one_array(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  tegula_dataset *dataset = dataset_open(context, where.path);
  tegula_dataset_info_t info;
  tegula_dataset_info_init(&info);
  assert_ok(tegula_dataset_info(dataset, &info, &error));
  assert_int_equal(info.ndim, 2);
  assert_int_equal(info.shape[0], SHARD_ROWS);
  assert_int_equal(info.shape[1], SHARD_COLUMNS);
  assert_int_equal(info.files, SHARDS);
  assert_int_equal(info.chunks, SHARDS);
  assert_int_equal(info.bytes, SHARD_ROWS * SHARD_COLUMNS * 4);
  assert_int_equal(info.stored_bytes, info.bytes);
  assert_string_equal(info.format, "npy");
  assert_null(info.descr);
  static const int64_t rows[SHARDS + 1] = {0, 1, 3, 6};
  for (int i = 0; i < SHARDS; i++) {
    tegula_file_info file;
    tegula_file_info_init(&file);
    assert_ok(tegula_dataset_file(dataset, i, &file, &error));
    assert_string_equal(file.path, name_in(&where, "shard_%04d.npy", i).text);
    assert_int_equal(file.row_lo, rows[i]);
    assert_int_equal(file.row_hi, rows[i + 1]);
    assert_int_equal(file.data_offset, 128);
    assert_int_equal(file.size, 128 + (i + 1) * 16);
  }
  for (int64_t tiles = 1; tiles <= 7; tiles++) {
    tegula_array *array = array_make(context, SHARD_ROWS, SHARD_COLUMNS, tiles);
    assert_ok(tegula_load(dataset, array, NULL, &error));
    expect_counting(array);
    tegula_array_destroy(array);
  }
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

static void a_box_is_read_into_any_memory(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  tegula_dataset *dataset = dataset_open(context, where.path);
  int32_t memory[4 * 2]; /* rows 1 to 4 and columns 1 and 2, rows backwards, columns apart */
  tegula_view view = {.data = memory + 3,
                      .dtype = dtype_of(">i4"),
                      .box = {.ndim = 2, .lo = {1, 1}, .hi = {5, 3}},
                      .stride_bytes = {-4, 16}};
  assert_ok(tegula_dataset_read(dataset, &view, NULL, &error));
  for (int row = 1; row < 5; row++)
    for (int column = 1; column < 3; column++)
      assert_int_equal(__builtin_bswap32((uint32_t)memory[3 - (row - 1) + 4 * (column - 1)]),
                       row * 4 + column);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

/* ---- counts ---- */

static void each_file_costs_one_open(void **state) {
  (void)state;
  tegula_error error;
  enum { FILES = 50 };
  folder many = folder_make();
  for (int i = 0; i < FILES; i++) npy_write(name_in(&many, "part_%02d.npy", i).text, 10, 8, i * 80);
  tegula_context *context = context_make(4);
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  tegula_open_options open;
  tegula_open_options_init(&open);
  open.statistics = &statistics;
  tegula_dataset *dataset;
  assert_ok(tegula_dataset_open(context, many.path, &open, &dataset, &error));
  assert_int_equal(statistics.opens, FILES);
  assert_int_equal(statistics.stats, FILES);
  assert_int_equal(statistics.reads, FILES); /* the header, with all of this small file behind it */
  assert_int_equal(statistics.bytes_read, FILES * (128 + 320));
  tegula_array *array = array_make(context, 10 * FILES, 8, 7);
  tegula_load_options load;
  tegula_load_options_init(&load);
  load.statistics = &statistics;
  assert_ok(tegula_load(dataset, array, &load, &error));
  assert_int_equal(statistics.opens, FILES);
  assert_int_equal(statistics.stats, 2 * FILES); /* and once after the last read */
  assert_int_equal(statistics.reads, 2 * FILES);
  assert_int_equal(statistics.bytes_read, FILES * (128 + 320 + 320));
  assert_int_equal(statistics.direct_bytes + statistics.staged_bytes, FILES * 320);
  assert_int_equal(statistics.steps, FILES);
  assert_int_equal(statistics.writes, 0);
  assert_int_equal(statistics.reader_bytes, 0);
  assert_string_equal(statistics.io_path, "pread");
  assert_true(statistics.seconds_describe > 0 && statistics.seconds_move > 0);
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  folder_remove(&many);
}

/* ---- save ---- */

static void what_is_saved_is_loaded_again(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(3);
  tegula_dataset *dataset = dataset_open(context, where.path);
  tegula_array *array = array_make(context, SHARD_ROWS, SHARD_COLUMNS, 4);
  assert_ok(tegula_load(dataset, array, NULL, &error));
  char expected[TEGULA_HASH_TEXT], found[TEGULA_HASH_TEXT];
  assert_ok(tegula_array_hash(array, expected, &error));
  assert_ok(tegula_dataset_hash(dataset, found, NULL, &error));
  assert_string_equal(found, expected);
  for (int i = 0; i < 16; i++) {
    tegula_save_options o;
    tegula_save_options_init(&o);
    o.shards = (i & 1) ? 4 : 0;
    o.order = (i & 2) ? 'F' : 'C';
    o.byte_order = (i & 4) ? '>' : '<';
    o.durable = (i & 8) != 0;
    file_name target = name_in(&where, "out/%d%s", i, (i & 1) ? "" : ".npy");
    assert_ok(tegula_save(array, target.text, &o, &error));
    assert_refused(tegula_save(array, target.text, &o, &error), TEGULA_EXISTS);
    o.overwrite = 1;
    assert_ok(tegula_save(array, target.text, &o, &error));
    tegula_dataset *again = dataset_open(context, target.text);
    tegula_dataset_info_t info;
    tegula_dataset_info_init(&info);
    assert_ok(tegula_dataset_info(again, &info, &error));
    assert_int_equal(info.files, (i & 1) ? 4 : 1);
    tegula_array *loaded = array_make(context, SHARD_ROWS, SHARD_COLUMNS, 3);
    assert_ok(tegula_load(again, loaded, NULL, &error));
    expect_counting(loaded);
    assert_ok(tegula_dataset_hash(again, found, NULL, &error));
    assert_string_equal(found, expected);
    tegula_array_destroy(loaded);
    tegula_dataset_close(again);
  }
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

static int cancel(void *state, int64_t done, int64_t total) {
  (void)state, (void)done, (void)total;
  return 1;
}

static void a_save_that_fails_leaves_everything_as_it_was(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  tegula_array *array = array_make(context, SHARD_ROWS, SHARD_COLUMNS, 2);
  file_name target = name_in(&where, "new/deep/x.npy"), old = name_in(&where, "shard_0000.npy");
  int64_t before = folder_count(where.path);
  size_t size, size_after;
  unsigned char *bytes = file_read(old.text, &size);
  for (int shards = 0; shards < 3; shards += 2) {
    tegula_save_options o;
    tegula_save_options_init(&o);
    o.shards = shards;
    o.progress = cancel;
    assert_refused(tegula_save(array, target.text, &o, &error), TEGULA_CANCELLED);
    assert_int_equal(folder_count(where.path), before);
    o.shards = 0;
    o.overwrite = 1;
    assert_refused(tegula_save(array, old.text, &o, &error), TEGULA_CANCELLED);
    unsigned char *after = file_read(old.text, &size_after);
    assert_int_equal(size, size_after);
    assert_memory_equal(bytes, after, size);
    assert_int_equal(folder_count(where.path), before);
    free(after);
  }
  free(bytes);
  tegula_array_destroy(array);
  tegula_context_destroy(context);
}

/* ---- blocks ---- */

static void a_block_is_all_tiles_in_c_order(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(1);
  tegula_dataset *dataset = dataset_open(context, where.path);
  tegula_array *array = array_make(context, SHARD_ROWS, SHARD_COLUMNS, 4);
  tegula_view block;
  assert_ok(tegula_load(dataset, array, NULL, &error));
  assert_ok(tegula_array_block(array, &block, &error));
  assert_int_equal(block.box.hi[0], SHARD_ROWS);
  for (int32_t i = 0; i < SHARD_ROWS * SHARD_COLUMNS; i++)
    assert_int_equal(((int32_t *)block.data)[i], i);
  tegula_array_destroy(array);
  tegula_tiling *tiling = tiling_make(SHARD_ROWS, SHARD_COLUMNS, 4);
  tegula_array_options o;
  tegula_array_options_init(&o);
  o.flags = TEGULA_ARRAY_SEPARATE;
  assert_ok(tegula_array_create(context, dtype_of("<i4"), tiling, &o, &array, &error));
  assert_refused(tegula_array_block(array, &block, &error), TEGULA_UNSUPPORTED);
  assert_ok(tegula_load(dataset, array, NULL, &error));
  expect_counting(array);
  tegula_array_destroy(array);
  tegula_tiling_destroy(tiling);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

/* The header promises C order: one wrapped tile in another order is no such block. */
static void wrapped_memory_in_another_order_is_no_block(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(1);
  tegula_tiling *tiling = tiling_make(SHARD_ROWS, SHARD_COLUMNS, 1);
  static int32_t memory[100];
  static const int64_t strides[][2] = {{16, 4}, {4, 24}, {-16, 4}, {32, 4}};
  for (int i = 0; i < 4; i++) {
    tegula_view view = {.data = memory + 50,
                        .dtype = dtype_of("<i4"),
                        .box = {.ndim = 2, .hi = {SHARD_ROWS, SHARD_COLUMNS}}},
                block;
    view.stride_bytes[0] = strides[i][0];
    view.stride_bytes[1] = strides[i][1];
    tegula_array *array;
    assert_ok(tegula_array_wrap(context, view.dtype, tiling, &view, 1, NULL, NULL, &array, &error));
    assert_int_equal(tegula_array_block(array, &block, &error),
                     i == 0 ? TEGULA_OK : TEGULA_UNSUPPORTED);
    tegula_array_destroy(array);
  }
  tegula_tiling_destroy(tiling);
  tegula_context_destroy(context);
}

/* ---- lifetimes ---- */

static void count_release(void *state) { ++*(int *)state; }

static void things_may_be_destroyed_in_any_order(void **state) {
  (void)state;
  static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2},
                                  {2, 0, 3, 1}, {0, 2, 1, 3}, {1, 0, 2, 3}};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    tegula_error error;
    int released = 0;
    tegula_context *context = context_make(2);
    tegula_dataset *dataset = dataset_open(context, where.path);
    tegula_tiling *tiling = tiling_make(SHARD_ROWS, SHARD_COLUMNS, 1);
    int32_t memory[SHARD_ROWS * SHARD_COLUMNS];
    tegula_view view = {.data = memory,
                        .dtype = dtype_of("<i4"),
                        .box = {.ndim = 2, .hi = {SHARD_ROWS, SHARD_COLUMNS}},
                        .stride_bytes = {16, 4}};
    tegula_array *array;
    assert_ok(tegula_array_wrap(context, view.dtype, tiling, &view, 1, count_release, &released,
                                &array, &error));
    bool has_dataset = true, has_array = true;
    for (int k = 0; k < 4; k++) {
      if (has_dataset && has_array) {
        memset(memory, 0, sizeof memory);
        assert_ok(tegula_load(dataset, array, NULL, &error)); /* what is left still works */
        expect_counting(array);
      }
      if (orders[i][k] == 0) tegula_context_destroy(context);
      if (orders[i][k] == 1) tegula_tiling_destroy(tiling);
      if (orders[i][k] == 2) tegula_dataset_close(dataset), has_dataset = false;
      if (orders[i][k] == 3) tegula_array_destroy(array), has_array = false;
      assert_int_equal(released, has_array ? 0 : 1);
    }
  }
}

/* ---- many threads on one dataset and one context ---- */

typedef struct user {
  tegula_context *context;
  tegula_dataset *dataset;
  const char *path, *hash;
  file_name target;
  int wrong;
} user;

static bool is_counting(const int32_t *memory) {
  for (int32_t i = 0; i < SHARD_ROWS * SHARD_COLUMNS; i++)
    if (memory[i] != i) return false;
  return true;
}

static int use_once(user *u) {
  int32_t memory[SHARD_ROWS * SHARD_COLUMNS] = {0};
  char hash[TEGULA_HASH_TEXT];
  tegula_view view = {.data = memory,
                      .box = {.ndim = 2, .hi = {SHARD_ROWS, SHARD_COLUMNS}},
                      .stride_bytes = {16, 4}};
  tegula_dataset *own;
  tegula_tiling *tiling;
  tegula_array *array;
  tegula_save_options save;
  tegula_save_options_init(&save);
  save.overwrite = 1;
  if (tegula_dtype_parse("<i4", &view.dtype, NULL) != TEGULA_OK) return 1;
  if (tegula_dataset_read(u->dataset, &view, NULL, NULL) != TEGULA_OK || !is_counting(memory))
    return 1;
  if (tegula_dataset_hash(u->dataset, hash, NULL, NULL) != TEGULA_OK || strcmp(hash, u->hash) != 0)
    return 1;
  if (tegula_dataset_open(u->context, u->path, NULL, &own, NULL) != TEGULA_OK) return 1;
  if (tegula_tiling_from_dataset(own, 2, 1, &tiling, NULL) != TEGULA_OK) return 1;
  if (tegula_array_create(u->context, view.dtype, tiling, NULL, &array, NULL) != TEGULA_OK)
    return 1;
  int wrong = tegula_load(u->dataset, array, NULL, NULL) != TEGULA_OK;
  wrong += tegula_array_hash(array, hash, NULL) != TEGULA_OK || strcmp(hash, u->hash) != 0;
  wrong += tegula_save(array, u->target.text, &save, NULL) != TEGULA_OK;
  tegula_dataset_close(own);
  tegula_tiling_destroy(tiling);
  tegula_array_destroy(array);
  return wrong;
}

static void *use(void *state) {
  user *u = state;
  for (int i = 0; i < 20; i++) u->wrong += use_once(u);
  return NULL;
}

static void many_threads_use_one_context_at_once(void **state) {
  (void)state;
  tegula_error error;
  enum { USERS = 4 };
  tegula_context_options o;
  tegula_context_options_init(&o);
  o.threads = 3;
  o.max_open_files = 2; /* they take each other's handles away */
  o.staging_bytes = 32768;
  tegula_context *context;
  assert_ok(tegula_context_create(&o, NULL, &context, &error));
  assert_int_equal(tegula_context_threads(context), 3);
  tegula_dataset *dataset = dataset_open(context, where.path);
  char hash[TEGULA_HASH_TEXT];
  assert_ok(tegula_dataset_hash(dataset, hash, NULL, &error));
  folder out = folder_make();
  pthread_t threads[USERS];
  user users[USERS];
  for (int i = 0; i < USERS; i++) {
    users[i] = (user){.context = context,
                      .dataset = dataset,
                      .path = where.path,
                      .hash = hash,
                      .target = name_in(&out, "%d.npy", i)};
    assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
  }
  for (int i = 0; i < USERS; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(users[i].wrong, 0);
  }
  assert_int_equal(folder_count(out.path), USERS);
  folder_remove(&out);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

#define WITH_SHARDS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

typedef struct told {
  int calls;
  int64_t done, total;
  int stop;
} told;

/* A tegula_progress_fn. */
static int tell(void *state, int64_t done, int64_t total) {
  told *t = state;
  t->calls++;
  assert_true(done >= t->done && done <= total);
  t->done = done;
  t->total = total;
  return t->stop;
}

/* One file at a time; nothing more is opened once the answer was to stop, with deferred headers
 * neither. */
static void opening_can_be_cancelled(void **state) {
  (void)state;
  tegula_context *context = context_make(1);
  for (uint32_t flags = 0; flags <= TEGULA_OPEN_DEFER_HEADERS; flags += TEGULA_OPEN_DEFER_HEADERS) {
    tegula_error error;
    tegula_statistics statistics;
    tegula_statistics_init(&statistics);
    tegula_dataset *opened = NULL;
    told seen = {.stop = 0};
    tegula_open_options options;
    tegula_open_options_init(&options);
    options.flags = flags;
    options.progress = tell;
    options.progress_state = &seen;
    options.statistics = &statistics;
    assert_ok(tegula_dataset_open(context, where.path, &options, &opened, &error));
    tegula_dataset_close(opened);
    assert_true(seen.calls > 0);
    assert_int_equal(seen.total, SHARDS);
    opened = NULL;
    seen = (told){.stop = 1};
    tegula_statistics_init(&statistics);
    assert_refused(tegula_dataset_open(context, where.path, &options, &opened, &error),
                   TEGULA_CANCELLED);
    assert_contains(error.message, "0 of 3 files");
    assert_null(opened);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(statistics.opens + statistics.stats, 0);
  }
  tegula_context_destroy(context);
}

typedef struct walk {
  char names[8][64];
  int count;
  int stop_at; /* -1: never */
} walk;

/* A tegula_path_fn. */
static tegula_status note_name(void *state, const char *path, tegula_error *err) {
  walk *seen = state;
  if (seen->count == seen->stop_at)
    return tegula_error_set(err, TEGULA_CANCELLED, path, -1, "enough");
  assert_true(seen->count < 8);
  snprintf(seen->names[seen->count++], sizeof seen->names[0], "%s", strrchr(path, '/') + 1);
  return TEGULA_OK;
}

static void files_of_a_damaged_set_are_found(void **state) {
  (void)state;
  tegula_error error;
  walk all = {.stop_at = -1}, some = {.stop_at = 1}, one = {.stop_at = -1}, none = {.stop_at = -1};
  folder made = folder_make();
  const char *names[] = {"s_10", "s_9", "notes.txt", "_private", ".hidden", "shard_meta.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    npy_write(name_in(&made, "%s", names[i]).text, 1, SHARD_COLUMNS, 0);
  assert_int_equal(mkdir(name_in(&made, "%s", "s_1").text, 0700), 0);
  assert_int_equal(symlink("nomade", name_in(&made, "%s", "s_11").text), 0);
  assert_ok(tegula_find_files(made.path, note_name, &all, &error));
  assert_int_equal(all.count, 4); /* also the link, which whoever opens it learns about */
  assert_string_equal(all.names[0], "notes.txt");
  assert_string_equal(all.names[1], "s_9");
  assert_string_equal(all.names[2], "s_10");
  assert_string_equal(all.names[3], "s_11");
  assert_refused(tegula_find_files(made.path, note_name, &some, &error), TEGULA_CANCELLED);
  assert_int_equal(some.count, 1);
  assert_ok(tegula_find_files(name_in(&made, "%s", "s_9").text, note_name, &one, NULL));
  assert_ok(tegula_find_files(name_in(&made, "%s", "gone_*").text, note_name, &none, NULL));
  assert_int_equal(one.count, 1);
  assert_int_equal(none.count, 0);
  assert_refused(tegula_find_files(name_in(&made, "%s", "gone").text, note_name, &none, &error),
                 TEGULA_NOT_FOUND);
  assert_refused(tegula_find_files(NULL, note_name, &none, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula_find_files(made.path, NULL, &none, &error), TEGULA_INVALID_ARGUMENT);
  folder_remove(&made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_of_a_damaged_set_are_found),
      WITH_SHARDS(opening_can_be_cancelled),
      WITH_SHARDS(shards_are_one_array),
      WITH_SHARDS(a_box_is_read_into_any_memory),
      WITH_SHARDS(each_file_costs_one_open),
      WITH_SHARDS(what_is_saved_is_loaded_again),
      WITH_SHARDS(a_save_that_fails_leaves_everything_as_it_was),
      WITH_SHARDS(a_block_is_all_tiles_in_c_order),
      WITH_SHARDS(wrapped_memory_in_another_order_is_no_block),
      WITH_SHARDS(things_may_be_destroyed_in_any_order),
      WITH_SHARDS(many_threads_use_one_context_at_once),
  };
  return cmocka_run_group_tests_name("api: load, save", tests, NULL, NULL);
}
