/* A durable save gives back the memory of what it replaces before it writes, and changes nothing of
 * that; other saves leave it alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
/* link-options: -Wl,--wrap=posix_fadvise,--wrap=sync_file_range,--wrap=fdatasync */
/* link-options: -Wl,--wrap=fsync,--wrap=syscall */
#include "support.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "io/io.h"

enum {
  CACHESTAT = 451,
  MIB = 1 << 20,
  SIZE = 80 * MIB,
  MOST = 16,
  EXT4 = 0xEF53,
  XFS = 0x58465342
};

int __wrap_posix_fadvise(int fd, off_t offset, off_t size, int advice);
int __real_posix_fadvise(int fd, off_t offset, off_t size, int advice);
int __wrap_sync_file_range(int fd, off_t offset, off_t size, unsigned flags);
int __wrap_fdatasync(int fd);
int __real_fdatasync(int fd);
int __wrap_fsync(int fd);
long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);

static struct {
  ino_t file;
  off_t offset, size;
} given[MOST]; /* what was given back */
static int given_count, late;
static int64_t dirty, on_their_way; /* pages of each file, as cachestat is to say; -1: as it says */
static bool pushed;

int __wrap_posix_fadvise(int fd, off_t offset, off_t size, int advice) {
  struct stat info;
  assert_int_equal(advice, POSIX_FADV_DONTNEED);
  assert_int_equal(fstat(fd, &info), 0);
  assert_true(given_count < MOST);
  given[given_count].file = info.st_ino;
  given[given_count].offset = offset;
  given[given_count++].size = size;
  if (pushed) late++;
  return 0;
}

int __wrap_sync_file_range(int fd, off_t offset, off_t size, unsigned flags) {
  (void)fd, (void)offset, (void)size, (void)flags;
  pushed = true;
  return 0;
}

int __wrap_fdatasync(int fd) {
  (void)fd;
  return 0;
}

int __wrap_fsync(int fd) {
  (void)fd;
  return 0;
}

long __wrap_syscall(long number, ...) {
  long given_to[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) given_to[i] = va_arg(list, long);
  va_end(list);
  if (number != CACHESTAT || dirty < 0)
    return __real_syscall(number, given_to[0], given_to[1], given_to[2], given_to[3], given_to[4],
                          given_to[5]);
  const uint64_t *range = (const void *)(uintptr_t)given_to[1];
  assert_true(range[1] > 0);
  memcpy((void *)(uintptr_t)given_to[2],
         (uint64_t[5]){1000, (uint64_t)dirty, (uint64_t)on_their_way, 0, 0}, 40);
  return 0;
}

static folder where;
static char data[SIZE];

static void reset(void) {
  given_count = late = 0;
  dirty = on_their_way = 0;
  pushed = false;
}

static int setup(void **state) {
  (void)state;
  where = folder_make();
  reset();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  folder_remove(&where);
  return 0;
}

/* ---- saves ---- */

typedef struct saved {
  tegula_context *context;
  tegula_tiling *tiling;
  tegula_dtype dtype;
  tegula_save_options options;
} saved;

static saved prepare(int64_t size, bool durable, int64_t shards) {
  saved s;
  tegula_error error;
  tegula_context_options one;
  tegula_context_options_init(&one);
  one.threads = 1;
  s.dtype = dtype_of("|u1");
  assert_ok(tegula_context_create(&one, NULL, &s.context, &error));
  assert_ok(tegula_tiling_even((int64_t[]){size}, 1, 0, 1, 1, &s.tiling, &error));
  tegula_save_options_init(&s.options);
  s.options.durable = durable;
  s.options.overwrite = 1;
  s.options.shards = shards;
  return s;
}

static void put_away(saved *s) {
  tegula_tiling_destroy(s->tiling);
  tegula_context_destroy(s->context);
}

static void save(const char *path, int64_t size, bool durable, int64_t shards) {
  tegula_error error;
  tegula_array *array;
  saved s = prepare(size, durable, shards);
  tegula_view view = {.data = data,
                      .dtype = s.dtype,
                      .device_type = TEGULA_DEVICE_HOST,
                      .box = {.ndim = 1, .hi = {size}},
                      .stride_bytes = {1}};
  assert_ok(tegula_array_wrap(s.context, s.dtype, s.tiling, &view, 1, NULL, NULL, &array, &error));
  assert_ok(tegula_save(array, path, &s.options, &error));
  tegula_array_destroy(array);
  put_away(&s);
}

static ino_t inode_of(const char *path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  return info.st_ino;
}

/* From the first byte on, without gaps: how many bytes of that file. */
static int64_t given_of(ino_t file) {
  int64_t end = 0;
  for (int i = 0; i < given_count; i++) {
    if (given[i].file != file) continue;
    assert_int_equal(given[i].offset, end);
    end += given[i].size;
  }
  return end;
}

