/* link-options: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc */
/* Encoding: what goes through a chain comes back, in the room that was promised, without memory
 * that is taken for every chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * That others read it is shown by tests/hdf5/test_hdf5_encode.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "test_codec_support.h"

static _Atomic long allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size) {
  allocations++;
  return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
  allocations++;
  return __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size) {
  allocations++;
  return __real_realloc(block, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  allocations++;
  return __real_aligned_alloc(alignment, size);
}

static const char *const CHAINS[] = {
    "",
    "shuffle",
    "fletcher32",
    "deflate:1",
    "lzf",
    "bitshuffle",
    "bitshuffle:8",
    "zstd",
    "lz4",
    "lz4:100",
    "bitshuffle-lz4",
    "bitshuffle-lz4:8",
    "bitshuffle-zstd:1",
    "blosc",
    "blosc:blosclz:9:bitshuffle",
    "blosc2",
    "blosc2:zstd:1",
    "shuffle,deflate:4",
    "shuffle,deflate:9,fletcher32",
    "fletcher32,shuffle,deflate",
    "fletcher32,fletcher32",
    "shuffle,shuffle,shuffle",
    "shuffle,bitshuffle",
    "lzf,lzf,lzf",
    "deflate,deflate,deflate,deflate",
    "shuffle,lzf,fletcher32,deflate,lzf",
    "lz4:64,deflate,shuffle",
    "zstd,lz4,lzf,fletcher32",
    "lzf,bitshuffle",
    "deflate,bitshuffle-lz4,shuffle",
};
enum { CHAIN_COUNT = sizeof CHAINS / sizeof *CHAINS };

static tegula__filter filters[TEGULA__CHAIN_MAX];
static int32_t count;
static tegula_error err;

/* False where a library is missing. */
static bool chain(const char *text, uint32_t item_size) {
  tegula_status status = tegula__chain_parse(text, item_size, filters, &count, &err);
  if (status != TEGULA_OK && status != TEGULA_UNSUPPORTED) fail_msg("%s: %s", text, err.message);
  return status == TEGULA_OK;
}

enum { WALK, NOISE, ZEROS, KINDS };

static void fill(unsigned char *out, size_t size, int kind) {
  uint32_t random = 12345;
  for (size_t i = 0; i < size; i++) {
    random = random * 1664525u + 1013904223u;
    out[i] = kind == ZEROS   ? 0
             : kind == NOISE ? (unsigned char)(random >> 24)
                             : (unsigned char)(i % 4 == 3 ? 7 : (i / 40) + (random >> 31));
  }
}

/* Memory is exactly as large as promised, so that a sanitizer sees what is beside it. */
static void check_round_trip(tegula__encoder *encoder, tegula__decoder *decoder, const char *text,
                             size_t size, int kind) {
  int64_t bound = tegula__encode_bound(filters, count, (int64_t)size);
  unsigned char *in = malloc(size + 1), *kept = malloc(size + 1), *out = malloc((size_t)bound + 1),
                *back = malloc(size + 1);
  uint32_t mask = UINT32_MAX;
  size_t stored = SIZE_MAX;
  fill(in, size, kind);
  memcpy(kept, in, size);
  out[bound] = 0xEE;
  if (tegula__encode(encoder, filters, count, in, size, out, (size_t)bound, &stored, &mask, &err) !=
      TEGULA_OK)
    fail_msg("%s: %zu bytes: %s", text, size, err.message);
  assert_memory_equal(in, kept, size);
  assert_true((int64_t)stored <= bound && out[bound] == 0xEE);
  assert_int_equal((uint64_t)mask >> count, 0);
  /* else a reader would not take it */
  assert_true((int64_t)stored <= tegula__chain_bound(filters, count, (int64_t)size));
  unsigned char *exact = exactly(out, stored);
  if (tegula__decode(decoder, filters, count, mask, exact, stored, back, size, &err) != TEGULA_OK)
    fail_msg("%s: %zu bytes, mask %u: %s", text, size, mask, err.message);
  if (memcmp(back, in, size) != 0)
    fail_msg("%s: %zu bytes of kind %d, mask %u: others come back", text, size, kind, mask);
  free(in);
  free(kept);
  free(out);
  free(back);
  free(exact);
}

static void chunks_come_back(void **state) {
  static const size_t sizes[] = {0,  1,  2,   3,   4,    7,    8,    31,
                                 32, 64, 100, 999, 1000, 4096, 8191, 20001};
  static const uint32_t items[] = {1, 2, 3, 4, 8, 16, 45, 300};
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++) {
    tegula__encoder *encoder = tegula__encoder_create(tegula__kernel_at(table));
    tegula__decoder *decoder = tegula__decoder_create(tegula__kernel_at(table));
    for (int c = 0; c < CHAIN_COUNT; c++)
      for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        if (!chain(CHAINS[c], items[i])) continue;
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
          for (int kind = 0; kind < KINDS; kind++)
            check_round_trip(encoder, decoder, CHAINS[c], sizes[s], kind);
      }
    tegula__encoder_destroy(encoder);
    tegula__decoder_destroy(decoder);
  }
}

