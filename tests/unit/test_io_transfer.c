/* A transfer ends only when all bytes are there, whatever the system calls do on the way.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The test stands between the library and pread, preadv, pwrite, pwritev: calls are cut short,
 * interrupted or failed at will. */
/* link-options: -Wl,--wrap=pread,--wrap=preadv,--wrap=pwrite,--wrap=pwritev,--wrap=poll */
#include "support.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "io/io.h"

ssize_t __real_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_preadv(int fd, const struct iovec *vectors, int count, off_t offset);
ssize_t __wrap_pwritev(int fd, const struct iovec *vectors, int count, off_t offset);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);

/* What happens to the next calls. */
static struct plan {
  size_t most;     /* bytes of one call; 0: all */
  bool vary;       /* a random number of bytes up to `most` */
  int fail_at;     /* this call (from 1) fails ... */
  int fail_count;  /* ... and so do the ones behind it, this many in all */
  int fail_errno;  /* 0: takes no bytes */
  bool touch_none; /* claims success without touching memory */
  int calls, polls;
  short poll_events;
  size_t largest; /* that was asked for in one call */
  uint64_t seed;
} plan;

static bool fails(ssize_t *result) {
  plan.calls++;
  if (plan.fail_at == 0 || plan.calls < plan.fail_at ||
      plan.calls >= plan.fail_at + plan.fail_count)
    return false;
  errno = plan.fail_errno;
  *result = plan.fail_errno == 0 ? 0 : -1;
  return true;
}

static size_t cut(size_t size) {
  if (size > plan.largest) plan.largest = size;
  if (plan.most == 0) return size;
  size_t most = plan.vary ? (size_t)random_between(&plan.seed, 1, (int64_t)plan.most) : plan.most;
  return size < most ? size : most;
}

ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset) {
  ssize_t result;
  if (fails(&result)) return result;
  size = cut(size);
  return plan.touch_none ? (ssize_t)size : __real_pread(fd, data, size, offset);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset) {
  ssize_t result;
  if (fails(&result)) return result;
  size = cut(size);
  return plan.touch_none ? (ssize_t)size : __real_pwrite(fd, data, size, offset);
}

/* Vectors one after the other, up to a number of bytes; counts as one call. */
static ssize_t move_vectors(int fd, const struct iovec *vectors, int count, off_t offset,
                            bool writing) {
  ssize_t result, done = 0;
  if (fails(&result)) return result;
  if (count > 1024) {
    errno = EINVAL;
    return -1;
  }
  size_t total = 0;
  for (int i = 0; i < count; i++) total += vectors[i].iov_len;
  total = cut(total);
  for (int i = 0; i < count && total > 0; i++) {
    size_t size = vectors[i].iov_len < total ? vectors[i].iov_len : total;
    ssize_t n = writing ? __real_pwrite(fd, vectors[i].iov_base, size, offset + done)
                        : __real_pread(fd, vectors[i].iov_base, size, offset + done);
    if (n < 0) return n;
    done += n;
    total -= (size_t)n;
    if ((size_t)n < size) break;
  }
  return done;
}

ssize_t __wrap_preadv(int fd, const struct iovec *vectors, int count, off_t offset) {
  return move_vectors(fd, vectors, count, offset, false);
}

ssize_t __wrap_pwritev(int fd, const struct iovec *vectors, int count, off_t offset) {
  return move_vectors(fd, vectors, count, offset, true);
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout) {
  (void)timeout;
  assert_int_equal(count, 1);
  plan.poll_events = fds->events;
  plan.polls++;
  return 1;
}

/* ---- a file of 4000 known bytes ---- */

enum { SIZE = 4000 };
static unsigned char content[SIZE];

static int file_make(void) {
  uint64_t seed = 4;
  int fd = memfd_create("tegula-test", MFD_CLOEXEC);
  assert_true(fd >= 0);
  random_bytes(&seed, content, SIZE);
  assert_int_equal(__real_pwrite(fd, content, SIZE, 0), SIZE);
  plan = (struct plan){.seed = 5};
  return fd;
}

