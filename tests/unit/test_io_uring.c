/* The ring moves every byte or says which could not be moved, whatever the kernel does with the
 * entries, and gives way where it cannot be had.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The test stands between the library and liburing: entries are cut before the kernel sees them, or
 * swallowed and answered with an error, so that bytes which the ring did not move are not there
 * unless somebody else moves them. */
/* link-options: -Wl,--wrap=io_uring_queue_init,--wrap=io_uring_submit_and_wait */
/* link-options: -Wl,--wrap=io_uring_peek_batch_cqe,--wrap=pread */
#include "test_io_lane_support.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef TEGULA_HAVE_URING

int main(void) {
  puts("skipped: built without liburing");
  return 77;
}

#else

#include <liburing.h>

static struct plan {
  int setup_errno;          /* io_uring_queue_init fails */
  bool cut;                 /* entries move a random part */
  int fail_at, fail_second; /* entries (from 1) that are swallowed; 0: none */
  int fail_count;           /* this many from fail_at on */
  int fail_errno;
  /* submitting fails, after so many times that it works */
  int submit_errno, submit_skip, submit_times;
  useconds_t submit_sleep, pread_sleep;
  int entries, submits;
  uint64_t seed;
} plan;

static uint64_t swallowed_data[TEGULA__IO_DEPTH];
static int swallowed_count;

int __real_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait);
unsigned __real_io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **ends,
                                        unsigned count);
unsigned __wrap_io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **ends,
                                        unsigned count);
ssize_t __real_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset);

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags) {
  return plan.setup_errno != 0 ? -plan.setup_errno
                               : __real_io_uring_queue_init(entries, ring, flags);
}

ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset) {
  if (plan.pread_sleep > 0) usleep(plan.pread_sleep);
  return __real_pread(fd, data, size, offset);
}

static void change_entry(struct io_uring_sqe *sqe) {
  int number = ++plan.entries;
  bool in_range =
      plan.fail_at > 0 && number >= plan.fail_at && number < plan.fail_at + plan.fail_count;
  if (in_range || (plan.fail_second > 0 && number == plan.fail_second)) {
    uint64_t data = sqe->user_data;
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = IORING_OP_NOP;
    sqe->user_data = data;
    swallowed_data[swallowed_count++] = data;
  } else if (plan.cut && sqe->len > 1) {
    sqe->len = (unsigned)random_between(&plan.seed, 1, sqe->len); /* bytes, or vectors */
  }
}

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned wait) {
  plan.submits++;
  if (plan.submit_sleep > 0) usleep(plan.submit_sleep);
  if (plan.submit_times > 0 && plan.submits > plan.submit_skip) {
    plan.submit_times--;
    return -plan.submit_errno;
  }
  for (unsigned i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++)
    change_entry(&ring->sq.sqes[i & ring->sq.ring_mask]);
  return __real_io_uring_submit_and_wait(ring, wait);
}

unsigned __wrap_io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **ends,
                                        unsigned count) {
  unsigned found = __real_io_uring_peek_batch_cqe(ring, ends, count);
  for (unsigned i = 0; i < found; i++) {
    for (int k = 0; k < swallowed_count; k++) {
      if (swallowed_data[k] != ends[i]->user_data) continue;
      ends[i]->res = -plan.fail_errno;
      swallowed_data[k] = swallowed_data[--swallowed_count];
      break;
    }
  }
  return found;
}

/* ---- support ---- */

static tegula_error error;

static tegula__transport *transport_of(const char *name) {
  tegula__transport *transport = NULL;
  assert_ok(tegula__transport_create(name, &transport, &error));
  return transport;
}

static void clear(lane_bed *bed) {
  memset(bed->memory, 0xA5, (size_t)(bed->size + bed->slip));
  bed->counts = (tegula__io_counts){0};
}

static tegula_status move(lane_bed *bed, tegula__lane *lane, int64_t index, bool writing) {
  tegula__io_file file = bed_file(bed, index, writing);
  memset(&error, 0, sizeof error);
  return tegula__lane_move(lane, &file, bed->requests, bed->count, &error);
}

static void check_use(const tegula__lane *lane, int64_t way, int64_t reference,
                      const char *declined) {
  tegula__io_use use = tegula__lane_use(lane);
  assert_string_equal(use.way, "io_uring");
  assert_int_equal(use.way_bytes, way);
  assert_int_equal(use.reference_bytes, reference);
  if (declined == NULL)
    assert_null(use.declined);
  else
    assert_contains(use.declined != NULL ? use.declined : "nothing", declined);
}

static int set_up(void **state) {
  (void)state;
  plan = (struct plan){.seed = 7};
  swallowed_count = 0;
  return 0;
}

