/* JSON in and out. The only file of the library that knows jansson.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Depth is counted before jansson sees the text, because jansson parses by recursion and the stack
 * may be that of a small thread. */
#include "base/json.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- parse ---- */

/* The deepest nesting of lists and objects; texts are skipped. Wrong only for what is no JSON
 * anyway. */
static int64_t deepest(const char *text, size_t size, size_t *where) {
  int64_t depth = 0, most = 0;
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '"') {
      for (i++; i < size && text[i] != '"'; i++)
        if (text[i] == '\\') i++;
    } else if (text[i] == '[' || text[i] == '{') {
      if (++depth > most) {
        most = depth;
        *where = i;
      }
    } else if (text[i] == ']' || text[i] == '}') {
      depth--;
    }
    if (most > TEGULA__JSON_DEPTH) break;
  }
  return most;
}

static tegula_status parse_failed(const json_error_t *reason, const char *file, size_t size,
                                  tegula_error *err) {
  if (json_error_code(reason) == json_error_out_of_memory)
    return tegula__out_of_memory(err, (int64_t)size);
  return tegula__fail(err, TEGULA_CORRUPT, file, reason->position,
                      "\"%s\" is no valid JSON: line %d, column %d: %s", file, reason->line,
                      reason->column, reason->text);
}

tegula_status tegula__json_parse(const void *text, size_t size, size_t maximum, const char *file,
                                 tegula__json *out, tegula_error *err) {
  if (size > maximum)
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, file, -1,
                        "\"%s\" is too long: expected at most %zu bytes of JSON, found %zu", file,
                        maximum, size);
  size_t where = 0;
  if (deepest(text, size, &where) > TEGULA__JSON_DEPTH)
    return tegula__fail(err, TEGULA_CORRUPT, file, (int64_t)where,
                        "\"%s\" is too deep: more than %d lists and objects inside one another",
                        file, TEGULA__JSON_DEPTH);
  json_error_t reason;
  json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &reason);
  if (root == NULL) return parse_failed(&reason, file, size, err);
  *out = (tegula__json){.value = root, .file = file};
  tegula_status status = tegula__json_expect(out, TEGULA__JSON_OBJECT, err);
  if (status != TEGULA_OK) tegula__json_free(out);
  return status;
}

void tegula__json_free(tegula__json *document) {
  json_decref((json_t *)document->value);
  *document = (tegula__json){0};
}

/* ---- walk ---- */

tegula__json_kind tegula__json_kind_of(const tegula__json *value) {
  if (value->value == NULL) return TEGULA__JSON_ABSENT;
  switch (json_typeof((const json_t *)value->value)) {
    case JSON_OBJECT:
      return TEGULA__JSON_OBJECT;
    case JSON_ARRAY:
      return TEGULA__JSON_LIST;
    case JSON_STRING:
      return TEGULA__JSON_TEXT;
    case JSON_INTEGER:
      return TEGULA__JSON_INTEGER;
    case JSON_REAL:
      return TEGULA__JSON_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
      return TEGULA__JSON_BOOL;
    case JSON_NULL:
      break;
  }
  return TEGULA__JSON_NULL;
}

int64_t tegula__json_count(const tegula__json *value) {
  const json_t *json = value->value;
  return (int64_t)(json_is_array(json) ? json_array_size(json) : json_object_size(json));
}

tegula__json tegula__json_member(const tegula__json *object, const char *key) {
  return (tegula__json){.value = json_object_get(object->value, key),
                        .file = object->file,
                        .parent = object,
                        .key = key};
}

tegula__json tegula__json_item(const tegula__json *list, int64_t index) {
  return (tegula__json){.value = json_array_get(list->value, (size_t)index),
                        .file = list->file,
                        .parent = list,
                        .index = index};
}

