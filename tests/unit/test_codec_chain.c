/* Chains: what is refused before any chunk is read, how large an encoded chunk can be, and chunks
 * worked out by hand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test_codec_support.h"

#define FILTER(id, ...)                                                                            \
  ((tegula__filter){.codec = TEGULA__CODEC_##id,                                                   \
                    .param_count = sizeof((uint32_t[]){__VA_ARGS__}) / 4,                          \
                    .params = {__VA_ARGS__}})
#define BARE(id) ((tegula__filter){.codec = TEGULA__CODEC_##id})

static tegula_error err;
static tegula__decoder *decoder;

static int set_up(void **state) {
  (void)state;
  decoder = tegula__decoder_create(tegula__kernel_select());
  return decoder == NULL;
}

static int tear_down(void **state) {
  (void)state;
  tegula__decoder_destroy(decoder);
  return 0;
}

static tegula_status check(tegula__filter filter) {
  return tegula__chain_check(&filter, 1, 1000, &err);
}

static tegula_status undo(tegula__filter filter, const void *in, size_t in_size, void *out,
                          size_t out_size) {
  unsigned char *exact_in = exactly(in, in_size), *exact_out = malloc(out_size ? out_size : 1);
  tegula_status status =
      tegula__decode(decoder, &filter, 1, 0, exact_in, in_size, exact_out, out_size, &err);
  memcpy(out, exact_out, out_size);
  free(exact_in);
  free(exact_out);
  return status;
}

static void codecs_have_names(void **state) {
  (void)state;
  static const char *const names[] = {"none", "deflate", "shuffle", "fletcher32", "szip", "zstd",
                                      "lz4",  "blosc",   "blosc2",  "bitshuffle", "lzf"};
  for (uint16_t codec = 0; codec < TEGULA__CODEC_COUNT; codec++) {
    assert_string_equal(tegula__codec_name(codec), names[codec]);
    assert_string_equal(tegula__codec_names()[codec], names[codec]);
  }
  assert_null(tegula__codec_names()[TEGULA__CODEC_COUNT]);
  assert_string_equal(tegula__codec_name(TEGULA__CODEC_COUNT), "unknown");
  assert_string_equal(tegula__codec_name(UINT16_MAX), "unknown");
  assert_true(tegula__codec_available(TEGULA__CODEC_DEFLATE) &&
              tegula__codec_available(TEGULA__CODEC_SHUFFLE));
  assert_false(tegula__codec_available(TEGULA__CODEC_COUNT));
}

static void parameters_that_make_no_sense_are_refused(void **state) {
  (void)state;
  const tegula__filter bad[] = {
      BARE(SHUFFLE),
      FILTER(SHUFFLE, 0),
      BARE(BITSHUFFLE),
      FILTER(BITSHUFFLE, 0, 0, 0),
      FILTER(BITSHUFFLE, 4, 12, 0),
      {.codec = TEGULA__CODEC_DEFLATE, .param_count = TEGULA__FILTER_PARAMS + 1}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(check(bad[i]), TEGULA_CORRUPT);
    assert_int_equal(strncmp(err.message, tegula__codec_name(bad[i].codec),
                             strlen(tegula__codec_name(bad[i].codec))),
                     0);
  }
  assert_int_equal(check(FILTER(BITSHUFFLE, 4, 16, 7)), TEGULA_UNSUPPORTED);
  assert_int_equal(check(FILTER(SHUFFLE, UINT32_MAX)), TEGULA_OK);
  assert_int_equal(check(BARE(COUNT)), TEGULA_UNSUPPORTED);
}

static void szip_parameters_are_checked(void **state) {
  (void)state;
  if (!tegula__codec_available(TEGULA__CODEC_SZIP)) skip();
  const tegula__filter bad[] = {BARE(SZIP),
                                FILTER(SZIP, 32, 8, 8),
                                FILTER(SZIP, 32, 0, 8, 64),
                                FILTER(SZIP, 32, 7, 8, 64),
                                FILTER(SZIP, 32, 34, 8, 64),
                                FILTER(SZIP, 32, 8, 0, 64),
                                FILTER(SZIP, 32, 8, 25, 64),
                                FILTER(SZIP, 32, 8, 65, 64),
                                FILTER(SZIP, 32, 8, 8, 7),
                                FILTER(SZIP, 32, 8, 8, 4097)};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(check(bad[i]), TEGULA_CORRUPT);
  assert_int_equal(check(FILTER(SZIP, 169, 32, 64, 4096)), TEGULA_OK);
}

static void what_the_build_lacks_is_unsupported_by_name(void **state) {
  (void)state;
  for (uint16_t codec = 1; codec < TEGULA__CODEC_COUNT; codec++) {
    if (tegula__codec_available(codec)) continue;
    tegula__filter filter = {.codec = codec};
    char in[64] = {0}, out[8];
    assert_int_equal(tegula__chain_check(&filter, 1, 8, &err), TEGULA_UNSUPPORTED);
    assert_non_null(strstr(err.message, tegula__codec_name(codec)));
    assert_non_null(strstr(err.message, "lib"));
    assert_true(err.hint[0] != '\0');
    /* also where nobody asked before */
    assert_int_equal(undo(filter, in, sizeof in, out, sizeof out), TEGULA_UNSUPPORTED);
  }
}

