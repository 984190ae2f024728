/* The handle cache: bounded, shared, least recently used out first; a file is opened once and must
 * stay what it was.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The test stands between the library and open, fstat and fdatasync to slow them down, to fail them
 * and to count them. */
/* link-options: -Wl,--wrap=open -Wl,--wrap=fstat -Wl,--wrap=fdatasync */
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "io/io.h"

int __real_open(const char *path, int flags, ...);
int __real_fstat(int fd, struct stat *info);
int __real_fdatasync(int fd);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fstat(int fd, struct stat *info);
int __wrap_fdatasync(int fd);

static struct {
  _Atomic int opens, syncs;
  long slow_ms;   /* each open takes this long */
  int fail_opens; /* the next opens fail */
  int fail_errno;
  int fail_fstat; /* errno of each fstat, 0: none */
  int fail_sync;
} faults;

int __wrap_open(const char *path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  atomic_fetch_add(&faults.opens, 1);
  if (faults.slow_ms > 0) sleep_ms(faults.slow_ms);
  if (faults.fail_opens > 0) {
    faults.fail_opens--;
    errno = faults.fail_errno;
    return -1;
  }
  return __real_open(path, flags, mode);
}

int __wrap_fstat(int fd, struct stat *info) {
  if (faults.fail_fstat == 0) return __real_fstat(fd, info);
  errno = faults.fail_fstat;
  return -1;
}

int __wrap_fdatasync(int fd) {
  atomic_fetch_add(&faults.syncs, 1);
  if (faults.fail_sync == 0) return __real_fdatasync(fd);
  errno = faults.fail_sync;
  return -1;
}

/* ---- files 0 .. count - 1, each holding its own number ---- */

enum { MOST_FILES = 40 };

typedef struct cache {
  folder folder;
  tegula__file files[MOST_FILES];
  int count;
  tegula__handles *handles;
  tegula__file_set *set;
  tegula__io_counts counts;
} cache;

static void cache_make(cache *c, int count, int32_t capacity, bool writing) {
  tegula_error error;
  *c = (cache){.folder = folder_make(), .count = count};
  faults.opens = faults.syncs = 0;
  faults.slow_ms = faults.fail_opens = faults.fail_errno = faults.fail_fstat = faults.fail_sync = 0;
  for (int i = 0; i < count; i++) {
    int64_t number = i;
    c->files[i].path = strdup(name_in(&c->folder, "%d", i).text);
    file_write(c->files[i].path, &number, sizeof number);
  }
  assert_ok(tegula__handles_create(capacity, &c->handles, &error));
  assert_ok(tegula__file_set_create(c->handles, c->files, count, writing, &c->set, &error));
}

static void cache_free(cache *c) {
  tegula__file_set_destroy(c->set);
  tegula__handles_destroy(c->handles);
  for (int i = 0; i < c->count; i++) free(c->files[i].path);
  folder_remove(&c->folder);
}

static int acquire(cache *c, int file) {
  tegula_error error;
  int fd = -1;
  int64_t number = -1;
  assert_ok(tegula__file_set_acquire(c->set, file, &c->counts, &fd, &error));
  assert_int_equal(pread(fd, &number, sizeof number, 0), sizeof number);
  assert_int_equal(number, file); /* the right file */
  return fd;
}

static void touch(cache *c, int file) {
  acquire(c, file);
  tegula__file_set_release(c->set, file);
}

static int open_descriptors(void) {
  int count = 0;
  DIR *stream = opendir("/proc/self/fd");
  assert_non_null(stream);
  while (readdir(stream) != NULL) count++;
  closedir(stream);
  return count;
}

static void the_first_open_notes_what_the_file_is(void **state) {
  (void)state;
  cache c;
  struct stat info;
  cache_make(&c, 1, 4, false);
  int fd = acquire(&c, 0);
  assert_int_equal(stat(c.files[0].path, &info), 0);
  assert_int_equal(c.files[0].stamp.size, 8);
  assert_int_equal(c.files[0].stamp.inode, info.st_ino);
  assert_int_equal(c.files[0].stamp.device, info.st_dev);
  assert_int_equal(c.files[0].stamp.mtime_ns,
                   info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec);
  assert_int_equal(c.files[0].stamp.ctime_ns,
                   info.st_ctim.tv_sec * 1000000000 + info.st_ctim.tv_nsec);
  assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
  tegula__file_set_release(c.set, 0);
  assert_int_equal(c.counts.opens, 1);
  assert_int_equal(c.counts.stats, 1);
  cache_free(&c);
}

