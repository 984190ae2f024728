/* `tegula demo`: write, load, check and clean in a fresh temporary folder.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * It runs the other commands' own steps with settings of its own. The folder is removed also after
 * a failure. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_report.h"
#include "commands.h"

#define DEMO_SEED 42
#define DEMO_TILES 6

static char *make_temporary_folder(cli_job *job) {
  const char *parent = getenv("TMPDIR");
  char *dir = NULL;
  if (asprintf(&dir, "%s/tegula-demo-XXXXXX",
               parent != NULL && parent[0] != '\0' ? parent : "/tmp") < 0) {
    report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL,
                "could not name a temporary folder: no memory");
    return NULL;
  }
  if (mkdtemp(dir) == NULL) {
    report_fail_os(&job->error, dir, errno, "set TMPDIR to a folder that can be written to",
                   "could not make folder %s", dir);
    free(dir);
    return NULL;
  }
  return dir;
}

static void say(const cli_job *job, const char *text) {
  if (!job->settings.json && !job->settings.quiet) {
    printf("%s\n", text);
  }
}

/* Keeps the report of one step under its name. */
static tegula_status keep_report(json_t *all, const char *step, cli_job *job) {
  if (job->report == NULL) {
    return TEGULA_OK;
  }
  int failed = json_object_set_new(all, step, job->report) != 0;
  job->report = NULL;
  return failed ? report_no_memory(&job->error) : TEGULA_OK;
}

static tegula_status load_and_check(cli_job *job) {
  load_run run;
  load_seconds seconds;
  tegula_status status = load_once(job, &run, &seconds);
  if (status == TEGULA_OK) {
    status = load_check(job, &run);
  }
  if (status == TEGULA_OK) {
    load_summary summary = {.run = &run, .seconds = seconds};
    status = load_report(job, &summary);
  }
  load_release(&run);
  return status;
}

static tegula_status run_steps(cli_job *job, const char *dir, json_t *all) {
  say(job, "$ tegula write DIR --seed 42");
  tegula_status status = write_shards(job, dir);
  if (status == TEGULA_OK) {
    status = keep_report(all, "write", job);
  }
  if (status == TEGULA_OK) {
    say(job, "$ tegula load DIR --tiles 6 --check-seed 42");
    status = load_and_check(job);
  }
  if (status == TEGULA_OK) {
    status = keep_report(all, "load", job);
  }
  if (status == TEGULA_OK) {
    say(job, "$ tegula clean DIR");
    status = clean_folder(job, dir);
  }
  return status;
}

static tegula_status run_demo(cli_job *job) {
  char *dir = make_temporary_folder(job);
  json_t *all = json_object();
  if (dir == NULL) {
    json_decref(all);
    return job->error.status;
  }
  const char *paths[] = {dir, NULL};
  const char **given_paths = job->settings.paths;
  size_t given_count = job->settings.path_count;
  job->settings.paths = paths;
  job->settings.path_count = 1;
  job->settings.seed = DEMO_SEED;
  job->settings.check_seed = DEMO_SEED;
  job->settings.tiles = DEMO_TILES;
  tegula_status status = run_steps(job, dir, all);
  if (status != TEGULA_OK) {
    target_remove_folder(dir);
  }
  job->settings.paths = given_paths;
  job->settings.path_count = given_count;
  free(dir);
  if (status == TEGULA_OK && job->settings.json) {
    job->report = all;
    return TEGULA_OK;
  }
  json_decref(all);
  if (status == TEGULA_OK && !job->settings.quiet) {
    printf("TEGULA DEMO OK\n");
  }
  return status;
}

const cli_command demo_command = {
    .name = "demo",
    .summary = "write, load, check and clean in a temporary folder",
    .paths = "",
    .description = "Makes 64 MB of shards in a fresh folder under TMPDIR (or /tmp), loads them in "
                   "parallel as six tiles, compares\n"
                   "each value and removes everything again. The last line is TEGULA DEMO OK.\n\n"
                   "With --json: write and load, the reports of the two commands.\n",
    .examples = "  tegula demo\n"
                "  TMPDIR=/scratch tegula demo --threads 4\n",
    .min_paths = 0,
    .max_paths = 0,
    .groups = {&options_common, NULL},
    .run = run_demo,
};