static void a_read_goes_on_after_short_reads(void **state) {
  (void)state;
  tegula_error error;
  unsigned char data[SIZE];
  int fd = file_make();
  tegula__io_counts counts = {0};
  plan.most = 7;
  assert_ok(tegula__io_read(fd, "x", 100, data, 1400, &counts, &error));
  assert_memory_equal(data, content + 100, 1400);
  assert_int_equal(plan.calls, 200);
  assert_int_equal(counts.reads, 200);
  assert_int_equal(counts.bytes_read, 1400);
  close(fd);
}

static void interruptions_are_tried_again(void **state) {
  (void)state;
  tegula_error error;
  const int reasons[] = {EINTR, EAGAIN};
  for (int r = 0; r < 2; r++) {
    unsigned char data[SIZE] = {0};
    int fd = file_make();
    tegula__io_counts counts = {0};
    plan.most = 1000;
    plan.fail_at = 2;
    plan.fail_count = 5;
    plan.fail_errno = reasons[r];
    assert_ok(tegula__io_read(fd, "x", 0, data, SIZE, &counts, &error));
    assert_memory_equal(data, content, SIZE);
    assert_int_equal(plan.calls, 4 + 5);
    assert_int_equal(counts.bytes_read, SIZE);
    assert_int_equal(plan.polls, reasons[r] == EAGAIN ? 5 : 0); /* waits rather than spins */
    if (reasons[r] == EAGAIN) assert_int_equal(plan.poll_events, POLLIN);
    close(fd);
    fd = file_make();
    plan.most = 1000;
    plan.fail_at = 2;
    plan.fail_count = 5;
    plan.fail_errno = reasons[r];
    unsigned char other[SIZE];
    memset(other, 0x5A, SIZE);
    assert_ok(tegula__io_write(fd, "x", 0, other, SIZE, &counts, &error));
    assert_int_equal(__real_pread(fd, data, SIZE, 0), SIZE);
    assert_memory_equal(data, other, SIZE);
    close(fd);
  }
}

static void a_failure_tells_place_and_reason(void **state) {
  (void)state;
  tegula_error error;
  unsigned char data[SIZE];
  for (int writing = 0; writing < 2; writing++) {
    int fd = file_make();
    tegula__io_counts counts = {0};
    plan.most = 1000;
    plan.fail_at = 3;
    plan.fail_count = 1;
    plan.fail_errno = writing ? ENOSPC : EIO;
    if (writing)
      assert_refused(tegula__io_write(fd, "disk/x.npy", 128, data, 3000, &counts, &error),
                     TEGULA_IO);
    else
      assert_refused(tegula__io_read(fd, "disk/x.npy", 128, data, 3000, &counts, &error),
                     TEGULA_IO);
    assert_int_equal(error.os_errno, writing ? ENOSPC : EIO);
    assert_int_equal(error.offset, 128 + 2000);
    assert_string_equal(error.path, "disk/x.npy");
    assert_contains(error.message, "\"disk/x.npy\"");
    assert_contains(error.message, "byte 2128");
    assert_contains(error.message, strerror(error.os_errno));
    close(fd);
  }
}

static void an_end_before_the_last_byte_is_a_short_file(void **state) {
  (void)state;
  tegula_error error;
  unsigned char data[SIZE];
  int fd = file_make();
  tegula__io_counts counts = {0};
  assert_refused(tegula__io_read(fd, "x.npy", SIZE - 100, data, 120, &counts, &error),
                 TEGULA_SHORT_FILE);
  assert_int_equal(error.offset, SIZE);
  assert_string_equal(error.path, "x.npy");
  assert_contains(error.message, "ends at byte 4000");
  assert_contains(error.message, "20 bytes");
  struct iovec vectors[2] = {{data, 50}, {data + 50, 70}};
  assert_refused(tegula__io_readv(fd, "x.npy", SIZE - 100, vectors, 2, &counts, &error),
                 TEGULA_SHORT_FILE);
  assert_int_equal(error.offset, SIZE);
  assert_contains(error.message, "20 bytes");
  close(fd);
}

