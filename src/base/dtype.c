/* dtypes: numpy's text in and out. Source of the texts: numpy's array interface ("typestr") and its
 * dtype names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static const char *const unit_names[] = {"generic", "Y",  "M",  "W",  "D",  "h",  "m",
                                         "s",       "ms", "us", "ns", "ps", "fs", "as"};
enum { UNIT_COUNT = sizeof unit_names / sizeof unit_names[0] };

static const struct {
  const char *name;
  uint8_t kind;
  uint32_t size;
} long_names[] = {
    {"bool", 'b', 1},      {"int8", 'i', 1},        {"int16", 'i', 2},    {"int32", 'i', 4},
    {"int64", 'i', 8},     {"uint8", 'u', 1},       {"uint16", 'u', 2},   {"uint32", 'u', 4},
    {"uint64", 'u', 8},    {"float16", 'f', 2},     {"float32", 'f', 4},  {"float64", 'f', 8},
    {"complex64", 'c', 8}, {"complex128", 'c', 16}, {"bfloat16", 'E', 2},
};

uint32_t tegula__dtype_swap_size(tegula_dtype dtype) {
  switch (dtype.kind) {
    case 'c':
      return dtype.item_size / 2;
    case 'U':
      return 4;
    case 'S':
    case 'V':
      return 1;
    default:
      return dtype.item_size;
  }
}

static bool size_fits_kind(uint8_t kind, uint32_t size) {
  switch (kind) {
    case 'b':
      return size == 1;
    case 'i':
    case 'u':
      return size == 1 || size == 2 || size == 4 || size == 8;
    case 'f':
      return size == 2 || size == 4 || size == 8;
    case 'E':
      return size == 2;
    case 'c':
      return size == 8 || size == 16;
    case 'M':
    case 'm':
      return size == 8;
    case 'U':
      return size > 0 && size % 4 == 0;
    case 'S':
    case 'V':
      return size > 0;
    default:
      return false;
  }
}

bool tegula__dtype_valid(tegula_dtype dtype) {
  RETURN_IF(!size_fits_kind(dtype.kind, dtype.item_size) || dtype.item_size > INT32_MAX ||
                dtype.reserved != 0,
            false);
  bool ordered = tegula__dtype_swap_size(dtype) > 1;
  RETURN_IF(ordered ? dtype.order != '<' && dtype.order != '>' : dtype.order != '|', false);
  if (dtype.kind != 'M' && dtype.kind != 'm') return dtype.unit == 0 && dtype.unit_count == 0;
  RETURN_IF(dtype.unit >= UNIT_COUNT, false);
  return dtype.unit == TEGULA_UNIT_GENERIC ? dtype.unit_count == 0 : dtype.unit_count > 0;
}

tegula_dtype tegula_dtype_native(tegula_dtype dtype) {
  dtype.order = tegula__dtype_swap_size(dtype) > 1 ? TEGULA__NATIVE_ORDER : '|';
  return dtype;
}

int tegula_dtype_same(tegula_dtype a, tegula_dtype b) {
  return a.kind == b.kind && a.item_size == b.item_size && a.unit == b.unit &&
         a.unit_count == b.unit_count;
}

void tegula_dtype_format(tegula_dtype dtype, char out[TEGULA_DTYPE_TEXT]) {
  if (dtype.kind == 'E') {
    snprintf(out, TEGULA_DTYPE_TEXT, "%sbfloat16",
             dtype.order == TEGULA__NATIVE_ORDER ? ""
             : dtype.order == '>'                ? ">"
                                                 : "<");
    return;
  }
  uint32_t number = dtype.kind == 'U' ? dtype.item_size / 4 : dtype.item_size;
  int used = snprintf(out, TEGULA_DTYPE_TEXT, "%c%c%" PRIu32, dtype.order, dtype.kind, number);
  if ((dtype.kind != 'M' && dtype.kind != 'm') || dtype.unit == TEGULA_UNIT_GENERIC ||
      dtype.unit >= UNIT_COUNT)
    return;
  if (dtype.unit_count == 1)
    snprintf(out + used, TEGULA_DTYPE_TEXT - (size_t)used, "[%s]", unit_names[dtype.unit]);
  else
    snprintf(out + used, TEGULA_DTYPE_TEXT - (size_t)used, "[%" PRIu32 "%s]", dtype.unit_count,
             unit_names[dtype.unit]);
}

/* Decimal digits at *text, at most INT32_MAX; moves *text behind them. False when there is none or
 * it is too large. */
