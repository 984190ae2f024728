/* The `tegula` command: finds the command, reads its options, runs it, prints the outcome.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One table of commands; each command is one file. Everything that ends the program passes through
 * `finish`, so that a report that could not be written is never taken for success. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tegula/tegula.h>

#include "cli_options.h"
#include "cli_report.h"
#include "commands.h"
#include "launch_ranks.h"

const cli_command *const cli_commands[] = {&demo_command,
                                           &write_command,
                                           &load_command,
                                           &info_command,
                                           &copy_command,
                                           &plan_command,
                                           &verify_command,
                                           &compare_command,
                                           &clean_command,
                                           &bench_command,
                                           &run_command_row,
                                           &completion_command,
                                           NULL};

#define COMMAND_COUNT (sizeof cli_commands / sizeof cli_commands[0] - 1)

static void print_help(void) {
  printf("tegula moves big arrays between files and the memory of many processors.\n\n"
         "Usage: tegula COMMAND [PATH...] [OPTIONS]\n\nCommands:\n");
  for (size_t i = 0; i < COMMAND_COUNT; i++) {
    if (!cli_commands[i]->hidden) {
      printf("  %-8s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    }
  }
  printf("\nOptions:\n"
         "  --help, -h   show this text; `tegula COMMAND --help` is the full description of a "
         "command\n"
         "  --version    show the version\n"
         "\nExamples:\n"
         "  tegula demo                              try everything in a temporary folder\n"
         "  tegula write shards --shape 1000000,16   make demonstration shards\n"
         "  tegula load shards                       load them in parallel and report\n"
         "  tegula clean shards                      remove them again\n"
         "\nEnvironment: TEGULA_THREADS, TEGULA_TIMEOUT (as --threads and --timeout); "
         "TEGULA_HDF5_LIBRARY, TEGULA_MPI_LIBRARY (the\n"
         "libhdf5 and the MPI to use); TEGULA_PLUGIN_PATH (where to look for plugins first).\n"
         "Exit status: 0 done; 1 it failed; 2 wrong usage; 3 data differ or a check failed; 130 "
         "interrupted.\n");
}

/* A file that is opened must never get the number of a standard stream that the caller closed: the
 * report would land in it. The stand-in is read-only, so that writing a report to a closed standard
 * output still fails. */
static void fill_standard_streams(void) {
  for (int fd = 0; fd <= 2; fd++) {
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      (void)!open("/dev/null", O_RDONLY);
    }
  }
}

static int finish(int code) {
  tegula_error error;
  if (report_close(&error) != TEGULA_OK) {
    report_error(&error, 0, NULL);
    return code == 0 ? 1 : code;
  }
  return code;
}

/* Also before the options are read, so that a usage error is an object too. */
static int wants_json(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strcmp(argv[i], "--json") == 0) {
      return 1;
    }
  }
  return 0;
}

static const cli_command *find_command(const char *name) {
  for (size_t i = 0; i < COMMAND_COUNT; i++) {
    if (strcmp(cli_commands[i]->name, name) == 0) {
      return cli_commands[i];
    }
  }
  return NULL;
}

static tegula_status unknown_command(const char *name, tegula_error *error) {
  const char *names[COMMAND_COUNT];
  if (name[0] == '-') {
    return report_usage(error, "", "expected a command in front of \"%s\"", name);
  }
  for (size_t i = 0; i < COMMAND_COUNT; i++) {
    names[i] = cli_commands[i]->name;
  }
  report_usage(error, "", "there is no command \"%s\"", name);
  const char *nearest = options_nearest(name, names, COMMAND_COUNT);
  if (nearest != NULL) {
    snprintf(error->hint, sizeof error->hint, "did you mean tegula %s? (see tegula --help)",
             nearest);
  }
  return TEGULA_INVALID_ARGUMENT;
}

/* Started as one of several ranks: does this one do something? */
static tegula_status admit(cli_job *job, const launched *told, int *idle) {
  *idle = told->ranks > 1 && ranks_way(job) == RANKS_FIRST && told->rank > 0;
  if (told->ranks == 1 || ranks_way(job) != RANKS_NONE) {
    return TEGULA_OK;
  }
  return report_fail(
      &job->error, TEGULA_UNSUPPORTED,
      "start it once, without a launcher: it works on all processors that it is granted",
      "cannot %s on several ranks: %lld were started (%s)", job->command->name,
      (long long)told->ranks, told->by);
}

/* Usage, then the command itself; its report is printed here. */
static tegula_status run_command(cli_job *job, int argc, char **argv) {
  const cli_command *command = job->command;
  launched told = ranks_launched();
  int idle = 0;
  tegula_status status = options_parse(command, argc, argv, &job->settings, &job->error);
  if (status == TEGULA_OK && job->settings.help) {
    if (!job->silent) {
      options_help(command);
    }
    return TEGULA_OK;
  }
  if (status == TEGULA_OK) {
    status = options_environment(&job->settings, &job->error);
  }
  if (status == TEGULA_OK) {
    status = admit(job, &told, &idle);
  }
  if (status == TEGULA_OK && !idle) {
    status = job_start(job);
  }
  if (status == TEGULA_OK && !idle) {
    status = command->run(job);
  }
  return ranks_end(job, status);
}

static int report_outcome(cli_job *job, tegula_status status, int json) {
  json_t *report = job->report;
  job->report = NULL;
  if (ranks_missing(job, status)) {
    job->silent = 0;
  }
  if (job->silent) {
    json_decref(report);
    return job_exit_status(job, status);
  }
  if (status == TEGULA_OK && report == NULL) {
    status = report_memory(&job->error);
  } else if (status == TEGULA_OK) {
    status = report_json(report, job->settings.attributes ? REPORT_EXACT_DIGITS : REPORT_DIGITS,
                         &job->error);
    report = NULL;
    if (status == TEGULA_IO) { /* finish tells it */
      return 1;
    }
  }
  /* says why a cancelled call was cancelled, so it comes before the report */
  int code = job_exit_status(job, status);
  if (status != TEGULA_OK) {
    report_error(&job->error, json, report);
  }
  return code;
}

int main(int argc, char **argv) {
  fill_standard_streams();
  report_start();
  signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error, which is reported */
  const char *name = argc > 1 ? argv[1] : "";
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
    print_help();
    return finish(0);
  }
  if (strcmp(name, "--version") == 0) {
    printf("tegula %s\n", tegula_version());
    return finish(0);
  }
  cli_job job;
  memset(&job, 0, sizeof job);
  options_init(&job.settings);
  job.command = find_command(name);
  job.silent = ranks_launched().rank > 0;
  tegula_status status = TEGULA_OK;
  if (argc < 2) {
    status = report_usage(&job.error, "", "expected a command");
  } else if (job.command == NULL) {
    status = unknown_command(name, &job.error);
  } else {
    status = run_command(&job, argc - 2, argv + 2);
  }
  job_end(&job);
  int code = report_outcome(&job, status, wants_json(argc, argv));
  free(job.settings.paths);
  fflush(stdout); /* in front of the other ranks' end, which may end this one */
  ranks_leave(&job, status);
  return finish(code);
}
