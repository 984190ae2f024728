/* From the settings of the command line to an open dataset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli_report.h"
#include "commands.h"

static const char *raw_only_option(const cli_settings *values) {
  if (values->shape.ndim >= 0) {
    return "shape";
  }
  if (values->row_shape.ndim >= 0) {
    return "row-shape";
  }
  if (values->order != NULL) {
    return "order";
  }
  if (values->byte_order != NULL) {
    return "byte-order";
  }
  return values->offset > 0 ? "offset" : values->row_gap > 0 ? "row-gap" : NULL;
}

tegula_status open_check_settings(cli_job *job) {
  const cli_settings *values = &job->settings;
  const char *name = job->command->name, *raw_option = raw_only_option(values);
  int says_npy = values->format != NULL && strcmp(values->format, "npy") == 0;
  int says_hdf5 = values->format != NULL && strcmp(values->format, "hdf5") == 0;
  int says_manifest = values->format != NULL && strcmp(values->format, "manifest") == 0;
  if (raw_option != NULL && (says_npy || says_hdf5 || says_manifest)) {
    return report_usage(&job->error, name, "option --%s is for raw files, found --format %s",
                        raw_option, values->format);
  }
  if (values->shape.ndim >= 0 && values->row_shape.ndim >= 0) {
    return report_usage(&job->error, name, "give --shape or --row-shape, not both");
  }
  return TEGULA_OK;
}

uint32_t open_missing(const cli_settings *values) {
  if (values->missing == NULL) {
    return TEGULA_MISSING_ERROR;
  }
  return strcmp(values->missing, "strict") == 0 ? TEGULA_MISSING_STRICT
         : strcmp(values->missing, "fill") == 0 ? TEGULA_MISSING_FILL
                                                : TEGULA_MISSING_ERROR;
}

static char byte_order_character(const char *text) {
  if (text == NULL) {
    return 0;
  }
  return strcmp(text, "big") == 0 || strcmp(text, ">") == 0 ? '>' : '<';
}

/* A tegula_progress_fn that draws nothing: the bar is that of the bytes. */
static int stop_opening(void *state, int64_t files_done, int64_t files_total) {
  (void)files_done;
  (void)files_total;
  return job_stopped(state);
}

static void init_options(const cli_job *job, tegula_open_options *options) {
  tegula_open_options_init(options);
  options->progress = stop_opening;
  options->progress_state = (void *)job; /* only read */
}

void open_fill_options(const cli_job *job, tegula_statistics *statistics,
                       tegula_open_options *options) {
  const cli_settings *values = &job->settings;
  init_options(job, options);
  /* always made alike */
  options->settings = options_settings((setting_list *)(uintptr_t)&values->set);
  options->setting_count = values->set.count;
  options->format = values->format;
  options->dataset = values->dataset;
  options->field = values->field;
  options->dtype = values->dtype;
  options->shape = values->shape.ndim >= 0 ? values->shape.length : NULL;
  options->shape_ndim = values->shape.ndim;
  options->row_shape = values->row_shape.ndim >= 0 ? values->row_shape.length : NULL;
  options->row_ndim = values->row_shape.ndim;
  options->offset = values->offset;
  options->row_gap = values->row_gap;
  options->order = values->order != NULL ? values->order[0] : 0;
  options->byte_order = byte_order_character(values->byte_order);
  options->flags = (values->as_given ? 0 : TEGULA_OPEN_CHECK_ORDER) |
                   (values->allow_locked ? TEGULA_OPEN_LOCKED : 0);
  options->expect_files = values->expect_files;
  options->expect_rows = values->expect_rows;
  options->statistics = statistics;
}

/* A folder, or a pattern that is the name of nothing. */
static int stands_for_several(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 ? S_ISDIR(info.st_mode) : strpbrk(path, "*?[") != NULL;
}

static tegula_status open_paths(const cli_job *job, const tegula_open_options *options,
                                tegula_dataset **out, tegula_error *error) {
  const cli_settings *values = &job->settings;
  if (values->path_count == 1) {
    return tegula_dataset_open(job->context, values->paths[0], options, out, error);
  }
  tegula_status status = tegula_dataset_open_list(job->context, values->paths, values->path_count,
                                                  options, out, error);
  if (status != TEGULA_OK && error != NULL && error->hint[0] == '\0' &&
      stands_for_several(error->path)) {
    snprintf(error->hint, sizeof error->hint,
             "several paths must be files: give a folder or a quoted pattern alone");
  }
  return status;
}