static tegula_status encode(tegula__encoder *encoder, const void *in, size_t size, void *out,
                            size_t room, size_t *stored, uint32_t *mask) {
  return tegula__encode(encoder, filters, count, in, size, out, room, stored, mask, &err);
}

static void what_does_not_get_shorter_is_masked(void **state) {
  (void)state;
  static const struct {
    const char *chain;
    uint32_t mask;
    size_t more;
  } rows[] = {{"deflate", 1, 0},
              {"lzf", 1, 0},
              {"shuffle,deflate:9", 2, 0},
              {"lzf,deflate", 3, 0},
              {"deflate,fletcher32,lzf", 5, 4},
              {"shuffle,shuffle,lzf", 4, 0}};
  unsigned char in[4096], out[5000];
  tegula__encoder *encoder = tegula__encoder_create(tegula__kernel_select());
  fill(in, sizeof in, NOISE);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint32_t mask;
    size_t stored;
    assert_true(chain(rows[i].chain, 4));
    assert_int_equal(encode(encoder, in, sizeof in, out, sizeof out, &stored, &mask), TEGULA_OK);
    assert_int_equal(mask, rows[i].mask);
    assert_int_equal(stored, sizeof in + rows[i].more);
  }
  tegula__encoder_destroy(encoder);
}

static void what_readers_would_not_take_is_refused(void **state) {
  (void)state;
  enum { SIZE = 1 << 20 };
  uint32_t mask;
  size_t stored;
  if (!chain("lz4:1,lz4:1", 4)) skip();
  size_t bound = (size_t)tegula__encode_bound(filters, count, SIZE);
  unsigned char *in = calloc(SIZE, 1), *out = malloc(bound);
  tegula__encoder *encoder = tegula__encoder_create(tegula__kernel_select());
  assert_int_equal(encode(encoder, in, SIZE, out, bound, &stored, &mask), TEGULA_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "1048576 bytes of a chunk became "));
  tegula__encoder_destroy(encoder);
  free(in);
  free(out);
}

/* Items of two bytes, by hand: planes, and the checksum of libhdf5. */
static void known_bytes(void **state) {
  (void)state;
  const unsigned char in[] = {1, 2, 3, 4, 5}, shuffled[] = {1, 3, 2, 4, 5};
  /* words 0x0102, 0x0304, 0x0500: sum 0x0906; 3 * 0x0102 + 2 * 0x0304 + 0x0500 = 0x0e0e; low half
   * first, little-endian */
  const unsigned char summed[] = {1, 2, 3, 4, 5, 0x06, 0x09, 0x0e, 0x0e};
  unsigned char out[16];
  uint32_t mask;
  size_t stored;
  tegula__encoder *encoder = tegula__encoder_create(tegula__kernel_select());
  assert_true(chain("shuffle", 2));
  assert_int_equal(encode(encoder, in, 5, out, 5, &stored, &mask), TEGULA_OK);
  assert_int_equal(stored, 5);
  assert_memory_equal(out, shuffled, 5);
  assert_true(chain("fletcher32", 2));
  assert_int_equal(encode(encoder, in, 5, out, 9, &stored, &mask), TEGULA_OK);
  assert_int_equal(stored, 9);
  assert_memory_equal(out, summed, 9);
  tegula__encoder_destroy(encoder);
}

static void too_little_room_is_refused(void **state) {
  (void)state;
  unsigned char in[100] = {0}, out[200];
  uint32_t mask;
  size_t stored;
  tegula__encoder *encoder = tegula__encoder_create(tegula__kernel_select());
  for (int c = 0; c < CHAIN_COUNT; c++) {
    if (!chain(CHAINS[c], 4)) continue;
    size_t bound = (size_t)tegula__encode_bound(filters, count, 100);
    assert_true(bound >= 100);
    assert_int_equal(
        encode(encoder, in, 100, out, bound - 1 < 200 ? bound - 1 : 99, &stored, &mask),
        TEGULA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "expected "));
  }
  tegula__encoder_destroy(encoder);
}