/* ---- tests ---- */

static void test_moves_every_byte_in_both_directions(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    uint64_t random = seed;
    lane_bed bed;
    bed_make(&bed, seed % 2 == 0 ? 5000000 : 300000, (int64_t)seed, &random);
    tegula__transport *transport = transport_of("io_uring");
    tegula__lane *lane = tegula__transport_take(transport);
    clear(&bed);
    bed_fill(&bed, TEGULA__IO_DEPTH, seed % 2 == 0 ? 3000000 : 9000, &random);
    plan.cut = seed % 3 == 0;
    assert_int_equal(move(&bed, lane, 0, false), TEGULA_OK);
    bed_check_read(&bed, 0xA5);
    tegula__io_use use = tegula__lane_use(lane);
    assert_int_equal(use.way_bytes + use.reference_bytes, bed.bytes);
    assert_int_equal(bed.counts.bytes_read, bed.bytes);
    if (!plan.cut) check_use(lane, bed.bytes, 0, NULL);
    random_bytes(&random, bed.memory, (size_t)bed.size);
    bed_fill(&bed, TEGULA__IO_DEPTH, 9000, &random);
    assert_int_equal(move(&bed, lane, 0, true), TEGULA_OK);
    bed_check_written(&bed);
    assert_int_equal(bed.counts.bytes_written, bed.bytes);
    tegula__transport_give(transport, lane);
    tegula__transport_destroy(transport);
    bed_free(&bed);
  }
}

static void test_lowest_failure_is_told_and_the_ring_goes_on(void **state) {
  (void)state;
  uint64_t seed = 3;
  lane_bed bed;
  bed_make(&bed, 64 * 4096, 0, &seed);
  tegula__transport *transport = transport_of("io_uring");
  for (int at = 1; at <= 64; at += 9) {
    tegula__lane *lane = tegula__transport_take(transport);
    set_up(NULL);
    bed_rows(&bed, 64, 4096, &seed);
    plan.fail_at = 64;
    plan.fail_count = 1;
    plan.fail_second = at;
    plan.fail_errno = EIO;
    assert_int_equal(move(&bed, lane, 0, false), TEGULA_IO);
    assert_int_equal(error.offset, (at - 1) * 4096);
    assert_int_equal(error.os_errno, EIO);
    assert_string_equal(error.path, bed.path.text);
    assert_contains(error.message, "could not read");
    set_up(NULL);
    clear(&bed);
    bed_rows(&bed, 64, 4096, &seed);
    assert_int_equal(move(&bed, lane, 0, false), TEGULA_OK);
    bed_check_read(&bed, 0xA5);
    tegula__transport_give(transport, lane);
  }
  tegula__transport_destroy(transport);
  bed_free(&bed);
}

static void test_interrupted_entries_are_done_again(void **state) {
  (void)state;
  static const int errnos[] = {EINTR, EAGAIN, ECANCELED};
  uint64_t seed = 4;
  lane_bed bed;
  bed_make(&bed, 64 * 4096, 5, &seed);
  tegula__transport *transport = transport_of("io_uring");
  for (int i = 0; i < 3; i++) {
    set_up(NULL);
    clear(&bed);
    tegula__lane *lane = tegula__transport_take(transport);
    bed_rows(&bed, 64, 4096, &seed);
    plan.fail_at = 10;
    plan.fail_count = 30;
    plan.fail_errno = errnos[i];
    assert_int_equal(move(&bed, lane, 0, false), TEGULA_OK);
    bed_check_read(&bed, 0xA5);
    check_use(lane, 34 * 4096, 30 * 4096, NULL);
    tegula__transport_give(transport, lane);
  }
  tegula__transport_destroy(transport);
  bed_free(&bed);
}

static void test_refused_file_goes_through_the_reference_and_others_do_not(void **state) {
  (void)state;
  uint64_t seed = 5;
  lane_bed bed;
  bed_make(&bed, 64 * 4096, 0, &seed);
  tegula__transport *transport = transport_of("io_uring");
  tegula__lane *lane = tegula__transport_take(transport);
  clear(&bed);
  bed_rows(&bed, 64, 4096, &seed);
  plan.fail_at = 1;
  plan.fail_count = 1;
  plan.fail_errno = EOPNOTSUPP;
  assert_int_equal(move(&bed, lane, 8, false), TEGULA_OK);
  bed_check_read(&bed, 0xA5);
  check_use(lane, 63 * 4096, 4096, "refuses requests from io_uring");
  plan.submits = 0;
  bed_rows(&bed, 64, 4096, &seed);
  assert_int_equal(move(&bed, lane, 8, false), TEGULA_OK);
  assert_int_equal(plan.submits, 0);
  bed_rows(&bed, 64, 4096, &seed);
  assert_int_equal(move(&bed, lane, 9, false), TEGULA_OK);
  assert_true(plan.submits > 0);
  tegula__transport_give(transport, lane);
  tegula__transport_destroy(transport);
  bed_free(&bed);
}

