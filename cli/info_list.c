/* `tegula info` of a container: all its datasets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cli_report.h"
#include "commands.h"

/* What is collected while the library lists. */
typedef struct listing {
  json_t *datasets;
  int no_memory;
} listing;

static int64_t array_bytes(const tegula_entry *entry) {
  tegula_dtype dtype;
  int64_t bytes = 1;
  if (entry->dtype == NULL || tegula_dtype_parse(entry->dtype, &dtype, NULL) != TEGULA_OK) {
    return -1;
  }
  bytes = dtype.item_size;
  for (int32_t axis = 0; axis < entry->ndim; axis++) {
    if (__builtin_mul_overflow(bytes, entry->shape[axis], &bytes)) {
      return -1;
    }
  }
  return bytes;
}

/* "shuffle,deflate:6" as a list. */
static json_t *codec_list(const char *text) {
  json_t *list = json_array();
  while (list != NULL && text != NULL && *text != '\0') {
    size_t length = 0;
    while (text[length] != '\0' && text[length] != ',') {
      length++;
    }
    if (json_array_append_new(list, json_stringn(text, length)) != 0) {
      json_decref(list);
      return NULL;
    }
    text += length + (text[length] == ',');
  }
  return list;
}

json_t *info_codecs(const char *text) { return codec_list(text); }

static int take(void *state, const tegula_entry *entry) {
  listing *l = state;
  int64_t bytes = array_bytes(entry);
  json_t *one = json_pack(
      "{s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:I}", "name", report_text(entry->name), "shape",
      entry->shape != NULL ? report_shape(entry->shape, entry->ndim) : json_null(), "dtype",
      report_text(entry->dtype), "chunks",
      entry->chunk != NULL ? report_shape(entry->chunk, entry->ndim) : json_null(), "codecs",
      codec_list(entry->codecs), "files", 1, "bytes",
      bytes >= 0 ? json_integer(bytes) : json_null(), "stored_bytes",
      (json_int_t)entry->stored_bytes);
  if (one != NULL && entry->refused != NULL &&
      json_object_set_new(one, "refused", report_text(entry->refused)) != 0) {
    json_decref(one);
    one = NULL;
  }
  if (one != NULL && entry->descr != NULL &&
      json_object_set_new(one, "descr", report_text(entry->descr)) != 0) {
    json_decref(one);
    one = NULL;
  }
  l->no_memory = one == NULL || json_array_append_new(l->datasets, one) != 0;
  return l->no_memory;
}

/* As Python writes it: (7, 6), (7,), (). */
static void print_shape(const json_t *shape) {
  size_t ndim = json_array_size(shape);
  for (size_t axis = 0; axis < ndim; axis++) {
    printf("%s%" PRId64, axis > 0 ? ", " : "(",
           (int64_t)json_integer_value(json_array_get(shape, axis)));
  }
  fputs(json_is_null(shape) ? "?" : ndim == 0 ? "()" : ndim == 1 ? ",)" : ")", stdout);
}

static void print_entry(const json_t *entry) {
  const char *name = json_string_value(json_object_get(entry, "name")),
             *dtype = json_string_value(json_object_get(entry, "dtype"));
  const char *refused = json_string_value(json_object_get(entry, "refused"));
  const json_t *chunks = json_object_get(entry, "chunks"),
               *codecs = json_object_get(entry, "codecs");
  fputs("dataset ", stdout);
  report_shown(stdout, name);
  fputs(": shape ", stdout);
  print_shape(json_object_get(entry, "shape"));
  printf(", dtype %s", dtype != NULL ? dtype : "-");
  if (!json_is_null(chunks)) {
    fputs(", chunks ", stdout);
    print_shape(chunks);
  }
  for (size_t i = 0; i < json_array_size(codecs); i++) {
    printf("%s%s", i == 0 ? ", " : ",", json_string_value(json_array_get(codecs, i)));
  }
  printf(", %" PRId64 " bytes stored",
         (int64_t)json_integer_value(json_object_get(entry, "stored_bytes")));
  report_line(stdout, refused != NULL ? "; cannot be loaded: " : "",
              refused != NULL ? refused : "");
  if (json_object_get(entry, "descr") != NULL) {
    report_line(stdout, "descr   ", json_string_value(json_object_get(entry, "descr")));
  }
  info_print_attributes(entry);
}

int info_may_list(const cli_job *job) {
  struct stat info;
  return job->settings.dataset == NULL && job->settings.manifest == NULL && !job->settings.chunks &&
         /* no stat: listing says why */
         (stat(job->settings.paths[0], &info) != 0 || S_ISREG(info.st_mode));
}

/* Those of the file go to `top`, the others to their datasets. */
static tegula_status add_attributes(cli_job *job, json_t *datasets, json_t *top) {
  json_t *all = NULL;
  tegula_status status = info_attributes(job, &all);
  if (status == TEGULA_OK) {
    status = info_take_attributes(job, all, "/", top);
  }
  for (size_t i = 0; status == TEGULA_OK && i < json_array_size(datasets); i++) {
    json_t *one = json_array_get(datasets, i);
    const char *name = json_string_value(json_object_get(one, "name"));
    status = info_take_attributes(job, all, name != NULL ? name : "", one);
    json_object_del(all, name != NULL ? name : "");
  }
  json_object_del(all, "/");
  if (status == TEGULA_OK) {
    status = info_add_groups(job, all, top);
  }
  json_decref(all);
  return status;
}

static void print_list(const json_t *top, const json_t *datasets) {
  printf("format  hdf5, %zu dataset%s\n", json_array_size(datasets),
         json_array_size(datasets) == 1 ? "" : "s");
  info_print_attributes(top);
  info_print_groups(top);
  for (size_t i = 0; i < json_array_size(datasets); i++) {
    print_entry(json_array_get(datasets, i));
  }
}

tegula_status info_list(cli_job *job, const tegula_open_options *options) {
  listing l = {json_array(), 0};
  if (l.datasets == NULL) {
    return report_no_memory(&job->error);
  }
  tegula_status status =
      tegula_list(job->context, job->settings.paths[0], options, take, &l, &job->error);
  if (l.no_memory) {
    status = report_no_memory(&job->error);
  }
  json_t *top = status == TEGULA_OK
                    ? json_pack("{s:s, s:O}", "format", "hdf5", "datasets", l.datasets)
                    : NULL;
  if (status == TEGULA_OK && top == NULL) {
    status = report_no_memory(&job->error);
  }
  if (status == TEGULA_OK && job->settings.attributes) {
    status = add_attributes(job, l.datasets, top);
  }
  if (status == TEGULA_OK && job->settings.json) {
    job->report = json_incref(top);
  } else if (status == TEGULA_OK && !job->settings.quiet) {
    print_list(top, l.datasets);
  }
  json_decref(top);
  json_decref(l.datasets);
  return status;
}
