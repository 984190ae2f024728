/* Datasets from a callback: every element asked for exactly once, chunks kept whole, any tiles and
 * strides, memory counted, errors told.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test_api_support.h"

#include <stdatomic.h>

enum { ROWS = 37, COLUMNS = 23 };

/* A callback that fills value = 1000 * row + column, and keeps account. */
typedef struct account {
  _Atomic int asked[ROWS][COLUMNS];
  _Atomic int64_t calls, running, most;
  int64_t chunk[2]; /* 0: any box */
  _Atomic bool crossed;
  int64_t fail_at; /* row; -1 never */
  bool silent;     /* fails without a message */
} account;

static void note_box(account *a, const tegula_view *dst) {
  for (int k = 0; k < 2 && a->chunk[0] > 0; k++)
    if (dst->box.lo[k] / a->chunk[k] != (dst->box.hi[k] - 1) / a->chunk[k]) a->crossed = true;
  for (int64_t r = dst->box.lo[0]; r < dst->box.hi[0]; r++)
    for (int64_t c = dst->box.lo[1]; c < dst->box.hi[1]; c++) a->asked[r][c]++;
}

static tegula_status fill(void *state, const tegula_view *dst, tegula_error *err) {
  account *a = state;
  int64_t running = atomic_fetch_add(&a->running, 1) + 1, most = atomic_load(&a->most);
  while (running > most && !atomic_compare_exchange_weak(&a->most, &most, running)) continue;
  a->calls++;
  note_box(a, dst);
  tegula_status status = TEGULA_OK;
  if (a->fail_at >= dst->box.lo[0] && a->fail_at < dst->box.hi[0])
    status = a->silent ? TEGULA_CORRUPT
                       : tegula_error_set(err, TEGULA_CORRUPT, "store", 5, "row is damaged");
  for (int64_t r = dst->box.lo[0]; r < dst->box.hi[0]; r++)
    for (int64_t c = dst->box.lo[1]; c < dst->box.hi[1]; c++) {
      int32_t value = (int32_t)(1000 * r + c);
      memcpy((char *)dst->data + (r - dst->box.lo[0]) * dst->stride_bytes[0] +
                 (c - dst->box.lo[1]) * dst->stride_bytes[1],
             &value, sizeof value);
    }
  nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  a->running--;
  return status;
}

static tegula_dataset *open_account(tegula_context *context, account *a, int64_t cost) {
  tegula_error error;
  tegula_dataset *dataset;
  tegula_reader reader;
  tegula_reader_init(&reader);
  reader.name = "own";
  reader.dtype = dtype_of("<i4");
  reader.ndim = 2;
  reader.shape = (int64_t[]){ROWS, COLUMNS};
  reader.chunk = a->chunk[0] > 0 ? a->chunk : NULL;
  reader.cost_bytes = cost;
  reader.read = fill;
  reader.state = a;
  assert_ok(tegula_dataset_from_reader(context, &reader, &dataset, &error));
  return dataset;
}

static int32_t value_at(const tegula_view *view, int64_t r, int64_t c) {
  int32_t value;
  memcpy(&value,
         (const char *)view->data + (r - view->box.lo[0]) * view->stride_bytes[0] +
             (c - view->box.lo[1]) * view->stride_bytes[1],
         sizeof value);
  return value;
}

static void check_tiles(const tegula_array *array) {
  tegula_error error;
  tegula_view view;
  for (int64_t i = 0; i < tegula_array_tiles(array); i++) {
    assert_ok(tegula_array_view(array, i, &view, &error));
    for (int64_t r = view.box.lo[0]; r < view.box.hi[0]; r++)
      for (int64_t c = view.box.lo[1]; c < view.box.hi[1]; c++)
        assert_int_equal(value_at(&view, r, c), 1000 * r + c);
  }
}

static void load_grid(account *a, int64_t tile_rows, int64_t tile_columns) {
  tegula_error error;
  tegula_context *context = context_make(4);
  tegula_dataset *dataset = open_account(context, a, 0);
  tegula_tiling *tiling;
  tegula_array *array;
  tegula_load_options options;
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  tegula_load_options_init(&options);
  options.statistics = &statistics;
  assert_ok(tegula_tiling_grid((int64_t[]){ROWS, COLUMNS}, (int64_t[]){tile_rows, tile_columns}, 2,
                               1, &tiling, &error));
  assert_ok(tegula_array_create(context, dtype_of("<i4"), tiling, NULL, &array, &error));
  assert_ok(tegula_load(dataset, array, &options, &error));
  check_tiles(array);
  assert_int_equal(statistics.reader_bytes, ROWS * COLUMNS * 4);
  assert_int_equal(statistics.opens, 0);
  assert_string_equal(statistics.io_path, "reader");
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < COLUMNS; c++) assert_int_equal(a->asked[r][c], 1);
  assert_false(atomic_load(&a->crossed));
  tegula_array_destroy(array);
  tegula_tiling_destroy(tiling);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

