/* `tegula compare`: do two paths hold the same array, whatever their layouts?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "cli_report.h"
#include "commands.h"

static json_t *index_array(const tegula_difference *found) {
  if (!found->has_index) {
    return json_null();
  }
  return report_shape(found->index, found->ndim);
}

static tegula_status print_equal(cli_job *job, const tegula_dataset *dataset) {
  tegula_dataset_info_t info;
  char shape[REPORT_TEXT], dtype[TEGULA_DTYPE_TEXT], bytes[32];
  tegula_dataset_info_init(&info);
  tegula_status status = tegula_dataset_info(dataset, &info, &job->error);
  if (status == TEGULA_OK) {
    tegula_dtype_format(info.dtype, dtype);
    printf("equal   shape %s, dtype %s, %s each\n", report_shape_text(info.shape, info.ndim, shape),
           dtype, report_bytes_text((double)info.bytes, bytes));
  }
  return status;
}

static tegula_status conclude(cli_job *job, const tegula_dataset *dataset,
                              const tegula_difference *found) {
  if (job->settings.json) {
    job->report =
        json_pack("{s:b, s:o, s:o, s:o, s:o}", "equal", (int)found->equal, "index",
                  index_array(found), "a", report_text_or_null(found->a), "b",
                  report_text_or_null(found->b), "reason", report_text_or_null(found->reason));
    if (job->report == NULL) {
      return report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL,
                         "could not make the report: no memory");
    }
  }
  if (found->equal) {
    return job->settings.json || job->settings.quiet || job->silent ? TEGULA_OK
                                                                    : print_equal(job, dataset);
  }
  job->check_failed = 1;
  return report_fail(&job->error, TEGULA_MISMATCH, NULL, "%s", found->reason);
}

static tegula_status compare_datasets(cli_job *job, tegula_dataset *a, tegula_dataset *b) {
  tegula_difference found;
  tegula_load_options options;
  tegula_difference_init(&found);
  tegula_load_options_init(&options);
  options.progress = job_progress;
  options.progress_state = job;
  job_phase(job, 0);
  tegula_status status = tegula_compare(a, b, job->settings.by_value ? TEGULA_COMPARE_VALUES : 0,
                                        &options, &found, &job->error);
  job_phase_end(job);
  return status == TEGULA_OK ? conclude(job, a, &found) : status;
}

static tegula_status run_compare(cli_job *job) {
  const cli_settings *values = &job->settings;
  tegula_dataset *a = NULL, *b = NULL;
  tegula_status status = open_check_settings(job);
  if (status == TEGULA_OK) {
    status = open_side(job, values->paths[0], values->dataset, &a);
  }
  if (status == TEGULA_OK) {
    status = open_side(job, values->paths[1],
                       values->to_dataset != NULL ? values->to_dataset : values->dataset, &b);
  }
  if (status == TEGULA_OK) {
    status = compare_datasets(job, a, b);
  }
  tegula_dataset_close(a);
  tegula_dataset_close(b);
  return status;
}

#define FIELD(name) offsetof(cli_settings, name)

static const cli_option compare_rows[] = {
    {"to-dataset", "NAME",
     "the array of B, where it has another name than that of A (default: as --dataset)",
     FIELD(to_dataset), 0, 0, OPTION_TEXT, 0},
    {"values", NULL, "floats by value: NaN equals NaN, -0 equals +0", FIELD(by_value), 0, 0,
     OPTION_FLAG, 0},
};

static const option_group compare_group = {"What is compared", compare_rows,
                                           sizeof compare_rows / sizeof compare_rows[0]};

const cli_command compare_command = {
    .name = "compare",
    .summary = "say whether two paths hold the same array, whatever their layouts",
    .paths = "A B",
    .description =
        "A and B are files, folders of shards or quoted patterns. They are equal when shape, dtype "
        "(but for its byte\n"
        "order) and every element are; how the array is stored and cut into files does not matter. "
        "The first element\n"
        "in C order that differs is named with both values, and the status is 3. Elements are "
        "compared byte by byte in\n"
        "one byte order, bools as true or false; with --values floats are compared by value, each "
        "part of a complex\n"
        "number by itself. The options of raw files are for those of the two that are raw,\n"
        "--dataset for those that have names.\n\n"
        "With --json: equal, index (null: not an element), a, b (the two values, shapes or "
        "dtypes), reason.\n",
    .examples = "  tegula compare shards copy.npy                 a folder and a file\n"
                "  tegula compare before.npy after.npy --values   a NaN is a NaN\n"
                "  tegula compare shards data.bin --dtype '>f4' --row-shape 16\n"
                "                                                 npy shards with a raw file\n"
                "  tegula compare a.h5 b.h5 --dataset /x --to-dataset /entry/x\n",
    .min_paths = 2,
    .max_paths = 2,
    .groups = {&compare_group, &options_raw, &options_common, NULL},
    .run = run_compare,
    .on_ranks = RANKS_ALL,
};
