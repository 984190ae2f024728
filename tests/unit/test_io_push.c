/* What has to be on the disk in the end starts on its way there as soon as it is written; nothing
 * else does.
 *
 * SPDX-License-Identifier: Apache-2.0 */
/* link-options: -Wl,--wrap=sync_file_range -Wl,--wrap=fdatasync */
#include "support.h"

#include <errno.h>
#include <fcntl.h>

#include "io/io.h"

enum { MIB = 1 << 20 };

int __wrap_sync_file_range(int fd, off_t offset, off_t size, unsigned flags);
int __wrap_fdatasync(int fd);

static _Atomic int pushes, syncs, late; /* late: pushed when the file was on the disk already */
static _Atomic int64_t pushed;
static off_t place;

int __wrap_sync_file_range(int fd, off_t offset, off_t size, unsigned flags) {
  assert_true(fd >= 0 && flags == SYNC_FILE_RANGE_WRITE);
  pushes++;
  pushed += size;
  place = offset;
  if (syncs > 0) late++;
  errno = EIO; /* advice may fail */
  return -1;
}

int __wrap_fdatasync(int fd) {
  (void)fd;
  syncs++;
  return 0;
}

static folder where;

static int setup(void **state) {
  (void)state;
  where = folder_make();
  pushes = syncs = late = 0;
  pushed = 0;
  return 0;
}

static int teardown(void **state) {
  (void)state;
  folder_remove(&where);
  return 0;
}

static void write_at(bool push, int64_t offset, size_t size, size_t second) {
  static char data[4 * MIB];
  tegula_error error;
  tegula__io_counts counts = {0};
  file_name path = name_in(&where, "file");
  int fd = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  struct iovec vectors[2] = {{.iov_base = data, .iov_len = size},
                             {.iov_base = data, .iov_len = second}};
  tegula__request request = {.offset = offset, .vectors = vectors, .count = second > 0 ? 2 : 1};
  tegula__io_file file = {
      .fd = fd, .path = path.text, .writing = true, .push = push, .counts = &counts};
  assert_ok(tegula__lane_move(NULL, &file, &request, 1, &error));
  close(fd);
}

static void what_is_written_is_pushed(void **state) {
  (void)state;
  write_at(true, 5, 3 * MIB, MIB + 7);
  assert_int_equal(pushes, 1);
  assert_int_equal(pushed, 4 * MIB + 7);
  assert_int_equal(place, 5);
}

static void little_is_not_pushed_nor_what_nobody_waits_for(void **state) {
  (void)state;
  write_at(true, 0, MIB - 1, 0);
  write_at(false, 0, 3 * MIB, 0);
  assert_int_equal(pushes, 0);
}

static void save(bool durable) {
  static char data[16 * MIB]; /* eight steps */
  tegula_context *context;
  tegula_tiling *tiling;
  tegula_array *array;
  tegula_error error;
  tegula_save_options options;
  tegula_context_options one;
  const int64_t shape[1] = {sizeof data};
  tegula_dtype dtype;
  assert_ok(tegula_dtype_parse("|u1", &dtype, &error));
  tegula_context_options_init(&one);
  one.threads = 1;
  assert_ok(tegula_context_create(&one, NULL, &context, &error));
  assert_ok(tegula_tiling_even(shape, 1, 0, 1, 1, &tiling, &error));
  tegula_save_options_init(&options);
  options.durable = durable;
  options.overwrite = 1;
  file_name path = name_in(&where, "x.npy");
  tegula_view view = {.data = data,
                      .dtype = dtype,
                      .device_type = TEGULA_DEVICE_HOST,
                      .box = {.ndim = 1, .hi = {sizeof data}},
                      .stride_bytes = {1}};
  assert_ok(tegula_array_wrap(context, dtype, tiling, &view, 1, NULL, NULL, &array, &error));
  assert_ok(tegula_save(array, path.text, &options, &error));
  tegula_array_destroy(array);
  tegula_tiling_destroy(tiling);
  tegula_context_destroy(context);
}

static void durable_saves_push_all_bytes_before_they_wait(void **state) {
  (void)state;
  save(true);
  assert_int_equal(pushed, 16 * MIB);
  assert_true(syncs > 0 && late == 0);
}

/* As another process does it: it has the text, and may be on a machine of its own. */
static void write_by_text(bool durable) {
  static char data[16 * MIB];
  tegula_context *context;
  tegula_tiling *tiling;
  tegula_saving *saving;
  tegula_error error;
  tegula_save_options options;
  tegula_context_options one;
  char *text;
  tegula_dtype dtype = dtype_of("|u1");
  file_name path = name_in(&where, "x.npy");
  tegula_context_options_init(&one);
  one.threads = 1;
  assert_ok(tegula_context_create(&one, NULL, &context, &error));
  assert_ok(tegula_tiling_even((int64_t[]){sizeof data}, 1, 0, 1, 1, &tiling, &error));
  tegula_save_options_init(&options);
  options.durable = durable;
  tegula_view view = {.data = data,
                      .dtype = dtype,
                      .device_type = TEGULA_DEVICE_HOST,
                      .box = {.ndim = 1, .hi = {sizeof data}},
                      .stride_bytes = {1}};
  assert_ok(tegula_save_begin(context, dtype, tiling, path.text, &options, &saving, &error));
  assert_ok(tegula_saving_to_json(saving, &text, &error));
  assert_int_equal(pushed + syncs, 0);
  assert_ok(tegula_save_tile_from(context, text, &view, &error));
  assert_int_equal(pushed, durable ? sizeof data : 0);
  assert_int_equal(syncs, durable ? 1 : 0);
  assert_ok(tegula_save_commit(saving, &error));
  tegula_free(text);
  tegula_tiling_destroy(tiling);
  tegula_context_destroy(context);
}

static void who_writes_by_a_text_brings_it_to_the_disk(void **state) {
  (void)state;
  write_by_text(true);
}

static void unless_nobody_waits_for_it(void **state) {
  (void)state;
  write_by_text(false);
}

static void other_saves_push_nothing(void **state) {
  (void)state;
  save(false);
  assert_int_equal(pushes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_is_written_is_pushed, setup, teardown),
      cmocka_unit_test_setup_teardown(little_is_not_pushed_nor_what_nobody_waits_for, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(durable_saves_push_all_bytes_before_they_wait, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(who_writes_by_a_text_brings_it_to_the_disk, setup, teardown),
      cmocka_unit_test_setup_teardown(unless_nobody_waits_for_it, setup, teardown),
      cmocka_unit_test_setup_teardown(other_saves_push_nothing, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