/* A MISMATCH is a failed check (exit status 3) when only the expectations fail, else files that do
 * not fit together (1). */
static int only_expectations_fail(const cli_job *job) {
  const cli_settings *values = &job->settings;
  if (values->expect_files < 0 && values->expect_rows < 0) {
    return 0;
  }
  tegula_open_options options;
  tegula_dataset *dataset = NULL;
  open_fill_options(job, NULL, &options);
  options.expect_files = -1;
  options.expect_rows = -1;
  int opens = open_paths(job, &options, &dataset, NULL) == TEGULA_OK;
  tegula_dataset_close(dataset);
  return opens;
}

tegula_status open_dataset(cli_job *job, uint32_t flags, tegula_statistics *statistics,
                           tegula_dataset **out) {
  tegula_open_options options;
  open_fill_options(job, statistics, &options);
  options.flags |= flags;
  tegula_status status = open_paths(job, &options, out, &job->error);
  if (status == TEGULA_MISMATCH && only_expectations_fail(job)) {
    job->check_failed = 1;
  }
  return status != TEGULA_OK ? status : job_check(job);
}

static tegula_status open_named(cli_job *job, const char *path, const char *name,
                                tegula_dataset **out, tegula_error *error) {
  tegula_open_options options;
  open_fill_options(job, NULL, &options);
  options.dataset = name;
  options.expect_files = -1;
  options.expect_rows = -1;
  return tegula_dataset_open(job->context, path, &options, out, error);
}

tegula_status open_alone(cli_job *job, const char *path, tegula_dataset **out) {
  return open_named(job, path, job->settings.dataset, out, &job->error);
}

/* As a format that describes itself, with nothing but name and dtype of what the settings say. */
static tegula_status open_as(cli_job *job, const char *format, const char *path, const char *name,
                             const char *dtype, tegula_dataset **out) {
  tegula_open_options options;
  init_options(job, &options);
  options.format = format;
  options.dataset = strcmp(format, "npy") != 0 ? name : NULL;
  options.dtype = dtype;
  options.flags = job->settings.allow_locked ? TEGULA_OPEN_LOCKED : 0;
  return tegula_dataset_open(job->context, path, &options, out, &job->error);
}

/* Comparing says how the dtypes differ. */
static tegula_status open_described(cli_job *job, const char *path, const char *name,
                                    tegula_dataset **out) {
  static const char *const formats[] = {"npy", "manifest", "hdf5"};
  tegula_status status = TEGULA_UNSUPPORTED;
  for (size_t i = 0; i < 3 && status != TEGULA_OK; i++) {
    status = open_as(job, formats[i], path, name, job->settings.dtype, out);
    status = status == TEGULA_MISMATCH ? open_as(job, formats[i], path, name, NULL, out) : status;
  }
  return status;
}

/* An array that has no name is meant whatever the other one is called. */
static int open_nameless(cli_job *job, const char *path, tegula_dataset **out) {
  tegula_dataset_info_t info;
  tegula_dataset_info_init(&info);
  if (open_named(job, path, NULL, out, NULL) != TEGULA_OK) {
    return 0;
  }
  if (tegula_dataset_info(*out, &info, NULL) == TEGULA_OK && strcmp(info.format, "hdf5") != 0) {
    return 1;
  }
  tegula_dataset_close(*out);
  *out = NULL;
  return 0;
}

tegula_status open_side(cli_job *job, const char *path, const char *name, tegula_dataset **out) {
  if (job->settings.dtype != NULL) {
    tegula_status status = open_described(job, path, name, out);
    if (status == TEGULA_OK || status == TEGULA_NOT_FOUND || status == TEGULA_INVALID_ARGUMENT) {
      return status; /* opened, or HDF5 without that name */
    }
  }
  tegula_status status = open_named(job, path, name, out, &job->error);
  if (status == TEGULA_NOT_FOUND && name != NULL && open_nameless(job, path, out)) {
    status = TEGULA_OK;
  }
  return status != TEGULA_OK ? status : job_check(job);
}
