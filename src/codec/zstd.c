/* zstd: HDF5 filter 32015, zstd frames.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec_priv.h"

#ifdef TEGULA_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>

static tegula_status undo(const tegula__stage *stage, size_t *size, tegula_error *err) {
  tegula__decoder *decoder = stage->decoder;
  if (decoder->zstd == NULL) decoder->zstd = ZSTD_createDCtx();
  if (decoder->zstd == NULL) return tegula__out_of_memory(err, 128 << 10);
  *size = ZSTD_decompressDCtx(decoder->zstd, stage->out, stage->room, stage->in, stage->in_size);
  if (!ZSTD_isError(*size)) return TEGULA_OK;
  switch (ZSTD_getErrorCode(*size)) {
    case ZSTD_error_memory_allocation:
      return tegula__out_of_memory(err, (int64_t)stage->room);
    case ZSTD_error_dstSize_tooSmall:
      return tegula__codec_too_large(err, &tegula__codec_zstd, stage, 0);
    default:
      return tegula__codec_corrupt(err, &tegula__codec_zstd,
                                   "%zu stored bytes are no valid frame: %s", stage->in_size,
                                   ZSTD_getErrorName(*size));
  }
}

static void release(tegula__decoder *decoder) { ZSTD_freeDCtx(decoder->zstd); }

static tegula_status check_encode(const tegula__filter *filter, tegula_error *err) {
  return tegula__codec_range(err, &tegula__codec_zstd, "level",
                             tegula__filter_param(filter, 0, TEGULA__ZSTD_LEVEL), 1,
                             (uint32_t)ZSTD_maxCLevel());
}

static int64_t most_encoded(const tegula__filter *filter, int64_t size) {
  (void)filter;
  return size < INT64_MAX / 2 ? (int64_t)ZSTD_compressBound((size_t)size) : INT64_MAX;
}

static tegula_status apply(const tegula__encode_stage *stage, size_t *size, tegula_error *err) {
  tegula__encoder *encoder = stage->encoder;
  int level = (int)tegula__filter_param(stage->filter, 0, TEGULA__ZSTD_LEVEL);
  if (encoder->zstd == NULL) encoder->zstd = ZSTD_createCCtx();
  if (encoder->zstd == NULL) return tegula__out_of_memory(err, 128 << 10);
  *size =
      ZSTD_compressCCtx(encoder->zstd, stage->out, stage->room, stage->in, stage->in_size, level);
  if (!ZSTD_isError(*size)) return TEGULA_OK;
  if (ZSTD_getErrorCode(*size) == ZSTD_error_memory_allocation)
    return tegula__out_of_memory(err, (int64_t)stage->in_size);
  return tegula__codec_refused(err, &tegula__codec_zstd, stage);
}

static void release_encoder(tegula__encoder *encoder) { ZSTD_freeCCtx(encoder->zstd); }

const tegula__codec tegula__codec_zstd = {.name = "zstd",
                                          .library = "libzstd",
                                          .available = true,
                                          .undo = undo,
                                          .release = release,
                                          .check_encode = check_encode,
                                          .most_encoded = most_encoded,
                                          .apply = apply,
                                          .release_encoder = release_encoder};
#else
const tegula__codec tegula__codec_zstd = {.name = "zstd", .library = "libzstd"};
#endif
