/* Text that grows, and names as Python writes them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "read/record_text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(hdf5_words *words, const char *text, size_t size) {
  if (words->failed) return;
  if (words->size + size + 1 > words->capacity) {
    size_t capacity = 2 * (words->size + size) + 64;
    char *data = realloc(words->data, capacity);
    words->failed = !data;
    if (!data) return;
    words->data = data;
    words->capacity = capacity;
  }
  memcpy(words->data + words->size, text, size);
  words->size += size;
  words->data[words->size] = 0;
}

void hdf5_words_put(hdf5_words *words, const char *text) { append(words, text, strlen(text)); }

void hdf5_words_print(hdf5_words *words, const char *format, ...) {
  char text[256], *longer = NULL;
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int size = vsnprintf(text, sizeof text, format, arguments);
  if (size >= (int)sizeof text && (longer = malloc((size_t)size + 1)))
    vsnprintf(longer, (size_t)size + 1, format, again);
  va_end(again);
  va_end(arguments);
  if (size < 0 || (size >= (int)sizeof text && !longer))
    words->failed = true;
  else
    append(words, longer ? longer : text, (size_t)size);
  free(longer);
}

/* Bytes of the UTF-8 character at `text`; 0: it is none. A zero byte is no continuation. */
static int utf8_size(const unsigned char *text, uint32_t *character) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  int size = text[0] < 0x80    ? 1
             : text[0] >= 0xF8 ? 0
             : text[0] >= 0xF0 ? 4
             : text[0] >= 0xE0 ? 3
             : text[0] >= 0xC2 ? 2
                               : 0;
  if (size <= 1) {
    *character = text[0];
    return size;
  }
  uint32_t value = text[0] & (0x7Fu >> size);
  for (int i = 1; i < size; i++) {
    if ((text[i] & 0xC0) != 0x80) return 0;
    value = value << 6 | (text[i] & 0x3F);
  }
  *character = value;
  bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value < least[size] || value > 0x10FFFF || surrogate ? 0 : size;
}

/* What Python has as an escape; false: the character stands for itself. */
static bool escape(hdf5_words *words, uint32_t character, char quote) {
  static const char plain[] = "\n\r\t\\", letters[] = "nrt\\";
  const char *known = character < 0x80 && character ? strchr(plain, (int)character) : NULL;
  if (known)
    hdf5_words_print(words, "\\%c", letters[known - plain]);
  else if (character == (unsigned char)quote)
    hdf5_words_print(words, "\\%c", quote);
  else if (character < 0x20 || (character >= 0x7F && character <= 0xA0) || character == 0xAD)
    hdf5_words_print(words, "\\x%02x", (unsigned)character);
  else
    return false;
  return true;
}

void hdf5_words_quote(hdf5_words *words, const char *name) {
  char quote = strchr(name, '\'') && !strchr(name, '"') ? '"' : '\'';
  const unsigned char *at = (const unsigned char *)name;
  append(words, &quote, 1);
  while (*at) {
    uint32_t character;
    int size = utf8_size(at, &character);
    if (size == 0)
      hdf5_words_print(words, "\\udc%02x", *at);
    else if (!escape(words, character, quote))
      append(words, (const char *)at, (size_t)size);
    at += size > 0 ? size : 1;
  }
  append(words, &quote, 1);
}
