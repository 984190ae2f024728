/* Chains as text: what each name means, what is refused and how, and that what is written means the
 * same when it is read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"

static tegula_error err;
static tegula__filter filters[TEGULA__CHAIN_MAX];
static int32_t count;

static tegula_status parse(const char *text, uint32_t item_size) {
  memset(filters, 0xEE, sizeof filters);
  tegula__error_clear(&err);
  return tegula__chain_parse(text, item_size, filters, &count, &err);
}

/* As text of its own; the next call overwrites it. */
static const char *format(void) {
  static char out[4096];
  tegula__buffer text;
  tegula__buffer_init(&text, sizeof out);
  assert_true(tegula__chain_format(filters, count, &text) && text.size < sizeof out);
  if (text.size > 0) memcpy(out, text.data, text.size);
  out[text.size] = 0;
  tegula__buffer_free(&text);
  return out;
}

typedef struct row {
  const char *text;
  uint16_t codec;
  uint16_t param_count;
  uint32_t params[TEGULA__FILTER_PARAMS];
  const char *written;
} row;

/* Items of 8 bytes. */
static const row ROWS[] = {
    {"shuffle", TEGULA__CODEC_SHUFFLE, 1, {8}, "shuffle"},
    {"deflate", TEGULA__CODEC_DEFLATE, 1, {4}, "deflate:4"},
    {"deflate:0", TEGULA__CODEC_DEFLATE, 1, {0}, "deflate:0"},
    {"gzip:9", TEGULA__CODEC_DEFLATE, 1, {9}, "deflate:9"},
    {"fletcher32", TEGULA__CODEC_FLETCHER32, 0, {0}, "fletcher32"},
    {"lzf", TEGULA__CODEC_LZF, 0, {0}, "lzf"},
    {"bitshuffle", TEGULA__CODEC_BITSHUFFLE, 3, {8, 0, 0}, "bitshuffle"},
    {"bitshuffle:64", TEGULA__CODEC_BITSHUFFLE, 3, {8, 64, 0}, "bitshuffle:64"},
    {"zstd", TEGULA__CODEC_ZSTD, 1, {3}, "zstd:3"},
    {"zstd:22", TEGULA__CODEC_ZSTD, 1, {22}, "zstd:22"},
    {"lz4", TEGULA__CODEC_LZ4, 1, {1 << 30}, "lz4"},
    {"lz4:65536", TEGULA__CODEC_LZ4, 1, {65536}, "lz4:65536"},
    {"bitshuffle-lz4", TEGULA__CODEC_BITSHUFFLE, 3, {8, 0, 2}, "bitshuffle-lz4"},
    {"bitshuffle-zstd", TEGULA__CODEC_BITSHUFFLE, 4, {8, 0, 3, 3}, "bitshuffle-zstd:3"},
    {"bitshuffle-zstd:7:128", TEGULA__CODEC_BITSHUFFLE, 4, {8, 128, 3, 7}, "bitshuffle-zstd:7:128"},
    {"blosc", TEGULA__CODEC_BLOSC, 4, {8, 5, 1, 1}, "blosc:lz4:5"},
    {"blosc:blosclz", TEGULA__CODEC_BLOSC, 4, {8, 5, 1, 0}, "blosc:blosclz:5"},
    {"blosc:zstd:9:bitshuffle", TEGULA__CODEC_BLOSC, 4, {8, 9, 2, 5}, "blosc:zstd:9:bitshuffle"},
    {"blosc2", TEGULA__CODEC_BLOSC2, 4, {8, 5, 1, 0}, "blosc2:blosclz:5"},
    {"blosc2:zstd:1:noshuffle", TEGULA__CODEC_BLOSC2, 4, {8, 1, 0, 5}, "blosc2:zstd:1:noshuffle"},
};
enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS };

/* False where a library is missing, which must be said by name. */
static bool parses(const char *text, uint32_t item_size) {
  tegula_status status = parse(text, item_size);
  if (status == TEGULA_UNSUPPORTED &&
      (strstr(err.message, "this build has no ") || strstr(err.message, "was found") ||
       strstr(err.message, "has no compressor")))
    return false;
  if (status != TEGULA_OK) fail_msg("%s: %s", text, err.message);
  return true;
}

static void each_name_has_its_parameters(void **state) {
  (void)state;
  for (int i = 0; i < ROW_COUNT; i++) {
    if (!parses(ROWS[i].text, 8)) continue;
    assert_int_equal(count, 1);
    assert_int_equal(filters[0].codec, ROWS[i].codec);
    assert_int_equal(filters[0].param_count, ROWS[i].param_count);
    assert_memory_equal(filters[0].params, ROWS[i].params, sizeof ROWS[i].params);
    assert_string_equal(format(), ROWS[i].written);
  }
}

