/* Headers that are read later: what a file holds is foretold from its size and the header of the
 * first file, and compared when its data is read.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A foretold number of rows that is wrong moves the rows of all files behind it. So nothing that
 * follows from one may leave the library before the headers of all files were compared: the owner
 * of the manifest asks tegula__unread_left. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discover/discover.h"

/* ---- foretelling ---- */

/* Bytes of one row; false where rows have none, or no axis counts them. */
static bool row_bytes(const tegula__manifest *manifest, int64_t *bytes) {
  return manifest->ndim > 0 &&
         tegula__shape_bytes(manifest->shape + 1, manifest->ndim - 1, manifest->dtype.item_size,
                             bytes) &&
         *bytes > 0;
}

/* Strides of dense C order, whatever the number of rows. */
static void c_strides(const tegula__manifest *manifest, int64_t *strides) {
  tegula__dense_strides(manifest->shape, manifest->ndim, manifest->dtype.item_size, 'C', strides);
}

bool tegula__predict_from(const tegula__manifest *first) {
  const tegula__format *format = tegula__format_by_name(first->format);
  int64_t row, strides[TEGULA_MAX_DIMS];
  if (format == NULL || !format->alike || first->part_count != 1 || !row_bytes(first, &row))
    return false;
  c_strides(first, strides);
  const tegula__part *part = &first->parts[0];
  return part->offset > 0 && part->offset <= TEGULA__HEAD_BYTES &&
         memcmp(part->strides, strides, (size_t)first->ndim * sizeof *strides) == 0;
}

tegula_status tegula__predict(const tegula__manifest *first, int64_t size, tegula__manifest *out,
                              bool *fits, tegula_error *err) {
  static const int64_t origin[TEGULA_MAX_DIMS];
  const tegula__part *part = &first->parts[0];
  int64_t data = size - part->offset, row;
  /* no rows: no data with which the header would be read */
  *fits = row_bytes(first, &row) && data > 0 && data % row == 0;
  if (!*fits) return TEGULA_OK;
  out->dtype = first->dtype;
  out->ndim = first->ndim;
  out->format = first->format;
  out->name = first->name;
  memcpy(out->shape, first->shape, sizeof out->shape);
  out->shape[0] = data / row;
  out->descr = tegula__strdup(first->descr);
  if (out->descr == NULL && first->descr != NULL)
    return tegula__out_of_memory(err, (int64_t)strlen(first->descr));
  return tegula__manifest_add(out, 0, part->offset, origin, out->shape, part->strides, part->order,
                              err);
}

/* ---- comparing ---- */

struct tegula__unread {
  const tegula__manifest *manifest;
  _Atomic int64_t left;
  _Atomic bool waiting[]; /* per file */
};

tegula_status tegula__unread_create(const tegula__manifest *manifest, tegula__unread **out,
                                    tegula_error *err) {
  int64_t left = 0;
  *out = NULL;
  for (int64_t i = 0; i < manifest->file_count; i++) left += manifest->files[i].predicted;
  if (left == 0) return TEGULA_OK;
  tegula__unread *unread =
      malloc(sizeof *unread + (size_t)manifest->file_count * sizeof *unread->waiting);
  if (unread == NULL) return tegula__out_of_memory(err, manifest->file_count);
  unread->manifest = manifest;
  atomic_init(&unread->left, left);
  for (int64_t i = 0; i < manifest->file_count; i++)
    atomic_init(&unread->waiting[i], manifest->files[i].predicted);
  *out = unread;
  return TEGULA_OK;
}

void tegula__unread_destroy(tegula__unread *unread) { free(unread); }

int64_t tegula__unread_left(const tegula__unread *unread) {
  return unread != NULL ? atomic_load(&unread->left) : 0;
}

/* One part for each file, in their order: all of them are described by one format that gives
 * one. */
static const tegula__part *part_of(const tegula__unread *unread, int64_t file) {
  return &unread->manifest->parts[file];
}

size_t tegula__unread_size(void *state, int64_t file) {
  const tegula__unread *unread = state;
  return atomic_load(&unread->waiting[file]) ? (size_t)part_of(unread, file)->offset : 0;
}

/* A header that goes on behind the head has another length than was foretold. */
static tegula_status read_no_more(const tegula__source *source, int64_t offset, void *out,
                                  size_t size, tegula_error *err) {
  (void)out;
  return tegula__fail(err, TEGULA_MISMATCH, source->path, offset,
                      "its header is longer than expected: %lld bytes instead of %lld",
                      (long long)(offset + (int64_t)size), (long long)source->head_size);
}

static tegula_status unlike(const tegula__manifest *manifest, int64_t file, const char *expected,
                            const char *found, tegula_error *err) {
  const char *path = manifest->files[file].path;
  return tegula__hint(
      err,
      tegula__fail(
          err, TEGULA_MISMATCH, path, -1,
          "\"%s\" is not what its size and the header of \"%s\" promise: expected %s, found %s",
          path, manifest->files[0].path, expected, found),
      "open the files again without deferring their headers");
}

/* What a file holds, for messages. */
#define CONTENT_TEXT (TEGULA__SHAPE_TEXT + TEGULA_DTYPE_TEXT + 64)
static void content_format(const tegula__manifest *manifest, int64_t rows, const tegula__part *part,
                           char out[CONTENT_TEXT]) {
  char shape_text[TEGULA__SHAPE_TEXT], dtype_text[TEGULA_DTYPE_TEXT];
  int64_t shape[TEGULA_MAX_DIMS];
  tegula_dtype dtype = manifest->dtype;
  memcpy(shape, manifest->shape, sizeof shape);
  if (manifest->ndim > 0) shape[0] = rows;
  if (dtype.order != '|') dtype.order = part->order;
  tegula__shape_format(shape, manifest->ndim, shape_text);
  tegula_dtype_format(dtype, dtype_text);
  snprintf(out, CONTENT_TEXT, "shape %s of %s from byte %lld on", shape_text, dtype_text,
           (long long)part->offset);
}

