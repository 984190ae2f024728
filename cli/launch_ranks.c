/* Ranks of the shell command: what the launcher says, and joining by MPI.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A launcher starts the same command several times. Commands that work on ranks join each other; of
 * the others only rank 0 does something. What is printed, rank 0 prints. */
#include "launch_ranks.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tegula/tegula_mpi.h>

#include "cli_report.h"
#include "commands.h"

/* ---- what the launcher says ---- */

static int64_t number_of(const char *name) {
  const char *text = getenv(name);
  char *end = NULL;
  long long value = text != NULL ? strtoll(text, &end, 10) : -1;
  return text != NULL && end != text && *end == '\0' && value >= 0 ? value : -1;
}

/* Inside of an allocation the script itself has SLURM_NTASKS, too: it is one process. srun says how
 * many its step has. */
static launched launched_by_slurm(void) {
  const char *surroundings = getenv("ENVIRONMENT");
  launched found = {.ranks = number_of("SLURM_STEP_NUM_TASKS"),
                    .rank = number_of("SLURM_PROCID"),
                    .by = "SLURM_STEP_NUM_TASKS"};
  if (found.ranks < 1 && found.rank >= 0 &&
      (surroundings == NULL || strcmp(surroundings, "BATCH") != 0)) {
    found.ranks = number_of("SLURM_NTASKS");
    found.by = "SLURM_NTASKS";
  }
  return found;
}

launched ranks_launched(void) {
  static const struct {
    const char *ranks, *rank;
  } launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                   {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
                   {"PMI_SIZE", "PMI_RANK"}};
  launched found = {.ranks = -1};
  for (size_t i = 0; i < sizeof launchers / sizeof launchers[0] && found.ranks < 1; i++) {
    found = (launched){.ranks = number_of(launchers[i].ranks),
                       .rank = number_of(launchers[i].rank),
                       .by = launchers[i].ranks};
  }
  if (found.ranks < 1) {
    found = launched_by_slurm();
  }
  /* the number is not said, but this is not the first */
  if (found.ranks < 1 && number_of("PMIX_RANK") > 0) {
    found = (launched){
        .ranks = number_of("PMIX_RANK") + 1, .rank = number_of("PMIX_RANK"), .by = "PMIX_RANK"};
  }
  return found.ranks > 1 ? found : (launched){.ranks = 1, .rank = -1};
}

int ranks_way(const cli_job *job) { return (int)job->command->on_ranks; }

/* ---- which MPI ---- */

/* Adds DIR/../lib/NAME for each library beside the program that started this one: a launcher in a
 * folder of its own has its MPI there. */
static void add_beside_parent(char *out, size_t room) {
  static const char *const names[] = {"libmpi_abi.so.1", "libmpi.so.12", "libmpi.so.40"};
  char link[64], program[1024], library[1200];
  snprintf(link, sizeof link, "/proc/%ld/exe", (long)getppid());
  ssize_t size = readlink(link, program, sizeof program - 1);
  if (size <= 0) {
    return;
  }
  program[size] = '\0';
  char *slash = strrchr(program, '/');
  for (size_t i = 0; slash != NULL && i < sizeof names / sizeof names[0]; i++) {
    snprintf(library, sizeof library, "%.*s/../lib/%s", (int)(slash - program), program, names[i]);
    size_t used = strlen(out);
    if (access(library, R_OK) == 0 && used + strlen(library) + 2 < room) {
      snprintf(out + used, room - used, "%s:", library);
    }
  }
}

static void candidates(char *out, size_t room) {
  const char *named = getenv("TEGULA_MPI_LIBRARY");
  out[0] = '\0';
  if (named != NULL && named[0] != '\0') {
    snprintf(out, room, "%s", named);
    return;
  }
  add_beside_parent(out, room);
  size_t used = strlen(out);
  snprintf(out + used, room - used, "%s",
           getenv("OMPI_COMM_WORLD_SIZE") != NULL
               ? "libmpi.so.40"
               : "libmpi_abi.so.1:libmpi.so.12:libmpich.so.12:libmpi.so.40");
}

/* ---- joining ---- */

