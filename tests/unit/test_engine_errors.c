/* When something goes wrong: always the same error, the first by file and offset; cancelling; files
 * that change.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Files of 1 MiB are four steps each, so that several workers are in one file, and in several
 * files, at once. */
#include "test_engine_support.h"

#include <stdatomic.h>

enum { FILES = 6, ROWS = 256, ROW_BYTES = 4096, FILE_BYTES = ROWS * ROW_BYTES };

typedef struct shards {
  bench b;
  tegula__manifest manifest;
  tegula__file_set *set;
  char *memory;
  int64_t lo[2], hi[2], strides[2];
  tegula__tile tile;
} shards;

static const char *path_of(const shards *s, int file) { return s->manifest.files[file].path; }

static void write_shard(const shards *s, int file) {
  char *bytes = malloc(FILE_BYTES);
  assert_non_null(bytes);
  memset(bytes, 'a' + file, FILE_BYTES);
  file_write(path_of(s, file), bytes, FILE_BYTES);
  free(bytes);
}

/* A fresh file set: the stamps are those of the next opens. */
static void reopen(shards *s) {
  tegula_error error;
  tegula__file_set_destroy(s->set);
  assert_ok(
      tegula__file_set_create(s->b.handles, s->manifest.files, FILES, false, &s->set, &error));
}

static void shards_make(shards *s, int32_t threads, int32_t open_files) {
  tegula_error error;
  *s = (shards){.b = bench_make(threads, 0, open_files)};
  tegula__manifest_init(&s->manifest);
  s->manifest.dtype = dtype_of("<i4");
  s->manifest.ndim = 2;
  s->manifest.shape[0] = FILES * ROWS;
  s->manifest.shape[1] = ROW_BYTES / 4;
  s->manifest.files = calloc(FILES, sizeof *s->manifest.files);
  assert_non_null(s->manifest.files);
  s->manifest.file_count = FILES;
  s->strides[0] = ROW_BYTES;
  s->strides[1] = 4;
  for (int i = 0; i < FILES; i++) {
    int64_t lo[2] = {i * ROWS, 0}, hi[2] = {(i + 1) * ROWS, ROW_BYTES / 4};
    s->manifest.files[i] = (tegula__file){.path = strdup(name_in(&s->b.folder, "%d.bin", i).text),
                                          .stamp = {.size = FILE_BYTES}};
    write_shard(s, i);
    assert_ok(tegula__manifest_add(&s->manifest, i, 0, lo, hi, s->strides, '<', &error));
  }
  assert_ok(tegula__manifest_finish(&s->manifest, &error));
  s->memory = malloc(FILES * FILE_BYTES);
  assert_non_null(s->memory);
  s->hi[0] = FILES * ROWS;
  s->hi[1] = ROW_BYTES / 4;
  s->tile = (tegula__tile){
      .lo = s->lo, .hi = s->hi, .strides = s->strides, .data = s->memory, .order = '<'};
  reopen(s);
}

static void shards_free(shards *s) {
  tegula__file_set_destroy(s->set);
  tegula__manifest_free(&s->manifest);
  free(s->memory);
  bench_free(&s->b);
}

/* Opens all files as describing them does: their stamps are noted. */
static void describe(shards *s, tegula__io_counts *counts) {
  tegula_error error;
  int fd;
  for (int i = 0; i < FILES; i++) {
    assert_ok(tegula__file_set_acquire(s->set, i, counts, &fd, &error));
    tegula__file_set_release(s->set, i);
  }
}

static tegula_status run(shards *s, tegula_progress_fn progress, void *state,
                         tegula_statistics *statistics, tegula__io_counts *counts,
                         tegula_error *error) {
  tegula__move move = {.manifest = &s->manifest,
                       .files = s->set,
                       .tiles = &s->tile,
                       .tile_count = 1,
                       .progress = progress,
                       .progress_state = state,
                       .statistics = statistics,
                       .counts = counts};
  return tegula__engine_run(&s->b.engine, &move, error);
}

static tegula_status run_simply(shards *s, tegula_error *error) {
  tegula__io_counts counts = {0};
  return run(s, NULL, NULL, NULL, &counts, error);
}

/* ---- the first error ---- */

static void the_error_is_the_first_by_file_and_offset(void **state) {
  (void)state;
  tegula_error error, again;
  shards s;
  shards_make(&s, 4, 0);
  assert_int_equal(truncate(path_of(&s, 2), FILE_BYTES / 2 + 10), 0); /* two steps of it fail */
  assert_int_equal(unlink(path_of(&s, 4)), 0);
  assert_int_equal(truncate(path_of(&s, 5), 0), 0);
  for (int round = 0; round < 40; round++) {
    reopen(&s);
    assert_refused(run_simply(&s, &error), TEGULA_SHORT_FILE);
    assert_string_equal(error.path, path_of(&s, 2));
    assert_int_equal(error.offset, FILE_BYTES / 2 + 10);
    if (round == 0) again = error;
    assert_string_equal(error.message, again.message);
  }
  assert_int_equal(unlink(path_of(&s, 1)), 0);
  for (int round = 0; round < 40; round++) {
    reopen(&s);
    assert_refused(run_simply(&s, &error), TEGULA_NOT_FOUND);
    assert_string_equal(error.path, path_of(&s, 1));
  }
  reopen(&s);
  assert_int_equal(run_simply(&s, NULL), TEGULA_NOT_FOUND);
  shards_free(&s);
}