static void what_is_written_is_read_as_the_same(void **state) {
  (void)state;
  for (int i = 0; i < ROW_COUNT * ROW_COUNT; i++) {
    tegula__filter first[TEGULA__CHAIN_MAX];
    char text[256], written[256];
    snprintf(text, sizeof text, "%s,%s,%s", ROWS[i % ROW_COUNT].text, ROWS[i / ROW_COUNT].text,
             ROWS[(i * 7 + 3) % ROW_COUNT].text);
    if (!parses(text, 1 + (uint32_t)i)) continue;
    assert_int_equal(count, 3);
    memcpy(first, filters, sizeof first);
    snprintf(written, sizeof written, "%s", format());
    assert_true(parses(written, 1 + (uint32_t)i));
    assert_int_equal(count, 3);
    assert_memory_equal(first, filters, 3 * sizeof *filters);
    assert_string_equal(format(), written);
  }
}

static void no_text_is_no_filter(void **state) {
  (void)state;
  assert_int_equal(parse("", 4), TEGULA_OK);
  assert_int_equal(count, 0);
  assert_string_equal(format(), "");
}

static void large_items_are_bytes_for_blosc_only(void **state) {
  (void)state;
  if (!parses("blosc", 255)) skip();
  assert_int_equal(filters[0].params[0], 255);
  assert_true(parses("blosc,shuffle,bitshuffle", 256));
  assert_int_equal(filters[0].params[0], 1);
  assert_int_equal(filters[1].params[0], 256);
  assert_int_equal(filters[2].params[0], 256);
}

/* Filters as they come from files have fewer parameters, or codecs that have no name here. */
static void what_files_hold_has_a_text(void **state) {
  (void)state;
  count = 7;
  filters[0] = (tegula__filter){.codec = TEGULA__CODEC_SHUFFLE, .param_count = 1, .params = {3}};
  filters[1] = (tegula__filter){.codec = TEGULA__CODEC_DEFLATE};
  filters[2] =
      (tegula__filter){.codec = TEGULA__CODEC_SZIP, .param_count = 4, .params = {141, 8, 32, 64}};
  filters[3] =
      (tegula__filter){.codec = TEGULA__CODEC_BITSHUFFLE, .param_count = 3, .params = {4, 0, 3}};
  filters[4] = (tegula__filter){.codec = TEGULA__CODEC_BLOSC};
  filters[5] =
      (tegula__filter){.codec = TEGULA__CODEC_BITSHUFFLE, .param_count = 3, .params = {4, 0, 9}};
  filters[6] = (tegula__filter){.codec = TEGULA__CODEC_COUNT};
  assert_string_equal(format(), "shuffle,deflate,szip,bitshuffle-zstd,blosc,bitshuffle,unknown");
}

typedef struct refusal {
  const char *text;
  tegula_status status;
  const char *message; /* a part of it */
} refusal;