static void a_durable_save_gives_back_the_old_file_first(void **state) {
  (void)state;
  file_name path = name_in(&where, "x.npy");
  save(path.text, SIZE, true, 0);
  assert_int_equal(given_count, 0); /* nothing was there */
  reset();
  ino_t old = inode_of(path.text);
  save(path.text, SIZE, true, 0);
  assert_int_equal(given_of(old), SIZE);
  assert_int_equal(given_count, 2);
  assert_true(pushed && late == 0);
}

/* What the new data takes is enough. */
static void no_more_than_the_new_data(void **state) {
  (void)state;
  file_name path = name_in(&where, "x.npy");
  save(path.text, SIZE, false, 0);
  ino_t old = inode_of(path.text);
  save(path.text, SIZE / 2, true, 0);
  assert_int_equal(given_of(old), SIZE / 2);
}

static void shards_of_a_folder_too(void **state) {
  (void)state;
  file_name path = name_in(&where, "x");
  ino_t old[3];
  save(path.text, SIZE, false, 2);
  for (int i = 0; i < 2; i++) old[i] = inode_of(name_in(&where, "x/shard_%04d.npy", i).text);
  save(path.text, SIZE, true, 2);
  assert_int_equal(given_count, 2);
  for (int i = 0; i < 2; i++) assert_int_equal(given_of(old[i]), SIZE / 2);
  assert_int_equal(late, 0);
}

static void others_leave_it_in_memory(void **state) {
  (void)state;
  file_name path = name_in(&where, "x.npy");
  save(path.text, SIZE, false, 0);
  save(path.text, SIZE, false, 0);
  save(path.text, MIB, true, 0); /* little */
  assert_int_equal(given_count, 0);
  save(path.text, SIZE, false, 0);
  dirty = 1; /* not on the disk yet */
  save(path.text, SIZE, true, 0);
  dirty = 0, on_their_way = 1;
  save(path.text, SIZE, true, 0);
  assert_int_equal(given_count, 0);
}

/* Begun, and written to by whoever it is: once for all of them. */
static void a_save_in_pieces_too_and_given_up_the_old_is_there(void **state) {
  (void)state;
  tegula_error error;
  tegula_saving *saving;
  file_name path = name_in(&where, "x.npy");
  memset(data, 7, SIZE);
  save(path.text, SIZE, false, 0);
  ino_t old = inode_of(path.text);
  saved s = prepare(SIZE, true, 0);
  assert_ok(
      tegula_save_begin(s.context, s.dtype, s.tiling, path.text, &s.options, &saving, &error));
  assert_int_equal(given_of(old), SIZE);
  tegula_save_abandon(saving);
  put_away(&s);
  assert_int_equal(inode_of(path.text), old);
  int fd = open(path.text, O_RDONLY | O_CLOEXEC);
  char *read = malloc(SIZE);
  assert_true(fd >= 0 && read != NULL);
  assert_int_equal(pread(fd, read, SIZE, 128), SIZE);
  assert_memory_equal(read, data, SIZE);
  free(read);
  close(fd);
}

/* ---- what the system does ---- */

static int64_t pages_in_memory(int fd, size_t size) {
  unsigned char there[SIZE / 4096];
  int64_t sum = 0;
  void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  assert_true(memory != MAP_FAILED);
  assert_int_equal(mincore(memory, size, there), 0);
  for (size_t i = 0; i < size / 4096; i++) sum += there[i] & 1;
  munmap(memory, size);
  return sum;
}

static void only_what_is_on_the_disk_leaves_the_memory(void **state) {
  (void)state;
  struct statfs system;
  const int64_t size = 8 * MIB, pages = size / 4096;
  dirty = -1;
  int fd = open(name_in(&where, "file").text, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, data, (size_t)size, 0), size);
  assert_int_equal(fstatfs(fd, &system), 0);
  bool known = sysconf(_SC_PAGESIZE) == 4096 && (system.f_type == EXT4 || system.f_type == XFS);
  if (known) assert_false(tegula__io_cached_clean(fd, 0, size));
  assert_int_equal(__real_fdatasync(fd), 0);
  if (known && tegula__io_cached_clean(fd, 0, size)) { /* else this system does not say */
    assert_int_equal(pages_in_memory(fd, (size_t)size), pages);
    assert_int_equal(__real_posix_fadvise(fd, 0, size, POSIX_FADV_DONTNEED), 0);
    assert_true(pages_in_memory(fd, (size_t)size) < pages / 2);
  }
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_durable_save_gives_back_the_old_file_first, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(no_more_than_the_new_data, setup, teardown),
      cmocka_unit_test_setup_teardown(shards_of_a_folder_too, setup, teardown),
      cmocka_unit_test_setup_teardown(others_leave_it_in_memory, setup, teardown),
      cmocka_unit_test_setup_teardown(a_save_in_pieces_too_and_given_up_the_old_is_there, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(only_what_is_on_the_disk_leaves_the_memory, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
