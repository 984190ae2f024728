/* The table of formats.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A new format is one row here. The order matters where two of them could take the same file: the
 * first one wins. */
#include <stdio.h>
#include <string.h>

#include "format/format_priv.h"

static const tegula__format *const formats[] = {&tegula__format_npy, &tegula__format_raw,
                                                &tegula__format_hdf5, &tegula__format_manifest};

#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

const tegula__format *tegula__format_at(size_t index) {
  return index < FORMAT_COUNT ? formats[index] : NULL;
}

const tegula__format *tegula__format_by_name(const char *name) {
  for (size_t i = 0; i < FORMAT_COUNT; i++) {
    if (strcmp(formats[i]->name, name) == 0) return formats[i];
  }
  return NULL;
}

const tegula__format *tegula__format_by_content(const void *head, size_t size) {
  for (size_t i = 0; i < FORMAT_COUNT; i++) {
    const tegula__format *format = formats[i];
    if (format->magic != NULL && size >= format->magic_size &&
        memcmp(head, format->magic, format->magic_size) == 0)
      return format;
    if (format->recognise != NULL && format->recognise(head, size)) return format;
  }
  return NULL;
}

tegula_status tegula__format_by_rest(const tegula__source *source, const tegula__format **out,
                                     tegula_error *err) {
  *out = NULL;
  for (size_t i = 0; i < FORMAT_COUNT && *out == NULL; i++) {
    bool found = false;
    if (formats[i]->recognise_rest == NULL) continue;
    FORWARD(formats[i]->recognise_rest(source, &found, err));
    if (found) *out = formats[i];
  }
  return TEGULA_OK;
}

const tegula__format *tegula__format_by_suffix(const char *path) {
  size_t length = strlen(path);
  for (size_t i = 0; i < FORMAT_COUNT; i++) {
    for (const char *const *at = formats[i]->suffixes; at != NULL && *at != NULL; at++) {
      size_t suffix = strlen(*at);
      if (length > suffix && strcmp(path + length - suffix, *at) == 0) return formats[i];
    }
  }
  return NULL;
}

void tegula__format_names(char *out, size_t size) {
  size_t used = 0;
  if (size > 0) out[0] = '\0';
  for (size_t i = 0; i < FORMAT_COUNT && used < size; i++) {
    int wrote = snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", formats[i]->name);
    if (wrote < 0) return;
    used += (size_t)wrote;
  }
}