/* ---- progress and cancelling ---- */

typedef struct watch {
  _Atomic int inside, overlaps, calls;
  int64_t last, total;
  bool backwards;
  int cancel_at; /* this call cancels; 0: none */
  void (*act)(shards *s);
  shards *s;
} watch;

static int watch_progress(void *state, int64_t done, int64_t total) {
  watch *w = state;
  if (atomic_fetch_add(&w->inside, 1) != 0) w->overlaps++;
  int call = ++w->calls;
  w->backwards = w->backwards || done < w->last;
  w->last = done;
  w->total = total;
  if (call == 1 && w->act != NULL) w->act(w->s);
  atomic_fetch_sub(&w->inside, 1);
  return w->cancel_at != 0 && call >= w->cancel_at;
}

static void progress_comes_from_one_worker_at_a_time(void **state) {
  (void)state;
  tegula_error error;
  for (int32_t threads = 1; threads <= 4; threads += 3) {
    shards s;
    shards_make(&s, threads, 0);
    watch w = {.cancel_at = 0};
    tegula__io_counts counts = {0};
    assert_ok(run(&s, watch_progress, &w, NULL, &counts, &error));
    assert_true(w.calls > 0);
    assert_int_equal(w.overlaps, 0);
    assert_int_equal(w.total, FILES * FILE_BYTES);
    assert_true(w.last > 0 && w.last <= w.total);
    if (threads == 1) {
      assert_int_equal(w.last, w.total); /* the end is told */
      assert_false(w.backwards);
    }
    for (int i = 0; i < FILES; i++) assert_int_equal(s.memory[(i + 1) * FILE_BYTES - 1], 'a' + i);
    shards_free(&s);
  }
}

static void progress_can_cancel(void **state) {
  (void)state;
  tegula_error error;
  for (int32_t threads = 1; threads <= 4; threads += 3) {
    shards s;
    shards_make(&s, threads, 0);
    watch w = {.cancel_at = 1};
    tegula__io_counts counts = {0};
    tegula_statistics statistics;
    tegula_statistics_init(&statistics);
    assert_refused(run(&s, watch_progress, &w, &statistics, &counts, &error), TEGULA_CANCELLED);
    assert_contains(error.message, "cancelled");
    assert_contains(error.message, "6291456"); /* of all bytes */
    assert_int_equal(w.calls, 1);
    assert_true(statistics.steps < FILES * 4); /* the rest was not done */
    assert_true(atomic_load(&counts.bytes_read) < FILES * FILE_BYTES);
    reopen(&s);
    assert_ok(run_simply(&s, &error)); /* nothing stays cancelled */
    shards_free(&s);
  }
}

static void an_error_goes_before_a_cancel(void **state) {
  (void)state;
  tegula_error error;
  shards s;
  shards_make(&s, 1, 0);
  assert_int_equal(truncate(path_of(&s, 0), FILE_BYTES / 4 + 5), 0);
  watch w = {.cancel_at = 2};
  tegula__io_counts counts = {0};
  assert_refused(run(&s, watch_progress, &w, NULL, &counts, &error), TEGULA_SHORT_FILE);
  shards_free(&s);
}

/* ---- files that change ---- */

enum { CHANGED_FILE = 1 };

static void append_byte(shards *s) {
  FILE *stream = fopen(path_of(s, CHANGED_FILE), "ab");
  assert_non_null(stream);
  fputc('x', stream);
  fclose(stream);
}

/* the same size and even the same bytes; the clock of files ticks every few milliseconds */
static void write_again(shards *s) {
  sleep_ms(20);
  write_shard(s, CHANGED_FILE);
}

static void set_back_the_time(shards *s) {
  const struct timespec times[2] = {{1000000, 0}, {1000000, 0}};
  assert_int_equal(utimensat(AT_FDCWD, path_of(s, CHANGED_FILE), times, 0), 0);
}

static void replace(shards *s) { /* same size, same time: another file all the same */
  struct stat info;
  file_name other = name_in(&s->b.folder, "other");
  assert_int_equal(stat(path_of(s, CHANGED_FILE), &info), 0);
  assert_int_equal(rename(path_of(s, CHANGED_FILE), name_in(&s->b.folder, "kept").text), 0);
  write_shard(s, CHANGED_FILE);
  assert_int_equal(rename(path_of(s, CHANGED_FILE), other.text), 0);
  const struct timespec times[2] = {info.st_atim, info.st_mtim};
  assert_int_equal(utimensat(AT_FDCWD, other.text, times, 0), 0);
  assert_int_equal(rename(other.text, path_of(s, CHANGED_FILE)), 0);
}

