/* Heap helpers: growable memory that has a maximum, vectors with checked sizes, text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

void tegula__buffer_init(tegula__buffer *buffer, size_t maximum) {
  *buffer = (tegula__buffer){.maximum = maximum};
}

void tegula__buffer_free(tegula__buffer *buffer) {
  free(buffer->data);
  *buffer = (tegula__buffer){.maximum = buffer->maximum};
}

bool tegula__buffer_reserve(tegula__buffer *buffer, size_t more) {
  RETURN_IF(more > buffer->maximum - buffer->size, false);
  size_t need = buffer->size + more;
  RETURN_IF(need <= buffer->capacity, true);
  size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
  while (capacity < need)
    capacity = capacity > buffer->maximum / 2 ? buffer->maximum : capacity * 2;
  char *data = realloc(buffer->data, capacity);
  RETURN_IF(data == NULL, false);
  buffer->data = data;
  buffer->capacity = capacity;
  return true;
}

bool tegula__buffer_append(tegula__buffer *buffer, const void *data, size_t size) {
  RETURN_IF(size == 0, true);
  RETURN_IF(!tegula__buffer_reserve(buffer, size), false);
  memcpy(buffer->data + buffer->size, data, size);
  buffer->size += size;
  return true;
}

bool tegula__buffer_printf(tegula__buffer *buffer, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = NULL;
  int size = vasprintf(&text, format, arguments);
  va_end(arguments);
  RETURN_IF(size < 0, false);
  bool good = tegula__buffer_append(buffer, text, (size_t)size);
  free(text);
  return good;
}

void *tegula__realloc_array(void *block, int64_t count, size_t item) {
  int64_t bytes;
  if (item > INT64_MAX || !tegula__mul(count, (int64_t)item, &bytes) ||
      (uint64_t)bytes > SIZE_MAX / 2)
    return NULL;
  return realloc(block, bytes > 0 ? (size_t)bytes : 1);
}

bool tegula__vector_reserve(void **items, int64_t *capacity, int64_t need, size_t item) {
  RETURN_IF(need <= *capacity, true);
  int64_t wanted = tegula__max(need, *capacity < INT64_MAX / 2 ? *capacity * 2 : need);
  void *grown = tegula__realloc_array(*items, tegula__max(wanted, 4), item);
  RETURN_IF(grown == NULL, false);
  *items = grown;
  *capacity = tegula__max(wanted, 4);
  return true;
}

char *tegula__strdup(const char *text) { return text == NULL ? NULL : strdup(text); }

char *tegula__strprintf(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = NULL;
  int size = vasprintf(&text, format, arguments);
  va_end(arguments);
  return size < 0 ? NULL : text;
}
