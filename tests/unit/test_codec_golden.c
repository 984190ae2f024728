/* Chunks that libhdf5 and the public filters wrote come back as numpy made them; what is cut,
 * changed or of another size never does harm.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/codec_priv.h"
#include "test_codec_support.h"

static tegula__decoder *decoder;

/* Decodes to memory that ends with the chunk; the caller frees *out. */
static tegula_status decode(const golden *g, const unsigned char *stored, size_t stored_size,
                            size_t size, unsigned char **out, tegula_error *err) {
  *out = malloc(size ? size : 1);
  memset(*out, 0xEE, size);
  tegula__error_clear(err);
  return tegula__decode(decoder, g->filters, g->count, g->mask, stored, stored_size, *out, size,
                        err);
}

static void check_chunk(const golden *g) {
  tegula_error err;
  unsigned char *out;
  tegula_status status = tegula__chain_check(g->filters, g->count, (int64_t)g->plain_size, &err);
  if (!golden_available(g)) {
    assert_int_equal(status, TEGULA_UNSUPPORTED);
    return;
  }
  if (status != TEGULA_OK) fail_msg("%s: %s", g->name, err.message);
  if ((int64_t)g->stored_size > tegula__chain_bound(g->filters, g->count, (int64_t)g->plain_size))
    fail_msg("%s: above its bound", g->name);
  if (decode(g, g->stored, g->stored_size, g->plain_size, &out, &err) != TEGULA_OK)
    fail_msg("%s: %s", g->name, err.message);
  if (memcmp(out, g->plain, g->plain_size) != 0) fail_msg("%s: other bytes come out", g->name);
  free(out);
}

/* Decodes in memory of the caller's that is just large enough; *out is the chunk, or its planes. */
static tegula_status decode_in(const golden *g, const unsigned char *stored, size_t stored_size,
                               bool to_out, size_t item, unsigned char **out, tegula_error *err) {
  size_t room = tegula__chain_room((int64_t)g->plain_size);
  unsigned char *in = exactly(stored, stored_size), *scratch = malloc(room),
                *place = malloc(g->plain_size ? g->plain_size : 1);
  tegula__passage passage = {.in = (char *)in,
                             .in_size = stored_size,
                             .scratch = (char *)scratch,
                             .scratch_size = room,
                             .out = to_out ? place : NULL,
                             .size = g->plain_size,
                             .item = item};
  tegula__decoded decoded;
  tegula_status status =
      tegula__decode_with(decoder, g->filters, g->count, g->mask, &passage, &decoded, err);
  *out = malloc(g->plain_size ? g->plain_size : 1);
  if (status == TEGULA_OK && decoded.planes) {
    assert_true(!to_out && item > 0 && g->plain_size % item == 0);
    tegula__unshuffle(tegula__kernel_at(0), *out, decoded.data, g->plain_size, item);
  } else if (status == TEGULA_OK) {
    if (to_out) assert_ptr_equal(decoded.data, place);
    memcpy(*out, decoded.data, g->plain_size);
  }
  free(in);
  free(scratch);
  free(place);
  return status;
}

/* With a decoder that holds nothing yet: what it may take is what it says before. */
static void check_in_memory(const golden *g, bool to_out, size_t item) {
  tegula_error err;
  unsigned char *out;
  decoder = tegula__decoder_create(tegula__kernel_select());
  if (decode_in(g, g->stored, g->stored_size, to_out, item, &out, &err) != TEGULA_OK)
    fail_msg("%s: %s", g->name, err.message);
  if (memcmp(out, g->plain, g->plain_size) != 0)
    fail_msg("%s: other bytes come out, items of %zu", g->name, item);
  /* undone on the way there */
  if (to_out && g->filters[0].codec == TEGULA__CODEC_SHUFFLE) item = g->filters[0].params[0];
  int64_t own = tegula__chain_own(g->filters, g->count, (int64_t)g->plain_size, item);
  size_t held = decoder->place[0].size + decoder->place[1].size;
  if (own == 0 && held > 0) fail_msg("%s: the decoder holds %zu bytes of its own", g->name, held);
  tegula__decoder_destroy(decoder);
  free(out);
}

static void check_in_memories(const golden *g) {
  if (!golden_available(g)) return;
  size_t item = g->filters[0].codec == TEGULA__CODEC_SHUFFLE ? g->filters[0].params[0] : 4;
  check_in_memory(g, true, 0);
  check_in_memory(g, false, 0);
  check_in_memory(g, false, item);
  check_in_memory(g, false, 3);
}

static void chunks_come_back_in_memory_of_the_caller(void **state) {
  (void)state;
  golden_each(check_in_memories);
}

/* What files mostly hold needs nothing beside one encoded and one decoded chunk. */
static void usual_chains_need_nothing_of_the_decoder(void **state) {
  (void)state;
  const tegula__filter shuffle = {.codec = TEGULA__CODEC_SHUFFLE, .param_count = 1, .params = {4}},
                       sum = {.codec = TEGULA__CODEC_FLETCHER32};
  static const uint16_t compressors[] = {TEGULA__CODEC_DEFLATE, TEGULA__CODEC_ZSTD,
                                         TEGULA__CODEC_LZ4, TEGULA__CODEC_LZF, TEGULA__CODEC_BLOSC};
  for (size_t i = 0; i < sizeof compressors / sizeof *compressors; i++) {
    const tegula__filter compressor = {.codec = compressors[i]},
                         chain[] = {shuffle, compressor, sum};
    assert_int_equal(tegula__chain_own(chain, 3, 1 << 20, 4), 0);
    assert_int_equal(tegula__chain_own(chain + 1, 2, 1 << 20, 4), 0);
    /* other items: the shuffle needs a place */
    assert_true(tegula__chain_own(chain, 3, 1 << 20, 8) >= 1 << 20);
  }
}