static tegula_status check_size(cli_job *job, const launched *told) {
  job->ranks = tegula_comm_size(job->comm);
  job->rank = tegula_comm_rank(job->comm);
  if (job->ranks == told->ranks ||
      (job->ranks > told->ranks && strcmp(told->by, "PMIX_RANK") == 0)) {
    job->silent = job->rank > 0;
    return TEGULA_OK;
  }
  return report_fail(&job->error, TEGULA_COMM,
                     "take the launcher of that MPI, or name the library of the launcher's "
                     "(TEGULA_MPI_LIBRARY); with srun also see srun --mpi=list",
                     "the launcher has started %" PRId64 " ranks (%s), but %s finds %d",
                     told->ranks, told->by, tegula_comm_library(job->comm), job->ranks);
}

/* How long after the deadline of its own work a rank waits for others, which then come with the
 * news that theirs was not done either. */
#define GRACE 0.5

/* What takes no deadline: MPI_Init, which waits for all ranks; reads and writes that do not end,
 * when all ranks are in one, so that none waits for the others and says who is missing. A thread
 * that keeps it. */
#define STUCK 8 /* seconds after the deadline: what ranks say that wait comes within less */

typedef struct watch {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int done, json;
  double until;       /* on job_now's clock */
  const cli_job *job; /* NULL: at the start of MPI */
  launched told;
} watch;

static void end_late(const watch *w) {
  tegula_error error;
  if (w->job == NULL) {
    report_fail(&error, TEGULA_TIMEOUT,
                "a rank that is gone or stopped; give --timeout (or TEGULA_TIMEOUT) more seconds "
                "where it is only slow",
                "not all of %" PRId64 " ranks came to the start of MPI within the deadline",
                w->told.ranks);
  } else {
    report_fail(&error, TEGULA_TIMEOUT,
                "storage that does not answer; give --timeout (or TEGULA_TIMEOUT) more seconds "
                "where it is only slow",
                "%s did not end within its deadline of %g s: all ranks wait for storage",
                w->job->command->name, w->job->settings.timeout);
  }
  report_error(&error, w->json, NULL);
  fflush(stdout);
  if (w->job != NULL) {
    tegula_comm_abort(w->job->comm, 1);
  }
  _exit(1);
}

static void *watch_run(void *state) {
  watch *w = state;
  /* the first one says it */
  double late = w->until + (w->told.rank > 0 && w->told.rank < 30 ? (double)w->told.rank : 0) * 0.1;
  struct timespec until = {.tv_sec = (time_t)late,
                           .tv_nsec = (long)((late - (double)(time_t)late) * 1e9)};
  pthread_mutex_lock(&w->lock);
  while (!w->done && job_now() < late) {
    pthread_cond_timedwait(&w->changed, &w->lock, &until);
  }
  int done = w->done;
  pthread_mutex_unlock(&w->lock);
  if (!done) {
    end_late(w);
  }
  return NULL;
}

/* 0 where no thread could be made, or there is no deadline. */
static int watch_begin(watch *w, const cli_job *job, const launched *told, int works) {
  pthread_condattr_t clock;
  *w = (watch){.until = job->deadline + (works ? STUCK : GRACE),
               .json = job->settings.json && !(works && job->silent),
               .job = works ? job : NULL,
               .told = *told};
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->changed, &clock);
  pthread_condattr_destroy(&clock);
  return job->deadline > 0 && pthread_create(&w->thread, NULL, watch_run, w) == 0;
}

static void watch_end(watch *w) {
  pthread_mutex_lock(&w->lock);
  w->done = 1;
  pthread_cond_signal(&w->changed);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
}

/* From here to ranks_end. */
static void watch_work(cli_job *job, const launched *told) {
  job->watch = malloc(sizeof *job->watch);
  if (job->watch != NULL && !watch_begin(job->watch, job, told, 1)) {
    free(job->watch);
    job->watch = NULL;
  }
}

static void watch_work_end(cli_job *job) {
  if (job->watch != NULL) {
    watch_end(job->watch);
    free(job->watch);
    job->watch = NULL;
  }
}

