/* Messages of all codecs, and the scratch memory that they share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/codec_priv.h"

tegula_status tegula__scratch_reserve(tegula__scratch *scratch, size_t size, tegula_error *err) {
  enum { LINE = 64 };
  if (size <= scratch->size) return TEGULA_OK;
  free(scratch->data);
  *scratch = (tegula__scratch){0};
  if (size <= SIZE_MAX - LINE) scratch->data = aligned_alloc(LINE, (size + LINE - 1) / LINE * LINE);
  if (scratch->data == NULL)
    return tegula__out_of_memory(err, size < INT64_MAX ? (int64_t)size : INT64_MAX);
  scratch->size = size;
  return TEGULA_OK;
}

static tegula_status fail_named(tegula_error *err, const tegula__codec *codec, const char *format,
                                va_list arguments) {
  char text[256];
  vsnprintf(text, sizeof text, format, arguments);
  return tegula__fail(err, TEGULA_CORRUPT, NULL, -1, "%s: %s", codec->name, text);
}

tegula_status tegula__codec_corrupt(tegula_error *err, const tegula__codec *codec,
                                    const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  tegula_status status = fail_named(err, codec, format, arguments);
  va_end(arguments);
  return status;
}

tegula_status tegula__codec_too_large(tegula_error *err, const tegula__codec *codec,
                                      const tegula__stage *stage, uint64_t found) {
  if (found == 0)
    return tegula__codec_corrupt(err, codec, "the stream holds more than the %zu bytes expected",
                                 stage->room);
  return tegula__codec_corrupt(err, codec, "the stream holds %" PRIu64 " bytes, expected %zu",
                               found, stage->room);
}

tegula_status tegula__codec_no_stream(tegula_error *err, const tegula__codec *codec,
                                      const tegula__stage *stage) {
  return tegula__codec_corrupt(err, codec,
                               "%zu stored bytes are no valid stream of up to %zu bytes",
                               stage->in_size, stage->room);
}

tegula_status tegula__codec_range(tegula_error *err, const tegula__codec *codec, const char *what,
                                  uint32_t value, uint32_t least, uint32_t most) {
  if (value >= least && value <= most) return TEGULA_OK;
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "%s: %s %u, expected %u to %u",
                      codec->name, what, value, least, most);
}

tegula_status tegula__codec_refused(tegula_error *err, const tegula__codec *codec,
                                    const tegula__encode_stage *stage) {
  return tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "%s: %s could not encode %zu bytes",
                      codec->name, codec->library ? codec->library : "tegula", stage->in_size);
}
