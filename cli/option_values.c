/* From the text of one option, or of a variable of the environment, to its value.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbers are read strictly: the whole text, within the range, no overflow. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_options.h"
#include "cli_report.h"

#define MAX_SECONDS 1e9

/* A whole number in decimal digits, nothing else; 0 when it is none or is out of range. */
static int parse_integer(const char *text, size_t length, int64_t minimum, int64_t maximum,
                         int64_t *out) {
  int64_t value = 0;
  if (length == 0) {
    return 0;
  }
  for (size_t at = 0; at < length; at++) {
    if (text[at] < '0' || text[at] > '9' || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, text[at] - '0', &value)) {
      return 0;
    }
  }
  *out = value;
  return value >= minimum && value <= maximum;
}

/* "256M": a whole number of bytes, or of units of 2^10, 2^20, 2^30, 2^40. */
static int parse_bytes(const char *text, int64_t minimum, int64_t maximum, int64_t *out) {
  static const char units[] = "KMGT";
  size_t length = strlen(text);
  const char *unit = length > 0 ? strchr(units, text[length - 1]) : NULL;
  if (unit == NULL || text[length - 1] == '\0') {
    return parse_integer(text, length, minimum, maximum, out);
  }
  int64_t factor = INT64_C(1) << (10 * (unit - units + 1));
  return parse_integer(text, length - 1, 0, INT64_MAX, out) &&
         !__builtin_mul_overflow(*out, factor, out) && *out >= minimum && *out <= maximum;
}

/* Digits with at most one point: no exponent, no sign, no "inf". */
static int parse_seconds(const char *text, double *out) {
  size_t digits = strspn(text, "0123456789");
  const char *rest = text + digits;
  if (*rest == '.') {
    size_t more = strspn(rest + 1, "0123456789");
    digits += more;
    rest += 1 + more;
  }
  if (digits == 0 || *rest != '\0') {
    return 0;
  }
  *out = strtod(text, NULL);
  return *out > 0 && *out <= MAX_SECONDS;
}

static int parse_shape(const char *text, int64_t minimum, shape_value *out) {
  shape_value shape = {.ndim = 0};
  int more = strcmp(text, "()") != 0;
  while (more) {
    size_t length = strcspn(text, ",");
    if (shape.ndim == TEGULA_MAX_DIMS ||
        !parse_integer(text, length, minimum, INT64_MAX, &shape.length[shape.ndim])) {
      return 0;
    }
    shape.ndim++;
    more = text[length] == ',';
    text += length + 1;
  }
  *out = shape;
  return 1;
}

/* A number from `least` on, or nothing, up to a colon or the end of the text; moves both behind
 * it. */
static int take_number(const char **text, size_t *length, int64_t least, int64_t *out) {
  const char *colon = memchr(*text, ':', *length);
  size_t digits = colon != NULL ? (size_t)(colon - *text) : *length;
  int good = digits == 0 || parse_integer(*text, digits, least, INT64_MAX, out);
  *text += digits;
  *length -= digits;
  return good;
}

/* The colon in front of a further number. */
static int take_colon(const char **text, size_t *length) {
  int there = *length > 0 && **text == ':';
  *text += there;
  *length -= (size_t)there;
  return there;
}

/* "lo:hi" or "lo:hi:step", where each number may be left out. */
static int parse_range(const char *text, size_t length, int64_t *lo, int64_t *hi, int64_t *step) {
  *lo = 0;
  *hi = -1;
  *step = 1;
  return take_number(&text, &length, 0, lo) && take_colon(&text, &length) &&
         take_number(&text, &length, 0, hi) && (*hi == -1 || *lo <= *hi) &&
         (!take_colon(&text, &length) || take_number(&text, &length, 1, step)) && length == 0;
}

static int parse_box(const char *text, box_value *out) {
  box_value box = {.ndim = 0};
  for (int more = 1; more;) {
    size_t length = strcspn(text, ",");
    if (box.ndim == TEGULA_MAX_DIMS ||
        !parse_range(text, length, &box.lo[box.ndim], &box.hi[box.ndim], &box.step[box.ndim])) {
      return 0;
    }
    box.ndim++;
    more = text[length] == ',';
    text += length + 1;
  }
  *out = box;
  return 1;
}

static int is_choice(const char *choices, const char *text) {
  size_t wanted = strlen(text);
  for (const char *at = choices;;) {
    size_t length = strcspn(at, "|");
    if (length == wanted && memcmp(at, text, length) == 0) {
      return 1;
    }
    if (at[length] == '\0') {
      return 0;
    }
    at += length + 1;
  }
}