static void never_more_than_the_capacity_is_open(void **state) {
  (void)state;
  cache c;
  cache_make(&c, 40, 8, false);
  int before = open_descriptors();
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 40; i++) {
      touch(&c, i);
      assert_true(open_descriptors() - before <= 8);
    }
  assert_int_equal(open_descriptors() - before, 8);
  assert_int_equal(c.counts.opens, 80); /* in turn: each had been closed again */
  cache_free(&c);
  assert_int_equal(open_descriptors(), before);
}

static void with_room_each_file_is_opened_once(void **state) {
  (void)state;
  cache c;
  cache_make(&c, 40, 40, false);
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < 40; i++) touch(&c, i);
  assert_int_equal(c.counts.opens, 40);
  assert_int_equal(c.counts.stats, 40);
  cache_free(&c);
}

static void the_least_recently_used_goes_first(void **state) {
  (void)state;
  cache c;
  cache_make(&c, 3, 2, false);
  touch(&c, 0);
  touch(&c, 1);
  touch(&c, 0); /* 1 is now the oldest */
  touch(&c, 2);
  assert_int_equal(c.counts.opens, 3);
  touch(&c, 0); /* still there */
  assert_int_equal(c.counts.opens, 3);
  touch(&c, 1); /* not */
  assert_int_equal(c.counts.opens, 4);
  cache_free(&c);
}

static void pinned_files_stay_and_may_exceed_the_capacity(void **state) {
  (void)state;
  cache c;
  int fds[5];
  cache_make(&c, 6, 2, false);
  int before = open_descriptors();
  for (int i = 0; i < 5; i++) fds[i] = acquire(&c, i);
  assert_int_equal(open_descriptors() - before, 5); /* rather than a deadlock */
  for (int i = 0; i < 5; i++) assert_true(fcntl(fds[i], F_GETFD) >= 0);
  assert_int_equal(acquire(&c, 3), fds[3]); /* two pins on one file */
  tegula__file_set_release(c.set, 3);
  assert_true(fcntl(fds[3], F_GETFD) >= 0);
  for (int i = 0; i < 5; i++) tegula__file_set_release(c.set, i);
  assert_true(open_descriptors() - before <= 2);
  cache_free(&c);
}

static void sets_share_the_room(void **state) {
  (void)state;
  cache c;
  tegula_error error;
  cache_make(&c, 8, 4, false);
  tegula__file other[4];
  tegula__file_set *second;
  for (int i = 0; i < 4; i++) other[i] = (tegula__file){.path = c.files[i + 4].path};
  assert_ok(tegula__file_set_create(c.handles, other, 4, false, &second, &error));
  int before = open_descriptors(), fd;
  for (int i = 0; i < 4; i++) touch(&c, i);
  for (int i = 0; i < 3; i++) {
    assert_ok(tegula__file_set_acquire(second, i, &c.counts, &fd, &error));
    tegula__file_set_release(second, i);
  }
  assert_int_equal(open_descriptors() - before, 4);
  tegula__file_set_destroy(second); /* gives its room back */
  assert_int_equal(open_descriptors() - before, 1);
  for (int i = 0; i < 4; i++) touch(&c, i);
  assert_int_equal(open_descriptors() - before, 4);
  cache_free(&c);
}

static void the_default_keeps_half_of_the_limit_free(void **state) {
  (void)state;
  cache c;
  /* the default of this process holds all 40 unless its limit is very low */
  cache_make(&c, 40, 0, false);
  for (int i = 0; i < 40; i++) touch(&c, i);
  for (int i = 0; i < 40; i++) touch(&c, i);
  assert_int_equal(c.counts.opens, 40);
  cache_free(&c);
}

/* ---- errors ---- */

static void a_file_that_cannot_be_opened_is_told(void **state) {
  (void)state;
  cache c;
  tegula_error error;
  int fd;
  cache_make(&c, 2, 1, false);
  assert_int_equal(unlink(c.files[1].path), 0);
  int before = open_descriptors();
  for (int i = 0; i < 3; i++) { /* a failure takes no room */
    assert_refused(tegula__file_set_acquire(c.set, 1, &c.counts, &fd, &error), TEGULA_NOT_FOUND);
    assert_string_equal(error.path, c.files[1].path);
    assert_int_equal(error.os_errno, ENOENT);
  }
  assert_int_equal(open_descriptors(), before);
  touch(&c, 0);
  touch(&c, 0);
  assert_int_equal(c.counts.opens, 3 + 1);
  faults.fail_opens = 1000; /* for good: it is told in the end */
  faults.fail_errno = EMFILE;
  file_write(c.files[1].path, (int64_t[]){1}, 8);
  assert_refused(tegula__file_set_acquire(c.set, 1, &c.counts, &fd, &error), TEGULA_LIMIT_EXCEEDED);
  assert_int_equal(error.os_errno, EMFILE);
  assert_contains(error.hint, "ulimit");
  faults.fail_opens = 3; /* for a moment: nobody learns of it */
  touch(&c, 1);
  assert_int_equal(faults.fail_opens, 0);
  cache_free(&c);
}

