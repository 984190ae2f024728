/* The probe's commands for explain, verify and compare.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of probe.c, which is one compilation unit; nothing else includes this. */
#ifndef TEGULA_TESTS_PROBE_CHECK_H
#define TEGULA_TESTS_PROBE_CHECK_H

#include "probe_json.h"

static json_t *do_explain(probe_state *state, const json_t *command) {
  (void)command;
  char *plan = NULL;
  tegula_error error;
  tegula_status status = tegula_explain(state->dataset, state->tiling, &plan, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  json_t *answer = json_loads(plan, 0, NULL);
  tegula_free(plan);
  return answer ? json_pack("{s:o}", "plan", answer) : misuse(state, "the plan is no JSON");
}

static void problem_append(void *list, const tegula_error *problem) {
  json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:I}", "status",
                                        tegula_status_name(problem->status), "message",
                                        any_text(problem->message), "path", any_text(problem->path),
                                        "offset", (json_int_t)problem->offset));
}

static int stop_after(void *state, int64_t done, int64_t total) {
  int64_t *calls = state;
  (void)done;
  (void)total;
  return --*calls < 0;
}

/* Statistics and, with "cancel_after", the end after so many calls of the progress function. */
static void check_options(const json_t *command, tegula_statistics *statistics, int64_t *calls,
                          tegula_load_options *options) {
  tegula_statistics_init(statistics);
  tegula_load_options_init(options);
  options->statistics = statistics;
  *calls = number(command, "cancel_after", -1);
  options->progress = *calls >= 0 ? stop_after : NULL;
  options->progress_state = calls;
}

/* "level": 0 to 2. The answer has the problems also when there are some, and the status that was
 * returned. */
static json_t *do_verify(probe_state *state, const json_t *command) {
  int64_t calls;
  tegula_statistics statistics;
  tegula_load_options options;
  tegula_verify_report report;
  tegula_error error;
  check_options(command, &statistics, &calls, &options);
  tegula_verify_report_init(&report);
  json_t *problems = json_array();
  tegula_status status =
      tegula_dataset_verify(state->dataset, (tegula_verify_level)number(command, "level", 0),
                            problem_append, problems, &options, &report, &error);
  if (status != TEGULA_OK && json_array_size(problems) == 0) {
    json_decref(problems);
    return error_answer(state, status, &error);
  }
  return json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:o}", "status", tegula_status_name(status),
                   "problems", problems, "files", (json_int_t)report.files, "chunks",
                   (json_int_t)report.chunks, "bytes", (json_int_t)report.bytes, "count",
                   (json_int_t)report.problems, "statistics", statistics_answer(&statistics));
}

/* The dataset against the other one. */
static json_t *do_compare(probe_state *state, const json_t *command) {
  int64_t calls;
  tegula_statistics statistics;
  tegula_load_options options;
  tegula_difference found;
  tegula_error error;
  check_options(command, &statistics, &calls, &options);
  tegula_difference_init(&found);
  tegula_status status =
      tegula_compare(state->dataset, state->other, (uint32_t)number(command, "flags", 0), &options,
                     &found, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  json_t *index = found.has_index ? json_array() : json_null();
  for (int32_t axis = 0; found.has_index && axis < found.ndim; axis++) {
    json_array_append_new(index, json_integer(found.index[axis]));
  }
  return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o}", "equal", (int)found.equal, "index", index, "a",
                   any_text(found.a), "b", any_text(found.b), "reason", any_text(found.reason),
                   "statistics", statistics_answer(&statistics));
}

#endif
