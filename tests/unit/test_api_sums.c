/* Sums through the C interface: arguments, reports, progress, cancelling, and a reader without
 * files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test_api_support.h"

static file_name sums_of(const folder *where, tegula_dataset *dataset, tegula_verify_level level) {
  tegula_error error;
  char *text = NULL;
  file_name path;
  (void)snprintf(path.text, sizeof path.text, "%s.sums", where->path);
  tegula_status status = tegula_dataset_sums(dataset, NULL, level, NULL, &text, &error);
  if (status != TEGULA_OK) fail_msg("%s", error.message);
  FILE *file = fopen(path.text, "w");
  assert_non_null(file);
  assert_int_equal(fputs(text, file) >= 0, 1);
  assert_int_equal(fclose(file), 0);
  tegula_free(text);
  return path;
}

static void arguments_are_checked(void **state) {
  (void)state;
  folder where = shards_write();
  tegula_error error;
  char *text = NULL;
  tegula_context *context = context_make(2), *other = context_make(1);
  tegula_dataset *dataset = dataset_open(context, where.path);
  assert_int_equal(tegula_dataset_sums(NULL, NULL, TEGULA_VERIFY_DECODE, NULL, &text, &error),
                   TEGULA_INVALID_ARGUMENT);
  assert_int_equal(tegula_dataset_sums(dataset, NULL, TEGULA_VERIFY_SIZES, NULL, &text, &error),
                   TEGULA_INVALID_ARGUMENT);
  assert_int_equal(tegula_dataset_sums(dataset, NULL, TEGULA_VERIFY_DECODE, NULL, NULL, &error),
                   TEGULA_INVALID_ARGUMENT);
  assert_int_equal(
      tegula_dataset_sums(dataset, "/no/such/folder", TEGULA_VERIFY_DECODE, NULL, &text, &error),
      TEGULA_NOT_FOUND);
  assert_int_equal(
      tegula_sums_check(other, "x", dataset, TEGULA_VERIFY_DECODE, NULL, NULL, NULL, NULL, &error),
      TEGULA_INVALID_ARGUMENT);
  assert_int_equal(
      tegula_sums_check(context, "", dataset, TEGULA_VERIFY_DECODE, NULL, NULL, NULL, NULL, &error),
      TEGULA_INVALID_ARGUMENT);
  assert_int_equal(tegula_sums_check(context, "/no/such/file", dataset, TEGULA_VERIFY_DECODE, NULL,
                                     NULL, NULL, NULL, NULL),
                   TEGULA_NOT_FOUND);
  assert_null(text);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  tegula_context_destroy(other);
  folder_remove(&where);
}

static void see(void *state, const tegula_error *problem) {
  int *count = state;
  assert_int_equal(problem->status, TEGULA_NOT_FOUND);
  ++*count;
}

static void files_are_looked_at_without_a_dataset(void **state) {
  (void)state;
  folder where = shards_write();
  tegula_error error;
  tegula_sums_report report;
  tegula_sums_report_init(&report);
  tegula_context *context = context_make(3);
  tegula_dataset *dataset = dataset_open(context, where.path);
  file_name path = sums_of(&where, dataset, TEGULA_VERIFY_DECODE);
  assert_int_equal(tegula_sums_check(context, path.text, dataset, TEGULA_VERIFY_DECODE, NULL, NULL,
                                     NULL, &report, &error),
                   TEGULA_OK);
  int64_t files = report.files, bytes = report.bytes;
  assert_true(files > 0 && bytes > 0 && report.content == 1 && report.problems == 0);
  tegula_dataset_close(dataset);
  assert_int_equal(tegula_sums_check(context, path.text, NULL, TEGULA_VERIFY_DECODE, NULL, NULL,
                                     NULL, &report, &error),
                   TEGULA_OK);
  assert_true(report.files == files && report.bytes == bytes && report.content == -1);
  folder_remove(&where);
  int told = 0;
  assert_int_equal(tegula_sums_check(context, path.text, NULL, TEGULA_VERIFY_DECODE, see, &told,
                                     NULL, &report, &error),
                   TEGULA_NOT_FOUND);
  assert_true(told == files && report.problems == files && report.bytes == 0);
  tegula_context_destroy(context);
  assert_int_equal(remove(path.text), 0);
}

typedef struct bar {
  int64_t last, total;
  int calls, stop_at;
} bar;

static int look(void *state, int64_t done, int64_t total) {
  bar *b = state;
  assert_true(done >= b->last && done <= total && (b->calls == 0 || total == b->total));
  b->last = done;
  b->total = total;
  return ++b->calls == b->stop_at;
}

static void progress_grows_and_can_stop_it(void **state) {
  (void)state;
  folder where = shards_write();
  tegula_error error;
  char *text = NULL;
  tegula_context *context = context_make(4);
  tegula_dataset *dataset = dataset_open(context, where.path);
  tegula_load_options options;
  tegula_load_options_init(&options);
  bar all = {0};
  options.progress = look;
  options.progress_state = &all;
  assert_int_equal(
      tegula_dataset_sums(dataset, NULL, TEGULA_VERIFY_DECODE, &options, &text, &error), TEGULA_OK);
  assert_int_equal(all.last, all.total);
  tegula_free(text);
  text = NULL;
  for (int stop = 1; stop <= 2; stop++) {
    bar some = {.stop_at = stop};
    options.progress_state = &some;
    assert_int_equal(
        tegula_dataset_sums(dataset, NULL, TEGULA_VERIFY_DECODE, &options, &text, &error),
        TEGULA_CANCELLED);
    assert_null(text);
  }
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  folder_remove(&where);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arguments_are_checked),
      cmocka_unit_test(files_are_looked_at_without_a_dataset),
      cmocka_unit_test(progress_grows_and_can_stop_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
