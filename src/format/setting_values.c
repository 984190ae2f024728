/* The values of settings that were checked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "format/settings.h"

bool tegula__setting_number(const char *text, int64_t *out) {
  int64_t value = 0;
  if (*text == '\0') return false;
  for (; *text != '\0'; text++)
    if (*text < '0' || *text > '9' || !tegula__mul(value, 10, &value) ||
        !tegula__add(value, *text - '0', &value))
      return false;
  *out = value;
  return true;
}

const char *tegula__settings_find(const tegula__settings *settings, const char *key) {
  for (int32_t i = 0; i < settings->count; i++)
    if (strcmp(settings->items[i].key, key) == 0) return settings->items[i].value;
  return NULL;
}

int64_t tegula__settings_number(const tegula__settings *settings, const char *key,
                                int64_t otherwise) {
  const char *text = tegula__settings_find(settings, key);
  int64_t value;
  return text != NULL && tegula__setting_number(text, &value) ? value : otherwise;
}
