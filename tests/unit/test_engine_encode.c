/* link-options: -Wl,--wrap=tegula__encode */
/* Chunks on their way to the file: places in order whoever is faster, the lowest error, no hang
 * whatever fails.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A one-dimensional array, each element of which is the number of its chunk; the encoder adds a
 * checksum. It and the placer can be told to fail or to be slow at a chunk; writes fail behind a
 * limit of the file's size. */
#include "test_engine_support.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "codec/codec.h"

/* a step each */
enum { LENGTH = 132000, CHUNK_BYTES = 4 * LENGTH, STORED = CHUNK_BYTES + 4, MOST = 60, NEVER = -1 };

static const int THREADS[] = {1, 2, 3, 8, 64};
enum { THREAD_COUNTS = sizeof THREADS / sizeof *THREADS };

/* ---- the encoder ---- */

enum { ALL = -2 };
static _Atomic int encoder_fails = NEVER, encoder_slow = NEVER, encoded;

tegula_status __real_tegula__encode(tegula__encoder *encoder, const tegula__filter *filters,
                                    int32_t count, const void *in, size_t in_size, void *out,
                                    size_t room, size_t *size, uint32_t *mask, tegula_error *err);
tegula_status __wrap_tegula__encode(tegula__encoder *encoder, const tegula__filter *filters,
                                    int32_t count, const void *in, size_t in_size, void *out,
                                    size_t room, size_t *size, uint32_t *mask, tegula_error *err);
tegula_status __wrap_tegula__encode(tegula__encoder *encoder, const tegula__filter *filters,
                                    int32_t count, const void *in, size_t in_size, void *out,
                                    size_t room, size_t *size, uint32_t *mask, tegula_error *err) {
  int32_t number;
  memcpy(&number, in, sizeof number);
  encoded++;
  if (number == encoder_slow || encoder_slow == ALL) usleep(3000);
  if (number == encoder_fails)
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1, "encoder %d", number);
  return __real_tegula__encode(encoder, filters, count, in, in_size, out, room, size, mask, err);
}

/* ---- the save ---- */

typedef struct save {
  bench b;
  tegula__manifest manifest;
  tegula__file_set *set;
  int32_t *memory;
  int64_t lo, hi, stride;
  tegula__tile tile;
  int chunks;
  /* the placer */
  _Atomic int inside;
  int64_t next;    /* the chunk that is asked for next */
  int64_t end;     /* of the file */
  int fails, slow; /* at these chunks */
  uint64_t places[MOST];
} save;

static tegula_status find_place(void *state, int64_t part, const int64_t *chunk, uint32_t length,
                                uint32_t mask, uint64_t *offset, tegula_error *err) {
  save *s = state;
  assert_int_equal(atomic_fetch_add(&s->inside, 1), 0);
  assert_int_equal(part, 0);
  assert_int_equal(chunk[0], s->next); /* each once, in order */
  assert_int_equal(length, STORED);
  assert_int_equal(mask, 0);
  if (chunk[0] == s->slow) usleep(3000);
  bool good = chunk[0] != s->fails;
  s->places[s->next++] = *offset = (uint64_t)s->end;
  s->end += length + chunk[0] % 3; /* some follow each other, some do not */
  atomic_fetch_sub(&s->inside, 1);
  return good ? TEGULA_OK : tegula__fail(err, TEGULA_IO, NULL, -1, "placer %d", (int)chunk[0]);
}

static void add_part(save *s) {
  static const int64_t chunk = LENGTH, stride = 4, slot_stride = 1, zero = 0;
  tegula_error error;
  tegula__grid *grid = calloc(1, sizeof *grid);
  assert_non_null(grid);
  *grid =
      (tegula__grid){.chunk_bytes = CHUNK_BYTES, .order = TEGULA__NATIVE_ORDER, .slots = s->chunks};
  grid->filters = calloc(TEGULA__CHAIN_MAX, sizeof *grid->filters);
  grid->coordinates = calloc(1, sizeof *grid->coordinates);
  assert_ok(tegula__chain_parse("fletcher32", 4, grid->filters, &grid->filter_count, &error));
  assert_ok(tegula__manifest_add_grid(&s->manifest, grid, &error));
  tegula__part part = {.kind = TEGULA__PART_CHUNKED,
                       .order = grid->order,
                       .file = TEGULA__NO_FILE,
                       .lo = &zero,
                       .hi = &s->hi,
                       .strides = &stride,
                       .start = &zero,
                       .chunk = &chunk,
                       .slot_strides = &slot_stride,
                       .grid = grid};
  assert_ok(tegula__manifest_add_part(&s->manifest, &part, &error));
}