tegula_status ranks_join(cli_job *job) {
  char libraries[8192];
  launched told = ranks_launched();
  tegula_mpi_options options;
  tegula_mpi_options_init(&options);
  candidates(libraries, sizeof libraries);
  options.libraries = libraries;
  options.plugin_path = getenv("TEGULA_PLUGIN_PATH");
  double deadline = job->settings.timeout > 0 ? job->settings.timeout + GRACE : 0;
  watch keeper;
  int watched = watch_begin(&keeper, job, &told, 0);
  options.deadline = watched ? 0 : deadline; /* the watch says it for all of the start */
  tegula_status status = tegula_mpi_comm_create(NULL, 0, &options, &job->comm, &job->error);
  if (watched) {
    watch_end(&keeper);
  }
  if (status != TEGULA_OK && job->error.hint[0] == '\0') {
    snprintf(job->error.hint, sizeof job->error.hint,
             "%" PRId64 " ranks were started (%s), so this process may not do all the work",
             told.ranks, told.by);
  }
  if (status == TEGULA_OK) {
    tegula_comm_deadline(job->comm, deadline);
    status = check_size(job, &told);
  }
  if (status == TEGULA_OK) {
    watch_work(job, &told);
  }
  return status;
}

tegula_status ranks_end(cli_job *job, tegula_status status) {
  watch_work_end(job);
  if (job->comm == NULL || job->ranks == 1) {
    return status;
  }
  status = tegula_comm_end(job->comm, status, &job->error);
  tegula_error *error = &job->error;
  int names_ranks =
      strncmp(error->message, "rank", 4) == 0 || strncmp(error->message, "the ranks ", 10) == 0;
  /* which rank it was, in front */
  if (status != TEGULA_OK && error->rank >= 0 && !names_ranks && !job->check_failed) {
    char message[sizeof error->message];
    snprintf(message, sizeof message, "rank %d: %.900s", (int)error->rank, error->message);
    memcpy(error->message, message, sizeof message);
  }
  return status;
}

/* Is everybody there? Then rank 0 has printed what there is to print. */
static int all_there(cli_job *job) {
  tegula_error error;
  return job->ranks == 1 || tegula_comm_end(job->comm, TEGULA_OK, &error) == TEGULA_OK;
}

int ranks_missing(cli_job *job, tegula_status status) {
  if (job->comm == NULL || job->ranks == 1 || (status != TEGULA_TIMEOUT && status != TEGULA_COMM) ||
      all_there(job)) {
    return 0;
  }
  int tenths = job->rank < 30 ? job->rank : 30;
  nanosleep(&(struct timespec){.tv_sec = tenths / 10, .tv_nsec = tenths % 10 * 100000000L}, NULL);
  return 1;
}

void ranks_leave(cli_job *job, tegula_status status) {
  /* not joined yet: launchers end all when one has failed, so rank 0 gets time to say why */
  if (job->comm == NULL) {
    if (status != TEGULA_OK && job->silent) {
      nanosleep(&(struct timespec){.tv_nsec = 500000000L}, NULL);
    }
    return;
  }
  if (status != TEGULA_OK && !all_there(job)) {
    fflush(stdout);
    tegula_comm_abort(job->comm, 1);
  }
  tegula_comm_destroy(job->comm);
  job->comm = NULL;
}

/* ---- numbers of all ranks ---- */

tegula_status ranks_sum(cli_job *job, tegula_statistics *statistics, int64_t *more) {
  int64_t *const fields[] = {
      &statistics->opens,        &statistics->stats,        &statistics->reads,
      &statistics->writes,       &statistics->bytes_read,   &statistics->bytes_written,
      &statistics->direct_bytes, &statistics->staged_bytes, &statistics->reader_bytes,
      &statistics->missing,      &statistics->steps,        more};
  enum { COUNT = sizeof fields / sizeof fields[0] };
  int64_t values[COUNT];
  if (job->ranks == 1) {
    return TEGULA_OK;
  }
  for (size_t i = 0; i < COUNT; i++) {
    values[i] = *fields[i];
  }
  tegula_status status =
      tegula_comm_reduce(job->comm, TEGULA_REDUCTION_SUM, values, COUNT, &job->error);
  for (size_t i = 0; i < COUNT; i++) {
    *fields[i] = values[i];
  }
  return status;
}

tegula_status ranks_longest(cli_job *job, double *seconds, size_t count) {
  int64_t values[8];
  if (job->ranks == 1 || count > sizeof values / sizeof values[0]) {
    return TEGULA_OK;
  }
  for (size_t i = 0; i < count; i++) {
    values[i] = (int64_t)(seconds[i] * 1e9);
  }
  tegula_status status =
      tegula_comm_reduce(job->comm, TEGULA_REDUCTION_MAX, values, (int32_t)count, &job->error);
  for (size_t i = 0; i < count; i++) {
    seconds[i] = (double)values[i] / 1e9;
  }
  return status;
}
