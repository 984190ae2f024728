/* Chains of codecs, the other way: whatever can be encoded comes back, in the room that was
 * promised, by every table of kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The input is the number of filters (1 byte, mod 5) and the size of a chunk (3, mod 256 KiB + 1);
 * then for each filter its codec (1) and parameters (4 x 4); then bytes, which are repeated up to
 * the size of the chunk. Numbers are little-endian. */
#include "codec/codec.h"
#include "fuzz.h"

enum { FILTERS = 4, MOST = 256 << 10, MOST_ROOM = 16 << 20 };

static guarded chunk(const uint8_t *data, size_t size, size_t wanted) {
  static char whole[MOST];
  for (size_t i = 0; i < wanted; i++)
    whole[i] = size > 0 ? (char)(data[i % size] + i / size / 64) : 0;
  return guarded_copy(whole, wanted, false);
}

static void check_back(const tegula__filter *filters, int32_t count, uint32_t mask,
                       const guarded *stored, const guarded *in) {
  static tegula__decoder *decoder;
  static const char zeros[MOST];
  tegula_error error;
  if (decoder == NULL) decoder = tegula__decoder_create(tegula__kernel_select());
  guarded back = guarded_copy(zeros, in->size, false);
  MUST((int64_t)stored->size <= tegula__chain_bound(filters, count, (int64_t)in->size));
  MUST(tegula__decode(decoder, filters, count, mask, stored->data, stored->size, back.data,
                      back.size, &error) == TEGULA_OK);
  MUST(memcmp(back.data, in->data, in->size) == 0);
  guarded_free(&back);
}

static void encode_twice(const tegula__filter *filters, int32_t count, const guarded *in,
                         size_t room) {
  static tegula__encoder *encoders[2];
  static char zeros[MOST_ROOM];
  guarded out[2];
  size_t size[2];
  uint32_t mask[2];
  tegula_status status[2];
  if (encoders[0] == NULL) encoders[0] = tegula__encoder_create(tegula__kernel_select());
  if (encoders[1] == NULL) encoders[1] = tegula__encoder_create(tegula__kernel_at(0));
  for (int i = 0; i < 2; i++) {
    tegula_error error;
    out[i] = guarded_copy(zeros, room, false);
    status[i] = tegula__encode(encoders[i], filters, count, in->data, in->size, out[i].data, room,
                               &size[i], &mask[i], &error);
    MUST(status[i] == TEGULA_OK ||
         (status[i] == TEGULA_INVALID_ARGUMENT && strstr(error.message, "readers take at most")));
  }
  MUST(status[0] == status[1]);
  if (status[0] == TEGULA_OK) {
    MUST(size[0] == size[1] && mask[0] == mask[1] && size[0] <= room &&
         (uint64_t)mask[0] >> count == 0);
    MUST(memcmp(out[0].data, out[1].data, size[0]) == 0);
    guarded stored = guarded_copy(out[0].data, size[0], false);
    check_back(filters, count, mask[0], &stored, in);
    guarded_free(&stored);
  }
  guarded_free(&out[0]);
  guarded_free(&out[1]);
}

/* But for item sizes, which the text does not hold. */
static void check_text(const tegula__filter *filters, int32_t count) {
  tegula__filter again[TEGULA__CHAIN_MAX];
  tegula__buffer text, second;
  tegula_error error;
  int32_t found;
  tegula__buffer_init(&text, 1 << 16);
  tegula__buffer_init(&second, 1 << 16);
  MUST(tegula__chain_format(filters, count, &text) && tegula__buffer_append(&text, "", 1));
  MUST(tegula__chain_parse(text.data, 1, again, &found, &error) == TEGULA_OK && found == count);
  MUST(tegula__chain_format(again, found, &second) && tegula__buffer_append(&second, "", 1));
  MUST(strcmp(text.data, second.data) == 0);
  tegula__buffer_free(&text);
  tegula__buffer_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tegula__filter filters[FILTERS] = {0};
  tegula_error error;
  int32_t count = (int32_t)(take_number(&data, &size, 1) % (FILTERS + 1)), used = 0;
  size_t wanted = take_number(&data, &size, 3) % (MOST + 1);
  for (int32_t i = 0; i < count; i++) {
    tegula__filter *filter = &filters[used];
    filter->codec = (uint16_t)(take_number(&data, &size, 1) % (TEGULA__CODEC_COUNT + 1));
    filter->param_count = TEGULA__FILTER_PARAMS;
    for (int k = 0; k < TEGULA__FILTER_PARAMS; k++)
      filter->params[k] = (uint32_t)take_number(&data, &size, 4);
    used += filter->codec != TEGULA__CODEC_NONE;
  }
  tegula_status status = tegula__encode_check(filters, used, (int64_t)wanted, &error);
  if (status != TEGULA_OK) {
    MUST(status == TEGULA_INVALID_ARGUMENT || status == TEGULA_UNSUPPORTED);
    MUST(error.status == status && error.message[0] != '\0' && strchr(error.message, '\n') == NULL);
    return 0;
  }
  int64_t bound = tegula__encode_bound(filters, used, (int64_t)wanted);
  MUST(bound >= (int64_t)wanted);
  check_text(filters, used);
  if (bound > MOST_ROOM) return 0;
  guarded in = chunk(data, size, wanted);
  encode_twice(filters, used, &in, (size_t)bound);
  guarded_free(&in);
  return 0;
}
