/* The processes that this one was started together with.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_CLI_LAUNCH_RANKS_H
#define TEGULA_CLI_LAUNCH_RANKS_H

#include <tegula/tegula.h>

struct cli_job;

/* What the launcher says in the environment. */
typedef struct launched {
  int64_t ranks;  /* 1: it says nothing */
  int64_t rank;   /* -1: not said */
  const char *by; /* the variable that says the number */
} launched;

launched ranks_launched(void);
/* RANKS_FIRST, RANKS_ALL or RANKS_NONE: what the command does with these settings. */
int ranks_way(const struct cli_job *job);
/* Joins the other ranks by MPI; the job has a communicator then. COMM when MPI does not find as
 * many as the launcher has started: each process would do the whole work. */
tegula_status ranks_join(struct cli_job *job);
/* The end: all ranks get the same status. */
tegula_status ranks_end(struct cli_job *job, tegula_status status);
/* After a failure: are ranks missing, so that each of the others must say it? Waits so that the
 * first of them says it before the others do. */
int ranks_missing(struct cli_job *job, tegula_status status);
/* Gives the communicator back. After a failure, whose `status` all know: when everything has been
 * said; where ranks are missing it ends the others. */
void ranks_leave(struct cli_job *job, tegula_status status);
/* The sums over all ranks, on all of them, and that of one more number; what is no number of
 * something stays that of this rank. */
tegula_status ranks_sum(struct cli_job *job, tegula_statistics *statistics, int64_t *more);
/* The largest of all ranks. */
tegula_status ranks_longest(struct cli_job *job, double *seconds, size_t count);

#endif
