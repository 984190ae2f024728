/* Chains of codecs: no stored bytes read or write beside their ranges, hang, or end without a clear
 * error.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The input is the number of filters (1 byte, mod 5), the filter mask (4), the decoded size (3, mod
 * 1 MiB + 1); then for each filter its codec (1) and parameters (4 x 4); then the stored bytes.
 * Numbers are little-endian. */
#include "codec/codec.h"
#include "fuzz.h"

enum { FILTERS = 4, MOST = 1 << 20 };

/* Two decodings of the same bytes agree, also with what the first left in the decoder and by other
 * kernels. */
static void decode_twice(const tegula__filter *filters, int32_t count, uint32_t mask,
                         const guarded *stored, size_t size) {
  static tegula__decoder *decoders[2];
  static const char zeros[MOST];
  tegula_status status[2];
  guarded out[2];
  if (decoders[0] == NULL) decoders[0] = tegula__decoder_create(tegula__kernel_select());
  if (decoders[1] == NULL) decoders[1] = tegula__decoder_create(tegula__kernel_at(0));
  for (int i = 0; i < 2; i++) {
    tegula_error error;
    out[i] = guarded_copy(zeros, size, false);
    if (i > 0) memset(out[i].data, 0xA5, size);
    status[i] = tegula__decode(decoders[i], filters, count, mask, stored->data, stored->size,
                               out[i].data, size, &error);
    if (status[i] == TEGULA_OK) continue;
    MUST(status[i] == TEGULA_CORRUPT || status[i] == TEGULA_UNSUPPORTED);
    MUST(error.status == status[i] && error.message[0] != '\0' &&
         strchr(error.message, '\n') == NULL);
  }
  MUST(status[0] == status[1]);
  MUST(status[0] != TEGULA_OK || memcmp(out[0].data, out[1].data, size) == 0);
  guarded_free(&out[0]);
  guarded_free(&out[1]);
}

/* The same in memory of the caller's, which may be written over, and with planes left: no other
 * result. */
static void decode_in_place(const tegula__filter *filters, int32_t count, uint32_t mask,
                            const guarded *stored, size_t size) {
  static tegula__decoder *decoder;
  static char want[MOST], items[MOST];
  tegula_error error;
  if (decoder == NULL) decoder = tegula__decoder_create(tegula__kernel_select());
  tegula_status status =
      tegula__decode(decoder, filters, count, mask, stored->data, stored->size, want, size, &error);
  guarded in = guarded_copy(stored->data, stored->size, false),
          scratch = guarded_copy(want, size, false);
  tegula__passage passage = {.in = (char *)in.data,
                             .in_size = in.size,
                             .scratch = (char *)scratch.data,
                             .scratch_size = size,
                             .size = size,
                             .item = count > 0 ? filters[0].params[0] : 0};
  tegula__decoded decoded;
  MUST(tegula__decode_with(decoder, filters, count, mask, &passage, &decoded, &error) == status);
  if (status == TEGULA_OK && decoded.planes)
    tegula__unshuffle(tegula__kernel_at(0), items, decoded.data, size, passage.item);
  if (status == TEGULA_OK) MUST(memcmp(decoded.planes ? items : decoded.data, want, size) == 0);
  guarded_free(&in);
  guarded_free(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tegula__filter filters[FILTERS] = {0};
  tegula_error error;
  int32_t count = (int32_t)(take_number(&data, &size, 1) % (FILTERS + 1));
  uint32_t mask = (uint32_t)take_number(&data, &size, 4);
  size_t decoded = take_number(&data, &size, 3) % (MOST + 1);
  for (int32_t i = 0; i < count; i++) {
    filters[i].codec = (uint16_t)(take_number(&data, &size, 1) % (TEGULA__CODEC_COUNT + 1));
    filters[i].param_count = TEGULA__FILTER_PARAMS;
    for (int k = 0; k < TEGULA__FILTER_PARAMS; k++)
      filters[i].params[k] = (uint32_t)take_number(&data, &size, 4);
  }
  MUST(tegula__chain_bound(filters, count, (int64_t)decoded) >= (int64_t)decoded);
  tegula_status status = tegula__chain_check(filters, count, (int64_t)decoded, &error);
  if (status != TEGULA_OK) {
    MUST(status == TEGULA_CORRUPT || status == TEGULA_UNSUPPORTED);
    return 0;
  }
  guarded stored = guarded_copy(data, size, false);
  decode_twice(filters, count, mask, &stored, decoded);
  decode_in_place(filters, count, mask, &stored, decoded);
  guarded_free(&stored);
  return 0;
}