static void golden_chunks_come_back(void **state) {
  (void)state;
  for (size_t table = 0; tegula__kernel_at(table); table++) {
    decoder = tegula__decoder_create(tegula__kernel_at(table));
    assert_true(golden_each(check_chunk) > 200);
    tegula__decoder_destroy(decoder);
  }
}

/* A decoder that keeps nothing from other chunks. */
static void check_alone(const golden *g) {
  decoder = tegula__decoder_create(tegula__kernel_select());
  check_chunk(g);
  tegula__decoder_destroy(decoder);
}

static void each_comes_back_with_a_new_decoder(void **state) {
  (void)state;
  golden_each(check_alone);
}

/* The message says which codec, or what the whole chunk came to. */
static void check_message(const golden *g, const tegula_error *err) {
  bool named = strncmp(err->message, "the chunk has ", 14) == 0;
  for (int32_t i = 0; i < g->count; i++) {
    const char *name = tegula__codec_name(g->filters[i].codec);
    named = named ||
            (strncmp(err->message, name, strlen(name)) == 0 && err->message[strlen(name)] == ':');
  }
  if (!named || strchr(err->message, '\n')) fail_msg("%s: message \"%s\"", g->name, err->message);
  assert_int_equal(err->offset, -1);
  assert_string_equal(err->path, "");
}

static void check_other_sizes(const golden *g) {
  static const int more[] = {-17, -8, -4, -3, -2, -1, 1, 2, 3, 4, 8, 17, 4096};
  if (!golden_available(g)) return;
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
    tegula_error err;
    unsigned char *out;
    if (more[i] < 0 && g->plain_size < (size_t)-more[i]) continue;
    if (decode(g, g->stored, g->stored_size, g->plain_size + (size_t)more[i], &out, &err) !=
        TEGULA_CORRUPT)
      fail_msg("%s: of %+d bytes: %s", g->name, more[i], tegula_status_name(err.status));
    check_message(g, &err);
    free(out);
  }
}

static void another_size_is_corrupt(void **state) {
  (void)state;
  decoder = tegula__decoder_create(tegula__kernel_select());
  golden_each(check_other_sizes);
  tegula__decoder_destroy(decoder);
}

/* Whatever comes is the right bytes or an error. */
static void check_harm(const golden *g, const unsigned char *stored, size_t size, bool checked) {
  tegula_error err;
  unsigned char *out;
  tegula_status status = decode(g, stored, size, g->plain_size, &out, &err);
  if (status == TEGULA_OK) {
    if (checked && memcmp(out, g->plain, g->plain_size) != 0)
      fail_msg("%s: %zu bytes: a wrong value passed", g->name, size);
  } else {
    if (status != TEGULA_CORRUPT && status != TEGULA_UNSUPPORTED)
      fail_msg("%s: %s", g->name, err.message);
    check_message(g, &err);
  }
  free(out);
}

static bool last_is_checksum(const golden *g) {
  return g->filters[g->count - 1].codec == TEGULA__CODEC_FLETCHER32 &&
         !(g->mask >> (g->count - 1) & 1);
}

static void check_cut(const golden *g) {
  if (!golden_available(g)) return;
  size_t step = 1 + g->stored_size / 300;
  for (size_t size = 0; size < g->stored_size; size += step) {
    unsigned char *cut = exactly(g->stored, size);
    check_harm(g, cut, size, last_is_checksum(g));
    free(cut);
  }
}

static void cut_chunks_do_no_harm(void **state) {
  (void)state;
  decoder = tegula__decoder_create(tegula__kernel_select());
  golden_each(check_cut);
  tegula__decoder_destroy(decoder);
}

static void check_flips(const golden *g) {
  if (!golden_available(g)) return;
  unsigned char *stored = exactly(g->stored, g->stored_size);
  for (size_t i = 0; i < g->stored_size * 8; i += i < 512 ? 1 : 1 + g->stored_size / 40) {
    stored[i / 8] ^= (unsigned char)(1 << i % 8);
    check_harm(g, stored, g->stored_size, last_is_checksum(g));
    stored[i / 8] ^= (unsigned char)(1 << i % 8);
  }
  free(stored);
}

static void flipped_bits_do_no_harm(void **state) {
  (void)state;
  decoder = tegula__decoder_create(tegula__kernel_select());
  golden_each(check_flips);
  tegula__decoder_destroy(decoder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_chunks_come_back),
      cmocka_unit_test(each_comes_back_with_a_new_decoder),
      cmocka_unit_test(another_size_is_corrupt),
      cmocka_unit_test(cut_chunks_do_no_harm),
      cmocka_unit_test(flipped_bits_do_no_harm),
      cmocka_unit_test(chunks_come_back_in_memory_of_the_caller),
      cmocka_unit_test(usual_chains_need_nothing_of_the_decoder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
