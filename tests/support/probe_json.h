/* The state of the probe, and the way between JSON and the structs of the public header.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of probe.c, which is one compilation unit; nothing else includes this. */
#ifndef TEGULA_TESTS_PROBE_JSON_H
#define TEGULA_TESTS_PROBE_JSON_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tegula/tegula.h>

#include "probe_view.h"

typedef struct probe_blocks {
  probe_block *items;
  int64_t count;
  int64_t *released; /* counts the calls of the release function */
} probe_blocks;

typedef struct probe_piece {
  tegula_array *array;
  tegula_box box;
} probe_piece;

#define PROBE_PIECES 64
#define PROBE_KEPT 256

/* What the function behind a dataset knows. */
typedef struct probe_reader_state {
  int64_t shape[TEGULA_MAX_DIMS];
  _Atomic int64_t calls;
  int64_t fail_at;
  int made;
  int released;
} probe_reader_state;

typedef struct probe_state {
  tegula_context *context;
  tegula_dataset *dataset;
  tegula_dataset *other; /* opened with "other": true, for compare */
  tegula_tiling *tiling;
  tegula_array *array;
  tegula_batches *batches;
  tegula_statistics piece_statistics;
  probe_piece pieces[PROBE_PIECES];
  int piece_count;
  tegula_array *kept[PROBE_KEPT];
  int kept_count;
  tegula_saving *saving;
  probe_reader_state reader;
  probe_blocks *blocks; /* memory of a wrapped array; NULL for one that the library made */
  int64_t released;
  int failed;
} probe_state;

/* ---- JSON ---- */

static int64_t number(const json_t *command, const char *key, int64_t otherwise) {
  const json_t *value = json_object_get(command, key);
  return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static const char *text(const json_t *command, const char *key) {
  return json_string_value(json_object_get(command, key));
}

static int flag(const json_t *command, const char *key) {
  return json_is_true(json_object_get(command, key));
}

/* Text from a file need not be UTF-8: then each byte becomes the code point of the same number. */
static json_t *any_text(const char *value) {
  if (!value) {
    return json_null();
  }
  json_t *out = json_string(value);
  if (out) {
    return out;
  }
  char wide[4096];
  size_t used = 0;
  for (const unsigned char *c = (const unsigned char *)value; *c && used + 3 < sizeof wide; c++) {
    if (*c < 0x80) {
      wide[used++] = (char)*c;
    } else {
      wide[used++] = (char)(0xC0 | (*c >> 6));
      wide[used++] = (char)(0x80 | (*c & 0x3F));
    }
  }
  return json_stringn(wide, used);
}

static json_t *error_answer(probe_state *state, tegula_status status, const tegula_error *error) {
  state->failed = 1;
  json_t *fields =
      json_pack("{s:s, s:i}", "status", tegula_status_name(status), "value", (int)status);
  if (error) {
    json_object_set_new(fields, "reported", json_string(tegula_status_name(error->status)));
    json_object_set_new(fields, "message", any_text(error->message));
    json_object_set_new(fields, "hint", any_text(error->hint));
    json_object_set_new(fields, "path", any_text(error->path));
    json_object_set_new(fields, "offset", json_integer(error->offset));
    json_object_set_new(fields, "errno", json_integer(error->os_errno));
    json_object_set_new(fields, "rank", json_integer(error->rank));
  }
  return json_pack("{s:o}", "error", fields);
}

static json_t *misuse(probe_state *state, const char *what) {
  state->failed = 1;
  return json_pack("{s:{s:s, s:s}}", "error", "status", "probe", "message", what);
}

static void context_options_read(const json_t *command, tegula_context_options *options) {
  tegula_context_options_init(options);
  options->io = getenv("TEGULA_IO"); /* the same cases, by every way of moving bytes */
  options->threads = (int32_t)number(command, "threads", 0);
  options->max_open_files = (int32_t)number(command, "max_open_files", 0);
  options->staging_bytes = number(command, "staging_bytes", 0);
  options->plugin_path = getenv("TEGULA_PLUGIN_PATH");
  options->hdf5_library = getenv("TEGULA_HDF5_LIBRARY");
}

static int32_t numbers(const json_t *list, int64_t out[TEGULA_MAX_DIMS]) {
  size_t count = json_array_size(list);
  for (size_t i = 0; i < count && i < TEGULA_MAX_DIMS; i++) {
    out[i] = json_integer_value(json_array_get(list, i));
  }
  return (int32_t)count;
}

static void box_read(const json_t *list, tegula_box *box) {
  memset(box, 0, sizeof *box);
  box->ndim = (int32_t)json_array_size(list);
  for (int32_t axis = 0; axis < box->ndim && axis < TEGULA_MAX_DIMS; axis++) {
    const json_t *pair = json_array_get(list, (size_t)axis);
    box->lo[axis] = json_integer_value(json_array_get(pair, 0));
    box->hi[axis] = json_integer_value(json_array_get(pair, 1));
  }
}

static json_t *box_answer(const tegula_box *box) {
  json_t *list = json_array();
  for (int32_t axis = 0; axis < box->ndim; axis++) {
    json_array_append_new(
        list, json_pack("[I, I]", (json_int_t)box->lo[axis], (json_int_t)box->hi[axis]));
  }
  return list;
}

static json_t *dtype_answer(tegula_dtype dtype) {
  char out[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(dtype, out);
  return json_string(out);
}

static json_t *statistics_answer(const tegula_statistics *s) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:s?, s:s?}",
                   "opens", (json_int_t)s->opens, "stats", (json_int_t)s->stats, "reads",
                   (json_int_t)s->reads, "writes", (json_int_t)s->writes, "bytes_read",
                   (json_int_t)s->bytes_read, "bytes_written", (json_int_t)s->bytes_written,
                   "direct_bytes", (json_int_t)s->direct_bytes, "staged_bytes",
                   (json_int_t)s->staged_bytes, "reader_bytes", (json_int_t)s->reader_bytes,
                   "missing", (json_int_t)s->missing, "steps", (json_int_t)s->steps,
                   "seconds_describe", s->seconds_describe, "seconds_move", s->seconds_move,
                   "io_path", s->io_path, "fallback_reason", s->fallback_reason);
}

static int file_write(const char *path, const void *bytes, size_t size, const char *mode) {
  FILE *file = fopen(path, mode);
  if (!file) {
    return 0;
  }
  int whole = fwrite(bytes, 1, size, file) == size;
  return fclose(file) == 0 && whole;
}

static unsigned char *file_read(const char *path, size_t *size) {
  FILE *file = path ? fopen(path, "rb") : NULL;
  if (!file) {
    return NULL;
  }
  fseek(file, 0, SEEK_END);
  long end = ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(end > 0 ? (size_t)end : 1);
  *size = bytes ? fread(bytes, 1, (size_t)end, file) : 0;
  fclose(file);
  return bytes;
}

#endif