static void test_kernel_that_takes_no_entries(void **state) {
  (void)state;
  uint64_t seed = 6;
  lane_bed bed;
  bed_make(&bed, 3 << 20, 0, &seed);
  for (int skip = 0; skip <= 1; skip++) {
    set_up(NULL);
    tegula__transport *transport = transport_of("io_uring");
    tegula__lane *lane = tegula__transport_take(transport);
    clear(&bed);
    bed_rows(&bed, 1, 3 << 20, &seed);
    plan.submit_errno = skip == 0 ? ENOMEM : EBUSY;
    plan.submit_skip = skip;
    plan.submit_times = skip == 0 ? 1000 : 1; /* for ever, or once while the kernel has some */
    assert_int_equal(move(&bed, lane, 0, false), TEGULA_OK);
    bed_check_read(&bed, 0xA5);
    if (skip == 0) check_use(lane, 0, bed.bytes, "no memory for an io_uring");
    tegula__transport_give(transport, lane);
    /* a ring that is broken stays so, in the next job too */
    lane = tegula__transport_take(transport);
    set_up(NULL);
    bed_rows(&bed, 1, 3 << 20, &seed);
    assert_int_equal(move(&bed, lane, 0, false), TEGULA_OK);
    assert_true(skip == 0 ? plan.submits == 0 : plan.submits > 0);
    if (skip == 0) check_use(lane, 0, bed.bytes, "no memory for an io_uring");
    tegula__transport_give(transport, lane);
    tegula__transport_destroy(transport);
  }
  bed_free(&bed);
}

static void test_end_of_file_is_told_as_by_the_reference(void **state) {
  (void)state;
  uint64_t seed = 7;
  lane_bed bed;
  bed_make(&bed, 200000, 0, &seed);
  tegula__transport *transport = transport_of("io_uring");
  tegula__lane *lane = tegula__transport_take(transport);
  bed_rows(&bed, 20, 10000, &seed);
  assert_int_equal(ftruncate(bed.fd, 123456), 0);
  assert_int_equal(move(&bed, NULL, 0, false), TEGULA_SHORT_FILE);
  tegula_error expected = error;
  bed_rows(&bed, 20, 10000, &seed);
  assert_int_equal(move(&bed, lane, 0, false), TEGULA_SHORT_FILE);
  assert_string_equal(error.message, expected.message);
  assert_int_equal(error.offset, 123456);
  tegula__transport_give(transport, lane);
  tegula__transport_destroy(transport);
  bed_free(&bed);
}

static void test_setup_that_fails_is_told_by_its_reason(void **state) {
  (void)state;
  static const struct {
    int os_errno;
    const char *reason;
  } rows[] = {{ENOSYS, "no io_uring"}, {EPERM, "not allowed"},
              {ENOMEM, "no memory"},   {EMFILE, "too many open files"},
              {EINVAL, "too old"},     {EIO, "could not be set up"}};
  uint64_t seed = 8;
  lane_bed bed;
  bed_make(&bed, 64 * 4096, 0, &seed);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    set_up(NULL);
    plan.setup_errno = rows[i].os_errno;
    tegula__transport *transport = transport_of("io_uring");
    tegula__lane *lane = tegula__transport_take(transport);
    clear(&bed);
    bed_rows(&bed, 64, 4096, &seed);
    assert_int_equal(move(&bed, lane, 0, false), TEGULA_OK);
    bed_check_read(&bed, 0xA5);
    check_use(lane, 0, bed.bytes, rows[i].reason);
    tegula__transport_give(transport, lane);
    tegula__transport_destroy(transport);
  }
  bed_free(&bed);
}

/* From here on this process may not make a ring, as in a container. */
static bool forbid_rings(int os_errno) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)os_errno),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* 0: right data and the right reason; 77: the filter cannot be had. */
static int load_without_rings(lane_bed *bed, int os_errno, const char *reason) {
  uint64_t seed = 9;
  if (!forbid_rings(os_errno)) return 77;
  tegula__transport *transport = NULL;
  if (tegula__transport_create("io_uring", &transport, NULL) != TEGULA_OK) return 1;
  tegula__lane *lane = tegula__transport_take(transport);
  clear(bed);
  bed_rows(bed, 64, 4096, &seed);
  if (move(bed, lane, 0, false) != TEGULA_OK ||
      memcmp(bed->memory, bed->content, (size_t)bed->size) != 0)
    return 2;
  tegula__io_use use = tegula__lane_use(lane);
  bool right = use.way_bytes == 0 && use.declined != NULL && strstr(use.declined, reason) != NULL;
  tegula__transport_give(transport, lane);
  tegula__transport_destroy(transport);
  return right ? 0 : 3;
}

