/* codec: the table of codecs, and what decoders and encoders keep.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "codec/codec_priv.h"

static const tegula__codec none = {.name = "none", .available = true, .keeps_size = true};

const tegula__codec *tegula__codec_find(uint16_t codec) {
  static const tegula__codec *const table[TEGULA__CODEC_COUNT] = {
      [TEGULA__CODEC_NONE] = &none,
      [TEGULA__CODEC_DEFLATE] = &tegula__codec_deflate,
      [TEGULA__CODEC_SHUFFLE] = &tegula__codec_shuffle,
      [TEGULA__CODEC_FLETCHER32] = &tegula__codec_fletcher32,
      [TEGULA__CODEC_SZIP] = &tegula__codec_szip,
      [TEGULA__CODEC_ZSTD] = &tegula__codec_zstd,
      [TEGULA__CODEC_LZ4] = &tegula__codec_lz4,
      [TEGULA__CODEC_BLOSC] = &tegula__codec_blosc,
      [TEGULA__CODEC_BLOSC2] = &tegula__codec_blosc2,
      [TEGULA__CODEC_BITSHUFFLE] = &tegula__codec_bitshuffle,
      [TEGULA__CODEC_LZF] = &tegula__codec_lzf,
  };
  return codec < TEGULA__CODEC_COUNT ? table[codec] : NULL;
}

const char *tegula__codec_name(uint16_t codec) {
  const tegula__codec *row = tegula__codec_find(codec);
  return row ? row->name : "unknown";
}

const char *const *tegula__codec_names(void) {
  static const char *const names[TEGULA__CODEC_COUNT + 1] = {
      [TEGULA__CODEC_NONE] = "none",       [TEGULA__CODEC_DEFLATE] = "deflate",
      [TEGULA__CODEC_SHUFFLE] = "shuffle", [TEGULA__CODEC_FLETCHER32] = "fletcher32",
      [TEGULA__CODEC_SZIP] = "szip",       [TEGULA__CODEC_ZSTD] = "zstd",
      [TEGULA__CODEC_LZ4] = "lz4",         [TEGULA__CODEC_BLOSC] = "blosc",
      [TEGULA__CODEC_BLOSC2] = "blosc2",   [TEGULA__CODEC_BITSHUFFLE] = "bitshuffle",
      [TEGULA__CODEC_LZF] = "lzf",
  };
  return names;
}

bool tegula__codec_available(uint16_t codec) {
  const tegula__codec *row = tegula__codec_find(codec);
  return row && row->available && (row->found == NULL || row->found());
}

tegula__decoder *tegula__decoder_create(const tegula__kernels *kernels) {
  tegula__decoder *decoder = calloc(1, sizeof *decoder);
  if (decoder) decoder->kernels = kernels;
  return decoder;
}

void tegula__decoder_destroy(tegula__decoder *decoder) {
  if (decoder == NULL) return;
  for (uint16_t codec = 0; codec < TEGULA__CODEC_COUNT; codec++) {
    const tegula__codec *row = tegula__codec_find(codec);
    if (row->release) row->release(decoder);
  }
  free(decoder->place[0].data);
  free(decoder->place[1].data);
  free(decoder->inner.data);
  free(decoder);
}

tegula__encoder *tegula__encoder_create(const tegula__kernels *kernels) {
  tegula__encoder *encoder = calloc(1, sizeof *encoder);
  if (encoder) encoder->kernels = kernels;
  return encoder;
}

void tegula__encoder_destroy(tegula__encoder *encoder) {
  if (encoder == NULL) return;
  for (uint16_t codec = 0; codec < TEGULA__CODEC_COUNT; codec++) {
    const tegula__codec *row = tegula__codec_find(codec);
    if (row->release_encoder) row->release_encoder(encoder);
  }
  free(encoder->place.data);
  free(encoder->inner.data);
  free(encoder);
}
