/* The table of formats, and the one way in which they read bytes.
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

tegula_status tegula__source_read(const tegula__source *source, int64_t offset, void *out,
                                  size_t size, tegula_error *err) {
  int64_t end = 0;
  bool inside =
      size <= INT64_MAX && tegula__add(offset, (int64_t)size, &end) && end <= source->size;
  if (!inside) {
    return tegula__fail(
        err, TEGULA_SHORT_FILE, source->path, offset,
        "\"%s\" is too short: expected at least %zu bytes at offset %lld, found %lld", source->path,
        size, (long long)offset, (long long)tegula__max(0, source->size - offset));
  }
  RETURN_IF(size == 0, TEGULA_OK);
  if ((uint64_t)end <= source->head_size) {
    memcpy(out, source->head + offset, size);
    return TEGULA_OK;
  }
  return source->read(source, offset, out, size, err);
}

tegula_status tegula__format_check_dataset(const char *dataset, const char *only, const char *path,
                                           tegula_error *err) {
  RETURN_IF(dataset == NULL, TEGULA_OK);
  RETURN_IF(strcmp(dataset + (dataset[0] == '/'), only + (only[0] == '/')) == 0, TEGULA_OK);
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_NOT_FOUND, path, -1,
                                   "no dataset \"%s\" in \"%s\", which holds one array only",
                                   dataset, path),
                      "leave the dataset's name out, or say \"%s\"", only);
}
