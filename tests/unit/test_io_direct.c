/* Direct I/O moves the same bytes as the reference at every alignment, and gives way where the file
 * system has none.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The test stands between the library and open, pread and pwrite: it sees that what goes past the
 * page cache is aligned, cuts calls short and fails them. */
/* link-options: -Wl,--wrap=open -Wl,--wrap=pread -Wl,--wrap=pwrite */
#include "test_io_lane_support.h"

#include <errno.h>

static struct plan {
  int open_errno;          /* of the second descriptor */
  int fail_at, fail_errno; /* this direct call (from 1) fails */
  bool cut;                /* direct calls move whole blocks, but fewer */
  size_t most;             /* direct calls answer with at most so many bytes; 0: no limit */
  int direct_fd, direct_calls, opens;
  uint64_t seed;
} plan;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
ssize_t __real_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset);

int __wrap_open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_DIRECT) == 0) return __real_open(path, flags, mode);
  plan.opens++;
  errno = plan.open_errno;
  /* the checks below stand in for the kernel's */
  plan.direct_fd = plan.open_errno != 0 ? -1 : __real_open(path, flags & ~O_DIRECT);
  return plan.direct_fd;
}

/* False: the call fails. */
static bool direct_call(const void *data, size_t *size, off_t offset) {
  plan.direct_calls++;
  if ((uintptr_t)data % 4096 != 0 || *size % 4096 != 0 || offset % 4096 != 0)
    fail_msg("a direct call is not aligned");
  errno = plan.fail_errno;
  if (plan.most > 0 && *size > plan.most) *size = plan.most;
  if (plan.cut && *size > 4096)
    *size = (size_t)random_between(&plan.seed, 1, (int64_t)*size / 4096) * 4096;
  return plan.direct_calls != plan.fail_at;
}

ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset) {
  if (fd == plan.direct_fd && !direct_call(data, &size, offset)) return -1;
  return __real_pread(fd, data, size, offset);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset) {
  if (fd == plan.direct_fd && !direct_call(data, &size, offset)) return -1;
  return __real_pwrite(fd, data, size, offset);
}

static tegula_error error;

/* A transport with one lane. */
typedef struct way {
  tegula__transport *transport;
  tegula__lane *lane;
} way;

static way way_make(void) {
  way made = {0};
  plan = (struct plan){.direct_fd = -1, .seed = 5};
  assert_ok(tegula__transport_create("direct", &made.transport, &error));
  made.lane = tegula__transport_take(made.transport);
  return made;
}

static void way_free(way *made) {
  tegula__transport_give(made->transport, made->lane);
  tegula__transport_destroy(made->transport);
}

static tegula_status move(lane_bed *bed, way *by, bool writing) {
  tegula__io_file file = bed_file(bed, 0, writing);
  memset(&error, 0, sizeof error);
  return tegula__lane_move(by->lane, &file, bed->requests, bed->count, &error);
}

static void test_same_bytes_at_every_alignment(void **state) {
  (void)state;
  static const int64_t slips[] = {0, 1, 128, 4032, 2048};
  for (uint64_t seed = 1; seed <= 20; seed++) {
    uint64_t random = seed;
    lane_bed bed;
    int64_t size = random_between(&random, 1000000, 3000000);
    bed_make(&bed, size, slips[seed % 5], &random);
    way by = way_make();
    plan.cut = seed % 2 == 0;
    memset(bed.memory, 0xA5, (size_t)(bed.size + bed.slip));
    bed_fill(&bed, TEGULA__IO_DEPTH, seed % 3 == 0 ? 2000000 : 50000, &random);
    assert_int_equal(move(&bed, &by, false), TEGULA_OK);
    bed_check_read(&bed, 0xA5);
    assert_int_equal(bed.counts.bytes_read, bed.bytes);
    assert_int_equal(tegula__lane_use(by.lane).way_bytes, bed.bytes);
    assert_true(plan.direct_calls > 0);
    way_free(&by);
    by = way_make();
    plan.cut = seed % 2 == 0;
    random_bytes(&random, bed.memory, (size_t)bed.size);
    bed_fill(&bed, TEGULA__IO_DEPTH, 50000, &random);
    assert_int_equal(move(&bed, &by, true), TEGULA_OK);
    bed_check_written(&bed);
    assert_true(plan.direct_calls > 0);
    way_free(&by);
    bed_free(&bed);
  }
}

static void test_aligned_requests_go_straight(void **state) {
  (void)state;
  uint64_t seed = 1;
  lane_bed bed;
  bed_make(&bed, 2 << 20, 100, &seed);
  way by = way_make();
  /* the address of byte 8192 - 100 is a multiple of 4096, its offset is not */
  bed_request(&bed, 8192 - 100, (1 << 20) + 5000, 1, &seed);
  assert_int_equal(move(&bed, &by, false), TEGULA_OK);
  int through_memory = plan.direct_calls;
  assert_int_equal(through_memory, 3); /* from 4096 on: 512 KiB, 512 KiB, 4 KiB */
  bed.slip = 0;
  bed.count = 0;
  plan.direct_calls = 0;
  bed_request(&bed, 5000, (1 << 20) + 17, 1, &seed);
  assert_int_equal(move(&bed, &by, false), TEGULA_OK);
  /* the block with byte 5000, all whole blocks, the block with the end */
  assert_int_equal(plan.direct_calls, 3);
  way_free(&by);
  bed_free(&bed);
}