static void chains_have_at_most_32_codecs(void **state) {
  (void)state;
  tegula__filter filters[TEGULA__CHAIN_MAX + 1];
  for (int i = 0; i <= TEGULA__CHAIN_MAX; i++) filters[i] = FILTER(SHUFFLE, 4);
  assert_int_equal(tegula__chain_check(filters, TEGULA__CHAIN_MAX, 64, &err), TEGULA_OK);
  assert_int_equal(tegula__chain_check(filters, TEGULA__CHAIN_MAX + 1, 64, &err), TEGULA_CORRUPT);
  assert_int_equal(tegula__chain_check(filters, -1, 64, &err), TEGULA_CORRUPT);
  assert_int_equal(tegula__chain_check(NULL, 0, 64, &err), TEGULA_OK);
  assert_int_equal(tegula__chain_check(filters, 1, -1, &err), TEGULA_CORRUPT);
}

static void bounds_follow_the_chain(void **state) {
  (void)state;
  const tegula__filter sums[] = {BARE(FLETCHER32), FILTER(SHUFFLE, 4), BARE(NONE),
                                 BARE(FLETCHER32)};
  const tegula__filter squeezed[] = {FILTER(SHUFFLE, 4), BARE(DEFLATE), BARE(DEFLATE), BARE(ZSTD)};
  assert_int_equal(tegula__chain_bound(NULL, 0, 1000), 1000);
  assert_int_equal(tegula__chain_bound(sums, 4, 1000), 1008);
  assert_true(tegula__chain_bound(squeezed, 2, 1000000) > 1000000);
  assert_true(tegula__chain_bound(squeezed, 2, 1000000) < 1300000);
  tegula__filter all[TEGULA__CHAIN_MAX];
  for (int i = 0; i < TEGULA__CHAIN_MAX; i++) all[i] = BARE(BLOSC2);
  assert_int_equal(tegula__chain_bound(all, TEGULA__CHAIN_MAX, 1000), 4000 + (1 << 20));
  assert_true(tegula__chain_bound(squeezed, 4, INT64_MAX) == INT64_MAX);
  assert_true(tegula__chain_bound(sums, 4, INT64_MAX - 3) == INT64_MAX);
  tegula__filter small_blocks = FILTER(LZ4, 1),
                 bits = FILTER(BITSHUFFLE, UINT32_MAX, UINT32_MAX - 7, 2);
  /* 4 bytes before each byte: capped */
  assert_int_equal(tegula__chain_bound(&small_blocks, 1, 1000000), 4 * 1000000 + (1 << 20));
  assert_true(tegula__chain_bound(&bits, 1, 1000) < 100000);
  assert_true(tegula__chain_bound(&small_blocks, 1, INT64_MAX) == INT64_MAX);
  assert_true(tegula__chain_bound(&bits, 1, 1000) > 1000);
}

static void nothing_to_undo_is_a_copy_of_the_same_size(void **state) {
  (void)state;
  char out[4] = "";
  const tegula__filter filters[] = {BARE(DEFLATE), BARE(NONE)};
  assert_int_equal(tegula__decode(decoder, filters, 2, 1, "abc", 4, out, 4, &err), TEGULA_OK);
  assert_string_equal(out, "abc");
  assert_int_equal(tegula__decode(decoder, filters, 2, 1, "abc", 3, out, 4, &err), TEGULA_CORRUPT);
  assert_string_equal(err.message, "the chunk has 3 bytes, expected 4");
  assert_int_equal(tegula__decode(decoder, NULL, 0, 0, NULL, 0, NULL, 0, &err), TEGULA_OK);
}

static void planes_of_bytes_become_items(void **state) {
  (void)state;
  char out[10];
  assert_int_equal(undo(FILTER(SHUFFLE, 4), "aebfcgdhxy", 10, out, 10), TEGULA_OK);
  assert_memory_equal(out, "abcdefghxy", 10);
  assert_int_equal(undo(FILTER(SHUFFLE, 4), "aebfcgdhxy", 10, out, 9), TEGULA_CORRUPT);
}