static void test_seccomp_filter_as_in_a_container(void **state) {
  (void)state;
  static const int errnos[] = {EPERM, ENOSYS};
  uint64_t seed = 10;
  lane_bed bed;
  bed_make(&bed, 64 * 4096, 0, &seed);
  for (int i = 0; i < 2; i++) {
    int status;
    pid_t child = fork();
    if (child == 0)
      _exit(
          load_without_rings(&bed, errnos[i], errnos[i] == EPERM ? "not allowed" : "no io_uring"));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
      print_message("a seccomp filter cannot be set here: not tried\n");
    else
      assert_int_equal(WEXITSTATUS(status), 0);
  }
  bed_free(&bed);
}

/* Moves the same rows `times` times by "auto"; true when the last time used the ring. */
static bool auto_uses_ring(lane_bed *bed, int rows, int times) {
  uint64_t seed = 11;
  tegula__transport *transport = transport_of("auto");
  tegula__lane *lane = tegula__transport_take(transport);
  for (int i = 0; i < times; i++) {
    clear(bed);
    bed_rows(bed, rows, 4096, &seed);
    plan.submits = 0;
    assert_int_equal(move(bed, lane, 0, false), TEGULA_OK);
    bed_check_read(bed, 0xA5);
  }
  tegula__transport_give(transport, lane);
  tegula__transport_destroy(transport);
  return plan.submits > 0;
}

static void test_auto_goes_by_what_it_measures(void **state) {
  (void)state;
  uint64_t seed = 12;
  lane_bed bed;
  bed_make(&bed, 64 * 4096, 0, &seed);
  bool used = true; /* in memory nobody waits; on a busy machine it may look so now and then */
  for (int i = 0; i < 50 && used; i++) used = auto_uses_ring(&bed, 64, 1);
  assert_false(used);
  plan.pread_sleep = 2000;
  assert_true(auto_uses_ring(&bed, 64, 1)); /* slow storage that answers many at once */
  assert_true(auto_uses_ring(&bed, 64, 9));
  plan.submit_sleep = 600000;
  /* three samples of 2 ms a request against a ring that takes 75 */
  assert_false(auto_uses_ring(&bed, 10, 8));
  bed_free(&bed);
}

static void test_few_requests_are_not_worth_a_ring(void **state) {
  (void)state;
  uint64_t seed = 13;
  lane_bed bed;
  bed_make(&bed, 7 * 4096, 0, &seed);
  tegula__transport *transport = transport_of(NULL);
  tegula__lane *lane = tegula__transport_take(transport);
  plan.pread_sleep = 2000;
  clear(&bed);
  bed_rows(&bed, 7, 4096, &seed);
  assert_int_equal(move(&bed, lane, 0, false), TEGULA_OK);
  bed_check_read(&bed, 0xA5);
  check_use(lane, 0, bed.bytes, NULL);
  tegula__transport_give(transport, lane);
  tegula__transport_destroy(transport);
  bed_free(&bed);
}

int main(void) {
  struct io_uring ring;
  int failed = io_uring_queue_init(8, &ring, 0);
  if (failed < 0) {
    printf("skipped: no io_uring here: %s\n", strerror(-failed));
    return 77;
  }
  io_uring_queue_exit(&ring);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_moves_every_byte_in_both_directions, set_up),
      cmocka_unit_test_setup(test_lowest_failure_is_told_and_the_ring_goes_on, set_up),
      cmocka_unit_test_setup(test_interrupted_entries_are_done_again, set_up),
      cmocka_unit_test_setup(test_refused_file_goes_through_the_reference_and_others_do_not,
                             set_up),
      cmocka_unit_test_setup(test_kernel_that_takes_no_entries, set_up),
      cmocka_unit_test_setup(test_end_of_file_is_told_as_by_the_reference, set_up),
      cmocka_unit_test_setup(test_setup_that_fails_is_told_by_its_reason, set_up),
      cmocka_unit_test_setup(test_seccomp_filter_as_in_a_container, set_up),
      cmocka_unit_test_setup(test_auto_goes_by_what_it_measures, set_up),
      cmocka_unit_test_setup(test_few_requests_are_not_worth_a_ring, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