static void read_some_stops_at_the_end_only(void **state) {
  (void)state;
  tegula_error error;
  unsigned char data[SIZE];
  int fd = file_make();
  tegula__io_counts counts = {0};
  size_t got;
  plan.most = 9;
  assert_ok(tegula__io_read_some(fd, "x", SIZE - 100, data, 300, &got, &counts, &error));
  assert_int_equal(got, 100);
  assert_memory_equal(data, content + SIZE - 100, 100);
  assert_ok(tegula__io_read_some(fd, "x", SIZE + 5, data, 300, &got, &counts, &error));
  assert_int_equal(got, 0);
  assert_ok(tegula__io_read_some(fd, "x", 0, data, 0, &got, &counts, &error));
  assert_int_equal(got, 0);
  close(fd);
}

/* Cuts [0, SIZE) into 1024 vectors of 3 or 4 bytes (and one rest) over `memory`, in reverse order
 * so that no two touch. */
static void cut_vectors(unsigned char *memory, struct iovec vectors[TEGULA__IO_VECTORS]) {
  size_t at = 0;
  for (int i = 0; i < TEGULA__IO_VECTORS; i++) {
    size_t size = i == TEGULA__IO_VECTORS - 1 ? SIZE - at : 3 + (size_t)(i % 5 == 0);
    at += size;
    vectors[i] = (struct iovec){.iov_base = memory + SIZE - at, .iov_len = size};
  }
}

static void vectors_survive_short_transfers(void **state) {
  (void)state;
  tegula_error error;
  static unsigned char memory[SIZE], data[SIZE];
  static struct iovec vectors[TEGULA__IO_VECTORS], kept[TEGULA__IO_VECTORS];
  for (int round = 0; round < 40; round++) {
    int fd = file_make();
    tegula__io_counts counts = {0};
    plan.most = 1 + (size_t)round * 20;
    plan.vary = round % 2;
    plan.seed = (uint64_t)round;
    plan.fail_at = round % 3;
    plan.fail_count = 2;
    plan.fail_errno = EINTR;
    cut_vectors(memory, vectors);
    memcpy(kept, vectors, sizeof kept);
    assert_ok(tegula__io_readv(fd, "x", 0, vectors, TEGULA__IO_VECTORS, &counts, &error));
    for (size_t i = 0, at = 0; i < TEGULA__IO_VECTORS; at += kept[i++].iov_len)
      assert_memory_equal(kept[i].iov_base, content + at, kept[i].iov_len);
    assert_int_equal(counts.bytes_read, SIZE);
    assert_int_equal(counts.reads, plan.calls);
    memcpy(vectors, kept, sizeof kept);
    for (size_t i = 0; i < SIZE; i++) memory[i] = (unsigned char)~memory[i];
    assert_ok(tegula__io_writev(fd, "x", 0, vectors, TEGULA__IO_VECTORS, &counts, &error));
    assert_int_equal(counts.bytes_written, SIZE);
    assert_int_equal(__real_pread(fd, data, SIZE, 0), SIZE);
    for (size_t i = 0; i < SIZE; i++) assert_int_equal(data[i], (unsigned char)~content[i]);
    close(fd);
  }
}