static void others_are_refused_in_one_line(void **state) {
  (void)state;
  static const refusal rows[] = {
      {"zip", TEGULA_INVALID_ARGUMENT,
       "codec \"zip\" is not known, expected one of: shuffle, bitshuffle, "},
      {"Shuffle", TEGULA_INVALID_ARGUMENT, "codec \"Shuffle\" is not known"},
      {"none", TEGULA_INVALID_ARGUMENT, "codec \"none\" is not known"},
      {"shuffle deflate", TEGULA_INVALID_ARGUMENT, "codec \"shuffle deflate\" is not known"},
      {"shuffle,\ndeflate", TEGULA_INVALID_ARGUMENT, "is not known"},
      {",", TEGULA_INVALID_ARGUMENT, "a codec without a name"},
      {"shuffle,", TEGULA_INVALID_ARGUMENT, "a codec without a name"},
      {"shuffle,,deflate", TEGULA_INVALID_ARGUMENT, "a codec without a name"},
      {":4", TEGULA_INVALID_ARGUMENT, "a codec without a name"},
      {"szip", TEGULA_UNSUPPORTED, "szip: tegula cannot encode it; it can encode: shuffle, "},
      {"szip:nn:8", TEGULA_UNSUPPORTED, "szip: tegula cannot encode it"},
      {"deflate:10", TEGULA_INVALID_ARGUMENT, "deflate: level 10, expected 0 to 9"},
      {"deflate:-1", TEGULA_INVALID_ARGUMENT, "deflate: level \"-1\", expected a whole number"},
      {"gzip:fast", TEGULA_INVALID_ARGUMENT, "gzip: level \"fast\", expected a whole number"},
      {"deflate:", TEGULA_INVALID_ARGUMENT, "deflate: level \"\", expected a whole number"},
      {"deflate:4294967297", TEGULA_INVALID_ARGUMENT,
       "deflate: level \"4294967297\", expected a whole number"},
      {"deflate:99999999999999999999", TEGULA_INVALID_ARGUMENT, "expected a whole number"},
      {"deflate:4:4", TEGULA_INVALID_ARGUMENT, "\"deflate:4:4\": deflate takes 1 argument at most"},
      {"shuffle:8", TEGULA_INVALID_ARGUMENT, "\"shuffle:8\": shuffle takes 0 arguments at most"},
      {"bitshuffle:12", TEGULA_INVALID_ARGUMENT,
       "bitshuffle: blocks of 12 items, expected a multiple of 8"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(parse(rows[i].text, 4), rows[i].status);
    assert_int_equal(err.status, rows[i].status);
    if (!strstr(err.message, rows[i].message) || strchr(err.message, '\n'))
      fail_msg("%s: \"%s\"", rows[i].text, err.message);
  }
  assert_int_equal(parse("shuffle", 0), TEGULA_INVALID_ARGUMENT);
}

static void arguments_of_libraries_are_refused(void **state) {
  (void)state;
  static const struct {
    uint16_t codec;
    refusal refusal;
  } rows[] = {
      {TEGULA__CODEC_ZSTD, {"zstd:0", TEGULA_INVALID_ARGUMENT, "zstd: level 0, expected 1 to "}},
      {TEGULA__CODEC_ZSTD,
       {"zstd:100", TEGULA_INVALID_ARGUMENT, "zstd: level 100, expected 1 to "}},
      {TEGULA__CODEC_ZSTD,
       {"bitshuffle-zstd:0", TEGULA_INVALID_ARGUMENT, "bitshuffle: level 0, expected 1 to "}},
      {TEGULA__CODEC_LZ4,
       {"lz4:2113929217", TEGULA_INVALID_ARGUMENT,
        "lz4: block of bytes 2113929217, expected 1 to 2113929216"}},
      {TEGULA__CODEC_LZ4,
       {"bitshuffle-lz4:528482312", TEGULA_INVALID_ARGUMENT,
        "bitshuffle: blocks of 528482312 items of 4 bytes"}},
      {TEGULA__CODEC_BLOSC,
       {"blosc:lz5", TEGULA_INVALID_ARGUMENT,
        "blosc: compressor \"lz5\", expected blosclz, lz4, lz4hc, snappy, zlib, zstd"}},
      {TEGULA__CODEC_BLOSC,
       {"blosc:lz4:10", TEGULA_INVALID_ARGUMENT, "blosc: level 10, expected 0 to 9"}},
      {TEGULA__CODEC_BLOSC,
       {"blosc:lz4:1:2", TEGULA_INVALID_ARGUMENT,
        "blosc: shuffle \"2\", expected noshuffle, shuffle, bitshuffle"}},
      {TEGULA__CODEC_BLOSC2,
       {"blosc2:lz4:10", TEGULA_INVALID_ARGUMENT, "blosc2: level 10, expected 0 to 9"}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (!tegula__codec_available(rows[i].codec)) continue;
    assert_int_equal(parse(rows[i].refusal.text, 4), rows[i].refusal.status);
    if (!strstr(err.message, rows[i].refusal.message))
      fail_msg("%s: \"%s\"", rows[i].refusal.text, err.message);
  }
}

static void chains_are_not_endless(void **state) {
  (void)state;
  char text[TEGULA__CHAIN_MAX * 8 + 16] = "shuffle";
  for (int i = 1; i < TEGULA__CHAIN_MAX; i++) strcat(text, ",shuffle");
  assert_int_equal(parse(text, 4), TEGULA_OK);
  assert_int_equal(count, TEGULA__CHAIN_MAX);
  assert_string_equal(format(), text);
  strcat(text, ",shuffle");
  assert_int_equal(parse(text, 4), TEGULA_INVALID_ARGUMENT);
  assert_string_equal(err.message, "a chain of more than 32 codecs");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_name_has_its_parameters),
      cmocka_unit_test(what_is_written_is_read_as_the_same),
      cmocka_unit_test(no_text_is_no_filter),
      cmocka_unit_test(large_items_are_bytes_for_blosc_only),
      cmocka_unit_test(what_files_hold_has_a_text),
      cmocka_unit_test(others_are_refused_in_one_line),
      cmocka_unit_test(arguments_of_libraries_are_refused),
      cmocka_unit_test(chains_are_not_endless),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
