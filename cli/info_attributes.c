/* `tegula info --attributes`: what is noted on an HDF5 file and its datasets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_report.h"
#include "commands.h"

enum { MOST_SHOWN = 200 }; /* bytes of a value that is printed as text */

typedef struct attribute_listing {
  json_t *all;
  int no_memory;
} attribute_listing;

/* ---- one element as JSON ---- */

static double from_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value =
      ldexp(exponent != 0 ? 1024 + mantissa : mantissa, (exponent != 0 ? exponent : 1) - 25);
  if (exponent == 31) {
    value = mantissa != 0 ? NAN : INFINITY;
  }
  return copysign(value, (bits & 0x8000) != 0 ? -1 : 1);
}

static json_t *float_json(double value) {
  if (isnan(value)) {
    return json_string("NaN");
  }
  return isinf(value) ? json_string(value > 0 ? "Infinity" : "-Infinity") : json_real(value);
}

static json_t *float_at(tegula_dtype dtype, size_t size, const char *at) {
  uint16_t half;
  float single;
  double value = 0;
  if (size == 8) {
    memcpy(&value, at, size);
  } else if (size == 4) {
    memcpy(&single, at, size);
    value = single;
  } else {
    memcpy(&half, at, sizeof half);
    uint32_t wide = (uint32_t)half << 16;
    memcpy(&single, &wide, sizeof single);
    value = dtype.kind == 'E' ? single : from_half(half);
  }
  return float_json(value);
}

#define INTEGER_CASE(bytes, type)                                                                  \
  case bytes: {                                                                                    \
    type value;                                                                                    \
    memcpy(&value, at, sizeof value);                                                              \
    return json_integer((json_int_t)value);                                                        \
  }

static json_t *signed_at(size_t size, const char *at) {
  switch (size) {
    INTEGER_CASE(1, int8_t)
    INTEGER_CASE(2, int16_t)
    INTEGER_CASE(4, int32_t)
    INTEGER_CASE(8, int64_t)
    default:
      return json_null();
  }
}

static json_t *unsigned_at(size_t size, const char *at) {
  uint64_t wide;
  char text[32];
  switch (size) {
    INTEGER_CASE(1, uint8_t)
    INTEGER_CASE(2, uint16_t)
    INTEGER_CASE(4, uint32_t)
    case 8:
      memcpy(&wide, at, sizeof wide);
      snprintf(text, sizeof text, "%" PRIu64, wide);
      return wide <= INT64_MAX ? json_integer((json_int_t)wide) : json_string(text);
    default:
      return json_null();
  }
}

static json_t *element(const tegula_attribute *attribute, tegula_dtype dtype, int64_t index) {
  if (attribute->texts != NULL) {
    return report_text(attribute->texts[index]);
  }
  const char *at = (const char *)attribute->values + (size_t)index * dtype.item_size;
  size_t half = dtype.item_size / 2;
  switch (dtype.kind) {
    case 'b':
      return json_boolean(*at != 0);
    case 'i':
      return signed_at(dtype.item_size, at);
    case 'u':
      return unsigned_at(dtype.item_size, at);
    case 'f':
    case 'E':
      return float_at(dtype, dtype.item_size, at);
    case 'c':
      return json_pack("[o, o]", float_at(dtype, half, at), float_at(dtype, half, at + half));
    default:
      return json_null();
  }
}

/* The values from `*index` on, as lists along the axes from `axis` on. */
static json_t *nested(const tegula_attribute *attribute, tegula_dtype dtype, int32_t axis,
                      int64_t *index) {
  if (axis == attribute->ndim) {
    return element(attribute, dtype, (*index)++);
  }
  json_t *list = json_array();
  for (int64_t i = 0; list != NULL && i < attribute->shape[axis]; i++) {
    if (json_array_append_new(list, nested(attribute, dtype, axis + 1, index)) != 0) {
      json_decref(list);
      return NULL;
    }
  }
  return list;
}

static json_t *value_of(const tegula_attribute *attribute) {
  tegula_dtype dtype = {0};
  int64_t index = 0;
  if (attribute->omitted != NULL || attribute->shape == NULL) {
    return json_null();
  }
  if (attribute->count == 0) {
    return json_array();
  }
  if (attribute->texts == NULL && tegula_dtype_parse(attribute->type, &dtype, NULL) != TEGULA_OK) {
    return json_null();
  }
  return nested(attribute, dtype, 0, &index);
}

/* ---- all of them ---- */