static void an_interrupted_open_is_tried_again(void **state) {
  (void)state;
  cache c;
  cache_make(&c, 1, 1, false);
  faults.fail_opens = 3;
  faults.fail_errno = EINTR;
  touch(&c, 0);
  assert_int_equal(faults.opens, 4);
  cache_free(&c);
}

static void a_file_that_cannot_be_examined_is_closed_again(void **state) {
  (void)state;
  cache c;
  tegula_error error;
  int fd;
  cache_make(&c, 1, 1, false);
  int before = open_descriptors();
  faults.fail_fstat = EIO;
  assert_refused(tegula__file_set_acquire(c.set, 0, &c.counts, &fd, &error), TEGULA_IO);
  assert_int_equal(open_descriptors(), before);
  cache_free(&c);
}

static void only_regular_files_are_read(void **state) {
  (void)state;
  cache c;
  tegula_error error;
  int fd;
  cache_make(&c, 2, 1, false);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(unlink(c.files[i].path), 0);
    assert_int_equal(i == 0 ? mkfifo(c.files[i].path, 0600) : mkdir(c.files[i].path, 0700), 0);
    /* and it does not wait */
    assert_refused(tegula__file_set_acquire(c.set, i, &c.counts, &fd, &error), TEGULA_UNSUPPORTED);
    assert_contains(error.message, "not a regular file");
  }
  cache_free(&c);
}

/* ---- changes ---- */

static void a_file_that_changed_is_refused_when_opened_again(void **state) {
  (void)state;
  for (int kind = 0; kind < 3; kind++) {
    cache c;
    tegula_error error;
    int fd;
    static const char *const words[] = {"it had 8 bytes, now 9", "written to",
                                        "replaced by another file"};
    cache_make(&c, 2, 1, false);
    touch(&c, 0);
    touch(&c, 1); /* 0 is closed now */
    if (kind == 0) {
      file_write(c.files[0].path, "123456789", 9);
    } else if (kind == 1) {
      const struct timespec times[2] = {{1000000, 0}, {1000000, 0}};
      assert_int_equal(utimensat(AT_FDCWD, c.files[0].path, times, 0), 0);
    } else {
      file_name other = name_in(&c.folder, "other");
      file_write(other.text, (int64_t[]){0}, 8);
      assert_int_equal(rename(other.text, c.files[0].path), 0);
    }
    assert_refused(tegula__file_set_acquire(c.set, 0, &c.counts, &fd, &error), TEGULA_CHANGED);
    assert_string_equal(error.path, c.files[0].path);
    assert_contains(error.message, words[kind]);
    cache_free(&c);
  }
}

static void finishing_compares_once_more(void **state) {
  (void)state;
  cache c;
  tegula_error error;
  cache_make(&c, 1, 1, false);
  int fd = acquire(&c, 0);
  assert_ok(tegula__file_set_finish(c.set, 0, fd, false, &c.counts, &error));
  assert_int_equal(c.counts.stats, 2);
  file_write(c.files[0].path, "1234", 4);
  assert_refused(tegula__file_set_finish(c.set, 0, fd, false, &c.counts, &error), TEGULA_CHANGED);
  assert_contains(error.message, "it had 8 bytes, now 4");
  tegula__file_set_release(c.set, 0);
  cache_free(&c);
}

/* ---- writing ---- */

static void written_files_are_synced_when_asked(void **state) {
  (void)state;
  cache c;
  tegula_error error;
  int fd;
  cache_make(&c, 1, 1, true);
  assert_ok(tegula__file_set_acquire(c.set, 0, &c.counts, &fd, &error));
  assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_WRONLY);
  assert_ok(tegula__file_set_finish(c.set, 0, fd, false, &c.counts, &error));
  assert_int_equal(faults.syncs, 0);
  assert_ok(tegula__file_set_finish(c.set, 0, fd, true, &c.counts, &error));
  assert_int_equal(faults.syncs, 1);
  faults.fail_sync = EIO;
  assert_refused(tegula__file_set_finish(c.set, 0, fd, true, &c.counts, &error), TEGULA_IO);
  tegula__file_set_release(c.set, 0);
  cache_free(&c);
}