static void each_element_is_asked_for_once(void **state) {
  (void)state;
  static const int64_t tiles[][2] = {{ROWS, COLUMNS}, {5, COLUMNS}, {ROWS, 4}, {7, 6}, {1, 1}};
  for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
    account any = {.fail_at = -1}, chunked = {.fail_at = -1, .chunk = {8, 5}},
            large = {.fail_at = -1, .chunk = {100, 100}};
    load_grid(&any, tiles[i][0], tiles[i][1]);
    load_grid(&chunked, tiles[i][0], tiles[i][1]);
    /* ceil(37 / 8) x ceil(23 / 5), however many tiles want a chunk */
    assert_int_equal(chunked.calls, 5 * 5);
    load_grid(&large, tiles[i][0], tiles[i][1]);
    assert_int_equal(large.calls, 1);
  }
}

static void a_box_goes_into_any_memory(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  account a = {.fail_at = -1, .chunk = {8, 5}};
  tegula_dataset *dataset = open_account(context, &a, 0);
  unsigned char memory[10 * 9 * 4 + 1];
  tegula_view view = {.data = memory + 1,
                      .dtype = dtype_of(">i4"),
                      .box = {.ndim = 2, .lo = {3, 4}, .hi = {13, 13}}};
  view.stride_bytes[0] = 4; /* Fortran order, the other byte order, not aligned */
  view.stride_bytes[1] = 40;
  assert_ok(tegula_dataset_read(dataset, &view, NULL, &error));
  for (int64_t r = 3; r < 13; r++)
    for (int64_t c = 4; c < 13; c++)
      assert_int_equal(__builtin_bswap32((uint32_t)value_at(&view, r, c)), 1000 * r + c);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

static void costly_calls_do_not_run_together(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(4); /* 64 MiB of staging */
  account dear = {.fail_at = -1, .chunk = {1, COLUMNS}};
  tegula_dataset *dataset = open_account(context, &dear, (int64_t)40 << 20);
  int32_t memory[ROWS * COLUMNS];
  tegula_view view = {
      .data = memory, .dtype = dtype_of("<i4"), .box = {.ndim = 2, .hi = {ROWS, COLUMNS}}};
  view.stride_bytes[0] = COLUMNS * 4;
  view.stride_bytes[1] = 4;
  assert_ok(tegula_dataset_read(dataset, &view, NULL, &error));
  assert_int_equal(dear.most, 1);
  assert_int_equal(dear.calls, ROWS);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

static void its_error_reaches_the_caller(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(4);
  for (int silent = 0; silent < 2; silent++) {
    account a = {.fail_at = 17, .chunk = {1, COLUMNS}, .silent = silent};
    tegula_dataset *dataset = open_account(context, &a, 0);
    tegula_tiling *tiling = tiling_make(ROWS, COLUMNS, 3);
    tegula_array *array;
    assert_ok(tegula_array_create(context, dtype_of("<i4"), tiling, NULL, &array, &error));
    assert_refused(tegula_load(dataset, array, NULL, &error), TEGULA_CORRUPT);
    if (silent) {
      assert_contains(error.message, "\"own\"");
    } else {
      assert_string_equal(error.message, "row is damaged");
      assert_string_equal(error.path, "store");
      assert_int_equal(error.offset, 5);
    }
    tegula_array_destroy(array);
    tegula_tiling_destroy(tiling);
    tegula_dataset_close(dataset);
  }
  tegula_context_destroy(context);
}

static void readers_that_make_no_sense_are_refused(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(1);
  tegula_dataset *dataset = NULL;
  tegula_reader good;
  tegula_reader_init(&good);
  good.name = "own";
  good.dtype = dtype_of("<i4");
  good.ndim = 2;
  good.shape = (int64_t[]){2, 3};
  good.read = fill;
  tegula_reader bad[7];
  for (int i = 0; i < 7; i++) bad[i] = good;
  bad[0].read = NULL;
  bad[1].name = NULL;
  bad[2].dtype.item_size = 3;
  bad[3].shape = (int64_t[]){2, -1};
  bad[4].chunk = (int64_t[]){1, 0};
  bad[5].cost_bytes = -1;
  bad[6].ndim = 65;
  for (int i = 0; i < 7; i++)
    assert_refused(tegula_dataset_from_reader(context, &bad[i], &dataset, &error),
                   TEGULA_INVALID_ARGUMENT);
  good.shape = (int64_t[]){INT64_MAX / 2, 3};
  assert_refused(tegula_dataset_from_reader(context, &good, &dataset, &error),
                 TEGULA_LIMIT_EXCEEDED);
  assert_null(dataset);
  tegula_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_element_is_asked_for_once),
      cmocka_unit_test(a_box_goes_into_any_memory),
      cmocka_unit_test(costly_calls_do_not_run_together),
      cmocka_unit_test(its_error_reaches_the_caller),
      cmocka_unit_test(readers_that_make_no_sense_are_refused),
  };
  return cmocka_run_group_tests_name("api: reader", tests, NULL, NULL);
}
