/* `tegula verify --write`: the sums of a dataset as a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A folder of shards holds nothing but shards: sums do not go there, unless under a name that is
 * skipped when the folder is opened. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli_report.h"
#include "commands.h"

static int same_place(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Would the file be taken for a shard of the folder that is verified, or for a hole in its
 * numbering? */
static tegula_status check_place(cli_job *job, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  char *folder = whole_folder(path);
  struct stat mine, theirs;
  tegula_status status = folder != NULL ? TEGULA_OK : report_no_memory(&job->error);
  if (status == TEGULA_OK && stat(folder, &mine) != 0) {
    status =
        report_fail_os(&job->error, folder, errno, NULL, "could not find the folder of %s", path);
  }
  for (size_t i = 0; status == TEGULA_OK && i < job->settings.path_count; i++) {
    if (name[0] != '.' && name[0] != '_' && stat(job->settings.paths[i], &theirs) == 0 &&
        S_ISDIR(theirs.st_mode) && same_place(&mine, &theirs)) {
      status = report_fail(
          &job->error, TEGULA_INVALID_ARGUMENT,
          "put it beside the folder, or begin its name with . or _",
          "%s would lie among the shards of %s, and the folder could not be opened any more", path,
          job->settings.paths[i]);
    }
  }
  free(folder);
  return status;
}

static tegula_status check_target(cli_job *job, const char *path) {
  struct stat info;
  if (!job->settings.overwrite && lstat(path, &info) == 0) {
    return report_fail(&job->error, TEGULA_EXISTS,
                       "give --overwrite to replace it, or --against to compare with it",
                       "%s is there already", path);
  }
  tegula_status status = whole_check(path, "{\"tegula_sums\":", "holds no sums", &job->error);
  return status == TEGULA_OK ? check_place(job, path) : status;
}

tegula_status sums_check_settings(cli_job *job) {
  const cli_settings *values = &job->settings;
  const char *name = job->command->name;
  if (values->write != NULL && values->against != NULL) {
    return report_usage(&job->error, name, "give --write or --against, not both");
  }
  if (values->write != NULL && values->level != NULL && strcmp(values->level, "sizes") == 0) {
    return report_usage(&job->error, name,
                        "--write reads all bytes: give --level checksums or decode, not sizes");
  }
  if (values->overwrite && values->write == NULL) {
    return report_usage(&job->error, name, "--overwrite is for --write");
  }
  return values->write != NULL ? check_target(job, values->write) : TEGULA_OK;
}

tegula_status sums_make(cli_job *job, tegula_dataset *dataset, tegula_verify_level level,
                        tegula_statistics *statistics, char **out) {
  char *folder = whole_folder(job->settings.write);
  tegula_load_options options;
  tegula_load_options_init(&options);
  options.progress = job_progress;
  options.progress_state = job;
  options.statistics = statistics;
  tegula_status status =
      folder != NULL ? tegula_dataset_sums(dataset, folder, level, &options, out, &job->error)
                     : report_no_memory(&job->error);
  free(folder);
  return status;
}