/* Bit k of all eight items lies in byte k: items 1, 2, 4, ... */
static void rows_of_bits_become_items(void **state) {
  (void)state;
  const unsigned char rows[9] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x81, 0xAB};
  unsigned char out[9];
  assert_int_equal(undo(FILTER(BITSHUFFLE, 1), rows, 9, out, 9), TEGULA_OK);
  assert_memory_equal(out, ((unsigned char[]){0x81, 2, 4, 8, 16, 32, 64, 128, 0xAB}), 9);
}

/* Words 0x0102, 0x0300: sums 0x0402 and 2 * 0x0102 + 0x0300 = 0x0504. */
static void checksums_are_checked(void **state) {
  (void)state;
  char out[3];
  assert_int_equal(undo(BARE(FLETCHER32), "\1\2\3\2\4\4\5", 7, out, 3), TEGULA_OK);
  assert_memory_equal(out, "\1\2\3", 3);
  /* as before 1.6.3 */
  assert_int_equal(undo(BARE(FLETCHER32), "\1\2\3\4\2\5\4", 7, out, 3), TEGULA_OK);
  assert_int_equal(undo(BARE(FLETCHER32), "\1\2\3\4\2\4\5", 7, out, 3), TEGULA_CORRUPT);
  assert_string_equal(err.message,
                      "fletcher32: the checksum of 3 bytes is 05040402, expected 05040204");
  assert_int_equal(undo(BARE(FLETCHER32), "\0\0\0\0", 4, out, 0), TEGULA_OK);
  assert_int_equal(undo(BARE(FLETCHER32), "\0\0\0", 3, out, 0), TEGULA_CORRUPT);
}

/* The sums as HDF5 makes them, without shortcuts, over all lengths; 0xFFFF words are zero mod 65535
 * but not zero. */
static uint32_t fletcher32_slowly(const unsigned char *data, size_t size) {
  uint32_t first = 0, second = 0;
  for (size_t i = 0; i < size; i += 2) {
    first += (uint32_t)data[i] << 8 | (i + 1 < size ? data[i + 1] : 0);
    first = (first & 0xffff) + (first >> 16);
    second += first;
    second = (second & 0xffff) + (second >> 16);
  }
  return second << 16 | first;
}

static void checksums_of_all_lengths_agree(void **state) {
  (void)state;
  enum { MOST = 13000 };
  static unsigned char data[MOST + 4], out[MOST];
  for (size_t kind = 0; kind < 4; kind++)
    for (size_t size = 0; size <= MOST;
         size += size < 100 || size % 4096 > 4090 || size % 4096 < 6 ? 1 : 5) {
      for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char)(kind < 2 ? kind * 0xff : kind == 2 ? i * i >> 3 : i + 1 == size);
      uint32_t sum = fletcher32_slowly(data, size);
      for (int k = 0; k < 4; k++) data[size + (size_t)k] = (unsigned char)(sum >> 8 * k);
      if (undo(BARE(FLETCHER32), data, size + 4, out, size) != TEGULA_OK)
        fail_msg("kind %zu of %zu bytes: %s", kind, size, err.message);
    }
}

static void lz4_blocks_are_put_together(void **state) {
  (void)state;
  if (!tegula__codec_available(TEGULA__CODEC_LZ4)) skip();
  char out[20];
  /* both stored as they are */
  const char two[] = "\0\0\0\0\0\0\0\x07\0\0\0\4\0\0\0\4abcd\0\0\0\3efg";
  assert_int_equal(undo(BARE(LZ4), two, sizeof two - 1, out, 7), TEGULA_OK);
  assert_memory_equal(out, "abcdefg", 7);
  assert_int_equal(undo(BARE(LZ4), two, sizeof two - 1, out, 6), TEGULA_CORRUPT);
  assert_string_equal(err.message, "lz4: the stream holds 7 bytes, expected 6");
  assert_int_equal(undo(BARE(LZ4), two, sizeof two - 2, out, 7), TEGULA_CORRUPT);
  const char none[] = "\0\0\0\0\0\0\0\x07\0\0\0\0"; /* blocks of no bytes would never end */
  assert_int_equal(undo(BARE(LZ4), none, sizeof none - 1, out, 7), TEGULA_CORRUPT);
}

/* `back` literals, a copy of `length` bytes from the first of them, `more` literals: what must come
 * out goes to `plain`. */
