/* Deadline, interruption and the progress bar of one run.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The flag below is a variable of the whole program because a signal handler can reach nothing
 * else. */
#include "cli_job.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_report.h"
#include "commands.h"
#include "launch_ranks.h"

#define BAR_INTERVAL 0.1 /* seconds between two pictures of the bar */
#define BAR_WIDTH 30

static atomic_int interrupted; /* lock-free, so a handler may set it and any thread read it */

static void on_signal(int number) {
  (void)number;
  interrupted = 1;
}

static void install_signals(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  /* the second signal has its usual effect: the program ends */
  action.sa_flags = (int)SA_RESETHAND;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

tegula_status job_start(cli_job *job) {
  const cli_settings *values = &job->settings;
  install_signals();
  job->deadline = values->timeout > 0 ? job_now() + values->timeout : 0;
  job->ranks = 1;
  if (ranks_way(job) == RANKS_ALL && ranks_launched().ranks > 1) {
    tegula_status joined = ranks_join(job);
    if (joined != TEGULA_OK) {
      return joined;
    }
  }
  job->show_progress =
      strcmp(values->progress, "always") == 0 ||
      (strcmp(values->progress, "auto") == 0 && !values->quiet && isatty(STDERR_FILENO));
  job->show_progress = job->show_progress && !job->silent;
  tegula_context_options options;
  tegula_context_options_init(&options);
  options.threads = (int32_t)values->threads;
  options.io = values->io;
  options.staging_bytes = values->memory / 4;
  options.plugin_path = getenv("TEGULA_PLUGIN_PATH");
  options.hdf5_library = getenv("TEGULA_HDF5_LIBRARY");
  char *candidates = options.hdf5_library == NULL ? hdf5_candidates() : NULL;
  options.hdf5_candidates = candidates;
  tegula_status status = tegula_context_create(&options, job->comm, &job->context, &job->error);
  free(candidates);
  return status;
}

void job_end(cli_job *job) {
  job_phase_end(job);
  tegula_context_destroy(job->context);
  job->context = NULL;
}

void job_phase(cli_job *job, int64_t total) {
  job->phase_began = job_now();
  job->bar_time = job->phase_began - BAR_INTERVAL; /* the first news is shown at once */
  job->phase_base = 0;
  job->phase_total = total;
}

void job_advance(cli_job *job, int64_t bytes) { job->phase_base += bytes; }

void job_phase_end(cli_job *job) {
  if (job->bar_drawn) {
    fputs("\r\033[K", stderr);
    fflush(stderr);
    job->bar_drawn = 0;
  }
}

static double smaller(double a, double b) { return a < b ? a : b; }

/* [############..................]  40 %  1.2 GB/s  3 s left */
static void draw_bar(cli_job *job, double done, double total, double now) {
  char bar[BAR_WIDTH + 1], rate_text[32], left_text[32] = "";
  double part = total > 0 ? smaller(done / total, 1) : 0, passed = now - job->phase_began;
  int filled = (int)(part * BAR_WIDTH);
  memset(bar, '.', BAR_WIDTH);
  memset(bar, '#', (size_t)filled);
  bar[BAR_WIDTH] = '\0';
  double rate = passed > 0 ? done / passed : 0;
  if (rate > 0 && total >= done) {
    snprintf(left_text, sizeof left_text, "  %.0f s left", smaller((total - done) / rate, 1e9));
  }
  fprintf(stderr, "\r[%s] %3.0f %%  %s/s%s\033[K", bar, part * 100,
          report_bytes_text(rate, rate_text), left_text);
  fflush(stderr);
  job->bar_drawn = 1;
}

int job_stopped(const cli_job *job) {
  return interrupted || (job->deadline > 0 && job_now() >= job->deadline);
}

int job_progress(void *state, int64_t bytes_done, int64_t bytes_total) {
  cli_job *job = state;
  if (job->show_progress) {
    double now = job_now();
    if (now - job->bar_time >= BAR_INTERVAL) {
      job->bar_time = now;
      draw_bar(job, (double)job->phase_base + (double)bytes_done,
               (double)(job->phase_total > 0 ? job->phase_total : bytes_total), now);
    }
  }
  return job_stopped(job);
}

tegula_status job_check(cli_job *job) {
  if (interrupted) {
    return report_fail(&job->error, TEGULA_CANCELLED, NULL, "interrupted");
  }
  if (job_stopped(job)) {
    return report_fail(
        &job->error, TEGULA_TIMEOUT, "give --timeout (or TEGULA_TIMEOUT) more seconds",
        "%s did not end within its deadline of %g s", job->command->name, job->settings.timeout);
  }
  return TEGULA_OK;
}

int job_exit_status(cli_job *job, tegula_status status) {
  if (status == TEGULA_CANCELLED) {
    tegula_status reason = job_check(job);
    status = reason != TEGULA_OK ? reason : status;
  }
  if (status == TEGULA_OK) {
    return 0;
  }
  if (status == TEGULA_CANCELLED && interrupted) {
    return 130;
  }
  if (status == TEGULA_INVALID_ARGUMENT) {
    return 2;
  }
  return job->check_failed ? 3 : 1;
}