static void test_file_systems_without_it_are_read_through_the_cache(void **state) {
  (void)state;
  static const struct {
    int os_errno;
    const char *reason;
  } rows[] = {{EINVAL, "no direct i/o"},
              {ENOENT, "needs /proc"},
              {EMFILE, "too many open files"},
              {EACCES, "could not be opened"}};
  uint64_t seed = 2;
  lane_bed bed;
  bed_make(&bed, 300000, 0, &seed);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    way by = way_make();
    plan.open_errno = rows[i].os_errno;
    memset(bed.memory, 0xA5, (size_t)bed.size);
    for (int again = 0; again < 2; again++) {
      bed_rows(&bed, 10, 30000, &seed);
      assert_int_equal(move(&bed, &by, false), TEGULA_OK);
      bed_check_read(&bed, 0xA5);
    }
    assert_int_equal(plan.opens, 1); /* a file is asked once */
    tegula__io_use use = tegula__lane_use(by.lane);
    assert_int_equal(use.way_bytes, 0);
    assert_int_equal(use.reference_bytes, 600000);
    assert_contains(use.declined, rows[i].reason);
    way_free(&by);
  }
  bed_free(&bed);
}

static void test_refusal_and_failure_on_the_way(void **state) {
  (void)state;
  uint64_t seed = 3;
  lane_bed bed;
  bed_make(&bed, 3000000, 3, &seed);
  for (int at = 1; at <= 6; at++) {
    way by = way_make();
    plan.fail_at = at;
    plan.fail_errno = EINVAL;
    memset(bed.memory, 0xA5, (size_t)bed.size + 3);
    bed_rows(&bed, 6, 500000, &seed);
    assert_int_equal(move(&bed, &by, false), TEGULA_OK);
    bed_check_read(&bed, 0xA5);
    assert_contains(tegula__lane_use(by.lane).declined, "refuses direct i/o");
    way_free(&by);
    by = way_make();
    plan.fail_at = at;
    plan.fail_errno = EINTR;
    bed_rows(&bed, 6, 500000, &seed);
    assert_int_equal(move(&bed, &by, false), TEGULA_OK);
    assert_null(tegula__lane_use(by.lane).declined);
    way_free(&by);
    by = way_make();
    plan.fail_at = at;
    plan.fail_errno = EIO;
    bed_rows(&bed, 6, 500000, &seed);
    assert_int_equal(move(&bed, &by, false), TEGULA_IO);
    assert_int_equal(error.offset, (at - 1) * 500000);
    assert_int_equal(error.os_errno, EIO);
    way_free(&by);
  }
  bed_free(&bed);
}

/* An answer that ends in front of the first wanted byte is not the end of the file. */
static void test_answers_of_less_than_a_block(void **state) {
  (void)state;
  static const size_t most[] = {1, 127, 4095, 5000};
  uint64_t seed = 6;
  lane_bed bed;
  bed_make(&bed, 300000, 7, &seed);
  for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
    way by = way_make();
    plan.most = most[i];
    memset(bed.memory, 0xA5, (size_t)(bed.size + bed.slip));
    bed_rows(&bed, 10, 30000, &seed);
    assert_int_equal(move(&bed, &by, false), TEGULA_OK);
    bed_check_read(&bed, 0xA5);
    tegula__io_use use = tegula__lane_use(by.lane);
    assert_int_equal(use.way_bytes + use.reference_bytes, bed.bytes);
    way_free(&by);
  }
  bed_free(&bed);
}

static void test_end_of_file(void **state) {
  (void)state;
  uint64_t seed = 4;
  lane_bed bed;
  bed_make(&bed, 200000, 1, &seed);
  way by = way_make();
  bed_rows(&bed, 20, 10000, &seed);
  assert_int_equal(ftruncate(bed.fd, 123456), 0);
  assert_int_equal(move(&bed, &by, false), TEGULA_SHORT_FILE);
  assert_int_equal(error.offset, 123456);
  way_free(&by);
  bed_free(&bed);
}

static void test_names_of_ways(void **state) {
  (void)state;
  static const char *const names[] = {"auto", "pread", "io_uring", "direct"};
  tegula__transport *transport = NULL;
  for (int i = 0; i < 4; i++) {
    assert_ok(tegula__transport_create(names[i], &transport, &error));
    tegula__transport_destroy(transport);
  }
  assert_refused(tegula__transport_create("mmap", &transport, &error), TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "auto, pread, io_uring or direct, not \"mmap\"");
  assert_ok(tegula__transport_create("pread", &transport, &error));
  assert_null(tegula__transport_take(transport)); /* the reference needs no lane */
  tegula__transport_destroy(transport);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_bytes_at_every_alignment),
      cmocka_unit_test(test_aligned_requests_go_straight),
      cmocka_unit_test(test_file_systems_without_it_are_read_through_the_cache),
      cmocka_unit_test(test_refusal_and_failure_on_the_way),
      cmocka_unit_test(test_answers_of_less_than_a_block),
      cmocka_unit_test(test_end_of_file),
      cmocka_unit_test(test_names_of_ways),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
