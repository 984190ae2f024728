/* `tegula bench`: loading against plain parallel pread of the same bytes, on this machine, in one
 * run.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Pairs with alternating order, so that drift hits both sides alike; one warm-up each; medians.
 * Both sides get fresh memory inside their clocks and use the same number of threads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_report.h"
#include "commands.h"

#define USUAL_PAIRS 15
#define FEWER_PAIRS 9 /* when a run takes longer than this: */
#define LONG_RUN 2.0  /* seconds */
#define MAX_PAIRS 100000

typedef struct bench_work {
  cli_job *job;
  limit_plan *plan;
  int64_t bytes;
  double *loads, *limits;
} bench_work;

static tegula_status run_load(bench_work *work, double *seconds) {
  load_run run;
  load_seconds parts;
  tegula_status status = load_once(work->job, &run, &parts);
  *seconds = parts.total;
  work->bytes = run.bytes;
  load_release(&run);
  return status;
}

static tegula_status run_pair(bench_work *work, int load_first, double *load_seconds_out,
                              double *limit_seconds) {
  tegula_status status = load_first ? run_load(work, load_seconds_out)
                                    : limit_run(work->job, work->plan, limit_seconds);
  if (status == TEGULA_OK) {
    status = load_first ? limit_run(work->job, work->plan, limit_seconds)
                        : run_load(work, load_seconds_out);
  }
  return status;
}

static tegula_status report_bench(const bench_work *work, int64_t pairs) {
  cli_job *job = work->job;
  double seconds = median(work->loads, pairs, sizeof *work->loads),
         limit = median(work->limits, pairs, sizeof *work->limits);
  double ratio = limit > 0 ? seconds / limit : 0;
  int threads = tegula_context_threads(job->context);
  if (job->settings.json) {
    job->report = json_pack("{s:f, s:f, s:f, s:I, s:I, s:i}", "seconds", seconds, "limit_seconds",
                            limit, "ratio", ratio, "runs", (json_int_t)pairs, "bytes",
                            (json_int_t)work->bytes, "threads", threads);
    return job->report != NULL ? TEGULA_OK
                               : report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL,
                                             "could not make the report: no memory");
  }
  if (!job->settings.quiet) {
    char bytes[32];
    printf("loaded  %s with %d thread%s, %" PRId64 " pairs\n",
           report_bytes_text((double)work->bytes, bytes), threads, threads == 1 ? "" : "s", pairs);
    printf("tegula  %.4f s, %.2f GB/s\n", seconds,
           seconds > 0 ? (double)work->bytes / 1e9 / seconds : 0);
    printf("limit   %.4f s, %.2f GB/s (plain parallel pread)\n", limit,
           limit > 0 ? (double)work->bytes / 1e9 / limit : 0);
    printf("ratio   %.3f\n", ratio);
  }
  return TEGULA_OK;
}

static tegula_status run_pairs(bench_work *work) {
  double warm_load = 0, warm_limit = 0;
  tegula_status status = run_pair(work, 0, &warm_load, &warm_limit);
  int64_t pairs = work->job->settings.repeat;
  if (pairs == 0) {
    pairs = warm_load > LONG_RUN || warm_limit > LONG_RUN ? FEWER_PAIRS : USUAL_PAIRS;
  }
  work->loads = calloc((size_t)pairs, sizeof *work->loads);
  work->limits = calloc((size_t)pairs, sizeof *work->limits);
  if (work->loads == NULL || work->limits == NULL) {
    return report_fail(&work->job->error, TEGULA_OUT_OF_MEMORY, NULL,
                       "could not keep the times of %" PRId64 " pairs: no memory", pairs);
  }
  for (int64_t i = 0; i < pairs && status == TEGULA_OK; i++) {
    status = run_pair(work, i % 2 == 0, &work->loads[i], &work->limits[i]);
  }
  return status == TEGULA_OK ? report_bench(work, pairs) : status;
}

static tegula_status run_bench(cli_job *job) {
  bench_work work = {.job = job};
  tegula_dataset *dataset = NULL; /* the plan borrows its paths */
  tegula_status status = open_check_settings(job);
  if (status == TEGULA_OK) {
    status = open_dataset(job, 0, NULL, &dataset);
  }
  if (status == TEGULA_OK) {
    status = limit_prepare(job, dataset, &work.plan);
  }
  if (status == TEGULA_OK) {
    status = run_pairs(&work);
  }
  free(work.loads);
  free(work.limits);
  limit_free(work.plan);
  tegula_dataset_close(dataset);
  return status;
}

#define FIELD(name) offsetof(cli_settings, name)

static const cli_option bench_rows[] = {
    {"repeat", "N", "number of pairs (default 15; 9 when a run takes over 2 s)", FIELD(repeat), 1,
     MAX_PAIRS, OPTION_INTEGER, 0},
};

static const option_group bench_group = {"How it is measured", bench_rows,
                                         sizeof bench_rows / sizeof bench_rows[0]};

const cli_command bench_command = {
    .name = "bench",
    .summary = "compare the load with plain parallel reading",
    .paths = "PATH",
    .description = "Loads PATH, and reads the same bytes with plain parallel pread and the same "
                   "number of threads, each into\n"
                   "fresh memory, in pairs whose order alternates. The ratio of the two medians is "
                   "what tegula costs: 1.00 is as\n"
                   "fast as reading can be.\n\n"
                   "With --json: seconds, limit_seconds, ratio, runs, bytes, threads.\n",
    .examples = "  tegula write shards --num-shards 32 --shape 131072,1024\n"
                "  tegula bench shards\n"
                "  tegula bench shards --threads 1 --repeat 5 --json\n",
    .min_paths = 1,
    .max_paths = 1,
    .groups = {&bench_group, &options_raw, &options_common, NULL},
    .run = run_bench,
};
