/* Text for others, out of text that may hold any bytes: JSON strings, and several texts as one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/base.h"

/* Bytes of the UTF-8 character at `text` (which ends with a zero byte); 0 when it is none: cut off,
 * overlong, a surrogate, too large. */
static size_t character_size(const unsigned char *text) {
  size_t size = text[0] < 0x80                      ? 1
                : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                    : 0;
  for (size_t i = 1; i < size; i++) RETURN_IF((text[i] & 0xc0) != 0x80, 0);
  bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
  bool beyond = (text[0] == 0xed && text[1] >= 0xa0) || (text[0] == 0xf4 && text[1] >= 0x90);
  return overlong || beyond ? 0 : size;
}

static bool append_escaped(tegula__buffer *buffer, unsigned char byte) {
  switch (byte) {
    case '"':
      return tegula__buffer_append(buffer, "\\\"", 2);
    case '\\':
      return tegula__buffer_append(buffer, "\\\\", 2);
    case '\n':
      return tegula__buffer_append(buffer, "\\n", 2);
    case '\t':
      return tegula__buffer_append(buffer, "\\t", 2);
    default:
      return tegula__buffer_printf(buffer, "\\u%04x", byte);
  }
}

bool tegula__buffer_json_text(tegula__buffer *buffer, const char *text) {
  RETURN_IF(text == NULL, tegula__buffer_append(buffer, "null", 4));
  RETURN_IF(!tegula__buffer_append(buffer, "\"", 1), false);
  for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
    size_t size = character_size(at);
    bool plain = size > 1 || (size == 1 && *at >= 0x20 && *at != '"' && *at != '\\' && *at != 0x7f);
    bool good = plain       ? tegula__buffer_append(buffer, at, size)
                : size == 1 ? append_escaped(buffer, *at)
                            : tegula__buffer_append(buffer, "\xef\xbf\xbd", 3);
    RETURN_IF(!good, false);
    at += size > 0 ? size : 1;
  }
  return tegula__buffer_append(buffer, "\"", 1);
}

bool tegula__texts_append(tegula__buffer *buffer, const char *text) {
  return tegula__buffer_append(buffer, text, strlen(text) + 1);
}

int64_t tegula__texts_count(const char *data, size_t size) {
  int64_t count = 0;
  for (size_t i = 0; i < size; i++) count += data[i] == '\0';
  return count;
}

const char *tegula__texts_next(const char **at, const char *end) {
  const char *text = *at, *zero = text != end ? memchr(text, '\0', (size_t)(end - text)) : NULL;
  RETURN_IF(zero == NULL, NULL);
  *at = zero + 1;
  return text;
}
