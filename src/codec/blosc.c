/* blosc: HDF5 filter 32001, one buffer of c-blosc 1. Bytes behind it are left alone, as by the
 * filter.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec_priv.h"

#ifdef TEGULA_HAVE_BLOSC
#include <blosc.h>

static tegula_status undo(const tegula__stage *stage, size_t *size, tegula_error *err) {
  const tegula__codec *codec = &tegula__codec_blosc;
  enum { NO_COMPRESSOR = -5 };
  size_t decoded, stored, block;
  if (stage->in_size < BLOSC_MIN_HEADER_LENGTH)
    return tegula__codec_corrupt(err, codec, "%zu stored bytes, expected a header of %d",
                                 stage->in_size, BLOSC_MIN_HEADER_LENGTH);
  blosc_cbuffer_sizes(stage->in, &decoded, &stored, &block);
  if (stored > stage->in_size || blosc_cbuffer_validate(stage->in, stored, &decoded) < 0)
    return tegula__codec_no_stream(err, codec, stage);
  if (decoded > stage->room) return tegula__codec_too_large(err, codec, stage, decoded);
  int got = blosc_decompress_ctx(stage->in, stage->out, stage->room, 1);
  if (got == NO_COMPRESSOR)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "blosc: libblosc has no compressor for this chunk's format %d",
                        (unsigned char)stage->in[2] >> 5);
  if (got < 0 || (size_t)got != decoded) return tegula__codec_no_stream(err, codec, stage);
  *size = decoded;
  return TEGULA_OK;
}

static const char *compressor_of(const tegula__filter *filter) {
  const char *name = NULL;
  int code = (int)tegula__filter_param(filter, TEGULA__BLOSC_COMPRESSOR, BLOSC_LZ4);
  return blosc_compcode_to_compname(code, &name) < 0 ? NULL : name;
}

static tegula_status check_encode(const tegula__filter *filter, tegula_error *err) {
  const tegula__codec *codec = &tegula__codec_blosc;
  uint32_t compressor = tegula__filter_param(filter, TEGULA__BLOSC_COMPRESSOR, BLOSC_LZ4);
  FORWARD(tegula__codec_range(
      err, codec, "level",
      tegula__filter_param(filter, TEGULA__BLOSC_LEVEL_PARAM, TEGULA__BLOSC_LEVEL), 0, 9));
  FORWARD(tegula__codec_range(err, codec, "shuffle",
                              tegula__filter_param(filter, TEGULA__BLOSC_SHUFFLE, BLOSC_SHUFFLE), 0,
                              2));
  FORWARD(tegula__codec_range(err, codec, "compressor", compressor, BLOSC_BLOSCLZ, BLOSC_ZSTD));
  if (compressor_of(filter)) return TEGULA_OK;
  return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                      "blosc: this libblosc has no compressor %u, only %s", compressor,
                      blosc_list_compressors());
}

static int64_t most_encoded(const tegula__filter *filter, int64_t size) {
  (void)filter;
  return tegula__add(size, BLOSC_MAX_OVERHEAD, &size) ? size : INT64_MAX;
}

static tegula_status apply(const tegula__encode_stage *stage, size_t *size, tegula_error *err) {
  const tegula__filter *filter = stage->filter;
  int level = (int)tegula__filter_param(filter, TEGULA__BLOSC_LEVEL_PARAM, TEGULA__BLOSC_LEVEL);
  int shuffle = (int)tegula__filter_param(filter, TEGULA__BLOSC_SHUFFLE, BLOSC_SHUFFLE);
  uint32_t item = tegula__blosc_item(tegula__filter_param(filter, TEGULA__BLOSC_ITEM, 1));
  int got = blosc_compress_ctx(level, shuffle, item, stage->in_size, stage->in, stage->out,
                               stage->room, compressor_of(filter), 0, 1);
  if (got <= 0) return tegula__codec_refused(err, &tegula__codec_blosc, stage);
  *size = (size_t)got;
  return TEGULA_OK;
}

const tegula__codec tegula__codec_blosc = {.name = "blosc",
                                           .library = "libblosc",
                                           .available = true,
                                           .most = BLOSC_MAX_BUFFERSIZE,
                                           .undo = undo,
                                           .check_encode = check_encode,
                                           .most_encoded = most_encoded,
                                           .apply = apply};
#else
const tegula__codec tegula__codec_blosc = {.name = "blosc", .library = "libblosc"};
#endif
