/* verify when reading itself fails: bad places in files, one that is bad only once, memory that
 * runs out of nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Reads of chosen files that touch a chosen byte fail with EIO. */
/* link-options: -Wl,--wrap=pread,--wrap=preadv */
#include "test_api_support.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/uio.h>

enum { FILES = 40, ROWS = 50, MOST_BAD = 4 };

static struct {
  ino_t inode;
  off_t place;
  int times; /* how often it still fails */
} bad[MOST_BAD];
static _Atomic int bad_count;

static bool is_bad(int fd, off_t from, size_t size) {
  struct stat info;
  if (atomic_load(&bad_count) == 0 || fstat(fd, &info) != 0) return false;
  for (int i = 0; i < atomic_load(&bad_count); i++)
    if (bad[i].inode == info.st_ino && bad[i].place >= from && bad[i].place < from + (off_t)size &&
        __atomic_fetch_sub(&bad[i].times, 1, __ATOMIC_RELAXED) > 0)
      return true;
  return false;
}

ssize_t __real_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset) {
  if (!is_bad(fd, offset, size)) return __real_pread(fd, data, size, offset);
  errno = EIO;
  return -1;
}

ssize_t __real_preadv(int fd, const struct iovec *vectors, int count, off_t offset);
ssize_t __wrap_preadv(int fd, const struct iovec *vectors, int count, off_t offset);
ssize_t __wrap_preadv(int fd, const struct iovec *vectors, int count, off_t offset) {
  size_t size = 0;
  for (int i = 0; i < count; i++) size += vectors[i].iov_len;
  if (!is_bad(fd, offset, size)) return __real_preadv(fd, vectors, count, offset);
  errno = EIO;
  return -1;
}

typedef struct seen {
  int count;
  tegula_error problems[MOST_BAD];
} seen;

static void see(void *state, const tegula_error *problem) {
  seen *s = state;
  assert_true(s->count < MOST_BAD);
  s->problems[s->count++] = *problem;
}

static void make_bad(const folder *where, int file, off_t place, int times) {
  struct stat info;
  assert_int_equal(stat(name_in(where, "s_%04d.npy", file).text, &info), 0);
  bad[bad_count].inode = info.st_ino;
  bad[bad_count].place = place;
  bad[bad_count].times = times;
  bad_count++;
}

static folder write_files(void) {
  folder where = folder_make();
  for (int i = 0; i < FILES; i++)
    npy_write(name_in(&where, "s_%04d.npy", i).text, ROWS, SHARD_COLUMNS, i);
  return where;
}

/* Verifies; the files of `expected` are the ones with a problem. */
static void expect_bad(const folder *where, int32_t threads, const int *expected, int count) {
  tegula_error error;
  tegula_verify_report report;
  tegula_context *context = context_make(threads);
  int held = bad_count;
  bad_count = 0; /* headers can be read */
  tegula_dataset *dataset = dataset_open(context, where->path);
  bad_count = held;
  seen s = {0};
  tegula_verify_report_init(&report);
  tegula_status status =
      tegula_dataset_verify(dataset, TEGULA_VERIFY_DECODE, see, &s, NULL, &report, &error);
  assert_int_equal(s.count, count);
  assert_int_equal(report.problems, count);
  assert_int_equal(report.files, FILES);
  assert_int_equal(report.bytes, (FILES - count) * ROWS * SHARD_COLUMNS * 4);
  assert_int_equal(status, count > 0 ? TEGULA_IO : TEGULA_OK);
  for (int i = 0; i < count; i++) {
    assert_string_equal(s.problems[i].path, name_in(where, "s_%04d.npy", expected[i]).text);
    assert_int_equal(s.problems[i].status, TEGULA_IO);
    assert_int_equal(s.problems[i].os_errno, EIO);
  }
  if (count > 0) assert_string_equal(error.path, s.problems[0].path);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  bad_count = 0;
}

static void each_file_that_cannot_be_read_is_named(void **state) {
  (void)state;
  folder where = write_files();
  for (int32_t threads = 1; threads <= 4; threads += 3) {
    make_bad(&where, 39, 128, INT32_MAX);
    make_bad(&where, 7, 128 + ROWS * SHARD_COLUMNS * 4 - 1, INT32_MAX);
    make_bad(&where, 20, 500, INT32_MAX);
    expect_bad(&where, threads, (int[]){7, 20, 39}, 3);
    expect_bad(&where, threads, NULL, 0);
  }
  folder_remove(&where);
}