/* What a value of this option must be, for the message. */
static const char *expectation(const cli_option *row, char out[128]) {
  switch (row->kind) {
    case OPTION_INTEGER:
      snprintf(out, 128, "a whole number from %" PRId64 " to %" PRId64, row->minimum, row->maximum);
      break;
    case OPTION_BYTES:
      snprintf(out, 128, "a number of bytes from %" PRId64 " on, also as 64M (K, M, G, T)",
               row->minimum);
      break;
    case OPTION_SECONDS:
      snprintf(out, 128, "a number of seconds above 0, up to %.0f", MAX_SECONDS);
      break;
    case OPTION_SHAPE:
      snprintf(out, 128, "up to %d whole numbers from %" PRId64 " on, separated by commas",
               TEGULA_MAX_DIMS, row->minimum);
      break;
    case OPTION_SET:
      snprintf(out, 128, "KEY=VALUE, at most %d of them", MAX_SETTINGS);
      break;
    case OPTION_BOX:
      snprintf(out, 128,
               "lo:hi or lo:hi:step per axis, 0 <= lo <= hi, 1 <= step, separated by commas");
      break;
    case OPTION_CHOICE:
      snprintf(out, 128, "one of %s", row->argument);
      break;
    default:
      snprintf(out, 128, "a text that is not empty");
      break;
  }
  return out;
}

/* Adds a setting; 0 when there is no room, or no key or value. */
static int add_setting(setting_list *list, const char *key, size_t length, const char *value) {
  if (list->count == MAX_SETTINGS || length == 0 || length >= sizeof list->keys[0] ||
      value[0] == '\0') {
    return 0;
  }
  memcpy(list->keys[list->count], key, length);
  list->keys[list->count][length] = '\0';
  list->values[list->count++] = value;
  return 1;
}

/* "KEY=VALUE" */
static int parse_setting(const char *text, setting_list *list) {
  size_t length = strcspn(text, "=");
  return text[length] == '=' && add_setting(list, text, length, text + length + 1);
}

/* The setting of a flag: "to-record-markers" is raw.record_markers. */
static int flag_setting(const cli_option *row, const char *text, setting_list *list) {
  char key[48];
  const char *name = strncmp(row->name, "to-", 3) == 0 ? row->name + 3 : row->name;
  int length = snprintf(key, sizeof key, "raw.%s", name);
  for (char *at = key; *at != '\0'; at++) {
    *at = *at == '-' ? '_' : *at;
  }
  return length > 0 && add_setting(list, key, (size_t)length, text);
}

const tegula_setting *options_settings(setting_list *list) {
  for (int32_t i = 0; i < list->count; i++) {
    list->items[i] = (tegula_setting){list->keys[i], list->values[i]};
  }
  return list->items;
}

/* What stands in the description of a record the library checks. */
static int is_dtype(const char *text) {
  tegula_dtype dtype;
  return text[0] == '[' || tegula_dtype_parse(text, &dtype, NULL) == TEGULA_OK;
}

int options_store_value(const cli_option *row, const char *text, cli_settings *values) {
  void *field = (char *)values + row->field;
  switch (row->kind) {
    case OPTION_INTEGER:
      return parse_integer(text, strlen(text), row->minimum, row->maximum, field);
    case OPTION_BYTES:
      return parse_bytes(text, row->minimum, row->maximum, field);
    case OPTION_SECONDS:
      return parse_seconds(text, field);
    case OPTION_SHAPE:
      return parse_shape(text, row->minimum, field);
    case OPTION_BOX:
      return parse_box(text, field);
    case OPTION_SET:
      return parse_setting(text, field);
    case OPTION_KEY:
      return flag_setting(row, text, field);
    case OPTION_CHOICE:
      memcpy(field, &text, sizeof text);
      return is_choice(row->argument, text);
    case OPTION_DTYPE:
      memcpy(field, &text, sizeof text);
      return is_dtype(text);
    default:
      memcpy(field, &text, sizeof text);
      return text[0] != '\0';
  }
}

tegula_status options_wrong_value(const cli_command *command, const cli_option *row,
                                  const char *text, tegula_error *error) {
  char expected[128];
  tegula_error reason;
  tegula_dtype dtype;
  if (row->kind == OPTION_DTYPE && text[0] != '\0' &&
      tegula_dtype_parse(text, &dtype, &reason) != TEGULA_OK) {
    return report_usage(error, command->name, "option --%s: cannot take \"%s\": %s", row->name,
                        text, reason.message);
  }
  return report_usage(error, command->name, "option --%s: expected %s, found \"%s\"", row->name,
                      expectation(row, expected), text);
}

tegula_status options_environment(cli_settings *values, tegula_error *error) {
  const char *threads = getenv("TEGULA_THREADS"), *timeout = getenv("TEGULA_TIMEOUT");
  if (threads != NULL && values->threads == 0 &&
      !parse_integer(threads, strlen(threads), 1, MAX_THREADS, &values->threads)) {
    return report_usage(
        error, "",
        "environment variable TEGULA_THREADS: expected a whole number from 1 to %d, found \"%s\"",
        MAX_THREADS, threads);
  }
  if (timeout != NULL && values->timeout <= 0 && !parse_seconds(timeout, &values->timeout)) {
    return report_usage(
        error, "",
        "environment variable TEGULA_TIMEOUT: expected a number of seconds above 0, found \"%s\"",
        timeout);
  }
  return TEGULA_OK;
}
