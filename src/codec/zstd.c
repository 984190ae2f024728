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
    case ZSTD_error_memory_allocation: return tegula__out_of_memory(err, (int64_t)stage->room);
    case ZSTD_error_dstSize_tooSmall: return tegula__codec_too_large(err, &tegula__codec_zstd, stage, 0);
    default:
      return tegula__codec_corrupt(err, &tegula__codec_zstd, "%zu stored bytes are no valid frame: %s", stage->in_size,
                                   ZSTD_getErrorName(*size));
  }
}

static void release(tegula__decoder *decoder) { ZSTD_freeDCtx(decoder->zstd); }

const tegula__codec tegula__codec_zstd = {.name = "zstd", .library = "libzstd", .available = true, .undo = undo, .release = release};
#else
const tegula__codec tegula__codec_zstd = {.name = "zstd", .library = "libzstd"};
#endif
