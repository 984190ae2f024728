/* What the tests of formats share: files in memory, options, npy files from a header's text.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a file lie in a block of exactly their size, so that AddressSanitizer sees a read
 * beyond it. */
#ifndef TEGULA_TEST_FORMAT_SUPPORT_H
#define TEGULA_TEST_FORMAT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "format/format.h"

typedef struct memory_file {
  unsigned char *bytes;
  int64_t size;
  int64_t claimed; /* what the source says its size is */
  int reads;
} memory_file;

static inline tegula_status memory_read(const tegula__source *source, int64_t offset, void *out,
                                        size_t size, tegula_error *err) {
  memory_file *file = source->state;
  (void)err;
  assert_true(offset >= 0 && offset + (int64_t)size <= file->size);
  memcpy(out, file->bytes + offset, size);
  file->reads++;
  return TEGULA_OK;
}

static inline memory_file memory_make(const void *bytes, size_t size) {
  memory_file file = {
      .bytes = malloc(size > 0 ? size : 1), .size = (int64_t)size, .claimed = (int64_t)size};
  assert_non_null(file.bytes);
  if (size > 0) memcpy(file.bytes, bytes, size);
  return file;
}

static inline void memory_free(memory_file *file) { free(file->bytes); }

/* An npy file: version, header text as it is, then `data` zero bytes. */
static inline memory_file npy_make(int major, const char *header, size_t header_size, size_t data) {
  size_t prefix = major == 1 ? 10 : 12, size = prefix + header_size + data;
  memory_file file = {.bytes = calloc(1, size), .size = (int64_t)size, .claimed = (int64_t)size};
  assert_non_null(file.bytes);
  memcpy(file.bytes, "\x93NUMPY", 6);
  file.bytes[6] = (unsigned char)major;
  for (size_t i = 8; i < prefix; i++) file.bytes[i] = (unsigned char)(header_size >> 8 * (i - 8));
  memcpy(file.bytes + prefix, header, header_size);
  return file;
}

static inline tegula__describe_options no_options(void) {
  return (tegula__describe_options){.shape_ndim = -1, .row_ndim = -1};
}

static inline tegula_dtype dtype_of(const char *text) {
  tegula_dtype dtype = {0};
  assert_int_equal(tegula_dtype_parse(text, &dtype, NULL), TEGULA_OK);
  return dtype;
}

/* Describes a file in memory with its first `head` bytes read already. */
static inline tegula_status memory_describe(const tegula__format *format, memory_file *file,
                                            size_t head, const tegula__describe_options *options,
                                            tegula__manifest *out, tegula_error *err) {
  size_t known = head < (size_t)file->size ? head : (size_t)file->size;
  unsigned char *copy = malloc(known > 0 ? known : 1);
  assert_non_null(copy);
  memcpy(copy, file->bytes, known);
  tegula__source source = {.path = "memory/x.npy",
                           .size = file->claimed,
                           .read = memory_read,
                           .state = file,
                           .head = copy,
                           .head_size = known};
  tegula__manifest_init(out);
  tegula_status status = format->describe(&source, options, out, err);
  free(copy);
  return status;
}

static inline void assert_contains(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

#endif
