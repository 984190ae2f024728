/* Errors, JSON and numbers with units: what the command prints, in one place.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Text from file names and files never reaches a terminal with control characters in it, and never
 * makes the JSON invalid. */
#include "cli_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int memory_failed; /* an allocation for a report has failed */

void report_start(void) { json_set_alloc_funcs(report_allocate, free); }

void *report_allocate(size_t bytes) {
  void *memory = memory_failed ? NULL : malloc(bytes > 0 ? bytes : 1);
  if (memory == NULL) {
    memory_failed = 1;
  }
  return memory;
}

tegula_status report_memory(tegula_error *error) {
  return !memory_failed ? TEGULA_OK : report_no_memory(error);
}

static void error_reset(tegula_error *error, tegula_status status, const char *hint) {
  memset(error, 0, sizeof *error);
  error->status = status;
  error->rank = -1;
  error->offset = -1;
  if (hint != NULL) {
    snprintf(error->hint, sizeof error->hint, "%s", hint);
  }
}

tegula_status report_fail(tegula_error *error, tegula_status status, const char *hint,
                          const char *format, ...) {
  error_reset(error, status, hint);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  return status;
}

static tegula_status status_of_errno(int os_errno) {
  switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
      return TEGULA_NOT_FOUND;
    case EEXIST:
    case ENOTEMPTY:
      return TEGULA_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
      return TEGULA_PERMISSION;
    case ENOMEM:
      return TEGULA_OUT_OF_MEMORY;
    default:
      return TEGULA_IO;
  }
}

tegula_status report_fail_os(tegula_error *error, const char *path, int os_errno, const char *hint,
                             const char *format, ...) {
  error_reset(error, status_of_errno(os_errno), hint);
  error->os_errno = os_errno;
  snprintf(error->path, sizeof error->path, "%s", path);
  va_list arguments;
  va_start(arguments, format);
  int used = vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  if (used >= 0 && (size_t)used < sizeof error->message) {
    snprintf(error->message + used, sizeof error->message - (size_t)used, ": %s",
             strerror(os_errno));
  }
  return error->status;
}

tegula_status report_usage(tegula_error *error, const char *command, const char *format, ...) {
  error_reset(error, TEGULA_INVALID_ARGUMENT, NULL);
  snprintf(error->hint, sizeof error->hint, "see tegula %s%s--help", command,
           command[0] != '\0' ? " " : "");
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  return TEGULA_INVALID_ARGUMENT;
}

/* Control characters (a file name may hold a newline or an escape sequence) are shown as '?'. */
void report_shown(FILE *out, const char *text) {
  for (const char *at = text; *at != '\0'; at++) {
    unsigned char byte = (unsigned char)*at;
    fputc(byte < 0x20 || byte == 0x7f ? '?' : byte, out);
  }
}

void report_line(FILE *out, const char *label, const char *text) {
  fputs(label, out);
  report_shown(out, text);
  fputc('\n', out);
}

json_t *report_text_or_null(const char *text) {
  return text[0] != '\0' ? report_text(text) : json_null();
}

static json_t *error_object(const tegula_error *error) {
  return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "status",
                   tegula_status_name(error->status), "message", report_text(error->message),
                   "hint", report_text_or_null(error->hint), "path",
                   report_text_or_null(error->path), "offset",
                   error->offset >= 0 ? json_integer(error->offset) : json_null(), "errno",
                   error->os_errno != 0 ? json_integer(error->os_errno) : json_null(), "rank",
                   error->rank >= 0 ? json_integer(error->rank) : json_null());
}

/* What needs no escape in JSON; anything else is shown as '?'. */
static void print_plain(const char *key, const char *text) {
  printf("\"%s\": ", key);
  if (text[0] == '\0') {
    fputs("null", stdout);
    return;
  }
  fputc('"', stdout);
  for (const char *at = text; *at != '\0'; at++) {
    if (*at == '"' || *at == '\\') {
      fputc('\\', stdout);
    }
    unsigned char byte = (unsigned char)*at;
    fputc(byte < 0x20 || byte >= 0x7f ? '?' : byte, stdout);
  }
  fputc('"', stdout);
}

static void print_number(const char *key, int64_t value, int set) {
  if (set) {
    printf(", \"%s\": %" PRId64, key, value);
  } else {
    printf(", \"%s\": null", key);
  }
}

/* The same object without any memory of its own. */
static void print_error_object(const tegula_error *error) {
  fputs("{\"error\": {", stdout);
  print_plain("status", tegula_status_name(error->status));
  fputs(", ", stdout);
  print_plain("message", error->message);
  fputs(", ", stdout);
  print_plain("hint", error->hint);
  fputs(", ", stdout);
  print_plain("path", error->path);
  print_number("offset", error->offset, error->offset >= 0);
  print_number("errno", error->os_errno, error->os_errno != 0);
  print_number("rank", error->rank, error->rank >= 0);
  fputs("}}\n", stdout);
}

void report_error(const tegula_error *error, int json, json_t *report) {
  report_line(stderr, "tegula: ", error->message);
  if (error->hint[0] != '\0') {
    report_line(stderr, "hint: ", error->hint);
  }
  if (!json) {
    json_decref(report);
    return;
  }
  json_t *object = report != NULL ? report : json_object();
  tegula_error ignored;
  if (json_object_set_new(object, "error", error_object(error)) != 0) {
    json_decref(object);
    object = NULL;
  }
  if (report_json(object, REPORT_DIGITS, &ignored) == TEGULA_OUT_OF_MEMORY) {
    print_error_object(error);
  }
}