static void a_failed_vector_tells_how_far_it_came(void **state) {
  (void)state;
  tegula_error error;
  static unsigned char memory[SIZE];
  static struct iovec vectors[TEGULA__IO_VECTORS];
  for (int writing = 0; writing < 2; writing++) {
    int fd = file_make();
    tegula__io_counts counts = {0};
    plan.most = 333;
    plan.fail_at = 4;
    plan.fail_count = 1;
    plan.fail_errno = EIO;
    cut_vectors(memory, vectors);
    if (writing)
      assert_refused(
          tegula__io_writev(fd, "x.npy", 64, vectors, TEGULA__IO_VECTORS, &counts, &error),
          TEGULA_IO);
    else
      assert_refused(tegula__io_readv(fd, "x.npy", 0, vectors, TEGULA__IO_VECTORS, &counts, &error),
                     TEGULA_IO);
    assert_int_equal(error.offset, 999 + (writing ? 64 : 0));
    assert_int_equal(error.os_errno, EIO);
    assert_string_equal(error.path, "x.npy");
    close(fd);
  }
}

static void a_write_that_takes_no_bytes_does_not_spin(void **state) {
  (void)state;
  tegula_error error;
  unsigned char data[SIZE] = {0};
  int fd = file_make();
  tegula__io_counts counts = {0};
  plan.most = 100;
  plan.fail_at = 3;
  plan.fail_count = 1000000;
  assert_refused(tegula__io_write(fd, "x.npy", 0, data, SIZE, &counts, &error), TEGULA_IO);
  assert_int_equal(error.offset, 200);
  assert_int_equal(plan.calls, 3);
  plan.calls = 0;
  struct iovec vectors[2] = {{data, 150}, {data + 150, 150}};
  assert_refused(tegula__io_writev(fd, "x.npy", 0, vectors, 2, &counts, &error), TEGULA_IO);
  assert_int_equal(error.offset, 200);
  close(fd);
}

/* Linux moves at most 0x7ffff000 bytes in a call; one call here never asks for more than 2^30.
 * Memory is mapped but never touched. */
static void large_transfers_are_made_of_several_calls(void **state) {
  (void)state;
  tegula_error error;
  size_t size = ((size_t)5 << 29) + 17; /* 2.5 * 2^30 + 17 */
  char *memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    print_message("skipped: no address space for 2.5 GiB\n");
    skip();
  }
  int fd = file_make();
  tegula__io_counts counts = {0};
  plan.touch_none = true;
  assert_ok(tegula__io_read(fd, "x", 0, memory, size, &counts, &error));
  assert_int_equal(plan.calls, 3);
  assert_ok(tegula__io_write(fd, "x", 0, memory, size, &counts, &error));
  assert_int_equal(plan.calls, 6);
  assert_int_equal(plan.largest, (size_t)1 << 30);
  assert_int_equal(counts.bytes_read, size);
  assert_int_equal(counts.bytes_written, size);
  munmap(memory, size);
  close(fd);
}

static void nothing_costs_no_call(void **state) {
  (void)state;
  tegula_error error;
  int fd = file_make();
  tegula__io_counts counts = {0};
  assert_ok(tegula__io_read(fd, "x", 0, NULL, 0, &counts, &error));
  assert_ok(tegula__io_write(fd, "x", 0, NULL, 0, &counts, &error));
  assert_ok(tegula__io_readv(fd, "x", 0, NULL, 0, &counts, &error));
  assert_int_equal(plan.calls, 0);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_read_goes_on_after_short_reads),
      cmocka_unit_test(interruptions_are_tried_again),
      cmocka_unit_test(a_failure_tells_place_and_reason),
      cmocka_unit_test(an_end_before_the_last_byte_is_a_short_file),
      cmocka_unit_test(read_some_stops_at_the_end_only),
      cmocka_unit_test(vectors_survive_short_transfers),
      cmocka_unit_test(a_failed_vector_tells_how_far_it_came),
      cmocka_unit_test(a_write_that_takes_no_bytes_does_not_spin),
      cmocka_unit_test(large_transfers_are_made_of_several_calls),
      cmocka_unit_test(nothing_costs_no_call),
  };
  return cmocka_run_group_tests_name("io: transfer", tests, NULL, NULL);
}