static void save_make(save *s, int32_t threads, int chunks, int64_t staging) {
  tegula_error error;
  *s = (save){.b = bench_make(threads, staging, 0),
              .chunks = chunks,
              .hi = (int64_t)chunks * LENGTH,
              .stride = 4,
              .fails = NEVER,
              .slow = NEVER};
  tegula__manifest_init(&s->manifest);
  s->manifest.dtype = dtype_of("<i4");
  s->manifest.ndim = 1;
  s->manifest.shape[0] = s->hi;
  s->manifest.files = calloc(1, sizeof *s->manifest.files);
  s->memory = malloc((size_t)s->hi * 4);
  assert_true(s->manifest.files != NULL && s->memory != NULL);
  for (int64_t i = 0; i < s->hi; i++) s->memory[i] = (int32_t)(i / LENGTH);
  s->manifest.files[0] = (tegula__file){.path = strdup(name_in(&s->b.folder, "x").text)};
  s->manifest.file_count = 1;
  add_part(s);
  assert_ok(tegula__manifest_finish(&s->manifest, &error));
  s->tile = (tegula__tile){.lo = &s->lo,
                           .hi = &s->hi,
                           .strides = &s->stride,
                           .data = (char *)s->memory,
                           .order = TEGULA__NATIVE_ORDER};
  file_write(s->manifest.files[0].path, "", 0);
  assert_ok(tegula__file_set_create(s->b.handles, s->manifest.files, 1, true, &s->set, &error));
}

static void save_free(save *s) {
  tegula__file_set_destroy(s->set);
  tegula__manifest_free(&s->manifest);
  free(s->memory);
  bench_free(&s->b);
}

static tegula_status run(save *s, tegula_progress_fn progress, void *state, tegula_error *error) {
  tegula__io_counts counts = {0};
  tegula__placer placer = {find_place, s};
  tegula__move move = {.manifest = &s->manifest,
                       .files = s->set,
                       .tiles = &s->tile,
                       .tile_count = 1,
                       .writing = true,
                       .placer = &placer,
                       .progress = progress,
                       .progress_state = state,
                       .counts = &counts};
  s->next = s->end = 0;
  alarm(500); /* a hang is a failure; the busiest machine is not */
  tegula_status status = tegula__engine_run(&s->b.engine, &move, error);
  alarm(0);
  return status;
}

/* All chunks are where the placer put them. */
static void check_file(const save *s) {
  FILE *file = fopen(s->manifest.files[0].path, "rb");
  int32_t *chunk = malloc(STORED);
  assert_true(file != NULL && chunk != NULL);
  assert_int_equal(s->next, s->chunks);
  for (int k = 0; k < s->chunks; k++) {
    assert_int_equal(fseek(file, (long)s->places[k], SEEK_SET), 0);
    assert_int_equal(fread(chunk, 1, STORED, file), STORED);
    assert_int_equal(chunk[0], k);
    /* all others are as the one before */
    assert_memory_equal(chunk + 1, chunk, CHUNK_BYTES - sizeof *chunk);
  }
  free(chunk);
  fclose(file);
}

/* ---- tests ---- */

static void places_are_found_in_order_whoever_is_faster(void **state) {
  (void)state;
  tegula_error error;
  for (int t = 0; t < THREAD_COUNTS; t++) {
    save s;
    save_make(&s, THREADS[t], 40, t % 2 ? 0 : 1 << 16);
    for (int turn = 0; turn < 4; turn++) {
      encoder_slow = turn == 1 ? 0 : turn == 2 ? 3 : NEVER;
      s.slow = turn == 3 ? 5 : NEVER;
      assert_ok(run(&s, NULL, NULL, &error));
      check_file(&s);
    }
    encoder_slow = NEVER;
    save_free(&s);
  }
}