/* ---- many threads ---- */

enum { THREADS = 8 };

static void *acquire_slowly(void *state) {
  tegula_error error;
  int fd = -1;
  cache *c = state;
  if (tegula__file_set_acquire(c->set, 0, &c->counts, &fd, &error) != TEGULA_OK) fd = -1;
  return (void *)(intptr_t)fd;
}

static void threads_that_want_one_file_open_it_once(void **state) {
  (void)state;
  cache c;
  pthread_t threads[THREADS];
  void *fds[THREADS];
  cache_make(&c, 1, 4, false);
  faults.slow_ms = 30;
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, acquire_slowly, &c), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], &fds[i]), 0);
  for (int i = 0; i < THREADS; i++) {
    assert_true((intptr_t)fds[i] >= 0);
    assert_ptr_equal(fds[i], fds[0]);
    tegula__file_set_release(c.set, 0);
  }
  assert_int_equal(faults.opens, 1);
  cache_free(&c);
}

static void *acquire_in_vain(void *state) {
  tegula_error error;
  int fd;
  cache *c = state;
  return (void *)(intptr_t)tegula__file_set_acquire(c->set, 0, &c->counts, &fd, &error);
}

static void threads_that_want_a_missing_file_all_learn_it(void **state) {
  (void)state;
  cache c;
  pthread_t threads[THREADS];
  void *status;
  cache_make(&c, 1, 4, false);
  assert_int_equal(unlink(c.files[0].path), 0);
  faults.slow_ms = 5;
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, acquire_in_vain, &c), 0);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], &status), 0);
    assert_int_equal((intptr_t)status, TEGULA_NOT_FOUND);
  }
  cache_free(&c);
}

typedef struct visitor {
  cache *c;
  uint64_t seed;
  int wrong, most;
} visitor;

static void *visit(void *state) {
  visitor *v = state;
  for (int i = 0; i < 600; i++) {
    tegula_error error;
    /* of two files several threads have pins at once */
    int file = (int)random_between(&v->seed, 0, i % 2 == 0 ? 29 : 1), fd;
    int64_t number = -1;
    if (tegula__file_set_acquire(v->c->set, file, &v->c->counts, &fd, &error) != TEGULA_OK) {
      v->wrong++;
      continue;
    }
    if (pread(fd, &number, sizeof number, 0) != sizeof number || number != file) v->wrong++;
    tegula__file_set_release(v->c->set, file);
  }
  return NULL;
}

static void many_threads_get_the_right_files(void **state) {
  (void)state;
  cache c;
  pthread_t threads[4];
  visitor visitors[4];
  cache_make(&c, 30, 5, false);
  int before = open_descriptors();
  for (int i = 0; i < 4; i++) visitors[i] = (visitor){.c = &c, .seed = (uint64_t)i};
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, visit, &visitors[i]), 0);
  for (int i = 0; i < 100; i++) /* evicted ones are closed a moment later */
    assert_true(open_descriptors() - before <= 5 + 4 + 4);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(visitors[i].wrong, 0);
  }
  assert_true(open_descriptors() - before <= 5);
  assert_int_equal(c.counts.opens, faults.opens);
  cache_free(&c);
  assert_int_equal(open_descriptors(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_open_notes_what_the_file_is),
      cmocka_unit_test(never_more_than_the_capacity_is_open),
      cmocka_unit_test(with_room_each_file_is_opened_once),
      cmocka_unit_test(the_least_recently_used_goes_first),
      cmocka_unit_test(pinned_files_stay_and_may_exceed_the_capacity),
      cmocka_unit_test(sets_share_the_room),
      cmocka_unit_test(the_default_keeps_half_of_the_limit_free),
      cmocka_unit_test(a_file_that_cannot_be_opened_is_told),
      cmocka_unit_test(an_interrupted_open_is_tried_again),
      cmocka_unit_test(a_file_that_cannot_be_examined_is_closed_again),
      cmocka_unit_test(only_regular_files_are_read),
      cmocka_unit_test(a_file_that_changed_is_refused_when_opened_again),
      cmocka_unit_test(finishing_compares_once_more),
      cmocka_unit_test(written_files_are_synced_when_asked),
      cmocka_unit_test(threads_that_want_one_file_open_it_once),
      cmocka_unit_test(threads_that_want_a_missing_file_all_learn_it),
      cmocka_unit_test(many_threads_get_the_right_files),
  };
  return cmocka_run_group_tests_name("io: handles", tests, NULL, NULL);
}
