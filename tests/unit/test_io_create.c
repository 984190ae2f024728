/* New files have their whole size and their header from the start, and never replace anything.
 *
 * SPDX-License-Identifier: Apache-2.0 */
/* link-options: -Wl,--wrap=fallocate -Wl,--wrap=fdatasync -Wl,--wrap=pwrite */
#include "support.h"

#include <errno.h>

#include "io/io.h"

int __real_fallocate(int fd, int mode, off_t offset, off_t size);
ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t offset);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size);
int __wrap_fdatasync(int fd);
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset);

static int fail_fallocate, syncs, writes_left;
static int64_t reserved[2]; /* the last time: offset, bytes */

int __wrap_fallocate(int fd, int mode, off_t offset, off_t size) {
  reserved[0] = offset;
  reserved[1] = size;
  if (fail_fallocate == 0) return __real_fallocate(fd, mode, offset, size);
  errno = fail_fallocate;
  return -1;
}

int __wrap_fdatasync(int fd) {
  (void)fd;
  syncs++;
  return 0;
}

/* Half of what is asked for, and at last a full disk. */
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset) {
  if (writes_left-- == 0) {
    errno = ENOSPC;
    return -1;
  }
  return __real_pwrite(fd, data, (size + 1) / 2, offset);
}

static folder where;
static file_name path;

static int setup(void **state) {
  (void)state;
  where = folder_make();
  path = name_in(&where, "new.npy");
  fail_fallocate = syncs = 0;
  writes_left = 1000;
  return 0;
}

static int teardown(void **state) {
  (void)state;
  folder_remove(&where);
  return 0;
}

static void a_file_has_its_size_and_header(void **state) {
  (void)state;
  /* file systems that cannot reserve space will do */
  const int reasons[] = {0, EOPNOTSUPP, ENOSYS};
  for (int i = 0; i < 3; i++) {
    tegula_error error;
    tegula__io_counts counts = {0};
    size_t size;
    fail_fallocate = reasons[i];
    assert_ok(tegula__io_create(path.text, 1000, "header", 6, true, 0666, &counts, &error));
    unsigned char *data = file_read(path.text, &size);
    assert_int_equal(size, 1000);
    assert_memory_equal(data, "header", 6);
    for (size_t k = 6; k < size; k++) assert_int_equal(data[k], 0);
    free(data);
    assert_int_equal(counts.opens, 1);
    assert_int_equal(counts.bytes_written, 6);
    assert_int_equal(syncs, 0); /* whoever writes the rest brings it to the disk */
    assert_int_equal(unlink(path.text), 0);
  }
}

static void a_file_of_its_header_alone_is_synced_when_asked(void **state) {
  (void)state;
  tegula_error error;
  tegula__io_counts counts = {0};
  assert_ok(tegula__io_create(path.text, 6, "header", 6, false, 0666, &counts, &error));
  assert_int_equal(syncs, 0);
  assert_int_equal(unlink(path.text), 0);
  assert_ok(tegula__io_create(path.text, 6, "header", 6, true, 0666, &counts, &error));
  assert_int_equal(syncs, 1);
  assert_int_equal(unlink(path.text), 0);
  /* an empty raw file */
  assert_ok(tegula__io_create(path.text, 0, NULL, 0, true, 0666, &counts, &error));
  assert_int_equal(syncs, 2);
}

static void nothing_is_ever_replaced(void **state) {
  (void)state;
  tegula_error error;
  tegula__io_counts counts = {0};
  size_t size;
  file_write(path.text, "old", 3);
  assert_refused(tegula__io_create(path.text, 6, "header", 6, false, 0666, &counts, &error),
                 TEGULA_EXISTS);
  assert_string_equal(error.path, path.text);
  unsigned char *data = file_read(path.text, &size);
  assert_int_equal(size, 3);
  free(data);
  assert_int_equal(unlink(path.text), 0);
  assert_int_equal(symlink("nowhere", path.text), 0); /* a link is not followed */
  assert_refused(tegula__io_create(path.text, 6, "header", 6, false, 0666, &counts, &error),
                 TEGULA_EXISTS);
}

static void a_missing_folder_is_told(void **state) {
  (void)state;
  tegula_error error;
  tegula__io_counts counts = {0};
  assert_refused(
      tegula__io_create(name_in(&where, "no/x").text, 6, "header", 6, false, 0666, &counts, &error),
      TEGULA_NOT_FOUND);
  assert_int_equal(error.os_errno, ENOENT);
}

static void a_full_disk_is_told_before_data_is_written(void **state) {
  (void)state;
  tegula_error error;
  tegula__io_counts counts = {0};
  fail_fallocate = ENOSPC;
  assert_refused(tegula__io_create(path.text, 123456, "header", 6, false, 0666, &counts, &error),
                 TEGULA_IO);
  assert_int_equal(error.os_errno, ENOSPC);
  assert_contains(error.message, "123456 bytes");
  assert_int_equal(counts.writes, 0);
}

/* What is there already is not gone through again: many growths of a file would take a time that
 * grows with their square. */
static void a_file_that_grows_reserves_what_it_gains(void **state) {
  (void)state;
  tegula_error error;
  tegula__io_counts counts = {0};
  int fd;
  assert_ok(tegula__io_make(path.text, 0600, &counts, &fd, &error));
  assert_ok(tegula__io_resize(fd, path.text, 0, 5000, &error));
  assert_true(reserved[0] == 0 && reserved[1] == 5000);
  assert_ok(tegula__io_resize(fd, path.text, 5000, 70000, &error));
  assert_true(reserved[0] == 5000 && reserved[1] == 65000);
  reserved[0] = reserved[1] = -1;
  assert_ok(tegula__io_resize(fd, path.text, 70000, 6000, &error)); /* shorter */
  assert_true(reserved[0] == -1);
  assert_int_equal(lseek(fd, 0, SEEK_END), 6000);
  fail_fallocate = ENOSPC;
  assert_refused(tegula__io_resize(fd, path.text, 6000, 7000, &error), TEGULA_IO);
  assert_ok(tegula__io_complete(fd, path.text, false, &error));
}

static void a_header_that_cannot_be_written_is_told(void **state) {
  (void)state;
  tegula_error error;
  tegula__io_counts counts = {0};
  writes_left = 1;
  assert_refused(tegula__io_create(path.text, 100, "header", 6, false, 0666, &counts, &error),
                 TEGULA_IO);
  assert_int_equal(error.os_errno, ENOSPC);
  assert_int_equal(error.offset, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_file_has_its_size_and_header, setup, teardown),
      cmocka_unit_test_setup_teardown(a_file_of_its_header_alone_is_synced_when_asked, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(nothing_is_ever_replaced, setup, teardown),
      cmocka_unit_test_setup_teardown(a_missing_folder_is_told, setup, teardown),
      cmocka_unit_test_setup_teardown(a_full_disk_is_told_before_data_is_written, setup, teardown),
      cmocka_unit_test_setup_teardown(a_file_that_grows_reserves_what_it_gains, setup, teardown),
      cmocka_unit_test_setup_teardown(a_header_that_cannot_be_written_is_told, setup, teardown),
  };
  return cmocka_run_group_tests_name("io: create", tests, NULL, NULL);
}
