/* Files that are described together come from one folder, and a change of any of them is noticed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "io/io_priv.h"

/* Two folders, a and b, with files x and y that hold their folder's name. */
typedef struct fixture {
  folder made;
  tegula__folders *folders;
} fixture;

static const char *inside(const fixture *f, const char *name) {
  static char paths[4][sizeof(file_name)];
  static int next;
  char *place = paths[next++ % 4];
  strcpy(place, name_in(&f->made, "%s", name).text);
  return place;
}

static void make(fixture *f) {
  tegula_error error;
  *f = (fixture){.made = folder_make()};
  for (const char *at = "ab"; *at != '\0'; at++) {
    assert_int_equal(mkdir(inside(f, (char[]){*at, '\0'}), 0700), 0);
    file_write(inside(f, (char[]){*at, '/', 'x', '\0'}), at, 1);
    file_write(inside(f, (char[]){*at, '/', 'y', '\0'}), at, 1);
  }
  assert_ok(tegula__folders_create(&f->folders, &error));
}

static void drop(fixture *f) {
  tegula__folders_destroy(f->folders);
  folder_remove(&f->made);
}

static void exchange(const fixture *f) {
  assert_int_equal(rename(inside(f, "a"), inside(f, "c")), 0);
  assert_int_equal(rename(inside(f, "b"), inside(f, "a")), 0);
  assert_int_equal(rename(inside(f, "c"), inside(f, "b")), 0);
}

static char first_byte(const fixture *f, const char *name) {
  char byte = '?';
  int fd = tegula__folders_open(f->folders, inside(f, name), O_RDONLY);
  assert_true(fd >= 0);
  assert_int_equal(pread(fd, &byte, 1, 0), 1);
  close(fd);
  return byte;
}

static tegula__stamp stamp_of(const fixture *f, const char *name) {
  struct stat info;
  assert_int_equal(tegula__folders_stat(f->folders, inside(f, name), &info), 0);
  return tegula__io_stamp_of(&info);
}

static void all_files_come_from_the_folder_that_was_opened_first(void **state) {
  (void)state;
  fixture f;
  make(&f);
  assert_int_equal(first_byte(&f, "a/x"), 'a');
  exchange(&f);
  assert_int_equal(first_byte(&f, "a/y"), 'a');
  drop(&f);
}

static void a_folder_whose_times_stay_is_certain_until_a_name_changes(void **state) {
  (void)state;
  fixture f;
  make(&f);
  assert_false(tegula__folders_used(f.folders));
  first_byte(&f, "a/x");
  assert_true(tegula__folders_used(f.folders));
  assert_true(tegula__folders_certain(f.folders));
  file_write(inside(&f, "a/x"), "A", 1); /* the name leads to the same file */
  assert_true(tegula__folders_certain(f.folders));
  file_write(inside(&f, "a/z"), "z", 1);
  assert_false(tegula__folders_certain(f.folders));
  assert_false(tegula__folders_untouched(f.folders));
  drop(&f);
}

static void a_symbolic_link_makes_its_folder_uncertain(void **state) {
  (void)state;
  fixture f;
  struct stat info;
  make(&f);
  assert_int_equal(symlink("../b/x", inside(&f, "a/z")), 0);
  assert_int_equal(first_byte(&f, "a/z"), 'b');
  assert_false(tegula__folders_certain(f.folders));
  assert_true(tegula__folders_untouched(f.folders));
  assert_int_equal(tegula__folders_stat(f.folders, inside(&f, "a/z"), &info), 0);
  assert_true(S_ISREG(info.st_mode));
  drop(&f);
}

static void a_file_that_is_renamed_over_or_written_to_is_changed(void **state) {
  (void)state;
  fixture f;
  tegula_error error;
  make(&f);
  tegula__stamp x = stamp_of(&f, "a/x"), y = stamp_of(&f, "a/y");
  assert_ok(tegula__folders_check_file(f.folders, inside(&f, "a/x"), &x, &error));
  assert_int_equal(rename(inside(&f, "b/x"), inside(&f, "a/x")), 0);
  assert_refused(tegula__folders_check_file(f.folders, inside(&f, "a/x"), &x, &error),
                 TEGULA_CHANGED);
  file_write(inside(&f, "a/y"), "longer", 6);
  assert_refused(tegula__folders_check_file(f.folders, inside(&f, "a/y"), &y, &error),
                 TEGULA_CHANGED);
  assert_int_equal(unlink(inside(&f, "a/y")), 0);
  assert_refused(tegula__folders_check_file(f.folders, inside(&f, "a/y"), &y, &error),
                 TEGULA_CHANGED);
  drop(&f);
}

static void what_was_missing_must_be_missing_still(void **state) {
  (void)state;
  fixture f;
  tegula_error error;
  make(&f);
  tegula__stamp x = stamp_of(&f, "a/x");
  assert_ok(tegula__folders_note(f.folders, inside(&f, "a/x"), &x, 0, &error));
  assert_ok(tegula__folders_note(f.folders, inside(&f, "a/z"), NULL, ENOENT, &error));
  assert_ok(tegula__folders_check_notes(f.folders, &error));
  file_write(inside(&f, "a/z"), "z", 1);
  assert_refused(tegula__folders_check_notes(f.folders, &error), TEGULA_CHANGED);
  drop(&f);
}

static void names_of_several_folders_must_lead_to_them_still(void **state) {
  (void)state;
  fixture f;
  tegula_error error;
  make(&f);
  first_byte(&f, "a/x");
  first_byte(&f, "b/x");
  assert_ok(tegula__folders_check_names(f.folders, &error));
  exchange(&f);
  assert_refused(tegula__folders_check_names(f.folders, &error), TEGULA_CHANGED);
  drop(&f);
}

/* A write after the first read must get another time than the one that was noted, also where a
 * program sets the time of modification back after each write. */
static void a_file_is_not_read_in_the_tick_in_which_it_was_written(void **state) {
  (void)state;
  fixture f;
  tegula_error error;
  tegula__handles *handles;
  tegula__file_set *set;
  tegula__io_counts counts = {0};
  int fd;
  make(&f);
  tegula__file file = {.path = (char *)inside(&f, "a/z")};
  assert_ok(tegula__handles_create(4, &handles, &error));
  for (int i = 0; i < 20; i++) {
    struct timespec now;
    file_write(file.path, "12345678", 8);
    if (i % 2 == 1)
      assert_int_equal(
          utimensat(AT_FDCWD, file.path, (struct timespec[2]){{.tv_sec = 1}, {.tv_sec = 1}}, 0), 0);
    assert_ok(tegula__file_set_create(handles, &file, 1, false, &set, &error));
    assert_ok(tegula__file_set_acquire(set, 0, &counts, &fd, &error));
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    assert_true(now.tv_sec * 1000000000 + now.tv_nsec > file.stamp.ctime_ns);
    tegula__file_set_release(set, 0);
    tegula__file_set_destroy(set);
  }
  tegula__handles_destroy(handles);
  drop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_files_come_from_the_folder_that_was_opened_first),
      cmocka_unit_test(a_folder_whose_times_stay_is_certain_until_a_name_changes),
      cmocka_unit_test(a_symbolic_link_makes_its_folder_uncertain),
      cmocka_unit_test(a_file_that_is_renamed_over_or_written_to_is_changed),
      cmocka_unit_test(what_was_missing_must_be_missing_still),
      cmocka_unit_test(names_of_several_folders_must_lead_to_them_still),
      cmocka_unit_test(a_file_is_not_read_in_the_tick_in_which_it_was_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