static bool same_descr(const char *a, const char *b) {
  return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Do these bytes mean the same? The stride of an axis that has but one index is never used. */
static bool same_strides(int32_t ndim, const int64_t *shape, const int64_t *a, const int64_t *b) {
  for (int32_t k = 0; k < ndim; k++)
    if (shape[k] > 1 && a[k] != b[k]) return false;
  return true;
}

/* Is the file's own description the one that was foretold? */
static bool same_content(const tegula__manifest *whole, const tegula__part *foretold,
                         const tegula__manifest *found) {
  if (found->part_count != 1 || found->ndim != whole->ndim ||
      !tegula_dtype_same(found->dtype, whole->dtype))
    return false;
  const tegula__part *part = &found->parts[0];
  size_t behind = (size_t)whole->ndim - 1; /* axes behind the rows */
  return found->shape[0] == foretold->hi[0] - foretold->lo[0] &&
         memcmp(found->shape + 1, whole->shape + 1, behind * sizeof *found->shape) == 0 &&
         part->offset == foretold->offset &&
         same_strides(found->ndim, found->shape, part->strides, foretold->strides) &&
         part->order == foretold->order && same_descr(found->descr, whole->descr);
}

static tegula_status compare(const tegula__unread *unread, int64_t file,
                             const tegula__manifest *found, tegula_error *err) {
  const tegula__manifest *whole = unread->manifest;
  const tegula__part *foretold = part_of(unread, file);
  RETURN_IF(same_content(whole, foretold, found), TEGULA_OK);
  char expected_text[CONTENT_TEXT], found_text[CONTENT_TEXT + 32] = "something else";
  content_format(whole, foretold->hi[0] - foretold->lo[0], foretold, expected_text);
  if (found->part_count == 1) content_format(found, found->shape[0], &found->parts[0], found_text);
  if (strcmp(expected_text, found_text) == 0)
    strcpy(found_text, "the same in another order, or other records");
  return unlike(whole, file, expected_text, found_text, err);
}

tegula_status tegula__unread_check(void *state, int64_t file, const void *head, size_t size,
                                   tegula_error *err) {
  tegula__unread *unread = state;
  const tegula__manifest *whole = unread->manifest;
  tegula__source source = {.path = whole->files[file].path,
                           .size = whole->files[file].stamp.size,
                           .read = read_no_more,
                           .head = head,
                           .head_size = size};
  tegula__describe_options options = {.has_dtype = whole->dtype.kind == 'E',
                                      .dtype = whole->dtype,
                                      .shape_ndim = -1,
                                      .row_ndim = -1};
  tegula__manifest found;
  tegula_error error;
  tegula__manifest_init(&found);
  tegula_status status =
      tegula__format_by_name(whole->format)->describe(&source, &options, &found, &error);
  if (status == TEGULA_OK)
    status = compare(unread, file, &found, err);
  else if (status == TEGULA_OUT_OF_MEMORY)
    status = tegula__out_of_memory(err, (int64_t)size);
  else
    status = unlike(whole, file, "a header like that", error.message, err);
  tegula__manifest_free(&found);
  if (status == TEGULA_OK && atomic_exchange(&unread->waiting[file], false))
    atomic_fetch_sub(&unread->left, 1);
  return status;
}

/* ---- the headers that are left ---- */

typedef struct check_job {
  tegula__unread *unread;
  tegula__file_set *files;
  tegula__io_counts *counts;
  tegula__first_error *first_error;
} check_job;

static tegula_status check_open(const check_job *job, int64_t file, int fd, size_t size,
                                tegula_error *err) {
  unsigned char head[TEGULA__HEAD_BYTES];
  FORWARD(tegula__io_read(fd, job->unread->manifest->files[file].path, 0, head, size, job->counts,
                          err));
  return tegula__unread_check(job->unread, file, head, size, err);
}

static void check_one(void *state, int32_t worker, int64_t file) {
  (void)worker;
  check_job *job = state;
  size_t size = tegula__unread_size(job->unread, file);
  if (size == 0 || !tegula__first_error_wanted(job->first_error, file)) return;
  tegula_error error;
  int fd;
  tegula_status status = tegula__file_set_acquire(job->files, file, job->counts, &fd, &error);
  if (status == TEGULA_OK) {
    status = check_open(job, file, fd, size, &error);
    tegula__file_set_release(job->files, file);
  }
  if (status != TEGULA_OK) tegula__first_error_set(job->first_error, file, status, &error);
}

tegula_status tegula__unread_check_all(tegula__unread *unread, tegula__pool *pool,
                                       tegula__file_set *files, tegula__io_counts *counts,
                                       tegula_error *err) {
  RETURN_IF(tegula__unread_left(unread) == 0, TEGULA_OK);
  check_job job = {unread, files, counts, tegula__first_error_create()};
  if (job.first_error == NULL) return tegula__out_of_memory(err, 0);
  tegula__pool_run_waiting(pool, unread->manifest->file_count, check_one, &job);
  tegula_status status = tegula__first_error_get(job.first_error, err);
  tegula__first_error_destroy(job.first_error);
  return status;
}