static bool read_number(const char **text, uint32_t *out) {
  uint64_t number = 0;
  const char *p = *text;
  for (; *p >= '0' && *p <= '9'; p++) {
    number = number * 10 + (uint64_t)(*p - '0');
    RETURN_IF(number > INT32_MAX, false);
  }
  RETURN_IF(p == *text, false);
  *text = p;
  *out = (uint32_t)number;
  return true;
}

/* "[25s]", "[ns]" or nothing, to the end of the text. */
static bool read_unit(const char *text, tegula_dtype *dtype) {
  dtype->unit = TEGULA_UNIT_GENERIC;
  dtype->unit_count = 0;
  RETURN_IF(*text == '\0' || strcmp(text, "[generic]") == 0, true);
  RETURN_IF(*text++ != '[', false);
  uint32_t count = 1;
  if (*text >= '0' && *text <= '9') RETURN_IF(!read_number(&text, &count) || count == 0, false);
  for (uint8_t unit = 1; unit < UNIT_COUNT; unit++) {
    size_t size = strlen(unit_names[unit]);
    if (strncmp(text, unit_names[unit], size) != 0 || strcmp(text + size, "]") != 0) continue;
    dtype->unit = unit;
    dtype->unit_count = count;
    return true;
  }
  return false;
}

static bool read_long_name(const char *text, tegula_dtype *dtype) {
  for (size_t i = 0; i < sizeof long_names / sizeof long_names[0]; i++) {
    if (strcmp(text, long_names[i].name) != 0) continue;
    *dtype = (tegula_dtype){.kind = long_names[i].kind, .item_size = long_names[i].size};
    return true;
  }
  const char *unit = strncmp(text, "datetime64", 10) == 0    ? text + 10
                     : strncmp(text, "timedelta64", 11) == 0 ? text + 11
                                                             : NULL;
  RETURN_IF(unit == NULL, false);
  *dtype = (tegula_dtype){.kind = text[0] == 'd' ? 'M' : 'm', .item_size = 8};
  return read_unit(unit, dtype);
}

/* "f4", "U12", "M8[ns]", "?" */
static bool read_typestr(const char *text, tegula_dtype *dtype) {
  if (strcmp(text, "?") == 0) text = "b1";
  uint8_t kind = *text == 'a' ? 'S' : (uint8_t)*text; /* 'a' is numpy's old name of S */
  RETURN_IF(kind == '\0' || strchr("biufcMmSUV", kind) == NULL, false);
  uint32_t number;
  text++;
  RETURN_IF(!read_number(&text, &number), false);
  *dtype = (tegula_dtype){.kind = kind, .item_size = number};
  if (kind == 'M' || kind == 'm') return read_unit(text, dtype);
  RETURN_IF(*text != '\0' || (kind == 'U' && number > INT32_MAX / 4), false);
  if (kind == 'U') dtype->item_size = number * 4;
  return true;
}

static tegula_status refuse(const char *text, const char *body, const tegula_dtype *dtype,
                            bool known, tegula_error *err) {
  if (body[0] == 'O' || strcmp(body, "object") == 0)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "cannot hold dtype \"%.60s\": pickled Python objects", text);
  if (body[0] == 'g' || strcmp(body, "longdouble") == 0 ||
      (known && (dtype->kind == 'f' || dtype->kind == 'c') && dtype->item_size > 8))
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "cannot hold dtype \"%.60s\": long double has no fixed layout", text);
  if (known && dtype->item_size == 0)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "cannot hold dtype \"%.60s\": its items have no bytes", text);
  return tegula__hint(
      err, tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "unknown dtype \"%.60s\"", text),
      "numpy's texts are understood, such as f4, <i8, |b1, c16, M8[ns], S10, U5, V12, and "
      "bfloat16");
}

tegula_status tegula_dtype_parse(const char *text, tegula_dtype *out, tegula_error *err) {
  if (text == NULL || out == NULL)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "dtype text or result is NULL");
  const char *body = text;
  char order = '=';
  if (*body != '\0' && strchr("<>=|", *body) != NULL) order = *body++;
  tegula_dtype dtype = {0};
  bool known = read_long_name(body, &dtype) || read_typestr(body, &dtype);
  if (!known || !size_fits_kind(dtype.kind, dtype.item_size))
    return refuse(text, body, &dtype, known, err);
  dtype = tegula_dtype_native(dtype);
  if (dtype.order != '|' && (order == '<' || order == '>')) dtype.order = (uint8_t)order;
  *out = dtype;
  return TEGULA_OK;
}
