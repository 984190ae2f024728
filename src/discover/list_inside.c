/* What is in one container: its datasets and attributes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "discover/discover_priv.h"

static tegula_status look_inside(const tegula__format *format, const tegula__source *source,
                                 const tegula__describe_options *options,
                                 const tegula__inside *wanted, tegula_error *err) {
  if (wanted->within != NULL) return wanted->within(wanted->state, source, options, err);
  if (wanted->attribute != NULL && format->attributes != NULL)
    return format->attributes(source, options, wanted->attribute, wanted->state, err);
  if (wanted->attribute != NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                        "\"%s\" has no attributes: it is a file of the format %s", source->path,
                        format->name);
  if (format->list != NULL) return format->list(source, options, wanted->entry, wanted->state, err);
  return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                      "\"%s\" holds one array only: it is a file of the format %s", source->path,
                      format->name);
}

static tegula_status list_open(const tegula__describe_job *job, int fd,
                               const tegula__inside *wanted, tegula_error *err) {
  unsigned char head[TEGULA__HEAD_BYTES];
  tegula__open_file state = {fd, job->counts};
  tegula__source source;
  const tegula__format *format;
  tegula__describe_options options = job->options->describe;
  char **names;
  int64_t count;
  FORWARD(tegula__describe_look_at(job, 0, &state, head, &source, &format, err));
  FORWARD(tegula__matching_datasets(format, &source, &options, &names, &count, err));
  if (count > 0) {
    options.dataset = names[0];
    options.others = names + 1;
    options.other_count = count - 1;
  }
  tegula_status status = look_inside(format, &source, &options, wanted, err);
  for (int64_t i = 0; i < count; i++) free(names[i]);
  free(names);
  return status;
}

static tegula_status check_one_file(const tegula__paths *paths, const tegula__inside *wanted,
                                    tegula_error *err) {
  if (paths->count == 1) return TEGULA_OK;
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                      "%s are listed of one file, not of %lld",
                      wanted->entry != NULL ? "datasets" : "attributes", (long long)paths->count);
}

static tegula_status check_expected(const tegula__describe_job *job, const tegula__stamp *expected,
                                    tegula_error *err) {
  if (expected == NULL || memcmp(expected, &job->files[0].stamp, sizeof *expected) == 0)
    return TEGULA_OK;
  const char *path = job->files[0].path;
  return tegula__hint(
      err, tegula__fail(err, TEGULA_CHANGED, path, -1, "\"%s\" changed while it was in use", path),
      "open it again when nothing writes to it any more");
}

tegula_status tegula__discover_list(tegula__handles *handles, const char *path,
                                    const tegula__discover_options *options,
                                    const tegula__inside *wanted, tegula__io_counts *counts,
                                    tegula_error *err) {
  tegula__describe_job job = {.options = options, .counts = counts, .held = true};
  tegula__paths paths = {0};
  tegula_status status;
  int fd;
  FORWARD_WITH(status, tegula__describe_check_format(options, &job.format, err));
  FORWARD_WITH(status, tegula__folders_create(&job.folders, err));
  FORWARD_WITH(status, tegula__paths_find(path, job.folders, &paths, err));
  FORWARD_WITH(status, check_one_file(&paths, wanted, err));
  FORWARD_WITH(status, tegula__describe_start(&job, handles, &paths, err));
  FORWARD_WITH(status, tegula__file_set_acquire(job.set, 0, counts, &fd, err));
  status = check_expected(&job, wanted->expected, err);
  if (status == TEGULA_OK)
    status = tegula__describe_unless_changed(&job, 0, fd, list_open(&job, fd, wanted, err), err);
  /* nothing looks at the file again */
  if (status == TEGULA_OK) status = tegula__file_set_finish(job.set, 0, fd, false, counts, err);
  tegula__file_set_release(job.set, 0);
  if (status == TEGULA_OK) status = tegula__describe_check_listed(&job, err);
done:
  tegula__describe_free(&job);
  tegula__paths_free(&paths);
  return status;
}