static size_t lzf_stream(unsigned char *out, unsigned char *plain, size_t *plain_size, size_t back,
                         size_t length, size_t more) {
  size_t at = 0, n = 0;
  for (size_t total = back + more, left = total; left > 0;) {
    bool before = left > more;
    size_t run = before ? left - more : left;
    run = run < 32 ? run : 32;
    out[at++] = (unsigned char)(run - 1);
    for (size_t i = 0; i < run; i++, n++) plain[n] = out[at++] = (unsigned char)(n * 89 + 7);
    left -= run;
    if (!before || left > more) continue;
    out[at++] = (unsigned char)((length - 2 < 7 ? length - 2 : 7) << 5 | (back - 1) >> 8);
    if (length - 2 >= 7) out[at++] = (unsigned char)(length - 2 - 7);
    out[at++] = (unsigned char)(back - 1);
    for (size_t i = 0; i < length; i++, n++) plain[n] = plain[n - back];
  }
  *plain_size = n;
  return at;
}

static void lzf_copies_from_all_distances(void **state) {
  (void)state;
  unsigned char stream[1000], plain[1000], out[1000];
  for (size_t back = 1; back <= 300; back += back < 40 ? 1 : 37)
    for (size_t length = 3; length <= 264; length += length < 40 ? 1 : 16)
      for (size_t more = 0; more <= 40; more += 8) {
        size_t size, stored = lzf_stream(stream, plain, &size, back, length, more);
        if (undo(BARE(LZF), stream, stored, out, size) != TEGULA_OK ||
            memcmp(out, plain, size) != 0)
          fail_msg("%zu bytes from %zu back, %zu behind", length, back, more);
        assert_int_equal(undo(BARE(LZF), stream, stored, out, size - 1), TEGULA_CORRUPT);
      }
}

static void lzf_copies_from_before_the_start_are_refused(void **state) {
  (void)state;
  unsigned char out[8];
  assert_int_equal(undo(BARE(LZF), "\0a\40\0", 4, out, 4), TEGULA_OK);
  assert_memory_equal(out, "aaaa", 4);
  assert_int_equal(undo(BARE(LZF), "\0a\40\1", 4, out, 4), TEGULA_CORRUPT);
  assert_int_equal(undo(BARE(LZF), "\0a\40", 3, out, 4), TEGULA_CORRUPT);
  assert_int_equal(undo(BARE(LZF), "\0a\340\0", 4, out, 4), TEGULA_CORRUPT);
  assert_int_equal(undo(BARE(LZF), "\1a", 2, out, 2), TEGULA_CORRUPT);
}

static void sizes_that_a_stream_claims_are_not_believed(void **state) {
  (void)state;
  char out[64];
  const char huge[] =
      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xf8\xff\xff\xff\xff????????????????????";
  const tegula__filter filters[] = {BARE(LZ4),
                                    FILTER(BITSHUFFLE, 1, 0, 2),
                                    FILTER(BITSHUFFLE, 1, 0, 3),
                                    BARE(BLOSC),
                                    BARE(BLOSC2),
                                    BARE(ZSTD),
                                    BARE(LZF),
                                    BARE(DEFLATE),
                                    FILTER(SZIP, 32, 8, 8, 64),
                                    FILTER(BITSHUFFLE, UINT32_MAX, 0, 2)};
  for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
    if (filter_available(&filters[i])) {
      assert_int_equal(undo(filters[i], huge, sizeof huge - 1, out, 64), TEGULA_CORRUPT);
      assert_int_equal(undo(filters[i], huge, 0, out, 64), TEGULA_CORRUPT);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(codecs_have_names),
      cmocka_unit_test(parameters_that_make_no_sense_are_refused),
      cmocka_unit_test(szip_parameters_are_checked),
      cmocka_unit_test(what_the_build_lacks_is_unsupported_by_name),
      cmocka_unit_test(chains_have_at_most_32_codecs),
      cmocka_unit_test(bounds_follow_the_chain),
      cmocka_unit_test(nothing_to_undo_is_a_copy_of_the_same_size),
      cmocka_unit_test(planes_of_bytes_become_items),
      cmocka_unit_test(rows_of_bits_become_items),
      cmocka_unit_test(checksums_are_checked),
      cmocka_unit_test(checksums_of_all_lengths_agree),
      cmocka_unit_test(lz4_blocks_are_put_together),
      cmocka_unit_test(lzf_copies_from_all_distances),
      cmocka_unit_test(lzf_copies_from_before_the_start_are_refused),
      cmocka_unit_test(sizes_that_a_stream_claims_are_not_believed),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
