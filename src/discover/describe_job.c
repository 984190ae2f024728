/* The beginning and the end of a description.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "discover/discover_priv.h"

tegula_status tegula__describe_check_format(const tegula__discover_options *options,
                                            const tegula__format **format, tegula_error *err) {
  *format = NULL;
  if (options->format == NULL) return TEGULA_OK;
  *format = tegula__format_by_name(options->format);
  if (*format != NULL) return TEGULA_OK;
  char names[128];
  tegula__format_names(names, sizeof names);
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                                   "unknown format \"%.60s\"", options->format),
                      "known formats: %s", names);
}

void tegula__describe_free(tegula__describe_job *job) {
  pthread_mutex_destroy(&job->progress_lock);
  tegula__file_set_destroy(job->set);
  for (int64_t i = 0; job->shards != NULL && i < job->count; i++)
    tegula__manifest_free(&job->shards[i]);
  for (int64_t i = 0; job->files != NULL && i < job->count; i++) free(job->files[i].path);
  free(job->shards);
  free(job->files);
  tegula__store_free(&job->store);
  tegula__side_free(&job->side);
  tegula__first_error_destroy(job->first_error);
  tegula__folders_destroy(job->folders);
}

tegula_status tegula__describe_start(tegula__describe_job *job, tegula__handles *handles,
                                     tegula__paths *paths, tegula_error *err) {
  job->count = paths->count;
  job->whole = paths->whole;
  job->listed = paths->listed;
  job->handles = handles;
  job->files = calloc((size_t)job->count, sizeof *job->files);
  job->shards = tegula__realloc_array(NULL, job->count, sizeof *job->shards);
  for (int64_t i = 0; job->shards != NULL && i < job->count; i++)
    tegula__manifest_init(&job->shards[i]);
  job->first_error = tegula__first_error_create();
  if (job->files == NULL || job->shards == NULL || job->first_error == NULL)
    return tegula__out_of_memory(err,
                                 job->count * (int64_t)(sizeof *job->shards + sizeof *job->files));
  FORWARD(tegula__store_create(handles, job->folders, job->counts, &job->store, err));
  FORWARD(tegula__file_set_create(handles, job->files, job->count, false, &job->set, err));
  if (job->held) tegula__file_set_enter(job->set, job->folders);
  for (int64_t i = 0; i < job->count; i++) job->files[i].path = paths->items[i];
  paths->count = 0;
  tegula__paths_free(paths);
  return TEGULA_OK;
}
