/* `tegula info --chunks`: every stored piece of a dataset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_report.h"
#include "commands.h"

typedef struct chunk_listing {
  cli_job *job;
  json_t *list;     /* NULL: printed */
  const char *path; /* of the piece before, */
  json_t *file;     /* and as JSON: many chunks share it */
  char *quoted;     /* and as it is printed */
  int64_t count;
  tegula_status status; /* why it was stopped */
} chunk_listing;

enum { CHECK_EVERY = 4096 };

static json_t *number_or_null(int64_t number) {
  return number >= 0 ? json_integer(number) : json_null();
}

/* Keeps the name of the file in the two forms that are needed. */
static int keep_path(chunk_listing *l, const char *path) {
  if (l->file != NULL && l->path == path) {
    return 1;
  }
  json_decref(l->file);
  free(l->quoted);
  l->file = report_text(path);
  l->quoted = l->file != NULL ? report_dump(l->file, JSON_ENCODE_ANY) : NULL;
  l->path = path;
  return l->quoted != NULL;
}

static int add_chunk(chunk_listing *l, const tegula_chunk_info *chunk) {
  tegula_box box = {.ndim = chunk->ndim};
  memcpy(box.lo, chunk->lo, (size_t)chunk->ndim * sizeof box.lo[0]);
  memcpy(box.hi, chunk->hi, (size_t)chunk->ndim * sizeof box.hi[0]);
  json_t *one = json_pack("{s:o, s:o, s:o, s:I, s:O}", "box", report_box(&box), "offset",
                          number_or_null(chunk->offset), "length", number_or_null(chunk->length),
                          "mask", (json_int_t)chunk->mask, "file", l->file);
  return one != NULL && json_array_append_new(l->list, one) == 0;
}

static void print_chunk(const chunk_listing *l, const tegula_chunk_info *chunk) {
  printf("chunk   [");
  for (int32_t axis = 0; axis < chunk->ndim; axis++) {
    printf("%s%" PRId64 ":%" PRId64, axis > 0 ? "," : "", chunk->lo[axis], chunk->hi[axis]);
  }
  if (chunk->path == NULL) {
    printf("]: read by a function\n");
    return;
  }
  printf("]: %" PRId64 " bytes at %" PRId64 " of %s", chunk->length, chunk->offset, l->quoted);
  if (chunk->mask != 0) {
    printf(", codecs skipped: mask 0x%" PRIx32, chunk->mask);
  }
  printf("\n");
}

static int take(void *state, const tegula_chunk_info *chunk) {
  chunk_listing *l = state;
  if (l->count++ % CHECK_EVERY == 0) {
    l->status = job_check(l->job);
  }
  if (l->status == TEGULA_OK &&
      (!keep_path(l, chunk->path) || (l->list != NULL && !add_chunk(l, chunk)))) {
    l->status = report_no_memory(&l->job->error);
  }
  if (l->status == TEGULA_OK && l->list == NULL) {
    print_chunk(l, chunk);
  }
  return l->status != TEGULA_OK;
}

tegula_status info_chunks(cli_job *job, const tegula_dataset *dataset, json_t *object) {
  chunk_listing l = {.job = job, .list = object != NULL ? json_array() : NULL, .status = TEGULA_OK};
  if (object != NULL && l.list == NULL) {
    return report_no_memory(&job->error);
  }
  tegula_error error;
  tegula_status status = tegula_dataset_chunks(dataset, take, &l, &error);
  if (l.status != TEGULA_OK) {
    status = l.status;
  } else if (status != TEGULA_OK) {
    job->error = error;
  } else if (object != NULL && json_object_set(object, "chunk_list", l.list) != 0) {
    status = report_no_memory(&job->error);
  }
  json_decref(l.list);
  json_decref(l.file);
  free(l.quoted);
  return status;
}