static void (*const changes[])(shards *) = {append_byte, write_again, set_back_the_time, replace};
enum { CHANGES = sizeof changes / sizeof *changes };

static void expect_changed(shards *s, const tegula_error *error) {
  assert_string_equal(error->path, path_of(s, CHANGED_FILE));
  assert_contains(error->message, path_of(s, CHANGED_FILE));
  assert_true(error->hint[0] != '\0');
}

/* With room in the cache the file is still open; with room for one it is opened again. */
static void a_file_that_changes_before_the_move_is_an_error(void **state) {
  (void)state;
  tegula_error error;
  for (int i = 0; i < CHANGES; i++)
    for (int32_t open_files = 1; open_files <= 100; open_files += 99) {
      shards s;
      tegula__io_counts counts = {0};
      shards_make(&s, open_files == 1 ? 1 : 4, open_files);
      describe(&s, &counts);
      changes[i](&s);
      assert_refused(run_simply(&s, &error), TEGULA_CHANGED);
      expect_changed(&s, &error);
      shards_free(&s);
    }
}

static void a_file_that_changes_during_the_move_is_an_error(void **state) {
  (void)state;
  tegula_error error;
  for (int i = 0; i < CHANGES; i++) {
    shards s;
    tegula__io_counts counts = {0};
    shards_make(&s, 1, 100);
    describe(&s, &counts);
    watch w = {.act = changes[i], .s = &s}; /* after the first step of file 0 */
    assert_refused(run(&s, watch_progress, &w, NULL, &counts, &error), TEGULA_CHANGED);
    expect_changed(&s, &error);
    shards_free(&s);
  }
}

static void change_the_first(shards *s) {
  FILE *stream = fopen(path_of(s, 0), "r+b");
  assert_non_null(stream);
  sleep_ms(20);
  fputc('x', stream);
  fclose(stream);
}

static void a_file_that_changes_between_its_reads_is_an_error(void **state) {
  (void)state;
  tegula_error error;
  shards s;
  tegula__io_counts counts = {0};
  shards_make(&s, 1, 100);
  /* not described before: the stamp is that of the first step */
  watch w = {.act = change_the_first, .s = &s};
  assert_refused(run(&s, watch_progress, &w, NULL, &counts, &error), TEGULA_CHANGED);
  assert_string_equal(error.path, path_of(&s, 0));
  shards_free(&s);
}

static void the_size_is_told_when_it_changed(void **state) {
  (void)state;
  tegula_error error;
  shards s;
  tegula__io_counts counts = {0};
  shards_make(&s, 2, 100);
  describe(&s, &counts);
  append_byte(&s);
  assert_refused(run_simply(&s, &error), TEGULA_CHANGED);
  assert_contains(error.message, "1048576");
  assert_contains(error.message, "1048577");
  shards_free(&s);
}

/* ---- counted ---- */

static void each_file_is_opened_once_and_examined_twice(void **state) {
  (void)state;
  tegula_error error;
  shards s;
  tegula__io_counts counts = {0};
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  shards_make(&s, 4, 100);
  describe(&s, &counts);
  assert_ok(run(&s, NULL, NULL, &statistics, &counts, &error));
  assert_int_equal(counts.opens, FILES);
  assert_int_equal(counts.stats, 2 * FILES);
  assert_int_equal(counts.reads, FILES * 4); /* steps of 256 KiB */
  assert_int_equal(counts.bytes_read, FILES * FILE_BYTES);
  assert_int_equal(counts.writes, 0);
  assert_int_equal(statistics.steps, FILES * 4);
  assert_int_equal(statistics.direct_bytes, FILES * FILE_BYTES);
  assert_int_equal(statistics.staged_bytes, 0);
  assert_string_equal(statistics.io_path, "pread");
  assert_ok(run(&s, NULL, NULL, &statistics, &counts, &error)); /* added to; no more opens */
  assert_int_equal(counts.opens, FILES);
  assert_int_equal(statistics.steps, 2 * FILES * 4);
  shards_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_error_is_the_first_by_file_and_offset),
      cmocka_unit_test(progress_comes_from_one_worker_at_a_time),
      cmocka_unit_test(progress_can_cancel),
      cmocka_unit_test(an_error_goes_before_a_cancel),
      cmocka_unit_test(a_file_that_changes_before_the_move_is_an_error),
      cmocka_unit_test(a_file_that_changes_during_the_move_is_an_error),
      cmocka_unit_test(a_file_that_changes_between_its_reads_is_an_error),
      cmocka_unit_test(the_size_is_told_when_it_changed),
      cmocka_unit_test(each_file_is_opened_once_and_examined_twice),
  };
  return cmocka_run_group_tests_name("engine: errors, changes, counts", tests, NULL, NULL);
}