bool tegula__json_next(const tegula__json *object, tegula__json *member) {
  /* jansson's iterators are not const; nothing is changed */
  json_t *json = (json_t *)object->value;
  void *at = member->key == NULL
                 ? json_object_iter(json)
                 : json_object_iter_next(json, json_object_key_to_iter(member->key));
  RETURN_IF(at == NULL, false);
  *member = (tegula__json){.value = json_object_iter_value(at),
                           .file = object->file,
                           .parent = object,
                           .key = json_object_iter_key(at)};
  return true;
}

/* ---- messages ---- */

void tegula__json_way(const tegula__json *value, char out[TEGULA__JSON_WAY]) {
  char tail[TEGULA__JSON_WAY] = "", longer[2 * TEGULA__JSON_WAY];
  for (; value->parent != NULL; value = value->parent) {
    const char *dot = tail[0] == '\0' || tail[0] == '[' ? "" : ".";
    if (value->key != NULL)
      snprintf(longer, sizeof longer, "%.60s%s%s", value->key, dot, tail);
    else
      snprintf(longer, sizeof longer, "[%lld]%s%s", (long long)value->index, dot, tail);
    snprintf(tail, sizeof tail, "%.*s", TEGULA__JSON_WAY - 1, longer);
  }
  snprintf(out, TEGULA__JSON_WAY, "%s", tail[0] != '\0' ? tail : "the document");
}

enum { FOUND_TEXT = 96 };

/* What is there, in words. */
static void say_found(const tegula__json *value, char out[FOUND_TEXT]) {
  const json_t *json = value->value;
  long long count = (long long)tegula__json_count(value);
  switch (tegula__json_kind_of(value)) {
    case TEGULA__JSON_ABSENT:
      snprintf(out, FOUND_TEXT, "missing");
      break;
    case TEGULA__JSON_NULL:
      snprintf(out, FOUND_TEXT, "null");
      break;
    case TEGULA__JSON_BOOL:
      snprintf(out, FOUND_TEXT, json_is_true(json) ? "true" : "false");
      break;
    case TEGULA__JSON_INTEGER:
      snprintf(out, FOUND_TEXT, "%lld", (long long)json_integer_value(json));
      break;
    case TEGULA__JSON_REAL:
      snprintf(out, FOUND_TEXT, "the number %.17g", json_real_value(json));
      break;
    case TEGULA__JSON_TEXT:
      snprintf(out, FOUND_TEXT, "the text \"%.60s\"", json_string_value(json));
      break;
    case TEGULA__JSON_LIST:
      snprintf(out, FOUND_TEXT, "a list of %lld", count);
      break;
    case TEGULA__JSON_OBJECT:
      snprintf(out, FOUND_TEXT, "an object of %lld", count);
      break;
  }
}

