/* Settings against the tables of the formats.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "format/settings.h"

#include <stdio.h>
#include <string.h>

#include "format/format.h"

static const tegula__setting_row *find_row(const char *key) {
  const tegula__format *format;
  for (size_t i = 0; (format = tegula__format_at(i)) != NULL; i++)
    for (const tegula__setting_row *row = format->settings; row != NULL && row->key != NULL; row++)
      if (strcmp(row->key, key) == 0) return row;
  return NULL;
}

/* "raw.row_prefix, raw.row_suffix": the keys that there are for a use. */
static void list_keys(unsigned use, char *out, size_t size) {
  const tegula__format *format;
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; (format = tegula__format_at(i)) != NULL; i++)
    for (const tegula__setting_row *row = format->settings; row != NULL && row->key != NULL;
         row++) {
      if ((row->uses & use) == 0 || used >= size) continue;
      int wrote = snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", row->key);
      used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static bool is_choice(const char *choices, const char *text) {
  size_t wanted = strlen(text);
  for (const char *at = choices; at != NULL && *at != '\0';) {
    size_t length = strcspn(at, "|");
    if (length == wanted && memcmp(at, text, length) == 0) return true;
    at += length + (at[length] == '|');
  }
  return false;
}

static tegula_status check_value(const tegula__setting_row *row, const char *value,
                                 tegula_error *err) {
  int64_t number;
  if ((row->number && tegula__setting_number(value, &number)) || is_choice(row->choices, value))
    return TEGULA_OK;
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                      "setting %s: expected %s%s%s, found \"%.100s\"", row->key,
                      row->number ? "a whole number from 0 on" : "",
                      row->number && row->choices != NULL ? " or " : "",
                      row->choices != NULL ? row->choices : "", value);
}

/* A key that is given twice must have one value. */
static tegula_status check_twice(const tegula__settings *settings, int32_t at, tegula_error *err) {
  const tegula_setting *one = &settings->items[at];
  for (int32_t i = 0; i < at; i++) {
    const tegula_setting *other = &settings->items[i];
    if (strcmp(one->key, other->key) == 0 && strcmp(one->value, other->value) != 0)
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                          "setting %s is given twice, as \"%.100s\" and as \"%.100s\"", one->key,
                          other->value, one->value);
  }
  return TEGULA_OK;
}

static tegula_status check_one(const tegula__settings *settings, int32_t at, unsigned use,
                               tegula_error *err) {
  const tegula_setting *one = &settings->items[at];
  const char *what = use == TEGULA__SETTING_OPEN ? "opening" : "saving";
  if (one->key == NULL || one->value == NULL)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "a setting has no key or no value");
  const tegula__setting_row *row = find_row(one->key);
  if (row == NULL || (row->uses & use) == 0) {
    char keys[512];
    list_keys(use, keys, sizeof keys);
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                                     row == NULL ? "there is no setting \"%.100s\" for %s"
                                                 : "setting %.100s is not for %s",
                                     one->key, what),
                        "known settings: %s", keys);
  }
  FORWARD(check_value(row, one->value, err));
  return check_twice(settings, at, err);
}

tegula_status tegula__settings_check(const tegula__settings *settings, unsigned use,
                                     tegula_error *err) {
  if (settings->count < 0 || (settings->count > 0 && settings->items == NULL))
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "setting_count is %d, but settings is NULL or the count is negative",
                        settings->count);
  for (int32_t i = 0; i < settings->count; i++) FORWARD(check_one(settings, i, use, err));
  return TEGULA_OK;
}

tegula_status tegula__settings_check_format(const tegula__settings *settings, const char *format,
                                            const char *path, tegula_error *err) {
  size_t length = strlen(format);
  for (int32_t i = 0; i < settings->count; i++) {
    const char *key = settings->items[i].key;
    if (strncmp(key, format, length) == 0 && key[length] == '.') continue;
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_INVALID_ARGUMENT, path, -1,
                                     "setting %s is for %.*s files, but the format of \"%s\" is %s",
                                     key, (int)strcspn(key, "."), key, path, format),
                        "leave %s out, or say another format", key);
  }
  return TEGULA_OK;
}

int32_t tegula__settings_for(const tegula__settings *settings, unsigned use, tegula_setting *out) {
  int32_t count = 0;
  for (int32_t i = 0; i < settings->count; i++)
    if ((find_row(settings->items[i].key)->uses & use) != 0) out[count++] = settings->items[i];
  return count;
}
