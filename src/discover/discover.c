/* Describes a set of files as it was at one moment, and joins it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * All of it runs on the pool; the error that is reported is that of the first file in order. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "discover/discover_priv.h"

enum {
  TURNS = 7 /* more tries where files were replaced meanwhile */,
  PAUSE_NS = 500000 /* before the first of them */
};

static void describe_all(tegula__describe_job *job, tegula__pool *pool) {
  if (!job->options->defer_headers || job->format == &tegula__format_raw) {
    tegula__pool_run_waiting(pool, job->count, tegula__describe_one, job);
    return;
  }
  tegula__describe_one(job, 0, 0);
  job->alike = tegula__predict_from(&job->shards[0]);
  tegula__pool_run_waiting(pool, job->count - 1, tegula__describe_predicted, job);
}

static tegula_status copy_paths(const tegula__selection *selection, tegula__paths *out,
                                tegula_error *err) {
  *out = (tegula__paths){.items = calloc((size_t)selection->count, sizeof *out->items),
                         .count = selection->count};
  if (out->items == NULL) {
    out->count = 0;
    return tegula__out_of_memory(err, selection->count * (int64_t)sizeof *out->items);
  }
  for (int64_t i = 0; i < selection->count; i++)
    if ((out->items[i] = strdup(selection->paths[i])) == NULL)
      return tegula__out_of_memory(err, (int64_t)strlen(selection->paths[i]));
  return TEGULA_OK;
}

static tegula_status find_paths(const tegula__selection *selection, tegula__folders *folders,
                                tegula__paths *out, tegula_error *err) {
  FORWARD(selection->count == 1 ? tegula__paths_find(selection->paths[0], folders, out, err)
                                : copy_paths(selection, out, err));
  return selection->check_order ? tegula__names_check_order(selection->paths, selection->count, err)
                                : TEGULA_OK;
}

/* A single file and what lies beside it are one set. */
static tegula_status find_side(tegula__describe_job *job, const tegula__paths *paths,
                               tegula_error *err) {
  FORWARD(tegula__side_find(paths, job->held ? job->folders : NULL, &job->side, err));
  if (job->held || (job->side.file == NULL && job->side.problem.status == TEGULA_OK))
    return TEGULA_OK;
  job->held = true;
  tegula__side_free(&job->side);
  return tegula__side_find(paths, job->folders, &job->side, err);
}

static tegula_status describe_set(tegula__describe_job *job, tegula__pool *pool,
                                  tegula__handles *handles, const tegula__selection *selection,
                                  tegula__paths *paths, tegula__discovered *out,
                                  tegula_error *err) {
  FORWARD(find_paths(selection, job->folders, paths, err));
  /* what lies beside it may tell more */
  bool raw = job->format == &tegula__format_raw || job->options->describe.has_dtype;
  job->held = job->held || paths->count > 1 || paths->listed || raw;
  FORWARD(find_side(job, paths, err));
  FORWARD(tegula__describe_start(job, handles, paths, err));
  out->first = strdup(job->files[0].path);
  if (out->first == NULL) return tegula__out_of_memory(err, (int64_t)strlen(job->files[0].path));
  describe_all(job, pool);
  FORWARD(tegula__first_error_get(job->first_error, err));
  FORWARD(tegula__describe_check_cancelled(job, err));
  FORWARD(tegula__describe_check_together(job, pool, selection, err));
  FORWARD(tegula__describe_join(job, &out->manifest, err));
  tegula__file_set_enter(job->set, NULL);
  out->files = job->set;
  out->others = job->others;
  job->set = NULL;
  return TEGULA_OK;
}

/* Begin again? What is said of files that are being replaced may be wrong for that reason alone. */
static bool may_differ(const tegula__describe_job *job, tegula_status status) {
  if (status == TEGULA_OK || status == TEGULA_OUT_OF_MEMORY || status == TEGULA_CANCELLED)
    return false;
  /* one file: it is being written to */
  bool alone = !job->held && !tegula__folders_used(job->folders);
  return !alone && (status == TEGULA_CHANGED || !tegula__folders_untouched(job->folders));
}

static tegula_status discover_once(tegula__pool *pool, tegula__handles *handles,
                                   const tegula__selection *selection,
                                   const tegula__discover_options *options, bool held,
                                   tegula__discovered *out, bool *again, tegula__io_counts *counts,
                                   tegula_error *err) {
  tegula__describe_job job = {.options = options,
                              .counts = counts,
                              .held = held,
                              .progress_lock = PTHREAD_MUTEX_INITIALIZER};
  tegula__paths paths = {0};
  tegula_status status;
  *out = (tegula__discovered){.first = NULL};
  FORWARD_WITH(status, tegula__describe_check_format(options, &job.format, err));
  FORWARD_WITH(status, tegula__folders_create(&job.folders, err));
  status = describe_set(&job, pool, handles, selection, &paths, out, err);
  *again = may_differ(&job, status);
done:
  tegula__describe_free(&job);
  tegula__paths_free(&paths);
  if (status != TEGULA_OK) free(out->first);
  return status;
}

/* Is it the failure of the try before? Then it is not one of a moment. */
static bool is_again(const tegula_error *before, tegula_status status, const tegula_error *error) {
  return status != TEGULA_CHANGED && before->status == status &&
         strcmp(before->message, error->message) == 0;
}

tegula_status tegula__discover(tegula__pool *pool, tegula__handles *handles,
                               const tegula__selection *selection,
                               const tegula__discover_options *options, tegula__discovered *out,
                               tegula__io_counts *counts, tegula_error *err) {
  tegula_error before = {.status = TEGULA_OK}, error = {.status = TEGULA_OK};
  for (int turn = 0;; turn++) {
    bool again = false;
    tegula_status status =
        discover_once(pool, handles, selection, options, turn > 0, out, &again, counts, &error);
    if (!again || turn == TURNS || is_again(&before, status, &error)) {
      if (status != TEGULA_OK && err != NULL) *err = error;
      return status;
    }
    before = error;
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS << turn}, NULL);
  }
}
