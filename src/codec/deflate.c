/* deflate: HDF5 filter 1, zlib streams (RFC 1950), by libdeflate. Bytes behind the stream are left
 * alone, as by libhdf5.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <libdeflate.h>

#include "codec/codec_priv.h"

static tegula_status undo(const tegula__stage *stage, size_t *size, tegula_error *err) {
  tegula__decoder *decoder = stage->decoder;
  size_t used;
  if (decoder->deflate == NULL) decoder->deflate = libdeflate_alloc_decompressor();
  if (decoder->deflate == NULL) return tegula__out_of_memory(err, 64 << 10);
  switch (libdeflate_zlib_decompress_ex(decoder->deflate, stage->in, stage->in_size, stage->out,
                                        stage->room, &used, size)) {
    case LIBDEFLATE_SUCCESS:
      return TEGULA_OK;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      return tegula__codec_too_large(err, &tegula__codec_deflate, stage, 0);
    default:
      return tegula__codec_no_stream(err, &tegula__codec_deflate, stage);
  }
}

static void release(tegula__decoder *decoder) {
  if (decoder->deflate) libdeflate_free_decompressor(decoder->deflate);
}

static tegula_status check_encode(const tegula__filter *filter, tegula_error *err) {
  return tegula__codec_range(err, &tegula__codec_deflate, "level",
                             tegula__filter_param(filter, 0, TEGULA__DEFLATE_LEVEL), 0, 9);
}

static tegula_status apply(const tegula__encode_stage *stage, size_t *size, tegula_error *err) {
  /* by zlib's level: the fastest of libdeflate's whose files are as small (docs/formats.md has the
   * figures) */
  static const uint8_t levels[] = {0, 2, 2, 2, 3, 5, 6, 7, 7, 7};
  int level = levels[tegula__filter_param(stage->filter, 0, TEGULA__DEFLATE_LEVEL)];
  void **compressor = &stage->encoder->deflate[level];
  if (*compressor == NULL) *compressor = libdeflate_alloc_compressor(level);
  if (*compressor == NULL) return tegula__out_of_memory(err, 1 << 20);
  *size = libdeflate_zlib_compress(*compressor, stage->in, stage->in_size, stage->out, stage->room);
  if (*size == 0) *size = TEGULA__SKIPPED;
  return TEGULA_OK;
}

static void release_encoder(tegula__encoder *encoder) {
  for (int level = 0; level < TEGULA__LIBDEFLATE_LEVELS; level++)
    if (encoder->deflate[level]) libdeflate_free_compressor(encoder->deflate[level]);
}

const tegula__codec tegula__codec_deflate = {.name = "deflate",
                                             .library = "libdeflate",
                                             .available = true,
                                             .undo = undo,
                                             .release = release,
                                             .check_encode = check_encode,
                                             .apply = apply,
                                             .release_encoder = release_encoder};
