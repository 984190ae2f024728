/* Files that were written down earlier must be those files when they are first opened; small files
 * are read whole, within a maximum.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <sys/time.h>

#include "io/io.h"

typedef struct fixture {
  folder folder;
  tegula__file file;
  tegula__handles *handles;
  tegula__file_set *set;
  tegula__io_counts counts;
} fixture;

static int64_t mtime_of(const char *path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  return info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
}

/* A file of 8 bytes, recorded as it is. */
static void make(fixture *f) {
  tegula_error error;
  *f = (fixture){.folder = folder_make()};
  f->file.path = strdup(name_in(&f->folder, "x").text);
  file_write(f->file.path, "12345678", 8);
  f->file.stamp = (tegula__stamp){.size = 8, .mtime_ns = mtime_of(f->file.path)};
  f->file.recorded = true;
  assert_ok(tegula__handles_create(4, &f->handles, &error));
  assert_ok(tegula__file_set_create(f->handles, &f->file, 1, false, &f->set, &error));
}

static void drop(fixture *f) {
  tegula__file_set_destroy(f->set);
  tegula__handles_destroy(f->handles);
  free(f->file.path);
  folder_remove(&f->folder);
}

static tegula_status acquire(fixture *f, tegula_error *error) {
  int fd;
  tegula_status status = tegula__file_set_acquire(f->set, 0, &f->counts, &fd, error);
  if (status == TEGULA_OK) {
    status = tegula__file_set_finish(f->set, 0, fd, false, &f->counts, error);
    tegula__file_set_release(f->set, 0);
  }
  return status;
}

static void the_recorded_file_is_opened_and_then_watched_as_any_other(void **state) {
  (void)state;
  fixture f;
  tegula_error error;
  struct stat info;
  make(&f);
  assert_ok(acquire(&f, &error));
  assert_int_equal(stat(f.file.path, &info), 0);
  assert_int_equal(f.file.stamp.inode, info.st_ino);
  assert_int_equal(f.file.stamp.device, info.st_dev);
  assert_int_equal(f.file.stamp.ctime_ns, info.st_ctim.tv_sec * 1000000000 + info.st_ctim.tv_nsec);
  file_write(f.file.path, "123456789", 9);
  assert_refused(acquire(&f, &error), TEGULA_CHANGED);
  assert_contains(error.message, "while it was in use");
  drop(&f);
}

static void another_size_is_refused(void **state) {
  (void)state;
  fixture f;
  tegula_error error;
  make(&f);
  file_write(f.file.path, "123456789", 9);
  assert_refused(acquire(&f, &error), TEGULA_CHANGED);
  assert_contains(error.message, "expected 8 bytes, found 9");
  assert_contains(error.hint, "--manifest");
  assert_string_equal(error.path, f.file.path);
  assert_refused(acquire(&f, &error), TEGULA_CHANGED); /* and stays so */
  assert_int_equal(f.file.stamp.size, 8);
  drop(&f);
}

static void another_time_is_refused_to_the_nanosecond(void **state) {
  (void)state;
  fixture f;
  tegula_error error;
  make(&f);
  f.file.stamp.mtime_ns++;
  assert_refused(acquire(&f, &error), TEGULA_CHANGED);
  assert_contains(error.message, "was written to after the manifest was made");
  assert_contains(error.hint, "--manifest");
  f.file.stamp.mtime_ns--;
  assert_ok(acquire(&f, &error));
  drop(&f);
}

static void a_copy_with_the_same_size_and_time_will_do(void **state) {
  (void)state;
  fixture f;
  tegula_error error;
  make(&f);
  struct timespec times[2] = {
      {f.file.stamp.mtime_ns / 1000000000, f.file.stamp.mtime_ns % 1000000000},
      {f.file.stamp.mtime_ns / 1000000000, f.file.stamp.mtime_ns % 1000000000}};
  file_name copy = name_in(&f.folder, "y");
  file_write(copy.text, "12345678", 8);
  assert_int_equal(utimensat(AT_FDCWD, copy.text, times, 0), 0);
  assert_int_equal(rename(copy.text, f.file.path), 0);
  assert_ok(acquire(&f, &error));
  drop(&f);
}

static void a_missing_file_hints_at_the_manifest(void **state) {
  (void)state;
  fixture f;
  tegula_error error;
  make(&f);
  assert_int_equal(unlink(f.file.path), 0);
  assert_refused(acquire(&f, &error), TEGULA_NOT_FOUND);
  assert_contains(error.hint, "manifest");
  drop(&f);
}

static void whole_files_are_read_within_a_maximum(void **state) {
  (void)state;
  folder made = folder_make();
  tegula_error error;
  tegula__io_counts counts = {0};
  char *content = NULL;
  size_t size = 0;
  file_name name = name_in(&made, "a.json");
  file_write(name.text, "12345678", 8);
  assert_ok(tegula__io_read_whole(NULL, name.text, 8, &content, &size, &counts, &error));
  assert_int_equal(size, 8);
  assert_memory_equal(content, "12345678", 8);
  free(content);
  content = NULL;
  assert_refused(tegula__io_read_whole(NULL, name.text, 7, &content, &size, &counts, &error),
                 TEGULA_LIMIT_EXCEEDED);
  assert_contains(error.message, "at most 7 bytes, found 8");
  assert_refused(
      tegula__io_read_whole(NULL, name_in(&made, "none").text, 7, &content, &size, &counts, &error),
      TEGULA_NOT_FOUND);
  assert_refused(tegula__io_read_whole(NULL, made.path, 7, &content, &size, &counts, &error),
                 TEGULA_UNSUPPORTED);
  assert_int_equal(mkfifo(name_in(&made, "pipe").text, 0600), 0); /* must not wait for a writer */
  assert_refused(
      tegula__io_read_whole(NULL, name_in(&made, "pipe").text, 7, &content, &size, &counts, &error),
      TEGULA_UNSUPPORTED);
  assert_null(content);
  file_write(name.text, "", 0);
  assert_ok(tegula__io_read_whole(NULL, name.text, 8, &content, &size, &counts, &error));
  assert_int_equal(size, 0);
  free(content);
  folder_remove(&made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_recorded_file_is_opened_and_then_watched_as_any_other),
      cmocka_unit_test(another_size_is_refused),
      cmocka_unit_test(another_time_is_refused_to_the_nanosecond),
      cmocka_unit_test(a_copy_with_the_same_size_and_time_will_do),
      cmocka_unit_test(a_missing_file_hints_at_the_manifest),
      cmocka_unit_test(whole_files_are_read_within_a_maximum),
  };
  return cmocka_run_group_tests_name("io: recorded files", tests, NULL, NULL);
}
