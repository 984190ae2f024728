/* Structs that carry their size: older than version 1 is an error, newer is accepted when its
 * unknown tail asks for nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each struct of the public header is handed in with every size from 0 to well above its own. */
#include "test_api_support.h"

static folder where;
static tegula_context *context;
static tegula_dataset *dataset;
static tegula_tiling *tiling;
static tegula_array *array;

static int setup(void **state) {
  (void)state;
  where = shards_write();
  context = context_make(1);
  dataset = dataset_open(context, where.path);
  tiling = tiling_make(SHARD_ROWS, SHARD_COLUMNS, 2);
  array = array_make(context, SHARD_ROWS, SHARD_COLUMNS, 2);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  tegula_array_destroy(array);
  tegula_tiling_destroy(tiling);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  folder_remove(&where);
  return 0;
}

enum { TAIL = 64 };

/* A call that is given the struct in `given` and undoes what it made. */
typedef tegula_status (*call_fn)(void *given, tegula_error *error);

/* `given` holds the struct as its _init function leaves it, with TAIL zero bytes behind it; version
 * 1 of it ended at `first`. */
static void walk_sizes(void *given, size_t first, size_t known, call_fn call) {
  char *bytes = given;
  for (size_t size = 0; size <= known + TAIL; size++) {
    tegula_error error = {0};
    memcpy(bytes, &size, sizeof size);
    tegula_status status = call(given, &error),
                  expected = size < first ? TEGULA_INVALID_ARGUMENT : TEGULA_OK;
    if (status != expected)
      fail_msg("size %zu of %zu gives %s: %s", size, known, tegula_status_name(status),
               error.message);
    if (status != TEGULA_OK) assert_contains(error.message, "struct_size");
  }
  /* something set that this version does not know */
  for (size_t at = known; at < known + TAIL; at += 7) {
    tegula_error error = {0};
    size_t size = known + TAIL;
    memcpy(bytes, &size, sizeof size);
    bytes[at] = 1;
    tegula_status status = call(given, &error);
    if (status != TEGULA_UNSUPPORTED)
      fail_msg("an unknown byte at %zu gives %s", at, tegula_status_name(status));
    size = at; /* ends before it */
    memcpy(bytes, &size, sizeof size);
    assert_int_equal(call(given, &error), TEGULA_OK);
    bytes[at] = 0;
  }
  size_t absurd = (size_t)-1;
  memcpy(bytes, &absurd, sizeof absurd);
  /* not walked to the end of memory */
  assert_int_equal(call(given, NULL), TEGULA_INVALID_ARGUMENT);
}

static tegula_status use_context(void *given, tegula_error *error) {
  tegula_context *made = NULL;
  tegula_status status = tegula_context_create(given, NULL, &made, error);
  tegula_context_destroy(made);
  return status;
}

static tegula_status use_open(void *given, tegula_error *error) {
  tegula_dataset *made = NULL;
  tegula_status status = tegula_dataset_open(context, where.path, given, &made, error);
  tegula_dataset_close(made);
  return status;
}

static tegula_status use_array(void *given, tegula_error *error) {
  tegula_array *made = NULL;
  tegula_status status = tegula_array_create(context, dtype_of("<i4"), tiling, given, &made, error);
  tegula_array_destroy(made);
  return status;
}

static tegula_status use_load(void *given, tegula_error *error) {
  return tegula_load(dataset, array, given, error);
}

static tegula_status use_read(void *given, tegula_error *error) {
  tegula_view view = {0};
  tegula_status status = tegula_array_view(array, 0, &view, error);
  return status != TEGULA_OK ? status : tegula_dataset_read(dataset, &view, given, error);
}

static tegula_status use_hash(void *given, tegula_error *error) {
  char text[TEGULA_HASH_TEXT];
  return tegula_dataset_hash(dataset, text, given, error);
}

static tegula_status use_save(void *given, tegula_error *error) {
  file_name target = name_in(&where, "saved.npy");
  tegula_status status = tegula_save(array, target.text, given, error);
  unlink(target.text);
  return status;
}

static tegula_status use_sums(void *given, tegula_error *error) {
  char *text = NULL;
  tegula_status status =
      tegula_dataset_sums(dataset, NULL, TEGULA_VERIFY_CHECKSUMS, given, &text, error);
  tegula_free(text);
  return status;
}

static tegula_status use_verify(void *given, tegula_error *error) {
  return tegula_dataset_verify(dataset, TEGULA_VERIFY_DECODE, NULL, NULL, given, NULL, error);
}

static tegula_status use_compare(void *given, tegula_error *error) {
  tegula_difference found;
  tegula_difference_init(&found);
  return tegula_compare(dataset, dataset, 0, given, &found, error);
}

#define WALK(type, init, call) WALK_FROM(sizeof(type), type, init, call)
#define WALK_FROM(first, type, init, call)                                                         \
  do {                                                                                             \
    union {                                                                                        \
      type options;                                                                                \
      char bytes[sizeof(type) + TAIL];                                                             \
    } given = {.bytes = {0}};                                                                      \
    init(&given.options);                                                                          \
    assert_int_equal(given.options.struct_size, sizeof(type));                                     \
    walk_sizes(&given, first, sizeof(type), call);                                                 \
  } while (0)