static int take(void *state, const tegula_attribute *attribute) {
  attribute_listing *l = state;
  json_t *object = report_text(attribute->object), *shape = NULL, *one = NULL;
  const char *key = json_string_value(object);
  json_t *list = key != NULL ? json_object_get(l->all, key) : NULL;
  if (key != NULL && list == NULL && json_object_set_new(l->all, key, json_array()) == 0) {
    list = json_object_get(l->all, key);
  }
  shape = attribute->shape != NULL ? report_shape(attribute->shape, attribute->ndim) : json_null();
  one = json_pack("{s:o, s:o, s:o, s:o}", "name", report_text(attribute->name), "dtype",
                  report_text(attribute->type), "shape", shape, "value", value_of(attribute));
  int good =
      one != NULL && (attribute->omitted == NULL ||
                      json_object_set_new(one, "omitted", report_text(attribute->omitted)) == 0);
  l->no_memory = !good || list == NULL || json_array_append(list, one) != 0;
  json_decref(one);
  json_decref(object);
  return l->no_memory;
}

tegula_status info_attributes(cli_job *job, json_t **out) {
  attribute_listing l = {json_object(), 0};
  tegula_open_options options;
  open_fill_options(job, NULL, &options);
  if (l.all == NULL) {
    return report_no_memory(&job->error);
  }
  tegula_status status =
      tegula_attributes(job->context, job->settings.paths[0], &options, take, &l, &job->error);
  if (l.no_memory) {
    status = report_no_memory(&job->error);
  }
  if (status != TEGULA_OK) {
    json_decref(l.all);
    return status;
  }
  *out = l.all;
  return TEGULA_OK;
}

tegula_status info_take_attributes(cli_job *job, json_t *all, const char *object, json_t *report) {
  const char *key;
  json_t *one, *list = object != NULL ? json_object_get(all, object) : NULL;
  json_object_foreach(all, key, one) {
    if (object == NULL && strcmp(key, "/") != 0) {
      list = one;
    }
  }
  int failed = list != NULL ? json_object_set(report, "attributes", list)
                            : json_object_set_new(report, "attributes", json_array());
  return failed == 0 ? TEGULA_OK : report_no_memory(&job->error);
}

tegula_status info_add_groups(cli_job *job, json_t *all, json_t *report) {
  const char *key;
  json_t *list, *groups = json_array();
  int good = groups != NULL;
  json_object_foreach(all, key, list) {
    json_t *one = json_pack("{s:s, s:O}", "name", key, "attributes", list);
    good = good && json_array_append_new(groups, one) == 0;
  }
  good = good && json_object_set(report, "groups", groups) == 0;
  json_decref(groups);
  return good ? TEGULA_OK : report_no_memory(&job->error);
}

/* The value, cut when it is long; nothing is cut in the middle of a character. */
static void print_value(const json_t *attribute) {
  char *text = report_dump(json_object_get(attribute, "value"),
                           JSON_ENCODE_ANY | JSON_REAL_PRECISION(REPORT_EXACT_DIGITS));
  size_t length = text != NULL ? strlen(text) : 0,
         shown = length <= MOST_SHOWN ? length : MOST_SHOWN;
  while (shown > 0 && shown < length && ((unsigned char)text[shown] & 0xc0) == 0x80) {
    shown--;
  }
  printf("%.*s%s", (int)shown, text != NULL ? text : "?", shown < length ? "..." : "");
  free(text);
}

void info_print_attributes(const json_t *report) {
  const json_t *list = json_object_get(report, "attributes");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i), *shape = json_object_get(one, "shape");
    const char *omitted = json_string_value(json_object_get(one, "omitted"));
    char *name = report_dump(json_object_get(one, "name"), JSON_ENCODE_ANY),
         *lengths = report_dump(shape, JSON_ENCODE_ANY | JSON_COMPACT);
    printf("attr    %s: %s", name != NULL ? name : "?",
           json_string_value(json_object_get(one, "dtype")));
    if (json_array_size(shape) > 0) {
      printf(" %s", lengths != NULL ? lengths : "?");
    }
    if (omitted != NULL) {
      printf("; %s", omitted);
    } else if (json_is_null(shape)) {
      printf(", empty");
    } else {
      printf(" = ");
      print_value(one);
    }
    printf("\n");
    free(name);
    free(lengths);
  }
}

void info_print_groups(const json_t *report) {
  const json_t *groups = json_object_get(report, "groups");
  for (size_t i = 0; i < json_array_size(groups); i++) {
    const json_t *one = json_array_get(groups, i);
    report_line(stdout, "group   ", json_string_value(json_object_get(one, "name")));
    info_print_attributes(one);
  }
}