static void a_failure_that_does_not_come_again_is_told_too(void **state) {
  (void)state;
  folder where = write_files();
  make_bad(&where, 11, 200, 1);
  expect_bad(&where, 2, (int[]){11}, 1);
  folder_remove(&where);
}

static void problems_need_nobody_to_tell(void **state) {
  (void)state;
  folder where = write_files();
  tegula_context *context = context_make(2);
  tegula_dataset *dataset = dataset_open(context, where.path);
  make_bad(&where, 3, 200, INT32_MAX);
  tegula_error error;
  assert_int_equal(
      tegula_dataset_verify(dataset, TEGULA_VERIFY_DECODE, NULL, NULL, NULL, NULL, &error),
      TEGULA_IO);
  assert_contains(error.message, "s_0003.npy");
  assert_int_equal(
      tegula_dataset_verify(dataset, TEGULA_VERIFY_DECODE, NULL, NULL, NULL, NULL, NULL),
      TEGULA_IO);
  /* reads nothing */
  assert_ok(tegula_dataset_verify(dataset, TEGULA_VERIFY_SIZES, NULL, NULL, NULL, NULL, &error));
  bad_count = 0;
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  folder_remove(&where);
}

/* ---- a user's own format ---- */

static tegula_status read_or_fail(void *state, const tegula_view *view, tegula_error *err) {
  const int64_t *fails_from = state;
  if (view->box.hi[0] > *fails_from)
    return tegula_error_set(err, TEGULA_CORRUPT, "tape 7", 12, "the tape is torn");
  for (int64_t i = view->box.lo[0]; i < view->box.hi[0]; i++)
    memset((char *)view->data + (i - view->box.lo[0]) * view->stride_bytes[0], (int)i,
           view->dtype.item_size);
  return TEGULA_OK;
}

static void a_reader_is_verified_through_its_function(void **state) {
  (void)state;
  int64_t fails_from = 1000, shape = 1000, chunk = 64;
  tegula_error error;
  tegula_reader reader;
  tegula_dataset *dataset = NULL;
  tegula_verify_report report;
  tegula_context *context = context_make(2);
  tegula_reader_init(&reader);
  reader.read = read_or_fail;
  reader.state = &fails_from;
  reader.name = "tape";
  reader.dtype = dtype_of("<i4");
  reader.ndim = 1;
  reader.shape = &shape;
  reader.chunk = &chunk;
  assert_ok(tegula_dataset_from_reader(context, &reader, &dataset, &error));
  tegula_verify_report_init(&report);
  assert_ok(
      tegula_dataset_verify(dataset, TEGULA_VERIFY_DECODE, NULL, NULL, NULL, &report, &error));
  assert_int_equal(report.bytes, 4000);
  assert_int_equal(report.files, 0);
  fails_from = 500;
  seen s = {0};
  assert_int_equal(
      tegula_dataset_verify(dataset, TEGULA_VERIFY_DECODE, see, &s, NULL, &report, &error),
      TEGULA_CORRUPT);
  assert_int_equal(s.count, 1);
  assert_string_equal(s.problems[0].message, "the tape is torn");
  assert_string_equal(s.problems[0].path, "tape 7");
  tegula_tiling *tiling = NULL;
  char *plan = NULL;
  assert_ok(tegula_tiling_even(&shape, 1, 0, 2, 1, &tiling, &error));
  assert_ok(tegula_explain(dataset, tiling, &plan, &error));
  assert_contains(plan, "{\"box\": [[0, 500]], \"rank\": 0, \"sources\": [{\"file\": null, "
                        "\"rows\": [0, 500]}], \"bytes\": 2000, \"reads\": 8}");
  tegula_free(plan);
  tegula_free(NULL);
  tegula_tiling_destroy(tiling);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_file_that_cannot_be_read_is_named),
      cmocka_unit_test(a_failure_that_does_not_come_again_is_told_too),
      cmocka_unit_test(problems_need_nobody_to_tell),
      cmocka_unit_test(a_reader_is_verified_through_its_function),
  };
  return cmocka_run_group_tests_name("api: verify", tests, NULL, NULL);
}
