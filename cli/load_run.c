/* One load as the settings say it, for the commands that load.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One run is describe -> tile and allocate -> move; the clock covers all three and nothing else. A
 * box is read as an array of its own shape, with the place where it begins. */
#include <inttypes.h>
#include <string.h>

#include "cli_report.h"
#include "commands.h"

/* ---- the box and its tiles ---- */

/* What is read: the whole array, or --box. */
static tegula_status take_box(cli_job *job, const tegula_dataset_info_t *info, tegula_box *box) {
  const box_value *wanted = &job->settings.box;
  char text[REPORT_TEXT];
  if (wanted->ndim > info->ndim) {
    return report_usage(
        &job->error, job->command->name,
        "option --box: expected at most %d axes, found %d (the array's shape is %s)",
        (int)info->ndim, (int)wanted->ndim, report_shape_text(info->shape, info->ndim, text));
  }
  memset(box, 0, sizeof *box);
  box->ndim = info->ndim;
  for (int32_t axis = 0; axis < info->ndim; axis++) {
    int given = axis < wanted->ndim;
    box->lo[axis] = given ? wanted->lo[axis] : 0;
    box->hi[axis] = given && wanted->hi[axis] >= 0 ? wanted->hi[axis] : info->shape[axis];
    if (box->lo[axis] > box->hi[axis] || box->hi[axis] > info->shape[axis]) {
      return report_usage(
          &job->error, job->command->name,
          "option --box: %" PRId64 ":%" PRId64 " on axis %d is outside the shape %s", box->lo[axis],
          box->hi[axis], (int)axis, report_shape_text(info->shape, info->ndim, text));
    }
  }
  return TEGULA_OK;
}

static int64_t box_bytes(const tegula_box *box, int64_t item_size) {
  int64_t bytes = item_size;
  for (int32_t axis = 0; axis < box->ndim; axis++) {
    if (__builtin_mul_overflow(bytes, box->hi[axis] - box->lo[axis], &bytes)) {
      return INT64_MAX;
    }
  }
  return bytes;
}

/* True where --box has a step. */
static int has_steps(const box_value *box) {
  for (int32_t axis = 0; axis < box->ndim; axis++) {
    if (box->step[axis] > 1) {
      return 1;
    }
  }
  return 0;
}

/* With steps the dataset becomes what they select, and the box the whole of that. */
static tegula_status take_steps(cli_job *job, load_run *run) {
  const box_value *wanted = &job->settings.box;
  int64_t step[TEGULA_MAX_DIMS];
  tegula_selection selection;
  tegula_dataset *selected;
  if (!has_steps(wanted)) {
    return TEGULA_OK;
  }
  if (job->settings.check_seed >= 0) {
    return report_usage(&job->error, job->command->name,
                        "option --check-seed: not with steps in --box");
  }
  for (int32_t axis = 0; axis < run->box.ndim; axis++) {
    step[axis] = axis < wanted->ndim ? wanted->step[axis] : 1;
  }
  tegula_selection_init(&selection);
  selection.lo = run->box.lo;
  selection.hi = run->box.hi;
  selection.step = step;
  selection.ndim = run->box.ndim;
  tegula_status status = tegula_dataset_select(run->dataset, &selection, &selected, &job->error);
  if (status != TEGULA_OK) {
    return status;
  }
  tegula_dataset_close(run->dataset);
  run->dataset = selected;
  status = tegula_dataset_info(selected, &run->info, &job->error);
  for (int32_t axis = 0; axis < run->box.ndim; axis++) {
    run->box.lo[axis] = 0;
    run->box.hi[axis] = run->info.shape[axis];
  }
  return status;
}

/* ---- one run ---- */

