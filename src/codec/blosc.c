/* blosc: HDF5 filter 32001, one buffer of c-blosc 1. Bytes behind it are left alone, as by the filter.
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
    return tegula__codec_corrupt(err, codec, "%zu stored bytes, expected a header of %d", stage->in_size, BLOSC_MIN_HEADER_LENGTH);
  blosc_cbuffer_sizes(stage->in, &decoded, &stored, &block);
  if (stored > stage->in_size || blosc_cbuffer_validate(stage->in, stored, &decoded) < 0)
    return tegula__codec_no_stream(err, codec, stage);
  if (decoded > stage->room) return tegula__codec_too_large(err, codec, stage, decoded);
  int got = blosc_decompress_ctx(stage->in, stage->out, stage->room, 1);
  if (got == NO_COMPRESSOR)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1, "blosc: libblosc has no compressor for this chunk's format %d",
                        (unsigned char)stage->in[2] >> 5);
  if (got < 0 || (size_t)got != decoded) return tegula__codec_no_stream(err, codec, stage);
  *size = decoded;
  return TEGULA_OK;
}

const tegula__codec tegula__codec_blosc = {
    .name = "blosc", .library = "libblosc", .available = true, .most = BLOSC_MAX_BUFFERSIZE, .undo = undo};
#else
const tegula__codec tegula__codec_blosc = {.name = "blosc", .library = "libblosc"};
#endif