static void options_of_any_size(void **state) {
  (void)state;
  WALK(tegula_context_options, tegula_context_options_init, use_context);
  WALK_FROM(offsetof(tegula_open_options, progress), tegula_open_options, tegula_open_options_init,
            use_open);
  WALK(tegula_array_options, tegula_array_options_init, use_array);
  WALK(tegula_load_options, tegula_load_options_init, use_load);
  WALK(tegula_load_options, tegula_load_options_init, use_read);
  WALK(tegula_load_options, tegula_load_options_init, use_hash);
  WALK(tegula_load_options, tegula_load_options_init, use_verify);
  WALK(tegula_load_options, tegula_load_options_init, use_sums);
  WALK(tegula_load_options, tegula_load_options_init, use_compare);
  WALK_FROM(offsetof(tegula_save_options, settings), tegula_save_options, tegula_save_options_init,
            use_save);
}

/* ---- structs that are filled ---- */

static tegula_status get_info(void *out, tegula_error *error) {
  return tegula_dataset_info(dataset, out, error);
}
static tegula_status get_file(void *out, tegula_error *error) {
  return tegula_dataset_file(dataset, 1, out, error);
}

static tegula_status get_report(void *out, tegula_error *error) {
  return tegula_dataset_verify(dataset, TEGULA_VERIFY_DECODE, NULL, NULL, NULL, out, error);
}
static tegula_status get_difference(void *out, tegula_error *error) {
  return tegula_compare(dataset, dataset, 0, NULL, out, error);
}

/* `first`: its size in version 1. */
static void walk_out(size_t first, size_t known, call_fn call, void *expected, size_t compared) {
  unsigned char *bytes = malloc(known + TAIL + 8);
  assert_non_null(bytes);
  for (size_t size = 0; size <= known + TAIL; size++) {
    memset(bytes, 0xA5, known + TAIL + 8);
    if (size > known) memset(bytes + known, 0, size - known);
    memcpy(bytes, &size, sizeof size);
    tegula_error error;
    tegula_status status = call(bytes, &error);
    assert_int_equal(status, size < first ? TEGULA_INVALID_ARGUMENT : TEGULA_OK);
    size_t written = status == TEGULA_OK ? size : sizeof size;
    /* not a byte beyond */
    for (size_t i = written; i < known + TAIL + 8; i++) assert_int_equal(bytes[i], 0xA5);
    /* what we do not know stays zero */
    for (size_t i = known; i < written; i++) assert_int_equal(bytes[i], 0);
    if (status != TEGULA_OK) continue;
    assert_memory_equal(bytes + sizeof size, (char *)expected + sizeof size,
                        compared - sizeof size);
    assert_memory_equal(bytes, &size, sizeof size); /* still the caller's */
  }
  free(bytes);
}

static void information_of_any_size(void **state) {
  (void)state;
  tegula_error error;
  tegula_dataset_info_t info;
  tegula_dataset_info_init(&info);
  assert_ok(tegula_dataset_info(dataset, &info, &error));
  walk_out(offsetof(tegula_dataset_info_t, sources), sizeof info, get_info, &info,
           offsetof(tegula_dataset_info_t, format));
  tegula_file_info file;
  tegula_file_info_init(&file);
  assert_ok(tegula_dataset_file(dataset, 1, &file, &error));
  walk_out(sizeof file, sizeof file, get_file, &file, sizeof file);
  tegula_verify_report report;
  tegula_verify_report_init(&report);
  assert_ok(get_report(&report, &error));
  assert_int_equal(report.bytes, SHARD_ROWS * SHARD_COLUMNS * 4);
  walk_out(sizeof report, sizeof report, get_report, &report, sizeof report);
  tegula_difference difference;
  tegula_difference_init(&difference);
  assert_ok(get_difference(&difference, &error));
  assert_int_equal(difference.equal, 1);
  walk_out(sizeof difference, sizeof difference, get_difference, &difference, sizeof difference);
}

static void statistics_of_a_wrong_size_are_refused(void **state) {
  (void)state;
  tegula_error error;
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  statistics.struct_size = 8;
  tegula_open_options open;
  tegula_open_options_init(&open);
  open.statistics = &statistics;
  assert_refused(use_open(&open, &error), TEGULA_INVALID_ARGUMENT);
  tegula_load_options load;
  tegula_load_options_init(&load);
  load.statistics = &statistics;
  assert_refused(use_load(&load, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(use_read(&load, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(use_hash(&load, &error), TEGULA_INVALID_ARGUMENT);
  tegula_save_options save;
  tegula_save_options_init(&save);
  save.statistics = &statistics;
  assert_refused(use_save(&save, &error), TEGULA_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(options_of_any_size, setup, teardown),
      cmocka_unit_test_setup_teardown(information_of_any_size, setup, teardown),
      cmocka_unit_test_setup_teardown(statistics_of_a_wrong_size_are_refused, setup, teardown),
  };
  return cmocka_run_group_tests_name("api: sizes of structs", tests, NULL, NULL);
}