tegula_status tegula__json_wrong(const tegula__json *value, tegula_error *err, const char *format,
                                 ...) {
  char way[TEGULA__JSON_WAY], found[FOUND_TEXT], expected[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(expected, sizeof expected, format, arguments);
  va_end(arguments);
  tegula__json_way(value, way);
  say_found(value, found);
  return tegula__fail(err, TEGULA_CORRUPT, value->file, -1, "\"%s\": %s is %s, expected %s",
                      value->file, way, found, expected);
}

/* ---- getters ---- */

static const char *const kind_names[] = {"nothing",  "null",   "true or false", "an integer",
                                         "a number", "a text", "a list",        "an object"};

tegula_status tegula__json_expect(const tegula__json *value, tegula__json_kind kind,
                                  tegula_error *err) {
  return tegula__json_kind_of(value) == kind
             ? TEGULA_OK
             : tegula__json_wrong(value, err, "%s", kind_names[kind]);
}

tegula_status tegula__json_integer(const tegula__json *value, int64_t minimum, int64_t maximum,
                                   int64_t *out, tegula_error *err) {
  if (tegula__json_kind_of(value) == TEGULA__JSON_INTEGER) {
    int64_t found = json_integer_value(value->value);
    if (found >= minimum && found <= maximum) {
      *out = found;
      return TEGULA_OK;
    }
  }
  if (maximum == INT64_MAX)
    return tegula__json_wrong(value, err, "an integer of %lld or more", (long long)minimum);
  return tegula__json_wrong(value, err, "an integer of %lld to %lld", (long long)minimum,
                            (long long)maximum);
}

tegula_status tegula__json_text(const tegula__json *value, const char **out, tegula_error *err) {
  const char *text = json_string_value(value->value);
  if (text == NULL || text[0] == '\0')
    return tegula__json_wrong(value, err, "a text that is not empty");
  *out = text; /* without NUL inside: jansson refuses them */
  return TEGULA_OK;
}

tegula_status tegula__json_lengths(const tegula__json *value, int64_t least, int64_t most,
                                   bool alone, int64_t *out, int32_t *count, tegula_error *err) {
  if (alone && tegula__json_kind_of(value) == TEGULA__JSON_INTEGER) {
    *count = 1;
    return tegula__json_integer(value, 0, INT64_MAX, out, err);
  }
  int64_t found = tegula__json_count(value);
  if (tegula__json_kind_of(value) != TEGULA__JSON_LIST || found < least || found > most)
    return least == most
               ? tegula__json_wrong(value, err, "a list of %lld integers", (long long)least)
               : tegula__json_wrong(value, err, "a list of %lld to %lld integers", (long long)least,
                                    (long long)most);
  for (int64_t i = 0; i < found; i++) {
    tegula__json item = tegula__json_item(value, i);
    FORWARD(tegula__json_integer(&item, 0, INT64_MAX, &out[i], err));
  }
  *count = (int32_t)found;
  return TEGULA_OK;
}

static bool is_known(const char *key, const char *const *known) {
  if (key[0] == '_' || strncmp(key, "x-", 2) == 0) return true;
  for (; *known != NULL; known++)
    if (strcmp(key, *known) == 0) return true;
  return false;
}

tegula_status tegula__json_only(const tegula__json *object, const char *const *known,
                                tegula_error *err) {
  tegula__json member = {0};
  while (tegula__json_next(object, &member)) {
    if (is_known(member.key, known)) continue;
    char way[TEGULA__JSON_WAY];
    tegula__json_way(&member, way);
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_CORRUPT, object->file, -1,
                                     "\"%s\": %s is no key that is known here", object->file, way),
                        "correct it, or begin it with _ or x- when it is not meant for tegula");
  }
  return TEGULA_OK;
}

/* ---- writing ---- */

/* Bytes of the UTF-8 character at `at`, which ends with a zero byte; 0 when it is none. */
static size_t character_bytes(const unsigned char *at) {
  if (at[0] < 0x80) return 1;
  size_t bytes = at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : at[0] < 0xF5 ? 4 : 0;
  for (size_t i = 1; i < bytes; i++)
    if ((at[i] & 0xC0) != 0x80) return 0;
  bool overlong = (at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xF0 && at[1] < 0x90);
  /* surrogates; above U+10FFFF */
  bool no_character = (at[0] == 0xED && at[1] >= 0xA0) || (at[0] == 0xF4 && at[1] >= 0x90);
  return overlong || no_character ? 0 : bytes;
}

/* Without memory of its own: the lack of it must not look like a name that is no text. */
bool tegula__json_is_text(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  for (size_t bytes; *at != '\0'; at += bytes) {
    bytes = character_bytes(at);
    if (bytes == 0) return false;
  }
  return true;
}

bool tegula__json_write_numbers(tegula__buffer *buffer, const int64_t *numbers, int32_t count) {
  bool good = tegula__buffer_append(buffer, "[", 1);
  for (int32_t i = 0; good && i < count; i++)
    good = tegula__buffer_printf(buffer, i > 0 ? ", %lld" : "%lld", (long long)numbers[i]);
  return good && tegula__buffer_append(buffer, "]", 1);
}
