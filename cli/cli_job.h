/* One run of a command: its settings, its context, the deadline, interruption and the progress bar.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * SIGINT and SIGTERM only set a flag; whatever moves bytes is given job_progress as its progress
 * callback, which cancels it. Between such steps a command calls job_check. A second signal ends
 * the program at once. */
#ifndef TEGULA_CLI_JOB_H
#define TEGULA_CLI_JOB_H

#include <jansson.h>
#include <tegula/tegula.h>

#include "cli_options.h"

typedef struct cli_job {
  const cli_command *command;
  cli_settings settings;
  tegula_context *context;
  tegula_comm *comm;   /* NULL: this process alone */
  int32_t rank, ranks; /* 0 of 1 without a communicator */
  int silent;          /* another rank prints */
  struct watch *watch; /* on several ranks with a deadline, while the command works */
  tegula_error error;  /* of the step that failed */
  json_t *report;      /* with --json: what is printed at the end, by main */
  int check_failed;    /* the failure is that data differ: exit status 3 */
  int show_progress;
  int bar_drawn;
  double deadline; /* on job_now's clock; 0: none */
  double phase_began;
  double bar_time;     /* when the bar was last drawn */
  int64_t phase_base;  /* bytes done by the calls of this phase that have ended */
  int64_t phase_total; /* bytes of all calls of this phase; 0: as the running call says */
} cli_job;

/* cli_timing.c: seconds on a clock that never jumps. */
double job_now(void);
/* Signal handlers, deadline and context, from job->settings. */
tegula_status job_start(cli_job *job);
void job_end(cli_job *job);
/* A phase is one or more library calls that together move `total` bytes and share one bar. */
void job_phase(cli_job *job, int64_t total);
/* A call of the phase has ended; it moved `bytes`. */
void job_advance(cli_job *job, int64_t bytes);
void job_phase_end(cli_job *job);
/* A tegula_progress_fn; its state is the job. */
int job_progress(void *state, int64_t bytes_done, int64_t bytes_total);
/* CANCELLED or TIMEOUT when the work should stop. */
tegula_status job_check(cli_job *job);
/* Not 0 when the work should stop; may be called from any thread. */
int job_stopped(const cli_job *job);
/* The exit status that belongs to `status`. Says why a cancelled call was cancelled. */
int job_exit_status(cli_job *job, tegula_status status);

#endif
