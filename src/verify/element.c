/* One element as text, for messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbers get as many digits as tell them apart from their neighbours; what is too long is cut and
 * ends in "...". */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/hash.h"

enum { FLOAT_TEXT = 48 };

static double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                     : exponent == 0 ? ldexp(fraction, -24)
                                     : ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

static double float_value(uint8_t kind, uint32_t size, const void *at) {
  uint16_t half;
  float single;
  double whole;
  if (size == 8) {
    memcpy(&whole, at, sizeof whole);
    return whole;
  }
  if (size == 4) {
    memcpy(&single, at, sizeof single);
    return single;
  }
  memcpy(&half, at, sizeof half);
  if (kind != 'E') return half_value(half);
  uint32_t bits = (uint32_t)half << 16;
  memcpy(&single, &bits, sizeof single);
  return single;
}

/* The shortest text that reads back as the same number (of single precision for 4 bytes and
 * less). */
static void format_float(double value, uint32_t size, char out[FLOAT_TEXT]) {
  if (isnan(value)) {
    snprintf(out, FLOAT_TEXT, "nan");
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(out, FLOAT_TEXT, "%.*g", digits, value);
    double back = strtod(out, NULL);
    if (size == 8 ? back == value : (float)back == (float)value) return;
  }
}

static void format_complex(uint32_t size, const char *at, char *out, size_t room) {
  char real[FLOAT_TEXT], imaginary[FLOAT_TEXT];
  format_float(float_value('f', size / 2, at), size / 2, real);
  format_float(float_value('f', size / 2, at + size / 2), size / 2, imaginary);
  snprintf(out, room, "(%s%s%sj)", real, imaginary[0] == '-' ? "" : "+", imaginary);
}

static void format_integer(tegula_dtype dtype, const void *at, char *out, size_t room) {
  uint64_t bits = 0;
  memcpy((char *)&bits + (TEGULA__NATIVE_ORDER == '<' ? 0 : 8 - dtype.item_size), at,
         dtype.item_size);
  int unused = 64 - 8 * (int)dtype.item_size;
  int64_t value = (int64_t)(bits << unused) >> unused;
  if (dtype.kind == 'u')
    snprintf(out, room, "%" PRIu64, bits);
  else if (dtype.kind != 'i' && value == INT64_MIN)
    snprintf(out, room, "NaT");
  else
    snprintf(out, room, "%" PRId64, value);
}

/* Printable ASCII as it is, else \xNN; zeros at the end are padding. */
static void format_bytes(const unsigned char *at, size_t size, char *out, size_t room) {
  while (size > 0 && at[size - 1] == 0) size--;
  size_t used = (size_t)snprintf(out, room, "b'");
  for (size_t i = 0; i < size; i++) {
    if (used + 10 > room) {
      snprintf(out + used, room - used, "...");
      return;
    }
    bool plain = at[i] >= 0x20 && at[i] < 0x7f && at[i] != '\'' && at[i] != '\\';
    used += (size_t)snprintf(out + used, room - used, plain ? "%c" : "\\x%02x", at[i]);
  }
  snprintf(out + used, room - used, "'");
}

static void format_code_points(const char *at, size_t count, char *out, size_t room) {
  uint32_t code = 0;
  size_t used = (size_t)snprintf(out, room, "'");
  for (; count > 0; count--) {
    memcpy(&code, at + (count - 1) * 4, sizeof code);
    if (code != 0) break;
  }
  for (size_t i = 0; i < count; i++) {
    if (used + 16 > room) {
      snprintf(out + used, room - used, "...");
      return;
    }
    memcpy(&code, at + i * 4, sizeof code);
    bool plain = code >= 0x20 && code < 0x7f && code != '\'' && code != '\\';
    if (plain)
      out[used++] = (char)code;
    else
      used += (size_t)snprintf(out + used, room - used,
                               code < 0x10000 ? "\\u%04" PRIx32 : "\\U%08" PRIx32, code);
  }
  snprintf(out + used, room - used, "'");
}

static void format_digits(const unsigned char *at, size_t size, char *out, size_t room) {
  size_t used = (size_t)snprintf(out, room, "0x");
  for (size_t i = 0; i < size; i++) {
    if (used + 6 > room) {
      snprintf(out + used, room - used, "...");
      return;
    }
    used += (size_t)snprintf(out + used, room - used, "%02x", at[i]);
  }
}

void tegula__element_format(tegula_dtype dtype, const void *element, char *out, size_t room) {
  char number[FLOAT_TEXT];
  switch (dtype.kind) {
    case 'b':
      snprintf(out, room, *(const char *)element != 0 ? "True" : "False");
      return;
    case 'f':
    case 'E':
      format_float(float_value(dtype.kind, dtype.item_size, element), dtype.item_size, number);
      snprintf(out, room, "%s", number);
      return;
    case 'c':
      format_complex(dtype.item_size, element, out, room);
      return;
    case 'S':
      format_bytes(element, dtype.item_size, out, room);
      return;
    case 'U':
      format_code_points(element, dtype.item_size / 4, out, room);
      return;
    case 'V':
      format_digits(element, dtype.item_size, out, room);
      return;
    default:
      format_integer(dtype, element, out, room);
      return;
  }
}