static void sizes_that_cannot_be_are_refused(void **state) {
  (void)state;
  assert_true(chain("shuffle,deflate", 4));
  assert_int_equal(tegula__encode_check(filters, count, UINT32_MAX, &err), TEGULA_OK);
  assert_int_equal(tegula__encode_check(filters, count, INT64_C(1) << 32, &err),
                   TEGULA_INVALID_ARGUMENT);
  assert_string_equal(
      err.message,
      "a chunk of 4294967296 bytes: codecs take chunks below 4 GiB (4294967296 bytes)");
  assert_int_equal(tegula__encode_check(filters, count, -1, &err), TEGULA_INVALID_ARGUMENT);
  assert_int_equal(tegula__encode_check(filters, 0, INT64_C(1) << 40, &err), TEGULA_OK);
  if (chain("shuffle,blosc", 4)) {
    assert_int_equal(tegula__encode_check(filters, count, INT32_MAX - 16, &err), TEGULA_OK);
    assert_int_equal(tegula__encode_check(filters, count, INT32_MAX - 15, &err),
                     TEGULA_INVALID_ARGUMENT);
    assert_non_null(strstr(
        err.message, "blosc: up to 2147483632 bytes of a chunk, expected at most 2147483631"));
  }
  if (chain("blosc2", 4)) {
    assert_int_equal(tegula__encode_check(filters, count, 2147483615, &err), TEGULA_OK);
    assert_int_equal(tegula__encode_check(filters, count, 2147483616, &err),
                     TEGULA_INVALID_ARGUMENT);
    assert_non_null(strstr(
        err.message, "blosc2: up to 2147483616 bytes of a chunk, expected at most 2147483615"));
  }
  if (chain("lz4:1,lz4:1", 4))
    assert_int_equal(tegula__encode_bound(filters, count, INT64_MAX / 4), INT64_MAX);
  filters[0] = (tegula__filter){.codec = TEGULA__CODEC_SHUFFLE, .param_count = 1, .params = {4}};
  /* also of the second of a kind */
  filters[1] = (tegula__filter){.codec = TEGULA__CODEC_SHUFFLE, .param_count = 1, .params = {0}};
  assert_int_equal(tegula__encode_check(filters, 2, 100, &err), TEGULA_INVALID_ARGUMENT);
  assert_int_equal(err.status, TEGULA_INVALID_ARGUMENT);
  filters[0] =
      (tegula__filter){.codec = TEGULA__CODEC_SZIP, .param_count = 4, .params = {32, 8, 8, 64}};
  assert_int_equal(tegula__encode_check(filters, 1, 100, &err), TEGULA_UNSUPPORTED);
  filters[0] = (tegula__filter){.codec = TEGULA__CODEC_COUNT};
  assert_int_equal(tegula__encode_check(filters, 1, 100, &err), TEGULA_UNSUPPORTED);
}

/* tegula's own memory; libraries keep theirs in contexts. */
static void no_memory_is_taken_for_every_chunk(void **state) {
  (void)state;
  enum { SIZE = 50000 };
  unsigned char *in = malloc(SIZE), *out = malloc(8 * SIZE);
  for (int c = 0; c < CHAIN_COUNT; c++) {
    uint32_t mask;
    size_t stored;
    if (!chain(CHAINS[c], 4)) continue;
    tegula__encoder *encoder = tegula__encoder_create(tegula__kernel_select());
    for (int kind = 0; kind < KINDS; kind++) {
      fill(in, SIZE, kind);
      assert_int_equal(encode(encoder, in, SIZE, out, 8 * SIZE, &stored, &mask), TEGULA_OK);
    }
    long before = allocations;
    for (int kind = 0; kind < KINDS; kind++) {
      fill(in, SIZE - kind, kind);
      assert_int_equal(encode(encoder, in, SIZE - (size_t)kind, out, 8 * SIZE, &stored, &mask),
                       TEGULA_OK);
    }
    assert_int_equal(allocations, before);
    tegula__encoder_destroy(encoder);
  }
  free(in);
  free(out);
}

typedef struct thread {
  pthread_t id;
  const tegula__filter *filters;
  unsigned char *in, *out;
  size_t stored;
  bool good;
} thread;

enum { THREADS = 4, THREAD_BYTES = 30000 };

static void *encode_some(void *argument) {
  thread *t = argument;
  tegula__encoder *encoder = tegula__encoder_create(tegula__kernel_select());
  uint32_t mask;
  t->good = encoder != NULL;
  for (int i = 0; i < 5 && t->good; i++)
    t->good = tegula__encode(encoder, t->filters, count, t->in, THREAD_BYTES, t->out,
                             4 * THREAD_BYTES, &t->stored, &mask, NULL) == TEGULA_OK;
  tegula__encoder_destroy(encoder);
  return NULL;
}

static void encoders_of_threads_do_not_meet(void **state) {
  (void)state;
  unsigned char *in = malloc(THREAD_BYTES);
  fill(in, THREAD_BYTES, WALK);
  for (int c = 0; c < CHAIN_COUNT; c++) {
    thread threads[THREADS];
    if (!chain(CHAINS[c], 4)) continue;
    for (int i = 0; i < THREADS; i++) {
      threads[i] = (thread){.filters = filters, .in = in, .out = malloc(4 * THREAD_BYTES)};
      assert_int_equal(pthread_create(&threads[i].id, NULL, encode_some, &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
      pthread_join(threads[i].id, NULL);
      assert_true(threads[i].good);
      assert_int_equal(threads[i].stored, threads[0].stored);
      assert_memory_equal(threads[i].out, threads[0].out, threads[0].stored);
    }
    for (int i = 0; i < THREADS; i++) free(threads[i].out);
  }
  free(in);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chunks_come_back),
      cmocka_unit_test(what_does_not_get_shorter_is_masked),
      cmocka_unit_test(what_readers_would_not_take_is_refused),
      cmocka_unit_test(known_bytes),
      cmocka_unit_test(too_little_room_is_refused),
      cmocka_unit_test(sizes_that_cannot_be_are_refused),
      cmocka_unit_test(no_memory_is_taken_for_every_chunk),
      cmocka_unit_test(encoders_of_threads_do_not_meet),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