tegula_status report_no_memory(tegula_error *error) {
  return report_fail(error, TEGULA_OUT_OF_MEMORY, NULL, "could not make the report: no memory");
}

/* json_dumps leaves out pieces for which it gets no memory, so the buffer is made beforehand. */
char *report_dump(const json_t *object, size_t flags) {
  size_t size = object != NULL ? json_dumpb(object, NULL, 0, flags) : 0;
  char *text = size > 0 ? report_allocate(size + 1) : NULL;
  if (text != NULL && json_dumpb(object, text, size, flags) != size) {
    free(text);
    return NULL;
  }
  if (text != NULL) {
    text[size] = '\0';
  }
  return text;
}

/* In one piece: half an object must not be on standard output when memory runs out. */
tegula_status report_json(json_t *report, int digits, tegula_error *error) {
  char *text = report_dump(report, JSON_REAL_PRECISION(digits));
  json_decref(report);
  if (text == NULL) {
    return report_no_memory(error);
  }
  int failed = puts(text) < 0;
  free(text);
  /* A failed write is also kept by the stream, where report_close finds it. */
  return failed
             ? report_fail(error, TEGULA_IO, NULL, "could not write the report to standard output")
             : TEGULA_OK;
}

tegula_status report_close(tegula_error *error) {
  int failed = ferror(stdout);
  if (failed) {
    fputc('\n', stdout); /* the output is lost; one more try tells the reason, which is not kept */
  }
  errno = 0;
  if (fflush(stdout) != 0 || fclose(stdout) != 0) {
    failed = 1;
  }
  if (!failed) {
    return TEGULA_OK;
  }
  int os_errno = errno;
  if (os_errno == 0) {
    return report_fail(error, TEGULA_IO, NULL, "could not write to standard output");
  }
  report_fail_os(error, "", os_errno, NULL, "could not write to standard output");
  return error->status = TEGULA_IO;
}

/* The number of bytes of the UTF-8 character at `text`, 0 when there is none. jansson judges, so
 * that what passes can be
 * printed. */
static size_t character_bytes(const char *text, size_t left) {
  for (size_t bytes = 1; bytes <= 4 && bytes <= left; bytes++) {
    json_t *probe = json_stringn(text, bytes);
    if (probe != NULL) {
      json_decref(probe);
      return bytes;
    }
  }
  return 0;
}

json_t *report_text(const char *text) {
  if (text == NULL) {
    return json_null();
  }
  json_t *plain = json_string(text);
  if (plain != NULL) {
    return plain;
  }
  size_t length = strlen(text);
  char *clean = length < SIZE_MAX / 3 ? malloc(length * 3 + 1) : NULL;
  if (clean == NULL) {
    return NULL;
  }
  size_t used = 0;
  for (size_t at = 0; at < length;) {
    size_t bytes = character_bytes(text + at, length - at);
    memcpy(clean + used, bytes > 0 ? text + at : "\xEF\xBF\xBD", bytes > 0 ? bytes : 3);
    used += bytes > 0 ? bytes : 3;
    at += bytes > 0 ? bytes : 1;
  }
  json_t *result = json_stringn(clean, used);
  free(clean);
  return result;
}

/* Takes `value`; lets go of the array and gives NULL when there is no memory for it. */
static json_t *appended(json_t *array, json_t *value) {
  if (json_array_append_new(array, value) == 0) {
    return array;
  }
  json_decref(array);
  return NULL;
}

json_t *report_shape(const int64_t *shape, int32_t ndim) {
  json_t *array = json_array();
  for (int32_t axis = 0; axis < ndim; axis++) {
    array = appended(array, json_integer(shape[axis]));
  }
  return array;
}

json_t *report_dtype(tegula_dtype dtype) {
  char text[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(dtype, text);
  return json_string(text);
}

json_t *report_box(const tegula_box *box) {
  json_t *array = json_array();
  for (int32_t axis = 0; axis < box->ndim; axis++) {
    array =
        appended(array, json_pack("[I, I]", (json_int_t)box->lo[axis], (json_int_t)box->hi[axis]));
  }
  return array;
}

const char *report_shape_text(const int64_t *shape, int32_t ndim, char out[REPORT_TEXT]) {
  size_t used = (size_t)snprintf(out, REPORT_TEXT, "(");
  for (int32_t axis = 0; axis < ndim; axis++) {
    used += (size_t)snprintf(out + used, REPORT_TEXT - used, "%s%" PRId64, axis > 0 ? ", " : "",
                             shape[axis]);
  }
  snprintf(out + used, REPORT_TEXT - used, ndim == 1 ? ",)" : ")");
  return out;
}

const char *report_sources(int64_t sources, char out[64]) {
  out[0] = '\0';
  if (sources > 0) {
    snprintf(out, 64, " and %" PRId64 " source%s not opened yet", sources, sources == 1 ? "" : "s");
  }
  return out;
}

const char *report_bytes_text(double bytes, char out[32]) {
  static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
    bytes /= 1000;
    unit++;
  }
  snprintf(out, 32, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return out;
}
