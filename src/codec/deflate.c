/* deflate: HDF5 filter 1, zlib streams (RFC 1950), by libdeflate. Bytes behind the stream are left alone, as by libhdf5.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <libdeflate.h>

#include "codec/codec_priv.h"

static tegula_status undo(const tegula__stage *stage, size_t *size, tegula_error *err) {
  tegula__decoder *decoder = stage->decoder;
  size_t used;
  if (decoder->deflate == NULL) decoder->deflate = libdeflate_alloc_decompressor();
  if (decoder->deflate == NULL) return tegula__out_of_memory(err, 64 << 10);
  switch (libdeflate_zlib_decompress_ex(decoder->deflate, stage->in, stage->in_size, stage->out, stage->room, &used, size)) {
    case LIBDEFLATE_SUCCESS: return TEGULA_OK;
    case LIBDEFLATE_INSUFFICIENT_SPACE: return tegula__codec_too_large(err, &tegula__codec_deflate, stage, 0);
    default: return tegula__codec_no_stream(err, &tegula__codec_deflate, stage);
  }
}

static void release(tegula__decoder *decoder) {
  if (decoder->deflate) libdeflate_free_decompressor(decoder->deflate);
}

const tegula__codec tegula__codec_deflate = {
    .name = "deflate", .library = "libdeflate", .available = true, .undo = undo, .release = release};