static void more_threads_than_chunks(void **state) {
  (void)state;
  tegula_error error;
  for (int chunks = 1; chunks < 5; chunks++) {
    save s;
    save_make(&s, 64, chunks, 0);
    assert_ok(run(&s, NULL, NULL, &error));
    check_file(&s);
    save_free(&s);
  }
}

/* Fails at these chunks; the error is that of the lowest, in every run. */
static void check_lowest(save *s, int encoder, int placer, int write) {
  struct rlimit before, limit;
  int lowest = MOST;
  char expected[32];
  if (encoder >= 0) lowest = (int)tegula__min(lowest, encoder);
  if (placer >= 0) lowest = (int)tegula__min(lowest, placer);
  if (write >= 0) lowest = (int)tegula__min(lowest, write);
  snprintf(expected, sizeof expected, "%s %d", lowest == encoder ? "encoder" : "placer", lowest);
  encoder_fails = encoder;
  s->fails = placer;
  int64_t end = 0;
  for (int k = 0; k < write; k++) end += STORED + k % 3;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = before;
  limit.rlim_cur = (rlim_t)end + 100;
  for (int turn = 0; turn < 6; turn++) {
    tegula_error error;
    s->slow = turn % 2 ? (int)tegula__max(0, lowest - 1) : NEVER;
    encoder_slow = turn % 3 ? lowest : NEVER;
    if (write >= 0) assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    tegula_status status = run(s, NULL, NULL, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_not_equal(status, TEGULA_OK);
    if (lowest == write)
      assert_int_equal(error.os_errno, EFBIG);
    else if (strstr(error.message, expected) == NULL)
      fail_msg("expected %s: %s", expected, error.message);
  }
  encoder_fails = encoder_slow = NEVER;
  s->fails = s->slow = NEVER;
}

static void the_error_is_that_of_the_lowest_chunk(void **state) {
  (void)state;
  signal(SIGXFSZ, SIG_IGN);
  for (int t = 0; t < THREAD_COUNTS; t++) {
    save s;
    tegula_error error;
    save_make(&s, THREADS[t], 30, 0);
    check_lowest(&s, 2, NEVER, NEVER);
    check_lowest(&s, NEVER, 0, NEVER);
    check_lowest(&s, NEVER, 7, NEVER);
    check_lowest(&s, 29, 28, NEVER);
    check_lowest(&s, 7, 9, NEVER);
    check_lowest(&s, NEVER, NEVER, 4);
    check_lowest(&s, NEVER, 6, 4);
    check_lowest(&s, 5, 6, 4);
    check_lowest(&s, 11, 10, 12);
    assert_ok(run(&s, NULL, NULL, &error)); /* and it works again */
    check_file(&s);
    save_free(&s);
  }
}

static int stop_at(void *state, int64_t done, int64_t total) {
  (void)done, (void)total;
  return --*(int *)state < 0;
}

/* What is being encoded is completed, what waits is not begun. */
static void cancelled_by_progress(void **state) {
  (void)state;
  for (int t = 0; t < THREAD_COUNTS; t++) {
    save s;
    tegula_error error;
    int calls = 0;
    save_make(&s, THREADS[t], MOST, 0);
    encoder_slow = ALL;
    encoded = 0;
    assert_refused(run(&s, stop_at, &calls, &error), TEGULA_CANCELLED);
    if (THREADS[t] == 1) assert_int_equal(encoded, 1);
    if (THREADS[t] <= 8) assert_in_range(encoded, 1, MOST / 2);
    encoder_slow = NEVER;
    save_free(&s);
  }
}

static void a_chunk_that_is_given_in_part_is_refused(void **state) {
  (void)state;
  save s;
  tegula_error error;
  save_make(&s, 3, 9, 0);
  int64_t hi = s.hi - 1;
  s.tile.hi = &hi;
  assert_refused(run(&s, NULL, NULL, &error), TEGULA_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "131999 of its 132000 elements"));
  save_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(places_are_found_in_order_whoever_is_faster),
                                     cmocka_unit_test(more_threads_than_chunks),
                                     cmocka_unit_test(the_error_is_that_of_the_lowest_chunk),
                                     cmocka_unit_test(cancelled_by_progress),
                                     cmocka_unit_test(a_chunk_that_is_given_in_part_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