static tegula_status describe(cli_job *job, uint32_t flags, load_run *run) {
  tegula_status status = open_dataset(job, flags, &run->statistics, &run->dataset);
  if (status != TEGULA_OK) {
    return status;
  }
  tegula_dataset_info_init(&run->info);
  status = tegula_dataset_info(run->dataset, &run->info, &job->error);
  if (status == TEGULA_OK) {
    status = take_box(job, &run->info, &run->box);
  }
  return status != TEGULA_OK ? status : take_steps(job, run);
}

static tegula_status allocate(cli_job *job, load_run *run) {
  int64_t shape[TEGULA_MAX_DIMS] = {0};
  for (int32_t axis = 0; axis < run->box.ndim; axis++) {
    shape[axis] = run->box.hi[axis] - run->box.lo[axis];
  }
  run->bytes = box_bytes(&run->box, run->info.dtype.item_size);
  tegula_status status = tiling_make(job, shape, run->box.ndim, job->ranks, &run->tiling);
  return status != TEGULA_OK ? status
                             : tegula_array_create(job->context, run->info.dtype, run->tiling, NULL,
                                                   &run->array, &job->error);
}

static tegula_status move_bytes(cli_job *job, load_run *run) {
  tegula_load_options options;
  tegula_load_options_init(&options);
  options.progress = job_progress;
  options.progress_state = job;
  options.statistics = &run->statistics;
  options.missing = open_missing(&job->settings);
  if (job->settings.box.ndim >= 0) {
    options.origin = run->box.lo;
    options.origin_ndim = run->box.ndim;
  }
  job_phase(job, 0);
  tegula_status status = tegula_load(run->dataset, run->array, &options, &job->error);
  job_phase_end(job);
  return status != TEGULA_OK ? status : job_check(job);
}

static tegula_status load_steps(cli_job *job, uint32_t flags, load_run *run,
                                load_seconds *seconds) {
  double began = job_now();
  tegula_status status = describe(job, flags, run);
  double described = job_now();
  if (status == TEGULA_OK) {
    status = allocate(job, run);
  }
  double allocated = job_now();
  if (status == TEGULA_OK) {
    status = move_bytes(job, run);
  }
  double moved = job_now();
  seconds->total += moved - began;
  seconds->describe += described - began;
  seconds->allocate += allocated - described;
  seconds->move += moved - allocated;
  return status;
}

static void close_run(load_run *run) {
  tegula_array_destroy(run->array);
  tegula_tiling_destroy(run->tiling);
  tegula_dataset_close(run->dataset);
  run->array = NULL;
  run->tiling = NULL;
  run->dataset = NULL;
}

/* Can a load have failed because a header is not as foretold? Up to the array all that is known is
 * foretold. A file that changed meanwhile is an error, whatever a second load would find. */
static int may_be_foretold(const cli_job *job, const load_run *run, tegula_status status) {
  int other_reason = status == TEGULA_OK || status == TEGULA_CHANGED ||
                     status == TEGULA_CANCELLED || status == TEGULA_TIMEOUT ||
                     status == TEGULA_OUT_OF_MEMORY || job->error.os_errno != 0;
  if (run->dataset == NULL || other_reason) {
    return 0;
  }
  return run->array == NULL || status == TEGULA_MISMATCH;
}

/* Of the whole array all headers are read anyway, so they may come with the data. If that fails, a
 * second load reads all headers first: it finds what is there, or says what is wrong. */
tegula_status load_once(cli_job *job, load_run *run, load_seconds *seconds) {
  memset(run, 0, sizeof *run);
  memset(seconds, 0, sizeof *seconds);
  tegula_statistics_init(&run->statistics);
  /* ranks are told what rank 0 has read */
  uint32_t flags = job->settings.box.ndim < 0 && job->ranks == 1 ? TEGULA_OPEN_DEFER_HEADERS : 0;
  tegula_status status = load_steps(job, flags, run, seconds);
  if (flags != 0 && may_be_foretold(job, run, status)) {
    close_run(run);
    status = load_steps(job, 0, run, seconds);
  }
  return status;
}

void load_release(load_run *run) {
  close_run(run);
  memset(run, 0, sizeof *run);
}
