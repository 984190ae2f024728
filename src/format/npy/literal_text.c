/* Characters of Python text literals: Latin-1 or UTF-8, escapes, and the way back as repr() writes
 * them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every read is bounded by the text's end; what is not valid is said so and never guessed. */
#include <string.h>

#include "format/npy/literal.h"

#define LAST_CHARACTER 0x10FFFFu

static bool is_surrogate(uint32_t character) { return character >= 0xD800 && character <= 0xDFFF; }

/* Overlong forms, surrogates and values above U+10FFFF are refused as Python does. */
static int next_utf8(tegula__text *text, uint32_t *character) {
  static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
  unsigned char first = (unsigned char)*text->at;
  int more = first < 0x80                    ? 0
             : first >= 0xF0 && first < 0xF8 ? 3
             : first >= 0xE0                 ? 2
             : first >= 0xC0                 ? 1
                                             : -1;
  if (more < 0 || first >= 0xF8 || text->end - text->at <= more) return -1;
  uint32_t value = more == 0 ? first : first & (0x3Fu >> more);
  for (int i = 1; i <= more; i++) {
    unsigned char byte = (unsigned char)text->at[i];
    if ((byte & 0xC0) != 0x80) return -1;
    value = value << 6 | (byte & 0x3F);
  }
  if (value < least[more] || value > LAST_CHARACTER || is_surrogate(value)) return -1;
  text->at += more + 1;
  *character = value;
  return 1;
}

static int next_plain(tegula__text *text, uint32_t *character) {
  if (text->utf8) return next_utf8(text, character);
  *character = (unsigned char)*text->at++;
  return 1;
}

static int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

/* At least `least` and at most `most` digits of the base. */
static int next_number(tegula__text *text, int base, int least, int most, uint32_t *character) {
  uint32_t value = 0;
  int digits = 0;
  while (digits < most && text->at < text->end && digit_value(*text->at) < base) {
    value = value * (uint32_t)base + (uint32_t)digit_value(*text->at++);
    digits++;
  }
  if (digits < least || value > LAST_CHARACTER) return -1;
  *character = value;
  return 1;
}

int tegula__text_next(tegula__text *text, uint32_t *character) {
  static const char letters[] = "abfnrtv\\'\"";
  static const char values[] = "\a\b\f\n\r\t\v\\'\"";
  if (text->at >= text->end) return 0;
  if (*text->at != '\\') return next_plain(text, character);
  if (text->end - text->at < 2) return -1;
  char letter = text->at[1];
  const char *known = letter != '\0' ? strchr(letters, letter) : NULL;
  if (known != NULL) {
    text->at += 2;
    *character = (unsigned char)values[known - letters];
    return 1;
  }
  int octal = digit_value(letter) < 8;
  if (octal || letter == 'x' || letter == 'u' || letter == 'U') {
    text->at += octal ? 1 : 2;
    if (octal) return next_number(text, 8, 1, 3, character);
    int digits = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
    return next_number(text, 16, digits, digits, character);
  }
  /* \N{...} and line joining are never written by repr(); any other backslash stands for itself. */
  if (letter == 'N' || letter == '\n' || letter == '\r') return -1;
  text->at++;
  *character = '\\';
  return 1;
}

bool tegula__text_put(tegula__buffer *out, uint32_t character) {
  char bytes[4];
  size_t size = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  if (size == 1) bytes[0] = (char)character;
  for (size_t i = size; size > 1 && i-- > 0;) {
    bytes[i] = (char)(i > 0 ? 0x80u | (character & 0x3F) : (0xF00u >> size & 0xFF) | character);
    character >>= 6;
  }
  return tegula__buffer_append(out, bytes, size);
}

bool tegula__text_put_escaped(tegula__buffer *out, uint32_t character, char quote) {
  if (character == '\n') return tegula__buffer_append(out, "\\n", 2);
  if (character == '\r') return tegula__buffer_append(out, "\\r", 2);
  if (character == '\t') return tegula__buffer_append(out, "\\t", 2);
  if (character == '\\' || character == (unsigned char)quote) {
    char pair[2] = {'\\', (char)character};
    return tegula__buffer_append(out, pair, 2);
  }
  bool control = character < 0x20 || (character >= 0x7F && character <= 0xA0) || character == 0xAD;
  if (control) return tegula__buffer_printf(out, "\\x%02x", (unsigned)character);
  if (is_surrogate(character)) return tegula__buffer_printf(out, "\\u%04x", (unsigned)character);
  return tegula__text_put(out, character);
}
