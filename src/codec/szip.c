/* szip: HDF5 filter 4, the extended Rice coding of CCSDS 121.0-B, by libaec.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Four bytes hold the decoded size (little-endian), then comes one stream. Scanlines were filled up
 * to whole blocks before encoding; what fills them is dropped here. Pixels of 32 and 64 bits were
 * taken apart into planes of bytes, each byte one sample. */
#include "codec/codec_priv.h"

#ifdef TEGULA_HAVE_AEC
#include <libaec.h>

enum { MASK, BLOCK, BITS, LINE, PARAMS }; /* of the filter */
enum { MSB = 16, NEAREST_NEIGHBOUR = 32, SIZE_BYTES = 4 };

static tegula_status check(const tegula__filter *filter, tegula_error *err) {
  const tegula__codec *codec = &tegula__codec_szip;
  const uint32_t *p = filter->params;
  if (filter->param_count != PARAMS)
    return tegula__codec_corrupt(err, codec, "%u parameters, expected 4", filter->param_count);
  if (p[BLOCK] < 2 || p[BLOCK] > 32 || p[BLOCK] % 2 != 0)
    return tegula__codec_corrupt(
        err, codec, "blocks of %u pixels, expected an even number from 2 to 32", p[BLOCK]);
  if (p[BITS] < 1 || (p[BITS] > 24 && p[BITS] != 32 && p[BITS] != 64))
    return tegula__codec_corrupt(err, codec, "pixels of %u bits, expected 1 to 24, 32 or 64",
                                 p[BITS]);
  if (p[LINE] < p[BLOCK] || p[LINE] > 4096)
    return tegula__codec_corrupt(
        err, codec, "scanlines of %u pixels, expected %u (a block) to 4096", p[LINE], p[BLOCK]);
  return TEGULA_OK;
}

static bool in_planes(const tegula__filter *filter) { return filter->params[BITS] >= 32; }
static size_t planes(const tegula__filter *filter) {
  return in_planes(filter) ? filter->params[BITS] / 8 : 0;
}

static size_t sample_bytes(const tegula__filter *filter) {
  uint32_t bits = filter->params[BITS];
  return in_planes(filter) || bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
}

/* Decodes `size` bytes to `out`, dropping what fills the lines. */
static bool decode_lines(struct aec_stream *stream, char *out, size_t size, size_t line,
                         size_t filled) {
  unsigned char fill[32 * 4];
  for (size_t done = 0; done < size; done += line) {
    stream->next_out = (unsigned char *)out + done;
    stream->avail_out = size - done < line ? size - done : line;
    if (aec_decode(stream, AEC_FLUSH) != AEC_OK || stream->avail_out > 0) return false;
    if (filled == line || size - done <= line) continue;
    stream->next_out = fill;
    stream->avail_out = filled - line;
    if (aec_decode(stream, AEC_FLUSH) != AEC_OK || stream->avail_out > 0) return false;
  }
  return true;
}

static tegula_status decode_samples(const tegula__stage *stage, char *out, size_t size,
                                    tegula_error *err) {
  const uint32_t *p = stage->filter->params;
  size_t sample = sample_bytes(stage->filter), blocks = (p[LINE] + p[BLOCK] - 1) / p[BLOCK];
  struct aec_stream stream = {.next_in = (const unsigned char *)stage->in + SIZE_BYTES,
                              .avail_in = stage->in_size - SIZE_BYTES,
                              .bits_per_sample = in_planes(stage->filter) ? 8 : p[BITS],
                              .block_size = p[BLOCK],
                              .rsi = (unsigned)blocks,
                              .flags = (p[MASK] & MSB ? AEC_DATA_MSB : 0) |
                                       (p[MASK] & NEAREST_NEIGHBOUR ? AEC_DATA_PREPROCESS : 0)};
  switch (aec_decode_init(&stream)) {
    case AEC_OK:
      break;
    case AEC_MEM_ERROR:
      return tegula__out_of_memory(err, (int64_t)(blocks * p[BLOCK] * sizeof(uint32_t)));
    default:
      return tegula__codec_corrupt(err, &tegula__codec_szip, "libaec refuses the parameters");
  }
  size_t line = p[LINE] * sample, filled = blocks * p[BLOCK] * sample;
  bool good = filled == line
                  ? decode_lines(&stream, out, size, size > 0 ? size : 1, size > 0 ? size : 1)
                  : decode_lines(&stream, out, size, line, filled);
  aec_decode_end(&stream);
  return good ? TEGULA_OK : tegula__codec_no_stream(err, &tegula__codec_szip, stage);
}

static tegula_status undo(const tegula__stage *stage, size_t *size, tegula_error *err) {
  const tegula__codec *codec = &tegula__codec_szip;
  size_t pixel =
      in_planes(stage->filter) ? stage->filter->params[BITS] / 8 : sample_bytes(stage->filter);
  if (stage->in_size < SIZE_BYTES)
    return tegula__codec_corrupt(err, codec, "%zu stored bytes, expected a header of 4",
                                 stage->in_size);
  *size = tegula__read_le32(stage->in);
  if (*size > stage->room) return tegula__codec_too_large(err, codec, stage, *size);
  if (*size % pixel != 0)
    return tegula__codec_corrupt(err, codec, "%zu bytes, expected whole pixels of %zu", *size,
                                 pixel);
  if (!in_planes(stage->filter) || stage->planes)
    return decode_samples(stage, stage->out, *size, err);
  FORWARD(tegula__scratch_reserve(&stage->decoder->inner, *size, err));
  FORWARD(decode_samples(stage, stage->decoder->inner.data, *size, err));
  tegula__unshuffle(stage->decoder->kernels, stage->out, stage->decoder->inner.data, *size, pixel);
  return TEGULA_OK;
}

const tegula__codec tegula__codec_szip = {.name = "szip",
                                          .library = "libaec",
                                          .available = true,
                                          .most = UINT32_MAX,
                                          .check = check,
                                          .planes = planes,
                                          .undo = undo};
#else
const tegula__codec tegula__codec_szip = {.name = "szip", .library = "libaec"};
#endif
