/* Errors as fields: filling one never allocates, and a text that is too long is cut, never lost.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

const char *tegula_status_name(tegula_status status) {
  switch (status) {
#define STATUS_NAME(name, value, text, sentence)                                                   \
  case TEGULA_##name:                                                                              \
    return text;
    TEGULA_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
  }
  return "unknown";
}

const char *tegula_status_text(tegula_status status) {
  switch (status) {
#define STATUS_TEXT(name, value, text, sentence)                                                   \
  case TEGULA_##name:                                                                              \
    return sentence;
    TEGULA_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
  }
  return "a status that this version does not know";
}

const char *tegula_version(void) { return TEGULA_VERSION_STRING; }

void tegula__error_clear(tegula_error *err) {
  if (err == NULL) return;
  err->status = TEGULA_OK;
  err->os_errno = 0;
  err->rank = -1;
  err->reserved = 0;
  err->offset = -1;
  err->message[0] = err->hint[0] = err->path[0] = '\0';
}

/* Messages are one line whatever a file's name holds. */
static void to_one_line(char *text) {
  for (; *text != '\0'; text++)
    if ((unsigned char)*text < 0x20) *text = ' ';
}

static void fill(tegula_error *err, tegula_status status, const char *path, int64_t offset,
                 const char *format, va_list arguments) {
  tegula__error_clear(err);
  err->status = status;
  err->offset = offset;
  if (path != NULL) snprintf(err->path, sizeof err->path, "%s", path);
  vsnprintf(err->message, sizeof err->message, format, arguments);
  to_one_line(err->message);
}

tegula_status tegula__fail(tegula_error *err, tegula_status status, const char *path,
                           int64_t offset, const char *format, ...) {
  if (err != NULL) {
    va_list arguments;
    va_start(arguments, format);
    fill(err, status, path, offset, format, arguments);
    va_end(arguments);
  }
  return status;
}

tegula_status tegula_error_set(tegula_error *err, tegula_status status, const char *path,
                               int64_t offset, const char *message) {
  return tegula__fail(err, status, path, offset, "%s",
                      message != NULL ? message : tegula_status_text(status));
}

static tegula_status status_of_errno(int os_errno) {
  switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
      return TEGULA_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
      return TEGULA_PERMISSION;
    case EEXIST:
    case ENOTEMPTY:
      return TEGULA_EXISTS;
    case ENOMEM:
      return TEGULA_OUT_OF_MEMORY;
    case EMFILE:
    case ENFILE:
    case ENAMETOOLONG:
      return TEGULA_LIMIT_EXCEEDED;
    case ESTALE:
      return TEGULA_CHANGED;
    default:
      return TEGULA_IO;
  }
}

tegula_status tegula__fail_errno(tegula_error *err, int os_errno, const char *path, int64_t offset,
                                 const char *format, ...) {
  tegula_status status = status_of_errno(os_errno);
  if (err == NULL) return status;
  va_list arguments;
  va_start(arguments, format);
  fill(err, status, path, offset, format, arguments);
  va_end(arguments);
  err->os_errno = os_errno;
  char scratch[128];
  size_t used = strlen(err->message);
  snprintf(err->message + used, sizeof err->message - used, ": %s",
           strerror_r(os_errno, scratch, sizeof scratch));
  return status;
}

tegula_status tegula__hint(tegula_error *err, tegula_status status, const char *format, ...) {
  if (err != NULL && status != TEGULA_OK) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err->hint, sizeof err->hint, format, arguments);
    va_end(arguments);
    to_one_line(err->hint);
  }
  return status;
}

tegula_status tegula__out_of_memory(tegula_error *err, int64_t bytes) {
  return tegula__fail(err, TEGULA_OUT_OF_MEMORY, NULL, -1, "could not get %lld bytes of memory",
                      (long long)bytes);
}
